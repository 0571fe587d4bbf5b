"""Self-hosted serving: what a replica gives and holds, and how many of those that are paid are needed."""

from __future__ import annotations

from datetime import datetime
from types import ModuleType
from typing import Any

import polars as pl

from tenfold.charts.theme import (
    CATEGORY_COLOURS,
    INK,
    OTHER_COLOUR,
    PAPER,
    WIDTH,
    AnyChart,
    altair,
    check,
    dressed,
    highest,
    time_axis,
    titled,
)
from tenfold.display import number, percent

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
_PARTS = {"weights": "#0072B2", "engine and headroom": OTHER_COLOUR, "KV cache": "#009E73"}
_NEED = {"needed": "#0072B2", "paid and not needed": "#F0BE5A", "needed and not there": "#D55E00"}
_GB = 1e9
_HEIGHT = 260


def frontier(frame: pl.DataFrame, *, tpot_slo_ms: float | None = None, title: str = "") -> AnyChart:
    """Draw what a GPU gives against what each user gets as the batch grows, a line a setting.

    Args:
        frame: Columns ``setting``, ``batch``, ``tokens_per_s_per_user``, ``tokens_per_s_per_gpu``; at most eight
            settings.
        tpot_slo_ms: Limit on ms an output token: left of it, answers are too slow.
        title: What it says; by default which setting gives most within the limit.

    Returns:
        The chart; output tokens/s, each setting's largest batch within the limit beside its point.

    Raises:
        TenfoldError: A column is missing, or there is no row.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("frontier")
    columns = ["setting", "batch", "tokens_per_s_per_user", "tokens_per_s_per_gpu"]
    check(frame, "frontier", columns, least=1)
    least = 0.0 if tpot_slo_ms is None else 1000 / tpot_slo_ms
    rows = frame.select(*columns, (pl.col("tokens_per_s_per_user") >= least).alias("is_fast"))
    names: list[str] = rows["setting"].unique(maintain_order=True).to_list()
    colour = alt.Color(
        "setting:N",
        scale=alt.Scale(domain=names, range=list(CATEGORY_COLOURS[: len(names)])),
        legend=alt.Legend(offset=26),
    )
    shape = alt.Shape("setting:N", scale=alt.Scale(domain=names, range=list(_SHAPES[: len(names)])))
    base = alt.Chart(rows, width=WIDTH, height=_HEIGHT).encode(
        x=alt.X(
            "tokens_per_s_per_user:Q",
            title="output tokens/s that each user gets",
            axis=alt.Axis(tickCount=8, grid=False),
            scale=alt.Scale(domainMin=0, nice=True),
        ),
        y=alt.Y("tokens_per_s_per_gpu:Q", title="output tokens/s per GPU", axis=alt.Axis(tickCount=6, format=",~f")),
        order="batch:Q",
    )
    lines = base.mark_line(strokeWidth=2).encode(color=colour)
    points = base.mark_point(size=55, filled=True).encode(
        color=colour,
        shape=shape,
        opacity=alt.condition("datum.is_fast", alt.value(1), alt.value(0.45)),
        tooltip=[
            "setting:N",
            alt.Tooltip("batch:Q", title="requests at once"),
            alt.Tooltip("tokens_per_s_per_user:Q", format=".1f"),
            alt.Tooltip("tokens_per_s_per_gpu:Q", format=",.0f"),
        ],
    )
    layers = [lines, points, *_largest_batches(alt, rows)]
    if tpot_slo_ms is not None:
        layers = [*_limit(alt, tpot_slo_ms, least), *layers]
    return dressed(titled(alt.layer(*layers), title or _frontier_title(rows, tpot_slo_ms)))


def memory_split(frame: pl.DataFrame, *, title: str = "") -> AnyChart:
    """Draw what a replica's memory is taken by, a bar a setting.

    Args:
        frame: Columns ``setting``, ``weights_bytes``, ``overhead_bytes``, ``kv_bytes``, ``memory_bytes``, ``requests``
            (held at once).
        title: What it says; by default how many requests the first setting holds, and the one that holds most.

    Returns:
        The chart; GB of all GPUs of a replica, the memory there is as a tick where a bar is beyond it.

    Raises:
        TenfoldError: A column is missing, or there is no row.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("memory split")
    parts = ("weights_bytes", "overhead_bytes", "kv_bytes")
    check(frame, "memory split", ["setting", *parts, "memory_bytes", "requests"], least=1)
    order: list[str] = frame["setting"].to_list()
    ranks = {name: rank for rank, name in enumerate(parts)}
    rows = (
        frame.unpivot(on=list(parts), index="setting", variable_name="part", value_name="bytes")
        .filter(pl.col("bytes") > 0)
        .select(
            "setting",
            pl.col("part").replace(dict(zip(parts, _PARTS, strict=True))),
            (pl.col("bytes") / _GB).alias("gb"),
            pl.col("part").replace_strict(ranks, return_dtype=pl.Int64).alias("rank"),
        )
    )
    used = pl.sum_horizontal(parts)
    labels = frame.select(
        "setting",
        (pl.max_horizontal(used, "memory_bytes") / _GB).alias("gb"),
        pl.Series("text", [_held(row) for row in frame.rows(named=True)], dtype=pl.String),
    )
    y = alt.Y("setting:N", sort=order, title=None)
    bars = (
        alt.Chart(rows, width=WIDTH, height=alt.Step(32))
        .mark_bar(stroke=PAPER, strokeWidth=1)
        .encode(
            y=y,
            x=alt.X("gb:Q", title="GB of a replica's GPUs", axis=alt.Axis(tickCount=6, grid=False)),
            color=alt.Color("part:N", scale=alt.Scale(domain=list(_PARTS), range=list(_PARTS.values()))),
            order=alt.Order("rank:Q"),
            tooltip=["setting:N", "part:N", alt.Tooltip("gb:Q", format=",.1f")],
        )
    )
    beyond = frame.filter(used > pl.col("memory_bytes") * 1.0001)
    memory = (
        alt.Chart(beyond.select("setting", (pl.col("memory_bytes") / _GB).alias("gb")))
        .mark_tick(color="#D55E00", thickness=3, size=28)
        .encode(y=y, x="gb:Q")
    )
    texts = alt.Chart(labels).mark_text(align="left", dx=5).encode(y=y, x="gb:Q", text="text:N")
    return dressed(titled(alt.layer(bars, memory, texts), title or _memory_title(frame)))


def hourly_need(frame: pl.DataFrame, *, title: str = "") -> AnyChart:
    """Draw the replicas that each hour needs and those that are paid, a panel a model.

    Args:
        frame: Columns ``starts_at``, ``ends_at``, ``needed``, ``paid``, and ``model`` where there are several; one row
            an hour.
        title: What it says; by default which share of what is paid is not needed.

    Returns:
        The chart; replicas.

    Raises:
        TenfoldError: A column is missing, there is no row, or there are more than 5,000 hours.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("hourly need")
    check(frame, "hourly need", ["starts_at", "ends_at", "needed", "paid"], least=1)
    named = frame if "model" in frame.columns else frame.with_columns(pl.lit("").alias("model"))
    models = named.group_by("model", maintain_order=True)
    # panels keep their distance from a shared legend, a single one's title would be under it
    legend = alt.Legend(offset=26) if named["model"].n_unique() == 1 else alt.Legend()
    panels = [_need_panel(alt, name, rows, legend) for (name,), rows in models]
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels, spacing=34)
    return dressed(titled(chart, title or _need_title(frame)))


def _limit(alt: ModuleType, tpot_slo_ms: float, least: float) -> list[Any]:
    """Shade where answers are slower than the limit, and name it."""
    frame = pl.DataFrame({"from": [0.0], "to": [least], "text": [f"over {tpot_slo_ms:g} ms a token"]})
    base = alt.Chart(frame)
    return [
        base.mark_rect(color=OTHER_COLOUR, opacity=0.18).encode(x="from:Q", x2="to:Q"),
        base.mark_rule(color=INK, strokeDash=[4, 3]).encode(x="to:Q"),
        base.mark_text(align="right", baseline="bottom", dx=-6, dy=-5, fontWeight="bold").encode(
            x="to:Q", y=alt.value(_HEIGHT), text="text:N"
        ),
    ]


def _largest_batches(alt: ModuleType, rows: pl.DataFrame) -> list[Any]:
    """Write each setting's largest batch within the limit beside its point, where another is near on the other side."""
    fast = rows.filter("is_fast")
    largest = fast.filter(pl.col("batch") == pl.col("batch").max().over("setting"))
    near = 0.1 * highest(rows["tokens_per_s_per_gpu"])
    texts = largest.sort("tokens_per_s_per_gpu", descending=True).select(
        "tokens_per_s_per_user",
        "tokens_per_s_per_gpu",
        pl.format("{} at once", "batch").alias("text"),
        (pl.col("tokens_per_s_per_gpu").diff().abs() < near).fill_null(value=False).alias("is_below"),
    )
    sides = {
        False: {"align": "left", "baseline": "bottom", "dx": 6, "dy": -4},
        True: {"align": "right", "baseline": "top", "dx": -6, "dy": 5},
    }
    return [
        alt.Chart(texts.filter(pl.col("is_below") == below))
        .mark_text(**sides[below])
        .encode(x="tokens_per_s_per_user:Q", y="tokens_per_s_per_gpu:Q", text="text:N")
        for below in sides
    ]


def _need_panel(alt: ModuleType, name: object, rows: pl.DataFrame, legend: object) -> Any:  # noqa: ANN401 -- a chart of Altair
    bands = [
        ("needed", pl.lit(0), pl.min_horizontal("needed", "paid")),
        ("paid and not needed", pl.min_horizontal("needed", "paid"), pl.col("paid")),
        ("needed and not there", pl.col("paid"), pl.max_horizontal("needed", "paid")),
    ]
    # a step lasts until the next row: the last hour needs one at its end
    closed = pl.concat([rows, rows.tail(1).with_columns(starts_at=pl.col("ends_at"))])

    def ends(low: pl.Expr, high: pl.Expr) -> list[pl.Expr]:
        return [low.cast(pl.Int64).alias("low"), high.cast(pl.Int64).alias("high")]

    drawn = pl.concat(
        [closed.select(_iso("starts_at"), pl.lit(band).alias("kind"), *ends(low, high)) for band, low, high in bands]
    )
    short = bool((rows["needed"] > rows["paid"]).any())
    used = list(_NEED) if short else list(_NEED)[:2]
    x = alt.X("starts_at:T", title=None, axis=time_axis(alt, rows["starts_at"]))
    most = highest(pl.concat([rows["paid"], rows["needed"]]).cast(pl.Float64))
    areas = (
        alt.Chart(drawn, width=WIDTH, height=120)
        .mark_area(interpolate="step-after")
        .encode(
            x=x,
            y=alt.Y(
                "low:Q",
                title=f"replicas of {name}" if name else "replicas",
                axis=alt.Axis(tickCount=min(5, int(most)), format="d"),
            ),
            y2="high:Q",
            color=alt.Color("kind:N", scale=alt.Scale(domain=used, range=[_NEED[one] for one in used]), legend=legend),
        )
        .transform_filter(alt.FieldOneOfPredicate(field="kind", oneOf=used))
    )
    paid = (
        alt.Chart(closed.select(_iso("starts_at"), "paid"))
        .mark_line(interpolate="step-after", color=INK, strokeWidth=1.5)
        .encode(x=x, y="paid:Q")
    )
    return alt.layer(areas, paid)


def _iso(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%dT%H:%M:%S")


def _frontier_title(rows: pl.DataFrame, tpot_slo_ms: float | None) -> str:
    fast = rows.filter("is_fast").sort("tokens_per_s_per_gpu", descending=True)
    within = "" if tpot_slo_ms is None else f" within {tpot_slo_ms:g} ms a token"
    if fast.is_empty():
        return f"No setting answers{within}"
    best = fast.row(0, named=True)
    rate, batch = number(best["tokens_per_s_per_gpu"], 0), best["batch"]
    return f"Most{within}: {best['setting']}, {rate} tokens/s per GPU, {batch} at once"


def _held(row: dict[str, Any]) -> str:
    if row["kv_bytes"] <= 0:
        return f"does not fit in {number(row['memory_bytes'] / _GB, 0)} GB"
    return f"{number(int(row['requests']), 0)} request{'' if int(row['requests']) == 1 else 's'}"


def _memory_title(frame: pl.DataFrame) -> str:
    first = frame.row(0, named=True)
    best = frame.sort("requests", descending=True).row(0, named=True)
    if best["setting"] == first["setting"] or best["kv_bytes"] <= 0:
        return f"{first['setting']}: {_held(first)}"
    return f"{best['setting']}: {_held(best)} at once; {first['setting']}: {_held(first)}"


def _need_title(frame: pl.DataFrame) -> str:
    seconds = (pl.col("ends_at") - pl.col("starts_at")).dt.total_seconds()
    sums = frame.select(
        paid=(pl.col("paid") * seconds).sum(),
        spare=((pl.col("paid") - pl.min_horizontal("needed", "paid")) * seconds).sum(),
        short=(pl.col("needed") > pl.col("paid")).sum(),
    ).row(0, named=True)
    spare = percent(sums["spare"] / sums["paid"]) if sums["paid"] else "none"
    first, last = frame["starts_at"].min(), frame["ends_at"].max()
    assert isinstance(first, datetime)
    assert isinstance(last, datetime)
    said = f"{spare} of the replica hours paid from {first.day} {first:%b} to {last.day} {last:%b} were not needed"
    return said if not sums["short"] else f"{said}; in {sums['short']} hours more were needed than there are"
