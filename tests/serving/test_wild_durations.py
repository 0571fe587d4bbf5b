"""Durations that are wrong: no figure rests on one in silence, and none stops a report."""

from datetime import UTC, datetime

import pytest
from cached_turns import ANTHROPIC, turn
from fleets import at, fleet_file, ledger_of, pool, request
from quick import few
from small_logs import ledger

import tenfold as tf
from tenfold.analysis.cache_breaks import cache_breaks
from tenfold.errors import ServingError
from tenfold.serving import traffic

NO_TIMES = [float("nan"), 1e15, float("inf"), -1.0]  # 1e15 ms are 31,000 years
HOUR = 3600


def wild(value, folder):
    """Two usual requests, ten seconds each, and one between them with this duration."""
    rows = [request(0, 10), {**request(60, 0), "duration_ms": value}, request(120, 10)]
    places = [
        {"source_file": "a.jsonl", "source_line": line, "ttft_ms": row["duration_ms"]}
        for line, row in enumerate(rows, 1)
    ]
    return ledger_of([{**row, **place} for row, place in zip(rows, places, strict=True)], folder)


@pytest.mark.parametrize("value", few(2, NO_TIMES))
def test_a_duration_that_is_no_time_is_unknown_to_a_fleet_and_named(tmp_path, value):
    made = tf.on_fleet(wild(value, tmp_path), fleet_file(tmp_path, pool(usd=3600)))
    # the log runs for 130 s at a dollar a second; of the three requests two have a duration
    assert made.bill_pusd == 130 * 10**12
    (one,) = made.hosted
    assert (one.demand.requests, one.demand.timed_requests, one.demand.in_flight_s) == (3, 2, 20)
    (note,) = [note for note in made.notes if "no call takes" in note]
    assert note.startswith("1 request with a duration")
    assert note.endswith("the first is a.jsonl:2 (request 1)")


@pytest.mark.parametrize("value", few(2, NO_TIMES))
def test_features_and_requests_in_flight_leave_it_out(tmp_path, value):
    found = traffic.measure(wild(value, tmp_path))
    # 20 request-seconds in the five minutes of the log's only bucket
    assert found.in_flight == pytest.approx(20 / 300)
    assert (found.peak, found.ttft_ratio) == (1, 1.0)


def test_cache_breaks_take_it_for_none():
    rows = [turn(100 * number, 0, 10_000, session_id=f"s{number}") for number in range(2 * len(NO_TIMES))]
    odd = [{**row, "duration_ms": value} for row, value in zip(rows, [*NO_TIMES, *NO_TIMES], strict=True)]
    assert cache_breaks(ledger(odd, ANTHROPIC)).frame.equals(cache_breaks(ledger(rows, ANTHROPIC)).frame)


def test_a_request_that_ends_long_after_all_others_is_named(tmp_path):
    rows = [request(3 * HOUR, 10), request(2 * HOUR, 10 * HOUR), request(0, 10)]
    rows = [{**row, "source_file": "a.jsonl", "source_line": line} for line, row in enumerate(rows, 1)]

    def notes(*pools, until=None, rows=rows):
        made = tf.on_fleet(ledger_of(rows, tmp_path, until=until), fleet_file(tmp_path, *pools))
        return made.bill_pusd // 10**12, [note for note in made.notes if "under way" in note]

    bill, (note,) = notes(pool())
    assert bill == 2 * 12
    assert note.startswith("the log's last request starts at 2026-07-01 03:00 UTC, and a.jsonl:2 (request 1) is said")
    assert "9.0 hours longer, to 2026-07-01 12:00 UTC" in note
    # a window beyond the log ends with it too; one that ends before, and a pool that states its end, do not
    assert len(notes(pool(), until=at(20 * HOUR))[1]) == 1
    assert notes(pool(), until=at(3 * HOUR + 60))[1] == []
    assert notes(pool(to="2026-07-01T04:00:00Z"))[1] == []
    assert notes(pool(), rows=[rows[0], rows[2]])[1] == []


def test_a_bill_over_more_than_twenty_years_is_refused(tmp_path):
    stated = pool(**{"from": "1980-01-01", "to": "2030-01-01"})
    window = (datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))
    with pytest.raises(
        ServingError, match="a bill from 1980-01-01 00:00 UTC to 2030-01-01 00:00 UTC, more than 20 years"
    ):
        tf.on_fleet(ledger_of([request(0, 10)], tmp_path, *window), fleet_file(tmp_path, stated))
    # 25 years under way: the request is named
    with pytest.raises(ServingError, match=r"more than 20 years; .*request 1\) is said to be under way 219,000"):
        tf.on_fleet(ledger_of([request(0, 10), request(0, 219_000 * HOUR)], tmp_path), fleet_file(tmp_path, pool()))
