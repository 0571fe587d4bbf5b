"""Choices of self-hosted serving: tokens a step, and GPUs of one's own against an API."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import polars as pl

from tenfold.charts.theme import INK, WIDTH, AnyChart, altair, check, dressed, highest, titled
from tenfold.display import number

_STALLS = {"itl_short_max_ms": "longest", "itl_short_p99_ms": "99th percentile"}
_STALL_COLOURS = {"longest": "#D55E00", "99th percentile": "#E69F00"}
_WAIT_COLOUR = "#0072B2"
_STALL_HEIGHT = 160
_WAIT_HEIGHT = 110
_CAN = "break-even"
_CANNOT = "more than these GPUs can serve"
_EVEN = {_CAN: ("#0072B2", "circle"), _CANNOT: ("#D55E00", "triangle-up")}
# Ranges wider than this have a logarithmic axis.
_WIDE = 5.0
# Room on each side of the ranges, as a share of the axis between them.
_MARGIN = 0.28


def token_budgets(frame: pl.DataFrame, *, recommended: int | None = None, title: str = "") -> AnyChart:
    """Draw what a budget of tokens a step does: to stalls of short requests, and to the wait of long ones.

    Args:
        frame: Columns ``budget``, ``itl_short_p99_ms``, ``ttft_long_p95_ms``, one row a budget; with
            ``itl_short_max_ms`` the longest stall too, which a percentile hides where few steps hold a prompt.
        recommended: The budget to mark.
        title: What it says; by default what the largest budget does against the smallest.

    Returns:
        The chart; ms, one panel each over the same budgets.

    Raises:
        TenfoldError: A column is missing, or there is no row.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("token budgets")
    check(frame, "token budgets", ["budget", "itl_short_p99_ms", "ttft_long_p95_ms"], least=1)
    rows = frame.sort("budget")
    stalls = pl.concat(
        rows.select("budget", pl.col(column).alias("ms"), pl.lit(kind).alias("kind")).drop_nulls()
        for column, kind in _STALLS.items()
        if column in rows.columns
    )
    waits = rows.select("budget", pl.col("ttft_long_p95_ms").alias("ms")).drop_nulls()
    budgets: list[int] = rows["budget"].to_list()
    panels = [
        _stall_panel(alt, stalls, budgets, recommended),
        _wait_panel(alt, waits, budgets, recommended),
    ]
    return dressed(titled(alt.vconcat(*panels, spacing=34), title or _budgets_title(rows)))


def break_even(
    frame: pl.DataFrame, *, stated: float, pays: bool = True, measured: float | None = None, title: str = ""
) -> AnyChart:
    """Draw how far the break-even moves, a bar for each thing that is changed.

    Args:
        frame: Columns ``what``, ``value``, ``tokens_per_month``, ``is_reachable``: the break-even as things change.
        stated: The break-even with nothing changed, in tokens a month.
        pays: Whether the GPUs could serve that many.
        measured: The log's own tokens a month, to compare; None where it is not projected.
        title: What it says; by default from where to where the break-even goes.

    Returns:
        The chart; millions of tokens a month, the widest range on top. Its axis is logarithmic where ends are more than
        five times apart.

    Raises:
        TenfoldError: A column is missing, or there is no row.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("break even")
    check(frame, "break even", ["what", "value", "tokens_per_month", "is_reachable"], least=1)
    rows = frame.select(
        "what",
        "value",
        (pl.col("tokens_per_month") / 1e6).alias("millions"),
        pl.when("is_reachable").then(pl.lit(_CAN)).otherwise(pl.lit(_CANNOT)).alias("kind"),
    )
    mid = stated / 1e6
    ranges = rows.group_by("what", maintain_order=True).agg(
        pl.min("millions").alias("low"),
        pl.max("millions").alias("high"),
        pl.col("value").get(pl.col("millions").arg_min()).alias("at_low"),
        pl.col("value").get(pl.col("millions").arg_max()).alias("at_high"),
    )
    ranges = ranges.sort(pl.col("high") / pl.col("low"), descending=True, maintain_order=True)
    ends = [*rows["millions"], mid, *([measured / 1e6] if measured else [])]
    x = _millions_axis(alt, min(ends), max(ends))
    y = alt.Y("what:N", sort=ranges["what"].to_list(), title=None)
    used = [kind for kind in _EVEN if kind in set(rows["kind"])]
    colours, shapes = ([_EVEN[kind][place] for kind in used] for place in (0, 1))
    legend = alt.Legend(offset=26, symbolStrokeWidth=2)
    colour = alt.Color("kind:N", scale=alt.Scale(domain=used, range=colours), legend=legend)
    is_moved = pl.col("high") > pl.col("low")
    moved, unmoved = alt.Chart(ranges.filter(is_moved)), alt.Chart(ranges.filter(~is_moved))
    layers = [
        alt.Chart(ranges, width=WIDTH, height=alt.Step(34))
        .mark_bar(size=8, color=_EVEN[_CAN][0], opacity=0.35)
        .encode(y=y, x=x, x2="high:Q"),
        *_marked(alt, mid, "as stated", [], is_left=measured is not None and mid < measured / 1e6),
        *([] if not measured else _marked(alt, measured / 1e6, "this log", [4, 3], is_left=measured / 1e6 <= mid)),
        alt.Chart(rows)
        .mark_point(size=70, filled=False, strokeWidth=2, opacity=1)
        .encode(
            y=y,
            x="millions:Q",
            color=colour,
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=used, range=shapes), legend=legend),
            tooltip=["what:N", "value:N", alt.Tooltip("millions:Q", format=",.0f")],
        ),
        unmoved.mark_text(align="left", dx=9).encode(y=y, x="high:Q", text=alt.value("no change")),
        moved.mark_text(align="right", dx=-9).encode(y=y, x="low:Q", text="at_low:N"),
        moved.mark_text(align="left", dx=9).encode(y=y, x="high:Q", text="at_high:N"),
    ]
    return dressed(titled(alt.layer(*layers), title or _even_title(rows, mid, measured, pays=pays)))


def _stall_panel(alt: ModuleType, rows: pl.DataFrame, budgets: list[int], recommended: int | None) -> Any:  # noqa: ANN401 -- a chart
    """Draw both measures of stalls on a logarithmic axis: the longest is often fifty times the percentile."""
    low, high = min(rows["ms"], default=1.0) / 2.6, highest(rows["ms"]) * 1.7
    ticks = [step * 10**power for power in range(7) for step in (1, 2, 5) if low <= step * 10**power <= high]
    used = [kind for kind in _STALLS.values() if kind in set(rows["kind"])]
    base = alt.Chart(rows, width=WIDTH, height=_STALL_HEIGHT).encode(
        x=_budget_axis(alt, budgets),
        y=alt.Y(
            "ms:Q",
            title="ms between tokens of short requests, logarithmic",
            axis=alt.Axis(values=ticks, format=",d"),
            scale=alt.Scale(type="log", domain=[low, high], nice=False),
        ),
    )
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=used, range=[_STALL_COLOURS[kind] for kind in used]),
    )
    layers = [
        base.mark_line(strokeWidth=2).encode(color=colour),
        base.mark_circle(size=55, opacity=1).encode(color=colour),
    ]
    for kind, side in zip(used, (-12, 13), strict=False):
        of_kind = alt.FieldEqualPredicate(field="kind", equal=kind)
        layers.append(base.transform_filter(of_kind).mark_text(dy=side).encode(text=alt.Text("ms:Q", format=",.0f")))
    return alt.layer(*_recommended(alt, recommended, budgets, _STALL_HEIGHT), *layers)


def _wait_panel(alt: ModuleType, rows: pl.DataFrame, budgets: list[int], recommended: int | None) -> Any:  # noqa: ANN401 -- a chart
    base = alt.Chart(rows, width=WIDTH, height=_WAIT_HEIGHT).encode(
        x=_budget_axis(alt, budgets),
        y=alt.Y(
            "ms:Q",
            title="ms to first token of long requests, 95th percentile",
            axis=alt.Axis(tickCount=4, format=",~f"),
            # the figures stand above the points
            scale=alt.Scale(domain=[0, highest(rows["ms"]) * 1.25], nice=False),
        ),
    )
    return alt.layer(
        *_recommended(alt, recommended, budgets, _WAIT_HEIGHT),
        base.mark_line(strokeWidth=2, color=_WAIT_COLOUR),
        base.mark_circle(size=55, opacity=1, color=_WAIT_COLOUR),
        base.mark_text(dy=-12).encode(text=alt.Text("ms:Q", format=",.0f")),
    )


def _budget_axis(alt: ModuleType, budgets: list[int]) -> object:
    return alt.X(
        "budget:Q",
        title="tokens a step",
        scale=alt.Scale(type="log", base=2, domain=[budgets[0] / 1.2, budgets[-1] * 1.2], nice=False),
        axis=alt.Axis(values=budgets, format=",d", grid=False),
    )


def _recommended(alt: ModuleType, budget: int | None, budgets: list[int], height: int) -> list[Any]:
    if budget is None:
        return []
    base = alt.Chart(pl.DataFrame({"budget": [budget], "text": ["recommended"]})).encode(x="budget:Q")
    return [
        base.mark_rule(color=INK, strokeDash=[4, 3]),
        base.mark_text(
            baseline="bottom", dy=-4, fontWeight="bold", **_side(is_left=budget**2 > budgets[0] * budgets[-1])
        ).encode(y=alt.value(height), text="text:N"),
    ]


def _millions_axis(alt: ModuleType, low: float, high: float) -> object:
    is_wide = low > 0 and high / low > _WIDE
    # at both ends room for the names of the values there
    if is_wide:
        factor = (high / low) ** _MARGIN
        domain = [low / factor, high * factor]
    else:
        margin = (high - low or high) * _MARGIN
        domain = [max(low - margin, 0.0), high + margin]
    return alt.X(
        "low:Q",
        title="million tokens a month" + ", logarithmic" * is_wide,
        axis=alt.Axis(tickCount=6, format=",~r", grid=False),
        scale=alt.Scale(type="log" if is_wide else "linear", domain=domain, nice=False),
    )


def _marked(alt: ModuleType, millions: float, text: str, dash: list[int], *, is_left: bool) -> list[Any]:
    base = alt.Chart(pl.DataFrame({"low": [millions], "text": [text]})).encode(x="low:Q")
    return [
        base.mark_rule(color=INK, strokeDash=dash),
        base.mark_text(baseline="bottom", dy=-3, fontWeight="bold", **_side(is_left=is_left)).encode(
            y=alt.value(0), text="text:N"
        ),
    ]


def _side(*, is_left: bool) -> dict[str, Any]:
    """Place a text beside a line."""
    return {"align": "right", "dx": -5} if is_left else {"align": "left", "dx": 5}


def _budgets_title(rows: pl.DataFrame) -> str:
    few, many = rows.row(0, named=True), rows.row(-1, named=True)
    stall = next(column for column in _STALLS if column in rows.columns)
    said = [
        f"{what} {number(many[column] / few[column], 1)}x"
        for what, column in (("short requests stall", stall), ("long ones wait", "ttft_long_p95_ms"))
        if few[column] and many[column]
    ]
    return f"{few['budget']:,} to {many['budget']:,} tokens a step: {', '.join(said)} as long"


def _even_title(rows: pl.DataFrame, mid: float, measured: float | None, *, pays: bool) -> str:
    low, high = min(rows["millions"]), max(rows["millions"])
    said = f"GPUs pay from {number(mid, 0)} M tokens a month on ({number(low, 0)} to {number(high, 0)})"
    if not pays:
        said = f"GPUs never pay as stated: {number(mid, 0)} M tokens a month is beyond them"
    return said if not measured else f"{said}; this log has {number(measured / 1e6, 0)} M"
