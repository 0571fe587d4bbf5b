"""Hosts against themselves and against each other: effects on residuals, with p values by permuting blocks of time.

A replica's residuals, median by slice and mean by block of slices, less what its peers did in the same block: what is
common to all of them (a deploy, the load) drops out, and so does what the replica always was. Where the load moves a
residual still, its slope within replicas is taken out as well. Source: serving.md 12, step 6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.changepoints import BLOCK, change_points
from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.host_cells import load_cells, residual_cells
from tenfold.latency.records import Floats, Interval, Mask
from tenfold.latency.slices import benjamini_hochberg
from tenfold.latency.statistics import Estimate, change

_BLOCKS = SLICES // BLOCK
# Blocks that a replica needs in a window.
_LEAST = 3
# Permuted statistics in all (draws x replicas): the least p value is one over it, below 0.01 by 200 tests.
_POOL = 100_000
_SEED = 20260806
# The slope on load counts from so many standard errors.
_SLOPE_T = 3.0
# When a replica began to be slow is asked of those that may be.
_LIKELY = 0.01
_HALVES = (slice(0, _BLOCKS), slice(_BLOCKS, 2 * _BLOCKS))


class HostEffect(NamedTuple):
    """What a replica's residuals did.

    Args:
        effect: Mean log from ``since`` on less before, less that of its peers, with its 99 % interval.
        own: Mean log after less before of the replica by itself.
        p: One-sided chance of so slow a replica among blocks in any order.
        q: False discovery rate over replicas and components; filled by ``host_effects``.
        since: Slice of the window after from which it differs; 0: from its start.
    """

    effect: Interval
    own: float
    p: float
    q: float
    since: int


def host_effects(facts: Facts, known: tuple[Mask, Mask], many: int, component: str) -> list[HostEffect]:
    """Measure every replica on one component.

    Args:
        facts: What is known of both windows.
        known: Requests that count (``known_rows``).
        many: Replicas.
        component: ``prefill`` or ``decode``.

    Returns:
        An effect a replica; NaN where it was not there in both windows.
    """
    cells = np.concatenate(residual_cells(facts, known, many, component), axis=1)
    loads = np.concatenate(load_cells(facts, many, component), axis=1)
    blocks, load = _by_block(cells), _by_block(loads)
    enough = np.isfinite(blocks[:, :_BLOCKS]).sum(axis=1) >= _LEAST
    enough &= np.isfinite(blocks[:, _BLOCKS:]).sum(axis=1) >= _LEAST
    blocks[~enough], cells[~enough] = np.nan, np.nan
    slope = _slope(blocks, load)
    blocks, cells = blocks - slope * _from_base(load, _BLOCKS), cells - slope * _from_base(loads, SLICES)
    own = _from_base(blocks, _BLOCKS)
    apart = own - _peers(own)
    statistic = _welch(apart, np.arange(2 * _BLOCKS)[None, :])
    random = np.random.default_rng((_SEED, many))
    draws = int(np.clip(_POOL // max(int(enough.sum()), 1), 1000, 10_000))
    orders = random.permuted(np.tile(np.arange(2 * _BLOCKS), (draws, 1)), axis=1)
    permuted: Floats = np.sort(_welch(apart, orders).ravel())
    permuted = permuted[np.isfinite(permuted)]
    mine: Floats = np.nan_to_num(statistic[0], nan=np.inf)
    below = np.searchsorted(permuted, mine)
    chance = np.where(enough, 1.0 - below / (1.0 + permuted.size), np.nan)
    fine = _from_base(cells, SLICES)
    fine = fine - _peers(fine)
    out: list[HostEffect] = []
    for replica in range(many):
        since = _since(fine[replica]) if chance[replica] < _LIKELY else 0
        effect = _effect(apart[replica], since)
        rise = float(np.nanmean(own[replica, _BLOCKS:])) if enough[replica] else float("nan")
        out.append(HostEffect(effect, rise, float(chance[replica]), float("nan"), since))
    return out


def with_rates(*components: list[HostEffect]) -> list[list[HostEffect]]:
    """Turn the chances of all replicas and components into false discovery rates.

    Args:
        components: Effects of the replicas, a list a component.

    Returns:
        The same with ``q``.
    """
    chances = np.array([[one.p for one in effects] for effects in components])
    rates = benjamini_hochberg(chances.ravel()).reshape(chances.shape)
    return [
        [one._replace(q=float(q)) for one, q in zip(effects, row, strict=True)]
        for effects, row in zip(components, rates, strict=True)
    ]


def _by_block(cells: Floats) -> Floats:
    parts = cells.reshape(cells.shape[0], -1, BLOCK)
    known = np.isfinite(parts)
    counts: Floats = known.sum(axis=2).astype(np.float64)
    sums: Floats = np.where(known, parts, 0.0).sum(axis=2)
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


def _from_base(values: Floats, before: int) -> Floats:
    """Each replica less its own mean in the window before."""
    known = np.isfinite(values[:, :before])
    counts: Floats = known.sum(axis=1).astype(np.float64)
    base = np.divide(
        np.where(known, values[:, :before], 0.0).sum(axis=1),
        counts,
        out=np.full(counts.size, np.nan),
        where=counts > 0,
    )
    return values - base[:, None]


def _peers(own: Floats) -> Floats:
    """Median of the other replicas in each block; of all where they are many."""
    there = int(np.isfinite(own).any(axis=1).sum())
    out = np.full(own.shape, np.nan)
    if there < 2:
        return np.zeros(own.shape)
    if there > 24:
        return np.broadcast_to(_median(own), own.shape)
    for replica in np.flatnonzero(np.isfinite(own).any(axis=1)):
        out[replica] = _median(np.delete(own, replica, axis=0))
    return out


def _median(rows: Floats) -> Floats:
    out = np.full(rows.shape[1], np.nan)
    some = np.isfinite(rows).any(axis=0)
    out[some] = np.nanmedian(rows[:, some], axis=0)
    return out


def _slope(blocks: Floats, load: Floats) -> float:
    """Slope of residuals on load within replicas, windows and blocks; 0 where it is no clear one."""
    known = np.isfinite(blocks) & np.isfinite(load)
    y, x = (
        np.concatenate([_within(np.where(known, each, np.nan)[:, part]) for part in _HALVES]) for each in (blocks, load)
    )
    square = float((x * x).sum())
    if square <= 1e-9 or y.size < 12:
        return 0.0
    slope = float((x * y).sum()) / square
    error = float(np.sqrt(((y - slope * x) ** 2).sum() / (y.size - 2) / square))
    return slope if error == 0 or abs(slope) >= _SLOPE_T * error else 0.0


def _within(rows: Floats) -> Floats:
    """Values less the mean of their row, of rows with two or more."""
    rows = rows[np.isfinite(rows).sum(axis=1) >= 2]
    apart = rows - np.nanmean(rows, axis=1, keepdims=True)
    return apart[np.isfinite(apart)]


def _welch(apart: Floats, orders: np.ndarray) -> Floats:
    """Difference of the means of the later and the earlier half of each order of the blocks, studentised."""
    known = np.isfinite(apart)
    values = np.where(known, apart, 0.0)
    late = np.zeros((orders.shape[0], apart.shape[1]))
    np.put_along_axis(late, orders[:, _BLOCKS:], 1.0, axis=1)
    means: list[Floats] = []
    variances: list[Floats] = []
    counts: list[Floats] = []
    for half in (1.0 - late, late):
        count = half @ known.T
        safe = np.maximum(count, 1)
        mean = (half @ values.T) / safe
        square = (half @ (values**2).T) / safe - mean**2
        means.append(mean)
        counts.append(count)
        variances.append(np.maximum(square, 0.0) / np.maximum(count - 1, 1))
    gap = means[1] - means[0]
    error = np.sqrt(variances[0] + variances[1])
    enough = (counts[0] >= 2) & (counts[1] >= 2)
    # a floor as of SAM: a replica whose blocks happen to agree is no proof by itself
    floor = float(np.median(error[enough])) / 2 if enough.any() else 0.0
    gap = np.where(enough, gap, np.nan)
    return gap / np.maximum(error + floor, 1e-9)


def _effect(apart: Floats, since: int) -> Interval:
    """Mean of a replica's later blocks, from the slice on at which it began, less that of its earlier ones."""
    halves = (apart[:_BLOCKS], apart[_BLOCKS + (since + BLOCK - 1) // BLOCK :])
    halves = (halves[0], halves[1] if np.isfinite(halves[1]).sum() >= 2 else apart[_BLOCKS:])
    if min(int(np.isfinite(each).sum()) for each in halves) < 2:
        return Interval(float("nan"), float("nan"), float("nan"))
    known = [each[np.isfinite(each)] for each in halves]
    means = [Estimate(float(each.mean()), float(each.var(ddof=1)) / each.size, each.size - 1.0) for each in known]
    return change(means[0], means[1])


def _since(series: Floats) -> int:
    """Slice of the window after from which a replica is slower; 0 where it is so from the start."""
    rises = [one for one in change_points(series) if one.size > 0]
    inside = [one for one in rises if one.place > SLICES + 1]
    if not inside or any(abs(one.place - SLICES) <= 1 for one in rises):
        return 0
    return max(inside, key=lambda one: one.size).place - SLICES
