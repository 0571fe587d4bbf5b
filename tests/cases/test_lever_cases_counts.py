"""Public cases about counts and caches (sections A, B and D of the levers' cases), worked out from list prices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from small_logs import book, ledger, row

import tenfold as tf
from tenfold.levers import LEVERS
from tenfold.levers.assume import assumptions
from tenfold.levers.prefix_cache import LEVER
from tenfold.levers.repricing import own_bill
from tenfold.planning.portfolio import Portfolio
from tenfold.prices.caching import cache_rules
from tenfold.slo import Slo
from tenfold.usage import tokens_from

AT = "2026-10-01"
M = 1_000_000


def cost(provider, model, *, tier=None, prices=None, **counts):
    usage = tf.Usage(**{"input_tokens": 0, "output_tokens": 0, **counts})
    found = tf.price(provider=provider, model=model, at=AT, tier=tier, usage=usage, book=prices)
    assert found.status == "priced", found.reason
    return found.cost_usd


def test_case_2_the_buckets_of_a_prompt_sum_to_it():
    # Opus 4.5 at 5 / 0.5 / 6.25 / 25: 66,360 read + 32,435 written + 10 fresh are the 98,805 of the prompt
    counts = {"input_tokens": 98_805, "cache_read_tokens": 66_360, "cache_write_tokens": 32_435, "output_tokens": 5_120}
    assert 66_360 + 32_435 + 10 == 98_805
    right = (66_360 * Decimal("0.5") + 32_435 * Decimal("6.25") + 10 * 5 + 5_120 * 25) / M
    model = "anthropic.claude-opus-4-5-20251101-v1:0"
    assert cost("bedrock", f"global.{model}", **counts) == right == Decimal("0.36394875")  # $0.0471 had been shown
    assert cost("bedrock", f"eu.{model}", **counts) == right * Decimal("1.1") == Decimal("0.400343625")


def test_case_4_cached_tokens_are_billed_once():
    # the two published figures are 17,102 x $1 a million apart: the read once more as fresh input (haiku 4.5). What is
    # left beside the read, $0.000009, is taken as 4 tokens in and one out.
    right = cost("anthropic", "claude-haiku-4-5", input_tokens=17_106, cache_read_tokens=17_102, output_tokens=1)
    assert right == Decimal("0.0017192")
    wrong = right + Decimal(17_102) / M
    assert wrong == Decimal("0.0188212")
    assert f"{wrong / right:.1f}" == "10.9"


def test_case_5_input_tokens_are_the_uncached_rest():
    # a request that moved 17,119 tokens, of which 17 are in the two counts that were added (their split is assumed)
    usage = {
        "input_tokens": 12,
        "output_tokens": 5,
        "cache_read_input_tokens": 17_102,
        "cache_creation_input_tokens": 0,
    }
    found = tokens_from(usage)
    assert found.input_tokens + found.output_tokens == 17_119
    assert (found.input_tokens - found.cache_read_tokens, found.output_tokens) == (12, 5)


def test_case_7_cached_tokens_of_both_shapes():
    chat = {"prompt_tokens": 2_600, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 2_000}}
    responses = {"input_tokens": 2_600, "output_tokens": 100, "input_tokens_details": {"cached_tokens": 2_000}}
    prices = [tf.price(provider="openai", model="gpt-5", at=AT, usage=usage).cost_usd for usage in (chat, responses)]
    # 600 x 1.25 + 2,000 x 0.125 + 100 x 10; reading one key only says 2,600 x 1.25 for the other shape
    assert prices == [Decimal("0.002")] * 2


def test_case_8_written_tokens_of_no_stated_lifetime_are_not_free():
    # 10,000 written, of which the split names 6,000 and 800: the 3,200 (32 %) that it leaves out are billed as the
    # default lifetime
    split = {"ephemeral_5m_input_tokens": 6_000, "ephemeral_1h_input_tokens": 800}
    usage = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 10_000, "cache_creation": split}
    found = tf.price(provider="anthropic", model="claude-sonnet-4-5", at=AT, usage=usage)
    assert found.cost_usd == (9_200 * Decimal("3.75") + 800 * 6) / M


def test_case_11_writes_that_live_an_hour_cost_twice_the_input():
    counts = {"input_tokens": 100_000, "cache_write_tokens": 100_000}
    assert cost("anthropic", "claude-fable-5", **counts, cache_write_long_tokens=0) == Decimal("1.25")
    assert cost("anthropic", "claude-fable-5", **counts, cache_write_long_tokens=100_000) == 2


def test_case_16_one_minimum_on_every_platform():
    at = datetime(2026, 10, 1, tzinfo=UTC)
    names = {"bedrock": "anthropic.claude-fable-5-v1:0"}
    found = {
        provider: cache_rules().find(provider, names.get(provider, "claude-fable-5"), at)
        for provider in ("anthropic", "bedrock", "vertex", "azure")
    }
    assert {provider: rule.min_tokens for provider, rule in found.items()} == dict.fromkeys(found, 512)


def test_case_17_being_eligible_is_no_hit():
    """The pessimistic end: an answer that starts five seconds later, and entries that live four fifths as long."""
    at = datetime(2026, 10, 1)
    rows = [
        row(provider="openai", model="gpt-5", ts=at + timedelta(seconds=seconds), org=org, input_tokens=2_009,
            prefix_hashes=[f"b{n}" for n in range(15)], prefix_block_tokens=128, ttft_ms=500.0)
        for org, times in (("soon", (0, 4)), ("late", (0, 270)), ("between", (0, 60)))
        for seconds in times
    ]  # fmt: skip
    assumed = assumptions({"prefix_cache": {"policy": "history"}}, LEVERS).levers
    with ledger(rows, tf.price_book()).session() as session:
        bill = own_bill(session, (LEVER,), assumed, Slo())
        judged = {"prefix_cache": LEVER.judge(bill, assumed["prefix_cache"])}
        portfolio = Portfolio(bill, (LEVER,), assumed, judged)
        low, mid = (portfolio.value(frozenset(judged), end) for end in ("low", "mid"))
    one = 1_920 * (1_250_000 - 125_000)  # what a hit saves: 15 blocks
    assert (low, mid) == (one, 3 * one)


def test_case_20_a_stored_cache_is_billed_for_as_long_as_it_lived():
    text = (
        'provider = "google"\n[[price]]\nmodel = "stored"\ninput = 1\noutput = 1\ncache_storage = 4.5\n'
        'source = "test"\nchecked = 2026-01-01\n'
    )
    hour, quarter = (
        cost("google", "stored", prices=book(text), cache_storage_token_s=M * seconds) for seconds in (3_600, 900)
    )
    assert (hour, quarter) == (Decimal("4.5"), Decimal("1.125"))  # kept for an hour, deleted after 15 minutes
    # and it is not free where no price is known
    usage = tf.Usage(input_tokens=0, output_tokens=0, cache_storage_token_s=M)
    found = tf.price(provider="google", model="gemini-2.5-flash", at=AT, usage=usage)
    assert (found.status, found.cost_usd) == ("unpriced_meter", None)


def test_case_32_groqs_batch_price_holds_for_cached_tokens_too():
    def batch(cached):
        return cost("groq", "openai/gpt-oss-120b", tier="batch", input_tokens=M, cache_read_tokens=cached)

    online = cost("groq", "openai/gpt-oss-120b", input_tokens=M)
    assert batch(0) == batch(M // 2) == batch(M) == online / 2
