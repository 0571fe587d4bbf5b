"""Usage shapes: the inputs are the cases of public bugs, the numbers are worked by hand in the comments."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tenfold.errors import UsageError
from tenfold.usage import SHAPES, Usage, tokens_from

# Right side in the order: shape, input, read, write, long, output, reasoning.
CASES = [
    # Anthropic counts are disjoint, so input is 3 + 12304 + 0.
    (
        {
            "input_tokens": 3,
            "cache_creation_input_tokens": 12304,
            "cache_read_input_tokens": 0,
            "output_tokens": 550,
        },
        ("anthropic", 12307, 0, 12304, None, 550, None),
    ),
    (
        {"prompt_tokens": 17903, "prompt_tokens_details": {"cached_tokens": 17817}},
        ("openai_chat", 17903, 17817, 0, None, None, None),
    ),
    # details are a part: 19073 holds 18971 read and 100 written
    (
        {"inputTokens": 19073, "cacheReadTokens": 18971, "cacheWriteTokens": 100, "outputTokens": 0},
        ("copilot_sdk", 19073, 18971, 100, None, 0, None),
    ),
    # 4299 + 631 + 35574 + 17787 = 58291: the total proves exclusive, so input is 57660
    (
        {
            "inputTokens": 4299,
            "outputTokens": 631,
            "cacheRead": 35574,
            "cacheWrite": 17787,
            "totalTokens": 58291,
        },
        ("camel_case", 57660, 35574, 17787, None, 631, None),
    ),
    (
        {
            "inputTokens": 4740,
            "inputTokenDetails": {"noCacheTokens": 5, "cacheReadTokens": 0, "cacheWriteTokens": 4735},
            "outputTokens": 255,
        },
        ("vercel_ai_6", 4740, 0, 4735, None, 255, None),
    ),
    (
        {
            "input_tokens": 2600,
            "input_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400},
            "output_tokens": 100,
        },
        ("openai_responses", 2600, 2000, 400, None, 100, None),
    ),
    (
        {"input_tokens": 0, "cache_read_input_tokens": 1000, "output_tokens": 0},
        ("anthropic", 1000, 1000, 0, 0, 0, None),
    ),
    (
        {
            "cache_creation_input_tokens": 1000000,
            "cache_creation": {"ephemeral_5m_input_tokens": 600000, "ephemeral_1h_input_tokens": 400000},
        },
        ("anthropic", 1000000, 0, 1000000, 400000, None, None),
    ),
    # 15 + 359 + 661 = 1035: thoughts lie outside candidates
    (
        {
            "promptTokenCount": 15,
            "candidatesTokenCount": 359,
            "thoughtsTokenCount": 661,
            "totalTokenCount": 1035,
        },
        ("gemini", 15, 0, None, None, 1020, 661),
    ),
    # 15 + 1020 = 1035: the same call by a surface that counts thoughts as candidates
    (
        {
            "promptTokenCount": 15,
            "candidatesTokenCount": 1020,
            "thoughtsTokenCount": 661,
            "totalTokenCount": 1035,
        },
        ("gemini", 15, 0, None, None, 1020, 661),
    ),
    # 500 + 500 = 1000: reasoning lies inside completion; 10120 + 1499 + 2809 = 14428: outside
    (
        {
            "prompt_tokens": 500,
            "completion_tokens": 500,
            "total_tokens": 1000,
            "completion_tokens_details": {"reasoning_tokens": 200},
        },
        ("openai_chat", 500, 0, 0, None, 500, 200),
    ),
    (
        {
            "prompt_tokens": 10120,
            "completion_tokens": 1499,
            "total_tokens": 14428,
            "completion_tokens_details": {"reasoning_tokens": 2809},
        },
        ("openai_chat", 10120, None, None, None, 4308, 2809),
    ),
    # 40 + 3000 + 500 + 380 = 3920
    (
        {
            "inputTokens": 40,
            "outputTokens": 380,
            "totalTokens": 3920,
            "cacheReadInputTokens": 3000,
            "cacheWriteInputTokens": 500,
            "cacheDetails": [{"ttl": "5m", "inputTokens": 300}, {"ttl": "1h", "inputTokens": 200}],
        },
        ("bedrock_converse", 3540, 3000, 500, 200, 380, None),
    ),
    (
        {
            "input_tokens": 300,
            "output_tokens": 20,
            "input_token_details": {"cache_read": 100, "cache_creation": 50},
        },
        ("token_details", 300, 100, 50, None, 20, None),
    ),
    (
        {
            "prompt_tokens": 98805,
            "completion_tokens": 5120,
            "prompt_tokens_details": {"cached_tokens": 66360, "cache_creation_tokens": 32435},
            "cache_read_input_tokens": 66360,
        },
        ("litellm", 98805, 66360, 32435, None, 5120, None),
    ),
    ({"input_tokens": 19, "output_tokens": 8}, ("tenfold", 19, None, None, None, 8, None)),
    ({"prompt_tokens": 10.0, "completion_tokens": 5}, ("openai_chat", 10, 0, 0, None, 5, None)),
]


@pytest.mark.parametrize(("usage", "right"), CASES)
def test_counts_become_inclusive_totals(usage, right):
    got = tokens_from(usage)
    assert (
        got.shape,
        got.input_tokens,
        got.cache_read_tokens,
        got.cache_write_tokens,
        got.cache_write_long_tokens,
        got.output_tokens,
        got.reasoning_tokens,
    ) == right
    assert tokens_from(usage, shape=got.shape) == got


def test_a_total_that_proves_the_other_convention_is_named():
    # 100 + 50 + 1000 = 1150: this gateway left the 1000 cached tokens out of prompt_tokens
    got = tokens_from(
        {
            "prompt_tokens": 100,
            "completion_tokens": 50,
            "total_tokens": 1150,
            "prompt_tokens_details": {"cached_tokens": 1000},
        }
    )
    assert (got.input_tokens, got.cache_read_tokens, got.flags) == (1100, 1000, ("convention_by_total",))
    assert tokens_from({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 151}).flags == (
        "total_mismatch",
    )


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        ({"input_tokens": -500, "cache_read_input_tokens": 2000}, "input_tokens: -500"),
        (
            {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 500}},
            "cached_tokens 500",
        ),
        ({"input_tokens": 3.7}, "input_tokens: 3.7"),
        ({"input_tokens": True}, "True"),
        ({"input_tokens": "1,024"}, "'1,024'"),
        ({"input_tokens": float("nan")}, "nan"),
        ({"input_tokens": 10**9}, "possible count"),
        (
            {"input_tokens": 5, "output_tokens": 1, "reasoning_tokens": 2},
            "reasoning_tokens 2 is more than output_tokens 1",
        ),
        ({"prompt_tokens": 5, "prompt_tokens_details": [1]}, "prompt_tokens_details"),
        ({"tokens": 5}, "no usage shape"),
        ({"input_tokens": 5, "cached_read_tokens": 5}, 'Did you mean "cache_read_tokens"'),
        # the same flat key with either convention: nothing proves which
        (
            {"inputTokens": 500, "outputTokens": 9, "cachedInputTokens": 100, "totalTokens": 509},
            "ambiguous usage (vercel_ai_5)",
        ),
        ({"inputTokens": 500, "outputTokens": 9, "cacheRead": 100}, "ambiguous usage (camel_case)"),
        # two providers' keys in one object
        (
            {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 1}, "cache_read_input_tokens": 1},
            "openai_responses or anthropic",
        ),
        ({"input_tokens": 5, "cache_read_tokens": 1, "cache_read_input_tokens": 1}, "tenfold or anthropic"),
    ],
)
def test_impossible_and_ambiguous_usage_is_refused_by_name(usage, words):
    with pytest.raises(UsageError) as caught:
        tokens_from(usage)
    assert words in str(caught.value)


def test_a_cached_count_above_the_input_proves_the_exclusive_reading():
    got = tokens_from({"inputTokens": 5, "outputTokens": 9, "cachedInputTokens": 100})
    assert (got.input_tokens, got.cache_read_tokens) == (105, 100)


def test_an_unknown_lifetime_is_named_not_dropped():
    got = tokens_from({"input_tokens": 10, "cache_creation": {"ephemeral_30m_input_tokens": 10000}})
    assert got.unknown_meters == ("cache_creation.ephemeral_30m_input_tokens",)
    assert (got.input_tokens, got.cache_write_tokens) == (10010, 10000)
    known = tokens_from(
        {
            "input_tokens": 1,
            "cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_9d_input_tokens": 0},
        }
    )
    assert known.unknown_meters == ()


def test_tier_and_region_in_the_usage_object_are_returned_beside():
    usage = {
        "input_tokens": 1,
        "output_tokens": 1,
        "service_tier": "standard",
        "inference_geo": "us",
        "speed": "fast",
    }
    got = tokens_from(usage)
    assert (got.tier_hint, got.region_hint) == ("fast", "us")
    plain = tokens_from({**usage, "speed": "standard", "inference_geo": "not_available"})
    assert (plain.tier_hint, plain.region_hint) == ("standard", None)


def test_keyword_form_holds_tenfolds_names_only():
    assert dict(Usage(input_tokens=5, cache_read_tokens=2)) == {"input_tokens": 5, "cache_read_tokens": 2}
    assert tokens_from(Usage(input_tokens=5, cache_read_tokens=2)).cache_read_tokens == 2
    with pytest.raises(UsageError, match="cache_read_tokens"):
        Usage(cached_read_tokens=5)


def test_every_shape_counts_input_and_output():
    for shape in SHAPES.values():
        assert {"input_tokens", "output_tokens"} <= shape.counts.keys()
    with pytest.raises(UsageError, match="openai_chat"):
        tokens_from({"prompt_tokens": 1}, shape="openai_chta")


def test_no_heavy_library_is_loaded():
    code = "import sys, tenfold.usage; print([m for m in ('duckdb', 'polars', 'pydantic') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
