"""What a reader of a plan is told beside its figures."""

from datetime import datetime, timedelta

import pytest
from bills import FIVE, ledger_of, utc
from small_logs import CUT, ledger, row

import tenfold as tf
from tenfold.planning.noting import in_each_others_way

NOON = datetime(2026, 6, 1, 12)


def test_prices_that_changed_inside_the_window():
    rows = [row(ts=NOON + timedelta(days=n)) for n in range(12)]
    rows += [row(ts=NOON + timedelta(days=n), model="plain") for n in range(12)]
    # four days at 3,000 uUSD and eight at 1,500
    assert any("stacks on 2026-06-05 ($0.02 of spend). Savings" in note for note in tf.plan(ledger(rows, CUT)).notes)
    assert tf.plan(ledger(rows)).notes == ()
    assert tf.plan(ledger(rows[:3], CUT)).notes == ()


def test_levers_of_one_plan_that_get_in_each_others_way():
    assert in_each_others_way({"batch_api", "trim"}) == []
    assert "comes up to a day later" in in_each_others_way({"skip", "batch_api"})[0]


@pytest.mark.parametrize(("until", "is_told"), [(utc(2026, 8, 1), False), (None, True)])
def test_only_prices_that_changed_inside_the_window_are_told(tmp_path, until, is_told):
    """The log goes on after the window, where the price falls."""
    later = {"ts": "2026-08-02T12:00:00", "input_tokens": 100_000, "output_tokens": 100_000}
    made = ledger_of([*FIVE, later], tmp_path, since=utc(2026, 7, 1), until=until)
    assert any("prices changed inside" in note for note in tf.plan(made).notes) is is_told
