"""Spend over time."""

from __future__ import annotations

import polars as pl

from tenfold.charts.theme import (
    INK,
    METER_COLOURS,
    METER_LABELS,
    WIDTH,
    AnyChart,
    altair,
    category_colours,
    check,
    dressed,
    highest,
    in_usd,
    lumped,
    time_axis,
    usd_format,
)


def spend_per_day(frame: pl.DataFrame, by: str, *, changes: pl.DataFrame | None = None, top: int = 6) -> AnyChart:
    """Draw spend per day as stacked columns, with price changes marked.

    Args:
        frame: Columns ``day``, ``by``, ``cost_pusd``.
        by: What is stacked: ``meter``, ``model`` or another dimension.
        changes: Columns ``day`` and ``mark``: a dashed line with a short mark on top.
        top: Values to keep apart; the rest becomes one.

    Returns:
        The chart; USD per day.

    Raises:
        TenfoldError: A column is missing.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("spend per day")
    check(frame, "spend per day", ["day", by, "cost_pusd"])
    dated = frame.select("day", by, "cost_pusd").filter(pl.col("day").is_not_null())
    kept, order = lumped(dated, by, ["cost_pusd"], len(METER_COLOURS) if by == "meter" else top)
    if by == "meter":
        order = [name for name in METER_COLOURS if name in order]
    colours = [METER_COLOURS[name] for name in order] if by == "meter" else category_colours(order)
    names = [METER_LABELS.get(name, name) if by == "meter" else name for name in order]
    rows = kept.select(
        pl.col("day").cast(pl.String),
        pl.col(by).replace(dict(zip(order, names, strict=True))).alias("name"),
        in_usd(kept["cost_pusd"]).alias("usd"),
        pl.col(by).replace_strict({name: n for n, name in enumerate(order)}, return_dtype=pl.Int64).alias("rank"),
    )
    check(rows, "spend per day", [])
    top_usd = highest(rows.group_by("day").agg(pl.sum("usd"))["usd"])
    bars = (
        alt.Chart(rows, width=WIDTH, height=220)
        .mark_bar()
        .encode(
            x=alt.X(
                "yearmonthdate(day):T",
                title=None,
                axis=time_axis(alt, kept["day"].cast(pl.Date)),
                bandPosition=0.5,
            ),
            y=alt.Y("usd:Q", title="USD per day", axis=alt.Axis(format=usd_format(top_usd), tickCount=5)),
            color=alt.Color("name:N", scale=alt.Scale(domain=names, range=colours), legend=alt.Legend(offset=26)),
            order=alt.Order("rank:Q"),
            tooltip=["day:T", "name:N", alt.Tooltip("usd:Q", format="$,.2f")],
        )
    )
    if changes is None or not len(changes):
        return dressed(bars)
    check(changes, "spend per day", ["day", "mark"])
    marks = alt.Chart(changes.select(pl.col("day").cast(pl.String), "mark"))
    rules = marks.mark_rule(color=INK, strokeDash=[4, 3]).encode(x="yearmonthdate(day):T")
    texts = marks.mark_text(align="left", baseline="top", dx=4, fontWeight="bold").encode(
        x="yearmonthdate(day):T", y=alt.value(0), text="mark:N"
    )
    return dressed(bars + rules + texts)
