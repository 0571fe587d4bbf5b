"""What a bill can be split by: columns of the requests and periods of the report zone, as SQL and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from tenfold.errors import ColumnError, near
from tenfold.ledger.periods import local_day
from tenfold.store import schema

KEY_COLUMNS = ("provider", "model", "service_tier", "region")
TIME_GRAINS = ("day", "week", "month", "quarter", "year")


def check_dimensions(by: Iterable[str]) -> None:
    """Refuse a grouping column that does not exist.

    Args:
        by: Column names and time grains.

    Raises:
        ColumnError: One is unknown, or cannot be grouped by.
    """
    known = {column.name: column.type for column in schema.REQUESTS if column.group not in ("internal", "tokens")}
    if len(set(by := list(by))) < len(by):
        raise ColumnError(f"the same column twice to group by: {', '.join(by)}")
    groupable = [name for name, kind in known.items() if "(" not in kind and "[" not in kind]
    for name in by:
        if name not in groupable and name not in TIME_GRAINS:
            raise ColumnError(
                f'no column "{name}" to group by.{near(name, [*groupable, *TIME_GRAINS])} '
                f"Group by {', '.join(TIME_GRAINS)}, or by a column of requests: {', '.join(groupable)}"
            )


def grain_text(name: str, value: object) -> str | None:
    """Write a dimension's value for reading: days and weeks as dates, months as 2026-07, quarters as 2026Q3.

    Args:
        name: The dimension.
        value: Its value; the first day of the period for a time grain.

    Returns:
        The text; None stays None.
    """
    if value is None or not isinstance(value, date):
        return None if value is None else str(value)
    by_grain = {
        "month": f"{value:%Y-%m}",
        "quarter": f"{value.year}Q{(value.month + 2) // 3}",
        "year": str(value.year),
    }
    return by_grain.get(name, value.isoformat())


def listed(parts: Iterable[str]) -> str:
    """Write SQL column by column, a comma after each.

    Args:
        parts: SQL of the columns.

    Returns:
        SQL text, empty for none.
    """
    return "".join(f"{part},\n  " for part in parts)


def split(by: Sequence[str], zone: str) -> tuple[dict[str, str], list[str]]:
    """Split dimensions into what cells are grouped by and what totals show.

    A request without a time stands on a day that is none (``day_map.UNDATED``); it has no period.

    Args:
        by: Columns and time grains that ``check_dimensions`` passed.
        zone: IANA zone of report days.

    Returns:
        Of the cells, name to SQL over the requests; of the totals, SQL over the cells.
    """
    inner: dict[str, str] = {}
    outer: list[str] = []
    local = "day"
    if zone != "UTC" and any(name in TIME_GRAINS for name in by):
        local = "local_day"
        inner[local] = local_day(zone)
    for name in by:
        if name == "day":
            outer.append(f"case when is_dated then {local} end as day")
        elif name in TIME_GRAINS:
            outer.append(f"case when is_dated then cast(date_trunc('{name}', {local}) as date) end as {name}")
        elif name in KEY_COLUMNS:
            outer.append(f"nullif(keys.{name}, '') as {name}")
        else:
            inner[name] = name
            outer.append(name)
    return inner, outer
