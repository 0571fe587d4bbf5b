"""Parquet as rows of text, so that one reader serves a report's CSV and its Parquet alike."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, cast

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def header(file: Path) -> str:
    """Write a Parquet file's columns as a CSV file's first line.

    Args:
        file: The file.

    Returns:
        The names, between commas.
    """
    return ",".join(pl.read_parquet_schema(file))


def rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Give a Parquet file's rows as a CSV file would hold them: maps and objects as JSON, nothing as empty text.

    Args:
        file: The file.

    Yields:
        Number of the row, from 1, and column -> text.
    """
    frame = pl.scan_parquet(file, glob=False).collect()
    for number, row in enumerate(frame.iter_rows(named=True), 1):
        yield number, {name.strip(): _text(value) for name, value in row.items()}


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (list, dict)):
        return json.dumps(_object(cast("list[Mapping[str, object]] | dict[str, object]", value)), default=str)
    return str(value).strip()


def _object(value: list[Mapping[str, object]] | dict[str, object]) -> object:
    """Read a map, which Polars gives as its entries; what an object leaves out is not said."""
    if isinstance(value, dict):
        return {key: held for key, held in value.items() if held is not None}
    return {str(entry["key"]): entry["value"] for entry in value if {"key", "value"} <= set(entry)}
