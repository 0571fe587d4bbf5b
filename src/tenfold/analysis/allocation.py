"""Allocation: the cost of shared owners, and if asked of what nobody owns, carried by the teams that are left.

FinOps practice: what has an owner is charged directly; what is shared (a gateway, a shared prompt, embeddings) goes to
the others in proportion to their usage, evenly, or by weights that were agreed, and the method is published (FOCUS
1.3, AllocatedMethodId). It is done for each calendar month of the report zone, as invoices are closed, so that a closed
month stays as it was: a team pays only for months in which it has usage (fixed weights hold in every month). Parts are
whole picodollars by largest remainder, so they sum exactly to what is shared out. Requests without a price have no
cost and are in no part. What a bill holds beside its requests (GPUs that stand idle) is shared out like the cost of a
shared owner, from a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

import polars as pl

from tenfold import config
from tenfold.display import counted, name_of, nothing_priced, percent, sentence, small_dollars
from tenfold.errors import AssumptionError, near
from tenfold.ledger import Composition, Ledger, grain_text
from tenfold.money import share_out, usd_text
from tenfold.owners import Owners, Sharing
from tenfold.tables import Column, card, grid

# Grains that are made of whole months.
GRAINS = ("month", "quarter", "year")
_AMOUNTS = ("direct", "shared out", "allocated", "total")
# The line of what hangs on no request.
IDLE = "(idle)"
# A month (None for requests without a time) and a team.
_Cell: TypeAlias = tuple[date | None, str | None]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a team had in a month.

    Args:
        cost: pUSD of what has a price.
        tokens: Known tokens of billable requests.
        requests: Billable requests.
    """

    cost: int
    tokens: int
    requests: int


@dataclass(frozen=True, slots=True)
class Part:
    """What allocation does to one line.

    Args:
        shared_out: pUSD of its own cost that others carry; at least 0.
        allocated: pUSD of others' cost that it carries; at least 0.
    """

    shared_out: int = 0
    allocated: int = 0


@dataclass(frozen=True, slots=True)
class Allocation:
    """A bill with shared costs allocated; what teams pay in the end sums to what it cost.

    Args:
        mix: The bill by team (and month, quarter or year), with a line for teams that carry a part without a request.
        parts: What changes, by the dimensions of a line.
        sharing: The method.
        shared_teams: Owners whose cost is shared.
        shared_pusd: Direct cost of them.
        unallocated_pusd: Direct cost of what nobody owns.
        left: Months (None: without a time) of which a cost could not be allocated, with it in pUSD and the reason.
        unpriced: Requests without a price among what was to be shared out.
        zone: Zone that months are cut in.
        charges: What the bill holds beside its requests, by the dimensions of a line without the team: pUSD, and what
            of it others carry.
    """

    mix: Composition
    parts: Mapping[tuple[object, ...], Part]
    sharing: Sharing
    shared_teams: tuple[str, ...]
    shared_pusd: int
    unallocated_pusd: int
    left: tuple[tuple[date | None, int, str], ...]
    unpriced: int
    zone: str
    charges: Mapping[tuple[date | None, ...], tuple[int, int]] = field(
        default_factory=dict[tuple[date | None, ...], tuple[int, int]]
    )

    @property
    def charges_pusd(self) -> int:
        """What the bill holds beside its requests."""
        return sum(whole for whole, _ in self.charges.values())

    @property
    def charges_shared_pusd(self) -> int:
        """What of that teams carry."""
        return sum(shared for _, shared in self.charges.values())

    def charge_lines(self) -> list[tuple[tuple[str | None, ...], tuple[int, int, int, int]]]:
        """Give charges as lines beside ``frame``, with which they sum to the bill.

        Returns:
            Per line the dimensions' values for reading, and pUSD: direct, shared out, allocated (none), total.
        """
        made: list[tuple[tuple[str | None, ...], tuple[int, int, int, int]]] = []
        for key, (whole, shared) in sorted(self.charges.items()):
            when = iter(key)
            values = tuple(IDLE if name == "team" else grain_text(name, next(when)) for name in self.mix.by)
            made.append((values, (whole, shared, 0, whole - shared)))
        return made

    @property
    def frame(self) -> pl.DataFrame:
        """One row a line: dimensions, ``direct_pusd``, ``shared_out_pusd``, ``allocated_pusd``, ``total_pusd``."""
        lines = [self._line(row) for row in self.mix.ordered().rows(named=True)]
        kinds = {name: self.mix.frame.schema[name] for name in self.mix.by}
        money = ("direct_pusd", "shared_out_pusd", "allocated_pusd", "total_pusd")
        made = pl.DataFrame(lines, schema=kinds | dict.fromkeys(money, pl.Int128), orient="row")
        return made.with_columns(pl.col(name).cast(pl.Decimal(38, 0)) for name in money)

    def _line(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        key = tuple(row[name] for name in self.mix.by)
        part = self.parts.get(key, Part())
        direct = None if nothing_priced(row["requests"], row["unpriced_requests"]) else int(row["cost_pusd"])
        total = None if direct is None and not part.allocated else (direct or 0) - part.shared_out + part.allocated
        return (*key, direct, part.shared_out, part.allocated, total)

    def rows(self) -> list[dict[str, Any]]:
        """Give what stands beside the keys of ``mix.rows()``, in their order.

        Returns:
            Per line ``direct_usd`` (as ``cost_usd``), ``shared_out_usd``, ``allocated_usd`` and ``total_usd``, which is
            direct - shared out + allocated.
        """
        money = ("direct", "shared_out", "allocated", "total")
        return [
            {f"{name}_usd": usd_text(_whole(line[f"{name}_pusd"])) for name in money}
            for line in self.frame.rows(named=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Give the object ``allocation`` of ``tenfold cost --json``.

        Returns:
            ``method``, ``basis`` (null where it plays no part), ``weights``, ``include_unallocated``, ``period``,
            ``zone``, ``shared_teams[]``, ``shared_usd``, ``unallocated_usd``, ``idle_usd`` (where there are GPUs),
            ``allocated_usd``, ``left[]`` (month, usd, reason), ``unpriced_requests``, ``said[]``.
        """
        by_usage = self.sharing.method == "usage"
        return {
            "method": self.sharing.method,
            "basis": self.sharing.basis if by_usage else None,
            "weights": {team: str(part) for team, part in self._weights().items()},
            "include_unallocated": self.sharing.include_unallocated,
            "period": "month",
            "zone": self.zone,
            "shared_teams": list(self.shared_teams),
            "shared_usd": usd_text(self.shared_pusd),
            "unallocated_usd": usd_text(self.unallocated_pusd),
            **({"idle_usd": usd_text(self.charges_pusd)} if self.charges else {}),
            "allocated_usd": usd_text(self.allocated_pusd),
            "left": [
                {"month": grain_text("month", month), "usd": usd_text(pusd), "reason": why}
                for month, pusd, why in self.left
            ],
            "unpriced_requests": self.unpriced,
            "said": self.sentences(),
        }

    def _weights(self) -> Mapping[str, Decimal]:
        return self.sharing.weights if self.sharing.method == "fixed" else {}

    @property
    def allocated_pusd(self) -> int:
        """What is carried by others than those it was spent by."""
        return sum(part.allocated for part in self.parts.values())

    def sentences(self) -> list[str]:
        """Say the method, and what could not be done, for people.

        Returns:
            One sentence each.
        """
        what = [f"{', '.join(self.shared_teams)} ({small_dollars(self.shared_pusd)})"] if self.shared_teams else []
        if self.sharing.include_unallocated:
            what.append(f"what nobody owns ({small_dollars(self.unallocated_pusd)})")
        if self.charges:
            what.append(f"idle GPUs ({small_dollars(self.charges_pusd)})")
        if not what:
            return ["nothing to allocate: no rule in tenfold.toml has shared = true, nor is include_unallocated set"]
        how = {
            "usage": f"in proportion to their {self.sharing.basis}",
            "even": "in even parts",
            "fixed": "by fixed weights ("
            + ", ".join(f"{team} {percent(float(part), 2)}" for team, part in self._weights().items())
            + ")",
        }[self.sharing.method]
        to = "the teams named" if self.sharing.method == "fixed" else "the other teams with requests in the month"
        said = [f"allocated: the cost of {_and(what)} to {to}, {how}, month by month ({self.zone})"]
        said += [
            f"{small_dollars(pusd)} of {grain_text('month', month) or 'requests without a time'} is not allocated: {w}"
            for month, pusd, w in self.left
        ]
        if self.unpriced:
            said.append(f"{counted(self.unpriced, 'request')} of it without a price: in no part")
        return said

    def _repr_html_(self) -> str:
        """Show in a notebook who carries what, and by which method."""
        lines = [
            (tuple(name_of(name, grain_text(name, row[name])) for name in self.mix.by), self._line(row)[-4:])
            for row in self.mix.ordered().rows(named=True)
        ]
        rows = [(*names, *amounts) for names, amounts in (*lines, *self.charge_lines())]
        columns = [Column(name, name) for name in self.mix.by]
        columns += [Column(name.replace(" ", "-"), f"{name} (USD)", "pusd") for name in _AMOUNTS]
        title, *rest = map(sentence, self.sentences())
        return card(title, rest, grid("allocation", "Who carries the bill", columns, rows))


def allocate(
    ledger: Ledger,
    by: Sequence[str] = ("team",),
    *,
    method: str | None = None,
    sharing: Sharing | None = None,
    shared: Iterable[str] | None = None,
) -> Allocation:
    """Allocate the cost of shared owners to the other teams.

    Args:
        ledger: The priced log.
        by: ``team``, alone or with ``month``, ``quarter`` or ``year``.
        method: ``usage``, ``even`` or ``fixed``, over what ``sharing`` says.
        sharing: Method, basis and weights; those of ``tenfold.toml`` by default.
        shared: Teams whose cost is shared; by default those that a rule of ``tenfold.toml`` calls so.

    Returns:
        The allocation; its lines sum to the bill to the pUSD.

    Raises:
        AssumptionError: ``by`` is cut finer than allocation is, or weights name a team that cannot carry a part.
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    others = [name for name in by if name != "team" and name not in GRAINS]
    if "team" not in by or others:
        raise AssumptionError(
            f"costs are allocated by team and month: group by team, alone or with {', '.join(GRAINS)}"
            + (f", not by {', '.join(others)}" if others else "")
        )
    rules = config.owners() or Owners("")
    how = sharing or config.allocation()
    how = how if method is None else replace(how, method=method)
    givers = rules.shared_teams if shared is None else tuple(sorted(set(shared)))
    with ledger.session() as session:
        monthly = session.totals(("team", "month"))
        mix = session.totals(by)
    usage = {
        (row["month"], row["team"]): Usage(int(row["cost_pusd"]), row["tokens"], row["requests"])
        for row in monthly.rows(named=True)
    }
    seen = {team for _, team in usage if team is not None}
    _check_names(how, givers, sorted(seen | rules.teams))
    charged = ledger.charges_by_month()
    parts, carried, left = _shared_out(usage, how, givers, charged)
    by_line: dict[tuple[object, ...], Part] = {}
    for cell, part in parts.items():
        key = tuple(cell[1] if name == "team" else _start(cell[0], name) for name in by)
        before = by_line.get(key, Part())
        by_line[key] = Part(before.shared_out + part.shared_out, before.allocated + part.allocated)
    beside: dict[tuple[date | None, ...], tuple[int, int]] = {}
    for month, pusd in charged.items():
        key = tuple(_start(month, name) for name in by if name != "team")
        whole, out = beside.get(key, (0, 0))
        beside[key] = (whole + pusd, out + carried.get(month, 0))
    frame = _with_lines(mix, by, by_line)
    gives = pl.col("team").is_in(givers) | (pl.col("team").is_null() if how.include_unallocated else False)
    return Allocation(
        mix=Composition(by, frame, int(frame["cost_pusd"].sum() or 0)),
        parts=by_line,
        sharing=how,
        shared_teams=givers,
        shared_pusd=sum(one.cost for (_, team), one in usage.items() if team in givers),
        unallocated_pusd=sum(one.cost for (_, team), one in usage.items() if team is None),
        left=tuple(left),
        unpriced=int(mix.filter(gives)["unpriced_requests"].sum() or 0),
        zone=ledger.window.zone,
        charges=beside,
    )


def _check_names(how: Sharing, givers: Sequence[str], known: Sequence[str]) -> None:
    for team in givers:
        if team not in known:
            raise AssumptionError(f'shared: "{team}" is no team of this log or of the owner rules.{near(team, known)}')
    for team in how.weights if how.method == "fixed" else ():
        where = f'{how.where}.weights: "{team}"'
        if team in givers:
            raise AssumptionError(f"{where} is shared itself; weights are of the teams that carry its cost")
        if team not in known:
            raise AssumptionError(f"{where} is no team of this log or of the owner rules.{near(team, known)}")


def _shared_out(
    usage: Mapping[_Cell, Usage], how: Sharing, givers: Sequence[str], charged: Mapping[date, int]
) -> tuple[dict[_Cell, Part], dict[date, int], list[tuple[date | None, int, str]]]:
    """Share out each month's pool, charges included; what nobody can carry stays where it is, and is named.

    Returns what changes by month and team, the charges that are carried by month, and what is left.
    """
    parts: dict[_Cell, Part] = {}
    carried: dict[date, int] = {}
    left: list[tuple[date | None, int, str]] = []
    measures: dict[str, Callable[[Usage], int]] = {
        "cost": lambda one: one.cost,
        "tokens": lambda one: one.tokens,
        "requests": lambda one: one.requests,
    }
    months = {*charged, *(month for month, _ in usage)}
    # requests without a time are a period of their own, after the others
    for month in sorted(months, key=lambda one: one or date.max):
        here = {team: one for (at, team), one in usage.items() if at == month}
        gives = {team: here[team].cost for team in here if _gives(team, how, givers) and here[team].cost}
        beside = 0 if month is None else charged.get(month, 0)
        pool = sum(gives.values()) + beside
        carriers = {team: one for team, one in here.items() if team is not None and team not in givers and one.requests}
        if how.method == "fixed":
            weights = _whole_weights(how.weights)
        elif how.method == "even":
            weights = dict.fromkeys(sorted(carriers), 1)
        else:
            weights = {team: measures[how.basis](carriers[team]) for team in sorted(carriers)}
        if not pool:
            continue
        if not any(weights.values()):
            none = f"the other teams have no {how.basis} in it" if carriers else "no other team has a request in it"
            left.append((month, pool, none))
            continue
        if month is not None:
            carried[month] = beside
        parts |= {(month, team): Part(shared_out=cost) for team, cost in gives.items()}
        parts |= {
            (month, team): Part(allocated=part)
            for team, part in zip(weights, share_out(pool, list(weights.values())), strict=True)
            if part
        }
    return parts, carried, left


def _gives(team: str | None, how: Sharing, givers: Sequence[str]) -> bool:
    return how.include_unallocated if team is None else team in givers


def _whole_weights(weights: Mapping[str, Decimal]) -> dict[str, int]:
    places = max((-int(part.as_tuple().exponent) for part in weights.values()), default=0)
    return {team: int(weights[team].scaleb(max(places, 0))) for team in sorted(weights)}


def _start(month: date | None, grain: str) -> date | None:
    """Take the first day of the period that a month is in."""
    if month is None or grain == "month":
        return month
    return month.replace(month=1 if grain == "year" else month.month - (month.month - 1) % 3)


def _with_lines(mix: pl.DataFrame, by: Sequence[str], parts: Mapping[tuple[object, ...], Part]) -> pl.DataFrame:
    """Add a line for what carries a part without a request of its own: all zeros."""
    there = set(mix.select(by).rows())
    new = [dict(zip(by, key, strict=True)) for key in parts if key not in there]
    if not new:
        return mix
    added = pl.DataFrame(new, schema={name: mix.schema[name] for name in by})
    zeros = [pl.lit(0).cast(kind).alias(name) for name, kind in mix.schema.items() if name not in by]
    return pl.concat([mix, added.with_columns(zeros).select(mix.columns)])


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _whole(pusd: Decimal | None) -> int | None:
    return None if pusd is None else int(pusd)
