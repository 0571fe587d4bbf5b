"""The batch API: who may wait, at which price, and what stands against the others."""

import math
from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import batch_saving, is_billed, read_book
from quick import few
from small_logs import book, facts, ledger, look, row, saved
from strategies import books_and_logs

import tenfold as tf
from tenfold.errors import AssumptionError
from tenfold.levers import LEVERS
from tenfold.levers.assume import assumptions, described
from tenfold.levers.batch_api import LEVER
from tenfold.levers.repricing import own_bill, tried
from tenfold.prices.words import canonical_tier

NOON = datetime(2026, 6, 1, 12)
ALL = {"batch_api": {"where": "true"}}
UUSD = 10**6  # one millionth of a USD, in pUSD


def found_in(rows, assume=ALL, slo=None, **options):
    return look(LEVER, ledger(rows, **options), assume, slo)


def saving(rows, assume=ALL, slo=None):
    return saved(found_in(rows, assume, slo))


def test_half_price():
    # 1,000 x 2 + 100 x 10 = 3,000 now; 1,000 x 1 + 100 x 5 = 1,500 in batch
    found = found_in([row()])
    assert (found.status, found.reason, found.label) == ("ok", "", "exact")
    assert found.addressed_pusd == 3_000 * UUSD
    assert saved(found) == 1_500 * UUSD


def test_cached_reads_stack_only_where_the_book_says_so():
    # stacks: 500 x 2 + 500 x 0.2 + 1,000 = 2,100 now; 500 x 1 + 500 x 0.1 + 500 = 1,050 in batch
    assert saving([row(cache_read_tokens=500)]) == 1_050 * UUSD
    # plain: all input is read at 0.2 in both tiers, so only the output gets cheaper: 100 x (10 - 5)
    assert saving([row(model="plain", cache_read_tokens=1_000)]) == 500 * UUSD


def test_shipped_stack_matrix():
    # 10,000 cached of 10,000 input, no output, in October 2026. Anthropic Sonnet 4.5: reads 0.30 -> 0.15 per million.
    # Gemini 2.5 Flash: cached tokens cost 0.03 in batch as online (the cache discount takes precedence): nothing saved.
    common = {"ts": datetime(2026, 10, 1), "input_tokens": 10_000, "cache_read_tokens": 10_000, "output_tokens": 0}
    rows = [
        row(provider="anthropic", model="claude-sonnet-4-5", feature="anthropic", **common),
        row(provider="google", model="gemini-2.5-flash", feature="google", **common),
    ]
    made = ledger(rows, tf.price_book())
    assert saved(look(LEVER, made, {"batch_api": {"where": "feature = 'anthropic'"}})) == 1_500 * UUSD
    google = look(LEVER, made, {"batch_api": {"where": "feature = 'google'"}})
    assert (saved(google), facts(google)["requests_moved"]) == (0, 1)


@pytest.mark.parametrize(
    ("reads", "factor", "kept"),
    few(1, [(500, "0.3", 150), (5, "0.5", 3), (1, "0.5", 1), (1, "0.49", 0), (3, "0.5", 2), (7, "0", 0), (7, "1", 7)]),
)
def test_lost_reads_become_uncached_input_at_the_batch_rate(reads, factor, kept):
    # The kept share is rounded half up; e.g. 500 reads at 0.3: (1,000 - 150) x 1 + 150 x 0.1 + 500.
    assume = {"batch_api": {"where": "true", "cache_hit_factor": Decimal(factor)}}
    found = found_in([row(cache_read_tokens=reads)], assume)
    now = (1_000 - reads) * 2 * UUSD + reads * UUSD // 5 + 1_000 * UUSD
    then = (1_000 - kept) * UUSD + kept * UUSD // 10 + 500 * UUSD
    assert saved(found) == now - then
    assert facts(found)["cache_read_tokens_kept"] == kept
    assert found.label == ("exact" if factor == "1" else "modelled")


@pytest.mark.full
def test_a_figure_that_rests_on_an_unstated_hope_is_not_exact():
    cached, plain = row(feature="a", cache_read_tokens=500), row(feature="b")
    factor = {"where": "true", "cache_hit_factor": 1}
    assert found_in([cached, plain]).label == "modelled"  # the default keeps every read: nobody said so
    assert found_in([cached, plain], {"batch_api": factor}).label == "exact"
    assert found_in([cached, plain], {"batch_api": {"where": "feature = 'b'"}}).label == "exact"  # no read is moved
    assert found_in([plain], {"batch_api": {**factor, "cache_hit_factor": 0.5}}).label == "exact"
    told = {one["name"]: one for one in described(LEVER, assumptions(ALL, LEVERS).levers["batch_api"])}
    source = told["cache_hit_factor"]["source"]
    assert source.startswith("default: optimistic: ")
    assert "0.30 to 0.98" in source
    assert told["cache_hit_factor"]["conservative"] is False


def test_losing_the_cache_can_cost_more_than_the_batch_saves():
    # 10,000 all read: 10,000 x 0.2 + 100 x 10 = 3,000 now; without the cache 10,000 x 1 + 500 = 10,500
    assert (
        saving(
            [row(input_tokens=10_000, cache_read_tokens=10_000)],
            {"batch_api": {"where": "true", "cache_hit_factor": 0}},
        )
        == -7_500 * UUSD
    )


def test_not_eligible():
    rows = [
        row(),
        row(is_stream=True),
        row(is_stream=None),
        row(service_tier="batch"),
        row(service_tier="priority"),
        row(is_billable=False),
        row(gateway_cache_hit=True),
        row(model="online"),  # has no batch price
        row(model="unheard-of"),
        row(output_tokens=None),
        row(ts=None),
    ]
    found = found_in(rows)
    assert saved(found) == 1_500 * UUSD  # the first one's alone
    counts = {name: n for name, n in facts(found).items() if not name.startswith(("cost_", "cache_"))}
    assert counts == {
        "requests_in_where": 11,
        "requests_moved": 1,
        "streamed": 1,
        "stream_unknown": 1,
        "other_tier": 2,
        "not_billed": 2,
        "no_price": 1,
        "unpriced": 3,
    }


def test_words_for_the_standard_tier():
    words = (None, "standard", "default", "auto", "on_demand")
    assert saving([row(service_tier=word) for word in words]) == 5 * 1_500 * UUSD


def test_a_turn_that_is_followed_up_within_a_day_cannot_wait():
    gaps = {
        "second": timedelta(seconds=1),
        "day": timedelta(hours=24),
        "more": timedelta(hours=24, microseconds=1),
        "none": timedelta(0),  # two calls at once: neither waits for the other
    }
    rows = [row(session_id=name, ts=NOON + after) for name, gap in gaps.items() for after in (timedelta(0), gap)]
    # the last turn of each may go, and the first one of `more`, and both of `none`
    found = facts(found_in(rows))
    assert (found["requests_moved"], found["chained"]) == (6, 2)


def test_the_last_turn_may_go_and_other_sessions_do_not_count():
    rows = [
        row(session_id="s", ts=NOON),
        row(session_id="s", ts=NOON + timedelta(minutes=1), is_stream=True),  # follows up the first, cannot go itself
        row(session_id="t", ts=NOON + timedelta(minutes=2)),
        row(session_id=None, ts=NOON + timedelta(minutes=3)),
    ]
    found = facts(found_in(rows))
    assert (found["requests_moved"], found["chained"], found["streamed"]) == (2, 1, 1)


def test_a_follow_up_outside_where_and_window_counts():
    rows = [
        row(session_id="s", ts=NOON),
        row(session_id="s", ts=NOON + timedelta(hours=13), feature="chat"),
    ]
    until = datetime.fromisoformat("2026-06-02T00:00:00+00:00")
    found = found_in(rows, {"batch_api": {"where": "feature = 'tagging'"}}, until=until)
    assert found.status == "nothing_eligible"
    assert facts(found)["chained"] == 1


def test_work_that_was_billed_twice_is_saved_once():
    rows = [
        row(request_id="a", attempt=0, status="timeout"),
        row(request_id="b", attempt=1, retry_of="a"),
        row(request_id="c", attempt=0, status="error", is_billable=False, input_tokens=None, output_tokens=None),
        row(request_id="d", attempt=1, retry_of="c"),  # the only attempt that was billed
        row(request_id="e", attempt=1, retry_of=None),
    ]
    found = facts(found_in(rows))
    assert (found["requests_moved"], found["retry"], found["not_billed"]) == (3, 1, 1)


@pytest.mark.full
def test_flex_takes_its_own_rates():
    # plain in flex: 1,000 x (2 - 1.5) + 100 x (10 - 7.5)
    flex = {"batch_api": {"where": "true", "tier": "flex"}}
    assert saving([row(model="plain")], flex) == 750 * UUSD
    found = found_in([row(model="plain", feature="chat"), row(model="online", feature="chat")], flex)
    assert found.advice.undo == "Send `chat` to the standard tier again; nothing else depends on it."
    assert [(one["why"], one["text"]) for one in found.left_out] == [
        ("no_price", "no price in tier flex: chat, 1 request, <$0.01")
    ]


def test_where_is_what_may_wait():
    rows = [row(feature="tagging"), row(feature="chat"), row(feature=None)]
    found = found_in(rows, {"batch_api": {"where": "feature = 'tagging'"}})
    assert saved(found) == 1_500 * UUSD
    assert facts(found)["requests_in_where"] == 1
    assert "`tagging`" in found.advice.first_action


def test_without_a_where_it_is_a_ceiling():
    for assume in (None, {"batch_api": {"tier": "batch"}}):  # a table without a where names no traffic either
        found = found_in([row(), row(is_stream=True)], assume)
        assert (found.status, found.label, found.applies) == ("no_assumption", "ceiling", True)
        assert saved(found) == 1_500 * UUSD
        assert "Ask the owner of `tagging`" in found.advice.first_action


@pytest.mark.parametrize("assume", [None, ALL])
def test_unknown_streaming_is_not_measurable(assume):
    found = found_in([row(is_stream=None), row(is_stream=None)], assume)
    assert found.status == "not_measurable"
    assert "is_stream" in found.reason
    assert "--set is_stream=false" in found.reason
    assert (found.addressed_pusd, found.applies) == (None, False)


def test_unknown_streaming_in_where_only():
    rows = [row(feature="a", is_stream=None), row(feature="b", is_stream=False)]
    found = found_in(rows, {"batch_api": {"where": "feature = 'a'"}})
    assert found.status == "not_measurable"
    assert "is_stream is NULL in all 1 requests" in found.reason
    assert found.reason.endswith("if none was streamed, say so when you load: tenfold load ... --set is_stream=false")


@pytest.mark.parametrize("where", ["feature = 'nothing'", "feature is null"])
def test_an_empty_where(where):
    found = found_in([row()], {"batch_api": {"where": where}})
    assert (found.status, found.applies, found.addressed_pusd) == ("nothing_eligible", False, 0)
    assert "its where matches none of the 1 billed requests" in found.reason
    assert found.advice.first_action == "Correct where of [batch_api], so that it matches requests."


@pytest.mark.parametrize(
    ("where", "hint"),
    few(
        1,
        [
            ("feature = 'taging'", 'no request has feature "taging". Did you mean "tagging"?'),
            ("'taging' = requests.feature", 'no request has feature "taging". Did you mean "tagging"?'),
            ("feature in ('chat', 'taging') and team = 'x'", 'no request has feature "chat".; no request has feature'),
            ("starts_with(feature, 'x')", "none of the 2 billed requests"),
        ],
    ),
)
def test_an_empty_where_names_what_is_near(where, hint):
    found = found_in([row(), row()], {"batch_api": {"where": where}})
    assert found.status == "nothing_eligible"
    assert hint in found.reason


def test_a_where_that_this_log_does_not_survive():
    with pytest.raises(AssumptionError, match=r"\[batch_api\] where cannot be evaluated on this log .*'tagging'"):
        found_in([row()], {"batch_api": {"where": "cast(feature as integer) = 1"}})


def test_slo_vetoes_request_by_request():
    rows = [row(feature="tagging"), row(feature="invoices"), row(feature="chat")]
    slo = tf.Slo(
        ttft_p95_ms=800,
        feature={"tagging": {"ttft_p95_ms": math.inf}, "invoices": {"ttft_p95_ms": math.inf, "deadline_s": 3_600}},
    )
    found = found_in(rows, ALL, slo)
    assert saved(found) == 1_500 * UUSD
    assert (facts(found)["requests_moved"], facts(found)["vetoed"]) == (1, 2)
    # 1,000 x 2 + 100 x 10 = 3,000 millionths each; the same cost: by name
    assert [one["text"] for one in found.left_out] == [
        "left out by the service levels: chat, 1 request, <$0.01",
        "left out by the service levels: invoices, 1 request, <$0.01",
    ]
    assert found.left_out[0] == {"why": "vetoed", "feature": "chat", "requests": 1, "cost_usd": "0.003"} | {
        "text": found.left_out[0]["text"]
    }
    every = found_in(rows, ALL, tf.Slo(deadline_s=86_399))
    assert len(every.left_out) == 3
    assert (every.status, every.applies) == ("vetoed", False)
    assert every.advice.first_action == "Nothing to do first: the service levels let none of these requests wait."


def test_flex_answers_at_once_but_promises_no_first_token():
    flex = {"batch_api": {"where": "true", "tier": "flex"}}
    assert saving([row(model="plain")], flex, tf.Slo(deadline_s=60)) == 750 * UUSD
    assert found_in([row(model="plain")], flex, tf.Slo(ttft_p95_ms=800)).status == "vetoed"


def eligible(request):
    is_standard = canonical_tier(request.get("service_tier")) == "standard"
    return is_standard and request.get("is_stream") is False and is_billed(request)


def hold_equal(drawn, factor):
    text, rows = drawn
    naive = [{**one, "ts": one["ts"] and one["ts"].replace(tzinfo=None)} for one in rows]
    assume = {"batch_api": {"where": "true", "cache_hit_factor": Decimal(factor)}}
    found = found_in(naive, assume, prices=book(text))
    expected = batch_saving(read_book([text]), rows, eligible, Decimal(factor))
    if found.status == "not_measurable":
        assert expected == 0
    else:
        assert saved(found) == expected <= found.addressed_pusd


@settings(max_examples=4, deadline=None)
@given(books_and_logs(max_size=40), st.sampled_from(("0", "0.3", "0.5", "0.999999", "1")))
def test_equals_the_oracle(drawn, factor):
    hold_equal(drawn, factor)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(books_and_logs(max_size=40), st.sampled_from(("0", "0.3", "0.5", "0.999999", "1")))
def test_equals_the_oracle_at_length(drawn, factor):
    hold_equal(drawn, factor)


def versions(rows, assume=ALL):
    """The requests as they are and as the lever leaves them, by place in the log, with the key's tier."""
    assumed = assumptions(assume, LEVERS).levers
    with ledger(rows).session() as session:
        bill = own_bill(session, (LEVER,), assumed, tf.Slo())
        judged = LEVER.judge(bill, assumed["batch_api"])
        tried(LEVER, bill, judged, assumed["batch_api"], "after")
        names = {key: tier for key, _, _, tier, _ in session.keys}
        read = "select * from {} order by rid"
        found = [session.engine.fetch(read.format(view)) for view in ("lever_base", "after")]
    return [one.with_columns(tier=pl.col("price_key").replace_strict(names)) for one in found]


def test_nothing_but_tier_and_reads_changes():
    before, then = versions([row(cache_read_tokens=501), row(is_stream=True)])
    counts = [name for name in then.columns if name.endswith("_tokens")]
    assert then.select(counts).equals(before.filter(is_stream=False).select(counts))
    assert then["tier"].to_list() == ["batch"]  # what it does not touch has no version of its own
