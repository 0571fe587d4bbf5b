"""The daily cube: token sums by owner and price key, kept with every load so that prices can be read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.store import cells as cell_columns
from tenfold.store import schema, steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

_SUMS = ("requests", "split_unknown", *schema.TOKEN_COLUMNS)
_KEYS = tuple(column.name for column in schema.CUBE if column.name not in _SUMS)
_SLACK_CELLS = 10_000


def cells_sql(source: str, thresholds: Iterable[int], sign: int = 1) -> str:
    """Write the SELECT that sums rows of requests into cells.

    Args:
        source: SQL of the rows: a table or a parenthesised query.
        thresholds: Long-context thresholds.
        sign: -1 takes the rows out again.

    Returns:
        SQL text, columns as in the table `cube`.
    """
    requests = steps.filled("cells_requests", requests=source, condition="true")
    cells = steps.filled(
        "cells_grouped",
        cells="request_cells",
        dimensions="".join(f"{name},\n  " for name in schema.CUBE_DIMENSIONS),
        names="".join(f"{name},\n  " for name in schema.CUBE_DIMENSIONS),
        condition="true",
        **cell_columns.grouping_words(thresholds),
    )
    keys = ", ".join(name for name in _KEYS if name != "day")
    sums = ", ".join(f"{sign} * {name} AS {name}" for name in _SUMS)
    return (
        f"WITH request_cells AS (\n{requests}\n),\ngrouped AS (\n{cells}\n)\n"
        f"SELECT CASE WHEN is_dated THEN day END AS day, {keys}, {sums} FROM grouped"
    )


def thresholds_of(connection: duckdb.DuckDBPyConnection) -> tuple[int, ...] | None:
    """Read the thresholds that the cube was built with.

    Args:
        connection: The store.

    Returns:
        The thresholds; None where there is no cube yet.
    """
    found = connection.execute("SELECT value FROM meta WHERE name = 'thresholds'").fetchall()
    return tuple(int(text) for text in found[0][0].split(",") if text) if found else None


def rebuild(connection: duckdb.DuckDBPyConnection, thresholds: Iterable[int]) -> None:
    """Build the cube anew from all requests, within the caller's transaction.

    Args:
        connection: The store, open for writing.
        thresholds: Long-context thresholds to keep apart.
    """
    limits = tuple(sorted(set(thresholds)))
    connection.execute("DELETE FROM cube")
    if connection.execute("SELECT 1 FROM requests LIMIT 1").fetchall():
        connection.execute(f"INSERT INTO cube {cells_sql('requests', limits)}")
    _put_meta(connection, "thresholds", ",".join(str(limit) for limit in limits))
    _note_size(connection)


def add(connection: duckdb.DuckDBPyConnection, source: str, thresholds: Iterable[int], sign: int = 1) -> None:
    """Add rows of requests to the cube, or take them out.

    Args:
        connection: The store, open for writing.
        source: SQL of the rows.
        thresholds: Long-context thresholds of this cube.
        sign: -1 takes them out.
    """
    connection.execute(f"INSERT INTO cube {cells_sql(source, thresholds, sign)}")


def compact(connection: duckdb.DuckDBPyConnection, *, force: bool) -> None:
    """Sum cells of one kind into one, where the table has doubled since the last time.

    Args:
        connection: The store, open for writing.
        force: In any case (after a correction, so that no negative cell stays).
    """
    rows = connection.execute("SELECT count(*) FROM cube").fetchall()[0][0]
    found = connection.execute("SELECT value FROM meta WHERE name = 'cube_cells'").fetchall()
    before = int(found[0][0]) if found else 0
    if not force and rows <= 2 * before + _SLACK_CELLS:
        return
    keys = ", ".join(_KEYS)
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in _SUMS)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE cells AS SELECT {keys}, {sums} FROM cube GROUP BY ALL HAVING sum(requests) <> 0"
    )
    connection.execute("DELETE FROM cube")
    connection.execute("INSERT INTO cube BY NAME FROM cells")
    connection.execute("DROP TABLE cells")
    _note_size(connection)


def _note_size(connection: duckdb.DuckDBPyConnection) -> None:
    _put_meta(connection, "cube_cells", str(connection.execute("SELECT count(*) FROM cube").fetchall()[0][0]))


def _put_meta(connection: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    connection.execute("DELETE FROM meta WHERE name = ?", [name])
    connection.execute("INSERT INTO meta VALUES (?, ?)", [name, value])
