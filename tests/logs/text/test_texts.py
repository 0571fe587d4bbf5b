"""What a load makes of text: hashes and estimates, and nothing of the text itself unless it is asked for."""

from __future__ import annotations

import csv
import io
import json

import pytest
from log_files import chat, write
from quick import few
from typer.testing import CliRunner

from tenfold.cli import app
from tenfold.logs import load
from tenfold.logs.text import columns, hashing, tokens

CONTENT = ("prompt_hash", "params_hash", "response_hash", "prefix_hashes", "prefix_block_tokens")
SECRET = "xyzzy-plugh-4711"
LONG = " ".join(f"{SECRET} number {number}" for number in range(60))
MESSAGES = [{"role": "system", "content": LONG}, {"role": "user", "content": f"What is {SECRET}?"}]
SAID = f"It is {SECRET}, surely."


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    monkeypatch.setenv(hashing.ENVIRONMENT, "a key of the tests, long enough for one")


def answer(number=1, **more):
    said = {"role": "assistant", "content": SAID}
    body = {"model": "gpt-5", "messages": MESSAGES, "temperature": 0, "stream": False, "user": "u-1"}
    return chat(number, choices=[{"index": 0, "finish_reason": "stop", "message": said}], request=body, **more)


def only(log):
    (row,) = log.requests.to_dicts()
    return row


def counted(text, encoding="o200k_base"):
    return len(tokens.encoding(encoding).encode_ordinary(text))


def test_a_request_and_its_answer_become_hashes(tmp_path):
    row = only(load(write(tmp_path / "a.jsonl", [answer()])))
    assert all(row[name] is not None for name in CONTENT)
    assert row["prefix_block_tokens"] == 128
    asked = sum(3 + counted(m["role"]) + counted(m["content"]) for m in MESSAGES)
    assert len(row["prefix_hashes"]) == asked // 128 >= 3
    assert (row["input_tokens"], row["output_tokens"], row["token_source"]) == (100, 10, "reported")
    assert row["flags"] is None


def test_what_the_answer_does_not_depend_on_changes_no_hash(tmp_path):
    other = answer(2, model="gpt-4o")
    other["request"] |= {"model": "gpt-4o", "stream": True, "user": "u-2", "metadata": {"a": "b"}}
    warm = answer(3)
    warm["request"]["temperature"] = 1
    rows = load(write(tmp_path / "a.jsonl", [answer(), other, warm])).requests.to_dicts()
    hashes = [tuple(map(str, (row[name] for name in CONTENT))) for row in rows]
    assert hashes[0] == hashes[1]
    assert [a == b for a, b in zip(hashes[0], hashes[2], strict=True)] == [True, False, True, True, True]


def test_two_loads_into_one_database_match_and_two_databases_do_not(tmp_path, monkeypatch):
    monkeypatch.delenv(hashing.ENVIRONMENT)
    first, second = (write(tmp_path / f"{n}.jsonl", [answer(n)]) for n in (1, 2))
    load(first, db=tmp_path / "a.duckdb")
    rows = load(second, db=tmp_path / "a.duckdb").requests.to_dicts()
    assert len(rows) == 2
    assert all(rows[0][name] == rows[1][name] for name in CONTENT)
    other = only(load(first, db=tmp_path / "b.duckdb"))
    assert not {str(other[name]) for name in CONTENT[:4]} & {str(rows[0][name]) for name in CONTENT[:4]}


def test_case_11_a_stream_without_usage_is_estimated_and_says_so(tmp_path):
    pieces = ["It ", "is ", "fine."]
    request = {"messages": [{"role": "user", "content": "How is it?"}]}
    lines = [
        {
            "id": "c-1",
            "object": "chat.completion.chunk",
            "created": 1793577600,
            "model": "gpt-4-turbo",
            "choices": [{"delta": {"content": piece}}],
            "usage": None,
        }
        for piece in pieces
    ]
    lines[-1]["choices"] = [{"delta": {"content": pieces[-1]}, "finish_reason": "stop"}]
    # the request is in the last line, which stands for the stream
    lines[-1]["request"] = request
    row = only(load(write(tmp_path / "a.jsonl", lines)))
    old = "cl100k_base"
    right = 3 + counted("user", old) + counted("How is it?", old) + 3
    assert (row["input_tokens"], row["output_tokens"]) == (right, counted("It is fine.", old))
    assert row["token_source"] == "estimated"
    assert "stream_without_usage" in row["flags"]
    assert row["cache_read_tokens"] is None
    bare = only(load(write(tmp_path / "b.jsonl", lines), hashes=False))
    assert (bare["input_tokens"], bare["output_tokens"], bare["token_source"]) == (None, None, None)


def test_reported_and_estimated_parts_are_never_mixed(tmp_path):
    half, total, failed = answer(1), answer(2), answer(3)
    half["usage"] = {"prompt_tokens": 7}
    total["usage"] = {"total_tokens": 9}
    failed |= {"usage": None, "error": {"type": "overloaded"}, "status_code": 529}
    rows = load(write(tmp_path / "a.jsonl", [half, total, failed])).requests.to_dicts()
    found = [(row["input_tokens"], row["output_tokens"], row["token_source"]) for row in rows]
    assert found == [(7, None, "reported"), (None, None, None), (None, None, None)]


@pytest.mark.full
def test_an_image_makes_the_prompts_count_unknown(tmp_path):
    seen = answer(usage=None)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4000}}
    seen["request"]["messages"] = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]
    other = answer(2, usage=None)
    other["request"]["messages"] = json.loads(json.dumps(seen["request"]["messages"]).replace("AAAA", "BBBB"))
    rows = load(write(tmp_path / "a.jsonl", [seen, other])).requests.to_dicts()
    assert [row["input_tokens"] for row in rows] == [None, None]
    assert [row["output_tokens"] for row in rows] == [counted(SAID)] * 2
    assert rows[0]["prompt_hash"] != rows[1]["prompt_hash"]


def test_without_tiktoken_the_load_goes_on_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "is_available", lambda: False)
    file = write(tmp_path / "a.jsonl", [answer(usage=None), chat(2)])
    log = load(file)
    row, bare = log.requests.sort("source_line").to_dicts()
    assert (row["input_tokens"], row["output_tokens"], row["prefix_hashes"]) == (None, None, None)
    assert row["prompt_hash"] is not None
    assert set(row["flags"]) == {"usage_missing", "not_tokenised", "details_missing"} - {"details_missing"}
    assert bare["flags"] is None
    told = CliRunner().invoke(app, ["load", str(file), "--db", str(tmp_path / "a.duckdb")]).output
    assert "tenfold[tokens]" in " ".join(told.split())


def test_a_log_without_text_needs_no_key_and_no_tokens(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "ranks", lambda *_: pytest.fail("ranks were read"))
    monkeypatch.setenv(hashing.ENVIRONMENT, "short")
    row = only(load(write(tmp_path / "a.jsonl", [chat(1)]), db=tmp_path / "a.duckdb"))
    assert [row[name] for name in CONTENT] == [None] * 5


def rejected():
    return json.dumps({"messages": MESSAGES})[:-2] + "\n" + json.dumps({"note": SECRET}) + "\n"


@pytest.mark.parametrize("keep_text", [False, True])
@pytest.mark.parametrize("is_broken", [pytest.param(False, marks=pytest.mark.full), True])
def test_the_database_holds_text_only_where_it_was_asked_for(tmp_path, keep_text, is_broken):
    folder = tmp_path / "store"
    folder.mkdir()
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(answer(n)) + "\n" for n in (1, 2, 2)) + is_broken * rejected())
    log = load(file, db=folder / "a.duckdb", keep_text=keep_text)
    assert log.summary["rejected"] == 2 * is_broken
    assert log.summary["duplicates"] == 1
    assert all(row["prompt_hash"] and row["prefix_hashes"] for row in log.requests.to_dicts())
    held = b"".join(part.read_bytes() for part in folder.rglob("*") if part.is_file())
    assert [part.name for part in folder.iterdir()] == ["a.duckdb"]
    texts = log.texts.select("source_line", "prompt", "response").rows()
    if keep_text:
        assert [row[0] for row in texts] == [1, 2]
        assert json.loads(texts[0][1]) == {"messages": MESSAGES}
        assert SAID in texts[0][2]
    else:
        assert texts == []
        assert SECRET.encode() not in held
        assert b"plugh" not in held


def test_kept_text_holds_no_headers_and_goes_with_its_request(tmp_path):
    first = answer()
    first["request"] = {"headers": {"authorization": "Bearer sk-live"}, "body": first["request"]}
    file, db = write(tmp_path / "a.jsonl", [first]), tmp_path / "a.duckdb"
    load(file, db=db, keep_text=True)
    later = answer(completion=30)
    log = load(write(tmp_path / "b.jsonl", [later]), db=db, keep_text=True)
    assert log.summary["merged"] == 1
    assert log.texts.select("load_id", "prompt").rows() == [(2, json.dumps({"messages": MESSAGES}))]
    assert b"sk-live" not in db.read_bytes()


@pytest.mark.full
def test_texts_in_a_table_of_ones_own(tmp_path):
    held = io.StringIO()
    table = csv.DictWriter(held, ["when", "asked", "said", "set"], lineterminator="\n")
    table.writeheader()
    for number, asked in enumerate(["plain text", json.dumps(MESSAGES), ""]):
        table.writerow(
            {"when": f"2026-11-02T10:00:0{number}Z", "asked": asked, "said": asked and SAID, "set": '{"t":1}'}
        )
    file = tmp_path / "a.csv"
    file.write_text(held.getvalue())
    names = {"ts": "when"}
    texts = {"prompt": "asked", "response": "said", "params": "set"}
    rows = load(file, map={"columns": names | texts, "constants": {"status": "success"}}).requests.to_dicts()
    framed = sum(3 + counted(m["role"]) + counted(m["content"]) for m in MESSAGES) + 3
    assert [row["input_tokens"] for row in rows] == [counted("plain text"), framed, None]
    assert [row["output_tokens"] for row in rows] == [counted(SAID), counted(SAID), None]
    assert [row["token_source"] for row in rows] == ["estimated", "estimated", None]
    assert [row["prompt_hash"] is None for row in rows] == [False, False, True]
    assert rows[0]["params_hash"] == rows[1]["params_hash"] is not None
    # tenfold's own names need no map
    own = write(tmp_path / "b.jsonl", [{"ts": "2026-11-02T10:00:00Z", "input_tokens": 5, "prompt": MESSAGES}])
    assert only(load(own))["prompt_hash"] == rows[1]["prompt_hash"]


@pytest.mark.parametrize(("name", "size"), few(1, [("mooncake_trace", 512), ("qwen_bailian_trace", 16)]))
def test_traces_keep_their_own_blocks(name, size):
    from log_files import SAMPLES

    row = load(SAMPLES / f"{name}.jsonl").requests.to_dicts()[0]
    assert row["prefix_block_tokens"] == size
    assert row["prefix_hashes"][:2] == {512: ["46", "47"], 16: ["1089", "1090"]}[size]


@pytest.mark.full
def test_the_option_leaves_text_unread(tmp_path):
    file = write(tmp_path / "a.jsonl", [answer()])
    run = CliRunner().invoke(app, ["load", str(file), "--db", str(tmp_path / "a.duckdb"), "--no-hashes", "--json"])
    assert run.exit_code == 0, run.output
    row = only(load(file, db=tmp_path / "a.duckdb", hashes=False))
    assert [row[name] for name in CONTENT] == [None] * 5
