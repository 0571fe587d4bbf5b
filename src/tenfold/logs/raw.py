"""A slice's raw rows as SQL: what the engine reads strictly, JSON text in a column opened, Parquet as text."""

from __future__ import annotations

import errno
import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from tenfold.errors import LogFormatError
from tenfold.logs.base import UNREAD, Tree, duckdb_type, identifier, json_structure, steps, tree
from tenfold.logs.normalise import LINE, REPAIRED
from tenfold.store.database import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator

    from tenfold.logs.base import Reader
    from tenfold.logs.detect import Content
    from tenfold.logs.slices import Slice

# Longest line for which the threads take small pieces, and the longest that the engine is given.
LONGEST_BYTES, MOST_BYTES = 1 << 21, 1 << 26
# Column that says of a line that it has a key which was taken to be absent.
SURPRISE = "_tenfold_surprise"
_UNREAD = f"NULL::BIGINT AS {LINE}, NULL::BOOLEAN AS {REPAIRED}"


class Job(NamedTuple):
    """A slice to read, and how.

    Args:
        file: The file, as errors name it.
        part: The slice.
        reader: Its format.
        held: Its content as detected.
        folder: For what is refused.
        keep_text: Excerpts may show text.
        zone: Zone named by the user (Parquet's naive times mean UTC without one).
        is_broken: The strict read is known to fail.
        absent: Top keys of the reader that no line is expected to have: they are read as one value each, and a line
            that has one is told by ``SURPRISE``.
        is_numbered: Every line bears its number.
        only: Number and bytes of the lines to read; None for all.
        longest_bytes: Longest line that the engine reads; its threads take pieces twice that large.
    """

    file: Path
    part: Slice
    reader: Reader
    held: Content
    folder: Path
    keep_text: bool
    zone: str | None
    is_broken: bool = False
    absent: frozenset[str] = frozenset()
    is_numbered: bool = False
    only: Collection[tuple[int, bytes]] | None = None
    longest_bytes: int = LONGEST_BYTES

    @property
    def head_lines(self) -> int:
        """Lines before the first record."""
        return 1 if self.held.kind == "csv" else 0

    @property
    def is_plain(self) -> bool:
        """Whether the engine can read the slice as it is."""
        return not (
            self.part.damage or self.part.is_unsure or self.held.is_document or set("*?[") & set(str(self.part.file))
        )


def raw_rows(job: Job) -> str:
    """Write the SELECT of a slice's raw rows, which the engine reads strictly.

    Args:
        job: The slice; of JSON lines or CSV.

    Returns:
        SQL text.
    """
    part, held = job.part, job.held
    unread = _UNREAD if not job.is_numbered else f"NULL::BOOLEAN AS {REPAIRED}"
    if held.kind == "csv":
        return made(f"(SELECT *, {unread} FROM {_csv_read(job)})", job.reader, held)
    types = {name: duckdb_type(node) for name, node in raw_tree(job.reader).items()}
    types |= {LINE: "BIGINT"} if job.is_numbered else {}
    if not job.absent:
        source = ndjson(part.file, types, part.packing, job.longest_bytes)
        return made(f"(SELECT *, {unread} FROM {source})", job.reader, held)
    nothing = [
        f"NULL::{duckdb_type(tree(job.reader.leaves)[name])} AS {identifier(name)}" for name in sorted(job.absent)
    ]
    surprise = " OR ".join(f"{identifier(name)} IS NOT NULL" for name in sorted(job.absent))
    source = ndjson(part.file, types | dict.fromkeys(job.absent, "JSON"), part.packing, job.longest_bytes)
    rows = f"SELECT * REPLACE ({', '.join(nothing)}), {surprise} AS {SURPRISE}, {unread} FROM {source}"
    return made(f"({rows})", job.reader, held, also=SURPRISE, opened=job.absent)


def ndjson(file: Path, types: dict[str, str], packing: str, longest_bytes: int = 1 << 26) -> str:
    """Write the strict read of JSON lines.

    Args:
        file: The file.
        types: Column -> type.
        packing: Compression.
        longest_bytes: Longest line.

    Returns:
        SQL of a table function.
    """
    columns = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in types.items())
    return (
        f"read_ndjson({quoted(str(file))}, columns={{{columns}}}, compression={quoted(packing)}, "
        f"maximum_object_size={longest_bytes})"
    )


def _csv_read(job: Job) -> str:
    part, held = job.part, job.held
    columns = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in held.columns)
    return (
        f"read_csv({quoted(str(part.file))}, columns={{{columns}}}, header=true, auto_detect=false, "
        f"delim={quoted(held.delimiter)}, quote='\"', escape='\"', strict_mode=true, nullstr='', "
        f"max_line_size={job.longest_bytes}, compression={quoted(part.packing)})"
    )


def raw_tree(reader: Reader) -> Tree:
    """Give the reader's raw values as they stand in the file: a column that is opened later is one value.

    Args:
        reader: The format.

    Returns:
        The values.
    """
    leaves: dict[str, str] = {}
    for path, kind in reader.leaves.items():
        root = steps(path)[0]
        leaves[root if root in reader.unpacked else path] = "JSON" if root in reader.unpacked else kind
    return tree(leaves)


def made(source: str, reader: Reader, held: Content, *, also: str = "", opened: Collection[str] = ()) -> str:
    """Write the SELECT that gives raw rows their columns.

    Args:
        source: SQL of a relation: a table function, or a parenthesised query.
        reader: The format.
        held: The file's content as detected.
        also: A further column.
        opened: Columns that have their types already.

    Returns:
        SQL text.
    """
    there = {name.lower() for name in held.columns}
    parts: list[str] = []
    for name, node in tree(reader.leaves).items():
        if held.kind != "ndjson" and name.lower() not in there:
            kind = duckdb_type(node) if name in reader.unpacked else "VARCHAR"
            parts.append(f"NULL::{kind} AS {identifier(name)}")
        elif name in reader.unpacked and name not in opened:
            parts.append(f"{_opened(name, node)} AS {identifier(name)}")
        else:
            parts.append(identifier(name))
    more = [also] if also else []
    return f"SELECT {', '.join((*parts, LINE, REPAIRED, *more))} FROM {source}"


def _opened(name: str, node: str | Tree | list[Tree], *, is_nested: bool = False) -> str:
    """Open a column that holds an object, or JSON text of one; what is no object there is marked as unread."""
    text = f"to_json({identifier(name)})::VARCHAR" if is_nested else f"{identifier(name)}::VARCHAR"
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
    elif isinstance(node, str) and node.startswith("MAP"):
        yield path


def is_too_long(error: Exception) -> bool:
    """Tell whether the engine refused a line for its length.

    Args:
        error: What it said.

    Returns:
        Whether it did.
    """
    return any(name in str(error) for name in ("maximum_object_size", "max_line_size", "Maximum line size"))


def unreadable(where: str, format_name: str, error: duckdb.Error) -> LogFormatError:
    """Make the error for what the engine could not read.

    Args:
        where: The file, or several.
        format_name: What it was read as.
        error: What the engine said.

    Returns:
        The error, in one line.
    """
    said = str(error).strip().splitlines() or ["no reason given"]
    if isinstance(error, duckdb.OutOfMemoryException):
        return LogFormatError(f"{where}: {said[0]}. Set memory_limit higher in tenfold.toml")
    if isinstance(error, duckdb.ProgrammingError):
        # The engine's words are about a statement that the user never wrote.
        return LogFormatError(
            f"{where}: cannot be read as {format_name}: two of the columns or paths that are read clash (names that "
            "differ in case alone count as the same). Rename one of them"
        )
    return LogFormatError(f"{where}: cannot be read as {format_name}: {said[0]}")


@contextmanager
def in_one_line(what: str) -> Generator[None]:
    """Name what is read, and the way out, where the machine has too little memory or room.

    Args:
        what: The file, or the load.

    Yields:
        Nothing.

    Raises:
        LogFormatError: It cannot be read.
    """
    try:
        yield
    except OSError as error:
        said = f"{what}: cannot be read: {error.strerror or error}"
        if error.errno == errno.ENOSPC:
            said += f" in {tempfile.gettempdir()}, where slices of a file are kept. TMPDIR names another folder"
        raise LogFormatError(said) from error
    except duckdb.OutOfMemoryException as error:
        raise unreadable(what, "a log", error) from error


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


def raw_parquet(connection: duckdb.DuckDBPyConnection, job: Job) -> str:
    """Write the SELECT of a Parquet file's raw rows: text, as other formats have it.

    Args:
        connection: Any connection.
        job: The file.

    Returns:
        SQL text.
    """
    file, reader, zone = job.part.file, job.reader, job.zone
    parts: list[str] = []
    types = {name.lower(): kind for name, kind in parquet_columns(file, connection).items()}
    for name, node in tree(reader.leaves).items():
        kind = types.get(name.lower())
        if kind is None:
            absent = duckdb_type(node) if name in reader.unpacked else "VARCHAR"
            parts.append(f"NULL::{absent} AS {identifier(name)}")
        elif name in reader.unpacked:
            nested = kind.endswith("]") or kind.startswith(("STRUCT", "MAP"))
            parts.append(f"{_opened(name, node, is_nested=nested)} AS {identifier(name)}")
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
    return f"SELECT {', '.join(parts)}, {_UNREAD} FROM read_parquet({quoted(_literal(file))})"
