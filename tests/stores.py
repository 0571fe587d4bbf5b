"""Logs made by hand: request dicts straight into a store, price keys and cube as a load makes them."""

from __future__ import annotations

from typing import Any

import polars as pl

from tenfold.logs import cube
from tenfold.logs.log import Log
from tenfold.prices.words import canonical_provider, canonical_tier
from tenfold.store import schema
from tenfold.store.database import Store, put_frame

_TYPES = {
    "VARCHAR": pl.String,
    "BIGINT": pl.Int64,
    "INTEGER": pl.Int32,
    "DOUBLE": pl.Float64,
    "BOOLEAN": pl.Boolean,
    "TIMESTAMP": pl.Datetime("us"),
}


def log_of(rows: list[dict[str, Any]], thresholds: tuple[int, ...] = ()) -> Log:
    """A log in memory that holds these requests; `ts` aware or naive UTC, what is left out is NULL."""
    columns = {column.name: _TYPES[column.type] for column in schema.REQUESTS if column.type in _TYPES}
    keys: dict[tuple[str, str, str, str], int] = {}
    made = []
    for row in rows:
        ts = row.get("ts")
        parts = (
            canonical_provider(row.get("provider")),
            row.get("model") or "",
            canonical_tier(row.get("service_tier")),
            row.get("region") or "",
        )
        key = keys.setdefault(parts, len(keys) + 1)
        made.append({**row, "price_key": key, "ts": ts.replace(tzinfo=None) if ts is not None else None})
    store = Store()
    with store.writing() as connection:
        put_frame(connection, "made", pl.DataFrame([{n: row.get(n) for n in columns} for row in made], schema=columns))
        connection.execute("INSERT INTO requests BY NAME FROM made")
        for parts, key in keys.items():
            connection.execute("INSERT INTO price_keys VALUES (?, ?, ?, ?, ?)", [key, *parts])
        cube.rebuild(connection, thresholds)
    return Log(store, {"requests": len(rows), "duplicates": 0, "merged": 0, "rejected": 0})
