"""Answers as providers give them: OpenAI, Anthropic, Bedrock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slow_reader import conventions
from slow_reader.core import DATED, Format, Result, Row, by, one_each
from slow_reader.counts import Judged, count, judged, summed
from slow_reader.records import Lines, Record, Tree, any_set, first, get, has, is_one_of, named, text, told, word

OPENAI_USAGE: Tree = {"prompt_tokens_details": {}, "completion_tokens_details": {}}
RESPONSES_USAGE: Tree = {"input_tokens_details": {"cache_write_tokens_details": {}}, "output_tokens_details": {}}
_OUTPUT: Tree = {"output": [{"action": {}}], "tools": [{}]}
_RESPONSE: Tree = {"usage": RESPONSES_USAGE, "incomplete_details": {}, "error": {}, "metadata": {}, **_OUTPUT}
ANTHROPIC_USAGE: Tree = {"cache_creation": {}, "output_tokens_details": {}, "server_tool_use": {}}
ANTHROPIC_USAGE = {**ANTHROPIC_USAGE, "iterations": [ANTHROPIC_USAGE]}
SIDE: Tree = {"_log": {}, "metadata": {}}


# -- OpenAI


def _chat(kept: Lines, result: Result) -> list[Row]:
    streams: dict[tuple[Any, ...], Lines] = {}
    for line, value in kept:
        is_chunk = is_one_of(value, "object", "chat.completion.chunk") and named(value.get("id"))
        own = (text(value["id"]), text(value.get("model")), text(value.get("created"))) if is_chunk else (line,)
        streams.setdefault(own, []).append((line, value))
    rows: list[Row] = []
    for chunks in streams.values():
        counted = [one for one in chunks if one[1].get("usage") is not None]
        line, value = (counted or chunks)[-1]
        found = judged(conventions.CHAT, value.get("usage"))
        created = count(value.get("created"), 10**10).value
        at = float(created) if isinstance(created, int) and created in DATED else None
        rows.append(Row(line, found, named(value.get("id")), told(value, ("model",)), at))
        result.folded += len(chunks) - 1
    return sorted(rows, key=lambda row: row.line)


def _is_chat(value: Record) -> bool:
    if is_one_of(value, "object", "response"):
        return False
    sets = [("usage.prompt_tokens",), ("usage.completion_tokens",), ("usage.total_tokens",), ("choices", "model")]
    sets += [("error", name) for name in ("status_code", "id", "model", "_log")]
    return any_set(value, *sets) or is_one_of(
        value, "object", "chat.completion", "chat.completion.chunk", "text_completion"
    )


def _tool_calls(body: Any) -> dict[str, Any]:
    """Searches and file searches of an answer, from its output."""
    output, tools = get(body, "output"), get(body, "tools")
    own: dict[str, Any] = dict.fromkeys(("web_searches", "web_searches_preview", "file_searches"))
    if get(body, "usage") is None or output is None:
        return own
    made = [one for one in output if one is not None and text(one.get("status")) != "failed"]

    def calls(kind: str) -> list[Record]:
        return [one for one in made if one.get("type") == kind]

    searches = [one for one in calls("web_search_call") if text(get(one, "action.type")) in {None, "search"}]
    kinds = [text(one.get("type")) or "" for one in tools or [] if one is not None]
    is_preview = any(kind.startswith("web_search_preview") for kind in kinds)
    own["web_searches_preview" if is_preview else "web_searches"] = len(searches)
    own["file_searches"] = len(calls("file_search_call"))
    return own


def _response(value: Record) -> Judged:
    cancelled = word(value.get("status")) in {"cancelled", "canceled"}
    return judged(conventions.RESPONSES, value.get("usage"), _tool_calls(value), cancelled=cancelled)


_STATES = tuple(
    f"response.{state}" for state in ("created", "queued", "in_progress", "completed", "incomplete", "failed")
)


def _response_events(kept: Lines, result: Result) -> list[Row]:
    """The last event of a stream that bears the response is the request."""
    streams: dict[Any, Lines] = {}
    stream: str | None = None
    for line, value in kept:
        stream = named(get(value, "response.id")) or stream
        streams.setdefault(line if stream is None else stream, []).append((line, value))
    rows: list[Row] = []
    for lines in streams.values():
        held = [one for one in lines if one[1].get("response") is not None]
        line, value = (held or lines)[-1]
        response = value.get("response") or {}
        failed = any(is_one_of(one, "type", "error") for _, one in lines)
        cancelled = word(response.get("status")) in {"cancelled", "canceled"} and not failed
        found = judged(conventions.RESPONSES, response.get("usage"), _tool_calls(response), cancelled=cancelled)
        rows.append(Row(line, found, named(response.get("id")), told(response, ("model",))))
        result.folded += len(lines) - 1
    return sorted(rows, key=lambda row: row.line)


def _batch(value: Record) -> Judged:
    body, code = get(value, "response.body"), count(get(value, "response.status_code"))
    failed = get(value, "error.code") is not None or value.get("response") is None or value.get("error") is not None
    failed = failed or (isinstance(code.value, int) and code.value >= 400)
    stated = text(get(value, "error.code")) if failed else word(get(body, "status"))
    cancelled = stated in {"batch_cancelled", *(() if failed else ("cancelled", "canceled"))}
    return judged(conventions.BATCH, get(body, "usage"), _tool_calls(body), cancelled=cancelled)


# -- Anthropic

EVENTS = ("message_stop", "ping", "content_block_start", "content_block_delta", "content_block_stop")
_OPENAI_OBJECTS = ("chat.completion", "chat.completion.chunk", "text_completion", "response")


def compactions(line: int, usage: Any, key: str | None, who: tuple[str | None, ...]) -> list[Row]:
    """A compaction's tokens are not in the top-level usage: each is a row of its own."""
    held = [one for one in get(usage, "iterations") or [] if one is not None and one.get("type") == "compaction"]
    suffixes = ["", *map(str, range(2, len(held) + 1))]
    return [
        Row(line, judged(conventions.ANTHROPIC, one), key and f"{key}#compaction{suffix}", who)
        for one, suffix in zip(held, suffixes, strict=False)
    ]


def anthropic_at(place: str) -> Callable[[Lines, Result], list[Row]]:
    """Messages that lie at a path of their records."""

    def rows(kept: Lines, _: Result) -> list[Row]:
        found: list[Row] = []
        children: list[Row] = []
        for line, value in kept:
            message = get(value, place) if place else value
            usage, key, who = get(message, "usage"), named(get(message, "id")), told(message or {}, ("model",))
            found.append(Row(line, judged(conventions.ANTHROPIC, usage), key, who))
            children += compactions(line, usage, key, who)
        return [*found, *children]

    return rows


def _is_message(value: Record) -> bool:
    others = is_one_of(value, "type", "message_start", "message_delta", *EVENTS)
    if others or is_one_of(value, "object", *_OPENAI_OBJECTS):
        return False
    sets = [("usage.cache_read_input_tokens",), ("usage.cache_creation_input_tokens",)]
    sets += [("stop_reason", "usage.input_tokens")]
    sets += [("error", name) for name in ("type", "id", "status_code", "_log")]
    return any_set(value, *sets) or is_one_of(value, "type", "message")


# -- Bedrock

_BEDROCK_USAGE: Tree = {"cacheDetails": [{}], "cache_creation": {}}
_CONVERSE: Tree = {"usage": _BEDROCK_USAGE, "metrics": {}, "serviceTier": {}, "performanceConfig": {}}
_SPELT = ("inputTokens", "input_tokens")


def _long_writes(usage: Any) -> Any:
    details = get(usage, "cacheDetails")
    if isinstance(details, list):
        held = [one for one in details if isinstance(one, dict) and (text(one.get("ttl")) or "").lower() == "1h"]
        return summed([first(one, *_SPELT) for one in held], none=0)
    return get(usage, "cache_creation.ephemeral_1h_input_tokens")


_PIECES = ("contentBlockStart", "contentBlockDelta", "contentBlockStop")
_BROKEN = (
    *("internalServerException", "modelStreamErrorException", "validationException"),
    *("throttlingException", "serviceUnavailableException"),
)
_EVENTS = ("messageStart", "messageStop", "metadata", *_BROKEN)


def _converse(kept: Lines, result: Result) -> list[Row]:
    """A stream lies from its start to its metadata; any other line is an answer of its own."""
    groups: dict[tuple[str, int], Lines] = {}
    number = 0
    for line, value in kept:
        is_event = any(value.get(name) is not None for name in _EVENTS)
        number += value.get("messageStart") is not None
        groups.setdefault(("stream", number) if is_event else ("line", line), []).append((line, value))
        number += value.get("metadata") is not None
    rows: list[Row] = []
    for lines in groups.values():
        told_in = [one for one in lines if any_set(one[1], ("usage",), ("metadata",))]
        usages = [first(value, "usage", "metadata.usage") for _, value in lines]
        usage = next((one for one in reversed(usages) if one is not None), None)
        whole = {name: _latest(lines, name) for name in ("modelId", "model", "_log", "ResponseMetadata")}
        writes = first(usage, *conventions.BEDROCK.counts["cache_write_tokens"])
        details = [one.get("inputTokens") for one in get(usage, "cacheDetails") or [] if one is not None]
        own = {
            "cache_write_tokens": summed(details) if writes is None else writes,
            "cache_write_long_tokens": _long_writes(usage),
        }
        key = named(get(whole, "ResponseMetadata.RequestId"))
        who = told(whole, ("modelId", "model", "_log.model"))
        rows.append(Row((told_in or lines)[-1][0], judged(conventions.BEDROCK, usage, own), key, who))
        result.folded += len(lines) - 1
    return sorted(rows, key=lambda row: row.line)


def _latest(lines: Lines, name: str) -> Any:
    return next((held for _, value in reversed(lines) if (held := value.get(name)) is not None), None)


def _is_converse(value: Record) -> bool:
    names = ("stopReason", "ResponseMetadata", *_BROKEN)
    places = ("metadata.usage.inputTokens", "usage.inputTokens", "messageStart.role", "messageStop.stopReason")
    return any(get(value, path) is not None for path in (*names, *places))


def _batched(value: Record) -> Judged:
    answer = value.get("modelOutput")
    usage = get(answer, "usage")
    own: dict[str, Any] = {"cache_write_long_tokens": _long_writes(usage)}
    inputs, outputs = (first(usage, *conventions.BEDROCK.counts[f"{side}_tokens"]) for side in ("input", "output"))
    own["input_tokens"] = first(answer, "prompt_token_count", "inputTextTokenCount") if inputs is None else inputs
    if outputs is None:
        outputs = get(answer, "generation_token_count")
    if outputs is None and get(answer, "results"):
        outputs = summed([one.get("tokenCount") for one in answer["results"] if one is not None])
    return judged(conventions.BEDROCK, usage, {**own, "output_tokens": outputs})


def _last(body: Any, path: str) -> Any:
    """A value of an answer; of a stream's chunks the last one's that has it."""
    chunks = body if isinstance(body, list) else []
    return next((held for held in (get(one, path) for one in reversed(chunks)) if held is not None), None)


def _logged(value: Record) -> Judged:
    body = get(value, "output.outputBodyJson")
    usage = get(body, "usage")
    for path in ("metadata.usage", "message.usage"):
        usage = _last(body, path) if usage is None else usage
    own: dict[str, Any] = {"cache_write_long_tokens": _long_writes(usage)}
    for column, side, name in (
        ("input_tokens", "input", "inputTokenCount"),
        ("cache_read_tokens", "input", "cacheReadInputTokenCount"),
        ("cache_write_tokens", "input", "cacheWriteInputTokenCount"),
        ("output_tokens", "output", "outputTokenCount"),
    ):
        held = get(value, f"{side}.{name}")
        if held is None:
            held = _last(body, f"amazon-bedrock-invocationMetrics.{name}")
        own[column] = first(usage, *conventions.BEDROCK.counts[column]) if held is None else held
    return judged(conventions.BEDROCK, usage, own)


FORMATS = (
    Format(
        "openai_chat",
        _chat,
        _is_chat,
        {"usage": OPENAI_USAGE, "choices": [{}], "error": {}, **SIDE},
    ),
    Format(
        "openai_responses",
        one_each(_response, by("id")),
        lambda v: (
            not is_one_of(v, "object", "chat.completion", "chat.completion.chunk")
            and (
                any_set(v, ("usage.input_tokens_details",), ("usage.output_tokens_details.reasoning_tokens",))
                or any_set(v, ("error", "id"), ("error", "model"), ("error", "_log"))
                or is_one_of(v, "object", "response")
            )
        ),
        {**_RESPONSE, "_log": {}},
    ),
    Format(
        "openai_responses_stream",
        _response_events,
        lambda v: any_set(v, ("type", "sequence_number"), ("type", "response")) or is_one_of(v, "type", *_STATES),
        {"response": _RESPONSE, "_log": {}},
        beside=lambda v: (
            v.get("response") is None and v.get("type") is not None and text(v["type"]) not in ("error", *_STATES)
        ),
    ),
    Format(
        "openai_batch",
        one_each(_batch, by("id"), ("response.body.model",)),
        lambda v: any_set(v, ("custom_id", "response"), ("custom_id", "error")),
        {
            "response": {
                "body": {
                    "usage": {**OPENAI_USAGE, **RESPONSES_USAGE},
                    "incomplete_details": {},
                    "choices": [{}],
                    "metadata": {},
                    **_OUTPUT,
                }
            },
            "error": {},
        },
    ),
    Format(
        "anthropic_messages",
        anthropic_at(""),
        _is_message,
        {"usage": ANTHROPIC_USAGE, "error": {}, "_log": {}},
    ),
    Format(
        "anthropic_batch",
        anthropic_at("result.message"),
        lambda v: has(v, "custom_id", "result.type"),
        {"result": {"message": {"usage": ANTHROPIC_USAGE}}, "_log": {}},
    ),
    Format(
        "bedrock_converse",
        _converse,
        _is_converse,
        {
            **_CONVERSE,
            "metadata": _CONVERSE,
            "ResponseMetadata": {"HTTPHeaders": {}},
            **{name: {} for name in ("Error", "_log", "messageStart", "messageStop", *_PIECES, *_BROKEN)},
        },
        beside=lambda v: any(v.get(name) is not None for name in _PIECES),
    ),
    Format(
        "bedrock_batch",
        one_each(_batched, by("modelOutput.id"), ("modelOutput.model",)),
        lambda v: any_set(v, ("recordId", "modelOutput"), ("recordId", "error")),
        {"error": {}, "modelOutput": {"usage": _BEDROCK_USAGE, "results": [{}]}},
    ),
    Format(
        "bedrock_log",
        one_each(_logged, by("requestId"), ("modelId",)),
        lambda v: has(v, "modelId", "requestId") or is_one_of(v, "schemaType", "ModelInvocationLog"),
        {"identity": {}, "input": {}, "output": {}},
    ),
)
