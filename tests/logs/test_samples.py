"""Every sample becomes what `samples/expected_canonical.jsonl` says it must become."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenfold.logs import load

SAMPLES = Path(__file__).parents[1] / "samples"
# The expectations were written before the columns had their names (samples/README.md, last paragraph).
RENAMED = {
    "input_total": "input_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "cache_write_ext": "cache_write_long_tokens",
    "output_total": "output_tokens",
    "reasoning": "reasoning_tokens",
    "tier": "service_tier",
    "web_search_requests": "web_searches",
    "input_image": "input_image_tokens",
    "cost_logged": "cost_logged_usd",
}
# Said of a row, and not a column of its own.
NO_COLUMN = {"source", "note", "input_uncached", "is_batch", "child", "tool_use_prompt"}
# Where an expectation is not met, and why.
DEVIATIONS = {
    # nothing was written, so nothing was written for an hour
    "msg_S304": {"cache_write_ext"},
    "msg_S311": {"cache_write_ext"},
    # nothing was written, so nothing was written for an hour
    "aaaabbbb-1111": {"cache_write_ext"},
    # the price is the asked region's; where the model ran is the tag inference_region
    "ff4b6c63-0000-4431-93b8-06a817275900": {"served_region"},
}
# Lines of a sample that are no record: a session that is still being written ends in half a line.
BROKEN = {"claude_code_session.jsonl": 1}
READ = (
    "openai_chat.jsonl",
    "openai_responses.jsonl",
    "openai_batch_output.jsonl",
    "anthropic_messages.jsonl",
    "litellm_spendlogs.csv",
    "langfuse_observations.jsonl",
    "otlp_traces.jsonl",
    "openinference_spans.jsonl",
    "anthropic_stream_events.jsonl",
    "anthropic_batch_results.jsonl",
    "claude_code_session.jsonl",
    "codex_rollout.jsonl",
    "sglang_request_metrics.log",
    "gemini_generate_content.jsonl",
    "bedrock_invocation_log.jsonl",
    "azure_apim_llm_log.csv",
    "openrouter_generation.jsonl",
    "helicone_requests.jsonl",
    "kong_ai_proxy.log",
    "envoy_ai_gateway_access.log",
)
ROWS = {
    "openai_chat.jsonl": 5,
    "openai_responses.jsonl": 2,
    "openai_batch_output.jsonl": 3,
    "anthropic_messages.jsonl": 4,
    "litellm_spendlogs.csv": 4,
    "langfuse_observations.jsonl": 2,
    "otlp_traces.jsonl": 2,
    "openinference_spans.jsonl": 1,
    "anthropic_stream_events.jsonl": 1,
    "anthropic_batch_results.jsonl": 4,
    "claude_code_session.jsonl": 2,
    "codex_rollout.jsonl": 2,
    "sglang_request_metrics.log": 1,
    "gemini_generate_content.jsonl": 3,
    "bedrock_invocation_log.jsonl": 2,
    "azure_apim_llm_log.csv": 1,
    "openrouter_generation.jsonl": 1,
    "helicone_requests.jsonl": 1,
    "kong_ai_proxy.log": 1,
    "envoy_ai_gateway_access.log": 2,
}


def expected() -> list[dict]:
    lines = (SAMPLES / "expected_canonical.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["source"] in READ]
    # "span aaa19b7ec3c1b173": an answer without an id goes by its span's
    return [{**row, "request_id": row["request_id"] and row["request_id"].removeprefix("span ")} for row in rows]


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    log = load([SAMPLES / name for name in READ])
    assert log.summary["rejected"] == sum(BROKEN.get(name, 0) for name in READ)
    return log.requests.to_dicts()


@pytest.mark.parametrize(
    "right", expected(), ids=lambda right: f"{right['source']}:{right['request_id'] or right['status']}"
)
def test_row(rows, right):
    from_file = [row for row in rows if row["source_file"].endswith(right["source"])]
    same = [
        row
        for row in from_file
        if row["request_id"] == right["request_id"]
        and row["status"] == right["status"]
        and ("custom_id" not in right or row["custom_id"] == right["custom_id"])
    ]
    assert len(same) == 1
    row = same[0]
    for name, value in right.items():
        if name in NO_COLUMN | DEVIATIONS.get(right["request_id"], set()):
            continue
        if name == "flags":
            assert set(value) <= set(row["flags"])
        else:
            found = row[RENAMED.get(name, name)]
            assert (float(found) if name == "cost_logged" else found) == value, name
    if right.get("is_batch"):
        assert row["service_tier"] == "batch"
    if "child" in right:
        assert row["parent_id"] == right["request_id"].split("#")[0]
    if right["input_uncached"] is not None:
        cached = row["cache_read_tokens"] + (row["cache_write_tokens"] or 0)
        assert row["input_tokens"] - cached == right["input_uncached"]


@pytest.mark.parametrize("name", READ)
def test_number_of_rows(rows, name):
    assert len([row for row in rows if row["source_file"].endswith(name)]) == ROWS[name]


def find(rows, request_id):
    return next(row for row in rows if row["request_id"] == request_id)


def test_who_bills_and_what_is_billed(rows):
    # L2 reads a stored response back, L3 failed before any token, L4 was answered by the gateway's own cache.
    right = {
        "chatcmpl-L1": ("bedrock", True, False, "acompletion"),
        "resp_L2": ("openai", False, None, "retrieve"),
        "chatcmpl-L3": ("openai", False, None, "acompletion"),
        "chatcmpl-L4": ("openai", True, True, "acompletion"),
        "msg_S301": ("anthropic", True, None, "messages"),
        "resp_S102": ("openai", True, None, "responses"),
    }
    for request_id, values in right.items():
        row = find(rows, request_id)
        assert (row["provider"], row["is_billable"], row["gateway_cache_hit"], row["operation"]) == values, request_id
    failed = find(rows, "chatcmpl-L3")
    assert (failed["http_status"], failed["input_tokens"], failed["output_tokens"]) == (429, None, None)


def test_owners_times_and_details(rows):
    row = find(rows, "chatcmpl-S001")
    assert (row["team"], row["feature"], row["is_stream"], row["finish_reason"]) == (
        "search",
        "rag-answer",
        False,
        "stop",
    )
    assert str(row["ts"]) == "2026-11-02 00:00:00"  # 1793577600
    row = find(rows, "msg_S301")
    assert (row["user_id"], row["team"], str(row["ts"])) == ("u-19", "agents", "2026-11-02 10:00:00.250000")
    row = find(rows, "chatcmpl-L1")
    # 10:00:00.101 to 10:00:41.9, first token at 10:00:02.5
    assert (row["duration_ms"], row["ttft_ms"], row["team"], row["model_requested"]) == (
        41799.0,
        2399.0,
        "Search",
        "opus",
    )
    assert str(row["cost_logged_usd"]).rstrip("0") == "4.5E-7" or float(row["cost_logged_usd"]) == 4.5e-7
    assert row["flags"] is None
    assert find(rows, "resp_S102")["finish_reason"] == "length"


def test_litellm_payload():
    log = load(SAMPLES / "litellm_standard_logging_payload.jsonl")
    (row,) = log.requests.to_dicts()
    assert log.summary["by_format"] == {"litellm_payload": 1}
    # 9844 of which 9842 read; a write cost is logged but no write count, so writes are unknown and not none.
    counts = (row["input_tokens"], row["cache_read_tokens"], row["cache_write_tokens"], row["output_tokens"])
    assert counts == (9844, 9842, None, 120)
    assert (row["provider"], row["user_id"], row["team"]) == ("anthropic", "cust-42", "team-search")
    assert (row["is_stream"], row["duration_ms"], row["ttft_ms"]) == (True, 3750.0, 500.0)
    assert (str(row["ts"]), row["gateway_cache_hit"]) == ("2026-11-02 00:00:00.500000", None)


def test_nasty_lines_are_quarantined_repaired_or_flagged_and_never_lost():
    log = load(SAMPLES / "nasty.jsonl")
    summary = log.summary
    # 14 physical lines, 1 blank: 8 records, 1 exact repeat, 4 that are no record.
    assert (summary["requests"], summary["duplicates"], summary["merged"], summary["rejected"]) == (8, 1, 0, 4)
    rows = {row["request_id"]: row for row in log.requests.to_dicts()}
    lines = {name: row["source_line"] for name, row in rows.items()}
    assert lines == {"n1": 1, "n2": 3, "n3": 4, "n4": 5, "n5": 6, "n6": 7, "n7": 9, "n8": 13}
    counts = {name: (row["input_tokens"], row["cache_read_tokens"], row["output_tokens"]) for name, row in rows.items()}
    assert counts == {
        "n1": (10, 0, 5),
        "n2": (1024, None, 5),  # "1,024" and 5.0; details are missing and 1,024 tokens could have been cached
        "n3": (None, None, 5),  # NaN
        "n4": (None, None, 5),  # 150 cached of 100
        "n5": (1, 0, 1),
        "n6": (1, 0, 1),
        "n7": (7, 0, 1),
        "n8": (1000, 0, None),  # 1e3 and -5
    }
    flags = {name: set(row["flags"]) - {"details_missing", "ts_missing"} for name, row in rows.items()}
    assert flags == {
        "n1": set(),
        "n2": {"coerced"},
        "n3": {"bad_count"},
        "n4": {"cache_gt_input"},
        "n5": set(),
        "n6": {"repaired"},
        "n7": {"repaired"},
        "n8": {"coerced", "bad_count"},
    }
    refused = {row["source_line"]: row["reason"] for row in log.rejects.to_dicts()}
    assert sorted(refused) == [8, 10, 11, 14]
    assert "UTF-8" in refused[8]
    assert "list" in refused[10]
    assert "number" in refused[11]
    assert "JSON" in refused[14]
