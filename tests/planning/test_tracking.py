"""Promised against realised: volume is no saving, a control group is a better baseline than the past."""

from datetime import datetime, timedelta

import pytest
from small_logs import CUT, Shorten, ledger, row

import tenfold as tf
from tenfold.errors import AssumptionError
from tenfold.levers import batch_api
from tenfold.planning import track

NOON = datetime(2026, 6, 1, 12)
UUSD = 10**6
BATCH = {"batch_api": {"where": "feature = 'tagging'", "effort_days": 0}}


def days(count, start=NOON, **columns):
    return [row(ts=start + timedelta(days=n), **columns) for n in range(count)]


def a_plan():
    """Twelve requests at 3,000 uUSD, of which a batch saves half; chat is left alone."""
    rows = [*days(12), *days(12, feature="chat", is_stream=True)]
    return tf.plan(ledger(rows), assume=BATCH, levers=(batch_api.LEVER,)).as_dict()


LATER = NOON + timedelta(days=40)


def test_what_a_plan_promises():
    assert a_plan()["plan"]["promised"] == [
        {"feature": "tagging", "requests": 12, "cost_usd": "0.036", "saving_usd": "0.018", "base_usd": "0.036"}
    ]
    assert a_plan()["plan"]["charges_usd"] == "0.00"


@pytest.mark.full
def test_a_promise_kept_at_twice_the_volume():
    rows = [*days(12, LATER, service_tier="batch") * 2, *days(12, LATER, feature="chat", is_stream=True)]
    kept = track(a_plan(), ledger(rows))
    assert (kept.promised_pusd, kept.realised_pusd) == (24 * 1_500 * UUSD,) * 2
    assert (kept.low_pusd, kept.high_pusd) == (24 * 1_500 * UUSD,) * 2
    assert (kept.label, kept.unseen) == ("modelled", ())
    assert kept.as_dict()["kept_ratio"] == 1


@pytest.mark.full
def test_nothing_was_done():
    kept = track(a_plan(), ledger(days(12, LATER)))
    assert (kept.promised_pusd, kept.realised_pusd) == (12 * 1_500 * UUSD, 0)


CUT_TWICE = (
    CUT
    + """
[[price]]
model = "stacks"
valid_from = 2026-07-01
input = 0.5
cache_read = 0.05
output = 2.5
source = "test"
checked = 2026-01-01
"""
)


def test_a_price_cut_is_nobodys_saving():
    # 4 days at 3,000 and 8 at 1,500; later 750, and nothing was done: held to 1,500, the last price of the window
    document = tf.plan(ledger(days(12), CUT_TWICE), levers=(Shorten("shorten", 50),)).as_dict()
    promised = document["plan"]["promised"][0]
    assert (promised["cost_usd"], promised["base_usd"]) == ("0.024", "0.018")
    kept = track(document, ledger(days(12, LATER), CUT_TWICE))
    assert (kept.realised_pusd, kept.price_change_pusd) == (0, 12 * 750 * UUSD)
    # half the output gone is 250 of 1,500 at those prices, whatever was billed
    done = track(document, ledger(days(12, LATER, output_tokens=50), CUT_TWICE))
    assert (done.realised_pusd, done.price_change_pusd) == (12 * 250 * UUSD, 12 * 625 * UUSD)


def test_half_was_done_and_prompts_grew():
    # six in the batch tier at 1,500; six online with 2,000 in: 4,000 + 1,000 = 5,000; all would have cost 3,000 each
    rows = [*days(6, LATER, service_tier="batch"), *days(6, LATER + timedelta(days=6), input_tokens=2_000)]
    kept = track(a_plan(), ledger(rows))
    assert kept.realised_pusd == (12 * 3_000 - 6 * 1_500 - 6 * 5_000) * UUSD
    assert "hold back a share" in kept.notes[-1]


def test_against_requests_held_back():
    # prompts grew for all: 5,000 in each request held back, 2,000 x 1 + 100 x 5 = 2,500 in each of the others
    rows = [
        *days(12, LATER, service_tier="batch", input_tokens=2_000),
        *days(4, LATER, input_tokens=2_000, user_id="held"),
    ]
    kept = track(a_plan(), ledger(rows), control="user_id = 'held'")
    assert (kept.label, kept.realised_pusd) == ("measured", 12 * 2_500 * UUSD)
    assert [one.requests for one in kept.rows] == [12]


@pytest.mark.full
def test_answers_of_a_gateway_cache_count_as_requests_that_cost_nothing():
    rows = days(12, LATER, gateway_cache_hit=True)
    assert track(a_plan(), ledger(rows)).realised_pusd == 12 * 3_000 * UUSD


def test_what_cannot_be_tracked():
    made = ledger(days(3, LATER))
    with pytest.raises(AssumptionError, match="not a plan"):
        track({"a": 1}, made)
    with pytest.raises(AssumptionError, match="promises nothing"):
        track(tf.plan(made).as_dict(), made)
    unheld = track(a_plan(), made, control="user_id = 'nobody'")
    assert (unheld.label, unheld.realised_pusd) == ("modelled", 0)
    assert unheld.notes[-1] == "--control holds back no request of tagging: held against the time before the plan"
    with pytest.raises(AssumptionError, match="no column"):
        track(a_plan(), made, control="usr_id = 'x'")
    assert track(a_plan(), ledger(days(3, LATER, feature="other"))).unseen == ("tagging",)
