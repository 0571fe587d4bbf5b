"""The ledger: a log priced by a price book, with exact totals, coverage and a trace for every number."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import polars as pl

from tenfold import display, tables
from tenfold.display import nothing_priced
from tenfold.ledger.charges import Charge
from tenfold.ledger.costs import Costs, costs
from tenfold.ledger.coverage import Coverage, coverage
from tenfold.ledger.dimensions import KEY_COLUMNS, TIME_GRAINS, check_dimensions, grain_text
from tenfold.ledger.explain import explain
from tenfold.ledger.session import Session, Window
from tenfold.logs.log import Log
from tenfold.money import shown, usd_text
from tenfold.prices import PriceBook, price_book
from tenfold.prices.meters import METER_NAMES, counted, meters
from tenfold.store.engines import Engines

__all__ = [
    "KEY_COLUMNS",
    "TIME_GRAINS",
    "Charge",
    "Composition",
    "Costs",
    "Coverage",
    "Ledger",
    "Session",
    "Window",
    "attribute",
    "check_dimensions",
    "grain_text",
]

# Rows that a notebook shows: of groups, and of days, weeks or months.
_GROUPS, _TIMES = 15, 40


@dataclass(frozen=True, slots=True)
class Composition:
    """What a bill is made of, by dimensions; sums to the bill to the pUSD.

    Args:
        by: The dimensions.
        frame: One row per group: dimensions, counters, ``<meter>_units``, ``<meter>_pusd``, ``cost_pusd``.
        total_pusd: Sum of ``cost_pusd`` over the rows.
    """

    by: tuple[str, ...]
    frame: pl.DataFrame
    total_pusd: int

    def rows(self) -> list[dict[str, Any]]:
        """Give the rows the keys that scripts rely on, dearest first.

        Returns:
            Per group: dimensions, ``requests``, ``unpriced_requests``, ``cost_usd`` (None where nothing in the group
            is priced), and ``<meter>_usd`` with ``<meter>_tokens`` (and ``web_search_calls``) for meters that occur.
        """
        used = [meter for meter in METER_NAMES if (self.frame[f"{meter}_units"].fill_null(0) != 0).any()]
        return [self._row(row, used) for row in self.ordered().rows(named=True)]

    def ordered(self) -> pl.DataFrame:
        """Order the rows for reading: by time where the first dimension is one, else dearest first.

        Returns:
            The frame, ordered.
        """
        if self.by and self.by[0] in TIME_GRAINS:
            return self.frame.sort(*self.by, nulls_last=True)
        return self.frame.sort("cost_pusd", *self.by, descending=[True, *([False] * len(self.by))], nulls_last=True)

    def _row(self, row: dict[str, Any], used: list[str]) -> dict[str, Any]:
        units = {meter.name: meter.unit for meter in meters()}
        blank = nothing_priced(row["requests"], row["unpriced_requests"])
        made: dict[str, Any] = {
            name: grain_text(name, row[name]) if name in TIME_GRAINS else row[name] for name in self.by
        }
        made |= {"requests": row["requests"], "unpriced_requests": row["unpriced_requests"]}
        made["cost_usd"] = None if blank else usd_text(int(row["cost_pusd"]))
        for meter in used:
            made[f"{meter}_usd"] = None if blank else usd_text(int(row[f"{meter}_pusd"]))
            for unit, count in counted(units[meter], row[f"{meter}_units"]).items():
                made[f"{meter}_{unit}"] = count
        return made

    @property
    def unowned_pusd(self) -> int:
        """Cost of what no team owns; 0 where teams are not kept apart."""
        if "team" not in self.by:
            return 0
        return int(self.frame.filter(pl.col("team").is_null())["cost_pusd"].sum() or 0)

    def owned_ratio(self, unowned_charges_pusd: int = 0, charges_pusd: int = 0) -> Fraction | None:
        """Allocation coverage: the share of the bill that has a team.

        Args:
            unowned_charges_pusd: Charges beside the requests that no team carries.
            charges_pusd: All of them.

        Returns:
            The share; None without teams, and where nothing costs.
        """
        whole = self.total_pusd + charges_pusd
        if not whole or "team" not in self.by:
            return None
        return 1 - Fraction(self.unowned_pusd + unowned_charges_pusd, whole)

    def usd(self) -> pl.DataFrame:
        """Give the rows for reading: money in USD, exact, and NULL where nothing in a group has a price.

        What has no team reads ``unallocated``; a team of that name stands in quotes.

        Returns:
            Dimensions, ``requests``, ``unpriced_requests``, ``cost_usd`` (Decimal with 12 decimals).
        """
        rows = self.rows()
        made = {name: [row[name] for row in rows] for name in (*self.by, "requests", "unpriced_requests")}
        if "team" in made:
            made["team"] = [display.name_of("team", team) for team in made["team"]]
        cost = [None if row["cost_usd"] is None else Decimal(row["cost_usd"]) for row in rows]
        return pl.DataFrame(made).with_columns(cost_usd=pl.Series(cost, dtype=pl.Decimal(38, 12)))

    def _repr_html_(self) -> str:
        """Show the groups in a notebook, with what each is made of."""
        requests = int(self.frame["requests"].sum() or 0)
        title = f"{shown(self.total_pusd)}, {display.counted(requests, 'request')}"
        if not self.by:
            return tables.card(title)
        is_ordered = self.by[0] in TIME_GRAINS
        frame = self.ordered()
        frame = frame.with_columns(
            pl.Series(name, [grain_text(name, value) for value in frame[name]], dtype=pl.String)
            for name in self.by
            if name in TIME_GRAINS
        )
        caption = f"Cost by {', '.join(self.by)}"
        top = _TIMES if is_ordered else _GROUPS
        table = tables.composition(frame, self.by, name="composition", caption=caption, top=top, is_ordered=is_ordered)
        return tables.card(title, (), table)

    def shares(self) -> dict[str, float]:
        """Share of the bill by meter.

        Returns:
            Meter to its share of the total, for meters that cost anything; empty for a bill of zero.
        """
        sums = {meter: int(self.frame[f"{meter}_pusd"].sum() or 0) for meter in METER_NAMES}
        return {meter: cost / self.total_pusd for meter, cost in sums.items() if cost} if self.total_pusd else {}


class Ledger:
    """A log priced by a book. Cheap to make: nothing is computed before it is asked for.

    Args:
        log: The loaded log.
        book: The price book.
        window: Which requests, and how days are cut.
        price_at: Price everything at this one instant (a what-if), or None.
    """

    charges: tuple[Charge, ...] = ()
    """What the bill holds beside its requests; ``total_pusd`` and ``composition`` are of requests alone."""

    def __init__(self, log: Log, book: PriceBook, window: Window, price_at: datetime | None = None) -> None:
        self.log = log
        self.book = book
        self.window = window
        self.price_at = price_at

    def within(self, window: Window) -> Ledger:
        """Price another window of the same log.

        Args:
            window: Which requests, and how days are cut.

        Returns:
            The ledger of that window.
        """
        return Ledger(self.log, self.book, window, self.price_at)

    @contextmanager
    def session(self) -> Generator[Session]:
        """Open the store read-only and lay the priced views over it.

        Yields:
            The session; its connection closes at the end.
        """
        with self.log.engine() as engine:
            yield Session(engine, self.book, self.window, price_at=self.price_at)

    def composition(self, by: Sequence[str] = ()) -> Composition:
        """Split the bill by dimensions, exactly.

        Args:
            by: Columns of ``requests``, or day, week, month, quarter, year.

        Returns:
            The composition; its rows sum to ``total_pusd``.

        Raises:
            ColumnError: A dimension does not exist; names the near match.
        """
        by = _names(by)
        with self.session() as session:
            frame = session.totals(by)
        return Composition(tuple(by), frame, int(frame["cost_pusd"].sum() or 0))

    @cached_property
    def total_pusd(self) -> int:
        """Cost of everything that is priced, in pUSD; read ``coverage`` with it."""
        return self.composition().total_pusd

    @property
    def charges_pusd(self) -> int:
        """Sum of ``charges``, in pUSD."""
        return sum(one.pusd for one in self.charges)

    def charges_by_month(self) -> dict[date, int]:
        """Cut ``charges`` into calendar months of the window's zone; a ledger without charges has none.

        Returns:
            First day of the month to pUSD; together all charges.
        """
        return {}

    @cached_property
    def coverage(self) -> Coverage:
        """The priced share in requests, tokens and money, and what is not priced, by name."""
        with self.session() as session:
            return coverage(session)

    def costs(self, by: Sequence[str] = ()) -> Costs:
        """Give list, contracted and effective cost side by side.

        Args:
            by: Columns of ``requests``, or day, week, month, quarter, year.

        Returns:
            The costs; list and contracted are equal where the book holds no prices of your own.

        Raises:
            ColumnError: A dimension does not exist; names the near match.
        """
        by = _names(by)
        with self.log.engine() as engine:
            listed = Session(engine, self.book.list_book, self.window, price_at=self.price_at)
            at_list = listed.totals(by)
            own = Session(engine, self.book, self.window, price_at=self.price_at)
            return costs(own, at_list, by)

    def explain(self, request_id: str) -> dict[str, Any]:
        """Trace one request's cost back to its log line and price entry.

        Args:
            request_id: Provider's id of the request, or its place in the log, ``FILE:LINE``.

        Returns:
            The trace, with the keys of ``tenfold explain --json``.

        Raises:
            ColumnError: No request, or more than one, has that id or place.
        """
        with self.session() as session:
            return explain(session, request_id)

    def frame(self) -> pl.DataFrame:
        """Read the ledger itself, one row a request. As large as the log: for exports, not for sums.

        Returns:
            Columns of ``requests``, ``price_status``, ``<meter>_units`` and ``<meter>_pusd``.
        """
        with self.session() as session:
            return session.engine.fetch("select * from priced_requests")

    def __repr__(self) -> str:
        """Say what it is in one line."""
        return f"<Ledger {shown(self.total_pusd)}, prices {self.book.version}{self._what_if()}>"

    def _repr_html_(self) -> str:
        """Show total, coverage, window and card in a notebook, and what has no price."""
        found = self.coverage
        percent, counted = display.percent, display.counted
        title = "No price for any request" if found.is_unpriced else f"{shown(self.total_pusd)} for requests"
        beside = f", {shown(self.charges_pusd)} beside them" if self.charges else ""
        bounds = [None if bound is None else display.minute(bound, self.window.zone) for bound in self.window[:2]]
        window = (
            "all requests" if bounds == [None, None] else f"{bounds[0] or 'the first'} to {bounds[1] or 'the last'}"
        )
        requests, tokens = percent(found.requests_ratio, 1), percent(found.tokens_ratio, 1)
        shares = f"{requests} of {counted(found.requests, 'request')} and {tokens} of tokens have a price"
        lines = [
            f"Coverage: {shares}; {found.not_billed_requests:,} are not billed",
            f"Window: {window}; days of {self.window.zone}",
            f"Prices: card {self.book.version}{self._what_if()}",
        ]
        table = [tables.unpriced(found.unpriced, name="unpriced", caption="Without a price")] if found.unpriced else []
        return tables.card(title + beside, lines, *table)

    def _what_if(self) -> str:
        return f", all priced at {self.price_at.isoformat()}" if self.price_at else ""


def _names(by: Sequence[str]) -> Sequence[str]:
    """Take one name for a list of one."""
    return (by,) if isinstance(by, str) else by


def attribute(
    log: Log,
    book: PriceBook | None = None,
    *,
    price_at: datetime | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    zone: str = "UTC",
    engine: Engines | None = None,
) -> Ledger:
    """Price a log: every request by the entry in force when it ran.

    Args:
        log: The loaded log.
        book: The price book; the shipped one by default.
        price_at: Price everything at this one instant instead (a what-if).
        since: First instant to count (aware).
        until: Instant after the last to count (aware, exclusive).
        zone: IANA zone that report days are cut in.
        engine: What runs the queries, such as ``tf.Spark(session)``; the log's own by default, DuckDB on this machine.

    Returns:
        The ledger.

    Raises:
        PriceFileError: The shipped book cannot be read.
    """
    return Ledger(log.on(engine) if engine else log, book or price_book(), Window(since, until, zone), price_at)
