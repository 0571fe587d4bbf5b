"""Block caches with a capacity: hand-worked, against a list kept in order, and as a sample."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import slow_replays

from tenfold.errors import TenfoldError
from tenfold.replay.lru import lru_hits


def chain(text):
    return [text[: length + 1] for length in range(len(text))]


def test_by_hand():
    # blocks of 10 tokens, room for 3: abc (25 tokens) stays; then ax drops the deepest block, abc
    asked = [(chain("abc"), 25), (chain("abc"), 25), (chain("ax"), 20), (chain("abc"), 25)]
    found = lru_hits(asked, block_tokens=10, capacity_tokens=39)
    assert (found.tokens, found.hit_tokens, found.blocks, found.hit_blocks) == (95, 25 + 10 + 20, 11, 3 + 1 + 2)
    assert (found.token_ratio, found.block_ratio, found.rate) == (Fraction(55, 95), Fraction(6, 11), 1)
    assert lru_hits(asked, block_tokens=10, capacity_tokens=None).hit_tokens == 25 + 10 + 25
    assert lru_hits(asked, block_tokens=10, capacity_tokens=9).hit_blocks == 0
    # only the last two count; the first ones warm the cache
    assert lru_hits(asked, block_tokens=10, capacity_tokens=39, counted_from=2)[:4] == (45, 30, 5, 3)
    none = lru_hits([], block_tokens=10, capacity_tokens=None)
    assert (none.token_ratio, none.block_ratio) == (0, 0)


requests = st.lists(
    st.text("ab", max_size=5).flatmap(
        lambda text: st.tuples(st.just(chain(text)), st.integers(max(0, 10 * len(text) - 9), 10 * len(text)))
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(requests)
def test_every_log_as_the_slow_replay_has_it(asked):
    rooms = [0, 1, 2, 3, 5, 8, None]
    found = [
        lru_hits(asked, block_tokens=10, capacity_tokens=None if room is None else 10 * room)[1::2] for room in rooms
    ]
    assert found == [slow_replays.lru(asked, 10, room) for room in rooms]
    assert found == sorted(found)  # M8: a larger cache holds what a smaller one holds
    unique = len({block for blocks, _ in asked for block in blocks})
    assert found[-1][1] == sum(len(blocks) for blocks, _ in asked) - unique  # without a limit: 1 - unique / total
    everything = lru_hits(asked, block_tokens=10, capacity_tokens=50, rate=Fraction(1))
    assert everything == lru_hits(asked, block_tokens=10, capacity_tokens=50)


def test_a_sample_is_near_when_it_is_corrected():
    random = Random(11)
    # prompts of four blocks under 3,000 heads, the first heads by far the most often
    heads = [int(3000 * random.random() ** 4) for _ in range(12_000)]
    asked = [([f"{head}/{place}" for place in range(4)], 40) for head in heads]
    exact = lru_hits(asked, block_tokens=10, capacity_tokens=10_000)
    sampled = lru_hits(asked, block_tokens=10, capacity_tokens=10_000, rate=Fraction(1, 10))
    assert (sampled.tokens, sampled.blocks, sampled.rate) == (exact.tokens, exact.blocks, Fraction(1, 10))
    assert abs(sampled.token_ratio - exact.token_ratio) < Fraction(15, 1000)
    assert abs(sampled.block_ratio - exact.block_ratio) < Fraction(15, 1000)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"block_tokens": 0, "capacity_tokens": 1}, "a block of 0 tokens"),
        ({"block_tokens": 1, "capacity_tokens": -1}, "a capacity of -1 tokens"),
        ({"block_tokens": 1, "capacity_tokens": 1, "rate": Fraction(0)}, "a sample of 0 of the blocks"),
        ({"block_tokens": 1, "capacity_tokens": 1, "rate": Fraction(2)}, "at most 1"),
    ],
)
def test_impossible_caches_are_refused(options, says):
    with pytest.raises(TenfoldError, match=says):
        lru_hits([], **options)
