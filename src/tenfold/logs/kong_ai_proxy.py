"""Kong's log of AI plugins (ai-proxy, ai-proxy-advanced, the transformers): one request a line, a block per plugin.

Each plugin that called a model is a call of its own. Requests of other routes carry no block and are left out.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, Text, identifier, member, usage_leaves
from tenfold.logs.text import forms
from tenfold.usage.shape import UsageShape

SHAPE = UsageShape(
    name="kong",
    counts={
        "input_tokens": ("prompt_tokens", "input_tokens"),
        "cache_read_tokens": ("prompt_tokens_details.cached_tokens",),
        "input_audio_tokens": ("prompt_tokens_details.audio_tokens", "input_tokens_details.audio_tokens_count"),
        "input_image_tokens": ("input_tokens_details.image_tokens",),
        "output_tokens": ("completion_tokens", "output_tokens"),
        "reasoning_tokens": ("completion_tokens_details.reasoning_tokens",),
        "output_audio_tokens": ("completion_tokens_details.audio_tokens", "output_tokens_details.audio_tokens"),
    },
    marks=(),
    total=("total_tokens",),
)
# The proxy answers the request itself; the others make calls beside it.
_PROXIES = ("proxy", "ai-proxy", "ai-proxy-advanced")
_PLUGINS = (*_PROXIES, "ai-request-transformer", "ai-response-transformer")
_BLOCK = {
    "meta.provider_name": "VARCHAR",
    "meta.request_model": "VARCHAR",
    "meta.response_model": "VARCHAR",
    "meta.llm_latency": "JSON",
    "meta.request_mode": "VARCHAR",
    "cache.cache_status": "VARCHAR",
    "usage.cost": "JSON",
    "usage.time_to_first_token": "JSON",
    **usage_leaves(SHAPE, "usage."),
}
_BLOCKS = ", ".join(
    f"struct_pack(plugin := '{'proxy' if name in _PROXIES else name}', held := r.ai.{identifier(name)})"
    for name in _PLUGINS
)
_RESHAPE = f"""
SELECT * EXCLUDE (block, ai), block.plugin AS plugin, block.held AS b
FROM (SELECT r.*, unnest(list_filter([{_BLOCKS}], lambda x: x.held IS NOT NULL)) AS block FROM {{one}} r)
"""
_ID = sql.named("r.request.id")
_BESIDE = "CASE WHEN r.plugin <> 'proxy' THEN '#' || r.plugin ELSE '' END"
_CODE = sql.text("r.response.status")
_FAILED = f"(coalesce(TRY_CAST({_CODE} AS INTEGER) >= 400, false) AND r.plugin = 'proxy')"
_MODE = "r.b.meta.request_mode"

KONG = Reader(
    name="kong_ai_proxy",
    kinds=("ndjson",),
    one_request="request.id and plugin",
    merges="each plugin that called a model is a request of its own",
    shape=SHAPE,
    usage="r.b.usage",
    leaves={
        "started_at": "JSON",
        "request.id": "VARCHAR",
        "request.uri": "VARCHAR",
        "response.status": "JSON",
        "latencies.request": "JSON",
        "tries[].port": "JSON",
        "consumer.username": "VARCHAR",
        "consumer.id": "VARCHAR",
        "service.name": "VARCHAR",
        "route.name": "VARCHAR",
        "workspace_name": "VARCHAR",
        **{f"ai.{name}.{path}": kind for name in _PLUGINS for path, kind in _BLOCK.items()},
    },
    # A request of a route without AI plugins.
    beside=("r.ai IS NULL AND r.request IS NOT NULL AND r.response IS NOT NULL",),
    reshape=_RESHAPE,
    fields={
        "request_id": f"{_ID} || {_BESIDE}",
        "parent_id": f"CASE WHEN r.plugin <> 'proxy' THEN {_ID} END",
        # The balancer's tries, the one that answered last.
        "attempt": "CASE WHEN len(r.tries) > 0 AND r.plugin = 'proxy' THEN len(r.tries) - 1 END",
        "provider": sql.words("r.b.meta.provider_name", {"llama2": "self-hosted"}),
        "model": sql.first("r.b.meta.response_model", "r.b.meta.request_model"),
        "model_requested": "r.b.meta.request_model",
        "operation": "CASE WHEN r.plugin = 'proxy' THEN 'chat' ELSE r.plugin END",
        "is_stream": f"CASE WHEN {_MODE} = 'stream' THEN 'true' WHEN {_MODE} = 'oneshot' THEN 'false' END",
        "project": "r.workspace_name",
        "feature": sql.first("r.route.name", "r.service.name"),
        "client": sql.first("r.consumer.username", "r.consumer.id"),
        "duration_ms": f"coalesce({sql.text('r.b.meta.llm_latency')}, "
        f"CASE WHEN r.plugin = 'proxy' THEN {sql.text('r.latencies.request')} END)",
        "ttft_ms": sql.text("r.b.usage.time_to_first_token"),
        "status": f"CASE WHEN {_FAILED} THEN 'error' ELSE 'success' END",
        "http_status": f"CASE WHEN r.plugin = 'proxy' THEN {_CODE} END",
        "is_billable": f"NOT {_FAILED} OR coalesce({member('r.b.usage', 'prompt_tokens')}, "
        f"{member('r.b.usage', 'input_tokens')}) IS NOT NULL",
        "gateway_cache_hit": "CASE lower(r.b.cache.cache_status) WHEN 'hit' THEN 'true' WHEN 'miss' THEN 'false' END",
        "cost_logged_usd": sql.text("r.b.usage.cost"),
    },
    ts=sql.text("r.started_at"),
    dedup_key=f"'kong|' || {sql.key_part(_ID)} || {_BESIDE}",
    detect=Detect(keys=tuple((f"ai.{name}",) for name in _PLUGINS)),
    text=Text(
        leaves={f"ai.{name}.payload.{side}": "JSON" for name in _PLUGINS for side in ("request", "response")},
        prompt=forms.filled("r.b.payload.request"),
        params=forms.filled("r.b.payload.request"),
        response=forms.filled("r.b.payload.response"),
    ),
)
