"""Statistics that the steps share: requests come in sessions and bursts, so every interval is by clusters.

Ratios are linearised (delta method): a window's uncertainty is that of its clusters' sums, with Student's t at degrees
of freedom that fall as their kurtosis grows (2 n / (kurtosis - 1), n for normal ones): one burst alone proves little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tenfold.latency.records import Codes, Floats, Interval, Mask, Window

# Chance that an interval of one test misses, where a step says nothing else.
ALPHA = 0.01
# Pieces of a window in which an onset is looked for.
_PIECES = 120
# Requests before that a cell needs, so that its rate is one.
_CELL = 4


class Estimate(NamedTuple):
    """A ratio or mean with its uncertainty.

    Args:
        value: The value.
        variance: Its variance.
        freedom: Degrees of freedom of the variance.
    """

    value: float
    variance: float
    freedom: float


def t_quantile(alpha: float, freedom: float) -> float:
    """Give how many standard errors a two-sided interval spans either way.

    Args:
        alpha: Chance to miss.
        freedom: Degrees of freedom; below 3 counts as 3.

    Returns:
        Quantile of Student's t.

    Source:
        Abramowitz and Stegun, 26.7.5; within 1 % from 3 degrees of freedom on at the 99 % level.
    """
    z, v = NormalDist().inv_cdf(1 - alpha / 2), max(freedom, 3.0)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )


def spread(influence: Floats, *clusters: Codes) -> tuple[float, float]:
    """Give the variance of a sum of what requests contribute to an error, by the clustering that makes it largest.

    Args:
        influence: Contribution of each request to the error; sums to about zero.
        clusters: One or more clusterings, a code a request from -1 on.

    Returns:
        Variance and its degrees of freedom.
    """
    best = (0.0, 3.0)
    for codes in clusters:
        sums = np.bincount(codes + 1, influence)
        held = int(np.count_nonzero(np.bincount(codes + 1)))
        if held < 2:
            return math.inf, 3.0
        squares = sums * sums
        total = float(squares.sum())
        if total * held / (held - 1) > best[0]:
            peaked = held * float(((squares / total) ** 2).sum())
            best = (total * held / (held - 1), min(2 * held / max(peaked - 1, 1e-9), held - 1.0))
    return best


def ratio(numerator: Floats | Mask, denominator: Floats | Mask, *clusters: Codes) -> Estimate:
    """Estimate a ratio of sums, a mean or a share among them.

    Args:
        numerator: Of each request.
        denominator: Of each request; ones make it a mean.
        clusters: As for ``spread``.

    Returns:
        The estimate; NaN where the denominator sums to zero.
    """
    below = float(np.sum(denominator))
    if below <= 0:
        return Estimate(math.nan, math.inf, 3.0)
    value = float(np.sum(numerator)) / below
    variance, freedom = spread((numerator - value * np.asarray(denominator, float)) / below, *clusters)
    return Estimate(value, variance, freedom)


def long_blocks(slices: Codes) -> Codes:
    """Join slices of time, for what lasts longer than one: a queue that a burst left behind.

    Args:
        slices: Slices.

    Returns:
        Blocks of four slices.
    """
    return slices // 4


def tail_mean(values: Floats, by: Floats, quantile: float, *clusters: Codes) -> Estimate:
    """Estimate the mean of a column over the requests whose other column lies above a quantile of its own.

    Args:
        values: What is averaged.
        by: What makes the tail; rows where it is NaN are left out.
        quantile: Where the tail begins.
        clusters: As for ``spread``.

    Returns:
        The estimate, the uncertainty of where the tail begins in it.
    """
    known = np.isfinite(by) & np.isfinite(values)
    if known.sum() < 20:
        return Estimate(math.nan, math.inf, 3.0)
    value, tail = values[known], by[known]
    start, lower, upper = np.quantile(tail, [quantile, 1.25 * quantile - 0.25, 0.75 * quantile + 0.25])
    inside = tail > start
    if not inside.any():
        inside = tail >= start
    share = float(inside.mean())
    mean = float(value[inside].mean())
    # what a request at the brink has: moving the brink adds or drops such ones
    brink = float(value[(tail >= lower) & (tail <= upper)].mean())
    influence = ((value - brink) * inside / share - (mean - brink)) / value.size
    variance, freedom = spread(influence, *(codes[known] for codes in clusters))
    return Estimate(mean, variance, freedom)


def change(before: Estimate, after: Estimate, alpha: float = ALPHA) -> Interval:
    """Give after less before.

    Args:
        before: Of the window before.
        after: Of the window after.
        alpha: Chance that the interval misses.

    Returns:
        The difference with its interval.
    """
    return _interval(after.value - before.value, before, after, 1.0, 1.0, alpha)


def around(estimate: Estimate, alpha: float = ALPHA) -> Interval:
    """Give an estimate with its interval.

    Args:
        estimate: The estimate.
        alpha: Chance that the interval misses.

    Returns:
        The interval.
    """
    return _interval(estimate.value, estimate, Estimate(0.0, 0.0, 3.0), 1.0, 1.0, alpha)


def log_change(before: Estimate, after: Estimate, alpha: float = ALPHA, floor: float = 0.0) -> Interval:
    """Give the log of after over before: for what grows by factors, as waits do.

    Args:
        before: Of the window before, positive.
        after: Of the window after, positive.
        alpha: Chance that the interval misses.
        floor: What a smaller value of before counts as.

    Returns:
        The log ratio with its interval; NaN where one is not positive.
    """
    if before.value < floor:
        before = before._replace(value=floor)
    if not (before.value > 0 and after.value > 0):
        return Interval(math.nan, math.nan, math.nan)
    return _interval(math.log(after.value / before.value), before, after, 1 / before.value, 1 / after.value, alpha)


def _interval(mid: float, before: Estimate, after: Estimate, one: float, two: float, alpha: float) -> Interval:
    parts = (before.variance * one * one, after.variance * two * two)
    total = sum(parts)
    if not math.isfinite(total):
        return Interval(-math.inf, mid, math.inf)
    if total == 0:
        return Interval(mid, mid, mid)
    # Welch and Satterthwaite
    each = zip(parts, (before, after), strict=True)
    freedom = 1 / sum((part / total) ** 2 / max(estimate.freedom, 1.0) for part, estimate in each)
    half = t_quantile(alpha, freedom) * math.sqrt(total)
    return Interval(mid - half, mid, mid + half)


@dataclass(frozen=True, slots=True, eq=False)
class Standardised:
    """A ratio of the window after against what the same cells of the window before would give: no mix in it.

    Args:
        before: Numerator, denominator and cell of each request before.
        after: The same of each request after.
        rate: Ratio before of each cell; NaN where too few requests of it were there.
        clusters: Clusterings of both windows.
    """

    before: tuple[Floats, Floats, Codes]
    after: tuple[Floats, Floats, Codes]
    rate: Floats
    clusters: tuple[tuple[Codes, ...], tuple[Codes, ...]]

    @classmethod
    def of(
        cls,
        before: tuple[Floats, Floats, Codes],
        after: tuple[Floats, Floats, Codes],
        clusters: tuple[tuple[Codes, ...], tuple[Codes, ...]],
    ) -> Standardised:
        """Take the rates of the cells.

        Args:
            before: Numerator, denominator and cell (from 0) of each request before.
            after: The same of each request after.
            clusters: One or more clusterings of either window, as for ``spread``.

        Returns:
            The standard.
        """
        cells = int(max(before[2].max(initial=0), after[2].max(initial=0))) + 1
        top, below, rows = (np.bincount(before[2], weight, cells) for weight in (before[0], before[1], None))
        known = (rows >= _CELL) & (below > 0)
        rate = np.where(known, top / np.where(known, below, 1.0), np.nan)
        return cls(before, after, rate, clusters)

    @property
    def common(self) -> Mask:
        """Requests after whose cell was there before."""
        return np.isfinite(self.rate)[self.after[2]]

    @property
    def excess(self) -> Floats:
        """Numerator of each request after beyond what its cell gave before; 0 where that is not known."""
        top, below, cell = self.after
        return np.where(self.common, top - np.nan_to_num(self.rate)[cell] * below, 0.0)

    def expected(self, rows: Mask | None = None) -> float:
        """Give the ratio that the cells of some requests after had before.

        Args:
            rows: The requests; None: all.

        Returns:
            The ratio; NaN where none is known.
        """
        chosen = self.common if rows is None else self.common & rows
        _, below, cell = self.after
        total = float(below[chosen].sum())
        return float((self.rate[cell[chosen]] * below[chosen]).sum()) / total if total > 0 else math.nan

    def change(self, rows: Mask | None = None, alpha: float = ALPHA) -> Interval:
        """Give how far the ratio of some requests after is from that of the same cells before.

        Args:
            rows: The requests; None: all.
            alpha: Chance that the interval misses.

        Returns:
            The difference with its interval; NaN where no cell is known.
        """
        chosen = self.common if rows is None else self.common & rows
        _, below, cell = self.after
        weight = np.where(chosen, below, 0.0)
        total = float(weight.sum())
        if total <= 0:
            return Interval(math.nan, math.nan, math.nan)
        excess = np.where(chosen, self.excess, 0.0)
        mid = float(excess.sum()) / total
        new = Estimate(mid, *spread((excess - mid * weight) / total, *self.clusters[1]))
        old_top, old_below, old_cell = self.before
        cells = self.rate.size
        known = np.isfinite(self.rate)
        base, count = np.bincount(old_cell, old_below, cells), np.bincount(old_cell, minlength=cells)
        wanted = np.bincount(cell, weight, cells) / np.where(known, base, 1.0) * known
        # cells of few requests fit themselves: n / (n - 1)
        wanted *= np.sqrt(count / np.maximum(count - 1, 1))
        error = wanted[old_cell] * (old_top - np.nan_to_num(self.rate)[old_cell] * old_below) / total
        old = Estimate(0.0, *spread(error, *self.clusters[0]))
        return change(old, new, alpha)


def dense(*columns: Codes) -> Codes:
    """Number the combinations of codes.

    Args:
        columns: Codes from -1 on, a place a row.

    Returns:
        A number for each combination, from 0.
    """
    out = np.zeros(columns[0].size, np.int64)
    for column in columns:
        code = column.astype(np.int64) + 1
        out = out * (int(code.max(initial=0)) + 1) + code
        out = np.unique(out, return_inverse=True)[1]
    return out.astype(np.int32)


def ks_distance(one: Floats, other: Floats) -> float:
    """Give the largest distance between two distributions (Kolmogorov-Smirnov).

    Args:
        one: A sample.
        other: Another.

    Returns:
        0 to 1; NaN where one is empty.
    """
    if not one.size or not other.size:
        return math.nan
    first, second = np.sort(one), np.sort(other)
    at = np.concatenate([first, second])
    below = [np.searchsorted(sample, at, side="right") / sample.size for sample in (first, second)]
    return float(np.abs(below[0] - below[1]).max())


def onset(windows: tuple[Window, Window], tops: tuple[Floats, Floats], belows: tuple[Floats, Floats]) -> float | None:
    """Find when a ratio left what it was before: the start of the stretch of time that holds most of the change.

    Args:
        windows: Both windows.
        tops: Numerator of each request in them.
        belows: Denominator of each.

    Returns:
        Seconds since 1970; None where nothing changed.

    Formula:
        Largest sum of consecutive pieces of (top - level x below). The level is a fifth of the way from the window
        before to the most changed tenth of the pieces after, or beyond the scatter of before (2 deviations) if that is
        more, up to half way: what grows is dated by its beginning.
    """
    scores: list[Floats] = []
    starts: list[Floats] = []
    for window, top, below in zip(windows, tops, belows, strict=True):
        span = max(window.until_s - window.since_s, 1e-9)
        piece = np.clip((window.ts_s - window.since_s) / span * _PIECES, 0, _PIECES - 1).astype(np.int64)
        scores.append(np.stack([np.bincount(piece, each, _PIECES).astype(np.float64) for each in (top, below)]))
        starts.append(window.since_s + np.arange(_PIECES) * span / _PIECES)
    old, new = scores
    if old[1].sum() <= 0 or new[1].sum() <= 0:
        return None
    base = float(old[0].sum() / old[1].sum())
    rates = new[0] / np.where(new[1] > 0, new[1], np.nan)
    away = float(new[0].sum() / new[1].sum()) - base
    if away == 0:
        return None
    far = float(np.nanquantile(rates, 0.9 if away > 0 else 0.1))
    scatter = 2 * float(np.sqrt((old[1] * (old[0] / np.maximum(old[1], 1e-12) - base) ** 2).sum() / old[1].sum()))
    level = base + math.copysign(min(max(0.2 * abs(far - base), scatter), 0.5 * abs(far - base)), away)
    pieces = np.concatenate(scores, axis=1)
    sums = np.concatenate(([0.0], np.cumsum(math.copysign(1.0, away) * (pieces[0] - level * pieces[1]))))
    lowest = np.minimum.accumulate(sums)
    end = int(np.argmax(sums - lowest))
    if end == 0:
        return None
    begin = int(np.flatnonzero(sums[:end] == lowest[end])[-1])
    return float(np.concatenate(starts)[begin])
