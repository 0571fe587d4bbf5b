"""One look for every chart: readable on white and on black, by colour-blind readers too, the same colour per meter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from textwrap import wrap
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from tenfold.display import name_of
from tenfold.errors import TenfoldError
from tenfold.extras import need
from tenfold.money import to_float_usd

if TYPE_CHECKING:
    import altair as alt

AnyChart: TypeAlias = "alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart"

# Text and lines: 4.5:1 on white, 4.1:1 on near-black. `to_svg` turns it into currentColor.
INK = "#767676"
# The gap between stacked segments. `to_svg` turns it into the page's own background.
PAPER = "#fefefd"
# Okabe and Ito's colours for colour-blind readers (2008), yellow left out (too pale on white). Input meters are blues
# and greens, output meters reds and oranges.
METER_COLOURS = {
    "uncached_input": "#0072B2",
    "cache_read": "#56B4E9",
    "cache_write": "#009E73",
    "cache_write_long": "#6FC7A7",
    "input_audio": "#4B5FA8",
    "input_image": "#8896D4",
    "input_video": "#2F8F9D",
    "cache_read_audio": "#3E8EC4",
    "cache_read_image": "#7FC4EE",
    "cache_read_video": "#8FBBD9",
    "cache_storage": "#1B7F5F",
    "audio_time": "#6C5FC7",
    "page": "#5B7F95",
    "character": "#7C9A5E",
    "output": "#D55E00",
    "reasoning": "#CC79A7",
    "output_audio": "#E69F00",
    "output_image": "#A8741A",
    "output_video": "#8F4A1F",
    "image": "#C2563F",
    "output_time": "#B5485D",
    "web_search": "#8C8C8C",
    "web_search_preview": "#A3A3A3",
    "file_search": "#77706B",
    "maps_search": "#6B7A72",
    "code_session": "#9A8F86",
    "request": "#5E5E66",
}
METER_LABELS = {name: name.replace("_", " ") for name in METER_COLOURS}
CATEGORY_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#4B5FA8", "#A8741A")
OTHER = "other"
OTHER_COLOUR = "#8C8C8C"
WIDTH = 640
# Altair refuses more; a chart of more than this is no chart for people either.
MOST_ROWS = 5_000
_TICKS = 8
# What fits above a chart in one line.
_TITLE_CHARACTERS = 88
# Fonts of one width, so that labels measured here fit in any browser.
_FONT = "Arial, Helvetica, Liberation Sans, sans-serif"


def altair(what: str) -> ModuleType:
    """Load Altair with a clear word where it is missing.

    Args:
        what: The chart that is wanted.

    Returns:
        The module.

    Raises:
        MissingExtraError: Altair is not installed.
    """
    need("altair", what=f"the {what} chart")
    import altair as alt

    return alt


def dressed(chart: AnyChart) -> AnyChart:
    """Give a finished chart the look.

    Args:
        chart: The outermost chart.

    Returns:
        The chart with its configuration.
    """
    text: dict[str, Any] = {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12}
    return chart.configure(
        background="transparent",
        font=_FONT,
        view={"stroke": None},
        axis={
            **text,
            "labelAngle": 0,
            "labelLimit": 220,
            "titleFontWeight": "normal",
            "titlePadding": 10,
            "domain": False,
            "tickColor": INK,
            "tickOpacity": 0.5,
            "gridColor": INK,
            "gridOpacity": 0.25,
        },
        # a vertical axis says its title horizontally, above itself
        axisY={
            "titleAngle": 0,
            "titleAlign": "left",
            "titleAnchor": "end",
            "titleBaseline": "bottom",
            "titleX": 0,
            "titleY": -8,
        },
        legend={
            **text,
            "orient": "top",
            "title": None,
            "columns": 4,
            "columnPadding": 18,
            "rowPadding": 4,
            "labelLimit": 260,
            "symbolType": "square",
            "symbolStrokeWidth": 0,
        },
        text={"color": INK, "fontSize": 12, "font": _FONT},
        title={"color": INK, "fontSize": 14, "font": _FONT, "anchor": "start", "frame": "bounds", "offset": 14},
    )


def titled(chart: AnyChart, title: str) -> AnyChart:
    """Put the message above a chart; a long one takes two lines.

    Args:
        chart: The chart, before it is dressed.
        title: The message.

    Returns:
        The chart.
    """
    return chart.properties(title=wrap(title, _TITLE_CHARACTERS))


def in_usd(costs: pl.Series) -> pl.Series:
    """Turn exact pUSD into floats for a picture.

    Args:
        costs: A column of pUSD.

    Returns:
        USD.
    """
    return pl.Series(costs.name, [to_float_usd(int(cost or 0)) for cost in costs], dtype=pl.Float64)


def usd_format(largest: float) -> str:
    """Choose a number format for an axis of dollars.

    Args:
        largest: The largest amount on it, in USD.

    Returns:
        A D3 format: whole dollars where they tell ticks apart, thousands as k.
    """
    if largest >= 20_000:
        return "$,~s"
    return "$,.0f" if largest >= 8 else "$,.2f"


def time_axis(alt: ModuleType, times: pl.Series) -> object:
    """Choose the axis of a span of time, so that no two ticks read the same: days, or hours within two days.

    Args:
        alt: Altair.
        times: The instants or days that are drawn.

    Returns:
        The axis.
    """
    known = times.drop_nulls().cast(pl.Datetime("ms")).sort()
    span = known[-1] - known[0] if len(known) else timedelta()
    if times.dtype != pl.Date and span <= timedelta(days=2):
        return alt.Axis(format="%d %b %H:%M", tickCount=_TICKS, grid=False)
    # on fewer days than ticks, Vega would put some at noon: the same day twice
    ticks = {"interval": "day", "step": 1} if span < timedelta(days=_TICKS) else _TICKS
    return alt.Axis(format="%d %b", tickCount=ticks, grid=False)


def highest(values: pl.Series) -> float:
    """Find the largest of some amounts.

    Args:
        values: Floats.

    Returns:
        The largest; 0 for none.
    """
    return max((float(value) for value in values), default=0.0)


def check(frame: pl.DataFrame, chart: str, columns: Sequence[str], *, least: int = 0) -> None:
    """Refuse a frame that cannot be drawn, before Altair does so in its own words.

    Args:
        frame: The data.
        chart: Name of the chart.
        columns: Columns it needs.
        least: Rows that it needs.

    Raises:
        TenfoldError: A column is missing, or there are too many rows or too few.
    """
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise TenfoldError(
            f"the {chart} chart needs column {', '.join(missing)}; the frame has {', '.join(frame.columns)}"
        )
    if len(frame) > MOST_ROWS:
        raise TenfoldError(f"the {chart} chart draws at most {MOST_ROWS:,} rows, not {len(frame):,}: sum them first")
    if len(frame) < least:
        raise TenfoldError(f"the {chart} chart has nothing to draw: the frame has no rows")


def lumped(frame: pl.DataFrame, column: str, sums: Sequence[str], top: int) -> tuple[pl.DataFrame, list[str]]:
    """Keep the largest values of a column and put the rest under one name.

    Args:
        frame: Rows with the column, ``cost_pusd``, and what else is grouped by.
        column: The column; its values are named for people (``display.name_of``).
        sums: Columns to sum; all others but ``column`` are grouped by.
        top: How many values to keep.

    Returns:
        The frame, and the names in order of cost, the rest last.
    """
    named = frame.with_columns(
        pl.col(column).cast(pl.String).map_elements(lambda value: name_of(column, value), pl.String, skip_nulls=False)
    )
    ranked = (
        named.group_by(column)
        .agg(pl.sum("cost_pusd"))
        .sort("cost_pusd", column, descending=[True, False])[column]
        .to_list()
    )
    kept = ranked[:top]
    rest = ranked[top:]
    if rest:
        named = named.with_columns(
            pl.when(pl.col(column).is_in(kept)).then(column).otherwise(pl.lit(OTHER)).alias(column)
        )
    keys = [name for name in named.columns if name not in sums]
    return named.group_by(keys, maintain_order=True).agg(pl.sum(*sums)), [*kept, *([OTHER] if rest else [])]


def category_colours(names: Sequence[str]) -> list[str]:
    """Choose colours for named categories in their order.

    Args:
        names: The categories.

    Returns:
        One colour each, grey for the rest.
    """
    return [
        OTHER_COLOUR if name == OTHER else CATEGORY_COLOURS[n % len(CATEGORY_COLOURS)] for n, name in enumerate(names)
    ]
