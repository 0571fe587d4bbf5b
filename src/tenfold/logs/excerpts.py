"""What a refused line may show: its structure, keys that the reader knows and numbers, never its text."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING

from tenfold.logs.files import TruncatedArchive

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from tenfold.logs.base import Tree

EXCERPT = 80  # characters
_TOKEN = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)(?P<end>"?)(?P<colon>\s*:)?|[^"]+')
_SAFE = re.compile(r"true|false|null|NaN|[-+]?[0-9][0-9.,eE+-]*|[\[\]{}:,\s]+")


def excerpt(raw: bytes, known: frozenset[str], *, keep_text: bool) -> str:
    """Show the start of a refused line: its structure, keys that the reader knows and numbers, never its text.

    Args:
        raw: The line.
        known: Keys that may be shown.
        keep_text: Show it as it is.

    Returns:
        At most 80 characters.
    """
    text = raw[: 8 * EXCERPT].decode("utf-8", "replace")
    if keep_text:
        return text[:EXCERPT]
    shown = io.StringIO()
    for found in _TOKEN.finditer(text):
        if found["text"] is None:
            position = 0
            for safe in _SAFE.finditer(found[0]):
                shown.write("…" if safe.start() > position else "")
                shown.write(safe[0])
                position = safe.end()
            shown.write("…" if position < len(found[0]) else "")
        elif found["text"] in known:
            shown.write(found[0])
        else:
            shown.write(f'"…{found["end"]}{found["colon"] or ""}')
    return shown.getvalue()[:EXCERPT]


def names(tree: Tree) -> frozenset[str]:
    """List the keys that a reader knows, which may be shown.

    Args:
        tree: The reader's raw values.

    Returns:
        The keys, of objects within, too.
    """
    found: set[str] = set()
    for name, node in tree.items():
        found.add(name)
        if isinstance(node, dict):
            found |= names(node)
        elif isinstance(node, list):
            found |= names(node[0])
    return frozenset(found)


def excerpts(
    lines: Iterable[tuple[int, bytes]],
    numbers: Collection[int],
    tree: Tree,
    other_format: Callable[[bytes], str],
    *,
    keep_text: bool,
) -> dict[int, tuple[str, str]]:
    """Show the starts of given lines, and say which other format they are in.

    Args:
        lines: Number and bytes of each line.
        numbers: Those to show.
        tree: The reader's raw values, whose names may be shown.
        other_format: Tells a line's own format.
        keep_text: Show the lines as they are.

    Returns:
        Line number -> excerpt, and the name of the format or nothing.
    """
    known, found = names(tree), dict[int, tuple[str, str]]()
    with contextlib.suppress(TruncatedArchive):
        for number, line in lines:
            if number in numbers:
                found[number] = (excerpt(line, known, keep_text=keep_text), other_format(line))
    return found
