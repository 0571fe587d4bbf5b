"""Answers of AWS Bedrock's Converse, one a line, as boto3 returns them; the model is the caller's to say.

Of a stream, its ``metadata`` event. The model stands in ``modelId``, ``model`` or the ``_log`` envelope, or is set with
``--set model=...``.
"""

from __future__ import annotations

from tenfold.logs import envelope, sql
from tenfold.logs.base import Detect, Reader, usage_leaves, usage_sql
from tenfold.logs.bedrock import SHAPE, tier

_META = 'r."ResponseMetadata"'
_ID = f'{_META}."RequestId"'
_RETRIES = sql.text(f'{_META}."RetryAttempts"')
_LATENCY = sql.text('r.metrics."latencyMs"')
_CODE = sql.text(f'{_META}."HTTPStatusCode"')
_FAILED = f'(r."Error" IS NOT NULL OR TRY_CAST({_CODE} AS INTEGER) >= 400)'
# The header's date, "Mon, 02 Nov 2026 10:00:00 GMT", is when the answer came.
_ANSWERED = f"strftime(try_strptime({_META}.\"HTTPHeaders\".date, '%a, %d %b %Y %H:%M:%S GMT'), '%Y-%m-%dT%H:%M:%SZ')"
_BODY_LEAVES = {
    **usage_leaves(SHAPE, "usage."),
    "metrics.latencyMs": "JSON",
    "serviceTier.type": "VARCHAR",
    "performanceConfig.latency": "VARCHAR",
}
_TAKEN = ", ".join(
    f'coalesce(r."{name}", r.metadata."{name}") AS "{name}"'
    for name in ("usage", "metrics", "serviceTier", "performanceConfig")
)
_IS_EVENT = "r.usage IS NULL AND r.metadata.usage IS NOT NULL"
_WRITES = usage_sql(SHAPE, "r.usage", SHAPE.counts["cache_write_tokens"])
_BY_LIFETIME = sql.sum_of('r.usage."cacheDetails"', "inputTokens", none="NULL")

BEDROCK_CONVERSE = Reader(
    name="bedrock_converse",
    kinds=("ndjson",),
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
        "_log.model": "VARCHAR",
        **envelope.LEAVES,
    },
    reshape=f"SELECT r.* REPLACE ({_TAKEN}), {_IS_EVENT} AS is_event FROM {{one}} r",
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
        "status": f"CASE WHEN {_FAILED} THEN 'error' ELSE 'success' END",
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
        ),
        records=(("stopReason",), ("ResponseMetadata",), ("usage.inputTokens",)),
    ),
)
