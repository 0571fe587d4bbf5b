"""Where logs put requests and answers, as readers say it: fragments that several formats share."""

from __future__ import annotations

from tenfold.logs.base import PARTS, member

# A request logged beside its answer: the whole body, by whoever writes the log.
REQUEST_LEAVES = {"request": "JSON", "_log.request": "JSON"}
REQUEST = 'coalesce(r."_log".request::VARCHAR, r.request::VARCHAR)'
PARTS_LEAF = {PARTS: "JSON"}


def asked(**named: str) -> str:
    """Put a request together from members that stand apart.

    Args:
        **named: Key of a request body -> SQL; the last one must be there, or nothing was logged.

    Returns:
        SQL text of JSON; NULL where the last member is NULL.
    """
    members = ", ".join(f"'{name}', {value}" for name, value in named.items())
    *_, last = named.values()
    return f"CASE WHEN ({last}) IS NOT NULL THEN json_object({members})::VARCHAR END"


def choices(path: str) -> dict[str, str]:
    """List the raw paths of a chat answer's text.

    Args:
        path: Where the choices lie, such as ``"choices"``.

    Returns:
        Dotted path -> type.
    """
    return {f"{path}[].message": "JSON", f"{path}[].text": "JSON"}


def choices_said(held: str) -> str:
    """Give a chat answer's text.

    Args:
        held: SQL of the choices.

    Returns:
        SQL text of JSON; NULL where they have none.
    """
    said = f"list_transform({held}, lambda x: struct_pack(message := x.message, text := x.text))"
    message = f"{held}[1].message::VARCHAR"
    is_said = f"coalesce(NOT regexp_full_match({message}, '{_EMPTY_MESSAGE}'), {held}[1].text IS NOT NULL)"
    return f"CASE WHEN {is_said} THEN to_json({said})::VARCHAR END"


# A message whose text was taken out of the log: a role, and members that hold nothing.
_EMPTY_MESSAGE = r'\{(\s|,|"role"\s*:\s*"[a-z]+"|"[a-z_]+"\s*:\s*(null|""|\[\s*\]|\{\s*\}))*\}'

_ITEM = ("name", "content", "arguments", "summary")


def output(path: str) -> dict[str, str]:
    """List the raw paths of a Responses answer's text.

    Args:
        path: Where the response lies, such as ``"response."``.

    Returns:
        Dotted path -> type.
    """
    return {f"{path}output[].{name}": "JSON" for name in _ITEM}


def output_said(response: str) -> str:
    """Give a Responses answer's text.

    Args:
        response: SQL of the response.

    Returns:
        SQL text of JSON; NULL where it has none.
    """
    held = member(response, "output")
    packed = ", ".join(f"{name} := x.{name}" for name in _ITEM)
    is_said = " OR ".join(f"x.{name} IS NOT NULL" for name in _ITEM)
    kept = f"list_filter({held}, lambda x: {is_said})"
    return (
        f"CASE WHEN len({held}) > 0 THEN nullif(to_json(list_transform({kept}, lambda x: struct_pack({packed})))"
        "::VARCHAR, '[]') END"
    )


def filled(*values: str) -> str:
    """Take the first logged value that is not empty.

    Args:
        *values: SQL.

    Returns:
        SQL text; NULL for empty texts, objects and lists.
    """
    empty = "'', '{}', '[]', 'null', '\"\"'"
    texts = [f"({value})::VARCHAR" for value in values]
    return f"coalesce({', '.join(f'CASE WHEN {text} NOT IN ({empty}) THEN {text} END' for text in texts)})"
