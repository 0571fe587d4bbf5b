"""The table `batch`: a load's rows before they are stored, with the columns that its logs can fill and no others.

Most logs fill a third of the columns of requests; to write and keep the others as NULL would double the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.store import schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import duckdb

_TYPES = {column.name: column.type for column in schema.REQUESTS}
# What is looked at in every load: who asked (owner rules match it), what decides the price, where a row is from.
_ALWAYS = (
    *(column.name for column in schema.REQUESTS if column.group in {"who", "internal"} and column.name != "price_key"),
    *("request_id", "source_format", "source_file", "source_line", "ts", "provider", "model", "service_tier", "region"),
    *("input_tokens", "output_tokens", "is_billable", "gateway_cache_hit", "flags"),
)


def make(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the table, with what every load looks at.

    Args:
        connection: Where to make it.
    """
    _make(connection, _ALWAYS)


def _make(connection: duckdb.DuckDBPyConnection, names: Collection[str]) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in _TYPES.items() if name in names)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE batch ({columns})")


def widen(connection: duckdb.DuckDBPyConnection, columns: Iterable[str]) -> None:
    """Give the table columns that a reader fills.

    Args:
        connection: Where the table is.
        columns: Their names.
    """
    there = _there(connection)
    missing = [name for name in columns if name not in there]
    if missing and not connection.execute("SELECT 1 FROM batch LIMIT 1").fetchall():
        _make(connection, {*there, *missing})
        return
    for name in missing:
        connection.execute(f"ALTER TABLE temp.batch ADD COLUMN {name} {_TYPES[name]}")


def see_whole(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the view `arrived`: the rows with all columns of requests, and ``row_id``, their place in `batch`.

    Args:
        connection: Where the table is.
    """
    there = _there(connection)
    columns = ", ".join(name if name in there else f"NULL::{kind} AS {name}" for name, kind in _TYPES.items())
    connection.execute(f"CREATE OR REPLACE TEMP VIEW arrived AS SELECT rowid AS row_id, {columns} FROM batch")


def _there(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {row[0] for row in connection.execute("DESCRIBE temp.batch").fetchall()}
