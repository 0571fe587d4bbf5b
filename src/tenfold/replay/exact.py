"""Exact response cache: which requests an answer stored for an equal request would have served."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from tenfold.ledger.session import timestamp
from tenfold.replay.chains import unlimited_hits
from tenfold.store import steps
from tenfold.store.engines import Engine

# Requests looked at at once, about, and hits that are kept here before the engine takes them: they bound memory.
SLICE_ROWS, HITS_AT_ONCE = 2_000_000, 4_000_000
# What `slowest` of replay_exact_days.sql stands for; None is no bound.
_SLOWEST = (timedelta(minutes=2), timedelta(hours=1), timedelta(days=1), timedelta(days=30), None)
_DAY_US = 86_400_000_000
_HITS = {"rid": pl.Int64, "filler_rid": pl.Int64}


def key_words(key: Sequence[str], scope: Sequence[str] = ()) -> dict[str, str]:
    """Write the two hashes that tell the keys of requests apart, as SQL.

    They are the engine's own and never leave a replay: 128 bits together on DuckDB, 64 on Spark. Of n requests, two of
    different keys are taken for one with a chance of at most n x n / 2^129 (n x n / 2^65).

    Args:
        key: Columns in which equal requests are equal, that with the most values first; not NULL.
        scope: Columns in which they must be equal too, NULL being a value of its own.

    Returns:
        ``key_hash`` and ``key_check``: expressions.
    """
    scoped = [f"{column} is null, {column}" for column in scope]
    # of other bytes, so that two values with one hash have two here (and on Spark another seed for all that follows)
    again = f"concat('again ', {key[0]})"
    return {
        "key_hash": f"hash({', '.join((*scoped, *key))})",
        "key_check": f"hash({', '.join((again, *key[1:], *scoped))})",
    }


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

    The engine gives one slice of time after the other (of one part of the keys, where even a slice is large), and in it
    only requests that share their key's hash with another, so that memory is bounded whatever the log's length.

    Args:
        engine: Where the requests are.
        requests: View with ``rid`` (unique), ``key_hash`` and ``key_check`` (``key_words``), ``ts`` (start; NULL takes
            no part) and ``stored_at`` (not before ``ts``; NULL where the answer would not be stored). Requests that
            never hit are not in it. Quickest where it is a view of rows in order of time.
        name: Table to make, a row a hit: ``rid`` and ``filler_rid``, the request whose answer it got.
        ttl_us: Time to live of an answer from when it was stored, in microseconds, inclusive.
        capacity: Most answers that are held at once, over all keys; the least recently stored or read goes. None is no
            limit.
        singleflight: Whether a request waits for an equal one that began before it and is still running, and shares its
            answer where that will be stored.
    """
    if capacity is not None and capacity >= _storable_keys(engine, requests):
        capacity = None
    cut = _cut(engine, requests, ttl_us, looks_back=capacity is None)
    made = _Made(engine, name)
    if capacity is not None:
        frames = (_rows(engine, requests, one, part="true", kept="true") for one in cut.slices)
        made.add(
            pl.DataFrame(list(_walk(frames, ttl_us, capacity, singleflight=singleflight)), orient="row", schema=_HITS)
        )
    for part in range(cut.parts if capacity is None else 0):
        chosen = "true" if cut.parts == 1 else f"(key_hash % {cut.parts} + {cut.parts}) % {cut.parts} = {part}"
        known = pl.DataFrame(schema={"rid": pl.Int64})
        for one in cut.slices:
            rows = _rows(engine, requests, one, part=chosen, kept="alike > 1")
            # a request that was served before this slice stores nothing; one that was not is not served now either
            found = unlimited_hits(rows.join(known, on="rid", how="anti"), ttl_us, singleflight=singleflight)
            if one.since is not None:
                found = found.filter(pl.col("ts") >= one.since)
            if one.until is not None:
                known = found.filter(pl.col("ts") >= one.until - cut.reach_us).select("rid")
            made.add(found.select("rid", "filler_rid"))
    made.close()


class _Slice(NamedTuple):
    """A slice of time, in microseconds since 1970, half-open; None is no bound. What matters begins at ``back``."""

    back: int | None
    since: int | None
    until: int | None

    @property
    def condition(self) -> str:
        bounds = (f"ts {sign} {_literal(at)}" for sign, at in ((">=", self.back), ("<", self.until)) if at is not None)
        return " and ".join(("ts is not null", *bounds))


class _Cut(NamedTuple):
    """How a log is replayed: slice by slice, each in some parts of the keys; what came longer ago is out of reach."""

    slices: tuple[_Slice, ...]
    parts: int
    reach_us: int


def _cut(engine: Engine, requests: str, ttl_us: int, *, looks_back: bool) -> _Cut:
    """Cut a log so that slices, with what reaches into them, are bounded and look back on half of themselves."""
    found = engine.fetch(steps.filled("replay_exact_days", requests=requests)).sort("day")
    slowest = _SLOWEST[int(found["slowest"].max() or 0)]  # pyright: ignore[reportArgumentType] -- of integers
    span = _DAY_US * (1 + (found["day"][-1] - found["day"][0]).days) if len(found) else 0
    reach = span if slowest is None else min(span, ttl_us + slowest // timedelta(microseconds=1))
    days = [((day - date(1970, 1, 1)).days * _DAY_US, count) for day, count in found.select("day", "requests").rows()]
    cuts: list[int] = []
    since, held = (days[0][0] if days else 0), 0
    for day, count in days:
        if held and held + count > SLICE_ROWS and day - since >= 2 * reach * looks_back:
            cuts.append(day)
            since, held = day, 0
        held += count
    bounds = [None, *cuts, None]
    slices = tuple(
        _Slice(None if since is None else since - reach * looks_back, since, until) for since, until in pairwise(bounds)
    )
    largest = max(
        sum(count for day, count in days if (one.back or 0) <= day + _DAY_US and (one.until is None or day < one.until))
        for one in slices
    )
    return _Cut(slices, max(1, -(-largest // (2 * SLICE_ROWS))), reach)


def _literal(at: int) -> str:
    return timestamp(datetime.combine(date(1970, 1, 1), time(), UTC) + timedelta(microseconds=at))


def _rows(engine: Engine, requests: str, one: _Slice, *, part: str, kept: str) -> pl.DataFrame:
    """Fetch what may matter of a slice, times in microseconds."""
    sql = steps.filled("replay_exact", requests=requests, slice=one.condition, part=part, kept=kept)
    return engine.fetch(sql).with_columns(pl.col("ts", "stored_at").dt.timestamp("us"))


def _storable_keys(engine: Engine, requests: str) -> int:
    found = engine.fetch(
        f"select count(*) as found from (select distinct key_hash, key_check from {requests} "
        "where ts is not null and stored_at is not null)"
    )
    return int(found["found"][0])


class _Made:
    """The table of hits, put together of what the engine takes at once."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self.held: list[pl.DataFrame] = []
        self.tables: list[str] = []

    def add(self, hits: pl.DataFrame) -> None:
        self.held.append(hits)
        if sum(map(len, self.held)) >= HITS_AT_ONCE:
            self._give()

    def close(self) -> None:
        if self.held or not self.tables:
            self._give()
        self.engine.step(
            self.name, "\nunion all\n".join(f"select rid, filler_rid from {table}" for table in self.tables)
        )

    def _give(self) -> None:
        self.tables.append(f"{self.name}_{len(self.tables)}")
        frame = pl.concat([pl.DataFrame(schema=_HITS), *self.held])
        self.engine.register(self.tables[-1], frame)
        self.held = []


def _walk(
    frames: Iterator[pl.DataFrame], ttl_us: int, capacity: int, *, singleflight: bool
) -> Iterator[tuple[int, int]]:
    """Walk requests in order of start; give hits as (request, filler)."""
    entries = _Entries(ttl_us, capacity)
    running: list[tuple[int, int, int, Hashable]] = []  # misses to be stored: (stored at, start, request, key), a heap
    in_flight: dict[Hashable, list[tuple[int, int]]] = {}  # the same by key: (start, request), for singleflight
    rows = (row for frame in frames for row in frame.sort("ts", "rid").rows())
    for rid, key_hash, key_check, start, stored_at in rows:
        key = (key_hash, key_check)
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
