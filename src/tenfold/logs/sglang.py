"""SGLang's request log (``--export-metrics-to-file``): one request a line, its parameters as JSON text.

A server writes no price and, in older versions, no time: such rows are flagged.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, Text
from tenfold.logs.text import forms
from tenfold.usage.shape import UsageShape

SHAPE = UsageShape(
    name="sglang",
    counts={
        "input_tokens": ("prompt_tokens",),
        "cache_read_tokens": ("cached_tokens",),
        "output_tokens": ("completion_tokens",),
        "reasoning_tokens": ("reasoning_tokens",),
    },
    marks=(),
)
_RECEIVED = sql.text("r.request_received_ts")
_CODE = "r.finish_reason->>'$.status_code'"
_WHY = "coalesce(r.finish_reason->>'$.type', r.finish_reason->>'$')"


def _ms(seconds: str) -> str:
    return f"round(TRY_CAST({sql.text(seconds)} AS DOUBLE) * 1000, 3)"


def _since_received(end: str) -> str:
    return f"round({sql.milliseconds(_RECEIVED, sql.text(end))}, 3)"


SGLANG = Reader(
    name="sglang",
    kinds=("ndjson",),
    one_request="id and request_received_ts",
    unsaid=("--set model=NAME (older servers)",),
    shape=SHAPE,
    usage="r",
    leaves={
        "id": "VARCHAR",
        "prompt_tokens": "JSON",
        "completion_tokens": "JSON",
        "cached_tokens": "JSON",
        "reasoning_tokens": "JSON",
        "finish_reason": "JSON",
        "e2e_latency": "JSON",
        "queue_time": "JSON",
        "request_received_ts": "JSON",
        "prefill_finished_ts": "JSON",
        "total_retractions": "JSON",
        "weight_version": "VARCHAR",
        "dp_rank": "JSON",
        "request_parameters.rid": "VARCHAR",
        "request_parameters.model": "VARCHAR",
        "request_parameters.stream": "JSON",
    },
    unpacked=("request_parameters",),
    fields={
        "request_id": sql.first("r.id", "r.request_parameters.rid"),
        "provider": "'self-hosted'",
        "model": "r.request_parameters.model",
        # The word for weights that were never swapped.
        "model_revision": "nullif(r.weight_version, 'default')",
        # Which of the server's data-parallel copies answered.
        "replica": f"'dp' || {sql.text('r.dp_rank')}",
        "operation": "'chat'",
        "is_stream": sql.text("r.request_parameters.stream"),
        "preemptions": sql.text("r.total_retractions"),
        "duration_ms": _ms("r.e2e_latency"),
        "ttft_ms": _since_received("r.prefill_finished_ts"),
        "queue_ms": _ms("r.queue_time"),
        "status": f"CASE WHEN {_WHY} <> 'abort' OR {_WHY} IS NULL THEN 'success' "
        f"WHEN {_CODE} IS NULL THEN 'cancelled' ELSE 'error' END",
        "finish_reason": f"nullif({_WHY}, 'abort')",
        "http_status": _CODE,
    },
    ts=_RECEIVED,
    # Callers may choose ids of their own.
    dedup_key=f"'sglang|' || {sql.key_part(sql.named('coalesce(r.id, r.request_parameters.rid)'))} || '|' || "
    f"coalesce({sql.key_part(_RECEIVED)}, '')",
    detect=Detect(
        keys=(("request_parameters", "prompt_tokens"), ("request_parameters", "e2e_latency")),
        records=(("request_parameters", "id"),),
    ),
    text=Text(
        leaves={"request_parameters.text": "JSON", "request_parameters.sampling_params": "JSON"},
        prompt=forms.filled("r.request_parameters.text"),
        params="r.request_parameters.sampling_params",
    ),
)
