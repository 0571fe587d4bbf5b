"""OpenAI Responses API: one response object a line."""

from __future__ import annotations

from tenfold.logs import envelope, openai_tools, sql
from tenfold.logs.base import Detect, Other, Reader, usage_leaves
from tenfold.usage.shapes import OPENAI_RESPONSES as SHAPE

_CREATED, _COMPLETED = sql.text("r.created_at"), sql.text("r.completed_at")

OPENAI_RESPONSES = Reader(
    name="openai_responses",
    kinds=("ndjson",),
    shape=SHAPE,
    usage="r.usage",
    leaves={
        "id": "VARCHAR",
        "object": "VARCHAR",
        "created_at": "JSON",
        "completed_at": "JSON",
        "status": "VARCHAR",
        "incomplete_details.reason": "VARCHAR",
        "error.code": "VARCHAR",
        "model": "VARCHAR",
        "service_tier": "VARCHAR",
        "safety_identifier": "VARCHAR",
        "user": "VARCHAR",
        "previous_response_id": "VARCHAR",
        **openai_tools.leaves(""),
        **usage_leaves(SHAPE, "usage."),
        **envelope.METADATA_LEAVES,
        **envelope.LEAVES,
    },
    fields=envelope.with_metadata(
        {
            "request_id": "r.id",
            "provider": "'openai'",
            "model": "r.model",
            "region": envelope.held("region"),
            "service_tier": sql.first("r.service_tier", "r.usage.service_tier"),
            "operation": "'responses'",
            "is_stream": envelope.held("is_stream"),
            "duration_ms": f"coalesce(TRY_CAST({envelope.held('duration_ms')} AS DOUBLE), "
            f"round({sql.milliseconds(_CREATED, _COMPLETED)}, 3))",
            "status": sql.first("r.status", "CASE WHEN r.error IS NOT NULL THEN 'error' ELSE 'success' END"),
            "finish_reason": sql.first(
                "r.incomplete_details.reason", "CASE WHEN r.status = 'completed' THEN 'stop' END"
            ),
            "http_status": envelope.held("http_status"),
            "is_billable": "r.status IS DISTINCT FROM 'failed' OR r.usage IS NOT NULL",
        }
    ),
    ts=f"coalesce({envelope.TS}, {_CREATED})",
    dedup_key=f"'openai|' || {sql.key_part(sql.named('r.id'))}",
    counts=openai_tools.counts("r"),
    detect=Detect(
        keys=(("usage.input_tokens_details",), ("usage.output_tokens_details.reasoning_tokens",)),
        values={"object": ("response",)},
        others=(Other("OpenAI Chat Completions", "object", ("chat.completion", "chat.completion.chunk")),),
        records=(("error", "id"), ("error", "model"), ("error", "_log")),
    ),
)
