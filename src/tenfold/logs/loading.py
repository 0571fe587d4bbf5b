"""Loading logs: find, detect, read strictly, check, fold repeats, insert; all files of a call or none of them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tenfold import config
from tenfold.errors import LogFormatError, near
from tenfold.logs import READERS, cube, detect, files, mapped
from tenfold.logs.buckets import BucketReader, bucket_reader, storing
from tenfold.logs.constants import constant
from tenfold.logs.log import Log, Summary
from tenfold.logs.normalise import LOAD, insert_sql
from tenfold.logs.publish import publish
from tenfold.logs.stage import parquet_columns, stage, unreadable
from tenfold.prices import price_book
from tenfold.store import schema
from tenfold.store.database import Store

if TYPE_CHECKING:
    from tenfold.logs.base import Reader
    from tenfold.logs.stage import Staged

# Files of one kind are projected together up to this many rows; a larger file goes alone.
_ROWS_AT_ONCE = 500_000
# Files of no known format that a refusal names.
_NAMED = 5
Progress = Callable[[str, int, int], None]
# Columns that a load may state for all its rows: who, what and where, never a count, an id or a time.
SETTABLE = (
    *(c.name for c in schema.REQUESTS if c.group in {"who", "what", "where"} and c.name != "tags"),
    *("status", "is_billable", "gateway_cache_hit", "session_id", "trace_id"),
)


@dataclass(frozen=True, slots=True)
class _Plan:
    """One file and how it will be read."""

    file: Path
    scan: files.Scan
    held: detect.Content
    reader: Reader | BucketReader | None
    settings: str


def load(
    paths: str | Path | Iterable[str | Path],
    *,
    db: str | Path | None = None,
    format: str | None = None,  # noqa: A002 -- the CLI's word
    map: str | Path | Mapping[str, object] | None = None,  # noqa: A002 -- the CLI's word
    zone: str | None = None,
    set: Mapping[str, str] | None = None,  # noqa: A002 -- the CLI's word
    keep_text: bool = False,
    thresholds: Iterable[int] | None = None,
    progress: Progress | None = None,
) -> Log:
    """Load log files into a store; all of them or, on any error, nothing.

    A file already loaded is skipped; a request already known is not counted twice; a line that is no record goes to
    ``rejects`` with its reason.

    Args:
        paths: Files, globs or directories (read recursively, hidden files left out).
        db: Database file to load into; None keeps the log in memory.
        format: Name of the format; None detects it from the content.
        map: Map file (TOML), or its content, that says what a table's columns mean.
        zone: Zone that times without an offset mean.
        set: Column -> value for every row, over what the log says.
        keep_text: Let excerpts of refused lines show their text.
        thresholds: Long-context thresholds that the cube keeps apart, beside those it already has; by default
            those of the shipped price book.
        progress: Called with file name, its number from 1 and how many there are, before each file is read.

    Returns:
        The log; ``summary`` says what this load did.

    Raises:
        LogFormatError: A file's format is unknown, or the map does not fit; nothing was loaded.
    """
    if zone is not None:
        config.zone(zone)
    constants = _constants(set or {})
    mapping = None if map is None else mapped.read_map(map)
    if mapping is not None and format is not None:
        raise LogFormatError("--format and --map exclude each other: a map is a format of its own")
    plans = _plans(files.find(paths), format, mapping, zone, constants)
    store = Store(db)
    with store.writing() as connection:
        session = _Load(connection, zone, constants, keep_text=keep_text)
        try:
            return Log(store, *session.run(plans, thresholds, progress))
        finally:
            session.clean()


def _constants(given: Mapping[str, str]) -> dict[str, str]:
    for name in given:
        if name not in SETTABLE:
            raise LogFormatError(f'--set: "{name}" cannot be set.{near(name, SETTABLE)} One of: {", ".join(SETTABLE)}')
    return {name: constant("--set", name, str(value)) for name, value in given.items()}


def _plans(
    found: list[Path],
    name: str | None,
    mapping: mapped.MapFile | None,
    zone: str | None,
    constants: Mapping[str, str],
) -> list[_Plan]:
    """Say how each file will be read, before the store is touched."""
    plans: list[_Plan] = []
    unknown: list[str] = []
    for file in found:
        try:
            scan, held = _looked_at(file)
            reader = None
            if scan.lines or held.kind == "parquet":
                reader = (None if mapping else bucket_reader(file, name)) or _reader(file, held, name, mapping)
        except OSError as error:
            raise LogFormatError(f"{file}: cannot be read: {error.strerror or error}") from error
        except LogFormatError as error:
            if mapping or name or len(found) == 1:
                raise
            unknown.append(error.short if isinstance(error, detect.UnknownFormatError) else str(error))
            continue
        if reader is None and scan.damage and len(found) == 1:
            raise LogFormatError(f"{file}: {scan.damage}, and not one whole line is left. Get the file again")
        settings = {
            "format": reader.name if reader else "empty",
            "map": mapping.text if mapping else None,
            "zone": zone,
            "set": dict(sorted(constants.items())),
        }
        plans.append(_Plan(file, scan, held, reader, json.dumps(settings, sort_keys=True)))
    if unknown:
        listed = "; ".join(unknown[:_NAMED]) + (f"; and {len(unknown) - _NAMED} more" * (len(unknown) > _NAMED))
        raise LogFormatError(
            f"{len(unknown)} of {len(found)} files are of no known format, so nothing was loaded: {listed}. "
            f"{detect.WAY_OUT}, or leave those files out"
        )
    return plans


def _looked_at(file: Path) -> tuple[files.Scan, detect.Content]:
    columns = list(parquet_columns(file)) if detect.is_parquet(file) else None
    return files.scan(file), detect.content(file, columns)


def _reader(file: Path, held: detect.Content, name: str | None, mapping: mapped.MapFile | None) -> Reader:
    if mapping:
        detect.check_readable(file, held)
        reader = mapping.reader(file, held)
    else:
        reader = detect.choose(file, held, READERS, name)
    if reader is mapped.TENFOLD_ROWS:
        mapped.check_columns(file, held)
    detect.check_header(file, held, reader)
    return reader


class _Load:
    """One call's work on one connection."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        zone: str | None,
        constants: Mapping[str, str],
        *,
        keep_text: bool,
    ) -> None:
        self.connection = connection
        self.zone = zone
        self.constants = constants
        self.keep_text = keep_text
        self.next_id = self._one("SELECT coalesce(max(load_id), 0) + 1 FROM loads")
        self.first_id = self.next_id
        self.raw_kind: tuple[Reader, bool] | None = None
        self.raw_rows = 0

    def _one(self, sql: str) -> int:
        return int(self.connection.execute(sql).fetchall()[0][0])

    def run(
        self, plans: list[_Plan], thresholds: Iterable[int] | None, progress: Progress | None
    ) -> tuple[Summary, tuple[int, int]]:
        """Stage every file, then publish all in one transaction."""
        self.clean()
        staging = {"requests": "batch", "rejects": "new_rejects", "loads": "new_loads", "usage_buckets": storing.STAGED}
        for table, name in staging.items():
            self.connection.execute(schema.ddl(table, temp=True, name=name))
        self.connection.execute(
            "CREATE TEMP TABLE sources (load_id INTEGER, source_file VARCHAR, line_of_row_0 BIGINT)"
        )
        known: list[int] = []
        with tempfile.TemporaryDirectory() as folder:
            for number, plan in enumerate(plans, 1):
                if progress is not None:
                    progress(str(plan.file), number, len(plans))
                before = self._known(plan)
                if before is None:
                    self._stage(plan, Path(folder))
                else:
                    known.append(before)
            self._project()
        self._refuse_doubling()
        limits = self._publish(thresholds)
        return self._summary(len(plans), known), limits

    def _known(self, plan: _Plan) -> int | None:
        """Find the load that read the same content with the same settings; None where there is none."""
        rows = self.connection.execute(
            "SELECT load_id FROM loads WHERE sha256 = $1 AND settings = $2 "
            "UNION ALL SELECT load_id FROM new_loads WHERE sha256 = $1 AND settings = $2",
            [plan.scan.sha256, plan.settings],
        ).fetchall()
        return rows[0][0] if rows else None

    def _stage(self, plan: _Plan, folder: Path) -> None:
        load_id, self.next_id = self.next_id, self.next_id + 1
        rejected = rows = ignored = folded = 0
        reader, buckets = plan.reader, 0
        if isinstance(reader, BucketReader):
            read = storing.stage(
                self.connection,
                plan.file,
                reader,
                folder,
                load_id=load_id,
                zone=self.zone,
                constants=self.constants,
            )
            buckets, rejected, ignored, folded = read
        elif reader is not None:
            staged = stage(
                self.connection,
                plan.file,
                reader,
                plan.held,
                plan.scan,
                folder,
                keep_text=self.keep_text,
                zone=self.zone or reader.zone,
            )
            rejected, rows, ignored, folded = staged.rejected, staged.rows, staged.ignored, staged.folded
            self._append(plan, reader, staged, load_id)
            self.connection.execute(
                "INSERT INTO new_rejects SELECT ?, source_line, reason, path, excerpt, ? FROM refused",
                [str(plan.file), load_id],
            )
        elif plan.scan.damage:
            rejected = 1
            reason = f"{plan.scan.damage}, and not one whole line is left"
            self.connection.execute(
                "INSERT INTO new_rejects VALUES (?, 1, ?, NULL, NULL, ?)", [str(plan.file), reason, load_id]
            )
        self.connection.execute(
            "INSERT INTO new_loads VALUES (?, current_timestamp::TIMESTAMP, ?, ?, ?, ?, ?, 0, 0, ?, ?, 0, ?, ?)",
            [
                load_id,
                str(plan.file),
                plan.scan.sha256,
                plan.settings,
                reader.name if reader else "empty",
                rows + buckets + rejected + ignored + folded,
                folded,
                rejected,
                ignored,
                buckets,
            ],
        )

    def _append(self, plan: _Plan, reader: Reader, staged: Staged, load_id: int) -> None:
        """Put a staged file's rows to those of its kind: one projection then serves many small files."""
        kind = (reader, plan.held.kind == "ndjson")
        if self.raw_kind is not None and (self.raw_kind != kind or self.raw_rows + staged.rows > _ROWS_AT_ONCE):
            self._project()
        line_of_row_0 = staged.first_line - self.raw_rows
        self.connection.execute("INSERT INTO sources VALUES (?, ?, ?)", [load_id, str(plan.file), line_of_row_0])
        if self.raw_kind is None:
            self.raw_kind = kind
            self.connection.execute("ALTER TABLE one RENAME TO raw")
            self.connection.execute(f"ALTER TABLE raw ADD COLUMN {LOAD} INTEGER DEFAULT {load_id}")
        else:
            self.connection.execute(f"INSERT INTO raw SELECT *, {load_id} FROM one")
        self.raw_rows += staged.rows

    def _project(self) -> None:
        """Turn the rows of `raw` into rows of `batch`."""
        if self.raw_kind is None:
            return
        reader = self.raw_kind[0]
        for child in (None, *reader.children):
            if child is None or self._one(f"SELECT count(*) FROM raw r WHERE len({child.each}) > 0"):
                sql = insert_sql(reader, zone=self.zone, constants=self.constants, child=child)
                try:
                    self.connection.execute(sql)
                except duckdb.Error as error:
                    names = self.connection.execute("SELECT source_file FROM sources").fetchall()
                    raise unreadable(", ".join(row[0] for row in names[:_NAMED]), reader.name, error) from error
        self.connection.execute("DROP TABLE raw; DELETE FROM sources")
        self.raw_kind, self.raw_rows = None, 0

    def _refuse_doubling(self) -> None:
        """Rows without an id cannot be recognised: the same bytes under other settings would count twice."""
        found = self.connection.execute(
            "SELECT n.source_file, o.source_file, o.settings FROM new_loads n JOIN loads o USING (sha256) "
            "WHERE o.source_format <> 'empty' AND EXISTS "
            "(SELECT 1 FROM batch b WHERE b.load_id = n.load_id AND b.dedup_key IS NULL) LIMIT 1"
        ).fetchall()
        for file, before, settings in found:
            raise LogFormatError(
                f"{file}: the same content is already loaded (as {before}) with other settings "
                f"({settings}), and its rows have no id to recognise them by. Load it into a new database"
            )

    def _publish(self, thresholds: Iterable[int] | None) -> tuple[int, int]:
        connection, last_id = self.connection, self.next_id - 1
        before = cube.thresholds_of(connection)
        asked = price_book().thresholds if thresholds is None else tuple(thresholds)
        limits = tuple(sorted({*asked, *(before or ())}))
        connection.execute("BEGIN")
        try:
            if before != limits:
                cube.rebuild(connection, limits)
            connection.execute("INSERT INTO loads FROM new_loads")
            connection.execute("INSERT INTO rejects FROM new_rejects")
            storing.publish(connection, self.first_id)
            if self.first_id <= last_id:
                publish(connection, self.first_id, last_id, limits)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        return self.first_id, last_id

    def _summary(self, count: int, known: list[int]) -> Summary:
        within = f"load_id BETWEEN {self.first_id} AND {self.next_id - 1}"
        names = ("requests", "duplicates", "merged", "rejected", "flagged", "ignored", "buckets")
        sums = ", ".join(f"coalesce(sum({name}), 0)::BIGINT" for name in names)
        values = self.connection.execute(f"SELECT {sums} FROM loads WHERE {within}").fetchall()[0]
        counts = dict(self.connection.execute("SELECT load_id, requests FROM loads").fetchall())
        formats = self.connection.execute(
            f"SELECT source_format, sum(requests)::BIGINT FROM loads WHERE {within} GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        return Summary(
            files=count,
            requests=values[0],
            duplicates=values[1] + sum(counts[load_id] for load_id in known),
            merged=values[2],
            rejected=values[3],
            flagged=values[4],
            ignored=values[5],
            buckets=values[6],
            by_format=dict(formats),
        )

    def clean(self) -> None:
        """Drop this load's temporary tables: a store in memory keeps its connection."""
        for table in ("one", "raw", "refused", "batch", "sources", "new_rejects", "new_loads", storing.STAGED):
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{table}")
