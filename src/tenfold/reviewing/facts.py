"""What the sections of a review read: one windowed ledger, its reading, and what else the store knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import polars as pl

from tenfold.analysis.composition import CELLS, Reading, read
from tenfold.config import Settings
from tenfold.display import dollars, number
from tenfold.ledger import Composition, Costs, Ledger, Window
from tenfold.money import PUSD_PER_USD, shown
from tenfold.reviewing.price_changes import PriceChange, price_changes
from tenfold.reviewing.quarter import Quarter
from tenfold.store.database import query

# What stands before shares and bounds of a bill that holds idle GPUs too.
OF_REQUESTS = "Of what requests carry, idle GPUs left out:"


def why_none(plan: Mapping[str, Any]) -> str:
    """Say why a plan has no lever, in the plan's own words.

    Args:
        plan: The ``plan`` object of its document.

    Returns:
        The reason, and that the log is short where it is.
    """
    why = str(plan.get("why_none") or "each lever says why under levers")
    return f"{why}; log too short for an interval" if plan.get("bound_by") == "short_log" else why


class Facts:
    """Everything a section may use; computed once, when first asked for.

    Args:
        ledger: The priced log, of any window.
        plan: The document of ``tenfold levers --json``, or None.
        quarter: The quarter.
        settings: Fiscal year, thresholds, budgets and currency.
        window: What is read in place of the quarter.
    """

    def __init__(
        self,
        ledger: Ledger,
        plan: Mapping[str, Any] | None,
        quarter: Quarter,
        settings: Settings,
        *,
        window: Window | None = None,
    ) -> None:
        self.whole = ledger
        self.ledger = ledger.within(window or quarter.window)
        self.plan = plan
        self.quarter = quarter
        self.settings = settings
        self.composition = cache(self._composition)

    @cached_property
    def before(self) -> Ledger | None:
        """The quarter before, priced; None where the log has no request in it."""
        ledger = self.whole.within(self.quarter.previous.window)
        return ledger if ledger.coverage.requests else None

    @property
    def previous(self) -> Quarter:
        """The quarter before."""
        return self.quarter.previous

    def beside(self, pusd: int) -> str:
        """Write an amount in the currency that is shown beside USD.

        Args:
            pusd: The amount.

        Returns:
            Text such as ``€ 92.00``, with the code in place of a sign; empty where no currency is set.
        """
        currency = self.settings.currency
        if currency is None:
            return ""
        amount = Fraction(pusd, PUSD_PER_USD) * Fraction(currency.per_usd)
        return f"{number(amount, 2)} {currency.code}"

    @property
    def zone(self) -> str:
        """Zone that days and times are in."""
        return self.quarter.zone

    @cached_property
    def reading(self) -> Reading:
        """The composition reading of the quarter."""
        return read(self.ledger)

    @property
    def spend_pusd(self) -> int:
        """The spend, in one meaning everywhere: priced requests, and GPUs that stand idle."""
        return self.reading.spend_pusd + self.ledger.charges_pusd

    @property
    def left_out(self) -> str:
        """What to add to a title where only requests are shown."""
        return ", idle GPUs left out" if self.ledger.charges else ""

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """What the plan was made on that is not this quarter's bill; empty where its figures belong beside it."""
        plan = self.plan
        if plan is None:
            return ()
        found: list[str] = []
        spend = plan["spend_usd"]
        is_blank = self.reading.coverage.is_unpriced and not self.ledger.charges
        here = None if is_blank else self.spend_pusd
        if (None if spend is None else Fraction(spend) * PUSD_PER_USD) != here:
            own = "nothing priced" if here is None else shown(here)
            found.append(f"made on {dollars(spend)} of spend, not on this quarter's {own}")
        if self._is_other_window(plan.get("window") or {}):
            found.append(f"made on {plan['window']['first_day']} to {plan['window']['last_day']}")
        for key, mine, what in (
            ("card_version", self.ledger.book.version, "prices"),
            ("log_hash", self.ledger.log.log_hash, "log"),
        ):
            other = plan.get(key)
            if other is not None and other != mine:
                found.append(f"made with other {what} ({str(other)[:12]}, here {mine[:12]})")
        return tuple(found)

    def _is_other_window(self, window: Mapping[str, Any]) -> bool:
        first, last = window.get("first_day"), window.get("last_day")
        if first is None or last is None or window.get("zone", self.zone) != self.zone:
            return False  # days of another zone do not compare; the spend then tells
        since, until = self.quarter.bounds
        return first < since.date().isoformat() or last >= until.date().isoformat()

    def _composition(self, *by: str) -> Composition:
        return self.ledger.composition(by)

    @cached_property
    def _price_changes(self) -> tuple[PriceChange, ...]:
        with self.ledger.session() as session:
            return price_changes(session)

    @property
    def price_changes(self) -> tuple[PriceChange, ...]:
        """Price changes within the quarter, of what was used in it."""
        return tuple(one for one in self._price_changes if one.at < self.quarter.bounds[1])

    @property
    def price_changes_ahead(self) -> tuple[PriceChange, ...]:
        """Price changes and ends of prices after the quarter, of what was used in it."""
        return tuple(one for one in self._price_changes if one.at >= self.quarter.bounds[1])

    @cached_property
    def costs(self) -> Costs:
        """List, contracted and effective cost by provider and model."""
        return self.ledger.costs(("provider", "model"))

    @cached_property
    def loads(self) -> Mapping[str, int]:
        """Files, lines, duplicates, snapshots merged and lines rejected, over all loads of the store."""
        found = self._stored(
            "select count(*) as files, cast(coalesce(sum(lines), 0) as bigint) as lines, "
            "cast(coalesce(sum(duplicates), 0) as bigint) as duplicates, "
            "cast(coalesce(sum(merged), 0) as bigint) as merged, "
            "cast(coalesce(sum(ignored), 0) as bigint) as ignored from loads"
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
