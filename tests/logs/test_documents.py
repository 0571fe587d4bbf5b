"""JSON documents over lines: lists, exports with their list in a key, and records printed one by one."""

from __future__ import annotations

import gzip
import json

import pytest

from tenfold.logs import documents, load


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


@pytest.mark.parametrize("name", SHAPES)
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


@pytest.mark.parametrize("end", range(60, 560, 110))
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
