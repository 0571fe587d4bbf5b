"""What a period of a ledger counted and cost, at its own prices and at those of the boundary between two periods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from tenfold.errors import ColumnError
from tenfold.ledger import KEY_COLUMNS, TIME_GRAINS, Ledger, Session, check_dimensions, metering
from tenfold.prices import PriceBook
from tenfold.prices.meters import Meter, meters
from tenfold.store import cells, schema, steps
from tenfold.store.database import quoted

# A group of requests: the values of the dimensions.
Group: TypeAlias = tuple[str | bool | None, ...]
Where: TypeAlias = Mapping[str, str | None]
_OUTCOME = "outcome_ok"
_FEE = "request"
_METERS = {meter.name: meter for meter in meters()}


def kind_of(meter: Meter) -> str:
    """Name the kind of unit that a meter counts, whatever meters a price list keeps apart.

    Args:
        meter: The meter.

    Returns:
        The meter that its units may fall under or merge with; its own name where there is none.
    """
    return meter.falls_under or (meter.parents[0] if meter.merges else "") or meter.name


def is_tokens(kind: str) -> bool:
    """Tell whether a kind of unit is tokens, which have a share in the mix.

    Args:
        kind: As ``kind_of`` names it.

    Returns:
        False for searches, fees, images and time.
    """
    return _METERS[kind].unit == "tokens"


@dataclass(slots=True)
class Amounts:
    """Units and costs of one kind in one group.

    Args:
        units: Units, as the list of the boundary cuts them.
        own: pUSD at their own time.
        at: pUSD at the boundary.
        list_own: pUSD by the provider's list at their own time.
        list_at: pUSD by the list at the boundary.
    """

    units: int = 0
    own: int = 0
    at: int = 0
    list_own: int = 0
    list_at: int = 0


@dataclass(slots=True)
class Period:
    """One period.

    Args:
        amounts: By group and kind: what has a price at the boundary, too.
        unlike: By group and kind: what has none there.
        requests: Priced requests.
        base: What volume counts of them: all, or the successful outcomes.
        unpriced: Model to requests that had no price at their own time.
        unlisted: Requests without a list price, whose change of list price is not known.
        is_own: Some price is your own, so that a list price stands beside it.
    """

    amounts: dict[tuple[Group, str], Amounts] = field(default_factory=dict[tuple[Group, str], Amounts])
    unlike: dict[tuple[Group, str], Amounts] = field(default_factory=dict[tuple[Group, str], Amounts])
    requests: int = 0
    base: int = 0
    unpriced: dict[str, int] = field(default_factory=dict[str, int])
    unlisted: int = 0
    is_own: bool = False

    @property
    def cost(self) -> int:
        """Cost of its requests, in pUSD: the ledger's own total."""
        return sum(self.by_group().values())

    @property
    def tokens(self) -> int:
        """Tokens of its priced requests."""
        return sum(one.units for (_, kind), one in self._all() if is_tokens(kind))

    def units(self, kind: str) -> int:
        """Count the units of a kind."""
        return sum(one.units for (_, of), one in self._all() if of == kind)

    def by_group(self) -> dict[Group, int]:
        """Sum the cost of each group that has a priced request, in pUSD."""
        costs: dict[Group, int] = {}
        for (group, _), one in self._all():
            costs[group] = costs.get(group, 0) + one.own
        return costs

    def _all(self) -> list[tuple[tuple[Group, str], Amounts]]:
        return [*self.amounts.items(), *self.unlike.items()]


class Question(NamedTuple):
    """What is asked of both periods.

    Args:
        by: The dimensions.
        base: ``requests`` or ``outcomes``.
        where: Column to its value: the part of the traffic that is looked at.
        book: Prices at the boundary.
        at: The boundary.
    """

    by: tuple[str, ...]
    base: str
    where: Where
    book: PriceBook
    at: datetime


def check_columns(by: Sequence[str], where: Where) -> None:
    """Refuse dimensions that do not exist, and time, which tells periods apart and not what is in them.

    Args:
        by: The dimensions.
        where: Column to its value.

    Raises:
        ColumnError: A column is unknown or a grain of time.
    """
    check_dimensions(by)
    check_dimensions(tuple(where))
    for name in (*by, *where):
        if name in TIME_GRAINS:
            raise ColumnError(f"a bridge is between two periods: it cannot be cut by {name}; give it other windows")


def boundary(before: Ledger, after: Ledger) -> datetime:
    """Find the instant whose prices both periods are held against: the last one of the period before.

    Args:
        before: The period before.
        after: The period after.

    Returns:
        A microsecond before the period before ends; where its window has no end, before the other begins; else the
        end of the last day that it has requests on.

    Raises:
        ColumnError: Nothing of this has a time.
    """
    end = before.window.until or after.window.since
    if end is None:
        with before.session() as session:
            last = max(session.days, default=None)
        if last is None:
            raise ColumnError("no request of the period before has a time: give both ledgers a window")
        end = datetime.combine(last + timedelta(days=1), time(), UTC)
    return end - timedelta(microseconds=1)


def read(ledger: Ledger, asked: Question) -> Period:
    """Read one period.

    Args:
        ledger: The priced log in the period's window.
        asked: What is asked.

    Returns:
        The period.
    """
    outcome = [_OUTCOME] if asked.base == "outcomes" else []
    dimensions = list(dict.fromkeys([*asked.by, *asked.where, *KEY_COLUMNS, *outcome]))
    with ledger.session() as session:
        found = _priced_twice(session, asked, dimensions)
        period = _summed(found, asked)
        period.is_own = asked.book.is_own or ledger.book.is_own
        if period.is_own:
            _add_list(period, session, asked, found, dimensions)
    return period


def _priced_twice(session: Session, asked: Question, dimensions: Sequence[str]) -> pl.DataFrame:
    """Price a period's requests at their own time, and the same requests once more at the boundary."""
    engine, used = session.engine, session.meters
    inner = "".join(f"{name},\n  " for name in dimensions if name not in KEY_COLUMNS)
    beyond = _beyond(asked.where)
    # Rates by time are rounded by request, and thresholds of another book cut other bands: single requests then.
    is_single = any(meter.divisor > 1 and meter.column in session.counts for meter in meters()) or not set(
        asked.book.thresholds
    ) <= set(session.book.thresholds)
    if is_single:
        source = "priced_requests"
    else:
        session.totals(dimensions, condition=beyond, keep=True, for_any_card=True)
        source = "priced_grouped"
    own = ",\n  ".join(f"{meter.name}_pusd as own_{meter.name}_pusd" for meter in used)
    cut = steps.filled(
        "bridge_cells", priced=source, dimensions=inner, counts=cells.counts(), own=own,
        condition=beyond if is_single else "true",
    )  # fmt: skip
    engine.step("bridge_cells", cut, materialised=True)
    then = Session(engine, asked.book, session.window, price_at=asked.at)
    priced = steps.filled(
        "priced", cells="bridge_cells", undated="unpriced_model", **metering.pricing_words(then.meters)
    )
    engine.step("bridge_priced", priced)
    sums = [(f"own_{meter.name}_pusd", f"own_{meter.name}_pusd", "decimal(38, 0)") for meter in used]
    sums += [(f"{meter.name}_pusd", f"at_{meter.name}_pusd", "decimal(38, 0)") for meter in then.meters]
    sums += [(f"{meter.name}_units", f"{meter.name}_units", "bigint") for meter in then.meters]
    return engine.fetch(
        steps.filled(
            "bridge_sums",
            priced="bridge_priced",
            inner_dimensions=inner,
            dimensions="".join(f"{_shown(name)},\n  " for name in dimensions),
            sums=",\n    ".join(f"cast(sum({one}) as {kind}) as {name}" for one, name, kind in sums),
            totals=",\n  ".join(f"cast(sum({name}) as {kind}) as {name}" for _, name, kind in sums),
            where=_condition([(name, value) for name, value in asked.where.items() if _is_cheap(name)]),
        )
    )


def _beyond(where: Where) -> str:
    """Write the condition on columns that the cube does not have."""
    return _condition([(name, value) for name, value in where.items() if not _is_cheap(name)])


def _is_cheap(name: str) -> bool:
    """Whether the cube, or a price key, tells a column's value."""
    return name in schema.CUBE_DIMENSIONS or name in KEY_COLUMNS


def _condition(values: Sequence[tuple[str, str | None]]) -> str:
    tests = [
        f"{_column(name)} is null" if value is None else f"{_column(name)} = {quoted(value)}" for name, value in values
    ]
    return " and ".join(tests) or "true"


def _column(name: str) -> str:
    return (
        f"nullif(keys.{name}, '')" if name in KEY_COLUMNS else name if _is_cheap(name) else f"cast({name} as varchar)"
    )


def _shown(name: str) -> str:
    return f"nullif(keys.{name}, '') as {name}" if name in KEY_COLUMNS else name


def _summed(found: pl.DataFrame, asked: Question) -> Period:
    period = Period()
    used = [meter for name, meter in _METERS.items() if f"own_{name}_pusd" in found.columns]
    used_at = [meter for name, meter in _METERS.items() if f"{name}_units" in found.columns]
    for row in found.rows(named=True):
        group = tuple(row[name] for name in asked.by)
        if not row["own_is_priced"]:
            model = row["model"] or ""
            period.unpriced[model] = period.unpriced.get(model, 0) + row["requests"]
            continue
        period.requests += row["requests"]
        if asked.base == "requests" or row[_OUTCOME]:
            period.base += row["requests"]
        amounts = period.amounts if row["has_price"] else period.unlike
        fees = 0
        for meter in used:
            cost = int(row[f"own_{meter.name}_pusd"] or 0)
            amounts.setdefault((group, kind_of(meter)), Amounts()).own += cost
            fees += cost if meter.name == _FEE else 0
        for meter in used_at:
            one = amounts.setdefault((group, kind_of(meter)), Amounts())
            one.at += int(row[f"at_{meter.name}_pusd"] or 0)
            if meter.name != _FEE:
                one.units += int(row[f"{meter.name}_units"] or 0)
        if fees or row.get(f"at_{_FEE}_pusd"):
            # a fee is by the request, also where one of the two lists has none
            amounts.setdefault((group, _FEE), Amounts()).units += row["requests"]
    return period


def _add_list(
    period: Period, session: Session, asked: Question, found: pl.DataFrame, dimensions: Sequence[str]
) -> None:
    """Lay list costs beside those at your own prices, group by group, where all its requests have both."""
    without: dict[tuple[Any, ...], list[int]] = {}
    for row in found.rows(named=True):
        counts = without.setdefault(tuple(row[name] for name in dimensions), [0, 0, 0])
        counts[0] += 0 if row["own_is_priced"] else row["requests"]
        counts[1] += 0 if row["has_price"] else row["requests"]
        counts[2] += row["requests"]
    own = _listed(session, session.book.list_book, None, asked, dimensions)
    at = _listed(session, asked.book.list_book, asked.at, asked, dimensions)
    for key, (own_without, at_without, requests) in without.items():
        group = tuple(key[dimensions.index(name)] for name in asked.by)
        both = own[key], at[key]
        if own_without == at_without and all(one["unpriced_requests"] == own_without for one in both):
            for name, meter in _METERS.items():
                amounts = period.amounts.get((group, kind_of(meter)))
                if amounts is not None:
                    amounts.list_own += int(both[0][f"{name}_pusd"])
                    amounts.list_at += int(both[1][f"{name}_pusd"])
        elif own_without < requests:
            period.unlisted += requests - own_without


def _listed(
    session: Session, book: PriceBook, at: datetime | None, asked: Question, dimensions: Sequence[str]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    listed = Session(session.engine, book, session.window, price_at=at)
    found = listed.totals(dimensions, condition=_beyond(asked.where))
    return {tuple(row[name] for name in dimensions): row for row in found.rows(named=True)}
