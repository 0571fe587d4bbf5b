"""Sessions of coding agents: Claude Code and Codex, whose lines repeat, grow and are copied."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from log_files import SAMPLES, counted, write
from quick import few

from tenfold.errors import LogFormatError
from tenfold.logs import READERS, detect, load

DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
OWN = {"claude_code_session.jsonl": "claude_code", "codex_rollout.jsonl": "codex"}


def block(message_id, output, *, request="req_1", at="2026-11-02T10:00:02.000Z", **more):
    """A line of a Claude Code session."""
    usage = {"input_tokens": 2, "cache_creation_input_tokens": 8655, "cache_read_input_tokens": 15030}
    message = {
        "id": message_id,
        "model": "claude-opus-4-7",
        "stop_reason": more.pop("stop", None),
        "usage": {**usage, "output_tokens": output},
    }
    base = {"type": "assistant", "sessionId": "s", "timestamp": at, "cwd": "/home/me/app", "version": "2.1.0"}
    found = {**base, "isSidechain": False, "message": {**message, **more.pop("message", {})}, **more}
    return found if request is None else {**found, "requestId": request}


def tokens(*total, last=None, at="2026-11-02T10:00:05.000Z"):
    """A Codex token_count event: input, cached and output tokens so far."""
    info = {"total_token_usage": _codex(total), "last_token_usage": last and _codex(last)}
    return {"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info": info}}


def _codex(counts):
    total, cached, output = counts
    return {
        "input_tokens": total,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "total_tokens": total + output,
    }


def head(thread, at="2026-11-02T10:00:00.000Z", **more):
    return {"timestamp": at, "type": "session_meta", "payload": {"id": thread, "cwd": "/home/me/app", **more}}


TURN = {"timestamp": "2026-11-02T10:00:01.000Z", "type": "turn_context", "payload": {"model": "gpt-5.2-codex"}}


def used(log):
    rows = log.requests.sort("source_line").to_dicts()
    return [(row["input_tokens"], row["cache_read_tokens"], row["output_tokens"]) for row in rows]


@pytest.mark.parametrize(
    "name", sorted(path.name for path in SAMPLES.iterdir() if path.suffix in {".jsonl", ".csv", ".log"})
)
def test_each_sample_is_read_by_its_own_reader(name):
    held = detect.content(SAMPLES / name)
    try:
        found = detect.choose(SAMPLES / name, held, READERS, None).name
    except LogFormatError:
        found = None
    assert (found == OWN[name]) if name in OWN else (found not in OWN.values())


def test_import_1_snapshots_of_a_message_are_one_request(tmp_path):
    lines = [block("msg_ABC", 9), block("msg_ABC", 9, at="2026-11-02T10:00:02.400Z")]
    lines.append(block("msg_ABC", 159, stop="tool_use", at="2026-11-02T10:00:05.000Z"))
    log = load(write(tmp_path / "a.jsonl", lines))
    (row,) = log.requests.to_dicts()
    # 2 + 8,655 + 15,030 in; the start of the call is its first line, the number is traced to its last
    assert (row["input_tokens"], row["output_tokens"], row["source_line"]) == (23687, 159, 3)
    assert (str(row["ts"]), row["finish_reason"]) == ("2026-11-02 10:00:02", "tool_calls")
    assert (row["provider"], row["session_id"], row["project"], row["client"]) == (
        *("anthropic", "s", "app", "claude-code/2.1.0"),
    )
    assert counted(log) == (1, 0, 2, 0)


def test_import_2_without_request_ids_the_messages_id_is_the_key(tmp_path):
    lines = [block("chatcmpl-1", 20, request=None, stop="end_turn")] * 2
    log = load(write(tmp_path / "a.jsonl", lines))
    assert (len(log.requests), log.requests["output_tokens"].sum()) == (1, 20)


def test_import_4_a_sidechain_that_replays_is_no_request_and_one_of_its_own_is(tmp_path):
    lines = [
        block("msg_1", 30, request="req_1", stop="end_turn"),
        block("msg_1", 30, request="req_9", isSidechain=True, sessionId="sub", stop="end_turn"),
        block("msg_2", 5, request="req_10", isSidechain=True, stop="end_turn"),
    ]
    for files in ([lines], [lines[:1], lines[1:]], [lines[1:], lines[:1]]):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        log = load([write(folder / f"{number}.jsonl", held) for number, held in enumerate(files)])
        found = sorted(log.requests.select("request_id", "output_tokens").rows())
        assert found == [("msg_1", 30), ("msg_2", 5)]
        assert log.summary["rejected"] == 0


@pytest.mark.full
def test_one_message_id_under_two_requests_of_the_main_chain_is_two(tmp_path):
    lines = [block("msg_1", 30, request="req_1", stop="end_turn"), block("msg_1", 7, request="req_2", stop="end_turn")]
    log = load(write(tmp_path / "a.jsonl", lines))
    assert sorted(log.requests["output_tokens"]) == [7, 30]


def test_a_session_that_has_grown_is_not_counted_twice(tmp_path):
    lines = [block("msg_1", 9), block("msg_1", 159, stop="tool_use"), block("msg_2", 1)]
    db = tmp_path / "u.duckdb"
    first = load(write(tmp_path / "a.jsonl", lines), db=db)
    # written before the answer came: the stream's first count is no count
    assert [row["output_tokens"] for row in first.requests.sort("request_id").to_dicts()] == [159, None]
    assert first.requests.sort("request_id")["flags"].to_list() == [None, ["usage_partial"]]
    again = load(write(tmp_path / "a.jsonl", [*lines, block("msg_2", 40, stop="end_turn")]), db=db)
    assert again.requests.sort("request_id")["output_tokens"].to_list() == [159, 40]
    assert again.requests["flags"].to_list() == [None, None]
    assert again.summary["requests"] == 0


@pytest.mark.full
def test_lines_without_a_request_are_ignored_and_broken_ones_are_not(tmp_path):
    lines = [
        {"type": "summary", "summary": "a session", "leafUuid": "u"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "hi"}},
        {"type": "system", "sessionId": "s", "content": "x"},
        block("msg_0", 0, message={"model": "<synthetic>"}),
        block("msg_1", 9, stop="end_turn"),
        {"type": "assistant", "sessionId": "s", "message": {"id": "msg_2", "model": "claude-opus-4-7"}},
        block("msg_3", -5, stop="end_turn"),
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "object": "chat.completion"},
    ]
    file = write(tmp_path / "a.jsonl", lines)
    file.write_text(file.read_text() + json.dumps(block("msg_4", 1))[:200])
    log = load(file)
    assert log.summary["ignored"] == 5
    rows = {row["request_id"]: row for row in log.requests.to_dicts()}
    assert rows["msg_1"]["flags"] is None
    assert "usage_missing" in rows["msg_2"]["flags"]
    assert (rows["msg_3"]["output_tokens"], rows["msg_3"]["flags"]) == (None, ["bad_count"])
    assert sorted(log.rejects["source_line"]) == [9, 10]


@pytest.mark.full
def test_a_file_of_summaries_alone_stops_no_load(tmp_path):
    file = write(tmp_path / "a.jsonl", [{"type": "summary", "summary": "a session", "leafUuid": "u"}])
    summary = load([file, SAMPLES / "claude_code_session.jsonl"]).summary
    assert (summary["requests"], summary["ignored"]) == (2, 3)


@pytest.mark.parametrize(
    ("message", "provider"),
    few(
        1,
        [
            ({"id": "msg_bdrk_01"}, "bedrock"),
            ({"id": "msg_vrtx_01"}, "vertex"),
            ({"id": "chatcmpl-1", "model": "deepseek-v4-flash"}, None),
        ],
    ),
)
def test_who_bills_a_session(tmp_path, message, provider):
    (row,) = load(
        write(tmp_path / "a.jsonl", [block("msg_1", 5, message=message, stop="end_turn")])
    ).requests.to_dicts()
    assert row["provider"] == provider


def test_fast_mode_long_writes_and_compactions_of_a_session(tmp_path):
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 5,
        "output_tokens": 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        "speed": "fast",
        "iterations": [{"type": "compaction", "input_tokens": 400, "output_tokens": 70}, {"type": "message"}],
    }
    log = load(write(tmp_path / "a.jsonl", [block("msg_1", 5, message={"usage": usage}, stop="end_turn")]))
    rows = {row["request_id"]: row for row in log.requests.to_dicts()}
    message, child = rows["msg_1"], rows["msg_1#compaction"]
    counts = ("input_tokens", "cache_write_tokens", "cache_write_long_tokens", "output_tokens", "service_tier")
    assert [message[name] for name in counts] == [45, 30, 20, 4, "fast"]
    assert (child["input_tokens"], child["output_tokens"], child["parent_id"]) == (400, 70, "msg_1")


def test_import_5_a_resumed_thread_counts_what_the_total_grew_by(tmp_path):
    first = [head("th"), TURN, tokens(1000, 700, 60, last=(1000, 700, 60))]
    more = tokens(1800, 1400, 125, at="2026-11-02T10:05:00.000Z")
    # the second file holds the first one's events again
    log = load([write(tmp_path / "a.jsonl", first), write(tmp_path / "b.jsonl", [*first, more])])
    rows = log.requests.sort("ts").to_dicts()
    assert [(row["input_tokens"], row["cache_read_tokens"], row["output_tokens"]) for row in rows] == [
        (1000, 700, 60),
        (800, 700, 65),
    ]
    assert [str(row["ts"]) for row in rows] == ["2026-11-02 10:00:05", "2026-11-02 10:05:00"]
    assert {(row["model"], row["provider"], row["session_id"], row["project"]) for row in rows} == {
        ("gpt-5.2-codex", "openai", "th", "app")
    }
    assert log.summary["rejected"] == 0


def test_b080_a_total_that_is_written_again_counts_once(tmp_path):
    totals = [(900, 0, 100)] * 3 + [(3000, 0, 300)]
    lasts = [(900, 0, 100)] * 3 + [(2100, 0, 200)]
    for given in (lasts, [None] * 4):
        folder = tmp_path / str(given[0])
        folder.mkdir()
        lines = [tokens(*total, last=last) for total, last in zip(totals, given, strict=True)]
        found = used(load(write(folder / "a.jsonl", [head("th"), TURN, *lines])))
        assert found == [(900, 0, 100), (2100, 0, 200)]
        assert sum(row[0] + row[2] for row in found) == 3300


@pytest.mark.full
def test_b080_a_fork_counts_only_what_is_its_own(tmp_path):
    parent = [
        head("parent"),
        TURN,
        tokens(1000, 0, 10, last=(1000, 0, 10)),
        tokens(3000, 1000, 30, last=(2000, 1000, 20), at="2026-11-02T10:01:00.000Z"),
    ]
    forked = "2026-11-09T08:00:00.100Z"
    copied = [{**line, "timestamp": forked} for line in parent]
    own = [{**TURN, "timestamp": "2026-11-09T08:00:09.000Z"}, tokens(7000, 4000, 70, at="2026-11-09T08:00:20.000Z")]
    child = [head("child", forked, forked_from_id="parent"), *copied, *own]
    for files in ([parent, child], [child]):
        folder = tmp_path / str(len(files))
        folder.mkdir()
        log = load([write(folder / f"{number}.jsonl", lines) for number, lines in enumerate(files)])
        of_child = log.requests.filter(log.requests["session_id"] == "child")
        assert used(log)[len(used(log)) - 1] == (4000, 3000, 40)
        assert of_child["input_tokens"].to_list() == [4000]
        assert len(log.requests) == (3 if len(files) == 2 else 1)
        assert log.summary["rejected"] == 0
    empty = load(write(tmp_path / "empty.jsonl", child[: len(child) - 2]))
    assert len(empty.requests) == 0
    # older forks name no parent: two heads in a row say it
    older = load(write(tmp_path / "older.jsonl", [head("child", forked), *copied, *own]))
    assert used(older) == [(4000, 3000, 40)]


def test_a_total_that_falls_starts_anew(tmp_path):
    lines = [tokens(1000, 700, 60), tokens(400, 300, 20), tokens(900, 700, 50)]
    found = used(load(write(tmp_path / "a.jsonl", [head("th"), TURN, *lines])))
    assert found == [(1000, 700, 60), (400, 300, 20), (500, 400, 30)]


def test_a_total_that_goes_on_from_an_unknown_one_takes_the_last_call(tmp_path):
    lines = [tokens(90000, 70000, 600, last=(500, 400, 20)), tokens(90100, 70050, 610)]
    assert used(load(write(tmp_path / "a.jsonl", [head("th"), TURN, *lines]))) == [(500, 400, 20), (100, 50, 10)]


def test_threads_in_one_file_are_counted_apart(tmp_path):
    lines = [head("a"), TURN, tokens(1000, 0, 10), head("b"), TURN, tokens(1000, 0, 10)]
    log = load(write(tmp_path / "a.jsonl", lines))
    assert sorted(log.requests["request_id"]) == ["a#1", "b#1"]


def test_codex_lines_that_are_broken_odd_or_foreign(tmp_path):
    odd = tokens(1000, 700, 60)
    odd["payload"]["info"]["total_token_usage"]["output_tokens"] = 3.7
    lines = [
        head("th"),
        TURN,
        odd,
        {"timestamp": "2026-11-02T10:00:02Z", "type": "response_item", "payload": {"type": "message", "role": "user"}},
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "object": "chat.completion"},
        tokens(1500, 900, 100, at="2026-11-02T10:02:00.000Z"),
    ]
    file = write(tmp_path / "a.jsonl", lines)
    file.write_text(file.read_text() + json.dumps(odd)[:90])
    log = load(file)
    rows = log.requests.sort("source_line").to_dicts()
    assert [row["flags"] for row in rows] == [["bad_count"], None]
    assert rows[0]["output_tokens"] is None
    assert rows[1]["input_tokens"] == 500
    assert log.summary["ignored"] == 3
    assert sorted(log.rejects["source_line"]) == [5, 7]


def test_events_of_codex_exec(tmp_path):
    def turn(total, cached, output):
        return {"type": "turn.completed", "usage": _codex((total, cached, output))}

    lines = [
        {"type": "thread.started", "thread_id": "th"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "x"}},
        turn(24763, 24448, 122),
        turn(50000, 48000, 222),
    ]
    log = load(write(tmp_path / "a.jsonl", lines), set={"model": "gpt-5.2-codex"})
    # the last total is the thread's: 50,000 in, 48,000 of it cached, 222 out
    assert used(log) == [(50000, 48000, 222)]
    assert log.requests["flags"].to_list() == [["ts_missing"]]
    assert log.requests["session_id"].to_list() == ["th"]
    assert (log.summary["ignored"], log.summary["merged"]) == (3, 1)


@pytest.mark.full
def test_import_5_a_thread_resumed_with_codex_exec_counts_once(tmp_path):
    def run(*totals):
        turns = [{"type": "turn.completed", "usage": _codex(total)} for total in totals]
        return [{"type": "thread.started", "thread_id": "th"}, {"type": "turn.started"}, *turns]

    # before the task 1,000, 700 and 60; after it 1,800, 1,400 and 125, in a file of its own
    first, second = run((1000, 700, 60)), run((1800, 1400, 125))
    files = [write(tmp_path / f"{number}.jsonl", lines) for number, lines in enumerate([first, second])]
    log = load(files[::-1], set={"model": "gpt-5.2-codex"})
    assert used(log) == [(1800, 1400, 125)]
    assert (log.summary["merged"], log.summary["rejected"]) == (1, 0)
    db = tmp_path / "u.duckdb"
    for file in files:
        log = load(file, db=db, set={"model": "gpt-5.2-codex"})
    assert used(log) == [(1800, 1400, 125)]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.full if at else ()) for at, name in enumerate(sorted(OWN))]
)
def test_loading_again_changes_nothing(tmp_path, name):
    db = tmp_path / "u.duckdb"
    before = load(SAMPLES / name, db=db).requests
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes((SAMPLES / name).read_bytes() + b"\n")
    again = load([SAMPLES / name, copy], db=db)
    assert again.requests.to_dicts() == before.to_dicts()
    assert (again.summary["requests"], again.summary["duplicates"]) == (0, 4)


@pytest.mark.real_data
def test_real_sessions():
    folder = DATA / "ccusage"
    if not folder.is_dir():
        pytest.skip("no real data: set TENFOLD_REAL_DATA")
    log = load(folder)
    assert log.summary["by_format"] == {"claude_code": 5, "codex": 2}
    counts = ["source_format", "input_tokens", "output_tokens", "cache_read_tokens"]
    sums = log.requests.select(counts).group_by("source_format").sum().sort("source_format")
    # by hand: 100+25+10, 200+50+20, 300+0+40, 50+5+15, 80+10+25 in; 50+75+125+25+35 out; Codex's last total
    assert sums["input_tokens"].to_list() == [135 + 270 + 340 + 70 + 115, 3500]
    assert sums["output_tokens"].to_list() == [310, 425]
    assert sums["cache_read_tokens"].to_list() == [110, 750]
    assert [str(value) for value in log.requests["cost_logged_usd"].drop_nulls().sort()][:1] == ["0.030000000000"]
