"""Quantiles far out, of all draws of a block bootstrap at once: only the rows in the tail are sorted and weighed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenfold.latency.records import Codes, Floats

# Draws of the bootstrap, and the seed that makes them the same every time.
DRAWS = 400
_SEED = 20260731
# Part of the rows, from the largest down, in which every slice's own tail is looked for first; all of a small sample.
_TOP, _SMALL = 0.3, 1000
# Part of a mean slice's weight from which a slice counts in that.
_TELLS = 0.2


def draws_of(slices: int, draws: int = DRAWS, stream: int = 0) -> Floats:
    """Draw slices of time with replacement.

    Args:
        slices: How many there are.
        draws: How many times to draw.
        stream: Which sequence of draws: windows are drawn independently.

    Returns:
        How often each slice was drawn, draws x slices.
    """
    random = np.random.default_rng((_SEED, stream))
    return random.multinomial(slices, np.full(slices, 1 / slices), size=draws).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """The upper end of a weighted sample, in slices of time.

    Args:
        values: Values from the largest down; empty where there is none.
        weights: Their weights.
        slices: Their slices.
        totals: Weight of all of each slice.
        quantile: The quantile that it can tell.
    """

    values: Floats
    weights: Floats
    slices: Codes
    totals: Floats
    quantile: float

    @classmethod
    def of(cls, values: Floats, slices: Codes, quantile: float, count: int, weights: Floats | None = None) -> Tail:
        """Keep the tail of a sample; NaN and rows without weight are left out.

        Args:
            values: The values.
            slices: Slice of each, from 0.
            quantile: The quantile that will be asked for.
            count: Slices in all.
            weights: Weight of each; None: 1.

        Returns:
            The tail.
        """
        known = np.isfinite(values)
        if weights is not None:
            known &= weights > 0
        rows = np.flatnonzero(known)
        weight = np.ones(rows.size) if weights is None else weights[rows]
        totals: Floats = np.bincount(slices[rows], weight, count).astype(np.float64)
        least = _least(values[rows], slices[rows], weight, (1 - quantile) * totals)
        places = np.flatnonzero(values[rows] >= least)
        order = places[np.argsort(-values[rows[places]], kind="stable")]
        chosen = rows[order]
        return cls(values[chosen], weight[order], slices[chosen], totals, quantile)

    def at(self, drawn: Floats | None = None) -> Floats:
        """Give the quantile in each draw: the least value that no more than 1 - quantile of the weight lies above.

        Args:
            drawn: Draws x slices (``draws_of``); None: the sample itself, as one draw.

        Returns:
            A value a draw; NaN where there is no row.
        """
        draws: Floats = np.ones((1, self.totals.size)) if drawn is None else drawn
        out: Floats = np.full(len(draws), np.nan)
        if self.values.size == 0:
            return out
        above: Floats = (1 - self.quantile) * (draws @ self.totals)
        # some millions of numbers at a time
        step = max(1, 4_000_000 // self.values.size)
        for first in range(0, len(draws), step):
            part = slice(first, first + step)
            reached = np.cumsum(draws[part][:, self.slices] * self.weights, axis=1)
            beyond = reached <= above[part, None] * (1 + 1e-12)
            place = np.minimum(beyond.sum(axis=1), self.values.size - 1)
            out[part] = self.values[place]
        return out


def _least(values: Floats, slices: Codes, weight: Floats, above: Floats) -> float:
    """Give the value down to which rows are kept: the lowest of the slices' own quantiles, enough for any draw."""
    # a slice of next to nothing is in no draw all there is
    tells = above >= _TELLS * above.mean()
    few = int(_TOP * values.size)
    places = np.argpartition(values, values.size - few)[values.size - few :] if few > _SMALL else np.arange(values.size)
    held = np.bincount(slices[places], weight[places], above.size)
    if (held[tells] <= above[tells] * (1 + 1e-9)).any() and places.size < values.size:
        places = np.arange(values.size)
    if places.size == 0:
        return np.inf
    order = places[np.lexsort((-values[places], slices[places]))]
    total = np.cumsum(weight[order])
    starts = np.flatnonzero(np.diff(slices[order], prepend=-1))
    base = np.repeat(total[starts] - weight[order[starts]], np.diff(starts, append=order.size))
    # the row with which a slice has more than its share beyond
    reached = total - base > above[slices[order]] * (1 + 1e-9)
    first = reached & ~(np.append(False, reached[:-1]) & (np.diff(slices[order], prepend=-1) == 0))
    return float(values[order[first & tells[slices[order]]]].min(initial=np.inf))
