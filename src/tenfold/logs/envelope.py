"""The `_log` envelope: what a caller knows about a call and the provider's answer does not say.

Written beside the answer by whoever logs it: ``{"id": ..., "usage": ..., "_log": {"ts": ..., "team": ...}}``.
"""

from __future__ import annotations

from tenfold.logs import sql

# Requests column -> names that it goes by in the envelope, the usual one first: a caller may write either.
_TEXTS = {
    "request_id": ("request_id",),
    "retry_of": ("retry_of",),
    "session_id": ("session", "session_id"),
    "trace_id": ("trace", "trace_id"),
    "org": ("org",),
    "project": ("project",),
    "team": ("team",),
    "feature": ("feature",),
    "environment": ("environment",),
    "user_id": ("user", "user_id"),
    "api_key_id": ("api_key", "api_key_id"),
    "client": ("client",),
    "region": ("region",),
}
_VALUES = {
    "ts": ("ts",),
    "attempt": ("attempt",),
    "duration_ms": ("duration_ms",),
    "ttft_ms": ("ttft_ms",),
    "queue_ms": ("queue_ms",),
    "http_status": ("http_status",),
    "is_stream": ("stream", "is_stream"),
    "is_structured": ("structured", "is_structured"),
}
LEAVES = {
    f"_log.{name}": kind
    for table, kind in ((_TEXTS, "VARCHAR"), (_VALUES, "JSON"))
    for names in table.values()
    for name in names
}


def held(column: str) -> str:
    """Give what the envelope says about a column.

    Args:
        column: Requests column.

    Returns:
        SQL text expression over ``r``.
    """
    if column in _TEXTS:
        values = [f'r."_log"."{name}"' for name in _TEXTS[column]]
    else:
        values = [sql.text(f'r."_log"."{name}"') for name in _VALUES[column]]
    return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"


# Columns that a reader fills in a way of its own, beside the envelope.
_BY_READER = {"ts", "request_id", "region", "http_status", "is_stream"}
TS = held("ts")


def fields() -> dict[str, str]:
    """Give the columns that the envelope fills.

    Returns:
        Requests column -> SQL over ``r``.
    """
    return {column: held(column) for column in (*_TEXTS, *_VALUES) if column not in _BY_READER}


def with_metadata(own: dict[str, str], answer: str = "r") -> dict[str, str]:
    """Let OpenAI's `metadata` pairs fill what the envelope leaves open.

    Args:
        own: The reader's own columns.
        answer: SQL of the answer that bears the pairs.

    Returns:
        All columns.
    """
    found = fields()
    for column, key in METADATA.items():
        found[column] = sql.first(found.get(column, "NULL"), f"{answer}.metadata.{key}")
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
