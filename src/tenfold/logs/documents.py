"""JSON documents that run over lines: a list of records, an export with its list in one key, or records one by one.

A document is read through a window on its text (`window.py`), so that its size bounds nothing. No streaming parser of
others is used here: none gives the lines of records, their text as it stands (for the checks that follow), and what is
whole in a document that breaks off.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, cast

from tenfold.logs import files, sse
from tenfold.logs.window import DECODER, Window, end_of, skip

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    # Text of each record, given with the window at its start; in the end whether the text goes on behind them.
    _Records = Generator[str, None, bool]

# Keys of an export's object whose list holds the records, and what may stand beside them where the name says little.
_LISTS = ("observations", "data", "records", "results")
_PAGED = frozenset({"meta", "object", "has_more", "first_id", "last_id", "next_page", "page", "count", "total"})
# Texts of a whole trace, which no reader needs with each of its observations.
_LARGE = frozenset({"input", "output", "scores", *_LISTS})
# Most characters: of what is read whole before it is known whether it is a list's; of one record; of a key; of what is
# shown of a text that breaks off.
_SMALL, _RECORD, _KEY, _REST = 1 << 20, 1 << 26, 1 << 16, 1 << 20


class _Outline(NamedTuple):
    """What an object says beside its records.

    Args:
        place: Characters from the object's start to its list of records; None where it has none.
        beside: Its other members, as JSON text to stand in each record; empty for none.
    """

    place: int | None
    beside: str


def is_document(text: str) -> bool:
    """Tell a document over lines (or one line that lists records) from JSON lines.

    Args:
        text: The file's beginning.

    Returns:
        Whether its records have to be taken out of a document.
    """
    start = text.removeprefix("\ufeff").lstrip()
    if start[:1] not in {"{", "["}:
        return sse.is_stream(text)
    first, _, rest = start.partition("\n")
    try:
        value: object = json.loads(first)
    except (ValueError, RecursionError):
        whole = any(_is_object(line) for line in rest.split("\n")) if start[0] == "{" else False
        return not whole and next(heads(start), None) is not None
    listed = isinstance(value, list) or (isinstance(value, dict) and _listed(set(cast("dict[str, object]", value))))
    return listed and not rest.strip() and next(heads(start), None) is not None


def _is_object(line: str) -> bool:
    """Tell a line that is an object of its own: not indented, as within a document."""
    if not line.startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def records(file: Path) -> Iterator[tuple[int, bytes]]:
    """Take the records out of a document, or out of saved server-sent events.

    Args:
        file: The file.

    Yields:
        Line that the record begins on, and its JSON text; what the document breaks off with comes last, as it is.

    Raises:
        TruncatedArchive: After the last piece that could be read.
    """
    if sse.is_stream(files.head(file).decode("utf-8", "replace")):
        yield from sse.records(files.lines(file))
        return
    window = Window.of_file(file)
    for record in _found(window, whole=True):
        yield window.line, record.encode("utf-8", "surrogateescape")
    if window.damaged is not None:
        raise window.damaged


def heads(text: str) -> Iterator[str]:
    """Give the records in a document's beginning, as far as they are whole.

    Args:
        text: The file's beginning.

    Yields:
        JSON text of each.
    """
    if sse.is_stream(text):
        lines = enumerate(text.encode("utf-8", "replace").split(b"\n"), 1)
        yield from (record.decode("utf-8", "replace") for _, record in sse.records(lines))
        return
    yield from _found(Window.of_text(text.removeprefix("\ufeff")))


def _found(window: Window, *, whole: bool = False) -> Iterator[str]:
    """Find the records, with the window at each one's start; with ``whole`` also the rest of a text that breaks off."""
    while window.peek():
        goes_on = yield from _elements(window, "") if window.peek() == "[" else _value(window)
        if not goes_on:
            if whole:
                yield window.rest(_REST)
            return


def _value(window: Window) -> _Records:
    """Give one value: the records of an export, or itself."""
    is_object, text = window.peek() == "{", window.value(_SMALL)
    outline = _Outline(None, "")
    if is_object and (text is None or any(f'"{name}"' in text for name in _LISTS)):
        outline = _outline(window.again() if text is None else Window.of_text(text))
    if outline.place is not None:
        window.take(outline.place)
        goes_on = yield from _elements(window, outline.beside)
        return goes_on and _left(window)
    text = window.value(_RECORD) if text is None else text
    if text is None:
        return False
    yield text
    window.take(len(text))
    return True


def _outline(window: Window) -> _Outline:
    """Look through an object for its list of records; what is too large to stand in each of them is passed."""
    start, place, keys = window.taken, None, set[str]()
    found: dict[str, object] = {}
    window.take(1)
    while window.peek() == '"':
        key = _key(window)
        if key is None:
            break
        if window.peek():
            keys.add(key)
        if key in _LISTS and window.peek() == "[" and place is None:
            place = window.taken - start
        value = _passed(window)
        if value is None:
            break
        if value and key not in _LARGE:
            found[key] = DECODER.decode(value)
        if window.peek() == ",":
            window.take(1)
    return _Outline(place, _beside(found)) if place is not None and _listed(keys) else _Outline(None, "")


def _left(window: Window) -> bool:
    """Pass what stands behind an object's list, to the object's end."""
    while window.peek() == ",":
        window.take(1)
        if _key(window) is None or _passed(window) is None:
            return False
    if window.peek() != "}":
        return False
    window.take(1)
    return True


def _key(window: Window) -> str | None:
    """Pass a key and its colon."""
    key = window.value(_KEY) if window.peek() == '"' else None
    if key is None:
        return None
    window.take(len(key))
    if window.peek() != ":":
        return None
    window.take(1)
    return str(DECODER.decode(key))


def _passed(window: Window) -> str | None:
    """Pass a value and give its text; a long list is passed entry by entry, and its text is nothing."""
    is_list, value = window.peek() == "[", window.value(_SMALL)
    if value is None and is_list:
        entries = _elements(window, "")
        while True:
            try:
                next(entries)
            except StopIteration as stop:
                return "" if stop.value else None
    value = window.value(_RECORD) if value is None else value
    window.take(len(value or ""))
    return value


def _listed(keys: set[str]) -> bool:
    return "observations" in keys or any(key in keys and keys - {key} <= _PAGED for key in _LISTS)


def _beside(found: dict[str, object]) -> str:
    """Write what an export says of all its observations, to stand in each of them."""
    trace = found.get("trace", found)
    if not isinstance(trace, dict) or not trace:
        return ""
    kept = {key: value for key, value in cast("dict[str, object]", trace).items() if key not in _LARGE}
    return f'"trace": {json.dumps(kept)}, '


def _elements(window: Window, beside: str) -> _Records:
    window.take(1)
    while window.peek() not in {"", "]"}:
        record = window.value(_RECORD)
        if record is None:
            return False
        yield "{" + beside + record[1:] if beside and record.startswith("{") and len(record) > 2 else record
        window.take(len(record))
        if window.peek() == ",":
            window.take(1)
        elif window.peek() != "]":
            return False
    if window.peek() != "]":
        return False
    window.take(1)
    return True


def values(text: str) -> Iterator[tuple[int, str, bool]]:
    """Give the top values of a text, one document or one a line.

    Args:
        text: The text.

    Yields:
        Place, text and whether it is whole, of each.
    """
    position = skip(text, 0)
    while position < len(text):
        end = end_of(text, position)
        if end is None:
            # What follows a broken line may be whole again.
            line_end = text.find("\n{", position)
            yield position, text[position : len(text) if line_end < 0 else line_end], False
            position = len(text) if line_end < 0 else line_end + 1
            continue
        yield position, text[position:end], True
        position = skip(text, end)


def entries(text: str, key: str) -> Iterator[tuple[int, str, bool]]:
    """Give the entries of a list in an object.

    Args:
        text: The object's text; it may break off.
        key: Key of the list.

    Yields:
        Place, text and whether it is whole, of each.
    """
    window = Window.of_text(text)
    if window.peek() != "{":
        return
    window.take(1)
    while window.peek() == '"':
        name = _key(window)
        if name == key and window.peek() == "[":
            whole = yield from _placed(window)
            if not whole and window.peek():
                yield window.taken, window.rest(len(text)), False
            return
        if name is None or _passed(window) is None:
            return
        if window.peek() == ",":
            window.take(1)


def _placed(window: Window) -> Generator[tuple[int, str, bool], None, bool]:
    found = _elements(window, "")
    while True:
        try:
            entry = next(found)
        except StopIteration as stop:
            return bool(stop.value)
        yield window.taken, entry, True


def beside(text: str, key: str) -> dict[str, object]:
    """Give what an object says beside one of its lists.

    Args:
        text: The object's text.
        key: Key of the list, which is left out.

    Returns:
        The other members that are whole.
    """
    window, found = Window.of_text(text), dict[str, object]()
    window.peek()
    window.take(1)
    while window.peek() == '"':
        name = _key(window)
        value = None if name is None else _passed(window)
        if name is None or value is None:
            break
        if name != key:
            found[name] = DECODER.decode(value)
        if window.peek() == ",":
            window.take(1)
    return found
