"""Calls as gateways, proxies, servers and published traces log them, one record a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slow_reader import conventions
from slow_reader.answers import OPENAI_USAGE, RESPONSES_USAGE, SIDE
from slow_reader.core import Format, Result, Row, by, one_each
from slow_reader.counts import BAD, COLUMNS, Count, Judged, count, judged
from slow_reader.records import (
    Lines,
    Record,
    Tree,
    any_set,
    filled,
    first,
    get,
    has,
    named,
    opened,
    says,
    text,
    told,
    word,
)

# -- gateways


def _dash(value: Any) -> Any:
    return None if value == "-" else value


_ENVOY = {
    "input_tokens": ("genai_tokens_input", "llm_input_token"),
    "cache_read_tokens": ("genai_tokens_cached_input", "llm_cached_input_token"),
    "cache_write_tokens": ("genai_tokens_cache_creation_input", "llm_cache_creation_input_token"),
    "output_tokens": ("genai_tokens_output", "llm_output_token"),
    "reasoning_tokens": ("genai_tokens_reasoning", "llm_reasoning_token"),
}
_ENVOY_TOTAL = ("genai_tokens_total", "llm_total_token")


def _said(value: Record, *names: str) -> Any:
    return next((held for held in (_dash(value.get(name)) for name in names) if held is not None), None)


def _envoy(value: Record) -> Judged:
    own = {column: _said(value, *names) for column, names in _ENVOY.items()}
    total = _said(value, *_ENVOY_TOTAL)
    return judged(conventions.Convention(counts={}), value, own, total, own_total=True, cancelled=_is_cut(value))


def _is_cut(value: Record) -> bool:
    """The client went away: code 0."""
    try:
        return round(float((text(_said(value, "response_code")) or "").strip('"'))) == 0
    except (ValueError, OverflowError):
        return False


def _envoy_model(value: Record) -> Any:
    return _said(value, "genai_response_model", "genai_model_name_override", "genai_model_name")


def _other_route(value: Record) -> bool:
    model = _envoy_model(value)
    counts = _said(value, *_ENVOY["input_tokens"], *_ENVOY["output_tokens"], *_ENVOY_TOTAL)
    return model is None and counts is None and value.get("response_code") is not None


_PROXIES = ("proxy", "ai-proxy", "ai-proxy-advanced")
_PLUGINS = (*_PROXIES, "ai-request-transformer", "ai-response-transformer")
_KONG_BLOCK: Tree = {"meta": {}, "cache": {}, "usage": {**OPENAI_USAGE, **RESPONSES_USAGE}}
_KONG_BLOCK["usage"] = {name: {} for name in (*OPENAI_USAGE, *RESPONSES_USAGE)}


def _kong(kept: Lines, _: Result) -> list[Row]:
    rows: list[Row] = []
    for line, value in kept:
        request = named(get(value, "request.id"))
        for name in _PLUGINS:
            block = get(value["ai"], name)
            if block is not None:
                key = request and request + ("" if name in _PROXIES else f"#{name}")
                who = told(block, ("meta.response_model", "meta.request_model"), says("meta.provider_name"))
                rows.append(Row(line, judged(conventions.KONG, get(block, "usage")), key, who))
    return rows


def _portkey(value: Record) -> Judged:
    body = opened(value.get("response"))
    body = body if value.get("response") is not None and body is not None else opened(value.get("response.body"))
    usage = first(body, "usage", "body.usage")
    own = {
        column: _or_units(first(usage, *conventions.PORTKEY.counts[column]), value.get(units))
        for column, units in (("input_tokens", "req_units"), ("output_tokens", "res_units"))
    }
    total = _or_units(first(usage, "total_tokens"), value.get("total_units"))
    return judged(conventions.PORTKEY, usage, own, total, own_total=True)


def _or_units(own: Any, units: Any) -> Any:
    return filled(units) if own is None else own


def _portkey_model(value: Record) -> Any:
    held = [opened(value.get(name)) for name in ("response", "response.body")]
    body = next((one for one in held if one is not None), None)
    return first(body, "model", "body.model") or value.get("ai_model")


def _is_portkey(value: Record) -> bool:
    return any_set(value, ("req_units", "res_units"), ("ai_org", "created_at"), ("ai_model",))


# -- LiteLLM


def _litellm(value: Record) -> Judged:
    failed = (text(value.get("status")) or "success").lower() in {"failure", "error"}
    usage = get(opened(value.get("metadata")), "usage_object")
    own: dict[str, Any] = {}
    for column, name in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
        held = filled(value.get(name))
        unknown = held is None or (failed and text(held) == "0")
        own[column] = get(usage, name) if unknown else held
    total = None if failed else filled(value.get("total_tokens"))
    return judged(conventions.LITELLM, usage, own, total, own_total=True)


def _litellm_key(request: str) -> Callable[[Record], str | None]:
    def key(value: Record) -> str | None:
        call, answer = named(value.get("litellm_call_id")), named(value.get(request))
        if call is not None or answer is None:
            return call
        return f"{answer}|{text(value.get('startTime')) or ''}|{text(value.get('model')) or ''}"

    return key


# -- traces and own rows


def _tenfold_key(value: Record) -> str | None:
    request, attempt = named(value.get("request_id")), count(value.get("attempt")).value
    tried = f"#{attempt}" if isinstance(attempt, int) and attempt > 0 else ""
    return request and f"{word(value.get('provider'))}|{request}{tried}"


_TOLD = ("ts", "request_id", "model", "model_requested", "status", "http_status")


def _is_own(value: Record) -> bool:
    told = [(of, what) for of in _TOLD[:2] for what in _TOLD[2:]]
    return any_set(value, *((name,) for name in COLUMNS), *told)


def _own(value: Record) -> Judged:
    return judged(conventions.PLAIN, value, cancelled=word(value.get("status")) in {"cancelled", "canceled"})


def _nameless(_: Record) -> None:
    return None


def _sglang(value: Record) -> Judged:
    reason = value.get("finish_reason")
    aborted = text(get(reason, "type") if isinstance(reason, dict) else reason) == "abort"
    return judged(conventions.SGLANG, value, cancelled=aborted and get(reason, "status_code") is None)


def _sglang_key(value: Record) -> str | None:
    rid = get(opened(value.get("request_parameters")), "rid")
    request = named(value.get("id") if value.get("id") is not None else rid)
    return request and f"{request}|{text(value.get('request_received_ts')) or ''}"


def _qwen_key(value: Record) -> str | None:
    parts = [text(value.get(name)) for name in ("timestamp", "input_length", "output_length")]
    return None if value.get("chat_id") is None else f"{text(value['chat_id'])}|{parts}"


def _generation(value: Record) -> Judged:
    whole = {name: held for name, held in value.items() if name != "data"}
    whole |= {name: held for name, held in (value.get("data") or {}).items() if held is not None}
    return judged(conventions.OPENROUTER, whole, cancelled=word(whole.get("cancelled")) in _TRUE)


_TRUE = {"true", "t", "1", "1.0", "yes", "y", "hit"}


def _or_data(path: str) -> Callable[[Record], Any]:
    return lambda value: first(value, f"data.{path}", path)


def _openrouter_bills(value: Record) -> str | None:
    """With a key of one's own, the host; else OpenRouter."""
    is_own = word(_or_data("is_byok")(value)) in _TRUE
    return word(_or_data("provider_name")(value)) or None if is_own else "openrouter"


def _helicone(value: Record) -> Judged:
    return judged(
        conventions.HELICONE, value, cancelled=count(value.get("response_status")) == Count(BAD) and _is_3(value)
    )


def _is_3(value: Record) -> bool:
    return (text(value.get("response_status")) or "").strip('"') == "-3"


_OPENROUTER_USAGE = {**OPENAI_USAGE, "server_tool_use": {}, "cost_details": {}}
FORMATS = (
    Format(
        "openrouter_generation",
        one_each(
            _generation,
            lambda v: named(_or_data("id")(v)),
            _or_data("model"),
            _openrouter_bills,
        ),
        lambda v: any_set(
            v,
            ("data.native_tokens_prompt",),
            ("native_tokens_prompt",),
            ("data.total_cost", "data.id"),
            ("total_cost", "id"),
        ),
        {"data": {}},
    ),
    Format(
        "openrouter_chat",
        one_each(lambda v: judged(conventions.ROUTED_CHAT, v.get("usage")), by("id"), ("model",)),
        lambda v: any_set(
            v,
            *(("usage.prompt_tokens",), ("usage.is_byok",), ("choices", "model"), ("error.code",), ("error", "_log")),
        ),
        {"usage": _OPENROUTER_USAGE, "choices": [{}], "error": {}, **SIDE},
    ),
    Format(
        "helicone",
        one_each(
            _helicone,
            by("request_id"),
            ("response_model", "model", "model_override", "request_model"),
            says("provider"),
        ),
        lambda v: any_set(
            v,
            ("request_created_at", "prompt_tokens"),
            ("request_created_at", "response_status", "request_path"),
            ("helicone_user", "prompt_tokens"),
            ("request_created_at", "request_id"),
        ),
        cells=(
            *("request_created_at", "prompt_tokens", "response_status", "request_path"),
            *("helicone_user", "request_id"),
        ),
    ),
    Format(
        "kong_ai_proxy",
        _kong,
        lambda v: any(has(v, f"ai.{name}") for name in _PLUGINS),
        {
            "ai": dict.fromkeys(_PLUGINS, _KONG_BLOCK),
            **{name: {} for name in ("request", "response", "latencies", "consumer", "service", "route")},
        },
        beside=lambda v: v.get("ai") is None and has(v, "request", "response"),
    ),
    Format(
        "envoy_ai_gateway",
        one_each(_envoy, lambda v: named(_dash(v.get("x-request-id"))), _envoy_model),
        lambda v: any(
            v.get(name) is not None
            for name in (
                *("genai_tokens_input", "genai_model_name", "genai_response_model", "genai_tokens_total"),
                "llm_input_token",
            )
        ),
        beside=_other_route,
    ),
    Format(
        "portkey",
        one_each(_portkey, by("id"), _portkey_model, says("ai_org")),
        _is_portkey,
        cells=("req_units", "res_units", "ai_org", "ai_model", "created_at"),
    ),
    Format(
        "litellm_payload",
        one_each(_litellm, _litellm_key("id"), ("model",), says("custom_llm_provider")),
        lambda v: any_set(v, *((name, "startTime") for name in ("call_type", "status", "prompt_tokens"))),
        {"error_information": {}},
    ),
    Format(
        "litellm_spend",
        one_each(_litellm, _litellm_key("request_id"), ("model",), says("custom_llm_provider")),
        lambda v: any_set(
            v,
            ("spend", "call_type", "prompt_tokens"),
            *(("call_type", "startTime"), ("request_id", "call_type"), ("request_id", "startTime")),
        ),
        cells=("spend", "call_type", "prompt_tokens", "startTime", "request_id"),
    ),
    Format(
        "azure_llm_trace",
        one_each(lambda v: judged(conventions.lengths("ContextTokens", "GeneratedTokens"), v), _nameless),
        lambda _: False,
        cells=("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    ),
    Format(
        "burstgpt",
        one_each(
            lambda v: judged(conventions.lengths("Request tokens", "Response tokens", "Total tokens"), v), _nameless
        ),
        lambda _: False,
        cells=("Request tokens", "Response tokens", "Log Type"),
    ),
    Format(
        "mooncake_trace",
        one_each(lambda v: judged(conventions.lengths("input_length", "output_length"), v), _nameless),
        lambda v: has(v, "input_length", "output_length"),
    ),
    Format(
        "qwen_bailian_trace",
        one_each(lambda v: judged(conventions.lengths("input_length", "output_length"), v), _qwen_key),
        lambda v: has(v, "chat_id", "input_length"),
    ),
    Format(
        "sglang",
        one_each(_sglang, _sglang_key, lambda v: get(opened(v.get("request_parameters")), "model")),
        lambda v: (
            filled(v.get("request_parameters")) is not None
            and any_set(v, ("prompt_tokens",), ("e2e_latency",), ("id",))
        ),
    ),
    Format("tenfold", one_each(_own, _tenfold_key), _is_own, cells=(*COLUMNS, *_TOLD)),
)
