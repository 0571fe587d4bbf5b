"""Every replay a second time, from its description alone: plain Python over lists of dicts, in quadratic time.

Times are whole microseconds. Nothing here is shared with the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def exact(
    rows: Sequence[Row], ttl_us: int, capacity: int | None = None, *, singleflight: bool = False
) -> dict[int, int]:
    """Hits of an exact response cache: rid to the rid that filled it.

    Rows: rid, cache_key, ts, stored_at. Before each request the whole past is played again.
    """
    hits: dict[int, int] = {}
    stores: list[Row] = []  # misses that will be stored
    reads: list[tuple[Row, int]] = []  # (request, filler) of the hits so far
    known = [row for row in rows if row["cache_key"] is not None and row["ts"] is not None]
    for row in sorted(known, key=lambda one: (one["ts"], one["rid"])):
        held = _held(stores, reads, row["ts"], ttl_us, capacity)
        found = [entry for entry in held if entry["cache_key"] == row["cache_key"]]
        found = [entry for entry in found if row["ts"] - entry["stored_at"] <= ttl_us]
        if not found and singleflight:
            running = [one for one in stores if one["cache_key"] == row["cache_key"]]
            found = [one for one in running if one["ts"] < row["ts"] < one["stored_at"]][:1]
        elif found:
            reads.append((row, found[0]["rid"]))
        if found:
            hits[row["rid"]] = found[0]["rid"]
        elif row["stored_at"] is not None:
            stores.append(row)
    return hits


def _held(stores: list[Row], reads: list[tuple[Row, int]], now: int, ttl_us: int, capacity: int | None) -> list[Row]:
    """Entries there are for a request that begins now, least recently used first."""
    events: list[tuple[Any, ...]] = []
    for one in stores:
        if one["stored_at"] <= now and one["ts"] < now:
            is_late = one["stored_at"] == one["ts"]  # it begins and ends at one instant: after that instant's reads
            events.append((one["stored_at"], 2 if is_late else 0, one["ts"], one["rid"], "store", one))
    for reader, filler in reads:
        events.append((reader["ts"], 1, reader["ts"], reader["rid"], "read", filler))
    held: list[Row] = []
    for at, _, _, _, kind, what in sorted(events, key=lambda event: event[:4]):
        if kind == "read":
            used = next(entry for entry in held if entry["rid"] == what)
            held = [entry for entry in held if entry is not used] + [used]
            continue
        held = [entry for entry in held if entry["cache_key"] != what["cache_key"]] + [what]
        if capacity is not None:
            held = [entry for entry in held if entry["stored_at"] + ttl_us >= at][-capacity:] if capacity else []
    return held


def prefix(rows: Sequence[Row]) -> dict[tuple[int, int], int]:
    """Leading blocks read: (combo, rid) to their number.

    Rows: rid, combo, pool, ts, readable_at, lifetime_us, blocks (cumulative).
    """
    played = [row for row in rows if row["pool"] is not None]
    return {(row["combo"], row["rid"]): _run(row, played) for row in played}


def _run(row: Row, rows: Sequence[Row]) -> int:
    if row["ts"] is None:
        return 0
    past = [
        one for one in rows
        if one["ts"] is not None and one["ts"] < row["ts"]
        and (one["combo"], one["pool"]) == (row["combo"], row["pool"])
    ]  # fmt: skip
    for number, block in enumerate(row["blocks"] or []):
        if not _is_resident(row, [one for one in past if block in (one["blocks"] or [])]):
            return number
    return len(row["blocks"] or [])


def _is_resident(row: Row, touches: list[Row]) -> bool:
    if not touches:
        return False
    last = max(one["ts"] for one in touches)
    if row["ts"] - last > row["lifetime_us"]:
        return False
    first_tokens = []
    while touches:
        now = [one for one in touches if one["ts"] == last]
        first_tokens += [one["ts"] if one["readable_at"] is None else one["readable_at"] for one in now]
        touches = [one for one in touches if one["ts"] < last]
        before = max((one["ts"] for one in touches), default=None)
        if before is None or last - before > max(one["lifetime_us"] for one in now):
            break
        last = before
    return min(first_tokens) < row["ts"]


def sessions(rows: Sequence[Row]) -> dict[tuple[int, int], int]:
    """Tokens read by turns of their session's last turn: (combo, rid) to tokens."""
    found: dict[tuple[int, int], int] = {}
    for row in rows:
        if row["pool"] is None:
            continue
        found[row["combo"], row["rid"]] = 0
        if row["session_id"] is None or row["ts"] is None:
            continue
        same = ("combo", "pool", "session_id")
        past = [one for one in rows if all(one[key] == row[key] for key in same)]
        past = [one for one in past if one["ts"] is not None and one["ts"] < row["ts"]]
        if not past:
            continue
        last = max(past, key=lambda one: (one["ts"], one["rid"]))
        readable_at = last["ts"] if last["readable_at"] is None else last["readable_at"]
        is_alive = row["ts"] - last["ts"] <= row["lifetime_us"] and readable_at < row["ts"]
        if is_alive and row["input_tokens"] >= last["input_tokens"]:
            found[row["combo"], row["rid"]] = min(last["reaches_tokens"] or 0, row["reaches_tokens"] or 0)
    return found


def lru(requests: Sequence[tuple[Sequence[Any], int]], block_tokens: int, room: int | None) -> tuple[int, int]:
    """Hit tokens and hit leading blocks of an LRU cache with room for so many blocks."""
    recent: list[Any] = []  # most recent first
    hit_tokens = hit_blocks = 0
    for blocks, tokens in requests:
        run = 0
        while run < len(blocks) and blocks[run] in recent:
            run += 1
        hit_blocks += run
        hit_tokens += min(run * block_tokens, tokens)
        for block in blocks[::-1]:
            recent = [block, *(other for other in recent if other != block)][:room]
    return hit_tokens, hit_blocks
