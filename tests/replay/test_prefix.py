"""Prefix caches: hand-worked cases, properties, and every drawn log against the slow replay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import slow_replays
from replay.frames import SECOND, prefix, sessions


def row(rid, start_s, blocks, *, first_token_s=1.0, lifetime_s=300, pool="p", combo=0):
    """A request whose blocks are named by the text up to them: "abc" has the blocks a, ab and abc."""
    ts = None if start_s is None else round(start_s * SECOND)
    return {
        "rid": rid,
        "combo": combo,
        "pool": pool,
        "ts": ts,
        "readable_at": None if ts is None else ts + round(first_token_s * SECOND),
        "lifetime_us": lifetime_s * SECOND,
        "blocks": None if blocks is None else [blocks[: length + 1] for length in range(len(blocks))],
    }


def read(*rows):
    return {rid: blocks for (_, rid), blocks in prefix(rows).items()}


@pytest.mark.parametrize("lifetime_s", [300, 3600])
@pytest.mark.parametrize(("beyond_s", "blocks"), [(-1, 3), (0, 3), (0.000001, 0), (1, 0)])
def test_lifetime_is_inclusive_and_runs_from_the_last_touch(lifetime_s, beyond_s, blocks):
    gap_s = lifetime_s + beyond_s
    rows = [row(number, number * gap_s, "abc", lifetime_s=lifetime_s) for number in range(4)]
    assert read(*rows) == {0: 0, 1: blocks, 2: blocks, 3: blocks}


def test_a_longer_lifetime_than_32_bits_of_microseconds_hold():
    day = 86_400
    rows = [
        row(0, 0, "ab", lifetime_s=day),
        row(1, day, "ab", lifetime_s=day),
        row(2, 2 * day + 1, "ab", lifetime_s=day),
    ]
    assert read(*rows) == {0: 0, 1: 2, 2: 0}


def test_the_head_outlives_what_only_one_conversation_has():
    rows = [row(0, 0, "abcd"), row(1, 200, "abxy"), row(2, 400, "abcdef"), row(3, 401, "abcdefg", first_token_s=9)]
    # at 400 the blocks a and b were touched 200 s ago, c and d 400 s ago; at 401 d is written but not readable yet
    assert read(*rows) == {0: 0, 1: 2, 2: 2, 3: 2}
    assert read(*rows[:3], row(3, 401.000001, "abcdefg"), row(4, 500, "b")) == {0: 0, 1: 2, 2: 2, 3: 6, 4: 0}


def test_concurrent_requests_on_a_cold_prefix_all_write():
    rows = [row(number, number / 10, "abc", first_token_s=0.9) for number in range(9)]
    # the first token of the first comes at 0.9: who begins at 0.9 is too early, too
    found = read(*rows, row(9, 0.9, "abc"), row(10, 0.900001, "abc"))
    assert found == {**dict.fromkeys(range(10), 0), 10: 3}


def test_readable_from_the_earliest_first_token_of_the_residence():
    slow, fast = row(0, 0, "abc", first_token_s=50), row(1, 10, "abc", first_token_s=5)
    assert read(slow, fast, row(2, 15, "abc"), row(3, 15.000001, "abc")) == {0: 0, 1: 0, 2: 0, 3: 3}
    # after the lifetime the entry begins anew: what was readable before does not count
    assert read(row(0, 0, "abc"), row(1, 301, "abc", first_token_s=50), row(2, 320, "abc"))[2] == 0
    assert read(row(0, 0, "abc"), row(1, 300, "abc", first_token_s=50), row(2, 320, "abc"))[2] == 3


def test_equal_instants_do_not_serve_each_other():
    assert read(row(0, 5, "abc", first_token_s=0), row(1, 5, "abc", first_token_s=0)) == {0: 0, 1: 0}
    found = read(row(0, 0, "ab"), row(1, 5, "abc", first_token_s=9), row(2, 5, "abc"), row(3, 7, "abc"))
    assert found == {0: 0, 1: 2, 2: 2, 3: 3}
    # nor for a shorter lifetime; the longer one of the two keeps the entry, so that it is readable at once at 402
    rows = [row(0, 0, "ab"), row(1, 400, "ab", first_token_s=9), row(2, 400, "ab", lifetime_s=400, first_token_s=9)]
    assert read(*rows, row(3, 402, "ab")) == {0: 0, 1: 0, 2: 2, 3: 2}
    rows[1]["lifetime_us"], rows[2]["lifetime_us"] = rows[2]["lifetime_us"], rows[1]["lifetime_us"]
    assert read(*rows, row(3, 402, "ab")) == {0: 0, 1: 2, 2: 0, 3: 2}


def test_pools_and_combos_are_apart_and_nulls_read_nothing():
    rows = [row(0, 0, "ab"), row(1, 9, "ab", pool="q"), row(2, 9, "ab", pool=None), row(3, 9, None), row(4, 9, "")]
    assert read(*rows, row(5, None, "ab"), row(6, 9, "ab")) == {0: 0, 1: 0, 3: 0, 4: 0, 5: 0, 6: 2}
    found = prefix([row(0, 0, "ab"), row(1, 9, "ab"), row(0, 0, "ab", combo=1), row(1, 9, "a", combo=1, lifetime_s=8)])
    assert found == {(0, 0): 0, (0, 1): 2, (1, 0): 0, (1, 1): 0}
    bare = {**row(0, 0, "ab"), "readable_at": None}
    assert read(bare, row(1, 0.000001, "ab")) == {0: 0, 1: 2}
    assert prefix([]) == {}


@st.composite
def logs(draw, *, mixed=True):
    """Logs over one small tree of prompts, in several pools and combos, on a grid on which gaps meet lifetimes."""
    prompts = st.text("ab", max_size=6)
    rows = []
    lifetimes = st.sampled_from([2, 4]) if mixed and draw(st.booleans()) else st.just(draw(st.sampled_from([1, 3, 6])))
    for rid in range(draw(st.integers(0, 14))):
        prompt = draw(prompts)
        ts = draw(st.one_of(*3 * [st.integers(0, 20)], st.none()))
        delay = draw(st.sampled_from([0, 1, 4, None]))
        rows.append(
            {
                "rid": rid,
                "combo": draw(st.integers(0, 1)),
                "pool": draw(st.sampled_from(["p", "p", "q", None])),
                "ts": ts,
                "readable_at": None if ts is None or delay is None else ts + delay,
                "lifetime_us": draw(lifetimes),
                "blocks": [prompt[: length + 1] for length in range(len(prompt))] or draw(st.sampled_from([None, []])),
            }
        )
    return rows


@settings(max_examples=15, deadline=None)
@given(logs())
def test_every_log_as_the_slow_replay_has_it(rows):
    assert prefix(rows) == slow_replays.prefix(rows)


@pytest.mark.full
@settings(max_examples=1000, deadline=None)
@given(logs())
def test_many_logs_as_the_slow_replay_has_them(rows):
    assert prefix(rows) == slow_replays.prefix(rows)


@settings(max_examples=6, deadline=None)
@given(logs(mixed=False))
def test_merged_pools_and_longer_lifetimes_never_read_less(rows):
    # M10 and M8, whatever the first tokens: a residence only grows, and so its earliest first token only gets earlier
    found = prefix(rows)
    merged = prefix([{**one, "pool": one["pool"] and "one"} for one in rows])
    longer = prefix([{**one, "lifetime_us": one["lifetime_us"] + 1} for one in rows])
    assert all(merged[which] >= blocks and longer[which] >= blocks for which, blocks in found.items())


def turn(rid, start_s, input_tokens, *, session="s", reaches=-1, pool="p", lifetime_s=300, first_token_s=1.0):
    one = row(rid, start_s, None, first_token_s=first_token_s, lifetime_s=lifetime_s, pool=pool)
    del one["blocks"]
    reaches_tokens = input_tokens if reaches == -1 else reaches
    return {**one, "session_id": session, "input_tokens": input_tokens, "reaches_tokens": reaches_tokens}


def test_turns_read_the_turn_before():
    rows = [
        turn(0, 0, 1000), turn(1, 300, 1500), turn(2, 600.000001, 2000),  # the third comes too late
        turn(3, 601, 2500), turn(4, 602, 2600), turn(5, 603, 2400), turn(6, 604, 2400),  # 5 is shorter
    ]  # fmt: skip
    found = sessions(rows)
    assert found == {(0, 0): 0, (0, 1): 1000, (0, 2): 0, (0, 3): 0, (0, 4): 0, (0, 5): 0, (0, 6): 0}
    # of two turns at one instant the one with the higher rid is the turn before
    assert sessions([turn(0, 0, 10), turn(1, 0, 20), turn(2, 9, 30), turn(3, 20, 25)])[0, 2] == 20
    later = [{**one, "readable_at": one["ts"]} for one in rows]
    assert [sessions(later)[0, rid] for rid in range(7)] == [0, 1000, 0, 2000, 2500, 0, 2400]


def test_turns_reach_as_far_as_both():
    rows = [
        turn(0, 0, 1000, reaches=400),
        turn(1, 9, 1500, reaches=300),
        turn(2, 20, 1600),
        turn(3, 30, 1700, reaches=None),
    ]
    rows += [
        turn(4, 40, 1800),
        turn(5, 50, 1900, session=None),
        turn(6, 50, 1900, pool="q"),
        turn(7, 50, 1900, pool=None),
    ]
    assert sessions(rows) == {(0, 0): 0, (0, 1): 300, (0, 2): 300, (0, 3): 0, (0, 4): 0, (0, 5): 0, (0, 6): 0}


@st.composite
def turns(draw):
    rows = []
    for rid in range(draw(st.integers(0, 12))):
        one = turn(rid, 0, draw(st.integers(0, 5)), session=draw(st.sampled_from(["s", "s", "t", None])))
        ts = draw(st.one_of(*3 * [st.integers(0, 12)], st.none()))
        delay = draw(st.sampled_from([0, 1, 4, None]))
        one |= {"ts": ts, "readable_at": None if ts is None or delay is None else ts + delay, "lifetime_us": 3}
        one |= {"combo": draw(st.integers(0, 1)), "pool": draw(st.sampled_from(["p", "p", "q", None]))}
        rows.append(one | {"reaches_tokens": draw(st.sampled_from([None, 0, 2, 5]))})
    return rows


@settings(max_examples=15, deadline=None)
@given(turns())
def test_every_log_of_sessions_as_the_slow_replay_has_it(rows):
    assert sessions(rows) == slow_replays.sessions(rows)


@pytest.mark.full
@settings(max_examples=600, deadline=None)
@given(turns())
def test_many_logs_of_sessions_as_the_slow_replay_has_them(rows):
    assert sessions(rows) == slow_replays.sessions(rows)
