"""JSON documents over lines: lists, exports with their list in a key, and records printed one by one."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from quick import few

from tenfold.logs import documents, load
from tenfold.logs.window import Window


def chat(n):
    return {
        "id": f"c{n}",
        "object": "chat.completion",
        "created": 1793577600 + n,
        "model": "gpt-4.1",
        "usage": {"prompt_tokens": n, "completion_tokens": 1, "total_tokens": n + 1},
    }


CHATS = [chat(n) for n in (1, 2, 3)]
# A line of a pretty-printed chat begins on its "{": one has 10 lines.
SHAPES = {
    "list on one line": (json.dumps(CHATS), [1, 1, 1]),
    "list with a record a line": ("[\n" + ",\n".join(map(json.dumps, CHATS)) + "\n]\n", [2, 3, 4]),
    "pretty list": (json.dumps(CHATS, indent=2), [2, 13, 24]),
    "page": (json.dumps({"object": "list", "data": CHATS, "has_more": False}, indent=1), [4, 15, 26]),
    "one by one": ("\n".join(json.dumps(row, indent=2) for row in CHATS), [1, 12, 23]),
    "one": (json.dumps(CHATS[0], indent=2), [1]),
    "with a byte order mark": ("\ufeff" + json.dumps(CHATS, indent=2), [2, 13, 24]),
}


# A list, a page and one by one, packed and plain; the others differ in the ends of lines alone.
QUICK = {"pretty list", "page", "one by one"}


@pytest.mark.parametrize(
    "name", few(1, [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in SHAPES])
)
def test_records_are_found_with_their_lines(tmp_path, name):
    text, lines = SHAPES[name]
    file = tmp_path / "a.json"
    file.write_bytes(gzip.compress(text.encode()) if name == "pretty list" else text.encode())
    log = load(file, db=tmp_path / "u.duckdb")
    assert log.summary["rejected"] == 0
    rows = log.requests.sort("request_id").to_dicts()
    assert [row["input_tokens"] for row in rows] == [1, 2, 3][: len(lines)]
    assert [row["source_line"] for row in rows] == lines
    if name == "page":
        assert load(file, db=tmp_path / "u.duckdb").summary["duplicates"] == len(lines)


@pytest.mark.parametrize("end", few(1, range(60, 560, 110)))
def test_what_a_cut_document_holds_is_loaded_and_the_rest_is_named(tmp_path, end):
    text = json.dumps(CHATS, indent=2)
    file = tmp_path / "a.json"
    whole = len(documents_of(text[:end]))
    file.write_text(text[:end])
    if not whole:
        return
    log = load(file)
    assert (log.summary["requests"], log.summary["rejected"]) == (whole, 1)
    assert "JSON" in log.rejects["reason"][0]
    assert log.rejects["source_line"][0] >= log.requests["source_line"].max()


def documents_of(text):
    return list(documents.heads(text)) if documents.is_document(text) else []


def test_an_entry_that_is_no_object_is_refused_alone(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([CHATS[0], 5, "x", CHATS[1]], indent=2))
    log = load(file)
    assert (log.summary["requests"], log.summary["rejected"]) == (2, 2)
    assert log.rejects["source_line"].to_list() == [13, 14]


def test_json_lines_stay_json_lines():
    line = json.dumps(CHATS[0])
    assert not documents.is_document(line)
    assert not documents.is_document("\n".join([line] * 3))
    assert not documents.is_document(line[:20] + "\n" + line)  # a first line cut short
    assert not documents.is_document("[]\n42\n" + line)
    # An answer with a list in it is a record, not a page of records.
    assert not documents.is_document(json.dumps({"object": "list", "data": [{"embedding": [1]}], "usage": {}}))
    assert not documents.is_document("ts,input_tokens\n1,2")


VALUES = st.recursive(
    st.sampled_from([0, -1.5, 1e300, 123456789012, True, None, "", '"', "{[", "\\", "\u2028", "\U0001f600", "\ud83d"]),
    lambda held: st.lists(held, max_size=3) | st.dictionaries(st.sampled_from(["a", "data", "meta"]), held, max_size=3),
    max_leaves=6,
)


def in_pieces(file, size):
    """Read a file through a window of few characters."""
    text = file.read_bytes().decode("utf-8", "surrogateescape")
    return Window((text[place : place + size] for place in range(0, len(text), size)), file)


@settings(max_examples=150, deadline=None, phases=[Phase.generate])
@given(
    rows=st.lists(st.fixed_dictionaries({"id": st.integers(0, 9), "v": VALUES}), max_size=5),
    indent=st.sampled_from([None, 1]),
    kind=st.sampled_from(["list", "one by one", "observations", "page"]),
    size=st.sampled_from([1, 2, 7, 1000]),
    small=st.sampled_from([1, 40, 1 << 20]),
    plain=st.booleans(),
)
def test_records_are_what_a_json_library_reads_in_any_window(tmp_path_factory, rows, indent, kind, size, small, plain):
    documents_of_kind = {
        "list": rows,
        "observations": {"trace": {"id": "t", "input": "x" * 50}, "observations": rows, "scores": [1]},
        "page": {"object": "list", "data": rows, "has_more": False},
    }
    held = rows if kind == "one by one" else [documents_of_kind[kind]]
    text = "\n".join(json.dumps(one, indent=indent, ensure_ascii=not plain) for one in held)
    file = tmp_path_factory.getbasetemp() / "window.json"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_SMALL", small)
        patch.setattr(documents.Window, "of_file", lambda file: in_pieces(file, size))
        found = list(documents.records(file))
    beside = {"observations": {"trace": {"id": "t"}}, "page": {"trace": {"object": "list", "has_more": False}}}
    read = [json.loads(record.decode("utf-8", "surrogatepass"), strict=False) for _, record in found]
    assert read == [{**beside.get(kind, {}), **row} for row in rows]
    # a record's line is where its text begins
    lines = text.split("\n")
    assert all("{" in lines[line - 1] for line, _ in found)
    assert [line for line, _ in found] == sorted(line for line, _ in found)


def test_a_list_that_ends_after_a_line_is_named_too(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps(CHATS, indent=2)[:-2] + ",\n")
    log = load(file)
    assert (log.summary["requests"], log.summary["rejected"]) == (3, 1)


def big(file: Path, size: int, head: str, tail: str) -> int:
    number = written = 0
    with file.open("w") as out:
        out.write(head)
        while written < size:
            text = json.dumps({**chat(number), "choices": [{"message": {"content": "x" * 900}}]}, indent=1)
            written += out.write((",\n" if number else "") + text)
            number += 1
        out.write(tail)
    return number


@pytest.mark.full
@pytest.mark.parametrize(
    ("head", "tail"), [("[\n", "\n]\n"), ('{"trace": {"id": "t"}, "observations": [\n', '\n], "z": 1}')]
)
def test_200_mb_are_read_in_bounded_memory(tmp_path, head, tail):
    file = tmp_path / "a.json"
    number = big(file, 200_000_000, head, tail)
    tracemalloc.start()
    try:
        lines = [line for line, _ in documents.records(file)]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(lines) == number
    assert lines[-1] - lines[0] == (number - 1) * (lines[1] - lines[0])
    assert most < 100_000_000
