"""Logs of gateways: Helicone, Envoy AI Gateway, Kong, Portkey."""

from __future__ import annotations

import csv
import json
from decimal import Decimal

import pytest
from log_files import SAMPLES, chat, counted, table, write
from quick import few

import tenfold as tf
from tenfold.errors import LogFormatError
from tenfold.logs import load

AT = "2026-11-02T10:00:00.000Z"


def one(folder, row, **options):
    (found,) = load(write(folder / "a.jsonl", [row]), **options).requests.to_dicts()
    return found


def helicone(number, **more):
    return {
        "request_id": f"h-{number}", "request_created_at": AT, "response_created_at": "2026-11-02T10:00:01.400Z",
        "response_status": 200, "request_model": "gpt-4o", "response_model": "gpt-4o-2024-08-06", "provider": "OPENAI",
        "request_path": "/v1/chat/completions", "total_tokens": 1100, "prompt_tokens": 1000, "completion_tokens": 100,
        "prompt_cache_read_tokens": 0, "prompt_cache_write_tokens": 0, "costUSD": 0.0035, **more,
    }  # fmt: skip


def envoy(number, **more):
    return {
        "start_time": AT, "duration": 1526, "method": "POST", "response_code": 200, "genai_model_name": "gpt-4o",
        "genai_model_name_override": None, "genai_backend_name": "default/openai/0", "genai_tokens_input": 1000,
        "genai_tokens_output": 100, "genai_tokens_total": 1100, "x-request-id": f"e-{number}", **more,
    }  # fmt: skip


def kong(number, *, usage=None, meta=None, **more):
    counts = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "cost": 0.0035}
    about = {"provider_name": "openai", "request_model": "gpt-4o", "response_model": "gpt-4o-2024-08-06"}
    block = {"meta": {**about, **(meta or {})}, "usage": counts if usage is None else usage}
    return {
        "started_at": 1793577600123, "request": {"id": f"k-{number}"}, "response": {"status": 200},
        "latencies": {"request": 900}, "ai": {"proxy": block}, **more,
    }  # fmt: skip


def portkey(number, **more):
    return {
        "id": f"p-{number}", "trace_id": "t-1", "created_at": AT, "is_success": 1, "ai_org": "openai",
        "ai_model": "gpt-4o", "req_units": 1000, "res_units": 100, "total_units": 1100, "cost": 0.35,
        "cost_currency": "USD", "response_time": 1400, "response_status_code": 200, "cache_status": "MISS", **more,
    }  # fmt: skip


FORMATS = {"helicone": helicone, "envoy_ai_gateway": envoy, "kong_ai_proxy": kong, "portkey": portkey}


@pytest.mark.parametrize("name", few(2, FORMATS))
def test_one_call_costs_the_same_through_every_gateway(tmp_path, name):
    log = load(write(tmp_path / "a.jsonl", [FORMATS[name](1)]))
    (row,) = log.requests.to_dicts()
    assert row["source_format"] == name
    assert (row["provider"], row["input_tokens"], row["output_tokens"], row["flags"]) == ("openai", 1000, 100, None)
    # 1,000 x 2.5 + 100 x 10 per million
    assert tf.attribute(log).total_pusd == 3_500_000_000
    if name != "envoy_ai_gateway":
        assert row["cost_logged_usd"] == Decimal("0.0035")


@pytest.mark.parametrize(
    "name", ["helicone", *(pytest.param(name, marks=pytest.mark.full) for name in FORMATS if name != "helicone")]
)
def test_repeats_reloads_and_broken_lines(tmp_path, name):
    make = FORMATS[name]
    file = write(tmp_path / "a.jsonl", [make(1), make(1), make(2), chat(7)])
    with file.open("a") as handle:
        handle.write(json.dumps(make(3))[:-20] + "\n[]\n")
    log = load(file, db=tmp_path / "a.duckdb")
    assert counted(log) == (2, 1, 0, 3)
    assert sorted(log.rejects["source_line"].to_list()) == [4, 5, 6]
    before = table(log)
    again = load(write(tmp_path / "b.jsonl", [make(2), make(3)]), db=tmp_path / "a.duckdb")
    assert counted(again)[:2] == (1, 1)
    assert [row for row in table(again) if not row["request_id"].endswith("3")] == before


@pytest.mark.parametrize(
    ("name", "more"),
    few(
        1,
        [
            ("helicone", {"prompt_tokens": 2.5}),
            ("envoy_ai_gateway", {"genai_tokens_input": -1}),
            ("kong_ai_proxy", {"usage": {"prompt_tokens": True, "completion_tokens": 1}}),
            ("portkey", {"req_units": "many"}),
        ],
    ),
)
def test_what_is_no_count_is_flagged(tmp_path, name, more):
    row = one(tmp_path, FORMATS[name](1, **more))
    assert row["input_tokens"] is None
    assert "bad_count" in row["flags"]


def as_csv(file, rows):
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()})
    return file


@pytest.mark.parametrize(
    ("name", "more"),
    few(
        1,
        [
            ("helicone", {"properties": {"team": "search"}, "cache_reference_id": None}),
            (
                "portkey",
                {
                    "metadata": {"team": "search"},
                    "response": {"usage": {"prompt_tokens": 1000, "completion_tokens": 100}},
                },
            ),
        ],
    ),
)
def test_csv_says_the_same(tmp_path, name, more):
    rows = [FORMATS[name](1, **more)]
    plain = load(write(tmp_path / "a.jsonl", rows)).requests.drop("source_file", "source_line").to_dicts()
    assert plain[0]["team"] == "search"
    found = load(as_csv(tmp_path / "a.csv", rows)).requests.drop("source_file", "source_line").to_dicts()
    assert found == plain


def test_text_in_a_csv_cell_that_should_be_json_loses_tags_and_nothing_else(tmp_path):
    row = load(as_csv(tmp_path / "a.csv", [helicone(1, properties="{not json")])).requests.to_dicts()[0]
    assert (row["tags"], row["input_tokens"]) == (None, 1000)


def test_helicone_counts_beside_the_cache_are_told_by_the_total(tmp_path):
    # 5 + 900 + 95 + 100 = 1,100
    counts = {"prompt_tokens": 5, "prompt_cache_read_tokens": 900, "prompt_cache_write_tokens": 95}
    row = one(tmp_path, helicone(1, provider="ANTHROPIC", **counts))
    assert (row["input_tokens"], row["cache_read_tokens"], row["cache_write_tokens"]) == (1000, 900, 95)
    assert row["flags"] == ["convention_by_total"]
    inside = one(tmp_path, helicone(2, prompt_cache_read_tokens=900))
    assert (inside["input_tokens"], inside["flags"]) == (1000, None)


def test_helicone_outcomes_and_its_own_cache(tmp_path):
    hit = "0f8fad5b-d9cb-469f-a165-70867728950e"
    rows = [
        helicone(1, response_status=-3),
        helicone(2, response_status=429, prompt_tokens=None, completion_tokens=None, total_tokens=None),
        helicone(3, cache_reference_id=hit),
        helicone(4, cache_reference_id="00000000-0000-0000-0000-000000000000"),
        helicone(5, provider="X", response_model="grok-4"),
    ]
    log = load(write(tmp_path / "a.jsonl", rows))
    found = log.requests.sort("request_id").to_dicts()
    assert [row["status"] for row in found] == ["cancelled", "error", "success", "success", "success"]
    assert [row["is_billable"] for row in found] == [True, False, True, True, True]
    assert [row["gateway_cache_hit"] for row in found] == [None, None, True, None, None]
    assert found[4]["provider"] == "xai"
    # a hit costs nothing
    assert tf.attribute(log).coverage.not_billed_requests == 2


def test_envoy_lines_of_other_routes_are_left_out(tmp_path):
    other = {"start_time": AT, "method": "GET", "response_code": 200, "x-request-id": "w-1", "genai_model_name": "-"}
    log = load(write(tmp_path / "a.log", [envoy(1), other]))
    assert (log.summary["requests"], log.summary["rejected"], log.summary["ignored"]) == (1, 0, 1)


@pytest.mark.full
def test_envoy_models_backends_and_dashes(tmp_path):
    row = one(tmp_path, envoy(1, genai_model_name_override="gpt-4o-2024-08-06", genai_backend_name="prod/my-azure/0"))
    assert (row["model"], row["model_requested"]) == ("gpt-4o-2024-08-06", "gpt-4o")
    # a backend is the operator's own name: it says no provider unless it is one's name
    assert (row["provider"], dict(row["tags"])) == (None, {"backend": "prod/my-azure/0"})
    set_by_user = one(tmp_path, envoy(1, genai_backend_name="prod/my-azure/0"), set={"provider": "azure"})
    assert set_by_user["provider"] == "azure"
    row = one(
        tmp_path, envoy(2, genai_tokens_input="-", genai_tokens_output="-", genai_tokens_total="-", response_code=504)
    )
    assert (row["input_tokens"], row["status"], row["is_billable"]) == (None, "timeout", False)
    old = {
        "start_time": AT,
        "response_code": 200,
        "llm_input_token": "15",
        "llm_output_token": "7",
        "genai_model_name": "m",
    }
    row = one(tmp_path, old)
    assert (row["input_tokens"], row["output_tokens"]) == (15, 7)


def test_kong_plugins_that_call_models_beside_the_proxy_count_apart(tmp_path):
    row = kong(1)
    about = {"provider_name": "openai", "request_model": "gpt-4o-mini"}
    row["ai"]["ai-request-transformer"] = {"meta": about, "usage": {"prompt_tokens": 30, "completion_tokens": 4}}
    web = {"started_at": 1793577600123, "request": {"id": "w"}, "response": {"status": 200}}
    log = load(write(tmp_path / "a.log", [row, web]))
    assert (log.summary["requests"], log.summary["ignored"], log.summary["rejected"]) == (2, 1, 0)
    found = log.requests.sort("request_id").to_dicts()
    assert [one["request_id"] for one in found] == ["k-1", "k-1#ai-request-transformer"]
    assert [one["input_tokens"] for one in found] == [1000, 30]
    assert [one["parent_id"] for one in found] == [None, "k-1"]
    assert {one["source_line"] for one in found} == {1}


@pytest.mark.full
def test_kong_details_cache_and_failures(tmp_path):
    details = {
        "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "time_to_first_token": 140,
        "prompt_tokens_details": {"cached_tokens": 600}, "completion_tokens_details": {"reasoning_tokens": 40},
    }  # fmt: skip
    row = one(tmp_path, kong(1, usage=details, meta={"llm_latency": 880, "request_mode": "stream"}))
    assert (row["cache_read_tokens"], row["reasoning_tokens"], row["ttft_ms"]) == (600, 40, 140.0)
    assert (row["duration_ms"], row["is_stream"]) == (880.0, True)
    failed = one(tmp_path, kong(2, usage={}, response={"status": 502}))
    assert (failed["status"], failed["is_billable"], failed["input_tokens"]) == ("error", False, None)
    cached = kong(3)
    cached["ai"]["proxy"]["cache"] = {"cache_status": "Hit"}
    assert one(tmp_path, cached)["gateway_cache_hit"] is True


def test_case_20_portkeys_cost_is_in_cents(tmp_path):
    assert one(tmp_path, portkey(1, cost=123.78912))["cost_logged_usd"] == Decimal("1.2378912")
    assert one(tmp_path, portkey(1, cost=1, cost_currency="EUR"))["cost_logged_usd"] is None


def test_portkey_takes_the_responses_own_usage_where_it_is_there(tmp_path):
    openai = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 600}}
    row = one(tmp_path, portkey(1, response={"body": {"model": "gpt-4o-2024-08-06", "usage": openai}}))
    assert (row["input_tokens"], row["cache_read_tokens"], row["model"]) == (1000, 600, "gpt-4o-2024-08-06")
    # Anthropic's cache lies beside its prompt: 5 + 900 + 95 + 100 = 1,100
    beside = {"prompt_tokens": 5, "completion_tokens": 100, "total_tokens": 1100}
    beside |= {"cache_read_input_tokens": 900, "cache_creation_input_tokens": 95}
    row = one(tmp_path, portkey(2, ai_org="anthropic", response=json.dumps({"usage": beside})))
    assert (row["input_tokens"], row["cache_read_tokens"], row["flags"]) == (1000, 900, ["convention_by_total"])
    row = one(tmp_path, portkey(3, **{"response.body": {"usage": None}}))
    assert (row["input_tokens"], row["cache_read_tokens"]) == (1000, None)


def test_portkey_outcomes(tmp_path):
    rows = [
        portkey(1, is_success=0, response_status_code=500, req_units=0, res_units=0, total_units=0),
        portkey(2, cache_status="SEMANTIC HIT"),
        portkey(3, ai_org="vertex-ai", retry_success_count=2, stream_mode="TRUE"),
    ]
    found = load(write(tmp_path / "a.jsonl", rows)).requests.sort("request_id").to_dicts()
    assert [(row["status"], row["is_billable"]) for row in found] == [
        ("error", False),
        ("success", True),
        ("success", True),
    ]
    assert [row["gateway_cache_hit"] for row in found] == [False, True, False]
    assert (found[2]["provider"], found[2]["attempt"], found[2]["is_stream"]) == ("vertex", 2, True)


@pytest.mark.full
def test_tries_behind_a_gateway_are_counted_from_zero(tmp_path):
    envoys = [envoy(number, upstream_request_attempt_count=count) for number, count in enumerate([0, 1, 3, "-"])]
    log = load(write(tmp_path / "a.jsonl", envoys))
    assert log.requests.sort("request_id")["attempt"].to_list() == [0, 0, 2, None]
    kongs = [kong(1, tries=[{"port": 443}, {"port": 443}]), kong(2, tries=[]), kong(3)]
    log = load(write(tmp_path / "a.jsonl", kongs))
    assert log.requests.sort("request_id")["attempt"].to_list() == [1, None, None]


OWN = {
    "gemini_generate_content.jsonl": "gemini",
    "bedrock_invocation_log.jsonl": "bedrock_log",
    "azure_apim_llm_log.csv": "azure_apim",
    "openrouter_generation.jsonl": "openrouter_generation",
    "helicone_requests.jsonl": "helicone",
    "bedrock_batch_output.jsonl": "bedrock_batch",
    "bedrock_converse_stream.jsonl": "bedrock_converse",
    "envoy_ai_gateway_access.log": "envoy_ai_gateway",
    "kong_ai_proxy.log": "kong_ai_proxy",
}
GATEWAYS = {*OWN.values(), "bedrock_converse", "openrouter_chat", "portkey"}


# Others' samples that look most like a gateway's: the rest is for the full run.
NEAR = {"litellm_spendlogs.csv", "litellm_standard_logging_payload.jsonl", "openai_chat.jsonl"}


@pytest.mark.parametrize(
    "name",
    [
        file.name if file.name in {*OWN, *NEAR} else pytest.param(file.name, marks=pytest.mark.full)
        for file in sorted(SAMPLES.iterdir())
        if file.suffix in {".jsonl", ".csv", ".log"}
    ],
)
def test_each_sample_is_its_own_readers(name):
    try:
        formats = load(SAMPLES / name).summary["by_format"]
    except LogFormatError:
        formats = {}
    if name in OWN:
        assert set(formats) == {OWN[name]}
    else:
        assert not GATEWAYS & set(formats)
