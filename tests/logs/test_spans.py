"""OTLP/JSON and OpenInference: calls are kept, what only repeats them is not, old names are read."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from quick import few

from tenfold.logs import READERS, detect, load

SAMPLES = Path(__file__).parents[1] / "samples"


def value(held):
    if isinstance(held, bool):
        return {"boolValue": held}
    if isinstance(held, int):
        return {"intValue": str(held)}
    if isinstance(held, float):
        return {"doubleValue": held}
    return {"stringValue": held}


def attributes(pairs):
    return [{"key": key, "value": value(held)} for key, held in pairs.items()]


def span(number, parent=None, trace="t1", **pairs):
    found = {
        "traceId": trace,
        "spanId": f"s{number}",
        "startTimeUnixNano": str(1793577600_000_000_000 + number * 1_000_000),
        "endTimeUnixNano": str(1793577601_000_000_000),
        "attributes": attributes({key.replace("__", "."): held for key, held in pairs.items()}),
        "status": {},
    }
    return found | ({"parentSpanId": f"s{parent}"} if parent else {})


def chat(number, parent=None, *, input=20, output=5, **more):  # noqa: A002 -- the attribute's word
    pairs = {
        "gen_ai__operation__name": "chat",
        "gen_ai__provider__name": "openai",
        "gen_ai__request__model": "gpt-4o",
        "gen_ai__usage__input_tokens": input,
        "gen_ai__usage__output_tokens": output,
    }
    return span(number, parent, **pairs, **more)


def export(*found, **resource):
    held = {"attributes": attributes({key.replace("__", "."): text for key, text in resource.items()})}
    return {"resourceSpans": [{"resource": held, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(found)}]}]}


def loaded(tmp_path, *lines, **more):
    file = tmp_path / "a.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return load(file, **more)


def test_b082_an_agents_sum_does_not_count_beside_its_calls(tmp_path):
    leaves = [(13942, 95), (14065, 169), (15487, 253), (16756, 289)]
    # The agent names no operation, a step lies between, and each part comes with an export request of its own.
    agent = span(1, gen_ai__usage__input_tokens=60250, gen_ai__usage__output_tokens=806, gen_ai__request__model="m")
    step = span(2, 1)
    calls = [chat(10 + n, 2, input=given, output=made) for n, (given, made) in enumerate(leaves)]
    log = loaded(tmp_path, export(*calls[:2]), export(agent, *calls[2:]), export(step))
    assert (log.requests["input_tokens"].sum(), log.requests["output_tokens"].sum()) == (60250, 806)
    assert [log.summary[name] for name in ("requests", "merged", "ignored", "rejected")] == [4, 1, 1, 0]


@pytest.mark.parametrize(
    "operation",
    [
        "invoke_agent",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("invoke_workflow", "execute_tool", "create_agent")),
    ],
)
def test_rollups_go_by_their_operation_too(tmp_path, operation):
    rollup = span(1, gen_ai__operation__name=operation, gen_ai__usage__input_tokens=9, gen_ai__usage__output_tokens=1)
    log = loaded(tmp_path, export(rollup, chat(2)))
    assert log.requests["request_id"].to_list() == ["s2"]
    assert log.summary["ignored"] == 1


def test_one_call_instrumented_twice_is_one(tmp_path):
    other_trace = {**chat(3), "traceId": "t2", "spanId": "s1", "parentSpanId": "s1"}  # a span above itself is no rollup
    log = loaded(tmp_path, export(chat(1), chat(2, 1), other_trace))
    assert log.requests.select("trace_id", "request_id").rows() == [("t1", "s2"), ("t2", "s1")]
    # The same export request sent again
    assert loaded(tmp_path, export(chat(1)), export(chat(1))).summary["duplicates"] == 1


NAMES = {
    "input_tokens": ("gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "cache_read_tokens": ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.details.cached_tokens"),
    "cache_write_tokens": ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_write_tokens"),
    "output_tokens": ("gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    "reasoning_tokens": ("gen_ai.usage.reasoning.output_tokens", "llm.token_count.completion_details.reasoning"),
}


@pytest.mark.parametrize("which", few(1, [0, 1]))
def test_old_names_are_read(tmp_path, which):
    numbers = dict(zip(NAMES, (2000, 1500, 100, 50, 20), strict=True))
    pairs = {NAMES[column][which].replace(".", "__"): number for column, number in numbers.items()}
    (row,) = loaded(tmp_path, export(span(1, gen_ai__system="az.ai.openai", **pairs))).requests.to_dicts()
    assert {name: row[name] for name in NAMES} == numbers
    assert (row["provider"], row["operation"], row["flags"]) == ("azure", "chat", None)


def test_what_nobody_said_about_the_cache_stays_unknown(tmp_path):
    big, small = chat(1, input=5000), chat(2, input=500)
    deepseek = chat(3, input=500)
    deepseek["attributes"][1] = {"key": "gen_ai.provider.name", "value": {"stringValue": "deepseek"}}
    rows = loaded(tmp_path, export(big, small, deepseek)).requests.to_dicts()
    assert [row["cache_read_tokens"] for row in rows] == [None, 0, None]


@pytest.mark.full
def test_import_14_raw_anthropic_counts_are_flagged_and_not_clamped(tmp_path):
    raw = chat(1, input=5, gen_ai__usage__cache_read__input_tokens=128955)
    (row,) = loaded(tmp_path, export(raw)).requests.to_dicts()
    assert (row["input_tokens"], row["cache_read_tokens"], row["flags"]) == (None, None, ["cache_gt_input"])


def test_vllm_spans(tmp_path):
    call = span(
        1,
        gen_ai__usage__prompt_tokens=7,
        gen_ai__usage__completion_tokens=3,
        gen_ai__response__model="qwen3",
        gen_ai__request__id="cmpl-1",
        gen_ai__latency__time_in_queue=0.25,
        gen_ai__latency__time_to_first_token=0.5,
    )
    (row,) = loaded(tmp_path, export(call, service__name="vllm", service__instance__id="pod-3")).requests.to_dicts()
    names = ("request_id", "provider", "model", "queue_ms", "ttft_ms", "replica", "client", "input_tokens")
    assert [row[name] for name in names] == ["cmpl-1", "self-hosted", "qwen3", 250.0, 500.0, "pod-3", "vllm", 7]


def test_failures_and_odd_counts(tmp_path):
    failed = span(1, gen_ai__operation__name="chat", gen_ai__request__model="m", error__type="timeout")
    failed["status"] = {"code": 2}
    missing = span(2, gen_ai__operation__name="chat", gen_ai__request__model="m")
    odd = chat(3)
    odd["attributes"][3]["value"] = {"doubleValue": 3.7}
    a, b, c = loaded(tmp_path, export(failed, missing, odd)).requests.to_dicts()
    assert (a["status"], a["is_billable"], b["flags"]) == ("error", False, ["usage_missing"])
    assert (c["input_tokens"], c["flags"]) == (None, ["bad_count"])


@pytest.mark.full
def test_broken_lines_are_named_and_a_second_load_changes_nothing(tmp_path):
    good = export(chat(1))
    log = loaded(tmp_path, good, json.dumps(good)[:80], {"usage": {"prompt_tokens": 1}}, db=tmp_path / "u.duckdb")
    assert (log.summary["requests"], log.rejects["source_line"].to_list()) == (1, [2, 3])
    assert "openai_chat" in log.rejects["reason"][1]
    again = load(tmp_path / "a.jsonl", db=tmp_path / "u.duckdb")
    assert (again.summary["requests"], again.summary["duplicates"]) == (0, 1)


def test_one_pretty_document(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps(export(chat(1), chat(2)), indent=2))
    assert load(file).summary["by_format"] == {"otlp": 2}


def inference(number, kind="LLM", parent=None, **more):
    return {
        "context": {"trace_id": "0x1", "span_id": f"0x{number}"},
        "parent_id": parent,
        "name": "x",
        "start_time": f"2026-11-02T10:00:{number:02}.000000Z",
        "end_time": "2026-11-02T10:01:00.000000Z",
        "status_code": "OK",
        "attributes": {
            "openinference.span.kind": kind,
            "llm.model_name": "gpt-4o",
            "llm.token_count.prompt": 1000,
            "llm.token_count.prompt_details.cache_read": 800,
            "llm.token_count.completion": 50,
            "llm.token_count.total": 1050,
            "metadata": '{"team": "search"}',
            **more,
        },
    }


@pytest.mark.parametrize("kind", few(1, ["flat", "nested", "columns", "attributes as text"]))
def test_openinference_in_every_form(tmp_path, kind):
    row = inference(2)
    file = tmp_path / "a.csv"
    if kind in {"flat", "nested"}:
        if kind == "nested":
            row["attributes"] = {
                "openinference": {"span": {"kind": "LLM"}},
                "llm": {
                    "model_name": "gpt-4o",
                    "token_count": {
                        "prompt": 1000,
                        "completion": 50,
                        "total": 1050,
                        "prompt_details": {"cache_read": 800},
                    },
                },
                "metadata": '{"team": "search"}',
            }
        file.write_text(json.dumps(row) + "\n")
    else:
        told = row.pop("attributes")
        context = row.pop("context")
        row |= {f"context.{key}": held for key, held in context.items()}
        row |= {"attributes": json.dumps(told)} if "text" in kind else {f"attributes.{k}": v for k, v in told.items()}
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, fieldnames=list(row))
            writer.writeheader()
            writer.writerow(row)
    log = load(file)
    (got,) = log.requests.to_dicts()
    assert log.summary["by_format"] == {"openinference": 1}
    names = ("request_id", "trace_id", "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    assert [got[name] for name in names] == ["0x2", "0x1", 1000, 800, 0, 50]
    assert (got["team"], got["model"], got["flags"]) == ("search", "gpt-4o", None)


def test_openinference_agents_and_outer_calls_do_not_count(tmp_path):
    rows = [
        inference(1, "AGENT"),
        inference(2, "CHAIN", "0x1"),
        inference(3, "LLM", "0x2"),
        inference(4, "LLM", "0x3"),
        inference(5, "EMBEDDING", "0x2"),
    ]
    log = loaded(tmp_path, *rows)
    assert log.requests.select("request_id", "operation").rows() == [("0x4", "chat"), ("0x5", "embeddings")]
    assert [log.summary[name] for name in ("merged", "ignored", "rejected")] == [1, 2, 0]


@pytest.mark.full
def test_genai_names_in_a_sdks_span(tmp_path):
    row = {**inference(1), "status": {"status_code": "ERROR"}, "resource": {"attributes": {"service.name": "api"}}}
    del row["status_code"]
    row["attributes"] = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.usage.input_tokens": 3}
    (got,) = loaded(tmp_path, row).requests.to_dicts()
    assert [got[name] for name in ("provider", "input_tokens", "status", "client")] == ["openai", 3, "error", "api"]


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.jsonl")))
def test_no_other_sample_is_taken(name):
    held = detect.content(SAMPLES / name)
    mine = {"langfuse_observations.jsonl": "langfuse", "otlp_traces.jsonl": "otlp"}
    mine["openinference_spans.jsonl"] = "openinference"
    taken = {reader.name for reader in READERS for record in held.records if detect.fits(reader.detect, record)}
    if name in mine:
        assert taken == {mine[name]}
    else:
        assert not taken & set(mine.values())
