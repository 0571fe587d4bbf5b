"""Azure API Management's LLM log (table ApiManagementGatewayLlmLog), exported as CSV, JSON lines or Parquet.

A message above 32 KB is split over rows that all repeat the call's counts: the largest stand, once per CorrelationId.
The deployment is what was asked for, never the model. The region is the gateway's, and a tag: Azure's prices go by the
deployment's type (global, data zone, regional), which no gateway logs and ``--set region=data_zone`` says. Only the
government cloud is a price region of its own.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, Text, braced, usage_leaves
from tenfold.usage.shape import UsageShape

SHAPE = UsageShape(
    name="azure_apim",
    counts={"input_tokens": ("PromptTokens",), "output_tokens": ("CompletionTokens",)},
    marks=(),
    total=("TotalTokens",),
)
# As the API and as the portal's CSV write it.
_SHOWN = "strftime(try_strptime(r.\"TimeGenerated [UTC]\", '%m/%d/%Y, %I:%M:%S.%g %p'), '%Y-%m-%dT%H:%M:%S.%gZ')"
_TIME = sql.first(sql.text('r."TimeGenerated"'), _SHOWN, 'r."TimeGenerated [UTC]"')
_CALL = sql.named('r."CorrelationId"')


def _written(name: str) -> str:
    value = sql.text(f'r."{name}"')
    return f"nullif({value}, '')"


def _largest(name: str) -> str:
    """Take the largest count of a call's rows, as it is written; what is no count where none of them is one."""
    written = _written(name)
    size = f"coalesce({braced(sql.count(written))}, -1)"
    return f'max_by({written}, {size}) FILTER (WHERE {written} IS NOT NULL) AS "{name}"'


def _said(name: str) -> str:
    written = _written(name)
    return f'min_by({written}, r.{{line}}) FILTER (WHERE {written} IS NOT NULL) AS "{name}"'


_COUNTS = ("PromptTokens", "CompletionTokens", "TotalTokens")
_WORDS = ("DeploymentName", "ModelName", "IsStreamCompletion", "ApiVersion", "OperationName", "Region", "_ResourceId")
_RESHAPE = f"""
SELECT {_CALL} AS call, min({_TIME}) AS started, {", ".join([*map(_largest, _COUNTS), *map(_said, _WORDS)])},
  min(r.{{line}}) AS {{line}}, bool_or(r.{{repaired}}) AS {{repaired}}
FROM {{one}} r
GROUP BY call, CASE WHEN {_CALL} IS NULL THEN r.{{line}} END
ORDER BY {{line}}
"""


def _joined(name: str) -> str:
    """Put a long message's pieces, one a row, together."""
    number = sql.text('r."SequenceNumber"')
    return f"nullif(string_agg(r.\"{name}\", '' ORDER BY TRY_CAST({number} AS INTEGER), r.{{line}}), '')"


_SAID = f"""
SELECT x.*, t.asked AS asked, t.said AS said FROM ({{reshaped}}) x LEFT JOIN (
  SELECT {_CALL} AS call, {_joined("RequestMessages")} AS asked, {_joined("ResponseMessages")} AS said
  FROM {{one}} r WHERE {_CALL} IS NOT NULL GROUP BY call
) t ON t.call = x.call
ORDER BY x.{{line}}
"""
# As Azure names its government's regions: USGov Virginia, usgovarizona; words of `pricing/azure.toml`.
_GOVERNMENT = "regexp_full_match(lower(replace(r.\"Region\", ' ', '')), 'us_?gov.*')"
_TAGS = "json_object('gateway_region', r.\"Region\", 'api_version', r.\"ApiVersion\")"

AZURE_APIM = Reader(
    name="azure_apim",
    kinds=("csv", "ndjson", "parquet"),
    one_request="CorrelationId",
    merges="the rows of a long message repeat its counts: the largest stand, once",
    unsaid=("--set region=data_zone (or regional: the deployment's type)",),
    shape=SHAPE,
    usage="r",
    leaves={
        "TimeGenerated": "JSON",
        "TimeGenerated [UTC]": "VARCHAR",
        "CorrelationId": "VARCHAR",
        "IsStreamCompletion": "JSON",
        **{name: "VARCHAR" for name in _WORDS if name != "IsStreamCompletion"},
        **usage_leaves(SHAPE, ""),
    },
    reshape=_RESHAPE,
    fields={
        "request_id": "r.call",
        "provider": "'azure'",
        "model": 'r."ModelName"',
        "model_requested": 'r."DeploymentName"',
        "region": f"CASE WHEN {_GOVERNMENT} THEN 'us-gov' END",
        "operation": 'r."OperationName"',
        "is_stream": sql.truth('r."IsStreamCompletion"'),
        "client": 'r."_ResourceId"',
        # A row without counts does not say what became of the call.
        "status": 'CASE WHEN coalesce(r."PromptTokens", r."CompletionTokens") IS NOT NULL THEN \'success\' END',
        "tags": f"nullif(json_merge_patch('{{}}', {_TAGS})::VARCHAR, '{{}}')",
    },
    ts="r.started",
    dedup_key=f"'apim|' || {sql.key_part('r.call')}",
    detect=Detect(
        keys=(("CorrelationId", "PromptTokens"), ("CorrelationId", "DeploymentName", "ModelName")),
        records=(("CorrelationId", "ModelName"),),
    ),
    text=Text(
        leaves={"RequestMessages": "VARCHAR", "ResponseMessages": "VARCHAR", "SequenceNumber": "JSON"},
        prompt="r.asked",
        response="r.said",
        reshape=_SAID,
    ),
)
