"""Files that are damaged, are no files, mix formats or hold broken quotes: what is lost is said."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path

import pytest
import zstandard
from log_files import chat, counted, write
from quick import few

from tenfold.errors import LogFormatError
from tenfold.logs import files, load

LINES = 3000


@pytest.fixture(scope="module")
def content():
    numbers = random.Random(1)
    return b"".join(json.dumps(chat(n, prompt=numbers.randrange(10**6))).encode() + b"\n" for n in range(LINES))


def checked_zstd(content):
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


PACKERS = [gzip.compress, checked_zstd]


def damaged(file, packed):
    file.write_bytes(packed)
    log = load(file)
    (reject,) = log.rejects.filter(log.rejects["reason"].str.contains("archive")).to_dicts()
    return log, reject


@pytest.mark.parametrize("pack", few(1, PACKERS))
def test_a_wrong_checksum_keeps_every_line_and_says_so(tmp_path, content, pack):
    packed = bytearray(pack(content))
    packed[-5 if pack is gzip.compress else -1] ^= 0xFF
    log, reject = damaged(tmp_path / "a", bytes(packed))
    assert counted(log) == (LINES, 0, 0, 1)
    assert "checksum" in reject["reason"]
    assert f"any of the {LINES} lines" in reject["reason"]


@pytest.mark.parametrize("pack", few(1, PACKERS))
def test_a_cut_within_the_checksum_loses_no_line_that_was_decoded(tmp_path, content, pack):
    log, reject = damaged(tmp_path / "a", pack(content)[:-3])
    got = log.summary["requests"]
    # zstd gives a block at a time, and its last block (128 KiB at most) waits for the checksum
    assert got == LINES or (pack is checked_zstd and got > LINES - (1 << 17) / 200)
    assert reject["reason"].endswith(f"what follows line {got} is missing")


def test_what_a_flipped_bit_garbles_is_not_loaded(tmp_path, content):
    packed = bytearray(gzip.compress(content))
    packed[len(packed) // 2] ^= 0xFF
    log, reject = damaged(tmp_path / "a", bytes(packed))
    # unpacking goes on after the bit, with lines made of pieces of others, until the checksum fails at the end
    got = log.summary["requests"]
    assert LINES // 3 < got < LINES * 2 // 3
    assert counted(log) == (got, 0, 0, 1)
    assert reject["source_line"] == got + 1
    assert "nothing from this line on is loaded" in reject["reason"]


def test_a_block_of_a_kind_that_does_not_exist_loses_only_what_follows(tmp_path, content):
    whole, broken = gzip.compress(content), bytearray(gzip.compress(content))
    broken[10] |= 0b110  # the second member's first block: type 3 is reserved
    log, reject = damaged(tmp_path / "a", whole + bytes(broken))
    assert log.summary["requests"] == LINES
    assert f"what follows line {LINES} is missing" in reject["reason"]


@pytest.mark.parametrize("pack", few(1, PACKERS))
def test_bytes_after_an_archive_are_named(tmp_path, content, pack):
    log, reject = damaged(tmp_path / "a", pack(content) + b"garbage, and more of it")
    assert counted(log) == (LINES, 0, 0, 1)
    assert "followed by bytes" in reject["reason"]


@pytest.mark.parametrize("pack", few(1, PACKERS))
def test_an_archive_without_a_whole_line_is_never_empty(tmp_path, content, pack):
    file = tmp_path / "cut.jsonl"
    file.write_bytes(pack(content)[:8])
    assert files.scan(file).lines == 0
    with pytest.raises(LogFormatError, match="cut.jsonl: the archive ends .* not one whole line"):
        load(file)
    write(tmp_path / "good.jsonl", [chat(1)])
    log = load(tmp_path)
    assert counted(log) == (1, 0, 0, 1)
    (reject,) = log.rejects.to_dicts()
    assert reject["source_file"].endswith("cut.jsonl")


def test_what_is_no_regular_file_is_refused():
    with pytest.raises(LogFormatError, match=r"null: not a regular file .* Save it to a file first"):
        load("/dev/null")


def test_an_address_is_refused_without_its_signature():
    with pytest.raises(LogFormatError, match=r"^https://\.\.\.: no place that logs are read from"):
        load("https://host/log.jsonl?sig=secret")


def test_a_name_that_is_no_utf8_is_refused_by_name(tmp_path):
    name = os.fsencode(tmp_path) + b"/bad\xff.jsonl"
    Path(os.fsdecode(name)).write_text(json.dumps(chat(1)) + "\n")
    for path in (tmp_path, os.fsdecode(name)):
        with pytest.raises(LogFormatError, match=r"bad\\xff.jsonl: the file's name is not UTF-8"):
            load(path)


HEAD = "ts,request_id,provider,model,input_tokens,output_tokens,note\n"
TS = "2026-11-01T10:00:00Z"


@pytest.mark.parametrize("second", ["input_tokens", "Input_Tokens"])
def test_a_column_that_stands_twice_is_refused(tmp_path, second):
    file = tmp_path / "a.csv"
    file.write_text(HEAD.replace("note", second) + f"{TS},a,openai,gpt-5,1000,5,100\n")
    with pytest.raises(LogFormatError, match='(?i)"input_tokens" twice'):
        load(file)


def test_paths_that_differ_in_case_alone_are_refused_in_plain_words(tmp_path):
    file = write(tmp_path / "a.jsonl", [{"t": TS, "i": 100, "o": 5, "T": 105}])
    columns = {"ts": "t", "input_tokens": "i", "output_tokens": "o", "total_tokens": "T"}
    with pytest.raises(LogFormatError, match="differ in case alone") as caught:
        load(file, map={"columns": columns})
    assert "Binder" not in str(caught.value)


def row(name, note="x"):
    return f"{TS},{name},openai,gpt-5,1000,5,{note}\n"


@pytest.mark.parametrize(
    ("broken", "rest", "rejected"),
    few(
        1,
        [
            # a quote that nothing closes; one that another record's quote closes; one that leaves a ragged record
            (row("b", '"open'), [row(f"z{n}") for n in range(500)], [3]),
            (row("b", '"open'), [row(f"z{n}", '"note"') for n in range(500)], [3]),
            (row("b", '"open'), [row("z0", 'ends",')] + [row(f"z{n}") for n in range(1, 500)], [3, 4]),
        ],
    ),
    ids=["never closed", "closed by another", "ragged"],
)
def test_one_open_quote_costs_one_record(tmp_path, broken, rest, rejected):
    file = tmp_path / "a.csv"
    file.write_text(HEAD + row("a") + broken + "".join(rest))
    log = load(file)
    assert log.rejects["source_line"].to_list() == rejected
    assert log.summary["requests"] == 1 + 500 - (len(rejected) - 1)
    lines = dict(log.requests.select("request_id", "source_line").iter_rows())
    assert (lines["a"], lines["z499"]) == (2, 503)


def test_quoted_cells_may_still_run_over_lines(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(HEAD + row("a", '"two\nlines, and ""quotes"""') + row("b", '"open') + row("c"))
    log = load(file)
    assert dict(log.requests.select("request_id", "source_line").iter_rows()) == {"a": 2, "c": 5}
    assert log.rejects["source_line"].to_list() == [4]


def test_a_header_with_broken_quotes_is_refused(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(HEAD.replace("note", '"note') + row("a"))
    with pytest.raises(LogFormatError, match="header"):
        load(file)


def anthropic(name):
    usage = {"input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": 50000}
    log = {"ts": TS}
    return {
        "id": f"msg_{name}",
        "type": "message",
        "model": "claude-sonnet-4-5",
        "stop_reason": "end",
        "usage": usage,
        "_log": log,
    }


def responses(name):
    usage = {
        "input_tokens": 2000,
        "input_tokens_details": {"cached_tokens": 500},
        "output_tokens": 100,
        "total_tokens": 2100,
    }
    return {"id": f"resp_{name}", "object": "response", "created_at": 1793577600, "model": "gpt-5", "usage": usage}


def both(name):
    # LiteLLM writes Anthropic's cache keys into OpenAI's answer
    answer = chat(name)
    return {**answer, "usage": {**answer["usage"], "cache_read_input_tokens": 0}}


KINDS = {
    "openai_chat": chat,
    "anthropic_messages": anthropic,
    "openai_responses": responses,
}


@pytest.mark.parametrize(
    ("many", "few", "made"),
    [
        # each format once as the many and once as the few
        pytest.param(a, b, KINDS[b], marks=() if (at + 1) % len(KINDS) == to else pytest.mark.full)
        for at, a in enumerate(KINDS)
        for to, b in enumerate(KINDS)
        if a != b
    ]
    + [("anthropic_messages", "openai_chat", both)],
)
def test_a_line_of_another_format_is_put_aside_as_such(tmp_path, many, few, made):
    log = load(write(tmp_path / "a.jsonl", [KINDS[many](1), KINDS[many](2), made(3)]))
    assert counted(log) == (2, 0, 0, 1)
    (reject,) = log.rejects.to_dicts()
    assert reject["source_line"] == 3
    assert reject["reason"].startswith(f"looks like {few} in a file read as {many}")


@pytest.mark.parametrize(
    "text",
    [
        "my secret prompt, with commas, and a password hunter2\nmore, of, it\n",
        "alice@secret.example,2026-11-01,my secret\n",
        'Dear secret diary\n"x"\n',
        '{"note": "secret", "deep": {"text": "secret"}}\n',
        '["secret", {"a": "secret"}]\n',
    ],
)
def test_a_refusal_shows_no_content(tmp_path, text):
    file = tmp_path / "a.log"
    file.write_text(text)
    with pytest.raises(LogFormatError) as caught:
        load(file)
    assert "secret" not in str(caught.value)
    if text.startswith("{"):
        assert "Found: note, deep" in str(caught.value)


def test_a_map_that_does_not_fit_shows_columns_but_no_content(tmp_path):
    mapping = {"columns": {"input_tokens": "missing"}}
    file = tmp_path / "a.csv"
    file.write_text("Prompt Tokens,when\n1,2\n")
    with pytest.raises(LogFormatError, match="Found: Prompt Tokens, when"):
        load(file, map=mapping)
    file.write_text("my secret words, and more of them\n1,2\n")
    with pytest.raises(LogFormatError) as caught:
        load(file, map=mapping)
    assert "secret" not in str(caught.value)


def test_a_rotation_between_hashing_and_reading_loses_nothing(tmp_path):
    file, db = write(tmp_path / "log.jsonl", [{**chat(n), "id": ""} for n in range(3)]), tmp_path / "log.duckdb"
    rotated = tmp_path / "log.jsonl.1"

    def rotate(_):
        if not rotated.exists():
            file.rename(rotated)
            write(file, [chat(n) for n in range(5)])

    assert counted(load(file, db=db, progress=rotate)) == (5, 0, 0, 0)
    assert counted(load(rotated, db=db)) == (3, 0, 0, 0)


def test_a_file_that_goes_away_is_named_in_one_line(tmp_path):
    file = write(tmp_path / "log.jsonl", [chat(1)])
    with pytest.raises(LogFormatError, match=r"log\.jsonl: cannot be read: No such file"):
        load(file, progress=lambda _: file.unlink(missing_ok=True))


def test_a_small_memory_limit_is_room_for_what_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tenfold.toml").write_text('memory_limit = "64MB"\n')
    file = write(tmp_path / "log.jsonl", [chat(1)])
    file.write_text(file.read_text() + "torn\n")
    assert counted(load(file)) == (1, 0, 0, 1)
