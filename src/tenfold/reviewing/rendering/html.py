"""A review as one HTML page that loads nothing: charts as inline SVG, or drawn by Vega that the page carries along."""

from __future__ import annotations

import re
from importlib import resources

from tenfold import charts, tables
from tenfold.display import visible
from tenfold.extras import need
from tenfold.reviewing.document import Document, Picture, Table

_CODE = re.compile(r"`([^`]+)`")


def render(document: Document) -> str:
    """Make the page.

    Args:
        document: The review.

    Returns:
        HTML in one piece: no script, nothing to load.

    Raises:
        MissingExtraError: The ``report`` extra is not installed.
    """
    need("jinja2", what="a review")
    import jinja2
    import markupsafe

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )

    def code(text: str) -> markupsafe.Markup:
        return markupsafe.Markup(_marked_up(str(markupsafe.escape(visible(text)))))

    environment.filters["code"] = code
    environment.filters["svg"] = _svg
    environment.filters["table"] = _table
    template = (resources.files("tenfold.reviewing.rendering") / "page.html.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(document=document)


def _marked_up(escaped: str) -> str:
    """Set code as code, and keep a number and its percent sign on one line."""
    return _CODE.sub(r"<code>\1</code>", escaped).replace(" %", "\u00a0%")


def _svg(block: Picture) -> str:
    return charts.to_svg(block.chart, visible(block.title), visible(block.text), name=block.name)


def _table(block: Table) -> str:
    return tables.to_html(block.grid, is_styled=False)
