"""Anthropic Messages: one message a line, with the usage object as it came and an optional `_log` envelope."""

from __future__ import annotations

from tenfold.logs import envelope, sql
from tenfold.logs.base import Children, Detect, Other, Reader, usage_leaves
from tenfold.usage.shapes import ANTHROPIC as SHAPE

# Their counts are cumulative, and the message's id stands in the first one alone.
_STREAM_EVENTS = Other(
    "Anthropic stream events (message_start, message_delta, ...), which are not read: log the final message of each "
    "stream, one object a line",
    "type",
    (
        *("message_start", "message_delta", "message_stop", "ping"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
    ),
)
# An OpenAI answer may bear Anthropic's cache keys beside its own (LiteLLM writes both).
_OPENAI = Other("OpenAI answers", "object", ("chat.completion", "chat.completion.chunk", "text_completion", "response"))
_FAILED = "(r.type = 'error' OR r.error IS NOT NULL OR TRY_CAST(r.status_code::VARCHAR AS INTEGER) >= 400)"
_OTHER_MODEL = "len(list_filter(r.usage.iterations, lambda i: i.type NOT IN ('message', 'compaction'))) > 0"
# The n-th compaction of one message; the first one has no number.
_NUMBER = "CASE WHEN r.it_number > 1 THEN r.it_number::VARCHAR ELSE '' END"

ANTHROPIC_MESSAGES = Reader(
    name="anthropic_messages",
    kinds=("ndjson",),
    shape=SHAPE,
    usage="r.usage",
    leaves={
        "id": "VARCHAR",
        "type": "VARCHAR",
        "object": "VARCHAR",
        "model": "VARCHAR",
        "stop_reason": "VARCHAR",
        "error.type": "VARCHAR",
        "status_code": "JSON",
        "usage.speed": "VARCHAR",
        "usage.iterations[].type": "VARCHAR",
        **usage_leaves(SHAPE, "usage."),
        **usage_leaves(SHAPE, "usage.iterations[]."),
        **envelope.LEAVES,
    },
    fields={
        **envelope.fields(),
        "request_id": sql.first("r.id", envelope.held("request_id")),
        "parent_id": "CASE WHEN len(r.usage.iterations) > 0 THEN r.id END",
        "provider": "'anthropic'",
        "model": "r.model",
        "region": "CASE WHEN r.usage.inference_geo NOT IN ('global', 'not_available') THEN r.usage.inference_geo END",
        "service_tier": "CASE WHEN r.usage.speed = 'fast' THEN 'fast' ELSE r.usage.service_tier END",
        "operation": "'messages'",
        "is_stream": envelope.held("is_stream"),
        "status": f"CASE WHEN {_FAILED} THEN 'error' ELSE 'success' END",
        "finish_reason": "r.stop_reason",
        "http_status": f"coalesce({sql.text('r.status_code')}, {envelope.held('http_status')})",
        "is_billable": f"NOT {_FAILED} OR r.usage IS NOT NULL",
    },
    ts=envelope.TS,
    dedup_key=f"'anthropic|' || {sql.key_part(sql.named('r.id'))}",
    detect=Detect(
        keys=(
            ("usage.cache_read_input_tokens",),
            ("usage.cache_creation_input_tokens",),
            ("stop_reason", "usage.input_tokens"),
        ),
        values={"type": ("message",)},
        absent=("message", "sessionId"),
        others=(_STREAM_EVENTS, _OPENAI),
        records=(("error", "type"), ("error", "id"), ("error", "status_code"), ("error", "_log")),
    ),
    flags={"iterations_unverified": _OTHER_MODEL},
    children=(
        Children(
            each="list_filter(r.usage.iterations, lambda i: i.type = 'compaction')",
            suffix=f"'#compaction' || {_NUMBER}",
            fields={
                "request_id": f"r.id || '#compaction' || {_NUMBER}",
                "parent_id": "r.id",
                "duration_ms": "NULL",
                "ttft_ms": "NULL",
                "finish_reason": "NULL",
            },
            usage="r.it",
        ),
    ),
)
