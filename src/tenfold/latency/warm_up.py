"""Slow first minutes after a start, that get better by themselves: cold caches, compilation, graphs being captured.

What requests took beyond what their load gives, in the first minutes of a replica after its start, is held against the
same stretch at other times of the same replicas: starts drawn at random give the chance of as much.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.facts import Facts
from tenfold.latency.records import Floats, Mask, Pair
from tenfold.latency.server_changes import changed_at, during

# Seconds after a start that are looked at.
SPANS = (60.0, 120.0, 300.0, 600.0, 1200.0)
# Starts drawn at random, and the chance below which the excess is none of chance (five spans and two components).
_DRAWS, P = 999, 0.002
_SEED = 20260807
# Log of the mean excess (few requests may stall, for long), and share of the slow requests that are early ones, from
# which it matters; and how much more often early ones must be slow than their share has it.
LEAST, TAIL_SHARE, LIFT = float(np.log(1.10)), 0.10, 2.0
_ROWS = 5
_HELD = 4.0
# Replicas that start within so many seconds of each other start together; histories that are drawn from at most.
_TOGETHER, _MOST = 300.0, 16


class WarmUp(NamedTuple):
    """Requests soon after a start.

    Args:
        component: ``ttft`` (the wait in it) or ``decode``.
        span_s: Seconds after the start that are slow.
        excess: Mean log over what the same replicas had later.
        first_half: The same of the first half of the span.
        second_half: Of the second half.
        p: Chance of such an excess in a stretch as long at another time.
        tail_share: Share of the slow requests (beyond the quantile) that are early ones.
        starts: Starts: code of the replica and instant.
        rows: The early requests.
        failed: Requests that failed in the first minute after a start.
        given: Requests in the first minute.
    """

    component: str
    span_s: float
    excess: float
    first_half: float
    second_half: float
    p: float
    tail_share: float
    starts: tuple[tuple[int, float], ...]
    rows: Mask
    failed: int
    given: int

    @property
    def is_guilty(self) -> bool:
        """Whether it is no chance, gets better and matters."""
        return (
            self.p < P
            and self.excess >= LEAST
            and self.second_half < 0.8 * self.first_half
            and self.tail_share >= max(TAIL_SHARE, LIFT * float(self.rows.mean()))
        )


def starts_of(pair: Pair) -> dict[int, float]:
    """List when replicas started in the window after: new ones, restarts, deploys and new labels on them.

    Args:
        pair: The windows.

    Returns:
        Latest start by code of the replica (0 for all where the log names none).
    """
    found: dict[int, float] = {}
    replica = pair.after.replica
    codes = np.zeros(pair.after.size, np.int32) if replica is None else replica.codes
    there = np.unique(codes[codes >= 0])
    if replica is not None and pair.before.replica is not None:
        old = set(np.unique(pair.before.replica.codes).tolist())
        for code in there:
            if int(code) not in old:
                found[int(code)] = float(pair.after.ts_s[np.argmax(codes == code)])
    for code, at in changed_at(pair).items():
        found[code] = max(found.get(code, at), at)
    for event in during(pair, pair.events):
        if event.kind.lower() not in ("deploy", "restart", "config", "rollout", "rollback", "upgrade", "reload"):
            continue
        if replica is not None and event.where in replica.names:
            found[replica.names.index(event.where)] = event.ts_s
        else:
            for code in there:
                found.setdefault(int(code), event.ts_s)
    return {code: at for code, at in found.items() if at >= pair.after.since_s - SPANS[-1]}


def warm_up(pair: Pair, facts: Facts) -> WarmUp | None:
    """Look for slow first minutes.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        The clearest; None where nothing started, or too few requests came after it.
    """
    starts = starts_of(pair)
    if not starts:
        return None
    size = int(max(one.replica.max(initial=0) for one in facts.windows)) + 1
    began = np.full(size, np.nan)
    for code, at in starts.items():
        began[code] = at
    since = pair.after.ts_s - began[facts.after.replica]
    given = (since >= 0) & (since < SPANS[0])
    failed = int((given & ~pair.after.ok).sum())
    found: list[WarmUp] = []
    with np.errstate(divide="ignore", invalid="ignore"):
        first = [
            np.log(window.ttft_s / one.service_s) + one.prefill_residual
            for window, one in zip(pair.windows, facts.windows, strict=True)
        ]
    columns = {
        "ttft": (first[0], first[1], pair.after.ttft_s),
        "decode": (facts.before.decode_residual, facts.after.decode_residual, facts.after.tpot_s),
    }
    for component, (before, after, latency) in columns.items():
        old, new = (np.clip(each, -_HELD, _HELD) for each in (before, after))
        null = _Null(pair, facts, (old, new), starts, since)
        answered = latency[np.isfinite(latency)]
        if not answered.size:
            continue
        slow = latency > np.quantile(answered, facts.quantile)
        for span in SPANS:
            early = (since >= 0) & (since < span) & np.isfinite(new)
            late = (since >= 2 * span) & np.isfinite(new)
            if early.sum() < _ROWS or late.sum() < 10 * _ROWS:
                continue
            base = float(new[late].mean())
            excess = float(new[early].mean()) - base
            halves = [
                float(new[part].mean()) - base if part.any() else 0.0
                for part in (early & (since < span / 2), early & (since >= span / 2))
            ]
            found.append(
                WarmUp(
                    component,
                    span,
                    excess,
                    halves[0],
                    halves[1],
                    null.chance(span, excess),
                    float((early & slow).sum() / max(slow.sum(), 1)),
                    tuple(sorted(starts.items())),
                    early,
                    failed,
                    int(given.sum()),
                )
            )
    return min(found, key=lambda one: (not one.is_guilty, float(one.rows.mean()) - one.tail_share), default=None)


class _Null:
    """Excess of stretches that begin at random instants, of the same replicas, where none of them had just started."""

    def __init__(
        self, pair: Pair, facts: Facts, columns: tuple[Floats, Floats], starts: dict[int, float], since: Floats
    ) -> None:
        self.random = np.random.default_rng(_SEED)
        warm = np.isfinite(columns[1]) & ~((since >= 0) & (since < SPANS[-1]))
        # replicas that start together share the moment: one stretch of all of them
        together = max(starts.values()) - min(starts.values()) <= _TOGETHER
        groups = [sorted(starts)] if together else [[code] for code in sorted(starts)][:_MOST]
        self.stretches = len(groups)
        self.parts: list[tuple[Floats, Floats]] = []
        for window, one, values, used in (
            (pair.before, facts.before, columns[0], np.isfinite(columns[0])),
            (pair.after, facts.after, columns[1], warm),
        ):
            histories = [used & np.isin(one.replica, codes) for codes in groups]
            if not any(rows.sum() >= 10 * _ROWS for rows in histories):
                # replicas that were not there: each of the others stands for them
                histories = [used] if together else [used & (one.replica == code) for code in range(_MOST)]
            for rows in histories:
                if rows.sum() >= 10 * _ROWS:
                    total = np.cumsum(values[rows] - values[rows].mean())
                    self.parts.append((window.ts_s[rows], np.concatenate(([0.0], total))))

    def chance(self, span: float, excess: float) -> float:
        """Chance of an excess at least as large; 1 where there is no history to draw from."""
        totals, counts = np.zeros(_DRAWS), np.zeros(_DRAWS)
        for _ in range(self.stretches):
            which = self.random.integers(max(len(self.parts), 1), size=_DRAWS)
            for at, (ts, sums) in enumerate(self.parts):
                mine = which == at
                begin = self.random.uniform(ts[0], max(ts[-1] - span, ts[0]), int(mine.sum()))
                low, high = np.searchsorted(ts, begin), np.searchsorted(ts, begin + span)
                totals[mine] += sums[high] - sums[low]
                counts[mine] += high - low
        enough = counts >= _ROWS
        means = totals[enough] / counts[enough]
        return (1 + int((means >= excess).sum())) / (1 + means.size)
