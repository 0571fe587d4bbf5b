"""One look for what a notebook shows: a heading, lines, tables; all of it escaped, text where no table can be made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from tenfold.display import shortened, visible
from tenfold.extras import MissingExtraError
from tenfold.tables.grid import Grid
from tenfold.tables.html import to_html

_CODE = re.compile(r"`([^`\n]+)`")
# Colours come from the notebook's own theme, light or dark. The class is named twice where Jupyter's own rules for
# tables would win. Names do not break at their hyphens; sentences stand in the last column.
_STYLE = """<style>
.tenfold { max-width: 64rem; line-height: 1.4; overflow-x: auto }
.tenfold ul { margin: .3em 0; padding-left: 1.3em }
.tenfold table { border-collapse: collapse; margin: .6em 0; font-variant-numeric: tabular-nums }
.tenfold caption { text-align: left; font-weight: 600; padding: .2em 0 }
.tenfold.tenfold table :is(th, td) { padding: .2em .6em; text-align: left; vertical-align: top; white-space: normal }
.tenfold.tenfold table thead th { vertical-align: bottom }
.tenfold.tenfold table tbody th { font-weight: normal; white-space: nowrap }
.tenfold.tenfold table td:is(.gt_left, .gt_right):not(:last-child) { white-space: nowrap }
.tenfold.tenfold table td.gt_left:last-child { min-width: 14em }
.tenfold.tenfold table .gt_right { text-align: right }
.tenfold.tenfold .with-total table tbody tr:last-child > * { font-weight: 600; border-top: 1px solid }
</style>"""


def card(title: str, lines: Iterable[str] = (), *grids: Grid) -> str:
    """Set a result for a notebook.

    Args:
        title: The answer in one line; empty for tables alone.
        lines: What else is said, one point each.
        grids: Tables below them; as text where the report extra is not installed.

    Returns:
        HTML with a small style that holds inside it alone; names from logs are harmless in it.
    """
    points = "".join(f"<li>{_said(line)}</li>" for line in lines)
    said = f"<p><strong>{_said(title)}</strong></p>" if title else ""
    said += f"<ul>{points}</ul>" if points else ""
    return framed(said + "".join(map(_table, grids)))


def framed(html: str) -> str:
    """Give HTML of one's own the look of a card.

    Args:
        html: HTML whose texts are escaped.

    Returns:
        It, in a frame with the style.
    """
    return f'<div class="tenfold">{_STYLE}{html}</div>'


def _safe(text: str) -> str:
    return escape(visible(text))


def _said(text: str) -> str:
    """Set a sentence; backticks mark code in it."""
    return _CODE.sub(r"<code>\1</code>", _safe(text))


def _table(grid: Grid) -> str:
    try:
        return to_html(grid, is_styled=False)
    except MissingExtraError:
        return f"<pre>{_safe(_as_text(grid))}</pre>"


def _as_text(grid: Grid) -> str:
    rows = [[column.label for column in grid.columns], *([shortened(cell) for cell in row] for row in grid.texts())]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if column.is_words else cell.rjust(width)
            for cell, width, column in zip(row, widths, grid.columns, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([grid.caption, *lines, *([grid.note] if grid.note else [])])
