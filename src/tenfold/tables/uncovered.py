"""What is not priced, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tenfold.display import NONE, status_words
from tenfold.tables.html import table


def unpriced(rows: Sequence[Mapping[str, Any]], *, name: str, caption: str, is_styled: bool = True) -> str:
    """Write the unpriced traffic as a table, most requests first.

    Args:
        rows: As ``Coverage.unpriced``: ``provider``, ``model``, ``service_tier``, ``region``, ``price_status``,
            ``requests``, ``tokens``, ``reason``.
        name: Id of the table.
        caption: What it is.
        is_styled: Bring great_tables' own style along.

    Returns:
        HTML.

    Raises:
        MissingExtraError: great_tables is not installed.
    """
    words = ("model", "provider", "service_tier", "region", "price_status", "reason")
    columns = (*words[:5], "requests", "tokens", "reason")
    cells = [
        {column: str(row[column] or NONE) if column in words else f"{row[column]:,}" for column in columns}
        | {"price_status": status_words(row["price_status"])}
        for row in rows
    ]
    labels = {"service_tier": "tier", "price_status": "status", "tokens": "known tokens", "reason": "why"}
    frame = pl.DataFrame(cells, schema=dict.fromkeys(columns, pl.String))
    if not any(row["region"] for row in rows):
        frame = frame.drop("region")
    return table(frame, name=name, caption=caption, labels=labels, left=words, is_styled=is_styled)
