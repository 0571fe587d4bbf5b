"""JSON documents that run over lines: a list of records, an export with its list in one key, or records one by one."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple, cast

from tenfold.logs.files import TruncatedArchive, chunks

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    # Place and text of each record; in the end the place behind them, and where the text breaks off, if it does.
    _Records = Generator[tuple[int, str], None, tuple[int, int | None]]

# Keys of an export's object whose list holds the records, and what may stand beside them where the name says little.
_LISTS = ("observations", "data", "records", "results")
_PAGED = frozenset({"meta", "object", "has_more", "first_id", "last_id", "next_page", "page", "count", "total"})
# Texts of a whole trace, which no reader needs with each of its observations.
_LARGE = frozenset({"input", "output", "scores", *_LISTS})
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder(strict=False)


class _Member(NamedTuple):
    """One key of an object, with the place of its value; no end where the text breaks off in it."""

    key: str
    start: int
    end: int | None


def is_document(text: str) -> bool:
    """Tell a document over lines (or one line that lists records) from JSON lines.

    Args:
        text: The file's beginning.

    Returns:
        Whether its records have to be taken out of a document.
    """
    start = text.removeprefix("\ufeff").lstrip()
    if start[:1] not in {"{", "["}:
        return False
    first, _, rest = start.partition("\n")
    try:
        value: object = json.loads(first)
    except (ValueError, RecursionError):
        whole = any(_is_object(line) for line in rest.split("\n")) if start[0] == "{" else False
        return not whole and next(_found(start), None) is not None
    listed = isinstance(value, list) or (isinstance(value, dict) and _listed(set(cast("dict[str, object]", value))))
    return listed and not rest.strip() and next(_found(start), None) is not None


def _is_object(line: str) -> bool:
    """Tell a line that is an object of its own: not indented, as within a document."""
    if not line.startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def records(file: Path) -> Iterator[tuple[int, bytes]]:
    """Take the records out of a document.

    Args:
        file: The file.

    Yields:
        Line that the record begins on, and its JSON text; what the document breaks off with comes last, as it is.

    Raises:
        TruncatedArchive: After the last piece that could be read.
    """
    pieces: list[bytes] = []
    damaged: TruncatedArchive | None = None
    try:
        pieces.extend(chunks(file))
    except TruncatedArchive as broken:
        damaged = broken
    text = b"".join(pieces).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    line, counted = 1, 0
    for start, record in _found(text, whole=True):
        line, counted = line + text.count("\n", counted, start), start
        yield line, record.encode("utf-8", "surrogateescape")
    if damaged is not None:
        raise damaged


def heads(text: str) -> Iterator[str]:
    """Give the records in a document's beginning, as far as they are whole.

    Args:
        text: The file's beginning.

    Yields:
        JSON text of each.
    """
    for _, record in _found(text.removeprefix("\ufeff")):
        yield record


def _found(text: str, *, whole: bool = False) -> Iterator[tuple[int, str]]:
    """Find the records; with ``whole`` also give the rest of a text that breaks off."""
    position = _skip(text, 0)
    while position < len(text):
        if text[position] == "[":
            position, rest = yield from _elements(text, position, "")
        else:
            position, rest = yield from _value(text, position)
        if rest is not None:
            if whole:
                yield rest, text[rest : rest + (1 << 20)]
            return
        position = _skip(text, position)


def _value(text: str, position: int) -> _Records:
    members = _members(text, position) if text[position] == "{" else []
    keys = {member.key for member in members}
    held = next((m for m in members if m.key in _LISTS and text[m.start] == "["), None)
    if held is not None and _listed(keys):
        end = _end(text, position)
        last = yield from _elements(text, held.start, _beside(text, members))
        return (end, None) if end is not None else (last[0], held.start if last[1] is None else last[1])
    end = _end(text, position)
    if end is None:
        return position, position
    yield position, text[position:end]
    return end, None


def _listed(keys: set[str]) -> bool:
    return "observations" in keys or any(key in keys and keys - {key} <= _PAGED for key in _LISTS)


def _beside(text: str, members: list[_Member]) -> str:
    """Write what an export says of all its observations, to stand in each of them."""
    found: dict[str, object] = {}
    for key, start, end in members:
        if end is not None and key not in _LARGE:
            found[key] = _DECODER.raw_decode(text, start)[0]
    trace = found.get("trace", found)
    if not isinstance(trace, dict) or not trace:
        return ""
    kept = {key: value for key, value in cast("dict[str, object]", trace).items() if key not in _LARGE}
    return f'"trace": {json.dumps(kept)}, '


def _elements(text: str, position: int, beside: str) -> _Records:
    position = _skip(text, position + 1)
    while position < len(text) and text[position] != "]":
        end = _end(text, position)
        if end is None:
            return position, position
        record = text[position:end]
        if beside and record.startswith("{") and len(record) > 2:
            record = "{" + beside + record[1:]
        yield position, record
        position = _skip(text, end)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
        elif text[position : position + 1] != "]":
            return position, min(position, len(text) - 1)
    return (position + 1, None) if position < len(text) else (position, position - 1)


def _members(text: str, position: int) -> list[_Member]:
    found: list[_Member] = []
    position = _skip(text, position + 1)
    while text[position : position + 1] == '"':
        key_end = _end(text, position)
        colon = _skip(text, key_end) if key_end is not None else len(text)
        if text[colon : colon + 1] != ":":
            return found
        start = _skip(text, colon + 1)
        key = str(_DECODER.raw_decode(text, position)[0])
        end = _end(text, start)
        if start < len(text):
            found.append(_Member(key, start, end))
        if end is None:
            return found
        position = _skip(text, end)
        if text[position : position + 1] == ",":
            position = _skip(text, position + 1)
    return found


def _end(text: str, position: int) -> int | None:
    try:
        return _DECODER.raw_decode(text, position)[1]
    except (ValueError, RecursionError):
        return None


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def values(text: str) -> Iterator[tuple[int, str, bool]]:
    """Give the top values of a text, one document or one a line.

    Args:
        text: The text.

    Yields:
        Place, text and whether it is whole, of each.
    """
    position = _skip(text, 0)
    while position < len(text):
        end = _end(text, position)
        if end is None:
            # What follows a broken line may be whole again.
            line_end = text.find("\n{", position)
            yield position, text[position : len(text) if line_end < 0 else line_end], False
            position = len(text) if line_end < 0 else line_end + 1
            continue
        yield position, text[position:end], True
        position = _skip(text, end)


def entries(text: str, key: str) -> Iterator[tuple[int, str, bool]]:
    """Give the entries of a list in an object.

    Args:
        text: The object's text; it may break off.
        key: Key of the list.

    Yields:
        Place, text and whether it is whole, of each.
    """
    members = _members(text, _skip(text, 0)) if text.lstrip().startswith("{") else []
    held = next((member for member in members if member.key == key and text[member.start] == "["), None)
    if held is None:
        return
    found = _elements(text, held.start, "")
    while True:
        try:
            place, entry = next(found)
        except StopIteration as stop:
            rest = stop.value[1]
            if rest is not None and text[rest : rest + 1] not in {"]", ""}:
                yield rest, text[rest:], False
            return
        yield place, entry, True


def beside(text: str, key: str) -> dict[str, object]:
    """Give what an object says beside one of its lists.

    Args:
        text: The object's text.
        key: Key of the list, which is left out.

    Returns:
        The other members that are whole.
    """
    members = _members(text, _skip(text, 0))
    return {
        name: _DECODER.raw_decode(text, start)[0] for name, start, end in members if end is not None and name != key
    }
