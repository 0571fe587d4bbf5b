"""What a deploy or a setting did to requests at equal load, and whether the change of level lies where it was done."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.changepoints import change_points, gain_at
from tenfold.latency.equal_load import (
    COVERED,
    NOTHING,
    Cells,
    Loads,
    Shifted,
    Side,
    at_equal_load,
    expected_means,
    mean_at_equal_load,
)
from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.records import Floats, Interval, Mask, Pair
from tenfold.latency.server_changes import Moment
from tenfold.latency.slices import group_quantile

# Log that a median must have moved to matter, and that a tail must (it is noisier, and follows load).
LEAST, LEAST_TAIL = float(np.log(1.10)), float(np.log(1.25))
# The same where no load is common to both sides.
LEAST_UNLIKE = float(np.log(1.5))
# Wait at equal load: log from which it matters, and seconds as a share of the median TTFT before.
LEAST_QUEUE, _OF_TTFT = float(np.log(1.25)), 0.10
# Tokens a request that moved more than this make their own wait at equal numbers: steps 2 and 3, not a scheduler.
_SAME_WORK = 0.10
# Share of the touched replicas that must show half of the shift: a deploy does not pick one host.
_BROAD = 0.6
# A split at the moment must explain this much of what the best split does, one slice either way.
_AT_IT = 0.8
_ROWS = 20
# Share of the KV cache in use in the busiest hundredth of arrivals, from which its size can matter.
_FILLING = 0.5
# Log by which the same requests take more of it, so that less is left for prefixes long before it is full (I28: 1.5). A
# cache that broke moves this by 0.05 at most (I01 to I06).
_HALVED = float(np.log(2))
_UNKNOWN = Interval(float("nan"), float("nan"), float("nan"))


class Effect(NamedTuple):
    """What moved with a moment, at equal load.

    Args:
        prefill: Prompt residual.
        decode: Answer residual.
        queue: Log ratio of the mean wait, with its interval.
        kv: Log ratio of the mean share of the KV cache in use.
        queue_s: Mean wait before and after at equal load, in seconds.
        beside: Shift of prompt and answer residual of what ran without it at the same time; NaN: nothing did.
        accused: Measures that moved to the worse, by enough, everywhere and at the moment: ``prefill``, ``decode``,
            ``queue``, ``kv``, with ``tail`` behind where it is only the tail.
        distance: Slices from the moment to the change point of the first accused; NaN: none found.
        p: Chance of that change point.
    """

    prefill: Shifted
    decode: Shifted
    queue: Interval
    kv: Interval
    queue_s: tuple[float, float]
    beside: tuple[Interval, Interval]
    accused: tuple[str, ...]
    distance: float
    p: float

    @property
    def size(self) -> float:
        """Log of the largest accused shift."""
        values = {
            "prefill": self.prefill.median.mid,
            "decode": self.decode.median.mid,
            "queue": self.queue.mid,
            "kv": self.kv.mid,
            "prefill tail": self.prefill.tail.mid,
            "decode tail": self.decode.tail.mid,
        }
        return max((values[each] for each in self.accused), default=0.0)


def effect_of(pair: Pair, facts: Facts, loads: Loads, one: Moment) -> Effect:
    """Measure what moved with a moment.

    Args:
        pair: The windows.
        facts: What is known of them.
        loads: Cells of load.
        one: The moment.

    Returns:
        The effect.
    """
    before, after = facts.windows
    accused: list[str] = []
    shifts: list[Shifted] = []
    besides: list[Interval] = []
    distance, chance = float("nan"), float("nan")
    columns = (
        ("prefill", before.prefill_residual, after.prefill_residual, loads.prefill),
        ("decode", before.decode_residual, after.decode_residual, loads.decode),
    )
    for name, old, new, cells in columns:
        shifted, beside = _shifted(facts, old, new, cells, one)
        least = LEAST
        if shifted.covered < COVERED:
            # the change made the load: by lengths alone, and only what load seldom makes of a residual
            shifted, beside = _shifted(facts, old, new, loads.length, one)
            least = LEAST_UNLIKE
        shifts.append(shifted)
        besides.append(beside.median)
        for tail in (False, True):
            value = shifted.tail if tail else shifted.median
            if tail and (name in accused or value.mid < max(LEAST_TAIL, least)):
                continue
            control = beside.tail if tail else beside.median
            if not (value.low > 0 and value.mid >= least and _beyond(value, control)):
                continue
            level = 0.9 if tail else 0.5
            series = _series(facts, old, new, one, level)
            if _is_broad(facts, old, new, one, level, value.mid / 2) and _is_at(series, one.place):
                accused.append(f"{name} tail" if tail else name)
                distance, chance = _distance(series, one.place, distance, chance)
    queue, queue_s = _queue(pair, facts, loads.queue, one)
    waits = (pair.before.queue_s, pair.after.queue_s)
    if waits[0] is not None and waits[1] is not None and _queue_moved(pair, facts, one, queue, queue_s):
        series = _against(facts, (waits[0], waits[1]), _floor(pair), loads.queue, one)
        if _is_at(series, one.place):
            accused.append("queue")
            distance, chance = _distance(series, one.place, distance, chance)
    kv = _kv(pair, facts, loads.queue, one)
    # a pool that holds less is no harm while it is far from full and keeps as many prefixes
    held = (pair.before.kv, pair.after.kv)
    loses = _log_ratio(before.uncached[one.ground], after.uncached[one.rows]) >= LEAST
    if held[0] is not None and held[1] is not None and _fills(kv, held[1], loses=loses):
        series = _against(facts, (held[0], held[1]), 0.001, loads.queue, one)
        if _is_at(series, one.place):
            accused.append("kv")
            distance, chance = _distance(series, one.place, distance, chance)
    return Effect(shifts[0], shifts[1], queue, kv, queue_s, (besides[0], besides[1]), tuple(accused), distance, chance)


def _shifted(facts: Facts, old: Floats, new: Floats, cells: Cells, one: Moment) -> tuple[Shifted, Shifted]:
    """The touched rows against the ground, less what ran beside them did; and what that was."""
    ground = Side(old, one.ground, cells.before, facts.before.slice, 0)
    touched = at_equal_load(Side(new, one.rows, cells.after, facts.after.slice, 1), ground)
    if one.beside.sum() < 10 * _ROWS:
        return touched, NOTHING
    beside = at_equal_load(Side(new, one.beside, cells.after, facts.after.slice, 1), ground)
    return touched, beside


def _beyond(value: Interval, control: Interval) -> bool:
    """Difference in differences: more than those without the change moved, their intervals apart."""
    if not np.isfinite(control.mid):
        return True
    spread = np.hypot(value.mid - value.low, control.high - control.mid)
    gap = value.mid - control.mid
    return bool(gap > spread and gap >= LEAST)


def _is_broad(facts: Facts, old: Floats, new: Floats, one: Moment, level: float, least: float) -> bool:
    many = int(max(each.replica.max(initial=0) for each in facts.windows)) + 1
    after = group_quantile(np.where(one.rows, new, np.nan), facts.after.replica, many, level, _ROWS)
    before = group_quantile(np.where(one.ground, old, np.nan), facts.before.replica, many, level, _ROWS)
    base = np.where(np.isfinite(before), before, np.nanquantile(old[one.ground], level))
    moved = (after - base)[np.isfinite(after)]
    return moved.size < 2 or float((moved >= least).mean()) >= _BROAD


def _series(facts: Facts, old: Floats, new: Floats, one: Moment, level: float) -> Floats:
    """Quantile by slice of what the touched requests' like had before, and of the touched ones from the moment on."""
    later = _path(facts, one)
    before = group_quantile(np.where(one.ground, old, np.nan), facts.before.slice, SLICES, level, 5)
    after = group_quantile(np.where(later, new, np.nan), facts.after.slice, SLICES, level, 5)
    return np.concatenate([before, after])


def _path(facts: Facts, one: Moment) -> Mask:
    """Rows after: the touched ones, and before the moment those of the same replicas, else all."""
    first = one.place - SLICES
    if first <= 0:
        return one.rows
    early = facts.after.slice < first
    same = early & np.isin(facts.after.replica, np.unique(facts.after.replica[one.rows]))
    return one.rows | (same if same.sum() >= 10 * _ROWS else early)


def _is_at(series: Floats, place: int) -> bool:
    return gain_at(series, place) >= _AT_IT


def _distance(series: Floats, place: int, distance: float, chance: float) -> tuple[float, float]:
    if np.isfinite(distance):
        return distance, chance
    near = min(change_points(series), key=lambda each: abs(each.place - place), default=None)
    return (distance, chance) if near is None else (float(abs(near.place - place)), near.p)


def _queue(pair: Pair, facts: Facts, cells: Cells, one: Moment) -> tuple[Interval, tuple[float, float]]:
    old, new = pair.before.queue_s, pair.after.queue_s
    if old is None or new is None:
        return _UNKNOWN, (float("nan"), float("nan"))
    interval, means, _ = mean_at_equal_load(
        Side(new, one.rows, cells.after, facts.after.slice, 1),
        Side(old, one.ground, cells.before, facts.before.slice, 0),
        _floor(pair),
    )
    return interval, means


def _floor(pair: Pair) -> float:
    """Seconds of wait below which there is nothing to compare: 1 % of the median TTFT before."""
    return 0.01 * float(np.nanmedian(pair.before.ttft_s))


def _queue_moved(pair: Pair, facts: Facts, one: Moment, queue: Interval, means: tuple[float, float]) -> bool:
    if not (queue.low > 0 and queue.mid >= LEAST_QUEUE):
        return False
    if means[1] - means[0] < _OF_TTFT * float(np.nanmedian(pair.before.ttft_s)):
        return False
    return work_shift(pair, facts, one.rows, one.ground) <= _SAME_WORK


def _kv(pair: Pair, facts: Facts, cells: Cells, one: Moment) -> Interval:
    old, new = pair.before.kv, pair.after.kv
    if old is None or new is None or _log_of_lengths(pair, one.rows, one.ground) > _SAME_WORK:
        return _UNKNOWN
    touched = Side(new, one.rows, cells.after, facts.after.slice, 1)
    return mean_at_equal_load(touched, Side(old, one.ground, cells.before, facts.before.slice, 0), 0.001)[0]


def _fills(kv: Interval, share: Floats, *, loses: bool) -> bool:
    full = float(np.nanquantile(share, 0.99)) if np.isfinite(share).any() else 0.0
    is_harm = full >= _FILLING or (loses and kv.low >= _HALVED)
    return kv.low > 0 and kv.mid >= LEAST_QUEUE and is_harm


def work_shift(pair: Pair, facts: Facts, rows: Mask, ground: Mask) -> float:
    """Give how far tokens a request moved: the largest log of uncached, input and output, either way.

    Args:
        pair: The windows.
        facts: What is known of them.
        rows: Requests after.
        ground: Requests before.

    Returns:
        The log.
    """
    uncached = _log_means(facts.before.uncached[ground], facts.after.uncached[rows])
    return max(uncached, _log_of_lengths(pair, rows, ground))


def _log_of_lengths(pair: Pair, rows: Mask, ground: Mask) -> float:
    return max(
        _log_means(pair.before.input[ground], pair.after.input[rows]),
        _log_means(pair.before.output[ground], pair.after.output[rows]),
    )


def _log_means(old: Floats, new: Floats) -> float:
    return abs(_log_ratio(old, new))


def _log_ratio(old: Floats, new: Floats) -> float:
    means = [float(np.nanmean(each)) if np.isfinite(each).any() else 0.0 for each in (old, new)]
    return float(np.log(means[1] / means[0])) if min(means) > 0 else 0.0


def _against(facts: Facts, columns: tuple[Floats, Floats], floor: float, cells: Cells, one: Moment) -> Floats:
    """Log of the mean of a column by slice over what its load gave before."""
    ground = Side(columns[0], one.ground, cells.before, facts.before.slice, 0)
    parts: list[Floats] = []
    for values, mask, cell, slices in (
        (columns[0], one.ground, cells.before, facts.before.slice),
        (columns[1], _path(facts, one), cells.after, facts.after.slice),
    ):
        expected = expected_means(ground, cell)
        known = mask & np.isfinite(expected) & np.isfinite(values)
        sums = [np.bincount(slices[known], each[known], SLICES) for each in (values, expected)]
        count = np.bincount(slices[known], minlength=SLICES)
        safe = np.maximum(count, 1)
        parts.append(np.where(count >= 5, np.log((sums[0] / safe + floor) / (sums[1] / safe + floor)), np.nan))
    return np.concatenate(parts)
