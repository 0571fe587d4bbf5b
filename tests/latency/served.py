"""Windows served by replicas with a few slots each, for the tests of steps 5 and 6: arrivals in bursts, real queues.

A request waits for a slot of its replica, its prompt takes time by its uncached tokens, its answer time by the others
under way when it begins. A plan says how much slower a replica is at a time, which replicas are there, and so on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from latency.windows_made import made_pair

from tenfold.latency.records import Pair

SPAN = 4000.0


@dataclass(eq=False)
class Plan:
    """How a window is served.

    Args:
        replicas: Names of the replicas.
        rate: Requests a second that arrive in all.
        slots: Requests that a replica computes at once.
        prefill: Factor on the prompt's time, of (replica, seconds since the window's start, row).
        decode: The same on the answer's.
        is_there: Whether a replica takes requests at a time; None: always.
        columns: More columns of the window, of its rows (replica names and times).
    """

    replicas: tuple[str, ...] = tuple(f"r{at}" for at in range(4))
    rate: float = 1.5
    slots: int = 12
    prefill: Callable[[str, float, int], float] = lambda *_: 1.0
    decode: Callable[[str, float, int], float] = lambda *_: 1.0
    is_there: Callable[[str, float], bool] | None = None
    columns: Callable[[np.ndarray, np.ndarray], dict[str, Any]] = lambda *_: {}
    arrivals: Callable[[np.random.Generator], np.ndarray] | None = None
    burst: float = 0.25
    extra: dict[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=16)
def served(seed: int, plan: Plan, since: float = 0.0, span: float = SPAN) -> dict[str, Any]:
    """Serve a window; gives columns for ``made_pair``."""
    random = np.random.default_rng(seed)
    if plan.arrivals is not None:
        ts = plan.arrivals(random)
    else:
        pieces = 40
        level = np.zeros(pieces)
        for at in range(1, pieces):
            level[at] = 0.7 * level[at - 1] + random.normal(0, plan.burst * 0.71)
        counts = random.poisson(plan.rate * span / pieces * np.exp(level - level.var() / 2))
        ts = np.sort(np.concatenate([random.uniform(at, at + 1, n) for at, n in enumerate(counts)]) * span / pieces)
    n = ts.size
    tokens = np.ceil(np.exp(random.normal(6.5, 0.8, n)))
    output = np.ceil(np.exp(random.normal(4.8, 0.7, n))) + 1
    noise = np.exp(random.normal(0, 0.1, (2, n)))
    pick = random.random(n)
    names: list[str] = []
    rows: list[tuple[float, float, float, int, int]] = []
    ends: dict[str, list[float]] = {name: [] for name in plan.replicas}
    tokens_of, output_of, noise_of, pick_of = tokens.tolist(), output.tolist(), noise.tolist(), pick.tolist()
    for row, at in enumerate(ts.tolist()):
        there = plan.replicas
        if plan.is_there is not None:
            there = tuple(name for name in there if plan.is_there(name, at))
        # two random choices, the shorter queue
        first = there[int(pick_of[row] * len(there))]
        second = there[int(pick_of[row] * 997) % len(there)]
        for name in (first, second):
            while ends[name] and ends[name][0] <= at:
                heapq.heappop(ends[name])
        name = second if len(ends[second]) < len(ends[first]) else first
        under = ends[name]
        busy = len(under)
        start = at
        if busy >= plan.slots:
            start = sorted(under)[busy - plan.slots]
        beside = min(busy, plan.slots - 1)
        service = (0.05 + 2e-4 * tokens_of[row]) * noise_of[0][row] * plan.prefill(name, at, row)
        pace = (0.012 + 0.001 * beside) * noise_of[1][row] * plan.decode(name, at, row)
        first_s = start - at + service
        e2e_s = first_s + pace * (output_of[row] - 1)
        rows.append((start - at, first_s, e2e_s, beside, max(busy - plan.slots, 0)))
        heapq.heappush(under, at + e2e_s)
        names.append(name)
    queue, ttft, e2e, running, waiting = np.array(rows, float).T
    replica = np.array(names, object)
    return {
        "ts_s": ts + since,
        "input": tokens,
        "output": output,
        "cached": 0.0,
        "queue_s": queue,
        "ttft_s": ttft,
        "e2e_s": e2e,
        "running": running,
        "waiting": waiting,
        "replica": replica,
        **plan.extra,
        **plan.columns(replica, ts),
    }


def pair_of(seed: int, before: Plan, after: Plan, *, drop: tuple[str, ...] = (), **kwargs: Any) -> Pair:
    """Serve both windows, one right after the other; ``drop`` leaves columns out."""
    sides = [served(2 * seed + at, plan, since=at * SPAN) for at, plan in enumerate((before, after))]
    kept = [{name: value for name, value in side.items() if name not in drop} for side in sides]
    spans = tuple(
        (side["ts_s"].min() // SPAN * SPAN, max(at * SPAN + SPAN, side["ts_s"].max() + 1))
        for at, side in enumerate(sides)
    )
    return made_pair(*kept, spans=spans, **kwargs)
