"""Files that are no log, or a broken one: refused in one line that names file and way out, whatever their bytes."""

from __future__ import annotations

import gzip
import io
import json
import random
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from log_files import SAMPLES, chat, counted, write
from quick import few

from tenfold.errors import LogFormatError, TenfoldError
from tenfold.logs import READERS, load


def refused(path, **how):
    with pytest.raises(LogFormatError) as caught:
        load(path, **how)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def spreadsheet():
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return held.getvalue()


ODD = {
    "sheet.xlsx": (spreadsheet(), ["spreadsheet", "CSV"]),
    "broken.json": (json.dumps(chat(1), indent=2).encode()[:40], ["JSON document over several", "one object a line"]),
    "cut.json": (json.dumps([chat(1)]).encode()[:40], ["JSON document", "one object a line"]),
    "README.md": (b"# Logs\n\nWhat lies here.\n", ["plain text"]),
    "x.bin": (random.Random(5).randbytes(500), ["binary data"]),
    "mac.csv": (b"ts,input_tokens,output_tokens\r2026-11-02T00:00:00Z,1,2\r", ["end in CR alone", "tr "]),
    "mac_quoted.csv": (b'ts,"a\rb",output_tokens\r1,2,3\r', ["CR alone"]),
    "wide.csv": ("ts,input_tokens,output_tokens\n1,2,3\n".encode("utf-16"), ["UTF-16", "UTF-8"]),
    "page.html": (b"<!DOCTYPE html>\n<p>502\n", ["HTML"]),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_log_is_called_what_it_looks_like(tmp_path, name):
    content, words = ODD[name]
    (tmp_path / name).write_bytes(content)
    alone = refused(tmp_path / name)
    assert alone.startswith(f"{tmp_path / name}: unknown log format (looks like ")
    # named beside a good file: as short, and nothing is left hanging
    together = refused([write(tmp_path / "good.jsonl", [chat(1)]), tmp_path / name])
    assert "1 of 2 files" in together
    assert "Looked for" not in together
    for word in words:
        assert word in alone
        assert word in together


def test_a_bare_cr_within_a_first_line_is_no_traceback(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"ts,in\rput,x\n1,2,3\n")
    assert "a.csv" in refused(tmp_path / "a.csv")
    assert "a.csv" in refused(tmp_path / "a.csv", map={"columns": {"input_tokens": "x"}})


def test_many_unknown_files_are_named_in_part(tmp_path):
    for number in range(8):
        write(tmp_path / f"{number}.jsonl", [{"foo": 1}])
    said = refused(tmp_path)
    assert "8 of 8 files" in said
    assert said.count("unknown log format") == 5
    assert "and 3 more" in said


def test_an_empty_folder_is_no_missing_one(tmp_path):
    (tmp_path / ".hidden").write_text("x")
    assert "holds no files" in refused(tmp_path)


def test_anthropic_stream_events_among_messages_are_no_records(tmp_path):
    usage = {"input_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 0, "output_tokens": 1}
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {**usage, "output_tokens": 15}}
    # its counts would come on top
    whole = {"id": "m", "type": "message", "usage": usage}
    log = load(write(tmp_path / "b.jsonl", [whole, delta, whole | {"id": "n"}]))
    assert counted(log) == (2, 0, 0, 1)


def test_a_header_that_says_a_column_twice_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("ts,input_tokens,output_tokens,Input_Tokens\n1793577600,1,2,3\n")
    assert '"input_tokens" twice' in refused(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("ts,input_tokens,output_tokens,x,x\n1793577600,1,2,3,4\n")
    assert counted(load(tmp_path / "b.csv")) == (1, 0, 0, 0)


def test_a_wrongly_named_format_says_what_the_file_is(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    assert "a.csv: looks like a table, but openai_chat comes as JSON lines" in refused(
        tmp_path / "a.csv", format="openai_chat"
    )


@pytest.mark.parametrize("at", few(2, ["1e300", "9223372036854775807", "-1", '"9999-99-99T00:00:00Z"', "1e18"]))
def test_impossible_times_are_flagged(tmp_path, at):
    line = json.dumps(chat(1)).replace("1793577600", "0")
    (tmp_path / "a.jsonl").write_text(line[:-1] + f', "_log": {{"ts": {at}, "duration_ms": {at}}}}}\n')
    assert load(tmp_path / "a.jsonl").summary["requests"] == 1


# Pieces that a broken log is made of: what readers look for, in every wrong shape.
KEYS = sorted({step for reader in READERS for path in reader.leaves for step in path.replace("[]", "").split(".")})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["1e400", "2026"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6)
WHOLE = {
    **{name: (SAMPLES / name).read_bytes() for name in ("openai_chat.jsonl", "litellm_spendlogs.csv", "nasty.jsonl")},
    "chat.gz": gzip.compress((SAMPLES / "openai_chat.jsonl").read_bytes()),
}


@st.composite
def spoilt(draw):
    """A good file, cut, or with random bytes somewhere in it."""
    content = draw(st.sampled_from(sorted(WHOLE.items())))[1]
    place = draw(st.integers(0, len(content)))
    return content[:place] + draw(st.binary(max_size=8)) + (content[place:] if draw(st.booleans()) else b"")


def lines(rows):
    return "\n".join(json.dumps(row) for row in rows).encode()


CONTENTS = (
    st.binary(max_size=300)
    | spoilt()
    | st.lists(OBJECTS | VALUES, max_size=8).map(lines)
    | st.lists(OBJECTS, max_size=4).map(lambda rows: lines([chat(1), *({**chat(2), **row} for row in rows)]))
)


def never_a_strangers_error(content, name):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a"
        file.write_bytes(content)
        said = ""
        try:
            load(file, format=name)
        except TenfoldError as error:
            said = str(error)
        assert "\n" not in said


FORMATS = st.sampled_from([None, None, *(reader.name for reader in READERS)])


@settings(max_examples=8, deadline=None)
@given(content=CONTENTS, name=FORMATS)
@example(content=random.Random(5).randbytes(500), name=None)
@example(content=b"PAR1 and no more", name=None)
@example(content=b"(\xb5/\xfd and no more", name=None)
@example(content=b'{"usage": {"prompt_tokens": 1}, "a": ' + b"[" * 5000, name="openai_chat")
def test_no_content_ends_in_a_strangers_error(content, name):
    never_a_strangers_error(content, name)


@pytest.mark.full
@settings(max_examples=1500, deadline=None)
@given(content=CONTENTS, name=FORMATS)
def test_no_content_of_many_ends_in_a_strangers_error(content, name):
    never_a_strangers_error(content, name)
