"""A published folder read as a store (``manifest.py`` says how it is laid out)."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from tenfold.errors import StoreError
from tenfold.store import schema
from tenfold.store.database import Store, quoted
from tenfold.store.manifest import BLOCKS, MANIFEST, REQUESTS, TABLES, Snapshot, is_published, read, resolved

# A publisher that removes a snapshot between its being found and held leaves a newer one; this often in a row is odd.
_TRIES = 20


def store_of(db: str | Path, **options: Any) -> Store:  # noqa: ANN401 (passed on)
    """Take a path for what it is: a folder, which must have been published into, or a database file.

    Args:
        db: The path.
        options: As of ``Store``.

    Returns:
        The store; nothing is opened yet.
    """
    return PublishedStore(db, **options) if Path(db).is_dir() else Store(db, **options)


def check_writable(db: str | Path | None) -> None:
    """Refuse a published folder where something is to be written, before the work.

    Args:
        db: A path of a store; None is memory.

    Raises:
        StoreError: It is a published folder.
    """
    if db is not None and is_published(db):
        raise StoreError(
            f"{db}: a published folder, which can only be read. Name the database that it was published from "
            "(--db FILE), and publish again after that: tenfold publish --db FILE --out DIR"
        )


class PublishedStore(Store):
    """A published folder as a store that can be read only.

    Args:
        path: A published folder (each reading takes what is current then), its ``current``, or a snapshot.
        limits: Memory limit; read from ``tenfold.toml`` when absent.
    """

    row_id = "rid"
    _steady: Path | None = None

    @contextmanager
    def steady(self) -> Generator[None]:
        """Let all readings within be of the snapshot that is current now; nobody waits for them.

        Yields:
            Nothing.

        Raises:
            StoreError: There is none, or it is not whole.
        """
        with self.snapshot() as found:
            before, self._steady = self._steady, found.folder
            try:
                yield
            finally:
                self._steady = before

    @contextmanager
    def snapshot(self) -> Generator[Snapshot]:
        """Hold what is current, so that no publisher removes it meanwhile.

        Yields:
            The snapshot.

        Raises:
            StoreError: There is none, or it is not whole.
        """
        assert self.path is not None
        for _ in range(_TRIES):
            folder = self._steady or resolved(self.path)
            manifest = folder / MANIFEST
            try:
                held = os.open(manifest, os.O_RDONLY)
            except FileNotFoundError:
                if folder == self.path.resolve():
                    break
                continue
            try:
                _share(held)
                if manifest.exists():
                    yield read(folder)
                    return
            finally:
                os.close(held)
        # says what is wrong with it
        read(resolved(self.path))

    @contextmanager
    def reading(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Open what is current for reading; any number of readers may be open at once.

        Yields:
            A connection with the tables as views, `requests` with ``rid``; `texts` is there and empty.

        Raises:
            StoreError: The folder holds no whole snapshot of this version.
        """
        with self.snapshot() as found, tempfile.TemporaryDirectory(prefix="tenfold-") as spill:
            config: dict[str, str | bool | int | float | list[str]] = {
                "memory_limit": self.limits.pool,
                "autoinstall_known_extensions": "false",
                "temp_directory": spill,
            }
            connection = duckdb.connect(":memory:", config=config)
            try:
                for setting in ("TimeZone='UTC'", "preserve_insertion_order=true", "enable_progress_bar=false"):
                    connection.execute(f"SET {setting}")
                connection.execute("SET parquet_metadata_cache=true")
                for name in (REQUESTS, BLOCKS, *TABLES):
                    connection.execute(_view(found, name))
                connection.execute(schema.ddl("texts", temp=True))
                yield connection
            finally:
                connection.close()

    @contextmanager
    def writing(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Refuse: a published folder is written by publishing alone.

        Raises:
            StoreError: Always.
        """
        assert self.path is not None
        check_writable(self.path)
        yield  # pyright: ignore[reportReturnType] -- a context that is never entered


def _share(handle: int) -> None:
    """Tell publishers that the snapshot is read; without locks on the file system it outlives one publish, not two."""
    if sys.platform == "win32":
        return
    import fcntl

    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_SH)


def _view(snapshot: Snapshot, table: str) -> str:
    files = ", ".join(quoted(str(file)) for file in snapshot.files(table))
    columns = {
        REQUESTS: ("rid", *(schema.names(REQUESTS))),
        BLOCKS: ("rid", "block_no", "hash"),
    }.get(table) or schema.names(table)
    return (
        f"CREATE TEMP VIEW {table} AS SELECT {', '.join(columns)} "
        f"FROM read_parquet([{files}], hive_partitioning = false)"
    )
