"""Months ahead as ranges, beside what was spent and what the budget is."""

from __future__ import annotations

import polars as pl

from tenfold.charts.theme import INK, WIDTH, AnyChart, altair, check, dressed, highest, in_usd, usd_format

_SPENT, _RANGE, _BUDGET = "#0072B2", "#56B4E9", "#D55E00"
_BAR = 34
_COLUMNS = ("month", "spent_pusd", "low_pusd", "mid_pusd", "high_pusd", "budget_pusd")


def forecast_months(frame: pl.DataFrame) -> AnyChart:
    """Draw months: spent as a bar, its expected end as a range with its middle, the budget as a mark.

    Args:
        frame: Columns ``month`` (text, in order), ``spent_pusd``, ``low_pusd``, ``mid_pusd``, ``high_pusd`` (of the
            month's end; null for a month that is over, or without an interval), ``budget_pusd`` (null without one).

    Returns:
        The chart; USD a month.

    Raises:
        TenfoldError: A column is missing, or there is no month.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("forecast")
    check(frame, "forecast", _COLUMNS, least=1)
    names = [name.removesuffix("_pusd") for name in _COLUMNS[1:]]
    money = [
        pl.when(pl.col(f"{name}_pusd").is_not_null()).then(in_usd(frame[f"{name}_pusd"]).alias(name)).alias(name)
        for name in names
    ]
    rows = frame.with_columns(*money).select("month", *names)
    keys = ["spent", "forecast, low to high", "middle", "budget"]
    top = highest(pl.concat([rows[name].drop_nulls() for name in names]))
    base = alt.Chart(rows, width=WIDTH, height=240)
    x = alt.X("month:N", sort=frame["month"].to_list(), title=None, axis=alt.Axis(grid=False))
    colours = dict(zip(keys, (_SPENT, _RANGE, INK, _BUDGET), strict=True))
    told = dict(zip(keys, ("spent", "low", "mid", "budget"), strict=True))
    # what there is none of has no layer, as Vega warns of one without an extent, and no place in the legend
    used = [key for key in keys if rows[told[key]].drop_nulls().len()]
    scale = alt.Scale(domain=used, range=[colours[key] for key in used])

    def keyed(text: str) -> object:
        return alt.Color(f"{text}:N", scale=scale, legend=alt.Legend(offset=26))

    def tip(name: str) -> object:
        return alt.Tooltip(f"{name}:Q", format="$,.2f")

    y_axis = alt.Axis(format=usd_format(top), tickCount=5)
    spent = (
        base.transform_calculate(key=f"'{keys[0]}'")
        .mark_bar(size=_BAR)
        .encode(
            x=x,
            y=alt.Y("spent:Q", title="USD a month", axis=y_axis),
            color=keyed("key"),
            tooltip=["month:N", tip("spent")],
        )
    )
    ranges = (
        base.transform_filter("isValid(datum.low)")
        .transform_calculate(key=f"'{keys[1]}'")
        .mark_bar(size=_BAR / 2, opacity=0.75)
        .encode(
            x=x,
            y=alt.Y("low:Q"),
            y2="high:Q",
            color=keyed("key"),
            tooltip=["month:N", tip("low"), tip("mid"), tip("high")],
        )
    )
    middles = (
        base.transform_filter("isValid(datum.mid)")
        .transform_calculate(key=f"'{keys[2]}'")
        .mark_tick(thickness=2, size=_BAR, orient="horizontal")
        .encode(x=x, y=alt.Y("mid:Q"), color=keyed("key"))
    )
    budgets = (
        base.transform_filter("isValid(datum.budget)")
        .transform_calculate(key=f"'{keys[3]}'")
        .mark_tick(thickness=3, size=_BAR * 1.5, orient="horizontal")
        .encode(x=x, y=alt.Y("budget:Q"), color=keyed("key"), tooltip=["month:N", tip("budget")])
    )
    layers = zip((spent, ranges, middles, budgets), keys, strict=True)
    return dressed(alt.layer(*(layer for layer, key in layers if key in used)))
