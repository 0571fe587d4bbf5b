"""Cheaper hours: requests that can wait run when their own model costs less."""

import math
from datetime import datetime, timedelta

from small_logs import facts, ledger, look, row, saved

import tenfold as tf
from tenfold.levers.batch_api import LEVER
from tenfold.levers.hours import Span, cheapest_starts

UUSD = 10**6
DAY = datetime(2026, 6, 1)
OFF_PEAK = {"batch_api": {"where": "true", "tier": "off_peak"}}
# Off-peak from 16:00 to 02:00 at half price; `flat` costs the same all day.
PRICES = """
provider = "deepseek"
[[price]]
model = "night"
hours = ["02:00-16:00"]
zone = "UTC"
input = 2
cache_read = 0.2
output = 10
source = "test"
checked = 2026-01-01
[[price]]
model = "night"
input = 1
cache_read = 0.1
output = 5
source = "test"
checked = 2026-01-01
[[price]]
model = "flat"
input = 2
cache_read = 0.2
output = 10
source = "test"
checked = 2026-01-01
"""


def at(hour, minute=0, **columns):
    when = DAY + timedelta(hours=hour, minutes=minute)
    return row(**{"provider": "deepseek", "model": "night", "ts": when, **columns})


def found_in(rows, slo=None, assume=OFF_PEAK, **options):
    return look(LEVER, ledger(rows, PRICES, **options), assume, slo)


def test_the_cheapest_start_within_a_day():
    span = [
        Span(DAY, DAY + timedelta(hours=2), (1,)),
        Span(DAY + timedelta(hours=2), DAY + timedelta(hours=16), (2,)),
        Span(DAY + timedelta(hours=16), DAY + timedelta(hours=24), (1,)),
        Span(DAY + timedelta(hours=24), DAY + timedelta(hours=48), (0,)),
    ]
    assert [
        ((a - DAY) / timedelta(hours=1), (b - DAY) / timedelta(hours=1), c) for a, b, c in cheapest_starts(span)
    ] == [
        (0, 2, DAY + timedelta(hours=24)),  # a day later, inclusive
        (2, 16, DAY + timedelta(hours=24)),
        (16, 24, DAY + timedelta(hours=24)),
        (24, 48, None),
    ]
    # before the dear time ends within a day there is nothing cheaper; from then on there is
    far = [Span(DAY, DAY + timedelta(hours=40), (2,)), Span(DAY + timedelta(hours=40), DAY + timedelta(hours=41), (1,))]
    assert list(cheapest_starts(far))[:2] == [
        (DAY, DAY + timedelta(hours=16), None),
        (DAY + timedelta(hours=16), DAY + timedelta(hours=40), DAY + timedelta(hours=40)),
    ]


def test_requests_move_to_the_cheaper_hours():
    rows = [
        at(3),  # waits 13 hours: half of 3,000
        at(15, 59, cache_read_tokens=500),  # waits a minute: half of 2,100
        at(16),
        at(1, 59),
        at(23, 59),
        at(3, model="flat"),
        at(3, is_stream=True),
    ]
    found = found_in(rows)
    assert (found.status, saved(found)) == ("ok", 1_500 * UUSD + 1_050 * UUSD)
    told = facts(found)
    assert (told["requests_moved"], told["cheapest_now"], told["one_price"], told["streamed"]) == (2, 3, 1, 1)
    assert "`tagging` from a queue that waits for the model's cheapest hour" in found.advice.first_action


def test_a_deadline_forbids_the_wait_that_is_longer():
    rows = [at(3), at(14), at(3, feature="live"), at(15, feature="live")]
    slo = tf.Slo(deadline_s=7_200, feature={"live": {"ttft_p95_ms": 500}})
    found = found_in(rows, slo)
    assert (facts(found)["requests_moved"], facts(found)["vetoed"]) == (1, 3)  # two hours are just allowed
    assert facts(found_in(rows, tf.Slo(deadline_s=7_199)))["vetoed"] == 3  # one waits an hour


def test_the_longest_wait():
    slo = tf.Slo(deadline_s=60.5, feature={"a'b": {"deadline_s": math.inf}, "c": {"ttft_p95_ms": 800}})
    assert slo.longest_wait(100) == "case when feature = 'a''b' then 100 when feature = 'c' then 0 else 60 end"
    assert tf.Slo().longest_wait(100) == "100"


def test_moving_past_the_end_of_window_and_log_drops_nothing():
    # it moves to the evening; the window ends at noon, and the bill of the window loses nothing
    until = datetime.fromisoformat("2026-06-01T12:00:00+00:00")
    made = ledger([at(3)], PRICES, until=until)
    plan = tf.plan(made, assume=OFF_PEAK)
    assert (plan.spend_pusd, plan.joint_all_pusd) == (3_000 * UUSD, 1_500 * UUSD)
    # cheaper only on the next day, which has no request of its own
    late = PRICES.replace('hours = ["02:00-16:00"]', 'hours = ["02:00-24:00"]')
    assert saved(look(LEVER, ledger([at(3)], late), OFF_PEAK)) == 1_500 * UUSD


def test_a_follow_up_before_the_answer_forbids_the_wait():
    rows = [at(3, session_id="s"), at(17, session_id="s"), at(3, session_id="t"), at(16, session_id="t")]
    told = facts(found_in(rows))
    # the answer comes at 16:00: a turn an hour later did not need it before, one at that moment did
    assert (told["requests_moved"], told["chained"]) == (1, 1)


def test_lost_reads_and_one_instant_of_prices():
    lost = {"batch_api": {"where": "true", "tier": "off_peak", "cache_hit_factor": 0}}
    # 500 x 2 + 500 x 0.2 + 1,000 = 2,100 now; 1,000 x 1 + 500 = 1,500 then
    assert saved(found_in([at(3, cache_read_tokens=500)], assume=lost)) == 600 * UUSD
    flat = found_in([at(3)], price_at=datetime.fromisoformat("2026-06-01T03:00:00+00:00"))
    assert (flat.status, facts(flat)["one_price"]) == ("nothing_eligible", 1)


def test_the_shipped_peak_hours():
    # DeepSeek's V4 since August 2026: twice the price at 01:00-04:00 and 06:00-10:00 UTC, Monday to Friday
    times = [
        datetime(2026, 9, 2, 2, 30),
        datetime(2026, 9, 2, 5, 30),
        datetime(2026, 9, 2, 7, 30),
        datetime(2026, 9, 5, 2),
    ]
    rows = [row(provider="deepseek", model="deepseek-v4-pro", ts=ts) for ts in times]  # the last is a Saturday
    found = look(LEVER, ledger(rows, tf.price_book()), OFF_PEAK)
    assert (facts(found)["requests_moved"], facts(found)["cheapest_now"]) == (2, 2)
    assert 2 * saved(found) == found.addressed_pusd
