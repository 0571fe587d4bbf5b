"""OpenAI Chat Completions: one answer (or its last stream chunk) a line, as every OpenAI-compatible server writes."""

from __future__ import annotations

from tenfold.logs import envelope, sql
from tenfold.logs.base import Detect, Other, Reader, usage_leaves
from tenfold.usage.shapes import OPENAI_CHAT as SHAPE

FAILED = "r.error IS NOT NULL OR TRY_CAST(r.status_code::VARCHAR AS INTEGER) >= 400"
BY_OBJECT = "CASE r.object WHEN 'chat.completion.chunk' THEN 'true' WHEN 'chat.completion' THEN 'false' END"
REASON = "r.choices[1].finish_reason"

OPENAI_CHAT = Reader(
    name="openai_chat",
    kinds=("ndjson",),
    shape=SHAPE,
    usage="r.usage",
    leaves={
        "id": "VARCHAR",
        "object": "VARCHAR",
        "created": "JSON",
        "model": "VARCHAR",
        "service_tier": "VARCHAR",
        "choices[].finish_reason": "VARCHAR",
        "error.type": "VARCHAR",
        "status_code": "JSON",
        "user": "VARCHAR",
        **usage_leaves(SHAPE, "usage."),
        **envelope.METADATA_LEAVES,
        **envelope.LEAVES,
    },
    fields=envelope.with_metadata(
        {
            "request_id": sql.first("r.id", envelope.held("request_id")),
            "provider": "'openai'",
            "model": "r.model",
            "model_requested": "NULL",
            "region": envelope.held("region"),
            "service_tier": sql.first("r.service_tier", "r.usage.service_tier"),
            "operation": "'chat'",
            "is_stream": f"coalesce({envelope.held('is_stream')}, {BY_OBJECT})",
            "status": f"CASE WHEN {FAILED} THEN 'error' ELSE 'success' END",
            "finish_reason": REASON,
            "http_status": f"coalesce({sql.text('r.status_code')}, {envelope.held('http_status')})",
            "is_billable": f"CASE WHEN {FAILED} THEN r.usage IS NOT NULL ELSE true END",
        }
    ),
    ts=f"coalesce({envelope.TS}, {sql.text('r.created')})",
    dedup_key=f"'openai|' || {sql.key_part(sql.named('r.id'))}",
    detect=Detect(
        keys=(("usage.prompt_tokens",), ("usage.completion_tokens",), ("error", "status_code")),
        values={"object": ("chat.completion", "chat.completion.chunk", "text_completion")},
        others=(Other("OpenAI Responses", "object", ("response",)),),
        records=(
            ("usage.total_tokens",),
            ("choices", "model"),
            ("error", "id"),
            ("error", "model"),
            ("error", "status_code"),
            ("error", "_log"),
        ),
    ),
)
