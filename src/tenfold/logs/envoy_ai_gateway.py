"""Envoy AI Gateway's access log as JSON lines, with the keys of its documentation.

The keys are the operator's own to name; under other ones, the log is read with ``--map``. Lines of other routes carry
no model and are left out.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader
from tenfold.prices.words import PROVIDER_ALIASES
from tenfold.usage.shape import UsageShape

# Column -> keys, the usual one first.
_COUNTS = {
    "input_tokens": ("genai_tokens_input", "llm_input_token"),
    "cache_read_tokens": ("genai_tokens_cached_input", "llm_cached_input_token"),
    "cache_write_tokens": ("genai_tokens_cache_creation_input", "llm_cache_creation_input_token"),
    "output_tokens": ("genai_tokens_output", "llm_output_token"),
    "reasoning_tokens": ("genai_tokens_reasoning", "llm_reasoning_token"),
}
_TOTAL = ("genai_tokens_total", "llm_total_token")
SHAPE = UsageShape(name="envoy_ai_gateway", counts=_COUNTS, marks=(), total=_TOTAL)
_TEXTS = (
    "start_time",
    "method",
    "genai_model_name",
    "genai_model_name_override",
    "genai_response_model",
    "genai_backend_name",
    "x-request-id",
    "x-envoy-origin-path",
    "user-agent",
)


def _said(name: str) -> str:
    """Read a value; Envoy writes a dash where there is none."""
    value = sql.text(f'r."{name}"')
    return f"nullif({value}, '-')"


def _counted(names: tuple[str, ...]) -> str:
    return f"coalesce({', '.join(map(_said, names))})"


_CODE = f"TRY_CAST({_said('response_code')} AS INTEGER)"
_TRIES = f"TRY_CAST({_said('upstream_request_attempt_count')} AS INTEGER)"
_STATUS = (
    f"CASE WHEN {_CODE} IN (408, 504) THEN 'timeout' WHEN {_CODE} = 0 THEN 'cancelled' "
    f"WHEN {_CODE} >= 400 THEN 'error' WHEN {_CODE} >= 200 THEN 'success' END"
)
# `namespace/name/...`, where the name may be a provider's.
_WORDS = ", ".join(f"'{word}'" for word in PROVIDER_ALIASES)
_PARTS = f"list_filter(string_split(lower({_said('genai_backend_name')}), '/'), lambda p: p IN ({_WORDS}))"
_BACKEND = f"json_object('backend', {_said('genai_backend_name')})"
_MODEL = _counted(("genai_response_model", "genai_model_name_override", "genai_model_name"))
_ANY = _counted((*_COUNTS["input_tokens"], *_COUNTS["output_tokens"], *_TOTAL))

ENVOY_AI_GATEWAY = Reader(
    name="envoy_ai_gateway",
    kinds=("ndjson",),
    one_request="x-request-id",
    unsaid=("--set provider=NAME (a backend without a provider's name)",),
    shape=SHAPE,
    usage="r",
    leaves={
        **dict.fromkeys(_TEXTS, "VARCHAR"),
        "response_code": "JSON",
        "duration": "JSON",
        "upstream_request_attempt_count": "JSON",
        **{name: "JSON" for names in (*_COUNTS.values(), _TOTAL) for name in names},
    },
    beside=(f"{_MODEL} IS NULL AND {_ANY} IS NULL AND r.response_code IS NOT NULL",),
    fields={
        "request_id": _said("x-request-id"),
        "provider": f"{_PARTS}[1]",
        # Envoy counts from 1; 0 is a request that was never sent on.
        "attempt": f"CASE WHEN {_TRIES} > 0 THEN {_TRIES} - 1 ELSE {_TRIES} END",
        "model": _MODEL,
        "model_requested": _said("genai_model_name"),
        "operation": "regexp_extract(r.\"x-envoy-origin-path\", '/v[0-9]+/([^?]+)', 1)",
        "client": _said("user-agent"),
        "tags": f"nullif(json_merge_patch('{{}}', {_BACKEND})::VARCHAR, '{{}}')",
        "duration_ms": _said("duration"),
        "status": _STATUS,
        "http_status": f"CASE WHEN {_CODE} > 0 THEN {_CODE}::VARCHAR END",
        "is_billable": f"{_STATUS} IS NOT DISTINCT FROM 'success' OR {_ANY} IS NOT NULL",
    },
    ts=_said("start_time"),
    dedup_key=f"'envoy|' || {sql.key_part(sql.named(_said('x-request-id')))}",
    counts={name: _counted(names) for name, names in _COUNTS.items()},
    total=_counted(_TOTAL),
    detect=Detect(
        keys=(
            ("genai_tokens_input",),
            ("genai_model_name", "response_code"),
            ("llm_input_token", "response_code"),
        ),
        records=(("genai_model_name",), ("genai_response_model",), ("genai_tokens_total",), ("llm_input_token",)),
    ),
)
