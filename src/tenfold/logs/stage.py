"""A file to the temporary table `one`: the strict typed read, or, where it refuses, the line-by-line pass."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from tenfold.logs import READERS, detect, documents, quarantine
from tenfold.logs.base import BESIDE, json_structure, tree
from tenfold.logs.excerpts import excerpts
from tenfold.logs.normalise import LINE, REPAIRED
from tenfold.logs.raw import (
    LONGEST_BYTES,
    MOST_BYTES,
    Job,
    is_too_long,
    made,
    ndjson,
    raw_parquet,
    raw_rows,
    raw_tree,
    unreadable,
)
from tenfold.logs.sieve import sieve
from tenfold.logs.slices import copy
from tenfold.logs.text.lines import KeptLines

if TYPE_CHECKING:
    from tenfold.logs.base import Reader

_REFUSED = {"source_line": "BIGINT", "reason": "VARCHAR", "path": "VARCHAR", "excerpt": "VARCHAR"}


class Staged(NamedTuple):
    """What `one` now holds.

    Args:
        rows: Records in it.
        first_line: Line of its first row, where rows and lines run together.
        rejected: Lines put aside, each now in the temporary table `refused`.
        ignored: Lines of the format that carry no request.
        folded: Records that became part of another one's row.
    """

    rows: int
    first_line: int
    rejected: int
    ignored: int = 0
    folded: int = 0


class NeedsWholeError(Exception):
    """Records of a slice may belong to others of the same file: it has to be read whole."""


def stage(connection: duckdb.DuckDBPyConnection, job: Job) -> Staged:
    """Read a slice into `one`, and what is no record into `refused`.

    Args:
        connection: Where to make the tables.
        job: What to read.

    Returns:
        Counts.

    Raises:
        LogFormatError: The file cannot be read as that format at all.
        NeedsWholeError: The slice has to be read with the rest of its file.
    """
    connection.execute("DROP TABLE IF EXISTS one; DROP TABLE IF EXISTS refused")
    columns = ", ".join(f"{name} {kind}" for name, kind in _REFUSED.items())
    connection.execute(f"CREATE TEMP TABLE refused ({columns})")
    staged = _staged(connection, job)
    ignored = _leave_beside(connection, job.reader, staged)
    staged = staged._replace(rows=staged.rows - ignored, ignored=ignored)
    strangers = _put_strangers_aside(connection, job, staged)
    staged = staged._replace(rows=staged.rows - strangers, rejected=staged.rejected + strangers)
    return _reshaped(connection, job, staged) if job.reader.reshape else staged


def _leave_beside(connection: duckdb.DuckDBPyConnection, reader: Reader, staged: Staged) -> int:
    """Take lines that belong to the format and carry no request out of `one`."""
    if not reader.beside:
        return 0
    is_beside = " OR ".join(f"coalesce({condition}, false)" for condition in reader.beside)
    line = f"coalesce({LINE}, r.rowid + {staged.first_line})"
    connection.execute(
        f"CREATE TEMP TABLE kept AS SELECT * REPLACE ({line} AS {LINE}) FROM one r WHERE NOT ({is_beside}); "
        "DROP TABLE one; ALTER TABLE kept RENAME TO one"
    )
    return staged.rows - connection.execute("SELECT count(*) FROM one").fetchall()[0][0]


def _reshaped(connection: duckdb.DuckDBPyConnection, job: Job, staged: Staged) -> Staged:
    """Turn records into rows of requests, each with the line it is from."""
    reader = job.reader
    if reader.reshape_if and not connection.execute(f"FROM one r WHERE {reader.reshape_if} LIMIT 1").fetchall():
        return staged
    if not job.part.is_all:
        raise NeedsWholeError
    line = f"coalesce({LINE}, r.rowid + {staged.first_line})"
    source = f"(SELECT * REPLACE ({line} AS {LINE}) FROM one r)"
    made = reader.reshape.format(one=source, line=LINE, repaired=REPAIRED)
    context = connection.execute(f"SELECT count(*) FROM one r WHERE {reader.context}").fetchall()[0][0]
    try:
        connection.execute(f"CREATE TEMP TABLE two AS {made}")
    except duckdb.Error as error:
        raise unreadable(str(job.file), reader.name, error) from error
    if BESIDE in reader.reshape:
        return _left_beside(connection, staged)
    connection.execute("DROP TABLE one; ALTER TABLE two RENAME TO one")
    rows = connection.execute("SELECT count(*) FROM one").fetchall()[0][0]
    folded = max(staged.rows - context - rows, 0)
    return staged._replace(rows=rows, first_line=1, folded=folded, ignored=staged.ignored + context)


def _left_beside(connection: duckdb.DuckDBPyConnection, staged: Staged) -> Staged:
    """Count and leave out the rows that carry no request of their own."""
    told = connection.execute(f"SELECT coalesce({BESIDE}, ''), count(*) FROM two GROUP BY ALL").fetchall()
    found: dict[str, int] = dict(told)
    connection.execute("DROP TABLE one")
    connection.execute(f"CREATE TEMP TABLE one AS SELECT * EXCLUDE ({BESIDE}) FROM two WHERE {BESIDE} IS NULL")
    connection.execute("DROP TABLE two")
    ignored = staged.ignored + found.get("ignored", 0)
    return staged._replace(rows=found.get("", 0), first_line=1, ignored=ignored, folded=found.get("merged", 0))


def _staged(connection: duckdb.DuckDBPyConnection, job: Job) -> Staged:
    part = job.part
    if job.only is not None:
        return _by_line(connection, job)
    if job.held.kind == "parquet":
        source = raw_parquet(connection, job)
        try:
            connection.execute(f"CREATE TEMP TABLE one AS {source}")
        except duckdb.Error as error:
            raise unreadable(str(job.file), job.reader.name, error) from error
        return Staged(connection.execute("SELECT count(*) FROM one").fetchall()[0][0], 1, 0)
    if job.is_plain and not job.is_broken:
        rows = _read_strictly(connection, job)
        if rows == part.lines - job.head_lines:
            return Staged(rows, 1 + job.head_lines + part.shift, 0)
    if job.held.kind == "ndjson" and job.is_plain:
        staged = _sieved(connection, job)
        if staged is not None:
            return staged
    if job.held.kind == "csv" and not part.is_all:
        raise NeedsWholeError  # a stray quote may have moved the cut into a cell
    return _by_line(connection, job)


def _read_strictly(connection: duckdb.DuckDBPyConnection, job: Job) -> int:
    """Make `one`; the strict read stops at the first bad line, and gives -1."""
    for longest in (job.longest_bytes, MOST_BYTES):
        connection.execute("DROP TABLE IF EXISTS one")
        try:
            connection.execute(f"CREATE TEMP TABLE one AS {raw_rows(job._replace(longest_bytes=longest))}")
        except (duckdb.Error, UnicodeDecodeError) as error:  # the engine's message may cut a character in two
            if not is_too_long(error):
                break
        else:
            return connection.execute("SELECT count(*) FROM one").fetchall()[0][0]
    return -1


def _sieved(connection: duckdb.DuckDBPyConnection, job: Job) -> Staged | None:
    """Read the lines that look good as they are, the others one by one; None where a line only looked good."""
    reader, part = job.reader, job.part
    with copy() as (file, path):
        kept, odd = sieve(part.numbered(), tree(reader.leaves), reader.unpacked, file, LINE)
        good = replace(part, file=path, packing="none")
        if _read_strictly(connection, job._replace(part=good, is_numbered=True)) != kept:
            return None
    repaired, bad_file = KeptLines(connection), job.folder / "bad.jsonl"
    with bad_file.open("w", encoding="utf-8") as bad:
        added = quarantine.pass_json(odd, tree(reader.leaves), reader.unpacked, repaired, bad, keep_text=job.keep_text)
    if added:
        rows = made(repaired.source(_kept_types(job)), reader, job.held)
        connection.execute(f"CREATE TEMP TABLE two AS FROM one UNION ALL ({rows}) ORDER BY {LINE}")
        connection.execute("DROP TABLE one; ALTER TABLE two RENAME TO one")
    repaired.drop()
    return Staged(kept + added, 1, _refuse(connection, bad_file))


def _refuse(connection: duckdb.DuckDBPyConnection, bad_file: Path) -> int:
    connection.execute(f"INSERT INTO refused FROM {ndjson(bad_file, _REFUSED, 'none', LONGEST_BYTES)}")
    return connection.execute("SELECT count(*) FROM refused").fetchall()[0][0]


def _put_strangers_aside(connection: duckdb.DuckDBPyConnection, job: Job, staged: Staged) -> int:
    """Move rows that are no usage record of the format from `one` to `refused`."""
    reader, kind = job.reader, job.held.kind
    line = f"coalesce({LINE}, r.rowid + {staged.first_line})"
    is_record = reader.detect.is_record_sql(table=kind != "ndjson")
    found = connection.execute(f"SELECT {line} FROM one r WHERE NOT ({is_record}) ORDER BY ALL").fetchall()
    if not found:
        return 0
    numbers = {row[0] for row in found}
    shown: dict[int, tuple[str, str]] = {}
    if kind == "ndjson" or (kind == "csv" and job.keep_text):
        own_format = partial(detect.other_format, own=reader, readers=READERS)
        lines = job.part.numbered()
        shown = excerpts(lines, numbers, tree(reader.leaves), own_format, keep_text=job.keep_text)
    none = f"no usage record of {reader.name}: it has none of {reader.detect.record_looked_for()}"
    bad_file = job.folder / "strangers.jsonl"
    with bad_file.open("w", encoding="utf-8") as bad:
        for number in sorted(numbers):
            text, other = shown.get(number, (None, ""))
            foreign = (
                f"looks like {other} in a file read as {reader.name}: put formats into files of their own, or name one "
                "with --format"
            )
            quarantine.put(bad, number, quarantine.NotARecord(foreign if other else none), text)
    _refuse(connection, bad_file)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE one AS SELECT * REPLACE ({line} AS {LINE}) FROM one r WHERE {is_record}"
    )
    return len(numbers)


def _by_line(connection: duckdb.DuckDBPyConnection, job: Job) -> Staged:
    reader, held, part = job.reader, job.held, job.part
    connection.execute("DROP TABLE IF EXISTS one")
    good, bad_file = KeptLines(connection), job.folder / "bad.jsonl"
    with bad_file.open("w", encoding="utf-8") as bad:
        leaves, keep = tree(reader.leaves), job.keep_text
        if held.kind == "csv":
            lines = part.numbered()
            quarantine.pass_csv(job.file, lines, held.delimiter, leaves, reader.unpacked, good, bad, keep_text=keep)
        else:
            records = documents.records(job.file) if held.is_document else part.numbered()
            records = records if job.only is None else job.only
            unsure, before = part.is_unsure, part.shift
            quarantine.pass_json(
                records, leaves, reader.unpacked, good, bad, keep_text=keep, is_unsure=unsure, before=before
            )
    try:
        connection.execute(f"CREATE TEMP TABLE one AS {made(good.source(_kept_types(job)), reader, held)}")
    except duckdb.Error as error:
        raise unreadable(str(job.file), reader.name, error) from error
    good.drop()
    rows = connection.execute("SELECT count(*) FROM one").fetchall()[0][0]
    return Staged(rows, 1, _refuse(connection, bad_file))


def _kept_types(job: Job) -> dict[str, object]:
    """Give the structure of the records that were read line by line."""
    types: dict[str, object] = {LINE: "BIGINT", REPAIRED: "BOOLEAN"}
    if job.held.kind == "csv":
        known = {name.lower() for name in tree(job.reader.leaves)}
        return types | {name: "VARCHAR" for name in job.held.columns if name.lower() in known}
    return types | {name: json_structure(node) for name, node in raw_tree(job.reader).items()}
