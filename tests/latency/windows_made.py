"""Pairs of windows for the tests of latency's steps, from arrays by name; nothing is drawn here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from tenfold.latency.records import Event, Labels, Pair, Samples, Window

LABELS = ("tenant", "route", "client", "replica", "deployment", "revision", "prompt", "session", "status", "region")
MASKS = ("ok", "is_structured")
ALWAYS = ("ts_s", "ok", "ttft_s", "e2e_s", "input", "output")
OPTIONAL = tuple(one.name for one in fields(Window) if one.name not in (*ALWAYS, "name", "since_s", "until_s"))


def made_pair(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    events: Iterable[tuple[float, str, str, str]] | None = None,
    hosts: Iterable[tuple[float, str, str, float]] | None = None,
    metrics: Iterable[tuple[float, str, str, float]] | None = None,
    model: str = "m",
    spans: tuple[tuple[float, float], tuple[float, float]] | None = None,
) -> Pair:
    """Make a pair of windows.

    Args:
        before: Column by name of ``Window``: an array a column, or one value for all rows; label columns hold names
            ("" or None: the log has none). ``ts_s`` must be there; ``ok`` is true, ``input`` 1000, ``output`` 100,
            ``ttft_s`` 0.5 and ``e2e_s`` ttft + 0.02 s a token unless given; latencies of failed rows become NaN.
            Rows are put in order of ``ts_s``. Columns that are absent or None stay None.
        after: As ``before``.
        events: (ts_s, kind, what, where) a row; its line is its place from 2 on.
        hosts: (ts_s, replica, metric, value) a row.
        metrics: As ``hosts``.
        model: The model.
        spans: Since and until of both windows; else from the whole second of the first row to just after the last.
    """
    sides = {"before": _filled(before), "after": _filled(after)}
    names = {
        column: tuple(sorted({name for side in sides.values() for name in side.get(column, ()) if name}))
        for column in LABELS
    }
    windows = [
        _window(name, side, names, spans[place] if spans else None) for place, (name, side) in enumerate(sides.items())
    ]
    return Pair(
        model=model,
        before=windows[0],
        after=windows[1],
        events=_events(events),
        hosts=_samples(hosts),
        metrics=_samples(metrics),
        missing=tuple(name for name in OPTIONAL if all(getattr(window, name) is None for window in windows)),
    )


def _filled(given: Mapping[str, Any]) -> dict[str, np.ndarray]:
    unknown = set(given) - set(ALWAYS) - set(OPTIONAL)
    if unknown:
        raise KeyError(f"no such column of Window: {sorted(unknown)}")
    ts = np.asarray(given["ts_s"], float)
    order = np.argsort(ts, kind="stable")

    def column(name: str, value: Any) -> np.ndarray:
        kind = object if name in LABELS else bool if name in MASKS else float
        return np.broadcast_to(np.asarray(value, kind), ts.shape)[order].copy()

    columns = {name: column(name, value) for name, value in given.items() if value is not None}
    for name, value in (("ok", True), ("input", 1000.0), ("output", 100.0), ("ttft_s", 0.5)):
        columns.setdefault(name, column(name, value))
    columns.setdefault("e2e_s", columns["ttft_s"] + 0.02 * columns["output"])
    for name in ("ttft_s", "e2e_s"):
        columns[name][~columns["ok"]] = np.nan
    return columns


def _window(
    name: str, columns: Mapping[str, np.ndarray], names: Mapping[str, tuple[str, ...]], span: tuple[float, float] | None
) -> Window:
    ts = columns["ts_s"]
    since, until = span or (float(np.floor(ts[0])), float(np.floor(ts[-1]) + 1))
    values: dict[str, Any] = dict(columns)
    for column in set(LABELS) & set(columns):
        place = {label: code for code, label in enumerate(names[column])}
        values[column] = Labels(np.array([place.get(label, -1) for label in columns[column]], np.int32), names[column])
    return Window(name=name, since_s=since, until_s=until, **values)


def _events(rows: Iterable[tuple[float, str, str, str]] | None) -> tuple[Event, ...] | None:
    if rows is None:
        return None
    return tuple(sorted(Event(*row, line) for line, row in enumerate(rows, 2)))


def _samples(rows: Iterable[tuple[float, str, str, float]] | None) -> Samples | None:
    if rows is None:
        return None
    ordered: Sequence[tuple[float, str, str, float]] = sorted(rows)
    return Samples(
        np.array([row[0] for row in ordered], float),
        np.array([row[1] for row in ordered], str),
        np.array([row[2] for row in ordered], str),
        np.array([row[3] for row in ordered], float),
    )
