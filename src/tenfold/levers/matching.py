"""What the user named and the log does not have: a misspelt value matches nothing and says nothing by itself."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.errors import near
from tenfold.levers.where import named_values
from tenfold.store.database import quoted
from tenfold.store.engines import Engine

# Values of a column that a near match is looked for in; a column of more is an id, where near means nothing.
_MOST = 1_000


def unknown_values(engine: Engine, column: str, values: Sequence[str]) -> list[str]:
    """Name the values that no request of the log has in a column.

    Args:
        engine: Engine with the log's requests in reach.
        column: A text column of ``requests``.
        values: The values that the user wrote.

    Returns:
        One sentence for each value that occurs nowhere, with the near one.
    """
    wanted = dict.fromkeys(values)
    if not wanted:
        return []
    listed = ", ".join(quoted(value) for value in wanted)
    found = set(engine.fetch(f"select distinct {column} as v from requests where {column} in ({listed})")["v"])
    lacking = [value for value in wanted if value not in found]
    if not lacking:
        return []
    sql = f"select distinct {column} as v from requests where {column} is not null order by v limit {_MOST + 1}"
    known = engine.fetch(sql)["v"].to_list()
    near_ones = known if len(known) <= _MOST else []
    return [f'no request has {column} "{value}".{near(value, near_ones)}' for value in lacking]


def unknown_in(engine: Engine, where: str | None) -> list[str]:
    """Name the values in a predicate (``column = 'value'``, ``column in (...)``) that no request of the log has.

    Args:
        engine: Engine with the log's requests in reach.
        where: A checked predicate, or None.

    Returns:
        One sentence for each such value.
    """
    if where is None:
        return []
    by_column: dict[str, list[str]] = {}
    for column, value in named_values(where):
        by_column.setdefault(column, []).append(value)
    return [said for column, values in by_column.items() for said in unknown_values(engine, column, values)]


def matches_none(engine: Engine, where: str | None) -> str:
    """Say that a predicate matches no request, and what it may have meant.

    Args:
        engine: Engine with the priced session's requests in reach.
        where: A checked predicate, or None.

    Returns:
        One sentence.
    """
    there = int(engine.fetch("select cast(count(*) as bigint) as n from priced_requests_cells where is_billed")["n"][0])
    hints = unknown_in(engine, where)
    return f"its where matches none of the {there:,} billed requests" + (f": {'; '.join(hints)}" if hints else "")
