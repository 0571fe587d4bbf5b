"""Every public import bug of the page of import cases: its input, and what a right load makes of it."""

from __future__ import annotations

import csv
import json
import os
import re
from decimal import Decimal
from pathlib import Path

import pytest
from log_files import chat, counted, write

import tenfold as tf
from tenfold.logs import load

ROOT = Path(__file__).parents[2]
PAGE = Path(os.environ.get("TENFOLD_REAL_DATA", ROOT.parent / "shared" / "data")).parent / "cases" / "import.md"
LOGS, HERE = "tests/logs", "tests/cases/test_import_cases.py"
# Case -> the tests that hold it. The three of the last paragraph go by their sources.
TESTS = {
    "1": (f"{LOGS}/test_agents.py::test_import_1_snapshots_of_a_message_are_one_request",),
    "2": (f"{LOGS}/test_agents.py::test_import_2_without_request_ids_the_messages_id_is_the_key",),
    "4": (f"{LOGS}/test_agents.py::test_import_4_a_sidechain_that_replays_is_no_request_and_one_of_its_own_is",),
    "5": (
        f"{LOGS}/test_agents.py::test_import_5_a_resumed_thread_counts_what_the_total_grew_by",
        f"{LOGS}/test_agents.py::test_b080_a_fork_counts_only_what_is_its_own",
    ),
    "7": (
        f"{HERE}::test_import_7_an_id_that_two_calls_share_hides_neither",
        f"{HERE}::test_import_7_reading_an_answer_back_is_no_new_spend",
        f"{LOGS}/test_formats.py::test_spend_log_ids_that_are_reused_stay_apart",
    ),
    "8": (f"{HERE}::test_import_8_days_sum_to_their_range_in_every_zone",),
    "10": (
        f"{HERE}::test_import_10_all_shapes_of_time_in_one_field",
        f"{LOGS}/test_formats.py::test_times_in_every_shape",
    ),
    "11": (f"{HERE}::test_import_11_a_stream_without_usage_is_unknown_and_never_free",),
    "13": (f"{HERE}::test_import_13_missing_details_leave_the_totals",),
    "14": (
        f"{HERE}::test_import_14_each_source_says_what_its_input_includes",
        f"{LOGS}/test_spans.py::test_import_14_raw_anthropic_counts_are_flagged_and_not_clamped",
    ),
    "16": (f"{HERE}::test_import_16_thoughts_are_told_by_the_total",),
    "17": (f"{HERE}::test_import_17_written_tokens_are_priced_as_written",),
    "19": (f"{HERE}::test_import_19_an_answer_of_the_gateways_cache_is_not_billed",),
    "20": (f"{LOGS}/test_buckets.py::test_import_20_openai_is_in_dollars_and_anthropic_in_cents",),
    "22": (f"{HERE}::test_import_22_small_costs_are_kept_to_their_last_digit",),
    "23": (
        f"{LOGS}/test_loading.py::test_a_key_that_comes_late_is_found",
        f"{HERE}::test_import_23_a_count_that_comes_late_is_found",
    ),
    "25": (f"{HERE}::test_import_25_lines_of_no_text_or_no_object_stop_nothing",),
    "26": (f"{HERE}::test_import_26_a_separator_in_a_text_ends_no_line",),
    "28": (
        f"{LOGS}/test_buckets.py::test_import_28_dates_are_proven_by_their_periods",
        f"{LOGS}/test_buckets.py::test_import_28_a_date_that_nothing_proves_names_its_column",
        f"{LOGS}/test_azure_apim.py::test_case_28_a_call_in_several_rows_is_the_largest_counts_once",
        f"{HERE}::test_import_28_a_header_of_the_first_rows_keys_leaves_the_rest_unknown",
    ),
    "CloudZero": (f"{HERE}::test_a_failed_call_that_cost_tokens_does_not_vanish",),
    "FOCUS": (f"{HERE}::test_requests_are_no_tokens_in_a_focus_file",),
    "rollup": (
        f"{LOGS}/test_langfuse.py::test_rollups_do_not_count",
        f"{LOGS}/test_langfuse.py::test_real_traces",
        f"{LOGS}/test_spans.py::test_b082_an_agents_sum_does_not_count_beside_its_calls",
    ),
}


def test_every_case_has_a_test_that_is_there():
    for case, tests in TESTS.items():
        for test in tests:
            file, name = test.split("::")
            assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), (case, test)


def test_every_case_of_the_page_is_listed():
    if not PAGE.is_file():
        pytest.skip(f"no {PAGE}: set TENFOLD_REAL_DATA to the data folder beside it")
    text = PAGE.read_text(encoding="utf-8")
    printed = re.findall(r"^(\d+)\. \*\*", text, re.MULTILINE)
    assert len(printed) == len(set(printed)) >= 19
    assert sorted(printed, key=int) == [case for case in TESTS if case.isdecimal()]
    also = text.split("Also worth a test:")[1]
    assert all(case in also for case in TESTS if not case.isdecimal())


def spend(number: int, **more: object) -> dict[str, object]:
    base = {"request_id": f"r{number}", "call_type": "acompletion", "spend": 0.5, "custom_llm_provider": "openai"}
    counts = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    times = {"startTime": f"2026-11-02 10:00:{number:02d}", "endTime": f"2026-11-02 10:00:{number:02d}"}
    return {**base, **counts, **times, "model": "gpt-4o", "status": "success", "metadata": {}, **more}


def test_import_7_an_id_that_two_calls_share_hides_neither(tmp_path):
    rows = [
        spend(1, request_id="chatcmpl-213", model="llama3", prompt_tokens=11, total_tokens=21),
        spend(2, request_id="chatcmpl-213", model="qwen2", prompt_tokens=700, total_tokens=710),
        spend(3, request_id="None", prompt_tokens=5, total_tokens=15),
        spend(3, request_id="None", prompt_tokens=6, total_tokens=16),
        spend(4, request_id=None),
    ]
    log = load(write(tmp_path / "a.jsonl", rows), db=tmp_path / "a.duckdb")
    assert counted(log) == (5, 0, 0, 0)
    assert log.requests["input_tokens"].sum() == 11 + 700 + 5 + 6 + 100
    # the same ids in an overlapping export are the same calls; those without one cannot be told, and are flagged
    again = load(write(tmp_path / "b.jsonl", [*rows[:2], spend(9)]), db=tmp_path / "a.duckdb")
    assert counted(again) == (1, 2, 0, 0)


@pytest.mark.full
def test_import_7_reading_an_answer_back_is_no_new_spend(tmp_path):
    rows = [
        spend(1, request_id="resp_1", call_type="aresponses", spend=0.0023),
        spend(2, request_id="resp_1", call_type="aget_responses", spend=0.0023),
        spend(9, request_id="resp_1", call_type="aget_responses", spend=0.0023),
        spend(3, request_id="b_1", call_type="aretrieve_batch"),
        spend(4, request_id="b_1", call_type="aretrieve_batch"),
        # one call that the proxy logged twice, under its own call id
        spend(5, request_id="resp_2", litellm_call_id="c5", call_type="aresponses"),
        spend(5, request_id="chatcmpl-2", litellm_call_id="c5", call_type="aresponses"),
    ]
    log = load(write(tmp_path / "a.jsonl", rows))
    billed = log.requests.filter(log.requests["is_billable"])
    assert sorted(billed["operation"].to_list()) == ["aresponses", "aresponses"]
    # 2 x (100 x 2.5 + 10 x 10) USD per million
    assert tf.attribute(log).total_pusd == 2 * 350_000_000


@pytest.mark.full
def test_import_8_days_sum_to_their_range_in_every_zone(tmp_path):
    rows = [chat(n, created=1793577600 + n * 5000, model="gpt-4o", prompt=100 + n) for n in range(60)]
    log = load(write(tmp_path / "a.jsonl", rows))
    whole = tf.attribute(log).total_pusd
    for zone in ("UTC", "Asia/Shanghai", "America/Los_Angeles", "Asia/Kolkata", "Pacific/Chatham"):
        ledger = tf.attribute(log, zone=zone)
        days = ledger.composition(by=["day"])
        assert len(days.frame) >= 4
        assert sum(int(cost) for cost in days.frame["cost_pusd"]) == days.total_pusd == whole, zone


@pytest.mark.full
def test_import_10_all_shapes_of_time_in_one_field(tmp_path):
    shapes = ["2026-01-09T10:00:00.000Z", "2026-01-09T10:00:00+05:30", "2026-01-09T10:00:00", 1767952800, 1767952800123]
    rows = [chat(n, _log={"ts": ts}) for n, ts in enumerate(shapes)]
    found = load(write(tmp_path / "a.jsonl", rows), zone="Europe/Berlin").requests.sort("source_line")
    assert [str(ts) for ts in found["ts"]] == [
        *("2026-01-09 10:00:00", "2026-01-09 04:30:00", "2026-01-09 09:00:00", "2026-01-09 10:00:00"),
        "2026-01-09 10:00:00.123000",
    ]
    # without a declared zone the naive one is taken for UTC, and says so
    found = load(write(tmp_path / "b.jsonl", rows)).requests.sort("source_line")
    assert [flags == ["naive_ts"] for flags in found["flags"].to_list()] == [False, False, True, False, False]


def test_import_11_a_stream_without_usage_is_unknown_and_never_free(tmp_path):
    chunk = chat(1, object="chat.completion.chunk", usage=None, choices=[], model="gpt-4o")
    log = load(write(tmp_path / "a.jsonl", [chunk, chat(2, model="gpt-4o")]))
    row = next(row for row in log.requests.to_dicts() if row["request_id"] == "chatcmpl-1")
    assert (row["input_tokens"], row["output_tokens"]) == (None, None)
    assert "stream_without_usage" in row["flags"]
    ledger = tf.attribute(log)
    assert ledger.coverage.requests_ratio == 0.5
    assert sorted(ledger.frame()["price_status"]) == ["priced", "usage_missing"]
    assert ledger.frame().filter(ledger.frame()["price_status"] == "usage_missing")["output_pusd"].to_list() == [None]


def test_import_13_missing_details_leave_the_totals(tmp_path):
    whole = {"prompt_tokens": 5000, "completion_tokens": 7, "total_tokens": 5007}
    null = {"prompt_tokens_details": None, "completion_tokens_details": None}
    usages = [whole, {**whole, **null}, {**whole, "completion_tokens": None}]
    rows = load(write(tmp_path / "a.jsonl", [chat(n, usage=usage) for n, usage in enumerate(usages)])).requests
    for row, output in zip(rows.sort("source_line").to_dicts(), (7, 7, None), strict=True):
        assert (row["input_tokens"], row["output_tokens"]) == (5000, output)
        assert (row["cache_read_tokens"], row["cache_write_tokens"], row["reasoning_tokens"]) == (None, None, None)


def test_import_14_each_source_says_what_its_input_includes(tmp_path):
    anthropic = {"input_tokens": 5, "cache_read_input_tokens": 128_955, "cache_creation_input_tokens": 1253}
    message = {"id": "m", "type": "message", "model": "claude-opus-5-5", "usage": {**anthropic, "output_tokens": 1}}
    span = {
        "context": {"trace_id": "t", "span_id": "s"}, "start_time": "2026-11-02T10:00:00Z",
        "attributes": {
            "gen_ai.operation.name": "chat", "gen_ai.system": "anthropic", "gen_ai.usage.input_tokens": 130_213,
            "gen_ai.usage.cache_read.input_tokens": 128_955, "gen_ai.usage.cache_write.input_tokens": 1253,
            "gen_ai.usage.output_tokens": 1,
        },
    }  # fmt: skip
    details = {"cached_tokens": 128_955, "cache_creation_tokens": 1253}
    usage = {"prompt_tokens": 130_213, "completion_tokens": 1, "prompt_tokens_details": details}
    usage |= {"cache_read_input_tokens": 128_955, "cache_creation_input_tokens": 1253}
    proxied = spend(
        1, prompt_tokens=130_213, completion_tokens=1, total_tokens=130_214, metadata={"usage_object": usage}
    )
    # 5 of which 128,955 were cached is no count: unknown and flagged, neither below 0 nor clamped to it
    chats = [chat(1, prompt=17_903, cached=17_817), chat(2, prompt=5, cached=128_955)]
    lines = {"m": [message], "s": [span], "p": [proxied], "c": chats}
    log = load([write(tmp_path / f"{name}.jsonl", rows) for name, rows in lines.items()])
    found = {Path(row["source_file"]).stem + str(row["source_line"]): row for row in log.requests.to_dicts()}
    for place in ("m1", "s1", "p1"):
        counts = tuple(found[place][f"{name}_tokens"] for name in ("input", "cache_read", "cache_write"))
        assert counts == (130_213, 128_955, 1253), place
    assert found["c1"]["input_tokens"] - found["c1"]["cache_read_tokens"] == 86
    assert (found["c2"]["input_tokens"], found["c2"]["cache_read_tokens"]) == (None, None)
    assert "cache_gt_input" in found["c2"]["flags"]


def test_import_16_thoughts_are_told_by_the_total(tmp_path):
    cases = [
        # prompt, candidates, thoughts, total; the whole output
        (7477, 2060, 1939, 11_476, 3999),
        (20, 100, 10, 130, 110),
        (15, 359, 661, 1035, 1020),
        (15, 1020, 661, 1035, 1020),  # candidates that already include them
    ]
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")
    lines = [
        {"responseId": f"g{n}", "modelVersion": "gemini-3-pro", "usageMetadata": dict(zip(names, case, strict=False))}
        for n, case in enumerate(cases)
    ]
    rows = load(write(tmp_path / "a.jsonl", lines)).requests.sort("source_line").to_dicts()
    for row, (prompt, _, thoughts, _, output) in zip(rows, cases, strict=True):
        assert (row["input_tokens"], row["output_tokens"], row["reasoning_tokens"]) == (prompt, output, thoughts)
        assert "total_mismatch" not in (row["flags"] or ())


@pytest.mark.full
def test_import_17_written_tokens_are_priced_as_written(tmp_path):
    details = {"cached_tokens": 0, "cache_write_tokens": 8820}
    usage = {"prompt_tokens": 8823, "completion_tokens": 0, "total_tokens": 8823, "prompt_tokens_details": details}
    log = load(write(tmp_path / "a.jsonl", [chat(1, usage=usage, model="gpt-5.6-luna")]))
    (row,) = log.requests.to_dicts()
    assert (row["input_tokens"], row["cache_write_tokens"]) == (8823, 8820)
    # 3 x 0.20 + 8,820 x 0.25 USD per million
    assert tf.attribute(log).total_pusd == 3 * 200_000 + 8820 * 250_000


def test_import_19_an_answer_of_the_gateways_cache_is_not_billed(tmp_path):
    rows = [spend(n, cache_hit=hit, spend=0) for n, hit in enumerate(["True", "False", "", None])]
    log = load(write(tmp_path / "a.jsonl", rows))
    hits = dict(log.requests.select("request_id", "gateway_cache_hit").iter_rows())
    assert hits == {"r0": True, "r1": False, "r2": None, "r3": None}
    # three calls of 100 in and 10 out
    assert tf.attribute(log).total_pusd == 3 * 350_000_000


@pytest.mark.full
def test_import_22_small_costs_are_kept_to_their_last_digit(tmp_path):
    counts = {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
    log = load(write(tmp_path / "a.jsonl", [spend(n, spend=4.5e-7, model="gpt-4.1-mini", **counts) for n in range(40)]))
    assert {Decimal(str(cost)) for cost in log.requests["cost_logged_usd"]} == {Decimal("4.5e-7")}
    # 3 tokens at 0.40 USD per million each; 40 of them are not 40 times nothing
    ledger = tf.attribute(log)
    assert set(ledger.frame()["uncached_input_pusd"]) == {1_200_000}
    assert ledger.total_pusd == 40 * 1_200_000


def test_import_23_a_count_that_comes_late_is_found(tmp_path):
    row = {"id": "a", "type": "message", "model": "claude-haiku-5", "stop_reason": "end_turn"}
    rows = [{**row, "id": f"a{n}", "usage": {"input_tokens": 1, "output_tokens": 1}} for n in range(1000)]
    late = {"output_tokens": 1, "input_tokens": 1, "cache_creation_input_tokens": 4}
    log = load(write(tmp_path / "a.jsonl", [*rows, {**row, "id": "b", "usage": late}]))
    assert log.requests["cache_write_tokens"].sum() == 4
    assert log.requests["input_tokens"].sum() == 1000 + 5


def test_import_25_lines_of_no_text_or_no_object_stop_nothing(tmp_path):
    whole = [json.dumps(chat(n)).encode() for n in range(3)]
    control = whole[2].replace(b'"gpt-5"', b'"gpt\x1b-5"')
    lines = [whole[0], b"\xff", b"[]", b"42", b"\0\0\0" + whole[1], b"\0\0\0\0", control]
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"\n".join(lines) + b"\n")
    log = load(file)
    assert (log.summary["requests"], log.summary["rejected"]) == (2, 5)
    assert sorted(log.rejects["source_line"].to_list()) == [2, 3, 4, 6, 7]
    assert {row["request_id"]: row["flags"] for row in log.requests.to_dicts()} == {
        "chatcmpl-0": None,
        "chatcmpl-1": ["repaired"],
    }


def test_import_26_a_separator_in_a_text_ends_no_line(tmp_path):
    texts = ["a\u2028b\u2029c\u0085d", "half \ud83d pair", "plain"]
    rows = [json.dumps(chat(n, note=text), ensure_ascii="\ud83d" in text) for n, text in enumerate(texts)]
    file = tmp_path / "a.jsonl"
    file.write_bytes(("\n".join(rows) + "\n").encode())
    log = load(file)
    assert counted(log) == (3, 0, 0, 0)
    assert log.requests.sort("source_line")["request_id"].to_list() == [f"chatcmpl-{n}" for n in range(3)]


def test_import_28_a_header_of_the_first_rows_keys_leaves_the_rest_unknown(tmp_path):
    # the first observation had no cost and no times of its first token, so no column bears them
    header = ["id", "traceId", "type", "startTime", "parentObservationId", "model", "usageDetails"]
    usage = json.dumps({"input": 10, "output": 2, "total": 12})
    file = tmp_path / "a.csv"
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, quoting=csv.QUOTE_ALL)
        writer.writerow(header)
        writer.writerow(["o1", "t", "GENERATION", "2026-11-02T10:00:00Z", "", "gpt-4o", usage])
    (row,) = load(file).requests.to_dicts()
    assert (row["input_tokens"], row["output_tokens"]) == (10, 2)
    assert (row["cost_logged_usd"], row["ttft_ms"], row["duration_ms"]) == (None, None, None)


def test_a_failed_call_that_cost_tokens_does_not_vanish(tmp_path):
    rows = [
        spend(1, status="failure"),
        spend(2, status="failure", prompt_tokens=0, completion_tokens=0, total_tokens=0),
    ]
    log = load(write(tmp_path / "a.jsonl", rows))
    assert counted(log) == (2, 0, 0, 0)
    assert tf.attribute(log).total_pusd == 350_000_000


def test_requests_are_no_tokens_in_a_focus_file(tmp_path):
    sample = ROOT / "tests" / "samples" / "focus_1_2_llm.csv"
    with sample.open(newline="", encoding="utf-8") as handle:
        reader = csv.DictReader(handle)
        names, rows = list(reader.fieldnames or ()), list(reader)
    one_day = {"BillingPeriodStart": rows[0]["ChargePeriodStart"], "BillingPeriodEnd": rows[0]["ChargePeriodEnd"]}
    rows = [{**row, **one_day, "ConsumedQuantity": "42", "ConsumedUnit": "Requests", "PricingUnit": ""} for row in rows]
    file = tmp_path / "a.csv"
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, names)
        writer.writeheader()
        writer.writerows(rows)
    log = load(file)
    assert log.summary["requests"] == 0
    tokens = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    assert all(row[name] in (None, 0) for row in log.buckets.to_dicts() for name in tokens)
    billed = [row["amount_usd"] for row in log.buckets.to_dicts() if row["amount_kind"] == "billed"]
    assert sum(billed) == sum(Decimal(row["BilledCost"]) for row in rows)
