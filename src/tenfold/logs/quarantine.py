"""The line-by-line pass over a file that the strict read refused: good records go on, the rest is put aside."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import deque
from typing import TYPE_CHECKING, Protocol, cast

from tenfold.errors import LogFormatError
from tenfold.logs.excerpts import EXCERPT, excerpt, names
from tenfold.logs.files import TruncatedArchive
from tenfold.logs.normalise import LINE, REPAIRED

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import TextIO

    from tenfold.logs.base import Tree

# A quoted cell may run over lines up to here; a longer one is a quote that was never closed.
_RECORD_SIZE = 1 << 22
# Longest path that is kept: a key may be as long as its line.
_PATH = 400  # characters
_SURROGATE = re.compile("[\ud800-\udfff]")


class Lines(Protocol):
    """Takes lines of text, such as an open file."""

    def write(self, line: str, /) -> int:
        """Take one line.

        Args:
            line: The line, with its end.

        Returns:
            Characters taken.
        """
        ...


class NotARecord(Exception):  # noqa: N818 -- a finding about a line, handled line by line
    """Why a line is no record.

    Args:
        reason: In words.
        path: JSON path that it is about.
    """

    def __init__(self, reason: str, path: str | None = None) -> None:
        super().__init__(reason)
        self.path = path


class _Twice(dict[str, object]):
    """An object that says some keys twice; the first value of each stands.

    Args:
        pairs: Its members.
    """

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(reversed(pairs))
        seen: set[str] = set()
        self.twice = [key for key, _ in pairs if key in seen or seen.add(key)]


def pass_json(
    records: Iterable[tuple[int, bytes]],
    tree: Tree,
    unpacked: Sequence[str],
    good: Lines,
    bad: TextIO,
    *,
    keep_text: bool,
    is_unsure: bool = False,
    before: int = 0,
) -> int:
    """Write a broken NDJSON file's good records, pruned to the reader's paths, and quarantine the rest.

    Args:
        records: Line number and JSON text of each record.
        tree: The reader's raw values.
        unpacked: Names in it that may hold their object as JSON text.
        good: Takes one JSON object a line, with its physical line number.
        bad: Takes one reject a line.
        keep_text: Excerpts may show the line as it is.
        is_unsure: The file is an archive whose damage shows late: nothing is read from the first line on
            that is no record.
        before: Lines before the first one.

    Returns:
        Records written.
    """
    written = 0
    known = names(tree)
    number = before
    try:
        for number, line in records:
            raw = line.removesuffix(b"\r")
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw.strip():
                continue
            try:
                found = _record(raw, tree, unpacked)
            except NotARecord as reject:
                shown = excerpt(raw, known, keep_text=keep_text)
                if is_unsure:
                    lost = "nothing from this line on is loaded, and lines shortly before it may be wrong"
                    damage = f"the archive is damaged, here at the latest ({reject}): {lost}"
                    put(bad, number, NotARecord(damage, reject.path), shown)
                    break
                put(bad, number, reject, shown)
                continue
            found[LINE] = number
            text = json.dumps(found, ensure_ascii=False)
            if _SURROGATE.search(text):
                text = _SURROGATE.sub("\ufffd", text)
            good.write(text + "\n")
            written += 1
    except TruncatedArchive as damaged:
        put(bad, number + 1, NotARecord(damaged.after(number)), None)
    return written


def _record(raw: bytes, tree: Tree, unpacked: Sequence[str]) -> dict[str, object]:
    try:
        return _checked(raw, tree, unpacked)
    except RecursionError as error:
        raise NotARecord("not usable JSON: nested too deeply") from error


def _checked(raw: bytes, tree: Tree, unpacked: Sequence[str]) -> dict[str, object]:
    repaired = b"\0" in raw
    value = _parsed(raw.replace(b"\0", b"").strip())
    if not isinstance(value, dict):
        raise NotARecord(f"no record: a JSON {_kind(value)} where an object was expected", "$")
    plain = {name: node for name, node in tree.items() if name not in unpacked}
    record = cast("dict[str, object]", value)
    _refuse_twice(record, unpacked)
    found = _prune(record, plain, "$")
    found.update({name: _opened(record[name], tree[name]) for name in unpacked if record.get(name) is not None})
    if repaired or (b"\\u" in raw and _SURROGATE.search(json.dumps(value, ensure_ascii=False))):
        found[REPAIRED] = True
    return found


def _parsed(raw: bytes) -> object:
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_members, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise NotARecord(f"not valid UTF-8 at byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        said = error.msg.removesuffix(" at").removesuffix(" starting")
        raise NotARecord(f"not valid JSON: {said} at column {error.pos + 1}") from error


def _integer(digits: str) -> int | float:
    """Keep a number that is too long for any count as one that the count check refuses."""
    return int(digits) if len(digits) <= 40 else float("inf")


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Twice(pairs)


def _refuse_twice(value: dict[str, object], read: Container[str] | None) -> None:
    """Refuse an object in which a key that is read stands twice: which of them is meant is unknown."""
    for key in value.twice if isinstance(value, _Twice) else ():
        if read is None or key in read:
            raise NotARecord("a key stands twice in one object", key)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "truth value"), ((int, float), "number"), (str, "text"), (list, "list")):
        if isinstance(value, kind):
            return name
    return "object"


def _prune(value: dict[str, object], tree: Tree, path: str) -> dict[str, object]:
    """Keep the reader's own paths, checking that objects are objects and lists are lists of objects."""
    _refuse_twice(value, tree)
    kept: dict[str, object] = {}
    for name, node in tree.items():
        held = value.get(name)
        if held is None:
            continue
        place = f"{path}.{name}"
        if isinstance(node, str):
            if node.startswith("MAP"):
                _refuse_twice(_object(held, place), None)
            kept[name] = held
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


def _opened(held: object, node: str | Tree | list[Tree]) -> object:
    """Open a value that may be JSON text and keep the reader's own paths of it."""
    if isinstance(held, str):
        try:
            held = json.loads(held, object_pairs_hook=_members, parse_int=_integer)
        except (ValueError, RecursionError):
            return False if held.strip(" ") else None  # what is no object stands as false, for the read to mark
    if isinstance(node, dict) and held is not None:
        return _kept(cast("dict[str, object]", held), node) if isinstance(held, dict) else False
    if isinstance(node, list):
        return [_opened(entry, node[0]) for entry in cast("list[object]", held)] if isinstance(held, list) else None
    return held


def _kept(held: dict[str, object], tree: Tree) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, node in tree.items():
        value = held.get(name)
        if value is not None:
            found[name] = value if isinstance(node, str) else _opened(value, node)
    return found


def _object(held: object, place: str) -> dict[str, object]:
    if not isinstance(held, dict):
        raise NotARecord(f"expected an object, found a {_kind(held)}", place)
    return cast("dict[str, object]", held)


def pass_csv(
    file: Path,
    lines: Iterator[tuple[int, bytes]],
    delimiter: str,
    tree: Tree,
    unpacked: Sequence[str],
    good: Lines,
    bad: TextIO,
    *,
    keep_text: bool,
) -> int:
    """Write a CSV file's good records as JSON objects, pruned to the reader's columns, and quarantine the others.

    Args:
        file: The file, for errors.
        lines: Number and bytes of each line, from the header on.
        delimiter: Between cells.
        tree: The reader's raw values; no other cell is written.
        unpacked: Names in it whose cells hold JSON text.
        good: Takes one JSON object a record, with the physical line it starts on.
        bad: Takes one reject a record.
        keep_text: Excerpts may show the record as it is.

    Returns:
        Records written.

    Raises:
        LogFormatError: The header cannot be read.
    """
    csv.field_size_limit(sys.maxsize)
    feed = _CsvLines(lines)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    written = 0
    header: list[str] | None = None
    columns = {name.lower(): name for name in tree}
    read: list[tuple[int, str]] = []
    while True:
        feed.begin()
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if header is None:
                raise LogFormatError(f"{file}: the header's quotes do not match. Correct its first line") from error
            reason = f"not valid CSV: {error}; reading goes on at the next line"
            put(bad, feed.start, NotARecord(reason), None)
            feed.read_again()
            continue
        start = feed.start
        if not cells:
            continue
        if header is None:
            header = [name.strip() for name in cells]
            read = [(place, name) for place, name in enumerate(header) if name.lower() in columns]
            continue
        excerpts = delimiter.join(cells)[:EXCERPT] if keep_text else None
        if any(_SURROGATE.search(cell) for cell in cells):
            put(bad, start, NotARecord("not valid UTF-8"), excerpts)
            feed.read_again()
        elif len(cells) != len(header):
            # Over several lines, this may be a quote that another record's quote closed.
            put(bad, start, NotARecord(f"{len(cells)} cells where the header has {len(header)}"), excerpts)
            feed.read_again()
        else:
            record: dict[str, object] = {name: cells[place] for place, name in read if cells[place]}
            for name in record.keys() & {name for _, name in read if columns[name.lower()] in unpacked}:
                opened = _opened(record[name], tree[columns[name.lower()]])
                record[name] = None if opened is None else json.dumps(opened)
            record[LINE] = start
            good.write(json.dumps(record, ensure_ascii=False) + "\n")
            written += 1
    if feed.damaged is not None:
        put(bad, feed.number + 1, NotARecord(feed.damaged.after(feed.number)), None)
    return written


class _CsvLines:
    """Physical lines as text for the csv module, with undecodable bytes as lone surrogates."""

    def __init__(self, lines: Iterator[tuple[int, bytes]]) -> None:
        self._lines = lines
        self._is_head = True
        self._record: list[tuple[int, str]] = []
        self._size = 0
        self._again: deque[tuple[int, str]] = deque()
        self.number = 0
        self.damaged: TruncatedArchive | None = None

    def begin(self) -> None:
        """Forget the lines of the record before."""
        self._record, self._size = [], 0

    @property
    def start(self) -> int:
        """The line that the record begins on."""
        return self._record[0][0] if self._record else self.number + 1

    def read_again(self) -> None:
        """Give all lines of the record but its first once more, as records of their own."""
        self._again.extendleft(reversed(self._record[1:]))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._size > _RECORD_SIZE:
            raise StopIteration
        number, text = self._again.popleft() if self._again else self._fresh()
        self._record.append((number, text))
        self._size += len(text)
        return text

    def _fresh(self) -> tuple[int, str]:
        try:
            self.number, line = next(self._lines)
        except TruncatedArchive as damaged:
            self.damaged = damaged
            raise StopIteration from None
        if self._is_head:
            line = line.removeprefix(b"\xef\xbb\xbf")
        self._is_head = False
        return self.number, line.replace(b"\0", b"").decode("utf-8", "surrogateescape") + "\n"


def put(bad: TextIO, number: int, reject: NotARecord, shown: str | None) -> None:
    """Write one reject.

    Args:
        bad: Where to.
        number: Physical line.
        reject: Why it is no record.
        shown: Excerpt of it.
    """
    path = reject.path and reject.path[:_PATH]
    row = {"source_line": number, "reason": str(reject), "path": path, "excerpt": shown}
    bad.write(json.dumps(row) + "\n")
