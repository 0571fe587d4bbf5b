"""LiteLLM SpendLogs, exported as CSV, JSON lines or Parquet.

Token counts are inclusive. The cache and reasoning counts are only in ``metadata.usage_object``, which CSV holds as
text. Times without an offset are UTC. Zero tokens is the column's default: on a failure it means unknown.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, usage_leaves, usage_sql
from tenfold.store.database import quoted
from tenfold.usage.shapes import LITELLM as SHAPE

STARTED = sql.text('r."startTime"')
USAGE = "r.metadata.usage_object"
# Calls that read back a stored object: its usage is repeated, not billed again.
RETRIEVALS = (
    "aget_responses",
    "get_responses",
    "alist_input_items",
    "list_input_items",
    "aretrieve_batch",
    "retrieve_batch",
    "alist_batches",
    "list_batches",
    "adelete_responses",
    "delete_responses",
    "afile_retrieve",
    "file_retrieve",
    "afile_content",
    "file_content",
    "afile_list",
    "file_list",
    "aretrieve_fine_tuning_job",
    "retrieve_fine_tuning_job",
)
_NAMED = ", ".join(quoted(name) for name in RETRIEVALS)
IS_RETRIEVAL = f"lower(r.call_type) IN ({_NAMED})"
STATUS = "lower(coalesce(r.status, 'success'))"
FAILED = f"({STATUS} IN ('failure', 'error'))"
METADATA_LEAVES = {
    "metadata.user_api_key_team_id": "VARCHAR",
    "metadata.user_api_key_team_alias": "VARCHAR",
    "metadata.user_api_key_alias": "VARCHAR",
    "metadata.user_api_key_hash": "VARCHAR",
    "metadata.user_api_key_org_id": "VARCHAR",
    "metadata.user_api_key_user_id": "VARCHAR",
    "metadata.user_api_key_project_id": "VARCHAR",
    "metadata.attempted_retries": "JSON",
    "metadata.is_silent_experiment": "JSON",
    "metadata.error_information.error_code": "VARCHAR",
    "metadata.service_tier": "VARCHAR",
    "metadata.spend_logs_metadata.feature": "VARCHAR",
    "metadata.spend_logs_metadata.environment": "VARCHAR",
    **usage_leaves(SHAPE, "metadata.usage_object."),
}


def unknown_if_failed(total: str, name: str) -> str:
    """Read a top-level count, whose default 0 means unknown where the call failed.

    Args:
        total: SQL of the top-level column.
        name: Token column.

    Returns:
        SQL text.
    """
    own = usage_sql(SHAPE, USAGE, SHAPE.counts[name])
    given = f"nullif({sql.text(total)}, '')"
    return f"coalesce(CASE WHEN {FAILED} THEN nullif({given}, '0') ELSE {given} END, {own})"


def common_fields() -> dict[str, str]:
    """Give the columns that spend logs and payloads have in common.

    Returns:
        Requests column -> SQL over ``r``.
    """
    reported = unknown_if_failed("r.prompt_tokens", "input_tokens")
    retries = sql.text("r.metadata.attempted_retries")
    return {
        "provider": "r.custom_llm_provider",
        "model": "r.model",
        "model_requested": "r.model_group",
        "region": "NULL",
        "service_tier": sql.first("r.metadata.service_tier", f"{USAGE}.service_tier"),
        "operation": f"CASE WHEN {IS_RETRIEVAL} THEN 'retrieve' ELSE r.call_type END",
        "attempt": retries,
        "team": sql.first("r.metadata.user_api_key_team_alias", "r.metadata.user_api_key_team_id"),
        "feature": "r.metadata.spend_logs_metadata.feature",
        "environment": "r.metadata.spend_logs_metadata.environment",
        "status": STATUS,
        "http_status": sql.first("r.metadata.error_information.error_code", f"CASE WHEN NOT {FAILED} THEN '200' END"),
        "is_billable": f"NOT ({IS_RETRIEVAL} OR ({FAILED} AND {reported} IS NULL))",
        "gateway_cache_hit": f"lower(nullif({sql.text('r.cache_hit')}, '')) = 'true'",
    }


LITELLM_SPEND = Reader(
    name="litellm_spend",
    kinds=("ndjson", "csv", "parquet"),
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
        "session_id": "r.session_id",
        "org": sql.first("r.organization_id", "r.metadata.user_api_key_org_id"),
        "project": "r.metadata.user_api_key_project_id",
        "team": sql.first("r.metadata.user_api_key_team_alias", "r.team_id", "r.metadata.user_api_key_team_id"),
        "user_id": sql.first("r.end_user", 'r."user"'),
        "api_key_id": sql.first("r.api_key", "r.metadata.user_api_key_hash"),
        "client": "r.metadata.user_api_key_alias",
        "duration_ms": sql.milliseconds(STARTED, sql.text('r."endTime"')),
        "ttft_ms": sql.milliseconds(STARTED, sql.text('r."completionStartTime"')),
        "cost_logged_usd": sql.text("r.spend"),
    },
    ts=STARTED,
    # Ids may be reused by a server, or be the text "None": only the proxy's own call id stands alone.
    dedup_key="'litellm|' || coalesce(nullif(r.litellm_call_id, ''), "
    f"nullif(r.request_id, '') || '|' || coalesce({STARTED}, '') || '|' || coalesce(r.model, ''))",
    counts={
        "input_tokens": unknown_if_failed("r.prompt_tokens", "input_tokens"),
        "output_tokens": unknown_if_failed("r.completion_tokens", "output_tokens"),
    },
    total=f"CASE WHEN NOT {FAILED} THEN nullif({sql.text('r.total_tokens')}, '') END",
    zone="UTC",
    detect=Detect(
        keys=(("spend", "call_type", "prompt_tokens"), ("spend", "startTime", "request_id")),
        absent=("response_cost",),
    ),
)
