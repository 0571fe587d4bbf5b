"""Days that a series of daily costs does not explain: spikes, drops, new levels, series that begin or end, silence.

A day is held against the trailing median of its series, with its weekday's effect and the series' slope, on the log
scale, as costs scatter by ratios; it stands out beyond k scaled median absolute deviations (``reference/formats.md``
C2). Days that stood out are left out of what later days are held against, until they make a new level: a step is one
anomaly, not one a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import exp, log, sqrt
from statistics import fmean, median
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["spike", "drop", "level_up", "level_down", "new", "ended", "silence"]
WEEK = 7
# Days that a day is held against, and the fewest.
TRAILING = 4 * WEEK
LEAST = 2 * WEEK
# Days in a row that make a new level, and past days that a slope is read from.
LEVEL = WEEK
_SLOPE = 3 * WEEK
# MAD and mean absolute deviation to standard deviation, of normal noise.
_FROM_MAD, _FROM_MEAN = 1.4826, 1.2533
# Noise that no series is without; that of counting requests, whose costs differ by about as much as they are, and the
# most of it that counts.
_LEAST_NOISE = 0.05
_COUNTING = 2.0
_MOST_COUNTING = 0.6
# A run goes on while days stay beyond this share of k.
_GOES_ON = 0.5
# Requests on a weekday whose absence is no chance.
_MISSED = 8
# Share of the level that a day costs at most where its weekday never costs anything.
_IDLE_DAY = 0.25


class Band(NamedTuple):
    """What was expected of a day.

    Args:
        expected: Middle.
        low: Lower bound.
        high: Upper bound.
    """

    expected: float
    low: float
    high: float


class Found(NamedTuple):
    """A run of days that stands out.

    Args:
        kind: What it is.
        first: First day, by its place.
        last: Last day, by its place.
        expected: What was expected of each of its days.
        score: Largest distance in scaled MADs, at least k; 0 for a series without a past.
        is_open: It still goes on at the end of the series.
        baseline: Places of the days that it was held against.
    """

    kind: Kind
    first: int
    last: int
    expected: tuple[float, ...]
    score: float
    is_open: bool
    baseline: tuple[int, ...]


class _Measure(NamedTuple):
    """What the past says of a day: the middle, half of the band as a log, and the slope a day.

    Where nothing is expected, ``reach`` is the upper bound itself.
    """

    expected: float
    reach: float
    slope: float


@dataclass(slots=True)
class _Run:
    """Days in a row that stand out on one side, and the past that they are held against."""

    sign: int
    past: list[tuple[int, float]]
    days: list[int] = field(default_factory=list[int])
    expected: list[float] = field(default_factory=list[float])
    score: float = 0.0


@dataclass(slots=True)
class _Level:
    """A new level that still holds: how it began, and how many times the old one it is."""

    run: _Run
    ratio: float


class Judge:
    """Judges one series day by day.

    Args:
        costs: Cost a day.
        requests: Requests a day.
        k: Scaled MADs from which a day stands out.
        partial: Places of days that are covered in part: they may be too dear, never too cheap, and are no measure.
    """

    def __init__(
        self, costs: Sequence[float], requests: Sequence[float], *, k: float, partial: frozenset[int] = frozenset()
    ) -> None:
        self.costs = costs
        self.requests = requests
        self.k = k
        self.partial = partial
        self.found: list[Found] = []
        self.bands: list[Band | None] = [None] * len(costs)
        # days that measure, each with its cost at the level that holds now
        self._past: list[tuple[int, float]] = []
        self._level: _Level | None = None
        self._silent: list[int] = []
        self._last = _last_used(requests)
        self._judge()

    def _judge(self) -> None:
        first = next((place for place, count in enumerate(self.requests) if count), len(self.costs))
        run: _Run | None = None
        last = self._last
        for day in range(first, last + 1):
            run = self._day(day, run)
        is_open = last == len(self.costs) - 1
        if run is not None:
            self._close(run, is_open=is_open)
        if self._level is not None:
            self._end_level(last, is_open=is_open)
        if not is_open:
            self._end()
        if LEAST <= first <= last:
            # a dear day, or one without a request, ends nothing
            levels = (one.first - 1 for one in self.found if one.kind in ("level_up", "level_down"))
            ends = min(levels, default=last)
            is_open = is_open and ends == last
            self.found.append(Found("new", first, ends, (0.0,) * (ends - first + 1), 0.0, is_open, ()))
        self.found.sort(key=lambda one: (one.first, one.last))

    def _day(self, day: int, run: _Run | None) -> _Run | None:
        past = self._past[-TRAILING:]
        measure = self._measure(day, past)
        if measure is None:
            self._keep(day)
            return run
        self.bands[day] = (
            Band(measure.expected, measure.expected * exp(-measure.reach), measure.expected * exp(measure.reach))
            if measure.expected
            else Band(0.0, 0.0, measure.reach)
        )
        sign, score = self._score(day, past, measure, () if run is None else run.days)
        if sign < 0 and day in self.partial:
            return run
        goes_on = run is not None and sign == run.sign and score > _GOES_ON * self.k
        if run is not None and not goes_on:
            self._close(run, is_open=False)
            run = None
        if run is None and score <= self.k:
            self._keep(day)
            return None
        if run is None:
            run = _Run(sign, past)
        run.days.append(day)
        if not self.requests[day]:
            self._silent.append(day)
        run.expected.append(measure.expected)
        run.score = max(run.score, score)
        if len(run.days) >= LEVEL and any(self.requests[one] for one in run.days):
            self._new_level(run)
            return None
        return run

    def _score(
        self, day: int, past: Sequence[tuple[int, float]], measure: _Measure, silent: Sequence[int]
    ) -> tuple[int, float]:
        """Tell on which side a day lies, and how far off in scaled MADs."""
        cost = self.costs[day]
        if not measure.expected:
            return 1, self.k * cost / measure.reach
        if cost <= 0:
            own = [self.requests[one] for one, _ in past if (day - one) % WEEK == 0]
            # a series that was silent of late, and came back, may be so again
            again = any(day - TRAILING <= one < day and one not in silent for one in self._silent)
            is_missed = len(own) >= LEAST // WEEK and min(own) >= _MISSED and not again
            return -1, 2 * self.k if is_missed else 0.0
        off = log(cost / measure.expected)
        return (1 if off > 0 else -1), self.k * abs(off) / measure.reach

    def _keep(self, day: int) -> None:
        if day not in self.partial:
            self._past.append((day, self.costs[day]))

    def _close(self, run: _Run, *, is_open: bool) -> None:
        silent = not any(self.requests[day] for day in run.days)
        kind: Kind = "silence" if silent else "spike" if run.sign > 0 else "drop"
        self._add(kind, run, run.days[-1], tuple(run.expected), is_open=is_open)

    def _add(self, kind: Kind, run: _Run, last: int, expected: tuple[float, ...], *, is_open: bool) -> None:
        baseline = tuple(day for day, _ in run.past)
        self.found.append(Found(kind, run.days[0], last, expected, run.score, is_open, baseline))

    def _new_level(self, run: _Run) -> None:
        """Take a run for a new level; where it leads back to the level before, the one that it leaves was all."""
        pairs = zip(run.days, run.expected, strict=True)
        ratio = median(self.costs[day] / expected for day, expected in pairs if expected) if any(run.expected) else 0.0
        self._past = [(day, cost * ratio) for day, cost in run.past] if ratio else []
        for day in run.days:
            self._keep(day)
        before = self._level
        if before is not None:
            self._end_level(run.days[0] - 1, is_open=False)
            if ratio and abs(log(before.ratio * ratio)) < abs(log(before.ratio)) / 2:
                return
        self._level = _Level(run, ratio or 1.0)

    def _end_level(self, last: int, *, is_open: bool) -> None:
        level = self._level
        if level is None:
            return
        self._level = None
        run = level.run
        expected = list(run.expected)
        for day in range(run.days[-1] + 1, last + 1):
            # the weekday's own at the level that was left, without its slope
            own = self._measure(day, run.past)
            ahead = 0.0 if own is None else own.expected * exp(-own.slope * (day - run.days[0]))
            expected.append(ahead)
        kind: Kind = "level_up" if run.sign > 0 else "level_down"
        self._add(kind, run, last, tuple(expected), is_open=is_open)

    def _end(self) -> None:
        """Tell once that the series has ended: its days since are held against the same weekdays of its last weeks."""
        past = self._past[-TRAILING:]
        days = range(self._last + 1, len(self.costs))
        weekdays = [[cost for day, cost in past if day % WEEK == place] or [0.0] for place in range(WEEK)]
        expected = tuple(fmean(weekdays[day % WEEK]) for day in days)
        if len(past) >= LEAST and any(expected):
            baseline = tuple(day for day, _ in past)
            self.found.append(Found("ended", days[0], days[-1], expected, 0.0, True, baseline))

    def _measure(self, day: int, past: Sequence[tuple[int, float]]) -> _Measure | None:
        """Measure what a day is to be by its past; None where that is too short."""
        if len(past) < LEAST:
            return None
        known = [(place, log(cost)) for place, cost in past if cost > 0]
        if 2 * len(known) <= len(past):
            return self._sparse([cost for _, cost in past])
        level = median(value for _, value in known)
        own = [value for place, value in known if (day - place) % WEEK == 0]
        if not own:
            busy = median(self.requests[place] for place, _ in known) >= _MISSED
            if not busy:
                return self._sparse([cost for _, cost in past])
            # days that stood out count here: a weekday that was idle and no longer is
            most = max((self.costs[one] for one in range(day - WEEK, max(day - TRAILING, 0) - 1, -WEEK)), default=0.0)
            return _Measure(0.0, max(_IDLE_DAY * exp(level), 2 * most), 0.0)
        effects = {
            weekday: median(value for place, value in known if place % WEEK == weekday) - level
            for weekday in {place % WEEK for place, _ in known}
        }
        rest = [(place, value - effects[place % WEEK]) for place, value in known]
        slope = _slope(rest) if len(rest) >= _SLOPE else 0.0
        flat = [value + slope * (day - place) for place, value in rest]
        middle = median(flat)
        # a median a weekday takes as many degrees of freedom, and is itself off by what its few days leave
        left = max(len(rest) - len(effects), 1)
        off = [abs(value - middle) for value in flat]
        noise = max(_FROM_MAD * median(off), _FROM_MEAN * fmean(off)) * sqrt(len(rest) / left * (1 + 1 / len(own)))
        expected = exp(middle + effects[day % WEEK])
        asked = median(self.requests[place] for place, _ in past if (day - place) % WEEK == 0)
        noise = max(noise, _LEAST_NOISE, min(sqrt(_COUNTING / max(asked, 1.0)), _MOST_COUNTING))
        # Student's t in place of the normal, to first order: noise of few days is itself uncertain
        return _Measure(expected, self.k * (1 + (self.k**2 + 1) / (8 * left)) * noise, slope)

    def _sparse(self, costs: Sequence[float]) -> _Measure | None:
        """Measure a series that is silent on most days: only what is far beyond its dearest day stands out."""
        most = max(costs)
        return _Measure(0.0, (1 + self.k / 2) * most, 0.0) if most > 0 else None


def _last_used(requests: Sequence[float]) -> int:
    """Find the last day to judge: the last one with a request, where the silence since is an end; else the last one.

    It is an end from a week on, if the series was never silent for half as long before.
    """
    used = [day for day, count in enumerate(requests) if count]
    last = len(requests) - 1
    silent = last - used[-1] if used else 0
    longest = max((after - before - 1 for before, after in pairwise(used)), default=0)
    return used[-1] if silent >= WEEK and silent >= 2 * longest else last


def _slope(values: Sequence[tuple[int, float]]) -> float:
    """Give the median of the slopes between values half of the past apart (Theil and Sen, thinned)."""
    half = len(values) // 2
    pairs = zip(values, values[half:], strict=False)
    return median((after - before) / (later - place) for (place, before), (later, after) in pairs)
