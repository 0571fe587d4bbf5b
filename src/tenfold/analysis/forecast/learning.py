"""What the past of a series says of its future: the pace that forecast best so far, and how far off it was.

Two drivers are followed apart, requests a day and cost per request at one day's prices; their product is what a day
costs. At every origin of the past both are forecast by what was known then, with the paces that had done best by then,
and held against what came. Intervals are normalised conformal: the model says how uncertainty grows with the horizon,
the past's errors in units of it say how wide it really is (Papadopoulos et al. 2002; Angelopoulos and Bates 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, exp, inf, log
from statistics import NormalDist, fmean
from typing import NamedTuple

from tenfold.analysis.forecast.smoothing import NOTHING, PACES, START, WEEK, Pace, State, follow, logs, reach

# Days that a forecast needs: each weekday four times.
LEAST_DAYS = 28
# Days ahead at which the past is asked.
HORIZONS = (7, 14, 28, 56)
# Those that choose a pace.
_CHOOSE = (7, 14, 28)
# Growth is believed where it did better by this much.
_GROWTH_MUST = 0.85
_PLAIN = PACES[5]
# Most days ahead.
_FURTHEST = 400
# Days that say how far days lie above their forecasts, and how many times its forecast a day counts at most.
_LATE = 56
_FAR = 3.0
# Errors that say how wide an interval is; fewer are taken for less than they say.
_ENOUGH = 10
# Origins asked; those of a longer past stand further apart.
_ORIGINS = 90


class Error(NamedTuple):
    """One forecast of the past.

    Args:
        origin: Day number after which it was made.
        days: Days ahead that were summed.
        ratio: Log of actual over forecast.
        spread: What the model expected of that, one standard deviation.
        naive: Log of actual over the same weekdays of the week before, repeated.
    """

    origin: int
    days: int
    ratio: float
    spread: float
    naive: float

    @property
    def score(self) -> float:
        """The error in units of the model's own."""
        return abs(self.ratio) / self.spread


class Width(NamedTuple):
    """How wide intervals are, in logs.

    Args:
        normal: Half of an interval in units of the model's spread, if the model were right.
        shown: The same as the past's errors show it.
        worst: The largest error of the past: what they show goes no further, but for days further ahead.
        longest: Most days ahead of those errors.
    """

    normal: float
    shown: float
    worst: float
    longest: int

    def of(self, spread: float, days: int) -> float:
        """Give half of an interval.

        Args:
            spread: The model's own standard deviation.
            days: Days ahead until the end of what is forecast; beyond the longest of the past, the largest error grows
                with their root.

        Returns:
            The half, in logs.
        """
        further = max(1.0, days / self.longest) ** 0.5
        return max(self.normal * spread, min(self.shown * spread, self.worst * further))


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How the past was forecast, at one number of days ahead.

    Args:
        days: Days ahead that were summed.
        origins: Forecasts made.
        coverage: Share of them inside the interval that was given then; None where none was.
        mape: Mean absolute error as a share of what came.
        naive_mape: That of repeating the last week.
    """

    days: int
    origins: int
    coverage: float | None
    mape: float
    naive_mape: float


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known at the end of a series.

    Args:
        requests: State of requests a day.
        costs: State of cost per request.
        lift: What a day costs over its forecast of the day before, on average of late: scatter and rare dear days.
        width: How wide intervals are.
        accuracy: How the past was forecast, by days ahead.
        errors: The forecasts of the past.
    """

    requests: State
    costs: State
    lift: float
    width: Width
    accuracy: tuple[Accuracy, ...]
    errors: tuple[Error, ...]

    def ahead(self, days: int, growth_factor: float = 1.0) -> list[float]:
        """Forecast what days cost at the prices that the costs are in.

        Args:
            days: How many.
            growth_factor: What growth of both drivers is multiplied by.

        Returns:
            One amount a day.
        """
        return [self.lift * one for one in _product(self.requests, self.costs, days, growth_factor)]

    def factor(self, first: int, last: int) -> float:
        """Tell how far the sum of some days may be off.

        Args:
            first: First day of the sum, counted from 0.
            last: Last one.

        Returns:
            The sum lies between mid / factor and mid x factor.
        """
        return exp(self.width.of(_spread(self.requests, self.costs, first, last), last + 1))


def learn(requests: Sequence[float], costs: Sequence[float], level: float) -> Learned:
    """Learn from whole days.

    Args:
        requests: Requests a day, at least ``LEAST_DAYS``.
        costs: What they cost, at one day's prices.
        level: Share of intervals that are to hold what comes.

    Returns:
        What is known at the end.
    """
    volume = logs(requests)
    each: list[float | None] = [log(c / n) if n and c > 0 else None for n, c in zip(requests, costs, strict=True)]
    # a day of few requests says less of what a request costs; what is few is said by the days until then
    totals = [0.0, *accumulate(requests)]
    recent = [day + 1 - max(day + 1 - LEAST_DAYS, 0) for day in range(len(requests))]
    usual = [(totals[day + 1] - totals[day + 1 - count]) / count for day, count in enumerate(recent)]
    weights = [min(1.0, n / mean) if mean else 0.0 for n, mean in zip(requests, usual, strict=True)]
    followed = {pace: (follow(volume, pace), follow(each, pace, weights)) for pace in PACES}
    of_volume = _Choice({pace: both[0] for pace, both in followed.items()}, requests)
    unit = [exp(one) if one is not None else None for one in each]
    of_cost = _Choice({pace: both[1] for pace, both in followed.items()}, unit)
    errors: list[Error] = []
    origins = _origins(len(requests))
    sums = [0.0, *accumulate(costs)]
    for origin in origins:
        errors += _errors(origin, of_volume, of_cost, sums, costs)
    width = width_of(errors, len(requests), level)
    last = len(requests) - 1
    lift = _lift(last, of_volume, of_cost, costs)
    return Learned(of_volume.at(last), of_cost.at(last), lift, width, _accuracy(errors, level), tuple(errors))


def _origins(days: int) -> range:
    first = START + WEEK - 1
    return range(first, days - HORIZONS[0], max(1, (days - first) // _ORIGINS))


class _Choice:
    """The pace that forecast a series best, by what was known at each day."""

    def __init__(self, states: dict[Pace, list[State]], values: Sequence[float | None]) -> None:
        self.states = states
        days = len(values)
        known = [0.0 if value is None else value for value in values]
        sums = [0.0, *accumulate(known)]
        seen = [0, *accumulate(0 if value is None else 1 for value in values)]
        self._best: list[Pace] = []
        # by pace, the mean loss of what was known by each day
        means = {pace: self._means(of_pace, sums, seen) for pace, of_pace in states.items()}
        for day in range(days):
            plain = min((one for one in means if not one.growth), key=lambda one: means[one][day])
            growing = min((one for one in means if one.growth), key=lambda one: means[one][day])
            believed = means[growing][day] < _GROWTH_MUST * means[plain][day]
            self._best.append(growing if believed else plain if means[plain][day] < inf else _PLAIN)

    def at(self, day: int) -> State:
        """Give the state at the end of a day, at the pace that had done best by then."""
        return self.states[self._best[day]][day - START + 1]

    @staticmethod
    def _means(states: Sequence[State], sums: Sequence[float], seen: Sequence[int]) -> list[float]:
        days = len(sums) - 1
        losses: list[list[float]] = [[] for _ in range(days)]
        for origin in _origins(days):
            ahead = [0.0, *accumulate(map(exp, states[origin - START + 1].ahead(_CHOOSE[-1])))]
            for horizon in _CHOOSE:
                end = origin + horizon
                if end >= days:
                    break
                present = seen[end + 1] - seen[origin + 1]
                actual = sums[end + 1] - sums[origin + 1]
                if actual > 0 and present:
                    losses[end].append(log(actual / present * horizon / ahead[horizon]) ** 2)
        totals, counts = accumulate(map(sum, losses)), accumulate(map(len, losses))
        return [total / count if count else inf for total, count in zip(totals, counts, strict=True)]


def _product(requests: State, costs: State, days: int, growth_factor: float = 1.0) -> list[float]:
    pairs = zip(requests.ahead(days, growth_factor), costs.ahead(days, growth_factor), strict=True)
    return [max(exp(n) - NOTHING, 0.0) * exp(each) for n, each in pairs]


def _lift(origin: int, of_volume: _Choice, of_cost: _Choice, costs: Sequence[float]) -> float:
    """Hold the last weeks against what each day's eve expected, by the paces chosen at the origin."""
    paths = of_volume.states[of_volume.at(origin).pace], of_cost.states[of_cost.at(origin).pace]
    expected = actual = 0.0
    for day in range(max(origin - _LATE + 1, START), origin + 1):
        eve = _product(paths[0][day - START], paths[1][day - START], 1)[0]
        expected += eve
        # a day far beyond is an event that need not come again
        actual += min(costs[day], _FAR * eve)
    return actual / expected if actual > 0 and expected > 0 else 1.0


def _spread(requests: State, costs: State, first: int, last: int) -> float:
    """Standard deviation of a sum of days, as a share of it: what each surprise until then does to it, days alike."""
    variance = 0.0
    for state in (requests, costs):
        sums = reach(state.pace, _FURTHEST)
        touched = (sums[last - day] - (sums[first - day - 1] if day < first else 0.0) for day in range(last + 1))
        variance += state.scale**2 * sum(one * one for one in touched)
    return max(variance**0.5 / (last - first + 1), 1e-9)


def _errors(
    origin: int, of_volume: _Choice, of_cost: _Choice, sums: Sequence[float], costs: Sequence[float]
) -> list[Error]:
    made: list[Error] = []
    states = (of_volume.at(origin), of_cost.at(origin))
    lift = _lift(origin, of_volume, of_cost, costs)
    daily = [lift * one for one in _product(*states, HORIZONS[-1])]
    week = costs[origin - WEEK + 1 : origin + 1]
    for horizon in HORIZONS:
        end = origin + horizon
        if end >= len(costs):
            break
        actual = sums[end + 1] - sums[origin + 1]
        expected, naive = sum(daily[:horizon]), sum(week) * horizon / WEEK
        if actual > 0 and expected > 0:
            spread = _spread(*states, 0, horizon - 1)
            by_naive = log(actual / naive) if naive > 0 else inf
            made.append(Error(origin, horizon, log(actual / expected), spread, by_naive))
    return made


def width_of(errors: Sequence[Error], by: int, level: float) -> Width:
    """Choose how wide intervals are by the errors that are known by a day.

    Args:
        errors: Forecasts of the past, in order of their origins.
        by: The day: what came on it or later is not known.
        level: Share of intervals that are to hold what comes.

    Returns:
        The width.
    """
    normal = NormalDist().inv_cdf((1 + level) / 2)
    known = [error for error in errors if error.origin + error.days < by]
    if len(known) < _ENOUGH:
        return Width(normal, max([normal, *(error.score for error in known)]), inf, HORIZONS[0])
    scores = sorted(error.score for error in known)
    # forecasts of overlapping days repeat each other: no more of them count than pieces of the past that do not
    pieces = max((known[-1].origin - known[0].origin) // HORIZONS[0], 1)
    rank = min(ceil((pieces + 1) * level) / pieces, 1.0)
    shown = scores[ceil(rank * len(scores)) - 1]
    worst, longest = max(abs(error.ratio) for error in known), max(error.days for error in known)
    return Width(normal, max(normal, shown), worst, longest)


def _accuracy(errors: Sequence[Error], level: float) -> tuple[Accuracy, ...]:
    """Hold each forecast of the past against the interval that would have been given then."""
    widths = {origin: width_of(errors, origin + 1, level) for origin in {error.origin for error in errors}}
    made: list[Accuracy] = []
    for days in HORIZONS:
        own = [error for error in errors if error.days == days]
        if own:
            inside = [abs(error.ratio) <= widths[error.origin].of(error.spread, days) for error in own]
            made.append(
                Accuracy(
                    days,
                    len(own),
                    fmean(inside),
                    fmean(abs(exp(-error.ratio) - 1) for error in own),
                    fmean(abs(exp(-error.naive) - 1) for error in own),
                )
            )
    return tuple(made)
