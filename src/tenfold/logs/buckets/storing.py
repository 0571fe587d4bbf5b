"""Buckets into the store: staged beside the requests, published in the same transaction.

A row that an earlier file said too is replaced: a report that was fetched again says it better.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from tenfold.errors import LogFormatError
from tenfold.logs import files
from tenfold.logs.buckets import BUCKET_READERS, tables
from tenfold.logs.buckets.base import Source
from tenfold.logs.detect import is_parquet
from tenfold.store import schema
from tenfold.store.database import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import duckdb

    from tenfold.logs.buckets.base import BucketReader

STAGED = "new_buckets"
_HEAD = 1 << 18
# What a bucket says, as against what it is about.
_SAID = {"quantity", "amount", "amount_usd", "requests", *schema.BUCKET_TOKENS}
_PLACE = {"source_file", "source_line", "load_id", "bucket_key"}
_BESIDE = _SAID | _PLACE
# Made once: an encoder with options of its own costs as much as encoding a row.
_SORTED = json.JSONEncoder(sort_keys=True, default=str)
_PLAIN = json.JSONEncoder(ensure_ascii=False)


class Read(NamedTuple):
    """What a file held.

    Args:
        rows: Buckets.
        rejected: Rows put aside, now in `new_rejects`.
        ignored: Rows that are no bucket.
        merged: Rows that another one of the file replaced.
    """

    rows: int
    rejected: int
    ignored: int
    merged: int


def stage(
    connection: duckdb.DuckDBPyConnection,
    file: Path,
    reader: BucketReader,
    folder: Path,
    *,
    load_id: int,
    zone: str | None,
    constants: Mapping[str, str],
    name: str,
) -> Read:
    """Read a file's buckets into the temporary table `new_buckets`.

    Args:
        connection: The store.
        file: The file.
        reader: Its reader.
        folder: For what is read.
        load_id: Row of `loads`.
        zone: Zone that naive times mean.
        constants: Column -> value for every row.
        name: What the database calls the file.

    Returns:
        Counts.

    Raises:
        LogFormatError: The file cannot be read at all.
    """
    columns = schema.names("usage_buckets")
    given = {name: value for name, value in constants.items() if name in columns}
    rows: list[dict[str, object]] = []
    rejected = ignored = 0
    try:
        for line, row, reason, path in reader.read(_source(file, reader, zone)):
            if row is not None:
                held = {**row, **given, "source_format": reader.name, "source_line": line}
                rows.append({**held, "bucket_key": _key(held), "source_file": name, "load_id": load_id})
            elif reason:
                rejected += 1
                values = [name, line, reason, path, load_id]
                connection.execute("INSERT INTO new_rejects VALUES (?, ?, ?, ?, NULL, ?)", values)
            else:
                ignored += 1
    except LogFormatError as error:
        raise LogFormatError(f"{name}: {error}") from error
    kept = rows if reader.repeats else list({str(row["bucket_key"]): row for row in rows}.values())
    _insert(connection, kept, folder / "buckets.jsonl")
    return Read(len(kept), rejected, ignored, len(rows) - len(kept))


def _source(file: Path, reader: BucketReader, zone: str | None) -> Source:
    rows = tables.rows(file) if is_parquet(file) else None
    source = Source(_text(file) if rows is None else tables.header(file), zone, rows)
    if not reader.fits(source.text[:_HEAD]):
        if reader.why_not is not None and (why := reader.why_not(source.text[:_HEAD])):
            raise LogFormatError(why)
        raise LogFormatError(f"does not look like {reader.name}. Leave --format out to have the format told")
    return source


def _text(file: Path) -> str:
    pieces: list[bytes] = []
    try:
        pieces.extend(files.chunks(file))
    except files.TruncatedArchive as broken:
        raise LogFormatError(f"{broken.damage}. Get the file again") from broken
    try:
        return b"".join(pieces).decode("utf-8")
    except UnicodeDecodeError as error:
        raise LogFormatError(f"not valid UTF-8 at byte {error.start + 1}") from error


def _key(row: Mapping[str, object]) -> str:
    about = {name: value for name, value in row.items() if value is not None and name not in _BESIDE}
    return hashlib.sha256(_SORTED.encode(about).encode()).hexdigest()[:32]


def _insert(connection: duckdb.DuckDBPyConnection, rows: list[dict[str, object]], file: Path) -> None:
    if not rows:
        return
    columns = schema.TABLES["usage_buckets"]
    names = {column.name for column in columns}
    with file.open("w", encoding="utf-8", errors="replace") as out:
        for row in rows:
            kept = {name: _written(value) for name, value in row.items() if value is not None and name in names}
            out.write(_PLAIN.encode(kept).replace("\\u0000", "") + "\n")
    read = ", ".join(f"{column.name}: 'VARCHAR'" for column in columns)
    cast = ", ".join(
        f"{column.name}::JSON::{column.type} AS {column.name}"
        if column.type.startswith("MAP")
        else f"{column.name}::{column.type} AS {column.name}"
        for column in columns
    )
    connection.execute(f"INSERT INTO {STAGED} SELECT {cast} FROM read_ndjson({quoted(str(file))}, columns={{{read}}})")


def _written(value: object) -> str:
    return json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, dict) else str(value)


def publish(connection: duckdb.DuckDBPyConnection, first_load: int) -> None:
    """Put the staged buckets into the store, in the caller's transaction; the later of two files wins.

    Args:
        connection: The store.
        first_load: First row of `loads` of this call. Files of one call may be parts of one export: where equal rows
            are charges of their own, they do not replace each other.
    """
    connection.execute(f"INSERT INTO usage_buckets FROM {STAGED}")
    repeating = ", ".join(quoted(reader.name) for reader in BUCKET_READERS if reader.repeats)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE told_again AS SELECT u.rowid AS row_id, n.load_id FROM usage_buckets u JOIN "
        f"(SELECT bucket_key, max(load_id) AS load_id FROM {STAGED} GROUP BY ALL) n USING (bucket_key) "
        f"WHERE u.load_id < CASE WHEN u.source_format IN ({repeating}) THEN {first_load} ELSE n.load_id END"
    )
    connection.execute("DELETE FROM usage_buckets WHERE rowid IN (SELECT row_id FROM told_again)")
    connection.execute(
        "UPDATE loads SET merged = loads.merged + t.times FROM (SELECT load_id, count(*) AS times FROM told_again "
        "GROUP BY ALL) t WHERE loads.load_id = t.load_id"
    )
    connection.execute("DROP TABLE told_again")
