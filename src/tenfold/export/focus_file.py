"""A FOCUS file as texts, row by row: CSV, gzipped CSV or Parquet, of any size."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import cast

from tenfold.errors import LogFormatError

_BATCH = 50_000


def read(file: Path) -> tuple[list[str], Iterator[list[str]]]:
    """Open a FOCUS file.

    Args:
        file: CSV (also gzipped) or Parquet.

    Returns:
        Its columns, and its rows as texts; a null is empty.

    Raises:
        LogFormatError: It is no table, not in UTF-8, or has no column BilledCost.
    """
    header, rows = _parquet(file) if is_parquet(file) else _csv(file)
    if "BilledCost" not in header:
        raise LogFormatError(f"{file}: no FOCUS file: it has no column BilledCost")
    return header, rows


def is_parquet(file: Path) -> bool:
    """Tell Parquet by its first bytes.

    Args:
        file: The file.

    Returns:
        Whether it is one.
    """
    with file.open("rb") as start:
        return start.read(4) == b"PAR1"


def _csv(file: Path) -> tuple[list[str], Iterator[list[str]]]:
    lines = _lines(file)
    none: list[str] = []
    return [name.strip() for name in next(lines, none)], (line for line in lines if line)


def _lines(file: Path) -> Iterator[list[str]]:
    with file.open("rb") as start:
        opened = gzip.open if start.read(2) == b"\x1f\x8b" else open
    with opened(file, "rb") as raw, io.TextIOWrapper(cast("io.BufferedReader", raw), "utf-8-sig", newline="") as text:
        try:
            yield from csv.reader(text)
        except (UnicodeDecodeError, csv.Error, EOFError, OSError) as error:
            raise LogFormatError(f"{file}: not a CSV file in UTF-8: {error}") from error


def _parquet(file: Path) -> tuple[list[str], Iterator[list[str]]]:
    import polars as pl

    try:
        return list(pl.read_parquet_schema(file)), _batches(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise LogFormatError(f"{file}: not a Parquet file: {error}") from error


def _batches(file: Path) -> Iterator[list[str]]:
    import polars as pl

    start = 0
    while len(part := pl.scan_parquet(file, glob=False).slice(start, _BATCH).collect()):
        yield from ([_as_text(value) for value in row] for row in part.iter_rows())
        start += len(part)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        utc = value.astimezone(UTC) if value.tzinfo else value
        return utc.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)
