"""What a response of OpenAI's Responses API says, wherever it is logged: as an answer, or in a stream's events."""

from __future__ import annotations

from tenfold.logs import envelope, openai_tools, sql
from tenfold.logs.base import member, usage_leaves
from tenfold.usage.shapes import OPENAI_RESPONSES as SHAPE


def leaves(prefix: str = "") -> dict[str, str]:
    """List the raw paths of a response.

    Args:
        prefix: Where it lies, such as ``"response."``.

    Returns:
        Dotted path -> type.
    """
    texts = ("id", "object", "status", "model", "service_tier", "safety_identifier", "user", "previous_response_id")
    return {
        **{f"{prefix}{name}": "VARCHAR" for name in (*texts, "incomplete_details.reason", "error.code")},
        **{f"{prefix}{name}": "JSON" for name in ("created_at", "completed_at")},
        **openai_tools.leaves(prefix),
        **usage_leaves(SHAPE, f"{prefix}usage."),
        **{f"{prefix}{path}": kind for path, kind in envelope.METADATA_LEAVES.items()},
    }


def created(response: str) -> str:
    """Give the time that a response was begun at.

    Args:
        response: SQL of the response.

    Returns:
        SQL text.
    """
    return sql.text(f"{response}.created_at")


def fields(response: str = "r") -> dict[str, str]:
    """Give the columns that a response fills, beside the envelope's.

    Args:
        response: SQL of the response.

    Returns:
        Requests column -> SQL over ``r``.
    """
    said = {
        name: member(response, name)
        for name in ("id", "model", "status", "error", "usage", "service_tier", "incomplete_details.reason")
    }
    answered = sql.text(f"{response}.completed_at")
    return {
        "request_id": said["id"],
        "provider": "'openai'",
        "model": said["model"],
        "region": envelope.held("region"),
        "service_tier": sql.first(said["service_tier"], f"{said['usage']}.service_tier"),
        "operation": "'responses'",
        "is_stream": envelope.held("is_stream"),
        "duration_ms": f"coalesce(TRY_CAST({envelope.held('duration_ms')} AS DOUBLE), "
        f"round({sql.milliseconds(created(response), answered)}, 3))",
        "status": sql.first(said["status"], f"CASE WHEN {said['error']} IS NOT NULL THEN 'error' ELSE 'success' END"),
        "finish_reason": sql.first(
            said["incomplete_details.reason"], f"CASE WHEN {said['status']} = 'completed' THEN 'stop' END"
        ),
        "http_status": envelope.held("http_status"),
        "is_billable": f"{said['status']} IS DISTINCT FROM 'failed' OR {said['usage']} IS NOT NULL",
    }


def dedup_key(response: str = "r") -> str:
    """Tell responses apart by their id.

    Args:
        response: SQL of the response.

    Returns:
        SQL text.
    """
    return f"'openai|' || {sql.key_part(sql.named(f'{response}.id'))}"
