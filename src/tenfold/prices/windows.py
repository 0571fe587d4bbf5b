"""Times of the week at which a price holds: weekdays and hours in a named zone (DeepSeek's peak hours)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES = 24 * 60


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
        day = since.astimezone(zone).date()
        while day <= until.astimezone(zone).date():
            if day.weekday() in self.weekdays:
                for start, end in self.hours:
                    begins, ends = max(_at(day, start, zone), since), min(_at(day, end, zone), until)
                    if begins < ends:
                        yield begins, ends
            day += timedelta(days=1)

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
        found = _minutes(start), _minutes(end)
    except ValueError as error:
        raise ValueError(f'hours: "{text}" is no range; write "01:00-04:00"') from error
    if found[0] >= found[1]:
        raise ValueError(f'hours: "{text}" ends before it begins; a range over midnight is two ranges')
    return found


def _minutes(clock: str) -> int:
    if clock == "24:00":
        return _DAY_MINUTES
    found = time.fromisoformat(clock)
    return found.hour * 60 + found.minute


def _at(day: date, minute: int, zone: ZoneInfo) -> datetime:
    midnight = datetime.combine(day + timedelta(days=minute // _DAY_MINUTES), time(), zone)
    return midnight.replace(hour=minute % _DAY_MINUTES // 60, minute=minute % 60).astimezone(UTC)


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
