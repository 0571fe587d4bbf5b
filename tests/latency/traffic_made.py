"""Traffic for the tests of steps 3, 4 and 7: tenants, clients, prefixes, a queue a replica; all vectorised."""

from __future__ import annotations

from typing import Any

import numpy as np
from latency.windows_made import made_pair

from tenfold.latency.facts import Facts, facts_of
from tenfold.latency.records import Finding, Pair

HOUR = 3600.0
ROWS = 8000
SHARES = np.array([0.35, 0.25, 0.15, 0.12, 0.08, 0.05])
HITS = np.array([0.9, 0.75, 0.85, 0.5, 0.2, 0.8])


def names(prefix: str, codes: np.ndarray) -> np.ndarray:
    return np.array([f"{prefix}{code}" for code in range(int(codes.max(initial=0)) + 1)], object)[codes]


def traffic(
    seed: int, side: int = 0, *, rows: int = ROWS, shares: np.ndarray = SHARES, burst: float = 0.0
) -> dict[str, Any]:
    """Draw a window's requests: tenants with hit rates of their own, sessions, three clients, four replicas."""
    random = np.random.default_rng((seed, side))
    minutes = np.zeros(60)
    for at in range(1, 60):
        minutes[at] = 0.8 * minutes[at - 1] + burst * random.standard_normal()
    chance = np.exp(minutes) / np.exp(minutes).sum()
    ts = np.sort((random.choice(60, rows, p=chance) + random.random(rows)) * 60) + side * HOUR
    sessions = rows // 12
    session = random.integers(0, sessions, rows)
    tenant = random.choice(shares.size, sessions, p=shares / shares.sum())[session]
    tokens = np.round(np.exp(random.normal(8.2 + 0.2 * tenant, 0.7)).clip(60, 60_000))
    # one in twelve starts cold, as sessions do
    hit = np.where(
        random.random(rows) < 0.08, 0.0, np.clip(HITS[tenant] + 0.08 * random.standard_normal(rows), 0, 0.98)
    )
    return {
        "ts_s": ts,
        "tenant": names("team-", tenant),
        "route": names("/r", random.choice(3, rows, p=[0.6, 0.3, 0.1])),
        "client": np.array(["agent/2.1.0", "agent/2.2.0", "web/1.0.3"], object)[
            random.choice(3, rows, p=[0.2, 0.4, 0.4])
        ],
        "replica": names("pod-", random.integers(0, 4, rows)),
        "session": names(f"s{side}-", session),
        "input": tokens,
        "cached": np.floor(tokens * hit / 16) * 16,
        "output": np.round(np.exp(random.normal(4.6, 0.7, rows)).clip(1, 3000)),
    }


def served(columns: dict[str, Any], seed: int = 0, work: float = 4.0) -> dict[str, Any]:
    """Serve it: first in, first out a replica, each prompt its own time by its uncached tokens."""
    random = np.random.default_rng((seed, 77))
    uncached = columns["input"] - columns["cached"]
    service = (0.05 + 3e-5 * uncached) * np.exp(0.1 * random.standard_normal(uncached.size))
    queue = np.zeros(uncached.size)
    order = np.argsort(columns["ts_s"], kind="stable")
    for replica in np.unique(columns["replica"]):
        rows = order[columns["replica"][order] == replica]
        before = np.concatenate(([0.0], np.cumsum(work * service[rows])[:-1]))
        queue[rows] = np.maximum.accumulate(columns["ts_s"][rows] - before) + before - columns["ts_s"][rows]
    pace = 0.02 * np.exp(0.1 * random.standard_normal(uncached.size))
    ttft = queue + service
    return columns | {"queue_s": queue, "ttft_s": ttft, "e2e_s": ttft + pace * (columns["output"] - 1)}


def prompted(columns: dict[str, Any], side: int, seed: int = 0, robots: float = 0.0, pool: int = 20) -> dict[str, Any]:
    """Give each request a prompt of its own; robots ask one of a pool."""
    random = np.random.default_rng((seed, side, 99))
    count = columns["ts_s"].size
    prompt = names(f"p{side}-", np.arange(count))
    robot = random.random(count) < robots
    prompt[robot] = names("robot", random.integers(0, pool, int(robot.sum())))
    return columns | {"prompt": prompt, "attempt": np.zeros(count)}


def again(
    columns: dict[str, Any], rows: np.ndarray, after_s: np.ndarray | float, *, attempt: float | None = 1.0
) -> dict[str, Any]:
    """Ask some of the requests again, so many seconds later."""
    more = {name: np.asarray(value)[rows].copy() for name, value in columns.items()}
    more["ts_s"] = more["ts_s"] + after_s
    if attempt is not None and "attempt" in more:
        more["attempt"] = more["attempt"] + attempt
    return joined(columns, more)


def joined(*parts: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def looked(
    step: Any, before: dict[str, Any], after: dict[str, Any], *, drop: tuple[str, ...] = ()
) -> tuple[Finding, ...]:
    """Let a step look at both windows."""
    pair, facts = both(before, after, drop=drop)
    return step.look(pair, facts)


def both(before: dict[str, Any], after: dict[str, Any], *, drop: tuple[str, ...] = ()) -> tuple[Pair, Facts]:
    sides = [{name: value for name, value in side.items() if name not in drop} for side in (before, after)]
    pair = made_pair(*sides, spans=((0.0, HOUR), (HOUR, 2 * HOUR)))
    return pair, facts_of(pair, 0.99)


def guilty(found: tuple[Finding, ...]) -> list[str]:
    return [one.kind for one in found if one.status == "guilty"]
