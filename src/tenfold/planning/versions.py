"""Every version of every request that some set of levers leaves: made stage by stage, each priced once.

A request is changed only by the levers that touch it, so it has one version for each set of those, not for each set
of all levers. A set's cost is then a sum over versions, looked up by what touches a request (``touch``) and what of
that is pulled (``levers``). A lever that is replayed (a prompt cache) acts on whole worlds: one for each set of the
levers before it, since what they do to one request changes what another finds in the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from tenfold.levers import Bill
from tenfold.levers.repricing import VERSION_HEAD, counted_alone, counts_in_use
from tenfold.levers.tally import Tally
from tenfold.planning.every_set import Part, every_set, subsets_of
from tenfold.planning.laying import SUMMED, Tables, Wanted, fee
from tenfold.planning.rivals import Duel
from tenfold.store import steps
from tenfold.store.schema import TOKEN_COLUMNS

# Block of the sums: (it is a day, else a group of users; which one as text, None where there is none).
Block = tuple[bool, str | None]


class _Group(NamedTuple):
    """What versions are summed by: who touches, in which world of a replay, what is pulled."""

    touch: int
    world: int
    levers: int


@dataclass(slots=True)
class Versions:
    """The versions of one log's requests under one scenario.

    Args:
        bill: The log's own bill.
        wanted: Levers that have judged, in the mechanical order.
        in_sets: Names of those that sets are made of; the others are priced alone only.
        suffix: What tells the tables of this scenario from another's.
        middle: The versions of the middle scenario, where this is another: its sums hold for requests that no ranged
            lever touches.
        ranged: Names of the levers whose change differs from the middle scenario.
        burdens: Lever to what it takes to do it at all, brought to the window, in pUSD.
    """

    bill: Bill
    wanted: Sequence[Wanted]
    in_sets: frozenset[str]
    suffix: str = ""
    middle: Versions | None = None
    ranged: frozenset[str] = frozenset()
    burdens: Mapping[str, int] = field(default_factory=dict[str, int])
    tables: Tables = field(init=False)
    sums: dict[_Group, dict[Block, int]] = field(init=False)
    """Cost by who touches, world and what is pulled, and by block, in pUSD."""
    fees: dict[str, dict[tuple[int, int], dict[Block, int]]] = field(init=False)
    """Lever to charges by (touch, reach) and by block, in pUSD."""
    _amounts: dict[Block, list[int]] = field(init=False, default_factory=dict[Block, list[int]])

    def __post_init__(self) -> None:
        middle = self.middle
        before = None if middle is None else middle.tables
        self.tables = Tables(self.bill, self.wanted, self.in_sets, self.suffix, before, self.ranged, self.burdens)
        self.sums = self._grouped(self.tables.union([self.tables.rows, *self.tables.sets], SUMMED))
        if middle is None:
            self.fees = self._charged()
            return
        self.fees, relevant = middle.fees, self.tables.relevant
        alike = {group: pusd for group, pusd in middle.sums.items() if not group.touch & relevant}
        self.sums = alike | {group: pusd for group, pusd in self.sums.items() if group.touch & relevant}

    @property
    def fixed(self) -> Mapping[str, int]:
        """Lever to its fixed charges, in pUSD."""
        return self.tables.fixed

    @property
    def duels(self) -> Sequence[Duel]:
        """Settled duels of levers that want the same requests."""
        return self.tables.duels

    def blocks(self, names: frozenset[str]) -> dict[Block, int]:
        """Sum what a set of levers leaves of the requests that levers touch, and charges by the request.

        Args:
            names: Names of levers in ``in_sets``.

        Returns:
            Block (by day, and again by group of users) to pUSD; the requests that no lever touches are not in it.
        """
        if not self._amounts:
            self._amounts = self._of_every_set()
        place = sum(1 << place for place, one in enumerate(self._members()) if one.name in names)
        return {block: amounts[place] for block, amounts in self._amounts.items()}

    def _members(self) -> list[Wanted]:
        return [one for one in self.wanted if one.name in self.in_sets]

    def _of_every_set(self) -> dict[Block, list[int]]:
        """Sum what every set of levers leaves, by block: see ``every_set`` for the order of the sets."""
        members = self._members()
        bits = sum(one.bit for one in members)
        packed = {one: sum(1 << n for n, lever in enumerate(members) if lever.bit & one) for one in subsets_of(bits)}
        parts: dict[Block, list[Part]] = {}
        classes: dict[tuple[int, int], dict[int, dict[Block, int]]] = {}
        for group, by_block in self.sums.items():
            classes.setdefault((group.touch, group.world), {})[group.levers] = by_block
        for (touch, world), versions in classes.items():
            among = (touch | max(world, 0)) & bits
            left = [_version(versions, self._levers(pulled, touch, world)) for pulled in subsets_of(among)]
            for block in {block: None for by_block in versions.values() for block in by_block}:
                parts.setdefault(block, []).append((packed[among], [by_block.get(block, 0) for by_block in left]))
        for one in members:
            for (touch, reach), by_block in self.fees.get(one.name, {}).items():
                among = (touch | one.bit) & bits
                pays = [
                    bool(pulled & one.bit) and self._pays(one, pulled, touch, reach) for pulled in subsets_of(among)
                ]
                for block, pusd in by_block.items():
                    parts.setdefault(block, []).append((packed[among], [pusd * is_due for is_due in pays]))
        return {block: every_set(len(members), found) for block, found in parts.items()}

    def alone(self, name: str) -> dict[Block, int]:
        """Sum what a lever on its own changes the bill by: on all that it reaches, whoever else wants it.

        Args:
            name: A lever that has judged.

        Returns:
            Block to pUSD saved, fees taken off.
        """
        one = self.tables.one(name)
        columns = ", ".join(SUMMED)
        now = self._grouped(f"select {columns} from {self.tables.rows} where (reach & {one.bit}) <> 0")
        then = self._grouped(f"select {columns} from {self.tables.alone(one)}")
        fees = self.fees.get(name, {})
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
        return any(group.touch & self.tables.one(name).bit for group in self.sums)

    def tally(self, name: str) -> Tally:
        """Count what a lever did on its own.

        Args:
            name: A lever that has judged.

        Returns:
            Counts by fate, feature and model.
        """
        one = self.tables.one(name)
        return counted_alone(self.bill.session, one.judged.view, self.tables.alone(one), one.bit)

    def left(self, names: frozenset[str]) -> pl.DataFrame:
        """Split what a set of levers leaves of the bill.

        Args:
            names: Names of levers in ``in_sets``.

        Returns:
            One row per (feature, team, model as logged), cost by meter in pUSD.
        """
        pulled = self.tables.bits(names)
        kept = sorted(group for group in self._kept(pulled) if group.levers)
        held = [f"(touch = {one.touch} and world = {one.world} and levers = {one.levers})" for one in kept]
        columns = (*VERSION_HEAD, *counts_in_use(self.bill.session))
        absent = [column for column in TOKEN_COLUMNS if column not in columns]
        nulls = "".join(f", cast(null as bigint) as {column}" for column in absent)
        session = self.bill.session
        name = f"lever_left_of{self.suffix}"
        every = self.tables.union(self.tables.sets, (*columns, "touch", "world", "levers"))
        session.engine.step(
            name,
            f"select {', '.join(columns)}{nulls}, true as is_billable, false as gateway_cache_hit "
            f"from ({every or f'select * from {self.tables.rows}'}) where {' or '.join(held) or 'false'}",
        )
        session.price(name, f"{name}_priced", windowed=False)
        known = [meter.name for meter in session.meters if f"{meter.name}_pusd" in self.bill.columns]
        more = [meter.name for meter in session.meters if meter.name not in known]
        none = "".join(f", cast(null as bigint) as {meter}_pusd" for meter in more)
        sums = (f"sum(cast({m.name}_pusd as decimal(38, 0))) as {m.name}" for m in session.meters)
        sql = steps.filled(
            "lever_left",
            rows=self.tables.rows,
            pulled=str(pulled),
            priced=f"{name}_priced",
            meters=", ".join(f"b.{meter}_pusd" for meter in known) + none,
            changed_meters=", ".join(f"p.{meter}_pusd" for meter in (*known, *more)),
            meter_sums=",\n  ".join(sums),
        )
        return session.engine.fetch(f"{sql}\norder by all nulls last")

    def _kept(self, pulled: int) -> set[_Group]:
        """Which versions a set leaves."""
        return {group for group in self.sums if self._levers(pulled, group.touch, group.world) == group.levers}

    def _levers(self, pulled: int, touch: int, world: int) -> int | None:
        """Which bits the version has that a set leaves of a request, in a world of it; None where there is none."""
        on = pulled & touch
        if on & self.tables.removed:
            return None
        replayed = next((one for one in self.wanted if one.judged.is_replayed and one.bit & on), None)
        if replayed is None:
            return on if world < 0 else None
        if world < 0:
            return None
        return (pulled & world) | (on & ~self.tables.before(replayed))

    def _pays(self, one: Wanted, pulled: int, touch: int, reach: int) -> bool:
        """Whether a lever charges for requests: unless another took them away, or won them."""
        removing = self.tables.removed & pulled & touch
        is_ceded = bool(reach & one.bit and not touch & one.bit and one.name in self.in_sets)
        return not is_ceded and (not removing or bool(removing & one.bit))

    def _grouped(self, versions: str) -> dict[_Group, dict[Block, int]]:
        sql = steps.filled("lever_sums", versions=f"({versions})")
        made: dict[_Group, dict[Block, int]] = {}
        for row in self.bill.session.engine.fetch(sql).rows(named=True):
            made.setdefault(_Group(row["touch"], row["world"], row["levers"]), {})[block_of(row)] = int(
                row["cost_pusd"]
            )
        return made

    def _charged(self) -> dict[str, dict[tuple[int, int], dict[Block, int]]]:
        charging = [one for one in self.wanted if one.judged.has_fee]
        made: dict[str, dict[tuple[int, int], dict[Block, int]]] = {one.name: {} for one in charging}
        if charging:
            fees = ",\n  ".join(
                f"coalesce(sum(cast(r.{fee(one)} as decimal(38, 0))), 0) as {fee(one)}" for one in charging
            )
            sql = steps.filled("lever_fees", rows=self.tables.rows, fees=fees)
            for row in self.bill.session.engine.fetch(sql).rows(named=True):
                for one in charging:
                    made[one.name].setdefault((row["touch"], row["reach"]), {})[block_of(row)] = int(row[fee(one)])
        return made


def _version(versions: Mapping[int, Mapping[Block, int]], levers: int | None) -> Mapping[Block, int]:
    return {} if levers is None else versions.get(levers, {})


def block_of(row: Mapping[str, object]) -> Block:
    """Read which block a row of sums is about.

    Args:
        row: ``is_day``, ``block_day`` and ``user_bucket``.

    Returns:
        The block.
    """
    is_day = row["is_day"] == 1
    value = row["block_day"] if is_day else row["user_bucket"]
    return is_day, None if value is None else str(value)
