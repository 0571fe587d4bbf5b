"""A file to the temporary table `one`: the strict typed read, or, where it refuses, the line-by-line pass."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from tenfold.errors import LogFormatError
from tenfold.logs import READERS, detect, documents, files, quarantine
from tenfold.logs.base import BESIDE, UNREAD, Tree, duckdb_type, identifier, json_structure, steps, tree
from tenfold.logs.normalise import LINE, REPAIRED
from tenfold.store.database import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.logs.base import Reader
    from tenfold.logs.detect import Content
    from tenfold.logs.files import Scan

_UNREAD = f"NULL::BIGINT AS {LINE}, NULL::BOOLEAN AS {REPAIRED}"
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


def stage(
    connection: duckdb.DuckDBPyConnection,
    file: Path,
    reader: Reader,
    held: Content,
    scan: Scan,
    folder: Path,
    *,
    keep_text: bool,
    zone: str | None,
) -> Staged:
    """Read one file into `one`, and what is no record into `refused`.

    Args:
        connection: Where to make the tables.
        file: The file.
        reader: Its format.
        held: Its content as detected.
        scan: Its bytes as scanned.
        folder: For the good records of a broken file.
        keep_text: Excerpts may show text.
        zone: Zone named by the user (Parquet's naive times mean UTC without one).

    Returns:
        Counts.

    Raises:
        LogFormatError: The file cannot be read as that format at all.
    """
    connection.execute("DROP TABLE IF EXISTS one; DROP TABLE IF EXISTS refused")
    columns = ", ".join(f"{name} {kind}" for name, kind in _REFUSED.items())
    connection.execute(f"CREATE TEMP TABLE refused ({columns})")
    staged = _staged(connection, file, reader, held, scan, folder, keep_text=keep_text, zone=zone)
    ignored = _leave_beside(connection, reader, staged)
    staged = staged._replace(rows=staged.rows - ignored, ignored=ignored)
    strangers = _put_strangers_aside(connection, file, reader, held, staged, folder, keep_text=keep_text)
    staged = staged._replace(rows=staged.rows - strangers, rejected=staged.rejected + strangers)
    return _reshaped(connection, file, reader, staged) if reader.reshape else staged


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


def _reshaped(connection: duckdb.DuckDBPyConnection, file: Path, reader: Reader, staged: Staged) -> Staged:
    """Turn records into rows of requests, each with the line it is from."""
    if reader.reshape_if and not connection.execute(f"FROM one r WHERE {reader.reshape_if} LIMIT 1").fetchall():
        return staged
    line = f"coalesce({LINE}, r.rowid + {staged.first_line})"
    source = f"(SELECT * REPLACE ({line} AS {LINE}) FROM one r)"
    made = reader.reshape.format(one=source, line=LINE, repaired=REPAIRED)
    context = connection.execute(f"SELECT count(*) FROM one r WHERE {reader.context}").fetchall()[0][0]
    try:
        connection.execute(f"CREATE TEMP TABLE two AS {made}")
    except duckdb.Error as error:
        raise unreadable(str(file), reader.name, error) from error
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


def _staged(
    connection: duckdb.DuckDBPyConnection,
    file: Path,
    reader: Reader,
    held: Content,
    scan: Scan,
    folder: Path,
    *,
    keep_text: bool,
    zone: str | None,
) -> Staged:
    if held.kind == "parquet":
        return Staged(_parquet(connection, file, reader, zone), 1, 0)
    head_lines = 1 if held.kind == "csv" else 0
    if not scan.truncated and not held.is_document and not set("*?[") & set(str(file)):
        read = _csv_read(file, held, scan) if held.kind == "csv" else _json_read(file, reader, scan.packing)
        try:
            rows = _make_raw(connection, f"SELECT *, {_UNREAD} FROM {read}", reader, held)
        except (duckdb.Error, UnicodeDecodeError):  # the engine's message may cut a character in two
            rows = -1  # the strict read stops at the first bad line; the pass below finds them all
        if rows == scan.lines - head_lines:
            return Staged(rows, 1 + head_lines, 0)
        connection.execute("DROP TABLE IF EXISTS one")
    return _by_line(connection, file, reader, held, scan, folder, keep_text=keep_text)


def _put_strangers_aside(
    connection: duckdb.DuckDBPyConnection,
    file: Path,
    reader: Reader,
    held: Content,
    staged: Staged,
    folder: Path,
    *,
    keep_text: bool,
) -> int:
    """Move rows that are no usage record of the format from `one` to `refused`."""
    line = f"coalesce({LINE}, r.rowid + {staged.first_line})"
    is_record = reader.detect.is_record_sql(table=held.kind != "ndjson")
    found = connection.execute(f"SELECT {line} FROM one r WHERE NOT ({is_record}) ORDER BY ALL").fetchall()
    if not found:
        return 0
    numbers = {row[0] for row in found}
    shown: dict[int, tuple[str, str]] = {}
    if held.kind == "ndjson" or (held.kind == "csv" and keep_text):
        own_format = partial(detect.other_format, own=reader, readers=READERS)
        shown = quarantine.excerpts(file, numbers, tree(reader.leaves), own_format, keep_text=keep_text)
    none = f"no usage record of {reader.name}: it has none of {reader.detect.record_looked_for()}"
    bad_file = folder / "strangers.jsonl"
    with bad_file.open("w", encoding="utf-8") as bad:
        for number in sorted(numbers):
            text, other = shown.get(number, (None, ""))
            foreign = (
                f"looks like {other} in a file read as {reader.name}: put formats into files of their own, or name one "
                "with --format"
            )
            quarantine.put(bad, number, quarantine.NotARecord(foreign if other else none), text)
    connection.execute(f"INSERT INTO refused FROM {_ndjson(bad_file, _REFUSED, 'none')}")
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE one AS SELECT * REPLACE ({line} AS {LINE}) FROM one r WHERE {is_record}"
    )
    return len(numbers)


def _by_line(
    connection: duckdb.DuckDBPyConnection,
    file: Path,
    reader: Reader,
    held: Content,
    scan: Scan,
    folder: Path,
    *,
    keep_text: bool,
) -> Staged:
    good_file, bad_file = folder / "good.jsonl", folder / "bad.jsonl"
    with good_file.open("w", encoding="utf-8") as good, bad_file.open("w", encoding="utf-8") as bad:
        whole = tree(reader.leaves)
        if held.kind == "csv":
            quarantine.pass_csv(file, held.delimiter, whole, reader.unpacked, good, bad, keep_text=keep_text)
        else:
            records = documents.records if held.is_document else files.lines
            unsure = scan.is_unsure
            quarantine.pass_json(
                file, whole, reader.unpacked, good, bad, keep_text=keep_text, is_unsure=unsure, records=records
            )
    types = {LINE: "BIGINT", REPAIRED: "BOOLEAN"}
    if held.kind == "csv":
        types |= {name: "VARCHAR" for name in held.columns if name.lower() in {known.lower() for known in whole}}
    else:
        types |= {name: duckdb_type(node) for name, node in _raw_tree(reader).items()}
    try:
        rows = _make_raw(connection, f"SELECT * FROM {_ndjson(good_file, types, 'none')}", reader, held)
    except duckdb.Error as error:
        raise unreadable(str(file), reader.name, error) from error
    connection.execute(f"INSERT INTO refused FROM {_ndjson(bad_file, _REFUSED, 'none')}")
    rejected = connection.execute("SELECT count(*) FROM refused").fetchall()[0][0]
    return Staged(rows, 1, rejected)


def _json_read(file: Path, reader: Reader, packing: str) -> str:
    return _ndjson(file, {name: duckdb_type(node) for name, node in _raw_tree(reader).items()}, packing)


def _ndjson(file: Path, types: dict[str, str], packing: str) -> str:
    columns = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in types.items())
    return (
        f"read_ndjson({quoted(str(file))}, columns={{{columns}}}, compression={quoted(packing)}, "
        "maximum_object_size=67108864)"
    )


def _csv_read(file: Path, held: Content, scan: Scan) -> str:
    columns = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in held.columns)
    return (
        f"read_csv({quoted(str(file))}, columns={{{columns}}}, header=true, auto_detect=false, "
        f"delim={quoted(held.delimiter)}, quote='\"', escape='\"', strict_mode=true, nullstr='', "
        f"max_line_size=67108864, compression={quoted(scan.packing)})"
    )


def _raw_tree(reader: Reader) -> Tree:
    """Give the reader's raw values as they stand in the file: a column that is opened later is one value."""
    leaves: dict[str, str] = {}
    for path, kind in reader.leaves.items():
        root = steps(path)[0]
        leaves[root if root in reader.unpacked else path] = "JSON" if root in reader.unpacked else kind
    return tree(leaves)


def _make_raw(connection: duckdb.DuckDBPyConnection, source: str, reader: Reader, held: Content) -> int:
    there = {name.lower() for name in held.columns}
    parts: list[str] = []
    for name, node in tree(reader.leaves).items():
        if held.kind != "ndjson" and name.lower() not in there:
            kind = duckdb_type(node) if name in reader.unpacked else "VARCHAR"
            parts.append(f"NULL::{kind} AS {identifier(name)}")
        elif name in reader.unpacked:
            parts.append(f"{_opened(name, node)} AS {identifier(name)}")
        else:
            parts.append(identifier(name))
    sql = f"CREATE TEMP TABLE one AS SELECT {', '.join(parts)}, {LINE}, {REPAIRED} FROM ({source})"
    connection.execute(sql)
    return connection.execute("SELECT count(*) FROM one").fetchall()[0][0]


def _opened(name: str, node: str | Tree | list[Tree]) -> str:
    """Open a column that holds an object, or JSON text of one; what is no object there is marked as unread."""
    text = f"{identifier(name)}::VARCHAR"
    inner = f"CASE WHEN left({text}, 1) = '\"' AND json_valid({text}) THEN {text}::JSON->>'$' ELSE {text} END"
    structure = quoted(json.dumps(json_structure(node)))
    unread = quoted(json.dumps({UNREAD: True}))
    paths = ", ".join(quoted(path) for path in _objects(node, "$"))
    odd = f"len(list_filter(json_type({inner}, [{paths}]), lambda t: t NOT IN ('OBJECT', 'NULL'))) > 0"
    marked = (
        f"CASE WHEN NOT json_valid({inner}) THEN CASE WHEN trim({inner}) <> '' THEN {unread} END "
        f"WHEN {odd} THEN json_merge_patch({inner}, {unread}) ELSE {inner} END"
    )
    return f"json_transform({marked}, {structure})"


def _objects(node: str | Tree | list[Tree], path: str) -> Iterator[str]:
    if isinstance(node, dict):
        yield path
        for name, held in node.items():
            yield from _objects(held, f'{path}."{name}"')


def unreadable(where: str, format_name: str, error: duckdb.Error) -> LogFormatError:
    """Make the error for what the engine could not read.

    Args:
        where: The file, or several.
        format_name: What it was read as.
        error: What the engine said.

    Returns:
        The error, in one line.
    """
    if isinstance(error, duckdb.ProgrammingError):
        # The engine's words are about a statement that the user never wrote.
        return LogFormatError(
            f"{where}: cannot be read as {format_name}: two of the columns or paths that are read clash (names that "
            "differ in case alone count as the same). Rename one of them"
        )
    said = str(error).strip().splitlines() or ["no reason given"]
    return LogFormatError(f"{where}: cannot be read as {format_name}: {said[0]}")


def parquet_columns(file: Path, connection: duckdb.DuckDBPyConnection | None = None) -> dict[str, str]:
    """List a Parquet file's columns.

    Args:
        file: The file.
        connection: Any connection; one of its own without.

    Returns:
        Name -> DuckDB type.

    Raises:
        LogFormatError: The file is broken.
    """
    if connection is None:
        with duckdb.connect() as own:
            return parquet_columns(file, own)
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({quoted(_literal(file))})").fetchall()
    except duckdb.Error as error:
        raise unreadable(str(file), "Parquet", error) from error
    return {row[0]: row[1] for row in rows}


def _literal(file: Path) -> str:
    text = str(file)
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)


def _parquet(connection: duckdb.DuckDBPyConnection, file: Path, reader: Reader, zone: str | None) -> int:
    parts: list[str] = []
    types = {name.lower(): kind for name, kind in parquet_columns(file, connection).items()}
    for name, node in tree(reader.leaves).items():
        kind = types.get(name.lower())
        if kind is None:
            absent = duckdb_type(node) if name in reader.unpacked else "VARCHAR"
            parts.append(f"NULL::{absent} AS {identifier(name)}")
        elif name in reader.unpacked:
            parts.append(f"{_opened(name, node)} AS {identifier(name)}")
        elif kind.endswith("]") or kind.startswith(("STRUCT", "MAP")):
            parts.append(f"to_json({identifier(name)})::VARCHAR AS {identifier(name)}")
        elif kind.startswith("TIMESTAMP") and kind != "TIMESTAMP WITH TIME ZONE" and zone is None:
            parts.append(f"{identifier(name)}::TIMESTAMP::VARCHAR || 'Z' AS {identifier(name)}")
        else:
            text = f"{identifier(name)}::VARCHAR"
            # A scale writes zeros that no file holds, and 1.000 is no count.
            if kind.startswith("DECIMAL") and not kind.endswith(",0)"):
                text = f"rtrim(rtrim({text}, '0'), '.')"
            parts.append(f"{text} AS {identifier(name)}")
    source = f"read_parquet({quoted(_literal(file))})"
    try:
        connection.execute(f"CREATE TEMP TABLE one AS SELECT {', '.join(parts)}, {_UNREAD} FROM {source}")
    except duckdb.Error as error:
        raise unreadable(str(file), reader.name, error) from error
    return connection.execute("SELECT count(*) FROM one").fetchall()[0][0]
