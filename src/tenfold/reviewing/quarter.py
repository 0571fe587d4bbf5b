"""A calendar quarter as a window in a zone."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from tenfold.config import zone as known_zone
from tenfold.errors import AssumptionError
from tenfold.ledger import Window

_WRITTEN = re.compile(r"(?P<year>[12]\d{3})-?[Qq](?P<number>[1-4])")


class Quarter(NamedTuple):
    """One calendar quarter.

    Args:
        name: Such as ``2026Q3``.
        bounds: Its first instant and the next quarter's, aware.
        zone: IANA zone that it and its days are cut in.
    """

    name: str
    bounds: tuple[datetime, datetime]
    zone: str

    @property
    def window(self) -> Window:
        """The quarter as a window of a ledger."""
        return Window(*self.bounds, self.zone)


def quarter(text: str, zone: str = "UTC") -> Quarter:
    """Read a quarter.

    Args:
        text: Year and quarter, such as ``2026Q3``.
        zone: IANA zone in which the quarter begins and ends.

    Returns:
        The quarter.

    Raises:
        AssumptionError: The text is no quarter, or the zone is unknown.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if not found:
        raise AssumptionError(f'quarter "{text}": write a year and a quarter from 1 to 4, such as 2026Q3')
    place = known_zone(zone)
    year, number = int(found["year"]), int(found["number"])
    since = datetime(year, 3 * number - 2, 1, tzinfo=place)
    until = datetime(year + number // 4, (3 * number) % 12 + 1, 1, tzinfo=place)
    return Quarter(f"{year}Q{number}", (since, until), zone)


def quarter_bounds(text: str, zone: str = "UTC") -> tuple[datetime, datetime]:
    """Read a quarter as two instants.

    Args:
        text: Year and quarter, such as ``2026Q3``.
        zone: IANA zone in which the quarter begins and ends.

    Returns:
        Its first instant and the next quarter's, both aware.

    Raises:
        AssumptionError: The text is no quarter, or the zone is unknown.
    """
    return quarter(text, zone).bounds
