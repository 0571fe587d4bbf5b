"""What a source of usage buckets is: sums over a time, from a provider's report, an invoice or a server's counters.

Buckets are never mixed with requests: they say what the same calls came to, and serve to reconcile.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_STEP = Decimal("0.000000000001")
_END = 10**18
_DECODER = json.JSONDecoder(parse_float=Decimal)


class BucketError(ValueError):
    """A row that says nothing usable.

    Args:
        reason: In words.
        path: What it is about.
    """

    def __init__(self, reason: str, path: str | None = None) -> None:
        super().__init__(reason)
        self.path = path


class Found(NamedTuple):
    """One thing found in a file.

    Args:
        line: Line that it begins on.
        row: Column of `usage_buckets` -> value; None for what carries no bucket.
        reason: Why it is rejected; empty for what is only left out.
        path: What the reason is about.
    """

    line: int
    row: Mapping[str, object] | None
    reason: str = ""
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text with its line numbers.

    Args:
        text: The content; of Parquet its columns alone.
        zone: Zone that naive times mean.
        rows: Numbers and cells of a Parquet file's rows.
    """

    text: str
    zone: str | None = None
    rows: Iterable[tuple[int, dict[str, str]]] | None = None
    _breaks: list[int] = field(default_factory=list[int])

    def line(self, position: int) -> int:
        """Give the line of a position.

        Args:
            position: Place in the text.

        Returns:
            Line number from 1.
        """
        if not self._breaks and "\n" in self.text:
            self._breaks.extend(place for place, sign in enumerate(self.text) if sign == "\n")
        return bisect_right(self._breaks, position - 1) + 1


@dataclass(frozen=True, slots=True)
class BucketReader:
    """One source of buckets.

    Args:
        name: As in ``--format``.
        fits: Tells a file by its beginning.
        read: Reads a file.
        repeats: Two equal rows of one file are two charges.
        holds: What its rows say, in words (`tenfold formats`).
        containers: What it comes in.
        why_not: Says what is missing of a file that does not fit; None where the format alone tells.
    """

    name: str
    fits: Callable[[str], bool]
    read: Callable[[Source], Iterator[Found]]
    repeats: bool = False
    holds: str = ""
    containers: tuple[str, ...] = ("JSON",)
    why_not: Callable[[str], str] | None = None


def decoded(text: str) -> dict[str, object]:
    """Read one JSON object, fractions as they are written.

    Args:
        text: The object.

    Returns:
        The object.

    Raises:
        BucketError: It is none.
    """
    try:
        value, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise BucketError(f"not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise BucketError("no record: an object was expected", "$")
    return cast("dict[str, object]", value)


def held(value: object, path: str) -> dict[str, object]:
    """Take an object within another.

    Args:
        value: The value, or None.
        path: What it is called.

    Returns:
        The object; empty where there is none.

    Raises:
        BucketError: It is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BucketError("expected an object", path)
    return cast("dict[str, object]", value)


def count(row: Mapping[str, object], key: str) -> int | None:
    """Read a count.

    Args:
        row: The object.
        key: Key in it.

    Returns:
        The count; None where it is not said.

    Raises:
        BucketError: It is no whole number of at least 0.
    """
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not 0 <= value < _END or value % 1:
        raise BucketError(f"no count: {str(value)[:40]!r}", key)
    return int(value)


def number(value: object, path: str) -> Decimal | None:
    """Read an amount or a quantity exactly.

    Args:
        value: A number or its text.
        path: What it is called.

    Returns:
        The number, to 12 decimals; None where it is not said.

    Raises:
        BucketError: It is no finite number.
    """
    if value is None or value == "":
        return None
    try:
        exact = Decimal(str(value).strip())
        if isinstance(value, bool) or not exact.is_finite():
            raise BucketError(f"no number: {str(value)[:40]!r}", path)
        return exact.quantize(_STEP)
    except InvalidOperation as error:
        raise BucketError(f"no number: {str(value)[:40]!r}", path) from error


def instant(value: object, path: str) -> datetime:
    """Read a time: epoch seconds, or ISO with an offset.

    Args:
        value: The time.
        path: What it is called.

    Returns:
        Naive UTC.

    Raises:
        BucketError: It is no time.
    """
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC).replace(tzinfo=None)
        read = datetime.fromisoformat(str(value))
        return read.astimezone(UTC).replace(tzinfo=None) if read.tzinfo else read
    except (ValueError, OverflowError, OSError) as error:
        raise BucketError(f"no time: {str(value)[:40]!r}", path) from error


def text(value: object) -> str | None:
    """Take a text that may be absent.

    Args:
        value: The value.

    Returns:
        The text; None where there is none.
    """
    return None if value is None or value == "" else str(value)


def grouped_by(rows: list[Mapping[str, object]], names: tuple[str, ...]) -> str:
    """Name the dimensions that a report was grouped by: elsewhere an absent value means all, not none.

    Args:
        rows: The report's rows.
        names: Columns that may be dimensions.

    Returns:
        Names of those that any row says, between commas.
    """
    return ",".join(name for name in names if any(row.get(name) is not None for row in rows))
