"""The line-by-line pass over a file that the strict read refused: good records go on, the rest is put aside."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from typing import TYPE_CHECKING, cast

from tenfold.logs.files import TruncatedArchive, lines
from tenfold.logs.normalise import LINE, REPAIRED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

    from tenfold.logs.base import Tree

_EXCERPT = 80
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)(?P<end>"?)(?P<colon>\s*:)?|[^"]+')
_SAFE = re.compile(r"true|false|null|NaN|[-+]?[0-9][0-9.,eE+-]*|[\[\]{}:,\s]+")


class NotARecord(Exception):  # noqa: N818 -- a finding about a line, handled line by line
    """Why a line is no record.

    Args:
        reason: In words.
        path: JSON path that it is about.
    """

    def __init__(self, reason: str, path: str | None = None) -> None:
        super().__init__(reason)
        self.path = path


class DuplicateKeyError(ValueError):
    """One object says the same key twice."""


def pass_json(file: Path, tree: Tree, good: TextIO, bad: TextIO, *, keep_text: bool) -> int:
    """Write a broken NDJSON file's good records, pruned to the reader's paths, and quarantine the rest.

    Args:
        file: The file.
        tree: The reader's raw values.
        good: Takes one JSON object a line, with its physical line number.
        bad: Takes one reject a line.
        keep_text: Excerpts may show the line as it is.

    Returns:
        Records written.
    """
    written = 0
    names = _names(tree)
    number = 0
    try:
        for number, line in lines(file):
            raw = line.removesuffix(b"\r")
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw.strip():
                continue
            try:
                found = _record(raw, tree)
            except NotARecord as reject:
                _put(bad, number, reject, excerpt(raw, names, keep_text=keep_text))
                continue
            found[LINE] = number
            text = json.dumps(found, ensure_ascii=False)
            if _SURROGATE.search(text):
                text = _SURROGATE.sub("\ufffd", text)
            good.write(text + "\n")
            written += 1
    except TruncatedArchive:
        _put(bad, number + 1, NotARecord("the archive ends before its data do; the lines before are loaded"), None)
    return written


def _record(raw: bytes, tree: Tree) -> dict[str, object]:
    repaired = b"\0" in raw
    value = _parsed(raw.replace(b"\0", b""))
    if not isinstance(value, dict):
        raise NotARecord(f"no record: a JSON {_kind(value)} where an object was expected", "$")
    found = _prune(cast("dict[str, object]", value), tree, "$")
    if repaired or (b"\\u" in raw and _SURROGATE.search(json.dumps(value, ensure_ascii=False))):
        found[REPAIRED] = True
    return found


def _parsed(raw: bytes) -> object:
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise NotARecord(f"not valid UTF-8 at byte {error.start + 1}") from error
    except DuplicateKeyError as error:
        raise NotARecord("a key stands twice in one object", str(error)) from error
    except json.JSONDecodeError as error:
        raise NotARecord(f"not valid JSON: {error.msg} at column {error.pos + 1}") from error
    except RecursionError as error:
        raise NotARecord("not usable JSON: nested too deeply") from error


def _integer(digits: str) -> int | float:
    """Keep a number that is too long for any count as one that the count check refuses."""
    return int(digits) if len(digits) <= 40 else float("inf")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKeyError(key)
            seen.add(key)
    return found


def _kind(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "truth value"), ((int, float), "number"), (str, "text"), (list, "list")):
        if isinstance(value, kind):
            return name
    return "object"


def _prune(value: dict[str, object], tree: Tree, path: str) -> dict[str, object]:
    """Keep the reader's own paths, checking that objects are objects and lists are lists of objects."""
    kept: dict[str, object] = {}
    for name, node in tree.items():
        held = value.get(name)
        if held is None:
            continue
        place = f"{path}.{name}"
        if isinstance(node, str):
            kept[name] = _object(held, place) if node.startswith("MAP") else held
        elif isinstance(node, dict):
            kept[name] = _prune(_object(held, place), node, place)
        elif isinstance(held, list):
            entries = enumerate(cast("list[object]", held))
            kept[name] = [
                _prune(_object(e, f"{place}[{i}]"), node[0], f"{place}[{i}]") for i, e in entries if e is not None
            ]
        else:
            raise NotARecord(f"expected a list, found a {_kind(held)}", place)
    return kept


def _object(held: object, place: str) -> dict[str, object]:
    if not isinstance(held, dict):
        raise NotARecord(f"expected an object, found a {_kind(held)}", place)
    return cast("dict[str, object]", held)


def pass_csv(file: Path, delimiter: str, good: TextIO, bad: TextIO, *, keep_text: bool) -> int:
    """Write a CSV file's good records as JSON objects and quarantine ragged and undecodable ones.

    Args:
        file: The file.
        delimiter: Between cells.
        good: Takes one JSON object a record, with the physical line it starts on.
        bad: Takes one reject a record.
        keep_text: Excerpts may show the record as it is.

    Returns:
        Records written.
    """
    csv.field_size_limit(sys.maxsize)
    feed = _CsvLines(file)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    written = 0
    header: list[str] | None = None
    while True:
        start = feed.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            _put(bad, start, NotARecord(f"not valid CSV: {error}"), None)
            continue
        if not cells:
            continue
        if header is None:
            header = [name.strip() for name in cells]
            continue
        excerpts = delimiter.join(cells)[:_EXCERPT] if keep_text else None
        if any(_SURROGATE.search(cell) for cell in cells):
            _put(bad, start, NotARecord("not valid UTF-8"), excerpts)
        elif len(cells) != len(header):
            _put(bad, start, NotARecord(f"{len(cells)} cells where the header has {len(header)}"), excerpts)
        else:
            record: dict[str, object] = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
            record[LINE] = start
            good.write(json.dumps(record, ensure_ascii=False) + "\n")
            written += 1
    if feed.truncated:
        _put(bad, feed.number + 1, NotARecord("the archive ends before its data do; the lines before are loaded"), None)
    return written


class _CsvLines:
    """Physical lines as text for the csv module, with undecodable bytes as lone surrogates."""

    def __init__(self, file: Path) -> None:
        self._lines = lines(file)
        self.number = 0
        self.truncated = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            self.number, line = next(self._lines)
        except TruncatedArchive:
            self.truncated = True
            raise StopIteration from None
        if self.number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        return line.replace(b"\0", b"").decode("utf-8", "surrogateescape") + "\n"


def excerpt(raw: bytes, names: frozenset[str], *, keep_text: bool) -> str:
    """Show the start of a refused line: its structure, keys that the reader knows and numbers, never its text.

    Args:
        raw: The line.
        names: Keys that may be shown.
        keep_text: Show it as it is.

    Returns:
        At most 80 characters.
    """
    text = raw[: 8 * _EXCERPT].decode("utf-8", "replace")
    if keep_text:
        return text[:_EXCERPT]
    shown = io.StringIO()
    for found in _TOKEN.finditer(text):
        if found["text"] is None:
            position = 0
            for safe in _SAFE.finditer(found[0]):
                shown.write("…" if safe.start() > position else "")
                shown.write(safe[0])
                position = safe.end()
            shown.write("…" if position < len(found[0]) else "")
        elif found["text"] in names:
            shown.write(found[0])
        else:
            shown.write(f'"…{found["end"]}{found["colon"] or ""}')
    return shown.getvalue()[:_EXCERPT]


def _names(tree: Tree) -> frozenset[str]:
    found: set[str] = set()
    for name, node in tree.items():
        found.add(name)
        if isinstance(node, dict):
            found |= _names(node)
        elif isinstance(node, list):
            found |= _names(node[0])
    return frozenset(found)


def _put(bad: TextIO, number: int, reject: NotARecord, shown: str | None) -> None:
    row = {"source_line": number, "reason": str(reject), "path": reject.path, "excerpt": shown}
    bad.write(json.dumps(row) + "\n")
