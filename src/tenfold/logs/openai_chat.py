"""OpenAI Chat Completions: one answer (or its last stream chunk) a line, as every OpenAI-compatible server writes."""

from __future__ import annotations

from tenfold.logs import envelope, sql
from tenfold.logs.base import PARTS, Detect, Other, Reader, Text, usage_leaves
from tenfold.logs.text import forms
from tenfold.usage.shapes import OPENAI_CHAT as SHAPE

FAILED = "r.error IS NOT NULL OR TRY_CAST(r.status_code::VARCHAR AS INTEGER) >= 400"
BY_OBJECT = "CASE r.object WHEN 'chat.completion.chunk' THEN 'true' WHEN 'chat.completion' THEN 'false' END"
REASON = "r.choices[1].finish_reason"

_IS_CHUNK = f"r.object = 'chat.completion.chunk' AND {sql.named('r.id')} IS NOT NULL"
# Azure's streams begin with a chunk that says nothing but how the prompt was filtered.
_IS_NOTE = "r.id = '' AND r.object = '' AND r.usage IS NULL"
# A stream's chunks are one request: the usage comes in the last one, the reason why it ended in the one before.
_STREAMS = f"""
SELECT * REPLACE (
  CASE WHEN {_IS_CHUNK} THEN last_value(r.usage IGNORE NULLS) OVER one_stream ELSE r.usage END AS usage,
  CASE WHEN {_IS_CHUNK} THEN last_value(CASE WHEN {REASON} IS NOT NULL THEN r.choices END IGNORE NULLS) OVER one_stream
    ELSE r.choices END AS choices,
  CASE WHEN {_IS_CHUNK} THEN last_value(r.service_tier IGNORE NULLS) OVER one_stream ELSE r.service_tier END
    AS service_tier,
  CASE WHEN {_IS_CHUNK} THEN first_value(r."_log" IGNORE NULLS) OVER one_stream ELSE r."_log" END AS "_log"
)
FROM {{one}} r
WHERE NOT coalesce({_IS_NOTE}, false)
WINDOW one_stream AS (PARTITION BY r.object, r.id, r.model, r.created::VARCHAR ORDER BY r.{{line}}
  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
QUALIFY NOT coalesce({_IS_CHUNK}, false) OR row_number() OVER (PARTITION BY r.object, r.id, r.model, r.created::VARCHAR
  ORDER BY r.usage IS NOT NULL DESC, r.{{line}} DESC) = 1
ORDER BY r.{{line}}
"""
# The chunks' text, to the row that stands for them.
_CHUNKS = f"""
SELECT x.* REPLACE (to_json(t.parts) AS {PARTS}) FROM ({{reshaped}}) x LEFT JOIN (
  SELECT r.id AS id, r.model AS model, r.created::VARCHAR AS made, list(r.choices ORDER BY r.{{line}}) AS parts
  FROM {{one}} r WHERE {_IS_CHUNK} GROUP BY ALL
) t ON x.object = 'chat.completion.chunk' AND t.id = x.id AND t.model IS NOT DISTINCT FROM x.model
  AND t.made IS NOT DISTINCT FROM x.created::VARCHAR
ORDER BY x.{{line}}
"""
# What vLLM writes beside its answers, in seconds: since 1970 (.._time), or since a start of its own (.._ts).
_ARRIVED = "r.metrics->>'$.arrival_time'"
_TIMES = {name: f"TRY_CAST(r.metrics->>'$.{name}' AS DOUBLE)" for name in (
    *("arrival_time", "first_token_time", "finished_time", "last_token_time", "time_in_queue"),
    *("first_token_latency", "queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts"),
)}  # fmt: skip
_FIRST = f"coalesce({_TIMES['first_token_time']} - {_TIMES['arrival_time']}, {_TIMES['first_token_latency']})"
_WHOLE = (
    f"coalesce(coalesce({_TIMES['finished_time']}, {_TIMES['last_token_time']}) - {_TIMES['arrival_time']}, "
    f"{_TIMES['first_token_latency']} + {_TIMES['last_token_ts']} - {_TIMES['first_token_ts']})"
)
_QUEUED = f"coalesce({_TIMES['time_in_queue']}, {_TIMES['scheduled_ts']} - {_TIMES['queued_ts']})"


def _or_metric(column: str, seconds: str) -> str:
    return f"coalesce({envelope.held(column)}, round({seconds} * 1000, 3)::VARCHAR)"


OPENAI_CHAT = Reader(
    name="openai_chat",
    kinds=("ndjson",),
    one_request="id",
    merges="the chunks of a stream are one request, with the last chunk's usage",
    unsaid=("--set provider=NAME (a server that is not OpenAI's)",),
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
        "metrics": "JSON",
        **usage_leaves(SHAPE, "usage."),
        **envelope.METADATA_LEAVES,
        **envelope.LEAVES,
    },
    fields=envelope.with_metadata(
        {
            "request_id": sql.first("r.id", envelope.held("request_id")),
            "provider": f"CASE WHEN {_ARRIVED} IS NOT NULL THEN 'self-hosted' ELSE 'openai' END",
            "model": "r.model",
            "model_requested": "NULL",
            "region": envelope.held("region"),
            "service_tier": sql.first("r.service_tier", "r.usage.service_tier"),
            "operation": "'chat'",
            "duration_ms": _or_metric("duration_ms", _WHOLE),
            "ttft_ms": _or_metric("ttft_ms", _FIRST),
            "queue_ms": _or_metric("queue_ms", _QUEUED),
            "is_stream": f"coalesce({envelope.held('is_stream')}, {BY_OBJECT})",
            "status": f"CASE WHEN {FAILED} THEN 'error' ELSE 'success' END",
            "finish_reason": REASON,
            "http_status": f"coalesce({sql.text('r.status_code')}, {envelope.held('http_status')})",
            "is_billable": f"CASE WHEN {FAILED} THEN r.usage IS NOT NULL ELSE true END",
        }
    ),
    ts=f"coalesce({envelope.TS}, {_ARRIVED}, {sql.text('r.created')})",
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
    reshape=_STREAMS,
    reshape_if=_IS_CHUNK,
    context=_IS_NOTE,
    text=Text(
        leaves={
            **forms.REQUEST_LEAVES,
            **forms.PARTS_LEAF,
            **dict.fromkeys(("tools", "messages", "prompt"), "JSON"),
            **forms.choices("choices"),
            "choices[].delta": "JSON",
        },
        prompt=f"coalesce({forms.REQUEST}, {forms.asked(tools='r.tools', messages='coalesce(r.messages, r.prompt)')})",
        params=forms.REQUEST,
        response=f"coalesce(r.{PARTS}::VARCHAR, {forms.choices_said('r.choices')})",
        reshape=_CHUNKS,
    ),
)
