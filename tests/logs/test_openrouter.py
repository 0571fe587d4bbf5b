"""OpenRouter: native counts, one's own keys, answers with their cost."""

from __future__ import annotations

from decimal import Decimal

import pytest
from log_files import chat, counted, table, write

import tenfold as tf
from tenfold.logs import load


def record(number, **more):
    return {
        "id": f"gen-{number}", "total_cost": 0.0015, "created_at": "2026-11-02T10:00:00.433273+00:00", "latency": 1250,
        "model": "openai/gpt-4o", "provider_name": "OpenAI", "streamed": True, "cancelled": False,
        "finish_reason": "stop",
        "tokens_prompt": 10, "tokens_completion": 25, "native_tokens_prompt": 1000, "native_tokens_completion": 100,
        "native_tokens_reasoning": 0, "native_tokens_cached": 0, "is_byok": False, **more,
    }  # fmt: skip


def answer(number, *, usage=None, **more):
    own = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "cost": 0.25, "is_byok": False}
    base = {"id": f"gen-{number}", "object": "chat.completion", "created": 1793577600, "model": "openai/gpt-4o"}
    return {
        **base,
        "provider": "OpenAI",
        "choices": [{"finish_reason": "stop"}],
        "usage": {**own, **(usage or {})},
        **more,
    }


def one(folder, row):
    (found,) = load(write(folder / "a.jsonl", [row])).requests.to_dicts()
    return found


def test_native_counts_are_the_billed_ones_and_plain_records_are_read_too(tmp_path):
    rows = [{"data": record(1)}, record(2, cancelled=True), record(3, finish_reason="error", data_region="eu")]
    log = load(write(tmp_path / "a.jsonl", rows))
    assert counted(log) == (3, 0, 0, 0)
    found = log.requests.sort("request_id").to_dicts()
    assert [(row["input_tokens"], row["output_tokens"]) for row in found] == [(1000, 100)] * 3
    assert [row["status"] for row in found] == ["success", "cancelled", "error"]
    assert [row["region"] for row in found] == [None, None, "eu"]
    assert [row["provider"] for row in found] == ["openrouter"] * 3


def test_b118_the_upstream_charge_is_added_only_with_a_key_of_ones_own(tmp_path):
    own = {"cost": 0.95, "cost_details": {"upstream_inference_cost": 19}, "is_byok": True}
    not_own = {"cost": 0.25, "cost_details": {"upstream_inference_cost": 0.25}}
    rows = [answer(1, usage=own), answer(2, usage=not_own)]
    found = load(write(tmp_path / "a.jsonl", rows)).requests.sort("request_id").to_dicts()
    assert [row["cost_logged_usd"] for row in found] == [Decimal("19.95"), Decimal("0.25")]
    # The tokens are on OpenAI's bill.
    assert [row["provider"] for row in found] == ["openai", "openrouter"]
    assert [row["flags"] for row in found] == [["details_missing", "byok"], ["details_missing"]]


def test_byok_records_are_priced_at_the_upstream_provider(tmp_path):
    row = record(1, is_byok=True, total_cost=0.0002, upstream_inference_cost=0.0035)
    log = load(write(tmp_path / "a.jsonl", [row]))
    (found,) = log.requests.to_dicts()
    assert (found["provider"], found["cost_logged_usd"], found["flags"]) == ("openai", Decimal("0.0037"), ["byok"])
    # 1,000 x 2.5 + 100 x 10 per million
    assert tf.attribute(log).total_pusd == 3_500_000_000
    host = one(tmp_path, record(2, is_byok=True, provider_name="Amazon Bedrock"))["provider"]
    assert host == "bedrock"


def test_b119_cached_tokens_are_read(tmp_path):
    row = record(1, native_tokens_prompt=15328, native_tokens_cached=15252, native_tokens_completion=457)
    found = one(tmp_path, row)
    assert (found["input_tokens"], found["cache_read_tokens"], found["output_tokens"]) == (15328, 15252, 457)
    # a record does not say what was written
    assert found["cache_write_tokens"] is None


def test_answers_with_details(tmp_path):
    details = {
        "prompt_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 70},
        "completion_tokens_details": {"reasoning_tokens": 40, "image_tokens": 5},
        "server_tool_use": {"web_search_requests": 2},
    }
    found = one(tmp_path, answer(1, usage=details))
    assert (found["cache_read_tokens"], found["cache_write_tokens"], found["reasoning_tokens"]) == (300, 70, 40)
    assert (found["output_image_tokens"], found["web_searches"], found["flags"]) == (5, 2, None)
    assert (found["source_format"], dict(found["tags"])) == ("openrouter_chat", {"host": "OpenAI"})


@pytest.mark.full
def test_chunks_of_a_stream_with_ones_own_key(tmp_path):
    chunk = {**answer(1), "object": "chat.completion.chunk"}
    del chunk["usage"]
    last = {**answer(1, usage={"is_byok": True}), "object": "chat.completion.chunk"}
    log = load(write(tmp_path / "a.jsonl", [chunk, chunk, last]))
    assert (log.summary["requests"], log.summary["rejected"]) == (1, 0)
    (found,) = log.requests.to_dicts()
    assert (found["provider"], found["input_tokens"], found["is_stream"]) == ("openai", 1000, True)


def test_a_record_and_its_answer_are_one_request(tmp_path):
    first = load(write(tmp_path / "a.jsonl", [record(1)]), db=tmp_path / "a.duckdb")
    assert counted(first) == (1, 0, 0, 0)
    details = {
        "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    again = load(write(tmp_path / "b.jsonl", [answer(1, usage=details)]), db=tmp_path / "a.duckdb")
    assert counted(again) == (0, 0, 1, 0)
    assert again.requests["cache_write_tokens"].to_list() == [0]


def test_an_answer_of_openai_is_not_taken_for_one(tmp_path):
    found = one(tmp_path, chat(1))
    assert (found["source_format"], found["provider"]) == ("openai_chat", "openai")


@pytest.mark.full
def test_broken_lines_are_named(tmp_path):
    file = write(tmp_path / "a.jsonl", [record(1), record(2, native_tokens_prompt=2.5), chat(3)])
    with file.open("a") as handle:
        handle.write('{"data": {"id": "gen-9", "native_tok\n{"data": [1]}\n')
    log = load(file)
    assert sorted(log.rejects["source_line"].to_list()) == [3, 4, 5]
    assert [row["flags"] for row in table(log)] == [None, ["bad_count"]]
