"""Which format a file is in: told from its content, refused with what was looked for where none fits."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, NamedTuple, cast

from tenfold.errors import LogFormatError, near
from tenfold.logs import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tenfold.logs.base import Detect, Kind, Reader

_SAMPLE = 200


class Content(NamedTuple):
    """What a file holds, by its first bytes.

    Args:
        kind: Container.
        delimiter: Between cells of a CSV file.
        columns: Columns of a CSV or Parquet file; top keys of the first NDJSON records.
        records: The first NDJSON records.
    """

    kind: Kind
    delimiter: str
    columns: tuple[str, ...]
    records: tuple[Mapping[str, object], ...]


def content(file: Path, columns_of_parquet: Sequence[str] | None = None) -> Content:
    """Look at a file's first bytes.

    Args:
        file: The file.
        columns_of_parquet: Its columns, where it is Parquet.

    Returns:
        Container, columns and first records.
    """
    if columns_of_parquet is not None:
        return Content("parquet", "", tuple(columns_of_parquet), ())
    text = files.head(file).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    records = tuple(_records(text))
    if records:
        names: dict[str, None] = {}
        for record in records:
            names.update(dict.fromkeys(record))
        return Content("ndjson", "", tuple(names), records)
    first = next((line for line in text.split("\n") if line.strip()), "")
    delimiter = max(",;\t|", key=first.count)
    header: list[str] = next(csv.reader([first.rstrip("\r")], delimiter=delimiter), list[str]())
    return Content("csv", delimiter, tuple(name.strip() for name in header), ())


def is_parquet(file: Path) -> bool:
    """Tell Parquet by its first bytes.

    Args:
        file: The file.

    Returns:
        Whether it is.
    """
    with file.open("rb") as handle:
        return handle.read(4) == b"PAR1"


def _records(text: str) -> Iterable[Mapping[str, object]]:
    found = 0
    for line in text.split("\n"):
        if found >= _SAMPLE or not line.lstrip("\0 ").startswith("{"):
            continue
        try:
            value: object = json.loads(line.replace("\0", ""))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found += 1
            yield cast("dict[str, object]", value)


def choose(file: Path, held: Content, readers: Sequence[Reader], name: str | None) -> Reader:
    """Choose the reader of a file.

    Args:
        file: The file, for the message.
        held: Its content.
        readers: All readers; earlier ones win where two fit as many records.
        name: The format the user named.

    Returns:
        The reader.

    Raises:
        LogFormatError: None fits, or the named one is unknown or does not read such files.
    """
    if name is not None:
        named = next((reader for reader in readers if reader.name == name), None)
        known = [reader.name for reader in readers]
        if named is None:
            raise LogFormatError(f'no log format "{name}".{near(name, known)} Known: {", ".join(known)}')
        if held.kind not in named.kinds:
            raise LogFormatError(f"{file}: {held.kind}, but {name} comes as {' or '.join(named.kinds)}")
        return named
    best, most = None, 0
    for reader in readers:
        fits = _fits(reader, held)
        if fits > most:
            best, most = reader, fits
    if best is None:
        raise LogFormatError(refusal(file, held, readers))
    return best


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
    if any(_value(record, key) in values for key, values in rule.values.items()):
        return True
    return any(all(_has(record, key) for key in keys) for keys in rule.keys)


def _value(record: Mapping[str, object], path: str) -> object:
    *above, leaf = path.split(".")
    node = record
    for step in above:
        held = node.get(step)
        if not isinstance(held, dict):
            return None
        node = cast("dict[str, object]", held)
    return node.get(leaf)


def _has(record: Mapping[str, object], path: str) -> bool:
    head, _, leaf = path.rpartition(".")
    node = _value(record, head) if head else record
    return isinstance(node, dict) and leaf in node


def refusal(file: Path, held: Content, readers: Sequence[Reader]) -> str:
    """Say what was looked for and what was found.

    Args:
        file: The file.
        held: Its content.
        readers: All readers.

    Returns:
        The message.
    """
    names = ", ".join(held.columns[:20]) or "nothing that reads as JSON objects or a table"
    looked = "".join(
        f"\n  {reader.name}: {reader.detect.looked_for()}" for reader in readers if held.kind in reader.kinds
    )
    return (
        f"{file}: unknown log format ({held.kind}). Found: {names}. Looked for:{looked}\n"
        "Name it with --format NAME, or say what its columns mean with --map FILE"
    )
