"""Providers' cheaper hours: from when to when a request would better wait, and until when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from tenfold.ledger.session import Session

DAY = timedelta(days=1)
# Meters that say which hours are cheaper; whole price lists move, so that the first that differs decides.
_METERS = ("rate_uncached_input", "rate_output", "rate_cache_read")
_SCHEMA: dict[str, pl.DataType] = {
    "price_key": pl.Int32(),
    "starts": pl.Datetime("us"),
    "ends": pl.Datetime("us"),
    "moved_to": pl.Datetime("us"),
}


class Span(NamedTuple):
    """A time with one price.

    Args:
        starts: First instant (naive UTC).
        ends: Instant after the last.
        price: What it costs; smaller is cheaper.
    """

    starts: datetime
    ends: datetime
    price: tuple[int, ...]


def cheapest_starts(spans: Sequence[Span]) -> Iterator[tuple[datetime, datetime, datetime | None]]:
    """Say when a request had better start, within 24 hours of its own start.

    Args:
        spans: Times with their prices, in order, none overlapping.

    Yields:
        (From, until, start of the cheapest time; None where no later time within 24 hours is cheaper), without gaps
        within the spans. Of several as cheap the first one is taken.
    """
    for place, own in enumerate(spans):
        near = spans[place + 1 : bisect_right(spans, own.ends + DAY, key=lambda one: one.starts)]
        reached = {one.starts - DAY for one in near if one.starts - DAY > own.starts}
        for start, end in pairwise(sorted({own.starts, own.ends, *reached})):
            later = [one for one in near if one.starts <= start + DAY and one.price < own.price]
            best = min(later, key=lambda one: (one.price, one.starts), default=None)
            yield start, end, None if best is None else best.starts


def no_hours() -> pl.DataFrame:
    """Make the table of ``cheaper_hours`` without a row."""
    return pl.DataFrame(schema=_SCHEMA)


def cheaper_hours(session: Session, requests: str) -> pl.DataFrame:
    """Find, for models whose prices change within a day, when their requests had better start.

    Args:
        session: The priced session; gets the day after each of the requests.
        requests: View with ``price_key`` and ``ts``.

    Returns:
        A row a piece of time: ``price_key, starts, ends, moved_to`` (NULL where it is cheapest as it is); nothing for
        models of one price, nor where everything is priced at one instant.
    """
    if session.price_at is not None:
        return no_hours()
    found = session.engine.fetch(
        f"select price_key, cast(ts as date) as day from {requests} where ts is not null "
        "group by all order by all nulls last"
    )
    days: dict[int, set[date]] = {}
    for key, day in found.rows():
        days.setdefault(key, set()).update((day, day + DAY))
    session.add_days({key: sorted(both) for key, both in days.items()})
    of_day = session.card.frame.filter(pl.col("above") == pl.col("above").min().over("price_key", "day"))
    of_day = of_day.filter(~pl.col("is_ambiguous"), pl.all_horizontal(pl.col(_METERS[:2]).is_not_null()))
    rows: list[tuple[object, ...]] = []
    for key, both in days.items():
        own = of_day.filter(pl.col("price_key") == key, pl.col("day").is_in(sorted(both))).sort("valid_from")
        prices = own.select(pl.col(name).fill_null(0) for name in _METERS).rows()
        edges = own.select("valid_from", "valid_to").rows()
        spans = [Span(start, end, price) for (start, end), price in zip(edges, prices, strict=True)]
        if len({one.price for one in spans}) > 1:
            rows += [(key, *piece) for piece in cheapest_starts(spans)]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")
