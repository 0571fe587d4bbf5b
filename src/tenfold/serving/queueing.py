"""How full pools of workers and slots may be so that nobody waits for too long."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

# Bubbles between two pools keep a worker from its last tenth (aiconfigurator 0.12.0, sdk/picking.py).
POOL_LOAD = 0.9
# Standard deviations that 95 of 100 values of a normal variable stay below.
_P95 = 1.645


@cache
def wait(busy: float, workers: int) -> float:
    """Give how long a request waits for one of several like workers, each serving in the same fixed time.

    Args:
        busy: Share of the time that a worker is busy, below 1.
        workers: Workers.

    Returns:
        Mean wait in service times, for random (Poisson) arrivals.

    Formula:
        Half of the wait with exponential service times, which is u^(sqrt(2(n+1))-1) / (n (1-u)) (Sakasegawa 1977);
        exact for one worker (Pollaczek-Khinchine).
    """
    return busy ** (math.sqrt(2 * (workers + 1)) - 1) / (workers * (1 - busy)) / 2


@cache
def busiest(slack: float, workers: int) -> float:
    """Give the largest load of a pool whose waiting stays within bounds.

    Args:
        slack: Longest mean wait, in service times.
        workers: Workers.

    Returns:
        Share of the time that a worker is busy, at most ``POOL_LOAD``; 0 where there is no slack.
    """
    if slack <= 0:
        return 0.0
    if wait(POOL_LOAD, workers) <= slack:
        return POOL_LOAD
    return largest(lambda busy: wait(busy, workers) <= slack, 0.0, POOL_LOAD)


def slots_filled(slots: float) -> float:
    """Give how many of a decode worker's slots are in use, on average, if 95 of 100 arrivals are to find a free one.

    A prompt whose decode slot is not free keeps its KV cache on the prefill worker and blocks it; in front of an
    aggregated replica it waits with nothing in memory.

    Args:
        slots: Slots.

    Returns:
        Mean m with m + 1.645 sqrt(m) = slots: the number in use spreads about as a Poisson variable.
    """
    return ((math.sqrt(_P95**2 + 4 * slots) - _P95) / 2) ** 2


def largest(fits: Callable[[float], bool], low: float, high: float) -> float:
    """Find the largest number that fits, given that smaller ones fit too.

    Args:
        fits: Whether a number fits.
        low: The smallest to try.
        high: The largest.

    Returns:
        The number; 0 where not even ``low`` fits.
    """
    if high < low or not fits(low):
        return 0.0
    if fits(high):
        return high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
