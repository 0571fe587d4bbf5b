"""A table before it is written anywhere: columns with their kind, rows of values. Pages and sheets are made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

from tenfold.display import NAMELESS, number, percent
from tenfold.money import PUSD_PER_USD, shown
from tenfold.tables.footing import foot

Kind: TypeAlias = Literal["text", "pusd", "count", "ratio", "number", "date"]
Cell: TypeAlias = str | int | float | Fraction | Decimal | date | None
EMPTY = "–"
_WORDS = ("text", "date")
# What a shown 1 is, by kind: amounts that are rounded where people read.
_UNITS: dict[Kind, Fraction] = {"pusd": Fraction(PUSD_PER_USD), "ratio": Fraction(1, 100), "number": Fraction(1)}


class Column(NamedTuple):
    """One column of a table.

    Args:
        name: Its key.
        label: Its heading, with the unit where the kind does not say it.
        kind: What its cells are: ``pusd`` whole picodollars, ``ratio`` 0.25 for 25 %.
        decimals: Digits after the point; None for what suits the column.
        sums: The last row of a table with a total holds the column's sum.
        share_of: Name of the column that this ratio is a share of.
    """

    name: str
    label: str
    kind: Kind = "text"
    decimals: int | None = None
    sums: bool = False
    share_of: str = ""

    @property
    def is_words(self) -> bool:
        """Whether it is set to the left."""
        return self.kind in _WORDS


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as values; the first column names the rows.

    Args:
        name: Id, unique on a page.
        caption: What the table is.
        columns: Its columns.
        rows: Cells in the order of the columns; a text in a column of numbers stands for itself, None is unknown.
        note: A line under the table.
        has_total: The last row is a total.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    has_total: bool = False

    def texts(self) -> list[list[str]]:
        """Write the cells for people.

        Returns:
            Rows of text, in the order of the columns; what is unknown is an en dash. Columns with a sum, and shares,
            sum to their total as shown.
        """
        columns = [self._written(place) for place in range(len(self.columns))]
        # a row without a name would be a heading without text
        return [[row[0] or NAMELESS, *row[1:]] for row in zip(*columns, strict=True)]

    def decimals(self, place: int) -> int:
        """Tell how many digits a column shows after the point.

        Args:
            place: The column's place.

        Returns:
            Its own number of digits, or what suits its cells.
        """
        column = self.columns[place]
        own = column.decimals
        return _decimals(column.kind, [row[place] for row in self.rows]) if own is None else own

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        from tenfold.tables.card import card  # which is made of grids

        return card("", (), self)

    def _written(self, place: int) -> list[str]:
        column, decimals = self.columns[place], self.decimals(place)
        cells = [row[place] for row in self.rows]
        texts = [text_of(cell, column.kind, decimals) for cell in cells]
        if not self.has_total or not (column.sums or column.share_of) or column.kind not in _UNITS:
            return texts
        unit = _UNITS[column.kind] / 10**decimals
        is_share = column.kind == "ratio"
        return foot(cells, texts, unit, lambda value: text_of(value, column.kind, decimals), is_share=is_share)


def grid(
    name: str,
    caption: str,
    columns: Iterable[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    note: str = "",
    has_total: bool = False,
) -> Grid:
    """Make a table of any sequences.

    Args:
        name: Id, unique on a page.
        caption: What the table is.
        columns: Its columns.
        rows: Cells in the order of the columns.
        note: A line under the table.
        has_total: The last row is a total.

    Returns:
        The table.
    """
    return Grid(name, caption, tuple(columns), tuple(tuple(row) for row in rows), note, has_total)


def text_of(cell: Cell, kind: Kind, decimals: int = 2) -> str:
    """Write one cell for people.

    Args:
        cell: The value.
        kind: What it is.
        decimals: Digits after the point, of money, ratios and numbers.

    Returns:
        The text.
    """
    if cell is None or isinstance(cell, (str, date)):
        return EMPTY if cell is None else str(cell)
    if kind == "pusd":
        return shown(int(cell), decimals)
    if kind == "ratio":
        return percent(Fraction(cell), decimals)
    return number(Fraction(cell), 0 if kind == "count" else decimals)


def _decimals(kind: Kind, cells: Sequence[Cell]) -> int:
    if kind == "ratio":
        return 1
    if kind == "pusd":
        # cents are enough once anything in the column is a dollar
        large = any(isinstance(cell, int) and abs(cell) >= PUSD_PER_USD for cell in cells)
        return 2 if large or not any(cells) else 6
    return 2
