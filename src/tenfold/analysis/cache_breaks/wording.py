"""Why a prompt no longer begins as the one before it: named from the two texts, where texts were kept."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import cast

from tenfold.logs.text import segments
from tenfold.logs.text.segments import Segment

# What changes by itself, in the order it is looked for: a match that covers the first differing sign on both sides.
VOLATILE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "timestamp",
        re.compile(
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| ?[+-]\d\d:?\d\d)?)?"
            r"|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}"
            r"|\b\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?"
            r"|\b(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?"
            r"(?:\d{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? \d{1,4}(?:,? \d{4})?"
            r"|\b1[5-9]\d{8}(?:\d{3}|\d{6})?\b"
        ),
    ),
    ("uuid", re.compile(r"(?i)\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b")),
    (
        "id",
        re.compile(r"\b(?=[\w-]*\d)[A-Za-z][A-Za-z0-9]*[_-][A-Za-z0-9_-]{4,}\b|\b(?=[0-9A-Fa-f]*\d)[0-9A-Fa-f]{8,}\b"),
    ),
    ("counter", re.compile(r"\d+(?:[.,]\d+)*")),
)
# How far before the difference a volatile text may begin.
_BACK = 80
_SYSTEM = frozenset({"system", "developer"})
WORDS = {
    "timestamp": "a timestamp or date",
    "uuid": "a UUID",
    "id": "an id",
    "counter": "a number that changes",
    "tools_reordered": "the same tools in another order",
    "tools_changed": "other tools",
    "tools_moved": "tools are there in one of two turns",
    "system_changed": "the system prompt",
    "history_rewritten": "earlier turns were rewritten or left out",
    "last_message_replaced": "the latest message was replaced, not added to",
    "text_changed": "the text",
    "same": "nothing: the text before is the beginning of this one",
    "unreadable": "a prompt that cannot be taken apart",
}


def cause(before: str, after: str) -> tuple[str, int]:
    """Name the first difference of two prompts.

    Args:
        before: The prompt before, as logged.
        after: The one that no longer begins with it.

    Returns:
        A key of ``WORDS``, and the number of the first segment (0 first) that differs.
    """
    old, new = (segments.prompt(segments.read(text)) for text in (before, after))
    if old is None or new is None:
        return "unreadable", 0
    for number, earlier in enumerate(old.segments):
        later = new.segments[number] if number < len(new.segments) else None
        if later == earlier:
            continue
        is_last = number == len(old.segments) - 1
        if later is not None and is_last and later.role == earlier.role and _extends(earlier, later):
            return "same", number
        return _named(earlier, later, is_last=is_last), number
    return "same", len(old.segments)


def _extends(earlier: Segment, later: Segment) -> bool:
    return "\0".join(later.pieces).startswith("\0".join(earlier.pieces))


def _named(earlier: Segment, later: Segment | None, *, is_last: bool) -> str:
    if later is None:
        return "history_rewritten"
    if "tools" in (roles := {earlier.role, later.role}):
        return _tools_named(earlier, later)
    name = _volatile(earlier, later)
    # A number in a message that was written anew says nothing of why it changed.
    if name is not None and (name != "counter" or roles <= {None, *_SYSTEM}):
        return name
    if roles & _SYSTEM:
        return "system_changed"
    if roles == {None}:
        return "text_changed"
    return "last_message_replaced" if is_last else "history_rewritten"


def _tools_named(earlier: Segment, later: Segment) -> str:
    if earlier.role != later.role:
        return "tools_moved"
    if _tools(earlier) == _tools(later):
        return "tools_reordered"
    return _volatile(earlier, later) or "tools_changed"


def _volatile(earlier: Segment, later: Segment) -> str | None:
    """Find what changes by itself at the first difference of two segments of the same role."""
    if earlier.role != later.role:
        return None
    before, after = "\n".join(earlier.pieces), "\n".join(later.pieces)
    at = _common(before, after)
    fitting = (name for name, pattern in VOLATILE if _covers(pattern, before, at) and _covers(pattern, after, at))
    return next(fitting, None)


def _common(before: str, after: str) -> int:
    """Count the leading signs that are the same, by halves: prompts are long."""
    same, most = 0, min(len(before), len(after))
    while same < most:
        middle = (same + most + 1) // 2
        if before[same:middle] == after[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same


def _covers(pattern: re.Pattern[str], text: str, at: int) -> bool:
    near = text[: at + 2 * _BACK]
    return any(found.start() <= at < found.end() for found in pattern.finditer(near, max(at - _BACK, 0)))


def _tools(segment: Segment) -> Counter[str]:
    """Give the tools as a set that counts: each as canonical JSON."""
    tools = json.loads(segment.pieces[0])
    listed = cast("list[object]", tools) if isinstance(tools, list) else [tools]
    return Counter(json.dumps(tool, sort_keys=True) for tool in listed)
