"""A log published as day files: Parquet that other programs and Spark read, while loads go on (`tenfold publish`).

Which days changed is known from their content: one pass over `requests` sums a 64-bit hash of every row, all columns
in it, by day. The sum does not depend on the order of rows, so whatever changed a row (a load, a snapshot that
takes a request's place, owner rules, forgetting) changes the day's number, and nothing else does. The hash is DuckDB's,
fixed within one of its versions, which the manifest names: under another one all days are written.

Within a day rows stand by time, load, line, key and hash, so equal rows make equal bytes. A day is sorted at a time,
within the memory limit; what does not fit is spilled beside the database.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb

from tenfold.display import counted
from tenfold.errors import StoreError
from tenfold.export import snapshots
from tenfold.logs.forgotten import FORGOTTEN
from tenfold.store import schema
from tenfold.store.database import quoted
from tenfold.store.manifest import (
    BLOCKS,
    MANIFEST,
    REQUESTS,
    RID_STEP,
    TABLES,
    UNDATED,
    UNDATED_DAY,
    Day,
    Snapshot,
    Written,
    place,
)
from tenfold.store.published import PublishedStore

if TYPE_CHECKING:
    from tenfold.logs import Log

# What reading takes; the key of the hashes, its fingerprint and the marks of sources stay at home.
_META = ("schema_version", "thresholds", "cube_cells", "owners", FORGOTTEN)
_KEPT: Final = 2
# DuckDB hashes an empty list or map as it does none.
_NONE: Final = "prefix_hashes IS NULL, flags IS NULL, tags IS NULL"
_STAMP = "%Y%m%dT%H%M%SZ"
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Published:
    """What publishing did.

    Args:
        out: The published folder.
        snapshot: The current snapshot's folder.
        is_new: Whether it was made now; else nothing has changed since it was.
        rows: Requests in it.
        days: Days in it, one of them the rows without a time if there are any.
        written: Days that were written.
        linked: Days taken from the snapshot before.
        bytes: Size of what was written.
        removed: Old snapshots that were removed.
    """

    out: Path
    snapshot: Path
    is_new: bool
    rows: int
    days: int
    written: int
    linked: int
    bytes: int
    removed: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold publish --json``.

        Returns:
            ``out``, ``snapshot``, ``is_new``, ``rows``, ``days``, ``written``, ``linked``, ``bytes``, ``removed[]``.
        """
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "out": str(self.out), "snapshot": str(self.snapshot), "removed": list(self.removed)}


def publish(log: Log, out: str | Path, *, progress: Progress | None = None) -> Published:
    """Publish a log as a folder of Parquet files by day, which ``tf.open_log`` and every reading command read.

    A snapshot is made whole beside the current one and then takes its place at one stroke; days whose rows have not
    changed are taken over. Prompts, answers, excerpts of refused lines and the key of the hashes are not in it.

    Args:
        log: The log.
        out: Folder to publish into: new, empty, or published into before.
        progress: Told how many days are done, of how many.

    Returns:
        What was done.

    Raises:
        StoreError: The folder holds something else, another publisher is at work, or the log cannot be read; what was
            published before is as it was.
        OSError: The folder cannot be written, such as for lack of space; what was published before is as it was.
    """
    return publish_keeping(log, out, _KEPT, progress=progress)


def publish_keeping(
    log: Log, out: str | Path, keep: int, *, even_read: bool = False, progress: Progress | None = None
) -> Published:
    """Publish, and keep a number of snapshots.

    Args:
        log: The log.
        out: The folder.
        keep: How many of the newest snapshots stay.
        even_read: Remove old ones also where somebody reads them.
        progress: Told how many days are done, of how many.

    Returns:
        What was done.

    Raises:
        StoreError: As ``publish``.
        OSError: As ``publish``.
    """
    if isinstance(log.store, PublishedStore):
        raise StoreError(f"{log.store.path}: a published folder. Publish from the database: --db FILE; or copy it")
    path = Path(out)
    with snapshots.opened(path, log.store.limits.lock_timeout_s) as folder, folder.staging() as staged:
        try:
            with log.store.reading() as connection:
                _refuse_other(connection, folder.current, path)
                made = _Making(connection, staged, folder.current, progress).made(log.log_hash)
        except duckdb.Error as error:
            said = str(error).splitlines()[0]
            raise StoreError(f"{path}: nothing was published, and what was before stands. {said}") from error
        before = folder.current
        is_new = before is None or not _is_same(before, made)
        if is_new:
            target = folder.put(staged, f"{datetime.now(UTC):{_STAMP}}-{made.digest}")
        else:
            assert before is not None
            target = before.folder
        removed = folder.prune(keep, even_read=even_read)
    taken = _taken(before, made)
    files = [written for name, day in made.days.items() if name not in taken for written in day[1:]]
    return Published(
        path,
        target,
        is_new,
        sum(day.requests.rows for day in made.days.values()),
        len(made.days),
        len(made.days) - len(taken),
        len(taken),
        sum(written.bytes for written in (*files, *made.tables.values())) if is_new else 0,
        tuple(removed),
    )


def check_target(log: Log, out: Path) -> None:
    """Refuse a folder that a log cannot be published into, before other work is done.

    Args:
        log: The log.
        out: The folder.

    Raises:
        StoreError: It holds something else, one snapshot, or another log.
    """
    snapshots.check(out)
    with log.store.reading() as connection:
        _refuse_other(connection, snapshots.Folder(out).current, out)


def _refuse_other(connection: duckdb.DuckDBPyConnection, before: Snapshot | None, out: Path) -> None:
    """Refuse a folder that was published from another log: loads are only ever added to one."""
    if before is None:
        return
    same = "load_id, sha256, loaded_at"
    strange = connection.execute(
        f"SELECT count(*) FROM (SELECT {same} FROM read_parquet({quoted(str(before.file('loads')))}) "
        f"EXCEPT SELECT {same} FROM loads)"
    ).fetchall()[0][0]
    if strange:
        raise StoreError(
            f"{out}: holds another log, of which {counted(strange, 'load')} never came into this one. Publish into a "
            "folder of its own, or remove this one first"
        )


class _Held(NamedTuple):
    """A day as the store holds it.

    Args:
        name: Its name.
        within: SQL that tells its rows.
        content: Count and sum of the hashes of its rows.
        first: The ``rid`` of its first row.
        blocks: Prefix blocks of its rows.
    """

    name: str
    within: str
    content: str
    first: int
    blocks: int


class _Making:
    """One snapshot in the making.

    Args:
        connection: The store.
        staged: Where it is made.
        before: The snapshot before.
        progress: Told how far it is.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        staged: Path,
        before: Snapshot | None,
        progress: Progress | None,
    ) -> None:
        self.connection = connection
        self.staged = staged
        self.writer = f"duckdb {duckdb.__version__}"
        self.before = before if before is not None and before.writer == self.writer else None
        self.progress = progress
        self.columns = ", ".join(schema.names(REQUESTS))
        # Days without prefix blocks share one file.
        self.empty: Path | None = None
        self.none = Written(0, 0, "")

    def made(self, log_hash: str) -> Snapshot:
        days: dict[str, Day] = {}
        found = self._contents()
        for number, held in enumerate(found):
            if self.progress:
                self.progress(number, len(found))
            days[held.name] = self._taken(held) or self._day(held)
        tables = {name: self._table(name) for name in TABLES}
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        made = Snapshot(self.staged, made_at, log_hash, metadata.version("tenfold"), self.writer, days, tables)
        manifest = self.staged / MANIFEST
        manifest.write_text(json.dumps(made.as_dict(), indent=1) + "\n", encoding="utf-8")
        snapshots.synced(manifest)
        if self.progress:
            self.progress(len(found), len(found))
        return made

    def _contents(self) -> list[_Held]:
        """List the days; one without rows where there are none, for readers to have columns."""
        rows = self.connection.execute(
            "SELECT ts::DATE AS day, count(*), sum(hash("
            f"{self.columns}, {_NONE})::HUGEINT)::VARCHAR, coalesce(sum(len(prefix_hashes)), 0)::BIGINT,\n"
            "day::VARCHAR, (day + 1)::VARCHAR, date_diff('day', DATE '1970-01-01', day)\n"
            "FROM requests GROUP BY day ORDER BY day NULLS LAST"
        ).fetchall()
        return [
            _Held(UNDATED, "ts IS NULL", f"{count} {content}", UNDATED_DAY * RID_STEP, blocks)
            if name is None
            else _Held(
                name,
                f"ts >= TIMESTAMP '{name}' AND ts < TIMESTAMP '{after}'",
                f"{count} {content}",
                number * RID_STEP,
                blocks,
            )
            for _, count, content, blocks, name, after, number in rows or [(None, 0, "0", 0, None, None, None)]
        ]

    def _taken(self, held: _Held) -> Day | None:
        """Take a day over from the snapshot before, where its rows are the same."""
        known = self.before.days.get(held.name) if self.before else None
        if self.before is None or known is None or known.content != held.content:
            return None
        for table in (REQUESTS, BLOCKS):
            snapshots.linked(self.before.file(table, held.name), place(self.staged, table, held.name))
        return known

    def _day(self, held: _Held) -> Day:
        requests, blocks = (place(self.staged, table, held.name) for table in (REQUESTS, BLOCKS))
        # The writer calls a column required where the whole table has no NULL in it today: the CASE hides that, for a
        # day's bytes are to depend on its rows alone.
        optional = ", ".join(
            f"CASE WHEN rid >= {held.first} THEN {name} END AS {name}" for name in schema.names(REQUESTS)
        )
        rows = self._copied(
            f"SELECT rid, {optional} FROM (\n"
            f"  SELECT {held.first} + row_number() OVER () - 1 AS rid, {self.columns} FROM (\n"
            f"    SELECT {self.columns} FROM requests WHERE {held.within}\n"
            f"    ORDER BY ts, load_id, source_line, dedup_key, hash({self.columns})))",
            requests,
        )
        if not held.blocks and self.empty is not None:
            snapshots.linked(self.empty, blocks)
            return Day(held.content, rows, self.none)
        several = self._copied(
            "SELECT rid, unnest(range(1, len(prefix_hashes) + 1))::INTEGER AS block_no, unnest(prefix_hashes) AS hash "
            f"FROM read_parquet({quoted(str(requests))}, hive_partitioning = false)",
            blocks,
        )
        if not held.blocks:
            self.empty, self.none = blocks, several
        return Day(held.content, rows, several)

    def _table(self, name: str) -> Written:
        columns = ", ".join(
            "NULL::VARCHAR AS excerpt" if column == "excerpt" else column for column in schema.names(name)
        )
        only = f" WHERE name IN ({', '.join(map(quoted, _META))})" if name == "meta" else ""
        return self._copied(f"SELECT {columns} FROM {name}{only} ORDER BY ALL", place(self.staged, name))

    def _copied(self, sql: str, file: Path) -> Written:
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = self.connection.execute(
            f"COPY ({sql}) TO {quoted(str(file))} (FORMAT parquet, COMPRESSION zstd)"
        ).fetchall()[0][0]
        snapshots.synced(file)
        return Written(rows, file.stat().st_size, snapshots.sha256(file))


def _is_same(before: Snapshot, made: Snapshot) -> bool:
    return (before.writer, before.days, before.tables) == (made.writer, made.days, made.tables)


def _taken(before: Snapshot | None, made: Snapshot) -> set[str]:
    if before is None or before.writer != made.writer:
        return set()
    return {name for name, day in made.days.items() if name in before.days and before.days[name].content == day.content}
