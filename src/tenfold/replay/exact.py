"""Exact response cache: which requests an answer stored for an equal request would have served."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator

import polars as pl

from tenfold.store import steps
from tenfold.store.engines import Engine

_MICROSECONDS = 1_000_000


def exact_hits(
    engine: Engine,
    requests: str,
    name: str,
    *,
    ttl_us: int,
    capacity: int | None = None,
    singleflight: bool = False,
) -> None:
    """Replay a cache of whole answers, keyed by equal requests, over a log.

    An answer is stored by a miss only, when it is there (``stored_at``), and a later one of the same key replaces it.
    A request gets an answer that was stored at or before its own start, at most ``ttl_us`` ago, by a request that began
    strictly before it. A hit does not renew the answer; it counts as a use where the least recently used goes first.
    At one instant, answers are stored before requests read, but for those of requests that begin at that instant.

    Args:
        engine: Where the requests are.
        requests: View with ``rid`` (unique), ``cache_key`` (NULL never hits), ``ts`` (start; NULL takes no part) and
            ``stored_at`` (not before ``ts``; NULL where the answer would not be stored).
        name: Table to make, a row a hit: ``rid`` and ``filler_rid``, the request whose answer it got.
        ttl_us: Time to live of an answer from when it was stored, in microseconds, inclusive.
        capacity: Most answers that are held at once, over all keys; the least recently stored or read goes. None is no
            limit.
        singleflight: Whether a request waits for an equal one that began before it and is still running, and shares its
            answer where that will be stored.
    """
    if capacity is not None and capacity >= _storable_keys(engine, requests):
        capacity = None
    is_near = "true"
    if capacity is None:
        lifetime = f"interval '{ttl_us // _MICROSECONDS}.{ttl_us % _MICROSECONDS:06}' second"
        is_near = f"last_stored_at >= ts - {lifetime} or next_ts <= stored_at + {lifetime}"
    rows = engine.fetch(steps.filled("replay_exact", requests=requests, is_near=is_near))
    hits = list(_walk(rows, ttl_us, capacity, singleflight=singleflight))
    frame = pl.DataFrame(hits, orient="row", schema={"rid": pl.Int64, "filler_rid": pl.Int64})
    engine.register(name, frame)


def _storable_keys(engine: Engine, requests: str) -> int:
    found = engine.fetch(
        f"select count(distinct cache_key) as found from {requests} where ts is not null and stored_at is not null"
    )
    return int(found["found"][0])


def _walk(rows: pl.DataFrame, ttl_us: int, capacity: int | None, *, singleflight: bool) -> Iterator[tuple[int, int]]:
    """Walk requests in order of start; give hits as (request, filler)."""
    entries = _Entries(ttl_us, capacity)
    running: list[tuple[int, int, int, Hashable]] = []  # misses to be stored: (stored at, start, request, key), a heap
    in_flight: dict[Hashable, list[tuple[int, int]]] = {}  # the same by key: (start, request), for singleflight
    columns = (rows["rid"], rows["cache_key"], rows["ts"].cast(pl.Int64), rows["stored_at"].cast(pl.Int64))
    for rid, key, start, stored_at in zip(*(column.to_list() for column in columns), strict=True):
        # An answer that is stored the moment its own request begins comes after all who read at that instant.
        while running and running[0][0] <= start and running[0][1] < start:
            at, began, who, its_key = heapq.heappop(running)
            entries.store(its_key, at, who)
            if singleflight:
                in_flight[its_key].remove((began, who))
        filler = entries.read(key, start)
        if filler is None and singleflight:
            filler = next((who for began, who in in_flight.get(key, ()) if began < start), None)
        if filler is not None:
            yield rid, filler
        elif stored_at is not None:
            heapq.heappush(running, (stored_at, start, rid, key))
            if singleflight:
                in_flight.setdefault(key, []).append((start, rid))


class _Entries:
    """The answers held: key to (stored at, request), least recently stored or read first."""

    def __init__(self, ttl_us: int, capacity: int | None) -> None:
        self.ttl_us = ttl_us
        self.capacity = capacity
        self.held: OrderedDict[Hashable, tuple[int, int]] = OrderedDict()
        self.by_age: deque[tuple[Hashable, tuple[int, int]]] = deque()

    def read(self, key: Hashable, at: int) -> int | None:
        """Give the request whose answer is held for a key, or None; an answer that is read counts as used."""
        entry = self.held.get(key)
        if entry is None or at - entry[0] > self.ttl_us:
            return None
        self.held.move_to_end(key)
        return entry[1]

    def store(self, key: Hashable, at: int, rid: int) -> None:
        """Hold an answer; where it is one too many, the least recently used of those still alive goes."""
        entry = (at, rid)
        self.held[key] = entry
        self.held.move_to_end(key)
        if self.capacity is None:
            return
        self.by_age.append((key, entry))
        while self.by_age[0][1][0] + self.ttl_us < at:
            old_key, old = self.by_age.popleft()
            if self.held.get(old_key) == old:
                del self.held[old_key]
        if len(self.held) > self.capacity:
            self.held.popitem(last=False)
