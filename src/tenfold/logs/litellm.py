"""What LiteLLM's spend logs and its standard logging payload have in common.

Token counts are inclusive. Zero tokens is a column's default: on a failure it means unknown.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import UNREAD, usage_leaves, usage_sql
from tenfold.logs.text import forms
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
    "request_tags": "JSON",
    f"metadata.{UNREAD}": "BOOLEAN",
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


# Metadata that cannot be read hide the cached and the reasoning tokens.
FLAGS = {"details_missing": f"r.metadata.{UNREAD}"}


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


def said(*values: str) -> str:
    """Take the first logged text that is neither empty nor blanked by the proxy.

    Args:
        *values: SQL.

    Returns:
        SQL text; NULL where there is none.
    """
    value = forms.filled(*values)
    return f"CASE WHEN NOT contains({value}, 'redacted-by-litellm') THEN {value} END"


COUNTS = {
    "input_tokens": unknown_if_failed("r.prompt_tokens", "input_tokens"),
    "output_tokens": unknown_if_failed("r.completion_tokens", "output_tokens"),
}
TOTAL = f"CASE WHEN NOT {FAILED} THEN nullif({sql.text('r.total_tokens')}, '') END"


def dedup_key(request: str) -> str:
    """Tell calls apart: by the proxy's own call id; a response's id may be reused by a server.

    Args:
        request: SQL of the response's id.

    Returns:
        SQL text; NULL where there is no id.
    """
    served = f"coalesce({sql.key_part(STARTED)}, '') || '|' || coalesce({sql.key_part('r.model')}, '')"
    by_response = f"{sql.key_part(sql.named(request))} || '|' || {served}"
    return f"'litellm|' || coalesce({sql.key_part(sql.named('r.litellm_call_id'))}, {by_response})"


def _tags() -> str:
    """Give `request_tags`, a list of words, as pairs: ``cost-center:4711`` (or ``=``) and ``prod``, which is "true"."""
    tags = "list_filter(TRY(from_json(r.request_tags->>'$', '[\"VARCHAR\"]')), lambda t: trim(t) <> '')"
    pair = "string_split(regexp_replace(t, '\\s*[:=]\\s*', chr(31)), chr(31))"
    pairs = f"list_transform({tags}, lambda t: json_object(trim({pair}[1]), coalesce({pair}[2], 'true')))"
    return f"list_reduce({pairs}, lambda a, b: json_merge_patch(a, b), '{{}}'::JSON)"


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
        "session_id": "r.session_id",
        "project": "r.metadata.user_api_key_project_id",
        "duration_ms": sql.milliseconds(STARTED, sql.text('r."endTime"')),
        "ttft_ms": sql.milliseconds(STARTED, sql.text('r."completionStartTime"')),
        "team": sql.first("r.metadata.user_api_key_team_alias", "r.metadata.user_api_key_team_id"),
        "feature": "r.metadata.spend_logs_metadata.feature",
        "environment": "r.metadata.spend_logs_metadata.environment",
        "tags": f"nullif({_tags()}::VARCHAR, '{{}}')",
        "status": STATUS,
        "http_status": sql.first("r.metadata.error_information.error_code", f"CASE WHEN NOT {FAILED} THEN '200' END"),
        "is_billable": f"NOT ({IS_RETRIEVAL} OR ({FAILED} AND {reported} IS NULL))",
        "gateway_cache_hit": sql.truth(sql.text("r.cache_hit")),
    }
