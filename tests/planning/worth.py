"""What sets of levers are worth on a planted log, and the logs that properties are tried on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from planted import Planted, book, for_plan
from planted.drawn import LEVERS, drawn
from small_logs import ledger

import tenfold as tf
from tenfold.levers import LEVERS as SHIPPED
from tenfold.levers.assume import assumptions
from tenfold.levers.repricing import own_bill
from tenfold.planning.attribution import subsets
from tenfold.planning.portfolio import Portfolio
from tenfold.slo import Slo

if TYPE_CHECKING:
    from tenfold.levers import Lever
    from tenfold.planning import Plan
    from tenfold.prices import PriceBook

LEVER = {one.name: one for one in SHIPPED}
PAIR = ("skip", "batch_api")
# (seed, requests, levers): one small log always, more and with all levers under `full`
SEEDS = [(3, 40, PAIR), *(pytest.param(seed, 100, LEVERS, marks=pytest.mark.full) for seed in range(4))]
BOOK = cache(book)
FOLDER = TemporaryDirectory()


@dataclass(frozen=True)
class Worth:
    """What sets of levers are worth in the middle scenario, in pUSD.

    Args:
        spend: The bill.
        alone: Lever to what it saves alone, fees taken off, without fixed charges.
        daily: The same by day.
        addressed: Lever to what the requests cost that it changes.
        sets: Every set of levers to what it saves.
        facts: Lever to fate to the number of requests.
        unpriced: Requests without a price.
    """

    spend: int
    alone: Mapping[str, int]
    daily: Mapping[str, Mapping[str | None, int]]
    addressed: Mapping[str, int]
    sets: Mapping[frozenset[str], int]
    facts: Mapping[str, Mapping[str, int]]
    unpriced: int

    @property
    def names(self) -> frozenset[str]:
        """The levers that sets are made of."""
        return max(self.sets, key=len)


def worth_of(log: Planted, prices: PriceBook | None = None) -> Worth:
    """Price every set of a log's levers, without intervals."""
    levers = [LEVER[name] for name in log.assume]
    own = assumptions(for_plan(log, Path(FOLDER.name)), levers).levers
    with ledger(log.rows, prices or BOOK()).session() as session:
        bill = own_bill(session, levers, own, _slo(log))
        verdicts = {one.name: one.judge(bill, own[one.name]) for one in levers}
        made = Portfolio(bill, levers, own, verdicts)
        daily = {name: made.daily(name) for name in made.names}
        tallies = {name: made.tally(name) for name in made.names}
        return Worth(
            made.spend_pusd,
            {name: sum(days.values()) for name, days in daily.items()},
            daily,
            {name: tally.total("now_pusd", "moved") for name, tally in tallies.items()},
            {names: made.value(names) for names in subsets(made.names)},
            {name: _fates(tally.frame.rows(named=True)) for name, tally in tallies.items()},
            made.unpriced_requests,
        )


def plan_of(log: Planted, prices: PriceBook | None = None, levers: Iterable[Lever] | None = None) -> Plan:
    """The whole plan of a log's levers."""
    chosen = tuple(levers or (one for one in SHIPPED if one.name in log.assume))
    # one folder for all: a plan's document names its files
    told = for_plan(log, Path(FOLDER.name))
    return tf.plan(ledger(log.rows, prices or BOOK()), assume=told, slo=_slo(log), levers=chosen)


@cache
def drawn_worth(seed: int, size: int, levers: tuple[str, ...]) -> Worth:
    """What sets of levers are worth on a drawn log as it is."""
    return worth_of(drawn(seed, size, levers))


@cache
def drawn_plan(seed: int, size: int, levers: tuple[str, ...]) -> Plan:
    """The whole plan of a drawn log as it is."""
    return plan_of(drawn(seed, size, levers))


def _fates(rows: list[dict[str, object]]) -> dict[str, int]:
    made: dict[str, int] = {}
    for row in rows:
        made[str(row["fate"])] = made.get(str(row["fate"]), 0) + int(str(row["requests"]))
    return made


def _slo(log: Planted) -> Slo:
    return Slo() if log.slo is None else Slo(**log.slo)
