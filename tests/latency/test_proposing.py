"""Windows proposed around an instant, and around the clearest change of the tail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from quick import few

from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.latency.proposing import Series, around, clearest, find
from tenfold.latency.windows import read_pair
from tenfold.logs import load, open_log

START = datetime(2026, 9, 7, 9, tzinfo=UTC)
TURN = START + timedelta(hours=3)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Five hours at 4,000 requests an hour; from noon on time to first token takes twice as long, for two hours."""
    folder = tmp_path_factory.mktemp("proposing")
    rng = np.random.default_rng(11)
    at = np.sort(rng.uniform(0, 5 * 3600, 20_000))
    ttft = rng.lognormal(6, 0.7, at.size) * np.where((at >= 3 * 3600) & (at < 4.5 * 3600), 2, 1)
    output = rng.integers(20, 400, at.size)
    frame = pl.DataFrame(
        {
            "ts": pl.Series(START.timestamp() * 1e6 + at * 1e6).cast(pl.Int64).cast(pl.Datetime("us")),
            "model": np.where(rng.random(at.size) < 0.1, "rare", "main"),
            "input_tokens": 1000,
            "output_tokens": output,
            "ttft_ms": ttft,
            "duration_ms": ttft + output * rng.normal(20, 2, at.size),
            "status": np.where(rng.random(at.size) < 0.02, "error", "success"),
            "team": "blue",
        }
    )
    frame.write_parquet(folder / "log.parquet")
    load(folder / "log.parquet", db=folder / "log.duckdb", hashes=False)
    return open_log(folder / "log.duckdb")


def test_around_an_instant_the_shortest_length_with_enough_requests_is_taken(log):
    found = around(log, TURN)
    assert (found.before.since, found.before.until) == (TURN - timedelta(hours=1), TURN)
    assert (found.after.since, found.after.until) == (TURN, TURN + timedelta(hours=1))
    pair = read_pair(found.before, found.after).pairs[0]
    assert pair.model == "main"
    assert (pair.before.ok.sum(), pair.after.ok.sum()) == found.requests
    assert found.why[0].startswith("1 hour on either side: 3,")
    assert "that gives 2,000 (for p99)" in found.why[0]
    assert found.after.text.endswith("log.duckdb@2026-09-07T12:00:00Z..2026-09-07T13:00:00Z")


@pytest.mark.full
def test_around_an_instant_with_few_requests_p95_will_do_or_it_is_said(log):
    few = around(log, TURN, where="output_tokens < 60")
    assert few.before.since == TURN - timedelta(hours=6)
    assert "6 hours on either side" in few.why[0]
    p95 = around(log, TURN, where="output_tokens < 80 and ts >= timestamp '2026-09-07 11:00:00'")
    assert "1 hour on either side: 5" in p95.why[0]
    assert "that gives 400 (for p95)" in p95.why[0]
    none = around(log, TURN, where="output_tokens = 100")
    assert none.why[0].endswith("no length up to 1 day gives 400 on either side")
    assert around(log, TURN, length=timedelta(minutes=10)).why[0].startswith("10 minutes on either side: 5")


@pytest.mark.parametrize("hours", [-1, 6])
def test_an_instant_outside_the_log_is_refused(log, hours):
    with pytest.raises(AssumptionError, match=r"--around .*: the log has usable requests from 2026-09-07 09:00:0"):
        around(log, START + timedelta(hours=hours))


def test_the_clearest_change_is_found_with_the_windows_up_to_its_neighbours(log):
    found = find(log)
    assert found.component == "ttft"
    assert abs(found.at - TURN) < timedelta(minutes=4)  # a slice of 250
    assert found.ratio == pytest.approx(2, rel=0.1)
    assert found.p < 0.01
    assert found.after.since == found.before.until == found.at
    assert abs(found.after.until - START - timedelta(hours=4.5)) < timedelta(minutes=15)
    assert found.why[1] == "each window ends at the next change point"
    pair = read_pair(found.before, found.after).pairs[0]
    assert (pair.before.ok.sum(), pair.after.ok.sum()) == found.requests
    assert find(log) == found


def test_no_change_proposes_nothing_and_too_few_requests_are_said(log):
    assert find(log, where="ts < timestamp '2026-09-07 12:00:00'") is None
    with pytest.raises(NotEvaluable, match=r"--find needs 3,000 requests of one model .* are missing"):
        find(log, where="model = 'rare'")


def test_a_predicate_that_matches_nothing_is_named(log):
    for propose in (find, lambda *more, **words: around(*more, TURN, **words)):
        with pytest.raises(NotEvaluable, match=r"there (are 0|is none) where team = 'red' \(--where\)"):
            propose(log, where="team = 'red'")


def series(seed, *, step=None, factor=2.0, size=12_000, component="ttft"):
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.uniform(0, 86_400, size))
    columns = {"ttft": rng.lognormal(-1, 0.8, size), "tpot": rng.lognormal(-3.5, 0.3, size)}
    columns["output"] = rng.lognormal(5, 0.9, size).clip(max=2_000).round()
    if step is not None:
        columns[component] = columns[component] * np.where(np.arange(size) >= step, factor, 1)
    return Series.of(ts, columns)


@pytest.mark.parametrize(("seed", "component"), few(1, [(0, "ttft"), (1, "tpot"), (2, "output")]))
def test_a_planted_step_is_found_within_a_slice(seed, component):
    step = int(np.random.default_rng(seed).uniform(0.2, 0.8) * 12_000)
    made = series(seed, step=step, component=component)
    found = clearest(made)
    assert found.component == component
    assert abs(np.searchsorted(made.ts_s, found.after[0]) - step) <= 250
    assert found.before[1] == found.after[0]


def test_what_was_slow_long_before_is_no_part_of_the_window_before():
    made = series(4, step=6_000)
    ttft = made.columns["ttft"] * np.where(np.arange(12_000) < 750, 2, 1)
    found = clearest(Series.of(made.ts_s, {**made.columns, "ttft": ttft}))
    begins, turns = np.searchsorted(made.ts_s, found.before)
    assert abs(begins - 750) <= 250
    assert abs(turns - 6_000) <= 250
    assert found.is_bounded


@pytest.mark.full
def test_a_planted_step_is_found_within_a_slice_in_98_of_100_seeds():
    hits = 0
    for seed in range(100):
        step = int(np.random.default_rng(seed).uniform(0.15, 0.85) * 20_000)
        made = series(seed, step=step, size=20_000)
        found = clearest(made)
        hits += found is not None and abs(np.searchsorted(made.ts_s, found.after[0]) - step) <= 250
    assert hits >= 98


@pytest.mark.full
@pytest.mark.parametrize("size", [4_000, 20_000, 60_000])
def test_without_a_step_98_of_100_seeds_find_none(size):
    assert sum(clearest(series(1000 + seed, size=size)) is None for seed in range(100)) >= 98
