"""How well a bill was used: caching and its return, discounts taken, waste with its causes, growth of the context.

Indicators and their formulas are those of FinOps practice (FinOps Foundation, FinOps for AI; FOCUS, prompt caching
examples, for the return on a cache). Everything is summed over priced requests by month and column, so that months and
values add up to the whole; the return on a cache is the difference of two bills by the one pricing function.

Waste has one cause a request, the first that holds: it failed and was billed; it asks again (but for a retry of an
attempt that is a billed failure already, since one piece of work is not wasted twice); it was cut off at its limit; it
asks what was answered before. The last is a ceiling: it is shown beside the total, never in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from tenfold.analysis.efficiency.causes import CAUSES, Cause, Waste, marks_sql
from tenfold.analysis.efficiency.growth import Growth, Turn
from tenfold.analysis.efficiency.kpis import CacheReturn, Discount, Kpis
from tenfold.analysis.efficiency.measures import MEASURES, Measure
from tenfold.analysis.efficiency.result import Change, Efficiency
from tenfold.ledger import KEY_COLUMNS, Ledger, Session
from tenfold.ledger.breakdowns import breakdowns, columns_sql, cost_sql, failed_sql, names_sql
from tenfold.ledger.periods import month_of_request
from tenfold.prices.meters import INPUT_METERS
from tenfold.store import schema, steps
from tenfold.store.cells import CACHED_MEDIA

__all__ = [
    "CAUSES",
    "MEASURES",
    "CacheReturn",
    "Cause",
    "Change",
    "Discount",
    "Efficiency",
    "Growth",
    "Kpis",
    "Measure",
    "Turn",
    "Waste",
    "efficiency",
]

_PRICED = "efficiency_priced"
_CELLS = "efficiency_priced_cells"
_UNCACHED = "efficiency_uncached"
_CACHED_COUNTS = {
    *("cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens", "cache_storage_token_s"),
    *CACHED_MEDIA,
}
_WRITES = ("cache_write", "cache_write_long")
# Turns that are shown by themselves, and the first ones of ranges of later turns.
_SINGLE_TURNS = 10
_RANGES = (11, 21, 51, 101)


def efficiency(priced: Ledger, by: str | Sequence[str] = ()) -> Efficiency:
    """Measure how well a bill was used.

    Args:
        priced: The ledger; its window is what is measured, its zone cuts the months.
        by: Columns of ``requests``; each gives a breakdown of its own.

    Returns:
        The indicators of the whole, of each month and of each value of the columns. What the log's columns do not
        allow is None, and named in ``not_measurable``.

    Raises:
        ColumnError: A column does not exist; names the near match.
    """
    names = breakdowns(by)
    with priced.session() as session:
        sums = _sums(session, names)
        growth = _growth(session)
    return Efficiency(
        total=_kpis(sums),
        months=tuple((month, kpis) for month, kpis in _grouped(sums.drop_nulls("month"), "month")),
        groups={
            name: tuple(sorted(_grouped(sums, name), key=lambda one: (-one[1].spend_pusd, one[0] or "")))
            for name in names
        },
        growth=growth,
        discount=_discount(priced),
        zone=priced.window.zone,
    )


def _sums(session: Session, names: Sequence[str]) -> pl.DataFrame:
    """Count by month and the columns together; figures of any of them are sums over the others."""
    failed = failed_sql()
    engine = session.engine
    columns = ",\n  ".join(f"requests.{name}" for name in schema.names("requests"))
    steps.run(engine, "lever_log", name="efficiency_log", row_id=engine.row_id, columns=columns, marks="")
    session.price("efficiency_log", _PRICED)
    steps.run(engine, "efficiency_repeats", materialised=True, cells=_CELLS, failed=failed)
    words = {
        "month": month_of_request(session.window.zone, "p"),
        "dimensions": columns_sql(names),
        "names": names_sql(names),
        "input_cost": cost_sql(session, INPUT_METERS),
    }
    sums = steps.filled(
        "efficiency_sums", priced=_PRICED, repeats="efficiency_repeats", failed=failed, cost=cost_sql(session),
        reasoning_cost=_reasoning_sql(session), marks=marks_sql(), **words,
    )  # fmt: skip
    _uncached(session)
    cache = steps.filled("efficiency_cache", priced=f"{_UNCACHED}_priced", **words)
    return pl.concat([engine.fetch(sums), engine.fetch(cache)], how="diagonal")


def _uncached(session: Session) -> None:
    """Price the requests that used a cache as if there were none."""
    columns = [
        f"cast(0 as bigint) as {name}" if name in _CACHED_COUNTS else f"p.{name}" for name in schema.names("requests")
    ]
    used = {meter.name for meter in session.meters}
    dearer = [
        f"p.{name}_units * (coalesce(p.rate_{name}, 0) - coalesce(p.rate_uncached_input, 0))"
        for name in _WRITES
        if name in used
    ]
    steps.run(
        session.engine, _UNCACHED, priced=_PRICED, columns=",\n  ".join(columns),
        input_cost=cost_sql(session, INPUT_METERS), premium=" + ".join(dearer) or "cast(0 as bigint)",
        storage="p.cache_storage_pusd" if "cache_storage" in used else "cast(0 as bigint)",
    )  # fmt: skip
    session.price(_UNCACHED, f"{_UNCACHED}_priced", windowed=False)


def _reasoning_sql(session: Session) -> str:
    """Write what reasoning cost: at its own rate where it has one, else at that of the output it is part of."""
    tokens, own = "coalesce(p.reasoning_tokens, 0)", ""
    if any(meter.name == "reasoning" for meter in session.meters):
        tokens, own = f"({tokens} - p.reasoning_units)", "p.reasoning_pusd + "
    cost = f"{own}{tokens} * coalesce(p.rate_output, 0)"
    return f"case when p.price_status = 'priced' then {cost} when p.is_priced then 0 end"


def _grouped(sums: pl.DataFrame, name: str) -> Iterator[tuple[Any, Kpis]]:
    counts = [column for column, kind in sums.schema.items() if kind == pl.Int64 or kind.is_decimal()]
    found = sums.group_by(name).agg(pl.sum(*counts)).sort(name, nulls_last=True)
    for row in found.rows(named=True):
        yield row[name], Kpis({column: int(row[column]) for column in counts})


def _kpis(sums: pl.DataFrame) -> Kpis:
    found = next(_grouped(sums.with_columns(whole=pl.lit("")), "whole"), None)
    counts = [column for column, kind in sums.schema.items() if kind == pl.Int64 or kind.is_decimal()]
    return found[1] if found else Kpis(dict.fromkeys(counts, 0))


def _growth(session: Session) -> Growth | None:
    engine = session.engine
    steps.run(engine, "efficiency_turns", materialised=True, cells=_CELLS)
    ranges = "".join(f" when turn >= {first} then {first}" for first in reversed(_RANGES))
    grown = engine.fetch(f"{steps.filled('efficiency_growth', turn=f'case{ranges} else turn end')}\norder by turn")
    if grown.is_empty():
        return None
    ends = dict(zip(_RANGES, (*(first - 1 for first in _RANGES[1:]), None), strict=True))
    turns = tuple(
        Turn(row["turn"], ends.get(row["turn"], row["turn"]), *(row[name] for name in Turn._fields[2:]))
        for row in grown.rows(named=True)
    )
    middle = engine.fetch(steps.filled("efficiency_sessions")).rows(named=True)
    if not middle:
        return Growth(turns, 0, 0, 0, 0, None)
    of_them = [Fraction(row["last_tokens"], row["first_tokens"]) for row in middle]
    one = middle[0]
    return Growth(
        turns, one["sessions"], one["grown"], one["last_sum"], one["first_sum"], sum(of_them, Fraction()) / len(of_them)
    )


def _discount(priced: Ledger) -> Discount:
    """Compare list and effective cost over groups in which the same requests have both."""
    if not priced.book.is_own:
        return Discount(0, 0, 0, is_own=False)
    costs = priced.costs(KEY_COLUMNS)
    listed = effective = left_out = 0
    for row in costs.frame.rows(named=True):
        is_partly = row["list_unpriced_requests"] != row["unpriced_requests"]
        if is_partly or row["list_pusd"] is None or row["effective_pusd"] is None:
            left_out += row["requests"]
        else:
            listed, effective = listed + int(row["list_pusd"]), effective + int(row["effective_pusd"])
    return Discount(listed, effective + sum(one.unallocated_pusd for one in costs.commitments), left_out, is_own=True)
