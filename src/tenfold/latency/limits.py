"""The most requests that replicas computed at once, where others had to wait: a limit that shows itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.facts import Derived, Facts
from tenfold.latency.records import Floats, Interval, Pair, Window

# Requests that arrived while others waited, from which a plateau can be seen.
_LEAST = 50
# Share of them that must have found exactly the same count running (one less: one had just ended).
_FLAT = 0.5
# Share of all arrivals that may find more running: a limit is one; a huge prompt that holds up a few is none.
_BEYOND = 0.002
# KV cache in use from which it is memory that makes requests wait, and no limit on their number.
_FULL = 0.9
# Log by which a limit must have changed.
CHANGED = float(np.log(1.10))


class Limit(NamedTuple):
    """Requests computed at once while others waited.

    Args:
        before: In the window before; where nothing waited, the most that ran.
        after: In the window after.
        log_change: Log of after over before.
        seen: Requests that found others waiting, before and after.
        is_bound: Whether something waited at it in the window before too.
    """

    before: float
    after: float
    log_change: float
    seen: tuple[int, int]
    is_bound: bool


def limit_change(pair: Pair, facts: Facts) -> Limit | None:
    """Compare the plateaus of both windows.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        The limits; None where the window after shows none, or the window before does not tell that it had another.
    """
    earlier, later = _seen(pair.before, facts.before), _seen(pair.after, facts.after)
    if earlier is None or later is None:
        return None
    (all_old, old), (all_new, new) = earlier, later
    after = _plateau(new, all_new)
    if after is None or after <= 0:
        return None
    before = _plateau(old, all_old)
    is_bound = before is not None
    if before is None:
        # no wait before: what ran then shows only that the limit was no lower
        more = all_old[all_old > after * np.exp(CHANGED)]
        if more.size < _LEAST:
            return None
        before = float(np.quantile(all_old, 0.999))
    return Limit(before, after, float(np.log(after / before)), (old.size, new.size), is_bound)


def plateau_interval(one: Limit) -> Interval:
    """Give the log change with the range that a count off by one on either side leaves.

    Args:
        one: The limits.

    Returns:
        The range.
    """
    low = np.log(max(one.after - 1, 0.5) / (one.before + 1))
    high = np.log((one.after + 1) / max(one.before - 1, 0.5))
    return Interval(float(low), one.log_change, float(high))


def _seen(window: Window, derived: Derived) -> tuple[Floats, Floats] | None:
    """What ran when requests arrived, and what ran when those arrived that found others waiting."""
    running, waiting = window.running, window.waiting
    if running is None or waiting is None:
        if window.queue_s is None:
            return None
        running, waiting = _counted(window, derived)
    known = np.isfinite(running)
    behind = known & (np.nan_to_num(waiting) > 0)
    if window.kv is not None:
        behind &= ~(window.kv >= _FULL)
    return running[known], running[behind]


def _counted(window: Window, derived: Derived) -> tuple[Floats, Floats]:
    """Running and waiting at each arrival, from the times in the log."""
    assert window.queue_s is not None
    running, waiting = np.full(window.size, np.nan), np.full(window.size, np.nan)
    order = np.argsort(derived.replica, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(derived.replica[order])) + 1):
        known = rows[np.isfinite(window.e2e_s[rows])]
        if not known.size:
            continue
        at = window.ts_s[known]
        start = np.sort(at + np.nan_to_num(window.queue_s[known]))
        end = np.sort(at + window.e2e_s[known])
        begun, ended = np.searchsorted(start, at, side="left"), np.searchsorted(end, at, side="right")
        running[known] = np.maximum(begun - ended, 0)
        waiting[known] = np.maximum(np.arange(known.size) - begun, 0)
    return running, waiting


def _plateau(running: Floats, ever: Floats) -> float | None:
    """The count that those behind others found running, if it is one, and more never run."""
    if running.size < _LEAST:
        return None
    values, counts = np.unique(np.round(running), return_counts=True)
    mode = float(values[np.argmax(counts)])
    flat = float(counts[(values >= mode - 1) & (values <= mode + 1)].sum()) / running.size
    is_most = float((ever > mode + 1).mean()) <= _BEYOND
    return mode if flat >= _FLAT and is_most else None
