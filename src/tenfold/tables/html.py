"""One way to make a table: caption, header cells with a scope, numbers to the right, ids that do not collide."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

import polars as pl

from tenfold.extras import need

_STYLE = re.compile(r"<style>.*?</style>\s*", re.DOTALL)
_OPEN = re.compile(r"<div id=\"[^\"]*\"[^>]*>")
# great_tables makes the stub heading's id from its label, spaces and all.
_SPACED_ID = re.compile(r'(?<= id=)"[^"]* [^"]*"')
_TABLE = re.compile(r"<table class=\"gt_table\"[^>]*>")


def table(
    frame: pl.DataFrame,
    *,
    name: str,
    caption: str,
    labels: Mapping[str, str] | None = None,
    left: Sequence[str] = (),
    note: str = "",
    has_total: bool = False,
    is_styled: bool = True,
) -> str:
    """Write a frame of text as an HTML table; the first column names the rows.

    Args:
        frame: Rows whose cells are already written for people; NULL shows as an en dash.
        name: Id of the table; must be unique on a page.
        caption: What the table is.
        labels: Column to its heading, with the unit.
        left: Columns of words, besides the first; all others are set to the right.
        note: A line under the table.
        has_total: The last row is a total.
        is_styled: Bring great_tables' own style along (a notebook); a review has its own.

    Returns:
        A ``<div>`` with the table.

    Raises:
        MissingExtraError: great_tables is not installed.
    """
    need("great_tables", what="a table")
    text = frame.select(pl.all().cast(pl.String).fill_null("–"))
    html = _OPEN.sub(
        f'<div id="{escape(name)}" class="table{" with-total" if has_total else ""}" role="region" '
        f'aria-labelledby="{escape(name)}-caption" tabindex="0">',
        _great_table(text, name, labels or {}, left, note),
        count=1,
    )
    html = _TABLE.sub(
        f'<table class="gt_table"><caption id="{escape(name)}-caption">{escape(caption)}</caption>', html, count=1
    )
    html = _SPACED_ID.sub(lambda found: found[0].replace(" ", "-"), html)
    return html if is_styled else _STYLE.sub("", html)


def _great_table(frame: pl.DataFrame, name: str, labels: Mapping[str, str], left: Sequence[str], note: str) -> str:
    import great_tables as gt

    first, *others = frame.columns
    made = gt.GT(frame, id=name, rowname_col=first).tab_stubhead(label=labels.get(first, first))
    made = made.cols_label({column: labels[column] for column in others if column in labels})
    made = made.cols_align("left", columns=[c for c in others if c in left])
    made = made.cols_align("right", columns=[c for c in others if c not in left])
    if note:
        made = made.tab_source_note(note)
    return made.as_raw_html()
