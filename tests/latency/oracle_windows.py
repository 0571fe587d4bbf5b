"""Windows drawn for the tests that hold the runbook to its slow second implementation."""

from __future__ import annotations

import numpy as np
import oracle_latency as slow
import pytest
from hypothesis import strategies as st
from quick import few

from tenfold.latency.tails import draws_of

from .windows_made import made_pair

HOUR = 3600.0
SEEDS = few(1, range(6))
NUMBERS = st.floats(0.001, 1000)
EXAMPLES = 10


def names(prefix, codes):
    return np.array([f"{prefix}{code}" for code in codes], object)


def columns(seed, side, rows, **change):
    """Draw a window: three tenants and a new one, two routes, three replicas, failures, gaps in the log, ties."""
    random = np.random.default_rng((seed, side))
    shift = change.get("mix", 0.0) * side
    tenant = random.choice(3, rows, p=[0.5 - shift, 0.3, 0.2 + shift])
    # a tenant that the window before does not have
    tenant = np.where((side == 1) & (random.random(rows) < 0.05), 3, tenant)
    tokens = np.floor(np.exp(random.normal(6.5 + 0.4 * tenant, 0.7))) + 1
    hit = np.clip((0.7 - 0.4 * side * change.get("cache", 0)) + 0.1 * random.standard_normal(rows), 0, 1)
    cached = np.where(random.random(rows) < 0.05, np.nan, np.floor(tokens * hit))
    output = np.floor(np.exp(random.normal(3.7 + 0.2 * side * change.get("length", 0), 0.9, rows))) + 1
    ok = random.random(rows) > 0.03
    queue = np.where(random.random(rows) < 0.5, 0.001, random.exponential(0.05 * (1 + 4 * side), rows))
    ttft = queue + (0.02 + 1e-4 * (tokens - np.nan_to_num(cached))) * np.exp(0.1 * random.standard_normal(rows))
    e2e = ttft + (0.01 + 0.002 * side) * output * np.exp(0.1 * random.standard_normal(rows))
    return {
        "ts_s": np.sort(random.uniform(0, 600, rows)) + side * 600,
        "ok": ok,
        "input": tokens,
        "cached": cached,
        "output": np.where(ok, output, np.nan),
        "queue_s": queue,
        "ttft_s": ttft,
        "e2e_s": e2e,
        "seen_end_s": np.where(ok, e2e, np.where(random.random(rows) < 0.5, np.nan, 2 * e2e)),
        "preemptions": random.poisson(0.02 + 0.2 * side, rows).astype(float),
        "is_structured": random.random(rows) < 0.2,
        "attempt": (random.random(rows) < 0.02 + 0.1 * side).astype(float),
        "tenant": names("t", tenant),
        "route": names("/r", random.integers(0, 2, rows)),
        "client": names("app/1.", random.integers(0, 3, rows)),
        "replica": names("pod-", random.integers(0, 3, rows)),
        "prompt": names("p", random.integers(0, max(rows // 2, 1), rows)),
        "session": names(f"s{side}-", random.integers(0, max(rows // 6, 1), rows)),
    }


def pair_of(seed, rows, drop=(), **change):
    sides = [columns(seed, side, rows, **change) for side in (0, 1)]
    sides = [{name: value for name, value in side.items() if name not in drop} for side in sides]
    return made_pair(*sides, spans=((0.0, 600.0), (600.0, 1200.0)))


def near(found, expected, rel=1e-6, least=1e-9):
    assert np.asarray(found, float) == pytest.approx(np.asarray(expected, float), rel=rel, abs=least, nan_ok=True)


def lists(stream):
    return draws_of(slow.SLICES, stream=stream).tolist()
