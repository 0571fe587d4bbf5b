"""Calls of OpenAI's own tools in Responses answers."""

from __future__ import annotations

import pytest
from log_files import write
from quick import few

from tenfold.logs import load

COUNTS = ("web_searches", "web_searches_preview", "file_searches")


def answer(**more):
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5, "total_tokens": 15}
    base = {"id": "resp_1", "object": "response", "created_at": 1793577600, "model": "gpt-4.1", "status": "completed"}
    return {**base, "usage": usage, **more}


def called(kind="web_search_call", status="completed", action=None):
    return {"type": kind, "status": status, **({"action": {"type": action, "query": "private"}} if action else {})}


CALLS = [
    pytest.param({}, (None, None, None), id="no output logged"),
    pytest.param({"output": [], "tools": [{"type": "web_search"}]}, (0, None, 0), id="declared alone"),
    pytest.param({"output": [called(), {"type": "message"}, called()]}, (2, None, 0), id="two calls"),
    pytest.param({"output": [called(status="failed"), called("file_search_call")]}, (0, None, 1), id="one failed"),
    pytest.param(
        {"output": [called(action="search"), called(action="open_page"), called(action="find_in_page")]},
        (1, None, 0),
        id="only searches are billed",
    ),
    pytest.param(
        {"output": [called()], "tools": [{"type": "web_search_preview_2025_03_11"}]}, (None, 1, 0), id="preview"
    ),
    pytest.param({"output": [called()], "usage": None}, (None, None, None), id="no usage"),
]


@pytest.mark.parametrize(("more", "right"), few(2, CALLS))
def test_calls_are_counted_from_the_output(tmp_path, more, right):
    check_calls(tmp_path, more, right, batch=False)


def test_calls_are_counted_in_a_batch_too(tmp_path):
    check_calls(tmp_path, {"output": [called(), {"type": "message"}, called()]}, (2, None, 0), batch=True)


@pytest.mark.full
@pytest.mark.parametrize(("more", "right"), CALLS)
def test_calls_of_a_batch_are_counted_from_the_output(tmp_path, more, right):
    check_calls(tmp_path, more, right, batch=True)


def check_calls(tmp_path, more, right, *, batch):
    row = answer(**more)
    if batch:
        row = {"id": "b1", "custom_id": "c", "response": {"status_code": 200, "body": row}, "error": None}
    (found,) = load(write(tmp_path / "a.jsonl", [row])).requests.to_dicts()
    assert tuple(found[name] for name in COUNTS) == right


def test_text_output_is_no_answer_and_is_named(tmp_path):
    log = load(write(tmp_path / "a.jsonl", [answer(), answer(id="resp_2", output="text")]))
    assert (log.summary["requests"], log.rejects["path"].to_list()) == (1, ["$.output"])
