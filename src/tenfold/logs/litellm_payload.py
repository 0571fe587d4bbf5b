"""LiteLLM's standard logging payload, as its callbacks write it: one JSON object a call."""

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

LITELLM_PAYLOAD = Reader(
    name="litellm_payload",
    kinds=("ndjson",),
    one_request="litellm_call_id, else id, startTime and model",
    shape=SHAPE,
    usage=USAGE,
    leaves={
        "id": "VARCHAR",
        "trace_id": "VARCHAR",
        "session_id": "VARCHAR",
        "litellm_call_id": "VARCHAR",
        "call_type": "VARCHAR",
        "stream": "JSON",
        "response_cost": "JSON",
        "status": "VARCHAR",
        "custom_llm_provider": "VARCHAR",
        "prompt_tokens": "JSON",
        "completion_tokens": "JSON",
        "total_tokens": "JSON",
        "startTime": "JSON",
        "endTime": "JSON",
        "completionStartTime": "JSON",
        "model": "VARCHAR",
        "model_group": "VARCHAR",
        "end_user": "VARCHAR",
        "cache_hit": "JSON",
        "error_information.error_code": "VARCHAR",
        **METADATA_LEAVES,
    },
    unpacked=("metadata",),
    fields={
        **common_fields(),
        "request_id": "r.id",
        "trace_id": "r.trace_id",
        "org": "r.metadata.user_api_key_org_id",
        "user_id": sql.first("r.end_user", "r.metadata.user_api_key_user_id"),
        "api_key_id": sql.first("r.metadata.user_api_key_hash", "r.metadata.user_api_key_alias"),
        "is_stream": sql.text("r.stream"),
        "http_status": sql.first("r.error_information.error_code", "r.metadata.error_information.error_code"),
        "cost_logged_usd": sql.text("r.response_cost"),
    },
    ts=STARTED,
    dedup_key=dedup_key("r.id"),
    counts=COUNTS,
    total=TOTAL,
    flags=FLAGS,
    zone="UTC",
    detect=Detect(
        keys=(("response_cost", "call_type", "startTime"), ("litellm_call_id", "prompt_tokens", "startTime")),
        # A row of the spend log may bear the call id too: its cost is `spend`.
        absent=("spend",),
        records=(("call_type", "startTime"), ("status", "startTime"), ("prompt_tokens", "startTime")),
    ),
    text=Text(
        leaves=dict.fromkeys(("messages", "response", "model_parameters"), "JSON"),
        prompt=f"CASE WHEN {said('r.messages')} IS NOT NULL THEN "
        "json_object('tools', r.model_parameters->'$.tools', 'messages', r.messages)::VARCHAR END",
        params="r.model_parameters",
        response=said("r.response"),
    ),
)
