"""Published traces: arrivals and counts of real traffic, most with times that are offsets only."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from log_files import SAMPLES, chat, counted, write
from quick import few

import tenfold as tf
from tenfold.errors import LogFormatError
from tenfold.logs import READERS, detect, load

DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
OWN = {
    "azure_llm_trace.csv": "azure_llm_trace",
    "burstgpt.csv": "burstgpt",
    "mooncake_trace.jsonl": "mooncake_trace",
    "qwen_bailian_trace.jsonl": "qwen_bailian_trace",
}


def real(*parts):
    path = DATA.joinpath(*parts)
    if not path.is_file():
        pytest.skip("no real data: set TENFOLD_REAL_DATA")
    return path


def turn(chat_id, parent, at, **more):
    base = {"chat_id": chat_id, "parent_chat_id": parent, "timestamp": at, "input_length": 40, "output_length": 5}
    return {**base, "type": "text", "turn": 1, "hash_ids": [1, 2, 3], **more}


@pytest.mark.parametrize(
    "name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix in {".jsonl", ".csv", ".log"})
)
def test_each_sample_is_read_by_its_own_reader(name):
    try:
        found = detect.choose(SAMPLES / name, detect.content(SAMPLES / name), READERS, None).name
    except LogFormatError:
        found = None
    assert (found == OWN[name]) if name in OWN else (found not in OWN.values())


def test_azure_has_times_and_counts_and_takes_the_rest_from_outside():
    log = load(SAMPLES / "azure_llm_trace.csv", zone="UTC", set={"provider": "azure", "model": "gpt-4o"})
    rows = log.requests.sort("source_line").to_dicts()
    assert [(str(row["ts"]), row["input_tokens"], row["output_tokens"], row["flags"]) for row in rows] == [
        ("2023-11-16 18:15:46.680590", 374, 44, None),
        ("2023-11-16 18:15:50.995169", 396, 109, None),
    ]
    assert {(row["provider"], row["model"]) for row in rows} == {("azure", "gpt-4o")}
    (bare, _) = load(SAMPLES / "azure_llm_trace.csv").requests.to_dicts()
    assert (bare["provider"], bare["model"], bare["cache_read_tokens"], bare["flags"]) == (
        None,
        None,
        None,
        ["naive_ts"],
    )


def test_burstgpt():
    good, failed = load(SAMPLES / "burstgpt.csv").requests.sort("source_line").to_dicts()
    assert (good["input_tokens"], good["output_tokens"], good["duration_ms"], good["session_id"]) == (
        472,
        18,
        3100.0,
        None,
    )
    assert (good["provider"], good["model"], good["model_requested"], good["feature"]) == (
        *("azure", "gpt-3.5-turbo", "ChatGPT", "API log"),
    )
    assert (str(good["ts"]), good["flags"]) == ("1970-01-01 00:00:05", ["relative_ts"])
    # no token of an answer: the call failed
    assert (failed["input_tokens"], failed["output_tokens"], failed["status"], failed["is_billable"]) == (
        *(1087, 0, "error", False),
    )
    assert failed["session_id"] == "17"


def test_mooncake_keeps_order_distance_and_prefixes():
    one, two = load(SAMPLES / "mooncake_trace.jsonl").requests.sort("source_line").to_dicts()
    assert (two["ts"] - one["ts"]).total_seconds() == (30535 - 27482) / 1000
    assert (one["input_tokens"], one["output_tokens"], one["prefix_block_tokens"]) == (6955, 52, 512)
    assert one["prefix_hashes"][:2] == two["prefix_hashes"][:2] == ["46", "47"]
    assert len(one["prefix_hashes"]) == 14  # 6,955 tokens in blocks of 512
    assert (one["provider"], one["model"], one["flags"]) == (None, None, ["relative_ts"])


def test_qwen_chats_that_go_back_to_one_first_turn_are_one_session(tmp_path):
    (row,) = load(SAMPLES / "qwen_bailian_trace.jsonl").requests.to_dicts()
    # turn 2, and its parent 55 is not in the file
    assert (row["request_id"], row["session_id"], row["feature"], row["prefix_block_tokens"]) == (
        "159",
        "55",
        "text",
        16,
    )
    assert (row["input_tokens"], row["output_tokens"], str(row["ts"])) == (521, 132, "1970-01-01 00:01:01.114000")
    lines = [turn(1, -1, 0.5), turn(2, 1, 5.0), turn(3, 2, 9.0), turn(4, -1, 9.5), turn(5, 6, 10.0), turn(6, 5, 11.0)]
    log = load(write(tmp_path / "a.jsonl", lines))
    assert log.requests.sort("source_line")["session_id"].to_list() == ["1", "1", "1", "4", "5", "6"]
    assert counted(log) == (6, 0, 0, 0)


@pytest.mark.parametrize(
    ("at", "flags"), few(1, [(-1, ["bad_ts"]), (1793577600, ["bad_ts"]), ("x", ["bad_ts"]), (None, ["ts_missing"])])
)
def test_what_is_no_offset_is_no_time(tmp_path, at, flags):
    (row,) = load(write(tmp_path / "a.jsonl", [turn(1, -1, at)])).requests.to_dicts()
    assert (row["ts"], row["flags"]) == (None, flags)


def test_a_trace_is_priced_at_a_date_of_its_own():
    log = load(SAMPLES / "mooncake_trace.jsonl", set={"provider": "openai", "model": "gpt-5"})
    # 13,427 in at $1.25 and 78 out at $10 a million
    assert (
        tf.attribute(log, price_at=datetime(2026, 10, 1, tzinfo=UTC)).total_pusd == 13427 * 1_250_000 + 78 * 10_000_000
    )


@pytest.mark.parametrize("name", few(1, ["mooncake_trace.jsonl", "qwen_bailian_trace.jsonl"]))
def test_broken_odd_and_foreign_lines(tmp_path, name):
    held = json.loads((SAMPLES / name).read_text().splitlines()[0])
    lines = [held, {**held, "input_length": -3}, chat(1), {**held, "timestamp": 99}]
    file = write(tmp_path / "a.jsonl", lines)
    file.write_text(file.read_text() + json.dumps(held)[:60])
    log = load(file)
    rows = log.requests.sort("source_line").to_dicts()
    assert [row["source_line"] for row in rows if row["input_tokens"] is not None] == [1, 4]
    assert sorted(log.rejects["source_line"])[-2:] == [3, 5]


def test_broken_lines_of_a_table(tmp_path):
    file = tmp_path / "b.csv"
    file.write_text((SAMPLES / "burstgpt.csv").read_text() + "46,,1.0,ChatGPT,3.7,5,8,API log\n47,1\n")
    log = load(file)
    rows = log.requests.sort("source_line").to_dicts()
    assert "bad_count" in rows[2]["flags"]
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


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "requests"), few(1, [("conversation", 12031), ("synthetic", 3993)]))
def test_real_mooncake(name, requests):
    file = real("mooncake", f"{name}_trace.jsonl")
    log = load(file)
    assert counted(log) == (requests, 0, 0, 0)
    frame = pl.read_ndjson(file)
    assert log.requests["input_tokens"].sum() == frame["input_length"].sum()
    assert log.requests["output_tokens"].sum() == frame["output_length"].sum()
    assert log.requests["prefix_hashes"].list.len().sum() == frame["hash_ids"].list.len().sum()
    assert log.requests["ts"].cast(int).sum() == frame["timestamp"].sum() * 1000


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "requests"), few(1, [("conv", 19366), ("code", 8819)]))
def test_real_azure(name, requests):
    file = real("azure", f"AzureLLMInferenceTrace_{name}.csv")
    log = load(file)
    assert counted(log) == (requests, 0, 0, 0)
    assert log.requests["input_tokens"].sum() == pl.read_csv(file)["ContextTokens"].sum()
