"""The tail of latency in two windows: how its quantiles moved, and which causes moved them."""

from __future__ import annotations

from math import log
from textwrap import shorten
from types import ModuleType
from typing import Any

import polars as pl

from tenfold.charts.theme import INK, OTHER_COLOUR, WIDTH, AnyChart, altair, check, dressed, highest, titled
from tenfold.display import Unit, number, percent, unit_of_ms

NAMES = {"ttft": "TTFT", "tpot": "TPOT", "output": "output", "e2e": "E2E"}
# What moved the tail: towards slower, towards faster; the ends are blues.
_PARTS = {
    "before": "#0072B2",
    "adds": "#D55E00",
    "takes off": "#009E73",
    "unexplained": OTHER_COLOUR,
    "after": "#56B4E9",
}
_LINE, _POINT = "#0072B2", "#D55E00"
# Quantiles whose names stand beside their points.
_NAMED = (0.5, 0.9, 0.99)
_GAP = 60
# Names of points that are nearer than this, in px, would cover each other.
_NEAR = 24
_STEP = 30
# Characters of a cause's name.
_LABEL = 56
# Width of a character of it, what names may take beside bars of full width, and bars at their narrowest, in px.
_CHARACTER, _NAMES_ROOM, _NARROWEST = 6, 90, 380


def unit_of(component: str, values: pl.Series) -> Unit:
    """Choose the unit of a component's values.

    Args:
        component: ttft, tpot, output or e2e.
        values: In ms, tokens of output.

    Returns:
        The unit.
    """
    return Unit("tokens", 1.0, 0) if component == "output" else unit_of_ms(highest(values.drop_nulls()))


def quantile_shift(frame: pl.DataFrame, *, quantile: float = 0.99, title: str = "") -> AnyChart:
    """Draw each quantile after against the same before, a panel a component: on the diagonal nothing changed.

    Args:
        frame: Columns ``component`` (ttft, tpot, output, e2e), ``quantile``, ``before``, ``after``; ms, tokens of
            output.
        quantile: The quantile that the message is about.
        title: What it says; by default the component that moved most, at that quantile and at the median.

    Returns:
        The chart; both axes logarithmic.

    Raises:
        TenfoldError: A column is missing, or nothing is above zero.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("quantile shift")
    check(frame, "quantile shift", ["component", "quantile", "before", "after"])
    rows = frame.filter((pl.col("before") > 0) & (pl.col("after") > 0))
    check(rows, "quantile shift", [], least=1)
    names: list[str] = rows["component"].unique(maintain_order=True).to_list()
    side = min(260, (WIDTH - (len(names) - 1) * _GAP) // len(names))
    panels = [_quantiles(alt, rows.filter(component=name), name, side) for name in names]
    chart = panels[0] if len(panels) == 1 else alt.hconcat(*panels, spacing=22)
    return dressed(titled(chart, title or _shift_title(rows, quantile)))


def tail_waterfall(frame: pl.DataFrame, *, quantile: str = "p99", title: str = "") -> AnyChart:
    """Draw what each cause did to the tail, from before to after, a panel a component that moved.

    Args:
        frame: Columns ``component``, ``label``, ``kind`` (start, cause, unexplained, end), ``from``, ``to`` in order;
            ms, tokens of output.
        quantile: What the tail is called.
        title: What it says; by default the largest part of the first component's shift.

    Returns:
        The chart; every bar begins where the one above it ends.

    Raises:
        TenfoldError: A column is missing, or there is no row.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("tail waterfall")
    check(frame, "tail waterfall", ["component", "label", "kind", "from", "to"], least=1)
    change = pl.col("to") - pl.col("from")
    part = (
        pl.when(kind="start").then(pl.lit("before"))
        .when(kind="end").then(pl.lit("after"))
        .when(kind="unexplained").then(pl.lit("unexplained"))
        .when(change >= 0).then(pl.lit("adds")).otherwise(pl.lit("takes off"))
    )  # fmt: skip
    rows = frame.with_columns(part=part, change=change, right=pl.max_horizontal("from", "to"))
    groups = rows.group_by("component", maintain_order=True)
    used = [name for name in _PARTS if name in set(rows["part"])]
    panels = [_bars(alt, group, str(name), quantile, used) for (name,), group in groups]
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels, spacing=40)
    return dressed(titled(chart, title or _waterfall_title(rows, quantile)))


def _quantiles(alt: ModuleType, rows: pl.DataFrame, component: str, side: int) -> Any:  # noqa: ANN401 -- a chart of Altair
    both = pl.concat([rows["before"], rows["after"]])
    unit = unit_of(component, both)
    scaled = rows.with_columns(pl.col("before", "after") * unit.scale)
    low, high = (float(end) * unit.scale for end in (min(both) / 1.35, max(both) * 1.35))
    axis = alt.Axis(values=_ticks(low, high), format=".2~s" if low >= 1 else ".2~r")
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    x = alt.X("before:Q", title=f"before, {unit.name}", axis=axis, scale=scale)
    y = alt.Y("after:Q", title=f"{NAMES.get(component, component)} after, {unit.name}", axis=axis, scale=scale)
    tips = [
        alt.Tooltip("quantile:Q", format=".1%"),
        alt.Tooltip("before:Q", format=",.3~r"),
        alt.Tooltip("after:Q", format=",.3~r"),
    ]
    named = scaled.filter(pl.col("quantile").is_in(_NAMED)).sort("quantile", descending=True)
    # a name is left out where the next higher one stands in its place
    ends = pl.max_horizontal(
        *((pl.col(end).log().diff().abs() * side / log(high / low)) for end in ("before", "after"))
    )
    texts = (
        pl.when((ends < _NEAR).fill_null(value=False))
        .then(pl.lit(""))
        .otherwise(pl.format("p{}", (pl.col("quantile") * 100).round(1).cast(pl.Int64)))
    )
    named = named.with_columns(text=texts)
    above = pl.col("after") >= pl.col("before")
    base = alt.Chart(scaled, width=side, height=side).encode(x=x, y=y)
    diagonal = alt.Chart(pl.DataFrame({"before": [low, high], "after": [low, high]}))
    # names stand on the side away from the diagonal
    sides = (
        (above, {"align": "right", "baseline": "bottom", "dx": -7, "dy": -1}),
        (~above, {"align": "left", "baseline": "top", "dx": 7, "dy": 2}),
    )
    return alt.layer(
        diagonal.mark_line(color=INK, strokeDash=[4, 3], strokeWidth=1).encode(x=x, y=y),
        base.mark_line(color=_LINE, strokeWidth=2),
        base.mark_circle(color=_LINE, size=24, opacity=1).encode(tooltip=tips),
        alt.Chart(named).mark_circle(color=_POINT, size=60, opacity=1).encode(x=x, y=y, tooltip=tips),
        *(
            alt.Chart(named.filter(side)).mark_text(**where).encode(x=x, y=y, text="text:N")
            for side, where in sides
        ),
    )  # fmt: skip


def _bars(alt: ModuleType, rows: pl.DataFrame, component: str, quantile: str, used: list[str]) -> Any:  # noqa: ANN401 -- a chart of Altair
    unit = unit_of(component, rows["right"])
    texts = [_amount(row, unit) for row in rows.rows(named=True)]
    names = [shorten(label, _LABEL, placeholder=" …") for label in rows["label"]]
    scaled = rows.with_columns(
        pl.col("from", "to", "right") * unit.scale,
        pl.Series("text", texts, dtype=pl.String),
        pl.Series("label", names, dtype=pl.String),
    )
    order: list[str] = scaled["label"].to_list()
    y = alt.Y(
        "label:N",
        sort=order,
        title=None,
        axis=alt.Axis(labelLimit=360),
        scale=alt.Scale(domain=order, paddingInner=0.25, paddingOuter=0.1),
    )
    x = alt.X(
        "from:Q",
        title=f"{quantile} {NAMES.get(component, component)}, {unit.name}",
        axis=alt.Axis(tickCount=6, grid=False, format=",~r"),
        scale=alt.Scale(domainMin=0, nice=True),
    )
    # long names take room from the bars, not from the page
    room = max(len(name) for name in names) * _CHARACTER
    base = alt.Chart(scaled, width=max(WIDTH - max(room - _NAMES_ROOM, 0), _NARROWEST), height=alt.Step(_STEP))
    bars = base.mark_bar().encode(
        y=y, x=x, x2="to:Q",
        color=alt.Color(
            "part:N",
            scale=alt.Scale(domain=used, range=[_PARTS[name] for name in used]),
            legend=alt.Legend(columns=len(used)),
        ),
        tooltip=["label:N", alt.Tooltip("text:N", title=unit.name)],
    )  # fmt: skip
    steps = scaled.select("label", pl.col("to").alias("at"), pl.col("label").shift(-1).alias("next")).drop_nulls()
    # a thin line leads from each bar's end to the next
    links = (
        alt.Chart(steps)
        .mark_rule(color=INK, strokeWidth=1, opacity=0.6)
        .encode(x="at:Q", y=alt.Y("label:N", sort=order), y2="next:N")
    )
    labels = base.mark_text(align="left", dx=6).encode(y=y, x="right:Q", text="text:N")
    return alt.layer(links, bars, labels)


def _amount(row: dict[str, Any], unit: Unit) -> str:
    if row["kind"] in {"start", "end"}:
        return f"{unit.text(row['to'])} {unit.name}"
    change = row["change"]
    text = unit.text(abs(change))
    sign = "" if not text.strip("0.") else "+" if change >= 0 else "−"
    return f"{sign}{text}"


def _ticks(low: float, high: float) -> list[float]:
    """Choose three to five ticks of a logarithmic axis: round ones, closer together where the axis is short."""
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8), tuple(n / 10 for n in range(10, 100))):
        found = [step * 10.0**power for power in range(-4, 9) for step in steps if low <= step * 10.0**power <= high]
        if len(found) >= 3:
            return found[:: (len(found) + 4) // 5]
    return [low, high]


def _shift_title(rows: pl.DataFrame, quantile: float) -> str:
    moved = rows.with_columns(times=pl.col("after") / pl.col("before"))
    at = moved.filter(((pl.col("quantile") - quantile).abs() < 1e-9) & (pl.col("component") != "e2e"))
    if at.is_empty():
        return "Quantiles after against quantiles before"
    most = at.sort(pl.col("times").log().abs(), descending=True, maintain_order=True).row(0, named=True)
    name, called = NAMES.get(most["component"], most["component"]), f"p{quantile * 100:g}"
    unit = unit_of(most["component"], pl.Series([most["before"], most["after"]]))
    ends = f"from {unit.text(most['before'])} to {unit.text(most['after'])} {unit.name}"
    said = f"{called} {name} went {ends} ({number(most['times'], 1)}x)"
    median = moved.filter((pl.col("component") == most["component"]) & (pl.col("quantile") == 0.5))
    return said if median.is_empty() else f"{said}, its median {number(median['times'][0], 1)}x"


def _waterfall_title(rows: pl.DataFrame, quantile: str) -> str:
    component = str(rows["component"][0])
    first = rows.filter(component=component)
    ends = {kind: first.filter(kind=kind) for kind in ("start", "end")}
    name = f"{quantile} {NAMES.get(component, component)}"
    if any(one.is_empty() for one in ends.values()):
        return name
    change = float(ends["end"]["to"][0]) - float(ends["start"]["to"][0])
    unit = unit_of(component, first["right"])
    said = f"{name} {'rose' if change >= 0 else 'fell'} by {unit.text(abs(change))} {unit.name}"
    parts = first.filter(pl.col("kind").is_in(["cause", "unexplained"]))
    if parts.is_empty() or not change:
        return said
    largest = parts.sort(pl.col("change") / change, descending=True, maintain_order=True).row(0, named=True)
    return f"{said}, {percent(largest['change'] / change)} of it: {largest['label']}"
