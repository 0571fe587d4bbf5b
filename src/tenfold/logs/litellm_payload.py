"""LiteLLM's standard logging payload, as its callbacks write it: one JSON object a call."""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader
from tenfold.logs.litellm import (
    FAILED,
    FLAGS,
    METADATA_LEAVES,
    SHAPE,
    STARTED,
    USAGE,
    common_fields,
    dedup_key,
    unknown_if_failed,
)

LITELLM_PAYLOAD = Reader(
    name="litellm_payload",
    kinds=("ndjson",),
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
        "session_id": "r.session_id",
        "org": "r.metadata.user_api_key_org_id",
        "project": "r.metadata.user_api_key_project_id",
        "user_id": sql.first("r.end_user", "r.metadata.user_api_key_user_id"),
        "api_key_id": sql.first("r.metadata.user_api_key_hash", "r.metadata.user_api_key_alias"),
        "duration_ms": sql.milliseconds(STARTED, sql.text('r."endTime"')),
        "ttft_ms": sql.milliseconds(STARTED, sql.text('r."completionStartTime"')),
        "is_stream": sql.text("r.stream"),
        "http_status": sql.first("r.error_information.error_code", "r.metadata.error_information.error_code"),
        "cost_logged_usd": sql.text("r.response_cost"),
    },
    ts=STARTED,
    dedup_key=dedup_key("r.id"),
    counts={
        "input_tokens": unknown_if_failed("r.prompt_tokens", "input_tokens"),
        "output_tokens": unknown_if_failed("r.completion_tokens", "output_tokens"),
    },
    total=f"CASE WHEN NOT {FAILED} THEN nullif({sql.text('r.total_tokens')}, '') END",
    flags=FLAGS,
    zone="UTC",
    detect=Detect(
        keys=(("response_cost", "call_type", "startTime"), ("litellm_call_id", "prompt_tokens", "startTime")),
        records=(("call_type", "startTime"), ("status", "startTime"), ("prompt_tokens", "startTime")),
    ),
)
