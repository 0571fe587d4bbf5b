"""Usage objects that a hostile reader sends: splits above their totals, and every spelling of the details."""

from __future__ import annotations

from enum import StrEnum

import pytest

from tenfold.errors import UsageError
from tenfold.usage import tokens_from


class Modality(StrEnum):
    AUDIO = "AUDIO"
    TEXT = "TEXT"


@pytest.mark.parametrize(
    "usage",
    [
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 100,
            "cache_creation": {"ephemeral_5m_input_tokens": 600},
        },
        {
            "input_tokens": 1000,
            "input_tokens_details": {
                "cache_write_tokens": 100,
                "cache_write_tokens_details": {"ttl_30m_tokens": 900},
            },
        },
        # long writes are writes, and writes are input
        {"input_tokens": 1000, "cache_write_long_tokens": 1_000_000},
        {"input_tokens": 1000, "cache_write_tokens": 5, "cache_write_long_tokens": 6},
        {
            "input_tokens": 9000,
            "input_token_details": {"cache_creation": 100, "ephemeral_5m_input_tokens": 600},
        },
    ],
    ids=["anthropic", "responses", "long above input", "long above writes", "langchain"],
)
def test_a_split_above_its_total_is_refused(usage):
    with pytest.raises(UsageError, match="impossible usage"):
        tokens_from(usage)


def test_long_writes_without_all_writes_are_the_writes():
    got = tokens_from({"input_tokens": 1000, "cache_write_long_tokens": 300, "output_tokens": 0})
    assert (got.cache_write_tokens, got.cache_write_long_tokens) == (300, 300)
    # none for long says nothing about the others
    assert tokens_from({"input_tokens": 1000, "cache_write_long_tokens": 0}).cache_write_tokens is None


@pytest.mark.parametrize(
    ("total", "prompt", "answer", "count"),
    [
        ("promptTokenCount", "promptTokensDetails", "candidatesTokensDetails", "tokenCount"),
        ("prompt_token_count", "prompt_tokens_details", "candidates_tokens_details", "token_count"),
        ("prompt_token_count", "prompt_tokens_details", "response_tokens_details", "token_count"),
        ("promptTokenCount", "promptTokensDetails", "responseTokensDetails", "token_count"),
    ],
)
def test_gemini_modalities_are_read_in_every_spelling(total, prompt, answer, count):
    usage = {
        total: 900,
        "candidates_token_count": 70,
        prompt: [
            {"modality": Modality.TEXT, count: 100},
            {"modality": Modality.AUDIO, count: 500},
            {"modality": "image", count: 300},
        ],
        answer: [{"modality": "AUDIO", count: 60}, {"modality": "IMAGE", count: 10}],
    }
    got = tokens_from(usage)
    assert (got.shape, got.input_audio_tokens, got.input_image_tokens, got.input_video_tokens) == (
        "gemini",
        500,
        300,
        0,
    )
    assert (got.output_audio_tokens, got.output_image_tokens) == (60, 10)


def test_a_modality_that_says_nothing_is_refused():
    with pytest.raises(UsageError, match="modality 4 is no text"):
        tokens_from({"prompt_token_count": 9, "prompt_tokens_details": [{"modality": 4, "token_count": 9}]})


def test_langchain_keeps_anthropics_writes_by_lifetime():
    # LangChain sets cache_creation to 0 beside the split: 4000 + 500 written, 500 of it for an hour
    details = {
        "cache_read": 1000,
        "cache_creation": 0,
        "ephemeral_5m_input_tokens": 4000,
        "ephemeral_1h_input_tokens": 500,
    }
    got = tokens_from({"input_tokens": 6000, "output_tokens": 10, "total_tokens": 6010, "input_token_details": details})
    assert (got.input_tokens, got.cache_read_tokens) == (6000, 1000)
    assert (got.cache_write_tokens, got.cache_write_long_tokens) == (4500, 500)


def test_bedrocks_writes_by_lifetime_give_all_writes():
    usage = {
        "inputTokens": 40,
        "outputTokens": 1,
        "cacheDetails": [{"ttl": "5m", "inputTokens": 300}, {"ttl": "1h", "inputTokens": 200}],
    }
    got = tokens_from(usage)
    assert (got.input_tokens, got.cache_write_tokens, got.cache_write_long_tokens) == (540, 500, 200)
