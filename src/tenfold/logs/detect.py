"""Which format a file is in: told from its content, refused with what was looked for where none fits."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, NamedTuple, cast

from tenfold.errors import LogFormatError, near
from tenfold.logs import documents, files, sse
from tenfold.logs.base import steps
from tenfold.logs.looks import looks_like

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tenfold.logs.base import Detect, Kind, Reader

_SAMPLE = 200
# Formats that a refusal compares a file with.
_NEAREST = 3
_KINDS = {"ndjson": "JSON lines", "csv": "a table (CSV)", "parquet": "Parquet"}
WAY_OUT = "Name the format with --format NAME or say what the columns mean with --map FILE"


class Content(NamedTuple):
    """What a file holds, by its first bytes.

    Args:
        kind: Container.
        delimiter: Between cells of a CSV file.
        columns: Columns of a CSV or Parquet file; top keys of the first NDJSON records.
        records: The first NDJSON records.
        looks_like: The content in words, with the way out where it cannot be read.
        is_readable: It can be a log at all.
        is_document: Its records stand in a JSON document over lines.
    """

    kind: Kind
    delimiter: str
    columns: tuple[str, ...]
    records: tuple[Mapping[str, object], ...]
    looks_like: str = ""
    is_readable: bool = True
    is_document: bool = False


class UnknownFormatError(LogFormatError):
    """No reader knows the file.

    Args:
        short: The file and what it looks like.
        rest: What was looked for, and the way out.
    """

    def __init__(self, short: str, rest: str = "") -> None:
        super().__init__(short + rest)
        self.short = short


def content(file: Path, columns_of_parquet: Sequence[str] | None = None) -> Content:
    """Look at a file's first bytes.

    Args:
        file: The file.
        columns_of_parquet: Its columns, where it is Parquet.

    Returns:
        Container, columns and first records.
    """
    if columns_of_parquet is not None:
        return Content("parquet", "", tuple(columns_of_parquet), (), "a Parquet file")
    raw = files.head(file).removeprefix(b"\xef\xbb\xbf")
    text = raw.decode("utf-8", "replace")
    whole = documents.is_document(text)
    records = tuple(_records(documents.heads(text) if whole else text.split("\n")))
    if records and (whole or not _is_table(text)):
        names: dict[str, None] = {}
        for record in records:
            names.update(dict.fromkeys(record))
        look = "JSON lines" if not whole else "saved server-sent events" if sse.is_stream(text) else "a JSON document"
        return Content("ndjson", "", tuple(names), records, look, is_document=whole)
    odd = looks_like(raw, text)
    if odd:
        return Content("csv", ",", (), (), odd, is_readable=False)
    delimiter, header = _header(text)
    look = "a table" if len(header) > 1 else "plain text"
    return Content("csv", delimiter, tuple(name.strip() for name in header), (), look, is_readable=bool(header))


def _header(text: str) -> tuple[str, list[str]]:
    line = next((line for line in text.split("\n") if line.strip()), "")
    delimiter = max(",;\t|", key=line.count)
    try:
        return delimiter, next(csv.reader([line.rstrip("\r")], delimiter=delimiter), list[str]())
    except csv.Error:
        return delimiter, []


def _is_table(text: str) -> bool:
    """Tell a table, in whose cells JSON may stand on lines of its own."""
    names = _header(text)[1]
    filled = [line for line in text.split("\n") if line.strip()]
    objects = sum(line.startswith("{") for line in filled)
    return len(names) > 1 and all(_COLUMN.fullmatch(name.strip()) for name in names) and 2 * objects < len(filled)


def is_parquet(file: Path) -> bool:
    """Tell Parquet by its first bytes.

    Args:
        file: The file.

    Returns:
        Whether it is.
    """
    with file.open("rb") as handle:
        return handle.read(4) == b"PAR1"


def _records(lines: Iterable[str]) -> Iterable[Mapping[str, object]]:
    found = 0
    for line in lines:
        if found >= _SAMPLE or not line.lstrip("\0 ").startswith("{"):
            continue
        try:
            value: object = json.loads(line.replace("\0", ""))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found += 1
            yield cast("dict[str, object]", value)


def choose(
    file: Path, held: Content, readers: Sequence[Reader], name: str | None, beside: Sequence[str] = ()
) -> Reader:
    """Choose the reader of a file.

    Args:
        file: The file, for the message.
        held: Its content.
        readers: All readers; earlier ones win where two fit as many records.
        name: The format the user named.
        beside: Formats that other readers read, for the message.

    Returns:
        The reader.

    Raises:
        LogFormatError: None fits, or the named one is unknown or does not read such files.
    """
    if name is not None:
        named = next((reader for reader in readers if reader.name == name), None)
        known = [*(reader.name for reader in readers), *beside]
        if named is None:
            raise LogFormatError(f'no log format "{name}".{near(name, known)} Known: {", ".join(known)}')
        check_readable(file, held)
        if held.kind not in named.kinds:
            comes = " or ".join(_KINDS[kind] for kind in named.kinds)
            raise LogFormatError(f"{file}: looks like {held.looks_like}, but {name} comes as {comes}")
        return named
    best, most = None, 0
    for reader in readers:
        fits = _fits(reader, held)
        if fits > most:
            best, most = reader, fits
    if best is None:
        raise refusal(file, held, readers)
    return best


def check_readable(file: Path, held: Content) -> None:
    """Refuse what cannot be a log, whichever reader or map was named.

    Args:
        file: The file.
        held: Its content.

    Raises:
        LogFormatError: Names the file and the way out.
    """
    if not held.is_readable:
        raise UnknownFormatError(f"{file}: unknown log format (looks like {held.looks_like})")


def check_header(file: Path, held: Content, reader: Reader) -> None:
    """Refuse a table whose header says one of the reader's columns twice: which is meant is unknown.

    Args:
        file: The file.
        held: Its content.
        reader: Its reader.

    Raises:
        LogFormatError: Names file and column.
    """
    if held.kind == "ndjson":
        return
    names = [name.lower() for name in held.columns]
    read = {steps(path)[0].lower() for path in reader.leaves}
    for name in held.columns:
        if name.lower() in read and names.count(name.lower()) > 1:
            raise LogFormatError(f'{file}: the header says "{name}" twice. Rename one of the two columns')


def _fits(reader: Reader, held: Content) -> int:
    if held.kind not in reader.kinds:
        return 0
    if held.kind == "ndjson":
        return sum(fits(reader.detect, record) for record in held.records)
    return int(fits(reader.detect, dict.fromkeys(held.columns)))


def fits(rule: Detect, record: Mapping[str, object]) -> bool:
    """Tell whether a record is of a format.

    Args:
        rule: What is looked for.
        record: The record (for tables: its columns).

    Returns:
        Whether it is.
    """
    if any(_has(record, key) for key in rule.absent):
        return False
    if any(_value(record, key) in values for _, key, values in rule.others):
        return False
    if any(_value(record, key) in values for key, values in rule.values.items()):
        return True
    return any(all(_has(record, key) for key in keys) for keys in rule.keys)


def _value(record: Mapping[str, object], path: str) -> object:
    *above, leaf = steps(path)
    node = record
    for step in above:
        held = node.get(step)
        if not isinstance(held, dict):
            return None
        node = cast("dict[str, object]", held)
    return node.get(leaf)


def _has(record: Mapping[str, object], path: str) -> bool:
    *above, leaf = steps(path)
    node = record
    for step in above:
        held = node.get(step)
        if not isinstance(held, dict):
            return False
        node = cast("dict[str, object]", held)
    return leaf in node


def other_format(line: bytes, *, own: Reader, readers: Sequence[Reader]) -> str:
    """Tell which other format a line of JSON is in, by keys of its own.

    Args:
        line: The line.
        own: The reader of its file.
        readers: All readers.

    Returns:
        The format's name; nothing where the line is of none, or only an error that several formats share.
    """
    text = line.decode("utf-8", "replace").removeprefix("data:")
    record = next(iter(_records([text])), None)
    if record is None:
        return ""
    for reader in readers:
        rule = reader.detect
        telling = rule._replace(keys=tuple(keys for keys in rule.keys if "error" not in keys))
        if reader.name != own.name and "ndjson" in reader.kinds and fits(telling, record):
            return reader.name
    return ""


def refusal(file: Path, held: Content, readers: Sequence[Reader]) -> UnknownFormatError:
    """Say what was looked for and what was found.

    Args:
        file: The file.
        held: Its content.
        readers: All readers.

    Returns:
        The error; its message is one line.
    """
    others = [other for reader in readers for other in reader.detect.others]
    known = next((o.name for o in others if any(_value(r, o.key) in o.values for r in held.records)), None)
    said = f"{file}: unknown log format (looks like {known or held.looks_like})"
    if known or not held.is_readable:
        return UnknownFormatError(said)
    names = shown(held)
    looked = "; ".join(f"{r.name}: {r.detect.looked_for()}" for r in _nearest(held, readers))
    looked = f"Nearest are {looked}" if looked else "No format's keys are among them"
    return UnknownFormatError(f"{said}. Found: {names}", f". {looked} (`tenfold formats` lists all). {WAY_OUT}")


def _nearest(held: Content, readers: Sequence[Reader]) -> list[Reader]:
    """Give the formats of which a file has most of some required keys, the nearest first."""
    records = held.records or (dict.fromkeys(held.columns),)
    near_by = [
        (max((_share(record, keys) for record in records for keys in reader.detect.keys), default=0.0), reader)
        for reader in readers
        if held.kind in reader.kinds
    ]
    near_by = [pair for pair in near_by if pair[0] > 0]
    return [reader for _, reader in sorted(near_by, key=lambda pair: -pair[0])[:_NEAREST]]


def _share(record: Mapping[str, object], keys: Sequence[str]) -> float:
    return sum(_has(record, key) for key in keys) / len(keys)


# What a table's column is called; anything else in a first line may be somebody's text.
_COLUMN = re.compile(r"[A-Za-z_][\w.:/()%#-]{0,39}( [\w.:/()%#-]{1,20}){0,2}")


def shown(held: Content) -> str:
    """Name a file's keys or columns for a message; a first line that is no header is data, and is not shown.

    Args:
        held: The file's content.

    Returns:
        The names, or why there are none.
    """
    if held.kind == "csv" and (len(held.columns) < 2 or not all(_COLUMN.fullmatch(name) for name in held.columns)):
        return "a first line that is no plain header (not shown: it may hold private text)"
    return ", ".join(_printable(name) for name in held.columns[:20]) or "no columns"


def _printable(name: str) -> str:
    text = "".join(sign if sign.isprintable() else "\ufffd" for sign in name)
    return text if len(text) <= 40 else f"{text[:40]}..."
