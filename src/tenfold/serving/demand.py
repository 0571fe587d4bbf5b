"""What was asked of a fleet: tokens, time under way and an hourly profile of each model's requests, from the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from tenfold.ledger import Session
from tenfold.prices.words import canonical_provider
from tenfold.serving.fleet import PROVIDER, Stretch, micros
from tenfold.store import steps

# Number of a model that no pool runs.
ON_NO_POOL = -1


class Hour(NamedTuple):
    """One hour of a model's traffic; a request counts in the hour in which it starts.

    Args:
        starts_at: Its start (aware); of the first, the start of the stretch.
        seconds: Its length within the stretch.
        requests: Requests that start in it.
        input_tokens: Their prompts' tokens, cached ones included.
        output_tokens: Their answers' tokens.
        in_flight: Requests under way, on average over the hour; None where no request has a duration.
        peak: The most at once; None likewise.
    """

    starts_at: datetime
    seconds: float
    requests: int
    input_tokens: int
    output_tokens: int
    in_flight: float | None
    peak: int | None


@dataclass(frozen=True, slots=True)
class Demand:
    """A model's priced requests over a stretch of time.

    Args:
        requests: How many.
        uncached_tokens: Prompt tokens that were computed.
        cached_tokens: Prompt tokens whose keys and values were there.
        output_tokens: Tokens of answers.
        timed_requests: Those with a duration.
        busy_us: Replica-microseconds in which at least one request was under way; 0 where none has a duration.
        in_flight_us: Request-microseconds under way: the sum of durations within the stretch.
        peak: The most requests under way at once, over all replicas; None where none has a duration.
        replicas_seen: Different values of ``replica``; 0 where the column is empty.
        hours: Its hourly profile, hours without a request included.
    """

    requests: int
    uncached_tokens: int
    cached_tokens: int
    output_tokens: int
    timed_requests: int
    busy_us: int
    in_flight_us: int
    peak: int | None
    replicas_seen: int
    hours: tuple[Hour, ...]

    @property
    def input_tokens(self) -> int:
        """All prompt tokens."""
        return self.uncached_tokens + self.cached_tokens

    @property
    def mean_input(self) -> float:
        """Prompt tokens of a request, cached ones included; 0 without requests."""
        return self.input_tokens / self.requests if self.requests else 0.0

    @property
    def mean_output(self) -> float:
        """Tokens of an answer; 0 without requests."""
        return self.output_tokens / self.requests if self.requests else 0.0

    @property
    def busy_s(self) -> float:
        """Replica-seconds in which at least one request was under way."""
        return self.busy_us / 1e6

    @property
    def in_flight_s(self) -> float:
        """Request-seconds under way."""
        return self.in_flight_us / 1e6

    @property
    def batch(self) -> float | None:
        """Requests under way in a busy replica, on average (Little's law); None where no duration is known."""
        return self.in_flight_us / self.busy_us if self.busy_us else None


Span: TypeAlias = tuple[datetime, datetime]


class Seen(NamedTuple):
    """What a log says of a fleet before anything is counted.

    Args:
        covered: First start to last end of all requests of the log with a time, of any provider; None without one.
        hosted: The same of the window's self-hosted requests.
        models: Self-hosted models of the log, as logged, to its number in the fleet (-1: on no pool).
        undated: Self-hosted requests of the log without a time.
        dated: Those with one.
        last_start: When the log's last request starts; None where none has a time.
        odd: Requests of the log whose duration is no time, and so taken for unknown.
        latest: Where the request is that ends last: file, line and id.
        first_odd: The same of the first of ``odd``; None without one.
    """

    covered: Span | None
    hosted: Span | None
    models: Mapping[str, int]
    undated: int
    dated: int
    last_start: datetime | None
    odd: int
    latest: str | None
    first_odd: str | None


def lay(session: Session, models: Sequence[str]) -> Seen:
    """Lay out a session's self-hosted requests, for ``demands`` to read.

    Args:
        session: The log, priced by a book that has the models.
        models: Models of the fleet, in lower case.

    Returns:
        What the log covers, and which models it has.
    """
    numbers = {model: number for number, model in enumerate(models)}
    hosted = [(key, model) for key, provider, model, *_ in session.keys if canonical_provider(provider) == PROVIDER]
    keys = [(key, numbers.get(session.card.matches[key].model, ON_NO_POOL)) for key, _ in hosted]
    days = sorted(session.days)
    session.engine.register(
        "fleet_keys", pl.DataFrame(keys, orient="row", schema={"price_key": pl.Int32, "model_number": pl.Int64})
    )
    session.engine.register(
        "fleet_calendar",
        pl.DataFrame(
            {"day": days, "day_number": [(day - _EPOCH.date()).days for day in days]},
            schema={"day": pl.Date, "day_number": pl.Int64},
        ),
    )
    steps.run(session.engine, "fleet_timed", materialised=True)
    own = session.engine.fetch(
        "select min(starts_us) as since_us, max(starts_us + greatest(coalesce(lasts_us, 0), 1)) as until_us "
        "from fleet_timed"
    )
    steps.run(session.engine, "fleet_log")
    whole = session.engine.fetch(steps.filled("fleet_covered"))
    row = whole.row(0, named=True)
    doubtful = session.engine.fetch(steps.filled("fleet_doubtful")).rows(named=True)
    places = {one["is_odd"]: _place(one) for one in doubtful}
    return Seen(
        _span(whole), _span(own), {model: number for (_, model), (_, number) in zip(hosted, keys, strict=True)},
        row["hosted_undated"], row["hosted_dated"],
        None if row["last_start_us"] is None else _instant(row["last_start_us"]),
        row["odd"], places.get(False), places.get(True),
    )  # fmt: skip


def _place(row: Mapping[str, Any]) -> str:
    named = f" (request {row['request_id']})" if row["request_id"] else ""
    return f"{row['source_file']}:{row['source_line']}{named}"


def _span(found: pl.DataFrame) -> Span | None:
    since, until = found["since_us"][0], found["until_us"][0]
    return None if since is None else (_instant(since), _instant(until))


def unserved(session: Session) -> tuple[dict[str, int], int]:
    """Count self-hosted requests by whether a pool runs their model, after ``lay``.

    Args:
        session: The same session.

    Returns:
        Models that no pool runs, as logged, to requests, most first; and requests of the fleet's own models.
    """
    found = session.engine.fetch(
        "select price_key, model_number, cast(count(*) as bigint) as n from fleet_timed "
        "group by price_key, model_number order by n desc, price_key"
    )
    names = {key: model for key, _, model, *_ in session.keys}
    others: dict[str, int] = {}
    served = 0
    for key, model, number in found.rows():
        if model == ON_NO_POOL:
            others[names[key]] = others.get(names[key], 0) + number
        else:
            served += number
    return others, served


def demands(session: Session, models: Sequence[str], stretches: Sequence[Stretch]) -> list[Demand]:
    """Say what was asked of each stretch, after ``lay``.

    Args:
        session: The same session.
        models: Models of the fleet, in lower case, as ``lay`` had them.
        stretches: Times in which a model's pools stay the same.

    Returns:
        One demand a stretch, in their order.
    """
    engine = session.engine
    rows = [
        (number, models.index(one.model), _us(one.since), _us(one.until), sum(pool.replicas for pool in one.pools))
        for number, one in enumerate(stretches)
    ]
    engine.register("fleet_stretches", pl.DataFrame(rows, orient="row", schema=dict.fromkeys(_STRETCH, pl.Int64)))
    steps.run(engine, "fleet_requests", materialised=True)
    tallies = {row["stretch"]: row for row in engine.fetch(steps.filled("fleet_tally")).rows(named=True)}
    placed = {number for number, row in tallies.items() if row["placed_requests"] == row["lasting_requests"] > 0}
    lanes = pl.DataFrame(rows, orient="row", schema=dict.fromkeys(_STRETCH, pl.Int64))
    engine.register("fleet_lanes", lanes.with_columns(is_placed=pl.col("stretch").is_in(placed)))
    engine.register("fleet_hours", _hours(rows))
    steps.run(engine, "fleet_spans", materialised=True)
    steps.run(engine, "fleet_levels", name="fleet_levels_lanes", materialised=True, spans="fleet_spans", lane="lane")
    pooled = "fleet_levels_lanes"
    if placed:
        pooled = "fleet_levels_pooled"
        steps.run(engine, "fleet_levels", name=pooled, materialised=True, spans="fleet_spans", lane="''")
    busy = {row[0]: row[1:] for row in engine.fetch(steps.filled("fleet_busy", levels="fleet_levels_lanes")).rows()}
    profile = engine.fetch(steps.filled("fleet_profile", levels=pooled))
    hours = {number: frame.rows(named=True) for (number,), frame in profile.group_by("stretch", maintain_order=True)}
    return [
        _demand(tallies.get(number), busy.get(number, (0, 0)), hours[number], one)
        for number, one in enumerate(stretches)
    ]


_STRETCH = ("stretch", "model_number", "since_us", "until_us", "replicas")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_US = 3_600_000_000


def _demand(tally: Mapping[str, Any] | None, busy: tuple[int, int], rows: list[dict[str, Any]], one: Stretch) -> Demand:
    counts = tally or dict.fromkeys(
        ("requests", "uncached_tokens", "cached_tokens", "output_tokens", "timed_requests", "replicas_seen"), 0
    )
    hours = tuple(_hour(row, one) for row in rows)
    return Demand(
        requests=counts["requests"],
        uncached_tokens=counts["uncached_tokens"],
        cached_tokens=counts["cached_tokens"],
        output_tokens=counts["output_tokens"],
        timed_requests=counts["timed_requests"],
        busy_us=busy[0],
        in_flight_us=busy[1],
        peak=max((hour.peak for hour in hours if hour.peak is not None), default=None),
        replicas_seen=counts["replicas_seen"],
        hours=hours,
    )


def _hour(row: Mapping[str, Any], one: Stretch) -> Hour:
    begins = max(_instant(row["hour_us"]), one.since)
    lasts_us = micros(begins, min(_instant(row["hour_us"] + _HOUR_US), one.until))
    under_way = row["under_way_us"]
    return Hour(
        begins,
        lasts_us / 1e6,
        row["requests"],
        row["input_tokens"],
        row["output_tokens"],
        None if under_way is None else under_way / lasts_us,
        row["peak"],
    )


def _hours(rows: Sequence[tuple[int, ...]]) -> pl.DataFrame:
    """List the hours of each stretch, cut to it."""
    made = [
        (number, hour, max(hour, since), min(hour + _HOUR_US, until))
        for number, _, since, until, _ in rows
        for hour in range(since - since % _HOUR_US, until, _HOUR_US)
    ]
    return pl.DataFrame(
        made, orient="row", schema=dict.fromkeys(("stretch", "hour_us", "begins_us", "ends_us"), pl.Int64)
    )


def _us(instant: datetime) -> int:
    return micros(_EPOCH, instant)


def _instant(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
