"""The bridge: what moved a bill from one period to the next, as price, volume, mix and intensity, to the picodollar.

Each period is read twice: at its own prices, and as if all of it had run at the boundary between the two. The method
(``segments.py``) takes the effective prices of segments; the boundary's list splits their change into what a price list
did, what discounts did, and what moved inside a segment at unchanged prices (context bands, regions, hours).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import polars as pl

from tenfold.analysis.bridge import bars as made_of
from tenfold.analysis.bridge.factors import METHODS
from tenfold.analysis.bridge.periods import Period, Question, boundary, check_columns, read
from tenfold.analysis.bridge.result import Bar, Bridge
from tenfold.analysis.bridge.segments import Effects, Segment, check_method, decompose
from tenfold.analysis.bridge.sides import Side, days, decimals, whole, without_price
from tenfold.analysis.bridge.swaps import Swap, swaps
from tenfold.analysis.bridge.words import Words, came_and_went, name
from tenfold.display import counted
from tenfold.errors import AssumptionError, NotEvaluable, near
from tenfold.ledger import Ledger
from tenfold.money import divided, footed

__all__ = ["BASES", "METHODS", "Bar", "Bridge", "Effects", "Segment", "Side", "Swap", "bridge", "decompose"]

BASES = ("requests", "outcomes")
_EVERYTHING: Mapping[str, str | None] = {}


def bridge(
    before: Ledger,
    after: Ledger,
    *,
    by: Sequence[str] = ("model", "service_tier"),
    base: str = "requests",
    method: str = "pvm",
    where: Mapping[str, str | None] = _EVERYTHING,
    scale: Fraction | int = 1,
) -> Bridge:
    """Explain the change of a bill between two periods.

    Args:
        before: The priced log in the period before.
        after: The priced log in the period after; of the same log or another one.
        by: Columns whose values make a segment, the first dimension of the mix first; kinds of token come last.
        base: What volume counts: ``requests``, or ``outcomes`` (requests whose ``outcome_ok`` is true).
        method: ``pvm`` (in order: volume, intensity, mix, price), ``bennet``, ``lmdi`` or ``shapley``.
        where: Column to its value (None for none): only that part of the traffic.
        scale: What the period before is multiplied with, such as 1/28 for a day against the mean of 28.

    Returns:
        The bridge; its bars sum to spend after less (scaled) spend before, to the pUSD.

    Raises:
        AssumptionError: An unknown base or method, or a scale that is not above 0.
        ColumnError: An unknown column, or a grain of time.
        NotEvaluable: Neither period has a priced request, or one has no successful outcome to count by.
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    check_method(method)
    if base not in BASES:
        raise AssumptionError(f'base "{base}": one of {", ".join(BASES)}.{near(base, BASES)}')
    factor = Fraction(scale)
    if factor <= 0:
        raise AssumptionError(f"scale {scale}: the period before is multiplied with a number above 0")
    check_columns(by, where)
    asked = Question(by, base, dict(where), before.book, boundary(before, after))
    old, new = read(before, asked), read(after, asked)
    charges = _charges(before, where), _charges(after, where)
    _check(old, new, charges, base)
    sums = made_of.summed(old, new, scale=factor, levels=len(by), method=method)
    sums.add(made_of.IDLE, charges[1] - charges[0] * factor)
    sides = (
        _side(before, old, charges[0], factor),
        _side(after, new, charges[1], Fraction(1)),
    )
    keys = made_of.drivers(sums)
    whole_bars = footed([sums.by_driver[key] for key in keys], sides[1].pusd - sides[0].pusd)
    amounts = dict(zip(keys, whole_bars, strict=True))
    names = [*by, made_of.KIND]
    movers = _movers(sums, old, new, factor, by, keys)
    words = Words(old, new, sums, scale=factor, base=base, by=by, is_ordered=method == "pvm", places=decimals(*sides))
    found = Bridge(
        bars=tuple(Bar(key, name(key, old, new), pusd, words.what(key)) for key, pusd in amounts.items()),
        before=sides[0],
        after=sides[1],
        mix_by=dict(zip(names, footed(sums.mix, amounts[made_of.MIX]), strict=True)),
        movers=movers,
        by=by,
        base=base,
        method=method,
        price_at=asked.at,
        scale=factor,
        where=asked.where,
        swaps=swaps(before, after, where=where, scale=factor),
        notes=(),
        versions=(before.book.version, after.book.version),
        log_hashes=(before.log.log_hash, after.log.log_hash),
    )
    notes = _notes(before, after, sides, old, new, factor, where)
    return replace(found, notes=(*came_and_went(found), *notes))


def _check(old: Period, new: Period, charges: tuple[int, int], base: str) -> None:
    if not (old.requests or new.requests or any(charges)):
        raise NotEvaluable("neither period has a request with a price: nothing to compare")
    for when, period in (("before", old), ("after", new)):
        if base == "outcomes" and period.tokens and not period.base:
            raise NotEvaluable(
                f"no request of the period {when} has outcome_ok = true: load outcomes, or take requests as the base"
            )


def _charges(ledger: Ledger, where: Mapping[str, str | None]) -> int:
    """Take the charges that the part of the traffic can hold: those of its provider and model."""
    total = 0
    for one in ledger.charges:
        own = {"provider": one.provider, "model": one.model}
        total += one.pusd if all(name in own and own[name] == value for name, value in where.items()) else 0
    return total


def _side(ledger: Ledger, period: Period, charges: int, scale: Fraction) -> Side:
    cost = (period.cost + charges) * scale
    return Side(
        divided(cost.numerator, cost.denominator),
        period.requests * scale,
        period.unpriced,
        ledger.window.since,
        ledger.window.until,
        ledger.window.zone,
    )


def _movers(
    sums: made_of.Sums, old: Period, new: Period, scale: Fraction, by: tuple[str, ...], keys: Sequence[str]
) -> pl.DataFrame:
    groups = sorted(sums.by_group, key=lambda group: [(value is not None, str(value)) for value in group])
    costs = old.by_group(), new.by_group()
    exact = [costs[0].get(group, 0) * scale for group in groups]
    total = sum(exact, Fraction(0))
    before = footed(exact, divided(total.numerator, total.denominator)) if groups else []
    own = [key for key in keys if key != made_of.IDLE]
    rows: list[tuple[object, ...]] = []
    for group, was in zip(groups, before, strict=True):
        cost = costs[1].get(group, 0)
        parts = footed([sums.by_group[group].get(key, Fraction(0)) for key in own], cost - was)
        rows.append((*map(_text, group), was, cost, cost - was, *parts))
    money = ["before_pusd", "after_pusd", "change_pusd", *(f"{key}_pusd" for key in own)]
    schema = {**dict.fromkeys(by, pl.String()), **dict.fromkeys(money, pl.Int128())}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    frame = frame.with_columns(pl.col(money).cast(pl.Decimal(38, 0)))
    order = [pl.col("change_pusd").cast(pl.Int128).abs(), *(pl.col(name) for name in by)]
    return frame.sort(order, descending=[True, *([False] * len(by))], nulls_last=True)


def _text(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _notes(
    before: Ledger, after: Ledger, sides: tuple[Side, Side], old: Period, new: Period, scale: Fraction,
    where: Mapping[str, str | None],
) -> list[str]:  # fmt: skip
    notes = without_price(*sides)
    lengths = [days(side) for side in sides]
    if scale != 1:
        notes.append(f"the period before is multiplied with {scale}")
    elif None not in lengths and lengths[0] != lengths[1]:
        long = [whole(one) for one in lengths if one is not None]
        notes.append(f"{long[1]} days against {long[0]} before: volume is not adjusted for it")
    if unlisted := old.unlisted + new.unlisted:
        notes.append(
            f"{counted(unlisted, 'request')} without a list price: a change of their price counts as a discount"
        )
    if where and (before.charges or after.charges) and set(where) - {"provider", "model"}:
        notes.append("idle GPUs are in no bar: they belong to no part of the traffic")
    if before.book.commitments or after.book.commitments:
        notes.append("committed capacity and shortfalls are not in the spend; `tenfold cost` shows them")
    if before.book.version != after.book.version:
        notes.append(f"prices of {before.book.version} before and of {after.book.version} after")
    return notes
