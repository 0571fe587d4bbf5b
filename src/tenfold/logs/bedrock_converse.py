"""Answers of AWS Bedrock's Converse, one a line, as boto3 returns them; the model is the caller's to say.

Of a stream, its events one a line (``messageStart`` to ``metadata``, which holds the usage), or the last one alone. The
model stands in ``modelId``, ``model`` or the ``_log`` envelope, or is set with ``--set model=...``.
"""

from __future__ import annotations

from tenfold.logs import envelope, sql
from tenfold.logs.base import Detect, Reader, Text, usage_leaves, usage_sql
from tenfold.logs.bedrock import SHAPE, tier
from tenfold.logs.text import forms

_META = 'r."ResponseMetadata"'
_ID = f'{_META}."RequestId"'
_RETRIES = sql.text(f'{_META}."RetryAttempts"')
_LATENCY = sql.text('r.metrics."latencyMs"')
_CODE = sql.text(f'{_META}."HTTPStatusCode"')
_FAILED = f'(r.is_broken OR r."Error" IS NOT NULL OR TRY_CAST({_CODE} AS INTEGER) >= 400)'
# The header's date, "Mon, 02 Nov 2026 10:00:00 GMT", is when the answer came.
_ANSWERED = f"strftime(try_strptime({_META}.\"HTTPHeaders\".date, '%a, %d %b %Y %H:%M:%S GMT'), '%Y-%m-%dT%H:%M:%SZ')"
_BODY_LEAVES = {
    **usage_leaves(SHAPE, "usage."),
    "metrics.latencyMs": "JSON",
    "serviceTier.type": "VARCHAR",
    "performanceConfig.latency": "VARCHAR",
}
# A stream's events in their order; those in the middle are what the answer is made of.
_PIECES = ("contentBlockStart", "contentBlockDelta", "contentBlockStop")
_BROKEN = (
    *("internalServerException", "modelStreamErrorException", "validationException"),
    *("throttlingException", "serviceUnavailableException"),
)
_IS_EVENT = " OR ".join(f'r."{name}" IS NOT NULL' for name in ("messageStart", "messageStop", "metadata", *_BROKEN))
_OF_EVENT = ("usage", "metrics", "serviceTier", "performanceConfig")
_SAID = ("modelId", "model", "ResponseMetadata", "Error", "_log")


def _last(value: str, name: str) -> str:
    return f'arg_max({value}, {{line}}) FILTER ({value} IS NOT NULL) AS "{name}"'


# A stream is what lies from one start to its metadata; any other line is an answer of its own.
_RESHAPE = f"""
WITH events AS (SELECT r.*, ({_IS_EVENT}) AS is_event FROM {{one}} r),
numbered AS (
  SELECT *, count(*) FILTER ("messageStart" IS NOT NULL) OVER (ORDER BY {{line}})
    + count(*) FILTER (metadata IS NOT NULL) OVER (ORDER BY {{line}} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    AS number FROM events
)
SELECT {", ".join(_last(f'coalesce("{name}", metadata."{name}")', name) for name in _OF_EVENT)},
  {", ".join(_last(f'"{name}"', name) for name in _SAID)},
  {_last('coalesce("stopReason", "messageStop"."stopReason")', "stopReason")}, bool_or(is_event) AS is_event,
  bool_or(coalesce({" OR ".join(f'"{name}" IS NOT NULL' for name in _BROKEN)}, false)) AS is_broken,
  coalesce(max({{line}}) FILTER (usage IS NOT NULL OR metadata IS NOT NULL), max({{line}})) AS {{line}},
  bool_or({{repaired}}) AS {{repaired}}
FROM numbered GROUP BY is_event, CASE WHEN is_event THEN number ELSE {{line}} END ORDER BY {{line}}
"""
_TEXT = """
SELECT x.*, o.request AS request, o.output.message AS answer
FROM ({reshaped}) x JOIN {one} o ON o.{line} = x.{line} ORDER BY x.{line}
"""
_WRITES = usage_sql(SHAPE, "r.usage", SHAPE.counts["cache_write_tokens"])
_BY_LIFETIME = sql.sum_of('r.usage."cacheDetails"', "inputTokens", none="NULL")

BEDROCK_CONVERSE = Reader(
    name="bedrock_converse",
    kinds=("ndjson",),
    one_request="ResponseMetadata.RequestId",
    merges="the events of a stream are one request",
    unsaid=("--set model=NAME", "--set region=NAME"),
    shape=SHAPE,
    usage="r.usage",
    leaves={
        **_BODY_LEAVES,
        **{f"metadata.{path}": kind for path, kind in _BODY_LEAVES.items()},
        "modelId": "VARCHAR",
        "model": "VARCHAR",
        "stopReason": "VARCHAR",
        "ResponseMetadata.RequestId": "VARCHAR",
        "ResponseMetadata.HTTPStatusCode": "JSON",
        "ResponseMetadata.HTTPHeaders.date": "VARCHAR",
        "ResponseMetadata.RetryAttempts": "JSON",
        "Error.Code": "VARCHAR",
        "messageStart.role": "VARCHAR",
        "messageStop.stopReason": "VARCHAR",
        **{f"{name}.contentBlockIndex": "JSON" for name in _PIECES},
        **{f"{name}.message": "VARCHAR" for name in _BROKEN},
        "_log.model": "VARCHAR",
        **envelope.LEAVES,
    },
    beside=tuple(f'r."{name}" IS NOT NULL' for name in _PIECES),
    reshape=_RESHAPE,
    fields={
        **envelope.fields(),
        "request_id": sql.first(_ID, envelope.held("request_id")),
        "attempt": f"coalesce({envelope.held('attempt')}, {_RETRIES})",
        "provider": "'bedrock'",
        "model": sql.first('r."modelId"', "r.model", 'r."_log".model'),
        "region": envelope.held("region"),
        "service_tier": tier('r."serviceTier".type', 'r."performanceConfig".latency'),
        "operation": "'converse'",
        "is_stream": f"coalesce({envelope.held('is_stream')}, CASE WHEN r.is_event THEN 'true' END)",
        "duration_ms": f"coalesce({envelope.held('duration_ms')}, {_LATENCY})",
        # A stream without its metadata broke off.
        "status": f"CASE WHEN {_FAILED} THEN 'error' WHEN r.is_event AND r.usage IS NULL THEN 'incomplete' "
        "ELSE 'success' END",
        "finish_reason": 'r."stopReason"',
        "http_status": f"coalesce({_CODE}, {envelope.held('http_status')})",
        "is_billable": f"NOT {_FAILED} OR r.usage IS NOT NULL",
    },
    ts=f"coalesce({envelope.TS}, {_ANSWERED})",
    dedup_key=f"'bedrock|' || {sql.key_part(sql.named(_ID))}",
    counts={"cache_write_tokens": f"coalesce({_WRITES}, {_BY_LIFETIME})"},
    detect=Detect(
        keys=(
            ("usage.inputTokens", "stopReason"),
            ("usage.inputTokens", "metrics.latencyMs"),
            ("usage.inputTokens", "ResponseMetadata"),
            ("metadata.usage.inputTokens",),
            ("messageStart.role",),
            ("messageStop.stopReason",),
            *((f"{name}.contentBlockIndex",) for name in _PIECES),
        ),
        records=(("stopReason",), ("ResponseMetadata",), ("usage.inputTokens",), *((name,) for name in _BROKEN)),
    ),
    text=Text(
        leaves={**forms.REQUEST_LEAVES, "output.message": "JSON"},
        prompt=forms.REQUEST,
        params=forms.REQUEST,
        response="r.answer",
        reshape=_TEXT,
    ),
)
