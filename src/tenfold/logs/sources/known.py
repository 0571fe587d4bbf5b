"""What a database already holds: versions that were loaded with the same settings, and how far sources were read."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenfold.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import duckdb

    from tenfold.logs.sources.base import Mark

_FORMAT = "format"


class Known:
    """Looked up before anything is fetched; only where a source asks.

    Args:
        db: The database; None, or a file that is not there yet, holds nothing.
        wanted: Settings of this load as `loads` holds them, with ``format`` None where it is to be told by content.
    """

    def __init__(self, db: str | Path | None, wanted: Mapping[str, object]) -> None:
        self._db = Path(db) if db is not None and Path(db).exists() else None
        self._wanted = wanted

    @cached_property
    def _versions(self) -> dict[tuple[str, str], int]:
        rows = self._rows("SELECT source_file, version, settings, load_id FROM loads WHERE version IS NOT NULL")
        alike = {text: self._is_alike(text) for text in {row[2] for row in rows}}
        return {(file, version): load_id for file, version, settings, load_id in rows if alike[settings]}

    @cached_property
    def _meta(self) -> dict[str, str]:
        return dict(self._rows("SELECT name, value FROM meta"))

    def _rows(self, sql: str) -> list[Any]:
        if self._db is None:
            return []
        # As the load that follows opens it: a file that was just made has no tables yet.
        with Store(self._db).writing() as connection:
            return connection.execute(sql).fetchall()

    def _is_alike(self, text: str) -> bool:
        settings, named = json.loads(text), self._wanted.get(_FORMAT)
        formats = settings[_FORMAT] in {named, "empty"} if named else True
        return formats and {**settings, _FORMAT: None} == {**self._wanted, _FORMAT: None}

    def load(self, name: str, version: str) -> int | None:
        """Find the load that read a version of a source with the same settings.

        Args:
            name: The source.
            version: Its version; empty is never known.

        Returns:
            Row of `loads`; None where there is none.
        """
        return self._versions.get((name, version)) if version else None

    def mark(self, name: str) -> str | None:
        """Say how far a source has been read.

        Args:
            name: Name of the mark.

        Returns:
            Its value; None where it was never read.
        """
        return self._meta.get(name)


def move(connection: duckdb.DuckDBPyConnection, marks: Iterable[Mark]) -> None:
    """Store how far sources have been read; a mark never moves back.

    Args:
        connection: The store, in the transaction of the rows.
        marks: The marks.
    """
    for name, value in marks:
        connection.execute("UPDATE meta SET value = greatest(value, $2) WHERE name = $1", [name, value])
        connection.execute("INSERT INTO meta SELECT $1, $2 WHERE NOT EXISTS (FROM meta WHERE name = $1)", [name, value])
