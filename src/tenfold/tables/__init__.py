"""Tables: values in columns of a kind, and their HTML. The only room that imports great_tables, inside functions."""

from tenfold.tables.by_dimension import composition
from tenfold.tables.card import card, framed
from tenfold.tables.grid import EMPTY, NAMELESS, Cell, Column, Grid, Kind, grid, text_of
from tenfold.tables.html import to_html
from tenfold.tables.ranked import levers
from tenfold.tables.uncovered import unpriced

__all__ = [
    "EMPTY",
    "NAMELESS",
    "Cell",
    "Column",
    "Grid",
    "Kind",
    "card",
    "composition",
    "framed",
    "grid",
    "levers",
    "text_of",
    "to_html",
    "unpriced",
]
