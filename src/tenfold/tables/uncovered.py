"""What is not priced, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenfold.display import NONE, status_words
from tenfold.tables.grid import Column, Grid, grid

_COLUMNS = (
    Column("model", "model"),
    Column("provider", "provider"),
    Column("service_tier", "tier"),
    Column("region", "region"),
    Column("price_status", "status"),
    Column("requests", "requests", "count"),
    Column("tokens", "known tokens", "count"),
    Column("reason", "why"),
)


def unpriced(rows: Sequence[Mapping[str, Any]], *, name: str, caption: str) -> Grid:
    """Lay the unpriced traffic out as a table, most requests first.

    Args:
        rows: As ``Coverage.unpriced``: ``provider``, ``model``, ``service_tier``, ``region``, ``price_status``,
            ``requests``, ``tokens``, ``reason``.
        name: Id of the table.
        caption: What it is.

    Returns:
        The table.
    """
    columns = [column for column in _COLUMNS if column.name != "region" or any(row["region"] for row in rows)]
    cells = [[_cell(column, row[column.name]) for column in columns] for row in rows]
    return grid(name, caption, columns, cells)


def _cell(column: Column, value: Any) -> str | int:  # noqa: ANN401 -- a value of the coverage's rows
    if column.kind == "count":
        return int(value)
    return status_words(value) if column.name == "price_status" else str(value or NONE)
