"""What damaged files brought to light: the smallest input of each finding, and lines whose neighbours are damaged."""

from __future__ import annotations

import json

import pytest
from log_files import chat, counted, write

from tenfold.logs import load


def block(number, output, **more):
    usage = {"input_tokens": 2, "output_tokens": output}
    message = {"id": "msg_1", "model": "claude-opus-5-5", "stop_reason": "end_turn", "usage": usage}
    at = f"2026-11-02T10:00:{number:02d}Z"
    return {"type": "assistant", "sessionId": "s", "timestamp": at, "requestId": "req_1", "message": message, **more}


def test_the_fullest_line_of_a_message_is_told_by_its_counts_however_they_are_written(tmp_path):
    # "1,024" is a count and the largest; NaN is none, and must not hide those that are
    log = load(write(tmp_path / "a.jsonl", [block(1, 9), block(2, "1,024"), block(3, 159)]))
    assert log.requests["output_tokens"].to_list() == [1024]
    log = load(write(tmp_path / "b.jsonl", [block(1, 9), block(2, float("nan")), block(3, 159)]))
    assert log.requests["output_tokens"].to_list() == [159]


def test_a_block_of_an_unknown_plugin_is_named_and_not_counted_as_merged(tmp_path):
    base = {"started_at": 1793577600123, "request": {"id": "k"}, "response": {"status": 200}}
    usage = {"usage": {"prompt_tokens": 120, "completion_tokens": 29, "total_tokens": 149}}
    log = load(write(tmp_path / "a.jsonl", [{**base, "ai": {"proxy": usage}}, {**base, "ai": {"ai-judge": usage}}]))
    assert counted(log) == (1, 0, 0, 1)
    assert log.rejects["source_line"].to_list() == [2]


NAMELESS = ("", "none", float("nan"), None)


@pytest.mark.full
def test_answers_without_an_id_are_not_one_answer(tmp_path):
    files = []
    for number, nameless in enumerate(NAMELESS):
        gemini = {"responseId": nameless, "modelVersion": "gemini-3-pro"}
        answer = {"status": "completed", "model": "gpt-6-astra", "id": nameless}
        event = {"type": "response.completed", "sequence_number": 9}
        usages = [{"promptTokenCount": n, "candidatesTokenCount": 1, "totalTokenCount": n + 1} for n in (5, 700)]
        said = [{"input_tokens": n, "output_tokens": 1, "total_tokens": n + 1} for n in (5, 700)]
        chunks = [
            chat(1, id=nameless, object="chat.completion.chunk", prompt=prompt, choices=[]) for prompt in (5, 700)
        ]
        events = [{**event, "response": {**answer, "usage": usage}} for usage in said]
        for name, rows in (
            ("g", [{**gemini, "usageMetadata": usage} for usage in usages]),
            ("c", chunks),
            ("r", events),
        ):
            files.append(write(tmp_path / f"{number}{name}.jsonl", rows))
    frame = load(files).requests
    for file in files:
        found = frame.filter(frame["source_file"] == str(file))["input_tokens"].to_list()
        assert sorted(found) == [5, 700], file


def test_an_event_of_no_kind_and_a_turn_without_usage_are_beside_and_not_merged(tmp_path):
    counts = {"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 5}
    info = {"total_token_usage": counts, "last_token_usage": counts}
    at = {"timestamp": "2026-11-02T10:00:00Z"}
    rows = [
        {**at, "type": "session_meta", "payload": {"id": "th"}},
        {**at, "type": "event_msg", "payload": {"info": info}},
        {"type": "turn.completed"},
        {**at, "type": "event_msg", "payload": {"type": "token_count", "info": info}},
    ]
    log = load(write(tmp_path / "a.jsonl", rows))
    assert counted(log) == (1, 0, 0, 0)
    assert log.summary["ignored"] == 3


def test_a_null_among_a_streams_metrics_is_no_count(tmp_path):
    metrics = {"inputTokenCount": None, "outputTokenCount": 12}
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}
    body = [start, {"amazon-bedrock-invocationMetrics": metrics}]
    row = {"schemaType": "ModelInvocationLog", "requestId": "r", "modelId": "m", "output": {"outputBodyJson": body}}
    row |= {"timestamp": "2026-11-02T10:00:00Z", "operation": "InvokeModelWithResponseStream"}
    (found,) = load(write(tmp_path / "a.jsonl", [row])).requests.to_dicts()
    assert (found["input_tokens"], found["output_tokens"]) == (7, 12)
    assert "bad_count" not in (found["flags"] or ())


def test_a_tool_of_another_name_is_no_preview(tmp_path):
    body = {"id": "r", "object": "response", "status": "completed", "model": "gpt-6-astra"}
    body |= {"output": [{"type": "web_search_call"}], "tools": [{"type": "web-search-preview"}]}
    body |= {"usage": {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}}
    (row,) = load(write(tmp_path / "a.jsonl", [body])).requests.to_dicts()
    assert (row["web_searches"], row["web_searches_preview"]) == (1, None)


def test_json_on_lines_of_its_own_within_cells_makes_no_json_lines(tmp_path):
    file = tmp_path / "a.csv"
    cell = '"[\n{}\n]"'
    rows = [f"2023-11-16 18:15:4{n}.6805900,374,44,{cell if n % 2 else ''}" for n in range(6)]
    file.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens,note", *rows]) + "\n", encoding="utf-8")
    log = load(file)
    assert log.summary["by_format"] == {"azure_llm_trace": 6}
    assert (log.summary["rejected"], log.requests["input_tokens"].sum()) == (0, 6 * 374)


def test_an_open_quote_and_a_strange_byte_cost_no_other_record(tmp_path):
    head = b"TIMESTAMP,ContextTokens,GeneratedTokens,note"
    whole = [b"2023-11-16 18:15:4%d.6,374,44," % n for n in range(6)]
    rows = [
        whole[0],
        b'2023-11-16 18:15:50.6,1,2,"open',
        *whole[1:4],
        b"2023-11-16 18:15:51.6,1,2,\xff",
        *whole[4:],
        b'x"',
    ]
    file = tmp_path / "a.csv"
    file.write_bytes(b"\n".join([head, *rows]) + b"\n")
    log = load(file)
    assert sorted(log.rejects["source_line"].to_list()) == [3, 7, 10]
    assert log.requests.sort("source_line")["source_line"].to_list() == [2, 4, 5, 6, 8, 9]


def test_a_torn_line_early_in_a_small_table_does_not_make_it_binary(tmp_path):
    file = tmp_path / "a.csv"
    rows = ["2023-11-16 18:15:46.6805900,374,44", "\0" * 200 + "2023-11-16 18:15:47,1,2", "2023-11-16 18:15:48,5,6"]
    file.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]) + "\n", encoding="utf-8")
    log = load(file)
    assert (log.summary["requests"], log.summary["rejected"], log.requests["input_tokens"].sum()) == (3, 0, 380)


@pytest.mark.xfail(reason="the engine's reading of tables keeps NULs, the reading line by line takes them out")
def test_nuls_in_a_cell_are_taken_out_whatever_stands_beside_them(tmp_path):
    head, whole, torn = "TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:15:4{},374,44", "\0\0006"
    rows = [whole.format(1), f"2023-11-16 18:15:50,{torn},44", whole.format(2)]
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file, more in zip(files, ([], ["1,2"]), strict=True):
        file.write_text("\n".join([head, *rows, *more]) + "\n", encoding="utf-8")
    log = load(files)
    assert log.requests.filter(log.requests["source_line"] == 3)["input_tokens"].to_list() == [6, 6]


def test_a_damaged_key_in_one_line_stops_no_file(tmp_path):
    row = {"ts": 1793577600, "model": "m", "input_tokens": 10, "cache_read_tokens": 4, "output_tokens": 1}
    torn = {name.replace("cache_r", "cache_R"): value for name, value in row.items()}
    log = load(write(tmp_path / "a.jsonl", [row, torn, row]))
    assert log.requests.sort("source_line")["cache_read_tokens"].to_list() == [4, None, 4]


# A line's fate is its own: the first reading stops at no other line's damage, the second begins with it.
LINE = json.dumps(chat(7))
ODD_LINES = {
    "a comma too many": LINE[:-1] + ",}",
    "a key twice": LINE[:-1] + ', "id": "x"}',
    "a strange key twice": LINE[:-1] + ', "x": 1, "x": 2}',
    "a strange key twice below": LINE[:-1] + ', "x": {"y": 1, "y": 2}}',
    "a lower nan": LINE.replace('"prompt_tokens": 100', '"prompt_tokens": nan'),
    "NaN": LINE.replace('"prompt_tokens": 100', '"prompt_tokens": NaN'),
    "beyond all floats": LINE.replace('"prompt_tokens": 100', '"prompt_tokens": 1e400'),
    "beyond all integers": LINE.replace('"prompt_tokens": 100', '"prompt_tokens": ' + "9" * 60),
    "a point and zeros": LINE.replace('"prompt_tokens": 100', '"prompt_tokens": 100.000'),
    "a leading zero": LINE.replace('"prompt_tokens": 100', '"prompt_tokens": 0100'),
    "depth": LINE[:-1] + ', "x": ' + "[" * 3000 + "]" * 3000 + "}",
    "a form feed before": "\x0c" + LINE,
    "a no-break space before": "\u00a0" + LINE,
    "a comment": LINE + " // x",
    "a control sign": LINE.replace('"gpt-5"', '"gpt\x01-5"'),
    "a lone surrogate": LINE.replace('"gpt-5"', '"gpt\\ud83d-5"'),
    "an escaped key": LINE.replace('"id"', '"\\u0069d"'),
    "a key in capitals": LINE.replace('"id"', '"ID"'),
    "two in one": LINE + LINE,
    "a byte order mark": "\ufeff" + LINE,
    "a carriage return": LINE + "\r",
    "text for an object": LINE[:-1] + ', "metadata": "x"}',
}


@pytest.fixture(scope="module")
def fates(tmp_path_factory):
    """What became of each odd line among whole ones, and beside a line that is broken in two ways."""
    folder = tmp_path_factory.mktemp("fates")
    files = {}
    for place, (name, line) in enumerate(ODD_LINES.items()):
        for number, neighbour in enumerate((json.dumps(chat(900)), '{"id": ', "\0\0" + json.dumps(chat(901)))):
            own = 1000 * place + number
            lines = [json.dumps(chat(own + 100)), line.replace("chatcmpl-7", f"chatcmpl-{own}"), neighbour]
            file = folder / f"{place}-{number}.jsonl"
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            files[str(file)] = name
    log = load(list(files), format="openai_chat", thresholds=())
    found = dict.fromkeys(files, "lost")
    for row in log.requests.to_dicts():
        if row["source_line"] == 2:
            found[row["source_file"]] = (row["input_tokens"], row["output_tokens"], row["model"], row["flags"])
    for row in log.rejects.to_dicts():
        if row["source_line"] == 2:
            found[row["source_file"]] = "rejected"
    made = {name: [] for name in ODD_LINES}
    for file, fate in found.items():
        made[files[file]].append(fate)
    return made


# What the engine's reading takes and the reading line by line does not.
# Whether the interpreter's own parser takes such a depth is the version's to say; the others must fail while they do.
_LENIENT = {"a comma too many": True, "a lower nan": True, "depth": False}


def _unlike(name):
    reason = "loaded among whole lines, rejected beside a broken one"
    return pytest.mark.xfail(reason=reason, strict=_LENIENT[name]) if name in _LENIENT else ()


@pytest.mark.parametrize("name", [pytest.param(one, marks=_unlike(one)) for one in ODD_LINES])
def test_a_lines_fate_is_its_own(fates, name):
    alone, *beside = fates[name]
    assert alone != "lost"
    assert beside == [alone, alone]
