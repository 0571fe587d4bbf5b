"""The load as a whole: all or nothing, nothing twice, exact line numbers, packed files, maps, refusals."""

from __future__ import annotations

import gzip
import json
import os

import pytest
import zstandard
from log_files import SAMPLES, chat, counted, table, write
from quick import few

from tenfold.errors import LogFormatError, StoreError
from tenfold.logs import READERS, files, filling, load, open_log, slices
from tenfold.store.database import Store


def test_same_files_again_change_nothing(tmp_path):
    db = tmp_path / "log.duckdb"
    paths = [SAMPLES / "openai_chat.jsonl", SAMPLES / "nasty.jsonl"]
    first = load(paths, db=db)
    before, cube, log_hash = table(first), cells(first), first.log_hash
    again = load(paths, db=db)
    assert counted(again) == (0, 13, 0, 0)
    assert again.rejects.height == 0
    assert first.rejects.height == 4
    reopened = open_log(db)
    assert (table(reopened), cells(reopened), reopened.log_hash) == (before, cube, log_hash)
    assert reopened.summary["requests"] == 13
    assert reopened.summary["by_format"] == {"openai_chat": 13}


def cells(log):
    with log.store.reading() as connection:
        return connection.execute("FROM cube ORDER BY ALL").fetchall()


def test_a_grown_file_adds_only_what_is_new(tmp_path):
    db, file = tmp_path / "log.duckdb", tmp_path / "a.jsonl"
    load(write(file, [chat(1), chat(2)]), db=db)
    log = load(write(file, [chat(1), chat(2), chat(3)]), db=db)
    assert counted(log) == (1, 2, 0, 0)
    assert sorted(log.requests["request_id"]) == ["chatcmpl-1", "chatcmpl-2", "chatcmpl-3"]


def test_files_of_one_call_share_their_ids_and_copies_are_read_once(tmp_path):
    write(tmp_path / "a.jsonl", [chat(1), chat(2)])
    write(tmp_path / "b.jsonl", [chat(2), chat(3)])
    write(tmp_path / "copy.jsonl", [chat(1), chat(2)])
    (tmp_path / ".hidden.jsonl").write_text("no log at all\n")
    (tmp_path / "empty.jsonl").write_text("")
    log = load(tmp_path)
    # a: 2 new; b: 1 repeat, 1 new; copy: both known.
    assert counted(log) == (3, 3, 0, 0)
    assert log.summary["files"] == 4


@pytest.mark.parametrize("packed", [pytest.param("gzip", marks=pytest.mark.full), "zstd", "two members"])
def test_packed_files_equal_plain_ones_whatever_their_name(tmp_path, packed):
    plain = write(tmp_path / "a.jsonl", [chat(n, metadata={"team": f"t{n % 3}"}) for n in range(3000)])
    content = plain.read_bytes()
    cut = len(content) // 2
    bytes_ = {
        "gzip": gzip.compress(content),
        "zstd": zstandard.compress(content),
        "two members": gzip.compress(content[:cut]) + gzip.compress(content[cut:]),
    }[packed]
    file = tmp_path / "b.log"
    file.write_bytes(bytes_)
    assert table(load(file)) == table(load(plain))


@pytest.mark.full
@pytest.mark.parametrize("pack", few(1, [gzip.compress, zstandard.compress]), ids=["gzip", "zstd"])
def test_a_cut_archive_keeps_the_lines_before_the_cut(tmp_path, pack):
    rows = [chat(n, metadata={"team": os.urandom(12).hex()}) for n in range(6000)]
    plain = write(tmp_path / "plain.jsonl", rows)
    packed = pack(plain.read_bytes())
    file = tmp_path / "cut.jsonl"
    file.write_bytes(packed[: len(packed) // 2])
    log = load(file)
    assert 0 < log.summary["requests"] < 6000
    assert log.summary["rejected"] == 1
    reason = log.rejects.to_dicts()[0]
    assert "archive ends" in reason["reason"]
    assert reason["source_line"] == log.summary["requests"] + 1


def test_line_numbers_are_physical_lines(tmp_path):
    one, two = json.dumps(chat(1)), json.dumps(chat(2, note="a\u2028b"), ensure_ascii=False)
    lines = ["\ufeff" + one, "", two, "{broken", "", '{"id": "x", "usage": [1]}', json.dumps(chat(3))]
    file = tmp_path / "a.jsonl"
    file.write_bytes("\r\n".join(lines).encode())
    log = load(file)
    assert dict(zip(log.requests["request_id"], log.requests["source_line"], strict=True)) == {
        "chatcmpl-1": 1,
        "chatcmpl-2": 3,
        "chatcmpl-3": 7,
    }
    assert [(row["source_line"], row["path"]) for row in log.rejects.to_dicts()] == [(4, None), (6, "$.usage")]


@pytest.mark.parametrize(
    ("line", "word"),
    few(
        2,
        [
            ('{"id": "x", "id": "y", "usage": {"prompt_tokens": 1}}', "twice"),
            ('{"id": "x", "usage": {"prompt_tokens": 1}} trailing', "JSON"),
            ('{"id": "x"}{"id": "y"}', "JSON"),
            ('{"usage": {"prompt_tokens_details": 5}}', "expected an object"),
            ('{"choices": {"finish_reason": "stop"}}', "expected a list"),
            ("[" * 100000, "JSON"),
        ],
    ),
    ids=["key twice", "trailing text", "two objects", "no object", "no list", "deep"],
)
def test_each_kind_of_bad_line_is_put_aside_with_its_reason(tmp_path, line, word):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(chat(1)) + "\n" + line + "\n" + json.dumps(chat(2)) + "\n")
    log = load(file)
    assert log.summary["requests"] == 2
    (reject,) = log.rejects.to_dicts()
    assert reject["source_line"] == 2
    assert word in reject["reason"]
    assert len(reject["excerpt"]) <= 80


def test_excerpts_show_structure_and_no_text(tmp_path):
    file = tmp_path / "a.jsonl"
    line = '{"id": "secret-id", "messages": [{"content": "my secret prompt"}], "usage": {"prompt_tokens": 12'
    file.write_text(json.dumps(chat(1)) + "\n" + line + "\nplain secret words, 42\n")
    shown = load(file).rejects["excerpt"].to_list()
    assert "secret" not in " ".join(shown)
    assert '"usage": {"prompt_tokens": 12' in shown[0]
    assert "secret" in load(file, keep_text=True).rejects["excerpt"].to_list()[1]


@pytest.mark.parametrize("broken", few(1, ["", "{broken"]), ids=["strict read", "line by line"])
def test_counts_that_are_no_counts_are_seen_not_coerced(tmp_path, broken):
    cases = {
        "9" * 5000: None,
        "3.7": None,
        "true": None,
        '"many"': None,
        "5.0": 5,
        '"1,024"': 1024,
        "-1": None,
        "1e3": 1000,
        "1000000000": None,
    }
    file = tmp_path / "a.jsonl"
    file.write_text(
        "".join(
            f'{{"id": "{n}", "created": 1793577600, "usage": {{"prompt_tokens": {raw}, "completion_tokens": 1}}}}\n'
            for n, raw in enumerate(cases)
        )
        + broken
    )
    rows = {int(row["request_id"]): row for row in load(file).requests.to_dicts()}
    for n, (raw, right) in enumerate(cases.items()):
        assert rows[n]["input_tokens"] == right, raw
        assert ("coerced" if right is not None else "bad_count") in rows[n]["flags"], raw


def test_a_key_that_comes_late_is_found(tmp_path):
    rows = [chat(n) for n in range(30000)] + [chat(30000, prompt=9000, cached=4)]
    log = load(write(tmp_path / "a.jsonl", rows))
    assert log.requests["cache_read_tokens"].sum() == 4


def test_an_error_in_the_middle_leaves_nothing(tmp_path, monkeypatch):
    db = tmp_path / "log.duckdb"
    load(write(tmp_path / "a.jsonl", [chat(1)]), db=db)
    before = (table(open_log(db)), cells(open_log(db)))

    def fail(*_args, **_kwargs):
        raise RuntimeError("power cut")

    write(tmp_path / "b.jsonl", [chat(2)])
    with monkeypatch.context() as patch:
        # after the manifest and the rejects are written, inside the transaction
        patch.setattr(filling, "publish", fail)
        with pytest.raises(RuntimeError, match="power cut"):
            load(tmp_path / "b.jsonl", db=db)
    assert (table(open_log(db)), cells(open_log(db))) == before
    assert open_log(db).summary["files"] == 1
    assert counted(load(tmp_path / "b.jsonl", db=db)) == (1, 0, 0, 0)


@pytest.mark.full
def test_a_memory_log_can_be_loaded_again_after_an_error(tmp_path):
    with pytest.raises(LogFormatError):
        load(write(tmp_path / "x.jsonl", [{"foo": 1}]))
    assert load(write(tmp_path / "a.jsonl", [chat(1)])).requests.height == 1


def test_unknown_formats_are_refused_with_what_was_looked_for(tmp_path):
    strange = write(tmp_path / "strange.jsonl", [{"foo": 1, "bar": 2}])
    with pytest.raises(LogFormatError) as caught:
        load(strange)
    text = str(caught.value)
    assert "Found: foo, bar" in text
    assert "`tenfold formats` lists all" in text
    near = write(tmp_path / "near.jsonl", [{"custom_id": "a", "response": {"id": 1}}])
    with pytest.raises(LogFormatError) as caught:
        load(near)
    named = [r.name for r in READERS if f"{r.name}: {r.detect.looked_for()}" in str(caught.value)]
    assert "openai_batch" in named
    assert len(named) <= 3
    write(tmp_path / "good.jsonl", [chat(1)])
    with pytest.raises(LogFormatError, match=r"1 of 2 files .* nothing was loaded"):
        load([strange, tmp_path / "good.jsonl"])
    with pytest.raises(LogFormatError, match='Did you mean "openai_chat"'):
        load(strange, format="openai_chats")
    with pytest.raises(LogFormatError, match="no such file"):
        load(tmp_path / "missing.jsonl")


def test_ragged_and_quoted_csv_rows(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(
        b"\xef\xbb\xbfrequest_id,ts,input_tokens,output_tokens,team\r\n"
        b'a,2026-11-02T00:00:00Z,1,2,"two\r\nlines"\r\n'
        b"b,2026-11-02T00:00:00Z,1\r\n"
        b"c,2026-11-02T00:00:00Z,3,4,\xff\r\n"
        b'd,2026-11-02T00:00:00Z,"1,024",5.0,x\r\n'
    )
    log = load(file)
    rows = {row["request_id"]: row for row in log.requests.to_dicts()}
    assert {name: row["source_line"] for name, row in rows.items()} == {"a": 2, "d": 6}
    assert (rows["d"]["input_tokens"], rows["d"]["output_tokens"], rows["d"]["flags"]) == (1024, 5, ["coerced"])
    assert [row["source_line"] for row in log.rejects.to_dicts()] == [4, 5]


def test_set_overrides_and_is_checked(tmp_path):
    file = write(tmp_path / "a.jsonl", [chat(1, metadata={"team": "logged"})])
    (row,) = load(file, set={"provider": "azure", "team": "stated", "is_billable": "false"}).requests.to_dicts()
    assert (row["provider"], row["team"], row["is_billable"]) == ("azure", "stated", False)
    with pytest.raises(LogFormatError, match='Did you mean "team"'):
        load(file, set={"teem": "x"})
    with pytest.raises(LogFormatError, match="cannot be set"):
        load(file, set={"input_tokens": "5"})


def test_progress_tells_files_bytes_rows_and_rejects(tmp_path, monkeypatch):
    monkeypatch.setattr(slices, "SLICE_BYTES", 2_000)
    monkeypatch.setattr(files, "_CHUNK", 500)
    first = write(tmp_path / "a.jsonl", [chat(i) for i in range(20)])
    (tmp_path / "b.jsonl").write_text(json.dumps(chat(99)) + "\n{torn\n")
    seen = []
    load(tmp_path, progress=seen.append)
    assert [(step.number, step.files) for step in seen if step.read_bytes == 0] == [(1, 2), (2, 2)]
    assert (seen[0].rows, seen[-1].rows, seen[-1].rejected) == (0, 21, 1)
    of_first = [step.read_bytes for step in seen if step.number == 1]
    assert len(of_first) > 2
    assert of_first == sorted(of_first)
    assert of_first[-1] == first.stat().st_size == seen[0].file_bytes


def test_progress_of_a_file_that_is_read_once_more_does_not_count_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(slices, "SLICE_BYTES", 2_000)
    monkeypatch.setattr(files, "_CHUNK", 500)
    last = [chat(90, object="chat.completion.chunk", choices=[]), chat(91, object="chat.completion.chunk", choices=[])]
    file = write(tmp_path / "a.jsonl", [*(chat(i) for i in range(20)), *last])
    seen = []
    log = load(file, progress=seen.append)
    assert seen[-1].rows == log.summary["requests"] == 22
    assert seen[-1].read_bytes == file.stat().st_size


def test_a_store_without_loads_says_what_to_do(tmp_path):
    with Store(tmp_path / "new.duckdb").writing():
        pass
    with pytest.raises(StoreError, match="tenfold load"):
        open_log(tmp_path / "new.duckdb")
