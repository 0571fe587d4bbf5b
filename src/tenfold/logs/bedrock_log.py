"""AWS Bedrock model invocation log, as S3 and CloudWatch get it: one call a line, Converse or InvokeModel.

``modelId`` stays as logged (an id, an inference profile or an ARN). ``region`` is the one that the call went to and
that bills; where the model ran (``inferenceRegion``) is a tag.
"""

from __future__ import annotations

import json

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, Text, braced, json_structure, tree, usage_leaves, usage_sql
from tenfold.logs.bedrock import SHAPE, tier
from tenfold.store.database import quoted

_ID = 'r."requestId"'
_ERROR = "nullif(r.\"errorCode\", '')"
_STREAMS = "('ConverseStream', 'InvokeModelWithResponseStream')"
_OWNERS = ("team", "feature", "environment", "project", "session_id")


def _body(*paths: str) -> str:
    """Find the first of some paths in the answer, which may be a list of a stream's chunks: there the last one."""
    found = [f"body->{quoted(path)}" if "[*]" not in path else f"(body->{quoted(path)})[-1]" for path in paths]
    return f"coalesce({', '.join(found)})"


_METRICS = '$[*]."amazon-bedrock-invocationMetrics"'
_USAGE = _body("$.usage", "$[*].metadata.usage", "$[*].message.usage")
_LATENCY = _body("$.metrics.latencyMs", "$[*].metadata.metrics.latencyMs", f"{_METRICS}.invocationLatency")
_FIRST = _body(f"{_METRICS}.firstByteLatency")
_REASON = _body("$.stopReason", "$.stop_reason", "$[*].messageStop.stopReason", "$[*].delta.stop_reason")
_TIER = _body("$.serviceTier.type", "$[*].metadata.serviceTier.type")
_FAST = _body("$.performanceConfig.latency", "$[*].metadata.performanceConfig.latency")
_SHAPE_TEXT = braced(quoted(json.dumps(json_structure(tree(usage_leaves(SHAPE, ""))))))

# The answer's text is left behind here: only its counts, times and reason go on.
_RESHAPE = f"""
SELECT * EXCLUDE (body), from_json({_USAGE}, {_SHAPE_TEXT}) AS usage,
  {sql.text(_LATENCY)} AS latency, {sql.text(_FIRST)} AS first_byte, {sql.text(_REASON)} AS reason,
  {sql.text(_TIER)} AS tier, {sql.text(_FAST)} AS fast,
  -- counts that the log itself gives beside a stream's chunks
  {_body(f"{_METRICS}.inputTokenCount")} AS metric_in, {_body(f"{_METRICS}.outputTokenCount")} AS metric_out,
  {_body(f"{_METRICS}.cacheReadInputTokenCount")} AS metric_read,
  {_body(f"{_METRICS}.cacheWriteInputTokenCount")} AS metric_write
FROM (SELECT r.* EXCLUDE (output), r.output."outputTokenCount" AS out_count, r.output."outputBodyJson" AS body
  FROM {{one}} r)
"""

_SAID = """
SELECT x.*, o.output."outputBodyJson" AS said FROM ({reshaped}) x JOIN {one} o ON o.{line} = x.{line} ORDER BY x.{line}
"""


def _count(logged: str, metric: str, name: str) -> str:
    own = usage_sql(SHAPE, "r.usage", SHAPE.counts[name])
    return f"coalesce({logged}::VARCHAR, nullif({metric}::VARCHAR, 'null'), {own})"


_COUNTS = {
    "input_tokens": _count('r.input."inputTokenCount"', "r.metric_in", "input_tokens"),
    "cache_read_tokens": _count('r.input."cacheReadInputTokenCount"', "r.metric_read", "cache_read_tokens"),
    "cache_write_tokens": _count('r.input."cacheWriteInputTokenCount"', "r.metric_write", "cache_write_tokens"),
    "output_tokens": _count("r.out_count", "r.metric_out", "output_tokens"),
}
_NOTHING = " AND ".join(f"coalesce({value}, '0') = '0'" for value in _COUNTS.values())
_RAN = "json_object('inference_region', r.\"inferenceRegion\")"
_TAGS = f"nullif(json_merge_patch(coalesce(r.\"requestMetadata\", '{{}}'), {_RAN})::VARCHAR, '{{}}')"

BEDROCK_LOG = Reader(
    name="bedrock_log",
    kinds=("ndjson",),
    one_request="requestId",
    shape=SHAPE,
    usage="r.usage",
    leaves={
        "schemaType": "VARCHAR",
        "timestamp": "JSON",
        "accountId": "VARCHAR",
        "identity.arn": "VARCHAR",
        "region": "VARCHAR",
        "inferenceRegion": "VARCHAR",
        "requestId": "VARCHAR",
        "operation": "VARCHAR",
        "modelId": "VARCHAR",
        "errorCode": "VARCHAR",
        "requestMetadata": "JSON",
        "input.inputTokenCount": "JSON",
        "input.cacheReadInputTokenCount": "JSON",
        "input.cacheWriteInputTokenCount": "JSON",
        "output.outputTokenCount": "JSON",
        "output.outputBodyJson": "JSON",
    },
    reshape=_RESHAPE,
    fields={
        "request_id": _ID,
        "provider": "'bedrock'",
        "model": 'r."modelId"',
        "region": "r.region",
        "service_tier": tier("r.tier", "r.fast"),
        "operation": "r.operation",
        "is_stream": f"CASE WHEN r.operation IS NOT NULL THEN r.operation IN {_STREAMS} END",
        "org": 'r."accountId"',
        # Who called: the role, without the name of its session.
        "client": "regexp_replace(r.identity.arn, '(:assumed-role/[^/]+)/.*$', '\\1')",
        "user_id": "coalesce(r.\"requestMetadata\"->>'$.user_id', r.\"requestMetadata\"->>'$.user')",
        **{name: f"r.\"requestMetadata\"->>'$.{name}'" for name in _OWNERS},
        "tags": _TAGS,
        "duration_ms": "r.latency",
        "ttft_ms": "r.first_byte",
        "status": f"CASE WHEN {_ERROR} ILIKE '%timeout%' THEN 'timeout' WHEN {_ERROR} IS NOT NULL THEN 'error' "
        "ELSE 'success' END",
        "finish_reason": "r.reason",
        "is_billable": f"{_ERROR} IS NULL OR NOT ({_NOTHING})",
    },
    ts=sql.text("r.timestamp"),
    dedup_key=f"'bedrock|' || {sql.key_part(sql.named(_ID))}",
    counts=_COUNTS,
    detect=Detect(
        keys=(("modelId", "requestId", "operation"),),
        values={"schemaType": ("ModelInvocationLog",)},
        records=(("modelId", "requestId"),),
    ),
    text=Text(
        leaves={"input.inputBodyJson": "JSON"},
        prompt='r.input."inputBodyJson"',
        params='r.input."inputBodyJson"',
        response="r.said",
        reshape=_SAID,
    ),
)
