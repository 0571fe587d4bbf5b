"""Streams (a request is many lines) and batches (a request has no tier of its own): Anthropic's and OpenAI's."""

from __future__ import annotations

import json

import pytest
from log_files import SAMPLES, chat, counted, write
from quick import few

from tenfold.errors import LogFormatError
from tenfold.logs import READERS, detect, load

OWN = {
    "anthropic_stream_events.jsonl": "anthropic_stream",
    "anthropic_batch_results.jsonl": "anthropic_batch",
    "openai_batch_output.jsonl": "openai_batch",
    "openai_chat.jsonl": "openai_chat",
}
AT = "2026-11-02T10:00:00Z"


def start(message_id="msg_1", **usage):
    message = {"id": message_id, "model": "claude-opus-4-7", "usage": {"output_tokens": 1, **usage}}
    return {"type": "message_start", "message": message, "_log": {"ts": AT, "team": "search"}}


def delta(stop="end_turn", **usage):
    return {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}


def chunk(number, *, usage=None, choices=(), **more):
    base = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 1793577600, "model": "gpt-5"}
    return {**base, "choices": list(choices), "usage": usage, **more}


@pytest.mark.parametrize(
    "name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix in {".jsonl", ".csv", ".log"})
)
def test_each_sample_is_read_by_its_own_reader(name):
    try:
        found = detect.choose(SAMPLES / name, detect.content(SAMPLES / name), READERS, None).name
    except LogFormatError:
        found = None
    # nasty.jsonl is OpenAI Chat by its good lines
    assert (found == OWN[name]) if name in OWN else (found not in OWN.values() or name == "nasty.jsonl")


@pytest.mark.parametrize(
    ("events", "right"),
    few(1, [
        pytest.param([start(input_tokens=25), {"type": "message_delta", "usage": {"output_tokens": 15}}], (25, 0, 15),
                     id="B076"),
        pytest.param([start(input_tokens=27), delta(input_tokens=27, cache_read_input_tokens=0, output_tokens=47)],
                     (27, 0, 47), id="B077"),
        pytest.param([start(input_tokens=27), delta(None, output_tokens=9), delta(input_tokens=627, output_tokens=47)],
                     (627, 0, 47), id="B077 server tools: the input grows"),
        pytest.param([start(input_tokens=5, cache_read_input_tokens=40), delta(output_tokens=3)], (45, 40, 3),
                     id="what the delta leaves out is the start's"),
    ]),
)  # fmt: skip
def test_the_last_count_of_each_field_wins(tmp_path, events, right):
    log = load(write(tmp_path / "a.jsonl", [*events, {"type": "message_stop"}]))
    (row,) = log.requests.to_dicts()
    assert (row["input_tokens"], row["cache_read_tokens"], row["output_tokens"]) == right
    assert (str(row["ts"]), row["team"], row["is_stream"], row["status"]) == (
        *("2026-11-02 10:00:00", "search", True, "success"),
    )
    assert row["source_line"] == len(events)
    assert counted(log) == (1, 0, len(events) - 1, 0)
    assert log.summary["ignored"] == 1


def test_messages_of_one_file_and_the_nested_counts(tmp_path):
    block = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "secret"}}
    first = start(
        input_tokens=10,
        cache_creation_input_tokens=30,
        cache_creation={"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        inference_geo="us",
        service_tier="standard",
    )
    more = {"output_tokens_details": {"thinking_tokens": 7}, "server_tool_use": {"web_search_requests": 2}}
    compaction = {"iterations": [{"type": "compaction", "input_tokens": 400, "output_tokens": 70}]}
    events = [first, {"type": "ping"}, block, delta(output_tokens=9, **more, **compaction), {"type": "message_stop"}]
    log = load(
        write(tmp_path / "a.jsonl", [*events, start("msg_2", input_tokens=3), delta("max_tokens", output_tokens=4)])
    )
    rows = {row["request_id"]: row for row in log.requests.to_dicts()}
    assert sorted(rows) == ["msg_1", "msg_1#compaction", "msg_2"]
    names = ("input_tokens", "cache_write_tokens", "cache_write_long_tokens", "output_tokens", "reasoning_tokens")
    assert [rows["msg_1"][name] for name in names] == [40, 30, 20, 9, 7]
    assert (rows["msg_1"]["web_searches"], rows["msg_1"]["region"]) == (2, "us")
    assert rows["msg_1#compaction"]["input_tokens"] == 400
    assert (rows["msg_2"]["output_tokens"], rows["msg_2"]["finish_reason"]) == (4, "length")
    assert "secret" not in str(log.rejects.to_dicts())


def test_b089_a_stream_that_broke_off_has_no_output_count(tmp_path):
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}
    log = load(write(tmp_path / "a.jsonl", [start(input_tokens=35), start("msg_2", input_tokens=35), failed]))
    rows = log.requests.sort("request_id").to_dicts()
    assert [(row["input_tokens"], row["output_tokens"], row["status"]) for row in rows] == [
        *((35, None, "incomplete"), (35, None, "error")),
    ]
    assert [row["flags"] for row in rows] == [["usage_partial"]] * 2


@pytest.mark.full
def test_stream_lines_that_are_broken_odd_or_foreign(tmp_path):
    lines = [
        start(input_tokens=5),
        delta(output_tokens=-4),
        chat(1),
        start("msg_2", input_tokens="1,024"),
        delta(output_tokens=2),
    ]
    file = write(tmp_path / "a.jsonl", lines)
    file.write_text(file.read_text() + json.dumps(start("msg_3"))[:60])
    log = load(file)
    rows = log.requests.sort("request_id").to_dicts()
    assert [(row["input_tokens"], row["output_tokens"], row["flags"]) for row in rows] == [
        (5, None, ["bad_count"]),
        (1024, 2, ["coerced"]),
    ]
    assert sorted(log.rejects["source_line"]) == [3, 6]


def test_a_stream_and_the_log_of_its_message_are_one_request(tmp_path):
    usage = {"input_tokens": 27, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 47}
    whole = {"id": "msg_1", "type": "message", "model": "claude-opus-4-7", "usage": usage, "_log": {"ts": AT}}
    events = write(tmp_path / "a.jsonl", [start(input_tokens=27), delta(output_tokens=47)])
    log = load([events, write(tmp_path / "b.jsonl", [whole])])
    assert (len(log.requests), log.requests["output_tokens"].sum()) == (1, 47)


def test_chunks_of_openai_streams_are_one_request_each(tmp_path):
    details = {"prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0}}
    told = {"choices": [{"index": 0, "delta": {"content": "x"}}]}
    lines = [
        chunk(1, **told, _log={"team": "search"}),
        chunk(2, **told),
        chunk(1, choices=[{"index": 0, "delta": {}, "finish_reason": "length"}], service_tier="flex"),
        chunk(1, usage={"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107, **details}),
        chunk(2, **told),  # broken off: no usage ever came
        chat(3),
    ]
    log = load(write(tmp_path / "a.jsonl", lines))
    rows = {row["request_id"]: row for row in log.requests.to_dicts()}
    one, two = rows["c1"], rows["c2"]
    assert (one["input_tokens"], one["cache_read_tokens"], one["output_tokens"]) == (100, 64, 7)
    assert (one["finish_reason"], one["service_tier"], one["team"], one["source_line"]) == (
        "length",
        "flex",
        "search",
        4,
    )
    # what came of the answer ("xx") is counted, and said to be an estimate; the prompt was not logged
    assert (two["input_tokens"], two["output_tokens"], two["flags"]) == (None, 1, ["stream_without_usage"])
    assert two["token_source"] == "estimated"
    assert (rows["chatcmpl-3"]["source_line"], rows["chatcmpl-3"]["finish_reason"]) == (6, None)
    assert counted(log) == (3, 0, 3, 0)


def test_b016_the_usage_of_a_chunk_with_choices_is_kept(tmp_path):
    usage = {"prompt_tokens": 16111, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 15872}}
    last = chunk(1, usage=usage, choices=[{"index": 0, "delta": {}}])
    (row,) = load(write(tmp_path / "a.jsonl", [chunk(1), last, chunk(1)])).requests.to_dicts()
    assert (row["input_tokens"], row["cache_read_tokens"], row["output_tokens"]) == (16111, 15872, 2)


@pytest.mark.full
def test_the_error_file_of_an_openai_batch(tmp_path):
    body = {"error": {"message": "secret", "type": "invalid_request_error"}}
    lines = [
        {
            "id": "b1",
            "custom_id": "a",
            "response": {"status_code": 400, "request_id": "r", "body": body},
            "error": None,
        },
        {"id": "b2", "custom_id": "b", "response": None, "error": {"code": "batch_expired", "message": "secret"}},
        {"id": "b3", "custom_id": "c", "response": None, "error": {"code": "batch_cancelled", "message": "secret"}},
    ]
    file = write(tmp_path / "errors.jsonl", lines)
    file.write_text(file.read_text() + json.dumps(lines[0])[:70])
    log = load(file)
    rows = log.requests.sort("custom_id").to_dicts()
    assert [(row["status"], row["http_status"], row["is_billable"]) for row in rows] == [
        ("error", 400, False),
        ("expired", None, False),
        ("cancelled", None, False),
    ]
    assert {row["service_tier"] for row in rows} == {"batch"}
    assert log.rejects["source_line"].to_list() == [4]
    assert "secret" not in str(log.rejects.to_dicts())


def test_only_what_succeeded_in_an_anthropic_batch_is_billed(tmp_path):
    lines = [json.loads(line) for line in (SAMPLES / "anthropic_batch_results.jsonl").read_text().splitlines()]
    log = load(write(tmp_path / "a.jsonl", [*lines, chat(1), {"custom_id": "doc-11", "result": {"type": "expired"}}]))
    rows = {row["custom_id"]: row for row in log.requests.to_dicts()}
    assert {name: (row["status"], row["is_billable"]) for name, row in rows.items()} == {
        "doc-7": ("success", True),
        "doc-8": ("error", False),
        "doc-9": ("expired", False),
        "doc-10": ("cancelled", False),
        "doc-11": ("expired", False),
    }
    assert {row["service_tier"] for row in rows.values()} == {"batch"}
    assert rows["doc-7"]["request_id"] == "msg_S311"
    assert log.rejects["source_line"].to_list() == [5]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.full if at else ()) for at, name in enumerate(sorted(OWN))]
)
def test_loading_again_changes_nothing(tmp_path, name):
    db = tmp_path / "u.duckdb"
    before = load(SAMPLES / name, db=db)
    again = load(SAMPLES / name, db=db)
    assert again.requests.to_dicts() == before.requests.to_dicts()
    assert (again.summary["requests"], again.summary["duplicates"]) == (0, before.summary["requests"])
