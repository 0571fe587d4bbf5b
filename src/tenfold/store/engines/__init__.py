"""Engines that run the SQL steps. Each is one file with the three methods of ``Engine``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import polars as pl

from tenfold.store.database import Store

PREFIX_BLOCKS = "prefix_blocks"
"""Relation of every engine beside the stored tables: prefix blocks, long (rid, block_no from 1, hash)."""


class Engine(Protocol):
    """What a step needs of the machine it runs on."""

    name: str
    """What to call it: `DuckDB`, whose words users' conditions may use, or another."""
    row_id: str
    """SQL that numbers the rows of a stored table, alike in every query on it."""

    def register(self, name: str, frame: pl.DataFrame) -> None:
        """Make a small frame readable under a name.

        Args:
            name: Table name for SQL.
            frame: Its rows.
        """
        ...

    def step(self, name: str, sql: str, *, materialised: bool = False) -> None:
        """Give a query a name that later steps can read.

        Args:
            name: View name for SQL.
            sql: One SELECT in the shared subset.
            materialised: Compute it now and keep the result, where several queries will read it.
        """
        ...

    def fetch(self, sql: str) -> pl.DataFrame:
        """Run a query and read its result.

        Args:
            sql: One SELECT in the shared subset.

        Returns:
            The frame; money as Decimal(38, 0).
        """
        ...


class Engines(Protocol):
    """A way to lay an engine over a store: what ``engine=`` takes."""

    def open(self, store: Store) -> AbstractContextManager[Engine]:
        """Open a store for reading.

        Args:
            store: The store.

        Returns:
            The engine with the store's tables in reach, for as long as the context lasts.
        """
        ...
