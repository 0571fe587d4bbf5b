"""Spans of OpenTelemetry and OpenInference, of which only the innermost calls count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slow_reader import conventions
from slow_reader.core import Format, Result, Row
from slow_reader.counts import COLUMNS, count, judged
from slow_reader.records import Cell, Lines, Record, first, get, has, named, opened, text

_G, _L = "gen_ai.usage.", "llm.token_count."
COUNTS: dict[str, tuple[str, ...]] = {
    "input_tokens": (f"{_G}input_tokens", f"{_G}prompt_tokens", f"{_L}prompt"),
    "cache_read_tokens": (
        *(f"{_G}cache_read.input_tokens", f"{_G}cache_read_input_tokens", f"{_G}cache_read_tokens"),
        *(f"{_G}details.cache_read_tokens", f"{_G}details.cached_tokens", f"{_L}prompt_details.cache_read"),
    ),
    "cache_write_tokens": (
        *(f"{_G}cache_write.input_tokens", f"{_G}cache_creation.input_tokens", f"{_G}cache_creation_input_tokens"),
        *(f"{_G}cache_write_tokens", f"{_G}details.cache_write_tokens", f"{_L}prompt_details.cache_write"),
    ),
    "input_audio_tokens": (f"{_G}audio.input_tokens", f"{_L}prompt_details.audio"),
    "input_image_tokens": (f"{_G}image.input_tokens",),
    "output_tokens": (f"{_G}output_tokens", f"{_G}completion_tokens", f"{_L}completion"),
    "reasoning_tokens": (
        *(f"{_G}reasoning.output_tokens", f"{_G}reasoning_tokens", f"{_G}details.reasoning_tokens"),
        f"{_L}completion_details.reasoning",
    ),
    "output_audio_tokens": (f"{_G}audio.output_tokens", f"{_L}completion_details.audio"),
    "output_image_tokens": (f"{_G}image.output_tokens",),
}
_TOTAL = (f"{_G}total_tokens", "llm.usage.total_tokens", f"{_L}total")
_PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_ROLLUPS = {"invoke_agent", "create_agent", "invoke_workflow", "execute_tool", "plan"}
_CALLS = {
    *("chat", "text_completion", "completion", "generate_content"),
    *("embeddings", "embedding", "rerank", "responses"),
}


class Span:
    """One span: where it hangs, what it says."""

    def __init__(self, line: int, trace: Any, span: Any, parent: Any, said: Mapping[str, str]) -> None:
        self.line, self.trace, self.span, self.parent = line, text(trace), text(span), text(parent) or None
        self.said = said

    def value(self, *names: str) -> str | None:
        return next((self.said[name] for name in names if name in self.said), None) or None

    def counts(self) -> dict[str, Any]:
        own: dict[str, Any] = dict.fromkeys(COLUMNS)
        for column, names in COUNTS.items():
            held = self.value(*names)
            own[column] = None if held is None else Cell(held)
        details = [own[name] for name in COUNTS if name not in {"input_tokens", "output_tokens"}]
        inputs = count(own["input_tokens"]).value
        small = "openai" in (self.value(*_PROVIDER) or "").lower() and isinstance(inputs, int) and inputs < 1024
        for name in ("cache_read_tokens", "cache_write_tokens"):
            if own[name] is None and (small or any(one is not None for one in details)):
                own[name] = 0
        return own

    @property
    def has_usage(self) -> bool:
        return any(self.value(*COUNTS[name]) is not None for name in ("input_tokens", "output_tokens"))

    @property
    def is_call(self) -> bool:
        operation = (self.value("gen_ai.operation.name") or "").lower()
        kind = self.value("openinference.span.kind")
        if operation in _ROLLUPS or operation in _CALLS:
            return operation in _CALLS
        return kind.upper() in {"LLM", "EMBEDDING", "RERANKER"} if kind is not None else self.has_usage


def _spans_rows(spans: list[Span], result: Result) -> list[Row]:
    """Calls; a call above another one with usage only repeats it."""
    parents: dict[tuple[str | None, str | None], list[str]] = {}
    for span in spans:
        if span.parent:
            parents.setdefault((span.trace, span.span), []).append(span.parent)
    above = set[tuple[str | None, str]]()
    fresh = [
        (s.trace, s.parent) for s in spans if s.is_call and s.has_usage and s.parent and s.parent != s.span and s.span
    ]
    while fresh:
        trace, name = fresh.pop()
        if trace is not None and name is not None and (trace, name) not in above:
            above.add((trace, name))
            fresh += [(trace, parent) for parent in parents.get((trace, name), ())]
    rows: list[Row] = []
    for span in spans:
        if not span.is_call:
            result.ignored += 1
        elif span.span is not None and (span.trace, span.span) in above:
            result.folded += 1
        else:
            trace, name = named(span.trace), named(span.span)
            key = f"{trace}|{name}" if trace and name else None
            total = span.value(*_TOTAL)
            found = judged(conventions.PLAIN, {}, span.counts(), None if total is None else Cell(total), own_total=True)
            rows.append(Row(span.line, found, key, (span.value(*_MODEL), span.value(*_PROVIDER))))
    result.lines += len(spans)
    return rows


_KNOWN = {name for names in COUNTS.values() for name in names} | {
    *(*_TOTAL, *_PROVIDER, *_MODEL, "gen_ai.operation.name", "openinference.span.kind")
}


def _otlp(kept: Lines, result: Result) -> list[Row]:
    spans: list[Span] = []
    for line, value in kept:
        for held in value["resourceSpans"]:
            for scope in get(held, "scopeSpans") or []:
                for span in [one for one in get(scope, "spans") or [] if one is not None]:
                    said: dict[str, str] = {}
                    for attribute in span.get("attributes") or []:
                        name = text(get(attribute, "key"))
                        written = _otlp_value(get(attribute, "value"))
                        if name in _KNOWN and name not in said and written is not None:
                            said[name] = written
                        elif name in _KNOWN and name not in said:
                            said[name] = ""
                    spans.append(Span(line, *(span.get(n) for n in ("traceId", "spanId", "parentSpanId")), said))
    result.lines -= len(kept)
    return _spans_rows(spans, result)


def _otlp_value(value: Any) -> str | None:
    for name in ("stringValue", "intValue", "doubleValue", "boolValue"):
        held = get(value, name)
        if held is not None:
            written = text(held)
            return written.strip('"') if name == "intValue" and written is not None else written
    listed = get(value, "arrayValue.values") or [None]
    return text(get(listed[0], "stringValue"))


_VALUE = {"value": {"arrayValue": {"values": [{}]}}}
_OTLP_TREE = {
    "resourceSpans": [
        {
            "resource": {"attributes": [_VALUE]},
            "scopeSpans": [{"spans": [{"status": {}, "attributes": [_VALUE]}]}],
        }
    ]
}

_OWN = ("llm.", "openinference.", "session.", "user.")


def _attribute(value: Record, name: str) -> str | None:
    held, flat = opened(value.get("attributes")), name.replace(".", "\\.")
    paths = [get(held, flat), value.get(f"attributes.{name}")]
    if name.startswith(_OWN):
        paths.append(get(held, name))
    found = next((one for one in paths if one is not None), None)
    return None if found is None else (text(found) or "").strip('"')


_TELLING = ("openinference.span.kind", "llm.token_count.prompt", "gen_ai.operation.name", "gen_ai.system")


def _openinference(kept: Lines, result: Result) -> list[Row]:
    spans: list[Span] = []
    for line, value in kept:
        context = opened(value.get("context"))
        said = {name: held for name in _KNOWN if (held := _attribute(value, name)) is not None}
        whole = {"nested": context, **value}
        trace, span = (first(whole, f"nested.{name}", f"context\\.{name}") for name in ("trace_id", "span_id"))
        spans.append(Span(line, trace, span, value.get("parent_id"), said))
    result.lines -= len(kept)
    return _spans_rows(spans, result)


FORMATS = (
    Format("otlp", _otlp, lambda v: has(v, "resourceSpans"), _OTLP_TREE),
    Format(
        "openinference",
        _openinference,
        lambda v: get(opened(v.get("context")), "span_id") is not None or has(v, "context\\.span_id", "start_time"),
        cells=("context.span_id", "start_time"),
        is_row=lambda v: (
            has(opened(v.get("context")), "span_id") or any(_attribute(v, name) is not None for name in _TELLING)
        ),
    ),
)
