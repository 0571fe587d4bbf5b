"""Which windows carry a diagnosis."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.latency.preconditions import check

from .windows_made import made_pair


def side(count, **more):
    return {"ts_s": np.arange(count, dtype=float), **more}


@pytest.mark.parametrize(
    ("counts", "quantile"),
    [((2000, 2000), 0.99), ((1999, 5000), 0.95), ((400, 400), 0.95), ((9999, 399), None)],
)
def test_the_rows_of_the_smaller_window_decide_the_quantile(counts, quantile):
    judged = check(made_pair(side(counts[0]), side(counts[1])))
    if quantile is None:
        assert (
            "the window before has 9,999; the window after has 399 (1,601 missing for p99, 1 missing for p95)"
            in judged.refused
        )
        assert "--where" in judged.next_measurements[0]
    else:
        assert judged.refused is None
        assert judged.quantile == quantile
        assert bool(judged.notes) == (quantile == 0.95)


def test_only_requests_with_all_that_is_needed_count():
    ok = np.arange(2000) % 2 == 0
    judged = check(made_pair(side(2000, ok=ok), side(2000, output=np.where(ok, np.nan, 50.0))))
    assert judged.refused is None
    assert judged.quantile == 0.95
    assert "1,000 and 1,000" in judged.notes[0]


def test_missing_columns_are_named_with_the_way_out():
    pair = made_pair(side(3000, ttft_s=np.nan, e2e_s=2.0), side(3000, ttft_s=np.nan, e2e_s=2.0))
    judged = check(pair)
    assert judged.refused == (
        "each request must say ts, ttft_ms, duration_ms, output_tokens; not in both windows: ttft_ms"
    )
    (step,) = judged.next_measurements
    assert step.startswith("Log ttft_ms: start to first token")


def test_requests_that_all_failed_are_no_missing_column():
    pair = made_pair(side(500, ok=False, status="timeout"), side(500, status="ok"))
    judged = check(pair)
    assert "no request of the window before was answered (status: timeout)" in judged.refused
    assert "ttft_ms, duration_ms, output_tokens; not" not in judged.refused


def test_failures_that_hide_from_the_tail_are_told():
    ok = np.arange(5000) % 10 > 0
    (note,) = check(made_pair(side(5000), side(5000, ok=ok))).notes
    assert note == "0% of requests before and 10% after lack a latency: the tail is that of the others"
    assert check(made_pair(side(5000, ok=ok), side(5000, ok=ok))).notes == ()


def test_failed_and_without_a_latency_are_counted_apart():
    place = np.arange(5000)
    after = side(5000, ok=place % 10 > 1, status="ok")
    after["status"] = ["timeout" if n % 10 == 0 else "ok" for n in place]
    (note,) = check(made_pair(side(5000, status="ok"), after)).notes
    assert note == (
        "0% of requests before and 10% after failed; 0% of requests before and 10% after lack a latency: the tail is "
        "that of the others"
    )


def test_windows_of_one_instant_are_refused():
    pair = made_pair({"ts_s": np.full(500, 7.0)}, side(500))
    assert "all requests of the window before bear one and the same time (ts)" in check(pair).refused


def test_another_revision_is_another_model():
    judged = check(made_pair(side(2500, revision="a"), side(2500, revision="b")))
    assert judged.refused == "model changed: not a latency incident of the runbook (before: a; after: b)"
    assert "--compare" in judged.next_measurements[0]
    assert check(made_pair(side(2500, revision="a"), side(2500, revision="a"))).refused is None


def test_within_a_roll_out_the_revision_of_both_windows_is_compared():
    rolled = np.where(np.arange(3000) < 2400, "a", "b")
    judged = check(made_pair(side(2500, revision="a"), side(3000, revision=rolled, replica="r")))
    assert judged.refused is None
    assert (judged.pair.before.size, judged.pair.after.size) == (2500, 2400)
    assert judged.pair.after.ts_s.tolist() == list(range(2400))
    assert judged.pair.after.replica.codes.size == 2400
    assert judged.pair.after.since_s == 0.0
    assert "compared within a (2,500 of 2,500 requests before, 2,400 of 3,000 after)" in judged.notes[0]
    few = np.where(np.arange(3000) < 399, "a", "b")
    assert (
        "there are only 2,500 and 399 usable requests"
        in check(made_pair(side(2500, revision="a"), side(3000, revision=few))).refused
    )
