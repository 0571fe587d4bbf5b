"""Statistics by group and by slice of time: quantiles of groups, intervals from draws, many tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tenfold.latency.records import Floats, Interval

# Two-sided 1 % of Student's t with 39 degrees of freedom (40 slices of time).
T_99 = 2.708
# Half of the numbers of 32 bits.
_HALF = 1 << 31


def group_quantile(values: Floats, groups: NDArray[np.integer], count: int, q: float = 0.5, least: int = 1) -> Floats:
    """Give a quantile of each group, by linear interpolation; values count to seven digits.

    Args:
        values: Values; NaN is left out.
        groups: Group of each, from 0; negative ones are left out.
        count: Groups in all.
        q: Quantile.
        least: Values that a group needs.

    Returns:
        A value a group; NaN where it has too few.
    """
    rows = np.flatnonzero(np.isfinite(values) & (groups >= 0))
    # one sort of whole numbers, group above and value below, is many times as fast as a sort by two keys
    bits = values[rows].astype(np.float32).view(np.int32)
    rank = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).astype(np.int64) + _HALF
    ranks = np.sort((groups[rows].astype(np.int64) << 32) | rank) % (2 * _HALF) - _HALF
    bits = ranks.astype(np.int32)
    ordered = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).view(np.float32).astype(np.float64)
    sizes = np.bincount(groups[rows], minlength=count)[:count]
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    out = np.full(count, np.nan)
    there = np.flatnonzero(sizes >= max(least, 1))
    place = (sizes[there] - 1) * q
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, sizes[there] - 1)
    first, second = ordered[starts[there] + low], ordered[starts[there] + high]
    out[there] = first + (second - first) * (place - low)
    return out


def group_mean(values: Floats, groups: NDArray[np.integer], count: int, least: int = 1) -> Floats:
    """Give the mean of each group.

    Args:
        values: Values; NaN is left out.
        groups: Group of each, from 0; negative ones are left out.
        count: Groups in all.
        least: Values that a group needs.

    Returns:
        A value a group; NaN where it has too few.
    """
    known = np.isfinite(values) & (groups >= 0)
    sizes = np.bincount(groups[known], minlength=count)[:count]
    sums = np.bincount(groups[known], values[known], count)[:count]
    return np.divide(sums, sizes, out=np.full(count, np.nan), where=sizes >= max(least, 1))


def from_draws(mid: float, draws: Floats, t: float = T_99) -> Interval:
    """Give a value with its interval from bootstrap draws of it.

    Args:
        mid: The value.
        draws: Draws of it; those that are not finite are left out.
        t: Standard deviations on either side.

    Returns:
        The interval; NaN ends where fewer than half of the draws are finite.
    """
    known = draws[np.isfinite(draws)]
    if known.size < max(draws.size // 2, 2):
        return Interval(float("nan"), mid, float("nan"))
    reach = t * float(np.std(known, ddof=1))
    return Interval(mid - reach, mid, mid + reach)


def benjamini_hochberg(p: Floats) -> Floats:
    """Turn p values of many tests into false discovery rates.

    Args:
        p: The p values; NaN where there was no test.

    Returns:
        The q values, in the same places.
    """
    out = np.full(p.shape, np.nan)
    tested = np.flatnonzero(np.isfinite(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    scaled = p[order] * tested.size / np.arange(1, tested.size + 1)
    out[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return out


def robust_sd(values: Floats) -> float:
    """Give the standard deviation as the median absolute deviation tells it.

    Args:
        values: Values; NaN is left out.

    Returns:
        1.4826 x the median absolute deviation; NaN where there are fewer than two values.
    """
    known = values[np.isfinite(values)]
    return float(1.4826 * np.median(np.abs(known - np.median(known)))) if known.size > 1 else float("nan")


def percent(log: float) -> str:
    """Write a log ratio as a change.

    Args:
        log: The log.

    Returns:
        Such as ``+12%``; ``not known`` where it is none.
    """
    return f"{np.expm1(log):+.0%}" if np.isfinite(log) else "not known"
