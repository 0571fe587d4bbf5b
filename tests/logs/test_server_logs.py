"""Logs of model servers of one's own: SGLang's request log, vLLM's answers with their metrics."""

from __future__ import annotations

import json

import pytest
from log_files import SAMPLES, chat, counted, write
from quick import few

from tenfold.errors import LogFormatError
from tenfold.logs import READERS, detect, load

SECRET = "my secret prompt"


def request(rid="sg-1", *, parameters=None, **more):
    """A line of SGLang's request log."""
    base = {"id": rid, "prompt_tokens": 1024, "completion_tokens": 128, "cached_tokens": 896, "e2e_latency": 1.9}
    told = {"rid": rid, "model": "Qwen/Qwen3-8B", "stream": True, "text": SECRET, **(parameters or {})}
    return {"request_parameters": json.dumps(told), "finish_reason": {"type": "stop"}, **base, **more}


@pytest.mark.parametrize(
    "name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix in {".jsonl", ".csv", ".log"})
)
def test_each_sample_is_read_by_its_own_reader(name):
    try:
        found = detect.choose(SAMPLES / name, detect.content(SAMPLES / name), READERS, None).name
    except LogFormatError:
        found = None
    assert (found == "sglang") == (name == "sglang_request_metrics.log")


def test_a_request_of_sglang(tmp_path):
    timed = {
        "request_received_ts": 1793577600.25,
        "prefill_finished_ts": 1793577600.5,
        "queue_time": 0.012,
        "total_retractions": 1,
        "dp_rank": 3,
        "weight_version": "step-7",
    }
    (row,) = load(write(tmp_path / "a.log", [request(**timed)])).requests.to_dicts()
    # 1,024 in, of which 896 from the cache: 128 computed
    assert (row["input_tokens"], row["cache_read_tokens"], row["cache_write_tokens"], row["output_tokens"]) == (
        *(1024, 896, None, 128),
    )
    assert (row["duration_ms"], row["ttft_ms"], row["queue_ms"], row["preemptions"]) == (1900.0, 250.0, 12.0, 1)
    assert (str(row["ts"]), row["provider"], row["model"], row["model_revision"], row["is_stream"]) == (
        *("2026-11-02 00:00:00.250000", "self-hosted", "Qwen/Qwen3-8B", "step-7", True),
    )
    assert (row["finish_reason"], row["status"], row["flags"], row["replica"]) == ("stop", "success", None, "dp3")


@pytest.mark.parametrize(
    ("reason", "right"),
    few(
        1,
        [
            ({"type": "length", "length": 128}, ("success", "length", None)),
            ("stop", ("success", "stop", None)),
            (None, ("success", None, None)),
            ({"type": "abort", "message": "x"}, ("cancelled", None, None)),
            ({"type": "abort", "status_code": 503, "err_type": "x"}, ("error", None, 503)),
        ],
    ),
)
def test_how_a_request_of_sglang_ended(tmp_path, reason, right):
    (row,) = load(write(tmp_path / "a.log", [request(finish_reason=reason)])).requests.to_dicts()
    assert (row["status"], row["finish_reason"], row["http_status"]) == right


def test_broken_odd_and_foreign_lines_and_no_prompt(tmp_path):
    lines = [request("a", cached_tokens=2000), request("b", completion_tokens=3.7), chat(1), request("c")]
    file = write(tmp_path / "a.log", lines)
    file.write_text(file.read_text() + json.dumps(request("d"))[:90])
    log = load(file)
    rows = {row["request_id"]: row for row in log.requests.to_dicts()}
    assert rows["a"]["flags"] == ["cache_gt_input", "ts_missing"]
    assert rows["b"]["flags"] == ["bad_count", "ts_missing"]
    assert (rows["c"]["input_tokens"], rows["c"]["flags"]) == (1024, ["ts_missing"])
    assert sorted(log.rejects["source_line"]) == [3, 5]
    assert SECRET not in str(log.rejects.to_dicts()) + str(log.requests.to_dicts())


@pytest.mark.full
def test_loading_again_changes_nothing(tmp_path):
    db = tmp_path / "u.duckdb"
    first = write(tmp_path / "a.log", [request()])
    before = load(first, db=db).requests.to_dicts()
    again = load([first, write(tmp_path / "b.log", [request(), request("sg-2")])], db=db)
    assert (again.summary["requests"], again.summary["duplicates"]) == (1, 2)
    assert [row for row in again.requests.to_dicts() if row["request_id"] == "sg-1"] == before


@pytest.mark.parametrize(
    ("metrics", "right"),
    few(1, [
        pytest.param(
            {"arrival_time": 1793577600.5, "first_token_time": 1793577600.75, "finished_time": 1793577602.5,
             "time_in_queue": 0.02}, (250.0, 2000.0, 20.0), id="times"),
        pytest.param(
            {"arrival_time": 1793577600.5, "first_token_latency": 0.25, "queued_ts": 10.0, "scheduled_ts": 10.02,
             "first_token_ts": 10.25, "last_token_ts": 12.0}, (250.0, 2000.0, 20.0), id="counters"),
        pytest.param({"arrival_time": 1793577600.5}, (None, None, None), id="arrival"),
    ]),
)  # fmt: skip
def test_an_answer_of_vllm_with_its_metrics(tmp_path, metrics, right):
    line = chat(1, cached=64, model="Qwen/Qwen3-8B", metrics=metrics)
    (row,) = load(write(tmp_path / "a.jsonl", [line])).requests.to_dicts()
    assert (row["ttft_ms"], row["duration_ms"], row["queue_ms"]) == right
    assert (row["provider"], str(row["ts"]), row["cache_read_tokens"]) == (
        *("self-hosted", "2026-11-02 00:00:00.500000", 64),
    )


@pytest.mark.parametrize(
    "metrics", [{"arrival_time": None}, *(pytest.param(other, marks=pytest.mark.full) for other in (None, {}, [], "x"))]
)
def test_other_metrics_are_none_of_vllms(tmp_path, metrics):
    log = load(write(tmp_path / "a.jsonl", [chat(1, metrics=metrics)]))
    assert counted(log) == (1, 0, 0, 0)
    assert log.requests["provider"].to_list() == ["openai"]
