"""Times of the week at which a price holds: weekdays and hours in a named zone (DeepSeek's peak hours)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES = 24 * 60
_RANGE = re.compile(r"\d\d:\d\d-\d\d:\d\d")


class Window(NamedTuple):
    """When in a week a price list holds.

    Args:
        weekdays: Numbers of the weekdays, 0 is Monday.
        hours: Half-open ranges in minutes of the day.
        zone: IANA zone of both.
    """

    weekdays: tuple[int, ...]
    hours: tuple[tuple[int, int], ...]
    zone: str

    def covers(self, instant: datetime) -> bool:
        """Tell whether an instant lies in the window.

        Args:
            instant: An aware instant.

        Returns:
            Whether it does.
        """
        local = instant.astimezone(ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        return local.weekday() in self.weekdays and any(start <= minute < end for start, end in self.hours)

    def pieces(self, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Cut the window to intervals within a range.

        Args:
            since: Aware start.
            until: Aware end.

        Yields:
            Half-open UTC intervals, in time order.
        """
        zone = ZoneInfo(self.zone)
        first, last = since.astimezone(zone).date(), until.astimezone(zone).date()
        cuts = {since, until, *_clock_changes(zone, since, until)}
        for number in range((last - first).days + 2):
            for minute in {0, *(edge for hours in self.hours for edge in hours)}:
                cuts.update(_at(first + timedelta(days=number), minute, zone))
        edges = sorted(cut for cut in cuts if since <= cut <= until)
        held: tuple[datetime, datetime] | None = None
        for start, end in pairwise(edges):
            if self.covers(start):
                held = (held[0] if held else start, end)
            elif held:
                yield held
                held = None
        if held:
            yield held

    def text(self) -> str:
        """Say the window in words.

        Returns:
            Text such as ``mon-fri 01:00-04:00, 06:00-10:00 UTC``.
        """
        days = ",".join(WEEKDAYS[day] for day in self.weekdays)
        days = {"mon,tue,wed,thu,fri": "mon-fri", "sat,sun": "sat-sun", ",".join(WEEKDAYS): "daily"}.get(days, days)
        hours = ", ".join(f"{_clock(start)}-{_clock(end)}" for start, end in self.hours)
        return f"{days} {hours} {self.zone}"


def window(weekdays: Sequence[str], hours: Sequence[str], zone: str) -> Window | None:
    """Read a window as a price file writes it.

    Args:
        weekdays: ``mon`` to ``sun``; none for every day.
        hours: ``HH:MM-HH:MM`` ranges of one day, ``24:00`` for its end; none for the whole day.
        zone: IANA zone; empty only where there is no window.

    Returns:
        The window; None where nothing restricts the time.

    Raises:
        ValueError: A word, a range or the zone is unknown.
    """
    if not weekdays and not hours:
        if zone:
            raise ValueError("zone says nothing without weekdays or hours")
        return None
    if not zone:
        raise ValueError('weekdays and hours need a zone, such as zone = "UTC"')
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f'zone: no time zone "{zone}"') from error
    for word in weekdays:
        if word not in WEEKDAYS:
            raise ValueError(f'weekdays: "{word}" is none of {", ".join(WEEKDAYS)}')
    days = tuple(sorted({WEEKDAYS.index(word) for word in weekdays})) or tuple(range(7))
    ranges = tuple(sorted(_range(text) for text in hours)) or ((0, _DAY_MINUTES),)
    if any(right[0] < left[1] for left, right in pairwise(ranges)):
        raise ValueError("hours: two ranges overlap")
    return Window(days, ranges, zone)


def overlap(left: Window, right: Window) -> bool:
    """Tell whether two windows share an instant of an ordinary week, in summer or winter time.

    Args:
        left: One window.
        right: The other.

    Returns:
        Whether they do.
    """
    for monday in (datetime(2026, 1, 12, tzinfo=UTC), datetime(2026, 7, 13, tzinfo=UTC)):
        week = monday, monday + timedelta(days=7)
        others = list(right.pieces(*week))
        if any(a < d and c < b for a, b in left.pieces(*week) for c, d in others):
            return True
    return False


def _range(text: str) -> tuple[int, int]:
    start, _, end = text.partition("-")
    try:
        found = (_minutes(start), _minutes(end)) if _RANGE.fullmatch(text) else None
    except ValueError:
        found = None
    if found is None:
        raise ValueError(f'hours: "{text}" is no range; write "01:00-04:00"')
    if found[0] >= found[1]:
        raise ValueError(f'hours: "{text}" ends before it begins; a range over midnight is two ranges')
    return found


def _minutes(clock: str) -> int:
    if clock == "24:00":
        return _DAY_MINUTES
    found = time.fromisoformat(clock)
    return found.hour * 60 + found.minute


def _at(day: date, minute: int, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Take a clock time as instants: two where the clock goes back, and none is skipped where it goes forward."""
    local = datetime.combine(
        day + timedelta(days=minute // _DAY_MINUTES), time(minute % _DAY_MINUTES // 60, minute % 60)
    )
    return tuple(local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))  # pyright: ignore[reportReturnType] -- two folds


def _clock_changes(zone: ZoneInfo, since: datetime, until: datetime) -> Iterator[datetime]:
    """Find when a zone's offset changes in a range, to the minute."""
    start = since
    while start < until:
        end = min(start + timedelta(hours=1), until)
        if start.astimezone(zone).utcoffset() != end.astimezone(zone).utcoffset():
            minutes = (start + timedelta(minutes=n) for n in range(1, 61))
            yield next(one for one in minutes if one.astimezone(zone).utcoffset() != start.astimezone(zone).utcoffset())
        start = end


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
