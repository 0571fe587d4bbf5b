"""The default engine: one DuckDB connection."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import duckdb
import polars as pl

from tenfold.errors import StepError
from tenfold.store.database import Store, put_frame, query
from tenfold.store.engines import PREFIX_BLOCKS

_BLOCKS = """
CREATE TEMP VIEW IF NOT EXISTS {name} AS
SELECT
  {row_id} AS rid,
  cast(generate_subscripts(prefix_hashes, 1) AS integer) AS block_no,
  unnest(prefix_hashes) AS hash
FROM requests
"""

# Spark's name for the local time of a UTC instant, so that steps can share it.
_LOCAL_TIME = (
    "CREATE OR REPLACE TEMP MACRO from_utc_timestamp(instant, zone) AS timezone(zone, timezone('UTC', instant))"
)


@contextmanager
def reading(store: Store) -> Generator[DuckDBEngine]:
    """Open a store for reading, as an engine.

    Args:
        store: The store.

    Yields:
        The engine; its connection closes at the end.
    """
    with store.reading() as connection:
        yield DuckDBEngine(connection, store.row_id)


class DuckDBEngine:
    """Run steps as temporary views on a DuckDB connection.

    Args:
        connection: An open connection; read-only ones will do.
        row_id: SQL that numbers the rows of its `requests` (the store knows: ``Store.row_id``).
    """

    name = "DuckDB"

    def __init__(self, connection: duckdb.DuckDBPyConnection, row_id: str = "rowid") -> None:
        self.connection = connection
        self.row_id = row_id
        connection.execute(_LOCAL_TIME)
        self._has_blocks = False

    def register(self, name: str, frame: pl.DataFrame) -> None:
        """Make a small frame readable under a name.

        Args:
            name: Table name for SQL.
            frame: Its rows.
        """
        put_frame(self.connection, name, frame)
        self._has_blocks |= name == PREFIX_BLOCKS

    def step(self, name: str, sql: str, *, materialised: bool = False) -> None:
        """Give a query a name that later steps can read.

        Args:
            name: View name for SQL.
            sql: One SELECT.
            materialised: Make it a temporary table instead of a view.

        Raises:
            StepError: The engine refused it; carries the text.
        """
        self._run(name, f"CREATE OR REPLACE TEMP {'TABLE' if materialised else 'VIEW'} {name} AS\n{sql}")

    def fetch(self, sql: str) -> pl.DataFrame:
        """Run a query and read its result.

        Args:
            sql: One SELECT.

        Returns:
            The frame; money as Decimal(38, 0).

        Raises:
            StepError: The engine refused it; carries the text.
        """
        try:
            self._lay_blocks(sql)
            return query(self.connection, sql)
        except duckdb.Error as error:
            raise StepError("fetch", sql, str(error)) from error

    def _lay_blocks(self, sql: str) -> None:
        """Lay the view of prefix blocks before the first query that reads it, where the store has no such table."""
        if self._has_blocks or PREFIX_BLOCKS not in sql:
            return
        self._has_blocks = True
        stored = "SELECT 1 FROM duckdb_columns() WHERE table_name = ? AND column_name = 'block_no'"
        if not self.connection.execute(stored, [PREFIX_BLOCKS]).fetchall():
            self.connection.execute(_BLOCKS.format(name=PREFIX_BLOCKS, row_id=self.row_id))

    def _run(self, name: str, sql: str) -> None:
        try:
            self._lay_blocks(sql)
            self.connection.execute(sql)
        except duckdb.Error as error:
            raise StepError(name, sql, str(error)) from error
