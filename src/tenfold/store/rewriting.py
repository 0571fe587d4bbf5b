"""A database written anew into a file that takes its place: what was taken out leaves no bytes behind.

DuckDB marks deleted rows and reuses their blocks later; until then their bytes can be read in the file.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tenfold.errors import StoreError
from tenfold.store import schema
from tenfold.store.database import quoted

if TYPE_CHECKING:
    import duckdb

# Who opened the old file in the very moment of the change is refused by its lock for this long, and looks again.
_HELD_S = 0.25


def rewrite(
    connection: duckdb.DuckDBPyConnection,
    path: Path | None,
    stays: Mapping[str, str],
    finish: Callable[[str], None],
) -> None:
    """Write what stays of a store, in one piece: a file anew and then in its place, a store in memory in a transaction.

    Args:
        connection: The store, open for writing.
        path: Its file; None is memory.
        stays: Table to the SELECT of what stays of it, over ``{held}``: the prefix of the tables as they are.
            Other tables stay as they are.
        finish: Called with that prefix when what stays is written, its tables being those without a prefix, to bring
            the rest in step; part of the same transaction.

    Raises:
        StoreError: The file holds tables that are not tenfold's, or there is no space; nothing was changed.
    """
    if path is None:
        _in_memory(connection, stays, finish)
        return
    real = path.resolve()
    _refuse_others(connection, real)
    _refuse_full(real)
    part = real.with_name(f".{real.name}.anew")
    _cleared(part)  # what one that was killed has left
    try:
        _into(connection, part, stays, finish)
        shutil.copymode(real, part)
        connection.execute("CHECKPOINT")
        # The next writer's log has the name of the old file's: closing the old one must not touch it.
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        part.replace(real)
        time.sleep(_HELD_S)
    finally:
        _cleared(part)


def _cleared(part: Path) -> None:
    for left in (part, part.with_name(f"{part.name}.wal")):
        left.unlink(missing_ok=True)


def _into(
    connection: duckdb.DuckDBPyConnection, part: Path, stays: Mapping[str, str], finish: Callable[[str], None]
) -> None:
    name = str(connection.execute("SELECT current_database()").fetchall()[0][0])
    quotes = name.replace('"', '""')
    held, anew = f'"{quotes}".main.', f'"{quotes}_anew"'
    connection.execute(f"ATTACH {quoted(str(part))} AS {anew}")
    try:
        connection.execute(f"USE {anew}")
        connection.execute("BEGIN")
        try:
            for table in schema.TABLES:
                connection.execute(schema.ddl(table))
                columns = ", ".join(schema.names(table))
                source = stays.get(table, "FROM {held}" + table).format(held=held)
                connection.execute(f"INSERT INTO {table} SELECT {columns} FROM ({source})")
            finish(held)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute(f"CHECKPOINT {anew}")
    finally:
        connection.execute(f"USE {held.removesuffix('.main.')}")
        connection.execute(f"DETACH {anew}")
    with part.open("rb") as handle:
        os.fsync(handle.fileno())


def _in_memory(connection: duckdb.DuckDBPyConnection, stays: Mapping[str, str], finish: Callable[[str], None]) -> None:
    connection.execute("BEGIN")
    try:
        for table in stays:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE held_{table} AS FROM {table}")
        for table, sql in stays.items():
            kept = sql.format(held="temp.held_")
            connection.execute(f"DELETE FROM {table}")
            connection.execute(f"INSERT INTO {table} SELECT {', '.join(schema.names(table))} FROM ({kept})")
        finish("temp.held_")
        for table in stays:
            connection.execute(f"DROP TABLE temp.held_{table}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _refuse_others(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    own = ", ".join(f"('{table}', '{column}')" for table in schema.TABLES for column in schema.names(table))
    rows = connection.execute(
        "SELECT concat_ws('.', nullif(schema_name, 'main'), table_name, "
        f"CASE WHEN table_name IN ({', '.join(map(quoted, schema.TABLES))}) THEN column_name END) AS name "
        "FROM duckdb_columns() WHERE database_name = current_database() AND NOT internal "
        f"AND (schema_name <> 'main' OR (table_name, column_name) NOT IN ({own})) "
        "UNION SELECT function_name FROM duckdb_functions() WHERE database_name = current_database() AND NOT internal "
        "UNION SELECT sequence_name FROM duckdb_sequences() WHERE database_name = current_database() "
        "UNION SELECT type_name FROM duckdb_types() WHERE database_name = current_database() AND NOT internal "
        "ORDER BY name"
    ).fetchall()
    if rows:
        raise StoreError(
            f"{path}: holds what is not tenfold's ({', '.join(name for (name,) in rows[:5])}) and would be lost as the "
            "file is written anew. Move it into a database of its own first"
        )
    if path.stat().st_nlink > 1:
        raise StoreError(
            f"{path}: the same file has another name (a hard link), which would keep what is to go. Remove that first"
        )


def _refuse_full(path: Path) -> None:
    size, free = path.stat().st_size, shutil.disk_usage(path.parent).free
    if free < size:
        raise StoreError(
            f"{path}: is written anew beside itself, which takes up to {size / 1e9:,.1f} GB; {free / 1e9:,.1f} GB are "
            "free. Make room first; nothing was changed"
        )
