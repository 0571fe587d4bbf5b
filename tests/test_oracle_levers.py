"""The slow levers against planted logs: two independent ways to the same pUSD, without any code of tenfold."""

from fractions import Fraction

import pytest
from oracle_book import read_book
from oracle_levers import Portfolio, read_rules
from planted import LOGS, issue_log
from planted.base import CACHING, prices

BOOK = read_book(prices().values())
RULES = read_rules(CACHING)


def portfolio(log, scenario="mid"):
    return Portfolio(BOOK, RULES, log.rows, log.assume, log.slo, scenario)


def hold_equal(log):
    found = portfolio(log)
    if log.exact:
        assert {lever: found.alone(lever) for lever in log.truth} == log.truth
    if log.joint is not None:
        assert found.value(log.assume) == log.joint
    shares = found.shapley(log.assume)
    assert sum(shares.values()) == found.value(log.assume)
    return found


@pytest.mark.parametrize("name", LOGS)
def test_the_oracle_finds_what_was_planted(name):
    log = LOGS[name](1)
    assert len(log.rows) <= 500
    assert len({row["ts"].date() for row in log.rows}) >= 14
    hold_equal(log)


@pytest.mark.full
@pytest.mark.parametrize("name", LOGS)
def test_the_oracle_finds_what_was_planted_in_each_of_many(name):
    for seed in range(40):
        hold_equal(LOGS[name](seed))


def test_alone_they_sum_to_nearly_all_and_together_to_two_thirds():
    log = issue_log(1)
    spend = hold_equal(log).spend
    assert sum(log.truth.values()) > spend * 95 // 100
    assert Fraction(64, 100) < Fraction(log.joint, spend) < Fraction(70, 100)
