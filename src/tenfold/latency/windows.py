"""Two windows of requests side by side, one pair a model: before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tenfold.display import counted
from tenfold.errors import AssumptionError
from tenfold.latency import engines, reading, sidefiles
from tenfold.latency.pairing import paired
from tenfold.latency.parts import Part, Place, Spec, place
from tenfold.latency.reading import Columns, Key
from tenfold.latency.records import Event, Pair, Samples
from tenfold.latency.visible import visible
from tenfold.levers.where import check

__all__ = ["Pairs", "Part", "Share", "Spec", "read_pair"]

NO_MODEL = "no model named"
# Shares of the windows that --where leaves differ by more than this part of the larger.
_UNLIKE = 0.2
_GRAINS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


class Share(NamedTuple):
    """A model's share of the requests.

    Args:
        model: The model, with its provider where several serve it.
        before: Its requests in the window before.
        after: Its requests in the window after.
        before_ratio: Its share of the requests before.
        after_ratio: Its share after.
    """

    model: str
    before: int
    after: int
    before_ratio: float
    after_ratio: float


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """What two windows hold.

    Args:
        pairs: Two windows a model that is in both, most requests after first.
        mix: Shares of all models, those of one window too, most requests after first.
        notes: What a reader must know of the windows; a pair's own notes say what is odd about its columns.
    """

    pairs: tuple[Pair, ...]
    mix: tuple[Share, ...]
    notes: tuple[str, ...] = ()


def read_pair(
    before: Spec,
    after: Spec,
    *,
    where: str | None = None,
    events: str | Path | None = None,
    hosts: str | Path | None = None,
    metrics: str | Path | None = None,
    zone: str | None = None,
    any_model: bool = False,
    reading_options: Mapping[str, Any] | None = None,
) -> Pairs:
    """Read two windows of requests.

    Args:
        before: The window that was fine: paths or globs of logs, ``FILE.duckdb@FROM..TO`` (TO is not in it; either may
            be left out), or a ``Part`` of an open log.
        after: The window in question, likewise; both may lie in one database.
        where: SQL predicate over columns of ``requests``: whose latencies are looked at, in both.
        events: File of what was done (ts, kind, what, where).
        hosts: File of samples of hosts (ts, replica, metric, value).
        metrics: File of samples of the engines, or their ``/metrics`` text.
        zone: Zone of days and of times without an offset in bounds and in the files beside the log; by default that of
            ``tenfold.toml``, else UTC.
        any_model: Take all models together, as one pair: two systems are compared, not one model with itself.
        reading_options: What ``load`` is told of logs that are read now (``map``, ``format``, ``set``, ``zone``).

    Returns:
        A pair a model, and the mix of models. Where no model is in both windows, a pair of the two most asked, which
        the preconditions refuse.

    Raises:
        AssumptionError: A window is empty or no window, both overlap in one log, or the predicate is none.
        LogFormatError: A file is no log that tenfold reads.
        StoreError: A database cannot be read.
    """
    condition = None if where is None else check(where, "--where")
    places = place(before, "--before", zone), place(after, "--after", zone)
    told = reading_options or {}
    side = (
        None if events is None else sidefiles.read_events(events, zone),
        None if hosts is None else sidefiles.read_samples(hosts, zone),
        None if metrics is None else sidefiles.read_metrics(metrics, zone),
    )
    first, second = places
    # One after the other: of logs that are loaded into memory one is there at a time.
    part = first.opened(told)
    if first.is_of(second):
        _apart(first, second, part)
    files = reading.files(part)
    old = reading.read(part, condition, "--before", any_model=any_model)
    if first.is_of(second):
        part = Part(part.log, second.since, second.until, second.text)
    else:
        del part
        part = second.opened(told)
        if files & reading.files(part):
            _apart(first, second, part)
    new = reading.read(part, condition, "--after", any_model=any_model)
    del part
    return _narrowed(_pairs(old, new, *side), old, new, where)


def _narrowed(found: Pairs, old: Columns, new: Columns, where: str | None) -> Pairs:
    """Say what ``--where`` narrowed: the latencies that are looked at, not the load that they met."""
    if where is None:
        return found
    shares = [float(one.is_asked.mean()) for one in (old, new)]
    left = f"{shares[0]:.0%} of those before, {shares[1]:.0%} after"
    notes = [
        f"Looked at: requests where {visible(where)} ({left}). Load, cache, hosts and retries are those of all requests"
    ]
    if abs(shares[1] - shares[0]) > _UNLIKE * max(shares):
        notes.append("The two windows are narrowed unlike: what --where leaves out is not the same traffic in both")
    return replace(found, notes=(*notes, *found.notes))


def _apart(before: Place, after: Place, part: Part) -> None:
    """Refuse windows of one log that share requests."""
    start = datetime.min.replace(tzinfo=UTC)
    end = datetime.max.replace(tzinfo=UTC)
    since = max(before.since or start, after.since or start)
    until = min(before.until or end, after.until or end)
    bounds = None if since == start else since, None if until == end else until
    if since < until and reading.holds(part, *bounds):
        both = "both whole" if (since, until) == (start, end) else f"both hold {_span(since, until, start, end)}"
        raise AssumptionError(
            f"--before {before.text} and --after {after.text} overlap ({both}): a request would be compared with "
            "itself. Write FILE.duckdb@FROM..TO so that one ends where the other begins"
        )


def _span(since: datetime, until: datetime, start: datetime, end: datetime) -> str:
    return f"{'' if since == start else since.isoformat()}..{'' if until == end else until.isoformat()}"


def _pairs(
    old: Columns, new: Columns, events: tuple[Event, ...] | None, hosts: Samples | None, metrics: Samples | None
) -> Pairs:
    keys = sorted(old.counts.keys() | new.counts.keys(), key=lambda key: (-_size(new, key), -_size(old, key), key))
    labels = _labels(keys)
    total = sum(old.counts.values()), sum(new.counts.values())
    mix = tuple(
        Share(labels[key], _size(old, key), _size(new, key), _size(old, key) / total[0], _size(new, key) / total[1])
        for key in keys
    )
    notes = (*_of_windows(old, new), *_of_models(mix))
    found: list[Pair] = []
    for label, pair_keys in _matched(old, new, keys, labels):
        billed = ("", "") if pair_keys[1] == reading.ALL_MODELS else pair_keys[1]
        pair = replace(paired(label, old, new, pair_keys), events=events, hosts=hosts, metrics=metrics, billed=billed)
        found.append(engines.filled(pair))
    return Pairs(tuple(found), mix, notes)


def _matched(
    old: Columns, new: Columns, keys: Sequence[Key], labels: Mapping[Key, str]
) -> list[tuple[str, tuple[Key, Key]]]:
    """List what is compared with what: each model with itself."""
    if reading.ALL_MODELS in old.models:
        ways = [" and ".join(labels[key] for key in keys if _size(one, key)) for one in (old, new)]
        return [(" against ".join(dict.fromkeys(ways)), (reading.ALL_MODELS, reading.ALL_MODELS))]
    shared = [key for key in keys if key in old.counts and key in new.counts]
    if shared:
        return [(labels[key], (key, key)) for key in shared]
    most = max(old.counts, key=lambda key: _size(old, key)), max(new.counts, key=lambda key: _size(new, key))
    return [(f"{labels[most[0]]} before, {labels[most[1]]} after", most)]


def _size(columns: Columns, key: Key) -> int:
    return columns.counts.get(key, 0)


def _labels(keys: Sequence[Key]) -> dict[Key, str]:
    """Name models; their provider only where several serve one."""
    models = [model for _, model in keys]
    return {
        (provider, model): f"{provider or 'no provider named'}/{model or NO_MODEL}"
        if models.count(model) > 1
        else model or NO_MODEL
        for provider, model in keys
    }


def _of_windows(old: Columns, new: Columns) -> tuple[str, ...]:
    """Say what is odd about the windows."""
    notes: list[str] = []
    for name, one in (("before", old), ("after", new)):
        if one.gateway_hits:
            notes.append(
                f"Window {name}: {counted(one.gateway_hits, 'request')} that a gateway's cache answered left out"
            )
        if one.undated:
            notes.append(f"Window {name}: {counted(one.undated, 'request')} without a time left out (column ts)")
        if one.is_cut:
            notes.append(f"Window {name}: the log covers only {_time(one.since_s)} to {_time(one.until_s)} of it")
        grain = next((word for unit, word in _GRAINS if not np.any(one.ts_s % unit)), None)
        if np.isnan(one.ts_s).any():
            notes.append(f"Window {name}: no request has a time (column ts): they are taken in the order of the file")
        elif grain is not None and one.ts_s.size > 1:
            notes.append(
                f"Window {name}: times are whole {grain}: order, load and waits within one can not be told from them"
            )
    if new.until_s <= old.since_s:
        notes.append("The window after lies earlier in time than the one before: the change is told backwards")
    elif new.since_s < old.until_s and old.since_s < new.until_s:
        notes.append("The windows overlap in time, in different logs: a change cannot be dated from them")
    return tuple(notes)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def _of_models(mix: tuple[Share, ...]) -> tuple[str, ...]:
    gone = [f"{one.model} ({one.before:,})" for one in mix if not one.after]
    come = [f"{one.model} ({one.after:,})" for one in mix if not one.before]
    return (
        *((f"Only in the window before: {', '.join(gone)}",) if gone else ()),
        *((f"Only in the window after: {', '.join(come)}",) if come else ()),
    )
