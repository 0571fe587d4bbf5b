"""One call's work on one connection: staged slice by slice, then published in one transaction."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tenfold.errors import LogFormatError
from tenfold.logs import batch, cube, direct, forgotten, slices, sources
from tenfold.logs.base import tree
from tenfold.logs.buckets import BucketReader, storing
from tenfold.logs.log import Summary
from tenfold.logs.normalise import LINE, PART, insertion
from tenfold.logs.plans import NAMED
from tenfold.logs.progress import Progress, Step
from tenfold.logs.publish import publish
from tenfold.logs.raw import Job, in_one_line, unreadable
from tenfold.logs.sieve import sieve
from tenfold.logs.stage import NeedsWholeError, Staged, stage
from tenfold.logs.text.columns import STAGED as STAGED_TEXTS
from tenfold.prices import price_book
from tenfold.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tenfold.logs.base import Reader
    from tenfold.logs.plans import Plan
    from tenfold.logs.text.columns import Texts
    from tenfold.owners import Owners

# Slices of one kind are projected together up to this many rows; a larger one goes alone.
_ROWS_AT_ONCE = 500_000


class Load:
    """One call's work.

    Args:
        connection: The store, open for writing.
        zone: Zone that naive times mean.
        constants: Column -> value for every row.
        owners: Rules that give the rows their owners.
        texts: What is done with texts.
        keep_text: Excerpts may show text.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        zone: str | None,
        constants: Mapping[str, str],
        owners: Owners | None,
        texts: Texts,
        *,
        keep_text: bool,
    ) -> None:
        self.connection = connection
        self.owners = owners
        self.zone = zone
        self.constants = constants
        self.keep_text = keep_text
        self.texts = texts
        self.next_id = self._one("SELECT coalesce(max(load_id), 0) + 1 FROM loads")
        self.first_id = self.next_id
        self.raw_kind: tuple[Reader, bool] | None = None
        self.raw_rows = 0
        self.parts = 0
        self.rows = self.rejected = 0

    def _one(self, sql: str) -> int:
        return int(self.connection.execute(sql).fetchall()[0][0])

    def run(
        self,
        plans: Iterator[Plan],
        found: sources.Sources,
        thresholds: Iterable[int] | None,
        progress: Progress | None,
    ) -> tuple[Summary, tuple[int, int]]:
        """Stage every file, then publish all in one transaction.

        Args:
            plans: The files, and how each is read.
            found: Where they are from.
            thresholds: Long-context thresholds that the cube keeps apart.
            progress: Told how far the load is.

        Returns:
            What was done, and the first and last row of `loads`.

        Raises:
            LogFormatError: A file cannot be read; nothing was loaded.
        """
        self.clean()
        batch.make(self.connection)
        staging = {"rejects": "new_rejects", "loads": "new_loads", "usage_buckets": storing.STAGED}
        staging["texts"] = STAGED_TEXTS
        for table, name in staging.items():
            self.connection.execute(schema.ddl(table, temp=True, name=name))
        self.connection.execute(
            "CREATE TEMP TABLE sources (part INTEGER, load_id INTEGER, source_file VARCHAR, line_of_row_0 BIGINT)"
        )
        known = list(found.loads)
        with tempfile.TemporaryDirectory() as folder:
            for number, plan in enumerate(plans, 1):
                step = Step(plan.source.name, number, found.count, 0, plan.scan.size, self.rows, self.rejected)
                tell = _Teller(progress, step)
                tell(0, self)
                before = self._known(plan)
                if before is None:
                    with plan.source.named(), in_one_line(plan.source.name):
                        self._stage(plan, Path(folder), tell)
                else:
                    known.append(before)
            with in_one_line("the load"):
                self._project()
        self._refuse_doubling()
        with in_one_line("the load"):
            limits = self._publish(thresholds, found.marks)
        return self._summary(found.count, known), limits

    def _known(self, plan: Plan) -> int | None:
        """Find the load that read the same content with the same settings; None where there is none."""
        rows = self.connection.execute(
            "SELECT load_id FROM loads WHERE sha256 = $1 AND settings = $2 "
            "UNION ALL SELECT load_id FROM new_loads WHERE sha256 = $1 AND settings = $2",
            [plan.scan.sha256, plan.settings],
        ).fetchall()
        return rows[0][0] if rows else None

    def _stage(self, plan: Plan, folder: Path, tell: _Teller) -> None:
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
                name=plan.source.name,
            )
            buckets, rejected, ignored, folded = read
        elif reader is not None:
            reader = self.texts.reading(reader)
            job = Job(
                plan.file,
                slices.whole(plan.file, plan.scan),
                reader,
                plan.held,
                folder,
                keep_text=self.keep_text,
                zone=self.zone or reader.zone,
            )
            rows, _, rejected, ignored, folded = self._read(job, plan, load_id, tell)
        elif plan.scan.damage:
            rejected = 1
            reason = f"{plan.scan.damage}, and not one whole line is left"
            self.connection.execute(
                "INSERT INTO new_rejects VALUES (?, 1, ?, NULL, NULL, ?)", [plan.source.name, reason, load_id]
            )
        self.connection.execute(
            "INSERT INTO new_loads VALUES (?, current_timestamp::TIMESTAMP, ?, ?, ?, ?, ?, 0, 0, ?, ?, 0, ?, ?, ?)",
            [
                load_id,
                plan.source.name,
                plan.content(),
                plan.settings,
                reader.name if reader else "empty",
                rows + buckets + rejected + ignored + folded,
                folded,
                rejected,
                ignored,
                buckets,
                plan.source.version or None,
            ],
        )

    def _read(self, job: Job, plan: Plan, load_id: int, tell: _Teller) -> Staged:
        """Read a file in slices; whole, where its lines belong together."""
        is_table = job.held.kind == "csv"
        is_whole = job.held.kind == "parquet" or job.held.is_document or job.part.is_unsure
        if is_whole or (job.reader.reshape and not job.reader.reshape_if):
            return self._read_parts(job, [job.part], plan, load_id, tell)
        before = self.rows, self.rejected
        try:
            parts = slices.slices(plan.file, plan.scan, is_table=is_table)
            return self._read_parts(job, parts, plan, load_id, tell)
        except NeedsWholeError:
            self._project()
            self.connection.execute("DELETE FROM batch WHERE load_id = ?", [load_id])
            for table in ("new_rejects", STAGED_TEXTS):
                self.connection.execute(f"DELETE FROM {table} WHERE load_id = ?", [load_id])
            self.rows, self.rejected = before
            tell.begin_again()
            return self._read_parts(job, [job.part], plan, load_id, tell)

    def _read_parts(self, job: Job, parts: Iterable[slices.Slice], plan: Plan, load_id: int, tell: _Teller) -> Staged:
        total = Staged(0, 0, 0)
        rows, rejected = self.rows, self.rejected
        ways = [direct.expected(job), job]
        for part in parts:
            added, is_broken = None, False
            while ways and added is None and not is_broken and direct.can_take(ways[0]._replace(part=part)):
                try:
                    added = self._read_directly(ways[0]._replace(part=part), plan, load_id)
                except direct.LongerWayError as error:
                    is_broken = not error.is_kind
                    ways = ways if is_broken else ways[1:]
            if is_broken and job.held.kind == "ndjson":
                added = self._read_sieved(ways[0]._replace(part=part), plan, load_id)
            if added is None:
                added = self._read_staged(job._replace(part=part, is_broken=is_broken), plan, load_id)
            total = Staged(*(before + more for before, more in zip(total, added, strict=True)))
            self.rows, self.rejected = rows + total.rows, rejected + total.rejected
            tell(part.size, self)
        return total

    def _read_sieved(self, job: Job, plan: Plan, load_id: int) -> Staged | None:
        """Read the lines that look good directly, and the others one by one; None where a line only looked good."""
        with slices.copy() as (file, path):
            kept, odd = sieve(job.part.numbered(), tree(job.reader.leaves), job.reader.unpacked, file, LINE)
            good = replace(job.part, file=path, packing="none", lines=kept)
            try:
                added = self._read_directly(job._replace(part=good, is_numbered=True), plan, load_id)
            except direct.LongerWayError:
                return None
        others = self._read_staged(job._replace(only=odd, absent=frozenset()), plan, load_id)
        return Staged(*(one + more for one, more in zip(added, others, strict=True)))

    def _read_directly(self, job: Job, plan: Plan, load_id: int) -> Staged:
        rows = direct.read(
            self.connection,
            job,
            source_file=plan.source.name,
            load_id=load_id,
            zone=self.zone,
            constants=self.constants,
        )
        return Staged(rows, 0, 0)

    def _read_staged(self, job: Job, plan: Plan, load_id: int) -> Staged:
        staged = stage(self.connection, job)
        self.texts.attach(job.reader, first_line=staged.first_line, load_id=load_id)
        self._append(plan, job.reader, staged, load_id)
        self.connection.execute(
            "INSERT INTO new_rejects SELECT ?, source_line, reason, path, excerpt, ? FROM refused",
            [plan.source.name, load_id],
        )
        return staged

    def _append(self, plan: Plan, reader: Reader, staged: Staged, load_id: int) -> None:
        """Put staged rows to those of their kind: one projection then serves many small files."""
        kind = (reader, plan.held.kind == "ndjson")
        if self.raw_kind is not None and (self.raw_kind != kind or self.raw_rows + staged.rows > _ROWS_AT_ONCE):
            self._project()
        self.parts += 1
        line_of_row_0 = staged.first_line - self.raw_rows
        place = [self.parts, load_id, plan.source.name, line_of_row_0]
        self.connection.execute("INSERT INTO sources VALUES (?, ?, ?, ?)", place)
        if self.raw_kind is None:
            self.raw_kind = kind
            self.connection.execute("ALTER TABLE one RENAME TO raw")
            self.connection.execute(f"ALTER TABLE raw ADD COLUMN {PART} INTEGER DEFAULT {self.parts}")
        else:
            self.connection.execute(f"INSERT INTO raw SELECT *, {self.parts} FROM one")
        self.raw_rows += staged.rows

    def _project(self) -> None:
        """Turn the rows of `raw` into rows of `batch`."""
        if self.raw_kind is None:
            return
        reader = self.raw_kind[0]
        for child in (None, *reader.children):
            if child is None or self._one(f"SELECT count(*) FROM raw r WHERE len({child.each}) > 0"):
                filled = insertion(reader, zone=self.zone, constants=self.constants, child=child)
                batch.widen(self.connection, filled.columns)
                try:
                    self.connection.execute(filled.sql)
                except duckdb.Error as error:
                    names = self.connection.execute("SELECT source_file FROM sources").fetchall()
                    raise unreadable(", ".join(row[0] for row in names[:NAMED]), reader.name, error) from error
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

    def _publish(self, thresholds: Iterable[int] | None, marks: Iterable[sources.Mark]) -> tuple[int, int]:
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
            if self.first_id <= last_id:
                forgotten.refuse(connection)
            storing.publish(connection, self.first_id)
            if self.first_id <= last_id:
                publish(connection, self.first_id, last_id, limits, self.owners)
            sources.move(connection, marks)
            self.texts.publish()
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
            "SELECT source_format, sum(requests)::BIGINT, sum(buckets)::BIGINT FROM loads "
            f"WHERE {within} GROUP BY ALL ORDER BY ALL"
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
            by_format={name: requests for name, requests, _ in formats},
            buckets_by_format={name: buckets for name, _, buckets in formats if buckets},
            unread=[],
        )

    def clean(self) -> None:
        """Drop this load's temporary tables: a store in memory keeps its connection."""
        staged = ("one", "raw", "refused", "batch", "sources", "new_rejects", "new_loads", storing.STAGED, STAGED_TEXTS)
        for table in staged:
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


class _Teller:
    """Tells how far a file is.

    Args:
        progress: Whom.
        step: How far the load was when the file began.
    """

    def __init__(self, progress: Progress | None, step: Step) -> None:
        self._progress = progress
        self._step = step

    def begin_again(self) -> None:
        """Take back what was told of the file: it is read once more."""
        self._step = self._step._replace(read_bytes=0)

    def __call__(self, more: int, load: Load) -> None:
        """Tell it.

        Args:
            more: Bytes read since the last time.
            load: The load.
        """
        if self._progress is None:
            return
        read = self._step.read_bytes + more
        self._step = self._step._replace(read_bytes=read, rows=load.rows, rejected=load.rejected)
        self._progress(self._step)
