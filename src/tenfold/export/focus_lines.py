"""A ledger as FOCUS charges, in whole numbers: one line a stretch of time, owner, price key, context band and meter.

The log is summed to cells once; both rate cards (your own and the provider's list) price these same cells, so that the
list and the contracted price of a charge are for one quantity. Where one card prices a part of the tokens apart and the
other does not (reasoning, images), the part is a charge of its own with both cards' prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Literal, TypeAlias

import duckdb
import polars as pl

from tenfold.export.focus_names import SKUS
from tenfold.ledger import Ledger, Session
from tenfold.ledger.coverage import coverage
from tenfold.ledger.metering import half_even, pricing_words
from tenfold.prices.meters import METER_NAMES, Meter, meters
from tenfold.store import steps
from tenfold.store.engines import Engine
from tenfold.store.engines.duckdb import DuckDBEngine

Grain: TypeAlias = Literal["day", "hour"]
OWNERS = ("org", "project", "team", "feature", "environment")
# Keys and values in one order, so that equal tags are one text.
_TAGS = "cast(to_json(map_from_entries(list_sort(map_entries(tags)))) as varchar)"
_REASONS = {"price_key": pl.Int32, "price_status": pl.String, "reason": pl.String}


@dataclass(frozen=True, slots=True)
class Lines:
    """The charges, as the table ``focus_lines`` on an engine.

    Args:
        engine: Where they are.
        session: The log priced by your own prices.
        dimensions: Columns of owners that the lines have.
    """

    engine: DuckDBEngine
    session: Session
    dimensions: tuple[str, ...]

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The engine's connection, for what only it can do."""
        return self.engine.connection


def lay(engine: DuckDBEngine, ledger: Ledger, *, grain: Grain, edges: Iterable[datetime] = ()) -> Lines:
    """Lay the charges of a ledger over its store.

    Args:
        engine: An engine with the store's tables in reach.
        ledger: The ledger, in UTC.
        grain: Length of a charge period; shorter where a price changes within it.
        edges: Further instants (aware) at which charges are cut: where a commitment begins or ends.

    Returns:
        The lines; ``focus_own`` holds the priced cells and ``keys`` the price keys.
    """
    book = ledger.book
    listed = None if book.list_book is book else Session(engine, book.list_book, ledger.window)
    dimensions = _dimensions(engine, grain)
    from_cube = listed is None or listed.view_for(dimensions) == "priced_cube"
    session = Session(engine, book, ledger.window)
    from_cube = session.view_for(dimensions) == "priced_cube" and from_cube
    cards = [session, listed or session]
    cut = _cut_days(cards, edges)
    engine.register("cut_days", cut)
    thresholds = {limit for card in cards for limit in card.book.thresholds}
    _cells(session, dimensions, thresholds, from_cube=from_cube)
    own, at_list = _price(session, "focus_own"), "focus_own"
    if listed is not None:
        engine.register("day_map", listed.card.frame)
        at_list = _price(listed, "focus_list")
        engine.register("day_map", session.card.frame)
    engine.register("focus_own_days", _stretches(session.card.frame, edges))
    engine.register("focus_list_days", _stretches(cards[1].card.frame, edges))
    used = [meter for meter in meters() if any(meter in card.meters for card in cards)]
    names = [name for name in dimensions if name != "hour"]
    start = "p.hour" if grain == "hour" else "cast(p.day as timestamp)"
    steps.run(
        engine, "focus_groups", own=own, listed=at_list, dimensions=_listed(names), materialised=True,
        bucket=start, bucket_end=f"{start} + interval 1 {grain}", **_group_words(used, session, cards[1]),
    )  # fmt: skip
    charges = "\n  union all ".join(_charge(meter, number, names, used) for number, meter in enumerate(used))
    steps.run(
        engine,
        "focus_lines",
        dimensions=_listed(f"{name} nulls last" for name in names),
        meters=charges,
        materialised=True,
    )
    return Lines(engine, session, tuple(names))


def reasons(lines: Lines) -> None:
    """Make ``focus_unpriced``: what the lines leave out, with the reasons that coverage gives.

    Args:
        lines: The lines.
    """
    numbers = {row[1:]: row[0] for row in lines.session.keys}
    rows = [
        (
            numbers[row["provider"] or "", row["model"] or "", row["service_tier"], row["region"] or ""],
            row["price_status"],
            row["reason"],
        )
        for row in coverage(lines.session).unpriced
    ]
    lines.engine.register("focus_reasons", pl.DataFrame(rows, schema=_REASONS, orient="row"))
    steps.run(lines.engine, "focus_unpriced", own="focus_own", materialised=True)


def _dimensions(engine: Engine, grain: Grain) -> tuple[str, ...]:
    """List what charges are kept apart by; tags and hours only where they occur, as the cube has neither."""
    tagged = engine.fetch("select count(*) > 0 as found from requests where cardinality(tags) > 0")["found"][0]
    return (*OWNERS, *(("tags",) if tagged else ()), *(("hour",) if grain == "hour" else ()))


def _cut_days(cards: Sequence[Session], edges: Iterable[datetime]) -> pl.DataFrame:
    """Find the days whose requests cannot be priced or dated from daily sums."""
    frames = [card.card.frame for card in cards]
    inside = [edge.date() for edge in edges if edge.timetz() != time(tzinfo=UTC)]
    cut = [frame.filter(pl.col("is_cut") | pl.col("day").is_in(inside)) for frame in frames]
    return pl.concat([frame.select("price_key", "day") for frame in cut]).unique()


def _cells(session: Session, dimensions: Sequence[str], thresholds: Iterable[int], *, from_cube: bool) -> None:
    texts = {"tags": _TAGS, "hour": "cast(date_trunc('hour', priced_at) as timestamp)"}
    names = (*OWNERS, "source_format") if from_cube else dimensions
    session.cells(
        "focus_mixed", {name: texts.get(name, name) for name in names}, "cube" if from_cube else "priced_requests",
        thresholds=thresholds, cut=True,
    )  # fmt: skip
    steps.run(session.engine, "focus_cells", cells="focus_mixed", materialised=True)


def _price(session: Session, name: str) -> str:
    words = pricing_words(session.meters)
    steps.run(session.engine, "priced", name=name, cells="focus_cells", undated="ambiguous", materialised=True, **words)
    return name


def _stretches(card: pl.DataFrame, edges: Iterable[datetime]) -> pl.DataFrame:
    """List the stretches of each price key's days in which one entry holds, cut at the edges too."""
    found = card.select("price_key", "day", "entry_id", "valid_from", "valid_to").unique()
    for edge in sorted({edge.astimezone(UTC).replace(tzinfo=None) for edge in edges}):
        is_within = (pl.col("valid_from") < edge) & (pl.col("valid_to") > edge)
        within = found.filter(is_within)
        found = pl.concat(
            [
                found.filter(~is_within),
                within.with_columns(valid_to=pl.lit(edge, pl.Datetime("us"))),
                within.with_columns(valid_from=pl.lit(edge, pl.Datetime("us"))),
            ]
        )
    return found.sort(pl.all())


def partner(meter: Meter) -> str:
    """Name the meter whose price a part's tokens take where a card does not price the part apart.

    Args:
        meter: The part.

    Returns:
        The meter; empty where there is none.
    """
    if meter.falls_under and meter.falls_under != meter.name:
        return meter.falls_under
    return meter.parents[0] if meter.merges else ""


def _group_words(used: Sequence[Meter], own: Session, listed: Session) -> dict[str, str]:
    """Write what ``focus_groups.sql`` does with the meters."""
    from_list: list[str] = []
    sums: list[str] = []
    quantities: list[str] = []
    for meter in used:
        name, has_own, has_list = meter.name, meter in own.meters, meter in listed.meters
        mine = {"units": f"p.{name}_units", "rate": f"p.rate_{name}", "pusd": f"p.{name}_pusd"}
        theirs = {"units": f"q.{name}_units", "rate": f"q.rate_{name}", "pusd": f"q.{name}_pusd"}
        for kind in ("units", "rate", "pusd"):
            here = f"coalesce({mine[kind]}, 0)" if has_own else "0"
            there = f"coalesce({theirs[kind]}, 0)" if has_list else "0"
            from_list.append(f"{here} as own_{kind}_{name}")
            from_list.append(f"case when q.is_priced then {there} else {here} end as list_{kind}_{name}")
        for side in ("own", "list"):
            sums.append(f"cast(sum({side}_units_{name}) as bigint) as {side}_units_{name}")
            sums.append(f"cast(sum({side}_pusd_{name}) as decimal(38, 0)) as {side}_pusd_{name}")
            sums.append(f"max({side}_rate_{name}) as {side}_rate_{name}")
        # what a part has of its own in either card is taken out of the meter that it falls under in the other
        parts = [
            f"(greatest(own_units_{part.name}, list_units_{part.name}) - own_units_{part.name})"
            for part in used
            if partner(part) == name
        ]
        whole = f"own_units_{name}" if parts else f"greatest(own_units_{name}, list_units_{name})"
        quantities.append(f"{' - '.join([whole, *parts])} as quantity_{name}")
    whens = "\n    ".join(f"when quantity_{meter.name} <> 0 then {number}" for number, meter in enumerate(used))
    return {
        "from_list": ",\n    ".join(from_list),
        "sums": ",\n    ".join(sums),
        "quantities": ",\n    ".join(quantities),
        "carrier": f"case {whens}\n    else 0 end",
    }


def _charge(meter: Meter, number: int, names: Sequence[str], used: Sequence[Meter]) -> str:
    """Write the charges of one meter as a SELECT."""
    name, under = meter.name, partner(meter)
    quantity = f"quantity_{name}"
    columns: list[str] = []
    for side in ("own", "list"):
        other = f"{side}_rate_{under}" if under else "0"
        rate = f"case when {side}_rate_{name} < 0 then {other} else {side}_rate_{name} end"
        columns.append(f"{rate} as {side}_rate")
        product = f"cast({quantity} as decimal(19, 0)) * cast({rate} as decimal(19, 0))"
        columns.append(f"{product if meter.divisor == 1 else f'{side}_pusd_{name}'} as {side}_pusd")
    # quantities in 1e-12 of the units that FOCUS names
    exact = f"(cast({quantity} as decimal(19, 0)) * cast({10**12} as decimal(19, 0)))"
    priced = f"cast({half_even(exact, meter.per * meter.divisor)} as decimal(38, 0))"
    if meter.divisor == 1:
        priced = f"cast({quantity} as decimal(19, 0)) * cast({10**12 // meter.per} as decimal(19, 0))"
    consumed = f"cast({quantity} as decimal(19, 0)) * cast({10**12 // SKUS[name].unit_divisor} as decimal(19, 0))"
    columns += [f"{consumed} as consumed_e12", f"{priced} as priced_e12"]
    reasoning = {
        "reasoning": quantity,
        "output": "reasoning_tokens - quantity_reasoning" if "reasoning" in _names(used) else "reasoning_tokens",
    }
    return (
        f"select period_start, period_end, {_listed(names)} price_key, own_entry, list_entry, has_list, "
        f"'{name}' as meter, {METER_NAMES.index(name)} as meter_number, {quantity} as quantity, {', '.join(columns)}, "
        f"case when carrier = {number} then requests else 0 end as requests, "
        f"{reasoning.get(name, '0')} as reasoning_tokens "
        f"from focus_groups where {quantity} <> 0 or carrier = {number}"
    )


def _names(used: Iterable[Meter]) -> set[str]:
    return {meter.name for meter in used}


def _listed(parts: Iterable[str]) -> str:
    return "".join(f"{part}, " for part in parts)


def day_after(start: datetime) -> datetime:
    """Give the midnight after an instant.

    Args:
        start: An aware instant.

    Returns:
        The next midnight in UTC.
    """
    return datetime.combine(start.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
