"""Which lines are usage records of their format: a failed call is one, a line of an application's log is none."""

from __future__ import annotations

import json

import polars as pl
import pytest
from log_files import SAMPLES, chat, counted, write
from quick import few

from tenfold.logs import load

STRANGERS = [
    {"foo": 1},
    {"id": "c3", "level": "info", "msg": "hello"},
    {"id": "c4", "model": "gpt-5", "msg": "hello"},
    {"ts": 1793577600, "level": "info", "request_id": "r"},
    {"usage": {"cpu": 0.5}},
    {},
]
NAMES = {
    "openai_chat": "openai_chat.jsonl",
    "openai_responses": "openai_responses.jsonl",
    "openai_batch": "openai_batch_output.jsonl",
    "anthropic_messages": "anthropic_messages.jsonl",
    "litellm_payload": "litellm_standard_logging_payload.jsonl",
}


# Each way of reading with every other format, so that each format is met; the other half is for the full run.
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        pytest.param(name, broken, id=f"{way}-{name}", marks=() if number % 2 == odd else pytest.mark.full)
        for number, name in enumerate([*NAMES, "tenfold"])
        for odd, (way, broken) in enumerate({"strict read": "", "line by line": "{broken"}.items())
    ],
)
def test_lines_that_are_no_usage_record_are_put_aside(tmp_path, name, broken):
    own = (SAMPLES / NAMES[name]).read_text().splitlines() if name in NAMES else [json.dumps(ROW)]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join([own[0], *map(json.dumps, STRANGERS), *own[1:], broken]))
    log = load(file)
    assert log.summary["by_format"].keys() == {name}
    rejects = [row for row in log.rejects.to_dicts() if "no usage record" in row["reason"]]
    assert [row["source_line"] for row in rejects] == [2, 3, 4, 5, 6, 7]
    assert all(f"no usage record of {name}" in row["reason"] for row in rejects)
    right = load(SAMPLES / NAMES[name]) if name in NAMES else load(write(tmp_path / "own.jsonl", [ROW]))
    columns = ["request_id", "input_tokens", "output_tokens", "status"]
    assert log.requests.select(columns).to_dicts() == right.requests.select(columns).to_dicts()
    lines = [line + 6 * (line > 1) for line in right.requests["source_line"]]
    assert log.requests["source_line"].to_list() == lines


ROW = {"request_id": "a", "ts": 1793577600, "input_tokens": 1, "output_tokens": 2}


def test_the_reason_names_what_was_looked_for_and_the_excerpt_hides_text(tmp_path):
    file = write(tmp_path / "a.jsonl", [chat(1), {"id": "c3", "msg": "my secret prompt"}])
    (reject,) = load(file).rejects.to_dicts()
    assert "usage.prompt_tokens" in reject["reason"]
    assert "secret" not in reject["excerpt"]
    assert '"id": ' in reject["excerpt"]
    assert "secret" in load(file, keep_text=True).rejects["excerpt"][0]


def test_failed_calls_and_streams_without_usage_are_records(tmp_path):
    rows = [
        chat(1),
        {"error": {"type": "rate_limit"}, "status_code": 429, "_log": {"ts": 1793577600}},
        {"id": "chatcmpl-2", "error": {"type": "server_error"}},
        {"id": "chatcmpl-3", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": None},
        {"id": "chatcmpl-4", "model": "m", "choices": [{"finish_reason": "stop"}]},
    ]
    assert counted(load(write(tmp_path / "a.jsonl", rows))) == (5, 0, 0, 0)
    failed = {"request_id": "b", "ts": 1793577600, "status": "error", "input_tokens": None, "output_tokens": None}
    log = load(write(tmp_path / "b.jsonl", [ROW, failed]))
    assert counted(log) == (2, 0, 0, 0)
    message = {"id": "m", "type": "message", "usage": {"input_tokens": 1, "output_tokens": 1}}
    error = {"type": "error", "error": {"type": "overloaded_error"}}
    assert counted(load(write(tmp_path / "c.jsonl", [message, error]))) == (2, 0, 0, 0)


@pytest.mark.parametrize("kind", few(1, ["csv", "parquet"]))
def test_an_empty_row_of_a_table_is_no_record(tmp_path, kind):
    file = tmp_path / f"a.{kind}"
    rows = {"ts": ["2026-11-02T00:00:00Z", None, None], "input_tokens": [1, None, None], "output_tokens": [2, None, 3]}
    frame = pl.DataFrame({**rows, "note": ["x", "not a call", "y"]})
    frame.write_csv(file) if kind == "csv" else frame.write_parquet(file)
    log = load(file)
    assert counted(log) == (2, 0, 0, 1)
    assert log.rejects["source_line"].to_list() == [3 if kind == "csv" else 2]
    assert log.requests["source_line"].to_list() == ([2, 4] if kind == "csv" else [1, 3])


def test_mapped_lines_are_checked_by_what_the_map_names(tmp_path):
    rows = [{"at": 1793577600, "in": 1, "out": 2}, {"at": 1793577600, "msg": "x"}, {"at": 1793577601, "st": "error"}]
    mapping = {"columns": {"ts": "at", "input_tokens": "in", "output_tokens": "out", "status": "st"}}
    log = load(write(tmp_path / "a.jsonl", rows), map=mapping)
    assert (counted(log), log.rejects["source_line"].to_list()) == ((2, 0, 0, 1), [2])
    assert "none of in, or out" in log.rejects["reason"][0]


def test_either_name_of_an_envelope_key_is_read(tmp_path):
    short = {"api_key": "k", "user": "u", "session": "s", "trace": "t", "stream": True, "structured": True}
    long = {"api_key_id": "k", "user_id": "u", "session_id": "s", "trace_id": "t", "is_stream": True}
    long["is_structured"] = True
    file = write(tmp_path / "a.jsonl", [chat(1, _log=short), chat(2, _log=long)])
    columns = ["api_key_id", "user_id", "session_id", "trace_id", "is_stream", "is_structured"]
    assert load(file).requests.select(columns).rows() == [("k", "u", "s", "t", True, True)] * 2
