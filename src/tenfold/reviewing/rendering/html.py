"""A review as one HTML page that loads nothing: charts as inline SVG, or drawn by Vega that the page carries along."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, TypeVar

from tenfold import charts, tables
from tenfold.display import visible
from tenfold.extras import need
from tenfold.reviewing.document import Document, Picture, Table, Text
from tenfold.reviewing.rendering.notes import CODE, RIGHT_TO_LEFT, Ids, Notes, ident, prepared

if TYPE_CHECKING:
    from markupsafe import Markup

_Given = TypeVar("_Given")
_PERCENT = re.compile(r"(?<=\d) %")


def render(document: Document, *, interactive: bool = False) -> str:
    """Make the page.

    Args:
        document: The review.
        interactive: Carry Vega along to draw the charts with tooltips; without scripts and in print the SVG stands.

    Returns:
        HTML in one piece that asks for nothing; without ``interactive`` there is no script in it.

    Raises:
        MissingExtraError: The ``report`` extra is not installed.
    """
    need("jinja2", "altair", "great_tables", "vl_convert", what="a review")
    import jinja2
    import markupsafe

    def filtered(marked_up: Callable[[_Given], str]) -> Callable[[_Given], Markup]:
        def marked(given: _Given) -> Markup:
            return markupsafe.Markup(marked_up(given))

        return marked

    def named(drawn: Callable[[_Given, str], str]) -> Callable[[_Given, str], Markup]:
        def marked(given: _Given, name: str) -> Markup:
            return markupsafe.Markup(drawn(given, name))

        return marked

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    filters: dict[str, Callable[..., str]] = {
        "plain": filtered(plain),
        "code": filtered(_code),
        "svg": named(_svg),
        "table": named(_table),
        "spec": filtered(_spec),
        "visible": visible,
        "ident": ident,
    }
    environment.filters.update(filters)
    document = prepared(document)
    script = _script() if interactive else ""
    template = environment.from_string(_file("page.html.j2"))
    ids = Ids(document)
    page = template.render(
        document=document,
        notes=Notes(document),
        new_id=ids.new,
        steps={block.title for one in document.sections for block in one.blocks if isinstance(block, Text)},
        style=markupsafe.Markup(_file("page.css")),
        script=markupsafe.Markup(script),
        policy=_policy(script),
    )
    return page + "\n"


def plain(text: str) -> str:
    """Mark up text: escaped, hidden characters seen, what is written from the right set apart.

    Args:
        text: Text that may come from a log.

    Returns:
        HTML.
    """
    marked = RIGHT_TO_LEFT.sub(r"<bdi>\g<0></bdi>", escape(visible(text)))
    return _PERCENT.sub("\u00a0%", marked)


def _code(text: str) -> str:
    return CODE.sub(r"<code>\1</code>", plain(text))


def _svg(block: Picture, name: str) -> str:
    return charts.to_svg(block.chart, visible(block.title), visible(block.text), name=name)


def _table(block: Table, name: str) -> str:
    # its note stands under it: in a table that scrolls it would be cut
    return tables.to_html(replace(block.grid, name=name, note=""), is_styled=False)


def _spec(block: Picture) -> str:
    """Write a chart's specification so that nothing in it ends the element that holds it."""
    text = json.dumps(charts.spec_of(block.chart), ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(script: str) -> str:
    """Say what the page may do: show itself; run the one script that it was made with."""
    rules = [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        rules.append(f"script-src 'sha256-{digest}'")
    return "; ".join(rules)


@cache
def _script() -> str:
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(_file("page.js"))
    if "</script" in bundle.lower() or "<!--" in bundle:
        raise RuntimeError("Vega's bundle cannot stand in a page: it holds the end of a script")
    return bundle


def _file(name: str) -> str:
    return (resources.files("tenfold.reviewing.rendering") / name).read_text(encoding="utf-8")
