"""LiteLLM SpendLogs, exported as CSV, JSON lines or Parquet.

The cache and reasoning counts are only in ``metadata.usage_object``, which CSV holds as text. Times without an offset
are UTC.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, Text
from tenfold.logs.litellm import (
    COUNTS,
    FLAGS,
    METADATA_LEAVES,
    SHAPE,
    STARTED,
    TOTAL,
    USAGE,
    common_fields,
    dedup_key,
    said,
)

LITELLM_SPEND = Reader(
    name="litellm_spend",
    kinds=("ndjson", "csv", "parquet"),
    one_request="litellm_call_id, else request_id, startTime and model",
    shape=SHAPE,
    usage=USAGE,
    leaves={
        "request_id": "VARCHAR",
        "litellm_call_id": "VARCHAR",
        "call_type": "VARCHAR",
        "api_key": "VARCHAR",
        "spend": "JSON",
        "prompt_tokens": "JSON",
        "completion_tokens": "JSON",
        "total_tokens": "JSON",
        "startTime": "JSON",
        "endTime": "JSON",
        "completionStartTime": "JSON",
        "model": "VARCHAR",
        "model_group": "VARCHAR",
        "custom_llm_provider": "VARCHAR",
        "user": "VARCHAR",
        "team_id": "VARCHAR",
        "organization_id": "VARCHAR",
        "end_user": "VARCHAR",
        "session_id": "VARCHAR",
        "cache_hit": "JSON",
        "status": "VARCHAR",
        **METADATA_LEAVES,
    },
    unpacked=("metadata",),
    fields={
        **common_fields(),
        "request_id": "r.request_id",
        "org": sql.first("r.organization_id", "r.metadata.user_api_key_org_id"),
        "team": sql.first("r.metadata.user_api_key_team_alias", "r.team_id", "r.metadata.user_api_key_team_id"),
        "user_id": sql.first("r.end_user", 'r."user"'),
        "api_key_id": sql.first("r.api_key", "r.metadata.user_api_key_hash"),
        "client": "r.metadata.user_api_key_alias",
        "cost_logged_usd": sql.text("r.spend"),
    },
    ts=STARTED,
    # Ids may be reused by a server, or be the text "None": only the proxy's own call id stands alone.
    dedup_key=dedup_key("r.request_id"),
    counts=COUNTS,
    total=TOTAL,
    flags=FLAGS,
    zone="UTC",
    detect=Detect(
        keys=(("spend", "call_type", "prompt_tokens"), ("spend", "startTime", "request_id")),
        absent=("response_cost",),
        records=(("call_type", "startTime"), ("request_id", "call_type"), ("request_id", "startTime")),
    ),
    text=Text(
        leaves=dict.fromkeys(("messages", "response", "proxy_server_request"), "JSON"),
        prompt=said("r.proxy_server_request", "r.messages"),
        params=said("r.proxy_server_request"),
        response=said("r.response"),
    ),
)
