"""Tables: values in columns of a kind, and their HTML. The only room that imports great_tables, inside functions."""

from tenfold.tables.by_dimension import composition
from tenfold.tables.grid import EMPTY, Cell, Column, Grid, Kind, grid, text_of
from tenfold.tables.html import to_html
from tenfold.tables.ranked import levers
from tenfold.tables.uncovered import unpriced

__all__ = [
    "EMPTY",
    "Cell",
    "Column",
    "Grid",
    "Kind",
    "composition",
    "grid",
    "levers",
    "text_of",
    "to_html",
    "unpriced",
]
