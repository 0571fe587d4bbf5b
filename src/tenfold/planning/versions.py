"""Every version of every request that some set of levers leaves: made stage by stage, each priced once.

A request is changed only by the levers that touch it, so it has one version for each set of those, not for each set
of all levers. A set's cost is then a sum over versions, looked up by what touches a request (``touch``) and what of
that is pulled (``levers``). A lever that is replayed (a prompt cache) acts on whole worlds: one for each set of the
levers before it, since what they do to one request changes what another finds in the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import polars as pl

from tenfold.levers import Assumed, Bill, Judged, Lever, Stage
from tenfold.levers.repricing import VERSION_HEAD, VERSION_TAIL, changed, counted_alone, counts_in_use, listed
from tenfold.levers.tally import Tally
from tenfold.store import steps
from tenfold.store.database import quoted
from tenfold.store.schema import TOKEN_COLUMNS

# Block of the sums: the day, or the group of users, as text; None where there is none.
Block = tuple[bool, str | None]


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


class Duel(NamedTuple):
    """Two levers that want the same requests, settled by feature.

    Args:
        first: Name of the one.
        second: Name of the other.
        lost_by: Feature (None for requests without one) to the lever that gives way there.
    """

    first: str
    second: str
    lost_by: Mapping[str | None, str]


@dataclass(slots=True)
class Versions:
    """The versions of one log's requests under one scenario.

    Args:
        bill: The log's own bill.
        wanted: Levers that have judged, in the mechanical order.
        in_sets: Names of those that sets are made of; the others are priced alone only.
        suffix: What tells the tables of this scenario from another's.
        duels: Settled duels; None to settle them here.
    """

    bill: Bill
    wanted: Sequence[Wanted]
    in_sets: frozenset[str]
    suffix: str = ""
    duels: Sequence[Duel] | None = None
    fixed: dict[str, int] = field(init=False, default_factory=dict[str, int])
    _columns: tuple[str, ...] = field(init=False, default=())
    _tables: list[tuple[str, Wanted]] = field(init=False, default_factory=list[tuple[str, Wanted]])
    _sums: dict[tuple[int, int], dict[Block, int]] = field(init=False)
    _fees: dict[str, dict[int, dict[Block, int]]] = field(init=False)

    def __post_init__(self) -> None:
        knobs = dict.fromkeys(knob for one in self.wanted for knob in one.judged.knobs)
        self._columns = (*VERSION_HEAD, *counts_in_use(self.bill.session), *VERSION_TAIL, *knobs)
        if self.duels is None:
            self.duels = self._settle()
        self._lay(self.duels)
        for one in self.wanted:
            self._pull_alone(one)
            if one.name in self.in_sets:
                self._pull(one)
        self._sums = self._summed()
        self._fees = self._charged()

    def __contains__(self, name: str) -> bool:
        return any(one.name == name for one in self.wanted)

    def bits(self, names: frozenset[str]) -> int:
        """Write a set of levers as bits.

        Args:
            names: Names of levers; those that have judged nothing have no bit.

        Returns:
            The bits.
        """
        return sum(one.bit for one in self.wanted if one.name in names)

    def blocks(self, names: frozenset[str]) -> dict[Block, int]:
        """Sum what a set of levers leaves of the bill, and charges by the request.

        Args:
            names: Names of levers in ``in_sets``.

        Returns:
            Block (by day, and again by group of users) to pUSD.
        """
        pulled = self.bits(names)
        made: dict[Block, int] = {}
        for touch in {touch for touch, _ in self._sums}:
            key = self._key(pulled, touch)
            parts = [] if key is None else [self._sums.get((touch, key), {})]
            removing = self._removed & pulled & touch
            parts += [
                self._fees[one.name].get(touch, {})
                for one in self.wanted
                if one.name in self._fees and one.name in names and (not removing or removing & one.bit)
            ]
            for part in parts:
                for block, pusd in part.items():
                    made[block] = made.get(block, 0) + pusd
        return made

    def alone(self, name: str) -> dict[Block, int]:
        """Sum what a lever on its own changes the bill by: on all that it reaches, whoever else wants it.

        Args:
            name: A lever that has judged.

        Returns:
            Block to pUSD saved, fees taken off.
        """
        one = self._one(name)
        now = self._grouped(f"select * from {self._rows} where (reach & {one.bit}) <> 0")
        then = self._grouped(f"select * from {self._alone(one)}")
        fees = self._fees.get(name, {})
        saved: dict[Block, int] = {}
        for sign, parts in ((1, now.values()), (-1, then.values()), (-1, fees.values())):
            for part in parts:
                for block, pusd in part.items():
                    saved[block] = saved.get(block, 0) + sign * pusd
        return saved

    def touches(self, name: str) -> bool:
        """Tell whether a lever has any request left in sets.

        Args:
            name: A lever that has judged.

        Returns:
            Whether it has.
        """
        return any(touch & self._one(name).bit for touch, _ in self._sums)

    def tally(self, name: str) -> Tally:
        """Count what a lever did on its own.

        Args:
            name: A lever that has judged.

        Returns:
            Counts by fate, feature and model.
        """
        one = self._one(name)
        return counted_alone(self.bill.session, one.judged.view, self._alone(one), one.bit)

    def left(self, names: frozenset[str]) -> pl.DataFrame:
        """Split what a set of levers leaves of the bill.

        Args:
            names: Names of levers in ``in_sets``.

        Returns:
            One row per (feature, team, model as logged), cost by meter in pUSD.
        """
        pulled = self.bits(names)
        keys = {touch: self._key(pulled, touch) for touch in {touch for touch, _ in self._sums}}
        held = [f"(touch = {touch} and levers = {key})" for touch, key in sorted(keys.items()) if key is not None]
        columns = (*VERSION_HEAD, *counts_in_use(self.bill.session))
        absent = [column for column in TOKEN_COLUMNS if column not in columns]
        nulls = "".join(f", cast(null as bigint) as {column}" for column in absent)
        session = self.bill.session
        session.engine.step(
            f"lever_left_of{self.suffix}",
            f"select {', '.join(columns)}{nulls}, true as is_billable, false as gateway_cache_hit "
            f"from ({self._union()}) where {' or '.join(held) or 'false'}",
        )
        session.price(f"lever_left_of{self.suffix}", f"lever_left_priced{self.suffix}", windowed=False)
        sums = ",\n  ".join(f"sum(cast(p.{m.name}_pusd as decimal(38, 0))) as {m.name}" for m in session.meters)
        sql = steps.filled("lever_left", priced=f"lever_left_priced{self.suffix}", meter_sums=sums)
        return session.engine.fetch(f"{sql}\norder by all")

    @property
    def _rows(self) -> str:
        return f"lever_rows{self.suffix}"

    @property
    def _removed(self) -> int:
        return sum(one.bit for one in self.wanted if one.lever.stage is Stage.REMOVE)

    def _one(self, name: str) -> Wanted:
        return next(one for one in self.wanted if one.name == name)

    def _alone(self, one: Wanted) -> str:
        return f"lever_alone_{one.name}{self.suffix}"

    def _key(self, pulled: int, touch: int) -> int | None:
        """Which version of a request a set leaves; None where the request is gone."""
        on = pulled & touch
        if on & self._removed:
            return None
        replayed = next((one for one in self.wanted if one.judged.is_replayed and one.bit & on), None)
        return on if replayed is None else (pulled & self._before(replayed)) | (on & ~self._before(replayed))

    def _before(self, replayed: Wanted) -> int:
        place = self.wanted.index(replayed)
        return sum(one.bit for one in self.wanted[:place] if one.name in self.in_sets)

    def _lay(self, duels: Sequence[Duel]) -> None:
        """Lay the first version of every request, each wanted by the levers that won it."""
        views = [(one, f"j{one.bit}") for one in self.wanted]
        joins = "\n  ".join(f"left join {one.judged.view} as {view} on b.rid = {view}.rid" for one, view in views)
        reach = [f"case when {view}.fate = 'touched' then {one.bit} else 0 end" for one, view in views]
        more = {knob: f"{view}.{knob}" for one, view in views for knob in one.judged.knobs}
        more |= {_fee(one): f"coalesce({view}.fee_pusd, 0)" for one, view in views if one.judged.has_fee}
        counts = counts_in_use(self.bill.session)
        steps.run(
            self.bill.session.engine,
            "lever_rows",
            name=self._rows,
            materialised=True,
            counts=listed(counts, "b"),
            own_counts=",\n  ".join(counts),
            reach=" + ".join(["0", *reach]),
            touch=self._touch(duels),
            joins=joins,
            knobs="".join(f",\n    {text} as {name}" for name, text in more.items()),
            own_knobs="".join(f",\n  {name}" for name in more),
        )

    def _touch(self, duels: Sequence[Duel]) -> str:
        text = f"(reach & {self.bits(self.in_sets)})"
        for duel in duels:
            pair = self.bits(frozenset({duel.first, duel.second}))
            for feature, loser in duel.lost_by.items():
                where = "feature is null" if feature is None else f"feature = {quoted(feature)}"
                bit = self._one(loser).bit
                text += f"\n    - case when (reach & {pair}) = {pair} and {where} then {bit} else 0 end"
        return text

    def _pull_alone(self, one: Wanted) -> None:
        given = f"lever_given_{one.name}{self.suffix}"
        sql = f"select {', '.join(self._columns)} from {self._rows} where (reach & {one.bit}) <> 0"
        self.bill.session.engine.step(given, sql)
        bill = Bill(self.bill.session, given, self._columns)
        self.fixed[one.name] = changed(one.lever, bill, one.assumed, self._alone(one), one.bit)

    def _pull(self, one: Wanted) -> None:
        """Make a lever's versions of what the levers before it have left; those of the log as it is are there."""
        before = [(table, other) for table, other in self._tables if other.lever.stage is not Stage.REMOVE]
        upstream = [other for _, other in self._tables]
        if before or (one.judged.is_replayed and upstream):
            given, table = f"lever_given_{one.name}{self.suffix}", f"lever_sets_{one.name}{self.suffix}"
            engine = self.bill.session.engine
            if one.judged.is_replayed:
                self._worlds(one, upstream, given)
            else:
                engine.step(
                    given, self._union_of([table for table, _ in before], f"(touch & {one.bit}) <> 0 and levers <> 0")
                )
            changed(one.lever, Bill(self.bill.session, given, self._columns), one.assumed, table, one.bit)
            self._tables.append((table, one))
        self._tables.append((self._alone(one), one))

    def _worlds(self, one: Wanted, upstream: Sequence[Wanted], given: str) -> None:
        bits = sorted({other.bit for other in upstream})
        worlds = [sum(chosen) for size in range(1, len(bits) + 1) for chosen in combinations(bits, size)]
        engine = self.bill.session.engine
        engine.register("combos", pl.DataFrame({"combo": worlds}, schema={"combo": pl.Int32}))
        versions = f"{given}_versions"
        engine.step(
            versions, self._union_of([self._rows, *(table for table, _ in self._tables)], f"(touch & {one.bit}) <> 0")
        )
        columns = ",\n  ".join(f"v.{column}" for column in self._columns if column != "combo")
        engine.step(given, steps.filled("lever_worlds", versions=versions, columns=columns, removed=str(self._removed)))

    def _union(self) -> str:
        return self._union_of([self._rows, *(table for table, _ in self._tables)], "true")

    def _union_of(self, tables: Sequence[str], condition: str) -> str:
        columns = ", ".join(self._columns)
        # what a lever made alone of requests that it then lost to another is in no set
        own = {table: " and (levers & touch) = levers" for table in tables if table.startswith("lever_alone_")}
        return "\nunion all\n".join(
            f"select {columns} from {table} where {condition}{own.get(table, '')}" for table in tables
        )

    def _settle(self) -> tuple[Duel, ...]:
        rivals = [
            (first, second)
            for first, second in combinations([one for one in self.wanted if one.name in self.in_sets], 2)
            if second.name in first.lever.conflicts or first.name in second.lever.conflicts
        ]
        if rivals:
            self._lay(())
            for name in dict.fromkeys(one.name for pair in rivals for one in pair):
                self._pull_alone(self._one(name))
        return tuple(self._duel(first, second) for first, second in rivals)

    def _duel(self, first: Wanted, second: Wanted) -> Duel:
        sql = steps.filled(
            "lever_duel", rows=self._rows, pair=str(first.bit | second.bit),
            first=self._alone(first), second=self._alone(second),
        )  # fmt: skip
        lost = {
            row["feature"]: second.name if row["first_pusd"] <= row["second_pusd"] else first.name
            for row in self.bill.session.engine.fetch(sql).rows(named=True)
        }
        return Duel(first.name, second.name, lost)

    def _summed(self) -> dict[tuple[int, int], dict[Block, int]]:
        return self._grouped(self._union())

    def _grouped(self, versions: str) -> dict[tuple[int, int], dict[Block, int]]:
        sql = steps.filled("lever_sums", versions=f"({versions})")
        made: dict[tuple[int, int], dict[Block, int]] = {}
        for row in self.bill.session.engine.fetch(sql).rows(named=True):
            made.setdefault((row["touch"], row["levers"]), {})[_block(row)] = int(row["cost_pusd"])
        return made

    def _charged(self) -> dict[str, dict[int, dict[Block, int]]]:
        charging = [one for one in self.wanted if one.judged.has_fee]
        made: dict[str, dict[int, dict[Block, int]]] = {one.name: {} for one in charging}
        if charging:
            fees = ",\n  ".join(
                f"coalesce(sum(cast(r.{_fee(one)} as decimal(38, 0))), 0) as {_fee(one)}" for one in charging
            )
            sql = steps.filled("lever_fees", rows=self._rows, fees=fees)
            for row in self.bill.session.engine.fetch(sql).rows(named=True):
                for one in charging:
                    made[one.name].setdefault(row["touch"], {})[_block(row)] = int(row[_fee(one)])
        return made


def _fee(one: Wanted) -> str:
    return f"fee_{one.name}"


def _block(row: Mapping[str, object]) -> Block:
    is_day = row["is_day"] == 1
    value = row["block_day"] if is_day else row["user_bucket"]
    return is_day, None if value is None else str(value)
