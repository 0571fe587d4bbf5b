"""One priced look at a store: the card expanded to the log's days, the SQL steps laid over it, exact totals read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from tenfold.config import zone as known_zone
from tenfold.errors import ColumnError
from tenfold.ledger import metering, shapes
from tenfold.ledger.dimensions import KEY_COLUMNS, TIME_GRAINS, check_dimensions, listed, split
from tenfold.prices.book import PriceBook
from tenfold.prices.day_map import DayMap, KeyDays, day_map
from tenfold.prices.meters import CORE, METER_NAMES, Meter
from tenfold.store import cells as cell_columns
from tenfold.store import schema, steps
from tenfold.store.engines import Engine

_CUBE_NAMES = ",\n  ".join(column.name for column in schema.CUBE if column.name != "day")
# Days that a month counts in every projection.
DAYS_PER_MONTH = Fraction(304, 10)


class Window(NamedTuple):
    """Which requests, and how days are cut.

    Args:
        since: First instant (aware), or None.
        until: Instant after the last (exclusive), or None.
        zone: IANA zone of report days.
    """

    since: datetime | None = None
    until: datetime | None = None
    zone: str = "UTC"

    def condition(self, column: str = "priced_at", is_dated: str = "is_dated") -> str:
        """Write the window as a SQL condition.

        Args:
            column: Naive UTC timestamp or day column.
            is_dated: SQL that tells whether a row has a time; rows without one are in only when there is no bound.

        Returns:
            SQL text.
        """
        parts = ["true" if self.since is None and self.until is None else is_dated]
        if self.since is not None:
            parts.append(f"{column} >= {timestamp(self.since)}")
        if self.until is not None:
            parts.append(f"{column} < {timestamp(self.until)}")
        return " and ".join(parts)

    def dates(self, dated: Sequence[date]) -> tuple[date, ...]:
        """List the window's days in its zone: of the window asked for, else from first to last request.

        Args:
            dated: Days that have requests, in the window's zone.

        Returns:
            Every day, those without a request too; none where neither says.
        """
        if not dated and (self.since is None or self.until is None):
            return ()
        zone = ZoneInfo(self.zone)
        first = self.since.astimezone(zone).date() if self.since else min(dated)
        last = (self.until - timedelta(microseconds=1)).astimezone(zone).date() if self.until else max(dated)
        return tuple(first + timedelta(days=n) for n in range((last - first).days + 1))

    def fits_days(self) -> bool:
        """Tell whether the window is made of whole UTC days, as the cube is."""
        bounds = [bound.astimezone(UTC) for bound in (self.since, self.until) if bound is not None]
        return self.zone == "UTC" and all(bound.timetz() == time(tzinfo=UTC) for bound in bounds)


def timestamp(instant: datetime) -> str:
    """Write an aware instant as a naive UTC SQL literal.

    Args:
        instant: The instant.

    Returns:
        ``timestamp '...'``.
    """
    return f"timestamp '{instant.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')}'"


class Session:
    """A log priced by a card on an engine, for as long as its connection is open.

    Args:
        engine: Engine with the store's tables in reach.
        book: The price book.
        window: Which requests, and how days are cut.
        price_at: Price everything at this one instant instead (a what-if).
    """

    def __init__(self, engine: Engine, book: PriceBook, window: Window, *, price_at: datetime | None = None) -> None:
        self.engine = engine
        self.book = book
        self.window = window
        self.price_at = price_at
        self.meters: tuple[Meter, ...] = ()
        # Tables that were made on this session's engine, by the content of what they were made of.
        self.made: dict[tuple[object, ...], str] = {}
        known_zone(window.zone)
        for bound in (window.since, window.until, price_at):
            if bound is not None and bound.tzinfo is None:
                raise ColumnError(f"{bound.isoformat()} has no zone; give an aware instant")
        if window.since is not None and window.until is not None and window.since >= window.until:
            raise ColumnError(
                f"the window ends ({window.until.isoformat()}) before it begins ({window.since.isoformat()})"
            )
        keys = engine.fetch("select price_key, provider, model, service_tier, region from price_keys")
        self._facts = shapes.facts(engine)
        self._days = dict(self._facts.days)
        self._keys: list[tuple[int, str, str, str, str]] = keys.rows()
        self._cube_thresholds = self._known_thresholds()
        self._counts = self._facts.counts
        self.card = self._expand()

    def _known_thresholds(self) -> frozenset[int]:
        found = self.engine.fetch("select value from meta where name = 'thresholds'")
        text = str(found["value"][0]) if len(found) else ""
        return frozenset(int(part) for part in text.split(",") if part)

    def _expand(self) -> DayMap:
        wanted = [KeyDays(*key, self._days.get(key[0], ())) for key in self._keys]  # pyright: ignore[reportArgumentType]
        card = day_map(self.book, wanted, price_at=self.price_at, counts=self._counts)
        self.meters = metering.in_use(self._counts, has_request_fee=card.has_request_fee)
        kept = {*CORE, "reasoning", *(meter.name for meter in self.meters)}
        unused = [f"rate_{name}" for name in METER_NAMES if name not in kept]
        self.engine.register("day_map", card.frame.drop(unused))
        self.engine.register("cut_days", card.frame.filter("is_cut").select("price_key", "day").unique())
        self.engine.register(
            "keys",
            pl.DataFrame(
                self._keys,
                orient="row",
                schema={"price_key": pl.Int32, **dict.fromkeys(KEY_COLUMNS, pl.String)},
            ),
        )
        self.price("requests", "priced_requests")
        return card

    def add_keys(self, changes: Mapping[int, Mapping[str, str]]) -> dict[int, int]:
        """Make price keys that the log does not have: a lever's other tier or model on the same days.

        Args:
            changes: Price key to the parts that change (``model``, ``service_tier``, ...).

        Returns:
            Old price key to new one.
        """
        return dict(zip(changes, self.add_key_list(list(changes.items())), strict=True))

    def add_key_list(self, changes: Sequence[tuple[int, Mapping[str, str]]]) -> list[int]:
        """Make price keys, several of one too.

        Args:
            changes: Pairs of a price key and the parts that change.

        Returns:
            The new price keys, in order.
        """
        by_parts = {row[1:]: row[0] for row in self._keys}
        parts_of = {row[0]: dict(zip(KEY_COLUMNS, row[1:], strict=True)) for row in self._keys}
        known = len(self._keys)
        made: list[int] = []
        days: dict[int, tuple[object, ...]] = {}
        for key, change in changes:
            new = {**parts_of[key], **change}
            parts = (new["provider"], new["model"], new["service_tier"], new["region"])
            if parts not in by_parts:
                by_parts[parts] = max(row[0] for row in self._keys) + 1
                self._keys.append((by_parts[parts], *parts))
            made.append(by_parts[parts])
            days[made[-1]] = (*days.get(made[-1], ()), *self._days.get(key, ()))
        self.add_days(days, is_new=len(self._keys) > known)
        return made

    def add_days(self, days: Mapping[int, Iterable[object]], *, is_new: bool = False) -> None:
        """Let price keys have prices on further days: those to which a lever moves requests.

        Args:
            days: Price key to UTC days; None for requests without a time.
            is_new: Whether there are keys that the card does not have yet.
        """
        for key, more in days.items():
            known = self._days.get(key, ())
            self._days[key] = tuple(dict.fromkeys((*known, *more)))
            is_new |= len(self._days[key]) > len(known)
        if is_new:
            self.card = self._expand()

    def price(self, requests: str, name: str, *, windowed: bool = True) -> None:
        """Price a version of the requests, row by row: the one pricing function, on a lever's output too.

        Args:
            requests: View or table with the columns of ``requests``.
            name: Priced view to make, of the session's window; its cells are ``<name>_cells``.
            windowed: False for rows of the window that may have been moved out of it.
        """
        steps.run(
            self.engine,
            "cells_requests",
            name=f"{name}_cells",
            requests=requests,
            condition=self.window.condition("ts", "ts is not null") if windowed else "true",
        )
        self._price(name, f"{name}_cells")

    def _price(self, name: str, cells: str, *, materialised: bool = False) -> None:
        undated = "ambiguous" if self.price_at is None else "unpriced_model"
        sql = steps.filled("priced", cells=cells, undated=undated, **metering.pricing_words(self.meters))
        self.engine.step(name, sql, materialised=materialised)

    def totals(
        self,
        by: Sequence[str] = (),
        *,
        priced: str | None = None,
        condition: str = "true",
        keep: bool = False,
        for_any_card: bool = False,
    ) -> pl.DataFrame:
        """Sum exactly by dimensions.

        Args:
            by: Columns of ``requests``, or ``day``, ``week``, ``month``, ``quarter``, ``year`` in the window's zone.
            priced: A view that ``price`` made; by default the cube where it can answer, else the log's own requests.
            condition: A further SQL condition over the requests (which then are read, not the cube).
            keep: Keep the priced cells under the name ``priced_grouped``, for the caller to read.
            for_any_card: Make cells that another card can price too; they are more.

        Returns:
            One row per group: the dimensions, request and token counters, ``<meter>_units`` and ``<meter>_pusd``
            (Decimal(38, 0)), and ``cost_pusd``, their sum.

        Raises:
            ColumnError: A dimension does not exist; names the near match and what there is.
        """
        check_dimensions(by)
        inner, outer = split(by, self.window.zone)
        source = priced or "priced_requests"
        if priced is None and condition == "true" and self._cube_answers(by):
            source = "cube"
        is_own = source in ("cube", "priced_requests") and not for_any_card
        shape = shapes.shape(self._facts, self.card, self.meters) if is_own else cell_columns.FULL
        name = "priced_grouped" if keep else "priced_sums"
        self._price_grouped(name, inner, source, condition, shape=shape, materialised=keep)
        sql = steps.filled(
            "totals",
            priced=name,
            dimensions=listed(outer),
            **metering.total_words(self.meters),
        )
        found = self.engine.fetch(f"{sql}\norder by all nulls last" if by else sql)
        absent = [name for name in METER_NAMES if name not in {meter.name for meter in self.meters}]
        none = pl.lit(0, dtype=pl.Decimal(38, 0))
        return found.with_columns(
            *(pl.lit(0, dtype=pl.Int64).alias(f"{name}_units") for name in absent),
            *(none.alias(f"{name}_pusd") for name in absent),
            cost_pusd=pl.sum_horizontal(f"{meter.name}_pusd" for meter in self.meters),
        )

    def daily_tokens(self, by: Sequence[str], condition: str) -> pl.DataFrame:
        """Sum known tokens of billed requests by UTC day and dimensions, for what is shared out day by day.

        Args:
            by: As in ``totals``.
            condition: A SQL condition over the requests.

        Returns:
            One row per group and UTC day: the dimensions, ``utc_day``, ``tokens``; groups without tokens are left out.
        """
        inner, outer = split(by, self.window.zone)
        named = listed(text if text == name else f"{text} as {name}" for name, text in inner.items())
        return self.engine.fetch(
            f"with counted as (select {named} day, is_dated, price_key, "
            "coalesce(input_tokens, 0) + coalesce(output_tokens, 0) as tokens "
            f"from priced_requests where is_billed and is_dated and {condition}) "
            f"select {listed(outer)} counted.day as utc_day, cast(sum(tokens) as bigint) as tokens "
            "from counted join keys using (price_key) group by all having sum(tokens) > 0 order by all nulls last"
        )

    @property
    def days(self) -> frozenset[date]:
        """UTC days that have requests."""
        return frozenset(day for days in self._days.values() for day in days if isinstance(day, date))

    def _price_grouped(
        self,
        name: str,
        dimensions: Mapping[str, str],
        source: str,
        condition: str,
        *,
        shape: cell_columns.Shape,
        materialised: bool,
    ) -> None:
        """Sum requests (a priced view's, or the cube's) to cells of a shape and price those."""
        self.cells(f"{name}_mixed", dimensions, source, condition, shape=shape)
        self._price(name, f"{name}_mixed", materialised=materialised)

    def cells(
        self,
        name: str,
        dimensions: Mapping[str, str],
        source: str,
        condition: str = "true",
        *,
        shape: cell_columns.Shape = cell_columns.FULL,
        thresholds: Iterable[int] | None = None,
        cut: bool | None = None,
    ) -> None:
        """Sum requests to cells that ``priced.sql`` takes; those of days with more than one price list stay single.

        Args:
            name: View to make.
            dimensions: Column to its SQL over the requests.
            source: A priced view, or ``cube``.
            condition: A SQL condition over the requests.
            shape: What the cells are alike in.
            thresholds: Context thresholds; those of the book by default.
            cut: Whether the table `cut_days` has any; by default the card knows.
        """
        expressions = listed(text if text == one else f"{text} as {one}" for one, text in dimensions.items())
        cells = cells_of = f"{'priced_requests' if source == 'cube' else source}_cells"
        if source == "cube":
            cells_of = "cube_cells"
            within = self.window.condition("day", "day is not null")
            steps.run(self.engine, "cells_cube", name=cells_of, condition=within, names=_CUBE_NAMES)
        limits = self.book.thresholds if thresholds is None else thresholds
        words = cell_columns.grouping_words(limits, shape, from_cube=source == "cube")
        is_cut = self.card.frame["is_cut"].any() if cut is None else cut
        words |= {"dimensions": expressions, "names": listed(dimensions)}
        grouped = steps.filled("cells_grouped", cells=cells_of, condition=condition, **words)
        self.engine.step(f"{name}_grouped" if is_cut else name, grouped)
        if not is_cut:
            return
        steps.run(
            self.engine, "cells_mixed", name=name, grouped=f"{name}_grouped", cells=cells,
            names=listed(dimensions), dimensions=expressions, condition=condition,
            counts=cell_columns.counts(shape),
        )  # fmt: skip

    def view_for(self, by: Iterable[str]) -> str:
        """Choose the priced view that can answer: the cube's cells, or the single requests.

        Args:
            by: The dimensions wanted.

        Returns:
            Name of a priced view over the session's window, with those dimensions.
        """
        if not self._cube_answers(by):
            return "priced_requests"
        dimensions = {name: name for name in schema.CUBE_DIMENSIONS}
        shape = shapes.shape(self._facts, self.card, self.meters)
        self._price_grouped("priced_cube", dimensions, "cube", "true", shape=shape, materialised=False)
        return "priced_cube"

    @property
    def counts(self) -> frozenset[str]:
        """Counts that are above zero somewhere in the log."""
        return self._counts

    @property
    def keys(self) -> tuple[tuple[int, str, str, str, str], ...]:
        """Rows of (price key, provider, model, tier, region)."""
        return tuple(self._keys)

    def _cube_answers(self, by: Iterable[str]) -> bool:
        cheap = {*schema.CUBE_DIMENSIONS, *KEY_COLUMNS, *TIME_GRAINS}
        covered = set(self.book.thresholds) <= self._cube_thresholds
        return covered and self.window.fits_days() and all(name in cheap for name in by)
