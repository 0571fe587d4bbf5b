"""A quarter of a fiscal year as a window in a zone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import NamedTuple

from tenfold.config import zone as known_zone
from tenfold.errors import AssumptionError
from tenfold.ledger import Window

_WRITTEN = re.compile(r"(?P<year>[12]\d{3})-?[Qq](?P<number>[1-4])")
_TICK = timedelta(microseconds=1)


class Quarter(NamedTuple):
    """One quarter.

    Args:
        year: Fiscal year: the calendar year in which it ends.
        number: 1 to 4.
        zone: IANA zone that it and its days are cut in.
        fiscal_year_start: Month in which a fiscal year begins; 1 for calendar years.
    """

    year: int
    number: int
    zone: str = "UTC"
    fiscal_year_start: int = 1

    @property
    def name(self) -> str:
        """Such as ``2026Q3``."""
        return f"{self.year}Q{self.number}"

    @property
    def title(self) -> str:
        """Such as ``2026Q3``, or ``FY2026 Q3`` where fiscal years are not calendar years."""
        return self.name if self.fiscal_year_start == 1 else f"FY{self.year} Q{self.number}"

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """Its first instant and the next quarter's, aware."""
        return self._starts(self.number - 1), self._starts(self.number)

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.last_day - self.first_day).days + 1

    @property
    def window(self) -> Window:
        """The quarter as a window of a ledger."""
        return Window(*self.bounds, self.zone)

    @property
    def previous(self) -> Quarter:
        """The quarter before."""
        year, place = divmod(self.year * 4 + self.number - 2, 4)
        return self._replace(year=year, number=place + 1)

    @property
    def following(self) -> Quarter:
        """The quarter after."""
        year, place = divmod(self.year * 4 + self.number, 4)
        return self._replace(year=year, number=place + 1)

    @property
    def first_day(self) -> date:
        """Its first day, in its zone."""
        return self.bounds[0].date()

    @property
    def last_day(self) -> date:
        """Its last day, in its zone."""
        return self.bounds[1].date() - timedelta(days=1)

    def elapsed(self, at: datetime) -> Fraction:
        """Tell how much of it has passed.

        Args:
            at: An aware instant.

        Returns:
            The share of its time: 0 before it, 1 after it.
        """
        # in UTC: two times of one zone are subtracted as clocks show them, an hour off where clocks changed between
        since, until = (bound.astimezone(UTC) for bound in self.bounds)
        passed = min(max(at.astimezone(UTC), since), until) - since
        return Fraction(passed // _TICK, (until - since) // _TICK)

    def _starts(self, quarters: int) -> datetime:
        # a fiscal year that does not begin in January begins in the calendar year before the one it ends in
        months = (self.year - (self.fiscal_year_start > 1)) * 12 + self.fiscal_year_start - 1 + 3 * quarters
        return datetime(months // 12, months % 12 + 1, 1, tzinfo=known_zone(self.zone))


def quarter(text: str, zone: str = "UTC", *, fiscal_year_start: int = 1) -> Quarter:
    """Read a quarter.

    Args:
        text: Year and quarter, such as ``2026Q3``.
        zone: IANA zone in which the quarter begins and ends.
        fiscal_year_start: Month in which a fiscal year begins.

    Returns:
        The quarter.

    Raises:
        AssumptionError: The text is no quarter, or the zone is unknown.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if not found:
        raise AssumptionError(f'quarter "{text}": write a year and a quarter from 1 to 4, such as 2026Q3')
    known_zone(zone)
    return Quarter(int(found["year"]), int(found["number"]), zone, fiscal_year_start)


def quarter_bounds(text: str, zone: str = "UTC", *, fiscal_year_start: int = 1) -> tuple[datetime, datetime]:
    """Read a quarter as two instants.

    Args:
        text: Year and quarter, such as ``2026Q3``.
        zone: IANA zone in which the quarter begins and ends.
        fiscal_year_start: Month in which a fiscal year begins.

    Returns:
        Its first instant and the next quarter's, both aware.

    Raises:
        AssumptionError: The text is no quarter, or the zone is unknown.
    """
    return quarter(text, zone, fiscal_year_start=fiscal_year_start).bounds
