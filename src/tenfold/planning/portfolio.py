"""The value of sets of levers: what each leaves of the bill, read off the priced versions of its requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import NamedTuple

import polars as pl

from tenfold.ledger.session import DAYS_PER_MONTH, Session
from tenfold.levers import Assumed, Bill, Judged, Lever, Look
from tenfold.levers.assume import PlanTable
from tenfold.levers.base import Scenario
from tenfold.levers.estimate import Saving
from tenfold.levers.tally import Tally
from tenfold.planning.attribution import subsets
from tenfold.planning.intervals import MIN_BLOCKS, MIN_DAYS, Draws
from tenfold.planning.laying import Wanted
from tenfold.planning.rivals import Duel
from tenfold.planning.versions import Block, Versions, block_of
from tenfold.store import steps


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
    dated = [day for day in with_requests if day is not None]
    return Days(session.window.dates(dated), len(dated))


@dataclass(slots=True)
class Portfolio:
    """Sets of levers on one log.

    Args:
        bill: The log's own bill.
        levers: The levers, in any order.
        assumed: What is assumed for each.
        verdicts: What each lever judged, or its whole answer where it has no figure.
        left_out: Levers that no set may hold, whatever they judged.
        table: Horizon and day rate, which weigh rivals' work against what they save; without it they count nothing.
    """

    bill: Bill
    levers: Sequence[Lever]
    assumed: Mapping[str, Assumed]
    verdicts: Mapping[str, Judged | Look]
    left_out: frozenset[str] = frozenset()
    table: PlanTable | None = None
    days: Days = field(init=False)
    spend_pusd: int = field(init=False)
    requests: int = field(init=False)
    unpriced_requests: int = field(init=False)
    names: tuple[str, ...] = field(init=False)
    """Levers that sets are made of, in the mechanical order."""
    _versions: dict[Scenario, Versions] = field(init=False, default_factory=dict[Scenario, Versions])
    _now: dict[Block, int] = field(init=False)
    _remains: dict[frozenset[str], pl.DataFrame] = field(init=False, default_factory=dict[frozenset[str], pl.DataFrame])
    _own: dict[Block, int] | None = field(init=False, default=None)
    _draws: tuple[Draws, Draws | None] | None = field(init=False, default=None)
    _blocks: dict[tuple[frozenset[str], Scenario], tuple[dict[Block, int], int]] = field(init=False)
    _savings: dict[frozenset[str], Saving] = field(init=False, default_factory=dict[frozenset[str], Saving])

    def __post_init__(self) -> None:
        self.assumed = {name: self._settled(name, assumed) for name, assumed in self.assumed.items()}
        frame = self.bill.session.engine.fetch(f"{steps.filled('lever_daily')}\norder by all nulls last")
        by_day = frame.filter(is_day=1)
        self.requests = int(by_day["billed_requests"].sum() or 0)
        self.unpriced_requests = int(by_day["unpriced_requests"].sum() or 0)
        self.days = window_days(self.bill.session, by_day["block_day"].to_list())
        self._now = {block_of(row): int(row["cost_pusd"]) for row in frame.rows(named=True)}
        self.spend_pusd = sum(_by_day(self._now).values()) + self.bill.fixed_pusd
        self.verdicts = {name: self._kept(name, verdict) for name, verdict in self.verdicts.items()}
        self._blocks = {}
        in_order = sorted(self.levers, key=lambda one: (one.stage, one.number))
        self.names = tuple(
            one.name
            for one in in_order
            if isinstance(judged := self.verdicts[one.name], Judged)
            and not judged.is_ceiling
            and one.name not in self.left_out
            and self._touches(judged)
        )
        self._versions["mid"] = self._made("mid", in_order)

    def _settled(self, name: str, assumed: Assumed) -> Assumed:
        """Take what a lever chose itself in place of what was assumed."""
        verdict = self.verdicts.get(name)
        if not isinstance(verdict, Judged):
            return assumed
        return replace(assumed, values={**assumed.values, **verdict.settings})

    def _kept(self, name: str, verdict: Judged | Look) -> Judged | Look:
        """Keep what a lever judged as a table: every scenario and set reads it."""
        if isinstance(verdict, Look):
            return verdict
        columns = ("rid", "fate", *verdict.knobs, *(("fee_pusd",) if verdict.has_fee else ()))
        table = f"lever_judgement_{name}"
        sql = f"select {', '.join(columns)} from {verdict.view} where fate is not null"
        self.bill.session.engine.step(table, sql, materialised=True)
        return verdict._replace(view=table)

    def _touches(self, judged: Judged) -> bool:
        found = self.bill.session.engine.fetch(f"select 1 as one from {judged.view} where fate = 'touched' limit 1")
        return len(found) > 0

    def _made(self, scenario: Scenario, in_order: Sequence[Lever]) -> Versions:
        wanted: list[Wanted] = []
        for lever in in_order:
            judged = self.verdicts[lever.name]
            if isinstance(judged, Judged):
                assumed = self.assumed[lever.name].at(scenario)
                wanted.append(Wanted(lever, judged, assumed, 1 << len(wanted)))
        names = frozenset(self.names)
        if scenario == "mid":
            return Versions(self.bill, wanted, names, burdens=self._burdens())
        ranged = frozenset(one.name for one in wanted if self._is_ranged(frozenset({one.name})))
        return Versions(self.bill, wanted, names, f"_{scenario}", self._versions["mid"], ranged)

    def _burdens(self) -> dict[str, int]:
        """Bring what each lever takes to the window, as the plan weighs it; a short log weighs no work."""
        if self.table is None or self.days.is_short or not self.table.horizon_months:
            return {}
        part = Fraction(len(self.days.all)) / (self.table.horizon_months * DAYS_PER_MONTH)
        return {name: round(self.cost_of(frozenset({name}), self.table) * part) for name in self.names}

    @property
    def duels(self) -> Sequence[Duel]:
        """Settled duels of levers that want the same requests."""
        return self._versions["mid"].duels

    def beaten(self) -> dict[str, str]:
        """Name the levers of which duels leave nothing.

        Returns:
            Lever to the rival that has its traffic.
        """
        versions = self._versions["mid"]
        return {
            loser: duel.second if loser == duel.first else duel.first
            for duel in self.duels
            for loser in set(duel.lost_by.values())
            if not versions.touches(loser)
        }

    def tally(self, name: str) -> Tally:
        """Count what a lever did on its own.

        Args:
            name: A lever that has judged.

        Returns:
            Counts by fate, feature and model.
        """
        return self._versions["mid"].tally(name)

    def value(self, names: frozenset[str], scenario: Scenario = "mid") -> int:
        """Price a set of levers.

        Args:
            names: The levers, of ``self.names``.
            scenario: Which end of the assumed ranges holds.

        Returns:
            Joint saving over the window, in pUSD: the difference of two totals.
        """
        blocks, fixed = self._left(names, scenario)
        return self.spend_pusd - sum(pusd for (is_day, _), pusd in blocks.items() if is_day) - fixed

    def saving(self, names: frozenset[str]) -> Saving:
        """Price a set of levers with its interval.

        Args:
            names: The levers, of ``self.names``.

        Returns:
            The joint saving; low and high are None where the log is too short.
        """
        if names not in self._savings:
            then, fixed = self._left(names, "mid")
            blocks = {block: self._now.get(block, 0) - then.get(block, 0) for block in {*self._now, *then}}
            ends = () if not self._is_ranged(names) else (self.value(names, "low"), self.value(names, "high"))
            self._savings[names] = self._interval(blocks, fixed - self.bill.fixed_pusd, ends)
        return self._savings[names]

    def alone(self, name: str) -> Saving:
        """Price a lever on its own, on all that it reaches, whoever else wants it.

        Args:
            name: A lever that has judged.

        Returns:
            Its saving; low and high are None where the log is too short.
        """
        is_whole = all(name not in (duel.first, duel.second) for duel in self.duels)
        if name in self.names and is_whole:
            return self.saving(frozenset({name}))
        blocks, fixed = self._alone(name, "mid")
        ends = [sum(_by_day(blocks).values()) - fixed for blocks, fixed in self._ends_alone(name)]
        return self._interval(blocks, fixed, ends)

    def daily(self, name: str) -> dict[str | None, int]:
        """Give what a lever on its own saves by day.

        Args:
            name: A lever that has judged.

        Returns:
            ISO day (None for requests without a time) to pUSD.
        """
        return _by_day(self._alone(name, "mid")[0])

    def _alone(self, name: str, scenario: Scenario) -> tuple[dict[Block, int], int]:
        versions = self._version(scenario)
        return versions.alone(name), versions.fixed[name]

    def _ends_alone(self, name: str) -> list[tuple[dict[Block, int], int]]:
        ends: tuple[Scenario, ...] = ("low", "high")
        return [self._alone(name, end) for end in ends] if self._is_ranged(frozenset({name})) else []

    def _interval(self, blocks: Mapping[Block, int], fixed: int, ends: Sequence[int]) -> Saving:
        by_day = _by_day(blocks)
        mid = sum(by_day.values()) - fixed
        if self.days.is_short:
            return Saving(None, mid, None)
        inside = {str(day): by_day[str(day)] for day in self.days.all if str(day) in by_day}
        days, users = self._drawn()
        found = [days.interval(inside, mid - sum(inside.values()))]
        if users is not None:
            by_user = {str(user): pusd for (is_day, user), pusd in blocks.items() if not is_day}
            found.append(users.interval(by_user, -fixed))
        return Saving(
            min([low for low, _ in found] + [*ends, mid]), mid, max([high for _, high in found] + [*ends, mid])
        )

    def _drawn(self) -> tuple[Draws, Draws | None]:
        if self._draws is None:
            users = sorted(str(user) for is_day, user in self._now if not is_day)
            days = Draws([str(day) for day in self.days.all])
            self._draws = days, Draws(users) if len(users) >= MIN_BLOCKS else None
        return self._draws

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
            names: The levers, of ``self.names``.

        Returns:
            One row per (feature, team, model), cost by meter in pUSD.
        """
        if names not in self._remains:
            self._remains[names] = self._versions["mid"].left(names)
        return self._remains[names]

    def _gain(self, done: frozenset[str], name: str) -> int:
        after, before = self.saving(done | {name}), self.saving(done)
        if after.low is None or before.low is None:
            return self.value(done | {name}) - self.value(done)
        return after.low - before.low

    def _is_ranged(self, names: frozenset[str]) -> bool:
        judged = [self.verdicts[name] for name in names]
        is_own = any(isinstance(one, Judged) and one.is_ranged for one in judged)
        return is_own or any(self.assumed[name].has_range for name in names)

    def _version(self, scenario: Scenario) -> Versions:
        if scenario not in self._versions:
            self._versions[scenario] = self._made(scenario, [one.lever for one in self._versions["mid"].wanted])
        return self._versions[scenario]

    def _left(self, names: frozenset[str], scenario: Scenario) -> tuple[dict[Block, int], int]:
        if not self._is_ranged(names):
            scenario = "mid"
        if (names, scenario) not in self._blocks:
            versions = self._version(scenario)
            sites = self.bill.sites
            apart = names if sites is None else names - sites.names
            fixed = self.bill.fixed_pusd + sum(versions.fixed[name] for name in apart)
            if sites is not None:  # what is done to the same GPUs does not add up
                fixed += sites.charge(names & sites.names, scenario)
            self._blocks[names, scenario] = (self._whole(versions.blocks(names)), fixed)
        return self._blocks[names, scenario]

    def _whole(self, touched: Mapping[Block, int]) -> dict[Block, int]:
        """Put what levers leave of the requests that they touch beside the requests that they do not."""
        if self._own is None:
            self._own = self._versions["mid"].blocks(frozenset())
        own = self._own
        return {
            block: self._now.get(block, 0) - own.get(block, 0) + touched.get(block, 0)
            for block in {*self._now, *own, *touched}
        }


def _by_day(blocks: Mapping[Block, int]) -> dict[str | None, int]:
    return {day: pusd for (is_day, day), pusd in blocks.items() if is_day}
