"""Which structure explains a report: tiers it leaves out, calls it bills or not, days cut elsewhere, other rates.

A structure is believed only where it makes most of the cells that it touches agree with the log, within what requests
without usage and the report's own rounding leave open. Amounts stay whole numbers; floats only weigh hypotheses.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

from tenfold.analysis.reconcile.logged import BILLED, Book, Class, Series, slot_of
from tenfold.analysis.reconcile.periods import Period

# How many deviations a cell may be off and still agree; the loss of a period above which it is looked into; how much a
# structure must gain to be believed; within how much two structures fit alike.
AGREES = 4.0
_LOOK_INTO = 8.0
_GAIN = 12.0
_ALIKE = 2.0
_SHARE = 0.5
# Beyond this many deviations a loss grows with the logarithm only: one cell that nothing explains outweighs no other.
_KNEE = 6.0
_ALL = "all"
# Zones lie between UTC-12 and UTC+14, in half hours.
SHIFTS = tuple(shift for shift in range(-28, 29) if shift)
_MOST_TIERS = 2
# Cells that structures are tried on before the best ones are weighed on all.
_TRIED_ON = 240
_WEIGHED_AGAIN = 12
_MOST_PIECES = 12
_MOST_DAYS = 45
# Requests of a kind from which on their own mean is taken; parts that two amounts must agree to for one rate; how many
# times the log's a rate may be.
FEW, _EXACT, DEAREST = 20, 10**5, 10


class Cell(NamedTuple):
    """What a report says of one series in one period.

    Args:
        series: Key of the log's series.
        period: Place of the period.
        observed: Units, where the series is held against units, else pUSD.
        slack: How far it may be off by the report's own rounding.
    """

    series: tuple[str | None, str | None]
    period: int
    observed: int
    slack: int


@dataclass(frozen=True, slots=True)
class Structure:
    """How a report is made of the log.

    Args:
        tiers: Tiers that it leaves out.
        billed: Kinds of requests that it bills.
        shift: Half hours by which all its days begin later.
        shifts: Period to the half hours by which its start and its end are later.
        rates: Series to billed amount over logged cost, as (numerator, denominator).
    """

    tiers: frozenset[str] = frozenset()
    billed: frozenset[str] = frozenset(BILLED)
    shift: int = 0
    shifts: tuple[tuple[int, int, int], ...] = ()
    rates: tuple[tuple[tuple[str | None, str | None], int, int], ...] = ()

    def wants(self, about: Class) -> bool:
        """Tell whether the report bills a class of requests."""
        return about.tier not in self.tiers and about.billing in self.billed

    def span(self, place: int, period: Period) -> tuple[int, int]:
        """Give the half hours that the report counts to a period."""
        start, end = slot_of(period.stated_start) + self.shift, slot_of(period.stated_end) + self.shift
        for number, first, last in self.shifts:
            if number == place:
                start, end = start + first, end + last
        return start, end


@dataclass(slots=True)
class Fit:
    """A structure and how it was found.

    Args:
        structure: The structure.
        alike: What would fit as well, in words.
    """

    structure: Structure
    alike: list[str] = field(default_factory=list[str])


class _Told(NamedTuple):
    """What a structure lets a cell be."""

    told: int
    more: float
    spread: float
    tight: float


class Fitter:
    """Weighs structures of one report.

    Args:
        book: The provider's log.
        cells: The report, cell by cell.
        periods: Its periods.
        by_units: Series that are held against units; the others against pUSD.
        start: What the report itself says of its structure.
        are_days: The periods are days, so that they may be cut elsewhere.
    """

    def __init__(
        self,
        book: Book,
        cells: Iterable[Cell],
        periods: tuple[Period, ...],
        by_units: frozenset[tuple[str | None, str | None]],
        start: Structure,
        *,
        are_days: bool,
    ) -> None:
        self.book = book
        self.cells = tuple(cells)
        self.periods = periods
        self.by_units = by_units
        self.start = start
        self.are_days = are_days
        self._means = {key: self._mean(series) for key, series in book.series.items()}
        self._classes = {about for series in book.series.values() for about in series.classes}
        self._of_period: dict[int, list[int]] = defaultdict(list)
        meters: dict[tuple[int, str | None], int] = defaultdict(int)
        for number, cell in enumerate(self.cells):
            self._of_period[cell.period].append(number)
            meters[cell.period, cell.series[0]] += 1
        # Meters of one model are of the same requests, and so are their surpluses.
        self._weights = [1 / meters[cell.period, cell.series[0]] for cell in self.cells]

    def _mean(self, series: Series) -> dict[bool, tuple[float, float]]:
        """Give mean and mean square of a request, streamed and not; of all where there are few of a kind."""
        of_units = (series.model, series.meter) in self.by_units
        whole = (0.0, 0.0, 0)
        made: dict[bool, tuple[float, float]] = {}
        for sizes in series.sizes.values():
            total, squares, _ = sizes.units if of_units else sizes.pusd
            whole = (whole[0] + total, whole[1] + squares, whole[2] + sizes.requests)
        for is_stream in (True, False):
            sizes = series.sizes.get(is_stream)
            total, squares, count = whole
            if sizes is not None and sizes.requests >= FEW:
                total, squares, _ = sizes.units if of_units else sizes.pusd
                count = sizes.requests
            made[is_stream] = (total / count, squares / count) if count else (0.0, 0.0)
        return made

    def told(self, cell: Cell, structure: Structure) -> _Told:
        """Say what a structure lets a cell be.

        Args:
            cell: The cell.
            structure: The structure.

        Returns:
            What the log has, what requests without usage would add, the deviation with them and without.
        """
        span = structure.span(cell.period, self.periods[cell.period])
        tight = cell.slack + 1e-9 * abs(cell.observed) + 1.0
        series = self.book.series.get(cell.series)
        if series is None:
            return _Told(0, 0.0, tight, tight)
        units, pusd = series.between(*span, structure.wants)
        amount = units
        if cell.series not in self.by_units:
            amount = pusd
            for key, over, under in structure.rates:
                if key == cell.series:
                    amount = pusd * over // under
        more = spread = 0.0
        means = self._means[cell.series]
        for is_stream, count in self.book.without_usage(cell.series[0], span, structure.wants):
            mean, square = means[is_stream]
            more += count * mean
            spread += count * square
        return _Told(amount, more, math.sqrt(spread) + tight, tight)

    def deviation(self, cell: Cell, told: _Told) -> float:
        """Tell by how many deviations a cell is off: requests without usage may add something, never take away."""
        off = cell.observed - told.told
        if off <= 0 or not told.more:
            return abs(off) / told.tight
        return min(abs(off - told.more), off) / told.spread

    def loss(self, number: int, told: _Told) -> float:
        """Weigh by how much a cell is off."""
        z = self.deviation(self.cells[number], told)
        loss = z * z / 2 if z <= _KNEE else _KNEE * _KNEE / 2 + math.log(z / _KNEE)
        # What the log has beyond the report is no chance of requests without usage.
        is_chance = told.more and self.cells[number].observed > told.told
        return loss * (self._weights[number] if is_chance else 1.0)

    def gain(
        self, now: Mapping[int, _Told], after: Structure, numbers: Iterable[int], most_left: float = math.inf
    ) -> float:
        """Weigh a structure against what is believed.

        Args:
            now: What is believed of the cells.
            after: What is tried.
            numbers: Cells that it may touch.
            most_left: Loss that it may leave of them.

        Returns:
            How much better it fits; 0 where it is not to be believed: most cells that it touches must agree.
        """
        touched = agreed = 0
        gained = left = 0.0
        for number in numbers:
            old, new = now[number], self.told(self.cells[number], after)
            after_loss = self.loss(number, new)
            left += after_loss
            if left > most_left:
                return 0.0
            if new == old:
                continue
            gained += self.loss(number, old) - after_loss
            if abs(new.told - old.told) > max(old.spread, new.spread):
                touched += 1
                agreed += self.deviation(self.cells[number], new) <= AGREES
        return gained if touched and agreed >= _SHARE * touched else 0.0

    def find(self) -> Fit:
        """Find the structure, the strongest piece first.

        Returns:
            It; the report's own where every cell agrees with the log.
        """
        found = Fit(self.start)
        for _ in range(_MOST_PIECES):
            now = [self.told(cell, found.structure) for cell in self.cells]
            off = self._off(now)
            if not off:
                break
            best = self._of_the_whole(found.structure, now, off) or self._of_days(found.structure, now, off)
            if best is None:
                break
            found = Fit(best.structure, [*found.alike, *best.alike])
        return found

    def _off(self, now: Sequence[_Told]) -> list[int]:
        """List the periods that do not agree with the log."""
        return [
            period
            for period, numbers in sorted(self._of_period.items())
            if sum(self.loss(number, now[number]) for number in numbers) > _LOOK_INTO
        ]

    def _of_the_whole(self, structure: Structure, now: Sequence[_Told], off: list[int]) -> Fit | None:
        """Find a piece that holds for the whole report."""
        believed = dict(enumerate(now))
        some = range(0, len(self.cells), max(len(self.cells) // _TRIED_ON, 1))
        offers = [self._rates(structure, believed, off), self._kinds(structure)]
        if 2 * len(off) >= len(self._of_period):  # a few days that are off do not speak of all days
            offers += self._shifts(structure)
        for moves in offers:
            tried = [(self.gain(believed, one, some), words, one) for words, one in moves]
            tried = sorted((one for one in tried if one[0] > 0), key=lambda one: -one[0])[:_WEIGHED_AGAIN]
            weighed = [(self.gain(believed, one, believed), words, one) for _, words, one in tried]
            best = _simplest(weighed, structure)
            if best is not None:
                return best
        return None

    def _of_days(self, structure: Structure, now: Sequence[_Told], off: list[int]) -> Fit | None:
        """Find days that are cut elsewhere, each by itself."""
        if not self.are_days or len(off) > _MOST_DAYS:
            return None
        found = Fit(structure)
        for place in off:
            if any(one[0] == place for one in found.structure.shifts):
                continue
            beside = self._of_period[place] + self._of_period.get(place + 1, [])
            believed = {number: now[number] for number in beside}
            weighed = [
                (self.gain(believed, one, self._of_period[place] if is_alone else beside, 2 * _LOOK_INTO), words, one)
                for words, one, is_alone in self._cuts(found.structure, place)
            ]
            best = _simplest(weighed, found.structure)
            if best is not None:
                found = Fit(best.structure, [*found.alike, *best.alike])
        return None if found.structure == structure else found

    def _rates(self, now: Structure, believed: Mapping[int, _Told], off: list[int]) -> Iterator[tuple[str, Structure]]:
        """Offer a rate for series without quantities whose amounts are one multiple of the log's in most periods."""
        own: dict[tuple[str | None, str | None], list[int]] = defaultdict(list)
        for number, cell in enumerate(self.cells):
            if cell.series not in self.by_units:
                own[cell.series].append(number)
        known = {one[0] for one in now.rates}
        rates = list(now.rates)
        for key, numbers in own.items():
            if key in known or not any(self.cells[number].period in off for number in numbers):
                continue
            ratios: dict[int, list[tuple[int, int]]] = defaultdict(list)
            for number in numbers:
                told, observed = believed[number].told, self.cells[number].observed
                if 0 < observed <= DEAREST * told and self.cells[number].slack * _EXACT < observed:
                    ratios[round(observed * _EXACT / told)].append((observed, told))
            same = max(ratios.values(), key=len) if ratios else []
            if len(same) >= 3 and 2 * len(same) >= len(numbers) and any(one != two for one, two in same):
                rates.append((key, sum(one for one, _ in same), sum(two for _, two in same)))
        if len(rates) > len(now.rates):
            yield "other rates", replace(now, rates=tuple(rates))

    def _shifts(self, now: Structure) -> Iterator[Iterator[tuple[str, Structure]]]:
        """Offer all days cut elsewhere: alone, then with what hides it from being seen alone."""
        if not self.are_days or now.shift or len(self.periods) < 2:
            return
        yield ((_cut(shift, _ALL), replace(now, shift=shift)) for shift in SHIFTS)
        whole = list(self._kinds(now))[:8]
        yield ((f"{words}, {_cut(shift, _ALL)}", replace(one, shift=shift)) for shift in SHIFTS for words, one in whole)

    def _kinds(self, now: Structure) -> Iterator[tuple[str, Structure]]:
        tiers = sorted({about.tier for about in self._classes} - now.tiers)
        for size in range(1, min(_MOST_TIERS, len(tiers) - 1) + 1):
            for some in combinations(tiers, size):
                yield f"tier {' and '.join(some)} not in the report", replace(now, tiers=now.tiers | set(some))
        for kind in sorted({about.billing for about in self._classes} - {"plain"}):
            yield KIND_WORDS[kind], replace(now, billed=now.billed ^ {kind})

    def _cuts(self, now: Structure, place: int) -> Iterator[tuple[str, Structure, bool]]:
        """Offer one day cut elsewhere: moved, longer or shorter at one end, or its border with the next moved."""
        name = self.periods[place].name
        has_next = place + 1 < len(self.periods) and all(one[0] != place + 1 for one in now.shifts)
        for shift in SHIFTS:
            yield _cut(shift, name), _moved(now, (place, shift, shift)), True
            yield f"{name} ends {_later(shift)}", _moved(now, (place, 0, shift)), True
            yield f"{name} begins {_later(shift)}", _moved(now, (place, shift, 0)), True
            if has_next:
                border = _moved(now, (place, 0, shift), (place + 1, shift, 0))
                yield f"the border after {name} is {_later(shift)}", border, False


def _simplest(weighed: Iterable[tuple[float, str, Structure]], now: Structure) -> Fit | None:
    """Take the best structure; of those that fit alike the one that assumes least, the others named."""
    good = sorted((one for one in weighed if one[0] >= _GAIN), key=lambda one: -one[0])
    alike = [one for one in good if good[0][0] - one[0] < _ALIKE]
    if not alike:
        return None
    _, words, best = min(alike, key=lambda one: (_pieces_of(one[2], now), -round(one[0], 2), _far(one[2], now)))
    others = list(dict.fromkeys(one[1] for one in alike if one[1] != words))
    return Fit(best, [f"{words} is assumed, but {_or(others)} would explain as much"] if others else [])


KIND_WORDS = {
    "retry": "retries not billed",
    "failed": "failed calls not billed",
    "repeat": "repeated lines of the log not billed",
    "not_billed": "calls that the log calls not billable are billed",
    "gateway": "calls that a gateway's cache answered are billed",
}


def _moved(now: Structure, *moves: tuple[int, int, int]) -> Structure:
    return replace(now, shifts=(*now.shifts, *moves))


def _pieces_of(one: Structure, now: Structure) -> tuple[int, int, bool]:
    """Say how much a structure assumes beyond another: pieces, ends of days moved alone, a zone of half hours."""
    pieces = len(one.tiers ^ now.tiers) + len(one.billed ^ now.billed) + (one.shift != now.shift)
    moved = one.shifts[len(now.shifts) :]
    ends = max((1 if first == last else 2 for _, first, last in moved), default=0)
    return pieces, ends, any(move % 2 for _, first, last in moved for move in (first, last)) or one.shift % 2 == 1


def _far(one: Structure, now: Structure) -> int:
    """Say how far a structure moves days."""
    moved = one.shifts[len(now.shifts) :]
    return abs(one.shift - now.shift) + sum(max(abs(first), abs(last)) for _, first, last in moved)


def _later(shift: int) -> str:
    return f"{abs(shift) / 2:g} h {'later' if shift > 0 else 'earlier'}"


def _cut(shift: int, name: str) -> str:
    return f"{'all days' if name == _ALL else name} cut {_later(shift)}"


def _or(words: list[str]) -> str:
    return f"{words[0]} and {len(words) - 1} more" if len(words) > 2 else " or ".join(words)
