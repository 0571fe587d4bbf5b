"""The `_log` envelope: what a caller knows about a call and the provider's answer does not say.

Written beside the answer by whoever logs it: ``{"id": ..., "usage": ..., "_log": {"ts": ..., "team": ...}}``.
"""

from __future__ import annotations

from tenfold.logs import sql

_NAMES = (
    "request_id",
    "user",
    "team",
    "feature",
    "session",
    "environment",
    "retry_of",
    "client",
    "org",
    "project",
    "api_key",
    "trace",
    "region",
    "finish_reason",
)
_COUNTS = ("ts", "duration_ms", "ttft_ms", "queue_ms", "stream", "attempt", "structured", "http_status")
LEAVES = {f"_log.{name}": "VARCHAR" for name in _NAMES} | {f"_log.{name}": "JSON" for name in _COUNTS}
TS = sql.text('r."_log".ts')


def fields() -> dict[str, str]:
    """Give the columns that the envelope fills.

    Returns:
        Requests column -> SQL over ``r``.
    """
    log = 'r."_log"'
    return {
        "attempt": sql.text(f"{log}.attempt"),
        "retry_of": f"{log}.retry_of",
        "session_id": f"{log}.session",
        "trace_id": f"{log}.trace",
        "duration_ms": sql.text(f"{log}.duration_ms"),
        "ttft_ms": sql.text(f"{log}.ttft_ms"),
        "queue_ms": sql.text(f"{log}.queue_ms"),
        "org": f"{log}.org",
        "project": f"{log}.project",
        "team": f"{log}.team",
        "feature": f"{log}.feature",
        "environment": f"{log}.environment",
        "user_id": f'{log}."user"',
        "api_key_id": f"{log}.api_key",
        "client": f"{log}.client",
        "is_structured": sql.text(f"{log}.structured"),
    }


def with_metadata(own: dict[str, str]) -> dict[str, str]:
    """Let OpenAI's `metadata` pairs fill what the envelope leaves open.

    Args:
        own: The reader's own columns.

    Returns:
        All columns.
    """
    found = fields()
    for column, key in METADATA.items():
        found[column] = sql.first(found.get(column, "NULL"), f"r.metadata.{key}")
    return {**found, **own}


METADATA = {
    "team": "team",
    "feature": "feature",
    "environment": "environment",
    "user_id": '"user"',
    "session_id": "session_id",
    "org": "org",
    "project": "project",
    "client": "client",
}
METADATA_LEAVES = {f"metadata.{key.strip(chr(34))}": "VARCHAR" for key in METADATA.values()}
