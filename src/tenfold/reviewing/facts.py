"""What the sections of a review read: one windowed ledger, its reading, and what else the store knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import polars as pl

from tenfold.analysis.composition import CELLS, Reading, read
from tenfold.ledger import Composition, Ledger
from tenfold.reviewing.price_changes import PriceChange, price_changes
from tenfold.reviewing.quarter import Quarter
from tenfold.store.database import query


class Facts:
    """Everything a section may use; computed once, when first asked for.

    Args:
        ledger: The priced log, its window being the quarter.
        plan: The document of ``tenfold levers --json``, or None.
        quarter: The quarter.
    """

    def __init__(self, ledger: Ledger, plan: Mapping[str, Any] | None, quarter: Quarter) -> None:
        self.ledger = ledger
        self.plan = plan
        self.quarter = quarter
        self.composition = cache(self._composition)

    @property
    def zone(self) -> str:
        """Zone that days and times are in."""
        return self.quarter.zone

    @cached_property
    def reading(self) -> Reading:
        """The composition reading of the quarter."""
        return read(self.ledger)

    def _composition(self, *by: str) -> Composition:
        return self.ledger.composition(by)

    @cached_property
    def price_changes(self) -> tuple[PriceChange, ...]:
        """Price changes within the quarter, of what was used in it."""
        with self.ledger.session() as session:
            return price_changes(session)

    @cached_property
    def loads(self) -> Mapping[str, int]:
        """Files, lines, duplicates, snapshots merged and lines rejected, over all loads of the store."""
        found = self._stored(
            "select count(*) as files, cast(coalesce(sum(lines), 0) as bigint) as lines, "
            "cast(coalesce(sum(duplicates), 0) as bigint) as duplicates, "
            "cast(coalesce(sum(merged), 0) as bigint) as merged from loads"
        )
        return found.row(0, named=True)

    @cached_property
    def rejects(self) -> Sequence[tuple[str, int]]:
        """Reasons of rejected lines and how many, over all loads of the store."""
        return self._stored("select reason, count(*) as n from rejects group by reason order by n desc, reason").rows()

    @cached_property
    def flags(self) -> Sequence[tuple[str, int]]:
        """Flags of the quarter's requests and how many bear each."""
        with self.ledger.session() as session:
            found = session.engine.fetch(
                f"select flags, count(*) as n from {CELLS} where flags is not null group by flags"
            )
        sums = found.explode("flags").drop_nulls().group_by("flags").agg(pl.sum("n"))
        return sums.sort("n", "flags", descending=[True, False]).rows()

    @cached_property
    def undated_requests(self) -> int:
        """Requests without a time: in no quarter."""
        return self._stored("select count(*) as n from requests where ts is null")["n"][0]

    def _stored(self, sql: str) -> pl.DataFrame:
        with self.ledger.log.store.reading() as connection:
            return query(connection, sql)
