"""A chart as inline SVG: no network, no script, a text alternative, colours that follow the page."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from tenfold.charts.theme import INK, PAPER
from tenfold.extras import need

if TYPE_CHECKING:
    from tenfold.charts.theme import AnyChart

_ROOT = re.compile(r"<svg\b[^>]*?width=\"(?P<width>[\d.]+)\" height=\"(?P<height>[\d.]+)\"[^>]*>")
_BACKGROUND = re.compile(r"<rect\b[^>]*fill=\"transparent\"[^>]*/>")
_ID = re.compile(r'\bid="([^"]+)"')
_USE = re.compile(r'url\(#([^)]+)\)|href="#([^"]+)"')


def to_svg(chart: AnyChart, title: str, description: str, *, name: str | None = None) -> str:
    """Render a chart to SVG that can stand inside a page.

    Text and lines take the page's text colour (``currentColor``), gaps its background (``--paper``).

    Args:
        chart: An Altair chart.
        title: Short name of the picture.
        description: What it shows, for those who do not see it.
        name: Prefix of the ids inside; made from the title by default. Must be unique on a page.

    Returns:
        One ``<svg>`` element, the same bytes for the same chart.

    Raises:
        MissingExtraError: vl-convert is not installed.
    """
    need("altair", "vl_convert", what="a picture")
    import vl_convert

    prefix = name or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "chart"
    spec = chart.to_dict()
    spec["config"] = {**spec.get("config", {}), "aria": False}
    drawn: str = vl_convert.vegalite_to_svg(spec)
    drawn = _BACKGROUND.sub("", drawn, count=1)
    drawn = _ID.sub(lambda found: f'id="{prefix}-{found[1]}"', drawn)
    drawn = _USE.sub(lambda f: f"url(#{prefix}-{f[1]})" if f[1] else f'href="#{prefix}-{f[2]}"', drawn)
    drawn = drawn.replace(f'"{INK}"', '"currentColor"').replace(f'"{PAPER}"', '"var(--paper, #fff)"')
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'aria-labelledby="{prefix}-title {prefix}-desc" '
        'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<title id="{prefix}-title">{escape(title)}</title><desc id="{prefix}-desc">{escape(description)}</desc>'
    )
    return _ROOT.sub(
        lambda found: head.replace("{width}", found["width"]).replace("{height}", found["height"]), drawn, count=1
    )
