"""What a shell offers when Tab is pressed: names that are known without opening a database."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import available_timezones

_QUARTERS = 8  # offered, the latest first


def columns(incomplete: str) -> list[str]:
    """Complete the last of several columns to group by.

    Args:
        incomplete: What is typed so far, such as ``team,mo``.

    Returns:
        The whole values that may follow, none with a column twice.
    """
    from tenfold.ledger.dimensions import TIME_GRAINS
    from tenfold.store import schema

    before, comma, begun = incomplete.rpartition(",")
    taken = before.split(",")
    known = (name for name in (*TIME_GRAINS, *schema.names("requests")) if name.startswith(begun) and name not in taken)
    return [f"{before}{comma}{name}" for name in known if _is_groupable(name)]


def _is_groupable(name: str) -> bool:
    from tenfold.errors import ColumnError
    from tenfold.ledger import check_dimensions

    try:
        check_dimensions([name])
    except ColumnError:
        return False
    return True


def formats(incomplete: str) -> list[str]:
    """Complete the name of a log format.

    Args:
        incomplete: What is typed so far.

    Returns:
        Names that begin so.
    """
    from tenfold.logs.catalogue import formats as all_formats

    return [one["name"] for one in all_formats() if one["name"].startswith(incomplete)]


def models(incomplete: str) -> list[str]:
    """Complete the id of a model that the shipped price book knows.

    Args:
        incomplete: What is typed so far.

    Returns:
        Ids that begin so.
    """
    from tenfold.prices import price_book

    return sorted({name for _, name in price_book().ids if name.startswith(incomplete)})


def providers(incomplete: str) -> list[str]:
    """Complete the name of a provider.

    Args:
        incomplete: What is typed so far.

    Returns:
        Names that begin so.
    """
    from tenfold.prices import price_book

    return sorted({name for name, _ in price_book().ids if name.startswith(incomplete)})


def quarters(incomplete: str) -> list[str]:
    """Complete a quarter: this one and those before it.

    Args:
        incomplete: What is typed so far.

    Returns:
        Quarters such as ``2026Q3``, the latest first.
    """
    today = datetime.now(tz=UTC)
    this = today.year * 4 + (today.month - 1) // 3
    found = (f"{number // 4}Q{number % 4 + 1}" for number in range(this, this - _QUARTERS, -1))
    return [one for one in found if one.startswith(incomplete)]


def zones(incomplete: str) -> list[str]:
    """Complete the name of a time zone.

    Args:
        incomplete: What is typed so far.

    Returns:
        Names that begin so.
    """
    return sorted(name for name in available_timezones() if name.startswith(incomplete))
