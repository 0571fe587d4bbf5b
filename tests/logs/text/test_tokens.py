"""Text is cut into tokens offline, with the published ranks and no others."""

from __future__ import annotations

import gzip
import importlib
import socket

import pytest

from tenfold.logs.text import tokens

KNOWN = "Hello, wörld 你好 🙂 don't 12345\n\n  def f(x): return x"


def test_known_counts_without_any_network(monkeypatch):
    def closed(*_args, **_named):
        raise OSError("no network in this test")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, closed)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    tokens.encoding.cache_clear()
    # formats.md E, found alike with six carriers of the rank files
    assert len(tokens.encoding("cl100k_base").encode_ordinary(KNOWN)) == 22
    assert len(tokens.encoding("o200k_base").encode_ordinary(KNOWN)) == 20


def test_pattern_and_special_tokens_are_tiktokens_own():
    public = importlib.import_module("tiktoken_ext.openai_public")
    found = tokens.encoding("o200k_base")
    assert public.load_tiktoken_bpe.__module__ == "tiktoken.load"  # its loader is where it was
    assert (found.n_vocab, found.special_tokens_set) == (200019, {"<|endoftext|>", "<|endofprompt|>"})


@pytest.mark.parametrize("damage", ["other ranks", "cut short", "not there"])
def test_a_rank_file_that_is_not_the_published_one_is_refused_and_stays(tmp_path, damage):
    file = tmp_path / "cl100k_base.tiktoken.gz"
    if damage == "other ranks":
        file.write_bytes(gzip.compress(b"IQ== 0\nIg== 1\n"))
    elif damage == "cut short":
        file.write_bytes(gzip.compress(b"IQ== 0\n" * 1000)[:-12])
    before = file.read_bytes() if file.exists() else None
    with pytest.raises(tokens.RankFileError, match=r"cl100k_base.*Install tenfold again"):
        tokens.ranks("cl100k_base", tmp_path)
    assert (file.read_bytes() if file.exists() else None) == before


def test_which_encoding_counts_a_model():
    old, new = "cl100k_base", "o200k_base"
    right = {
        "gpt-4": old, "gpt-4-turbo-2024-04-09": old, "gpt-4-0613": old, "gpt-3.5-turbo": old, "gpt-35-turbo": old,
        "text-embedding-3-small": old, "text-embedding-ada-002": old, "azure/gpt-4": old, "ft:gpt-3.5-turbo:acme": old,
        "gpt-4o": new, "gpt-4o-mini-2024-07-18": new, "openai/gpt-4o": new, "gpt-4.1-nano": new, "gpt-5.6-luna": new,
        "o3-mini": new, "claude-sonnet-5": new, "gemini-3-pro": new, "": new,
    }  # fmt: skip
    assert {model: tokens.encoding_name(model) for model in right} == right
    assert tokens.encoding_name(None) == new


def cut(held, *texts):
    return [held.ids({text.encode(): text})[text.encode()] for text in texts]


def test_ids_are_the_encodings_own_however_they_are_asked_for():
    plain = tokens.encoding("o200k_base")
    texts = [KNOWN, "", "a" * 250_000, "word " * 30_000, "\ud83d lone"]
    whole = tokens.Tokens().ids({str(number).encode(): text for number, text in enumerate(texts)})
    for number, text in enumerate(texts):
        # texts are cut at 200,000 characters before they are encoded
        parts = [text[at : at + 200_000] for at in range(0, len(text), 200_000)]
        right = [token for part in parts for token in plain.encode_ordinary(part)]
        packed = whole[str(number).encode()]
        assert [int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4)] == right
        assert tokens.count(packed) == len(right)


def test_what_is_remembered_is_bounded():
    small = tokens.Tokens(budget=2_000)
    first = cut(small, "one two three")
    for number in range(400):
        cut(small, f"text {number}")
    assert small._size <= 2_000
    assert cut(small, "one two three") == first
