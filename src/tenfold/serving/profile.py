"""How output comes in over time: hours of a stretch for what is paid by the hour, and its busiest sixty minutes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

_HOUR = 60


class Profile(NamedTuple):
    """Output by hours, counted from the start of a stretch.

    Args:
        seconds: Length of each hour; the last is cut, or joined to the one before where it is less than half.
        hourly: Output tokens a second in each.
        waiting: The part of it that may wait.
        peak: Output tokens a second of the busiest sixty minutes, wherever they begin.
        kept_peak: The same of what may not wait.
    """

    seconds: tuple[float, ...]
    hourly: tuple[float, ...]
    waiting: tuple[float, ...]
    peak: float
    kept_peak: float


def profile(minutes: Iterable[tuple[int, int, int]], seconds: float) -> Profile:
    """Make the profile of a stretch.

    Args:
        minutes: Number of a minute, from the start of the stretch; output tokens in it; those of them that may wait.
        seconds: Length of the stretch.

    Returns:
        The profile.
    """
    counted = sorted(minutes)
    hours = max(1, math.ceil(seconds / 3600))
    if hours > 1 and seconds % 3600 and seconds % 3600 < 1800:
        hours -= 1
    lengths = [3600.0] * (hours - 1) + [seconds - 3600.0 * (hours - 1)]
    sums = [[0, 0] for _ in range(hours)]
    for minute, output, waits in counted:
        hour = min(max(minute, 0) // _HOUR, hours - 1)
        sums[hour][0] += output
        sums[hour][1] += waits
    whole = min(3600.0, seconds)
    return Profile(
        tuple(lengths),
        tuple(output / long for (output, _), long in zip(sums, lengths, strict=True)),
        tuple(waits / long for (_, waits), long in zip(sums, lengths, strict=True)),
        _busiest((minute, output) for minute, output, _ in counted) / whole,
        _busiest((minute, output - waits) for minute, output, waits in counted) / whole,
    )


def _busiest(minutes: Iterable[tuple[int, int]]) -> int:
    """Sum the sixty minutes in a row that hold most."""
    held: list[tuple[int, int]] = []
    first = most = now = 0
    for minute, output in minutes:
        held.append((minute, output))
        now += output
        while held[first][0] <= minute - _HOUR:
            now -= held[first][1]
            first += 1
        most = max(most, now)
    return most
