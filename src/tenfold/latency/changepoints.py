"""Where a series of slices changes level: binary segmentation on robust levels, with p values by permuting blocks.

Source: serving.md 12, step 5 (CUSUM on robust quantiles of slices with permutation p).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.records import Floats

# Slices that are permuted together: what is alike from one slice to the next (queues, bursts) stays together.
BLOCK = 4
_DRAWS = 999
_SEED = 20260805
# Slices on either side of a change point; below, a level is no level.
_LEAST = 3
_P = 0.01
_DEEPEST = 4


class ChangePoint(NamedTuple):
    """A change of level.

    Args:
        place: First slice of the new level.
        size: Median after it less the median before it, up to the neighbouring change points.
        p: Chance of a change as clear among the same blocks of slices in any order.
    """

    place: int
    size: float
    p: float


def best_split(series: Floats, least: int = _LEAST) -> tuple[int, float]:
    """Find the place that splits a series best into two levels.

    Args:
        series: A value a slice; NaN where there is none.
        least: Values needed on either side.

    Returns:
        First slice of the second level and the CUSUM there (standardised by the spread of the whole); 0 and 0.0 where
        there are too few values.
    """
    gains = _gains(series[None, :], least)[0]
    place = int(np.argmax(gains))
    return (place, float(gains[place])) if gains[place] > 0 else (0, 0.0)


def gain_at(series: Floats, place: int, slack: int = 1, least: int = _LEAST) -> float:
    """Tell how well a split near a place does against the best one.

    Args:
        series: A value a slice; NaN where there is none.
        place: First slice of the second level.
        slack: Slices that the split may lie away.
        least: Values needed on either side.

    Returns:
        Variance that the split explains over what the best explains, 0 to 1.
    """
    gains = _gains(series[None, :], least)[0] ** 2
    best = float(gains.max())
    near = gains[max(place - slack, 0) : place + slack + 1]
    return float(near.max()) / best if best > 0 and near.size else 0.0


def change_points(series: Floats, *, p: float = _P, block: int = BLOCK, draws: int = _DRAWS) -> tuple[ChangePoint, ...]:
    """Find where a series changes level.

    Args:
        series: A value a slice, in order; NaN where there is none.
        p: Chance below which a split counts.
        block: Slices permuted together.
        draws: Permutations.

    Returns:
        The change points in order.
    """
    found: dict[int, float] = {}
    _segment(_winsorised(series), 0, p, block, draws, _DEEPEST, found)
    places = sorted(found)
    edges = [0, *places, series.size]
    return tuple(
        ChangePoint(at, _median(series[at:until]) - _median(series[since:at]), found[at])
        for since, at, until in zip(edges, places, edges[2:], strict=False)
    )


def _segment(
    series: Floats, offset: int, p: float, block: int, draws: int, depth: int, found: dict[int, float]
) -> None:
    place, gain = best_split(series)
    if not place or depth == 0:
        return
    blocks = np.array_split(np.arange(series.size), max(series.size // block, 1))
    random = np.random.default_rng((_SEED, offset, series.size))
    permuted = np.empty((draws, series.size))
    for row in permuted:
        row[:] = np.concatenate([series[blocks[at]] for at in random.permutation(len(blocks))])
    beyond = int((_gains(permuted, _LEAST).max(axis=1) >= gain * (1 - 1e-12)).sum())
    chance = (1 + beyond) / (1 + draws)
    if chance >= p:
        return
    found[offset + place] = chance
    _segment(series[:place], offset, p, block, draws, depth - 1, found)
    _segment(series[place:], offset + place, p, block, draws, depth - 1, found)


def _gains(rows: Floats, least: int) -> Floats:
    """Give the CUSUM of each split of each row: difference of the means, weighed by the counts, over the spread."""
    known = np.isfinite(rows)
    values = np.where(known, rows, 0.0)
    count, total = np.cumsum(known, axis=1), np.cumsum(values, axis=1)
    many, whole = count[:, -1:], total[:, -1:]
    spread = np.sqrt(np.maximum((values**2).sum(axis=1, keepdims=True) - whole**2 / np.maximum(many, 1), 0.0))
    left, right = count, many - count
    enough = (left >= least) & (right >= least) & (spread > 0)
    safe_left, safe_right = np.maximum(left, 1), np.maximum(right, 1)
    gap = np.abs(total / safe_left - (whole - total) / safe_right)
    gains = np.where(
        enough, gap * np.sqrt(safe_left * safe_right / np.maximum(many, 1)) / np.where(spread > 0, spread, 1), 0
    )
    # a split before slice k: the sums up to slice k - 1
    return np.concatenate((np.zeros((rows.shape[0], 1)), gains[:, :-1]), axis=1)


def _winsorised(series: Floats) -> Floats:
    """Hold outliers at the fences of Tukey's box plot: one wild slice is no change of level."""
    known = series[np.isfinite(series)]
    if known.size < 4:
        return series
    low, high = np.quantile(known, (0.25, 0.75))
    reach = 1.5 * (high - low)
    return np.clip(series, low - reach, high + reach) if reach > 0 else series


def _median(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else float("nan")
