"""Lines to records, paths to values: how the slow reader reads bytes, one line at a time."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

NO_ID = {"", "none", "null", "nil", "nan", "undefined"}
SURROGATE = re.compile("[\ud800-\udfff]")


class Rejected(Exception):  # noqa: N818 -- a finding about one line
    """A line that is no usage record."""


class Cell(str):
    """Text of a table's cell: its digits are plain."""

    __slots__ = ()


def physical(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines end in LF alone, whatever else text holds."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == b"" else lines, 1):
        yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


class Twice(dict[str, Any]):
    """An object that says some keys twice; the first value of each stands."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(reversed(pairs))
        names = [name for name, _ in pairs]
        self.twice = {name for name in names if names.count(name) > 1}


def record(raw: bytes) -> dict[str, Any]:
    """One line of JSON to an object; torn NULs are taken out, and what is blank around it."""
    try:
        text = raw.replace(b"\0", b"").strip().decode("utf-8")
        value = json.loads(text, object_pairs_hook=_object, parse_int=_whole)
    except RecursionError as error:
        raise Rejected("too deep") from error
    except ValueError as error:
        raise Rejected(str(error)) from error
    if not isinstance(value, dict):
        raise Rejected("no object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Twice(pairs)


def check_twice(value: Any, read: frozenset[str], path: str = "") -> None:
    """A key that stands twice and is read is refused: which of them is meant is unknown. A star reads every key."""
    if isinstance(value, list):
        for one in value:
            check_twice(one, read, path)
    elif isinstance(value, dict):
        twice = value.twice if isinstance(value, Twice) else set[str]()
        for name, held in value.items():
            step = name.replace(".", "\\.")
            place = f"{path}.{step}" if path else step
            if name in twice and (place in read or f"{path}.*" in read):
                raise Rejected("a key stands twice")
            if place in read:
                check_twice(held, read, place)


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 40 else math.inf


def table(data: bytes) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Records of a CSV file with the line they start on; None for one that is refused."""
    lines = [(number, line.replace(b"\0", b"")) for number, line in physical(data)]
    texts = [line.decode("utf-8", "surrogateescape") + "\n" for _, line in lines]
    header: list[str] | None = None
    place = 0
    while place < len(texts):
        cells, used = _cells(texts, place)
        number = lines[place][0]
        if cells == []:
            place += used
        elif header is None:
            assert cells is not None
            header, place = [name.strip() for name in cells], place + used
        elif cells is not None and len(cells) == len(header) and not any(map(SURROGATE.search, cells)):
            yield number, {name: Cell(cell) for name, cell in zip(header, cells, strict=True) if cell}
            place += used
        else:
            yield number, None
            # a record over several lines may be a quote that another one's closed: only its first line is lost
            place += 1


def _cells(texts: list[str], place: int) -> tuple[list[str] | None, int]:
    """One record's cells and how many lines it takes."""
    taken = 0

    def feed() -> Iterator[str]:
        nonlocal taken
        for text in texts[place:]:
            taken += 1
            yield text

    try:
        return next(csv.reader(feed(), strict=True)), taken
    except csv.Error:
        return None, taken


# -- values


def get(value: Any, path: str) -> Any:
    """Follow a dotted path; None where a step is absent or no object. A backslash keeps a dot within a name."""
    for step in re.split(r"(?<!\\)\.", path):
        if not isinstance(value, dict):
            return None
        value = value.get(step.replace("\\.", "."))
    return value


def has(value: Any, *paths: str) -> bool:
    return all(get(value, path) is not None for path in paths)


def text(value: Any) -> str | None:
    """A value as the text it is written as."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def named(value: Any) -> str | None:
    """An id, unless it is a word for none."""
    written = text(value)
    return None if written is None or written.strip(" ").lower() in NO_ID else written


def first(value: Any, *paths: str) -> Any:
    return next((held for held in (get(value, path) for path in paths) if held is not None), None)


def opened(value: Any) -> Any:
    """A value that may be an object, or JSON text of one (perhaps in quotes twice)."""
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = json.loads(value, object_pairs_hook=_object, parse_int=_whole)
            except (ValueError, RecursionError):
                return None
    return value if isinstance(value, dict) else None


Tree = dict[str, Any]


def check(value: Any, tree: Tree | list[Tree], path: str = "$") -> None:
    """Where a format has an object or a list of objects, anything else is no record of it."""
    if value is None:
        return
    if isinstance(tree, list):
        if not isinstance(value, list):
            raise Rejected(f"{path}: no list")
        for one in value:
            check(one, tree[0], path + "[]")
    elif not isinstance(value, dict):
        raise Rejected(f"{path}: no object")
    else:
        for name, inner in tree.items():
            check(value.get(name), inner, f"{path}.{name}")


Record = dict[str, Any]
Lines = list[tuple[int, Record]]


def told(value: Record, *who: tuple[str, ...] | Callable[[Record], Any]) -> tuple[str | None, ...]:
    """The first filled value of each of some lists of paths, as text."""
    found: list[str | None] = []
    for one in who:
        held = [one(value)] if callable(one) else [get(value, path) for path in one]
        found.append(next((word for this in held if (word := text(this))), None))
    return tuple(found)


def says(path: str) -> Callable[[Record], str | None]:
    """A word at a path, as words are compared: without case and blanks."""
    return lambda value: word(get(value, path)) or None


def is_one_of(value: Record, path: str, *words: str) -> bool:
    held = get(value, path)
    return isinstance(held, str) and held in words


def word(value: Any) -> str:
    return (text(value) or "").strip(" ").lower()


def any_set(value: Record, *sets: tuple[str, ...]) -> bool:
    return any(has(value, *paths) for paths in sets)


def filled(value: Any) -> Any:
    """A value, unless it is blank (a quote mark without anything in it is, too)."""
    return None if isinstance(value, str) and not value.strip('"') else value
