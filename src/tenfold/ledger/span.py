"""The days that a log covers within a window, and which of them it covers in part: what a day's sum may be held to."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from tenfold.display import counted
from tenfold.ledger import Ledger
from tenfold.store import steps

DAY = timedelta(days=1)
# A day at an edge of the log is whole if no more of it is missing than this, or than some usual waits for a request.
_SLACK = timedelta(hours=1)
_WAITS = 5


class Span(NamedTuple):
    """Days of a log within a window, in the window's zone.

    Args:
        first: First day that has data.
        last: Last one.
        partial: Of the two, those that the log or the window covers in part only.
    """

    first: date
    last: date
    partial: frozenset[date]

    @property
    def days(self) -> int:
        """How many days these are, those covered in part too."""
        return (self.last - self.first).days + 1

    def whole(self) -> tuple[date, ...]:
        """List the days that are covered whole, in order; days without a request among them."""
        return tuple(day for n in range(self.days) if (day := self.first + n * DAY) not in self.partial)


def span(ledger: Ledger) -> Span | None:
    """Find the days that a ledger's log covers.

    An edge of the log is where all its requests begin and end, whatever the window; a window that opens later opens
    on a day that is whole, unless it opens within one.

    Args:
        ledger: The ledger; its window says which days, and in which zone.

    Returns:
        The days; None where the log has no time, or none in the window.
    """
    window = ledger.window
    with ledger.session() as session:
        log_first, log_last, requests = session.engine.fetch(steps.filled("log_span")).row(0)
    if not requests:
        return None
    begins, ends = log_first.replace(tzinfo=UTC), log_last.replace(tzinfo=UTC)
    since, until = (
        max(window.since or begins, begins),
        min(window.until or ends + DAY, ends + timedelta(microseconds=1)),
    )
    if since >= until:
        return None
    zone = ZoneInfo(window.zone)
    slack = max(_SLACK, _WAITS * (ends - begins) / requests)
    first, last = since.astimezone(zone).date(), (until - timedelta(microseconds=1)).astimezone(zone).date()
    missing_before, missing_after = since - starts(first, zone), starts(last + DAY, zone) - until
    partial: set[date] = set()
    if missing_before > (slack if since == begins else timedelta()):
        partial.add(first)
    if missing_after > (timedelta() if until == window.until else slack):
        partial.add(last)
    return Span(first, last, frozenset(partial))


def undated_notes(daily: pl.DataFrame) -> list[str]:
    """Say how many requests an analysis of days leaves out because they have no time.

    Args:
        daily: A composition by ``day``.

    Returns:
        One line, or none.
    """
    undated = int(daily.filter(pl.col("day").is_null())["requests"].sum() or 0)
    return [f"{counted(undated, 'request')} without a time left out"] if undated else []


def starts(day: date, zone: ZoneInfo) -> datetime:
    """Give the first instant of a day.

    Args:
        day: The day.
        zone: Its zone.

    Returns:
        The instant, in UTC.
    """
    return datetime.combine(day, time(), zone).astimezone(UTC)
