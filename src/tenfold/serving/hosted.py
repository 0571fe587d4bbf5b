"""A ledger with a fleet under it: self-hosted requests priced by what GPUs cost, idle time as charges of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from tenfold.display import counted, minute, number, percent
from tenfold.errors import AssumptionError, NotEvaluable, ServingError
from tenfold.ledger import Charge, Ledger, Window
from tenfold.logs import Log
from tenfold.money import share_out
from tenfold.prices import PriceBook
from tenfold.prices.compiling import with_price
from tenfold.prices.words import canonical_provider
from tenfold.serving import allocation
from tenfold.serving.allocation import Busy, GpuSeconds, Rates
from tenfold.serving.demand import Demand, Hour, Span, demands, lay, unserved
from tenfold.serving.fleet import PROVIDER, SCHEME, Fleet, Pool, Stretch, micros
from tenfold.serving.memory import Deployment, default_caps
from tenfold.store.database import query

__all__ = [
    "PROVIDER",
    "Charge",
    "Demand",
    "Fleet",
    "GpuSeconds",
    "Hosted",
    "HostedLedger",
    "Hour",
    "Pool",
    "Rates",
    "on_fleet",
]


@dataclass(frozen=True, slots=True)
class Hosted:
    """A model on a fleet, over a stretch of time in which its pools stay the same.

    Args:
        model: The model, as the fleet file calls it.
        pools: Pools that run throughout the stretch.
        deployment: One replica; where pools differ, of the one that costs most.
        demand: What was asked of it.
        gpu_s: GPU seconds a token, by the roofline at ``batch``; where pools differ, their mean by cost.
        batch: Requests under way in a busy replica, on average; what ``gpu_s.output`` is at.
        busy_ratio: Share of the replicas' time in which they had a request.
        hours: Length of the stretch.
        bill_pusd: Cost of the pools over the stretch.
        rates: What a token costs.
        idle_pusd: What requests do not carry: ``bill_pusd`` less the cost of the stretch's requests, exactly.
        modelled_ratio: GPU time that the roofline asks for, over the GPU time of busy replicas; None without requests.
        since: Start of the stretch (aware).
        until: Its end, exclusive.
        label: ``measured`` where durations say how busy it was, else ``modelled``.
        notes: What a reader must know.
    """

    model: str
    pools: tuple[Pool, ...]
    deployment: Deployment
    demand: Demand
    gpu_s: GpuSeconds
    batch: float
    busy_ratio: float
    hours: float
    bill_pusd: int
    rates: Rates
    idle_pusd: int
    modelled_ratio: float | None
    since: datetime
    until: datetime
    label: Literal["measured", "modelled"]
    notes: tuple[str, ...] = ()

    @property
    def replicas(self) -> int:
        """Replicas of all its pools."""
        return sum(pool.replicas for pool in self.pools)

    @property
    def gpus(self) -> int:
        """GPUs of all its pools."""
        return sum(pool.gpus for pool in self.pools)


class HostedLedger(Ledger):
    """A ledger whose self-hosted requests are priced by a fleet; its bill is their cost and the idle charges.

    Args:
        base: The ledger that the fleet is laid under.
        book: Its price book, with the fleet's rate card.
        fleet: The fleet.
        hosted: Each model on it, by stretches of time.
        span: First instant and end of the bill.
        notes: What a reader must know, of the fleet as a whole.
    """

    def __init__(
        self,
        base: Ledger,
        book: PriceBook,
        *,
        fleet: Fleet,
        hosted: Sequence[Hosted],
        span: tuple[datetime, datetime],
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(base.log, book, base.window)
        self.base = base
        self.fleet = fleet
        self.hosted = tuple(hosted)
        self.span = span
        self.notes = tuple(notes)
        # each pool's bill, and its part of the idle time by what it costs
        bills, idle = dict.fromkeys(range(len(fleet.pools)), 0), dict.fromkeys(range(len(fleet.pools)), 0)
        for one in self.hosted:
            places = [place for place, pool in enumerate(fleet.pools) if any(pool is own for own in one.pools)]
            parts = [fleet.pools[place].bill_pusd(one.since, one.until) for place in places]
            shares = share_out(one.idle_pusd, parts) if one.bill_pusd else parts
            for place, part, share in zip(places, parts, shares, strict=True):
                bills[place] += part
                idle[place] += share
        self.pool_bills = tuple(bills.values())
        self.charges = tuple(
            Charge(pool.name, "idle", pusd, PROVIDER, pool.model)
            for pool, pusd in zip(fleet.pools, idle.values(), strict=True)
        )

    @property
    def bill_pusd(self) -> int:
        """What the fleet costs over the window: its requests and its idle time."""
        return sum(one.bill_pusd for one in self.hosted)

    @property
    def idle_pusd(self) -> int:
        """What of it no request carries."""
        return sum(one.idle_pusd for one in self.hosted)

    def within(self, window: Window) -> HostedLedger:
        """Price another window of the same log: the fleet's bill, and so its rates, are of that window.

        Args:
            window: Which requests, and how days are cut.

        Returns:
            The ledger of that window.
        """
        return on_fleet(self.base.within(window), self.fleet)


def on_fleet(ledger: Ledger, fleet: Fleet | str | Path) -> HostedLedger:
    """Price a log's self-hosted requests by what the fleet that serves them costs.

    The bill is GPUs x price x hours over the ledger's window (where it is open, from the first self-hosted request to
    the end of the last). Its busy share is carried by the requests, by GPU time; the rest is idle. Time on requests
    that are not billed (failed ones), or that were under way before the window began, counts as idle.

    Args:
        ledger: The priced log; requests are the fleet's where ``provider`` is ``self-hosted``.
        fleet: The fleet, or its file.

    Returns:
        A ledger in which those requests have prices, with idle time in ``charges``: together exactly the fleet's bill.

    Raises:
        ServingError: The fleet cannot be used, or was busier than its size allows; names pool and ratio.
        AssumptionError: The ledger prices everything at one instant; a rate card of a window has no other instant.
        PriceFileError: The price book has prices of self-hosted models already.
        NotEvaluable: The window is open and no self-hosted request says how long it is.
    """
    if isinstance(fleet, Fleet):
        fleet.check()
    else:
        fleet = Fleet.load(fleet)
    if ledger.price_at is not None:
        raise AssumptionError("a fleet's rates are those of its window: leave out --price-at (price_at) with a fleet")
    base = ledger.base if isinstance(ledger, HostedLedger) else ledger
    models = tuple(dict.fromkeys(pool.model.lower() for pool in fleet.pools))
    kinds = _kinds(base.log)
    # any price will do to cut the tokens as the ledger cuts them
    entries = [_entry(model, Rates(0, 0, 0), "to cut the tokens", date.min) for model in models]
    probe = with_price(base.book, fleet.place, {"provider": PROVIDER, "price": _for_all(entries, kinds)})
    with Ledger(base.log, probe, base.window).session() as session:
        span = lay(session, models)
        since, until = base.window.since or span.since, base.window.until or span.until
        if since is None or until is None:
            raise NotEvaluable(_none_hosted(session.keys))
        stretches = fleet.stretches(since, until)
        asked = demands(session, models, stretches)
        others, served = unserved(session)
    hosted = [_hosted(fleet, one, demand) for one, demand in zip(stretches, asked, strict=True)]
    card = {"provider": PROVIDER, "price": _for_all(_entries(hosted, until), kinds)}
    book = with_price(base.book, fleet.place, card, version=f"{base.book.version}+{fleet.version}")
    unpriced = served - sum(demand.requests for demand in asked)
    return HostedLedger(
        base,
        book,
        fleet=fleet,
        hosted=hosted,
        span=(since, until),
        notes=[*_notes(hosted, others, unpriced), *_uncovered(span, since, until)],
    )


def _kinds(log: Log) -> list[tuple[str, str]]:
    """List tiers and regions of self-hosted requests: a GPU costs the same whatever a log calls them."""
    with log.store.reading() as connection:
        keys = query(connection, "select distinct provider, service_tier, region from price_keys").rows()
    found = {(tier, region) for provider, tier, region in keys if provider and canonical_provider(provider) == PROVIDER}
    return sorted(found | {("standard", "")})


def _for_all(entries: Sequence[dict[str, Any]], kinds: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    return [{**entry, "service_tier": tier, "region": region} for entry in entries for tier, region in kinds]


def _none_hosted(keys: Sequence[tuple[int, str, str, str, str]]) -> str:
    found = ", ".join(sorted({provider for _, provider, *_ in keys if provider})) or "none named"
    return (
        f'no request of provider "{PROVIDER}" with a time in this window (providers in the log: {found}). Load the '
        f"engine's log with --set provider={PROVIDER}, or give the window (--from, --to) to see the fleet idle"
    )


# A pod that ends while the next one starts makes a replica count twice for moments; beyond this the fleet is too small.
_OVER = Fraction(105, 100)
# Share of requests that must have a duration for the busy share to be measured.
_TIMED = Fraction(9, 10)
# Roofline over busy GPU time: outside, one of the two is wrong (three times the interval of an uncalibrated roofline).
_NEAR = (0.25, 1.75)


def _hosted(fleet: Fleet, stretch: Stretch, demand: Demand) -> Hosted:
    bills = [pool.bill_pusd(stretch.since, stretch.until) for pool in stretch.pools]
    pools, bill = stretch.pools, sum(bills)
    main = max(pools, key=lambda pool: pool.gpus * pool.pusd_per_hour)
    lasts_us = micros(stretch.since, stretch.until)
    busy, seconds, batch = Busy(Fraction(0), 0.0), GpuSeconds(0.0, 0.0, 0.0), 0.0
    label: Literal["measured", "modelled"] = "measured"
    notes = _assumed(pools)
    if demand.requests:
        load = allocation.load_of(demand)
        most = allocation.room(main.deployment, load, main.max_batch or default_caps(main.deployment.gpu).sequences)
        replicas = sum(pool.replicas for pool in pools)
        label = "measured" if demand.busy_us and demand.timed_requests >= _TIMED * demand.requests else "modelled"
        if label == "measured":
            busy = allocation.measured(demand, replicas, lasts_us)
        else:
            busy = allocation.modelled(demand, main.deployment, replicas, most)
        batch = min(busy.batch, most)
        seconds = allocation.seconds_a_token(pools, bills, load, batch)
        busy, more = _checked(f'{fleet.place}, model "{main.model}"', busy, label, replicas, demand)
        notes += [*more, *_said(label, busy, most, demand, pools)]
    rates = allocation.rate_card(int(bill * busy.ratio), demand, seconds)
    gpu_s = float(busy.ratio) * lasts_us / 1e6 * sum(pool.gpus for pool in pools)
    ratio = allocation.gpu_time(demand, seconds) / gpu_s if gpu_s else None
    if ratio is not None and not _NEAR[0] <= ratio <= _NEAR[1]:
        notes.append(
            f"by the roofline its tokens take {number(ratio, 2)} times the GPU time in which replicas were busy; check "
            "gpu, tp, weights and replicas of the pool (waiting in a queue also makes replicas look busy)"
        )
    return Hosted(
        model=main.model,
        pools=pools,
        deployment=main.deployment,
        demand=demand,
        gpu_s=seconds,
        batch=batch,
        busy_ratio=float(busy.ratio),
        hours=lasts_us / 3.6e9,
        bill_pusd=bill,
        rates=rates,
        idle_pusd=bill - rates.cost_pusd(demand),
        modelled_ratio=ratio,
        since=stretch.since,
        until=stretch.until,
        label=label,
        notes=tuple(notes),
    )


def _assumed(pools: Sequence[Pool]) -> list[str]:
    silent = [key for key in ("weights", "kv") if any(getattr(pool, key) is None for pool in pools)]
    return [f"{' and '.join(silent)} taken to be {SCHEME}: the pool does not say"] if silent else []


def _checked(where: str, busy: Busy, label: str, replicas: int, demand: Demand) -> tuple[Busy, list[str]]:
    """Refuse a demand that the fleet cannot have served; one that is a little over is a full fleet, and is said."""
    if busy.ratio <= 1:
        return busy, []
    times = number(busy.ratio, 2)
    if label == "modelled":
        said = (
            f"by the roofline its tokens take {times} times what {counted(replicas, 'replica')} can give in this window"
        )
    else:
        seen = f"{demand.replicas_seen} replicas in the log"
        said = f"{seen} were busy for {times} times the hours that the fleet's {replicas} have"
    if busy.ratio > _OVER:
        raise ServingError(f"{where}: {said}; list every pool that ran, with its replicas, from and to")
    return busy._replace(ratio=Fraction(1)), [f"{said}: taken for busy throughout"]


def _said(label: str, busy: Busy, most: float, demand: Demand, pools: Sequence[Pool]) -> list[str]:
    said: list[str] = []
    if label == "modelled":
        timed = f"only {demand.timed_requests:,} of" if demand.timed_requests else "none of"
        said.append(f"busy share modelled from arrivals: {timed} {counted(demand.requests, 'request')} have a duration")
    elif demand.timed_requests < demand.requests:
        said.append(f"busy share measured on {demand.timed_requests:,} of {counted(demand.requests, 'request')}")
    if busy.over_hours:
        hours = counted(busy.over_hours, "hour")
        said.append(
            f"in {hours} more arrives than the fleet can decode, {number(busy.worst, 2)} times as much at worst"
        )
    if busy.batch > most:
        said.append(
            f"{number(busy.batch, 1)} requests under way in a replica, of which {number(most, 1)} fit: the rest waits, "
            f"and a token's GPU time is taken at {number(most, 1)}"
        )
    if len({(pool.gpu, pool.tp, pool.weights, pool.kv) for pool in pools}) > 1:
        said.append("its pools differ, and no column says which served a request: rates are their mean by cost")
    return said


def _entries(hosted: Sequence[Hosted], until: datetime) -> list[dict[str, Any]]:
    """Write the rate card as entries of a price file: one a stretch with requests, open where its pools go on."""
    made: list[dict[str, Any]] = []
    for one in (one for one in hosted if one.demand.requests):
        goes_on = one.until == until and any(pool.until is None or pool.until > until for pool in one.pools)
        sums = " + ".join(pool.sum_text(one.since, one.until) for pool in one.pools)
        said = f"{sums}, busy {percent(one.busy_ratio, 1)} ({one.label})"
        made.append(_entry(one.model, one.rates, said, one.until.date(), one.since, None if goes_on else one.until))
    return made


def _entry(
    model: str, rates: Rates, source: str, checked: date, since: datetime | None = None, until: datetime | None = None
) -> dict[str, Any]:
    """Write one entry; what is written to a cache was computed, and costs what computed tokens cost."""
    per_million = [Decimal(rate).scaleb(-6) for rate in rates]
    return {
        "model": model,
        "input": per_million[0],
        "cache_read": per_million[1],
        "cache_write": per_million[0],
        "cache_write_long": per_million[0],
        "output": per_million[2],
        "source": source,
        "checked": checked,
        "valid_from": since,
        "valid_to": until,
    }


def _uncovered(span: Span, since: datetime, until: datetime) -> list[str]:
    """Say where the window is longer than the log, which makes GPUs look idle that may not have been."""
    if span.since is None or span.until is None:
        return []
    day = timedelta(days=1)
    notes: list[str] = []
    if span.since - since > day:
        notes.append(f"no self-hosted request before {minute(span.since)}: the window until then is idle")
    if until - span.until > day:
        notes.append(f"no self-hosted request after {minute(span.until)}: the rest of the window is idle")
    return notes


def _notes(hosted: Sequence[Hosted], others: Mapping[str, int], unpriced: int) -> tuple[str, ...]:
    """Say what self-hosted traffic has no pool, and which models have no traffic."""
    notes = [
        f"{counted(calls, 'request')} of {model or 'no model'}: no pool of the fleet runs it, so they have no price"
        for model, calls in others.items()
    ]
    if unpriced:
        notes.append(
            f"{counted(unpriced, 'request')} of the fleet's models without a price (coverage says which): usage "
            "missing, or no pool at that time"
        )
    asked = {one.model for one in hosted if one.demand.requests}
    idle = dict.fromkeys(one.model for one in hosted if one.model not in asked)
    notes += [f"{model}: no request in this window, so its pools are all idle" for model in idle]
    return tuple(notes)
