"""Records of a broken file on their way to the engine: in a temporary table, never in a file of their own.

They may hold text, and a file would outlive a process that is killed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tenfold.logs.base import identifier
from tenfold.store.database import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

_TABLE = "good_lines"
_AT_ONCE = 8_000_000


class KeptLines:
    """Takes JSON records as a text file would.

    Args:
        connection: Where the table is made.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._lines: list[str] = []
        self._size = 0
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {_TABLE} (record VARCHAR)")

    def write(self, line: str) -> int:
        """Take one record.

        Args:
            line: JSON object, with its line's end.

        Returns:
            Characters taken.
        """
        self._lines.append(line)
        self._size += len(line)
        if self._size > _AT_ONCE:
            self._flush()
        return len(line)

    def source(self, types: Mapping[str, object]) -> str:
        """Say how to read them.

        Args:
            types: Top key -> structure, as ``from_json`` takes it.

        Returns:
            SQL of a relation with those columns.
        """
        self._flush()
        columns = ", ".join(f"held.{identifier(name)} AS {identifier(name)}" for name in types)
        structure = quoted(json.dumps(types))
        return f"(SELECT {columns} FROM (SELECT from_json(record, {structure}) AS held FROM {_TABLE}))"

    def drop(self) -> None:
        """Let go of them."""
        self._connection.execute(f"DROP TABLE IF EXISTS {_TABLE}")

    def _flush(self) -> None:
        if self._lines:
            self._connection.execute(f"INSERT INTO {_TABLE} SELECT unnest($1::VARCHAR[])", [self._lines])
        self._lines, self._size = [], 0
