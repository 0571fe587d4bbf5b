"""Messages in span attributes: OpenTelemetry's GenAI names, the older indexed ones, and OpenInference's.

A span reader hands over ``{"attributes": [{"key": ..., "text": ...}, ...]}`` with the keys that ``NAMES`` and
``PREFIXES`` list.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

_REQUEST = ("gen_ai.input.messages", "gen_ai.prompt", "llm.prompts", "input.value")
_RESPONSE = ("gen_ai.output.messages", "gen_ai.completion", "output.value")
_TOOLS = ("gen_ai.tool.definitions", "llm.tools")
_SYSTEM = ("gen_ai.system_instructions",)
_PARAMS = ("llm.invocation_parameters",)
_PARAM_PREFIX = "gen_ai.request."
SETTINGS = (*_PARAMS, _PARAM_PREFIX, *_TOOLS, "llm.tools.")
_NO_PARAMS = {"gen_ai.request.model", "gen_ai.request.stream", "gen_ai.request.id"}
# Messages whose fields are attributes of their own: `gen_ai.prompt.0.content`.
_INDEXED_REQUEST = ("gen_ai.prompt.", "llm.input_messages.")
_INDEXED_RESPONSE = ("gen_ai.completion.", "llm.output_messages.")
NAMES = (*_REQUEST, *_RESPONSE, *_TOOLS, *_SYSTEM, *_PARAMS)
PREFIXES = (*_INDEXED_REQUEST, *_INDEXED_RESPONSE, "llm.tools.", _PARAM_PREFIX)


def request(value: object) -> object | None:
    """Put a span's request together.

    Args:
        value: What a reader handed over.

    Returns:
        A request body; None where the value is no list of attributes.
    """
    told = _told(value)
    if told is None:
        return None
    found: dict[str, object] = {}
    messages = _indexed(told, _INDEXED_REQUEST) or _first(told, _REQUEST)
    if messages is None:
        return {}
    tools = _first(told, _TOOLS) or _indexed(told, ("llm.tools.",))
    found = {"tools": tools, "system": _first(told, _SYSTEM)}
    if isinstance(messages, dict):
        return {**found, **cast("dict[str, object]", messages)}
    return {**found, "messages": messages}


def response(value: object) -> object | None:
    """Put a span's answer together.

    Args:
        value: What a reader handed over.

    Returns:
        Its messages; None where the value is no list of attributes.
    """
    told = _told(value)
    if told is None:
        return None
    return _indexed(told, _INDEXED_RESPONSE) or _first(told, _RESPONSE) or []


def params(value: object) -> object | None:
    """Put a span's parameters together.

    Args:
        value: What a reader handed over.

    Returns:
        An object, empty where the span says none; None where the value is no list of attributes.
    """
    told = _told(value)
    if told is None:
        return None
    found = {
        key.removeprefix(_PARAM_PREFIX): text
        for key, text in told.items()
        if key.startswith(_PARAM_PREFIX) and key not in _NO_PARAMS
    }
    own = _first(told, _PARAMS)
    return {**cast("dict[str, object]", own), **found} if isinstance(own, dict) else found


def _told(value: object) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    listed = cast("dict[str, object]", value).get("attributes")
    if not isinstance(listed, list):
        return None
    pairs = cast("list[Mapping[str, str | None]]", listed)
    return {pair["key"] or "": pair["text"] for pair in pairs if pair["text"] is not None}


def _first(told: Mapping[str, str], names: tuple[str, ...]) -> object | None:
    text = next((told[name] for name in names if told.get(name)), None)
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _indexed(told: Mapping[str, str], prefixes: tuple[str, ...]) -> list[object] | None:
    """Gather `<prefix><number>.<path>` into objects, in order of their number."""
    found: dict[int, dict[str, object]] = {}
    for key, text in told.items():
        prefix = next((p for p in prefixes if key.startswith(p)), None)
        number, _, path = key[len(prefix) :].partition(".") if prefix else ("", "", "")
        if number.isdecimal() and path:
            found.setdefault(int(number), {})[path.removeprefix("message.")] = text
    return [_nested(found[number]) for number in sorted(found)] or None


def _nested(fields: dict[str, object]) -> dict[str, object]:
    """Make parts of OpenInference's `contents.0.message_content.text` a list, in order."""
    parts = {path: text for path, text in fields.items() if path.startswith("contents.")}
    if not parts:
        return fields
    ordered = sorted(parts.items(), key=lambda item: (int(item[0].split(".")[1]), item[0]))
    kept: dict[str, object] = {path: text for path, text in fields.items() if path not in parts}
    texts = [text for path, text in ordered if path.endswith(".text")]
    others = {path: text for path, text in ordered if not path.endswith((".text", ".type"))}
    return {**kept, "content": texts, **others}
