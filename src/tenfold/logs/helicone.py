"""Helicone requests, exported as JSON lines or CSV.

``prompt_tokens`` include cached tokens unless the reported total proves that they do not.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, Text, usage_leaves
from tenfold.logs.text import forms
from tenfold.usage.shape import UsageShape

SHAPE = UsageShape(
    name="helicone",
    counts={
        "input_tokens": ("prompt_tokens",),
        "cache_read_tokens": ("prompt_cache_read_tokens",),
        "cache_write_tokens": ("prompt_cache_write_tokens",),
        "input_audio_tokens": ("prompt_audio_tokens",),
        "output_tokens": ("completion_tokens",),
        "reasoning_tokens": ("reasoning_tokens",),
        "output_audio_tokens": ("completion_audio_tokens",),
    },
    marks=(),
    total=("total_tokens",),
)
# Helicone's names of who answered, where they are not the usual ones.
_PROVIDERS = {"x": "xai", "local": "self-hosted"}
_START, _END = sql.text("r.request_created_at"), sql.text("r.response_created_at")
_CODE = f"TRY_CAST({sql.text('r.response_status')} AS INTEGER)"
# A negative status is Helicone's own: -1 timeout, -2 pending, -3 cancelled, -4 threat.
_STATUS = (
    f"CASE {_CODE} WHEN -1 THEN 'timeout' WHEN -2 THEN 'incomplete' WHEN -3 THEN 'cancelled' WHEN -4 THEN 'blocked' "
    f"ELSE CASE WHEN {_CODE} >= 400 THEN 'error' WHEN {_CODE} >= 200 THEN 'success' END END"
)
# JSON, or JSON as text in a table.
_PROPERTIES = "coalesce(TRY_CAST(r.properties::VARCHAR AS JSON), TRY_CAST(r.request_properties::VARCHAR AS JSON))"


def _property(name: str) -> str:
    written = [f"{_PROPERTIES}->>'$.\"{spelt}\"'" for spelt in _spellings(name)]
    return f"coalesce({', '.join(written)})"


def _spellings(name: str) -> tuple[str, ...]:
    return (name, name.title(), f"Helicone-Property-{name.title()}", f"helicone-property-{name}")


_HIT = sql.named("r.cache_reference_id")
# An id of zeros is none.
_CACHED = f"CASE WHEN replace(replace({_HIT}, '0', ''), '-', '') <> '' THEN 'true' END"
_NO_TOKENS = (
    "coalesce(nullif(r.prompt_tokens::VARCHAR, ''), '0') = '0' AND "
    "coalesce(nullif(r.completion_tokens::VARCHAR, ''), '0') = '0'"
)
_COUNTS = {
    name: f"nullif(coalesce({', '.join(f'r.{path}::VARCHAR' for path in paths)}), '')"
    for name, paths in SHAPE.counts.items()
}

HELICONE = Reader(
    name="helicone",
    kinds=("ndjson", "csv", "parquet"),
    one_request="request_id",
    shape=SHAPE,
    usage="r",
    leaves={
        "request_id": "VARCHAR",
        "response_id": "VARCHAR",
        "request_created_at": "JSON",
        "response_created_at": "JSON",
        "response_status": "JSON",
        "request_model": "VARCHAR",
        "response_model": "VARCHAR",
        "model_override": "VARCHAR",
        "model": "VARCHAR",
        "provider": "VARCHAR",
        "request_path": "VARCHAR",
        "helicone_user": "VARCHAR",
        "request_user_id": "VARCHAR",
        "properties": "JSON",
        "request_properties": "JSON",
        "delay_ms": "JSON",
        "time_to_first_token": "JSON",
        "cache_reference_id": "VARCHAR",
        "cost": "JSON",
        "costUSD": "JSON",
        **usage_leaves(SHAPE, ""),
    },
    fields={
        "request_id": "r.request_id",
        "provider": sql.words("r.provider", _PROVIDERS),
        "model": sql.first("r.response_model", "r.model", "r.model_override", "r.request_model"),
        "model_requested": "r.request_model",
        "operation": "regexp_extract(r.request_path, '/v[0-9]+[a-z0-9]*/([^?]+)', 1)",
        "team": _property("team"),
        "feature": _property("feature"),
        "environment": _property("environment"),
        "session_id": f"coalesce({_property('session')}, {_PROPERTIES}->>'$.\"Helicone-Session-Id\"')",
        "user_id": sql.first("r.helicone_user", "r.request_user_id"),
        "tags": f"nullif({_PROPERTIES}::VARCHAR, '{{}}')",
        "duration_ms": f"coalesce(TRY_CAST({sql.text('r.delay_ms')} AS DOUBLE), {sql.milliseconds(_START, _END)})",
        "ttft_ms": sql.text("r.time_to_first_token"),
        "status": _STATUS,
        "http_status": f"CASE WHEN {_CODE} > 0 THEN {_CODE}::VARCHAR END",
        "is_billable": f"NOT coalesce({_STATUS} <> 'success', false) OR NOT ({_NO_TOKENS})",
        "gateway_cache_hit": _CACHED,
        "cost_logged_usd": sql.first(sql.text('r."costUSD"'), sql.text("r.cost")),
    },
    ts=_START,
    dedup_key=f"'helicone|' || {sql.key_part(sql.named('r.request_id'))}",
    counts=_COUNTS,
    total="nullif(r.total_tokens::VARCHAR, '')",
    detect=Detect(
        keys=(
            ("request_created_at", "prompt_tokens"),
            ("request_created_at", "response_status", "request_path"),
            ("helicone_user", "prompt_tokens"),
        ),
        records=(("request_created_at", "request_id"),),
    ),
    text=Text(
        leaves=dict.fromkeys(("request_body", "response_body"), "JSON"),
        prompt=forms.filled("r.request_body"),
        params=forms.filled("r.request_body"),
        response=forms.filled("r.response_body"),
    ),
)
