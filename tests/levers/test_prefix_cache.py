"""Prompt caching: what it already saved or lost, to the pUSD, and never more than that."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from oracle import as_billed_saving, read_book
from quick import few
from small_logs import book, facts, ledger, look, row
from strategies import books_and_logs

import tenfold as tf
from tenfold.levers.prefix_cache import LEVER
from tenfold.money import to_usd

# BerriAI/litellm PR 36452, claude-sonnet-4-5 at 3 / 0.30 / 3.75 / 15 USD per million, 10 fresh input and 100 output
# tokens in each row: (reads, writes, billed, uncached, what caching saved). B122 is the third row's shape; the tool
# had reported +0.0027 for it, as it left out what writes cost extra.
PR_36452 = [
    (0, 20_000, "0.07653", "0.06153", "-0.015"),
    (20_000, 0, "0.00753", "0.06153", "0.054"),
    (1_000, 20_000, "0.07683", "0.06453", "-0.0123"),
    (20_000, 500, "0.009405", "0.06303", "0.053625"),
]


def sonnet(reads, writes):
    return row(
        provider="anthropic",
        model="claude-sonnet-4-5",
        input_tokens=10 + reads + writes,
        cache_read_tokens=reads,
        cache_write_tokens=writes,
    )


def estimate(made, assume=None, **options):
    plan = tf.plan(made, assume=assume, **options)
    return plan, next(one for one in plan.estimates if one.name == "prefix_cache")


@pytest.mark.parametrize(("reads", "writes", "billed", "uncached", "saved"), few(1, PR_36452))
def test_litellm_36452(reads, writes, billed, uncached, saved):
    made = ledger([sonnet(reads, writes)], tf.price_book())
    found = look(LEVER, made)
    assert to_usd(found.as_billed_pusd) == Decimal(saved) == Decimal(uncached) - Decimal(billed)
    assert Decimal(facts(found)["cost_as_billed_usd"]) == Decimal(billed) == to_usd(made.total_pusd)
    assert Decimal(facts(found)["cost_uncached_usd"]) == Decimal(uncached)


def test_a_policy_without_its_length_says_what_to_state_and_what_there_is():
    made = ledger([{**sonnet(20_000, 0), "session_id": "s"}], tf.price_book())
    found = look(LEVER, made, {"prefix_cache": {"policy": "system"}})
    assert found.status == "no_assumption"
    assert found.reason.endswith('; policy = "none" still has a figure: caching saved $0.05 so far, as billed')
    assert found.advice.first_action.startswith("State system_tokens in [prefix_cache]")


def test_money_already_saved_is_in_no_ranking_sum_or_fold():
    plan, found = estimate(ledger([sonnet(20_000, 0)], tf.price_book()))
    assert found.as_billed_pusd == 54_000_000_000
    assert (found.status, found.saving.mid, found.addressed_pusd) == ("no_assumption", 0, 0)
    assert (found.last_pusd, found.shapley_pusd, found.per_month_pusd) == (None, None, None)
    assert (plan.levers, plan.joint_all_pusd, plan.saving.mid, plan.fold) == ((), 0, 0, 1.0)


def test_as_shipped_saves_nothing():
    found = look(LEVER, ledger([row(cache_read_tokens=500)]), {"prefix_cache": {"policy": "as_shipped"}})
    assert (found.status, found.addressed_pusd, found.applies) == ("ok", 0, True)


def test_policy_none_is_minus_what_caching_saved():
    # stacks: 2 / 0.2 / 2.5 / 4 (long) per million.
    rows = [
        row(cache_read_tokens=500),  # saved 500 x 1.8 = 900
        row(cache_write_tokens=400, cache_write_long_tokens=100),  # lost 300 x 0.5 + 100 x 2 = 350
        row(),
    ]
    plan, found = estimate(ledger(rows), {"prefix_cache": {"policy": "none"}})
    assert found.as_billed_pusd == 550_000_000  # (900 - 350) uUSD
    assert found.saving.mid == found.alone_pusd == -550_000_000
    # what the two cached requests cost now: 500x2 + 500x0.2 + 1000, and 600x2 + 300x2.5 + 100x4 + 1000
    assert found.addressed_pusd == (2_100 + 3_350) * 10**6
    assert plan.levers == ()  # a loss is shown, never planned


def test_a_cache_that_only_writes_is_worth_turning_off():
    plan, found = estimate(
        ledger([row(feature="contract-qa", cache_write_tokens=1_000)]), {"prefix_cache": {"policy": "none"}}
    )
    # 1,000 x (2.5 - 2) lost
    assert (found.as_billed_pusd, found.saving.mid) == (-500_000_000, 500_000_000)
    assert plan.levers == ("prefix_cache",)
    assert "`contract-qa`" in found.advice.first_action


def test_where_limits_what_is_counted():
    rows = [row(feature="a", cache_read_tokens=500), row(feature="b", cache_read_tokens=1_000)]
    found = look(LEVER, ledger(rows), {"prefix_cache": {"where": "feature = 'a'"}})
    assert found.as_billed_pusd == 900_000_000


def test_unpriced_and_unbilled_requests_are_left_out_and_counted():
    rows = [
        row(cache_read_tokens=500),
        row(model="plain", cache_write_tokens=500),  # plain has no write price
        row(cache_read_tokens=500, is_billable=False),
        row(cache_read_tokens=500, gateway_cache_hit=True),
        row(cache_read_tokens=None, cache_write_tokens=None),
    ]
    found = look(LEVER, ledger(rows))
    assert found.as_billed_pusd == 900_000_000
    assert [facts(found)[name] for name in ("unpriced", "not_billed", "split_unknown")] == [1, 2, 1]


@pytest.mark.parametrize("policy", ["system", "history"])
def test_policies_that_need_a_replay_say_so(policy):
    found = look(LEVER, ledger([row(cache_read_tokens=500)]), {"prefix_cache": {"policy": policy}})
    assert (found.status, found.applies, found.addressed_pusd) == ("not_measurable", False, None)
    assert "prefix_hashes or session_id" in found.reason
    assert found.as_billed_pusd == 900_000_000


def test_columns_that_are_all_null_count_as_absent():
    found = look(LEVER, ledger([row(cache_read_tokens=None, cache_write_tokens=None)]))
    assert found.status == "not_measurable"
    assert "cache_read_tokens and cache_write_tokens" in found.reason
    assert found.as_billed_pusd is None


def test_one_of_the_columns_is_enough():
    found = look(LEVER, ledger([row(cache_read_tokens=500, cache_write_tokens=None)]))
    assert (found.status, found.as_billed_pusd) == ("no_assumption", 900_000_000)


def hold_equal(drawn):
    text, rows = drawn
    naive = [{**one, "ts": one["ts"] and one["ts"].replace(tzinfo=None)} for one in rows]
    found = look(LEVER, ledger(naive, book(text)))
    expected = as_billed_saving(read_book([text]), rows)
    assert found.as_billed_pusd == expected or (found.status == "not_measurable" and expected == 0)


@settings(max_examples=4, deadline=None)
@given(books_and_logs(max_size=40))
def test_equals_the_oracle(drawn):
    hold_equal(drawn)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(books_and_logs(max_size=40))
def test_equals_the_oracle_at_length(drawn):
    hold_equal(drawn)


def test_reasons_are_for_people():
    rows = [row(cache_read_tokens=500)]
    for assume in (None, {"prefix_cache": {"policy": "history"}}, {"prefix_cache": {"where": "feature = 'x'"}}):
        found = look(LEVER, ledger(rows), assume)
        said = " ".join((found.reason, *found.advice))
        assert found.reason
        assert "as_billed" not in said
    assert 'add [prefix_cache] with policy = "none"' in look(LEVER, ledger(rows)).reason


def test_what_to_do_first_fits_the_sign():
    def first(*rows, policy="as_shipped"):
        return look(LEVER, ledger(rows), {"prefix_cache": {"policy": policy}}).advice.first_action

    # 1,000,000 reads at 0.2 instead of 2 a million; as many writes at 2.5
    reads = row(input_tokens=1_000_000, cache_read_tokens=1_000_000)
    writes = row(input_tokens=1_000_000, cache_write_tokens=1_000_000)
    assert first(reads) == "Nothing to change yet: caching saved $1.80 in this log."
    assert first(reads, policy="none") == "Keep the cache on: it saved $1.80 against the same tokens without it."
    assert "in `tagging`: 1 requests lost $0.50" in first(writes)
    assert first(row()) == "Nothing to change: no request here reads or writes a prompt cache."
