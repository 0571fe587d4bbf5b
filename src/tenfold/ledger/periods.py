"""Days and months of a report zone as SQL."""

from __future__ import annotations

from tenfold.store.database import quoted


def local_day(zone: str, instant: str = "priced_at") -> str:
    """Write the day of an instant in a zone as SQL.

    Args:
        zone: IANA zone.
        instant: SQL of a naive UTC timestamp.

    Returns:
        SQL of a date.
    """
    return f"cast(from_utc_timestamp({instant}, {quoted(zone)}) as date)"


def month_of_request(zone: str, table: str) -> str:
    """Write the calendar month of a priced request as SQL.

    Args:
        zone: IANA zone that months are cut in.
        table: Name of the priced view in the query.

    Returns:
        SQL of the month's first day; NULL for a request without a time.
    """
    day = f"{table}.day" if zone == "UTC" else local_day(zone, f"{table}.priced_at")
    return f"case when {table}.is_dated then cast(date_trunc('month', {day}) as date) end"
