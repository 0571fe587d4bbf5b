"""Records of a format to requests: what is refused, what is beside them, what shares an id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from slow_reader.counts import COLUMNS, Judged
from slow_reader.records import (
    Cell,
    Lines,
    Record,
    Rejected,
    Tree,
    check,
    check_twice,
    get,
    named,
    physical,
    record,
    table,
    told,
)

# Seconds of the years 2015 to 2099; other times are mistakes.
DATED = range(1_420_070_400, 4_102_444_800)


@dataclass
class Row:
    """One request: the lines it was made of, its counts and what shares them."""

    line: int
    judged: Judged
    key: str | None = None
    who: tuple[str | None, ...] = ()
    at: float | None = None  # in seconds, where rows of one id may be far apart
    lines: set[int] = field(default_factory=set)
    extra: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.lines.add(self.line)

    @property
    def counts(self) -> tuple[int | None, ...]:
        return tuple(self.judged.counts[name] for name in COLUMNS)


@dataclass
class Result:
    """What became of each line of a file."""

    lines: int = 0
    rows: list[Row] = field(default_factory=list)
    rejected: dict[int, str] = field(default_factory=dict)
    ignored: int = 0
    folded: int = 0


def merged(rows: list[Row], result: Result) -> None:
    """Rows of one id: the first is the anchor, what grows or falls from it is the same request, the rest conflicts."""
    by_key: dict[str, list[Row]] = {}
    for row in rows:
        if row.key is None:
            result.rows.append(row)
        else:
            by_key.setdefault(row.key, []).append(row)
    for group in by_key.values():
        anchor, related = group[0], [group[0]]
        for row in group[1:]:
            same = all(a is None or b is None or a == b for a, b in zip(anchor.who, row.who, strict=True))
            near = row.at is None or anchor.at is None or abs(row.at - anchor.at) <= 86_400
            if same and near and (_grows(anchor.counts, row.counts) or _grows(row.counts, anchor.counts)):
                related.append(row)
                result.folded += 1
            else:
                result.rejected[row.line] = "conflict"
        best = max(related, key=_size)
        best.lines |= {line for row in related if row.counts == best.counts for line in row.lines}
        result.rows.append(best)


def _size(row: Row) -> tuple[int, int, int]:
    known = sum(value is not None for value in row.counts)
    size = (row.judged.counts["input_tokens"] or 0) + (row.judged.counts["output_tokens"] or 0)
    return known, size, sum(one is not None for one in row.who)


def _grows(old: tuple[int | None, ...], new: tuple[int | None, ...]) -> bool:
    return all(a is None or (b is not None and b >= a) for a, b in zip(old, new, strict=True))


@dataclass(frozen=True)
class Format:
    """One format: which objects it has, what a record is, and how records become rows.

    ``rows`` takes (line, record) pairs and the result, in which it counts what it ignores and folds, and gives rows.
    """

    name: str
    rows: Callable[[list[tuple[int, dict[str, Any]]], Result], list[Row]]
    is_record: Callable[[dict[str, Any]], bool]
    tree: Tree = field(default_factory=dict)
    beside: Callable[[dict[str, Any]], bool] = lambda _: False
    cells: tuple[str, ...] = ()  # of a table: a record has one of them filled
    is_row: Callable[[dict[str, Any]], bool] = lambda _: False


def read(
    form: Format,
    data: bytes | list[dict[str, Any]],
    *,
    is_table: bool = False,
    keys: frozenset[str] = frozenset(),
) -> Result:
    """Say what a file of a format holds, line by line; a table may also be given as its rows.

    ``keys`` are the dotted keys that may not stand twice in their object.
    """
    result = Result()
    kept: list[tuple[int, dict[str, Any]]] = []
    for number, raw, cells in _records(data, is_table=is_table):
        result.lines += 1
        try:
            value = _usage_record(form, raw, cells, keys, is_table=is_table)
        except Rejected as reason:
            result.rejected[number] = str(reason)
            continue
        if value is None:
            result.ignored += 1
        else:
            kept.append((number, value))
    merged(form.rows(kept, result), result)
    return result


def _usage_record(
    form: Format, raw: bytes, cells: Record | None, keys: frozenset[str], *, is_table: bool
) -> Record | None:
    """Give the usage record of a line; None for one that lies beside the format's records."""
    if is_table and cells is None:
        raise Rejected("a broken row")
    value = record(raw) if cells is None else cells
    check(value, form.tree)
    check_twice(value, keys)
    if form.beside(value):
        return None
    is_ours = has_any(value, form.cells) or form.is_row(value) if is_table else form.is_record(value)
    if not is_ours:
        raise Rejected("no record of the format")
    return value


def has_any(value: dict[str, Any], cells: tuple[str, ...]) -> bool:
    return any(value.get(name) is not None for name in cells)


def _records(
    data: bytes | list[dict[str, Any]], *, is_table: bool
) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
    if isinstance(data, list):
        for number, row in enumerate(data, 1):
            yield number, b"", {name: Cell(cell) for name, cell in row.items() if cell}
        return
    if is_table:
        for number, cells in table(data):
            yield number, b"", cells
        return
    for number, line in physical(data):
        raw = line.removesuffix(b"\r")
        if raw.strip():
            yield number, raw, None


def one_each(
    judge: Callable[[Record], Judged],
    key: Callable[[Record], str | None],
    *who: tuple[str, ...] | Callable[[Record], Any],
) -> Callable[[Lines, Result], list[Row]]:
    """Every record is a row; ``who`` says which model and provider two of one id must share."""

    def rows(kept: Lines, _: Result) -> list[Row]:
        return [Row(line, judge(value), key(value), told(value, *(who or (("model",),)))) for line, value in kept]

    return rows


def by(path: str) -> Callable[[Record], str | None]:
    return lambda value: named(get(value, path))
