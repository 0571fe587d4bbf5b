"""The value of sets of levers: each set is applied to the log in the mechanical order and priced again, never added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from typing import NamedTuple
from zoneinfo import ZoneInfo

import polars as pl

from tenfold.ledger.session import Session
from tenfold.levers import Assumed, Bill, Lever
from tenfold.levers.assume import PlanTable
from tenfold.levers.base import Scenario
from tenfold.levers.estimate import Saving
from tenfold.levers.repricing import cost_sum
from tenfold.planning.attribution import subsets
from tenfold.planning.intervals import MIN_BLOCKS, MIN_DAYS, DayDraws
from tenfold.prices.meters import Meter
from tenfold.store import steps
from tenfold.store.database import quoted

# Days that a month counts in every projection.
DAYS_PER_MONTH = Fraction(304, 10)


class Days(NamedTuple):
    """The window of a log in whole days.

    Args:
        all: Every day from first to last, those without a request too.
        busy: Days that have requests.
    """

    all: tuple[date, ...]
    busy: int

    @property
    def is_short(self) -> bool:
        """Whether the log is too short for an interval and for a projection."""
        return len(self.all) < MIN_DAYS or self.busy < MIN_BLOCKS


def window_days(session: Session, with_requests: Sequence[date | None]) -> Days:
    """Find the days that a log covers: the window asked for, else first to last request.

    Args:
        session: The priced session.
        with_requests: Days that have requests, in the session's zone; None for requests without a time.

    Returns:
        The days.
    """
    zone = ZoneInfo(session.window.zone)
    dated = [day for day in with_requests if day is not None]
    since, until = session.window.since, session.window.until
    if not dated and (since is None or until is None):
        return Days((), 0)
    first = since.astimezone(zone).date() if since else min(dated)
    last = (until - timedelta(microseconds=1)).astimezone(zone).date() if until else max(dated)
    return Days(tuple(first + timedelta(days=n) for n in range((last - first).days + 1)), len(dated))


@dataclass(slots=True)
class Portfolio:
    """Sets of levers on one log, priced once each.

    Args:
        bill: The log's own bill.
        levers: The levers that may be combined.
        assumed: What is assumed for each.
    """

    bill: Bill
    levers: Sequence[Lever]
    assumed: Mapping[str, Assumed]
    days: Days = field(init=False)
    spend_pusd: int = field(init=False)
    requests: int = field(init=False)
    unpriced_requests: int = field(init=False)
    _draws: DayDraws | None = field(init=False, default=None)
    _savings: dict[frozenset[str], Saving] = field(init=False, default_factory=dict[frozenset[str], Saving])
    _bills: dict[tuple[frozenset[str], Scenario], Bill] = field(init=False)
    _costs: dict[tuple[frozenset[str], Scenario], tuple[dict[date | None, int], int]] = field(init=False)
    _daily: dict[str, dict[date | None, int]] = field(init=False)

    def __post_init__(self) -> None:
        frame = _by_day(self.bill.session, self.bill.requests, "priced_requests")
        self.requests = int(frame["billed_requests"].sum() or 0)
        self.unpriced_requests = int(frame["unpriced_requests"].sum() or 0)
        own = _costs(frame)
        self._bills = {(frozenset(), "mid"): self.bill}
        self._costs = {(frozenset(), "mid"): (own, self.bill.fixed_pusd)}
        self._daily = {self.bill.requests: own}
        self.days = window_days(self.bill.session, list(own))
        self.spend_pusd = sum(own.values()) + self.bill.fixed_pusd

    def applied(self, names: frozenset[str], scenario: Scenario = "mid") -> Bill:
        """Apply a set of levers in the mechanical order.

        Args:
            names: The levers.
            scenario: Which end of the assumed ranges holds.

        Returns:
            The bill after.
        """
        if (names, scenario) not in self._bills:
            bill = self.bill
            for lever in sorted(self.levers, key=lambda one: (one.stage, one.number)):
                if lever.name in names:
                    bill = lever.apply(bill, self.assumed[lever.name].at(scenario))
            self._bills[names, scenario] = bill
        return self._bills[names, scenario]

    def value(self, names: frozenset[str], scenario: Scenario = "mid") -> int:
        """Price a set of levers.

        Args:
            names: The levers.
            scenario: Which end of the assumed ranges holds.

        Returns:
            Joint saving over the window, in pUSD: the difference of two totals.
        """
        daily, fixed = self._cost(names, scenario)
        return self.spend_pusd - sum(daily.values()) - fixed

    def saving(self, names: frozenset[str]) -> Saving:
        """Price a set of levers with its interval.

        Args:
            names: The levers.

        Returns:
            The joint saving; low and high are None where the log is too short.
        """
        if names not in self._savings:
            self._savings[names] = self._interval(names)
        return self._savings[names]

    def _interval(self, names: frozenset[str]) -> Saving:
        mid = self.value(names)
        if self.days.is_short:
            return Saving(None, mid, None)
        own, (after, _) = self._costs[frozenset(), "mid"][0], self._cost(names, "mid")
        daily = [own.get(day, 0) - after.get(day, 0) for day in self.days.all]
        if self._draws is None:
            self._draws = DayDraws(len(self.days.all))
        low, high = self._draws.interval(daily, mid - sum(daily))
        scenarios = (self.value(names, "low"), self.value(names, "high"))
        return Saving(min(low, *scenarios), mid, max(high, *scenarios))

    def net(self, names: frozenset[str], table: PlanTable) -> Fraction:
        """Weigh a set of levers: what it surely saves over the horizon, less what it takes.

        Args:
            names: The levers.
            table: Horizon and day rate.

        Returns:
            pUSD. On a short log, the middle saving over the window, without effort.

        Formula:
            low x horizon days / window days - effort days x day rate - running cost x months.
        """
        saving = self.saving(names)
        if saving.low is None:
            return Fraction(saving.mid or 0)
        return self.projected(saving.low, table.horizon_months) - self.cost_of(names, table)

    def projected(self, pusd: int, months: int) -> Fraction:
        """Project an amount of the window.

        Args:
            pusd: The amount over the window.
            months: Months of 30.4 days.

        Returns:
            The amount over that time, in pUSD.
        """
        return pusd * months * DAYS_PER_MONTH / len(self.days.all)

    def cost_of(self, names: frozenset[str], table: PlanTable) -> Fraction:
        """Add up what a set of levers takes: work once, running cost over the horizon.

        Args:
            names: The levers.
            table: Horizon and day rate.

        Returns:
            pUSD.
        """
        cost = Fraction(0)
        for name in names:
            assumed = self.assumed[name]
            cost += Fraction(assumed.effort_days) * table.day_rate_pusd
            cost += assumed.running_pusd_per_month * table.horizon_months
        return cost

    def best(self, names: Sequence[str], table: PlanTable) -> frozenset[str]:
        """Find the set that nets most, by trying all of them.

        Args:
            names: The levers that may be in it, none of which excludes another.
            table: Horizon and day rate.

        Returns:
            The set; the smaller one where two net the same, none where nothing nets more than 0.
        """
        return max(subsets(names), key=lambda one: (self.net(one, table), -len(one)))

    def roadmap(self, names: frozenset[str], table: PlanTable) -> tuple[tuple[str, int], ...]:
        """Order a set of levers by return on what each takes, given those before it.

        Args:
            names: The levers.
            table: Horizon and day rate.

        Returns:
            (Lever, marginal saving in pUSD) in order; the marginals sum to the joint saving.
        """
        order: list[tuple[str, int]] = []
        done: frozenset[str] = frozenset()
        numbers = {lever.name: lever.number for lever in self.levers}
        while names - done:
            gains = {name: self._gain(done, name) for name in names - done}

            def rank(name: str, gains: Mapping[str, int] = gains) -> tuple[bool, Fraction, int, int]:
                cost = self.cost_of(frozenset({name}), table)
                ratio = Fraction(gains[name]) / cost if cost else Fraction(0)
                return (cost == 0 and gains[name] > 0, ratio, gains[name], -numbers[name])

            chosen = max(gains, key=rank)
            order.append((chosen, self.value(done | {chosen}) - self.value(done)))
            done |= {chosen}
        return tuple(order)

    def left(self, names: frozenset[str]) -> pl.DataFrame:
        """Split what a set of levers leaves of the bill.

        Args:
            names: The levers.

        Returns:
            One row per (feature, team, model), cost by meter in pUSD.
        """
        self._cost(names, "mid")  # prices the set where that was not done before
        meter_sums = _meter_sums("", self.bill.session.meters)
        sql = steps.filled("lever_left", sums=_sums(self.applied(names).requests), meter_sums=meter_sums)
        return self.bill.session.engine.fetch(f"{sql}\norder by all")

    def _gain(self, done: frozenset[str], name: str) -> int:
        after, before = self.saving(done | {name}), self.saving(done)
        if after.low is None or before.low is None:
            return self.value(done | {name}) - self.value(done)
        return after.low - before.low

    def _cost(self, names: frozenset[str], scenario: Scenario) -> tuple[dict[date | None, int], int]:
        if not any(self.assumed[name].has_range for name in names):
            scenario = "mid"
        if (names, scenario) not in self._costs:
            bill = self.applied(names, scenario)
            if bill.requests not in self._daily:
                session = bill.session
                session.price(bill.requests, f"{bill.requests}_cost")
                self._daily[bill.requests] = _costs(_by_day(session, bill.requests, f"{bill.requests}_cost"))
            self._costs[names, scenario] = (self._daily[bill.requests], bill.fixed_pusd)
        return self._costs[names, scenario]


def _by_day(session: Session, requests: str, priced: str) -> pl.DataFrame:
    """Price a version of the requests once into a small table of sums, and read it by day."""
    zone = session.window.zone
    day = "p.day" if zone == "UTC" else f"cast(timezone({quoted(zone)}, timezone('UTC', p.priced_at)) as date)"
    steps.run(
        session.engine, "lever_sums", name=_sums(requests), materialised=True,
        priced=priced, day=day, meter_sums=_meter_sums("_pusd", session.meters),
    )  # fmt: skip
    summed = cost_sum("p", session.meters)
    return session.engine.fetch(steps.filled("lever_daily", sums=_sums(requests), cost_sum=summed))


def _meter_sums(suffix: str, meters: Sequence[Meter]) -> str:
    return ",\n  ".join(f"sum(cast(p.{one.name}_pusd as decimal(38, 0))) as {one.name}{suffix}" for one in meters)


def _costs(frame: pl.DataFrame) -> dict[date | None, int]:
    return {day: int(pusd) for day, pusd in frame.select("day", "cost_pusd").iter_rows()}


def _sums(requests: str) -> str:
    return f"{requests}_sums"
