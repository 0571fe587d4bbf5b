"""Calls that several records are: the events of a stream, its chunks, a message split over rows."""

from __future__ import annotations

from typing import Any

from slow_reader import conventions
from slow_reader.answers import ANTHROPIC_USAGE, EVENTS, compactions
from slow_reader.core import Format, Result, Row
from slow_reader.counts import BAD, NONE, Count, count, judged, summed
from slow_reader.records import Lines, Record, Tree, any_set, filled, first, get, has, is_one_of, named, text

# -- Anthropic's stream events: the counts of a delta are cumulative, the last value of each field wins

_LEAVES = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens", "cache_creation")
_NESTED = ("output_tokens_details.thinking_tokens", "server_tool_use.web_search_requests")


def _events(kept: Lines, result: Result) -> list[Row]:
    messages: list[Lines] = []
    for line, value in kept:
        if not messages or (is_one_of(value, "type", "message_start") and (messages[0] or len(messages) > 1)):
            messages.append([])
        messages[-1].append((line, value))
    rows: list[Row] = []
    children: list[Row] = []
    for place, events in enumerate(messages):
        told = [one for one in events if any_set(one[1], ("usage",), ("message.usage",))]
        usage: Record = {}
        for _, value in told:
            for path in (*_LEAVES, *_NESTED, "iterations"):
                held = first(value, f"usage.{path}", f"message.usage.{path}")
                if held is not None:
                    outer, _, inner = path.partition(".")
                    usage[outer] = {inner: held} if inner else held
        counted = any(is_one_of(v, "type", "message_delta") and has(v, "usage.output_tokens") for _, v in events)
        own = {} if counted else {"output_tokens": None}
        line = (told or events)[-1][0]
        names = [get(value, "message.id") for _, value in events]
        key = named(next((name for name in names if name is not None), None))
        models = [get(value, "message.model") for _, value in events]
        who = (text(next((one for one in models if one is not None), None)),)
        row = Row(line, judged(conventions.ANTHROPIC, usage, own), key, who)
        if not told:  # any of its lines stands for it, pieces of the answer among them
            end = messages[place + 1][0][0] if place + 1 < len(messages) else kept[-1][0] + 9
            row.lines |= set(range(events[0][0], end))
        rows.append(row)
        children += compactions(line, usage, key, who)
        result.folded += len(events) - 1
    return [*rows, *children]


# -- Gemini: the chunks of a stream repeat cumulative counts, the last ones stand

_BODIES = ("", "response.", "full_response.")
_LISTS = {"input": "promptTokensDetails", "cache_read": "cacheTokensDetails"}
_ANSWERS = ("candidatesTokensDetails", "responseTokensDetails")


def _snake(name: str) -> str:
    return "".join("_" + sign.lower() if sign.isupper() else sign for sign in name)


def _of_kind(usage: Any, kind: str, *lists: str) -> Count:
    """Sum a list's entries of one kind; the first of some lists that is there."""
    for name in [*lists, *map(_snake, lists)]:
        held = get(usage, name)
        if held is not None:
            entries = [one for one in held if one is not None and (text(one.get("modality")) or "").lower() == kind]
            return summed([first(one, "tokenCount", "token_count") for one in entries], none=0)
    return NONE


def _media(usage: Any) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for kind in ("audio", "image", "video"):
        for side, name in _LISTS.items():
            own[f"{side}_{kind}_tokens"] = _of_kind(usage, kind, name)
        own[f"output_{kind}_tokens"] = _answered(usage, kind)
    return own


def _answered(usage: Any, kind: str) -> Count:
    for name in (_ANSWERS[0], _ANSWERS[1], _snake(_ANSWERS[0]), _snake(_ANSWERS[1])):
        if get(usage, name) is not None:
            return _of_kind({name: get(usage, name)}, kind, name)
    return NONE


def _at(value: Record, path: str) -> Any:
    return first(value, *(body + path for body in _BODIES), _snake(path))


_COUNTED = (
    *conventions.GEMINI.counts["input_tokens"],
    *conventions.GEMINI.counts["output_tokens"],
    *conventions.GEMINI.total,
)


def _gemini(kept: Lines, result: Result) -> list[Row]:
    answers: dict[tuple[Any, ...], Lines] = {}
    for line, value in kept:
        request = named(_at(value, "responseId"))
        model = _at(value, "modelVersion")
        model = model if model is not None else (text(value.get("model")) or "").rpartition("/")[2] or None
        own = (line,) if request is None else (request, text(model) or "")
        answers.setdefault(own, []).append((line, value))
    rows: list[Row] = []
    for own, chunks in answers.items():
        usages = [_at(value, "usageMetadata") for _, value in chunks]
        told = [
            usage for usage in usages if usage is not None and any(get(usage, name) is not None for name in _COUNTED)
        ]
        usage = told[-1] if told else None
        key, who = (own[0], (own[1] or None,)) if len(own) > 1 else (None, (None,))
        found = judged(conventions.GEMINI, usage, _media(usage))
        # the last chunk is the answer; where it stands twice, the answer does
        again = [line for line, value in chunks if value == chunks[-1][1]]
        result.folded += len(chunks) - len(again)
        for line in again:
            rows.append(Row(line, found, key, who))
            rows[-1].lines |= {line for line, _ in chunks}
    return sorted(rows, key=lambda row: row.line)


def _is_gemini(value: Record) -> bool:
    return any_set(
        value,
        ("usageMetadata",),
        ("usage_metadata.prompt_token_count",),
        ("response.usageMetadata",),
        ("full_response.usageMetadata",),
        ("candidates", "modelVersion"),
        ("promptFeedback",),
        ("candidates", "responseId"),
        *(("key", "response"), ("key", "error"), ("processed_time", "status"), ("error.status",), ("error", "_log")),
    )


_DETAILS: Tree = {name: [{}] for base in (*_LISTS.values(), *_ANSWERS) for name in (base, _snake(base))}
_GEMINI_BODY: Tree = {"promptFeedback": {}, "candidates": [{}], "usageMetadata": _DETAILS}


# -- Azure API Management: a message above 32 KB is several rows, each with the call's counts


def _apim(kept: Lines, result: Result) -> list[Row]:
    calls: dict[Any, Lines] = {}
    for line, value in kept:
        calls.setdefault(named(value.get("CorrelationId")) or line, []).append((line, value))
    rows: list[Row] = []
    for call, lines in calls.items():
        own = [_largest([value.get(name) for _, value in lines]) for name in ("PromptTokens", "CompletionTokens")]
        total = _largest([value.get("TotalTokens") for _, value in lines])
        found = judged(
            conventions.Convention(counts={}),
            {},
            dict(zip(("input_tokens", "output_tokens"), own, strict=True)),
            total,
            own_total=True,
        )
        key = call if isinstance(call, str) else None
        rows.append(Row(lines[0][0], found, key))
        result.folded += len(lines) - 1
    return rows


def _largest(values: list[Any]) -> Count:
    counts = [count(value) for value in values if filled(value) is not None]
    good = [one for one in counts if isinstance(one.value, int)]
    if good:
        return max(good, key=lambda one: int(one.value or 0))
    return Count(BAD) if counts else NONE


_CORRELATED = ("CorrelationId", "PromptTokens", "DeploymentName", "ModelName")
FORMATS = (
    Format(
        "anthropic_stream",
        _events,
        lambda v: (
            is_one_of(v, "type", "message_start", "message_delta", *EVENTS)
            or (is_one_of(v, "type", "error") and has(v, "error"))
            or (is_one_of(v, "type", "error"))
        ),
        {"message": {"usage": ANTHROPIC_USAGE}, "usage": ANTHROPIC_USAGE, "delta": {}, "error": {}, "_log": {}},
        beside=lambda v: is_one_of(v, "type", *EVENTS),
    ),
    Format(
        "gemini",
        _gemini,
        _is_gemini,
        {
            **_GEMINI_BODY,
            "response": _GEMINI_BODY,
            "full_response": _GEMINI_BODY,
            "prompt_feedback": {},
            "usage_metadata": _DETAILS,
            "error": {},
            "_log": {},
        },
    ),
    Format(
        "azure_apim",
        _apim,
        lambda v: has(v, "CorrelationId") and any_set(v, ("PromptTokens",), ("ModelName",)),
        cells=_CORRELATED,
    ),
)
