"""Another model for part of the traffic: its tokens, measured or assumed, and what becomes of caches."""

from datetime import timedelta

import pytest
from route_logs import NOON, PLAIN, PRICES, UUSD, alone, asked, found_in, planned
from small_logs import facts, ledger, look, saved

import tenfold as tf
from tenfold.levers import batch_api
from tenfold.levers.route import LEVER


def test_tokens_are_scaled_by_class_half_to_even(scored):
    # at 0.5: text 3 -> 1.5 -> 2, reads 5 -> 2.5 -> 2, output 7 -> 3.5 -> 4: 2 x 0.5 + 2 x 0.05 + 4 x 2 = 9.1
    one = asked(0, input_tokens=8, cache_read_tokens=5, output_tokens=7, session_id="s")
    table = {"evals": scored((0, 1)), "token_ratio": 0.5, "output_ratio": 0.5}
    now = 3 * 2_000_000 + 5 * 200_000 + 70 * UUSD
    assert saved(found_in([one], table)) == now - 9_100_000


@pytest.mark.full
def test_measured_tokens_replace_the_ratios(scored):
    # 1,500 in for 1,000, so 400 reads are 600; 30 out: 900 x 0.5 + 600 x 0.05 + 60 = 540
    one = asked(0, cache_read_tokens=400, session_id="s")
    file = scored({"request_id": "r0", "score": 1, "input_tokens": 1_500, "output_tokens": 30})
    now = (600 * 2 + 80 + 1_000) * UUSD
    assert saved(found_in([one], {"evals": file, "token_ratio": 9, "output_ratio": 9})) == now - 540 * UUSD


@pytest.mark.full
def test_a_measured_cost_stands_and_no_later_lever_changes_it(scored):
    file = scored({"request_id": "r0", "score": 1, "cost_usd": 0.001}, (1, 1))
    rows, batch = [asked(0), asked(1)], {"where": "true"}
    plan = planned(rows, {"evals": file}, levers=(LEVER, batch_api.LEVER), batch_api=batch)
    assert plan.joint_all_pusd == (2_000 + 3_000 - 350) * UUSD


@pytest.mark.full
def test_routed_then_batched_at_the_other_models_batch_price(scored):
    plan = planned([asked(0), asked(1)], {"evals": scored((0, 1))}, levers=(LEVER, batch_api.LEVER),
                   batch_api={"where": "true"})  # fmt: skip
    # 3,000 -> 700 -> 350, and 3,000 -> 1,500
    assert plan.joint_all_pusd == (6_000 - 350 - 1_500) * UUSD
    last = {one.name: one.last_pusd for one in plan.estimates}
    assert last == {"route": (1_500 - 350) * UUSD, "batch_api": (700 - 350 + 1_500) * UUSD}


@pytest.mark.parametrize(
    ("model", "cache", "then"),
    [
        # no price for writes there: uncached
        pytest.param("small", "keep", 300 * 0.5 + 400 * 0.05 + 300 * 0.5, marks=pytest.mark.full),
        pytest.param("small", "lose", 1_000 * 0.5, marks=pytest.mark.full),
        pytest.param("tiny", "keep", 1_000 * 0.5, marks=pytest.mark.full),
        ("long", "keep", 300 * 0.5 + 400 * 0.05 + 300 * 0.6),  # long writes become default ones
        pytest.param("long", "lose", 1_000 * 0.5, marks=pytest.mark.full),
    ],
)
def test_what_the_other_model_does_with_cached_tokens(scored, model, cache, then):
    one = asked(0, cache_read_tokens=400, cache_write_tokens=300, cache_write_long_tokens=100)
    file = scored({"request_id": "r0", "score": 1, "model": model})
    now = 300 * 2 + 400 * 0.2 + 200 * 2.5 + 100 * 4 + 1_000
    found = found_in([one], {"evals": file, "to_model": model, "cache": cache})
    assert saved(found) == round((now - then - 200) * UUSD)


def turns(scores, *, hours=1, **columns):
    return [
        asked(n, ts=NOON + timedelta(hours=n * hours), session_id="s", cache_read_tokens=1_000, **columns)
        for n in range(len(scores))
    ]


@pytest.mark.parametrize(
    ("scores", "hours", "reads_lost"),
    [
        pytest.param((1, 1, 1), 1, 0, marks=pytest.mark.full),
        # the second stays at big and finds no cache; the third does
        pytest.param((1, 0, 0), 1, 1, marks=pytest.mark.full),
        ((1, 0, 1), 1, 2),
        pytest.param((0, 1, 1), 1, 1, marks=pytest.mark.full),
        pytest.param((1, 0, 1), 25, 0, marks=pytest.mark.full),  # a day later nothing is followed
    ],
)
def test_caches_follow_the_session(scored, scores, hours, reads_lost):
    file = scored(*enumerate(scores))
    (one,) = planned(turns(scores, hours=hours), {"evals": file}).estimates
    assert facts(one).get("cache_read_tokens_lost", 0) == 1_000 * reads_lost
    # reads: 200 at big, 50 at small; uncached: 2,000 and 500
    lost = [n for n in range(1, 3) if hours == 1 and scores[n] != scores[n - 1]]
    then = [(500 if n in lost else 50) + 200 if scores[n] else (2_000 if n in lost else 200) + 1_000 for n in range(3)]
    assert one.alone_pusd == (3_600 - sum(then)) * UUSD


@pytest.mark.full
def test_caches_can_be_stated_to_be_kept(scored):
    assert alone(turns((1, 0, 1)), {"evals": scored((0, 1), (1, 0), (2, 1)), "cache": "keep"}) == 2 * 950 * UUSD


@pytest.mark.full
def test_a_forfeited_cache_outside_of_where_is_a_cost_of_the_lever(scored):
    rows = turns((1, 0))
    rows[1]["feature"] = "other"
    found = found_in(rows, {"evals": scored((0, 1), (1, 1))})
    assert (facts(found)["requests_in_where"], facts(found)["forfeited"]) == (1, 1)
    assert saved(found) == (1_200 - 250 - 1_800) * UUSD


@pytest.mark.full
def test_without_a_session_reads_are_kept_but_not_in_the_worst_case(scored):
    rows = [asked(n, ts=NOON + timedelta(days=n), cache_read_tokens=1_000) for n in range(12)]
    (one,) = planned(rows, {"evals": scored(*((n, 1) for n in range(12)))}).estimates
    assert one.saving == (12 * (1_200 - 700) * UUSD, 12 * 950 * UUSD, 12 * 950 * UUSD)


@pytest.mark.full
def test_media_stay_as_they_are(scored):
    text = PRICES.replace("input = 2\ncache_read", "input_audio = 20\ninput = 2\ncache_read").replace(
        "input = 0.5\ncache_read = 0.05\noutput", "input_audio = 5\ninput = 0.5\ncache_read = 0.05\noutput"
    )
    one = asked(0, input_audio_tokens=400, cache_read_audio_tokens=0)
    table = {**PLAIN, "token_ratio": 2, "evals": scored((0, 1))}
    found = look(LEVER, ledger([one], text), {"route": table})
    # 600 text become 1,200, 400 audio stay: 600 + 2,000 + 200
    assert saved(found) == (1_200 + 8_000 + 1_000 - 600 - 2_000 - 200) * UUSD


@pytest.mark.full
def test_what_prices_alone_make_of_it_is_told_beside(scored):
    file = scored({"request_id": "r0", "score": 1, "input_tokens": 2_000, "output_tokens": 500}, (1, 0))
    found = found_in([asked(0), asked(1)], {"evals": file, "router_usd": 0.000001})
    assert saved(found) == (3_000 - 2_000) * UUSD
    assert facts(found)["same_token_saving_usd"] == "0.002298"


def test_case_b130_another_models_tokens_are_a_range(scored):
    # B130: a what-if at the same token counts is a range with a declared ratio, never a point
    rows = [asked(n, ts=NOON + timedelta(days=n)) for n in range(12)]
    table = {"where": "true", "to_model": "small", "min_quality": 0.5, "evals": scored(*((n, 1) for n in range(12)))}
    plan = tf.plan(ledger(rows, PRICES), assume={"route": table}, levers=(LEVER,))
    (one,) = plan.estimates
    # 100 tokens of output become 150, 100, 70
    assert one.saving == tuple(12 * (3_000 - 500 - 2 * output) * UUSD for output in (150, 100, 70))
    told = {given["name"]: given for given in one.assumptions}
    assert (told["token_ratio"]["value"], told["token_ratio"]["conservative"]) == ("1", False)
    assert told["output_ratio"]["value"] == ["0.7", "1", "1.5"]
    assert told["output_ratio"]["source"].startswith("default: a wide range")
