"""The composition table: cost by dimensions, and what each row's cost is made of."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import polars as pl

from tenfold.display import METER_GROUPS, absent, nothing_priced, percent, sentence
from tenfold.money import shown
from tenfold.tables.html import table


def composition(
    frame: pl.DataFrame, by: Sequence[str], *, name: str, caption: str, top: int = 15, is_styled: bool = True
) -> str:
    """Write a composition as a table, dearest row first, with the total.

    Args:
        frame: As ``Composition.frame``: dimensions, ``requests``, ``unpriced_requests``, ``cost_pusd``,
            ``<meter>_pusd``.
        by: The dimensions.
        name: Id of the table.
        caption: What it is.
        top: Rows to show; the rest is summed into one.
        is_styled: Bring great_tables' own style along.

    Returns:
        HTML.

    Raises:
        MissingExtraError: great_tables is not installed.
    """
    rows = [_Row(row, by) for row in frame.rows(named=True)]
    rows.sort(key=lambda row: (-row.cost, row.names))
    total = _summed(rows, ["total", *("" for _ in by[1:])])
    shown_rows = rows if len(rows) <= top + 1 else rows[:top]
    rest = rows[len(shown_rows) :]
    if rest:
        shown_rows = [*shown_rows, _summed(rest, [f"{len(rest)} others", *("" for _ in by[1:])])]
    parts = [
        (key, label, meters) for key, label, meters in METER_GROUPS if any(total.meters.get(meter) for meter in meters)
    ]
    decimals = 2 if total.cost >= 10**12 else 6
    cells = [row.cells(total.cost, parts, decimals) for row in [*shown_rows, total]]
    columns = [*by, "cost", "share", *(key for key, _, _ in parts), "requests", "unpriced"]
    if not total.unpriced:
        columns.remove("unpriced")
    labels = {"cost": "cost (USD)", "share": "share of cost", "requests": "requests", "unpriced": "not priced"}
    labels |= {key: label for key, label, _ in parts} | {column: column.replace("_", " ") for column in by}
    note = f"{sentence(', '.join(label for _, label, _ in parts))}: share of the row's own cost." if parts else ""
    text = pl.DataFrame(cells, schema=dict.fromkeys(cells[0], pl.String)).select(columns)
    return table(
        text, name=name, caption=caption, labels=labels, left=by, note=note, has_total=True, is_styled=is_styled
    )


class _Row:
    def __init__(self, row: dict[str, object], by: Sequence[str]) -> None:
        self.names = [absent(column) if row[column] is None else str(row[column]) for column in by]
        self.by = list(by)
        self.meters = {key.removesuffix("_pusd"): _int(value) for key, value in row.items() if key.endswith("_pusd")}
        self.cost = self.meters.pop("cost")
        self.requests = _int(row["requests"])
        self.unpriced = _int(row["unpriced_requests"])

    def cells(self, total: int, parts: Sequence[tuple[str, str, tuple[str, ...]]], decimals: int) -> dict[str, str]:
        """Write the row for people; a row of which nothing is priced has no cost rather than none."""
        blank = nothing_priced(self.requests, self.unpriced)
        made = dict(zip(self.by, self.names, strict=True))
        made["cost"] = "not priced" if blank else shown(self.cost, decimals)
        made["share"] = "–" if blank or not total else percent(Fraction(self.cost, total), 1)
        for key, _, meters in parts:
            part = sum(self.meters.get(meter, 0) for meter in meters)
            made[key] = percent(Fraction(part, self.cost), 1) if self.cost else "–"
        made |= {"requests": f"{self.requests:,}", "unpriced": f"{self.unpriced:,}"}
        return made


def _summed(rows: Sequence[_Row], names: list[str]) -> _Row:
    meters = {meter for row in rows for meter in row.meters}
    sums: dict[str, object] = {f"{meter}_pusd": sum(row.meters.get(meter, 0) for row in rows) for meter in meters}
    sums["cost_pusd"] = sum(row.cost for row in rows)
    sums["requests"] = sum(row.requests for row in rows)
    sums["unpriced_requests"] = sum(row.unpriced for row in rows)
    by = rows[0].by if rows else [f"dimension {n}" for n in range(len(names))]
    return _Row({**sums, **dict(zip(by, names, strict=True))}, by)


def _int(value: object) -> int:
    return int(str(value or 0))
