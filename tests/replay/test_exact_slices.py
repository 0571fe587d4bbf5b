"""The exact response cache over a log that is cut into slices of time and parts of keys, and keys that share a hash."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import slow_replays
from replay.frames import SECOND, engine_with

from tenfold.replay import exact
from tenfold.replay.exact import exact_hits, key_words
from tenfold.store.engines.duckdb import DuckDBEngine

HOUR = 3600 * SECOND
START = 20_000 * 24 * HOUR  # a midnight


@st.composite
def logs(draw):
    """Small logs over some days, with answers that take from none to two of them."""
    rows = []
    for rid in range(draw(st.integers(0, 24))):
        ts = START + draw(st.integers(0, 5 * 24)) * HOUR
        lasts = draw(st.sampled_from([0, 1, HOUR, HOUR, 20 * HOUR, 50 * HOUR]))
        stored_at = ts + lasts if draw(st.integers(0, 4)) else None
        rows.append({"rid": rid, "cache_key": draw(st.sampled_from("aaabc")), "ts": ts, "stored_at": stored_at})
    return rows


def found(rows, ttl, key_hash="hash(cache_key)", key_check="hash(concat('again ', cache_key))", **options):
    engine = engine_with(rows)
    engine.step("keyed", f"select rid, {key_hash} as key_hash, {key_check} as key_check, ts, stored_at from requests")
    exact_hits(engine, "keyed", "hits", ttl_us=ttl, **options)
    return dict(engine.fetch("from hits").rows())


def sliced(rows, ttl, capacity, singleflight):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "SLICE_ROWS", 2)
        patch.setattr(exact, "HITS_AT_ONCE", 3)
        return found(rows, ttl, capacity=capacity, singleflight=singleflight)


DRAWN = (logs(), st.sampled_from([0, 1, HOUR, 7 * HOUR, 30 * HOUR]), st.sampled_from([None, None, 1, 2]), st.booleans())


@settings(max_examples=25, deadline=None)
@given(*DRAWN)
def test_slices_and_parts_change_nothing(rows, ttl, capacity, singleflight):
    slow = slow_replays.exact(rows, ttl, capacity, singleflight=singleflight)
    assert sliced(rows, ttl, capacity, singleflight) == slow


@pytest.mark.full
@settings(max_examples=1500, deadline=None)
@given(*DRAWN)
def test_many_logs_in_slices_and_parts(rows, ttl, capacity, singleflight):
    test_slices_and_parts_change_nothing.hypothesis.inner_test(rows, ttl, capacity, singleflight)


@settings(max_examples=10, deadline=None)
@given(logs(), st.booleans())
def test_keys_that_share_either_hash_are_told_apart(rows, singleflight):
    slow = slow_replays.exact(rows, 7 * HOUR, singleflight=singleflight)
    assert found(rows, 7 * HOUR, key_hash="cast(7 as ubigint)", singleflight=singleflight) == slow
    assert found(rows, 7 * HOUR, key_check="cast(7 as ubigint)", singleflight=singleflight) == slow


def test_a_slice_is_cut_at_midnight_and_looks_back_as_far_as_an_answer_reaches():
    rows = [
        {"rid": number, "cache_key": "k", "ts": START + number * 12 * HOUR, "stored_at": START + number * 12 * HOUR}
        for number in range(20)
    ]
    engine = engine_with(rows)
    engine.step("keyed", "select rid, 1 as key_hash, 1 as key_check, ts, stored_at from requests")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "SLICE_ROWS", 4)
        cut = exact._cut(engine, "keyed", HOUR, looks_back=True)
        wide = exact._cut(engine, "keyed", 40 * HOUR, looks_back=True)
        whole = exact._cut(engine, "keyed", 10**6 * HOUR, looks_back=True)
    reach = HOUR + 120 * SECOND
    assert [(one.since, one.back) for one in cut.slices[:2]] == [
        (None, None),
        (START + 48 * HOUR, START + 48 * HOUR - reach),
    ]
    assert len(cut.slices) == 5
    assert cut.parts == 1
    assert [one.since for one in wide.slices] == [None, START + 96 * HOUR, START + 192 * HOUR]
    assert [one.since for one in whole.slices] == [None]
    assert whole.parts == 3  # of at most 8 requests


def test_only_requests_that_share_a_key_leave_the_engine():
    fetched = []

    class Watched(DuckDBEngine):
        def fetch(self, sql):
            frame = super().fetch(sql)
            fetched.append(frame)
            return frame

    rows = [{"rid": n, "cache_key": f"k{n}", "ts": START + n, "stored_at": START + n} for n in range(50)]
    rows += [{"rid": 50 + n, "cache_key": "twice", "ts": START + n * SECOND, "stored_at": START + n} for n in range(2)]
    plain = engine_with(rows)
    words = ", ".join(f"{sql} as {name}" for name, sql in key_words(["cache_key"]).items())
    plain.step("keyed", f"select rid, {words}, ts, stored_at from requests")
    exact_hits(Watched(plain.connection), "keyed", "hits", ttl_us=HOUR)
    assert sum(len(frame) for frame in fetched if "key_hash" in frame.columns) == 2


def test_a_null_in_the_scope_is_a_value_of_its_own():
    engine = engine_with([])
    words = key_words(["k"], ["org", "project"])
    values = "('x', cast(null as varchar), 'p'), (null, 'x', 'p'), ('x', '', 'p'), (null, null, 'p'), ('x', null, 'p')"
    for word in words.values():
        seen = engine.fetch(f"select {word} as h from (values {values}) as t(org, project, k)")["h"].to_list()
        assert len(set(seen)) == 4
        assert seen[0] == seen[4]


def test_what_was_served_before_a_slice_stores_nothing_in_it():
    # 0 is out of reach of the third day, 1 was served by it, and 2 begins when its answer has expired
    rows = [
        {"rid": number, "cache_key": "k", "ts": START + at, "stored_at": START + at}
        for number, at in enumerate((40 * HOUR, 42 * HOUR, 48 * HOUR + 1800 * SECOND, 49 * HOUR))
    ]
    assert sliced(rows, 7 * HOUR, None, False) == {1: 0, 3: 2} == slow_replays.exact(rows, 7 * HOUR)
