"""A window's requests as columns of numbers: one query, one column at a time, names as numbers."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from tenfold.display import counted
from tenfold.errors import AssumptionError
from tenfold.latency.records import Codes, Floats, Mask
from tenfold.latency.visible import CONTROL, visible
from tenfold.ledger.session import Window as Bounds
from tenfold.store import steps
from tenfold.store.engines.duckdb import reading

if TYPE_CHECKING:
    from tenfold.latency.parts import Part

Key: TypeAlias = tuple[str, str]
# The place of all models where they are taken together.
ALL_MODELS: Key = ("", "*")
# Columns of requests by what becomes of them: Window's field -> the column, and what its numbers are divided by.
NUMBERS = {
    "ttft_s": ("ttft_ms", 1000.0),
    "e2e_s": ("duration_ms", 1000.0),
    "input": ("input_tokens", 1.0),
    "output": ("output_tokens", 1.0),
    "cached": ("cache_read_tokens", 1.0),
    "reasoning": ("reasoning_tokens", 1.0),
    "queue_s": ("queue_ms", 1000.0),
    "preemptions": ("preemptions", 1.0),
    "running": ("running", 1.0),
    "waiting": ("waiting", 1.0),
    "kv": ("kv_usage_ratio", 1.0),
    "attempt": ("attempt", 1.0),
}
NAMES = {
    "route": "feature",
    "client": "client",
    "replica": "replica",
    "deployment": "deployment",
    "revision": "model_revision",
    "prompt": "prompt_hash",
    "session": "session_id",
    "status": "status",
    "region": "region",
}
TENANTS = ("team", "project", "org", "user_id", "api_key_id")


class Named(NamedTuple):
    """A column of names.

    Args:
        codes: Place in ``names`` a row; -1: none.
        names: The names, in order.
    """

    codes: Codes
    names: pl.Series


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Requests of a window as they were read, model by model in order of arrival.

    Args:
        text: How the window was asked for.
        models: (provider, model) to its place: first row, row behind the last; one place for all where they are taken
            together.
        counts: (provider, model) to its requests that are asked for; models without are left out.
        since_s: Start of the window, within the time that the log covers; NaN: the log has no times.
        until_s: Its end.
        ts_s: Arrivals; NaN where a log has no times at all.
        is_asked: Whether it is one of those whose latencies are looked at.
        is_answered: Whether an answer came.
        is_structured: Whether it had to fit a schema; None: not logged.
        numbers: Field of ``Window`` to its numbers.
        names: Field of ``Window``, and columns of who asked, to their names.
        gateway_hits: Requests left out that a gateway's cache answered.
        undated: Requests left out that have no time.
        is_cut: Whether the log covers less of the time than was asked for.
    """

    text: str
    models: dict[Key, tuple[int, int]]
    counts: dict[Key, int]
    since_s: float
    until_s: float
    ts_s: Floats
    is_asked: Mask
    is_answered: Mask
    is_structured: Mask | None
    numbers: dict[str, Floats]
    names: dict[str, Named]
    gateway_hits: int
    undated: int
    is_cut: bool


def read(part: Part, where: str | None, which: str, *, any_model: bool = False) -> Columns:
    """Read a window.

    Args:
        part: The log and the bounds.
        where: Checked predicate over ``requests``: whose latencies are looked at; None: all. The others are read as
            well, since they make load and meet the same cache and hosts.
        which: Option to name in errors.
        any_model: Take all models together, in one order of arrival.

    Returns:
        Its columns.

    Raises:
        AssumptionError: No request lies in it; says what time the log covers.
    """
    asked = "true" if where is None else f"(\n{where}\n)"
    bounds = Bounds(part.since, part.until).condition("ts", "ts is not null")
    with ExitStack() as stack:
        engine = stack.enter_context(reading(part.log.store))
        words = {"requests": "requests", "where": asked, "condition": bounds}
        tally = engine.fetch(steps.filled("latency_tally", **words)).row(0, named=True)
        # A log without any time is read as it is: two of them can still be set side by side.
        is_dated = tally["undated_rows"] < tally["asked_rows"]
        within = f"{bounds}{' and ts is not null' if is_dated else ''}"
        order = "" if any_model else "provider, model, "
        frame = engine.fetch(
            steps.filled("latency_requests", requests="requests", condition=within, where=asked, models=order)
        )
    if not frame["is_asked"].any():
        raise AssumptionError(_empty(part, where, which, tally))
    since, until, is_cut = _covered(part, tally)
    columns = _columns(frame, part.text, since, until, tally, is_cut=is_cut)
    return replace(columns, models={ALL_MODELS: (0, columns.ts_s.size)}) if any_model else columns


def files(part: Part) -> frozenset[str]:
    """Tell which files a log was loaded from.

    Args:
        part: The log.

    Returns:
        Hashes of their bytes.
    """
    with part.log.store.reading() as connection:
        return frozenset(sha256 for (sha256,) in connection.execute("SELECT DISTINCT sha256 FROM loads").fetchall())


def holds(part: Part, since: datetime | None, until: datetime | None) -> bool:
    """Tell whether a log has a request between two instants.

    Args:
        part: The log; its own bounds do not count.
        since: First instant (aware); None: from its start.
        until: Instant to stop before (aware); None: to its end.

    Returns:
        Whether one arrived then; without bounds one without a time counts too.
    """
    condition = Bounds(since, until).condition("ts", "ts is not null")
    with part.log.store.reading() as connection:
        found = connection.execute(f"SELECT 1 FROM requests WHERE {condition} LIMIT 1").fetchall()
    return bool(found)


def _empty(part: Part, where: str | None, which: str, tally: dict[str, object]) -> str:
    if not tally["all_rows"]:
        return f"{which} {part.text}: the log holds no requests"
    covers = f"It holds {counted(int(str(tally['all_rows'])), 'request')}"
    if tally["all_first"] is not None:
        covers += f", from {tally['all_first']} to {tally['all_last']} UTC"
    narrow = "" if where is None else f"; --where leaves {tally['asked_rows']:,} of them"
    return f"{which} {part.text}: no request lies in this window. {covers}{narrow}"


def _covered(part: Part, tally: dict[str, object]) -> tuple[float, float, bool]:
    first, last = tally["all_first"], tally["all_last"]
    if not isinstance(first, datetime) or not isinstance(last, datetime):
        return np.nan, np.nan, False
    starts, ends = _seconds(first), _seconds(last) + 1e-6
    since = starts if part.since is None else max(part.since.timestamp(), starts)
    until = ends if part.until is None else min(part.until.timestamp(), ends)
    lost = (0.0 if part.since is None else since - part.since.timestamp()) + (
        0.0 if part.until is None else part.until.timestamp() - until
    )
    return since, until, lost > 0.05 * (until - since + lost)


def _seconds(naive: datetime) -> float:
    return (naive - datetime(1970, 1, 1)).total_seconds()  # noqa: DTZ001 -- the store's times are naive UTC


def _columns(
    frame: pl.DataFrame, text: str, since: float, until: float, tally: dict[str, int], *, is_cut: bool
) -> Columns:
    """Take the frame apart column by column, so that each is there once."""
    sizes = frame.group_by("provider", "model", maintain_order=True).agg(pl.len(), pl.col("is_asked").sum())
    ends: list[int] = np.cumsum(sizes["len"].to_numpy()).tolist()
    models: dict[Key, tuple[int, int]] = {}
    counts: dict[Key, int] = {}
    for (provider, model, rows, asked), end in zip(sizes.iter_rows(), ends, strict=True):
        if asked:
            key = visible(provider), visible(model)
            models[key], counts[key] = (end - rows, end), asked
    ts = frame.drop_in_place("ts")
    structured = frame.drop_in_place("is_structured")
    numbers: dict[str, Floats] = {}
    for name, (column, unit) in NUMBERS.items():
        values = _floats(frame.drop_in_place(column))
        numbers[name] = values if unit == 1.0 else values / unit
    return Columns(
        text=text,
        models=models,
        counts=counts,
        since_s=since,
        until_s=until,
        ts_s=_floats(ts.dt.epoch("us")) / 1e6,
        is_asked=frame.drop_in_place("is_asked").to_numpy(),
        is_answered=frame.drop_in_place("is_answered").to_numpy(),
        is_structured=None if structured.null_count() == structured.len() else structured.fill_null(False).to_numpy(),
        numbers=numbers,
        names={name: _named(frame.drop_in_place(column)) for name, column in NAMES.items()}
        | {column: _named(frame.drop_in_place(column)) for column in TENANTS},
        gateway_hits=tally["gateway_hits"],
        undated=tally["undated_rows"] if tally["undated_rows"] < tally["asked_rows"] else 0,
        is_cut=is_cut,
    )


def _floats(values: pl.Series) -> Floats:
    return values.cast(pl.Float64).to_numpy()


def _named(values: pl.Series) -> Named:
    values = values.alias("name")
    names = values.drop_nulls().unique().sort()
    unseen = names.filter(names.str.contains(CONTROL))
    if unseen.len():
        values = values.replace(unseen, [visible(name) for name in unseen])
        names = values.drop_nulls().unique().sort()
    return Named(codes_in(values, names), names)


def codes_in(values: pl.Series, names: pl.Series) -> Codes:
    """Number names.

    Args:
        values: Names a row; null: none.
        names: All names, each once.

    Returns:
        Place in ``names`` a row; -1: none.
    """
    places = names.to_frame("name").with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("code"))
    found = values.to_frame("name").join(places, on="name", how="left", maintain_order="left")["code"]
    return found.fill_null(-1).cast(pl.Int32).to_numpy()
