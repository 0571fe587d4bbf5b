"""What single formats do beyond their samples: containers, ids, times, child rows, unknown meters."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest
from quick import few

from tenfold.logs import load

SAMPLES = Path(__file__).parents[1] / "samples"


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def spend_rows():
    with (SAMPLES / "litellm_spendlogs.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", few(1, ["objects", pytest.param("json text", marks=pytest.mark.full), "parquet"]))
def test_spend_logs_are_the_same_in_every_container(tmp_path, kind):
    rows = spend_rows()
    numbers = ("spend", "total_tokens", "prompt_tokens", "completion_tokens")
    typed = [{**row, **{name: json.loads(row[name]) for name in numbers}} for row in rows]
    if kind == "objects":
        file = write(tmp_path / "a.jsonl", [{**row, "metadata": json.loads(row["metadata"])} for row in typed])
    elif kind == "json text":
        file = write(tmp_path / "a.jsonl", typed)
    else:
        file = tmp_path / "a.parquet"
        pl.DataFrame(typed).write_parquet(file)
    place = ["source_file", "source_line"]
    plain = load(SAMPLES / "litellm_spendlogs.csv").requests.drop(place)
    assert load(file).requests.drop(place).to_dicts() == plain.to_dicts()


def test_request_tags_of_a_spend_log_are_pairs(tmp_path):
    words = ["prod", "cost-center:4711", "User-Agent: x", "User-Agent: x/1.2", 'a"b=c: d', "", None]
    pairs = {"prod": "true", "cost-center": "4711", "User-Agent": "x/1.2", 'a"b': "c: d"}
    tags = [words, json.dumps(words), [], "[broken", {"x": 1}]
    row = {**spend_rows()[0], "metadata": {}}
    lines = [
        {**row, "request_id": f"t{number}", "spend": 1, "request_tags": value} for number, value in enumerate(tags)
    ]
    found = load(write(tmp_path / "a.jsonl", lines)).requests.sort("request_id")["tags"].to_list()
    assert found == [pairs, pairs, None, None, None]


def test_spend_log_ids_that_are_reused_stay_apart(tmp_path):
    base = {
        "call_type": "acompletion",
        "spend": 0.1,
        "model": "m",
        "custom_llm_provider": "openai",
        "status": "success",
    }
    rows = [
        {**base, "request_id": "None", "startTime": "2026-11-02 10:00:00", "prompt_tokens": 1, "completion_tokens": 2},
        {
            **base,
            "request_id": "None",
            "startTime": "2026-11-02 10:00:01",
            "prompt_tokens": 500,
            "completion_tokens": 1,
        },
        # one call logged twice by the proxy: its own call id says so
        {**base, "request_id": "x", "litellm_call_id": "c", "startTime": "2026-11-02 10:00:02", "prompt_tokens": 7},
        {**base, "request_id": "y", "litellm_call_id": "c", "startTime": "2026-11-02 10:00:02", "prompt_tokens": 7},
    ]
    log = load(write(tmp_path / "a.jsonl", rows))
    assert [log.summary[name] for name in ("requests", "merged", "rejected")] == [3, 1, 0]
    assert log.requests["input_tokens"].sum() == 508


@pytest.mark.parametrize(
    ("written", "right", "naive"),
    few(
        2,
        [
            ("2026-01-09T10:00:00.000Z", "2026-01-09 10:00:00", False),
            ("2026-01-09T10:00:00+05:30", "2026-01-09 04:30:00", False),
            ("2026-01-09T10:00:00", "2026-01-09 10:00:00", True),
            (1767952800, "2026-01-09 10:00:00", False),
            (1767952800123, "2026-01-09 10:00:00.123000", False),
            (1767952800123456, "2026-01-09 10:00:00.123456", False),
            ("1767952800.5", "2026-01-09 10:00:00.500000", False),
            ("2026-01-09", "2026-01-09 00:00:00", True),
            ("2026-01-09 10:00:00 UTC", "2026-01-09 10:00:00", False),
            ("4/1/25", "None", False),
            ("2026-13-45T00:00:00Z", "None", False),
        ],
    ),
    ids=str,
)
def test_times_in_every_shape(tmp_path, written, right, naive):
    row = {"id": "a", "usage": {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {}}}
    (got,) = load(write(tmp_path / "a.jsonl", [{**row, "_log": {"ts": written}}])).requests.to_dicts()
    assert str(got["ts"]) == right
    assert (got["flags"] == ["naive_ts"]) is naive
    assert (got["flags"] == ["bad_ts"]) is (right == "None")


def test_iterations_become_rows_of_their_own(tmp_path):
    def part(kind, inputs):
        return {"type": kind, "input_tokens": inputs, "output_tokens": 1, "cache_creation_input_tokens": 3}

    usage = {"input_tokens": 300, "output_tokens": 50, "cache_creation_input_tokens": 0, "speed": "fast"}
    parts = [part("message", 300), part("compaction", 4000), part("compaction", 5000), part("advisor_message", 9)]
    row = {
        "id": "m",
        "type": "message",
        "model": "claude-opus-5-5",
        "usage": {**usage, "iterations": parts},
        "_log": {"ts": 1793577600},
    }
    rows = {r["request_id"]: r for r in load(write(tmp_path / "a.jsonl", [row])).requests.to_dicts()}
    assert {name: (r["input_tokens"], r["cache_write_tokens"], r["parent_id"]) for name, r in rows.items()} == {
        "m": (300, 0, "m"),
        "m#compaction": (4003, 3, "m"),
        "m#compaction2": (5003, 3, "m"),
    }
    assert {r["service_tier"] for r in rows.values()} == {"fast"}
    # Whether an advisor's tokens are inside the top-level usage is not documented: the row says so.
    assert rows["m"]["flags"] == ["iterations_unverified"]


def test_responses_inside_a_batch_and_their_failed_fellows(tmp_path):
    usage = {
        "input_tokens": 2000,
        "input_tokens_details": {
            "cached_tokens": 500,
            "cache_write_tokens": 300,
            "cache_write_tokens_details": {"ttl_12h_tokens": 100, "ttl_30m_tokens": 200},
        },
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 2040,
    }
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1793577600,
        "status": "completed",
        "model": "gpt-6-astra",
        "usage": usage,
    }
    strange = {
        **usage,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens_details": {"ttl_9d_tokens": 100}},
    }
    rows = [
        {"id": "b1", "custom_id": "1", "response": {"status_code": 200, "body": body}, "error": None},
        {
            "id": "b2",
            "custom_id": "2",
            "response": {"status_code": 200, "body": {**body, "id": "resp_2", "usage": strange}},
            "error": None,
        },
    ]
    got = {r["custom_id"]: r for r in load(write(tmp_path / "a.jsonl", rows)).requests.to_dicts()}
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens", "reasoning_tokens")
    assert [got["1"][name] for name in names] == [2000, 500, 300, 100, 30]
    assert (got["1"]["status"], got["1"]["operation"], got["1"]["service_tier"]) == ("success", "responses", "batch")
    assert got["1"]["flags"] is None
    # A lifetime without a meter: the input is not priced by halves.
    assert (got["2"]["input_tokens"], got["2"]["flags"]) == (None, ["unknown_meter"])


def test_many_small_files_keep_their_own_names_and_lines(tmp_path):
    def row(name):
        return {"id": name, "created": 1793577600, "usage": {"prompt_tokens": 1, "completion_tokens": 1}}

    write(tmp_path / "a.jsonl", [row("a1"), row("a2")])
    (tmp_path / "b.jsonl").write_text("\n" + json.dumps(row("b2")) + "\n{broken\n" + json.dumps(row("b4")) + "\n")
    write(tmp_path / "c.jsonl", [{"id": "m", "type": "message", "usage": {"input_tokens": 1, "output_tokens": 1}}])
    write(tmp_path / "d.jsonl", [row("d1"), row("d2")])
    write(tmp_path / "e.jsonl", [row("e1")])
    places = load(tmp_path).requests.select("request_id", pl.col("source_file").str.slice(-7, 1), "source_line")
    assert {name: (file, line) for name, file, line in places.iter_rows()} == {
        "a1": ("a", 1),
        "a2": ("a", 2),
        "b2": ("b", 2),
        "b4": ("b", 4),
        "m": ("c", 1),
        "d1": ("d", 1),
        "d2": ("d", 2),
        "e1": ("e", 1),
    }


def test_tables_of_one_kind_may_differ_in_their_columns(tmp_path):
    (tmp_path / "a.csv").write_text("ts,model,input_tokens,output_tokens\n2026-11-02T00:00:00Z,m,1,2\n")
    (tmp_path / "b.csv").write_text("team;output_tokens;input_tokens;ts\nx;4;3;2026-11-02T00:00:00Z\n")
    rows = load(tmp_path).requests.sort("input_tokens").to_dicts()
    assert [(r["model"], r["team"], r["input_tokens"], r["output_tokens"]) for r in rows] == [
        ("m", None, 1, 2),
        (None, "x", 3, 4),
    ]
