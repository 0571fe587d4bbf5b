"""Capacity bought by the hour instead of by the token: what it would have cost on this log. Evidence only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, cast
from zoneinfo import ZoneInfo

from tenfold.ledger.session import Session
from tenfold.levers.tally import fact
from tenfold.levers.values import Reader, amount, count, table
from tenfold.money import PUSD_PER_USD, divided, usd_text
from tenfold.store import steps

_STEP = "lever_batch_api_minutes"
_MILLION = 1_000_000
# A published weight is the vendor's own by model; these are assumed where none is stated, and said with every figure.
_DEFAULTS = {"min_units": 1, "output_weight": Decimal(4), "cached_weight": Decimal(1)}


def _some(raw: object) -> int:
    found = count(raw)
    if not found:
        raise ValueError("must be above 0")
    return found


_KEYS: dict[str, Reader] = {
    "usd_per_hour": amount,
    "tokens_per_minute": _some,
    "min_units": _some,
    "output_weight": amount,
    "cached_weight": amount,
}
PROVISIONED = table(_KEYS, required=("usd_per_hour", "tokens_per_minute"))


class Minute(NamedTuple):
    """One minute of traffic.

    Args:
        load: Input-equivalent tokens, in millionths.
        cost_pusd: What they cost by the token.
    """

    load: int
    cost_pusd: int


class Units(NamedTuple):
    """Capacity that is sold by the hour.

    Args:
        pusd_per_hour: Price of a unit.
        tokens_per_minute: Input-equivalent tokens that a unit serves in a minute.
        least: Fewest units that are sold.
        hours: Hours they are paid for.
    """

    pusd_per_hour: int
    tokens_per_minute: int
    least: int
    hours: int


class Provisioned(NamedTuple):
    """What some units would have cost.

    Args:
        units: How many.
        held_pusd: Their price over the window.
        spill_pusd: What goes beyond them, by the token.
        served: Share of their capacity that is used.
    """

    units: int
    held_pusd: int
    spill_pusd: int
    served: Fraction

    @property
    def cost_pusd(self) -> int:
        """Both together."""
        return self.held_pusd + self.spill_pusd


def cost_of(minutes: Sequence[Minute], units: Units, number: int) -> Provisioned:
    """Price a number of units: what is held is paid every hour, what goes beyond them in a minute by the token.

    Args:
        minutes: The traffic.
        units: The capacity sold.
        number: How many of it.

    Returns:
        The cost.

    Formula:
        n x price an hour x hours + the sum over minutes of cost x max(0, 1 - capacity / load); levers.md 8.
    """
    capacity = number * units.tokens_per_minute * _MILLION
    spill = sum(divided(one.cost_pusd * (one.load - capacity), one.load) for one in minutes if one.load > capacity)
    held = capacity * 60 * units.hours
    served = sum(min(one.load, capacity) for one in minutes)
    return Provisioned(
        number, number * units.pusd_per_hour * units.hours, spill, Fraction(served, held) if held else Fraction(0)
    )


def cheapest(minutes: Sequence[Minute], units: Units) -> Provisioned:
    """Find the number of units that costs least.

    Args:
        minutes: The traffic; at least one minute.
        units: The capacity sold.

    Returns:
        The cheapest number that is sold, the smaller of two that cost the same. The cost is convex in the number (each
        minute's spill is), so halving finds it; rounding to whole pUSD may move it by a unit that costs the same.
    """
    low = units.least
    high = max(low, -(-max(one.load for one in minutes) // (units.tokens_per_minute * _MILLION)))
    while low < high:
        middle = (low + high) // 2
        if cost_of(minutes, units, middle).cost_pusd <= cost_of(minutes, units, middle + 1).cost_pusd:
            high = middle
        else:
            low = middle + 1
    return cost_of(minutes, units, low)


def provisioned_facts(session: Session, given: dict[str, Any], keys: str) -> list[dict[str, Any]]:
    """Say what bought capacity would have cost for the traffic in where.

    Args:
        session: The priced session, with ``lever_base``.
        given: The ``provisioned`` table.
        keys: Table of the price keys that have the standard tier.

    Returns:
        Facts, all modelled and in no saving; of money only where there is traffic.
    """
    asked = {**_DEFAULTS, **given}
    weights = {name: str(_times_million(asked[name])) for name in ("output_weight", "cached_weight")}
    found = session.engine.fetch(steps.filled(_STEP, keys=keys, **weights))
    minutes = [Minute(int(load), int(pusd)) for load, pusd in found.select("load", "cost_pusd").rows() if load]
    if not minutes:
        return [fact("provisioned_units", None, "modelled: no priced traffic of the standard tier in where", _STEP)]
    hours = _window_hours(session)
    rate = int(cast("Decimal", asked["usd_per_hour"]) * PUSD_PER_USD)
    units = Units(rate, int(asked["tokens_per_minute"]), int(asked["min_units"]), hours)
    best = cheapest(minutes, units)
    paid, load = sum(one.cost_pusd for one in minutes), sum(one.load for one in minutes)
    by_token = Fraction(paid * 60 * units.tokens_per_minute * _MILLION, load)  # a unit's full hour, by the token
    weight = f"output x {asked['output_weight']}, cached x {asked['cached_weight']}"
    return [
        fact(
            "provisioned_units",
            best.units,
            f"units of {units.tokens_per_minute:,} input tokens a minute ({weight}), modelled: the cheapest number",
            _STEP,
        ),
        fact("provisioned_usd", usd_text(best.held_pusd), f"USD over {hours:,} hours, modelled", _STEP),
        fact("provisioned_spill_usd", usd_text(best.spill_pusd), "USD beyond the units by the token, modelled", _STEP),
        fact("pay_as_you_go_usd", usd_text(paid), "USD for the same traffic by the token", "priced"),
        fact(
            "provisioned_saving_usd",
            usd_text(paid - best.cost_pusd),
            "USD, modelled, in no saving; negative where units cost more",
            _STEP,
        ),
        fact("provisioned_utilisation", f"{float(best.served):.4f}", "share of the units' capacity, modelled", _STEP),
        fact(
            "provisioned_break_even",
            f"{float(rate / by_token):.4f}" if by_token else None,
            "share of a unit's capacity that must be used for it to pay",
            _STEP,
        ),
    ]


def _times_million(weight: object) -> int:
    return int(cast("Decimal", weight) * _MILLION)


def _window_hours(session: Session) -> int:
    """Count the hours of the window's calendar days."""
    zone = ZoneInfo(session.window.zone)
    since, until = session.window.since, session.window.until
    row = session.engine.fetch("select min(block_day) as a, max(block_day) as b from lever_base where is_billed").row(0)
    first = row[0] if since is None else since.astimezone(zone).date()
    last = row[1] if until is None else (until - timedelta(microseconds=1)).astimezone(zone).date()
    return ((last - first).days + 1) * 24
