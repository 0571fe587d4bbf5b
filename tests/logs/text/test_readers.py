"""The text of every format: its request, its settings and its answer, wherever its lines hold them."""

from __future__ import annotations

import json

import pytest
from log_files import chat, write
from quick import few

from tenfold.logs import READERS, load

CONTENT = ("prompt_hash", "params_hash", "response_hash", "prefix_hashes", "prefix_block_tokens")
SECRET = "xyzzy-plugh-4711"
LONG = " ".join(f"{SECRET} number {number}" for number in range(60))
MESSAGES = [{"role": "system", "content": LONG}, {"role": "user", "content": f"What is {SECRET}?"}]
SAID = f"It is {SECRET}, surely."


def only(log):
    (row,) = log.requests.to_dicts()
    return row


def answer(number=1, **more):
    said = {"role": "assistant", "content": SAID}
    body = {"model": "gpt-5", "messages": MESSAGES, "temperature": 0}
    return chat(number, choices=[{"index": 0, "finish_reason": "stop", "message": said}], request=body, **more)


# One line of every format with text: whether its request, its settings and its answer become hashes.
BODY = {"messages": MESSAGES, "temperature": 0}
CLAUDE = {"model": "claude-sonnet-5", "system": LONG, "messages": MESSAGES[1:], "max_tokens": 99}
USAGE = {"input_tokens": 9, "output_tokens": 9}
BLOCKS = [{"type": "text", "text": SAID}]
PARTS = {"role": "model", "parts": [{"text": SAID}]}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": LONG}]}], "generationConfig": {"temperature": 0}}
CHOICES = [{"index": 0, "message": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}]
TIME = "2026-11-02T10:00:00Z"


def attribute(key, value):
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


def span(*attributes):
    times = {"startTimeUnixNano": "1793577600000000000", "endTimeUnixNano": "1793577603500000000"}
    usage = (attribute("gen_ai.usage.input_tokens", 9), attribute("gen_ai.operation.name", "chat"))
    held = {"traceId": "t", "spanId": "s", "attributes": [*attributes, *usage], **times}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [held]}]}]}


LITELLM = {"call_type": "acompletion", "startTime": TIME, "model": "gpt-5", "prompt_tokens": 9, "completion_tokens": 9}
NEW = "gen_ai.input.messages", json.dumps([{"role": "user", "parts": [{"type": "text", "content": LONG}]}])
FORMATS = {
    "openai_responses": (
        True, True, True,
        [{"id": "r", "object": "response", "created_at": 1793577600, "model": "gpt-5", "instructions": LONG,
          "input": "hi", "temperature": 1, "tools": [{"type": "function", "name": "f", "parameters": {"a": 1}}],
          "output": [{"type": "message", "status": "completed", "content": [{"type": "output_text", "text": SAID}]}]}],
    ),
    "openai_responses_stream": (
        False, False, True,
        [{"type": "response.completed", "sequence_number": 1, "response": {
            "id": "r2", "status": "completed", "model": "gpt-5", "created_at": 1793577600,
            "output": [{"type": "message", "content": [{"type": "output_text", "text": SAID}]}]}}],
    ),
    "openai_batch": (
        False, False, True,
        [{"id": "b", "custom_id": "c", "error": None,
          "response": {"status_code": 200, "body": {"id": "x", "created": 1793577600, "choices": CHOICES}}}],
    ),
    "anthropic_messages": (
        True, True, True,
        [{"id": "m1", "type": "message", "model": "claude-sonnet-5", "content": BLOCKS, "usage": USAGE,
          "request": CLAUDE}],
    ),
    "anthropic_batch": (
        False, False, True,
        [{"custom_id": "c", "result": {"type": "succeeded", "message": {"id": "m2", "content": BLOCKS,
                                                                         "usage": USAGE}}}],
    ),
    "anthropic_stream": (
        True, True, True,
        [{"type": "message_start", "message": {"id": "m", "model": "claude-sonnet-5", "usage": USAGE},
          "_log": {"request": CLAUDE}},
         {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
         {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
         {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
         {"type": "message_stop"}],
    ),
    "gemini": (
        True, True, True,
        [{"key": "k", "request": GEMINI, "response": {
            "responseId": "g", "modelVersion": "gemini-3-pro", "candidates": [{"content": PARTS}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}}}],
    ),
    "claude_code": (
        False, False, True,
        [{"type": "assistant", "sessionId": "s", "timestamp": TIME, "message": {
            "id": "msg_1", "model": "claude-sonnet-5", "content": BLOCKS, "usage": USAGE}}],
    ),
    "bedrock_log": (
        True, True, True,
        [{"schemaType": "ModelInvocationLog", "timestamp": TIME, "requestId": "b", "operation": "Converse",
          "modelId": "m", "input": {"inputBodyJson": {"system": [{"text": LONG}], "messages": [
              {"role": "user", "content": [{"text": "hi"}]}], "inferenceConfig": {"temperature": 0}},
              "inputTokenCount": 9},
          "output": {"outputTokenCount": 9, "outputBodyJson": {"output": {"message": {
              "role": "assistant", "content": [{"text": SAID}]}}}}}],
    ),
    "bedrock_batch": (
        True, True, True,
        [{"recordId": "1", "modelInput": CLAUDE, "modelOutput": {"id": "m", "content": BLOCKS, "usage": USAGE}}],
    ),
    "bedrock_converse": (
        True, True, True,
        [{"modelId": "m", "stopReason": "end_turn", "usage": {"inputTokens": 9, "outputTokens": 9},
          "output": {"message": {"role": "assistant", "content": [{"text": SAID}]}}, "request": CLAUDE}],
    ),
    "azure_apim": (
        True, False, True,
        [{"TimeGenerated": TIME, "CorrelationId": "c", "PromptTokens": 9, "CompletionTokens": 9, "TotalTokens": 18,
          "DeploymentName": "d", "ModelName": "gpt-4o", "SequenceNumber": number, "RequestMessages": part,
          "ResponseMessages": SAID if number == 0 else None}
         for number, part in ((1, json.dumps(MESSAGES)[99:]), (0, json.dumps(MESSAGES)[:99]))],
    ),
    "openrouter_chat": (
        True, True, True,
        [{"id": "o", "object": "chat.completion", "created": 1793577600, "provider": "OpenAI", "model": "openai/gpt-5",
          "choices": CHOICES, "usage": {"prompt_tokens": 9, "completion_tokens": 9, "cost": 0.1}, "request": BODY}],
    ),
    "helicone": (
        True, True, True,
        [{"request_id": "h", "request_created_at": TIME, "prompt_tokens": 9, "completion_tokens": 9,
          "request_body": BODY, "response_body": {"choices": CHOICES}}],
    ),
    "kong_ai_proxy": (
        True, True, True,
        [{"started_at": 1793577600123, "request": {"id": "k"}, "response": {"status": 200}, "ai": {"proxy": {
            "meta": {"provider_name": "openai"}, "usage": {"prompt_tokens": 9, "completion_tokens": 9},
            "payload": {"request": json.dumps(BODY), "response": json.dumps({"choices": CHOICES})}}}}],
    ),
    "portkey": (
        True, True, True,
        [{"id": "p", "created_at": TIME, "ai_org": "openai", "ai_model": "gpt-5", "req_units": 9, "res_units": 9,
          "request": BODY, "response": {"choices": CHOICES}}],
    ),
    "litellm_payload": (
        True, True, True,
        [{**LITELLM, "id": "l", "litellm_call_id": "l", "response_cost": 0.1, "messages": MESSAGES,
          "response": {"choices": CHOICES}, "model_parameters": {"temperature": 0}}],
    ),
    "litellm_spend": (
        True, True, True,
        [{**LITELLM, "request_id": "l", "spend": 0.1, "messages": {}, "proxy_server_request": BODY,
          "response": {"choices": CHOICES}}],
    ),
    "langfuse": (
        True, True, True,
        [{"id": "f", "type": "GENERATION", "startTime": TIME, "traceId": "t", "parentObservationId": None,
          "model": "gpt-5", "usageDetails": {"input": 9}, "input": MESSAGES,
          "output": {"role": "assistant", "content": SAID}, "modelParameters": {"temperature": 0}}],
    ),
    "otlp": (
        True, True, True,
        [span(attribute(*NEW), attribute("gen_ai.request.temperature", 0), attribute(
            "gen_ai.output.messages",
            json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": SAID}]}])))],
    ),
    "openinference": (
        True, True, True,
        [{"context": {"trace_id": "t2", "span_id": "s"}, "start_time": TIME, "attributes": {
            "openinference.span.kind": "LLM", "llm.token_count.prompt": 9, "input.value": json.dumps(BODY),
            "llm.invocation_parameters": '{"temperature": 0}', "output.value": SAID}}],
    ),
    "sglang": (
        True, True, False,
        [{"id": "g", "prompt_tokens": 9, "completion_tokens": 9, "e2e_latency": 1.9, "request_parameters": json.dumps(
            {"rid": "g", "model": "q", "text": LONG, "sampling_params": {"temperature": 0}})}],
    ),
    "tenfold": (
        True, True, True,
        [{"ts": TIME, "input_tokens": 9, "output_tokens": 9, "prompt": LONG, "params": {"temperature": 0},
          "response": SAID}],
    ),
    "openai_chat": (True, True, True, [answer()]),
}  # fmt: skip


def test_every_reader_with_text_is_tried_here():
    assert {reader.name for reader in READERS if reader.text} == set(FORMATS)


def files(folder):
    return [write(folder / f"{name}.jsonl", lines) for name, (_, _, _, lines) in FORMATS.items()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Every format's one row, read in one load."""
    log = load(files(tmp_path_factory.mktemp("formats")))
    assert log.summary["by_format"] == dict.fromkeys(FORMATS, 1)
    return {row["source_format"]: row for row in log.requests.to_dicts()}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_what_its_lines_hold(rows, name):
    prompt, params, response, _ = FORMATS[name]
    row = rows[name]
    assert [row[column] is not None for column in CONTENT[:3]] == [prompt, params, response]
    assert (row["prefix_hashes"] is not None and len(row["prefix_hashes"]) > 1) == prompt
    assert SECRET not in str(row)


def test_answers_alike_have_one_hash_in_every_format(rows):
    assert len({row["response_hash"] for row in rows.values()} - {None}) == 1


@pytest.mark.full
def test_unread_text_changes_nothing_else(rows, tmp_path):
    for bare in load(files(tmp_path), hashes=False).requests.to_dicts():
        row = rows[bare["source_format"]]
        for column in row.keys() - {*CONTENT, "source_file"}:
            assert bare[column] == row[column] or row["token_source"] == "estimated", (row["source_format"], column)


@pytest.mark.parametrize(
    "attributes",
    few(1, [
        [("gen_ai.prompt.0.role", "user"), ("gen_ai.prompt.0.content", "hi"), ("gen_ai.prompt.1.role", "assistant"),
         ("gen_ai.prompt.1.content", "yes"), ("gen_ai.completion.0.content", SAID)],
        [("llm.input_messages.0.message.role", "user"), ("llm.input_messages.0.message.content", "hi"),
         ("llm.input_messages.1.message.role", "assistant"), ("llm.input_messages.1.message.content", "yes"),
         ("llm.output_messages.0.message.content", SAID), ("llm.output_messages.0.message.role", "assistant")],
        [("gen_ai.input.messages", '[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]'),
         ("gen_ai.output.messages", json.dumps([{"role": "assistant", "content": SAID}]))],
    ]),
    ids=["indexed", "openinference", "json"],
)  # fmt: skip
def test_span_attributes_in_every_spelling_are_the_same_messages(tmp_path, attributes):
    plain = answer()
    plain["request"] = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]}
    spans = span(*(attribute(*pair) for pair in attributes))
    log = load([write(tmp_path / "a.jsonl", [spans]), write(tmp_path / "b.jsonl", [plain])])
    row, right = log.requests.sort("source_file").to_dicts()
    assert (row["prompt_hash"], row["response_hash"]) == (right["prompt_hash"], right["response_hash"])


def test_blanked_text_is_no_text(tmp_path):
    blanked = [{"role": "user", "content": "redacted-by-litellm"}]
    rows = [
        {**LITELLM, "request_id": str(n), "spend": 0.1, "messages": held, "response": {}}
        for n, held in enumerate((blanked, {}, [], MESSAGES))
    ]
    found = load(write(tmp_path / "a.jsonl", rows)).requests.sort("source_line").to_dicts()
    assert [row["prompt_hash"] is not None for row in found] == [False, False, False, True]
    assert [row["response_hash"] for row in found] == [None] * 4
