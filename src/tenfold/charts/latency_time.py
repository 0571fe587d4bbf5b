"""The tail of latency over time, with what was done and when it began to move."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import ModuleType
from typing import Any, NamedTuple

import polars as pl

from tenfold.charts.latency import NAMES, unit_of
from tenfold.charts.theme import INK, OTHER_COLOUR, WIDTH, AnyChart, altair, check, dressed, highest, time_axis, titled
from tenfold.display import Unit, sentence

_QUANTILES = {"p99": "#0072B2", "p95": "#0072B2", "p50": OTHER_COLOUR}
_ONSET, _EVENT = "#D55E00", INK
_HEIGHT = 110
_GAP = 16
# Rows of the key; further events keep their line.
_ROWS = 8
_ROW = 18
_LONGEST = 84
# Numbers of lines that are nearer than this, in px, stand as one.
_NEAR = 16
# Minutes after an event within which the title names it.
_LATELY = 6 * 60
# Windows shorter than this have instants to the second.
_SHORT = timedelta(hours=6)


class _Span(NamedTuple):
    """A piece of time that is drawn without a break."""

    since: datetime
    until: datetime
    width: float

    def place(self, at: datetime) -> float:
        return (at - self.since) / max(self.until - self.since, timedelta(milliseconds=1)) * self.width


def tail_timeline(frame: pl.DataFrame, marks: pl.DataFrame, *, title: str = "") -> AnyChart:
    """Draw the tail over both windows, a panel a component, with what was done and what began as numbered lines.

    Args:
        frame: Columns ``at`` (UTC), ``component``, ``quantile`` (p50, p99), ``value`` (ms, tokens of output), ``run``
            (a line is broken where it changes).
        marks: Columns ``at``, ``until``, ``label``, ``kind``: ``window`` (before or after, from ``at`` to ``until``),
            ``event`` (something that was done) or ``onset`` (when something began).
        title: What it says; by default what began when, and what was done before that.

    Returns:
        The chart; UTC. Windows that are far apart have an axis each.

    Raises:
        TenfoldError: A column is missing, there is no row, or there are more than 5,000.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("tail timeline")
    check(frame, "tail timeline", ["at", "component", "quantile", "value", "run"], least=1)
    check(marks, "tail timeline", ["at", "until", "label", "kind"])
    rows = frame.with_columns(_plain("at"))
    known = marks.with_columns(_plain("at"), _plain("until"))
    windows = known.filter(kind="window")
    spans = _spans(rows, windows)
    things = known.filter(pl.col("kind") != "window").sort("at", maintain_order=True)
    keyed, more = _numbered(things)
    used = [name for name in _QUANTILES if name in set(rows["quantile"])]
    panels: list[Any] = [] if keyed.is_empty() else [_key(alt, keyed, spans, more)]
    for number, ((name,), group) in enumerate(rows.group_by("component", maintain_order=True)):
        unit = unit_of(str(name), group["value"])
        top = highest(group["value"].drop_nulls()) * unit.scale * 1.08 or 1.0
        pieces = [
            _panel(
                alt, group.filter(_inside(span)), windows, things, keyed, span, unit, top, used,
                heading=f"{NAMES.get(str(name), str(name))}, {unit.name}" if place == 0 else None,
                is_first=number == 0, has_legend=number == 0 and place == 0,
            )
            for place, span in enumerate(spans)
        ]  # fmt: skip
        panels.append(pieces[0] if len(pieces) == 1 else alt.hconcat(*pieces, spacing=_GAP))
    return dressed(titled(alt.vconcat(*panels, spacing=34), title or _title(rows, things)))


def _panel(
    alt: ModuleType, rows: pl.DataFrame, windows: pl.DataFrame, things: pl.DataFrame, keyed: pl.DataFrame,
    span: _Span, unit: Unit, top: float, used: list[str], *, heading: str | None, is_first: bool, has_legend: bool,
) -> Any:  # noqa: ANN401 -- a chart of Altair  # fmt: skip
    domain = [_utc(alt, span.since), _utc(alt, span.until)]
    axis = time_axis(alt, pl.Series([span.since, span.until]))
    x = alt.X("at:T", title=None, axis=axis, scale=alt.Scale(domain=domain, nice=False))
    ticks = alt.Axis(tickCount=4, format=",~r", labels=heading is not None, ticks=heading is not None)
    y = alt.Y("value:Q", title=heading, axis=ticks, scale=alt.Scale(domain=[0, top], nice=False))
    legend = alt.Legend(symbolType="stroke", symbolStrokeWidth=3, offset=8) if has_legend else None
    colour = alt.Color(
        "quantile:N", scale=alt.Scale(domain=used, range=[_QUANTILES[name] for name in used]), legend=legend
    )
    lines = (
        alt.Chart(_iso(rows.with_columns(pl.col("value") * unit.scale)))
        .mark_line(strokeWidth=1.8)
        .encode(
            x=x, y=y, color=colour, detail="run:N",
            tooltip=["at:T", "quantile:N", alt.Tooltip("value:Q", format=",.3~r", title=unit.name)],
        )
    )  # fmt: skip
    here = _iso(things.filter(_inside(span)))
    layers = [
        alt.Chart(_iso(windows.filter(_inside(span)))).mark_rect(color=OTHER_COLOUR, opacity=0.14)
        .encode(x=x, x2="until:T").transform_filter(alt.FieldEqualPredicate(field="label", equal="after")),
        alt.Chart(here.filter(kind="event")).mark_rule(color=_EVENT, strokeDash=[4, 3]).encode(x=x),
        alt.Chart(here.filter(kind="onset")).mark_rule(color=_ONSET, strokeWidth=2).encode(x=x),
        lines,
    ]  # fmt: skip
    if is_first:
        # names of the windows in the middle of each, over the row of numbers
        named = windows.filter(_inside(span)).with_columns(at=pl.col("at") + (pl.col("until") - pl.col("at")) / 2)
        names = alt.Chart(_iso(named)).mark_text(baseline="bottom", dy=-20)
        layers.append(names.encode(x=x, y=alt.value(0), text="label:N"))
        above = {"baseline": "bottom", "dy": -4, "fontWeight": "bold"}
        numbers = _iso(_together(keyed.filter(_inside(span)), span))
        layers += [
            alt.Chart(numbers.filter(kind=kind))
            .mark_text(color=colour, **above)
            .encode(x=x, y=alt.value(0), text="number:N")
            for kind, colour in (("event", _EVENT), ("onset", _ONSET))
        ]
    return alt.layer(*layers).properties(width=span.width, height=_HEIGHT)


def _key(alt: ModuleType, keyed: pl.DataFrame, spans: list[_Span], more: int) -> Any:  # noqa: ANN401 -- a chart of Altair
    """Say what each numbered line is."""
    rows: list[tuple[str, str, str, str]] = []
    for row in keyed.rows(named=True):
        inside = any(span.since <= row["at"] <= span.until for span in spans)
        text = row["label"] if inside else f"{row['label']} (not in the windows)"
        rows.append((row["number"], row["at"].strftime(_style(spans)), _short(text), row["kind"]))
    if more:
        rows.append(("", "", f"and {more} more events, dashed", "event"))
    drawn = pl.DataFrame(rows, schema=["number", "at", "text", "kind"], orient="row").with_row_index("row")
    base = alt.Chart(drawn, width=WIDTH, height=_ROW * len(drawn)).encode(
        y=alt.Y("row:Q", axis=None, scale=alt.Scale(domain=[-0.5, len(drawn) - 0.5], reverse=True, nice=False)),
        color=alt.Color("kind:N", scale=alt.Scale(domain=["event", "onset"], range=[_EVENT, _ONSET]), legend=None),
    )
    return alt.layer(
        base.mark_text(align="left", fontWeight="bold").encode(x=alt.value(0), text="number:N"),
        base.mark_text(align="left").encode(x=alt.value(26), text="at:N"),
        base.mark_text(align="left").encode(x=alt.value(130), text="text:N"),
    ).resolve_scale(color="independent")


def _style(spans: list[_Span]) -> str:
    """Choose how instants are written: to the second where a window is shorter than a few hours."""
    is_short = min(span.until - span.since for span in spans) < _SHORT
    return "%d %b %H:%M:%S" if is_short else "%d %b %H:%M"


def _spans(rows: pl.DataFrame, windows: pl.DataFrame) -> list[_Span]:
    """Draw one axis, or one a window where the time between them is longer than half of theirs."""
    ends: list[tuple[datetime, datetime]] = sorted(windows.select("at", "until").rows())
    ends = ends or rows.select(pl.min("at"), pl.max("at").alias("until")).rows()
    lengths = [until - since for since, until in ends]
    whole = sum(lengths, timedelta())
    if len(ends) != 2 or ends[1][0] - ends[0][1] <= whole / 2:
        return [_Span(ends[0][0], max(until for _, until in ends), WIDTH)]
    share = min(max(lengths[0] / whole, 0.3), 0.7)
    room = WIDTH - _GAP
    first, second = ends
    return [_Span(first[0], first[1], room * share), _Span(second[0], second[1], room * (1 - share))]


def _numbered(things: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Number what has room in the key: all onsets, and the events nearest to one; in order of time."""
    onsets: list[datetime] = things.filter(kind="onset")["at"].to_list()

    def distance(at: datetime) -> float:
        return min((abs((at - onset).total_seconds()) for onset in onsets), default=0.0)

    far = pl.Series("far", [distance(at) for at in things["at"]], dtype=pl.Float64)
    kept = (
        things.with_columns(far)
        .sort(pl.col("kind") != "onset", "far", maintain_order=True)
        .head(_ROWS)
        .sort("at", maintain_order=True)
    )
    numbers = pl.Series("number", [str(number) for number in range(1, len(kept) + 1)], dtype=pl.String)
    return kept.with_columns(numbers).drop("far"), len(things) - len(kept)


def _together(keyed: pl.DataFrame, span: _Span) -> pl.DataFrame:
    """Join the numbers of lines that are too near for one each."""
    found: list[dict[str, Any]] = []
    for row in keyed.rows(named=True):
        if found and span.place(row["at"]) - span.place(found[-1]["at"]) < _NEAR:
            both = {found[-1]["kind"], row["kind"]}
            number = f"{found[-1]['number']},{row['number']}"
            found[-1] |= {"number": number, "kind": "onset" if "onset" in both else "event"}
        else:
            found.append(row)
    return pl.DataFrame(found, schema=keyed.schema, orient="row")


def _title(rows: pl.DataFrame, things: pl.DataFrame) -> str:
    onsets = things.filter(kind="onset")
    if onsets.is_empty():
        components: list[str] = rows["component"].unique(maintain_order=True).to_list()
        names = [NAMES.get(name, name) for name in components]
        return f"{' and '.join(names)} over time, UTC"
    first = onsets.row(0, named=True)
    said = f"{sentence(first['label'])}, from {first['at']:%d %b %H:%M} UTC"
    done = things.filter((pl.col("kind") == "event") & (pl.col("at") <= first["at"]))
    if done.is_empty():
        return said
    last = done.row(-1, named=True)
    minutes = round((first["at"] - last["at"]).total_seconds() / 60)
    if minutes > _LATELY:
        return said
    if minutes == 0:
        return f"{said}, with {last['label']}"
    return f"{said}, {f'{minutes} min' if minutes < 120 else f'{round(minutes / 60)} h'} after {last['label']}"


def _inside(span: _Span) -> pl.Expr:
    return pl.col("at").is_between(span.since, span.until)


def _plain(column: str) -> pl.Expr:
    """Leave the zone off: all is UTC, and pictures do not turn it into anybody's own."""
    return pl.col(column).cast(pl.Datetime("ms"))


def _iso(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col(pl.Datetime).dt.strftime("%Y-%m-%dT%H:%M:%S"))


def _utc(alt: ModuleType, at: datetime) -> object:
    return alt.DateTime(year=at.year, month=at.month, date=at.day, hours=at.hour, minutes=at.minute, seconds=at.second)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
