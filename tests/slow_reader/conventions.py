"""Which key is which count, per source (formats.md A5), and what a missing one means."""

from __future__ import annotations

from slow_reader.counts import COLUMNS, Convention

_P, _C = "prompt_tokens_details", "completion_tokens_details"
_I, _O = "input_tokens_details", "output_tokens_details"

CHAT = Convention(
    counts={
        "input_tokens": ("prompt_tokens",),
        "cache_read_tokens": (f"{_P}.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"),
        "cache_write_tokens": (f"{_P}.cache_write_tokens",),
        "input_audio_tokens": (f"{_P}.audio_tokens",),
        "input_image_tokens": (f"{_P}.image_tokens",),
        "output_tokens": ("completion_tokens",),
        "reasoning_tokens": (f"{_C}.reasoning_tokens",),
        "output_audio_tokens": (f"{_C}.audio_tokens",),
        "output_image_tokens": (f"{_C}.image_tokens",),
    },
    total=("total_tokens",),
    absent={
        "output_tokens": "by total",
        "cache_read_tokens": (_P,),
        "cache_write_tokens": (_P,),
        "input_audio_tokens": (_P,),
        "reasoning_tokens": (_C,),
        "output_audio_tokens": (_C,),
    },
    zero_below=1024,
)
ROUTED_CHAT = Convention(
    counts={**CHAT.counts, "web_searches": ("server_tool_use.web_search_requests",)},
    total=CHAT.total,
    absent=CHAT.absent,
)
RESPONSES = Convention(
    counts={
        "input_tokens": ("input_tokens",),
        "cache_read_tokens": (f"{_I}.cached_tokens",),
        "cache_write_tokens": (f"{_I}.cache_write_tokens",),
        "cache_write_long_tokens": (f"{_I}.cache_write_tokens_details.ttl_12h_tokens",),
        "input_audio_tokens": (f"{_I}.audio_tokens",),
        "input_image_tokens": (f"{_I}.image_tokens",),
        "output_tokens": ("output_tokens",),
        "reasoning_tokens": (f"{_O}.reasoning_tokens",),
        "output_audio_tokens": (f"{_O}.audio_tokens",),
        "output_image_tokens": (f"{_O}.image_tokens",),
    },
    total=("total_tokens",),
    absent={
        "cache_read_tokens": (_I,),
        "cache_write_tokens": (_I,),
        "cache_write_long_tokens": "no writes",
        "reasoning_tokens": (_O,),
    },
    zero_below=1024,
    meters=f"{_I}.cache_write_tokens_details",
    known_meters=("ttl_30m_tokens",),
)
# A batch's answers are of the one endpoint or the other.
BATCH = Convention(
    counts={name: (*CHAT.counts.get(name, ()), *RESPONSES.counts.get(name, ())) for name in COLUMNS},
    total=("total_tokens",),
    absent={
        "output_tokens": "by total",
        "cache_read_tokens": (_P, _I),
        "cache_write_tokens": (_P, _I),
        "input_audio_tokens": (_P,),
        "reasoning_tokens": (_C, _O),
        "output_audio_tokens": (_C,),
    },
    zero_below=1024,
    meters=RESPONSES.meters,
    known_meters=RESPONSES.known_meters,
)
ANTHROPIC = Convention(
    counts={
        "input_tokens": ("input_tokens",),
        "cache_read_tokens": ("cache_read_input_tokens",),
        "cache_write_tokens": ("cache_creation_input_tokens",),
        "cache_write_long_tokens": ("cache_creation.ephemeral_1h_input_tokens",),
        "output_tokens": ("output_tokens",),
        "reasoning_tokens": ("output_tokens_details.thinking_tokens",),
        "web_searches": ("server_tool_use.web_search_requests",),
    },
    adds_cache=True,
    absent={
        "input_tokens": "beside cache",
        "cache_read_tokens": "zero",
        "cache_write_tokens": "zero",
        "cache_write_long_tokens": "no writes",
        "web_searches": "zero",
    },
    meters="cache_creation",
    known_meters=("ephemeral_5m_input_tokens",),
)
_MEDIA = ("audio", "image", "video")
GEMINI = Convention(
    # media counts are sums over lists: the format gives them
    counts={
        "input_tokens": ("promptTokenCount", "prompt_token_count"),
        "cache_read_tokens": ("cachedContentTokenCount", "cached_content_token_count"),
        "output_tokens": (
            *("candidatesTokenCount", "responseTokenCount"),
            *("candidates_token_count", "response_token_count"),
        ),
        "reasoning_tokens": ("thoughtsTokenCount", "thoughts_token_count"),
    },
    total=("totalTokenCount", "total_token_count"),
    beside_in=("toolUsePromptTokenCount", "tool_use_prompt_token_count"),
    beside_out=("thoughtsTokenCount", "thoughts_token_count"),
    absent={
        **dict.fromkeys(("input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens"), "zero"),
        **{f"{side}_{kind}_tokens": "zero" for side in ("input", "output") for kind in _MEDIA},
        **{f"cache_read_{kind}_tokens": ("cacheTokensDetails", "cache_tokens_details") for kind in _MEDIA},
    },
)
BEDROCK = Convention(
    counts={
        "input_tokens": ("inputTokens", "input_tokens"),
        "cache_read_tokens": ("cacheReadInputTokens", "cacheReadInputTokenCount", "cache_read_input_tokens"),
        "cache_write_tokens": ("cacheWriteInputTokens", "cacheWriteInputTokenCount", "cache_creation_input_tokens"),
        "output_tokens": ("outputTokens", "output_tokens"),
    },
    total=("totalTokens",),
    adds_cache=True,
    absent={"cache_read_tokens": "zero", "cache_write_tokens": "zero", "cache_write_long_tokens": "no writes"},
)
LITELLM = Convention(
    counts={
        "input_tokens": ("prompt_tokens",),
        "cache_read_tokens": (f"{_P}.cached_tokens", "cache_read_input_tokens"),
        "cache_write_tokens": (
            *(f"{_P}.cache_write_tokens", f"{_P}.cache_creation_tokens"),
            "cache_creation_input_tokens",
        ),
        "cache_write_long_tokens": (f"{_P}.cache_creation_token_details.ephemeral_1h_input_tokens",),
        "input_audio_tokens": (f"{_P}.audio_tokens",),
        "input_image_tokens": (f"{_P}.image_tokens",),
        "output_tokens": ("completion_tokens",),
        "reasoning_tokens": (f"{_C}.reasoning_tokens",),
        "output_audio_tokens": (f"{_C}.audio_tokens",),
        "web_searches": ("server_tool_use.web_search_requests",),
    },
)
PORTKEY = Convention(
    counts={
        "input_tokens": ("prompt_tokens", "input_tokens"),
        "cache_read_tokens": (f"{_P}.cached_tokens", f"{_I}.cached_tokens", "cache_read_input_tokens"),
        "cache_write_tokens": ("cache_creation_input_tokens",),
        "output_tokens": ("completion_tokens", "output_tokens"),
        "reasoning_tokens": (f"{_C}.reasoning_tokens", f"{_O}.reasoning_tokens"),
    },
)
KONG = Convention(
    counts={
        "input_tokens": ("prompt_tokens", "input_tokens"),
        "cache_read_tokens": (f"{_P}.cached_tokens",),
        "input_audio_tokens": (f"{_P}.audio_tokens", f"{_I}.audio_tokens_count"),
        "input_image_tokens": (f"{_I}.image_tokens",),
        "output_tokens": ("completion_tokens", "output_tokens"),
        "reasoning_tokens": (f"{_C}.reasoning_tokens",),
        "output_audio_tokens": (f"{_C}.audio_tokens", f"{_O}.audio_tokens"),
    },
    total=("total_tokens",),
)
HELICONE = Convention(
    counts={
        "input_tokens": ("prompt_tokens",),
        "cache_read_tokens": ("prompt_cache_read_tokens",),
        "cache_write_tokens": ("prompt_cache_write_tokens",),
        "input_audio_tokens": ("prompt_audio_tokens",),
        "output_tokens": ("completion_tokens",),
        "reasoning_tokens": ("reasoning_tokens",),
        "output_audio_tokens": ("completion_audio_tokens",),
    },
    total=("total_tokens",),
)
OPENROUTER = Convention(
    counts={
        "input_tokens": ("native_tokens_prompt",),
        "cache_read_tokens": ("native_tokens_cached",),
        "output_tokens": ("native_tokens_completion",),
        "reasoning_tokens": ("native_tokens_reasoning",),
        "output_image_tokens": ("native_tokens_completion_images",),
    },
)
CODEX = Convention(
    counts={
        "input_tokens": ("input_tokens",),
        "cache_read_tokens": ("cached_input_tokens",),
        "cache_write_tokens": ("cache_write_input_tokens",),
        "output_tokens": ("output_tokens",),
        "reasoning_tokens": ("reasoning_output_tokens",),
    },
    total_proves=False,
)
SGLANG = Convention(
    counts={
        "input_tokens": ("prompt_tokens",),
        "cache_read_tokens": ("cached_tokens",),
        "output_tokens": ("completion_tokens",),
        "reasoning_tokens": ("reasoning_tokens",),
    },
)
# Tenfold's own names; for sources whose counts a format works out by itself.
PLAIN = Convention(counts={name: (name,) for name in COLUMNS})


def lengths(inputs: str, outputs: str, *total: str) -> Convention:
    """A published trace: totals only."""
    return Convention(counts={"input_tokens": (inputs,), "output_tokens": (outputs,)}, total=total)
