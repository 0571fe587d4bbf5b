"""Public billing bugs with their right values (case numbers in the ids): what one call says, in Python and in SQL.

The cases about logs, your own prices and savings are in the files beside this one; test_every_case.py counts them all.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

import tenfold as tf
from tenfold.errors import UsageError
from tenfold.money import PUSD_PER_USD
from tenfold.store.schema import TOKEN_COLUMNS
from tenfold.usage import tokens_from

OPENAI, ANTHROPIC, GOOGLE, DEEPSEEK, BEDROCK = "openai", "anthropic", "google", "deepseek", "bedrock"
M = 1_000_000


def anthropic(
    fresh: int, output: int = 0, *, read: int = 0, write: int = 0, long: int = 0, **more: object
) -> dict[str, object]:
    usage: dict[str, object] = {
        "input_tokens": fresh,
        "output_tokens": output,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write + long,
    }
    if long:
        usage["cache_creation"] = {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": long}
    return {**usage, **more}


def chat(
    prompt: int, completion: int = 0, *, cached: int = 0, written: int = 0, reasoning: int = 0
) -> dict[str, object]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


# (case, provider, model, at, tier, region, usage, right value in USD)
PRICED = [
    ("B001", ANTHROPIC, "claude-3-7-sonnet", "2025-04-08", None, None, anthropic(3, 550, write=12304), "0.054399"),
    ("B007", GOOGLE, "gemini-3-flash-preview", "2026-03-01", None, None,
     {"promptTokenCount": 20212, "cachedContentTokenCount": 16298, "candidatesTokenCount": 931}, "0.0055649"),
    ("B008", ANTHROPIC, "claude-sonnet-5", "2026-10-01", None, None,
     {"input_tokens": 19073, "cache_read_tokens": 18971, "cache_write_tokens": 100, "output_tokens": 0}, "0.0040482"),
    ("B010", ANTHROPIC, "claude-sonnet-4-5", "2026-10-01", None, None,
     {"inputTokens": 4299, "outputTokens": 631, "cacheRead": 35574, "cacheWrite": 17787, "totalTokens": 58291}, "0.09973545"),
    ("B011", ANTHROPIC, "claude-sonnet-4-20250514", "2026-01-15", None, None,
     {"inputTokens": 4740, "inputTokenDetails": {"noCacheTokens": 5, "cacheReadTokens": 0, "cacheWriteTokens": 4735},
      "outputTokens": 255}, "0.02159625"),
    ("B013", OPENAI, "gpt-5.6-sol", "2026-08-20", None, None, chat(6000, 200, written=5000), "0.04225"),
    ("B014", OPENAI, "gpt-6-sol", "2026-10-01", None, None,
     {"input_tokens": 2600, "input_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400}, "output_tokens": 100},
     "0.0028"),
    ("B017", GOOGLE, "gemini-3.5-flash", "2026-10-01", None, None,
     {"promptTokenCount": 25978, "cachedContentTokenCount": 24540, "candidatesTokenCount": 13}, "0.005955"),
    ("B019", ANTHROPIC, "claude-sonnet-4-5", "2026-10-01", None, None,
     {"input_tokens": 0, "cache_read_input_tokens": 1000, "output_tokens": 0}, "0.0003"),
    ("B023", ANTHROPIC, "claude-opus-4-8", "2026-10-01", None, None, anthropic(0, write=600_000, long=400_000), "7.75"),
    ("B026 haiku", ANTHROPIC, "claude-3-haiku-20240307", "2026-01-15", None, None, anthropic(0, long=100_000), "0.05"),
    ("B026 opus", ANTHROPIC, "claude-3-opus-20240229", "2025-12-01", None, None, anthropic(0, long=100_000), "3"),
    *(
        (f"B028 {model}", ANTHROPIC, model, "2026-11-01", None, None, anthropic(0, read=M), right)
        for model, right in (
            ("claude-fable-5", "1.00"), ("claude-fable-5-2", "0.20"), ("claude-opus-5", "0.50"), ("claude-opus-5-5", "0.20"),
            ("claude-sonnet-5", "0.20"), ("claude-sonnet-5-5", "0.10"),
        )
    ),
    # haiku-5-5 is 0.1x in short context: ten requests of 100,000, the whole of its short band
    ("B028 claude-haiku-5-5", ANTHROPIC, "claude-haiku-5-5", "2026-11-01", None, None, anthropic(0, read=100_000), "0.001"),
    ("B029", ANTHROPIC, "claude-opus-5-5", "2026-11-01", None, None, anthropic(M, M, read=M), "24.2"),
    ("B032", OPENAI, "gpt-6.1-terra", "2026-11-01", None, None,
     {"input_tokens": 10_000, "output_tokens": 0,
      "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 10_000,
                               "cache_write_tokens_details": {"ttl_30m_tokens": 0, "ttl_12h_tokens": 10_000}}}, "0.025"),
    ("B034", OPENAI, "gpt-5.5", "2026-10-01", None, None, chat(300_000, 1000), "3.045"),
    ("B035", OPENAI, "gpt-5.5", "2026-10-01", None, None, chat(300_000, cached=200_000), "1.2"),
    ("B037", ANTHROPIC, "claude-sonnet-4-5", "2026-03-01", None, None, anthropic(250_000, write=5000, long=2000), "1.5615"),
    ("B038", ANTHROPIC, "claude-sonnet-4-5", "2026-03-01", None, None, anthropic(150_000, read=100_000), "0.96"),
    ("B040", OPENAI, "gpt-5.5", "2026-10-01", "batch", None, chat(300_000, 1000), "1.5225"),
    ("B041 before", ANTHROPIC, "claude-opus-4-6", "2026-03-12T12:00:00Z", None, None, anthropic(250_000, 1000), "2.5375"),
    ("B041 after", ANTHROPIC, "claude-opus-4-6", "2026-03-13T12:00:00Z", None, None, anthropic(250_000, 1000), "1.275"),
    ("B044", OPENAI, "gpt-5-nano", "2026-10-01", "flex", None, chat(M, M), "0.225"),
    ("B047", OPENAI, "o4-mini-2025-04-16", "2026-10-01", "flex", None, chat(100_000, 10_000), "0.077"),
    ("B049", ANTHROPIC, "claude-sonnet-4-6", "2026-10-01", "batch", None, anthropic(M, 100_000), "2.25"),
    ("B050", OPENAI, "gpt-5", "2026-10-01", "batch", None, chat(M, 100_000, cached=500_000), "0.84375"),
    ("B052", OPENAI, "gpt-5", "2026-09-01", "batch", None, chat(M, M), "5.625"),
    ("B053", OPENAI, "gpt-5", "2026-10-20", "Flex", None, chat(M, M), "5.625"),
    ("B053 in the usage", OPENAI, "gpt-5", "2026-10-20", None, None, {**chat(M, M), "service_tier": "Flex"}, "5.625"),
    ("B055", ANTHROPIC, "claude-opus-4-1-20250805", "2026-07-01", "batch", None, anthropic(M, 100_000), "11.25"),
    ("B056", ANTHROPIC, "claude-opus-5", "2026-10-01", None, None, anthropic(100_000, 10_000, read=100_000, speed="fast"), "1.6"),
    ("B058", GOOGLE, "gemini-2.5-flash", "2026-10-01", None, None,
     {"promptTokenCount": 15, "candidatesTokenCount": 359, "thoughtsTokenCount": 661, "totalTokenCount": 1035}, "0.0025545"),
    ("B059", OPENAI, "gpt-5", "2026-10-01", None, None, chat(1000, 1000, reasoning=800), "0.01125"),
    ("B061 inside", OPENAI, "gpt-5", "2026-10-01", None, None,
     {"prompt_tokens": 500, "completion_tokens": 500, "total_tokens": 1000, "completion_tokens_details": {"reasoning_tokens": 200}},
     "0.005625"),
    # the total proves that reasoning lies beside it: 10,120 + 1,499 + 2,809, so 4,308 of output are billed
    ("B061 beside", OPENAI, "gpt-5", "2026-10-01", None, None,
     {"prompt_tokens": 10120, "completion_tokens": 1499, "total_tokens": 14428, "completion_tokens_details": {"reasoning_tokens": 2809}},
     "0.05573"),
    ("B062", OPENAI, "gpt-realtime-2.1-mini", "2026-10-01", None, None,
     {"input_tokens": 0, "output_tokens": 29, "total_tokens": 29, "output_token_details": {"text_tokens": 29, "reasoning_tokens": 19}},
     "0.0000696"),
    ("B067 gpt-4.1", OPENAI, "gpt-4.1", "2026-10-01", None, None, chat(1000, 500), "0.006"),
    ("B067 mini", OPENAI, "gpt-4.1-mini", "2026-10-01", None, None, chat(1000, 500), "0.0012"),
    ("B067 nano", OPENAI, "gpt-4.1-nano", "2026-10-01", None, None, chat(1000, 500), "0.0003"),
    ("B067 dated", OPENAI, "gpt-4.1-2025-04-14", "2026-10-01", None, None, chat(1000, 500), "0.006"),
    ("B068", OPENAI, "gpt-4o-mini", "2026-10-01", None, None, chat(M), "0.15"),
    ("B070", OPENAI, "gpt-5.4-mini-2026-03-05", "2026-10-01", None, None, chat(M), "0.75"),
    *(
        (f"B064 {model}", provider, model, "2026-10-01", None, None, usage, right)
        for provider, model, usage, right in (
            (ANTHROPIC, "claude-sonnet-4-20250514", anthropic(M, 100_000), "4.5"),
            (ANTHROPIC, "claude-opus-4-20250514", anthropic(M, 100_000), "22.5"),
            (ANTHROPIC, "claude-opus-4-1-20250805", anthropic(M, 100_000), "22.5"),
            (ANTHROPIC, "claude-fable-5-2", anthropic(M, 100_000), "12"),
            (GOOGLE, "gemini-3-pro-preview", {"promptTokenCount": M, "candidatesTokenCount": 100_000}, "5.8"),
            (OPENAI, "o1-preview", chat(M, 100_000), "21"),
        )
    ),
    ("B092 before", OPENAI, "gpt-5.6-sol", "2026-08-20T23:59:59Z", None, None, chat(100_000, 100_000), "3.5"),
    ("B092 after", OPENAI, "gpt-5.6-sol", "2026-08-21T00:00:00Z", None, None, chat(100_000, 100_000), "2.4"),
    ("B094 before", GOOGLE, "gemini-4-argon", "2026-11-30T12:00:00Z", None, None,
     {"promptTokenCount": M, "candidatesTokenCount": M}, "12"),
    ("B094 after", GOOGLE, "gemini-4-argon", "2026-12-01T12:00:00Z", None, None,
     {"promptTokenCount": M, "candidatesTokenCount": M}, "24"),
    ("B095 Monday in the peak", DEEPSEEK, "deepseek-v4-pro", "2026-11-30T02:00Z", None, None, chat(M), "1.32"),
    ("B095 Monday between the peaks", DEEPSEEK, "deepseek-v4-pro", "2026-11-30T05:00Z", None, None, chat(M), "0.66"),
    ("B095 Sunday at peak hours", DEEPSEEK, "deepseek-v4-pro", "2026-11-29T02:00Z", None, None, chat(M), "0.66"),
    ("B095 Monday, last second of the peak", DEEPSEEK, "deepseek-v4-pro", "2026-11-30T03:59:59Z", None, None, chat(M), "1.32"),
    ("B095 Monday, first second after it", DEEPSEEK, "deepseek-v4-pro", "2026-11-30T04:00Z", None, None, chat(M), "0.66"),
    ("B097", OPENAI, "o3", "2025-05-01", None, None, chat(M, cached=M), "2.50"),
    ("B098 offset", OPENAI, "gpt-5.6-luna", "2026-07-29T23:30:00-07:00", None, None, chat(100_000), "0.02"),
    ("B103", ANTHROPIC, "claude-sonnet-4-6", "2026-10-01", None, None, anthropic(48, 5, inference_geo="us"), "0.0002409"),
    ("B104 global.", BEDROCK, "global.anthropic.claude-opus-4-5-20251101-v1:0", "2026-10-01", None, None,
     anthropic(M, 100_000), "7.5"),
    ("B104 us.", BEDROCK, "us.anthropic.claude-opus-4-5-20251101-v1:0", "2026-10-01", None, None, anthropic(M, 100_000), "8.25"),
    ("B104 in-region", BEDROCK, "anthropic.claude-opus-4-5-20251101-v1:0", "2026-10-01", None, None, anthropic(M, 100_000), "8.25"),
    ("B104 eu", OPENAI, "gpt-5.4", "2026-10-01", None, "eu", chat(100_000, 1000), "0.2915"),
    ("B106", OPENAI, "gpt-4.1", "2026-10-01", None, None, chat(1000, 500), "0.006"),
    # three searches at $10 per 1,000 beside 100 tokens in
    ("B107", ANTHROPIC, "claude-opus-5", "2026-10-01", None, None,
     anthropic(100, server_tool_use={"web_search_requests": 3}), "0.0305"),
    ("B109", GOOGLE, "gemini-2.0-flash", "2026-01-15", None, None,
     {"promptTokenCount": 262, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 4}, {"modality": "IMAGE", "tokenCount": 258}],
      "candidatesTokenCount": 0}, "0.0000262"),
    ("B110", GOOGLE, "gemini-3-pro-image-preview", "2026-03-01", None, None,
     {"promptTokenCount": 0, "candidatesTokenCount": 1120, "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1120}]},
     "0.1344"),
    ("B112", OPENAI, "gpt-audio", "2026-10-01", None, None,
     {"prompt_tokens": 0, "completion_tokens": 300, "total_tokens": 300,
      "completion_tokens_details": {"audio_tokens": 200, "text_tokens": 100}}, "0.0138"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "model", "at", "tier", "region", "usage", "right"),
    [row[1:] for row in PRICED],
    ids=[row[0] for row in PRICED],
)
def test_right_value(provider, model, at, tier, region, usage, right):
    found = tf.price(provider=provider, model=model, at=at, tier=tier, region=region, usage=usage)
    assert found.status == "priced", found.reason
    assert found.cost_usd == Decimal(right)


def test_the_ledger_prices_all_of_them_alike():
    rows = []
    for _, provider, model, at, tier, region, usage, _ in PRICED:
        tokens = tokens_from(usage)._asdict()
        hints = {"service_tier": tier or tokens["tier_hint"], "region": region or tokens["region_hint"]}
        counts = {name: tokens[name] for name in TOKEN_COLUMNS}
        instant = datetime.fromisoformat(at)
        instant = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
        rows.append({"provider": provider, "model": model, "ts": instant, **hints, **counts})
    found = tf.price_many(pl.DataFrame(rows, infer_schema_length=None))
    right = {row[0]: int(Decimal(row[-1]) * PUSD_PER_USD) for row in PRICED}
    assert dict(zip(right, found["cost_pusd"], strict=True)) == right


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param({"input_tokens": -500, "cache_read_input_tokens": 2000, "output_tokens": 0}, id="B020 negative"),
        pytest.param(chat(100, 10, cached=500), id="B022 cached above prompt"),
    ],
)
def test_impossible_usage_is_refused(usage):
    with pytest.raises(UsageError):
        tf.price(provider="openai", model="gpt-5", at="2026-10-01", usage=usage)


def test_a_total_that_fits_no_reading_is_said():
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 99}
    assert "total_mismatch" in tokens_from(usage).flags
    assert "mismatch" in str(tf.price(provider=OPENAI, model="gpt-5", at="2026-10-01", usage=usage).as_dict())


def test_b031_unknown_lifetime_is_unpriced_not_free():
    usage = {"input_tokens": 10, "output_tokens": 0, "cache_creation": {"ephemeral_30m_input_tokens": 10000}}
    found = tf.price(provider="anthropic", model="claude-sonnet-4-5", at="2026-10-01", usage=usage)
    assert (found.status, found.cost_usd) == ("unpriced_meter", None)
    assert "30m" in found.reason


def test_b043_no_published_cell_is_ambiguous():
    found = tf.price(provider="openai", model="gpt-5.4", at="2026-10-01", tier="priority", usage=chat(300_000, 1000))
    assert (found.status, found.cost_usd) == ("ambiguous", None)
    assert found.reason
    short = tf.price(provider="openai", model="gpt-5.4", at="2026-10-01", tier="priority", usage=chat(272_000))
    assert short.cost_usd == Decimal("1.36")  # exactly the edge is still the short band: 272,000 x $5


def test_b098_naive_time_is_refused():
    with pytest.raises(UsageError, match="zone"):
        tf.price(provider="openai", model="gpt-5.6-luna", at="2026-07-29T23:30", usage=chat(100_000))


def test_b004_b005_counts_without_a_model():
    # No model is named, so only the counts are checked: 17,903 = 86 + 17,817 and 1,999 = 207 + 1,792.
    first = tokens_from({"prompt_tokens": 17903, "prompt_tokens_details": {"cached_tokens": 17817}})
    assert (first.input_tokens, first.cache_read_tokens) == (17903, 17817)
    second = tokens_from({"input_tokens": 1999, "input_token_details": {"cache_read": 1792}})
    assert (second.input_tokens, second.cache_read_tokens) == (1999, 1792)


def test_an_embedding_puts_nothing_out():
    """OpenAI's embeddings report the input as the total and no completion."""
    usage = {"prompt_tokens": 10_000, "total_tokens": 10_000}
    found = tf.price(provider=OPENAI, model="text-embedding-3-small", at="2026-10-01", usage=usage)
    assert found.cost_usd == Decimal("0.0002")
    short = tf.price(provider=OPENAI, model="gpt-5", at="2026-10-01", usage={"prompt_tokens": 10, "total_tokens": 12})
    assert short.status == "usage_partial"
