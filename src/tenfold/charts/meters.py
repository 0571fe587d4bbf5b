"""Cost by meter: one bar for the bill, or a stacked bar for each value of a dimension."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import polars as pl

from tenfold.charts.theme import (
    METER_COLOURS,
    METER_LABELS,
    PAPER,
    WIDTH,
    AnyChart,
    altair,
    check,
    dressed,
    highest,
    in_usd,
    lumped,
    usd_format,
)
from tenfold.display import nothing_priced
from tenfold.money import shown

_COUNTS = ("requests", "unpriced_requests")


def composition(frame: pl.DataFrame, dimension: str, *, top: int = 12) -> AnyChart:
    """Draw cost by a dimension, stacked by meter, dearest on top.

    Args:
        frame: Columns ``dimension``, ``cost_pusd`` and ``<meter>_pusd``, as in ``Composition.frame``; with ``requests``
            and ``unpriced_requests`` a bar without any price says so.
        dimension: What the bars are.
        top: Bars to draw; the rest becomes one.

    Returns:
        The chart; cost in USD.

    Raises:
        TenfoldError: A column is missing.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("composition")
    meters = [name for name in METER_COLOURS if f"{name}_pusd" in frame.columns]
    check(frame, "composition", [dimension, "cost_pusd"])
    sums = ["cost_pusd", *(f"{name}_pusd" for name in meters)]
    counts = [name for name in _COUNTS if name in frame.columns]
    kept, order = lumped(frame.select(dimension, *sums, *counts), dimension, [*sums, *counts], top)
    parts = kept.unpivot(
        on=[f"{name}_pusd" for name in meters], index=dimension, variable_name="meter", value_name="pusd"
    )
    parts = parts.with_columns(pl.col("meter").str.strip_suffix("_pusd")).filter(pl.col("pusd") != 0)
    used = [name for name in meters if name in set(parts["meter"])]
    parts = parts.select(
        pl.col(dimension).alias("name"),
        pl.col("meter").replace(METER_LABELS),
        in_usd(parts["pusd"]).alias("usd"),
        pl.col("meter").replace_strict({name: n for n, name in enumerate(used)}, return_dtype=pl.Int64).alias("rank"),
    )
    totals = kept.select(
        pl.col(dimension).alias("name"),
        in_usd(kept["cost_pusd"]).alias("usd"),
        pl.Series("label", [_label(row) for row in kept.rows(named=True)], dtype=pl.String),
    )
    # thinner segments than this would be nothing but their own edge
    visible = highest(totals["usd"]) / WIDTH * 4
    y = alt.Y("name:N", sort=order, title=None)
    bars = (
        alt.Chart(parts, width=WIDTH, height=alt.Step(30))
        .mark_bar()
        .encode(
            y=y,
            stroke=alt.condition(alt.datum.usd > visible, alt.value(PAPER), alt.value(None)),
            x=alt.X(
                "usd:Q",
                title="cost (USD)",
                # no grid: it would cross the amounts that are written at the bars' ends
                axis=alt.Axis(format=usd_format(highest(totals["usd"])), tickCount=6, grid=False),
            ),
            color=_colour(alt, used),
            order=alt.Order("rank:Q"),
            tooltip=["name:N", "meter:N", alt.Tooltip("usd:Q", format="$,.2f")],
        )
    )
    labels = alt.Chart(totals).mark_text(align="left", dx=5).encode(y=y, x="usd:Q", text="label:N")
    return dressed(bars + labels)


def meter_shares(frame: pl.DataFrame) -> AnyChart:
    """Draw the whole bill as one bar, cut by meter.

    Args:
        frame: Columns ``meter`` and ``cost_pusd``.

    Returns:
        The chart; share of cost.

    Raises:
        TenfoldError: A column is missing.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("meter share")
    check(frame, "meter share", ["meter", "cost_pusd"])
    used = [name for name in METER_COLOURS if name in set(frame["meter"])]
    usd = in_usd(frame["cost_pusd"])
    total = usd.sum() or 1.0
    parts = frame.select(
        pl.col("meter").replace_strict({name: n for n, name in enumerate(used)}, return_dtype=pl.Int64).alias("rank"),
        pl.col("meter").replace(METER_LABELS),
        (usd / total).alias("share"),
    ).sort("rank")
    parts = parts.with_columns(middle=pl.col("share").cum_sum() - pl.col("share") / 2)
    x = alt.X(
        "share:Q", title="share of cost", axis=alt.Axis(format=".0%", tickCount=5), scale=alt.Scale(domain=[0, 1])
    )
    bars = (
        alt.Chart(parts, width=WIDTH, height=36)
        .mark_bar(stroke=PAPER, strokeWidth=1)
        .encode(x=x, color=_colour(alt, used), order=alt.Order("rank:Q"))
    )
    # Black on these fills is at least 3:1 (large or bold text); white is not.
    wide = alt.Chart(parts.filter(pl.col("share") >= 0.06)).mark_text(color="#000", fontWeight="bold")
    return dressed(bars + wide.encode(x="middle:Q", text=alt.Text("share:Q", format=".0%")))


def _label(row: dict[str, Any]) -> str:
    if nothing_priced(row.get("requests", 0), row.get("unpriced_requests", 0)):
        return "not priced"
    return shown(int(row["cost_pusd"]))


def _colour(alt: ModuleType, used: list[str]) -> object:
    scale = alt.Scale(domain=[METER_LABELS[name] for name in used], range=[METER_COLOURS[name] for name in used])
    return alt.Color("meter:N", scale=scale, legend=alt.Legend(columns=6))
