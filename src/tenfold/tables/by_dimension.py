"""The composition table: cost by dimensions, and what each row's cost is made of."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import polars as pl

from tenfold.display import METER_GROUPS, name_of, nothing_priced, sentence
from tenfold.tables.grid import EMPTY, Cell, Column, Grid, grid


def composition(
    frame: pl.DataFrame, by: Sequence[str], *, name: str, caption: str, top: int = 15, is_ordered: bool = False
) -> Grid:
    """Lay a composition out as a table, dearest row first unless it is ordered already, with the total.

    Args:
        frame: As ``Composition.frame``: dimensions, ``requests``, ``unpriced_requests``, ``cost_pusd``,
            ``<meter>_pusd``.
        by: The dimensions.
        name: Id of the table.
        caption: What it is.
        top: Rows to show; the rest is summed into one.
        is_ordered: The frame is in the order to show, such as that of time.

    Returns:
        The table: dimensions, cost, share of the whole, the share that each group of meters has of the row's own
        cost, requests, and those without a price where there are any.
    """
    rows = [_Row(row, by) for row in frame.rows(named=True)]
    if not is_ordered:
        rows.sort(key=lambda row: (-row.cost, row.names))
    total = _summed(rows, ["total", *("" for _ in by[1:])])
    shown_rows = rows if len(rows) <= top + 1 else rows[:top]
    rest = rows[len(shown_rows) :]
    if rest:
        shown_rows = [*shown_rows, _summed(rest, [f"{len(rest)} others", *("" for _ in by[1:])])]
    parts = [
        (key, label, meters) for key, label, meters in METER_GROUPS if any(total.meters.get(meter) for meter in meters)
    ]
    columns = [
        *(Column(column, column.replace("_", " ")) for column in by),
        Column("cost", "cost (USD)", "pusd", sums=True),
        Column("share", "share of cost", "ratio", share_of="cost"),
        *(Column(key, label, "ratio") for key, label, _ in parts),
        Column("requests", "requests", "count", sums=True),
        *([Column("unpriced", "not priced", "count", sums=True)] if total.unpriced else []),
    ]
    cells = [row.cells(total, parts) for row in [*shown_rows, total]]
    note = f"{sentence(', '.join(label for _, label, _ in parts))}: share of the row's own cost." if parts else ""
    return grid(name, caption, columns, cells, note=note, has_total=True)


class _Row:
    def __init__(self, row: dict[str, object], by: Sequence[str]) -> None:
        self.names = [name_of(column, row[column]) for column in by]
        self.by = list(by)
        self.meters = {key.removesuffix("_pusd"): _int(value) for key, value in row.items() if key.endswith("_pusd")}
        self.cost = self.meters.pop("cost")
        self.requests = _int(row["requests"])
        self.unpriced = _int(row["unpriced_requests"])

    def cells(self, total: _Row, parts: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[Cell]:
        """Give the row's values; a row of which nothing is priced has no cost rather than none."""
        blank = nothing_priced(self.requests, self.unpriced)
        made: list[Cell] = [*self.names, "not priced" if blank else self.cost]
        made.append(EMPTY if blank or not total.cost else Fraction(self.cost, total.cost))
        for _, _, meters in parts:
            part = sum(self.meters.get(meter, 0) for meter in meters)
            made.append(Fraction(part, self.cost) if self.cost else EMPTY)
        return [*made, self.requests, *([self.unpriced] if total.unpriced else [])]


def _summed(rows: Sequence[_Row], names: list[str]) -> _Row:
    meters = {meter for row in rows for meter in row.meters}
    sums: dict[str, object] = {f"{meter}_pusd": sum(row.meters.get(meter, 0) for row in rows) for meter in meters}
    sums["cost_pusd"] = sum(row.cost for row in rows)
    sums["requests"] = sum(row.requests for row in rows)
    sums["unpriced_requests"] = sum(row.unpriced for row in rows)
    by = rows[0].by if rows else [f"dimension {n}" for n in range(len(names))]
    made = _Row({**sums, **dict.fromkeys(by)}, by)
    made.names = names
    return made


def _int(value: object) -> int:
    return int(str(value or 0))
