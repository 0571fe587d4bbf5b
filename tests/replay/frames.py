"""Rows with times in microseconds, put before a replay and read back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import duckdb
import polars as pl

from tenfold.replay.exact import exact_hits, key_words
from tenfold.replay.prefix import prefix_reads, session_reads
from tenfold.store.engines.duckdb import DuckDBEngine

SECOND = 1_000_000
TYPES: dict[str, Any] = {
    "rid": pl.Int64,
    "cache_key": pl.String,
    "combo": pl.Int32,
    "pool": pl.String,
    "session_id": pl.String,
    "ts": pl.Datetime("us"),
    "stored_at": pl.Datetime("us"),
    "readable_at": pl.Datetime("us"),
    "lifetime_us": pl.Int64,
    "request": pl.Int64,
    "dropped": pl.Int64,
    "reach_blocks": pl.Int64,
    "input_tokens": pl.Int64,
    "reaches_tokens": pl.Int64,
}
BLOCKS: dict[str, Any] = {"rid": pl.Int64, "block_no": pl.Int32, "hash": pl.String}


@cache
def only_engine() -> DuckDBEngine:
    """One engine for all: opening a database takes longer than a small replay."""
    return DuckDBEngine(duckdb.connect(config={"threads": 1}))


def shuffled(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """The rows in another order, as a frame."""
    schema = {name: TYPES[name] for name in (rows[0] if rows else TYPES)}
    return pl.DataFrame(random.Random(5).sample(list(rows), len(rows)), schema=schema, orient="row")


def engine_with(rows: Sequence[dict[str, Any]]) -> DuckDBEngine:
    """An engine that holds the rows, shuffled, as the view `requests`."""
    engine = only_engine()
    engine.register("requests", shuffled(rows))
    return engine


def exact(rows: Sequence[dict[str, Any]], ttl_us: int, capacity: int | None = None, **options: bool) -> dict[int, int]:
    engine = engine_with(rows)
    words = ", ".join(f"{sql} as {name}" for name, sql in key_words(["cache_key"]).items())
    engine.step("keyed", f"select rid, {words}, ts, stored_at from requests where cache_key is not null")
    exact_hits(engine, "keyed", "hits", ttl_us=ttl_us, capacity=capacity, **options)
    return dict(engine.fetch("from hits").rows())


def with_blocks(rows: Sequence[dict[str, Any]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put the lists of blocks apart: the requests, shuffled, and the blocks, long."""
    given = [
        {**{name: value for name, value in one.items() if name != "blocks"}, "request": place, "dropped": place % 3}
        | {"reach_blocks": len(one["blocks"] or ())}
        for place, one in enumerate(rows)
    ]
    blocks = [
        # what is dropped, and what lies beyond the reach, belongs to nobody else
        (place, number, block)
        for place, one in enumerate(rows)
        for number, block in enumerate([*["gone"] * (place % 3), *(one["blocks"] or ()), "beyond"], start=1)
    ]
    return shuffled(given), pl.DataFrame(blocks, schema=BLOCKS, orient="row")


def prefix(rows: Sequence[dict[str, Any]]) -> dict[tuple[int, int], int]:
    engine = only_engine()
    given, blocks = with_blocks(rows)
    engine.register("requests", given)
    engine.register("all_blocks", blocks)
    prefix_reads(engine, "requests", "found", blocks="all_blocks")
    found = engine.fetch("select combo, rid, read_blocks from found")
    assert found.schema["read_blocks"] == pl.Int32
    return {(combo, rid): blocks for combo, rid, blocks in found.rows()}


def sessions(rows: Sequence[dict[str, Any]]) -> dict[tuple[int, int], int]:
    engine = engine_with(rows)
    session_reads(engine, "requests", "found")
    return {
        (combo, rid): tokens for combo, rid, tokens in engine.fetch("select combo, rid, read_tokens from found").rows()
    }
