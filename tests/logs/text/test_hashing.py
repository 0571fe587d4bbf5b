"""Keyed hashes: pinned, cumulative, and of one database."""

from __future__ import annotations

import hashlib
import random

import duckdb
import pytest

from tenfold.errors import StoreError
from tenfold.logs.text import answers, columns, hashing, segments, tokens
from tenfold.store import schema

KEY = bytes(range(32))


def blocks(messages, key=KEY):
    """As a load makes them."""
    return whole(messages, key)[4]


def whole(value, key=KEY, response=None):
    texts = columns.Texts(duckdb.connect(), hashes=True, keep_text=False)
    row = columns._Row(0, segments.prompt(value), segments.params(value), answers.answer(response), "o200k_base", True)
    return next(iter(texts._derived([row], hashing.Hasher(key))))


def slow_blocks(messages, key=KEY):
    """The rule of hashing.py, word by word: one list of numbers, one hash a block."""
    plain = tokens.encoding("o200k_base")
    ids = []
    for message in messages:
        ids.append(2**32 - 3)
        ids.extend(plain.encode_ordinary(message["role"]))
        ids.append(2**32 - 2)
        ids.extend(plain.encode_ordinary(message["content"]))
        ids.append(2**32 - 1)
    found, before = [], b""
    while len(ids) >= 128:
        head, ids = ids[:128], ids[128:]
        content = before + b"".join(token.to_bytes(4, "little") for token in head)
        before = hashlib.blake2b(content, digest_size=8, key=key, person=b"prefix").digest()
        found.append(before.hex())
    return found


def message(role, *seeds):
    words = [random.Random(seed).choice(("alpha", "beta", "gamma", "日本", "x+1")) for seed in seeds]
    return {"role": role, "content": " ".join(words)}


CHAT = [message("system", *range(300)), message("user", *range(300, 500)), message("assistant", *range(500, 900))]


def test_three_values_are_pinned():
    # Made once with this code; a change of any of them takes every stored hash out of reach.
    hasher = hashing.Hasher(KEY)
    assert hasher.text("Hello", "prompt") == PINNED["text"]
    found = whole({"messages": CHAT, "temperature": 0})
    assert (found[1], found[2]) == (PINNED["prompt"], PINNED["params"])
    assert found[4][:1] == [PINNED["block"]]
    right = hashlib.blake2b(b"Hello", digest_size=8, key=KEY, person=b"prompt").hexdigest()
    assert PINNED["text"] == right


PINNED = {
    "text": "1a10ae48695348a2",
    "prompt": "358eda6dfa314d9a",
    "params": "deb446799dbf46d3",
    "block": "282d7c571d9367c6",
}


def test_blocks_are_those_of_a_slow_second_implementation():
    for length in (1, 2, 3):
        assert blocks(CHAT[:length]) == slow_blocks(CHAT[:length])
    assert len(blocks(CHAT)) == 9


def test_requests_that_begin_alike_share_exactly_the_leading_blocks():
    other = [*CHAT[:2], message("user", *range(2000, 2400))]
    shared = sum(a == b for a, b in zip(blocks(CHAT), blocks(other), strict=False))
    plain = tokens.encoding("o200k_base")
    same = sum(len(plain.encode_ordinary(m["content"])) + len(plain.encode_ordinary(m["role"])) + 3 for m in CHAT[:2])
    # at most the third message's own first tokens may be alike beyond the two
    assert shared in {same // 128, (same + 2) // 128}
    assert blocks(CHAT)[:shared] == blocks(other)[:shared]
    assert not set(blocks(CHAT)[shared:]) & set(blocks(other)[shared:])
    changed = [{**CHAT[0], "content": "?" + CHAT[0]["content"][1:]}, *CHAT[1:]]
    assert not set(blocks(changed)) & set(blocks(CHAT))
    assert not set(blocks([{**CHAT[0], "role": "user"}, *CHAT[1:]])) & set(blocks(CHAT))
    # a longer conversation keeps all blocks of the shorter one, whatever the model
    assert blocks(CHAT)[: len(blocks(CHAT[:2]))] == blocks(CHAT[:2])


def test_the_rest_behind_the_last_whole_block_is_in_the_prompts_hash_alone():
    first, second = ({"role": "user", "content": text} for text in ("short", "other"))
    assert blocks([first]) == blocks([second]) == []
    assert whole([first])[1] != whole([second])[1]
    assert blocks([CHAT[0], first]) == blocks([CHAT[0], second])


def test_cache_markers_and_the_way_a_text_is_written_change_nothing():
    marked = [
        {"role": "system", "content": [{"type": "text", "text": CHAT[0]["content"], "cache_control": {"type": "e"}}]},
        *CHAT[1:],
    ]
    assert whole(marked)[1] == whole(CHAT)[1]
    assert blocks(marked) == blocks(CHAT)


def test_streamed_and_whole_answers_are_the_same():
    call = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"q":1}'}}
    said = [{"message": {"role": "assistant", "content": "Hello there", "tool_calls": [call]}}]
    pieces = [
        [{"delta": {"role": "assistant", "content": ""}}],
        [{"delta": {"content": "Hello "}}],
        [{"delta": {"content": "there"}}],
        [{"delta": {"tool_calls": [{"index": 0, "id": "call_2", "function": {"name": "find", "arguments": '{"q"'}}]}}],
        [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}}],
    ]
    assert answers.answer(said) == answers.answer(pieces)
    assert answers.answer(said).pieces == (("text", "Hello there"), ("tool", 'find{"q":1}'))


def store():
    connection = duckdb.connect()
    for table in ("meta", "requests", "texts"):
        connection.execute(schema.ddl(table))
    return connection


def test_a_databases_key_is_made_once(monkeypatch):
    monkeypatch.delenv(hashing.ENVIRONMENT, raising=False)
    connection = store()
    first = hashing.hasher(connection)
    hashing.keep(connection, first)
    hashing.keep(connection, hashing.Hasher(b"other".ljust(32)))
    assert hashing.hasher(connection).key == first.key
    assert len(first.key) == 32
    assert hashing.hasher(store()).key != first.key


def test_a_key_of_the_environment_leaves_a_fingerprint_and_no_other_is_taken(monkeypatch):
    connection, mine = store(), "m" * 40
    monkeypatch.setenv(hashing.ENVIRONMENT, mine)
    first = hashing.hasher(connection)
    hashing.keep(connection, first)
    held = connection.execute("SELECT name, value FROM meta").fetchall()
    assert held == [(hashing.FINGERPRINT, hashing.fingerprint(first))]
    assert mine not in str(held)
    assert first.key.hex() not in str(held)
    assert hashing.hasher(connection).key == first.key
    assert hashing.hasher(store()).key == first.key
    monkeypatch.setenv(hashing.ENVIRONMENT, "n" * 40)
    with pytest.raises(StoreError, match=r"another TENFOLD_HASH_KEY.*load into a new file"):
        hashing.hasher(connection)
    monkeypatch.delenv(hashing.ENVIRONMENT)
    with pytest.raises(StoreError, match=r"which is not set.*--no-hashes"):
        hashing.hasher(connection)
    monkeypatch.setenv(hashing.ENVIRONMENT, "short")
    with pytest.raises(StoreError, match="at least 32"):
        hashing.hasher(connection)


def test_a_database_with_a_key_of_its_own_takes_none_from_the_environment(monkeypatch):
    monkeypatch.delenv(hashing.ENVIRONMENT, raising=False)
    connection = store()
    hashing.keep(connection, hashing.hasher(connection))
    monkeypatch.setenv(hashing.ENVIRONMENT, "m" * 40)
    with pytest.raises(StoreError, match=r"a key of its own.*unset the variable"):
        hashing.hasher(connection)
