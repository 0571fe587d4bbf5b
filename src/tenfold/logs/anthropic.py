"""What Anthropic's usage has in common wherever it is logged: messages, streams, batches, Claude Code sessions.

Token counts are exclusive: input leaves out what was read from the cache and written to it.
"""

from __future__ import annotations

from tenfold.logs.base import Children, usage_leaves
from tenfold.usage.shapes import ANTHROPIC as SHAPE

# The n-th compaction of one message; the first one has no number.
_NUMBER = "CASE WHEN r.it_number > 1 THEN r.it_number::VARCHAR ELSE '' END"


def leaves(prefix: str) -> dict[str, str]:
    """List the raw paths of a usage object.

    Args:
        prefix: Where it lies, such as ``"usage."``.

    Returns:
        Dotted path -> type.
    """
    return {
        f"{prefix}speed": "VARCHAR",
        f"{prefix}iterations[].type": "VARCHAR",
        **usage_leaves(SHAPE, prefix),
        **usage_leaves(SHAPE, f"{prefix}iterations[]."),
    }


def tier(usage: str) -> str:
    """Give the service tier: fast mode is one of its own.

    Args:
        usage: SQL of the usage object.

    Returns:
        SQL text.
    """
    return f"CASE WHEN {usage}.speed = 'fast' THEN 'fast' ELSE {usage}.service_tier END"


def region(usage: str) -> str:
    """Give the region that the price depends on.

    Args:
        usage: SQL of the usage object.

    Returns:
        SQL text; NULL where the call was served anywhere.
    """
    return f"CASE WHEN {usage}.inference_geo NOT IN ('global', 'not_available') THEN {usage}.inference_geo END"


def flags(usage: str) -> dict[str, str]:
    """Flag iterations by another model, whose tokens may or may not be in the top-level usage.

    Args:
        usage: SQL of the usage object.

    Returns:
        Flag -> SQL condition.
    """
    other = f"len(list_filter({usage}.iterations, lambda i: i.type NOT IN ('message', 'compaction'))) > 0"
    return {"iterations_unverified": other}


def parent(usage: str, message: str) -> str:
    """Give the parent id of a message with iterations.

    Args:
        usage: SQL of the usage object.
        message: SQL of the message's id.

    Returns:
        SQL text.
    """
    return f"CASE WHEN len({usage}.iterations) > 0 THEN {message} END"


def compactions(usage: str, message: str) -> Children:
    """Give the rows of a message's compactions, which its top-level usage leaves out.

    Args:
        usage: SQL of the usage object.
        message: SQL of the message's id.

    Returns:
        The children.
    """
    return Children(
        each=f"list_filter({usage}.iterations, lambda i: i.type = 'compaction')",
        suffix=f"'#compaction' || {_NUMBER}",
        fields={
            "request_id": f"{message} || '#compaction' || {_NUMBER}",
            "parent_id": message,
            "duration_ms": "NULL",
            "ttft_ms": "NULL",
            "finish_reason": "NULL",
        },
        usage="r.it",
    )
