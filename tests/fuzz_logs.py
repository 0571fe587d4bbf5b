"""Whole and damaged log files of every format, from its sample lines and some more, for the readers' fuzzing."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from hashlib import md5
from random import Random
from typing import Any

from log_files import SAMPLES
from mutations import LINES, as_table, edited_bytes, edited_cells, edited_record, written

AT = "2026-11-02T10:00:00Z"
Record = dict[str, Any]
# Sample file of each format, and which of its texts are ids: each copy gets its own.
_JSON = {
    "openai_chat": ("openai_chat.jsonl", ("chatcmpl-S00",)),
    "openai_responses": ("openai_responses.jsonl", ("resp_S10",)),
    "openai_batch": ("openai_batch_output.jsonl", ("batch_req_S20", "chatcmpl-S20")),
    "anthropic_messages": ("anthropic_messages.jsonl", ("msg_S30",)),
    "anthropic_stream": ("anthropic_stream_events.jsonl", ("msg_S30",)),
    "anthropic_batch": ("anthropic_batch_results.jsonl", ("msg_S31",)),
    "gemini": ("gemini_generate_content.jsonl", ("gem-S40",)),
    "claude_code": ("claude_code_session.jsonl", ("msg_C", "req_")),
    "codex": ("codex_rollout.jsonl", ("th-",)),
    "bedrock_log": ("bedrock_invocation_log.jsonl", ("ff4b6c63-", "aaaabbbb-")),
    "openrouter_generation": ("openrouter_generation.jsonl", ("gen-S50",)),
    "helicone": ("helicone_requests.jsonl", ("h-",)),
    "kong_ai_proxy": ("kong_ai_proxy.log", ("k-",)),
    "envoy_ai_gateway": ("envoy_ai_gateway_access.log", ("83b63da", "cf2c045")),
    "litellm_payload": ("litellm_standard_logging_payload.jsonl", ("chatcmpl-L", "0a1b")),
    "langfuse": ("langfuse_observations.jsonl", ("obs-",)),
    "otlp": ("otlp_traces.jsonl", ("5b8efff7",)),
    "openinference": ("openinference_spans.jsonl", ("0x",)),
    "sglang": ("sglang_request_metrics.log", ("sg-",)),
    "mooncake_trace": ("mooncake_trace.jsonl", ()),
    "qwen_bailian_trace": ("qwen_bailian_trace.jsonl", ()),
}
_CSV = {
    "azure_apim": ("azure_apim_llm_log.csv", ("c-",)),
    "azure_llm_trace": ("azure_llm_trace.csv", ()),
    "burstgpt": ("burstgpt.csv", ()),
    "litellm_spend": ("litellm_spendlogs.csv", ("chatcmpl-L", "resp_L")),
}


def _chunk(number: int, **more: Any) -> Record:
    base = {"id": "ID-7", "object": "chat.completion.chunk", "created": 1793577780, "model": "gpt-4o"}
    return {**base, "choices": [], "usage": None, "n": number, **more}


def _usage(prompt: int, completion: int, **more: Any) -> Record:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}


_CLAUDE_CHUNKS = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 12}},
    {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 7, "outputTokenCount": 12, "invocationLatency": 900}},
]
# Records that no sample shows; those of one group share an id, in which ID stands.
MORE: dict[str, list[list[Record]]] = {
    "openai_chat": [
        [
            _chunk(0, choices=[{"index": 0, "finish_reason": None}]),
            _chunk(1, choices=[{"index": 0, "finish_reason": "stop"}]),
            _chunk(2, usage=_usage(1500, 30, completion_tokens_details={"reasoning_tokens": 12})),
        ],
        [{"id": "ID", "object": "list", "model": "embed-3", "usage": {"prompt_tokens": 8, "total_tokens": 8}}],
    ],
    "openai_responses": [
        [
            {
                "id": "ID", "object": "response", "status": "completed", "model": "gpt-6-astra",
                "created_at": 1793577600, "tools": [{"type": "web_search"}],
                "output": [
                    {"type": "web_search_call", "status": "completed", "action": {"type": "search"}},
                    {"type": "file_search_call", "status": "completed"},
                ],
                "usage": {"input_tokens": 60, "output_tokens": 5, "total_tokens": 65},
            }
        ]
    ],
    "openai_batch": [
        [
            {
                "id": "ID", "custom_id": "d", "error": None,
                "response": {
                    "status_code": 200,
                    "body": {
                        "id": "ID-r", "object": "response", "status": "completed", "model": "gpt-6-astra",
                        "usage": {
                            "input_tokens": 90, "output_tokens": 9, "total_tokens": 99,
                            "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 30,
                                "cache_write_tokens_details": {"ttl_30m_tokens": 20, "ttl_12h_tokens": 10}},
                            "output_tokens_details": {"reasoning_tokens": 4},
                        },
                    },
                },
            }
        ]
    ],
    "anthropic_stream": [
        [
            {"type": "message_start", "message": {"id": "ID", "model": "claude-haiku-5",
                "usage": {"input_tokens": 9, "cache_creation_input_tokens": 30, "output_tokens": 1,
                    "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 10}}}},
            {"type": "content_block_delta", "delta": {"text": "a"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 40, "output_tokens_details": {"thinking_tokens": 12}}},
        ],
        [{"type": "message_start", "message": {"id": "ID", "usage": {"input_tokens": 3, "output_tokens": 1}}}],
    ],
    "gemini": [
        [
            {"responseId": "ID", "modelVersion": "gemini-3-pro", "candidates": [{"index": 0}],
                "usageMetadata": {"promptTokenCount": 40, "totalTokenCount": 40}},
            {"responseId": "ID", "modelVersion": "gemini-3-pro", "candidates": [{"finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 6, "totalTokenCount": 46,
                    "promptTokensDetails": [{"modality": "TEXT"}, {"modality": "AUDIO", "tokenCount": 15}],
                    "cachedContentTokenCount": 12, "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 5}]}},
        ],
        [{"response_id": "ID", "model_version": "gemini-3-pro",
            "usage_metadata": {"prompt_token_count": 9, "candidates_token_count": 2, "total_token_count": 11,
                "prompt_tokens_details": [{"modality": "IMAGE", "token_count": 4}]}}],
    ],
    "claude_code": [
        [
            {"type": "assistant", "sessionId": "s", "timestamp": AT, "requestId": f"ID-{n}", "isSidechain": n == 3,
                "message": {"id": "msg_ID", "model": "claude-opus-5-5", "stop_reason": "end_turn",
                    "usage": {"input_tokens": 5, "output_tokens": 20 + n}}}
            for n in range(4)
        ]
    ],
    "codex": [
        [
            {"type": "thread.started", "thread_id": "ID"},
            {"type": "item.completed", "item": {"type": "agent_message"}},
            {"type": "turn.completed", "usage": {"input_tokens": 50, "cached_input_tokens": 10, "output_tokens": 6}},
            {"type": "turn.completed", "usage": {"input_tokens": 90, "cached_input_tokens": 30, "output_tokens": 9}},
            {"type": "turn.completed", "usage": {"input_tokens": 20, "cached_input_tokens": 0, "output_tokens": 2}},
        ]
    ],
    "bedrock_log": [
        [
            {"schemaType": "ModelInvocationLog", "timestamp": AT, "region": "us-east-1", "requestId": "ID",
                "operation": "InvokeModelWithResponseStream", "modelId": "anthropic.claude-haiku-4-5", "input": {},
                "output": {"outputBodyJson": _CLAUDE_CHUNKS}}
        ],
        [
            {"timestamp": AT, "requestId": "ID", "operation": "InvokeModel", "modelId": "anthropic.claude-haiku-4-5",
                "output": {"outputBodyJson": {"usage": {"input_tokens": 9, "cache_read_input_tokens": 4,
                    "cache_creation_input_tokens": 6, "cache_creation": {"ephemeral_1h_input_tokens": 2},
                    "output_tokens": 3}}}}
        ],
    ],
    "bedrock_converse": [
        [
            {"modelId": "m", "stopReason": "end_turn", "ResponseMetadata": {"RequestId": "ID", "HTTPStatusCode": 200},
                "metrics": {"latencyMs": 9},
                "usage": {"inputTokens": 40, "outputTokens": 8, "totalTokens": 78, "cacheReadInputTokens": 10,
                    "cacheWriteInputTokens": 20, "cacheDetails": [{"ttl": "5m", "inputTokens": 5},
                        {"ttl": "1h", "inputTokens": 15}]}}
        ],
        [{"ResponseMetadata": {"RequestId": "ID"}, "Error": {"Code": "ThrottlingException"}}],
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "a"}}},
            {"messageStop": {"stopReason": "end_turn"}},
            {"metadata": {"usage": {"inputTokens": 11, "outputTokens": 4, "totalTokens": 15}}},
        ],
        [{"modelId": "m", "ResponseMetadata": {"RequestId": "ID"}, "stopReason": "end_turn",
            "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}}],
    ],
    "bedrock_batch": [
        [{"recordId": "ID", "modelOutput": {"id": "ID-m", "model": "claude-haiku-4-5", "stop_reason": "end_turn",
            "usage": {"input_tokens": 30, "output_tokens": 7, "cache_read_input_tokens": 5}}}],
        [{"recordId": "ID", "modelOutput": {"prompt_token_count": 12, "generation_token_count": 3}}],
        [{"recordId": "ID", "modelOutput": {"inputTextTokenCount": 8, "results": [{"tokenCount": 2}, {}]}}],
        [{"recordId": "ID", "error": {"errorCode": 400, "errorMessage": "no"}}],
    ],
    "openai_responses_stream": [
        [
            {"type": "response.created", "sequence_number": 0, "response": {"id": "ID", "status": "in_progress",
                "model": "gpt-6-astra", "usage": None, "tools": [{"type": "web_search_preview"}]}},
            {"type": "response.output_text.delta", "sequence_number": 1, "delta": "a"},
            {"type": "response.completed", "sequence_number": 2, "response": {"id": "ID", "status": "completed",
                "model": "gpt-6-astra", "tools": [{"type": "web_search_preview"}],
                "output": [{"type": "web_search_call", "action": {"type": "search"}}],
                "usage": {"input_tokens": 2000, "input_tokens_details": {"cached_tokens": 1024}, "output_tokens": 30,
                    "output_tokens_details": {"reasoning_tokens": 12}, "total_tokens": 2030}}},
        ],
        [
            {"type": "response.created", "sequence_number": 0, "response": {"id": "ID", "status": "in_progress",
                "model": "gpt-6-astra"}},
            {"type": "error", "sequence_number": 1, "message": "no"},
        ],
    ],
    "openrouter_chat": [
        [
            {"id": "ID", "object": "chat.completion", "created": 1793577600, "model": "gpt-4o", "provider": "OpenAI",
                "choices": [{"finish_reason": "stop"}],
                "usage": _usage(1000, 100, cost=0.25, is_byok=False, prompt_tokens_details={"cached_tokens": 300},
                    server_tool_use={"web_search_requests": 1}, cost_details={"upstream_inference_cost": None})}
        ]
    ],
    "kong_ai_proxy": [
        [
            {"started_at": 1793577600123, "request": {"id": "ID"}, "response": {"status": 200},
                "ai": {"proxy": {"meta": {"response_model": "gpt-4o"}, "usage": _usage(50, 5)},
                    "ai-request-transformer": {"usage": _usage(30, 4, prompt_tokens_details={"cached_tokens": 3})}}}
        ],
        [{"started_at": 1793577600123, "request": {"id": "ID"}, "response": {"status": 404}}],
    ],
    "envoy_ai_gateway": [[{"start_time": AT, "response_code": 200, "x-request-id": "ID", "method": "GET"}]],
    "portkey": [
        [
            {"id": "ID", "created_at": AT, "is_success": 1, "ai_org": "openai", "ai_model": "m", "req_units": 1000,
                "res_units": 100, "total_units": 1100, "response_status_code": 200, "cache_status": "MISS"}
        ],
        [
            {"id": "ID", "created_at": AT, "ai_org": "openai", "ai_model": "m", "req_units": 1000, "res_units": 100,
                "response": {"usage": _usage(1000, 100, prompt_tokens_details={"cached_tokens": 400})}}
        ],
    ],
    "litellm_payload": [
        [
            {"id": "ID", "call_type": "acompletion", "status": "failure", "startTime": 1793577600.5, "prompt_tokens": 0,
                "completion_tokens": 0, "total_tokens": 0, "response_cost": 0.0, "model": "m", "metadata": {}}
        ]
    ],
    "langfuse": [
        [
            {"id": "ID-a", "traceId": "t", "type": "GENERATION", "parentObservationId": None, "startTime": AT,
                "updatedAt": AT, "model": "gpt-4o", "usageDetails": {"input": 100, "output": 20, "total": 120}},
            {"id": "ID-b", "traceId": "t", "type": "GENERATION", "parentObservationId": "ID-a", "startTime": AT,
                "updatedAt": AT, "model": "gpt-4o", "promptTokens": 100, "completionTokens": 20, "totalTokens": 120},
        ]
    ],
    "mooncake_trace": [],
    "sglang": [
        [{"request_parameters": {"rid": "ID", "model": "q"}, "prompt_tokens": 20, "completion_tokens": 2}]
    ],
    "tenfold": [
        [
            {"request_id": "ID", "ts": AT, "provider": "openai", "model": "gpt-4o", "input_tokens": 900,
                "cache_read_tokens": 100, "cache_write_tokens": 50, "cache_write_long_tokens": 20, "output_tokens": 40,
                "reasoning_tokens": 10, "input_audio_tokens": 5, "web_searches": 1, "status": "success"}
        ],
        [{"request_id": "ID", "ts": AT, "model": "gpt-4o", "status": "error", "http_status": 500}],
    ],
}  # fmt: skip
NAMES = tuple(sorted({*_JSON, *_CSV, *MORE}))


def is_table(name: str) -> bool:
    """Whether a format's sample is a table."""
    return name in _CSV


# Formats and the containers that they come in: JSON lines, tables as CSV and as Parquet.
TABLES = ("azure_apim", "helicone", "langfuse", "litellm_spend", "openinference", "portkey", "tenfold")
CASES = (
    *((name, "csv" if name in _CSV else "jsonl") for name in NAMES),
    *((name, "jsonl" if name in _CSV else "csv") for name in TABLES),
    *((name, "parquet") for name in TABLES),
)


class Source:
    """Fresh lines of one format, group by group, each with ids of its own."""

    def __init__(self, name: str, kind: str, rng: Random, seed: int) -> None:
        self.name, self.kind, self.rng, self.number = name, kind, rng, 1_000_000 * seed
        file, self.ids = {**_JSON, **_CSV}.get(name, ("", ()))
        text = (SAMPLES / file).read_text(encoding="utf-8") if file else ""
        if name in _CSV:
            header, *rows = list(csv.reader(text.splitlines()))
            self.groups: list[list[Record]] = [[dict(zip(header, row, strict=True)) for row in rows]]
        else:
            found = [json.loads(line) for line in text.split("\n") if _is_whole(line)]
            self.groups = [found] if found else []
            self.groups += MORE.get(name, [])
        columns = [column for group in self.groups for record in group for column in record]
        self.header = list(dict.fromkeys(columns))

    def group(self) -> list[Record]:
        """Give the next group's records."""
        self.number += 1
        # so long that no byte's change makes one of another
        own = md5(f"{self.name}{self.number}".encode()).hexdigest()[:12]
        text = json.dumps(self.groups[self.number % len(self.groups)])
        for prefix in self.ids:
            text = text.replace(f'"{prefix}', f'"{own}{prefix}').replace(f'\\"{prefix}', f'\\"{own}{prefix}')
        if self.name == "claude_code":
            text = text.replace(f'"{own}msg_', f'"msg_{own}')
        found = json.loads(text.replace("ID", own))
        if self.name == "qwen_bailian_trace":
            found = [{**one, "chat_id": f"{own}{place}"} for place, one in enumerate(found)]
        return found

    def cells(self, record: Record) -> list[str]:
        """Write a record as the cells of a table: objects as JSON text."""
        values = [record.get(name) for name in self.header]
        return ["" if one is None else one if isinstance(one, str) else json.dumps(one) for one in values]

    def line(self, record: Record) -> bytes:
        if self.kind == "csv":
            return as_table([self.cells(record)])[0]
        return written({name: held for name, held in record.items() if held != ""}).encode("utf-8", "surrogatepass")

    def edited(self, record: Record) -> Record:
        return edited_record(self.rng, json.loads(json.dumps(record)))

    def damaged(self, record: Record) -> bytes:
        """Damage one record: its structure, its bytes, or what is left of it."""
        kind = self.rng.random()
        if kind >= 0.95:
            return self.rng.choice(LINES)
        if kind >= 0.55:
            return edited_bytes(self.rng, self.line(record))
        if self.kind == "csv":
            return as_table([edited_cells(self.rng, self.cells(record))])[0]
        return written(self.edited(record)).encode("utf-8", "surrogatepass")


def _is_whole(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


# Whole lines that a file begins with, by which it is known.
_WHOLE = 210


def lines(name: str, kind: str, seed: int, count: int, *, share: float) -> Iterator[bytes]:
    """Give about so many lines of a format, a share of them damaged, with repeats; the first ones are whole."""
    rng = Random(seed)
    source = Source(name, kind, rng, seed)
    if kind == "csv":
        yield as_table([source.header])[0]
    made: list[bytes] = []
    while len(made) < count:
        for record in source.group():
            is_whole = len(made) < _WHOLE or rng.random() >= share
            made.append(source.line(record) if is_whole else source.damaged(record))
            yield made[-1]
            if rng.random() < 0.02:
                made.append(rng.choice(made[-40:]))
                yield made[-1]


def file_of(name: str, kind: str, seed: int, count: int, *, share: float = 0.6) -> bytes:
    """Make one file; some line ends are lost or doubled, or of another system."""
    rng = Random(~seed)
    found = bytearray()
    for number, line in enumerate(lines(name, kind, seed, count, share=share)):
        is_odd = number > _WHOLE and rng.random() < 0.02 * share
        found += line + (rng.choice((b"\r\n", b"\n\n", b"", b" \n")) if is_odd else b"\n")
    return bytes(found)


def rows_of(name: str, seed: int, count: int, *, share: float = 0.6) -> list[dict[str, str]]:
    """Make the rows of a table of text, a share of them damaged in their cells."""
    rng = Random(seed)
    source = Source(name, "csv", rng, seed)
    made: list[dict[str, str]] = []
    while len(made) < count:
        for record in source.group():
            cells = source.cells(record)
            if len(made) >= _WHOLE and rng.random() < share:
                # as many cells as there are columns, whatever became of them
                cells = [*edited_cells(rng, cells), *[""] * len(cells)][: len(cells)]
            made.append(dict(zip(source.header, cells, strict=True)))
    return made


def one_bad_line(name: str, seed: int, count: int) -> bytes:
    """Make a whole file but for one line."""
    rng = Random(seed)
    kind = "csv" if name in _CSV else "jsonl"
    source = Source(name, kind, rng, seed)
    records = [record for _ in range(count) for record in source.group()][:count]
    found = [source.line(record) for record in records]
    bad = rng.randrange(count // 2, count)
    found[bad] = source.damaged(records[bad]).replace(b"\n", b" ")
    if kind == "csv":  # a test of its own: NULs in cells
        found[bad] = found[bad].replace(b"\0", b"")
    head = as_table([source.header]) if kind == "csv" else []
    return b"\n".join([*head, *found]) + b"\n"
