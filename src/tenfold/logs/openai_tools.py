"""Calls of OpenAI's own tools in a Responses answer, which are billed beside its tokens.

They are counted from ``output``: the usage object says nothing of them, and a declared tool need not be called.
"""

from __future__ import annotations


def leaves(prefix: str) -> dict[str, str]:
    """List the raw paths that tool calls are counted from.

    Args:
        prefix: Path of the answer, such as ``"response.body."``.

    Returns:
        Dotted path -> type.
    """
    return {
        f"{prefix}output[].type": "VARCHAR",
        f"{prefix}output[].status": "VARCHAR",
        f"{prefix}output[].action.type": "VARCHAR",
        f"{prefix}tools[].type": "VARCHAR",
    }


def counts(body: str) -> dict[str, str]:
    """Count the calls: searches (not pages opened or searched within), by the tool's version, and file searches.

    Args:
        body: SQL of the answer.

    Returns:
        Token column -> SQL text; NULL where the answer's output was not logged.
    """
    searched = _calls(body, "x.type = 'web_search_call' AND coalesce(x.action.type, 'search') = 'search'")
    is_preview = "starts_with(x.type, 'web_search_preview')"
    preview = f"coalesce(len(list_filter({body}.tools, lambda x: {is_preview})) > 0, false)"
    return {
        "web_searches": f"CASE WHEN NOT {preview} THEN {searched} END",
        "web_searches_preview": f"CASE WHEN {preview} THEN {searched} END",
        "file_searches": _calls(body, "x.type = 'file_search_call'"),
    }


def _calls(body: str, which: str) -> str:
    kept = f"list_filter({body}.output, lambda x: {which} AND coalesce(x.status, '') <> 'failed')"
    return f"CASE WHEN {body}.usage IS NOT NULL THEN len({kept})::VARCHAR END"
