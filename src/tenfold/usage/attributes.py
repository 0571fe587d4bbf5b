"""Names of token counts on spans: OpenTelemetry GenAI's today and before, and OpenInference's.

OpenTelemetry's input counts what was read from a cache and written to it, too (semantic conventions for GenAI, client
inference span); so does OpenInference's prompt.
"""

from __future__ import annotations

_GEN_AI = "gen_ai.usage."
_LLM = "llm.token_count."
# Token column -> attributes that hold it: today's name, older ones, OpenInference's. The first one there wins.
COUNTS = {
    "input_tokens": (f"{_GEN_AI}input_tokens", f"{_GEN_AI}prompt_tokens", f"{_LLM}prompt"),
    "cache_read_tokens": (
        f"{_GEN_AI}cache_read.input_tokens",
        f"{_GEN_AI}cache_read_input_tokens",
        f"{_GEN_AI}cache_read_tokens",
        f"{_GEN_AI}details.cache_read_tokens",
        f"{_GEN_AI}details.cached_tokens",
        f"{_LLM}prompt_details.cache_read",
    ),
    "cache_write_tokens": (
        f"{_GEN_AI}cache_write.input_tokens",
        f"{_GEN_AI}cache_creation.input_tokens",
        f"{_GEN_AI}cache_creation_input_tokens",
        f"{_GEN_AI}cache_write_tokens",
        f"{_GEN_AI}details.cache_write_tokens",
        f"{_LLM}prompt_details.cache_write",
    ),
    "input_audio_tokens": (f"{_GEN_AI}audio.input_tokens", f"{_LLM}prompt_details.audio"),
    "input_image_tokens": (f"{_GEN_AI}image.input_tokens",),
    "output_tokens": (f"{_GEN_AI}output_tokens", f"{_GEN_AI}completion_tokens", f"{_LLM}completion"),
    "reasoning_tokens": (
        f"{_GEN_AI}reasoning.output_tokens",
        f"{_GEN_AI}reasoning_tokens",
        f"{_GEN_AI}details.reasoning_tokens",
        f"{_LLM}completion_details.reasoning",
    ),
    "output_audio_tokens": (f"{_GEN_AI}audio.output_tokens", f"{_LLM}completion_details.audio"),
    "output_image_tokens": (f"{_GEN_AI}image.output_tokens",),
}
TOTAL = (f"{_GEN_AI}total_tokens", "llm.usage.total_tokens", f"{_LLM}total")
SERVICE_TIER = ("gen_ai.openai.response.service_tier", "openai.response.service_tier", "gen_ai.response.service_tier")
NAMES = frozenset({*TOTAL, *SERVICE_TIER, *(name for names in COUNTS.values() for name in names)})
