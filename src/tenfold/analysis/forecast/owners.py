"""Owners of a forecast: the whole's middles shared out, by the split that would have been closer in the past.

Two splits are tried on the log's own past: by each owner's own forecast, and by its share of the last four weeks. A
small owner's trend is often one event drawn out; where that is so, shares of late come closer, and are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from math import exp, log
from typing import NamedTuple

from tenfold.analysis.forecast.learning import HORIZONS, LEAST_DAYS, Error, Learned, learn, width_of

# Days ahead at which the splits are compared: those that a month and a quarter are made of.
_COMPARED = HORIZONS[2:]


class Own(NamedTuple):
    """What is known of one owner.

    Args:
        costs: What each day of the past cost, at one day's prices.
        begins: Its first day with a request.
        learned: What its own past says; None where that is too short or too sparse.
    """

    costs: Sequence[float]
    begins: int
    learned: Learned | None


def own(requests: Sequence[float], costs: Sequence[float], level: float) -> Own:
    """Learn what an owner's own past says.

    Args:
        requests: Requests a day, over all of the past.
        costs: What they cost.
        level: Share of intervals that are to hold what comes.

    Returns:
        What is known of it.
    """
    begins = next(n for n, count in enumerate(requests) if count)
    busy = sum(1 for count in requests[begins:] if count)
    is_long = len(requests) - begins >= LEAST_DAYS and 2 * busy >= len(requests) - begins
    return Own(costs, begins, learn(requests[begins:], costs[begins:], level) if is_long else None)


class Compared(NamedTuple):
    """How far the two splits were off at one day of the past: sums of differences between shares.

    Args:
        own: By owners' own forecasts.
        late: By shares of the last four weeks.
    """

    own: float
    late: float


def compare(owners: Sequence[Own]) -> list[Compared]:
    """Hold both splits against what came, wherever two owners or more were forecast.

    Args:
        owners: The owners.

    Returns:
        One test an origin and number of days ahead.
    """
    sums = [[0.0, *accumulate(one.costs)] for one in owners]
    told: dict[tuple[int, int], list[tuple[int, Error]]] = {}
    for place, one in enumerate(owners):
        for error in () if one.learned is None else one.learned.errors:
            if error.days in _COMPARED:
                told.setdefault((error.origin + one.begins, error.days), []).append((place, error))
    made: list[Compared] = []
    for (origin, days), errors in told.items():
        actual = [sums[place][origin + days + 1] - sums[place][origin + 1] for place, _ in errors]
        own = [come * exp(-error.ratio) for come, (_, error) in zip(actual, errors, strict=True)]
        late = [_late(sums[place], origin) for place, _ in errors]
        if len(errors) > 1 and sum(late):
            made.append(Compared(_apart(own, actual), _apart(late, actual)))
    return made


def is_own_closer(found: Sequence[Compared]) -> bool:
    """Tell whether owners' own forecasts split the past better; what was never tested is split by shares of late.

    Args:
        found: The tests.

    Returns:
        True for their own forecasts.
    """
    return sum(one.own for one in found) < sum(one.late for one in found)


def by_share(one: Own, whole: Own, level: float) -> Learned | None:
    """Give an owner the intervals of its share of the whole: as far off as that was in the past.

    Args:
        one: The owner.
        whole: The whole.
        level: Share of intervals that are to hold what comes.

    Returns:
        What is known of it, the errors those of its share of the whole's forecast; None where it has no interval.
    """
    if one.learned is None or whole.learned is None:
        return None
    errors = tuple(_shared(one, whole))
    return replace(one.learned, errors=errors, width=width_of(errors, len(one.costs) - one.begins, level))


def _shared(one: Own, whole: Own) -> Iterator[Error]:
    sums, of_whole = ([0.0, *accumulate(costs)] for costs in (one.costs, whole.costs))
    known = {(error.origin, error.days): error for error in (whole.learned.errors if whole.learned else ())}
    for error in one.learned.errors if one.learned else ():
        origin, days = error.origin + one.begins, error.days
        base = known.get((origin, days))
        share, late = _late(sums, origin), _late(of_whole, origin)
        if base is not None and share and late:
            come, all_come = (part[origin + days + 1] - part[origin + 1] for part in (sums, of_whole))
            expected = all_come * exp(-base.ratio) * share / late
            yield error._replace(ratio=log(come / expected))


def _late(sums: Sequence[float], day: int) -> float:
    return sums[day + 1] - sums[max(day + 1 - LEAST_DAYS, 0)]


def _apart(given: Sequence[float], actual: Sequence[float]) -> float:
    pairs = zip(given, actual, strict=True)
    return sum(abs(one / sum(given) - come / sum(actual)) for one, come in pairs)
