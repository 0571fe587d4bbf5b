"""Dates of plain invoices: days, months and instants as people write them, in the zone that is given.

A date with slashes whose order no row proves is an error.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from tenfold.errors import LogFormatError
from tenfold.logs.buckets.base import BucketError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SLASHED = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4}|\d{2})")
_WORDED = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y", "%d-%b-%Y", "%Y/%m/%d", "%Y%m%d")
_MONTHS = ("%Y-%m", "%Y/%m", "%b %Y", "%B %Y", "%m/%Y", "%b-%Y", "%Y%m")


class Dates(NamedTuple):
    """How a file's dates read.

    Args:
        month_first: What a date with slashes begins with; None where no row proves it.
        zone: Zone that days are of.
        known: Periods that were read.
    """

    month_first: bool | None
    zone: ZoneInfo
    known: dict[tuple[str, str, str], tuple[datetime, datetime]]

    @classmethod
    def of(cls, cells: list[str], zone: str | None) -> Dates:
        """Learn how a file writes dates.

        Args:
            cells: Its dates.
            zone: Zone that days are of; UTC by default.

        Returns:
            How they read.
        """
        return cls(_month_first(cells), ZoneInfo(zone or "UTC"), {})

    def period(self, row: Mapping[str, str]) -> tuple[datetime, datetime]:
        """Read what a row is for; an end is the period's last day, or an instant where it has a clock.

        Args:
            row: Its cells: date, end, month.

        Returns:
            First instant and the one after the last, naive UTC.

        Raises:
            BucketError: There is no such date.
            LogFormatError: Nothing proves the order of a date with slashes.
        """
        key = row.get("date", ""), row.get("end", ""), row.get("month", "")
        if key not in self.known:
            self.known[key] = self._read(*key)
        return self.known[key]

    def _read(self, said: str, last: str, month: str) -> tuple[datetime, datetime]:
        if not said:
            return self._month(month)
        start = self._day(said, "date")
        end = self._day(last, "end") if last else start
        if isinstance(start, datetime) and isinstance(end, datetime):
            if end <= start:
                raise BucketError("a time needs an end after it", "end")
            return self._utc(start), self._utc(end)
        if isinstance(start, datetime) or isinstance(end, datetime) or end < start:
            raise BucketError(f"no period: {said[:40]!r} to {last[:40]!r}", "end")
        return self._midnight(start), self._midnight(end + timedelta(days=1))

    def _month(self, said: str) -> tuple[datetime, datetime]:
        if not said:
            raise BucketError("no date", "date")
        found = _worded(said, _MONTHS)
        first = found or self._day(said, "month")  # a month may be written as its first day
        if isinstance(first, datetime) or first.day != 1:
            raise BucketError(f"no month: {said[:40]!r}; write 2026-07", "month")
        following = date(first.year + first.month // 12, first.month % 12 + 1, 1)
        return self._midnight(first), self._midnight(following)

    def _midnight(self, day: date) -> datetime:
        return self._utc(datetime.combine(day, time()))

    def _utc(self, read: datetime) -> datetime:
        aware = read if read.tzinfo else read.replace(tzinfo=self.zone)
        return aware.astimezone(UTC).replace(tzinfo=None)

    def _day(self, said: str, name: str) -> date | datetime:
        slashed = _SLASHED.fullmatch(said)
        try:
            if slashed is None:
                return datetime.fromisoformat(said) if len(said) > 10 else date.fromisoformat(said)
            if self.month_first is None:
                raise LogFormatError(
                    f'{name}: "{said}" may be month first or day first, and no row of the file proves which. '
                    "Write the dates as 2026-04-01"
                )
            one, two, year = (int(part) for part in slashed.groups())
            month, day = (one, two) if self.month_first else (two, one)
            return date(year + 2000 if year < 100 else year, month, day)
        except ValueError as error:
            found = _worded(said, _WORDED)
            if found is None:
                raise BucketError(f"no date: {said[:40]!r}; write 2026-07-01", name) from error
            return found


def _worded(said: str, forms: tuple[str, ...]) -> date | None:
    for form in forms:
        try:
            return datetime.strptime(said.strip(), form).date()  # noqa: DTZ007 -- a day or a month
        except ValueError:
            continue
    return None


def _month_first(cells: list[str]) -> bool | None:
    """Prove the order of dates with slashes: a first or second part above 12 is a day."""
    parts = [(int(found[1]), int(found[2])) for cell in cells if (found := _SLASHED.fullmatch(cell))]
    if any(one > 12 for one, _ in parts):
        return False
    return True if any(two > 12 for _, two in parts) else None
