"""The DuckDB file: short-lived writers, read-only readers, UTC on every connection, clear words about locks."""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import polars as pl

from tenfold.config import Settings, settings
from tenfold.errors import StoreError
from tenfold.store import locks, schema

_MAGIC = b"DUCK"
_LOCKED = re.compile(r"Could not set lock")
# Seconds after which a database has its first bytes, or whoever made it is gone.
_FILLED_S = 0.5


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
        self._in_memory = threading.RLock()

    @contextmanager
    def reading(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Open for reading; any number of readers may be open at once.

        Yields:
            A connection that can make temporary views and tables only; in memory a cursor, with its own.

        Raises:
            StoreError: The file is missing, is not a tenfold store, or stays locked by a writer.
        """
        if self.path is None:
            with self._in_memory:
                cursor = self._memory_made().cursor()
                _prepare(cursor)
            try:
                yield cursor
            finally:
                cursor.close()
            return
        if not self.path.is_file():
            raise StoreError(f"{self.path}: no such database. Make it with: tenfold load PATH... --db {self.path}")
        with self._opened(self.path, read_only=True) as connection:
            # temporary tables are dropped soon: rewriting them every 16 MB costs more than it saves
            connection.execute("SET checkpoint_threshold='1TB'")
            self._check(connection)
            _add_missing(connection, temp=True)
            yield connection

    @contextmanager
    def steady(self) -> Generator[None]:
        """Let all readings within be of one state of the store; loads wait meanwhile, so not for long.

        Yields:
            Nothing.

        Raises:
            StoreError: As ``reading``.
        """
        with self.reading():
            yield

    @contextmanager
    def writing(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Open for writing, making the tables on first use; close soon.

        Yields:
            A connection; the caller begins and commits its own transaction.

        Raises:
            StoreError: The file is another program's database, or stays locked.
        """
        if self.path is None:
            with self._in_memory:
                yield self._memory_made()
            return
        with self._opened(self.path, read_only=False) as connection:
            # Also what a process left that was killed before it had made the tables.
            if _is_empty(connection):
                _create(connection)
            self._check(connection)
            _add_missing(connection)
            yield connection

    def _memory_made(self) -> duckdb.DuckDBPyConnection:
        if self._memory is None:
            self._memory = duckdb.connect(":memory:", config=self._config())
            _prepare(self._memory)
            _create(self._memory)
        return self._memory

    def _config(self) -> dict[str, str | bool | int | float | list[str]]:
        return {"memory_limit": self.limits.pool, "autoinstall_known_extensions": "false"}

    @contextmanager
    def _opened(self, path: Path, *, read_only: bool) -> Generator[duckdb.DuckDBPyConnection]:
        """Wait for this thread's and this process's turn, and have the file open for as long as the context lasts."""
        wait = locks.Wait(path, self.limits.lock_timeout_s, read_only=read_only)
        gate = locks.gate_of(path)
        with gate.held(wait):
            connection = self._connect(path, gate, wait)
            try:
                _prepare(connection)
                yield connection
            finally:
                with gate.connecting:
                    connection.close()
                    gate.connections -= 1

    def _connect(self, path: Path, gate: locks.Gate, wait: locks.Wait) -> duckdb.DuckDBPyConnection:
        queue = locks.Queue(wait)
        try:
            while True:
                if not gate.reads() and (ahead := queue.ahead()):
                    pause = wait.step_behind(ahead)
                else:
                    try:
                        return self._connect_once(path, gate, read_only=wait.read_only)
                    except duckdb.IOException as error:
                        if not _LOCKED.search(str(error)) and (wait.read_only or not self._is_zero_bytes()):
                            raise self._unusable(error, read_only=wait.read_only) from error
                        pause = wait.step_for(str(error))
                        if self._is_abandoned():
                            path.unlink()  # killed before the first byte was written: DuckDB refuses such a file
                    queue.enter()
                time.sleep(pause)
        finally:
            queue.leave()

    def _connect_once(self, path: Path, gate: locks.Gate, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        with gate.connecting:
            # Only a process that has no connection may open the file to look: closing it again drops all its locks.
            if not gate.connections and self._is_other_file():
                raise self._no_database(read_only=read_only)
            try:
                connection = duckdb.connect(path, read_only=read_only, config=self._config())
            except duckdb.IOException:
                raise
            except (duckdb.Error, RuntimeError) as error:
                raise self._unusable(error, read_only=read_only) from error
            gate.connections += 1
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

    def _is_abandoned(self) -> bool:
        """Tell a file that nobody will fill from one that another process has made this very moment."""
        return self.path is not None and self._is_zero_bytes() and time.time() - self.path.stat().st_mtime > _FILLED_S

    def _unusable(self, error: Exception, *, read_only: bool) -> StoreError:
        """Say why the file cannot be opened, and what to do."""
        path, said = self.path, _first_line(error)
        if "different configuration" in said:
            return StoreError(
                f"{path}: this process has it open with other settings, or by another library. Close that connection "
                "first, or read a copy: tenfold publish"
            )
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


def _prepare(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone='UTC'")
    connection.execute("SET preserve_insertion_order=true")
    connection.execute("SET enable_progress_bar=false")


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
        frame.write_parquet(file, compression="uncompressed")  # read once, at once
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM read_parquet({quoted(str(file))})")


def quoted(text: str) -> str:
    """Write text as a SQL string literal.

    Args:
        text: Any text.

    Returns:
        The literal, quotes doubled.
    """
    return "'" + text.replace("'", "''") + "'"
