"""Standard input, pipes and open files."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading

import pytest
from log_files import chat, counted, write
from servers import command

from tenfold.logs import load
from tenfold.logs.sources import Known, SourceError, opened


def kept(place):
    with opened(place, Known(None, {})) as found:
        (source,) = found.here
        return source.name, source.file.read_bytes()


def test_standard_input_is_loaded_and_known_by_its_bytes(tmp_path, monkeypatch, capsys):
    db, file = tmp_path / "u.duckdb", write(tmp_path / "a.jsonl", [chat(1), chat(2)])
    packed = gzip.compress(file.read_bytes() + b"broken\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    code, _, err = command(monkeypatch, capsys, "load", "-", "--db", db, "--json")
    assert code == 0, err
    # under another name: the same bytes
    (tmp_path / "b.gz").write_bytes(packed)
    log = load(tmp_path / "b.gz", db=db)
    assert counted(log) == (0, 2, 0, 0)
    assert set(log.requests["source_file"]) == {"stdin"}
    assert log.requests["source_line"].to_list() == [1, 2]


def test_what_is_no_log_on_standard_input_leaves_no_database(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello\n")))
    with pytest.raises(Exception, match=r"^stdin: unknown log format"):
        load("-", db=tmp_path / "u.duckdb")
    assert not (tmp_path / "u.duckdb").exists()


def test_a_terminal_is_not_waited_for(monkeypatch):
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "r+b", buffering=0) as terminal, os.fdopen(ours, "rb"):
        monkeypatch.setattr(sys, "stdin", terminal)
        with pytest.raises(SourceError, match="standard input is a terminal"):
            load("-")


def test_a_pipe_is_read_once_and_whole(tmp_path):
    pipe, content = tmp_path / "pipe", b'{"a": 1}\n' * 300_000
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[content])
    writer.start()
    assert kept(pipe) == (str(pipe), content)
    writer.join()


def test_an_open_file_is_read_from_where_it_stands(tmp_path):
    file = write(tmp_path / "a.jsonl", [chat(1), chat(2)])
    with file.open("rb") as handle:
        handle.readline()
        log = load(handle)
    assert (counted(log), log.requests["source_file"].to_list()) == ((1, 0, 0, 0), [str(file)])
    assert kept([io.BytesIO(b"x")]) == ("stream", b"x")


def test_an_open_file_of_text_is_refused(tmp_path):
    file = write(tmp_path / "a.jsonl", [chat(1)])
    with file.open() as handle, pytest.raises(SourceError, match=r'gives str, not bytes. Open the file with mode "rb"'):
        load(handle)
    with pytest.raises(SourceError, match="cannot be read"):
        load(handle)


def test_temporary_files_are_gone(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept(io.BytesIO(b"x"))
    assert not list(tmp_path.iterdir())
