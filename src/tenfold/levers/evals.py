"""The user's evals file: scores of models on requests or features, read strictly; nothing is dropped or guessed.

A score is held as an integer of 1e-12, and a threshold is compared with it as one, so that 0.9 reaches 0.9 whether it
was written, computed in binary (0.8999999999999999) or averaged. ``scoring.py`` takes the scores of one model from it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import polars as pl

from tenfold.errors import AssumptionError, near
from tenfold.logs.sql import FINISH_WORDS
from tenfold.money import EXACT, MOST_PUSD, PUSD_PER_USD, WIDE

SCORE_UNITS = 10**12
# A score beyond this would not fit into 64 bits as units of 1e-12.
_MOST_SCORE = 1_000_000
_FINISHES = ("stop", "length", "tool_calls", "content_filter")
SCORED = ("model", "score")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)

_Row: TypeAlias = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Evals:
    """An evals file as read.

    Args:
        file: Where it is.
        frame: One row per row of the file: ``line`` (of a Parquet file: row, from 1), ``request_id``, ``feature``,
            ``model`` as written, ``score_e12`` (1e-12, half even), ``cost_pusd``, ``input_tokens``, ``output_tokens``,
            ``finish_reason``, ``latency_us``; NULL where nothing is written.
    """

    file: Path
    frame: pl.DataFrame

    @property
    def models(self) -> tuple[str, ...]:
        """The models as they are written, in order of the alphabet."""
        return tuple(sorted(set(self.frame["model"].drop_nulls())))

    def has(self, column: str) -> bool:
        """Tell whether a column holds anything.

        Args:
            column: A column of ``frame``.

        Returns:
            Whether any row has a value.
        """
        return self.frame[column].null_count() < len(self.frame)


def no_evals() -> Evals:
    """Give evals without a score, for a lever that has no file of them.

    Returns:
        The same columns, no rows.
    """
    return Evals(Path(), pl.DataFrame(schema=_SCHEMA))


def read_evals(file: Path, lever: str, needs: tuple[str, ...] = SCORED) -> Evals:
    """Read an evals file: CSV, Parquet or JSON lines, by the end of its name.

    Columns: ``model`` and ``score``, ``request_id`` or ``feature`` (a row may have both, and then counts for both),
    and where known ``cost_usd``, ``input_tokens``, ``output_tokens``, ``finish_reason``, ``latency_ms``.

    Args:
        file: The file.
        lever: Whose table of the assumptions names it.
        needs: Columns that every row must fill.

    Returns:
        Every row of it. A file that has not changed is read once.

    Raises:
        AssumptionError: The file cannot be read, a column is unknown or missing, or a value cannot be used; names the
            table, the file, the line and the column.
    """
    try:
        return _opened(file, needs)
    except AssumptionError as error:
        raise AssumptionError(f"[{lever}] evals: {error}") from error


def _opened(file: Path, needs: tuple[str, ...]) -> Evals:
    try:
        stat = file.stat()
    except OSError as error:
        beside = [one.name for one in file.parent.iterdir()] if file.parent.is_dir() else []
        raise AssumptionError(
            f"{file}: cannot be read: {error.strerror}.{near(file.name, beside)} "
            "A path is relative to the assumptions file, or to the working directory where there is none"
        ) from error
    return _read(file, needs, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _read(file: Path, needs: tuple[str, ...], *_content: int) -> Evals:  # its time and size say which content is kept
    readers = {".csv": _csv, ".parquet": _parquet, ".jsonl": _jsonl, ".ndjson": _jsonl}
    if file.suffix.lower() not in readers:
        raise AssumptionError(f"{file}: an evals file is {', '.join(readers)}, by the end of its name")
    try:
        rows = [_typed(row, place, line, needs) for line, place, row in readers[file.suffix.lower()](file, needs)]
    except (OSError, UnicodeDecodeError, csv.Error, pl.exceptions.PolarsError) as error:
        raise AssumptionError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from error
    if not rows:
        raise AssumptionError(f"{file}: holds no score; it takes one row per score, with {', '.join(_COLUMNS)}")
    return Evals(file, pl.DataFrame(rows, schema=_SCHEMA, orient="row"))


def _csv(file: Path, needs: tuple[str, ...]) -> Iterator[tuple[int, str, _Row]]:
    with file.open(encoding="utf-8-sig", newline="") as opened:
        lines = csv.reader(opened, strict=True)
        first = next(lines, list[str]())
        header = [name.strip() for name in first]
        _check_columns(header, needs, str(file))
        for cells in lines:
            place = f"{file}, line {lines.line_num}"
            if cells and len(cells) != len(header):
                raise AssumptionError(f"{place}: {len(cells)} values for {len(header)} columns")
            if cells:
                yield lines.line_num, place, dict(zip(header, cells, strict=True))


def _jsonl(file: Path, needs: tuple[str, ...]) -> Iterator[tuple[int, str, _Row]]:
    # numbers stay as they are written, so that each column reads them as it must
    loads = partial(json.loads, parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_once)
    with file.open(encoding="utf-8-sig") as opened:
        for number, line in enumerate(opened, 1):
            if not line.strip():
                continue
            place = f"{file}, line {number}"
            try:
                row: object = loads(line)
            except ValueError as error:
                raise AssumptionError(f"{place}: not valid JSON: {error}") from error
            if not isinstance(row, dict):
                raise AssumptionError(f"{place}: must be one JSON object a line")
            found = cast("dict[str, object]", row)
            _check_columns(list(found), needs, place)
            for name, value in found.items():
                if not isinstance(value, str | None):
                    raise AssumptionError(f"{place}: {name} must be a text or a number, not {json.dumps(value)}")
            yield number, place, cast("_Row", found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _parquet(file: Path, needs: tuple[str, ...]) -> Iterator[tuple[int, str, _Row]]:
    frame = pl.read_parquet(file, glob=False)
    _check_columns(frame.columns, needs, str(file))
    for name, dtype in frame.schema.items():
        if dtype.is_nested() or isinstance(dtype, pl.Boolean | pl.Binary):
            raise AssumptionError(f"{file}: {name} must hold texts or numbers, not {dtype}")
    # a float as text is its shortest spelling, of 32 bits too: 0.9 and not 0.8999999761581421
    for number, row in enumerate(frame.cast(pl.String).iter_rows(named=True), 1):
        yield number, f"{file}, row {number}", row


def _check_columns(names: list[str], needs: tuple[str, ...], place: str) -> None:
    for name in names:
        if name not in _COLUMNS:
            raise AssumptionError(f'{place}: unknown column "{name}".{near(name, _COLUMNS)} It takes {_takes(needs)}')
        if names.count(name) > 1:
            raise AssumptionError(f'{place}: column "{name}" stands twice')
    missing = [name for name in needs if name not in names]
    if "request_id" not in names and "feature" not in names:
        missing.insert(0, "request_id (or feature)")
    if missing:
        raise AssumptionError(f"{place}: there is no column {', no column '.join(missing)}. It takes {_takes(needs)}")


def _takes(needs: tuple[str, ...]) -> str:
    return f"{', '.join(_COLUMNS)} ({', '.join(needs)} and request_id or feature are needed)"


def _typed(row: _Row, place: str, line: int, needs: tuple[str, ...]) -> tuple[object, ...]:
    values: list[object] = [line]
    for name, read in _COLUMNS.items():
        text = (row.get(name) or "").strip()
        if not text and name in needs:
            raise AssumptionError(f"{place}: {name} is empty; every row needs one")
        try:
            values.append(read(text) if text else None)
        except ValueError as error:
            raise AssumptionError(f"{place}: {name} {error}") from None
    if values[1] is None and values[2] is None:
        raise AssumptionError(f"{place}: neither request_id nor feature says what the score is of")
    return tuple(values)


def _number(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        percent = " (write 95% as 0.95, or all scores and min_quality as 0 to 100)" if text.endswith("%") else ""
        truth = " (write 1 or 0)" if text.lower() in ("true", "false") else ""
        raise ValueError(f'must be a number, not "{text}"{percent}{truth}')
    return Decimal(text)


def _amount(text: str) -> Decimal:
    value = _number(text)
    if value < 0:
        raise ValueError(f'must be at least 0, not "{text}"')
    return value


@lru_cache(maxsize=4096)
def _score(text: str) -> int:
    value = _number(text)
    if abs(value) > _MOST_SCORE:
        raise ValueError(f'must lie within {_MOST_SCORE:,} of 0, not "{text}"; write scores in a larger unit')
    return int(WIDE.to_integral_value(WIDE.multiply(value, SCORE_UNITS)))


def _cost(text: str) -> int:
    value = WIDE.multiply(_amount(text), PUSD_PER_USD)
    if value > MOST_PUSD:
        raise ValueError(f'is more than a request can cost: "{text}"; it is in USD')
    if value != EXACT.to_integral_value(value):
        raise ValueError(f'takes at most 12 decimals, not "{text}"')
    return int(value)


def _count(text: str) -> int:
    value = _amount(text)
    if value > MOST_PUSD or value != value.to_integral_value():
        raise ValueError(f'must be a whole number of tokens, not "{text}"')
    return int(value)


def _latency_us(text: str) -> int:
    value = WIDE.multiply(_amount(text), 1000)
    if value > MOST_PUSD:
        raise ValueError(f'is no latency in milliseconds: "{text}"')
    return int(WIDE.to_integral_value(value))


def _finish(text: str) -> str:
    word = FINISH_WORDS.get(text.lower(), text.lower())
    if word not in _FINISHES:
        raise ValueError(f'must be one of {", ".join(_FINISHES)}, not "{text}".{near(word, _FINISHES)}')
    return word


_COLUMNS: dict[str, Callable[[str], object]] = {
    "request_id": str,
    "feature": str,
    "model": str,
    "score": _score,
    "cost_usd": _cost,
    "input_tokens": _count,
    "output_tokens": _count,
    "finish_reason": _finish,
    "latency_ms": _latency_us,
}
_SCHEMA = {
    "line": pl.Int64(),
    "request_id": pl.String(),
    "feature": pl.String(),
    "model": pl.String(),
    "score_e12": pl.Int64(),
    "cost_pusd": pl.Int64(),
    "input_tokens": pl.Int64(),
    "output_tokens": pl.Int64(),
    "finish_reason": pl.String(),
    "latency_us": pl.Int64(),
}
