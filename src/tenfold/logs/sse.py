"""Saved server-sent events: what a client of a streaming API wrote down (``event: ...``, ``data: {...}``, blank lines).

The rules are those of the WHATWG HTML standard, section 9.2 "Server-sent events", but that every ``data:`` line which
is a JSON text of its own is an event of its own: many logs leave out the blank lines between events. Comments, the
other fields and ``data: [DONE]`` carry nothing; a line that is no field at all is given as it stands, to be refused.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tenfold.logs.files import TruncatedArchive

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIELD = re.compile(rb"(?:data|event|id|retry)?:")
# What a saved stream begins with: an event's name, a comment or its data; blank lines may stand before.
_BEGINS = re.compile(r"\s*(?:(?::[^\n]*|(?:event|id|retry):[^\n]*)\n\s*)*data:\s*(?:\[|\{)")
_DONE = b"[DONE]"


def is_stream(text: str) -> bool:
    """Tell saved events from other text.

    Args:
        text: The file's beginning.

    Returns:
        Whether it is one.
    """
    return _BEGINS.match(text.removeprefix("\ufeff")) is not None


def records(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Take the data out of events.

    Args:
        lines: Line number and bytes of each line.

    Yields:
        Line that an event's data begin on, and the data; lines that are no part of an event, as they are.

    Raises:
        TruncatedArchive: After what could be read, as ``lines`` raises it.
    """
    start, held = 0, list[bytes]()
    for number, line in _until_damage(lines):
        if isinstance(line, TruncatedArchive):
            yield from _event(start, held)
            raise line
        raw = line.removesuffix(b"\r")
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        field = _FIELD.match(raw)
        is_data = raw.startswith(b"data:")
        if held and (not is_data or _is_whole(held)):
            yield from _event(start, held)
            held = []
        if is_data:
            start = start if held else number
            held.append(raw[5:].removeprefix(b" "))
        elif field is None and raw.strip():
            yield number, raw
    yield from _event(start, held)


def _until_damage(lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes | TruncatedArchive]]:
    """Give an archive's damage as its last line, so that what was held before it is not lost."""
    try:
        yield from lines
    except TruncatedArchive as damaged:
        yield 0, damaged


def _event(start: int, held: list[bytes]) -> Iterator[tuple[int, bytes]]:
    data = b"\n".join(held)
    if data.strip() not in {b"", _DONE}:
        yield start, data


def _is_whole(held: list[bytes]) -> bool:
    """Tell whether the data so far are a JSON text, so that the next line of data begins another event."""
    data = b"\n".join(held)
    if data.strip() == _DONE:
        return True
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
