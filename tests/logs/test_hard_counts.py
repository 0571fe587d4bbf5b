"""Counts that are none, splits that do not add up, ids that are none: never silently a number."""

from __future__ import annotations

import json

import polars as pl
import pytest
from log_files import chat, counted, write
from quick import few

from tenfold.logs import load

BROKEN = "{broken\n"


def message(name, **usage):
    return {
        "id": name,
        "type": "message",
        "model": "claude-sonnet-4-5",
        "usage": {"input_tokens": 1000, "output_tokens": 5, **usage},
        "_log": {"ts": "2026-11-01T10:00:00Z"},
    }


def rows(log):
    return {row["request_id"]: row for row in log.requests.to_dicts()}


@pytest.mark.parametrize("rest", few(1, ["", BROKEN]), ids=["strict read", "line by line"])
def test_counts_in_open_objects_are_checked_as_any_other(tmp_path, rest):
    cases = {"-500": None, "3.7": None, '"many"': None, "true": None, "1000000000000": None, '"1.000"': None}
    cases |= {'"1,000"': 1000, "5.0": 5, "600": 600, "null": 0}
    lines = [
        json.dumps(message(str(n))).replace(
            '"output_tokens"', f'"cache_creation": {{"ephemeral_5m_input_tokens": {raw}}}, "output_tokens"'
        )
        for n, raw in enumerate(cases)
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(lines) + "\n" + rest)
    found = rows(load(file))
    for n, (raw, writes) in enumerate(cases.items()):
        row = found[str(n)]
        assert row["cache_write_tokens"] == writes, raw
        assert row["input_tokens"] == (None if writes is None else 1000 + writes), raw
        flags = {"null": None, "600": None}.get(raw, ["bad_count"] if writes is None else ["coerced"])
        assert row["flags"] == flags, raw


def test_responses_splits_are_checked_too(tmp_path):
    def response(name, details):
        usage = {"input_tokens": 2000, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 0, **details}}
        return {"id": name, "object": "response", "created_at": 1793577600, "model": "gpt-6-astra", "usage": usage}

    found = rows(
        load(
            write(
                tmp_path / "a.jsonl",
                [
                    response("bad", {"cache_write_tokens_details": {"ttl_30m_tokens": 10.6}}),
                    response(
                        "above", {"cache_write_tokens": 100, "cache_write_tokens_details": {"ttl_30m_tokens": 900}}
                    ),
                    response(
                        "right", {"cache_write_tokens": 900, "cache_write_tokens_details": {"ttl_30m_tokens": 900}}
                    ),
                ],
            )
        )
    )
    names = ("input_tokens", "cache_write_tokens", "flags")
    assert [found["bad"][name] for name in names] == [None, None, ["bad_count"]]
    assert [found["above"][name] for name in names] == [None, None, ["cache_write_long_gt_write"]]
    assert [found["right"][name] for name in names] == [2000, 900, None]


def test_long_writes_are_writes_and_never_above_the_input(tmp_path):
    base = {"ts": "2026-11-01T10:00:00Z", "provider": "anthropic", "model": "claude-sonnet-4-5", "output_tokens": 0}
    found = rows(
        load(
            write(
                tmp_path / "a.jsonl",
                [
                    {**base, "request_id": "part", "input_tokens": 1000, "cache_write_long_tokens": 300},
                    {**base, "request_id": "above", "input_tokens": 1000, "cache_write_long_tokens": 1_000_000},
                    {
                        **base,
                        "request_id": "bad",
                        "input_tokens": 1000,
                        "cache_write_tokens": -1,
                        "cache_write_long_tokens": 300,
                    },
                ],
            )
        )
    )
    names = ("input_tokens", "cache_write_tokens", "cache_write_long_tokens", "flags")
    assert [found["part"][name] for name in names] == [1000, 300, 300, None]
    assert [found["above"][name] for name in names] == [None, None, None, ["cache_gt_input"]]
    assert [found["bad"][name] for name in names] == [None, None, None, ["bad_count"]]


@pytest.mark.parametrize(("written", "right"), few(1, [("1.000", None), ("1.0", 1), ("1.", 1), ("1024.00", 1024)]))
def test_a_point_before_three_zeros_is_ambiguous(tmp_path, written, right):
    file = tmp_path / "a.csv"
    file.write_text(f"ts,input_tokens,output_tokens\n2026-11-02T00:00:00Z,{written},7\n")
    (row,) = load(file).requests.to_dicts()
    assert (row["input_tokens"], row["output_tokens"]) == (right, 7)
    assert row["flags"] == [("coerced" if right else "bad_count")]


SPEND = {
    "call_type": "acompletion",
    "spend": 0.1,
    "startTime": "2026-11-02 10:00:00",
    "model": "gpt-5",
    "custom_llm_provider": "openai",
    "prompt_tokens": 5000,
    "completion_tokens": 50,
    "status": "success",
}


@pytest.mark.full
def test_a_gateway_hit_is_read_in_its_usual_spellings(tmp_path):
    words = {"True": True, "1": True, "t": True, "yes": True, "False": False, "0": False, "": None, "None": None}
    words["maybe"] = None
    lines = [{**SPEND, "request_id": f"r{n}", "cache_hit": word} for n, word in enumerate(words)]
    found = rows(load(write(tmp_path / "a.jsonl", lines)))
    for n, (word, hit) in enumerate(words.items()):
        assert found[f"r{n}"]["gateway_cache_hit"] is hit, word
        assert found[f"r{n}"]["flags"] == (["bad_value"] if word == "maybe" else None), word


@pytest.mark.parametrize("rest", few(1, ["", BROKEN]), ids=["strict read", "line by line"])
def test_litellm_metadata_that_is_no_object_is_flagged(tmp_path, rest):
    good = {"usage_object": {"prompt_tokens_details": {"cached_tokens": 4000}}, "user_api_key_team_id": "t"}
    cases = [
        (json.dumps(good), 4000, None),
        (good, 4000, None),
        (None, None, None),
        ("", None, None),
        ("{'usage_object': {}}", None, ["details_missing"]),
        ([1], None, ["details_missing"]),
        ({**good, "usage_object": "x"}, None, ["details_missing"]),
        ({**good, "usage_object": {"prompt_tokens_details": [1]}}, None, ["details_missing"]),
    ]
    lines = [{**SPEND, "request_id": f"r{n}", "metadata": held} for n, (held, _, _) in enumerate(cases)]
    file = write(tmp_path / "a.jsonl", lines)
    file.write_text(file.read_text() + rest)
    found = rows(load(file))
    for n, (held, cached, flags) in enumerate(cases):
        row = found[f"r{n}"]
        assert (row["cache_read_tokens"], row["flags"]) == (cached, flags), held
    assert found["r6"]["team"] == "t"


def table(*lines):
    head = "ts,attempt,request_id,provider,model,input_tokens,output_tokens"
    return "\n".join([head, *lines]) + "\n"


@pytest.mark.full
def test_keys_of_different_requests_never_meet(tmp_path):
    ts = "2026-11-01T10:00:00Z"
    file = tmp_path / "a.csv"
    file.write_text(
        table(
            f"{ts},1,a,openai,gpt-5,1000,100",
            f"{ts},0,a#1,openai,gpt-5,2000,200",
            f"{ts},0,a|b,openai,gpt-5,3000,300",
            f"{ts},0,a,anthropic,gpt-5,4000,400",
            f"{ts},1.0,a,openai,gpt-5,1000,100",
        )
    )
    log = load(file)
    # the last row is the first one again, its attempt written otherwise
    assert counted(log) == (4, 1, 0, 0)
    assert log.requests["input_tokens"].sum() == 10000
    lines = [{"t": ts, "a": "x|y", "b": "z", "i": 1, "o": 1}, {"t": ts, "a": "x", "b": "y|z", "i": 5, "o": 5}]
    columns = {"ts": "t", "input_tokens": "i", "output_tokens": "o", "session_id": "a", "trace_id": "b"}
    mapping = {"dedup_key": ["session_id", "trace_id"], "columns": columns}
    assert counted(load(write(tmp_path / "b.jsonl", lines), map=mapping)) == (2, 0, 0, 0)


@pytest.mark.parametrize("name", few(1, ["None", "null", "", "NaN"]))
def test_a_word_for_no_id_is_no_id(tmp_path, name):
    file = tmp_path / "a.csv"
    file.write_text(
        table(
            f"2026-11-01T10:00:00Z,0,{name},openai,gpt-5,1000,100",
            f"2026-11-01T11:00:00Z,0,{name},openai,gpt-5,2000,200",
        )
    )
    log = load(file)
    assert counted(log) == (2, 0, 0, 0)
    assert log.requests["request_id"].to_list() == [None, None]


@pytest.mark.full
def test_a_reused_id_days_later_is_a_conflict_with_both_places(tmp_path):
    file = write(tmp_path / "a.jsonl", [chat(1), {**chat(1, prompt=5000), "created": 1793577600 + 14 * 86400}])
    log = load(file)
    assert counted(log) == (1, 0, 0, 1)
    (reject,) = log.rejects.to_dicts()
    assert (reject["source_line"], reject["path"]) == (2, "id")
    assert reject["reason"].endswith(f"{file} line 1")
    # an hour later it may be a snapshot
    grown = write(tmp_path / "b.jsonl", [chat(1), {**chat(1, prompt=5000), "created": 1793577600 + 3600}])
    assert counted(load(grown)) == (1, 0, 1, 0)


@pytest.mark.full
def test_numbers_that_are_not_finite_are_unknown_and_flagged(tmp_path):
    names = ("duration_ms", "ttft_ms", "queue_ms", "kv_usage_ratio")
    values = [float("nan"), float("inf"), float("-inf"), -1.0, 0.5]
    lines = [{"request_id": f"r{value}", "model": "m", "ts": "2026-11-02T10:00:00Z", "provider": "openai",
              "input_tokens": 5, "output_tokens": 5, **dict.fromkeys(names, value)} for value in values]  # fmt: skip
    pl.DataFrame(lines).write_parquet(tmp_path / "a.parquet")
    found = rows(load(tmp_path / "a.parquet"))
    for value in values:
        row = found[f"r{value}"]
        is_known = value == 0.5
        assert [row[name] for name in names] == [0.5 if is_known else None] * 4, value
        assert row["flags"] == (None if is_known else ["bad_value"]), value
