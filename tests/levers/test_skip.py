"""A cache of whole answers, replayed: which requests a stored answer serves, what that saves and what it costs."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from small_logs import facts, ledger, look, row

import tenfold as tf
from tenfold.errors import AssumptionError
from tenfold.levers import LEVERS, batch_api
from tenfold.levers.assume import assumptions, described
from tenfold.levers.base import Look
from tenfold.levers.repricing import own_bill
from tenfold.levers.skip import LEVER

NOON = datetime(2026, 6, 1, 12)
ALL = {"where": "true"}
UUSD = 10**6  # one millionth of a USD, in pUSD
ONE = 3_000 * UUSD  # 1,000 x 2 + 100 x 10: what `row()` costs


def ask(at_s=0, prompt="p", **columns):
    """A request that takes one second, succeeds and ends by itself."""
    return row(
        **{
            "ts": NOON + timedelta(seconds=at_s),
            "prompt_hash": prompt,
            "params_hash": "q",
            "duration_ms": 1_000.0,
            "status": "success",
            "finish_reason": "stop",
            "org": "acme",
            **columns,
        }
    )


def found_in(rows, table=ALL, **options):
    return look(LEVER, ledger(rows, **options), {"skip": table})


def fates(rows, table=ALL):
    """The fate of each request, in the order given."""
    assumed = assumptions({"skip": table}, LEVERS).levers
    with ledger(rows).session() as session:
        judged = LEVER.judge(own_bill(session, (LEVER,), assumed, tf.Slo()), assumed["skip"])
        assert not isinstance(judged, Look), judged.reason
        return session.engine.fetch(f"select fate from {judged.view} order by rid")["fate"].to_list()


def hits(rows, table=ALL):
    """The places of the requests that go."""
    return [place for place, fate in enumerate(fates(rows, table)) if fate == "touched"]


def test_a_hit_saves_what_it_really_cost():
    # 1,000 of which 500 cached: 500 x 2 + 500 x 0.2 + 1,000 = 2,100
    found = found_in([ask(), ask(10, cache_read_tokens=500), ask(20, "other")])
    assert (found.status, found.reason, found.label, found.applies) == ("ok", "", "replayed", True)
    assert found.addressed_pusd == 8_100 * UUSD  # all that it may answer; it removes 2,100 of it
    told = facts(found)
    assert (told["requests_in_where"], told["hits"], told["stored"]) == (3, 1, 2)
    assert told["cost_removed_usd"] == "0.0021"
    # one request in three, but 2,100 of 8,100 of the spend
    assert (told["hit_share_of_requests"], told["removed_share_of_spend"]) == ("0.3333", "0.2593")


def test_the_time_to_live_is_counted_from_when_the_answer_is_there():
    rows = [
        ask(0, "ends"), ask(1, "ends"), ask(3_601, "ends"),  # there at 1, served to 3,601 inclusive
        ask(0, "late"), ask(3_601.000001, "late"), ask(7_202.000001, "late"),  # one us late: paid, and kept anew
        ask(0, "renew"), ask(3_000, "renew"), ask(4_000, "renew"),  # a hit renews nothing
        ask(0, "running"), ask(0.999999, "running"), ask(3_601.5, "running"),  # the second's answer replaces the first
        ask(0, "same"), ask(0, "same", duration_ms=0.0),  # begun at one instant: neither has the other's answer
        ask(0, "tie", duration_ms=1_000.0005), ask(1, "tie"),  # half a microsecond to the even one: there at 1
        ask(0, "odd", duration_ms=1_000.0015), ask(1.000001, "odd"),  # and there at 1.000002
    ]  # fmt: skip
    assert hits(rows) == [1, 2, 5, 7, 11, 15]


def test_a_stated_time_to_live():
    rows = [ask(0), ask(60.9), ask(61), ask(61.000001)]
    assert hits(rows, {**ALL, "ttl_s": 60}) == [1, 2]


def test_only_whole_answers_that_succeeded_are_kept():
    bad = [
        {"finish_reason": "length"},
        {"finish_reason": None},
        {"status": "error"},
        {"status": "incomplete"},
        {"status": None},
        {"duration_ms": None},
        {"duration_ms": -1.0},
    ]
    rows = [one for n, more in enumerate(bad) for one in (ask(0, f"p{n}", **more), ask(10, f"p{n}"), ask(20, f"p{n}"))]
    # the second is a miss whose answer the third gets
    assert hits(rows) == [3 * n + 2 for n in range(len(bad))]


def test_what_makes_requests_equal():
    differing = [
        {"org": "other"},
        {"org": None},
        {"project": "x"},
        {"params_hash": "r"},
        {"provider": "azure"},
        {"model": "plain"},
        {"prompt_hash": "p2"},
        {"prompt_hash": None},
        {"params_hash": None},
        {"ts": None},
        {"is_billable": False},
        {"gateway_cache_hit": True},
    ]
    same = [{"service_tier": "batch"}, {"feature": None}, {"user_id": "u"}, {"input_tokens": 999}]
    rows = [ask(0), *(ask(10 + n, **more) for n, more in enumerate(differing + same))]
    assert hits(rows) == list(range(1 + len(differing), 1 + len(differing) + len(same)))
    told = fates(rows)
    assert told[8:13] == ["no_key", "no_key", "no_key", "not_billed", "not_billed"]
    # NULL in a column of the scope is a value of its own
    assert hits([ask(0, org=None), ask(10, org=None), ask(20)]) == [1]


def test_the_scope():
    rows = [ask(0, user_id="a"), ask(10, user_id="b"), ask(20, user_id="a", org="other")]
    assert hits(rows, {**ALL, "scope": ["user_id"]}) == [2]
    assert hits(rows, {**ALL, "scope": []}) == [1, 2]
    found = found_in(rows, {**ALL, "scope": ["org", "project"]})  # stated, and no request has a project
    assert (found.status, found.applies) == ("not_measurable", False)
    assert "no billed request of this log has project: leave it out of [skip] scope" in found.reason
    with pytest.raises(AssumptionError, match=r'scope names no column of text of requests: "usr_id".*"user_id"'):
        found_in(rows, {**ALL, "scope": ["usr_id"]})


def test_where_admission_and_rule():
    rows = [
        ask(0, "a"), ask(10, "a", feature="chat"), ask(20, "a"),
        ask(0, "b", user_id="no"), ask(10, "b"), ask(20, "b"),
        ask(0, "c", input_tokens=5), ask(10, "c", input_tokens=5),
    ]  # fmt: skip
    assert hits(rows, {"where": "feature = 'tagging'"}) == [2, 4, 5, 7]
    # the answer to `no` may not be kept: the next one's is; NULL is not admitted
    assert hits(rows, {**ALL, "admit": "user_id is null"}) == [1, 2, 5, 7]
    assert hits(rows, {**ALL, "admit": "user_id <> 'no'"}) == []
    # what the rule names needs no model, stores nothing and is no hit
    table = {**ALL, "rule": "input_tokens < 10"}
    found = found_in(rows, table)
    assert (facts(found)["hits"], facts(found)["rule_matches"]) == (4, 2)
    assert found.addressed_pusd == 6 * ONE + 2 * 1_010 * UUSD
    with pytest.raises(AssumptionError, match=r'\[skip\] rule: requests has no column "input_token"'):
        found_in(rows, {**ALL, "rule": "input_token < 10"})
    with pytest.raises(AssumptionError, match=r"\[skip\] admit cannot be evaluated on this log"):
        found_in(rows, {**ALL, "admit": "cast(feature as integer) = 1"})


def test_capacity_takes_the_least_recently_used():
    rows = [ask(0, "a"), ask(10, "b"), ask(20, "a"), ask(30, "c"), ask(40, "a"), ask(50, "b")]
    assert hits(rows) == [2, 4, 5]
    # two answers: c takes the place of b, as a was read since
    assert hits(rows, {**ALL, "capacity": 2}) == [2, 4]
    assert hits(rows, {**ALL, "capacity": 1}) == []
    # what has expired takes no place: b's went at 3,611
    rows = [ask(0, "a"), ask(10, "b"), ask(3_650, "c"), ask(3_660, "d"), ask(3_670, "c"), ask(3_680, "d")]
    assert hits(rows, {**ALL, "capacity": 2}) == [4, 5]


def test_duplicates_at_once():
    rows = [ask(0), ask(0.5), ask(0.9), ask(0, "cut", finish_reason="length"), ask(0.5, "cut")]
    told = facts(found_in(rows))
    assert (told["hits"], told["concurrent_duplicates"]) == (0, 3)
    # whoever waits for the first shares its answer, where that will be kept
    told = facts(found_in(rows, {**ALL, "singleflight": True}))
    assert (told["hits"], told["concurrent_duplicates"]) == (2, 1)


@pytest.mark.full
def test_a_hit_without_a_price_saves_nothing_and_lookups_are_paid_all_the_same():
    rows = [
        ask(0),
        ask(10),
        ask(20, "u", model="unheard-of"),
        ask(30, "u", model="unheard-of"),
        ask(0, prompt_hash=None),
    ]
    assert fates(rows) == ["miss", "touched", "miss", "unpriced", "no_key"]
    plan = tf.plan(ledger(rows), assume={"skip": {**ALL, "lookup_usd": Decimal("0.000007")}}, levers=(LEVER,))
    assert plan.estimates[0].alone_pusd == ONE - 5 * 7 * UUSD


@pytest.mark.full
def test_rule_and_classifier_fees():
    rows = [ask(0, feature="faq"), ask(10, feature="faq"), ask(20, "x", input_tokens=5), ask(30, "y", feature="chat")]
    table = {
        "where": "feature <> 'chat'",
        "rule": "input_tokens < 10",
        "classifier_usd": Decimal("0.000011"),
        "lookup_usd": Decimal("0.000003"),
    }
    plan = tf.plan(ledger(rows), assume={"skip": table}, levers=(LEVER,))
    # 3,000 for the hit, 5 x 2 + 1,000 for the rule's; both fees on each of the three, the rule's own too
    assert plan.estimates[0].alone_pusd == ONE + 1_010 * UUSD - 3 * 14 * UUSD
    assert plan.estimates[0].addressed_pusd == 2 * ONE + 1_010 * UUSD
    # without a rule there is no classifier to pay
    del table["rule"]
    assert facts(found_in(rows, table))["fees_usd"] == "0.000009"


@pytest.mark.full
def test_a_cache_that_costs_more_than_it_saves_is_in_no_plan():
    rows = [ask(n, f"p{n}") for n in range(10)] + [ask(100, "p0")]
    plan = tf.plan(ledger(rows), assume={"skip": {**ALL, "lookup_usd": Decimal("0.001")}}, levers=(LEVER,))
    estimate = plan.estimates[0]
    assert (estimate.status, estimate.alone_pusd) == ("ok", ONE - 11 * 1_000 * UUSD)
    assert plan.levers == ()
    assert "Hold back `tagging` (lookups and classifier cost $0.01 more than they save)" in estimate.advice.first_action


def test_the_rule_alone_is_measurable_without_hashes():
    rows = [ask(0, prompt_hash=None), ask(10, prompt_hash=None, input_tokens=5)]
    bare = found_in(rows)
    assert (bare.status, bare.applies, bare.addressed_pusd) == ("not_measurable", False, None)
    assert "no billed request of this log has prompt_hash" in bare.reason
    found = found_in(rows, {**ALL, "rule": "input_tokens < 10"})
    assert (found.status, found.label, found.addressed_pusd) == ("ok", "modelled", ONE + 1_010 * UUSD)
    assert "prompt_hash" in facts(found)["cache_not_replayed"]


@pytest.mark.full
@pytest.mark.parametrize("column", ["params_hash", "ts", "duration_ms", "status", "finish_reason"])
def test_what_the_log_must_have(column):
    found = found_in([ask(0, **{column: None}), ask(10, **{column: None})])
    assert (found.status, found.applies) == ("not_measurable", False)
    assert column in found.reason


def test_without_a_where_it_is_a_ceiling():
    rows = [ask(0), ask(10)]
    found = found_in(rows, {"ttl_s": 3_600})
    assert (found.status, found.label, found.applies, found.addressed_pusd) == (
        "no_assumption",
        "ceiling",
        True,
        2 * ONE,
    )
    assert "Ask the owner of `tagging`" in found.advice.first_action
    plan = tf.plan(ledger(rows), levers=(LEVER,))
    assert (plan.levers, plan.joint_all_pusd, plan.estimates[0].alone_pusd) == ((), 0, ONE)


def test_nothing_that_repeats():
    found = found_in([ask(0, "a"), ask(10, "b")])
    assert (found.status, found.applies) == ("nothing_eligible", False)
    assert "of 2 requests in its where, none can go; 2 are requests that no stored answer" in found.reason
    found = found_in([ask(0)], {"where": "feature = 'taging'"})
    assert 'Did you mean "tagging"?' in found.reason


def test_answers_that_differ_hold_a_feature_back():
    rows = [ask(0, "a", response_hash="1"), *(ask(n, "a", response_hash="12"[n % 2]) for n in range(10, 14))]
    rows += [ask(0, "b", feature="faq", response_hash="1"), ask(10, "b", feature="faq", response_hash="1")]
    rows += [ask(0, "c", feature="faq"), ask(10, "c", feature="faq", response_hash="1")]  # not known of both
    found = found_in(rows)
    assert facts(found)["answer_instability"] == "0.4000"  # two of the five known pairs
    first = found.advice.first_action
    assert first.startswith(
        "Turn the response cache on for `faq` first, with a time to live of 3,600 s: 2 of 4 requests"
    )
    assert "Hold back `tagging` (50 % of its repeated requests had another answer)" in first
    assert "every second user of `faq`" in found.advice.verify
    assert "off for `faq`" in found.advice.undo
    told = facts(found)
    assert (told["net of fees of tagging"], told["net of fees of faq"]) == ("0.012", "0.006")
    assert (told["removed of tagging"], told["removed of faq"]) == (4, 2)


@pytest.mark.full
def test_every_default_is_told():
    told = {one["name"]: one for one in described(LEVER, assumptions(None, LEVERS).levers["skip"])}
    assert (told["ttl_s"]["value"], told["scope"]["value"]) == (3_600, ("org", "project"))
    assert not any(one["stated"] for one in told.values())
    assert LEVER.rule_of_thumb.startswith("no bound: ")


@pytest.mark.full
def test_with_batch_a_removed_request_is_not_also_batched():
    rows = [ask(0), ask(10), ask(20, "x", is_stream=True), ask(30, "x", is_stream=True), ask(40, "y")]
    assume = {"skip": {**ALL, "lookup_usd": Decimal("0.000001")}, "batch_api": ALL}
    plan = tf.plan(ledger(rows), assume=assume, levers=(LEVER, batch_api.LEVER))
    of = {one.name: one for one in plan.estimates}
    # skip: places 1 and 3, less five lookups; batch: half of places 0, 1 and 4
    skip, batch = 2 * ONE - 5 * UUSD, 3 * ONE // 2
    assert (of["skip"].alone_pusd, of["batch_api"].alone_pusd) == (skip, batch)
    joint = skip + batch - ONE // 2  # the half of place 1 is saved once
    assert plan.joint_all_pusd == joint
    assert (of["skip"].last_pusd, of["batch_api"].last_pusd) == (joint - batch, joint - skip)
    assert of["skip"].shapley_pusd + of["batch_api"].shapley_pusd == joint


@pytest.mark.full
def test_a_window_starts_cold():
    rows = [ask(0), ask(60), ask(120)]
    since = datetime.fromisoformat("2026-06-01T12:00:30+00:00")
    assert facts(found_in(rows, since=since))["hits"] == 1


@pytest.mark.full
def test_an_answer_that_took_an_hour():
    # more microseconds than 32 bits hold; stored at 2,200 s, so the second is early and the third is served
    rows = [ask(0, duration_ms=2_200_000.0), ask(2_199, duration_ms=1.0), ask(2_201)]
    assert hits(rows) == [2]
    for never in (float("nan"), float("inf"), 1e18, -1.0):
        assert hits([ask(0, duration_ms=never), ask(10)]) == []
