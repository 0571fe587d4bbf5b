"""Gemini and Vertex answers: chunks, batches, blocked prompts, who bills."""

from __future__ import annotations

import pytest
from log_files import SAMPLES, counted, table, write
from quick import few

from tenfold.logs import load


def answer(number, *, prompt=100, out=10, thoughts=0, **more):
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": out, "totalTokenCount": prompt + out + thoughts}
    if thoughts:
        usage["thoughtsTokenCount"] = thoughts
    base = {"responseId": f"g-{number}", "modelVersion": "gemini-2.5-flash", "createTime": "2026-11-02T10:00:00Z"}
    return {**base, "usageMetadata": usage, **more}


def chunk(number, usage, text="", **more):
    parts = [{"content": {"parts": [{"text": text}]}, **more}]
    own = {"responseId": f"g-{number}", "modelVersion": "gemini-2.5-flash", "candidates": parts}
    return own if usage is None else {**own, "usageMetadata": usage}


def test_the_last_chunk_of_a_stream_stands(tmp_path):
    rows = [
        chunk(1, None, "no counts yet"),
        chunk(1, {"promptTokenCount": 20, "thoughtsTokenCount": 50, "totalTokenCount": 70}, "a"),
        chunk(1, {"promptTokenCount": 22, "candidatesTokenCount": 5, "totalTokenCount": 27}, "b"),
        # 22 + 40 + 60: thoughts lie beside candidates
        chunk(1, {"promptTokenCount": 22, "candidatesTokenCount": 40, "thoughtsTokenCount": 60, "totalTokenCount": 122},
              "c", finishReason="MAX_TOKENS"),
    ]  # fmt: skip
    log = load(write(tmp_path / "a.jsonl", rows))
    assert counted(log) == (1, 0, 3, 0)
    (row,) = log.requests.to_dicts()
    assert (row["input_tokens"], row["output_tokens"], row["reasoning_tokens"]) == (22, 100, 60)
    assert (row["is_stream"], row["finish_reason"], row["source_line"]) == (True, "length", 4)


def test_a_stream_that_broke_off_before_its_counts(tmp_path):
    rows = [
        chunk(1, {"trafficType": "ON_DEMAND"}, "a"),
        chunk(1, {"trafficType": "ON_DEMAND"}, "a", finishReason="STOP"),
    ]
    (row,) = load(write(tmp_path / "a.jsonl", rows)).requests.to_dicts()
    # the answer's text is counted, the prompt was not logged
    assert (row["input_tokens"], row["output_tokens"], row["flags"]) == (
        None,
        1,
        ["stream_without_usage", "ts_missing"],
    )
    # no counts, no tier; but the chunk said whose service it was
    assert row["provider"] == "vertex"


@pytest.mark.full
def test_repeats_are_duplicates_and_reloading_changes_nothing(tmp_path):
    rows = [answer(1), answer(2), answer(1)]
    file = write(tmp_path / "a.jsonl", rows)
    log = load(file, db=tmp_path / "a.duckdb")
    assert counted(log) == (2, 1, 0, 0)
    grown = write(tmp_path / "b.jsonl", [*rows, answer(3)])
    before = table(log)
    again = load(grown, db=tmp_path / "a.duckdb")
    assert counted(again)[0] == 1
    assert [row for row in table(again) if row["request_id"] != "g-3"] == before


@pytest.mark.parametrize(
    ("more", "right"),
    few(
        1,
        [
            ({}, ("google", None)),
            ({"usageMetadata": {"promptTokenCount": 1, "trafficType": "ON_DEMAND"}}, ("vertex", "standard")),
            pytest.param(
                {"usageMetadata": {"promptTokenCount": 1, "trafficType": "ON_DEMAND_PRIORITY"}},
                ("vertex", "priority"),
                marks=pytest.mark.full,
            ),
            ({"usageMetadata": {"promptTokenCount": 1, "serviceTier": "flex"}}, ("google", "flex")),
            ({"provider": "vertex_ai"}, ("vertex", None)),
            pytest.param({"_log": {"provider": "vertex"}}, ("vertex", None), marks=pytest.mark.full),
        ],
    ),
)
def test_who_bills_and_at_which_tier(tmp_path, more, right):
    (row,) = load(write(tmp_path / "a.jsonl", [answer(1, **more)])).requests.to_dicts()
    assert (row["provider"], row["service_tier"]) == right


def test_the_sdks_spelling(tmp_path):
    usage = {
        "prompt_token_count": 262,
        "candidates_token_count": 3,
        "total_token_count": 265,
        "prompt_tokens_details": [{"modality": "TEXT", "token_count": 4}, {"modality": "IMAGE", "token_count": 258}],
        "traffic_type": "TrafficType.ON_DEMAND_FLEX",
    }
    row = {
        "response_id": "g-1",
        "model_version": "gemini-2.0-flash",
        "create_time": "2026-11-02T10:00:00Z",
        "usage_metadata": usage,
        "candidates": [{"finish_reason": "FinishReason.STOP"}],
    }
    (row,) = load(write(tmp_path / "a.jsonl", [row])).requests.to_dicts()
    assert (row["model"], row["input_tokens"], row["output_tokens"]) == ("gemini-2.0-flash", 262, 3)
    assert (row["provider"], row["service_tier"], row["finish_reason"]) == ("vertex", "flex", "stop")
    assert row["input_image_tokens"] == 258


def test_batches_of_both_services(tmp_path):
    rows = [
        {"key": "doc-1", "response": answer(1)},
        {"key": "doc-2", "error": {"code": 3, "status": "INVALID_ARGUMENT"}},
        {"status": "", "processed_time": "2026-11-02T11:00:00Z", "request": {}, "response": answer(2)},
        {"status": "Bad Request: no contents", "processed_time": "2026-11-02T11:00:01Z", "request": {}, "response": {}},
    ]
    log = load(write(tmp_path / "a.jsonl", rows))
    assert counted(log) == (4, 0, 0, 0)
    rows = sorted(log.requests.to_dicts(), key=lambda row: row["source_line"])
    assert [row["service_tier"] for row in rows] == ["batch", None, "batch", "batch"]
    assert [row["provider"] for row in rows] == ["google", "google", "vertex", "vertex"]
    assert [row["status"] for row in rows] == ["success", "error", "success", "error"]
    assert [row["is_billable"] for row in rows] == [True, False, True, False]
    assert [row["custom_id"] for row in rows] == ["doc-1", "doc-2", None, None]


def test_answers_as_vertex_logs_them(tmp_path):
    row = {
        "logging_time": "2026-11-02 10:00:00 UTC",
        "model": "publishers/google/models/gemini-2.5-pro",
        "full_response": {"responseId": "v1", "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7}},
    }
    (row,) = load(write(tmp_path / "a.jsonl", [row])).requests.to_dicts()
    assert (row["provider"], row["model"], row["input_tokens"]) == ("vertex", "gemini-2.5-pro", 7)
    assert str(row["ts"]) == "2026-11-02 10:00:00"


def test_case_16_candidates_that_include_thoughts_are_told_by_the_total(tmp_path):
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 100, "thoughtsTokenCount": 60, "totalTokenCount": 120}
    beside = {
        "promptTokenCount": 7477,
        "candidatesTokenCount": 2060,
        "thoughtsTokenCount": 1939,
        "totalTokenCount": 11476,
    }
    rows = [answer(1, usageMetadata=usage), answer(2, usageMetadata=beside)]
    found = load(write(tmp_path / "a.jsonl", rows)).requests.sort("request_id").to_dicts()
    assert [(row["output_tokens"], row["reasoning_tokens"]) for row in found] == [(100, 60), (3999, 1939)]


@pytest.mark.full
def test_broken_lines_are_named(tmp_path):
    good = answer(1)
    file = write(tmp_path / "a.jsonl", [good, answer(2, prompt=-5), {"usage": {"prompt_tokens": 3}, "id": "c"}])
    with file.open("a") as handle:
        handle.write('{"responseId": "g-9", "usageMetadata": {"promptTok\n[]\n')
        handle.write('{"responseId": "g-8", "usageMetadata": 5}\n')
    log = load(file)
    assert log.summary["requests"] == 2
    assert sorted(log.rejects["source_line"].to_list()) == [3, 4, 5, 6]
    flags = {row["request_id"]: row["flags"] for row in log.requests.to_dicts()}
    assert flags["g-1"] is None
    assert "bad_count" in flags["g-2"]


def test_a_blocked_prompt_is_billed_for_its_input():
    rows = load(SAMPLES / "gemini_generate_content.jsonl").requests.to_dicts()
    (row,) = [row for row in rows if row["status"] == "blocked"]
    assert (row["input_tokens"], row["output_tokens"], row["is_billable"]) == (10, 0, True)
