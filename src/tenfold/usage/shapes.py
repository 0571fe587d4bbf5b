"""Providers' usage objects as data: which key is which count, what totals include, what absence means.

One table, read by the log readers (as SQL) and by the single price call (as Python) alike. A path is dotted;
``list[key=VALUE].leaf`` sums a list's entries of one kind.
"""

from __future__ import annotations

from tenfold.store.schema import TOKEN_COLUMNS
from tenfold.usage import attributes
from tenfold.usage.shape import (
    ZERO,
    ZERO_BESIDE_CACHE,
    ZERO_BESIDE_PARTS,
    ZERO_BY_TOTAL,
    ZERO_WITHOUT_WRITES,
    UsageShape,
)

# OpenAI caches nothing below this many input tokens, so missing details hide no cached token there.
OPENAI_CACHE_MINIMUM = 1024


def _any_of(*keys: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset({key}) for key in keys)


def _with(base: str, *keys: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset({base, key}) for key in keys)


TENFOLD = UsageShape(
    name="tenfold",
    counts={name: (name,) for name in TOKEN_COLUMNS},
    marks=_any_of(*TOKEN_COLUMNS),
    plain=True,
)
OPENAI_CHAT = UsageShape(
    name="openai_chat",
    counts={
        "input_tokens": ("prompt_tokens",),
        # DeepSeek and Moonshot serve the OpenAI shape with their own key for cached tokens.
        "cache_read_tokens": (
            "prompt_tokens_details.cached_tokens",
            "prompt_cache_hit_tokens",
            "cached_tokens",
        ),
        "cache_write_tokens": ("prompt_tokens_details.cache_write_tokens",),
        "input_audio_tokens": ("prompt_tokens_details.audio_tokens",),
        "input_image_tokens": ("prompt_tokens_details.image_tokens",),
        "output_tokens": ("completion_tokens",),
        "reasoning_tokens": ("completion_tokens_details.reasoning_tokens",),
        "output_audio_tokens": ("completion_tokens_details.audio_tokens",),
        "output_image_tokens": ("completion_tokens_details.image_tokens",),
    },
    marks=_any_of("prompt_tokens", "completion_tokens"),
    total=("total_tokens",),
    absent={
        "output_tokens": ZERO_BY_TOTAL,
        "cache_read_tokens": "prompt_tokens_details",
        "cache_write_tokens": "prompt_tokens_details",
        "input_audio_tokens": "prompt_tokens_details",
        "reasoning_tokens": "completion_tokens_details",
        "output_audio_tokens": "completion_tokens_details",
    },
    zero_below=OPENAI_CACHE_MINIMUM,
    tier=("service_tier",),
)
OPENAI_RESPONSES = UsageShape(
    name="openai_responses",
    counts={
        "input_tokens": ("input_tokens",),
        "cache_read_tokens": ("input_tokens_details.cached_tokens",),
        "cache_write_tokens": ("input_tokens_details.cache_write_tokens",),
        "cache_write_long_tokens": ("input_tokens_details.cache_write_tokens_details.ttl_12h_tokens",),
        "input_audio_tokens": ("input_tokens_details.audio_tokens",),
        "input_image_tokens": ("input_tokens_details.image_tokens",),
        "output_tokens": ("output_tokens",),
        "reasoning_tokens": ("output_tokens_details.reasoning_tokens",),
        "output_audio_tokens": ("output_tokens_details.audio_tokens",),
        "output_image_tokens": ("output_tokens_details.image_tokens",),
    },
    marks=(
        *_any_of("input_tokens_details", "output_tokens_details.reasoning_tokens"),
        *_with("input_tokens", "total_tokens"),
    ),
    total=("total_tokens",),
    absent={
        "cache_read_tokens": "input_tokens_details",
        "cache_write_tokens": "input_tokens_details",
        "cache_write_long_tokens": ZERO_WITHOUT_WRITES,
        "reasoning_tokens": "output_tokens_details",
    },
    zero_below=OPENAI_CACHE_MINIMUM,
    open_objects=("input_tokens_details.cache_write_tokens_details",),
    open_known=("input_tokens_details.cache_write_tokens_details.ttl_30m_tokens",),
    tier=("service_tier",),
)
ANTHROPIC = UsageShape(
    name="anthropic",
    counts={
        "input_tokens": ("input_tokens",),
        "cache_read_tokens": ("cache_read_input_tokens",),
        "cache_write_tokens": ("cache_creation_input_tokens",),
        "cache_write_long_tokens": ("cache_creation.ephemeral_1h_input_tokens",),
        "output_tokens": ("output_tokens",),
        "reasoning_tokens": ("output_tokens_details.thinking_tokens",),
        "web_searches": ("server_tool_use.web_search_requests",),
    },
    marks=_any_of(
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "cache_creation",
        "server_tool_use",
        "inference_geo",
        "speed",
        "iterations",
        "output_tokens_details.thinking_tokens",
    ),
    includes_cache=False,
    absent={
        "input_tokens": ZERO_BESIDE_CACHE,
        "cache_read_tokens": ZERO,
        "cache_write_tokens": ZERO,
        "cache_write_long_tokens": ZERO_WITHOUT_WRITES,
        "web_searches": ZERO,
    },
    open_objects=("cache_creation",),
    open_known=("cache_creation.ephemeral_5m_input_tokens",),
    tier=("service_tier",),
    region=("inference_geo",),
)


def _of_modality(modality: str, *lists: str) -> tuple[str, ...]:
    return tuple(f"{name}[modality={modality}].tokenCount" for name in lists)


_PROMPT_DETAILS = ("promptTokensDetails", "prompt_tokens_details")
_CACHE_DETAILS = ("cacheTokensDetails", "cache_tokens_details")
_ANSWER_DETAILS = (
    *("candidatesTokensDetails", "candidates_tokens_details"),
    *("responseTokensDetails", "response_tokens_details"),
)
GEMINI = UsageShape(
    name="gemini",
    counts={
        "input_tokens": ("promptTokenCount", "prompt_token_count"),
        "cache_read_tokens": ("cachedContentTokenCount", "cached_content_token_count"),
        "input_audio_tokens": _of_modality("AUDIO", *_PROMPT_DETAILS),
        "input_image_tokens": _of_modality("IMAGE", *_PROMPT_DETAILS),
        "input_video_tokens": _of_modality("VIDEO", *_PROMPT_DETAILS),
        "cache_read_audio_tokens": _of_modality("AUDIO", *_CACHE_DETAILS),
        "cache_read_image_tokens": _of_modality("IMAGE", *_CACHE_DETAILS),
        "cache_read_video_tokens": _of_modality("VIDEO", *_CACHE_DETAILS),
        "output_tokens": (
            "candidatesTokenCount",
            "responseTokenCount",
            "candidates_token_count",
            "response_token_count",
        ),
        "reasoning_tokens": ("thoughtsTokenCount", "thoughts_token_count"),
        "output_audio_tokens": _of_modality("AUDIO", *_ANSWER_DETAILS),
        "output_image_tokens": _of_modality("IMAGE", *_ANSWER_DETAILS),
        "output_video_tokens": _of_modality("VIDEO", *_ANSWER_DETAILS),
    },
    marks=_any_of(
        "promptTokenCount",
        "candidatesTokenCount",
        "totalTokenCount",
        "prompt_token_count",
        "total_token_count",
    ),
    total=("totalTokenCount", "total_token_count"),
    input_beside=("toolUsePromptTokenCount", "tool_use_prompt_token_count"),
    output_beside=("thoughtsTokenCount", "thoughts_token_count"),
    # proto3 JSON leaves zeros out.
    absent={
        "input_tokens": ZERO,
        "cache_read_tokens": ZERO,
        "output_tokens": ZERO,
        "reasoning_tokens": ZERO,
        "input_audio_tokens": ZERO,
        "input_image_tokens": ZERO,
        "input_video_tokens": ZERO,
        "output_audio_tokens": ZERO,
        "output_image_tokens": ZERO,
        "output_video_tokens": ZERO,
        **dict.fromkeys(
            ("cache_read_audio_tokens", "cache_read_image_tokens", "cache_read_video_tokens"),
            "cacheTokensDetails|cache_tokens_details",
        ),
    },
    tier=("serviceTier", "service_tier", "trafficType", "traffic_type"),
)
BEDROCK = UsageShape(
    name="bedrock_converse",
    counts={
        "input_tokens": ("inputTokens",),
        "cache_read_tokens": ("cacheReadInputTokens", "cacheReadInputTokenCount"),
        "cache_write_tokens": ("cacheWriteInputTokens", "cacheWriteInputTokenCount"),
        "cache_write_long_tokens": ("cacheDetails[ttl=1h].inputTokens",),
        "output_tokens": ("outputTokens",),
    },
    write_split=("cacheDetails[ttl=5m].inputTokens", "cacheDetails[ttl=1h].inputTokens"),
    marks=_any_of("cacheReadInputTokens", "cacheWriteInputTokens", "cacheReadInputTokenCount", "cacheDetails"),
    total=("totalTokens",),
    includes_cache=False,
    absent={
        "cache_read_tokens": ZERO,
        "cache_write_tokens": ZERO,
        "cache_write_long_tokens": ZERO_WITHOUT_WRITES,
    },
)
# Vercel AI SDK 6: details say what the total is made of. AI SDK 5 had the same flat keys with the provider's
# own convention, and a total that leaves out what the input leaves out: it proves nothing.
VERCEL_6 = UsageShape(
    name="vercel_ai_6",
    counts={
        "input_tokens": ("inputTokens",),
        "cache_read_tokens": ("inputTokenDetails.cacheReadTokens", "cachedInputTokens"),
        "cache_write_tokens": ("inputTokenDetails.cacheWriteTokens",),
        "output_tokens": ("outputTokens",),
        "reasoning_tokens": ("outputTokenDetails.reasoningTokens", "reasoningTokens"),
    },
    marks=_any_of("inputTokenDetails", "outputTokenDetails"),
    total=("totalTokens",),
)
VERCEL_5 = UsageShape(
    name="vercel_ai_5",
    counts={
        "input_tokens": ("inputTokens",),
        "cache_read_tokens": ("cachedInputTokens",),
        "output_tokens": ("outputTokens",),
        "reasoning_tokens": ("reasoningTokens",),
    },
    marks=_any_of("cachedInputTokens"),
    total=("totalTokens",),
    includes_cache=None,
    total_proves=False,
)
# GitHub Copilot SDK (`assistant.usage`): cacheReadTokens says how much of inputTokens came from the cache.
COPILOT = UsageShape(
    name="copilot_sdk",
    counts={
        "input_tokens": ("inputTokens",),
        "cache_read_tokens": ("cacheReadTokens",),
        "cache_write_tokens": ("cacheWriteTokens",),
        "output_tokens": ("outputTokens",),
        "reasoning_tokens": ("reasoningTokens",),
    },
    marks=_with("inputTokens", "cacheReadTokens") + _with("inputTokens", "cacheWriteTokens"),
    total=("totalTokens",),
)
# Used by several agents with either convention.
FLAT = UsageShape(
    name="camel_case",
    counts={
        "input_tokens": ("inputTokens", "input"),
        "cache_read_tokens": ("cacheRead",),
        "cache_write_tokens": ("cacheWrite",),
        "output_tokens": ("outputTokens", "output"),
    },
    marks=_any_of("cacheRead", "cacheWrite"),
    total=("totalTokens",),
    includes_cache=None,
)
CAMEL = UsageShape(
    name="camel_case_plain",
    counts={
        "input_tokens": ("inputTokens",),
        "output_tokens": ("outputTokens",),
        "reasoning_tokens": ("reasoningTokens",),
    },
    marks=(frozenset({"inputTokens"}), frozenset({"outputTokens"})),
    total=("totalTokens",),
)
# LangChain usage_metadata and OpenAI realtime: `input_token_details`, singular.
TOKEN_DETAILS = UsageShape(
    name="token_details",
    counts={
        "input_tokens": ("input_tokens",),
        "cache_read_tokens": ("input_token_details.cache_read", "input_token_details.cached_tokens"),
        "cache_write_tokens": ("input_token_details.cache_creation",),
        # LangChain sets cache_creation to 0 where it gives Anthropic's split by lifetime.
        "cache_write_long_tokens": ("input_token_details.ephemeral_1h_input_tokens",),
        "input_audio_tokens": ("input_token_details.audio", "input_token_details.audio_tokens"),
        "input_image_tokens": ("input_token_details.image_tokens",),
        "cache_read_audio_tokens": ("input_token_details.cached_tokens_details.audio_tokens",),
        "cache_read_image_tokens": ("input_token_details.cached_tokens_details.image_tokens",),
        "output_tokens": ("output_tokens",),
        "reasoning_tokens": ("output_token_details.reasoning",),
        "output_audio_tokens": ("output_token_details.audio", "output_token_details.audio_tokens"),
    },
    marks=_any_of("input_token_details", "output_token_details"),
    write_split=("input_token_details.ephemeral_5m_input_tokens", "input_token_details.ephemeral_1h_input_tokens"),
    total=("total_tokens",),
)
# LiteLLM's own usage object: OpenAI keys, made inclusive, with Anthropic's cache keys repeated beside them.
LITELLM = UsageShape(
    name="litellm",
    counts={
        "input_tokens": ("prompt_tokens",),
        "cache_read_tokens": ("prompt_tokens_details.cached_tokens", "cache_read_input_tokens"),
        "cache_write_tokens": (
            "prompt_tokens_details.cache_write_tokens",
            "prompt_tokens_details.cache_creation_tokens",
            "cache_creation_input_tokens",
        ),
        "cache_write_long_tokens": ("prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens",),
        "input_audio_tokens": ("prompt_tokens_details.audio_tokens",),
        "input_image_tokens": ("prompt_tokens_details.image_tokens",),
        "output_tokens": ("completion_tokens",),
        "reasoning_tokens": ("completion_tokens_details.reasoning_tokens",),
        "output_audio_tokens": ("completion_tokens_details.audio_tokens",),
        "web_searches": ("server_tool_use.web_search_requests",),
    },
    marks=(
        *_with("prompt_tokens", "cache_read_input_tokens"),
        *_with("prompt_tokens", "cache_creation_input_tokens"),
    ),
    total=("total_tokens",),
    tier=("service_tier",),
)
# Codex (rollouts, `turn.completed`): OpenAI's counts under names of its own. Some logs' totals add the reasoning again.
CODEX = UsageShape(
    name="codex",
    counts={
        "input_tokens": ("input_tokens",),
        "cache_read_tokens": ("cached_input_tokens",),
        "cache_write_tokens": ("cache_write_input_tokens",),
        "output_tokens": ("output_tokens",),
        "reasoning_tokens": ("reasoning_output_tokens",),
    },
    marks=_any_of("cached_input_tokens", "reasoning_output_tokens"),
    total=("total_tokens",),
    total_proves=False,
)


def _flat(*names: str) -> tuple[str, ...]:
    return tuple(name.replace(".", "\\.") for name in names)


# The attributes of a span, as they stand on it: flat, with dots in their names.
SPAN = UsageShape(
    name="opentelemetry",
    counts={column: _flat(*names) for column, names in attributes.COUNTS.items()},
    marks=_any_of(*_flat(*attributes.COUNTS["input_tokens"], *attributes.COUNTS["output_tokens"])),
    total=_flat(*attributes.TOTAL),
    absent={"cache_read_tokens": ZERO_BESIDE_PARTS, "cache_write_tokens": ZERO_BESIDE_PARTS},
    tier=_flat(*attributes.SERVICE_TIER),
)

SHAPES: dict[str, UsageShape] = {
    shape.name: shape
    for shape in (
        TENFOLD,
        OPENAI_CHAT,
        OPENAI_RESPONSES,
        ANTHROPIC,
        GEMINI,
        BEDROCK,
        VERCEL_6,
        VERCEL_5,
        COPILOT,
        FLAT,
        CAMEL,
        TOKEN_DETAILS,
        LITELLM,
        CODEX,
        SPAN,
    )
}
# A more particular shape's marks imply the plainer one's, which then is no second reading.
SPECIALISES: dict[str, tuple[str, ...]] = {
    "openai_responses": ("tenfold",),
    "anthropic": ("tenfold",),
    "token_details": ("tenfold", "openai_responses"),
    "litellm": ("openai_chat", "anthropic"),
    "codex": ("tenfold", "openai_responses"),
    "bedrock_converse": ("camel_case_plain",),
    "vercel_ai_6": ("camel_case_plain", "vercel_ai_5"),
    "vercel_ai_5": ("camel_case_plain",),
    "copilot_sdk": ("camel_case_plain",),
    "camel_case": ("camel_case_plain",),
}
