"""Anthropic Messages: one message a line, with the usage object as it came and an optional `_log` envelope."""

from __future__ import annotations

from tenfold.logs import anthropic, envelope, sql
from tenfold.logs.base import Detect, Other, Reader, Text
from tenfold.logs.text import forms
from tenfold.usage.shapes import ANTHROPIC as SHAPE

# Their counts are cumulative, and the message's id stands in the first one alone.
_STREAM_EVENTS = Other(
    "Anthropic stream events",
    "type",
    (
        *("message_start", "message_delta", "message_stop", "ping"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
    ),
)
# An OpenAI answer may bear Anthropic's cache keys beside its own (LiteLLM writes both).
_OPENAI = Other("OpenAI answers", "object", ("chat.completion", "chat.completion.chunk", "text_completion", "response"))
_FAILED = "(r.type = 'error' OR r.error IS NOT NULL OR TRY_CAST(r.status_code::VARCHAR AS INTEGER) >= 400)"

ANTHROPIC_MESSAGES = Reader(
    name="anthropic_messages",
    kinds=("ndjson",),
    one_request="id; compactions are rows of their own",
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
        **anthropic.leaves("usage."),
        **envelope.LEAVES,
    },
    fields={
        **envelope.fields(),
        "request_id": sql.first("r.id", envelope.held("request_id")),
        "parent_id": anthropic.parent("r.usage", "r.id"),
        "provider": "'anthropic'",
        "model": "r.model",
        "region": anthropic.region("r.usage"),
        "service_tier": anthropic.tier("r.usage"),
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
    flags=anthropic.flags("r.usage"),
    children=(anthropic.compactions("r.usage", "r.id"),),
    text=Text(
        leaves={
            **forms.REQUEST_LEAVES,
            **dict.fromkeys(("tools", "system", "messages", "content"), "JSON"),
        },
        prompt=f"coalesce({forms.REQUEST}, {forms.asked(tools='r.tools', system='r.system', messages='r.messages')})",
        params=forms.REQUEST,
        response=forms.filled("r.content"),
    ),
)
