"""One way to write a table as HTML: caption, header cells with a scope, numbers to the right, ids of its own."""

from __future__ import annotations

import re
from html import escape

import polars as pl

from tenfold.display import shortened, visible
from tenfold.extras import need
from tenfold.tables.grid import Grid

_STYLE = re.compile(r"<style>.*?</style>\s*", re.DOTALL)
_OPEN = re.compile(r"<div id=\"[^\"]*\"[^>]*>")
# great_tables makes the stub heading's id from its label, spaces and all.
_SPACED_ID = re.compile(r'(?<= id=)"[^"]* [^"]*"')
_TABLE = re.compile(r"<table class=\"gt_table\"[^>]*>")


def to_html(grid: Grid, *, is_styled: bool = True) -> str:
    """Write a table as HTML; the first column names the rows.

    Args:
        grid: The table.
        is_styled: Bring great_tables' own style along (a notebook); a review has its own.

    Returns:
        A ``<div>`` with the table.

    Raises:
        MissingExtraError: great_tables is not installed.
    """
    need("great_tables", what="a table")
    name = escape(grid.name)
    html = _OPEN.sub(
        f'<div id="{name}" class="table{" with-total" if grid.has_total else ""}" role="group" '
        f'aria-labelledby="{name}-caption" tabindex="0">',
        _great_table(grid),
        count=1,
    )
    caption = f'<table class="gt_table"><caption id="{name}-caption">{escape(visible(grid.caption))}</caption>'
    html = _TABLE.sub(lambda _: caption, html, count=1)
    html = _SPACED_ID.sub(lambda found: found[0].replace(" ", "-"), html)
    return html if is_styled else _STYLE.sub("", html)


def _great_table(grid: Grid) -> str:
    import great_tables as gt

    first, *others = grid.columns
    rows = [[shortened(visible(text)) for text in row] for row in grid.texts()]
    frame = pl.DataFrame(rows, schema=dict.fromkeys([one.name for one in grid.columns], pl.String), orient="row")
    made = gt.GT(frame, id=grid.name, rowname_col=first.name).tab_stubhead(label=first.label)
    made = made.cols_label({one.name: one.label for one in others})
    made = made.cols_align("left", columns=[one.name for one in others if one.kind == "text"])
    # a class of its own: what stands in the middle is not broken
    made = made.cols_align("center", columns=[one.name for one in others if one.kind == "date"])
    made = made.cols_align("right", columns=[one.name for one in others if not one.is_words])
    if grid.note:
        made = made.tab_source_note(visible(grid.note))
    return made.as_raw_html()
