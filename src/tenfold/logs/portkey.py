"""Portkey's log export, JSON lines or CSV, with the columns that were picked.

The response's own usage stands where it was exported; else the units, which say nothing of caches. ``cost`` is in US
cents.
"""

from __future__ import annotations

import json

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, Text, braced, json_structure, tree, usage_leaves, usage_sql
from tenfold.logs.text import forms
from tenfold.store.database import quoted
from tenfold.usage.shape import UsageShape

# Portkey answers in OpenAI's shape, with Anthropic's cache keys beside it; the total proves what the input includes.
SHAPE = UsageShape(
    name="portkey",
    counts={
        "input_tokens": ("prompt_tokens", "input_tokens"),
        "cache_read_tokens": (
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "cache_read_input_tokens",
        ),
        "cache_write_tokens": ("cache_creation_input_tokens",),
        "output_tokens": ("completion_tokens", "output_tokens"),
        "reasoning_tokens": (
            "completion_tokens_details.reasoning_tokens",
            "output_tokens_details.reasoning_tokens",
        ),
    },
    marks=(),
    total=("total_tokens",),
)
_STRUCTURE = braced(quoted(json.dumps(json_structure(tree(usage_leaves(SHAPE, ""))))))
_BODY = 'coalesce(TRY_CAST(r.response::VARCHAR AS JSON), TRY_CAST(r."response.body"::VARCHAR AS JSON))'
_OPENED = f"CASE WHEN json_type({_BODY}) = 'VARCHAR' THEN TRY_CAST({_BODY}->>'$' AS JSON) ELSE {_BODY} END"
_RESHAPE = f"""
SELECT * EXCLUDE (body), from_json(coalesce(body->'$.usage', body->'$.body.usage'), {_STRUCTURE}) AS usage,
  coalesce(body->>'$.model', body->>'$.body.model') AS answer_model
FROM (SELECT r.* EXCLUDE (response, "response.body"), {_OPENED} AS body FROM {{one}} r)
"""
_SAID = """
SELECT x.*, coalesce(o.response, o."response.body")::VARCHAR AS said
FROM ({reshaped}) x JOIN {one} o ON o.{line} = x.{line} ORDER BY x.{line}
"""
_UNITS = {"input_tokens": "req_units", "output_tokens": "res_units"}
_CODE = f"TRY_CAST({sql.text('r.response_status_code')} AS INTEGER)"
_SUCCESS = sql.truth(sql.text("r.is_success"))
_STATUS = (
    f"CASE WHEN {_SUCCESS} = 'true' THEN 'success' WHEN {_CODE} IN (408, 504) THEN 'timeout' "
    f"WHEN {_SUCCESS} = 'false' OR {_CODE} >= 400 THEN 'error' WHEN {_CODE} >= 200 THEN 'success' END"
)
_CACHE = f"upper(trim({sql.text('r.cache_status')}))"
_META = "TRY_CAST(r.metadata::VARCHAR AS JSON)"
_CENTS = f"TRY_CAST({sql.text('r.cost')} AS DECIMAL(24,12))"
_IN_USD = "upper(coalesce(r.cost_currency, 'USD')) = 'USD'"
# Portkey's names of providers, where they are not the usual ones.
_PROVIDERS = {
    "azure-openai": "azure",
    "azure-ai": "azure",
    "vertex-ai": "vertex",
    "fireworks-ai": "fireworks",
    "together-ai": "together",
    "mistral-ai": "mistral",
}


def _units(name: str) -> str:
    own = usage_sql(SHAPE, "r.usage", SHAPE.counts[name])
    units = sql.text(f"r.{_UNITS[name]}")
    return f"coalesce({own}, nullif({units}, ''))"


_NO_TOKENS = " AND ".join(f"coalesce({_units(name)}, '0') = '0'" for name in _UNITS)

PORTKEY = Reader(
    name="portkey",
    kinds=("ndjson", "csv", "parquet"),
    one_request="id",
    shape=SHAPE,
    usage="r.usage",
    leaves={
        "id": "VARCHAR",
        "trace_id": "VARCHAR",
        "created_at": "JSON",
        "response": "JSON",
        "response\\.body": "JSON",
        "is_success": "JSON",
        "ai_org": "VARCHAR",
        "ai_model": "VARCHAR",
        "req_units": "JSON",
        "res_units": "JSON",
        "total_units": "JSON",
        "cost": "JSON",
        "cost_currency": "VARCHAR",
        "request_url": "VARCHAR",
        "response_time": "JSON",
        "response_status_code": "JSON",
        "cache_status": "JSON",
        "stream_mode": "JSON",
        "retry_success_count": "JSON",
        "prompt_slug": "VARCHAR",
        "virtual_key": "VARCHAR",
        "metadata": "JSON",
    },
    reshape=_RESHAPE,
    fields={
        "request_id": "r.id",
        "trace_id": "r.trace_id",
        "provider": sql.words("r.ai_org", _PROVIDERS),
        "model": sql.first("r.answer_model", "r.ai_model"),
        "model_requested": "r.ai_model",
        "operation": "regexp_extract(r.request_url, '/v[0-9]+[a-z0-9]*/([^?]+)', 1)",
        "attempt": sql.text("r.retry_success_count"),
        "is_stream": sql.truth(sql.text("r.stream_mode")),
        "team": f"{_META}->>'$.team'",
        "feature": f"coalesce({_META}->>'$.feature', r.prompt_slug)",
        "environment": f"coalesce({_META}->>'$.environment', {_META}->>'$._environment')",
        "user_id": f"coalesce({_META}->>'$._user', {_META}->>'$.user')",
        "api_key_id": "r.virtual_key",
        "tags": f"nullif({_META}::VARCHAR, '{{}}')",
        "duration_ms": sql.text("r.response_time"),
        "status": _STATUS,
        "http_status": f"{_CODE}::VARCHAR",
        "is_billable": f"NOT coalesce({_STATUS} <> 'success', false) OR NOT ({_NO_TOKENS})",
        "gateway_cache_hit": f"CASE WHEN {_CACHE} LIKE '%HIT' THEN 'true' WHEN {_CACHE} = 'MISS' THEN 'false' END",
        "cost_logged_usd": f"CASE WHEN {_IN_USD} THEN ({_CENTS} * 0.01)::VARCHAR END",
    },
    ts=sql.text("r.created_at"),
    dedup_key=f"'portkey|' || {sql.key_part(sql.named('r.id'))}",
    counts={name: _units(name) for name in _UNITS},
    total=f"coalesce({usage_sql(SHAPE, 'r.usage', SHAPE.total)}, nullif({sql.text('r.total_units')}, ''))",
    detect=Detect(
        keys=(("req_units", "res_units"), ("ai_org", "ai_model", "created_at"), ("ai_model", "req_units")),
        records=(("ai_org", "created_at"), ("ai_model",)),
    ),
    text=Text(
        leaves={"request": "JSON", "request\\.body": "JSON"},
        prompt=forms.filled("r.request", 'r."request.body"'),
        params=forms.filled("r.request", 'r."request.body"'),
        response=forms.filled("r.said"),
        reshape=_SAID,
    ),
)
