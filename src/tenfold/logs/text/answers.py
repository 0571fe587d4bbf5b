"""What a model said, whatever the provider's form: whole, in content blocks, or as the chunks of a stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, cast

from tenfold.logs.text import attributes
from tenfold.logs.text.segments import canonical, read

if TYPE_CHECKING:
    from collections.abc import Iterator


class Answer(NamedTuple):
    """What a model said.

    Args:
        pieces: Kind (text, thought, tool) and text, neighbours of one kind joined: a streamed answer is the same as
            a whole one.
    """

    pieces: tuple[tuple[str, str], ...]


_INNER = (
    *("message", "delta", "choices", "candidates", "output", "outputs", "content", "parts", "contents", "results"),
    *("contentBlockStart", "start", "contentBlockDelta", "content_block", "body", "text", "refusal", "output_text"),
    *("outputText", "completion", "generation", "generated_text", "tool_calls", "function"),
)
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "summary")
_CALLS = ("function_call", "functionCall", "toolUse", "tool_use")
_ARGUMENTS = ("arguments", "args", "input")


def answer(value: object) -> Answer | None:
    """Take an answer apart; ids, which differ every time, are left out.

    Args:
        value: Answer body, message, content blocks, chunks of a stream, or text.

    Returns:
        The answer; None where nothing was said.
    """
    told = attributes.response(value)
    pieces: list[tuple[str, str]] = []
    for kind, text in _said(value if told is None else told):
        if pieces and pieces[-1][0] == kind:
            pieces[-1] = (kind, pieces[-1][1] + text)
        elif text:
            pieces.append((kind, text))
    return Answer(tuple(pieces)) if pieces else None


def kept(raw: str) -> str | None:
    """Give an answer to keep.

    Args:
        raw: As logged.

    Returns:
        It; None where nothing was answered.
    """
    told = attributes.response(read(raw))
    return raw if told is None else json.dumps(told, ensure_ascii=False) if told else None


def _said(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield "text", value
    elif isinstance(value, list):
        for entry in cast("list[object]", value):
            yield from _said(entry)
    elif isinstance(value, dict):
        yield from _said_in(cast("dict[str, object]", value))


def _said_in(held: dict[str, object]) -> Iterator[tuple[str, str]]:
    for name in _THOUGHTS:
        if held.get(name):
            yield from (("thought", text) for _, text in _said(held[name]))
    is_call = isinstance(held.get("name"), str) and "function" not in held
    if is_call or any(held.get(name) is not None for name in _ARGUMENTS):
        yield "tool", str(held.get("name") or "") + "".join(_argument(held.get(name)) for name in _ARGUMENTS)
        return
    if isinstance(held.get("partial_json"), str):
        yield "tool", cast("str", held["partial_json"])
    for name in _CALLS:
        if isinstance(held.get(name), dict):
            yield from _said_in(cast("dict[str, object]", held[name]))
    for name in _INNER:
        if held.get(name):
            yield from _said(held[name])


def _argument(value: object) -> str:
    return "" if value in (None, {}) else value if isinstance(value, str) else canonical(value)
