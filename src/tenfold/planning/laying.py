"""The tables of versions: requests as levers find them, each lever's own, and those of sets, laid stage by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import polars as pl

from tenfold.levers import Assumed, Bill, Judged, Lever, Stage
from tenfold.levers.repricing import VERSION_HEAD, VERSION_TAIL, changed, counts_in_use, listed
from tenfold.planning.rivals import Duel, Side, settled
from tenfold.store import steps

# What versions are summed by, and what.
SUMMED = ("touch", "world", "levers", "block_day", "user_bucket", "cost_pusd")
_LOST: dict[str, pl.DataType] = {"told": pl.String(), "bit": pl.Int32()}
# Carried along only where two levers want the same requests, which is settled by it.
_SETTLED_BY = "feature"


class Wanted(NamedTuple):
    """One lever of a log, with what it judged.

    Args:
        lever: The lever.
        judged: What it judged.
        assumed: Its assumptions, in the scenario at hand.
        bit: Its bit.
    """

    lever: Lever
    judged: Judged
    assumed: Assumed
    bit: int

    @property
    def name(self) -> str:
        """The lever's name."""
        return self.lever.name


@dataclass(slots=True)
class Tables:
    """The tables of one scenario. Making one lays them all.

    Args:
        bill: The log's own bill.
        wanted: Levers that have judged, in the mechanical order.
        in_sets: Names of those that sets are made of; the others are pulled alone only.
        suffix: What tells the tables of this scenario from another's.
        middle: The tables of the middle scenario, where this is another: its rows and duels hold.
        ranged: Names of the levers whose change differs from the middle scenario; all where this is the middle one.
        burdens: Lever to what it takes to do it at all (work, running), brought to the window, in pUSD.
    """

    bill: Bill
    wanted: Sequence[Wanted]
    in_sets: frozenset[str]
    suffix: str = ""
    middle: Tables | None = None
    ranged: frozenset[str] = frozenset()
    burdens: Mapping[str, int] = field(default_factory=dict[str, int])
    duels: Sequence[Duel] = field(init=False, default=())
    fixed: dict[str, int] = field(init=False, default_factory=dict[str, int])
    """Lever to its fixed charges, in pUSD."""
    sets: list[str] = field(init=False, default_factory=list[str])
    """Tables of versions that sets are made of, but for the first versions."""
    _shared: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        rivals = self._rivals() if self.middle is None else ()
        by = (_SETTLED_BY,) if (self.middle.duels if self.middle else rivals) else ()
        self._shared = (*VERSION_HEAD, *counts_in_use(self.bill.session), *VERSION_TAIL, *by)
        if self.middle is None:
            self._lay(by)
            fighting = dict.fromkeys(one.name for pair in rivals for one in pair)
            for one in self.wanted:
                if one.name in fighting:
                    self._pull_alone(one, f"{self.rows}_laid")
            self.duels = tuple(self._duel(first, second) for first, second in rivals)
            self._settle(f"{self.rows}_laid", self.rows)
            for one in self.wanted:
                if one.name in fighting:
                    self._settle(f"{self.alone(one)}_laid", self.alone(one))
        else:
            fighting = {}
            self.duels = self.middle.duels
            sql = f"select * from {self.middle.rows} where (reach & {self.relevant}) <> 0"
            self.bill.session.engine.step(self.rows, sql)
        for one in self.wanted:
            if one.name not in fighting and (
                self.middle is None or one.bit & self.relevant or one.name in self.in_sets
            ):
                self._pull_alone(one, self.rows)
            if one.name in self.in_sets:
                self._pull(one)

    @property
    def rows(self) -> str:
        """View of the first versions."""
        return f"lever_rows{self.suffix}"

    @property
    def relevant(self) -> int:
        """Bits of the levers whose outcome may differ from the middle scenario."""
        if self.middle is None:
            return sum(one.bit for one in self.wanted)
        ranged = self.bits(self.ranged)
        return ranged | sum(one.bit for one in self.wanted if one.judged.is_replayed and self.before(one) & ranged)

    @property
    def removed(self) -> int:
        """Bits of the levers that take requests away."""
        return sum(one.bit for one in self.wanted if one.lever.stage is Stage.REMOVE)

    def bits(self, names: frozenset[str]) -> int:
        """Write a set of levers as bits.

        Args:
            names: Names of levers; those that have judged nothing have no bit.

        Returns:
            The bits.
        """
        return sum(one.bit for one in self.wanted if one.name in names)

    def before(self, replayed: Wanted) -> int:
        """Give the bits of the levers of sets that act before another.

        Args:
            replayed: The lever.

        Returns:
            The bits.
        """
        place = self.wanted.index(replayed)
        return sum(one.bit for one in self.wanted[:place] if one.name in self.in_sets)

    def one(self, name: str) -> Wanted:
        """Find a lever.

        Args:
            name: Its name.

        Returns:
            The lever with what it judged.
        """
        return next(one for one in self.wanted if one.name == name)

    def alone(self, one: Wanted) -> str:
        """Name a lever's versions, pulled alone.

        Args:
            one: The lever.

        Returns:
            A table, or a view of one.
        """
        return f"lever_alone_{one.name}{self.suffix}"

    def union(self, tables: Sequence[str], columns: Sequence[str], condition: str = "true") -> str:
        """Write versions of several tables as one query.

        Args:
            tables: Their names.
            columns: Columns.
            condition: SQL over them.

        Returns:
            SQL text.
        """
        # what a lever made alone of requests that it then lost to another is in no set
        own = {table: " and (levers & touch) = levers" for table in tables if table.startswith("lever_alone_")}
        parts = (f"select {', '.join(columns)} from {table} where {condition}{own.get(table, '')}" for table in tables)
        return "\nunion all\n".join(parts)

    def _columns(self, one: Wanted) -> tuple[str, ...]:
        """Columns of the versions that a lever is given: the knobs of the levers before it have done their part."""
        place = self.wanted.index(one)
        lasting = (knob for other in self.wanted[:place] for knob in other.judged.lasting)
        own = (knob for other in self.wanted[place:] for knob in other.judged.knobs)
        return (*self._shared, *dict.fromkeys((*lasting, *own)))

    def _of(self, versions: str, columns: tuple[str, ...]) -> Bill:
        return replace(self.bill, requests=versions, columns=columns, fixed_pusd=0)

    def _lay(self, by: tuple[str, ...]) -> None:
        """Lay the first version of every request that a lever changes, or charges for."""
        views = [(one, f"j{one.bit}") for one in self.wanted]
        joins = "\n  ".join(f"left join {one.judged.view} as {view} on b.rid = {view}.rid" for one, view in views)
        reach = [f"case when {view}.fate = 'touched' then {one.bit} else 0 end" for one, view in views]
        more = {column: f"b.{column}" for column in by}
        more |= {knob: f"{view}.{knob}" for one, view in views for knob in one.judged.knobs}
        fees = {fee(one): f"coalesce({view}.fee_pusd, 0)" for one, view in views if one.judged.has_fee}
        more |= fees
        counts = counts_in_use(self.bill.session)
        steps.run(
            self.bill.session.engine,
            "lever_rows",
            name=f"{self.rows}_laid",
            materialised=True,
            counts=listed(counts, "b"),
            own_counts=",\n  ".join(counts),
            reach=" + ".join(["0", *reach]),
            touch=f"(reach & {self.bits(self.in_sets)})",
            joins=joins,
            knobs="".join(f",\n    {text} as {name}" for name, text in more.items()),
            own_knobs="".join(f",\n  {name}" for name in more),
            wanted=" or ".join(["reach <> 0", *(f"{name} <> 0" for name in fees)]),
        )

    def _settle(self, laid: str, name: str) -> None:
        """Take the requests that a lever lost out of its touch."""
        engine, columns = self.bill.session.engine, f"{laid}.*"
        joins, touch = "", "touch"
        for number, duel in enumerate(self.duels):
            first, second = self.one(duel.first), self.one(duel.second)
            lost = [("n" if feature is None else f"f{feature}", self.one(loser).bit)
                    for feature, loser in duel.lost_by.items()]  # fmt: skip
            engine.register(f"{name}_lost_{number}", pl.DataFrame(lost, schema=_LOST, orient="row"))
            joins += f"\nleft join {name}_lost_{number} as l{number} on coalesce('f' || feature, 'n') = l{number}.told"
            touch += f"\n    - case when {self._contested(first, second)} then coalesce(l{number}.bit, 0) else 0 end"
        if joins:
            found = engine.fetch(f"select * from {laid} limit 0").columns
            columns = ", ".join(column for column in found if column != "touch") + f",\n  {touch} as touch"
        engine.step(name, f"select {columns}\nfrom {laid}{joins}")

    def _pull_alone(self, one: Wanted, rows: str) -> None:
        given, columns = f"lever_given_{one.name}{self.suffix}", self._columns(one)
        is_laid = rows.endswith("_laid")
        engine = self.bill.session.engine
        if one.judged.is_replayed:
            self._group(one)
            self._world(one, [rows], [0], given, touched="reach")
        else:
            engine.step(given, f"select {', '.join(columns)} from {rows} where (reach & {one.bit}) <> 0")
        table = f"{self.alone(one)}_laid" if is_laid else self.alone(one)
        self.fixed[one.name] = changed(one.lever, self._of(given, columns), one.assumed, table, one.bit)

    def _pull(self, one: Wanted) -> None:
        """Make a lever's versions of what the levers before it have left; those of the log as it is are there."""
        given, table = f"lever_given_{one.name}{self.suffix}_sets", f"lever_sets_{one.name}{self.suffix}"
        if self._give(one, given):
            bill = self._of(given, self._columns(one))
            # what no lever after it reads is only summed, once
            is_read = one is not self.wanted[-1]
            changed(one.lever, bill, one.assumed, table, one.bit, materialised=is_read)
            self.sets.append(table)
        if one.lever.stage is not Stage.REMOVE:
            self.sets.append(self.alone(one))

    def _give(self, one: Wanted, given: str) -> bool:
        """Give a lever what the levers before it have left; tells whether that is anything."""
        engine = self.bill.session.engine
        if not one.judged.is_replayed:
            if self.sets:
                sql = self.union(self.sets, self._columns(one), f"(touch & {one.bit}) <> 0 and levers <> 0")
                engine.step(given, sql)
            return bool(self.sets)
        found = engine.fetch(f"select distinct world from {self._groups(one)} where world <> 0")["world"]
        combos = sorted({part for world in found for part in _parts(world)})
        if combos:
            self._world(one, [self.rows, *self.sets], combos, given, touched="touch")
        return bool(combos)

    def _group(self, one: Wanted) -> None:
        """Find the levers before a replay that touch any of a group of requests that it keeps together."""
        found = f"bit_or(touch & {self.before(one)})"
        self.bill.session.engine.step(
            self._groups(one),
            f"select {one.judged.group} as replay_group, {found} as world from {self.rows} "
            f"where (reach & {one.bit}) <> 0 group by {one.judged.group}",
            materialised=True,
        )

    def _groups(self, one: Wanted) -> str:
        return f"lever_groups_{one.name}{self.suffix}"

    def _world(self, one: Wanted, tables: Sequence[str], combos: Sequence[int], given: str, *, touched: str) -> None:
        """Lay worlds as a table: a replay reads them several times."""
        engine, columns = self.bill.session.engine, self._columns(one)
        engine.register(f"{given}_combos", pl.DataFrame({"combo": combos}, schema={"combo": pl.Int32}))
        engine.step(
            f"{given}_worlds",
            f"select g.replay_group, g.world, w.combo from {self._groups(one)} as g cross join {given}_combos as w "
            "where (w.combo & g.world) = w.combo",
            materialised=True,
        )
        engine.step(f"{given}_versions", self.union(tables, columns, f"({touched} & {one.bit}) <> 0"))
        steps.run(
            engine, "lever_worlds", name=given, materialised=True, versions=f"{given}_versions",
            columns=",\n  ".join(f"v.{column}" for column in columns if column not in ("combo", "world")),
            worlds=f"{given}_worlds", group=one.judged.group, removed=str(self.removed),
        )  # fmt: skip

    def _rivals(self) -> tuple[tuple[Wanted, Wanted], ...]:
        in_sets = [one for one in self.wanted if one.name in self.in_sets]
        return tuple(
            (first, second)
            for first, second in combinations(in_sets, 2)
            if second.name in first.lever.conflicts or first.name in second.lever.conflicts
        )

    def _contested(self, first: Wanted, second: Wanted) -> str:
        """Write which requests both levers want for themselves."""
        pair = first.bit | second.bit
        aside = " or ".join(f"coalesce({one.judged.aside}, false)" for one in (first, second))
        return f"(reach & {pair}) = {pair} and not ({aside})"

    def _duel(self, first: Wanted, second: Wanted) -> Duel:
        sql = steps.filled(
            "lever_duel", rows=f"{self.rows}_laid", contested=self._contested(first, second),
            first=f"{self.alone(first)}_laid", second=f"{self.alone(second)}_laid",
        )  # fmt: skip
        rows = self.bill.session.engine.fetch(f"{sql}\norder by all nulls last").rows(named=True)
        claims = {
            row["feature"]: (int(row["first_pusd"]), int(row["second_pusd"])) for row in rows if row["is_contested"]
        }
        others = [row for row in rows if not row["is_contested"]]
        sides = tuple(
            Side(
                one.name,
                sum(int(row[f"{key}_pusd"]) for row in others),
                any(row[f"{key}_requests"] for row in others),
                self.fixed[one.name] + self.burdens.get(one.name, 0),
            )
            for one, key in ((first, "first"), (second, "second"))
        )
        return Duel(first.name, second.name, settled(claims, *sides))


def fee(one: Wanted) -> str:
    """Name the column of a lever's fee among the first versions."""
    return f"fee_{one.name}"


def _parts(world: int) -> list[int]:
    """List the sets of the levers of a world, but for the empty one."""
    bits = [1 << place for place in range(world.bit_length()) if world >> place & 1]
    return [sum(chosen) for size in range(1, len(bits) + 1) for chosen in combinations(bits, size)]
