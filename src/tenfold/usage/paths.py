"""Values of a usage object by their paths: counts, words, sums of a list's entries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import cast

from tenfold.errors import UsageError
from tenfold.usage.shape import LISTED, steps

MAX_COUNT = 10**9


def most(name: str) -> int:
    """Give the bound of a count, above which it is taken for a mistake.

    Args:
        name: Column or key.

    Returns:
        The first value that is too large; a million times more for tokens by time.
    """
    return MAX_COUNT * 10**6 if name == "cache_storage_token_s" else MAX_COUNT


def shown(value: object) -> str:
    """Show a value in an error, cut short.

    Args:
        value: The value.

    Returns:
        Its text.
    """
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


@cache
def _parsed(path: str) -> tuple[re.Match[str] | None, tuple[str, ...], str]:
    *above, leaf = steps(path)
    return LISTED.fullmatch(path), tuple(above), leaf


def get(usage: Mapping[str, object], path: str) -> object:
    """Follow a path; a list path gives the sum of its entries of that kind.

    Args:
        usage: The object.
        path: The path.

    Returns:
        What stands there; None where a step is absent.

    Raises:
        UsageError: It cannot be read; names the key.
    """
    listed, above, leaf = _parsed(path)
    if listed is not None:
        entries = usage.get(listed["list"])
        if entries is None:
            return None
        found = [
            count(_spelt(entry, listed["leaf"]), path) or 0
            for entry in objects(entries, listed["list"])
            if _kind_of(entry, listed["key"], path) == listed["value"].lower()
        ]
        return sum(found)
    node: Mapping[str, object] = usage
    for step in above:
        held = node.get(step)
        if held is None:
            return None
        if not isinstance(held, Mapping):
            raise UsageError(f"usage key {path}: expected an object at {step}, found {held!r}")
        node = cast("Mapping[str, object]", held)
    return node.get(leaf)


def _spelt(entry: Mapping[str, object], name: str) -> object:
    """Look a key up in camelCase or snake_case."""
    plain = name.replace("_", "").lower()
    return next((value for key, value in entry.items() if str(key).replace("_", "").lower() == plain), None)


def _kind_of(entry: Mapping[str, object], key: str, path: str) -> str:
    """Read what an entry counts; an enum of an SDK is its text."""
    value = entry.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"usage key {path}: {key} {value!r} is no text, so it does not say what is counted")
    return "" if value is None else str.lower(value)


def objects(entries: object, key: str) -> Iterator[Mapping[str, object]]:
    """Go through a list of objects.

    Args:
        entries: The list.
        key: Its name, for the error.

    Yields:
        Each object.

    Raises:
        UsageError: It cannot be read; names the key.
    """
    if not isinstance(entries, (list, tuple)):
        raise UsageError(f"usage key {key}: expected a list, found {entries!r}")
    for entry in cast("list[object]", entries):
        if not isinstance(entry, Mapping):
            raise UsageError(f"usage key {key}: expected a list of objects, found {entry!r} in it")
        yield cast("Mapping[str, object]", entry)


def has(usage: Mapping[str, object], path: str) -> bool:
    """Tell whether a path is there, with any value.

    Args:
        usage: The object.
        path: The path.

    Returns:
        Whether it is.
    """
    _, above, leaf = _parsed(path)
    node: Mapping[str, object] = usage
    for step in above:
        held = node.get(step)
        if not isinstance(held, Mapping):
            return False
        node = cast("Mapping[str, object]", held)
    return leaf in node


def count(value: object, key: str) -> int | None:
    """Read a count.

    Args:
        value: What stands there.
        key: Its path, for the error.

    Returns:
        The count; None where nothing is said.

    Raises:
        UsageError: It cannot be read; names the key.
    """
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"usage key {plain(key)}: {value!r} is not a count (a whole number of at least 0)")
    limit = most(key)
    if not 0 <= value < limit:
        raise UsageError(f"usage key {plain(key)}: {value} is not a possible count (0 to {limit - 1:,})")
    return value


def plain(path: str) -> str:
    """Write a path as people do.

    Args:
        path: The path.

    Returns:
        Without escapes.
    """
    return path.replace("\\.", ".")


def first(usage: Mapping[str, object], paths: tuple[str, ...]) -> int | None:
    """Read the first count that is there.

    Args:
        usage: The object.
        paths: Where it may be.

    Returns:
        The count; None where there is none.

    Raises:
        UsageError: It cannot be read; names the key.
    """
    for path in paths:
        value = count(get(usage, path), path)
        if value is not None:
            return value
    return None


def word(usage: Mapping[str, object], paths: tuple[str, ...]) -> str | None:
    """Read the first word that is there.

    Args:
        usage: The object.
        paths: Where it may be.

    Returns:
        The word in lower case; None where there is none.

    Raises:
        UsageError: It cannot be read; names the key.
    """
    for path in paths:
        value = get(usage, path)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"usage key {path}: {shown(value)} is no text, so it does not say which price applies")
        if value:
            return value.lower()
    return None
