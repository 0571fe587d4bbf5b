"""Pressure on the memory of replicas: preemptions, requests that met a full KV cache, what a full one holds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tenfold.latency.facts import Facts
from tenfold.latency.records import Codes, Floats, Interval, Mask, Pair, Window
from tenfold.latency.statistics import Estimate, log_change, long_blocks, ratio, tail_mean

# KV cache in use from which nothing more fits; nearer to 1 where the log does not say that requests wait.
_FULL = 0.95
_FULL_ALONE = 0.98
# Share of the slowest first tokens that met a full cache before, below which it is all the same how small it is.
_FLOOR = 0.05


class Preempted(NamedTuple):
    """How often requests were preempted.

    Args:
        before: Share of the requests that were, before.
        after: The same after.
        ratio: Preemptions a request, after over before.
        counts: Preemptions of each request of both windows.
    """

    before: float
    after: float
    ratio: Interval
    counts: tuple[Floats, Floats]


class Full(NamedTuple):
    """How often requests met a full KV cache.

    Args:
        before: Share of the requests that did, before.
        after: The same after.
        in_tail: Share of the slowest first tokens after that did.
        change: Log of it over that of before, which counts as a twentieth at least.
        rows: Requests that did, of both windows.
    """

    before: float
    after: float
    in_tail: float
    change: Interval
    rows: tuple[Mask, Mask]


def preempted_of(pair: Pair, facts: Facts) -> Preempted | None:
    """Compare preemptions.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        The comparison; None where the log does not count them.
    """
    if pair.before.preemptions is None or pair.after.preemptions is None:
        return None
    counts = (_counted(pair.before.preemptions), _counted(pair.after.preemptions))
    rates: list[Estimate] = []
    for column, derived in zip(counts, facts.windows, strict=True):
        rate = ratio(column, np.ones(column.size), *_blocks(derived.slice))
        if rate.value == 0:
            # none seen: as if half a one had been, whose log is uncertain by 1
            half = 0.5 / max(column.size, 1)
            rate = Estimate(half, half * half, 30.0)
        rates.append(rate)
    shares = [float((column > 0).mean()) for column in counts]
    low, mid, high = (math.exp(min(each, 700.0)) for each in log_change(rates[0], rates[1]))
    return Preempted(shares[0], shares[1], Interval(low, mid, high), counts)


def recompute_tax(window: Window, uncached: Floats, preemptions: Floats) -> float:
    """Estimate the tokens computed again over all computed (I12): a prompt and half its answer, each time.

    Args:
        window: The window.
        uncached: Uncached tokens of its prompts.
        preemptions: Preemptions of its requests.

    Returns:
        0 to 1.
    """
    held = _counted(window.input) + _counted(window.output) / 2
    again = float((preemptions * held).sum())
    once = float(np.nansum(uncached) + np.nansum(window.output))
    return again / (again + once) if again + once > 0 else 0.0


def full_of(pair: Pair, facts: Facts, band: float) -> Full | None:
    """Compare how often requests met a full cache.

    Args:
        pair: The windows.
        facts: What is known of them.
        band: Quantile of TTFT from which first tokens are the slowest.

    Returns:
        The comparison; None where the log does not say how full the cache was.
    """
    rows = (_full(pair.before), _full(pair.after))
    if rows[0] is None or rows[1] is None:
        return None
    tails: list[Estimate] = []
    shares: list[float] = []
    for window, derived, mask in zip(pair.windows, facts.windows, (rows[0], rows[1]), strict=True):
        tails.append(tail_mean(np.where(mask, 1.0, 0.0), window.ttft_s, band, *_blocks(derived.slice)))
        shares.append(float(mask.mean()) if mask.size else 0.0)
    return Full(shares[0], shares[1], tails[1].value, log_change(tails[0], tails[1], floor=_FLOOR), (rows[0], rows[1]))


def holds(window: Window, full: Mask) -> tuple[float, float] | None:
    """Give how many requests a full cache held, and how many waited beside them (I10).

    Args:
        window: The window.
        full: Requests that met a full cache.

    Returns:
        Medians, the second NaN where it is not known; None where the log does not count them.
    """
    if window.running is None or not np.isfinite(window.running[full]).any():
        return None
    waiting = math.nan
    if window.waiting is not None and np.isfinite(window.waiting[full]).any():
        waiting = float(np.nanmedian(window.waiting[full]))
    return float(np.nanmedian(window.running[full])), waiting


def filling(window: Window) -> tuple[float, float] | None:
    """Fit a line to the KV cache in use over the window (I13).

    Args:
        window: The window.

    Returns:
        Its start and how far it rises; None where it is not known.
    """
    if window.kv is None or np.isfinite(window.kv).sum() < 100:
        return None
    known = np.isfinite(window.kv)
    at = (window.ts_s[known] - window.since_s) / max(window.until_s - window.since_s, 1e-9)
    slope, start = np.polyfit(at, window.kv[known], 1)
    return float(start), float(slope)


def _blocks(slices: Codes) -> tuple[Codes, Codes]:
    return slices, long_blocks(slices)


def _counted(column: Floats) -> Floats:
    return np.where(np.isfinite(column), column, 0.0)


def _full(window: Window) -> Mask | None:
    if window.kv is None:
        return None
    kv = _counted(window.kv)
    return kv >= _FULL_ALONE if window.waiting is None else (kv >= _FULL) & (_counted(window.waiting) > 0)
