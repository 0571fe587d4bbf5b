"""Saved streams: server-sent events as text, and events of OpenAI's Responses streams."""

from __future__ import annotations

import gzip
import json

import pytest
from log_files import SAMPLES, counted, table
from quick import few

from tenfold.logs import load, sse

CHUNKS = [json.loads(line[6:]) for line in (SAMPLES / "openai_chat_stream.sse").read_text().splitlines()[2::2][:3]]


def found(text):
    data = text if isinstance(text, bytes) else text.encode()
    return list(sse.records(enumerate(data.split(b"\n"), 1)))


# text -> line and data of each event; by the HTML standard's rules, and what logs make of them
STREAMS = {
    'event: a\ndata: {"n":1}\n\ndata:{"n":2}\n\n': [(2, '{"n":1}'), (4, '{"n":2}')],
    'data: {"n":1}\r\n\r\nid: 7\r\ndata: {"n":2}\r\n': [(1, '{"n":1}'), (4, '{"n":2}')],
    # data over lines are joined; lines that are each a JSON text are events of their own
    'data: {"n":\ndata: 1}\n\n': [(1, '{"n":\n1}')],
    'data: {"n":1}\ndata: {"n":2}\ndata: [DONE]\ndata: {"n":3}': [(1, '{"n":1}'), (2, '{"n":2}'), (4, '{"n":3}')],
    ': ping\n\nretry: 10\ndata: {"n":1}\n\ndata: [DONE]\n\n': [(4, '{"n":1}')],
    'data: {"t":"a\u2028b"}\n\n': [(1, '{"t":"a\u2028b"}')],
    # what is no field is given as it is, to be refused, and so is what breaks off
    'data: {"n":1}\n\nHTTP/1.1 200 OK\ndata: {"n"': [(1, '{"n":1}'), (3, "HTTP/1.1 200 OK"), (4, '{"n"')],
    '\ufeffdata: {"n":1}\n': [(1, '{"n":1}')],
}


@pytest.mark.parametrize("text", STREAMS)
def test_events_and_their_lines(text):
    assert sse.is_stream(text)
    assert [(line, data.decode()) for line, data in found(text)] == STREAMS[text]


def test_what_is_no_stream():
    for text in ("data,n\n1,2\n", '{"data": 1}\n', "data: hello\n", "# HELP x\n", "event: only\n", ""):
        assert not sse.is_stream(text)


@pytest.mark.parametrize("packed", [pytest.param(False, marks=pytest.mark.full), True])
def test_a_chat_stream_is_one_request(tmp_path, packed):
    text = (SAMPLES / "openai_chat_stream.sse").read_bytes()
    file = tmp_path / "a.txt"
    file.write_bytes(gzip.compress(text) if packed else text)
    log = load(file, db=tmp_path / "u.duckdb")
    assert counted(log) == (1, 0, 2, 0)
    (row,) = log.requests.to_dicts()
    assert [row[name] for name in ("input_tokens", "output_tokens", "finish_reason", "is_stream", "source_line")] == [
        *(50, 20, "stop", True, 7)
    ]
    # the same chunks, one a line: the same request
    lines = tmp_path / "b.jsonl"
    lines.write_text("".join(json.dumps(chunk) + "\n" for chunk in CHUNKS))
    assert load(lines, db=tmp_path / "u.duckdb").summary["requests"] == 0


def test_a_broken_stream_keeps_what_is_whole_and_names_the_rest(tmp_path):
    text = (SAMPLES / "openai_chat_stream.sse").read_text().split("data: [DONE]")[0]
    file = tmp_path / "a.sse"
    file.write_text(text + 'oops\ndata: {"id":"chatcmpl-2","usage":{"prompt')
    log = load(file)
    assert counted(log) == (1, 0, 2, 2)
    assert log.rejects["source_line"].to_list() == [9, 10]
    # a chat stream in a file of Anthropic's events is named as what it is
    foreign = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS)
    start = {"type": "message_start", "message": {"id": "m", "model": "c", "usage": {"input_tokens": 1}}}
    mine = f"data: {json.dumps(start)}\n\n" * 5
    file.write_text(mine + foreign)
    assert "openai_chat" in load(file).rejects["reason"][0]


def test_anthropic_and_gemini_streams(tmp_path):
    events = [json.loads(line) for line in (SAMPLES / "anthropic_stream_events.jsonl").read_text().splitlines()]
    file = tmp_path / "a.sse"
    file.write_text("".join(f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n" for event in events))
    plain = load(SAMPLES / "anthropic_stream_events.jsonl")
    differ = ("source_line", "response_hash")  # the key of hashes is the database's
    assert [{k: v for k, v in row.items() if k not in differ} for row in table(load(file))] == [
        {k: v for k, v in row.items() if k not in differ} for row in table(plain)
    ]

    def answer(count, **more):
        usage = {"promptTokenCount": 10, "candidatesTokenCount": count, "totalTokenCount": 10 + count}
        return {"candidates": [more], "usageMetadata": usage, "modelVersion": "gemini-2.5-pro", "responseId": "g"}

    chunks = [answer(1), answer(2), answer(7, finishReason="STOP")]
    file.write_text("".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks))
    (row,) = load(file).requests.to_dicts()
    assert (row["input_tokens"], row["output_tokens"], row["is_stream"]) == (10, 7, True)


def test_azure_note_of_how_the_prompt_was_filtered_is_no_request(tmp_path):
    note = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []}
    file = tmp_path / "a.sse"
    file.write_text("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [note, *CHUNKS]))
    log = load(file)
    assert counted(log) == (1, 0, 2, 0)
    assert log.summary["ignored"] == 1


@pytest.mark.parametrize("as_sse", few(1, [False, True]))
def test_responses_streams(tmp_path, as_sse):
    file = SAMPLES / "openai_responses_stream.jsonl"
    lines = [3 * number - 1 if as_sse else number for number in (5, 6)]
    if as_sse:
        events = [json.loads(line) for line in file.read_text().splitlines()]
        file = tmp_path / "a.sse"
        file.write_text("".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events))
    log = load(file)
    assert log.summary["by_format"] == {"openai_responses_stream": 2}
    # 7 events: two bear no response and are what the answer is made of, three repeat one that is told again
    assert (*counted(log), log.summary["ignored"]) == (2, 0, 3, 0, 2)
    whole, broken = log.requests.sort("request_id").to_dicts()
    assert [whole[name] for name in ("input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens")] == [
        *(1200, 1024, 90, 40)
    ]
    names = ("service_tier", "duration_ms", "web_searches", "status", "finish_reason", "team", "is_stream")
    assert [whole[name] for name in names] == ["flex", 2500.0, 1, "success", "stop", "search", True]
    assert [broken[name] for name in ("status", "input_tokens", "is_billable")] == ["error", None, False]
    assert [row["source_line"] for row in (whole, broken)] == lines


def test_a_response_and_its_stream_are_one_request(tmp_path):
    events = [json.loads(line) for line in (SAMPLES / "openai_responses_stream.jsonl").read_text().splitlines()]
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(events[4]["response"]) + "\n")
    log = load([SAMPLES / "openai_responses_stream.jsonl", file])
    assert log.requests["request_id"].sort().to_list() == ["resp_S111", "resp_S112"]
    # broken off after its first event
    file.write_text(json.dumps(events[0]) + "\n" + json.dumps(events[4])[:80])
    log = load(file)
    assert log.requests.select("status", "input_tokens").rows() == [("incomplete", None)]
    assert log.summary["rejected"] == 1
