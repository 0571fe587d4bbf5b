"""Daily cost with what was expected of it, and the days that stand out."""

from __future__ import annotations

import polars as pl

from tenfold.charts.theme import WIDTH, AnyChart, altair, check, dressed, highest, in_usd, time_axis, usd_format

_BAND, _COST, _MARK = "#56B4E9", "#0072B2", "#D55E00"
_HEIGHT = 120
# Share of days whose band is to be seen whole, room above it, and how many times the dearest day the axis goes at most.
_USUAL, _ROOM, _MOST = 0.9, 1.1, 20.0
# From this many times the dearest day on, the axis is by roots: on an even one the line would lie flat.
_ROOTS = 2.0
_COLUMNS = ("name", "day", "cost_pusd", "low_pusd", "high_pusd", "is_marked")


def anomaly_days(frame: pl.DataFrame) -> AnyChart:
    """Draw daily cost as lines over the band that was expected, marked days on top, one panel a series.

    The upper end of the band is in sight on nine days of ten; where it lies far above the line, the axis is by roots.

    Args:
        frame: Columns ``name`` (panels in the order of their first row), ``day``, ``cost_pusd``, ``low_pusd``,
            ``high_pusd`` (null where a day could not be judged), ``is_marked``.

    Returns:
        The chart; USD per day, every panel on its own scale.

    Raises:
        TenfoldError: A column is missing, or there is no day.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("anomalies")
    check(frame, "anomalies", _COLUMNS, least=1)
    known = pl.col("high_pusd").is_not_null()
    rows = frame.select(
        "name",
        pl.col("day").cast(pl.String),
        in_usd(frame["cost_pusd"]).alias("usd"),
        pl.when(known).then(in_usd(frame["low_pusd"])).alias("low"),
        pl.when(known).then(in_usd(frame["high_pusd"])).alias("high"),
        "is_marked",
    )
    keys = ["cost", "expected", "stands out"]
    scale = alt.Scale(domain=keys, range=[_COST, _BAND, _MARK])
    names = rows["name"].unique(maintain_order=True).to_list()
    colour = alt.Color("key:N", scale=scale, legend=alt.Legend(symbolOpacity=1))
    panels: list[AnyChart] = []
    for name in names:
        own = rows.filter(name=name)
        axis = alt.Axis(format=usd_format(highest(own["usd"])), tickCount=3)
        base = alt.Chart(own, width=WIDTH, height=_HEIGHT)
        x = alt.X("yearmonthdate(day):T", title=None, axis=time_axis(alt, frame["day"].cast(pl.Date)))
        # room for the band on a usual day; one far above any cost would flatten the line
        dearest = max(highest(own["usd"]), 1e-12)
        usual = own["high"].quantile(_USUAL) or 0.0
        limit = min(max(_ROOM * dearest, _ROOM * usual), _MOST * dearest)
        is_even = limit <= _ROOTS * dearest
        y = alt.Scale(type="linear" if is_even else "sqrt", domain=[0, limit], clamp=True)
        title = "USD per day" if is_even else "USD per day (axis by roots)"
        band = (
            base.transform_filter("isValid(datum.high)")
            .transform_calculate(key=f"'{keys[1]}'")
            .mark_area(opacity=0.3, clip=True)
            .encode(
                x=x,
                y=alt.Y("low:Q", scale=y, title=title, axis=axis),
                y2="high:Q",
                color=colour,
            )
        )
        line = (
            base.transform_calculate(key=f"'{keys[0]}'")
            .mark_line(strokeWidth=1.5)
            .encode(x=x, y=alt.Y("usd:Q", scale=y), color=colour)
        )
        marks = (
            base.transform_filter("datum.is_marked")
            .transform_calculate(key=f"'{keys[2]}'")
            .mark_point(filled=True, size=45, opacity=1)
            .encode(
                x=x,
                y=alt.Y("usd:Q", scale=y),
                color=colour,
                tooltip=["day:T", alt.Tooltip("usd:Q", format="$,.2f"), alt.Tooltip("high:Q", format="$,.2f")],
            )
        )
        panels.append((band + line + marks).properties(title=alt.Title(name, fontSize=12, offset=10, frame="group")))
    return dressed(alt.vconcat(*panels))
