"""Residuals and load by replica and slice of time, where the log shows what a replica was doing."""

from __future__ import annotations

import numpy as np

from tenfold.latency.facts import SLICES, Derived, Facts
from tenfold.latency.records import Codes, Floats, Mask, Pair
from tenfold.latency.slices import group_mean, group_quantile

# Rows that a replica needs in a slice for its median to count.
_ROWS = 3
# Failures beyond a replica's share before, from which its load is unknown: what clients give up on is computed still.
_FAILING = 0.05


def known_rows(pair: Pair, facts: Facts, many: int) -> tuple[Mask, Mask]:
    """Tell the requests of replicas and slices whose load the log shows.

    Args:
        pair: The windows.
        facts: What is known of them.
        many: Replicas.

    Returns:
        Whether few of the requests there failed beyond the replica's share before, in both windows.
    """
    usual = group_mean((~pair.before.ok).astype(np.float64), facts.before.replica, many)
    usual = np.where(np.isfinite(usual), usual, float(1 - pair.before.ok.mean()))
    out: list[Mask] = []
    for window, one in zip(pair.windows, facts.windows, strict=True):
        cell = cells_of(one)
        failed = group_mean((~window.ok).astype(np.float64), cell, many * SLICES)
        out.append(failed[cell] <= usual[one.replica] + _FAILING)
    return out[0], out[1]


def cells_of(one: Derived) -> Codes:
    """Number the replica and slice of each request.

    Args:
        one: Derived columns of a window.

    Returns:
        Replica x 40 + slice.
    """
    return one.replica.astype(np.int32) * SLICES + one.slice


def residual_cells(facts: Facts, known: tuple[Mask, Mask], many: int, component: str) -> tuple[Floats, Floats]:
    """Give the median residual of each replica (rows) and slice (columns) of both windows.

    Args:
        facts: What is known of the windows.
        known: Requests that count.
        many: Replicas.
        component: ``prefill`` or ``decode``.

    Returns:
        The medians; NaN where there are too few requests.
    """
    before, after = (
        group_quantile(
            np.where(rows, one.prefill_residual if component == "prefill" else one.decode_residual, np.nan),
            cells_of(one),
            many * SLICES,
            least=_ROWS,
        ).reshape(many, SLICES)
        for one, rows in zip(facts.windows, known, strict=True)
    )
    return before, after


def load_cells(facts: Facts, many: int, component: str) -> tuple[Floats, Floats]:
    """Give the mean log of requests under way, the same way.

    Args:
        facts: What is known of the windows.
        many: Replicas.
        component: ``prefill`` (all that are under way at arrival) or ``decode`` (answers being written).

    Returns:
        The means of log(1 + count); NaN where there are too few requests.
    """
    before, after = (
        group_mean(
            np.log1p(one.in_flight if component == "prefill" else one.in_flight_decode),
            cells_of(one),
            many * SLICES,
            least=_ROWS,
        ).reshape(many, SLICES)
        for one in facts.windows
    )
    return before, after
