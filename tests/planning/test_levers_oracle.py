"""Several levers at once on drawn logs against the slow oracle: every figure of the plan, to the pUSD."""

from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from oracle_book import read_book
from oracle_levers import Portfolio, read_rules
from planted import book, for_plan
from planted.base import CACHING, prices
from planted.drawn import LEVERS, drawn
from small_logs import ledger

import tenfold as tf
from tenfold.slo import Slo

BOOK = cache(book)
ORACLE_BOOK = read_book(prices().values())
RULES = read_rules(CACHING)


def plan_of(log, assume=None):
    with TemporaryDirectory() as folder:
        told = for_plan(log, Path(folder))
        for rival in {"route", "distill"} & set(told):  # the oracle settles them without their work
            told[rival] = {**told[rival], "effort_days": 0}
        slo = None if log.slo is None else Slo(**log.slo)
        return tf.plan(ledger(log.rows, BOOK()), assume={name: told[name] for name in assume or told}, slo=slo)


def oracle_of(log, scenario="mid", assume=None):
    tables = {name: log.assume[name] for name in assume or log.assume}
    return Portfolio(ORACLE_BOOK, RULES, log.rows, tables, log.slo, scenario)


def hold_equal(log, assume=None):
    """Hold one plan against the oracle: the bill, each lever alone, last-in, Shapley and joint."""
    plan, slow = plan_of(log, assume), oracle_of(log, assume=assume)
    assert plan.spend_pusd == slow.spend
    found = {one.name: one for one in plan.estimates if one.name in slow.assume}
    withheld = slow.withheld()
    excluded = slow.excluded()
    for name, one in found.items():
        if name in withheld:
            assert (one.status, one.alone_pusd) == ("not_measurable", None), name
        elif name in excluded:
            assert (one.status, one.alone_pusd) == ("excluded", slow.alone(name)), name
        elif slow.touched(name):
            assert (one.status, one.alone_pusd) == ("ok", slow.alone(name)), (name, one.reason)
        else:
            assert one.status in {"ok", "nothing_eligible", "vetoed"}, (name, one.status, one.reason)
    ok = [name for name, one in found.items() if one.status == "ok"]
    assert {name: found[name].last_pusd for name in ok} == slow.last(ok)
    assert {name: found[name].shapley_pusd for name in ok} == slow.shapley(ok)
    assert plan.joint_all_pusd == slow.value(ok)
    return plan, slow, ok


def hold_scenarios(log, plan, ok):
    """The ends of each interval reach at least as far as the pessimistic and the optimistic scenario."""
    ends = [oracle_of(log, scenario) for scenario in ("low", "high")]
    for one in plan.estimates:
        if one.name in ok and one.saving.low is not None:
            values = [slow.alone(one.name) for slow in ends]
            assert one.saving.low <= min(values), one.name
            assert max(values) <= one.saving.high, one.name


# the quick run has every one of them among the others
@pytest.mark.full
@pytest.mark.parametrize("lever", LEVERS)
def test_one_lever(lever):
    log = drawn(1, 60, (lever,))
    plan, _, ok = hold_equal(log)
    hold_scenarios(log, plan, ok)


def test_all_levers():
    log = drawn(2, 80, LEVERS)
    plan, _, ok = hold_equal(log)
    hold_scenarios(log, plan, ok)


@pytest.mark.full
@pytest.mark.parametrize("lever", LEVERS)
def test_one_lever_on_many_logs(lever):
    for seed in range(25):
        log = drawn(seed, 150, (lever,))
        plan, _, ok = hold_equal(log)
        hold_scenarios(log, plan, ok)


@pytest.mark.full
@pytest.mark.parametrize("pair", list(combinations(LEVERS, 2)), ids="-".join)
def test_two_levers_on_many_logs(pair):
    for seed in range(10):
        hold_equal(drawn(seed, 150, pair))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(30))
def test_some_levers_on_logs_of_500_requests(seed):
    log = drawn(seed, 500)
    plan, slow, ok = hold_equal(log)
    hold_scenarios(log, plan, ok)
    for pair in list(combinations(ok, 2))[:2]:  # a set by itself is worth what it is worth among the others
        hold_equal(log, pair)
    assert slow.value(ok) == sum(slow.shapley(ok).values())
