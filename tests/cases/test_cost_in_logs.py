"""Public billing bugs with their right values: what a log file costs, from the line to the bill."""

from __future__ import annotations

from decimal import Decimal

import pytest
from log_files import chat, write
from quick import few

import tenfold as tf
from tenfold.errors import LogFormatError
from tenfold.money import PUSD_PER_USD

AT = "2026-10-01T12:00:00Z"


def spend(number: int, prompt: int, completion: int, **more: object) -> dict[str, object]:
    """A row of LiteLLM's SpendLogs."""
    return {
        "request_id": f"r{number}",
        "call_type": "acompletion",
        "spend": 0,
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "startTime": AT,
        "endTime": AT,
        "model": "gpt-5",
        "custom_llm_provider": "openai",
        "status": "success",
        "metadata": {},
        **more,
    }


def message(model: str, usage: dict[str, object], **more: object) -> dict[str, object]:
    return {
        "id": "msg_1",
        "type": "message",
        "model": model,
        "stop_reason": "end_turn",
        "usage": usage,
        "_log": {"ts": AT},
        **more,
    }


def response(model: str, prompt: int, completion: int, **more: object) -> dict[str, object]:
    usage = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + completion,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1793577600,
        "model": model,
        "status": "completed",
        "usage": usage,
        **more,
    }


def loaded(folder, rows, **options):
    return tf.load(write(folder / "log.jsonl", rows), **options)


def usd(ledger):
    return Decimal(ledger.total_pusd) / PUSD_PER_USD


def test_a_total_that_fits_no_reading_is_flagged(tmp_path):
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 99}
    (found,) = loaded(tmp_path, [chat(1, usage=usage)]).requests.to_dicts()
    assert "total_mismatch" in found["flags"]


@pytest.mark.full
def test_b016_the_last_chunk_keeps_its_details_beside_choices(tmp_path):
    chunk = {
        "id": "c1", "object": "chat.completion.chunk", "created": 1793577600, "model": "deepseek/deepseek-v4-flash-0731",
        "choices": [{"index": 0, "delta": {}}],
        "usage": {"prompt_tokens": 16111, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 15872}},
    }  # fmt: skip
    own = tmp_path / "own"
    own.mkdir()
    # the case tells the two input rates only
    (own / "tensorx.toml").write_text(
        'provider = "tensorx"\n[[price]]\nmodel = "deepseek/deepseek-v4-flash-0731"\ninput = 0.22\ncache_read = 0.05\noutput = 0\n'
        'source = "case B016"\nchecked = 2026-11-29\n'
    )
    log = loaded(tmp_path, [chunk], set={"provider": "tensorx"})
    assert usd(tf.attribute(log, tf.price_book(overlay=own))) == Decimal("0.00084618")  # 239 x 0.22 + 15,872 x 0.05


@pytest.mark.full
def test_b046_the_map_says_which_of_two_tiers_was_billed(tmp_path):
    row = {"at": AT, "in": 1_000_000, "out": 1_000_000, "requested": "flex", "served": "default"}
    mapping = {
        "columns": {"ts": "at", "input_tokens": "in", "output_tokens": "out", "service_tier": "requested"},
        "constants": {"provider": "openai", "model": "gpt-5"},
    }
    ledger = tf.attribute(loaded(tmp_path, [row], map=mapping))
    assert usd(ledger) == Decimal("5.625")
    assert [one["service_tier"] for one in ledger.composition(["service_tier"]).rows()] == ["flex"]


@pytest.mark.xfail(
    strict=True, raises=AssertionError, reason="requests has one service_tier: the tier that was not billed is not kept"
)
def test_b046_both_tiers_are_kept(tmp_path):
    row = {**response("gpt-5", 1000, 100, service_tier="default"), "_log": {"service_tier": "flex"}}
    (found,) = loaded(tmp_path, [row]).requests.to_dicts()
    assert {"default", "flex"} <= {value for value in found.values() if isinstance(value, str)}


def test_b065_rows_without_a_price_are_reported_with_calls_and_tokens(tmp_path):
    # 365 calls, 37.4 million tokens, beside one call that has a price
    rows = [
        {
            "provider": "snowflake",
            "model": "claude-opus-4-7",
            "ts": AT,
            "request_id": f"s{n}",
            "input_tokens": 100_000,
            "output_tokens": 2000,
        }
        for n in range(364)
    ]
    rows.append({**rows[0], "request_id": "last", "input_tokens": 270_000})
    rows.append({**rows[0], "request_id": "priced", "provider": "anthropic", "input_tokens": 222_000})
    ledger = tf.attribute(loaded(tmp_path, rows))
    (missing,) = ledger.coverage.unpriced
    assert (missing["provider"], missing["model"], missing["price_status"]) == (
        "snowflake",
        "claude-opus-4-7",
        "unpriced_model",
    )
    assert (missing["requests"], missing["tokens"]) == (365, 37_400_000)
    assert "snowflake" in missing["reason"]
    assert usd(ledger) == Decimal("1.16")  # 222,000 x 5 + 2,000 x 25 per million, and nothing for the others
    assert (ledger.coverage.requests, ledger.coverage.unpriced_requests) == (366, 365)
    # modelled at this log's own average price: 1.16 / 224,000 tokens
    assert ledger.coverage.money_ratio == pytest.approx(224_000 / 37_624_000)
    by_provider = {row["provider"]: row["cost_usd"] for row in ledger.composition(["provider"]).rows()}
    assert by_provider == {"anthropic": "1.16", "snowflake": None}


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(
            [{"traceId": "t", "spanId": f"s{n}", "parentSpanId": parent, "attributes": {"gen_ai.usage.input_tokens": tokens}}
             for n, (parent, tokens) in enumerate([(None, 60250), ("s0", 13942), ("s0", 14065), ("s0", 15487), ("s0", 16756)])],
            id="spans that roll up",
        ),
    ],
)  # fmt: skip
def test_what_would_count_twice_is_refused_as_long_as_no_reader_knows_it(tmp_path, rows):
    with pytest.raises(LogFormatError, match="unknown log format"):
        loaded(tmp_path, rows)


@pytest.mark.parametrize(
    ("delta", "right"),
    few(
        1,
        [
            pytest.param({"output_tokens": 15}, (25, 15), id="B076"),
            pytest.param({"input_tokens": 25, "cache_read_input_tokens": 0, "output_tokens": 47}, (25, 47), id="B077"),
        ],
    ),
)
def test_counts_of_stream_events_are_cumulative(tmp_path, delta, right):
    first = {"id": "m", "model": "claude-opus-4-7", "usage": {"input_tokens": 25, "output_tokens": 1}}
    events = [
        {"type": "message_start", "message": first, "_log": {"ts": AT}},
        {"type": "message_delta", "usage": delta},
    ]
    log = loaded(tmp_path, events)
    (found,) = log.requests.to_dicts()
    assert (found["input_tokens"], found["output_tokens"]) == right
    assert usd(tf.attribute(log)) == Decimal(right[0] * 5 + right[1] * 25) / 1_000_000


@pytest.mark.full
def test_b080_a_cumulative_counter_that_is_written_again(tmp_path):
    totals = [
        {"input_tokens": n - 100, "cached_input_tokens": 0, "output_tokens": 100} for n in (1000, 1000, 1000, 3300)
    ]
    info = [{"total_token_usage": total, "last_token_usage": total} for total in totals]
    lines = [{"timestamp": AT, "type": "event_msg", "payload": {"type": "token_count", "info": held}} for held in info]
    rows = loaded(tmp_path, lines).requests
    assert rows["input_tokens"].sum() + rows["output_tokens"].sum() == 3300


@pytest.mark.full
def test_snapshots_of_one_message_keep_the_last(tmp_path):
    first = message("claude-opus-4-7", {"input_tokens": 27, "output_tokens": 1}, stop_reason=None)
    last = message("claude-opus-4-7", {"input_tokens": 27, "cache_read_input_tokens": 0, "output_tokens": 47})
    (found,) = loaded(tmp_path, [first, last]).requests.to_dicts()
    assert (found["input_tokens"], found["output_tokens"]) == (27, 47)


def test_b079_one_line_for_each_content_block_is_one_request(tmp_path):
    usage = {
        "input_tokens": 6,
        "output_tokens": 384,
        "cache_creation_input_tokens": 11352,
        "cache_read_input_tokens": 22076,
    }
    log = loaded(tmp_path, [message("claude-opus-4-7", usage)] * 2)
    assert (log.summary["requests"], log.summary["duplicates"]) == (1, 1)
    assert usd(tf.attribute(log)) == Decimal("0.091618")


@pytest.mark.parametrize("name", few(1, [None, "litellm_spend"]))
def test_b083_one_call_in_two_spend_rows_costs_once(tmp_path, name):
    rows = [  # 8,000 tokens at $1.25 a million
        spend(1, 8000, 0, spend=0.01, litellm_call_id="call-1"),
        spend(2, 8000, 0, spend=0.01, litellm_call_id="call-1", call_type="aresponses"),
    ]
    log = loaded(tmp_path, rows, format=name)
    assert log.summary["requests"] == 1
    assert usd(tf.attribute(log)) == Decimal("0.01")


@pytest.mark.full
def test_b083_the_logged_spend_is_kept(tmp_path):
    log = loaded(tmp_path, [spend(1, 8000, 0, spend=0.01, litellm_call_id="call-1")])
    assert log.requests["cost_logged_usd"].to_list() == [Decimal("0.01")]


@pytest.mark.full
def test_b085_attempts_that_failed_without_usage_cost_nothing(tmp_path):
    rows = [spend(1, 0, 0, status="failure"), spend(2, 0, 0, status="failure"), spend(3, 1000, 100)]
    ledger = tf.attribute(loaded(tmp_path, rows))
    assert usd(ledger) == Decimal("0.00225")
    assert (ledger.coverage.requests, ledger.coverage.not_billed_requests) == (1, 2)  # one of three attempts is billed
    assert ledger.log.requests["is_billable"].to_list() == [False, False, True]


def test_b085_a_failure_with_usage_is_billed(tmp_path):
    ledger = tf.attribute(loaded(tmp_path, [spend(1, 1000, 100, status="failure")]))
    assert (usd(ledger), ledger.coverage.requests) == (Decimal("0.00225"), 1)


def avoided(log):
    (row,) = log.requests.to_dicts()
    usage = tf.Usage(input_tokens=row["input_tokens"], output_tokens=row["output_tokens"])
    return tf.price(provider=row["provider"], model=row["model"], at=AT, usage=usage).cost_usd


@pytest.mark.full
def test_b086_a_hit_in_the_gateways_cache_costs_nothing(tmp_path):
    log = loaded(tmp_path, [spend(1, 1000, 200, cache_hit="True")])
    ledger = tf.attribute(log)
    assert (ledger.total_pusd, ledger.coverage.requests, ledger.coverage.tokens) == (0, 0, 0)
    assert ledger.coverage.not_billed_requests == 1
    assert ledger.frame()["price_status"].to_list() == ["known_zero"]
    assert avoided(log) == Decimal("0.00325")  # 1,000 x 1.25 + 200 x 10 per million: the counts are kept for it


def test_b091_a_hit_in_a_frameworks_cache_costs_nothing(tmp_path):
    mapping = {
        "columns": {"ts": "at", "input_tokens": "in", "output_tokens": "out", "gateway_cache_hit": "from_cache"},
        "constants": {"provider": "openai", "model": "gpt-5"},
    }
    row = {"at": AT, "in": 1000, "out": 200}
    log = loaded(tmp_path, [{**row, "from_cache": True}], map=mapping)
    ledger = tf.attribute(log)
    assert (ledger.total_pusd, ledger.coverage.tokens) == (0, 0)
    assert avoided(log) == Decimal("0.00325")
    called = tmp_path / "called"
    called.mkdir()
    assert usd(tf.attribute(loaded(called, [{**row, "from_cache": False}], map=mapping))) == Decimal("0.00325")


@pytest.mark.parametrize(
    "row",
    few(
        1,
        [
            pytest.param(chat(1, prompt=0, completion=0), id="chat"),
            pytest.param(spend(1, 0, 0, spend=0.01), id="litellm"),
            pytest.param(
                spend(1, 0, 0, metadata={"usage_object": {"prompt_tokens": 0, "completion_tokens": 0}}),
                id="litellm with usage",
            ),
        ],
    ),
)
def test_b088_zero_is_not_missing(tmp_path, row):
    ledger = tf.attribute(loaded(tmp_path, [row]))
    (found,) = ledger.frame().to_dicts()
    assert (found["input_tokens"], found["output_tokens"], found["price_status"]) == (0, 0, "priced")
    assert "zero_usage" in found["flags"]
    assert (ledger.total_pusd, ledger.coverage.requests, ledger.coverage.unpriced_requests) == (0, 1, 0)


CANCELLED = [
    pytest.param(response("gpt-5", 35, 1, status="cancelled"), id="responses"),
    pytest.param(spend(1, 35, 1, status="cancelled"), id="litellm"),
    pytest.param(
        {"provider": "anthropic", "model": "claude-sonnet-4-5", "ts": AT, "request_id": "m", "status": "cancelled", "is_stream": True,
         "input_tokens": 35, "output_tokens": 1}, id="own columns",
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", few(1, CANCELLED))
def test_b089_a_cancelled_stream_is_partial(tmp_path, row):
    (found,) = tf.attribute(loaded(tmp_path, [row])).frame().to_dicts()
    assert found["status"] == "cancelled"
    assert found["price_status"] == "usage_partial" or any("partial" in flag for flag in found["flags"] or [])


@pytest.mark.parametrize(
    ("at", "zone", "day", "utc_day"),
    few(
        1,
        [
            pytest.param("2025-01-24T20:08:00-08:00", "America/Los_Angeles", "2025-01-24", "2025-01-25", id="B100"),
            pytest.param("2025-01-01T23:30:00Z", "Asia/Shanghai", "2025-01-02", "2025-01-01", id="B101"),
        ],
    ),
)
def test_days_are_cut_in_the_report_zone(tmp_path, at, zone, day, utc_day):
    row = {
        "provider": "openai",
        "model": "gpt-4o",
        "ts": at,
        "request_id": "a",
        "input_tokens": 1000,
        "output_tokens": 100,
    }
    log = loaded(tmp_path, [row, {**row, "request_id": "b", "ts": "2025-01-30T12:00:00Z"}])
    for where, expected in ((zone, day), ("UTC", utc_day)):
        found = tf.attribute(log, zone=where).composition(by=["day"])
        assert [one["day"] for one in found.rows()] == [expected, "2025-01-30"]
        assert sum(int(cost) for cost in found.frame["cost_pusd"]) == found.total_pusd == 2 * 3_500_000_000


SEARCH = [{"type": "web_search"}]


def test_b106_a_declared_tool_that_was_not_called_costs_nothing(tmp_path):
    ledger = tf.attribute(
        loaded(tmp_path, [response("gpt-4.1", 1000, 500, tools=SEARCH, output=[{"type": "message"}])])
    )
    assert usd(ledger) == Decimal("0.006")


@pytest.mark.full
def test_b107_searches_in_a_response_are_billed(tmp_path):
    called = [{"type": "web_search_call", "id": "ws_1", "status": "completed"}, {"type": "message"}]
    ledger = tf.attribute(loaded(tmp_path, [response("gpt-4.1", 1000, 500, tools=SEARCH, output=called)]))
    assert usd(ledger) == Decimal("0.016")  # 0.006 of tokens and a call at $10 per 1,000


def test_b107_searches_of_a_message_are_billed(tmp_path):
    usage = {"input_tokens": 100, "output_tokens": 0, "server_tool_use": {"web_search_requests": 3}}
    ledger = tf.attribute(loaded(tmp_path, [message("claude-opus-5", usage)]))
    (row,) = ledger.composition().rows()
    assert (row["web_search_usd"], row["web_search_calls"]) == ("0.03", 3)
    assert usd(ledger) == Decimal("0.0305")


def test_b115_a_thousand_small_calls_are_not_rounded_away(tmp_path):
    ledger = tf.attribute(loaded(tmp_path, [chat(n, prompt=320, completion=0) for n in range(1000)]))  # $0.0004 each
    assert usd(ledger) == Decimal("0.4")
    assert [row["cost_usd"] for row in ledger.composition(["model"]).rows()] == ["0.40"]
