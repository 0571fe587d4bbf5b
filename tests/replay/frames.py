"""Rows with times in microseconds, put before a replay and read back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import duckdb
import polars as pl

from tenfold.replay.exact import exact_hits
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
    "blocks": pl.List(pl.String),
    "input_tokens": pl.Int64,
    "reaches_tokens": pl.Int64,
}


@cache
def only_engine() -> DuckDBEngine:
    """One engine for all: opening a database takes longer than a small replay."""
    return DuckDBEngine(duckdb.connect(config={"threads": 1}))


def engine_with(rows: Sequence[dict[str, Any]]) -> DuckDBEngine:
    """An engine that holds the rows, shuffled, as the view `requests`."""
    engine = only_engine()
    shuffled = random.Random(5).sample(list(rows), len(rows))
    schema = {name: TYPES[name] for name in (rows[0] if rows else TYPES)}
    engine.register("requests", pl.DataFrame(shuffled, schema=schema, orient="row"))
    return engine


def exact(rows: Sequence[dict[str, Any]], ttl_us: int, capacity: int | None = None, **options: bool) -> dict[int, int]:
    engine = engine_with(rows)
    exact_hits(engine, "requests", "hits", ttl_us=ttl_us, capacity=capacity, **options)
    return dict(engine.fetch("from hits").rows())


def prefix(rows: Sequence[dict[str, Any]]) -> dict[tuple[int, int], int]:
    engine = engine_with(rows)
    prefix_reads(engine, "requests", "found")
    found = engine.fetch("select combo, rid, read_blocks from found")
    assert found.schema["read_blocks"] == pl.Int32
    return {(combo, rid): blocks for combo, rid, blocks in found.rows()}


def sessions(rows: Sequence[dict[str, Any]]) -> dict[tuple[int, int], int]:
    engine = engine_with(rows)
    session_reads(engine, "requests", "found")
    return {
        (combo, rid): tokens for combo, rid, tokens in engine.fetch("select combo, rid, read_tokens from found").rows()
    }
