"""The ranked levers, from the document of ``tenfold levers --json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from tenfold.display import dollars
from tenfold.tables.html import table


def levers(
    rows: Sequence[Mapping[str, Any]],
    marginals: Mapping[str, str],
    *,
    name: str,
    caption: str,
    note: str = "",
    is_styled: bool = True,
) -> str:
    """Write levers as a table, in the order given.

    Args:
        rows: Levers of a plan: ``name``, ``number``, ``label``, ``addressed_usd``, ``saving_usd{low, mid, high}``,
            ``status``, ``effort_days``, ``risk``, ``first_action``; money as decimal strings or None.
        marginals: Lever to what it adds to the plan, in USD, for those in it.
        name: Id of the table.
        caption: What it is.
        note: A line under the table.
        is_styled: Bring great_tables' own style along.

    Returns:
        HTML.

    Raises:
        MissingExtraError: great_tables is not installed.
    """
    # cents matter only on a small bill
    decimals = 0 if any(abs(Decimal(row["addressed_usd"] or 0)) >= 1_000 for row in rows) else 2
    cells = [
        {
            "lever": str(row["name"]),
            "label": _kind(row),
            "touches": dollars(row["addressed_usd"], decimals),
            "saves": dollars(row["saving_usd"]["mid"], decimals) if _has_figure(row) else "–",
            "interval": _interval(row["saving_usd"], decimals) if _has_figure(row) else "–",
            "adds": dollars(marginals[row["name"]], decimals) if row["name"] in marginals else "not in plan",
            "effort": "–" if row["effort_days"] is None else f"{row['effort_days']:g} d",
            "risk": str(row["risk"] or "–"),
            "first": str(row["first_action"] or "–").replace("`", ""),
        }
        for row in rows
    ]
    labels = {
        "touches": "touches",
        "saves": "saves alone",
        "interval": "low to high",
        "adds": "adds in plan",
        "first": "first action",
    }
    frame = pl.DataFrame(cells, schema=dict.fromkeys(["lever", "label", *labels, "effort", "risk"], pl.String))
    frame = frame.select("lever", "label", "touches", "saves", "interval", "adds", "effort", "risk", "first")
    left = ("label", "risk", "first")
    return table(frame, name=name, caption=caption, labels=labels, left=left, note=note, is_styled=is_styled)


def _has_figure(row: Mapping[str, Any]) -> bool:
    return row["status"] in ("ok", "excluded") or row["label"] == "ceiling"


def _kind(row: Mapping[str, Any]) -> str:
    """Say what kind of figure it is, or why there is none."""
    return str(row["label"] or "–") if _has_figure(row) else str(row["status"]).replace("_", " ")


def _interval(saving: Mapping[str, str | None], decimals: int) -> str:
    low, high = saving["low"], saving["high"]
    return "–" if low is None or high is None else f"{dollars(low, decimals)} to {dollars(high, decimals)}"
