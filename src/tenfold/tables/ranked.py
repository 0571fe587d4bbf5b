"""The ranked levers, from the document of ``tenfold levers --json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tenfold.money import PUSD_PER_USD
from tenfold.tables.grid import EMPTY, Cell, Column, Grid, grid


def levers(
    rows: Sequence[Mapping[str, Any]],
    marginals: Mapping[str, str],
    *,
    name: str,
    caption: str,
    note: str = "",
    has_first_action: bool = True,
) -> Grid:
    """Lay levers out as a table, in the order given.

    Args:
        rows: Levers of a plan: ``name``, ``number``, ``label``, ``addressed_usd``, ``saving_usd{low, mid, high}``,
            ``status``, ``effort_days``, ``risk``, ``first_action``; money as decimal strings or None.
        marginals: Lever to what it adds to the plan, in USD, for those in it.
        name: Id of the table.
        caption: What it is.
        note: A line under the table.
        has_first_action: Say what to do first; not where a card beside it does.

    Returns:
        The table.
    """
    # cents matter only on a small bill
    decimals = 0 if any(abs(Decimal(row["addressed_usd"] or 0)) >= 1_000 for row in rows) else 2
    amounts = {
        "touches": "touches",
        "saves": "saves alone",
        "low": "low",
        "high": "high",
        "adds": "adds in plan",
    }
    columns = [
        Column("lever", "lever"),
        Column("label", "label"),
        *(Column(key, label, "pusd", decimals) for key, label in amounts.items()),
        Column("effort", "effort (days)", "number", 1),
        Column("risk", "risk"),
        *([Column("first", "first action")] if has_first_action else []),
    ]
    cells = [_cells(row, marginals)[: len(columns)] for row in rows]
    return grid(name, caption, columns, cells, note=note)


def _cells(row: Mapping[str, Any], marginals: Mapping[str, str]) -> list[Cell]:
    saving: Mapping[str, str | None] = row["saving_usd"]
    has_figure = row["status"] in ("ok", "excluded") or row["label"] == "ceiling"
    has_ends = has_figure and saving["low"] is not None and saving["high"] is not None
    return [
        str(row["name"]),
        # what kind of figure it is, or why there is none
        str(row["label"] or EMPTY) if has_figure else str(row["status"]).replace("_", " "),
        _pusd(row["addressed_usd"]),
        _pusd(saving["mid"]) if has_figure else None,
        _pusd(saving["low"]) if has_ends else None,
        _pusd(saving["high"]) if has_ends else None,
        _pusd(marginals[row["name"]]) if row["name"] in marginals else "not in plan",
        row["effort_days"],
        str(row["risk"] or EMPTY),
        str(row["first_action"] or EMPTY).replace("`", ""),
    ]


def _pusd(usd: str | None) -> int | None:
    return None if usd is None else int(Decimal(usd) * PUSD_PER_USD)
