"""The exact response cache: hand-worked cases, and every drawn log against the slow replay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import slow_replays
from replay.frames import SECOND, exact

HOUR = 3600 * SECOND


def row(rid, start_s, *, key="k", lasts_s=2.0, stored=True):
    ts = None if start_s is None else round(start_s * SECOND)
    stored_at = ts + round(lasts_s * SECOND) if stored and ts is not None else None
    return {"rid": rid, "cache_key": key, "ts": ts, "stored_at": stored_at}


@pytest.mark.parametrize(
    ("ttl_s", "gap_s", "is_hit"),
    [(300, 299, True), (300, 300, True), (300, 300.000001, False), (300, 301, False),
     (3600, 3599, True), (3600, 3600, True), (3600, 3601, False)],
)  # fmt: skip
def test_lives_from_when_it_is_stored_inclusively(ttl_s, gap_s, is_hit):
    found = exact([row(1, 0), row(2, 2 + gap_s)], ttl_s * SECOND)
    assert found == ({2: 1} if is_hit else {})


def test_a_hit_renews_nothing_and_a_later_store_replaces():
    # stored at 2; hits at 200 and 302; gone at 303, whose own answer is there at 305
    rows = [row(1, 0), row(2, 200), row(3, 302), row(4, 303), row(5, 304), row(6, 306)]
    # 5 finds nothing either, and its later answer (at 306) replaces that of 4
    assert exact(rows, 300 * SECOND) == {2: 1, 3: 1, 6: 5}


def test_duplicates_in_flight_are_misses_unless_they_are_shared():
    rows = [row(1, 0, lasts_s=10), row(2, 0, lasts_s=10), row(3, 4), row(4, 10), row(5, 9.999999)]
    # 3 is stored at 6; 1 and then 2 at 10, before who reads at 10
    assert exact(rows, HOUR) == {5: 3, 4: 2}


def test_of_answers_stored_at_one_instant_the_one_that_began_last_stands():
    rows = [row(1, 0, lasts_s=10), row(2, 4, lasts_s=6), row(3, 10)]
    assert exact(rows, HOUR) == {3: 2}


def test_singleflight_shares_with_what_is_running_and_will_be_stored():
    rows = [row(1, 0, lasts_s=10), row(2, 0, lasts_s=10), row(3, 4), row(4, 9.999999), row(5, 10)]
    # 2 began at the same instant as 1; at 10 both are stored, 2 last
    assert exact(rows, HOUR, singleflight=True) == {3: 1, 4: 1, 5: 2}
    rows[0]["stored_at"] = rows[1]["stored_at"] = None
    assert exact(rows, HOUR, singleflight=True) == {4: 3, 5: 3}


def test_an_answer_at_once_serves_no_request_of_the_same_instant():
    rows = [row(1, 5, lasts_s=0), row(2, 5, lasts_s=0), row(3, 5.000001)]
    assert exact(rows, HOUR) == {3: 2}


def test_nulls_take_no_part():
    rows = [
        row(1, 0, key=None),
        row(2, 5, key=None),
        row(3, None),
        row(4, 0, key="b", stored=False),
        row(5, 9, key="b"),
    ]
    assert exact(rows, HOUR) == {}
    assert exact([], HOUR) == {}


def test_capacity_counts_live_answers_and_drops_the_least_recently_stored_or_read():
    keys = ["a", "b", "a", "c", "a", "b"]
    rows = [row(number, 10 * number, key=key) for number, key in enumerate(keys)]
    # a and b held, a read, c takes the place of b: a is still there, b is not
    assert exact(rows, HOUR, 2) == {2: 0, 4: 0}
    assert exact(rows, HOUR, 3) == {2: 0, 4: 0, 5: 1} == exact(rows, HOUR)
    assert exact(rows, HOUR, 1) == exact(rows, HOUR, 0) == {}
    # an answer takes room to the last instant of its life: a, stored at 2 and read at 20, is 21 s old when c is stored
    # at 23, so that b goes; a microsecond less of life, and b stays
    rows = [row(0, 0, key="a"), row(1, 10, key="b"), row(2, 20, key="a"), row(3, 21, key="c"), row(4, 24, key="b")]
    assert exact(rows, 21 * SECOND, 2) == {2: 0}
    assert exact(rows, 21 * SECOND - 1, 2) == {2: 0, 4: 1}
    # what has expired takes none
    rows = [row(0, 0, key="a"), row(1, 10, key="b"), row(2, 21.000001, key="c"), row(3, 23.5, key="b")]
    assert exact(rows, 21 * SECOND, 2) == {3: 1}
    assert exact(rows, 22 * SECOND, 2) == {3: 1}
    rows[3] = row(3, 23.5, key="a")
    assert exact(rows, 22 * SECOND, 3) == {3: 0}
    assert exact(rows, 22 * SECOND, 2) == {}


@st.composite
def logs(draw):
    """Small logs in which instants, keys and lengths meet often."""
    instants = st.integers(0, 12)
    rows = []
    for rid in range(draw(st.integers(0, 14))):
        ts = draw(st.one_of(instants, instants, instants, st.none()))
        lasts = draw(st.sampled_from([0, 1, 2, 5]))
        stored_at = ts + lasts if ts is not None and draw(st.integers(0, 4)) else None
        key = draw(st.sampled_from(["a", "a", "b", "c", None]))
        rows.append({"rid": rid, "cache_key": key, "ts": ts, "stored_at": stored_at})
    return rows


def against_the_slow_one(rows, ttl, capacity, singleflight):
    slow = slow_replays.exact(rows, ttl, capacity, singleflight=singleflight)
    assert exact(rows, ttl, capacity, singleflight=singleflight) == slow


DRAWN = (logs(), st.integers(0, 6), st.sampled_from([None, 0, 1, 2, 3]), st.booleans())


@settings(max_examples=30, deadline=None)
@given(*DRAWN)
def test_every_log_as_the_slow_replay_has_it(rows, ttl, capacity, singleflight):
    against_the_slow_one(rows, ttl, capacity, singleflight)


@pytest.mark.full
@settings(max_examples=2000, deadline=None)
@given(*DRAWN)
def test_many_logs_as_the_slow_replay_has_them(rows, ttl, capacity, singleflight):
    against_the_slow_one(rows, ttl, capacity, singleflight)
