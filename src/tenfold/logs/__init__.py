"""Logs: one reader per format, quarantine for what is no record, and the load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.logs.anthropic_batch import ANTHROPIC_BATCH
from tenfold.logs.anthropic_messages import ANTHROPIC_MESSAGES
from tenfold.logs.anthropic_stream import ANTHROPIC_STREAM
from tenfold.logs.azure_apim import AZURE_APIM
from tenfold.logs.azure_llm_trace import AZURE_TRACE
from tenfold.logs.bedrock_batch import BEDROCK_BATCH
from tenfold.logs.bedrock_converse import BEDROCK_CONVERSE
from tenfold.logs.bedrock_log import BEDROCK_LOG
from tenfold.logs.burstgpt import BURSTGPT
from tenfold.logs.claude_code import CLAUDE_CODE
from tenfold.logs.codex import CODEX
from tenfold.logs.envoy_ai_gateway import ENVOY_AI_GATEWAY
from tenfold.logs.gemini import GEMINI_ANSWERS
from tenfold.logs.helicone import HELICONE
from tenfold.logs.kong_ai_proxy import KONG
from tenfold.logs.langfuse import LANGFUSE
from tenfold.logs.litellm_payload import LITELLM_PAYLOAD
from tenfold.logs.litellm_spend import LITELLM_SPEND
from tenfold.logs.mapped import TENFOLD_ROWS
from tenfold.logs.mooncake_trace import MOONCAKE
from tenfold.logs.openai_batch import OPENAI_BATCH
from tenfold.logs.openai_chat import OPENAI_CHAT
from tenfold.logs.openai_responses import OPENAI_RESPONSES
from tenfold.logs.openai_responses_stream import OPENAI_RESPONSES_STREAM
from tenfold.logs.openinference import OPENINFERENCE
from tenfold.logs.openrouter_chat import OPENROUTER_CHAT
from tenfold.logs.openrouter_generation import OPENROUTER_GENERATION
from tenfold.logs.otlp import OTLP
from tenfold.logs.portkey import PORTKEY
from tenfold.logs.qwen_bailian_trace import QWEN_BAILIAN
from tenfold.logs.sglang import SGLANG

if TYPE_CHECKING:
    from tenfold.logs.base import Reader

# Earlier ones win where two fit as many records of a file.
READERS: tuple[Reader, ...] = (
    OPENAI_BATCH,
    OPENAI_RESPONSES,
    OPENAI_RESPONSES_STREAM,
    ANTHROPIC_BATCH,
    ANTHROPIC_STREAM,
    ANTHROPIC_MESSAGES,
    GEMINI_ANSWERS,
    CLAUDE_CODE,
    CODEX,
    BEDROCK_LOG,
    BEDROCK_BATCH,
    BEDROCK_CONVERSE,
    AZURE_APIM,
    OPENROUTER_GENERATION,
    OPENROUTER_CHAT,
    HELICONE,
    KONG,
    ENVOY_AI_GATEWAY,
    PORTKEY,
    LITELLM_PAYLOAD,
    LITELLM_SPEND,
    LANGFUSE,
    OTLP,
    OPENINFERENCE,
    SGLANG,
    AZURE_TRACE,
    BURSTGPT,
    MOONCAKE,
    QWEN_BAILIAN,
    TENFOLD_ROWS,
    OPENAI_CHAT,
)

from tenfold.logs.loading import load  # noqa: E402 -- the load needs the readers
from tenfold.logs.log import Log, open_log  # noqa: E402

__all__ = ["READERS", "Log", "load", "open_log"]
