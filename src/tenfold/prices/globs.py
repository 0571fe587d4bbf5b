"""Anchored patterns of model ids: ``*`` stands for any run of characters, everything else for itself."""

from __future__ import annotations

import re
from functools import cache


def matches(pattern: str, text: str) -> bool:
    """Tell whether a text is of a pattern's shape, from its first to its last character.

    Args:
        pattern: Text with ``*``.
        text: The text.

    Returns:
        Whether it is.
    """
    return _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)


def could_both_match(left: str, right: str) -> bool:
    """Tell whether some text is of both shapes.

    Args:
        left: One pattern.
        right: The other.

    Returns:
        Whether there is one.
    """
    # Reachable pairs of positions; a `*` may take nothing, or whatever the other side does next.
    todo, seen = [(0, 0)], {(0, 0)}
    while todo:
        i, j = todo.pop()
        if i == len(left) and j == len(right):
            return True
        for step in _steps(left, right, i, j):
            if step not in seen:
                seen.add(step)
                todo.append(step)
    return False


def _steps(left: str, right: str, i: int, j: int) -> list[tuple[int, int]]:
    a, b = left[i : i + 1], right[j : j + 1]
    found: list[tuple[int, int]] = []
    if a == "*":
        found += [(i + 1, j), *([(i, j + 1)] if b else [])]
    if b == "*":
        found += [(i, j + 1), *([(i + 1, j)] if a else [])]
    if a and a == b:
        found.append((i + 1, j + 1))
    return found
