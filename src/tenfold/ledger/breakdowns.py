"""Breakdowns of figures that are computed from single priced requests: the whole, months, and values of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenfold.errors import ColumnError
from tenfold.ledger.dimensions import KEY_COLUMNS, TIME_GRAINS, check_dimensions
from tenfold.ledger.session import Session
from tenfold.store.database import quoted

# Statuses of attempts that brought no answer.
FAILED = ("error", "cancelled", "expired", "blocked", "timeout")


def breakdowns(by: str | Sequence[str]) -> tuple[str, ...]:
    """Read the columns of which each gives a breakdown.

    Args:
        by: One column of ``requests`` or several.

    Returns:
        The columns.

    Raises:
        ColumnError: A column does not exist, or is a period.
    """
    names = (by,) if isinstance(by, str) else tuple(by)
    check_dimensions(names)
    for name in names:
        if name in TIME_GRAINS:
            raise ColumnError(f'no breakdown by "{name}": months are always given; group by a column of requests')
    return names


def columns_sql(names: Iterable[str]) -> str:
    """Write the columns as SQL over a priced view ``p`` that is joined with ``keys`` as ``k``.

    Args:
        names: Columns; provider, model, tier and region as prices are looked up by.

    Returns:
        SQL of a list that ends in a comma.
    """
    return "".join(
        f"nullif(k.{name}, '') as {name},\n    " if name in KEY_COLUMNS else f"p.{name},\n    " for name in names
    )


def names_sql(names: Iterable[str]) -> str:
    """List the columns by name.

    Args:
        names: Columns.

    Returns:
        SQL of a list that ends in a comma.
    """
    return "".join(f"{name},\n  " for name in names)


def failed_sql() -> str:
    """List the statuses of attempts that brought no answer as SQL.

    Returns:
        SQL of a list.
    """
    return ", ".join(quoted(status) for status in FAILED)


def cost_sql(session: Session, meters: Iterable[str] | None = None) -> str:
    """Write what a priced request ``p`` costs as SQL.

    Args:
        session: The priced session.
        meters: Names of the meters to add up; all by default.

    Returns:
        SQL in pUSD; NULL where the request has no price.
    """
    wanted = None if meters is None else set(meters)
    used = [meter.name for meter in session.meters if wanted is None or meter.name in wanted]
    return " + ".join(f"p.{name}_pusd" for name in used)
