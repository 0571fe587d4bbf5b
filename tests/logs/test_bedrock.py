"""AWS Bedrock: the invocation log, Converse answers and streams, batch output."""

from __future__ import annotations

import pytest
from log_files import SAMPLES, counted, table, write
from quick import few

import tenfold as tf
from tenfold.logs import load

MODEL = "global.anthropic.claude-sonnet-4-5-20250929-v1:0"


def call(number, *, body=None, counts=None, out=10, **more):
    counted_in = {"inputTokenCount": 100} if counts is None else counts
    output = {"outputContentType": "application/json", "outputTokenCount": out}
    if body is not None:
        output["outputBodyJson"] = body
    return {
        "schemaType": "ModelInvocationLog", "timestamp": "2026-11-02T10:00:02Z", "accountId": "1",
        "region": "us-east-1", "requestId": f"r-{number}", "operation": "InvokeModel", "modelId": MODEL,
        "input": {"inputContentType": "application/json", **counted_in}, "output": output, **more,
    }  # fmt: skip


def one(folder, row):
    (found,) = load(write(folder / "a.jsonl", [row])).requests.to_dicts()
    return found


def test_counts_of_a_messages_body_fill_what_the_log_leaves_out(tmp_path):
    usage = {
        "input_tokens": 100,
        "cache_read_input_tokens": 3000,
        "cache_creation_input_tokens": 700,
        "cache_creation": {"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 200},
        "output_tokens": 10,
    }
    body = {"id": "msg", "content": [{"text": "private"}], "usage": usage, "stop_reason": "max_tokens"}
    row = one(tmp_path, call(1, body=body))
    # 100 + 3,000 + 700
    assert (row["input_tokens"], row["cache_read_tokens"]) == (3800, 3000)
    assert (row["cache_write_tokens"], row["cache_write_long_tokens"]) == (700, 200)
    assert (row["output_tokens"], row["finish_reason"], row["flags"]) == (10, "length", None)


def test_a_stream_logged_as_its_chunks(tmp_path):
    body = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 40, "cache_creation_input_tokens": 9,
         "cache_creation": {"ephemeral_1h_input_tokens": 9}, "output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "private"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 17}},
        {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 40, "outputTokenCount": 17,
         "invocationLatency": 900, "firstByteLatency": 210}},
    ]  # fmt: skip
    asked = call(1, body=body, counts={"inputTokenCount": 40}, out=17, operation="InvokeModelWithResponseStream")
    row = one(tmp_path, asked)
    assert (row["input_tokens"], row["cache_write_tokens"], row["cache_write_long_tokens"]) == (49, 9, 9)
    assert (row["output_tokens"], row["is_stream"], row["finish_reason"]) == (17, True, "stop")
    assert (row["duration_ms"], row["ttft_ms"]) == (900.0, 210.0)


def test_a_converse_stream_logged_as_its_events(tmp_path):
    usage = {"inputTokens": 5, "outputTokens": 7, "totalTokens": 20, "cacheReadInputTokens": 8}
    metadata = {"usage": usage, "metrics": {"latencyMs": 300}, "serviceTier": {"type": "flex"}}
    body = [{"messageStart": {}}, {"messageStop": {"stopReason": "tool_use"}}, {"metadata": metadata}]
    row = one(tmp_path, call(1, body=body, counts={}, out=None, operation="ConverseStream"))
    assert (row["input_tokens"], row["cache_read_tokens"], row["output_tokens"]) == (13, 8, 7)
    assert (row["service_tier"], row["finish_reason"], row["duration_ms"]) == ("flex", "tool_calls", 300.0)


@pytest.mark.parametrize(
    ("model", "cost"),
    few(
        1,
        [
            (MODEL, "0.00045"),  # 100 x 3 + 10 x 15 per million
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "0.000495"),  # 1.1 times
            ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "0.000495"),
        ],
    ),
)
def test_profiles_and_arns_stay_and_are_priced(tmp_path, model, cost):
    log = load(write(tmp_path / "a.jsonl", [call(1, modelId=model)]))
    assert log.requests["model"].to_list() == [model]
    (row,) = tf.attribute(log).composition().rows()
    assert float(row["cost_usd"]) == float(cost)


def test_a_model_of_ones_own_profile_is_unknown_and_not_free(tmp_path):
    log = load(
        write(tmp_path / "a.jsonl", [call(1, modelId="arn:aws:bedrock:us-east-1:1:application-inference-profile/x")])
    )
    assert tf.attribute(log).coverage.unpriced_requests == 1


def test_what_failed_is_billed_if_it_has_tokens(tmp_path):
    rows = [
        call(1, counts={"inputTokenCount": 0}, out=0, errorCode="ThrottlingException"),
        call(2, errorCode="ModelTimeoutException"),
        call(3, errorCode="ModelErrorException", counts={}, out=None),
    ]
    found = load(write(tmp_path / "a.jsonl", rows)).requests.sort("request_id").to_dicts()
    assert [(row["status"], row["is_billable"]) for row in found] == [
        ("error", False),
        ("timeout", True),
        ("error", False),
    ]
    assert [row["input_tokens"] for row in found] == [0, 100, None]


def test_callers_tags_and_no_session_names(tmp_path):
    arn = "arn:aws:sts::1:assumed-role/search-svc/i-0abc"
    more = {"identity": {"arn": arn}, "inferenceRegion": "us-west-2"}
    row = one(tmp_path, call(1, requestMetadata={"team": "search", "cost": "CC-1"}, **more))
    assert (row["team"], row["client"], row["org"]) == ("search", "arn:aws:sts::1:assumed-role/search-svc", "1")
    assert dict(row["tags"]) == {"team": "search", "cost": "CC-1", "inference_region": "us-west-2"}
    assert row["region"] == "us-east-1"


@pytest.mark.full
def test_repeats_and_broken_lines(tmp_path):
    file = write(tmp_path / "a.jsonl", [call(1), call(1), call(2, counts={"inputTokenCount": -3}), {"requestId": "x"}])
    with file.open("a") as handle:
        handle.write('{"schemaType": "ModelInvocationLog", "requ\n')
    log = load(file, db=tmp_path / "a.duckdb")
    assert counted(log) == (2, 1, 0, 2)
    assert sorted(log.rejects["source_line"].to_list()) == [4, 5]
    assert [row["flags"] for row in table(log)] == [None, ["bad_count"]]
    before = table(log)
    again = load(write(tmp_path / "b.jsonl", [call(1), call(3)]), db=tmp_path / "a.duckdb")
    assert counted(again)[:2] == (1, 1)
    assert [row for row in table(again) if row["request_id"] != "r-3"] == before


def converse(**more):
    usage = {"inputTokens": 40, "outputTokens": 380, "totalTokens": 3920, "cacheReadInputTokens": 3000,
             "cacheDetails": [{"ttl": "5m", "inputTokens": 400}, {"ttl": "1h", "inputTokens": 100}]}  # fmt: skip
    headers = {"date": "Mon, 02 Nov 2026 10:00:00 GMT"}
    meta = {"RequestId": "c-1", "HTTPStatusCode": 200, "HTTPHeaders": headers, "RetryAttempts": 1}
    answer = {
        "output": {"message": {"content": []}},
        "stopReason": "guardrail_intervened",
        "metrics": {"latencyMs": 1302},
    }
    return {"ResponseMetadata": meta, **answer, "usage": usage, "modelId": MODEL, **more}


def test_converse_answers(tmp_path):
    row = one(tmp_path, converse())
    # 40 + 3,000 + 500; the writes stand in the details alone; 3,540 + 380 = 3,920
    assert (row["input_tokens"], row["cache_read_tokens"], row["output_tokens"]) == (3540, 3000, 380)
    assert (row["cache_write_tokens"], row["cache_write_long_tokens"], row["flags"]) == (500, 100, None)
    assert (row["source_format"], row["attempt"], row["finish_reason"]) == ("bedrock_converse", 1, "content_filter")
    assert (row["provider"], row["model"], row["request_id"]) == ("bedrock", MODEL, "c-1")
    assert str(row["ts"]) == "2026-11-02 10:00:00"


def test_the_event_that_ends_a_converse_stream(tmp_path):
    usage = {"inputTokens": 4, "outputTokens": 5, "totalTokens": 9}
    event = {
        "metadata": {"usage": usage, "metrics": {"latencyMs": 7}},
        "_log": {"model": MODEL, "ts": "2026-11-02T10:00:00Z"},
    }
    row = one(tmp_path, event)
    assert (row["input_tokens"], row["output_tokens"], row["is_stream"], row["model"]) == (4, 5, True, MODEL)


def test_latency_optimised_answers_are_not_priced_as_others(tmp_path):
    row = one(tmp_path, converse(performanceConfig={"latency": "optimized"}))
    assert row["service_tier"] == "latency_optimized"
    assert one(tmp_path, converse(serviceTier={"type": "priority"}))["service_tier"] == "priority"


def test_events_of_converse_streams_are_one_request_each(tmp_path):
    whole = {"modelId": MODEL, "stopReason": "max_tokens", "usage": {"inputTokens": 1, "outputTokens": 2}}
    whole["metrics"] = {"latencyMs": 5}
    file = write(tmp_path / "a.jsonl", [whole, {"messageStart": {"role": "assistant"}}])
    log = load([SAMPLES / "bedrock_converse_stream.jsonl", file])
    # two streams of five events, one of two that broke off; an answer, and a stream of which only the start is there
    assert (*counted(log), log.summary["ignored"]) == (5, 0, 5, 0, 4)
    names = (
        "source_line",
        "input_tokens",
        "cache_read_tokens",
        "output_tokens",
        "finish_reason",
        "status",
        "is_stream",
    )
    assert log.requests.select(names).rows() == [
        (5, 14, 4, 5, "stop", "success", True),
        (10, 11, 4, 3, "stop", "success", True),
        (12, None, None, None, None, "error", True),
        (1, 1, 0, 2, "length", "success", None),
        (2, None, None, None, None, "incomplete", True),
    ]
    assert log.requests["duration_ms"].to_list() == [120.0, 120.0, None, 5.0, None]


def test_batch_output_of_any_maker(tmp_path):
    file = tmp_path / "a.jsonl.out"
    lines = (SAMPLES / "bedrock_batch_output.jsonl").read_text()
    # the request's file and half a line are no output
    file.write_text(lines + '{"recordId": "CALL0000006", "modelInput": {}}\n' + lines[:50])
    log = load(file, db=tmp_path / "u.duckdb", set={"region": "us-east-1"})
    assert counted(log) == (5, 0, 0, 2)
    names = ("request_id", "input_tokens", "cache_read_tokens", "output_tokens", "finish_reason", "status")
    assert log.requests.select(names).rows() == [
        ("msg_bdrk_S1", 40, 10, 20, "stop", "success"),
        ("CALL0000002", 5, 0, 6, "length", "success"),
        ("CALL0000003", 7, 0, 8, "stop", "success"),
        ("CALL0000004", 9, 0, 3, "stop", "success"),
        ("CALL0000005", None, None, None, None, "error"),
    ]
    assert set(log.requests.select("service_tier", "region", "provider").rows()) == {("batch", "us-east-1", "bedrock")}
    assert log.requests["is_billable"].to_list() == [True, True, True, True, False]
    assert log.requests["custom_id"].to_list() == [f"CALL000000{number}" for number in range(1, 6)]
    assert load(file, db=tmp_path / "u.duckdb", set={"region": "us-east-1"}).summary["requests"] == 0
