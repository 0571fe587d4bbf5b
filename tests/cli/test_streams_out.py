"""Ends that are no errors, and what a terminal cannot write."""

import io
import subprocess
import sys

import pytest

from tenfold.cli import common, formats, plain_text


def test_a_stop_by_hand_ends_quietly_with_130(run, monkeypatch):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr(formats, "all_formats", stopped)
    assert run("formats") == (130, "", "")


@pytest.mark.parametrize("words", [["formats"], ["formats", "--json"]])
def test_a_reader_that_has_gone_ends_it_quietly(words):
    with subprocess.Popen(
        [sys.executable, "-c", "import time; from tenfold.cli import main; input(); main()", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        process.stdin.write(b"\n")
        process.stdin.close()
        said = process.stderr.read()
        assert (process.wait(), said) == (141, b"")


@pytest.mark.parametrize(
    ("encoding", "right"), [("cp1252", "1 · 2 – 3 -> 4 ... \\u6570"), ("ascii", "1 - 2 - 3 -> 4 ... \\u6570")]
)
def test_what_an_encoding_lacks_is_written_plainly(monkeypatch, encoding, right):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    plain_text.write_what_can_be_written()
    sys.stdout.write("1 · 2 – 3 → 4 … 数".replace("…", "..." if encoding == "cp1252" else "…"))
    sys.stdout.flush()
    assert raw.getvalue().decode(encoding) == right


def test_utf_8_stays_as_it_is(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8"))
    plain_text.write_what_can_be_written()
    assert sys.stdout.errors == "strict"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "term", "json", "is_said"),
    [
        (Terminal, "xterm-256color", False, True),
        (Terminal, "xterm-256color", True, False),
        (Terminal, "dumb", False, False),
        (io.StringIO, "xterm-256color", False, False),
    ],
    ids=["terminal", "json", "dumb", "pipe"],
)
def test_a_step_is_named_on_a_terminal_only(monkeypatch, stream, term, json, is_said):
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", stream())
    with common.working("counting [sheep]", json=json):
        pass
    assert ("counting [sheep]" in sys.stderr.getvalue()) == is_said
    assert is_said or not sys.stderr.getvalue()
