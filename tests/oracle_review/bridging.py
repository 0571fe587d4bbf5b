"""Price, volume, mix and intensity as formats.md C4 prints them.

C = N x (tokens / N) x sum of s x p over segments: model x tier x kind of token. Stated conventions: a segment (model
and tier) of the new period that the old one lacks has the price of the list in force at the boundary, and is mix; one
that no longer occurs is `discontinued`, minus what it cost; what the list had no price for then is `new`; tools stand
apart, each with its own bar. What `price` holds together here, the library may cut (list, discount, within a segment).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction

from oracle import Book, price_request

from oracle_review.basics import KINDS as ALL_KINDS
from oracle_review.basics import Row

# a write that lives longer is a kind of its own
KINDS = {**ALL_KINDS, "cache_write_long": "write_long"}


class _Side:
    """Units and costs of one period's segments, and all its tokens."""

    def __init__(self) -> None:
        self.units = defaultdict[tuple[str, ...], int](int)
        self.pusd = defaultdict[tuple[str, ...], int](int)
        self.tokens = 0

    def take(self, row: Row, *, is_apart: bool) -> int:
        """Count a row; gives what it cost where it stands apart."""
        apart = 0
        for meter, (units, pusd) in row.meters.items():
            self.tokens += units if meter in KINDS else 0
            if is_apart:
                apart += pusd
                continue
            self.units[(*_group(row), KINDS.get(meter, meter))] += units
            self.pusd[(*_group(row), KINDS.get(meter, meter))] += pusd
        return apart


def pvm(book: Book, old: Iterable[Row], new: Iterable[Row], boundary: datetime) -> dict[str, Fraction]:
    """Bars in pUSD; they sum to the change."""
    old, new = [r for r in old if r.is_priced], [r for r in new if r.is_priced]
    n0, n1 = len(old), len(new)
    bars: dict[str, Fraction] = defaultdict(Fraction)
    stays = {_group(row) for row in new}
    before, after, at1 = _Side(), _Side(), defaultdict[tuple[str, ...], int](int)
    for row in old:
        # what the boundary's list has no price for is left apart, as it is in the new period
        has_price = price_request(book, row.at, boundary).cost_pusd is not None
        bars["discontinued"] -= before.take(row, is_apart=_group(row) not in stays or not has_price)
    for row in new:
        then = price_request(book, row.at, boundary)
        bars["new"] += after.take(row, is_apart=then.cost_pusd is None)
        for meter, (_, pusd) in then.meters.items() if then.cost_pusd is not None else ():
            at1[(*_group(row), KINDS.get(meter, meter))] += int(pusd)
    q0, q1, all0, all1 = before.units, after.units, before.tokens, after.tokens
    for place in {*q0, *q1}:
        p0 = Fraction(before.pusd[place], q0[place]) if q0[place] else Fraction(at1[place], q1[place])
        bars["price"] += after.pusd[place] - q1[place] * p0
        if place[-1] not in KINDS.values():
            bars[place[-1]] += (q1[place] - q0[place]) * p0
            continue
        s0 = Fraction(q0[place], all0)
        s1 = Fraction(q1[place], all1)
        bars["volume"] += (n1 - n0) * Fraction(all0, n0) * s0 * p0
        bars["intensity"] += n1 * (Fraction(all1, n1) - Fraction(all0, n0)) * s0 * p0
        bars["mix"] += all1 * (s1 - s0) * p0
    return bars


def as_printed(book: Book, old: Iterable[Row], new: Iterable[Row], boundary: datetime) -> dict[str, Fraction]:
    """The three formulas of C4 to the letter, over tokens: what is discontinued is in volume and mix, s1 = 0."""
    old, new = [r for r in old if r.is_priced], [r for r in new if r.is_priced]
    q0, c0, q1, c1, at1 = (defaultdict[tuple[str, ...], int](int) for _ in range(5))
    for row in old:
        for meter, (units, pusd) in row.meters.items():
            q0[(*_group(row), meter)] += units
            c0[(*_group(row), meter)] += pusd
    for row in new:
        for meter, (units, pusd) in row.meters.items():
            q1[(*_group(row), meter)] += units
            c1[(*_group(row), meter)] += pusd
        for meter, (_, pusd) in price_request(book, row.at, boundary).meters.items():
            at1[(*_group(row), meter)] += int(pusd)
    places = [place for place in {*q0, *q1} if place[-1] in KINDS]
    all0, all1 = (sum(q[place] for place in places) for q in (q0, q1))
    p0 = {place: Fraction(c0[place], q0[place]) if q0[place] else Fraction(at1[place], q1[place]) for place in places}
    mean0 = Fraction(sum(c0[place] for place in places), all0)
    return {
        "volume": (all1 - all0) * mean0,
        "mix": all1 * sum((Fraction(q1[x], all1) - Fraction(q0[x], all0)) * p0[x] for x in places),
        "price": sum((c1[x] - q1[x] * p0[x] for x in places), Fraction(0)),
    }


def _group(row: Row) -> tuple[str, str]:
    return row["model"], row.tier
