"""The DuckDB file: short-lived writers, read-only readers, UTC on every connection, clear words about locks."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import polars as pl

from tenfold.config import Settings, settings
from tenfold.errors import StoreError
from tenfold.store import schema

_MAGIC = b"DUCK"
_LOCKED = re.compile(r"Could not set lock")
_HOLDER = re.compile(r"held in (?P<exe>\S+)(?: \(deleted\))? \(PID (?P<pid>\d+)\)")


class Store:
    """One tenfold database: a DuckDB file, or memory when no path is given.

    Args:
        path: File to open; None keeps everything in memory.
        limits: Memory and lock limits; read from ``tenfold.toml`` when absent.
    """

    row_id = "rowid"
    """SQL that numbers the rows of `requests`, alike in every query until the next load."""

    def __init__(self, path: str | Path | None = None, *, limits: Settings | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.limits = limits or settings()
        self._memory: duckdb.DuckDBPyConnection | None = None

    @contextmanager
    def reading(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Open for reading; any number of readers may be open at once.

        Yields:
            A connection that can make temporary views and tables only (a memory store hands out cursors).

        Raises:
            StoreError: The file is missing, is not a tenfold store, or stays locked by a writer.
        """
        if self.path is None:
            with self.writing() as connection:
                yield connection
            return
        if not self.path.is_file():
            raise StoreError(f"{self.path}: no such database. Make it with: tenfold load PATH... --db {self.path}")
        connection = self._open(read_only=True)
        try:
            # temporary tables are dropped soon: rewriting them every 16 MB costs more than it saves
            connection.execute("SET checkpoint_threshold='1TB'")
            self._check(connection)
            _add_missing(connection, temp=True)
            yield connection
        finally:
            connection.close()

    @contextmanager
    def writing(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Open for writing, making the tables on first use; close soon.

        Yields:
            A connection; the caller begins and commits its own transaction.

        Raises:
            StoreError: The file is another program's database, or stays locked.
        """
        if self.path is None:
            if self._memory is None:
                self._memory = self._open(read_only=False)
                _create(self._memory)
            yield self._memory
            return
        connection = self._open(read_only=False)
        try:
            # Also what a process left that was killed before it had made the tables.
            if _is_empty(connection):
                _create(connection)
            self._check(connection)
            _add_missing(connection)
            yield connection
        finally:
            connection.close()

    def _open(self, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        target = ":memory:" if self.path is None else str(self.path)
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": self.limits.memory_limit,
            "autoinstall_known_extensions": "false",
        }
        if self._is_other_file():
            raise self._no_database(read_only=read_only)
        deadline = time.monotonic() + self.limits.lock_timeout_s
        pause = 0.05
        while True:
            try:
                connection = duckdb.connect(target, read_only=read_only, config=config)
            except duckdb.IOException as error:
                if not _LOCKED.search(str(error)):
                    if not read_only and self._is_zero_bytes():
                        # Killed before the first byte was written: DuckDB refuses such a file.
                        Path(target).unlink()
                        continue
                    raise self._unusable(error, read_only=read_only) from error
                if time.monotonic() >= deadline:
                    raise StoreError(self._locked(str(error), read_only=read_only)) from error
                time.sleep(pause)
                pause = min(2 * pause, 1.0)
            except (duckdb.Error, RuntimeError) as error:
                raise self._unusable(error, read_only=read_only) from error
            else:
                connection.execute("SET TimeZone='UTC'")
                connection.execute("SET preserve_insertion_order=true")
                connection.execute("SET enable_progress_bar=false")
                return connection

    def _is_other_file(self) -> bool:
        """Tell a log or any other file, of which DuckDB might make a database in memory, by its first bytes."""
        if self.path is None or not self.path.is_file() or not os.access(self.path, os.R_OK):
            return False
        with self.path.open("rb") as handle:
            start = handle.read(12)
        return bool(start) and start[8:] != _MAGIC

    def _no_database(self, *, read_only: bool) -> StoreError:
        use = "Name the database that the logs were loaded into" if read_only else "Load into a new file"
        return StoreError(f"{self.path}: not a DuckDB database. {use}: --db FILE")

    def _is_zero_bytes(self) -> bool:
        return self.path is not None and self.path.is_file() and self.path.stat().st_size == 0

    def _locked(self, message: str, *, read_only: bool) -> str:
        holder = _HOLDER.search(message)
        who = f"PID {holder['pid']}, {Path(holder['exe']).name}" if holder else "another process"
        use = "written" if read_only else "used"
        return (
            f"{self.path} is being {use} by {who}. Waited {self.limits.lock_timeout_s:g} s. "
            "Try again when it is done, or close that process (an open notebook counts)"
        )

    def _unusable(self, error: Exception, *, read_only: bool) -> StoreError:
        """Say why the file cannot be opened, and what to do."""
        path, said = self.path, _first_line(error)
        if path is not None and not path.parent.is_dir():
            return StoreError(f"{path}: there is no directory {path.parent}. Make it, or name another file: --db FILE")
        if path is not None and path.is_dir():
            return StoreError(f"{path}: a directory, not a database. Name a file in it: --db {path / 'usage.duckdb'}")
        if "not a valid DuckDB database" in said:
            return self._no_database(read_only=read_only)
        return StoreError(f"{path or ':memory:'}: {said}")

    def _check(self, connection: duckdb.DuckDBPyConnection) -> None:
        if _is_empty(connection):
            raise StoreError(
                f"{self.path}: a database without tables: nothing has been loaded yet. "
                f"Load logs with: tenfold load PATH... --db {self.path}"
            )
        found = connection.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_name IN ('requests', 'loads', 'meta')"
        ).fetchall()[0][0]
        if found != 3:
            raise StoreError(f"{self.path}: a database, but not one that tenfold made. Load into a new file: --db FILE")
        version = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchall()
        if version != [(str(schema.SCHEMA_VERSION),)]:
            raise StoreError(
                f"{self.path}: made by another version of tenfold (schema {version}, this is "
                f"{schema.SCHEMA_VERSION}). Load the logs again into a new file"
            )


def _is_empty(connection: duckdb.DuckDBPyConnection) -> bool:
    return connection.execute("SELECT count(*) FROM information_schema.tables").fetchall() == [(0,)]


def _create(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("BEGIN")
    for table in schema.TABLES:
        connection.execute(schema.ddl(table))
    connection.execute("INSERT INTO meta VALUES ('schema_version', ?)", [str(schema.SCHEMA_VERSION)])
    connection.execute("COMMIT")


def _add_missing(connection: duckdb.DuckDBPyConnection, *, temp: bool = False) -> None:
    """Add what a file made by an earlier release lacks; a reader gets it for itself, empty."""
    there = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
    for table in schema.ADDED:
        if (table,) not in there:
            connection.execute(schema.ddl(table, temp=temp))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def to_frame(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """Read a relation into a Polars frame, decimals kept exact (through the Arrow stream protocol).

    Args:
        relation: What ``connection.sql(...)`` gave.

    Returns:
        The frame.
    """
    return pl.DataFrame(relation)


def query(connection: duckdb.DuckDBPyConnection, sql: str) -> pl.DataFrame:
    """Run one query and read its result.

    Args:
        connection: Where to run it.
        sql: One SELECT.

    Returns:
        The frame; sums of money come as Decimal(38, 0).
    """
    return to_frame(connection.sql(sql))


def put_frame(connection: duckdb.DuckDBPyConnection, name: str, frame: pl.DataFrame) -> None:
    """Put a frame into a temporary table, replacing one of that name.

    Goes through a Parquet file: DuckDB reads a Polars frame in memory only with pyarrow, which this is not worth.

    Args:
        connection: Where to make the table.
        name: Its name.
        frame: Its rows.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "frame.parquet"
        frame.write_parquet(file)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM read_parquet({quoted(str(file))})")


def quoted(text: str) -> str:
    """Write text as a SQL string literal.

    Args:
        text: Any text.

    Returns:
        The literal, quotes doubled.
    """
    return "'" + text.replace("'", "''") + "'"
