"""What a hostile tester found once: each with the smallest log that showed it."""

from datetime import datetime, timedelta

import pytest
from small_logs import Shorten, ledger, row

import tenfold as tf
from tenfold.errors import AssumptionError
from tenfold.levers import batch_api

NOON = datetime(2026, 6, 1, 12)


def days(count, **columns):
    return [row(ts=NOON + timedelta(days=n), **columns) for n in range(count)]


def of(plan, name):
    return next(one for one in plan.estimates if one.name == name)


def test_a_guarded_cast_that_one_value_does_not_survive_is_named():
    rows = [row(client="7", feature="num"), row(client="x", feature="word")]
    table = {"where": "feature = 'num' and cast(client as integer) > 1"}
    with pytest.raises(AssumptionError, match=r"\[batch_api\] where cannot be evaluated on this log"):
        tf.plan(ledger(rows), assume={"batch_api": table}, levers=(batch_api.LEVER,))


def test_amounts_beyond_any_bill_are_refused():
    with pytest.raises(AssumptionError, match=r"effort_days must be at most 1,000,000,000,000"):
        tf.plan(ledger([row()]), assume={"batch_api": {"effort_days": 1e30}})


def test_a_rival_that_is_not_worth_its_work_does_not_keep_the_traffic():
    # halve saves 500 of 3,000 uUSD a request, quarter 250; but halve takes a day's work and quarter none
    halve, quarter = Shorten("halve", 50), Shorten("quarter", 25, conflicts=("halve",))
    assume = {"halve": {"effort_days": 1}, "quarter": {"effort_days": 0}}
    plan = tf.plan(ledger(days(12)), assume=assume, levers=(halve, quarter))
    assert plan.levers == ("quarter",)
    assert of(plan, "halve").status == "excluded"
    assert of(plan, "halve").alone_pusd == 2 * of(plan, "quarter").alone_pusd


@pytest.mark.full
def test_rivals_over_more_features_than_an_expression_may_nest():
    rows = [row(ts=NOON + timedelta(minutes=n), feature=f"f{n}") for n in range(1_200)]
    halve, quarter = Shorten("halve", 50), Shorten("quarter", 25, conflicts=("halve",))
    plan = tf.plan(ledger(rows), levers=(halve, quarter))
    assert of(plan, "quarter").status == "excluded"
    assert plan.joint_all_pusd == of(plan, "halve").alone_pusd
