"""What a unit costs month by month, how the context grows, and what is wasted."""

from __future__ import annotations

import polars as pl

from tenfold.charts.theme import (
    CATEGORY_COLOURS,
    WIDTH,
    AnyChart,
    altair,
    check,
    dressed,
    highest,
    in_usd,
    usd_format,
)
from tenfold.money import shown

# USD from which cents tell the ticks of an axis apart.
_CENTS = 0.05
# What was wasted, and what at most was.
_LABELS = {"exact": "#D55E00", "ceiling": "#8C8C8C"}


def unit_cost_trend(frame: pl.DataFrame, unit: str) -> AnyChart:
    """Draw what one unit cost in each month; a month without a figure is a gap.

    Args:
        frame: Columns ``month`` (date) and ``pusd`` (pUSD a unit as a float; null where unknown).
        unit: What it is of, in the singular.

    Returns:
        The chart; USD a unit.

    Raises:
        TenfoldError: A column is missing, or no month has a figure.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("unit cost")
    check(frame, "unit cost", ["month", "pusd"])
    known = frame.filter(pl.col("pusd").is_not_null())
    check(known, "unit cost", [], least=1)
    rows = frame.sort("month").select(pl.col("month").dt.strftime("%Y-%m"), (pl.col("pusd") / 1e12).alias("usd"))
    top = highest(rows["usd"].drop_nulls())
    base = alt.Chart(rows, width=WIDTH, height=200).encode(
        x=alt.X("month:O", title=None, axis=alt.Axis(grid=False)),
        y=alt.Y(
            "usd:Q",
            title=f"USD per {unit}",
            axis=alt.Axis(format=usd_format(top) if top >= _CENTS else "$~g", tickCount=5),
            scale=alt.Scale(zero=True),
        ),
        tooltip=["month:O", alt.Tooltip("usd:Q", format="$,.6f")],
    )
    colour = CATEGORY_COLOURS[0]
    return dressed(
        base.mark_line(color=colour, strokeWidth=2) + base.mark_point(color=colour, filled=True, size=60, opacity=1)
    )


def context_growth(frame: pl.DataFrame) -> AnyChart:
    """Draw the input tokens of a request by the turn of its session.

    Args:
        frame: Columns ``turn`` (a number or a range, in order), ``tokens`` (float) and ``requests``.

    Returns:
        The chart; tokens a request.

    Raises:
        TenfoldError: A column is missing, or there is no row.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("context growth")
    check(frame, "context growth", ["turn", "tokens", "requests"], least=1)
    bars = (
        alt.Chart(frame.select("turn", "tokens", "requests"), width=WIDTH, height=200)
        .mark_bar(color=CATEGORY_COLOURS[0])
        .encode(
            x=alt.X("turn:O", sort=frame["turn"].to_list(), title="turn of the session", axis=alt.Axis(grid=False)),
            y=alt.Y("tokens:Q", title="input tokens per request", axis=alt.Axis(format="~s", tickCount=5)),
            tooltip=["turn:O", alt.Tooltip("tokens:Q", format=",.0f"), alt.Tooltip("requests:Q", format=",")],
        )
    )
    return dressed(bars)


def waste_bars(frame: pl.DataFrame) -> AnyChart:
    """Draw what was wasted by cause, each request once; a ceiling in grey.

    Args:
        frame: Columns ``cause``, ``pusd`` and ``label`` (``exact`` or ``ceiling``), in order.

    Returns:
        The chart; USD over the window.

    Raises:
        TenfoldError: A column is missing, or there is no row.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("waste")
    check(frame, "waste", ["cause", "pusd", "label"], least=1)
    rows = frame.select(
        "cause",
        "label",
        in_usd(frame["pusd"]).alias("usd"),
        pl.Series("text", [shown(int(pusd)) for pusd in frame["pusd"]], dtype=pl.String),
    )
    used = [label for label in _LABELS if label in set(rows["label"])]
    y = alt.Y("cause:N", sort=rows["cause"].to_list(), title=None)
    base = alt.Chart(rows, width=WIDTH, height=alt.Step(32))
    bars = base.mark_bar().encode(
        y=y,
        x=alt.X(
            "usd:Q",
            title="USD over the window",
            axis=alt.Axis(format=usd_format(highest(rows["usd"])), tickCount=6, grid=False),
        ),
        color=alt.Color(
            "label:N",
            scale=alt.Scale(domain=used, range=[_LABELS[label] for label in used]),
            # exact is what readers take it for; a ceiling must be told from it
            legend=alt.Undefined if "ceiling" in used else None,
        ),
        tooltip=["cause:N", "label:N", alt.Tooltip("usd:Q", format="$,.2f")],
    )
    texts = base.mark_text(align="left", dx=5).encode(y=y, x="usd:Q", text="text:N")
    return dressed(bars + texts)
