"""OpenRouter's chat answers: OpenAI's shape with the host and the cost in it."""

from __future__ import annotations

from tenfold.logs import envelope, openrouter, sql
from tenfold.logs.base import Detect, Reader, Text, usage_leaves
from tenfold.logs.text import forms
from tenfold.usage.shapes import OPENAI_CHAT

# OpenAI's keys for every model; the least size of a cached prompt differs between them.
SHAPE = OPENAI_CHAT._replace(
    name="openrouter_chat",
    counts={
        **OPENAI_CHAT.counts,
        "output_image_tokens": ("completion_tokens_details.image_tokens",),
        "web_searches": ("server_tool_use.web_search_requests",),
    },
    zero_below=0,
)
_FAILED = "r.error IS NOT NULL"
_OWN_KEY = sql.truth(sql.text("r.own_key"))
# Whose key it was is said in the last chunk of a stream alone.
_WHOSE = "CASE WHEN r.id IS NULL THEN r.usage.is_byok ELSE max(r.usage.is_byok) OVER (PARTITION BY r.id) END"

OPENROUTER_CHAT = Reader(
    name="openrouter_chat",
    kinds=("ndjson",),
    one_request="id",
    shape=SHAPE,
    usage="r.usage",
    leaves={
        "id": "VARCHAR",
        "object": "VARCHAR",
        "created": "JSON",
        "model": "VARCHAR",
        "provider": "VARCHAR",
        "service_tier": "VARCHAR",
        "choices[].finish_reason": "VARCHAR",
        "error.code": "JSON",
        "user": "VARCHAR",
        **usage_leaves(SHAPE, "usage."),
        "usage.cost": "JSON",
        "usage.is_byok": "JSON",
        "usage.cost_details.upstream_inference_cost": "JSON",
        **envelope.METADATA_LEAVES,
        **envelope.LEAVES,
    },
    reshape=f"SELECT r.*, {_WHOSE} AS own_key FROM {{one}} r",
    fields=envelope.with_metadata(
        {
            "request_id": sql.first("r.id", envelope.held("request_id")),
            "provider": openrouter.provider("r.provider", _OWN_KEY),
            "model": "r.model",
            "region": envelope.held("region"),
            "service_tier": sql.first("r.service_tier", "r.usage.service_tier"),
            "operation": "'chat'",
            "is_stream": f"coalesce({envelope.held('is_stream')}, "
            "CASE r.object WHEN 'chat.completion.chunk' THEN 'true' WHEN 'chat.completion' THEN 'false' END)",
            "status": f"CASE WHEN {_FAILED} THEN 'error' ELSE 'success' END",
            "finish_reason": "r.choices[1].finish_reason",
            "http_status": f"coalesce({sql.text('r.error.code')}, {envelope.held('http_status')})",
            "is_billable": f"NOT {_FAILED} OR r.usage IS NOT NULL",
            "tags": openrouter.tags("r.provider"),
            "cost_logged_usd": openrouter.cost(
                "r.usage.cost", "r.usage.cost_details.upstream_inference_cost", _OWN_KEY
            ),
        }
    ),
    ts=f"coalesce({envelope.TS}, {sql.text('r.created')})",
    dedup_key=f"'openrouter|' || {sql.key_part(sql.named('r.id'))}",
    flags={"byok": f"{_OWN_KEY} = 'true'"},
    detect=Detect(
        keys=(
            ("provider", "usage.cost", "usage.prompt_tokens"),
            ("usage.is_byok",),
            ("usage.cost_details", "usage.prompt_tokens"),
            ("provider", "choices", "model"),
        ),
        records=(("usage.prompt_tokens",), ("choices", "model"), ("error.code",), ("error", "_log")),
    ),
    text=Text(
        leaves={**forms.REQUEST_LEAVES, "tools": "JSON", "messages": "JSON", **forms.choices("choices")},
        prompt=f"coalesce({forms.REQUEST}, {forms.asked(tools='r.tools', messages='r.messages')})",
        params=forms.REQUEST,
        response=forms.choices_said("r.choices"),
    ),
)
