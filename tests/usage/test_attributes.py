"""A span's attributes as usage: OpenTelemetry's names of today and before, and OpenInference's."""

from __future__ import annotations

import pytest

import tenfold as tf
from tenfold.errors import UsageError
from tenfold.logs import spans
from tenfold.usage import attributes, tokens_from

# attributes -> input, read, written, output, reasoning
CASES = {
    "today": (
        {
            "gen_ai.usage.input_tokens": 1200,
            "gen_ai.usage.cache_read.input_tokens": 1000,
            "gen_ai.usage.output_tokens": 30,
            "gen_ai.request.model": "m",
        },
        (1200, 1000, 0, 30, None),
    ),
    "oldest": ({"gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 3}, (10, None, None, 3, None)),
    "before": (
        {
            "gen_ai.usage.input_tokens": 12,
            "gen_ai.usage.cache_creation.input_tokens": 4,
            "gen_ai.usage.output_tokens": 3,
            "gen_ai.usage.details.reasoning_tokens": 2,
        },
        (12, 0, 4, 3, 2),
    ),
    "openinference": (
        {
            "llm.token_count.prompt": 10,
            "llm.token_count.prompt_details.cache_read": 5,
            "llm.token_count.completion": 3,
            "llm.token_count.total": 13,
        },
        (10, 5, 0, 3, None),
    ),
    # langfuse#12306's trap: 5 uncached, 128,955 read, 1,253 written; the total proves that the input leaves them out
    "input that leaves the cache out": (
        {
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.cache_read.input_tokens": 128955,
            "gen_ai.usage.cache_write.input_tokens": 1253,
            "gen_ai.usage.output_tokens": 10,
            "gen_ai.usage.total_tokens": 130223,
        },
        (130213, 128955, 1253, 10, None),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_counts_of_a_span(name):
    usage, right = CASES[name]
    found = tokens_from(usage)
    assert found.shape == "opentelemetry"
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    assert tuple(getattr(found, column) for column in names) == right


def test_one_call_is_priced_alike_under_every_name():
    usage = {name: count for name, count in CASES["today"][0].items() if isinstance(count, int)}
    plain = {"input_tokens": 1200, "cache_read_tokens": 1000, "output_tokens": 30}
    costs = {
        tf.price(provider="openai", model="gpt-4.1", at="2026-10-01", usage=one).cost_usd
        for one in (usage, tf.Usage(**usage), plain, tf.Usage(**plain))
    }
    # 200 x $2 + 1,000 x $0.50 + 30 x $8, a million each
    assert {str(cost.normalize()) for cost in costs} == {"0.00114"}


def test_the_tier_that_a_span_says():
    usage = {"gen_ai.usage.input_tokens": 1, "openai.response.service_tier": "flex"}
    assert tokens_from(usage).tier_hint == "flex"


@pytest.mark.parametrize(
    ("usage", "says"),
    [
        ({"gen_ai.usage.input_tokens": 5, "input_tokens": 5}, "ambiguous"),
        ({"gen_ai.usage.input_tokens": 2.5}, "gen_ai.usage.input_tokens: 2.5 is not a count"),
        (
            {
                "gen_ai.usage.input_tokens": 5,
                "gen_ai.usage.output_tokens": 1,
                "llm.token_count.prompt_details.cache_read": 9,
            },
            "gen_ai.usage.cache_read.input_tokens 9 is more than gen_ai.usage.input_tokens 5",
        ),
    ],
)
def test_what_is_refused(usage, says):
    with pytest.raises(UsageError, match=says):
        tokens_from(usage)


def test_spans_of_a_log_and_the_single_call_read_the_same_names():
    assert {name: spans.NAMES[name] for name in attributes.COUNTS} == attributes.COUNTS
    assert spans.NAMES["total_tokens"] == attributes.TOTAL
