"""Small frames for the charts of a diagnosis: quantiles side by side, from before to after, the tail over time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl

from tenfold.latency.answers import COMPONENTS, Cause, Diagnosis
from tenfold.latency.records import Component, Floats, Pair, Window
from tenfold.latency.wording import cause_name

# Quantiles of the quantile-quantile picture.
_QUANTILES = (*(step / 20 for step in range(1, 20)), 0.99, 0.999)
# Requests that must lie beyond a quantile in both windows, for it to be drawn.
_BEYOND = 5
# Lengths that a slice of time may have, in seconds.
_SLICES = (1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_MOST_SLICES = 96
_FEWEST_SLICES = 6
# Requests that a slice should hold, so that its p99 is more than its slowest request.
_IN_A_SLICE = 100

# A request's own time, as the shift takes it (``tails.py``), so that pictures and texts agree.
_METHOD = "inverted_cdf"

_TIME = pl.Datetime("ms", "UTC")


class Timeline(NamedTuple):
    """The tail over time.

    Args:
        frame: ``at`` (UTC, the middle of a slice), ``component``, ``quantile``, ``value`` (ms, tokens of output),
            ``run`` (the window).
        marks: ``at``, ``until``, ``label``, ``kind`` (window, event, onset).
    """

    frame: pl.DataFrame
    marks: pl.DataFrame


def quantile_pairs(pair: Pair) -> pl.DataFrame:
    """Give the same quantiles of both windows.

    Args:
        pair: The windows.

    Returns:
        ``component`` (ttft, tpot, output), ``quantile``, ``before``, ``after`` in ms, tokens of output; only quantiles
        that at least five requests of each window lie beyond.
    """
    rows: list[tuple[str, float, float, float]] = []
    for component in COMPONENTS:
        before, after = (_known(window, component) for window in pair.windows)
        fewest = min(before.size, after.size)
        levels = [level for level in _QUANTILES if fewest * (1 - level) >= _BEYOND]
        if levels:
            values = (np.quantile(before, levels, method=_METHOD), np.quantile(after, levels, method=_METHOD))
            rows += [(component, *row) for row in zip(levels, *(each.tolist() for each in values), strict=True)]
    schema = {"component": pl.String, "quantile": pl.Float64, "before": pl.Float64, "after": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def waterfall(one: Diagnosis) -> pl.DataFrame:
    """Lay the way from before to after, a step a first cause, in each component that moved and has a cause.

    Args:
        one: The diagnosis.

    Returns:
        ``component``, ``label``, ``kind`` (start, cause, unexplained, end), ``from``, ``to`` in ms, tokens of output.
        What follows from a first cause is in its step; before and all steps add up to after.
    """
    rows: list[tuple[str, str, str, float, float]] = []
    first: dict[Cause, list[Cause]] = {}
    for cause in one.causes:  # each first cause is followed by its consequences
        if cause.consequence_of is None:
            first[cause] = []
        elif first:
            first[next(reversed(first))].append(cause)
    order = sorted(COMPONENTS, key=lambda name: -_most(one, name))
    for component in order:
        mine = [(cause, cause.shares[component].mid) for cause in first if component in cause.shares]
        shift = one.shift.get(component)
        if shift is None or not shift.is_change or not mine:
            continue
        scale = _scale(component)
        at, end = shift.before * scale, shift.after * scale
        rows.append((component, "before", "start", 0.0, at))
        names: set[str] = set()
        for cause, share in mine:
            to = at + share * (end - shift.before * scale)
            label = _with_followers(cause, first[cause], component, taken=names)
            names.add(label)
            rows.append((component, label, "cause", at, to))
            at = to
        rows += [(component, "unexplained", "unexplained", at, end), (component, "after", "end", 0.0, end)]
    schema = {"component": pl.String, "label": pl.String, "kind": pl.String, "from": pl.Float64, "to": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def timeline(pair: Pair, one: Diagnosis) -> Timeline | None:
    """Cut both windows into slices of time and give the tail of each, with what was done and what began.

    Args:
        pair: The windows.
        one: Their diagnosis.

    Returns:
        The median and the quantile of the diagnosis by slice, of the components that moved (of TTFT and TPOT where none
        did), and the marks; None where the log has no times.
    """
    if any(not math.isfinite(end) for end in (*one.windows, *(at for w in pair.windows for at in w.ts_s[:1]))):
        return None
    level = 0.99 if math.isnan(one.quantile) else one.quantile
    moved: tuple[Component, ...] = tuple(name for name in COMPONENTS if name in one.shift and one.shift[name].is_change)
    length = _slice_s(pair)
    frames = [_sliced(window, name, level, length) for name in moved or COMPONENTS[:2] for window in pair.windows]
    frame = pl.concat(frames)
    return None if frame.is_empty() else Timeline(frame, _marks(pair, one))


def _sliced(window: Window, component: Component, level: float, length: float) -> pl.DataFrame:
    values = _values(window, component)
    known = np.isfinite(values)
    places = np.floor((window.ts_s[known] - window.since_s) / length).astype(np.int64)
    rows = pl.DataFrame({"place": places, "value": values[known] * _scale(component)})
    named = {"p50": 0.5, f"p{level * 100:g}": level}
    by = rows.group_by("place").agg(pl.col("value").quantile(one, "linear").alias(name) for name, one in named.items())
    middle = window.since_s + (pl.col("place") + 0.5) * length
    return (
        by.unpivot(on=list(named), index="place", variable_name="quantile", value_name="value")
        .sort("quantile", "place")
        .select(
            # the last slice may be cut short by the end of the window
            (pl.min_horizontal(middle, pl.lit(window.until_s)) * 1000).cast(pl.Int64).cast(_TIME).alias("at"),
            pl.lit(component).alias("component"),
            "quantile",
            "value",
            pl.lit(window.name).alias("run"),
        )
    )


def _slice_s(pair: Pair) -> float:
    """Choose the length of slices: as fine as requests allow, not too few for the shorter window."""
    lengths = [window.until_s - window.since_s for window in pair.windows]
    densest = min(window.size / max(length, 1e-9) for window, length in zip(pair.windows, lengths, strict=True))
    wanted = max(sum(lengths) / _MOST_SLICES, _IN_A_SLICE / max(densest, 1e-9))
    wanted = min(wanted, min(lengths) / _FEWEST_SLICES)
    return next((one for one in _SLICES if one >= wanted), wanted)


def _marks(pair: Pair, one: Diagnosis) -> pl.DataFrame:
    since, until, then, end = one.windows
    rows: list[tuple[float, float | None, str, str]] = [
        (since, until, "before", "window"),
        (then, end, "after", "window"),
    ]
    rows += [
        (event.ts_s, None, _event_text(event.kind, event.what, event.where), "event")
        for event in pair.events or ()
        if min(since, then) <= event.ts_s <= max(until, end)
    ]
    rows += [
        (cause.since_s, None, cause_name(cause), "onset")
        for cause in one.causes
        if cause.consequence_of is None and cause.since_s is not None and math.isfinite(cause.since_s)
    ]
    return pl.DataFrame(
        [(_milliseconds(at), _milliseconds(to), label, kind) for at, to, label, kind in rows],
        schema={"at": pl.Int64, "until": pl.Int64, "label": pl.String, "kind": pl.String},
        orient="row",
    ).with_columns(pl.col("at", "until").cast(_TIME))


def _event_text(kind: str, what: str, where: str) -> str:
    said = ": ".join(text for text in (kind, what) if text) or "event"
    return f"{said} ({where})" if where else said


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def _with_followers(cause: Cause, followers: Iterable[Cause], component: Component, *, taken: Iterable[str]) -> str:
    named = dict.fromkeys(each.name for each in followers if component in each.shares)
    label = f"{cause_name(cause)}, with {' and '.join(named)}" if named else cause_name(cause)
    return f"{label} (step {cause.step})" if label in taken else label


def _most(one: Diagnosis, component: Component) -> float:
    """How much a component moved, as a log."""
    shift = one.shift.get(component)
    if shift is None or shift.before <= 0 or shift.after <= 0:
        return 0.0
    return abs(math.log(shift.after / shift.before))


def _known(window: Window, component: Component) -> Floats:
    values = _values(window, component)
    return values[np.isfinite(values)] * _scale(component)


def _values(window: Window, component: Component) -> Floats:
    if component == "ttft":
        return window.ttft_s
    if component == "tpot":
        return window.tpot_s
    return np.where(window.judged, window.output, np.nan)


def _scale(component: Component) -> float:
    return 1.0 if component == "output" else 1000.0
