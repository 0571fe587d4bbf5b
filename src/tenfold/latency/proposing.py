"""Windows proposed where nobody knows them: around an instant, or around the clearest change of the tail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.latency.changepoints import ChangePoint, change_points
from tenfold.latency.parts import Part
from tenfold.latency.preconditions import NEEDED
from tenfold.latency.records import Floats
from tenfold.latency.visible import visible
from tenfold.levers.where import check
from tenfold.store import steps
from tenfold.store.engines.duckdb import DuckDBEngine, reading

if TYPE_CHECKING:
    from collections.abc import Generator

    from tenfold.logs import Log

_COMPONENTS = {"ttft": "TTFT", "tpot": "TPOT", "output": "output length"}
# Lengths of windows that are tried around an instant, the shortest first.
LENGTHS = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=6), timedelta(days=1))
_EARLIER = (timedelta(days=1), timedelta(weeks=1))
# Requests of a slice whose tail is told, slices of a log, and requests from which a slice tells its p99.
_SLICE, _LEAST, _MOST, _P99 = 250, 12, 160, 1_000
# Chance below which a change counts, over all components; a smaller change of a tail is no incident.
_P, _RATIO = 0.01, 1.1
# Blocks that are permuted.
_BLOCKS = 20
# Slices on either side of a change point in which the request is sought that it begins with.
_NEAR = 3


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two windows to compare.

    Args:
        before: The window that was fine.
        after: The window in question.
        at: Where one ends and the other begins.
        why: How they were chosen, in sentences.
        requests: Usable requests of the most asked model before and after.
        component: What changed there (``ttft``, ``tpot`` or ``output``); empty: an instant was given.
        p: Chance of a change as clear without one; None: an instant was given.
        ratio: Its tail after over before; None: an instant was given.
        alternatives: Other windows before: the same hours a day and a week earlier, where the log has enough of them.
    """

    before: Part
    after: Part
    at: datetime
    why: tuple[str, ...]
    requests: tuple[int, int]
    component: str = ""
    p: float | None = None
    ratio: float | None = None
    alternatives: tuple[Part, ...] = ()


class _Span(NamedTuple):
    since: datetime
    until: datetime


def around(log: Log, at: datetime, *, where: str | None = None, length: timedelta | None = None) -> Proposal:
    """Propose the windows just before and just after an instant.

    Args:
        log: The log.
        at: When it got slow (aware).
        where: SQL predicate over columns of ``requests`` that narrows both.
        length: Their length; by default the shortest of 15 minutes, 1 hour, 6 hours and 1 day that gives both 2,000
            usable requests of the most asked model (else 400, else 1 day).

    Returns:
        The windows.

    Raises:
        AssumptionError: The predicate is none, or the log does not reach to both sides of the instant.
        NotEvaluable: The log has no usable request at all.
    """
    tried = LENGTHS if length is None else (length,)
    spans: dict[str, _Span] = {}
    for i, long in enumerate(tried):
        spans |= {f"before {i}": _Span(at - long, at), f"after {i}": _Span(at, at + long)}
        spans |= {f"earlier {i} {k}": _Span(at - back, at - back + long) for k, back in enumerate(_EARLIER)}
    with _usable(log, where) as engine:
        counts = _counted(engine, spans)
        first, last = engine.fetch("select min(ts) as first, max(ts) as last from latency_usable").row(0)
    if first is None:
        raise NotEvaluable(
            f"--around needs requests with ts, ttft_ms, duration_ms and output_tokens; there is none{_narrowed(where)}"
        )
    if not first < _naive(at) <= last:
        raise AssumptionError(
            f"--around {at.isoformat()}: the log has usable requests from {first} to {last} UTC{_narrowed(where)}. "
            "Name an instant within"
        )
    place, needed = next(
        (
            (i, needed)
            for _, needed in NEEDED
            for i in range(len(tried))
            if min(counts[f"before {i}"], counts[f"after {i}"]) >= needed
        ),
        (len(tried) - 1, 0),
    )
    long, requests = tried[place], (counts[f"before {place}"], counts[f"after {place}"])
    alternatives = [
        _part(log, spans[f"earlier {place} {k}"])
        for k in range(len(_EARLIER))
        if counts[f"earlier {place} {k}"] >= max(needed, NEEDED[-1][1])
        and spans[f"earlier {place} {k}"].until <= spans[f"before {place}"].since
    ]
    return Proposal(
        _part(log, spans[f"before {place}"]),
        _part(log, spans[f"after {place}"]),
        at,
        (_chosen(long, requests, needed, is_given=length is not None),),
        requests,
        alternatives=tuple(alternatives),
    )


def _chosen(length: timedelta, requests: tuple[int, int], needed: int, *, is_given: bool) -> str:
    told = (
        f"{_told(length)} on either side: {requests[0]:,} and {requests[1]:,} usable requests of the most asked model"
    )
    if is_given:
        return told
    if not needed:
        return f"{told}; no length up to {_told(LENGTHS[-1])} gives {NEEDED[-1][1]:,} on either side"
    quantile = next(quantile for quantile, least in NEEDED if least == needed)
    lengths = ", ".join(_told(one) for one in LENGTHS)
    return f"{told}, the shortest of {lengths} that gives {needed:,} (for p{quantile * 100:.0f})"


def _told(length: timedelta) -> str:
    minutes = round(length.total_seconds() / 60)
    for size, word in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes % size == 0:
            many = minutes // size
            return f"{many} {word}{'s' if many > 1 else ''}"
    return str(length)


def find(log: Log, *, where: str | None = None) -> Proposal | None:
    """Propose the windows on both sides of the clearest change of the tail.

    Args:
        log: The log.
        where: SQL predicate over columns of ``requests`` that narrows it.

    Returns:
        The windows, each up to the neighbouring change point; None: no change at the 1 % level.

    Raises:
        AssumptionError: The predicate is none.
        NotEvaluable: The log has too few usable requests for a series of tails; names how many are missing.
    """
    with _usable(log, where) as engine:
        models = engine.fetch(
            "select provider, model, count(*) as requests from latency_usable group by provider, model "
            "order by requests desc, provider, model"
        )
        most = models.row(0) if models.height else ("", "", 0)
        if most[2] < _SLICE * _LEAST:
            raise NotEvaluable(
                f"--find needs {_SLICE * _LEAST:,} requests of one model with ts, ttft_ms, duration_ms and "
                f"output_tokens; there are {most[2]:,}{_narrowed(where)}, {_SLICE * _LEAST - most[2]:,} are missing"
            )
        frame = engine.fetch("select * from latency_usable order by ts").filter(
            (pl.col("provider") == most[0]) & (pl.col("model") == most[1])
        )
    ts_s = frame["ts"].dt.epoch("us").to_numpy() / 1e6
    series = Series.of(ts_s, {name: frame[name].cast(pl.Float64).to_numpy() for name in _COMPONENTS})
    found = clearest(series)
    if found is None:
        return None
    spans = [_Span(_aware(since), _aware(until)) for since, until in (found.before, found.after)]
    at = spans[1].since
    edges = np.searchsorted(ts_s, [*found.before, *found.after])
    sizes = int(edges[1] - edges[0]), int(edges[3] - edges[2])
    told = (
        f"the p{series.quantile * 100:.0f} of {_COMPONENTS[found.component]} is {found.ratio:.2f} times as high from "
        f"{at:%Y-%m-%d %H:%M:%S} UTC on (by chance with probability {found.p:.3f}; {series.count} slices of "
        f"{ts_s.size // series.count:,} requests)"
    )
    why = (told, "each window ends at the next change point") if found.is_bounded else (told,)
    before, after = (_part(log, span) for span in spans)
    return Proposal(before, after, at, why, sizes, found.component, found.p, found.ratio)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The tail of a log in slices of equally many requests.

    Args:
        ts_s: Arrivals in order, in seconds since 1970.
        columns: Component to its values; NaN: not known.
        edges: First request of each slice, and the number of all.
        quantile: The quantile that is told.
        logs: Component to the logarithm of its quantile a slice; NaN where there are too few.
    """

    ts_s: Floats
    columns: Mapping[str, Floats]
    edges: tuple[int, ...]
    quantile: float
    logs: dict[str, Floats]

    @property
    def count(self) -> int:
        """Slices."""
        return len(self.edges) - 1

    @classmethod
    def of(cls, ts_s: Floats, columns: Mapping[str, Floats]) -> Series:
        """Cut a log into slices and take their tails.

        Args:
            ts_s: Arrivals in order, in seconds since 1970.
            columns: Component to its values; NaN: not known.

        Returns:
            The series.
        """
        count = min(_MOST, ts_s.size // _SLICE)
        quantile = NEEDED[0][0] if ts_s.size >= count * _P99 else NEEDED[-1][0]
        edges = tuple(ts_s.size * i // count for i in range(count + 1))
        logs = {name: _tails(values, edges, quantile) for name, values in columns.items()}
        return cls(ts_s, columns, edges, quantile, logs)

    def time(self, request: int) -> float:
        """Give a request's arrival; behind the last, the end of the log."""
        return float(self.ts_s[request]) if request < self.ts_s.size else float(self.ts_s[-1]) + 1e-6


def _tails(values: Floats, edges: Sequence[int], quantile: float) -> Floats:
    cut = [values[since:until] for since, until in pairwise(edges)]
    known = [part[part > 0] for part in cut]
    # a quantile with fewer than three values beyond it is the maximum by another name
    return np.array(
        [np.log(np.quantile(part, quantile)) if part.size * (1 - quantile) >= 3 else np.nan for part in known]
    )


class Change(NamedTuple):
    """A change of a component's tail.

    Args:
        component: ``ttft``, ``tpot`` or ``output``.
        before: The time before it, up to the change point before; in seconds since 1970.
        after: The time after it, up to the next change point.
        ratio: Tail after over before.
        p: Chance of a change as clear without one.
        is_bounded: Whether another change point ends one of the times.
    """

    component: str
    before: tuple[float, float]
    after: tuple[float, float]
    ratio: float
    p: float
    is_bounded: bool


# Part of the largest rise from which an earlier one is where it began.
_STAGE = 0.3


def clearest(series: Series) -> Change | None:
    """Find the first large rise of a tail, or, where none rose, the largest fall.

    Trouble comes in stages: a later one compared with an earlier one hides what began it. Each window goes on until it
    has the requests that a p99 takes.

    Args:
        series: The tails of a log.

    Returns:
        The change; None: none of 10 % or more at the 1 % level.
    """
    found: list[tuple[str, ChangePoint, Sequence[int]]] = []
    for name, logs in series.logs.items():
        points = _points(logs, _P / len(series.logs))
        edges = [0, *(one.place for one in points), series.count]
        found += [(name, one, edges[i : i + 3]) for i, one in enumerate(points) if abs(one.size) >= np.log(_RATIO)]
    if not found:
        return None
    most = max(one.size for _, one, _ in found)
    rising = [one for one in found if one[1].size > 0 and one[1].size >= _STAGE * most]
    component, point, (since, at, until) = (
        min(rising, key=lambda one: one[1].place) if rising else max(found, key=lambda one: abs(one[1].size))
    )
    # either side once more by itself: the shorter a stretch, the shorter the blocks that show its own changes
    logs = series.logs[component]
    while stages := [one for one in _points(logs[since:at], _P) if one.size >= _STAGE * most > 0]:
        at = since + stages[0].place
    since += max((one.place for one in _points(logs[since:at], _P)), default=0)
    until = at + min((one.place for one in _points(logs[at:until], _P)), default=until - at)
    enough = NEEDED[0][1]
    while since > 0 and series.edges[at] - series.edges[since] < enough:
        since -= 1
    while until < series.count and series.edges[until] - series.edges[at] < enough:
        until += 1
    first = _first(series, component, since, at, until)
    return Change(
        component,
        (series.time(series.edges[since]), series.time(first)),
        (series.time(first), series.time(series.edges[until])),
        float(np.exp(np.nanmedian(logs[at:until]) - np.nanmedian(logs[since:at]))),
        point.p,
        since > 0 or until < series.count,
    )


def _points(logs: Floats, p: float) -> tuple[ChangePoint, ...]:
    # long blocks keep together what load does to a tail; fewer than twenty could not show that a split is rare
    return change_points(logs, p=p, block=max(1, logs.size // _BLOCKS))


def _first(series: Series, component: str, since: int, at: int, until: int) -> int:
    """Find the request that a change begins with: where the share of slow ones splits best, near the change point."""
    logs = series.logs[component]
    levels = float(np.nanmedian(logs[since:at])), float(np.nanmedian(logs[at:until]))
    start, end = series.edges[max(since, at - _NEAR)], series.edges[min(until, at + _NEAR)]
    values = series.columns[component][start:end]
    known = np.flatnonzero(~np.isnan(values))
    slow = np.cumsum(values[known] > np.exp(np.mean(levels)))
    left = np.arange(1, known.size)
    right = known.size - left
    fit = _likelihood(slow[:-1], left) + _likelihood(slow[-1] - slow[:-1], right)
    return start + int(known[int(np.argmax(fit)) + 1])


def _likelihood(hits: NDArray[np.int64], of: NDArray[np.int64]) -> Floats:
    """Give the log likelihood of a share at its best."""
    share: Floats = np.clip(hits / of, 1e-12, 1 - 1e-12)
    return of * (share * np.log(share) + (1 - share) * np.log1p(-share))


def _narrowed(where: str | None) -> str:
    return "" if where is None else f" where {visible(where)} (--where)"


@contextmanager
def _usable(log: Log, where: str | None) -> Generator[DuckDBEngine]:
    """Open a log with its usable requests as ``latency_usable``."""
    asked = "true" if where is None else f"(\n{check(where, '--where')}\n)"
    with reading(log.store) as engine:
        steps.run(engine, "latency_usable", requests="requests", condition=asked)
        yield engine


def _counted(engine: DuckDBEngine, spans: Mapping[str, _Span]) -> dict[str, int]:
    """Count usable requests a span, of the model that is asked most in all of them."""
    rows = [(name, _naive(span.since), _naive(span.until)) for name, span in spans.items()]
    schema = {"span": pl.String, "since": pl.Datetime("us"), "until": pl.Datetime("us")}
    engine.register("latency_span", pl.DataFrame(rows, schema=schema, orient="row"))
    counted = engine.fetch(steps.filled("latency_spans"))
    by_model: dict[tuple[str, str], dict[str, int]] = {}
    for span, provider, model, requests in counted.iter_rows():
        by_model.setdefault((provider, model), {})[span] = requests
    if not by_model:
        return dict.fromkeys(spans, 0)
    most = by_model[max(by_model, key=lambda key: (sum(by_model[key].values()), key))]
    return {name: most.get(name, 0) for name in spans}


def _part(log: Log, span: _Span) -> Part:
    told = f"{log.store.path or 'the log'}@{_stamp(span.since)}..{_stamp(span.until)}"
    return Part(log, span.since, span.until, told)


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)


def _aware(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
