"""Azure API Management's LLM log: split messages, deployments, odd counts."""

from __future__ import annotations

import csv
import json

import polars as pl
import pytest
from log_files import SAMPLES, counted, table
from quick import few

import tenfold as tf
from tenfold.logs import load

COLUMNS = (
    *("TimeGenerated", "CorrelationId", "ApiVersion", "DeploymentName", "ModelName", "IsStreamCompletion"),
    *("PromptTokens", "CompletionTokens", "TotalTokens", "SequenceNumber", "Region"),
)


def row(call, prompt, completion, total, sequence=0, **more):
    own = {
        "TimeGenerated": "2026-11-02T10:00:00.1234567Z",
        "CorrelationId": call,
        "ApiVersion": "2026-06-01",
        "DeploymentName": "chat-prod",
        "ModelName": "gpt-4o-2024-08-06",
        "IsStreamCompletion": "false",
        "Region": "East US",
    }
    counts = {"PromptTokens": prompt, "CompletionTokens": completion, "TotalTokens": total}
    return {**own, **counts, "SequenceNumber": sequence, **more}


def written(file, rows, names=COLUMNS):
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, names)
        writer.writeheader()
        writer.writerows(rows)
    return file


def test_case_28_a_call_in_several_rows_is_the_largest_counts_once(tmp_path):
    rows = [
        row("c-1", 1200, 90, 1290, 0),
        row("c-2", 10, 5, 15, 0),
        row("c-1", 1200, 90, 1290, 1),
        row("c-1", "", "", "", 2),
        row("c-2", 9, 5, 14, 1),
    ]
    log = load(written(tmp_path / "a.csv", rows))
    assert counted(log) == (2, 0, 3, 0)
    found = {one["request_id"]: one for one in log.requests.to_dicts()}
    assert (found["c-1"]["input_tokens"], found["c-1"]["output_tokens"]) == (1200, 90)
    assert (found["c-2"]["input_tokens"], found["c-2"]["output_tokens"], found["c-2"]["flags"]) == (10, 5, None)
    assert [found[call]["source_line"] for call in ("c-1", "c-2")] == [2, 3]


def test_a_deployment_is_no_model_and_the_gateways_region_no_price_region(tmp_path):
    log = load(written(tmp_path / "a.csv", [row("c-1", 1000, 100, 1100), row("c-2", 1000, 100, 1100, ModelName="")]))
    found = {one["request_id"]: one for one in log.requests.to_dicts()}
    named, nameless = found["c-1"], found["c-2"]
    assert (named["model"], named["model_requested"], named["region"]) == ("gpt-4o-2024-08-06", "chat-prod", None)
    assert dict(named["tags"])["gateway_region"] == "East US"
    assert (nameless["model"], nameless["model_requested"]) == (None, "chat-prod")
    ledger = tf.attribute(log)
    # 1,000 x 2.5 + 100 x 10 per million
    assert ledger.total_pusd == 3_500_000_000
    assert ledger.coverage.unpriced_requests == 1


@pytest.mark.parametrize("kind", few(1, ["jsonl", "parquet"]))
def test_other_containers_say_the_same(tmp_path, kind):
    rows = [row("c-1", 1200, 90, 1290, 0), row("c-1", 1200, 90, 1290, 1)]
    plain = load(written(tmp_path / "a.csv", rows)).requests.drop("source_file", "source_line").to_dicts()
    file = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pl.DataFrame(rows).write_parquet(file)
    else:
        file.write_text("".join(json.dumps({**one, "IsStreamCompletion": False}) + "\n" for one in rows))
    assert load(file).requests.drop("source_file", "source_line").to_dicts() == plain


def test_times_as_the_portal_writes_them(tmp_path):
    rows = [{**row("c-1", 1, 1, 2), "TimeGenerated [UTC]": "11/2/2026, 2:00:00.123 PM"}]
    del rows[0]["TimeGenerated"]
    (found,) = load(written(tmp_path / "a.csv", rows, list(rows[0]))).requests.to_dicts()
    assert (str(found["ts"]), found["flags"]) == ("2026-11-02 14:00:00.123000", None)


def test_odd_rows_are_named(tmp_path):
    rows = [row("c-1", "many", 5, 10), row("c-2", "1,024", 5, 1029), row("", 7, 1, 8), row("", 7, 1, 8)]
    file = written(tmp_path / "a.csv", rows)
    with file.open("a") as handle:
        handle.write("2026-11-02T10:00:00Z,c-9,too,few\n")
    log = load(file)
    assert counted(log) == (4, 0, 0, 1)
    assert log.rejects["source_line"].to_list() == [6]
    found = sorted(table(log), key=lambda one: one["source_line"])
    assert [one["input_tokens"] for one in found] == [None, 1024, 7, 7]
    assert [one["flags"] for one in found] == [["bad_count"], ["coerced"], ["dup_suspect"], ["dup_suspect"]]


@pytest.mark.full
def test_reloading_changes_nothing(tmp_path):
    db = tmp_path / "a.duckdb"
    log = load(SAMPLES / "azure_apim_llm_log.csv", db=db)
    before = table(log)
    grown = tmp_path / "grown.csv"
    grown.write_text((SAMPLES / "azure_apim_llm_log.csv").read_text())
    with grown.open("a") as handle:
        handle.write("2026-11-02T10:00:01Z,c-2,2026-06-01,gpt4o-prod,gpt-4o-2024-08-06,true,1,1,2,0,East US\n")
    again = load(grown, db=db)
    assert counted(again)[:2] == (1, 1)
    assert [one for one in table(again) if one["request_id"] == "c-1"] == before


def test_only_the_governments_cloud_is_a_region_of_the_price(tmp_path):
    places = {"East US": None, "West Europe": None, "USGov Virginia": "us-gov", "usgovarizona": "us-gov", "": None}
    rows = [row(f"c{number}", 10, 5, 15, Region=place) for number, place in enumerate(places)]
    log = load(written(tmp_path / "a.csv", rows))
    assert log.requests.sort("request_id")["region"].to_list() == list(places.values())
    # the words are those of the price file
    book = tf.price_book()
    for word in ("usgovvirginia", "usgovarizona"):
        assert {meaning.region for meaning in book.regions["azure", word]} == {"us-gov"}
