"""A file to the temporary table `one`: the strict typed read, or, where it refuses, the line-by-line pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from tenfold.errors import LogFormatError
from tenfold.logs import quarantine
from tenfold.logs.base import Tree, duckdb_type, identifier, steps, tree
from tenfold.logs.normalise import LINE, REPAIRED
from tenfold.store.database import quoted

if TYPE_CHECKING:
    from tenfold.logs.base import Reader
    from tenfold.logs.detect import Content
    from tenfold.logs.files import Scan

_UNREAD = f"NULL::BIGINT AS {LINE}, NULL::BOOLEAN AS {REPAIRED}"


class Staged(NamedTuple):
    """What `one` now holds.

    Args:
        rows: Records in it.
        first_line: Line of its first row, where rows and lines run together.
        rejected: Lines put aside, each now in the temporary table `refused`.
    """

    rows: int
    first_line: int
    rejected: int


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
    connection.execute("CREATE TEMP TABLE refused (source_line BIGINT, reason VARCHAR, path VARCHAR, excerpt VARCHAR)")
    if held.kind == "parquet":
        return Staged(_parquet(connection, file, reader, zone), 1, 0)
    head_lines = 1 if held.kind == "csv" else 0
    if not scan.truncated and not set("*?[") & set(str(file)):
        read = _csv_read(file, held, scan) if held.kind == "csv" else _json_read(file, reader, scan.packing)
        try:
            rows = _make_raw(connection, f"SELECT *, {_UNREAD} FROM {read}", reader, held)
        except duckdb.Error:
            rows = -1  # the strict read stops at the first bad line; the pass below finds them all
        if rows == scan.lines - head_lines:
            return Staged(rows, 1 + head_lines, 0)
        connection.execute("DROP TABLE IF EXISTS one")
    return _by_line(connection, file, reader, held, folder, keep_text=keep_text)


def _by_line(
    connection: duckdb.DuckDBPyConnection,
    file: Path,
    reader: Reader,
    held: Content,
    folder: Path,
    *,
    keep_text: bool,
) -> Staged:
    good_file, bad_file = folder / "good.jsonl", folder / "bad.jsonl"
    with good_file.open("w", encoding="utf-8") as good, bad_file.open("w", encoding="utf-8") as bad:
        if held.kind == "csv":
            quarantine.pass_csv(file, held.delimiter, good, bad, keep_text=keep_text)
        else:
            quarantine.pass_json(file, _raw_tree(reader), good, bad, keep_text=keep_text)
    types = {LINE: "BIGINT", REPAIRED: "BOOLEAN"}
    if held.kind == "csv":
        types |= dict.fromkeys(held.columns, "VARCHAR")
    else:
        types |= {name: duckdb_type(node) for name, node in _raw_tree(reader).items()}
    try:
        rows = _make_raw(connection, f"SELECT * FROM {_ndjson(good_file, types, 'none')}", reader, held)
    except duckdb.Error as error:
        raise LogFormatError(f"{file}: cannot be read as {reader.name}: {str(error).splitlines()[0]}") from error
    refused = {"source_line": "BIGINT", "reason": "VARCHAR", "path": "VARCHAR", "excerpt": "VARCHAR"}
    connection.execute(f"INSERT INTO refused FROM {_ndjson(bad_file, refused, 'none')}")
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
    """Open a column that holds an object, or JSON text of one."""
    text = f"{identifier(name)}::VARCHAR"
    inner = f"CASE WHEN left({text}, 1) = '\"' AND json_valid({text}) THEN {text}::JSON->>'$' ELSE {text} END"
    structure = quoted(json.dumps(_structure(node)))
    return f"CASE WHEN json_valid({inner}) THEN json_transform({inner}, {structure}) END"


def _structure(node: str | Tree | list[Tree]) -> object:
    if isinstance(node, dict):
        return {name: _structure(held) for name, held in node.items()}
    return [_structure(node[0])] if isinstance(node, list) else node


def parquet_columns(connection: duckdb.DuckDBPyConnection, file: Path) -> dict[str, str]:
    """List a Parquet file's columns.

    Args:
        connection: Any connection.
        file: The file.

    Returns:
        Name -> DuckDB type.

    Raises:
        LogFormatError: The file is broken.
    """
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({quoted(_literal(file))})").fetchall()
    except duckdb.Error as error:
        raise LogFormatError(f"{file}: not a readable Parquet file: {str(error).splitlines()[0]}") from error
    return {row[0]: row[1] for row in rows}


def _literal(file: Path) -> str:
    text = str(file)
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)


def _parquet(connection: duckdb.DuckDBPyConnection, file: Path, reader: Reader, zone: str | None) -> int:
    parts: list[str] = []
    types = {name.lower(): kind for name, kind in parquet_columns(connection, file).items()}
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
            parts.append(f"{identifier(name)}::VARCHAR AS {identifier(name)}")
    connection.execute(
        f"CREATE TEMP TABLE one AS SELECT {', '.join(parts)}, {_UNREAD} FROM read_parquet({quoted(_literal(file))})"
    )
    return connection.execute("SELECT count(*) FROM one").fetchall()[0][0]
