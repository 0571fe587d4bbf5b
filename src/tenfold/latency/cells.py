"""Cells of alike requests, by who asked and how long, and the weights that give one window the other's composition.

Source: DiNardo, Fortin and Lemieux (1996), with cells in place of a logistic regression (serving.md 12, step 2).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tenfold.latency.records import Floats, Ints, Labels, Mask, Pair, Window

# Kinds of requests told apart at most, by tenant and route; the others are one kind.
_KINDS = 150
# Requests that a cell needs in either window; cells with fewer are taken together over all kinds.
_CELL = 20
# Bins of length an octave.
_PER_OCTAVE = 3


class Kinds(NamedTuple):
    """Who asks for what: a number for each tenant and route.

    Args:
        before: A number a request of the window before.
        after: The same of the window after.
        names: Names of the numbers.
    """

    before: Ints
    after: Ints
    names: tuple[str, ...]


class Weights(NamedTuple):
    """Weights of the requests of the window after, that give it a composition of the window before.

    Args:
        mix: For the shares of tenants and routes alone.
        within: For the lengths within them, on top.
        overlap: Share of the requests before whose cell has requests after.
        effective: Effective sample size over the size, with both.
    """

    mix: Floats
    within: Floats
    overlap: float
    effective: float


def kinds_of(pair: Pair) -> Kinds:
    """Number the kinds of requests, by tenant and route, as far as the log names them.

    Args:
        pair: The windows.

    Returns:
        The kinds.
    """
    codes: list[Ints] = []
    for window in pair.windows:
        tenant, route = _codes(window.tenant, window), _codes(window.route, window)
        codes.append((tenant + 1) * (len(_names(window.route)) + 1) + route + 1)
    values, counts = np.unique(np.concatenate(codes), return_counts=True)
    kept = values[np.argsort(-counts, kind="stable")[:_KINDS]]
    kept.sort()
    routes = len(_names(pair.before.route)) + 1
    names = tuple(_name(pair.before, int(value) // routes - 1, int(value) % routes - 1) for value in kept)
    before, after = (
        np.where(np.isin(each, kept), np.searchsorted(kept, np.clip(each, kept[0], kept[-1])), kept.size)
        for each in codes
    )
    return Kinds(before, after, (*names, "others"))


def weights_of(
    kinds: Kinds,
    lengths: tuple[Floats, Floats],
    used: tuple[Mask, Mask],
) -> Weights:
    """Give the weights that put the composition of the window before into the window after.

    Args:
        kinds: Who asked for what.
        lengths: Tokens by which cells are made, of both windows.
        used: Requests that count, of both windows; others get weight 1 for the mix and for the lengths.

    Returns:
        The weights.
    """
    bins = [
        np.floor(_PER_OCTAVE * np.log2(np.maximum(np.nan_to_num(each), 0) + 1)).astype(np.int64) for each in lengths
    ]
    width = int(max((int(each.max()) for each in bins if each.size), default=0)) + 1
    cells = [kind * width + each for kind, each in zip((kinds.before, kinds.after), bins, strict=True)]
    many = len(kinds.names) * width
    old, new = (np.bincount(cell[use], minlength=many) for cell, use in zip(cells, used, strict=True))
    # sparse cells are taken together over all kinds of requests, in a cell of their length after the others
    sparse = np.flatnonzero((old < _CELL) | (new < _CELL))
    place = np.arange(many)
    place[sparse] = many + sparse % width
    cells = [place[cell] for cell in cells]
    all_cells = _ratio(cells, used, many + width)
    mix = _ratio([kinds.before, kinds.after], used, len(kinds.names))
    mix_weight = np.where(used[1], mix[kinds.after], 1.0)
    whole = np.where(used[1], all_cells[cells[1]], 1.0)
    within = np.divide(whole, mix_weight, out=np.zeros(whole.size), where=mix_weight > 0)
    old, new = (np.bincount(cell[use], minlength=many + width) for cell, use in zip(cells, used, strict=True))
    total = max(int(old.sum()), 1)
    weight = whole[used[1]]
    squares = float((weight * weight).sum())
    effective = float(weight.sum()) ** 2 / squares / max(weight.size, 1) if squares > 0 else 0.0
    return Weights(mix_weight, within, float(old[new > 0].sum()) / total, effective)


def _ratio(cells: list[Ints], used: tuple[Mask, Mask], many: int) -> Floats:
    """Give share before over share after, a cell; 0 where the window before has none."""
    shares = [
        np.bincount(cell[use], minlength=many) / max(int(use.sum()), 1) for cell, use in zip(cells, used, strict=True)
    ]
    return np.divide(shares[0], shares[1], out=np.zeros(many), where=shares[1] > 0)


def _codes(labels: Labels | None, window: Window) -> Ints:
    return np.full(window.size, -1, np.int64) if labels is None else labels.codes.astype(np.int64)


def _names(labels: Labels | None) -> tuple[str, ...]:
    return () if labels is None else labels.names


def _name(window: Window, tenant: int, route: int) -> str:
    parts = [
        labels.names[code] for labels, code in ((window.tenant, tenant), (window.route, route)) if labels and code >= 0
    ]
    return " / ".join(parts) or "all"


def ranked(values: Floats, reference: Floats, cells: tuple[Ints, Ints], least: int = 30) -> Floats:
    """Map values to the distribution of a reference, each to the value of its own rank, cell by cell.

    Args:
        values: Values to map; NaN stays.
        reference: Where they are mapped to; NaN is left out.
        cells: Cell of each value, and of each of the reference.
        least: Reference values that a cell needs; below, all of the reference is taken.

    Returns:
        The mapped values.
    """
    out = values.copy()
    known, there = np.flatnonzero(np.isfinite(values)), np.flatnonzero(np.isfinite(reference))
    if known.size == 0 or there.size == 0:
        return out
    order = known[np.lexsort((values[known], cells[0][known]))]
    ground = there[np.lexsort((reference[there], cells[1][there]))]
    everything = np.sort(reference[there])
    of_values, of_ground = cells[0][order], cells[1][ground]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(of_values)) + 1, [order.size]))
    for first, last in pairwise(starts.tolist()):
        cell = of_values[first]
        low, high = np.searchsorted(of_ground, (cell, cell + 1))
        target = reference[ground[low:high]] if high - low >= least else everything
        place: Floats = (np.arange(last - first, dtype=np.float64) + 0.5) / (last - first) * target.size - 0.5
        out[order[first:last]] = np.interp(place, np.arange(target.size, dtype=np.float64), target)
    return out
