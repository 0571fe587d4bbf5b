"""Gemini `generateContent`: one answer (or stream chunk) a line, of the Gemini API or of Vertex AI.

Read plain, in the Python SDK's spelling (``usage_metadata``), as a batch result (``response`` beside ``key`` or
``processed_time``) and as Vertex logs it (``full_response``). The chunks of a stream repeat cumulative counts: the last
ones stand.
"""

from __future__ import annotations

from tenfold.logs import envelope, sql
from tenfold.logs.base import Detect, Reader, Text, member, usage_leaves
from tenfold.logs.text import forms
from tenfold.usage.shapes import GEMINI as SHAPE

# Where an answer may stand in a line.
_BODIES = ("", "response.", "full_response.")
_BODY_LEAVES = {
    "responseId": "VARCHAR",
    "modelVersion": "VARCHAR",
    "createTime": "JSON",
    "promptFeedback.blockReason": "VARCHAR",
    "candidates[].finishReason": "VARCHAR",
    **usage_leaves(SHAPE, "usageMetadata."),
}
_SNAKE_LEAVES = {
    "response_id": "VARCHAR",
    "model_version": "VARCHAR",
    "create_time": "JSON",
    "prompt_feedback.block_reason": "VARCHAR",
    "candidates[].finish_reason": "VARCHAR",
    **usage_leaves(SHAPE, "usage_metadata."),
}


def _held(path: str, snake: str) -> str:
    places = [member("r", body + path) for body in _BODIES]
    return f"coalesce({', '.join([*places, member('r', snake)])})"


_REASON = ", ".join(
    [*(f'{member("r", body + "candidates")}[1]."finishReason"' for body in _BODIES), "r.candidates[1].finish_reason"]
)
# Words of the SDK's enums may stand as `FinishReason.STOP`.
_WORD = "regexp_replace({0}, '^[A-Za-z]+\\.', '')"
_COUNTED = " OR ".join(
    f'u."{name}" IS NOT NULL' for name in (*SHAPE.counts["input_tokens"], *SHAPE.counts["output_tokens"], *SHAPE.total)
)
_TRAFFIC = 'coalesce(u."trafficType", u.traffic_type)'
_HINT = "lower(coalesce(\"_log\".provider, provider)) LIKE '%vertex%'"
_IS_VERTEX = f"({_TRAFFIC} IS NOT NULL OR coalesce({_HINT}, false) OR processed_time IS NOT NULL OR is_logged)"
_IS_BATCH = "(is_wrapped AND (key IS NOT NULL OR processed_time IS NOT NULL))"
_SAID = 'row(u, answer_model, created, block, reason, error, "_log")'

# One row per answer: the last counts, the first time, anything else as it was said last. A repeat of the last line
# stays a row of its own, and counts as a duplicate.
_RESHAPE = f"""
WITH held AS (
  SELECT {sql.named(_held("responseId", "response_id"))} AS id,
    coalesce({_held("modelVersion", "model_version")}, regexp_replace(r.model, '^.*/', '')) AS answer_model,
    {sql.text(_held("createTime", "create_time"))} AS created,
    {_held("promptFeedback.blockReason", "prompt_feedback.block_reason")} AS block,
    coalesce({_REASON}) AS reason,
    {_held("usageMetadata", "usage_metadata")} AS u,
    r.response IS NOT NULL AS is_wrapped, r.full_response IS NOT NULL AS is_logged,
    r.key AS key, r.provider AS provider, r.processed_time AS processed_time, r.logging_time AS logging_time,
    r.status AS batch_status, r.error AS error, r."_log" AS "_log",
    r.{{line}} AS {{line}}, r.{{repaired}} AS {{repaired}}
  FROM {{one}} r
),
marked AS (
  SELECT *, {_IS_VERTEX} AS says_vertex, {_IS_BATCH} AS is_batch,
    coalesce(id || '|' || coalesce(answer_model, ''), 'line ' || {{line}}) AS answer
  FROM held
)
SELECT id, answer_model, key, batch_status, is_batch,
  first_value(created IGNORE NULLS) OVER w AS created, coalesce(processed_time, logging_time) AS stamped,
  first_value("_log".ts IGNORE NULLS) OVER w AS log_ts,
  last_value(block IGNORE NULLS) OVER w AS block,
  last_value(reason IGNORE NULLS) OVER w AS reason,
  last_value(error IGNORE NULLS) OVER w AS error,
  last_value("_log" IGNORE NULLS) OVER w AS "_log",
  last_value(CASE WHEN {_COUNTED} THEN u END IGNORE NULLS) OVER w AS usage,
  bool_or(says_vertex) OVER w AS is_vertex,
  CASE WHEN count(DISTINCT {_SAID}) OVER (PARTITION BY answer) > 1 THEN 'true' END AS streamed,
  {{line}}, bool_or({{repaired}}) OVER w AS {{repaired}}
FROM marked
WINDOW w AS (PARTITION BY answer ORDER BY {{line}} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
QUALIFY {_SAID} IS NOT DISTINCT FROM last_value({_SAID}) OVER w
ORDER BY {{line}}
"""

_ANSWER = "coalesce({0}.id || '|' || coalesce({0}.answer_model, ''), 'line ' || {0}.{{line}})"
_SAID_IN = " ".join(
    f"WHEN {member('r', body + 'candidates')}[1].content IS NOT NULL THEN to_json({member('r', body + 'candidates')})"
    for body in _BODIES
)
# Request and answer, the chunks of a stream in order, to the row that stands for them.
_TEXT = f"""
SELECT x.*, t.parts AS parts, t.request AS request FROM ({{reshaped}}) x LEFT JOIN (
  SELECT {_ANSWER.format("h")} AS answer, any_value(request) AS request,
    to_json(list(said ORDER BY {{line}}) FILTER (said IS NOT NULL)) AS parts
  FROM (
    SELECT {sql.named(_held("responseId", "response_id"))} AS id,
      coalesce({_held("modelVersion", "model_version")}, regexp_replace(r.model, '^.*/', '')) AS answer_model,
      coalesce(r."_log".request, r.request, r.full_request)::VARCHAR AS request,
      CASE {_SAID_IN} END AS said, r.{{line}} AS {{line}}
    FROM {{one}} r
  ) h WHERE said IS NOT NULL OR request IS NOT NULL GROUP BY ALL
) t ON t.answer = {_ANSWER.format("x")}
ORDER BY x.{{line}}
"""

_FAILED = "(r.error IS NOT NULL OR (r.is_batch AND r.usage IS NULL AND coalesce(r.batch_status, '') <> ''))"
_TIER = (*('r.usage."serviceTier"', "r.usage.service_tier", 'r.usage."trafficType"', "r.usage.traffic_type"),)

GEMINI_ANSWERS = Reader(
    name="gemini",
    kinds=("ndjson",),
    one_request="responseId",
    merges="counts are cumulative: the last chunk's stand",
    shape=SHAPE,
    usage="r.usage",
    leaves={
        **{body + path: kind for body in _BODIES for path, kind in _BODY_LEAVES.items()},
        **_SNAKE_LEAVES,
        "model": "VARCHAR",
        "provider": "VARCHAR",
        "key": "VARCHAR",
        "status": "VARCHAR",
        "processed_time": "VARCHAR",
        "logging_time": "VARCHAR",
        "error.code": "JSON",
        "error.status": "VARCHAR",
        "_log.provider": "VARCHAR",
        **envelope.LEAVES,
    },
    reshape=_RESHAPE,
    fields={
        **envelope.fields(),
        "request_id": sql.first("r.id", envelope.held("request_id")),
        "custom_id": "r.key",
        "provider": "CASE WHEN r.is_vertex THEN 'vertex' ELSE 'google' END",
        "model": "r.answer_model",
        "region": envelope.held("region"),
        "service_tier": f"CASE WHEN r.is_batch THEN 'batch' ELSE {_WORD.format(sql.first(*_TIER))} END",
        "operation": "'generate_content'",
        "is_stream": f"coalesce({envelope.held('is_stream')}, r.streamed)",
        "status": f"CASE WHEN {_FAILED} THEN 'error' WHEN r.block IS NOT NULL THEN 'blocked' ELSE 'success' END",
        "finish_reason": _WORD.format("r.reason"),
        "http_status": f"coalesce({sql.text('r.error.code')}, {envelope.held('http_status')})",
        "is_billable": f"NOT {_FAILED} OR r.usage IS NOT NULL",
    },
    ts=f"coalesce({sql.text('r.log_ts')}, r.created, r.stamped)",
    dedup_key=f"'google|' || {sql.key_part(sql.named('r.id'))}",
    detect=Detect(
        keys=(
            ("usageMetadata.promptTokenCount",),
            ("usageMetadata.totalTokenCount",),
            ("usage_metadata.prompt_token_count",),
            ("response.usageMetadata",),
            ("full_response.usageMetadata",),
            ("candidates", "modelVersion"),
            ("promptFeedback", "modelVersion"),
        ),
        records=(
            ("usageMetadata",),
            ("candidates", "responseId"),
            ("promptFeedback",),
            ("key", "response"),
            ("key", "error"),
            ("processed_time", "status"),
            ("error.status",),
            ("error", "_log"),
        ),
    ),
    text=Text(
        leaves={
            **forms.REQUEST_LEAVES,
            "full_request": "JSON",
            **{f"{body}candidates[].content": "JSON" for body in _BODIES},
        },
        prompt="r.request",
        params="r.request",
        response="r.parts",
        reshape=_TEXT,
    ),
)
