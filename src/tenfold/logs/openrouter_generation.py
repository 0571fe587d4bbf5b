"""OpenRouter's generation records, as its API answers (in ``data``) or plain, one a line."""

from __future__ import annotations

from tenfold.logs import openrouter, sql
from tenfold.logs.base import Detect, Reader, usage_leaves
from tenfold.usage.shape import UsageShape

SHAPE = UsageShape(
    name="openrouter_generation",
    counts={
        "input_tokens": ("native_tokens_prompt",),
        "cache_read_tokens": ("native_tokens_cached",),
        "output_tokens": ("native_tokens_completion",),
        "reasoning_tokens": ("native_tokens_reasoning",),
        "output_image_tokens": ("native_tokens_completion_images",),
    },
    marks=(),
)
_RECORD = {
    "id": "VARCHAR",
    "created_at": "JSON",
    "model": "VARCHAR",
    "provider_name": "VARCHAR",
    "api_type": "VARCHAR",
    "app_id": "JSON",
    "streamed": "JSON",
    "cancelled": "JSON",
    "is_byok": "JSON",
    "latency": "JSON",
    "finish_reason": "VARCHAR",
    "external_user": "VARCHAR",
    "session_id": "VARCHAR",
    "service_tier": "VARCHAR",
    "data_region": "VARCHAR",
    "total_cost": "JSON",
    "upstream_inference_cost": "JSON",
    **usage_leaves(SHAPE, ""),
}
_UNWRAPPED = ", ".join(f'coalesce(r.data."{name}", r."{name}") AS "{name}"' for name in _RECORD)
_BYOK = sql.truth(sql.text("r.is_byok"))

OPENROUTER_GENERATION = Reader(
    name="openrouter_generation",
    kinds=("ndjson",),
    one_request="id",
    shape=SHAPE,
    usage="r",
    # As the API answers (in `data`) or plain.
    leaves={**_RECORD, **{f"data.{name}": kind for name, kind in _RECORD.items()}},
    reshape=f"SELECT {_UNWRAPPED}, r.{{line}}, r.{{repaired}} FROM {{one}} r",
    fields={
        "request_id": "r.id",
        "provider": openrouter.provider("r.provider_name", _BYOK),
        "model": "r.model",
        "region": "CASE WHEN r.data_region <> 'global' THEN r.data_region END",
        "service_tier": "r.service_tier",
        "operation": "coalesce(r.api_type, 'chat')",
        "is_stream": sql.truth(sql.text("r.streamed")),
        "user_id": "r.external_user",
        "session_id": "r.session_id",
        "client": sql.text("r.app_id"),
        "duration_ms": sql.text("r.latency"),
        "status": f"CASE WHEN {sql.truth(sql.text('r.cancelled'))} = 'true' THEN 'cancelled' "
        "WHEN r.finish_reason = 'error' THEN 'error' ELSE 'success' END",
        "finish_reason": "r.finish_reason",
        "tags": openrouter.tags("r.provider_name"),
        "cost_logged_usd": openrouter.cost("r.total_cost", "r.upstream_inference_cost", _BYOK),
    },
    ts=sql.text("r.created_at"),
    dedup_key=f"'openrouter|' || {sql.key_part(sql.named('r.id'))}",
    flags={"byok": f"{_BYOK} = 'true'"},
    detect=Detect(
        keys=(("data.native_tokens_prompt",), ("native_tokens_prompt",)),
        records=(("data.total_cost", "data.id"), ("total_cost", "id")),
    ),
)
