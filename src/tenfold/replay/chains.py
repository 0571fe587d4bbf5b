"""Hits of an exact cache without a limit, key by key: the plain cases column by column, the others answer by answer."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import polars as pl

# Rows [begin, end) that an answer serves, and the row whose answer it is.
_Span: TypeAlias = tuple[int, int, int]


def unlimited_hits(rows: pl.DataFrame, ttl_us: int, *, singleflight: bool) -> pl.DataFrame:
    """Replay requests of which none is turned away for want of room: keys do not touch each other.

    Args:
        rows: ``rid``; ``key_hash`` and ``key_check`` (both equal where the key is); ``ts`` and ``stored_at``, in
            microseconds.
        ttl_us: Time to live from when an answer is stored, in microseconds, inclusive.
        singleflight: Whether a request waits for an equal one that is running.

    Returns:
        One row a hit, by key and time: ``rid``, ``filler_rid``, ``ts``.

    Formula:
        A chain is a run of requests of one key in which each begins at most TTL + the longest answer after the one
        before: nothing before a chain matters in it. Where all but the first of a chain begin once its answer is there
        and at most TTL after it was stored, it serves them all. Every other chain is walked (``_walked``).
    """
    rows = rows.sort("key_hash", "key_check", "ts", "rid")
    if not len(rows):
        return rows.select("rid", pl.col("rid").alias("filler_rid"), "ts")
    ts, stored = rows["ts"], rows["stored_at"]
    reach = ttl_us + int((stored - ts).max() or 0)  # pyright: ignore[reportArgumentType] -- of integers
    heads = rows.select(
        (
            (pl.col("key_hash") != pl.col("key_hash").shift())
            | (pl.col("key_check") != pl.col("key_check").shift())
            | (pl.col("ts") - pl.col("ts").shift() > reach)
        ).fill_null(value=True)
    ).to_series()
    first = heads.arg_true()
    chain = heads.cum_sum() - 1
    head = first.gather(chain)
    of_head = stored.gather(head)
    is_served = (ts > ts.gather(head)) & (ts - of_head <= ttl_us)
    if not singleflight:
        is_served &= ts >= of_head
    is_served = is_served.fill_null(value=False)
    failing = (~(is_served | heads)).cast(pl.Int64).cum_sum()
    last = pl.concat([first.slice(1) - 1, pl.Series([len(rows) - 1], dtype=first.dtype)])
    is_plain = (failing.gather(last) == failing.gather(first)).gather(chain)
    plain = is_served & is_plain & ~heads
    rid = rows["rid"]
    found = pl.DataFrame(
        {"rid": rid.filter(plain), "filler_rid": rid.gather(head.filter(plain)), "ts": ts.filter(plain)}
    )
    others = rows.filter(~is_plain)
    if not len(others):
        return found
    begins = [*heads.filter(~is_plain).arg_true().to_list(), len(others)]
    spans = _walked(others["ts"].to_list(), others["stored_at"].to_list(), begins, ttl_us, singleflight=singleflight)
    return pl.concat([found, _spread(others, spans)])


def _spread(rows: pl.DataFrame, spans: Sequence[_Span]) -> pl.DataFrame:
    """Make of spans one row a hit."""
    frame = pl.DataFrame(spans, orient="row", schema={"begin": pl.Int64, "end": pl.Int64, "filler": pl.Int64})
    at = frame.select(pl.int_ranges("begin", "end").alias("at"), "filler").explode("at", empty_as_null=False)
    rid, served = rows["rid"], at["at"]
    return pl.DataFrame(
        {"rid": rid.gather(served), "filler_rid": rid.gather(at["filler"]), "ts": rows["ts"].gather(served)}
    )


def _walked(
    ts: Sequence[int], stored: Sequence[int | None], begins: Sequence[int], ttl_us: int, *, singleflight: bool
) -> list[_Span]:
    """Walk chains answer by answer: requests between two changes of what is held are told by bisection."""
    spans: list[_Span] = []
    for begin, end in pairwise(begins):
        running: list[tuple[int, int, int]] = []  # misses to be stored: (stored at, start, row), a heap
        at, held_at, held = begin, None, -1
        while at < end:
            now = ts[at]
            # an answer that is stored the moment its own request begins comes after all who read at that instant
            while running and running[0][0] <= now and running[0][1] < now:
                held_at, _, held = heapq.heappop(running)
            filler, until = -1, now
            if held_at is not None and now - held_at <= ttl_us:
                filler, until = held, held_at + ttl_us + 1
            elif singleflight:
                filler = min((row for _, began, row in running if began < now), default=-1)
                until = _NEVER
            if filler < 0:
                kept = stored[at]
                if kept is not None:
                    heapq.heappush(running, (kept, now, at))
                at += 1
                continue
            if running:
                until = min(until, running[0][0])
            after = bisect_left(ts, until, at, end)
            spans.append((at, after, filler))
            at = after
    return spans


_NEVER = 1 << 62
