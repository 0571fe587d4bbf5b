"""Head-of-line blocking: whether short requests are slow just while the prefill of a huge prompt is under way."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tenfold.latency.facts import Facts
from tenfold.latency.records import Component, Floats, Mask, Pair
from tenfold.latency.statistics import Estimate, ratio

# A prompt is huge from this many uncached tokens, and from so many times the largest in a thousand of before.
_HUGE = 20_000
_TIMES = 2
# Above this share of the requests they are no exception but what is asked: length or cache, steps 2 and 3.
_FEW = 0.02
# Part of its own time that an answer must have shared with such a prefill to count as slowed by it.
_SHARED = 0.2
# Coefficient of variation of gaps below which they are a period (I19); gaps of random arrivals have 1.
_PERIODIC = 0.25


class Blocking(NamedTuple):
    """Slow requests beside huge prompts.

    Args:
        component: What is slow.
        prompts: Huge prompts.
        tokens: Median of their uncached tokens.
        slow: Share of the other requests above the tail quantile of before.
        beside_slow: Share of the slow ones beside such a prefill.
        beside: The same of all other requests.
        rows: Slow requests beside such a prefill, and the huge ones.
        period_s: Seconds from one huge prompt to the next where they come regularly; else NaN.
        since_s: Arrival of the first.
    """

    component: Component
    prompts: int
    tokens: float
    slow: float
    beside_slow: Estimate
    beside: float
    rows: Mask
    period_s: float
    since_s: float

    @property
    def lift(self) -> float:
        """How much more often slow requests are beside such a prefill."""
        return self.beside_slow.value / self.beside if self.beside > 0 else math.nan


def huge_prompts(pair: Pair, facts: Facts) -> Mask:
    """Tell the few requests of the window after whose prompts are far above any before.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        Those requests; none where they are so many that they are what is asked.
    """
    known = facts.before.uncached[np.isfinite(facts.before.uncached)]
    if not known.size:
        return np.zeros(pair.after.size, np.bool_)
    huge = np.nan_to_num(facts.after.uncached) >= max(_HUGE, _TIMES * float(np.quantile(known, 0.999)))
    return huge if huge.sum() <= _FEW * pair.after.size else np.zeros_like(huge)


def blockings(pair: Pair, facts: Facts) -> tuple[Blocking, ...]:
    """Measure how slow requests and prefills of huge prompts coincide on a replica.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        For TTFT (arrived meanwhile) and TPOT (a fifth of the answer written meanwhile); empty: no huge prompts.
    """
    after, derived = pair.after, facts.after
    huge = huge_prompts(pair, facts)
    if not huge.any():
        return ()
    arrival = after.ts_s - after.since_s
    span = float(np.nanmax(np.append(after.e2e_s, 0.0)) + arrival[-1] + 1.0)
    # replicas one behind the other on one axis of time
    arrival = arrival + derived.replica * 2 * span
    queue = 0.0 if after.queue_s is None else np.nan_to_num(after.queue_s)
    ttft = np.where(
        np.isfinite(after.ttft_s), after.ttft_s, facts.prefill.expected(derived.uncached, np.zeros(after.size))
    )
    busy = _union((arrival + np.minimum(queue, ttft))[huge], (arrival + ttft)[huge])
    shared = _spent(busy, arrival + after.e2e_s) - _spent(busy, arrival + after.ttft_s)
    with np.errstate(invalid="ignore", divide="ignore"):
        answered = shared / (after.e2e_s - after.ttft_s) >= _SHARED
    place = np.searchsorted(busy[0], arrival, side="right") - 1
    arrived = (place >= 0) & (arrival < busy[1][np.maximum(place, 0)])
    gaps = np.diff(np.sort(after.ts_s[huge]))
    is_regular = gaps.size >= 4 and float(np.std(gaps)) < _PERIODIC * float(np.mean(gaps))
    sides: tuple[tuple[Component, Floats, Floats, Mask], ...] = (
        ("ttft", pair.before.ttft_s, after.ttft_s, arrived),
        ("tpot", facts.before.tpot_s, derived.tpot_s, answered),
    )
    found: list[Blocking] = []
    for component, old, new, beside in sides:
        others = ~huge & np.isfinite(new)
        if not np.isfinite(old).any() or not others.any():
            continue
        slow = others & (np.nan_to_num(new) > np.nanquantile(old, facts.quantile))
        found.append(
            Blocking(
                component=component,
                prompts=int(huge.sum()),
                tokens=float(np.median(derived.uncached[huge])),
                slow=float(slow.sum() / others.sum()),
                beside_slow=ratio(slow & beside, slow, derived.slice),
                beside=float(beside[others].mean()),
                rows=(slow & beside) | huge,
                period_s=float(np.median(gaps)) if is_regular else math.nan,
                since_s=float(after.ts_s[huge].min()),
            )
        )
    return tuple(found)


def _union(starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Join intervals that overlap."""
    order = np.argsort(starts, kind="stable")
    start, end = starts[order], np.maximum.accumulate(ends[order])
    first = np.append(True, start[1:] > end[:-1])
    last = np.append(first[1:], True)
    return start[first], end[last]


def _spent(busy: tuple[Floats, Floats], at: Floats) -> Floats:
    """Give the seconds within disjoint intervals up to each instant."""
    edges = np.column_stack(busy).ravel()
    spent = np.column_stack([np.zeros(busy[0].size), busy[1] - busy[0]]).ravel().cumsum()
    return np.interp(at, edges, spent)
