"""What the sections of a review read: one windowed ledger, its reading, and what else the store knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import polars as pl

from tenfold.analysis.allocation import Allocation, allocate
from tenfold.analysis.anomalies import Anomalies, anomalies
from tenfold.analysis.bridge import Bridge, bridge
from tenfold.analysis.budgets import WHOLE, Burn, burn
from tenfold.analysis.budgets import Range as Expected
from tenfold.analysis.composition import CELLS, Reading, read
from tenfold.analysis.efficiency import Efficiency, efficiency
from tenfold.analysis.forecast import Forecast, Saving, forecast
from tenfold.analysis.forecast.result import Range
from tenfold.analysis.reconcile import Reconciliation, reconcile
from tenfold.analysis.unit_economics import UnitEconomics, unit_economics
from tenfold.config import Settings
from tenfold.display import dollars, name_of, number
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.ledger import Composition, Costs, Ledger, Window
from tenfold.ledger.span import Span, span
from tenfold.money import PUSD_PER_USD, shown
from tenfold.planning import Recorded, recorded
from tenfold.reviewing.price_changes import PriceChange, price_changes
from tenfold.reviewing.promises import Followed, followed
from tenfold.reviewing.quarter import Quarter
from tenfold.store.database import query

# Days before the quarter that its days are held against.
_PAST = timedelta(days=63)
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
        try:
            ledger = self.whole.within(self.quarter.previous.window)
        except NotEvaluable:  # a fleet has no bill where its log has nothing
            return None
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
    def bridge(self) -> Bridge | None:
        """What moved the spend from the quarter before; None where the log has none, or neither has a price."""
        if self.before is None:
            return None
        try:
            return bridge(self.before, self.ledger, scale=self.pace)
        except NotEvaluable:
            return None

    @cached_property
    def covered(self) -> Span | None:
        """Days of the quarter that the log covers; None where it has none."""
        return span(self.ledger)

    @property
    def is_whole(self) -> bool:
        """Whether the log covers the quarter from its first day to its last."""
        return self.covered is not None and self.covered.days == self.quarter.days

    @cached_property
    def pace(self) -> Fraction:
        """What the quarter before is multiplied with to be compared: 1, or days over days where one is not whole."""
        now, then = self.covered, None if self.before is None else span(self.before)
        if now is None or then is None or (self.is_whole and then.days == self.previous.days):
            return Fraction(1)
        return Fraction(now.days, then.days)

    @property
    def pace_note(self) -> str:
        """Say which days are compared, where it is not two whole quarters; else empty."""
        if self.covered is None or (self.is_whole and self.pace == 1):
            return ""
        said = f"the log covers {self.covered.days} of the {self.quarter.days} days, to {self.covered.last}"
        if self.before is None or self.pace == 1:
            return said
        return f"{said}; the quarter before is scaled to as many days (times {number(self.pace, 3)})"

    @cached_property
    def units(self) -> UnitEconomics:
        """What units of work cost."""
        return unit_economics(self.ledger, ("team", "feature"))

    @cached_property
    def units_before(self) -> UnitEconomics | None:
        """The same of the quarter before."""
        return None if self.before is None else unit_economics(self.before, ("team", "feature"))

    @cached_property
    def efficiency(self) -> Efficiency:
        """How well the spend was used."""
        return efficiency(self.ledger, ("team", "feature"))

    @cached_property
    def efficiency_before(self) -> Efficiency | None:
        """The same of the quarter before."""
        return None if self.before is None else efficiency(self.before, ("team", "feature"))

    @cached_property
    def reconciliation(self) -> Reconciliation | None:
        """The quarter held against what providers bill; None where no report or invoice of it was loaded."""
        found = reconcile(self.ledger, max_drift=self.settings.thresholds.drift)
        return None if found.verdict == "not_evaluable" else found

    @property
    def is_reconciled(self) -> bool | None:
        """Whether the logged cost is within the threshold of what was invoiced; None where no invoice was loaded."""
        return None if self.reconciliation is None else self.reconciliation.verdict == "reconciled"

    @cached_property
    def expected(self) -> Range | None:
        """What the log before the quarter would have led one to expect of it; None where that is too short."""
        found = self._forecast(self.quarter.bounds[0], self.quarter.last_day)
        if isinstance(found, str) or self.covered is None:
            return None
        if not self.is_whole:
            return found.ahead(self.covered.last) if found.first == self.quarter.first_day else None
        made = found.period(self.quarter.name)
        return None if made is None else made.total

    @cached_property
    def forecast(self) -> Forecast | str:
        """What is going to be spent, from the log until the quarter's end; a text says why there is none."""
        return self._forecast(self.quarter.bounds[1], None, by=("team",), saving=self._saving())

    def _forecast(
        self, end: datetime, until: date | None, by: Sequence[str] = (), saving: Saving | None = None
    ) -> Forecast | str:
        try:
            past = self.whole.within(Window(None, end, self.zone))
            return forecast(past, until=until, by=by, fiscal_year_start=self.settings.fiscal_year_start, saving=saving)
        except (NotEvaluable, AssumptionError) as error:
            return str(error)

    def _saving(self) -> Saving | None:
        """Share of spend that the plan saves, where it was made on this bill."""
        if self.plan is None or self.differences or not self.spend_pusd:
            return None
        spend = Fraction(self.plan["spend_usd"])
        low, mid, high = (self.plan["plan"]["saving_usd"][name] for name in ("low", "mid", "high"))
        if mid is None:
            return None
        ends = [None if usd is None else Fraction(usd) / spend for usd in (low, high)]
        return ends[0], Fraction(mid) / spend, ends[1]

    @cached_property
    def anomalies(self) -> Anomalies | str:
        """Days of the quarter that stand out; a text says why none could be judged."""
        since, until = self.quarter.bounds
        past = self.whole.within(Window(since - _PAST, until, self.zone))
        limits = self.settings.thresholds
        least = round(Fraction(limits.anomaly_usd) * PUSD_PER_USD)
        try:
            return anomalies(past, k=limits.anomaly_k, least_pusd=least, since=since.date())
        except NotEvaluable as error:
            return str(error)

    @cached_property
    def burn(self) -> Burn | None:
        """Budgets against spend; None where no file of budgets is named."""
        if not self.settings.budgets:
            return None
        alerts, found = self.settings.thresholds.budget_alerts, self.forecast
        if isinstance(found, str):
            return burn(self.ledger, self.settings.budgets, alerts=alerts)
        ahead: dict[str, Expected] = {}
        for owner in found.tracks:
            expected = found.ahead(self.quarter.last_day, owner)
            if expected is not None and expected.low is not None and expected.high is not None:
                name = WHOLE if owner is None else name_of("team", owner[0])
                ahead[name] = Expected(expected.low, expected.mid, expected.high)
        through = min(found.first - timedelta(days=1), self.quarter.last_day)
        return burn(self.ledger, self.settings.budgets, through=through, alerts=alerts, ahead=ahead)

    @cached_property
    def allocation(self) -> Allocation:
        """The quarter's bill by team, shared costs allocated by the method of the settings."""
        return allocate(self.ledger)

    @cached_property
    def allocation_before(self) -> Allocation | None:
        """The quarter before, allocated by the same method; None where there is none, or the method does not fit it."""
        try:
            return None if self.before is None else allocate(self.before)
        except AssumptionError:
            return None

    @cached_property
    def plans(self) -> tuple[Recorded, ...]:
        """Every plan that was recorded, the earliest first."""
        return recorded(self.ledger.log)

    @cached_property
    def tracked(self) -> Followed | None:
        """The plan recorded on the quarter before, held against this one; None where none was recorded."""
        return followed(self.plans, self.ledger, self.quarter)

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
