"""The days or months that a report is cut into, and where the report itself says that each begins and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple

_DAY = timedelta(days=1)
_LONGEST_DAY = timedelta(hours=26)


class Period(NamedTuple):
    """One day, month or span that amounts are for.

    Args:
        name: As ``by_meter`` calls it: 2026-07-01, 2026-07, or two days with a slash.
        start: First instant, naive UTC, as the days of the report are cut.
        end: Instant after the last.
        stated_start: What the report says of this one.
        stated_end: What the report says of this one.
        is_reported: The report has rows for it.
    """

    name: str
    start: datetime
    end: datetime
    stated_start: datetime
    stated_end: datetime
    is_reported: bool = True

    @property
    def is_odd(self) -> bool:
        """Whether the report says that it is cut in another way than the others."""
        return (self.start, self.end) != (self.stated_start, self.stated_end)


def periods_of(spans: Iterable[tuple[datetime, datetime]]) -> tuple[tuple[Period, ...], bool]:
    """Cut what a report covers into periods.

    Args:
        spans: Start and end of its rows.

    Returns:
        The periods in order, days without a row between them included; and whether they are days.
    """
    held = sorted(set(spans))
    if not held:
        return (), True
    if all(end - start <= _LONGEST_DAY for start, end in held):
        return _days(held), True
    months = {_middle(span).replace(day=1) for span in held}
    by_month = {month: [span for span in held if _middle(span).replace(day=1) == month] for month in sorted(months)}
    if all(end - start <= timedelta(days=32) for start, end in held):
        made = [_span(spans, f"{month:%Y-%m}") for month, spans in by_month.items()]
        if all(one.end - one.start <= timedelta(days=32) for one in made):
            return tuple(made), False
    first, last = held[0][0], max(end for _, end in held)
    return (_span(held, f"{first:%Y-%m-%d}/{last - timedelta(microseconds=1):%Y-%m-%d}"),), False


def place_of(span: tuple[datetime, datetime], periods: tuple[Period, ...]) -> Period:
    """Find the period of a row.

    Args:
        span: The row's start and end.
        periods: Those of its report.

    Returns:
        The one that holds its middle.
    """
    middle = span[0] + (span[1] - span[0]) / 2
    found = next((one for one in periods if one.stated_start <= middle < one.stated_end), None)
    return found or min(periods, key=lambda one: abs(one.start + (one.end - one.start) / 2 - middle))


def _middle(span: tuple[datetime, datetime]) -> date:
    return (span[0] + (span[1] - span[0]) / 2).date()


def _span(spans: list[tuple[datetime, datetime]], name: str) -> Period:
    start, end = min(start for start, _ in spans), max(end for _, end in spans)
    return Period(name, start, end, start, end)


def _days(held: list[tuple[datetime, datetime]]) -> tuple[Period, ...]:
    stated: dict[date, tuple[datetime, datetime]] = {}
    for start, end in held:
        day = _middle((start, end))
        whole = datetime.combine(day, time())
        # hours make up a whole day
        own = (whole, whole + _DAY) if end - start <= timedelta(hours=2) else (start, end)
        known = stated.get(day, own)
        stated[day] = min(known[0], own[0]), max(known[1], own[1])
    shift = Counter(start - datetime.combine(day, time()) for day, (start, _) in stated.items()).most_common(1)[0][0]
    days = [min(stated) + _DAY * n for n in range((max(stated) - min(stated)).days + 1)]
    plain = {day: (datetime.combine(day, time()) + shift, datetime.combine(day, time()) + shift + _DAY) for day in days}
    full = {day: stated.get(day, plain[day]) for day in days}
    # Days that follow one another without a gap are the report's own; elsewhere most of them say how days are cut.
    is_whole = all(full[a][1] == full[b][0] for a, b in pairwise(days))
    return tuple(
        Period(day.isoformat(), *(full if is_whole else plain)[day], *full[day], is_reported=day in stated)
        for day in days
    )
