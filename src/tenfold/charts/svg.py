"""A chart drawn: inline SVG with a text alternative and colours that follow the page, or a PNG; nothing is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, cast

from tenfold.charts.theme import INK, PAPER
from tenfold.display import visible
from tenfold.extras import need

if TYPE_CHECKING:
    from tenfold.charts.theme import AnyChart

_ROOT = re.compile(r"<svg\b[^>]*?width=\"(?P<width>[\d.]+)\" height=\"(?P<height>[\d.]+)\"[^>]*>")
_BACKGROUND = re.compile(r"<rect\b[^>]*fill=\"transparent\"[^>]*/>")
_ID = re.compile(r'\bid="([^"]+)"')
_USE = re.compile(r'url\(#([^)]+)\)|href="#([^"]+)"')
# The picture has one text alternative; Vega's own roles inside it would have none.
_ROLE = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
_TAG = re.compile(r"<[a-zA-Z][^>]*>")


# On white paper, where nothing follows a page: text of 10:1.
PRINTED: Mapping[str, str] = {INK: "#3d434b", PAPER: "#ffffff"}


def spec_of(chart: AnyChart, colours: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Give a chart's Vega-Lite specification, its data within.

    Hidden characters of names are made visible: a control character ends the process that draws it.

    Args:
        chart: An Altair chart.
        colours: Colours to put in the place of others.

    Returns:
        The specification.
    """
    spec = cast("dict[str, Any]", _cleaned(chart.to_dict(), colours or {}))
    spec["config"] = {**spec.get("config", {}), "aria": False}
    return spec


def to_png(chart: AnyChart, *, scale: float = 2) -> bytes:
    """Draw a chart on white.

    Args:
        chart: An Altair chart.
        scale: Pixels of the picture to one of the chart.

    Returns:
        A PNG file, the same bytes for the same chart.

    Raises:
        MissingExtraError: vl-convert is not installed.
    """
    need("altair", "vl_convert", what="a picture")
    import vl_convert

    spec = spec_of(chart, PRINTED)
    spec["config"] = {**spec["config"], "background": "white"}
    return vl_convert.vegalite_to_png(spec, scale=scale)


def _tag(tag: str, prefix: str) -> str:
    """Fit one tag into a page; what is between tags are names of a log, and stays."""
    tag = _ROLE.sub("", tag)
    tag = _ID.sub(lambda found: f'id="{prefix}-{found[1]}"', tag)
    tag = _USE.sub(lambda f: f"url(#{prefix}-{f[1]})" if f[1] else f'href="#{prefix}-{f[2]}"', tag)
    return tag.replace(f'"{INK}"', '"currentColor"').replace(f'"{PAPER}"', '"var(--paper, #fff)"')


def _cleaned(part: object, colours: Mapping[str, str]) -> object:
    if isinstance(part, str):
        return colours.get(part, visible(part))
    if isinstance(part, dict):
        return {key: _cleaned(value, colours) for key, value in cast("dict[str, object]", part).items()}
    if isinstance(part, list):
        return [_cleaned(value, colours) for value in cast("list[object]", part)]
    return part


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
    drawn: str = vl_convert.vegalite_to_svg(spec_of(chart))
    drawn = _BACKGROUND.sub("", drawn, count=1)
    drawn = _TAG.sub(lambda found: _tag(found[0], prefix), drawn)
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'aria-labelledby="{prefix}-title {prefix}-desc" '
        'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<title id="{prefix}-title">{escape(title)}</title><desc id="{prefix}-desc">{escape(description)}</desc>'
    )
    return _ROOT.sub(
        lambda found: head.replace("{width}", found["width"]).replace("{height}", found["height"]), drawn, count=1
    )
