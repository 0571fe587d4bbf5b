"""Both windows at equal load: the same requests under way, the same prompt tokens ahead, alike requests.

What follows from load drops out when each window's requests are compared within cells of load that both have; what a
scheduler, a version or a limit does stays. Weights give the touched requests the load of the ground they are compared
with; intervals are by bootstrap over slices of time.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from tenfold.latency.facts import SLICES, Derived, Facts
from tenfold.latency.records import Floats, Interval, Mask, Pair, Window
from tenfold.latency.slices import from_draws
from tenfold.latency.tails import draws_of

# Requests that a cell of load needs on either side.
_CELL = 5
# Share of the touched requests that must lie in common cells; below, the loads are too unlike to compare.
COVERED = 0.2
# Requests under way are told apart one by one up to here, then by 3 %: waiting grows steeply near capacity.
_ONE_BY_ONE = 64
_STEP = np.log(1.03)
# Bins of values in which weighted quantiles of all bootstrap draws are read.
_BINS = 512
_SAMPLE = 200_000


class Cells(NamedTuple):
    """Cells of load and likeness of each request, -1 where unknown.

    Args:
        before: Of the window before.
        after: Of the window after.
    """

    before: np.ndarray
    after: np.ndarray


class Loads(NamedTuple):
    """Cells by what is compared.

    Args:
        queue: Requests under way (finely) and prompt tokens ahead.
        prefill: Requests under way, prompt tokens ahead and the prompt's own uncached tokens.
        decode: Answers being written beside it and prompt tokens a second beside it.
        length: The prompt's own uncached tokens alone, where the change itself makes the load.
    """

    queue: Cells
    prefill: Cells
    decode: Cells
    length: Cells


class Side(NamedTuple):
    """Rows of one side of a comparison.

    Args:
        values: Of its window.
        rows: Which of them count.
        cells: Cells of its window.
        slices: Slices of its window.
        stream: Sequence of bootstrap draws of its window.
    """

    values: Floats
    rows: Mask
    cells: np.ndarray
    slices: np.ndarray
    stream: int


class Shifted(NamedTuple):
    """How the touched rows differ from the ground at equal load, as logs.

    Args:
        median: Of the median, with its interval.
        tail: Of the tail (the 0.9 quantile), with its interval.
        covered: Share of the touched rows in common cells.
    """

    median: Interval
    tail: Interval
    covered: float


_UNKNOWN = Interval(float("nan"), float("nan"), float("nan"))
NOTHING = Shifted(_UNKNOWN, _UNKNOWN, 0.0)
TAIL = 0.9


def pending_tokens(window: Window, derived: Derived) -> Floats:
    """Count uncached prompt tokens of others on its replica that had arrived and had no first token yet.

    Args:
        window: The window.
        derived: Its derived columns.

    Returns:
        Tokens at each request's arrival.
    """
    out = np.zeros(window.size)
    order = np.argsort(derived.replica, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(derived.replica[order])) + 1):
        known = rows[np.isfinite(window.ttft_s[rows])]
        if not known.size:
            continue
        tokens = np.nan_to_num(derived.uncached[known])
        first = window.ts_s[known] + window.ttft_s[known]
        late = np.argsort(first, kind="stable")
        arrived = np.concatenate(([0.0], np.cumsum(tokens)))
        answered = np.concatenate(([0.0], np.cumsum(tokens[late])))
        at = window.ts_s[rows]
        out[rows] = np.maximum(
            arrived[np.searchsorted(window.ts_s[known], at, side="left")]
            - answered[np.searchsorted(first[late], at, side="right")],
            0.0,
        )
    return out


def loads_of(pair: Pair, facts: Facts) -> Loads:
    """Put every request into its cells.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        The cells.
    """
    under = [one.in_flight for one in facts.windows]
    pending = [pending_tokens(window, one) for window, one in zip(pair.windows, facts.windows, strict=True)]
    ahead = _banded(pending, (0.5,))
    fine = [_fine(each) for each in under]
    coarse = _banded(under, tuple(np.arange(1, 8) / 8))
    length = [np.floor(2 * np.log2(np.maximum(np.nan_to_num(one.uncached), 0) + 1)) for one in facts.windows]
    beside = _banded([one.in_flight_decode for one in facts.windows], tuple(np.arange(1, 8) / 8))
    rate = _banded([one.between for one in facts.windows], (0.5, 0.8))
    return Loads(
        queue=_joined(fine, ahead),
        prefill=_joined(coarse, ahead, length),
        decode=_joined(beside, rate),
        length=_joined(length),
    )


def at_equal_load(touched: Side, ground: Side, tail: float = TAIL) -> Shifted:
    """Compare rows with a ground, as if they had its load.

    Args:
        touched: The rows.
        ground: What they are compared with.
        tail: Quantile that is the tail.

    Returns:
        The shift; NaN where their loads are too unlike.
    """
    weights, rows, there, covered = _matched(touched, ground)
    if covered < COVERED:
        return NOTHING._replace(covered=covered)
    sample = np.concatenate([_thin(touched.values[rows]), _thin(ground.values[there])])
    edges = np.unique(np.quantile(sample, np.linspace(0, 1, _BINS + 1)))
    if edges.size < 2:
        return Shifted(Interval(0.0, 0.0, 0.0), Interval(0.0, 0.0, 0.0), covered)
    sides: list[Floats] = []
    for side, mask, weight in ((touched, rows, weights[rows]), (ground, there, np.ones(int(there.sum())))):
        place = np.clip(np.searchsorted(edges, side.values[mask], side="right") - 1, 0, edges.size - 2)
        held = np.bincount(
            side.slices[mask].astype(np.int64) * (edges.size - 1) + place, weight, SLICES * (edges.size - 1)
        )
        table = held.reshape(SLICES, -1)
        sides.append(np.concatenate([table.sum(axis=0)[None, :], _draws(side.stream) @ table]))
    found: list[Interval] = []
    for q in (0.5, tail):
        gap: Floats = _read(sides[0], edges, q) - _read(sides[1], edges, q)
        found.append(from_draws(float(gap[0]), gap[1:]))
    return Shifted(found[0], found[1], covered)


def mean_at_equal_load(touched: Side, ground: Side, floor: float) -> tuple[Interval, tuple[float, float], float]:
    """Compare means, as logs, as if the rows had the ground's load.

    Args:
        touched: The rows.
        ground: What they are compared with.
        floor: Added to both means: below it there is nothing to compare.

    Returns:
        Log of the ratio with its interval, both means (ground, touched), share of the touched rows in common cells.
    """
    weights, rows, there, covered = _matched(touched, ground)
    if covered < COVERED:
        return _UNKNOWN, (float("nan"), float("nan")), covered
    means: list[Floats] = []
    for side, mask, weight in ((touched, rows, weights[rows]), (ground, there, np.ones(int(there.sum())))):
        total = np.bincount(side.slices[mask], weight * side.values[mask], SLICES)
        count = np.bincount(side.slices[mask], weight, SLICES)
        drawn = np.concatenate([np.ones((1, SLICES)), _draws(side.stream)])
        below = drawn @ count
        means.append(np.divide(drawn @ total, below, out=np.full(below.size, np.nan), where=below > 0))
    gap: Floats = np.log((means[0] + floor) / (means[1] + floor))
    return from_draws(float(gap[0]), gap[1:]), (float(means[1][0]), float(means[0][0])), covered


def expected_means(ground: Side, cells: np.ndarray) -> Floats:
    """Give each row the mean of its cell on the ground; NaN where the ground has too few rows in it.

    Args:
        ground: The ground.
        cells: Cells of the rows.

    Returns:
        A value a row.
    """
    rows = ground.rows & np.isfinite(ground.values) & (ground.cells >= 0)
    count = int(max(ground.cells.max(initial=-1), cells.max(initial=-1))) + 1
    many = np.bincount(ground.cells[rows], minlength=count)
    means = np.divide(
        np.bincount(ground.cells[rows], ground.values[rows], count),
        many,
        out=np.full(count, np.nan),
        where=many >= _CELL,
    )
    return np.where(cells >= 0, means[cells], np.nan)


@cache
def _draws(stream: int) -> Floats:
    return draws_of(SLICES, stream=stream)


def _matched(touched: Side, ground: Side) -> tuple[Floats, Mask, Mask, float]:
    sides = [side.rows & np.isfinite(side.values) & (side.cells >= 0) for side in (touched, ground)]
    if not sides[0].any() or not sides[1].any():
        return np.zeros(touched.rows.size), sides[0], sides[1], 0.0
    count = int(max(touched.cells.max(), ground.cells.max())) + 1
    new, old = (
        np.bincount(side.cells[mask], minlength=count) for side, mask in zip((touched, ground), sides, strict=True)
    )
    common = (new >= _CELL) & (old >= _CELL)
    covered = float(new[common].sum() / max(new.sum(), 1))
    factor = np.divide(old, new, out=np.zeros(count), where=common)
    rows, there = sides[0] & common[touched.cells], sides[1] & common[ground.cells]
    return np.where(rows, factor[touched.cells], 0.0), rows, there, covered


def _read(tables: Floats, edges: Floats, q: float) -> Floats:
    """Weighted quantile of each row of a table of counts by bin, by linear interpolation within the bin."""
    reached: Floats = np.cumsum(tables, axis=1)
    wanted = q * reached[:, -1:]
    place = np.minimum((reached < wanted).sum(axis=1), tables.shape[1] - 1)
    inside, top = (np.take_along_axis(each, place[:, None], axis=1)[:, 0] for each in (tables, reached))
    under = top - inside
    part = np.divide(wanted[:, 0] - under, inside, out=np.zeros(inside.size), where=inside > 0)
    value = edges[place] + (edges[place + 1] - edges[place]) * np.clip(part, 0, 1)
    return np.where(reached[:, -1] > 0, value, np.nan)


def _fine(under: Floats) -> Floats:
    known = np.maximum(np.nan_to_num(under), 0)
    far = _ONE_BY_ONE + np.floor(np.log(np.maximum(known, _ONE_BY_ONE) / _ONE_BY_ONE) / _STEP)
    return np.where(np.isfinite(under), np.where(known < _ONE_BY_ONE, np.floor(known), far), np.nan)


def _banded(both: list[Floats], at: tuple[float, ...]) -> list[Floats]:
    """Cut by quantiles of the positive values before: zero, the bands, and NaN beyond nearly all of what was before."""
    positive = both[0][np.isfinite(both[0]) & (both[0] > 0)]
    if not positive.size:
        return [np.where(np.isfinite(each) & (each <= 0), 0.0, np.nan) for each in both]
    cuts, most = np.unique(np.quantile(positive, at)), float(np.quantile(positive, 0.99))
    return [
        np.where(np.isfinite(each) & (each <= most), np.where(each > 0, 1.0 + np.searchsorted(cuts, each), 0.0), np.nan)
        for each in both
    ]


def _joined(*columns: list[Floats]) -> Cells:
    codes = [np.zeros(each.size, np.int64) for each in columns[0]]
    known = [np.ones(each.size, np.bool_) for each in columns[0]]
    for column in columns:
        size = int(max(float(np.nanmax(each, initial=0)) for each in column)) + 1
        for at, each in enumerate(column):
            known[at] &= np.isfinite(each)
            codes[at] = codes[at] * size + np.nan_to_num(each).astype(np.int64)
    before, after = (np.where(mask, code, -1) for mask, code in zip(known, codes, strict=True))
    return Cells(before, after)


def _thin(values: Floats) -> Floats:
    return values if values.size <= _SAMPLE else values[:: values.size // _SAMPLE + 1]
