"""One function per native format: a request becomes the line that the provider or the gateway would log."""

import csv
import hashlib
import io
import json
from datetime import datetime, timedelta

from .record import Request
from .traffic import BERLIN_HOURS

_RATES_PUSD: dict[str, tuple[int, int, int, int]] = {
    "gemini-2.5-flash": (300_000, 30_000, 0, 2_500_000),
    "claude-haiku-4-5": (1_000_000, 100_000, 1_250_000, 5_000_000),
}
"""Uncached input, read, write, output in picodollars a token: what the gateway notes down as `spend`."""

_OPENAI_FINISH = {"stop": "stop", "length": "length", "tool_calls": "tool_calls"}
_ANTHROPIC_FINISH = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_OPENAI_TIER = {"standard": "default", "flex": "flex", "priority": "priority"}
_ERRORS = {
    429: ("rate_limit_error", "Rate limit reached", "RateLimitError"),
    500: ("server_error", "The server had an error", "InternalServerError"),
    529: ("overloaded_error", "Overloaded", "InternalServerError"),
}

LITELLM_COLUMNS = (
    "request_id", "call_type", "api_key", "spend", "total_tokens", "prompt_tokens", "completion_tokens",
    "startTime", "endTime", "completionStartTime", "model", "model_group", "custom_llm_provider", "user",
    "team_id", "end_user", "cache_hit", "request_tags", "status", "session_id", "metadata",
)  # fmt: skip
GATEWAY_COLUMNS = (
    "call_id", "started", "took_ms", "squad", "use_case", "person", "in_tok", "cached", "out_tok",
)  # fmt: skip


def openai_chat(request: Request) -> str:
    """Write a Chat Completions body with the log envelope.

    Args:
        request: The request; a flag on it makes its usage lost or impossible.

    Returns:
        One JSON object, without a newline.
    """
    created = int(request.start.timestamp())
    if request.status == "error":
        return _json(_openai_error(request, created) | {"_log": _envelope(request)})
    input_tokens: float = request.input_tokens
    cached = request.cache_read_tokens
    if request.flag == "bad_count":
        input_tokens = float("nan")
    elif request.flag == "cache_gt_input":
        cached = request.input_tokens + 50
    details: dict[str, object] = {"cached_tokens": cached, "audio_tokens": 0}
    if request.model == "gpt-5.6-luna":
        details["cache_write_tokens"] = request.cache_write_tokens
    usage: dict[str, object] | None = {
        "prompt_tokens": input_tokens,
        "completion_tokens": request.output_tokens,
        "total_tokens": input_tokens + request.output_tokens,
        "prompt_tokens_details": details,
        "completion_tokens_details": {
            "reasoning_tokens": request.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    message: dict[str, object] = {"role": "assistant", "content": None}
    finish = _OPENAI_FINISH[request.finish]
    return _json(
        {
            "id": request.request_id,
            "object": "chat.completion",
            "created": created,
            "model": request.model,
            "service_tier": _OPENAI_TIER[request.tier],
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": None if request.flag == "stream_without_usage" else usage,
            "metadata": {"team": request.team, "feature": request.feature},
            "_log": _envelope(request),
        }
    )


def openai_responses(request: Request) -> str:
    """Write a Responses body with the log envelope.

    Args:
        request: The request; a failed or cancelled one has no usage.

    Returns:
        One JSON object, without a newline.
    """
    native = {"success": "completed", "incomplete": "incomplete", "error": "failed", "cancelled": "cancelled"}
    end = request.start + timedelta(milliseconds=request.duration_ms)
    body: dict[str, object] = {
        "id": request.request_id,
        "object": "response",
        "created_at": request.start.timestamp(),
        "completed_at": end.timestamp() if request.status == "success" else None,
        "status": native[request.status],
        "model": request.model,
        "service_tier": _OPENAI_TIER[request.tier],
    }
    if request.status == "incomplete":
        body["incomplete_details"] = {"reason": "max_output_tokens"}
    if request.status == "error":
        kind, message, _ = _ERRORS[request.http_status]
        body["error"] = {"code": kind.replace("limit_error", "limit_exceeded"), "message": message}
    body["usage"] = _responses_usage(request) if request.status in ("success", "incomplete") else None
    if request.session is not None:
        body["prompt_cache_key"] = request.session
    body["safety_identifier"] = request.user
    body["metadata"] = {"team": request.team, "feature": request.feature}
    body["_log"] = _envelope(request)
    return _json(body)


def _responses_usage(request: Request) -> dict[str, object]:
    """Make the usage object of a response."""
    return {
        "input_tokens": request.input_tokens,
        "input_tokens_details": {
            "cached_tokens": request.cache_read_tokens,
            "cache_write_tokens": request.cache_write_tokens,
            "cache_write_tokens_details": {"ttl_30m_tokens": request.cache_write_tokens, "ttl_12h_tokens": 0},
        },
        "output_tokens": request.output_tokens,
        "output_tokens_details": {"reasoning_tokens": request.reasoning_tokens},
        "total_tokens": request.input_tokens + request.output_tokens,
    }


def anthropic_messages(request: Request) -> str:
    """Write a Messages body with the log envelope.

    Args:
        request: The request; its input counts are written in Anthropic's exclusive convention.

    Returns:
        One JSON object, without a newline.
    """
    gateway_id = "req_" + request.request_id.removeprefix("msg_").removeprefix("req_")
    log = _envelope(request) | {"request_id": gateway_id}
    if request.status == "error":
        kind, message, _ = _ERRORS[request.http_status]
        error = {"type": kind if kind != "server_error" else "api_error", "message": message}
        return _json(
            {
                "type": "error",
                "error": error,
                "request_id": gateway_id,
                "status_code": request.http_status,
                "model": request.model,
                "_log": log,
            }
        )
    uncached = request.input_tokens - request.cache_read_tokens - request.cache_write_tokens
    usage: dict[str, object] = {
        "input_tokens": uncached,
        "cache_creation_input_tokens": request.cache_write_tokens,
        "cache_read_input_tokens": request.cache_read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": request.cache_write_tokens - request.cache_write_long_tokens,
            "ephemeral_1h_input_tokens": request.cache_write_long_tokens,
        },
        "output_tokens": request.output_tokens,
        "output_tokens_details": {"thinking_tokens": request.reasoning_tokens},
        "service_tier": "standard",
        "speed": "standard",
    }
    if request.web_searches:
        usage["server_tool_use"] = {"web_search_requests": request.web_searches, "web_fetch_requests": 0}
    return _json(
        {
            "id": request.request_id,
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "stop_reason": _ANTHROPIC_FINISH[request.finish],
            "content": [],
            "usage": usage,
            "_log": log,
        }
    )


def litellm_spendlogs(request: Request) -> str:
    """Write a row of LiteLLM's spend log.

    Args:
        request: The request; a failed one has zero tokens, as LiteLLM writes it.

    Returns:
        One CSV row in the order of `LITELLM_COLUMNS`, without a newline.
    """
    failed = request.status == "error"
    end = request.start + timedelta(milliseconds=request.duration_ms)
    first = end if request.ttft_ms is None else request.start + timedelta(milliseconds=request.ttft_ms)
    labels = {"feature": request.feature, "environment": request.environment}
    metadata: dict[str, object] = {
        "user_api_key_team_alias": request.team,
        "user_api_key_alias": request.api_key,
        "spend_logs_metadata": labels,
        "attempted_retries": request.attempt,
    }
    if failed:
        error_class = _ERRORS[request.http_status][2]
        metadata["error_information"] = {"error_code": str(request.http_status), "error_class": error_class}
    else:
        metadata["usage_object"] = _litellm_usage(request)
    input_tokens, output_tokens = (0, 0) if failed else (request.input_tokens, request.output_tokens)
    values = (
        request.request_id,
        "acompletion",
        hashlib.sha256(request.api_key.encode()).hexdigest()[:10],
        _spend(request),
        input_tokens + output_tokens,
        input_tokens,
        output_tokens,
        _space(request.start),
        _space(end),
        "" if failed else _space(first),
        request.model,
        request.model,
        {"google": "gemini"}.get(request.provider, request.provider),
        request.user,
        f"team-{request.team}",
        "",
        "True" if request.gateway_cache_hit else "" if failed else "False",
        _json([request.environment, request.feature]),
        "failure" if failed else "success",
        request.session or "",
        _json(metadata),
    )
    return csv_row(values)


def _litellm_usage(request: Request) -> dict[str, object]:
    """Make LiteLLM's usage object: inclusive counts; for Anthropic the cache counts in two spellings."""
    usage: dict[str, object] = {
        "total_tokens": request.input_tokens + request.output_tokens,
        "prompt_tokens": request.input_tokens,
        "completion_tokens": request.output_tokens,
        "completion_tokens_details": {"reasoning_tokens": request.reasoning_tokens},
    }
    if request.provider == "anthropic":
        read, write = request.cache_read_tokens, request.cache_write_tokens
        usage["prompt_tokens_details"] = {"cached_tokens": read, "cache_creation_tokens": write}
        usage["cache_read_input_tokens"] = read
        usage["cache_creation_input_tokens"] = write
    else:
        usage["prompt_tokens_details"] = {"cached_tokens": request.cache_read_tokens}
    return usage


def _spend(request: Request) -> str:
    """Say in USD what LiteLLM believes a request cost: 0 for a failure, a cached answer, an unknown model."""
    rates = _RATES_PUSD.get(request.model)
    if rates is None or not request.counted:
        return "0.0"
    uncached = request.input_tokens - request.cache_read_tokens - request.cache_write_tokens
    counts = (uncached, request.cache_read_tokens, request.cache_write_tokens, request.output_tokens)
    pusd = sum(count * rate for count, rate in zip(counts, rates, strict=True))
    return f"{pusd // 10**12}.{pusd % 10**12:012d}".rstrip("0")


def gateway(request: Request) -> str:
    """Write a row of the in-house gateway: local time without a zone, cached tokens beside the others.

    Args:
        request: The request.

    Returns:
        One CSV row in the order of `GATEWAY_COLUMNS`, without a newline.
    """
    values = (
        request.request_id,
        (request.start + timedelta(hours=BERLIN_HOURS)).strftime("%Y-%m-%d %H:%M:%S"),
        request.duration_ms,
        request.team,
        request.feature,
        request.user,
        request.input_tokens - request.cache_read_tokens,
        request.cache_read_tokens,
        request.output_tokens,
    )
    return csv_row(values)


def csv_row(values: tuple[object, ...]) -> str:
    """Write a CSV row.

    Args:
        values: The fields.

    Returns:
        The row, quoted where needed, without a newline.
    """
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(values)
    return buffer.getvalue()


def _openai_error(request: Request, created: int) -> dict[str, object]:
    """Make the line of a Chat Completions call that failed; it has no response id."""
    kind, message, _ = _ERRORS[request.http_status]
    code = kind.replace("limit_error", "limit_exceeded")
    error = {"message": message, "type": kind, "code": code}
    return {"error": error, "status_code": request.http_status, "created": created, "model": request.model}


def _envelope(request: Request) -> dict[str, object]:
    """Make the `_log` object that Larkspur's proxy adds to a body."""
    log: dict[str, object] = {"ts": f"{_space(request.start).replace(' ', 'T')}Z"}
    if request.status == "error" and request.source == "openai_chat":
        log["request_id"] = request.request_id
    log["duration_ms"] = request.duration_ms
    log["ttft_ms"] = request.ttft_ms
    log["user"] = request.user
    log["team"] = request.team
    log["feature"] = request.feature
    if request.session is not None:
        log["session"] = request.session
    log["environment"] = request.environment
    log["api_key_id"] = request.api_key
    log["stream"] = request.stream
    log["attempt"] = request.attempt
    if request.retry_of is not None:
        log["retry_of"] = request.retry_of.request_id
    return log


def _space(instant: datetime) -> str:
    """Write a time to the millisecond, without its zone."""
    return instant.strftime("%Y-%m-%d %H:%M:%S.") + f"{instant.microsecond // 1000:03d}"


def _json(value: object) -> str:
    """Write compact JSON; NaN stays NaN, as careless loggers write it."""
    return json.dumps(value, separators=(",", ":"))
