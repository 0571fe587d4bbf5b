"""The slow levers worked by hand, where the planted logs do not reach."""

from datetime import datetime, timedelta

import pytest
from oracle_book import read_book
from oracle_levers import Portfolio, read_rules
from oracle_levers.skipping import hits
from planted.base import CACHING, GPT, HAIKU, SONNET, Planted, is_one_of, prices
from planted.caches import blocks

BOOK = read_book(prices().values())
RULES = read_rules(CACHING)
NOON = datetime(2026, 6, 1, 12)
HERE = is_one_of("feature", "here")


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def asked(*moments, **table):
    """Which of some (second, prompt) are hits; each runs a second."""
    log = Planted()
    for second, prompt in moments:
        log.add(GPT, at(second), 100, 10, prompt_hash=prompt, params_hash="", duration_ms=1_000.0)
    return sorted(hits(list(enumerate(log.rows)), table))


def slow(log, scenario="mid", **assume):
    return Portfolio(BOOK, RULES, log.rows, assume, scenario=scenario)


@pytest.mark.parametrize(
    ("capacity", "found"),
    [
        (0, []),
        (1, [4]),  # only what was stored last: b after 20, c after 40
        (2, [2, 4]),  # a is read at 20, so c takes the place of b at 31
        (3, [2, 4, 5]),
    ],
)
def test_least_recently_read_or_stored_goes_first(capacity, found):
    moments = [(0, "a"), (10, "b"), (20, "a"), (30, "c"), (40, "c"), (50, "b")]
    assert asked(*moments, capacity=capacity) == found


def test_a_running_answer_serves_only_where_declared():
    moments = [(0, "a"), (0.5, "a"), (0.75, "a"), (1, "a")]
    assert asked(*moments) == [3]  # stored at 1, and read at 1
    assert asked(*moments, singleflight=True) == [1, 2, 3]


def test_a_time_to_live_is_from_the_end_of_the_answer_and_not_renewed():
    assert asked((0, "a"), (11, "a"), (11.000001, "a"), ttl_s=10) == [1]


def test_a_rule_takes_requests_off_before_the_cache_and_all_pay():
    log = Planted()
    for second in (0, 10, 20):
        log.add(GPT, at(second), 1_000, 0, feature="here", prompt_hash="p", params_hash="", duration_ms=1_000.0)
    log.rows[0]["team"] = "trivial"
    table = {"where": HERE, "rule": is_one_of("team", "trivial"), "classifier_usd": 0.00001, "lookup_usd": 0.000002}
    # The first goes by the rule and stores nothing, the second is kept, the third is a hit: 2 x 1,000 x 1.25 USD a
    # million saved; three fees of 12 millionths.
    assert slow(log, skip=table).alone("skip") == 2 * 1_250_000_000 - 3 * 12_000_000


def session(*turns):
    """Turns of one session, 60 s apart: 1,000 tokens in, so many read, no output."""
    log = Planted()
    for number, (team, read) in enumerate(turns):
        log.add(SONNET, at(60 * number), 1_000, 0, feature="here", session_id="s", team=team, cache_read_tokens=read)
    return log


def route(log, **table):
    scores = {"easy": 1, "hard": 0}
    evals = [
        {"request_id": row["request_id"], "model": HAIKU[1], "score": scores[row["team"]]}
        for row in log.rows
        if row["team"] in scores
    ]
    return {"where": HERE, "to_model": HAIKU[1], "min_quality": 1, "output_ratio": 1, "evals": evals, **table}


@pytest.mark.parametrize(
    ("cache", "saved"),
    [
        # sonnet 3 and 0.30, haiku 1 and 0.10 USD a million. The first turn is routed: 1,000 x 2. The second stays and
        # reads 600 that are on haiku now: 600 x 2.70 lost. The third is routed and its 800 are on sonnet: 200 x 3 +
        # 800 x 0.30 = 840 before, 1,000 after, 160 lost. The fourth follows it: 100 x 2 + 900 x 0.20 = 380 saved.
        ("follow", 2_000 - 1_620 - 160 + 380),
        ("keep", 2_000 + (200 * 2_000 + 800 * 200) // 1_000 + 380),
        ("lose", 2_000 - 160 + (100 * 3_000 + 900 * 300) // 1_000 - 1_000),
    ],
)
def test_caches_of_a_session_that_changes_models(cache, saved):
    log = session(("easy", 0), ("hard", 600), ("easy", 800), ("easy", 900))
    assert slow(log, route=route(log, cache=cache)).alone("route") == saved * 1_000_000


def test_a_sticky_session_goes_as_a_whole_or_not():
    log = session(("easy", 0), ("hard", 0))
    assert slow(log, route=route(log, sticky=True)).alone("route") == 0
    log.rows[1]["team"] = "easy"
    assert slow(log, route=route(log, sticky=True)).alone("route") == 2 * 2_000_000_000


def test_a_student_has_its_own_rates_and_charges():
    log = Planted()
    for day in range(10):
        log.add(SONNET, at(86_400 * day), 1_000_000, 0, feature="here", cache_read_tokens=500_000)
    table = {
        "where": HERE,
        "student": {"input": "0.5", "output": "1"},
        "training_usd": 9,
        "labels": 2,
        "hosting_usd_per_hour": 0.01,
        "retrain_days": 90,
    }
    # Before 1.50 + 0.15 each; a student without cached input 0.50. Nine days of hosting, 216 h; a ninth of training
    # (10 of 90 days), for which two answers are made at 1.65.
    usd = 10 * (1.65 - 0.5) - 2.16 - (9 + 2 * 1.65) / 9
    assert slow(log, distill=table).alone("distill") == pytest.approx(usd * 1e12, abs=1)


def test_shared_traffic_goes_to_the_larger_saving_by_feature():
    log = Planted()
    for feature, tokens, output in (("in", 10_000, 0), ("out", 0, 10_000), ("own", 10_000, 0)):
        log.add(SONNET, NOON, tokens, output, feature=feature, team="easy")
    student = {"input": "0.5", "output": "12"}  # haiku is 1 and 5: dearer to read, cheaper to write
    assume = {
        "route": route(log, where=is_one_of("feature", "in", "out")),
        "distill": {"where": is_one_of("feature", "in", "out", "own"), "student": student},
    }
    found = slow(log, **assume)
    assert found.ceded() == {"route": frozenset({0}), "distill": frozenset({1})}
    assert (found.alone("route"), found.alone("distill")) == (120_000_000_000, 80_000_000_000)
    assert found.value(["route"]) == 100_000_000_000  # out alone: 10,000 x (15 - 5)
    assert found.value(["distill"]) == 50_000_000_000  # in and own: 2 x 10,000 x (3 - 0.5)
    assert found.value(["route", "distill"]) == 150_000_000_000
    assert not found.excluded()


def test_system_prompts_are_written_and_read_up_to_their_breakpoint():
    log = Planted()
    for number in range(2):
        log.add(SONNET, at(60 * number), 5_000, 0, feature="here", **blocks("same", 5_000))
    table = {"where": HERE, "policy": "system", "system_tokens": 2_000}
    # 15 blocks, 1,920 tokens: written at 3.75 once, read at 0.30 once, instead of 3.
    assert slow(log, prefix_cache=table).alone("prefix_cache") == 1_920 * (2_700_000 - 750_000)
    assert slow(log, prefix_cache={**table, "system_tokens": 1_100}).alone("prefix_cache") == 1_024 * 1_950_000
    assert slow(log, prefix_cache={**table, "system_tokens": 1_000}).alone("prefix_cache") == 0  # below 1,024


def test_turns_stand_in_for_hashes():
    log = Planted()
    for number, tokens in enumerate((2_000, 3_000, 2_500)):  # the third is shorter: another prompt
        log.add(GPT, at(60 * number), tokens, 0, feature="here", session_id="s")
    # 2,000 is 15 increments of 128, so 1,920 are read at 0.125 instead of 1.25.
    table = {"where": HERE, "policy": "history"}
    assert slow(log, prefix_cache=table).alone("prefix_cache") == 1_920 * 1_125_000


def test_the_high_scenario_takes_the_longer_lifetime_that_happens():
    log = Planted()
    for number in range(2):
        log.add(GPT, at(3_600 * number), 1_280, 0, feature="here", **blocks("same", 1_280))
    found = {
        scenario: slow(log, scenario, prefix_cache={"where": HERE, "policy": "history"}).alone("prefix_cache")
        for scenario in ("low", "mid", "high")
    }
    assert found == {"low": 0, "mid": 0, "high": 1_280 * 1_125_000}


def test_parts_are_rounded_one_by_one_to_even():
    log = Planted()
    log.add(SONNET, NOON, 7, 5, feature="here", cache_read_tokens=3, reasoning_tokens=5, finish_reason=None)
    found = slow(log, trim={"where": HERE, "input_remove_ratio": 0.5, "output_ratio": 0.5}).apply(["trim"])
    made = found.versions[0].request
    # 4 uncached lose 2; 3 read lose 1.5, rounded to 2; 5 out keep 2.5, rounded to 2.
    columns = ("input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens")
    assert [made[one] for one in columns] == [3, 1, 2, 2]


def test_an_expired_batch_request_is_paid_online():
    log = Planted()
    log.add(GPT, NOON, 1_000_000, 0, feature="here")
    table = {"where": HERE, "expiry_ratio": 0.1}
    assert slow(log, batch_api=table).alone("batch_api") == 562_500_000_000  # 0.625 USD less a tenth
