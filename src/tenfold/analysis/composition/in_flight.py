"""Requests in flight over time: a sweep over starts and ends, in SQL."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import polars as pl

from tenfold.ledger import Session
from tenfold.store import steps

# The window's own requests, as the session lays them out.
CELLS = "priced_requests_cells"
_EPOCH = date(1970, 1, 1)
_DAY_MS = 86_400_000
# Bucket sizes in ms, and the longest log (in days) that each is used for.
_BUCKETS = ((300_000, 2), (3_600_000, 400), (_DAY_MS, 10**6))


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Requests in flight, from their starts and durations.

    Args:
        frame: One row a bucket: ``starts_at`` (naive UTC), ``peak``, ``average`` (float); empty where nothing is timed.
        bucket_s: Length of a bucket in seconds.
        requests: Requests that went to a provider.
        timed_requests: Those of them with a start and a duration: only these are counted.
        average: In flight on average, over all buckets.
        peak: The most at once.
        peak_at: Start of the first bucket that holds the peak.
    """

    frame: pl.DataFrame = field(compare=False)
    bucket_s: int
    requests: int
    timed_requests: int
    average: Fraction | None
    peak: int | None
    peak_at: datetime | None


def concurrency(session: Session, calls: dict[str, Any], cells: str = CELLS) -> Concurrency:
    """Sweep the session's window for requests in flight.

    Args:
        session: A priced look at a store.
        calls: The row of step ``calls``, over the same cells.
        cells: View of the requests to sweep.

    Returns:
        Average and peak, over buckets of five minutes, an hour or a day as the log is long.
    """
    first, last = calls["first_ts"], calls["last_ts"]
    if not calls["timed"] or first is None:
        empty = pl.DataFrame(schema={"starts_at": pl.Datetime("us"), "peak": pl.Int64, "average": pl.Float64})
        return Concurrency(empty, _BUCKETS[1][0] // 1000, calls["in_flight"], 0, None, None, None)
    days = [first.date() + timedelta(days=n) for n in range((last.date() - first.date()).days + 1)]
    bucket_ms = next(size for size, most in _BUCKETS if len(days) <= most)
    numbers = [(day - _EPOCH).days for day in days]
    session.engine.register("calendar", pl.DataFrame({"day": days, "day_number": numbers}))
    start = _ms(first) // bucket_ms * bucket_ms
    end = _ms(last) // bucket_ms * bucket_ms + bucket_ms
    starts = range(start, end, bucket_ms)
    session.engine.register(
        "buckets", pl.DataFrame({"starts_ms": starts, "ends_ms": [at + bucket_ms for at in starts]})
    )
    session.engine.register("bucket_size", pl.DataFrame({"size_ms": [bucket_ms]}))
    frame = session.engine.fetch(steps.filled("concurrency", cells=cells)).select(
        starts_at=pl.from_epoch("starts_ms", time_unit="ms").cast(pl.Datetime("us")),
        peak="peak",
        average=pl.col("busy_ms") / bucket_ms,
        busy_ms="busy_ms",
    )
    peak = int(frame["peak"].max())  # pyright: ignore[reportArgumentType]  # at least one bucket
    return Concurrency(
        frame=frame.drop("busy_ms"),
        bucket_s=bucket_ms // 1000,
        requests=calls["in_flight"],
        timed_requests=calls["timed"],
        average=Fraction(int(frame["busy_ms"].sum()), end - start),
        peak=peak,
        peak_at=aware(frame.filter(peak=peak)["starts_at"][0]),
    )


def _ms(naive_utc: datetime) -> int:
    return (naive_utc - datetime(1970, 1, 1)) // timedelta(milliseconds=1)  # noqa: DTZ001 -- naive UTC, as stored


def aware(naive_utc: datetime | None) -> datetime | None:
    """Give a naive UTC time of the store its zone.

    Args:
        naive_utc: The time, or None.

    Returns:
        The instant, or None.
    """
    return None if naive_utc is None else naive_utc.replace(tzinfo=UTC)
