"""Tables: a frame in, HTML out. The only room that imports great_tables, and only inside its functions."""

from tenfold.tables.by_dimension import composition
from tenfold.tables.html import table
from tenfold.tables.ranked import levers
from tenfold.tables.uncovered import unpriced

__all__ = ["composition", "levers", "table", "unpriced"]
