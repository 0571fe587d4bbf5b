"""What happens to some requests beside the engine's own work, for incidents that the simulator has no notion of."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .incident_replicas import ERROR, Served
from .incident_traffic import FEATURES, Floats


def _grammar(served: Served, rng: np.random.Generator, span_s: float) -> Served:  # noqa: ARG001 -- as all of them
    """Compile a grammar before each structured answer."""
    structured = np.array([one.is_structured for one in FEATURES])[served.requests.feature]
    return _later(served, np.where(structured, 3.2 * rng.lognormal(0, 0.25, structured.size), 0.0))


def _cold_start(served: Served, rng: np.random.Generator, span_s: float) -> Served:
    """Load and tune whatever a restart lost: the first requests wait for it."""
    at_s = served.requests.at_s
    left = np.where(at_s >= 0, np.maximum(0.0, 1 - at_s / (0.05 * span_s)), 0.0)
    return _later(served, left * rng.uniform(4, 12, at_s.size))


def _compiling(served: Served, rng: np.random.Generator, span_s: float) -> Served:
    """Compile kernels for shapes that were not seen yet, ever fewer: answers stall."""
    at_s = np.maximum(served.requests.at_s, 0.0)
    stalls = rng.binomial(3, 0.25 * np.exp(-at_s / (0.15 * span_s)))
    return served._replace(e2e_s=served.e2e_s + stalls * rng.uniform(1, 2, at_s.size))


def _idle_clocks(served: Served, rng: np.random.Generator, span_s: float) -> Served:  # noqa: ARG001
    """Raise clocks that fell after ten idle seconds: the request that comes then waits for it."""
    extra_s = np.zeros(served.ttft_s.size)
    for at in np.unique(served.replica):
        here = np.flatnonzero(served.replica == at)
        start_s = served.requests.at_s[here]
        busy_until_s = np.maximum.accumulate(start_s + served.e2e_s[here])
        idle = np.append(False, start_s[1:] - busy_until_s[:-1] >= 10)
        extra_s[here] = np.where(idle, rng.uniform(0.8, 1.6, here.size), 0.0)
    return _later(served, extra_s)


def _heat(served: Served, rng: np.random.Generator, span_s: float) -> Served:  # noqa: ARG001
    """Throttle: decoding slows down with the time under load."""
    slower = 0.9 * (1 - np.exp(-np.maximum(served.requests.at_s, 0.0) / (0.4 * span_s)))
    return served._replace(e2e_s=served.e2e_s + slower * (served.e2e_s - served.ttft_s))


def _front_end(served: Served, rng: np.random.Generator, span_s: float) -> Served:  # noqa: ARG001
    """Hold up requests in a front end of one thread, the more the more are under way."""
    crowded = served.running > np.median(served.running)
    held = crowded & (rng.random(crowded.size) < 0.06)
    return _later(served, np.where(held, rng.exponential(0.9, held.size), 0.0))


def _outage(served: Served, rng: np.random.Generator, span_s: float) -> Served:
    """Refuse most requests for a while, at once."""
    at_s = served.requests.at_s
    refused = (at_s > 0.4 * span_s) & (at_s < 0.7 * span_s) & (rng.random(at_s.size) < 0.6)
    gone = np.where(refused, np.nan, 1.0)
    return served._replace(
        ttft_s=served.ttft_s * gone,
        queue_s=served.queue_s * gone,
        cached=np.where(refused, -1, served.cached),
        e2e_s=np.where(refused, 0.05, served.e2e_s),
        status=np.where(refused, ERROR, served.status),
    )


EFFECTS: Mapping[str, Callable[[Served, np.random.Generator, float], Served]] = {
    "grammar": _grammar,
    "cold_start": _cold_start,
    "compiling": _compiling,
    "idle_clocks": _idle_clocks,
    "heat": _heat,
    "front_end": _front_end,
    "outage": _outage,
}
"""By name: what became of the requests, random numbers and the window's seconds, to what becomes of them with it."""


def _later(served: Served, extra_s: Floats) -> Served:
    return served._replace(ttft_s=served.ttft_s + extra_s, e2e_s=served.e2e_s + extra_s)
