"""Exponential smoothing of a daily series: level, damped growth and weekday effect on the log scale, robust to spikes.

Additive Holt-Winters with a damped trend (Gardner and McKenzie 1985; Hyndman et al., Forecasting with Exponential
Smoothing, 2008) on logs, so that effects are ratios and forecasts positive. A surprise beyond what is usual is held
back once (Gelper, Fried and Croux 2010); if the days after agree with it, it is a step, and the level goes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import log
from statistics import fmean, median
from typing import NamedTuple

WEEK = 7
# Days that the first level, weekdays and scale are read from.
START = 2 * WEEK
# A surprise beyond this many scales is held back at it.
_HELD = 3.0
# Surprises of one sign in a row that make a step.
_STEP = 3
_SCALE_PACE = 0.05
# Scale of an exactly regular series: what is less than this is no surprise.
_LEAST_SCALE = 1e-3
# Mean absolute deviation to standard deviation of normal noise.
_NORMAL = 1.2533
# So that a day without anything has a logarithm, and next to a busy day's it is far down.
NOTHING = 0.5


class Pace(NamedTuple):
    """How fast the parts of a series follow what happens.

    Args:
        level: Share of a surprise that stays in the level.
        growth: Share of that which stays in the growth a day.
        damping: What is left of the growth after a day.
        weekday: Share of a surprise that stays in the weekday's effect.
    """

    level: float
    growth: float
    damping: float
    weekday: float


# From a level that hardly moves to one that follows; without growth, with one that fades, with one that lasts.
PACES = tuple(
    Pace(level, growth, damping, 0.1)
    for level in (0.05, 0.15, 0.35)
    for growth, damping in ((0.0, 1.0), (0.05, 0.97), (0.05, 0.995), (0.15, 0.97), (0.15, 0.995))
)


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a series at the end of a day, on the log scale.

    Args:
        pace: How it was followed.
        level: Level without the weekday's effect.
        growth: Growth of the next day.
        weekdays: Effects by place in the week, that of the day after first.
        scale: Standard deviation of a day's surprise.
    """

    pace: Pace
    level: float
    growth: float
    weekdays: tuple[float, ...]
    scale: float

    def ahead(self, days: int, growth_factor: float = 1.0) -> list[float]:
        """Forecast the days to come.

        Args:
            days: How many.
            growth_factor: What the growth is multiplied by: 0 stops it.

        Returns:
            Logs, one a day.
        """
        made: list[float] = []
        level, growth = self.level, self.growth * growth_factor
        for n in range(days):
            growth *= self.pace.damping
            level += growth
            made.append(level + self.weekdays[n % WEEK])
        return made


@cache
def reach(pace: Pace, days: int) -> tuple[float, ...]:
    """Tell what one surprise does to its own day and the days after it, added up, as a multiple of it.

    Args:
        pace: How fast a series follows what happens.
        days: How many days, that of the surprise among them.

    Returns:
        The sum over the first day, the first two, and so on.
    """
    made, effect, added = [1.0], pace.level, pace.level * pace.growth
    for _ in range(days - 1):
        added *= pace.damping
        effect += added
        made.append(made[-1] + effect)
    return tuple(made)


def logs(values: Sequence[float]) -> list[float]:
    """Take logarithms of amounts that may be nothing.

    Args:
        values: Amounts of at least 0, in a unit of which a usual day has many.

    Returns:
        Logs.
    """
    return [log(value + NOTHING) for value in values]


def follow(series: Sequence[float | None], pace: Pace, weights: Sequence[float] | None = None) -> list[State]:
    """Follow a series day by day.

    Args:
        series: Logs, one a day; None where there is nothing to see.
        pace: How fast.
        weights: How much each day says, 0 to 1; all the same by default.

    Returns:
        The state at the end of each day from the ``START``-th on: what was known then, nothing later.
    """
    level, weekdays, scale = _begin(series[:START])
    growth, growth_before = 0.0, 0.0
    row: list[float] = []
    made: list[State] = []
    for day, value in enumerate(series):
        if day >= START:
            growth *= pace.damping
            level += growth
        place = day % WEEK
        if value is not None and day >= START:
            surprise = value - level - weekdays[place]
            reach = _HELD * scale
            held = max(-reach, min(reach, surprise))
            beyond = abs(surprise) > reach
            growth_before = growth if not row else growth_before
            row = [*row, surprise] if beyond and (not row or row[-1] * surprise > 0) else [surprise] if beyond else []
            weight = 1.0 if weights is None else weights[day]
            scale += weight * _SCALE_PACE * (_NORMAL * abs(held) - scale)
            scale = max(scale, _LEAST_SCALE)
            if len(row) >= _STEP:
                level += median(row)
                # a step is no growth
                growth, row = growth_before, []
            else:
                moved = weight * pace.level * held
                level += moved
                growth += pace.growth * moved
                weekdays[place] += pace.weekday * (held - moved)
        if day >= START - 1:
            turned = tuple(weekdays[(day + 1 + n) % WEEK] for n in range(WEEK))
            made.append(State(pace, level, growth, turned, scale))
    return made


def _begin(series: Sequence[float | None]) -> tuple[float, list[float], float]:
    """Read the first level, weekday effects and scale off the first weeks."""
    known = [value for value in series if value is not None]
    level = median(known) if known else 0.0
    by_weekday = [[value for value in series[place::WEEK] if value is not None] for place in range(WEEK)]
    effects = [fmean(values) - level if values else 0.0 for values in by_weekday]
    middle = fmean(effects)
    level += middle
    effects = [one - middle for one in effects]
    rest = [abs(v - level - effects[n % WEEK]) for n, v in enumerate(series) if v is not None]
    # two values a weekday leave half of the variance
    scale = _NORMAL * fmean(rest) * 2**0.5 if rest else _LEAST_SCALE
    return level, effects, max(scale, _LEAST_SCALE)
