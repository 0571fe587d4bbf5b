"""A file read in slices, by the short way or the longer one, gives the rows and rejects of the file read whole."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random

import pytest
import zstandard
from log_files import HIDDEN_COLUMNS, SAMPLES, chat

from tenfold.logs import direct, files, load, sieve, slices
from tenfold.logs.base import tree

ROWS = 400
BROKEN = {
    "torn": b'{"id": "chatcmpl-x", "usage": {"prompt_tok',
    "text": b"not a line of a log",
    "blank": b"   ",
    "list": b"[1, 2, 3]",
    "number": b"42",
    "wrong kind": b'{"id": "chatcmpl-y", "object": "chat.completion", "usage": 5}',
    "twice": b'{"id": "a", "id": "b", "object": "chat.completion", "usage": {"prompt_tokens": 1}}',
    "not UTF-8": b'{"id": "\xff", "object": "chat.completion", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}',
    "foreign": b'{"hello": "world"}',
    "NUL": b'\0\0{"id": "nul", "object": "chat.completion", "usage": {"prompt_tokens": 7, "completion_tokens": 1}}',
    "surrogate": rb'{"id": "chatcmpl-\ud83d", "object": "chat.completion", "usage": {"prompt_tokens": 8}}',
    "two": b'{"id": "c1"}{"id": "c2"}',
    "bad count": b'{"id": "z", "object": "chat.completion", "usage": {"prompt_tokens": "1,024", "total_tokens": -4}}',
    "empty": b"{}",
}  # fmt: skip


def lines(*, broken=(), seed=1):
    draw = random.Random(seed)
    rows = [json.dumps(chat(i, prompt=draw.randrange(1, 9000), completion=i % 70)).encode() for i in range(ROWS)]
    for kind in broken:
        rows.insert(draw.randrange(len(rows)), BROKEN[kind])
    return b"\n".join(rows) + b"\n"


def table():
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["request_id", "ts", "provider", "model", "input_tokens", "output_tokens", "feature"])
    for i in range(ROWS):
        feature = f'a "quoted",\nname {i}' if i % 7 == 0 else f"plain {i}"
        writer.writerow([f"r{i}", f"2026-10-01T00:00:{i % 60:02}Z", "openai", "gpt-5", 100 + i, i, feature])
    return out.getvalue().encode()


def stream():
    chunks = []
    for i in range(ROWS // 4):
        base = {"id": f"chatcmpl-{i}", "object": "chat.completion.chunk", "created": 1793577600, "model": "gpt-5"}
        chunks += [{**base, "choices": [{"delta": {"content": "hello"}}]} for _ in range(3)]
        usage = {"prompt_tokens": 10 + i, "completion_tokens": 3, "total_tokens": 13 + i}
        chunks.append({**base, "choices": [], "usage": usage})
    return "".join(json.dumps(chunk) + "\n" for chunk in chunks).encode()


def cut(packed):
    return packed[: len(packed) * 2 // 3]


CONTENTS = {
    "clean": lines(),
    "no end of line": lines()[:-1],
    "CRLF": lines().replace(b"\n", b"\r\n"),
    "BOM": b"\xef\xbb\xbf" + lines(),
    **{kind: lines(broken=[kind]) for kind in BROKEN},
    "everything": lines(broken=[*BROKEN, *BROKEN], seed=3),
    "gzip": gzip.compress(lines()),
    "zstd": zstandard.compress(lines(broken=["torn", "NUL"])),
    "cut gzip": cut(gzip.compress(lines())),
    "cut zstd": cut(zstandard.compress(b"".join(lines(seed=seed) for seed in range(6)))),
    "damaged gzip": gzip.compress(lines())[:-6] + b"\1\2\3\4\5\6",
    "table": table(),
    "table with a bad record": table().replace(b"plain 99", b'plain "99'),
    "stream": stream(),
    "one long line": b"".join((lines(), json.dumps(chat(9, pad="x" * 60_000)).encode(), b"\n", lines(seed=2))),
    "text": "".join(
        json.dumps({**chat(i), "choices": [{"message": {"role": "assistant", "content": f"answer {i}"}}]}) + "\n"
        for i in range(ROWS)
    ).encode(),
}


def loaded(file, **more):
    log = load(file, **more)
    requests = (
        log.requests.drop(HIDDEN_COLUMNS).sort("source_format", "source_line", "dedup_key", "input_tokens").to_dicts()
    )
    rejects = log.rejects.drop("source_file", strict=False).to_dicts()
    return requests, rejects, log.summary


# These meet every way through the load; "everything" meets all kinds of broken lines together, and the others are runs
# of them one by one.
QUICK = ("torn", "table with a bad record")


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.full) for kind in CONTENTS]
)
def test_slices_change_nothing(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("TENFOLD_HASH_KEY", "00" * 32)
    file = tmp_path / "log"
    file.write_bytes(CONTENTS[kind])
    whole = loaded(file)
    for least, size in ((0, 1 << 30), (0, 9_000), (1 << 30, 25_000)):
        monkeypatch.setattr(direct, "LEAST_BYTES", least)
        monkeypatch.setattr(slices, "SLICE_BYTES", size)
        monkeypatch.setattr(files, "_CHUNK", 4_000)
        assert loaded(file) == whole
    assert whole[2]["requests"] + whole[2]["rejected"] > ROWS // 5


def test_a_slice_is_whole_lines_and_none_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(slices, "SLICE_BYTES", 5_000)
    monkeypatch.setattr(files, "_CHUNK", 1_777)
    file = tmp_path / "log.jsonl"
    file.write_bytes(lines())
    parts = []
    for part in slices.slices(file, files.scan(file), is_table=False):
        assert not part.is_all
        parts.append((part.file.read_bytes(), part.lines, part.shift))
    assert b"".join(text for text, _, _ in parts) == file.read_bytes()
    assert len(parts) > 5
    start = 0
    for text, count, shift in parts:
        assert (count, shift) == (text.count(b"\n"), start)
        start += count


def test_a_table_is_cut_outside_quotes_and_every_slice_has_the_header(tmp_path, monkeypatch):
    monkeypatch.setattr(slices, "SLICE_BYTES", 3_000)
    monkeypatch.setattr(files, "_CHUNK", 1_111)
    file = tmp_path / "log.csv"
    file.write_bytes(table())
    rows, starts = [], []
    for part in slices.slices(file, files.scan(file), is_table=True):
        text = part.file.read_bytes().decode()
        starts.append((part.shift, text.splitlines(keepends=True)[1]))
        rows += list(csv.DictReader(io.StringIO(text, newline="")))
    assert rows == list(csv.DictReader(io.StringIO(table().decode(), newline="")))
    # The line after the header is, in the file, the shift further down.
    by_number = dict(enumerate(table().decode().splitlines(keepends=True), 1))
    assert all(by_number[2 + shift] == line for shift, line in starts)
    assert len(starts) > 5


@pytest.mark.full
def test_the_samples_read_directly_are_the_same(monkeypatch):
    monkeypatch.setenv("TENFOLD_HASH_KEY", "00" * 32)
    names = [file for file in sorted(SAMPLES.iterdir()) if file.suffix in {".jsonl", ".csv", ".log"}]
    known = [file for file in names if file.name != "expected_canonical.jsonl"]
    whole = loaded(known)
    monkeypatch.setattr(direct, "LEAST_BYTES", 0)
    assert loaded(known) == whole
    assert whole[2]["requests"] > 50


def test_the_sieve_keeps_what_has_objects_and_lists_where_they_belong():
    leaves = {"id": "VARCHAR", "usage.n": "JSON", "list[].x": "VARCHAR", "open": "MAP(VARCHAR, JSON)", "any": "JSON"}
    good = (
        *(
            b'{"id": "a", "usage": {"n": 1}, "list": [{"x": 1}, null], "open": {"k": 1}, "any": [1]}',
            b' {"id": null}\r',
        ),
        *(b'{"usage": null, "list": null, "open": null}', b'{"other": {"usage": 5}, "id": {"n": 1}}'),
    )
    bad = (b'{"usage": 5}', b'{"list": {}}', b'{"list": [5]}', b'{"open": []}', b"[]", b"{", b"{}", b'{"id": "\xff"}')
    out = io.BytesIO()
    kept, odd = sieve.sieve(enumerate((*good, b"  ", *bad), 1), tree(leaves), (), out, "line")
    assert kept == len(good)
    assert [line for _, line in odd] == list(bad)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [row.pop("line") for row in rows] == [1, 2, 3, 4]
    assert rows == [json.loads(line) for line in good]
