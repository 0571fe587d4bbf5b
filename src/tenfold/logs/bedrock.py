"""What the readers of AWS Bedrock have in common: counts leave cached tokens out, tiers, finish words."""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.usage.shapes import BEDROCK

# InvokeModel answers in the model maker's own shape; Anthropic's keys share no name with Converse's.
SHAPE = BEDROCK._replace(
    name="bedrock_log",
    counts={
        "input_tokens": ("inputTokens", "input_tokens"),
        "cache_read_tokens": (*BEDROCK.counts["cache_read_tokens"], "cache_read_input_tokens"),
        "cache_write_tokens": (*BEDROCK.counts["cache_write_tokens"], "cache_creation_input_tokens"),
        "cache_write_long_tokens": (
            *BEDROCK.counts["cache_write_long_tokens"],
            "cache_creation.ephemeral_1h_input_tokens",
        ),
        "output_tokens": ("outputTokens", "output_tokens"),
    },
    write_split=(),
)


def tier(said: str, latency: str) -> str:
    """Give the service tier; latency-optimised inference has a price of its own.

    Args:
        said: SQL text of the answer's ``serviceTier.type``.
        latency: SQL text of its ``performanceConfig.latency``.

    Returns:
        SQL text.
    """
    return sql.first(said, f"CASE WHEN {latency} = 'optimized' THEN 'latency_optimized' END")
