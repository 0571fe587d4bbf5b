"""A window on a JSON text of any size: only what is being read lies in memory, and every place has its line."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING

from tenfold.logs.files import TruncatedArchive, chunks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"\s*")
# A value that breaks off ends its text in one of these, at most so long: -Infinity, an escaped surrogate pair.
_TAIL = 16


class Window:
    """Text that is read forward, JSON value by JSON value.

    Args:
        pieces: The text, in pieces.
        file: Where they come from, to be read again; None where all of the text is given.
    """

    def __init__(self, pieces: Iterator[str], file: Path | None = None) -> None:
        self._pieces = pieces
        self._file = file
        self._text = ""
        self._cursor: int = 0  # where reading stands
        self._base = 0  # characters of the whole text before this one
        self._counted = 0  # how far lines are counted
        self._line = 1
        self._at_end = False
        self.damaged: TruncatedArchive | None = None

    @classmethod
    def of_text(cls, text: str) -> Window:
        """Look at a text that is there.

        Args:
            text: The text.

        Returns:
            The window, at its start.
        """
        return cls(iter((text,)))

    @classmethod
    def of_file(cls, file: Path) -> Window:
        """Look at a file's text, unpacked; bytes that are no UTF-8 become lone surrogates.

        Args:
            file: The file.

        Returns:
            The window, at its start. ``damaged`` says, at the end, what was wrong with the archive.
        """
        window = cls(iter(()), file)
        window._pieces = window._decoded(file)
        return window

    def _decoded(self, file: Path) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        start = "\ufeff"
        try:
            for piece in chunks(file):
                text = decoder.decode(piece)
                yield text.removeprefix(start)
                start = "" if text else start
        except TruncatedArchive as broken:
            self.damaged = broken
        yield decoder.decode(b"", final=True)

    @property
    def taken(self) -> int:
        """Characters before the place where reading stands."""
        return self._base + self._cursor

    @property
    def line(self) -> int:
        """Line where reading stands, from 1."""
        self._line += self._text.count("\n", self._counted, self._cursor)
        self._counted = self._cursor
        return self._line

    def peek(self) -> str:
        """Go to the next sign that is no white space.

        Returns:
            The sign; nothing at the end, where reading stays before the white space.
        """
        while True:
            place = skip(self._text, self._cursor)
            if place < len(self._text):
                self._cursor = place
                return self._text[place]
            if not self._more():
                return ""

    def value(self, most: int) -> str | None:
        """Look at the JSON value that begins here.

        Args:
            most: Characters that it may have, about.

        Returns:
            Its text; None where it is longer, is none, or breaks off.
        """
        while True:
            try:
                end = DECODER.raw_decode(self._text, self._cursor)[1]
                # A number may go on behind the window's edge: 1 | .5, 1 | e+5.
                if end + 3 <= len(self._text) or not self._text[end - 1].isalnum():
                    return self._text[self._cursor : end]
            except json.JSONDecodeError as error:
                if not error.msg.startswith("Unterminated string") and error.pos < len(self._text) - _TAIL:
                    return None
                end = -1
            except (RecursionError, ValueError):
                return None
            is_number = end >= 0
            if (not is_number and len(self._text) - self._cursor > most) or not self._more():
                return self._text[self._cursor : end] if is_number else None

    def take(self, count: int) -> None:
        """Go forward.

        Args:
            count: Characters to pass.
        """
        while count > len(self._text) - self._cursor:
            count -= len(self._text) - self._cursor
            self._cursor = len(self._text)
            if not self._more():
                return
        self._cursor += count

    def rest(self, most: int) -> str:
        """Give what a text breaks off with: from here on, at the end the last sign before.

        Args:
            most: Characters of it.

        Returns:
            The text.
        """
        while len(self._text) - self._cursor < most and self._more():
            pass
        self.peek()
        start = self._cursor if self._text[self._cursor :].strip() else max(0, self._cursor - 1)
        return self._text[start : start + most]

    def again(self) -> Window:
        """Look at the text from here on once more, without moving.

        Returns:
            A window of its own, at this place.
        """
        if self._file is None or self._at_end:
            return Window.of_text(self._text[self._cursor :])
        other = Window.of_file(self._file)
        other.take(self.taken)
        return other

    def _more(self) -> bool:
        """Read on, at least as much as is still in use, and let go of what was passed (but for its last sign)."""
        gone = max(0, self._cursor - 1)
        wanted = len(self._text) - self._cursor
        pieces: list[str] = []
        while not self._at_end and (not pieces or wanted > 0):
            piece = next(self._pieces, None)
            self._at_end = piece is None
            pieces += [piece] if piece else []
            wanted -= len(piece or "")
        if not pieces:
            return False
        _ = self.line
        self._text = "".join((self._text[gone:], *pieces))
        self._base += gone
        self._cursor -= gone
        self._counted = self._cursor
        return True


def skip(text: str, position: int) -> int:
    """Pass white space.

    Args:
        text: The text.
        position: Where to begin.

    Returns:
        The next place that is none.
    """
    found = _SPACE.match(text, position)
    return found.end() if found else position


def end_of(text: str, position: int) -> int | None:
    """Find the end of the JSON value that begins at a place.

    Args:
        text: The text.
        position: The place.

    Returns:
        The place behind it; None where it is none, or breaks off.
    """
    try:
        return DECODER.raw_decode(text, position)[1]
    except (ValueError, RecursionError):
        return None
