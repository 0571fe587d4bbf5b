"""Step 7 on planted retries, storms, new clients and overlaps; robots, growth and new names are none of them."""

import math

import numpy as np
import pytest
from latency.traffic_made import HOUR, again, both, guilty, joined, looked, names, prompted, served, traffic

from tenfold.latency.callers import repeats_of
from tenfold.latency.steps import s7_upstream


def windows(seed, *, robots=0.0, pool=20, rows=8000, **kwargs):
    before, after = served(traffic(seed, 0, **kwargs), seed), served(traffic(seed, 1, rows=rows, **kwargs), seed + 1)
    return prompted(before, 0, seed, robots, pool), prompted(after, 1, seed, robots, pool)


def inside(columns):
    kept = columns["ts_s"] < 2 * HOUR
    return {name: value[kept] for name, value in columns.items()}


def test_three_tries_in_place_of_one_without_jitter():
    before, after = windows(1)
    random = np.random.default_rng(1)
    some = np.flatnonzero(random.random(8000) < 0.2)
    for time in (1, 2):
        after = again(after, some, 12.0 * time, attempt=time)
    after = inside(after)
    count = after["ts_s"].size
    (found,) = looked(s7_upstream, before, after)
    assert (found.status, found.kind) == ("guilty", "retries")
    assert found.measures["duplicate_share_after"] == pytest.approx(1 - 8000 / count)
    assert found.measures["amplification_after"] == pytest.approx(count / 8000)
    assert found.measures["retry_log_change"] == pytest.approx(math.log(count / 8000), abs=0.01)
    assert found.measures["lattice_s"] == pytest.approx(12, rel=0.01)
    assert found.effect.low > 0.05
    assert found.measures["retries_since_s"] == pytest.approx(HOUR, abs=60)
    assert any("exactly 3 times" in text for text in found.evidence)
    # prompts alone say the same, and attempts alone
    for column in ("attempt", "prompt"):
        (other,) = looked(s7_upstream, before, after, drop=(column,))
        assert other.kind == "retries"
        assert other.measures["retry_log_change"] == pytest.approx(found.measures["retry_log_change"], abs=0.02)


def test_capped_waits_of_one_client_come_back_all_at_once():
    before, after = windows(2)
    mine = np.flatnonzero((after["client"] == "web/1.0.3") & (np.floor(after["ts_s"] / 60) % 5 == 0))
    # refused together once in five minutes, and all told to wait for 600 s
    after["ts_s"][mine] = np.floor(after["ts_s"][mine] / 60) * 60
    (found,) = looked(s7_upstream, before, inside(again(after, mine, 600.0)))
    assert (found.kind, found.who) == ("storm", "web/1.0.3")
    assert found.measures["lattice_s"] == pytest.approx(600, rel=0.01)
    assert "drawn at random" in found.next_action


def test_waits_with_jitter_are_retries_on_no_lattice():
    before, after = windows(3)
    random = np.random.default_rng(3)
    some = np.flatnonzero(random.random(8000) < 0.3)
    (found,) = looked(s7_upstream, before, inside(again(after, some, random.uniform(5, 60, some.size))))
    assert found.kind == "retries"
    assert math.isnan(found.measures["lattice_s"])


def test_retries_of_half_a_window_are_dated():
    before, after = windows(4)
    some = np.flatnonzero((after["ts_s"] > HOUR + 1800) & (np.arange(8000) % 2 == 0))
    failed = np.isin(np.arange(8000), some)
    after["ok"] = ~failed
    before["ok"] = np.ones(8000, bool)
    (found,) = looked(s7_upstream, before, inside(again(after, some, 8.0)))
    assert found.since_s == pytest.approx(HOUR + 1800, abs=60)
    assert found.measures["failures_since_s"] == pytest.approx(HOUR + 1800, abs=60)
    assert found.measures["failed_after"] > 0.1


def test_robots_that_repeat_prompts_in_both_windows_are_innocent():
    (found,) = looked(s7_upstream, *windows(5, robots=0.4), drop=("attempt",))
    assert found.status == "innocent"
    assert found.measures["duplicate_share_before"] > 0.3
    # twice the traffic repeats by chance more often
    (found,) = looked(s7_upstream, *windows(6, robots=0.4, pool=120, rows=16_000), drop=("attempt",))
    assert found.measures["duplicate_share_after"] > 0.15
    assert found.status == "innocent"


def test_more_traffic_of_a_tenant_of_robots_is_a_mix_and_no_retry():
    shares = np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.05]), np.array([0.3, 0.15, 0.1, 0.1, 0.05, 0.3])
    sides = []
    for side, share in enumerate(shares):
        columns = prompted(served(traffic(7, side, shares=share), 7), side)
        robot = columns["tenant"] == "team-5"
        columns["prompt"][robot] = names("robot", np.arange(int(robot.sum())) % 10)
        sides.append(columns)
    (found,) = looked(s7_upstream, *sides, drop=("attempt",))
    assert found.measures["duplicate_share_after"] - found.measures["duplicate_share_before"] > 0.15
    assert found.status == "innocent"


def newcomer(after, count, **labels):
    fresh = {name: value[:count].copy() for name, value in after.items()}
    random = np.random.default_rng(8)
    fresh["ts_s"] = HOUR + HOUR * random.random(count)
    fresh["prompt"] = np.array([f"n{at}" for at in range(count)], object)
    for name, value in labels.items():
        fresh[name] = np.full(count, value, object)
    return joined(after, fresh)


def test_a_new_heavy_client_is_named_once():
    before, after = windows(8)
    (found,) = looked(s7_upstream, before, newcomer(after, 2000, client="crawler/0.1", tenant="team-new"))
    assert (found.kind, found.who) == ("new_client", "crawler")
    assert found.effect.mid == pytest.approx(0.2)
    assert found.measures["new_client_log_change"] == pytest.approx(math.log(10 / 8))
    assert found.rows.sum() == 2000
    (found,) = looked(s7_upstream, before, newcomer(after, 2000, tenant="team-new"))
    assert (found.kind, found.who) == ("new_client", "team-new")


def test_a_release_or_another_name_is_no_new_client():
    before, after = windows(9)
    after["client"][after["client"] == "agent/2.2.0"] = "agent/3.0.0"
    assert guilty(looked(s7_upstream, before, after)) == []
    after["client"][after["client"] == "web/1.0.3"] = "portal/1.0"
    assert guilty(looked(s7_upstream, before, after)) == []


def test_repeats_of_live_requests_waste_tokens():
    before, after = windows(10)
    some = np.flatnonzero((np.arange(8000) % 4 == 0) & (after["e2e_s"] > 1.5))
    found = looked(s7_upstream, before, inside(again(after, some, 1.0)))
    assert guilty(found) == ["overlap"]
    assert found[0].measures["retry_log_change"] > 0.1
    waste = (after["input"] - after["cached"] + after["output"])[some].sum()
    assert found[0].measures["wasted_tokens"] == pytest.approx(waste, rel=0.02)


def test_an_engine_that_goes_on_with_what_was_given_up():
    before, after = windows(10)
    some = np.flatnonzero(np.arange(8000) % 4 == 0)
    for side in (before, after):
        side["seen_end_s"] = side["e2e_s"].copy()
    after["ok"] = np.arange(8000) % 4 != 0
    before["ok"] = np.ones(8000, bool)
    after["seen_end_s"][some] = 30.0
    assert guilty(looked(s7_upstream, before, inside(again(after, some, 3.0)))) == ["overlap"]
    # a client's log ends where it gave up
    after["seen_end_s"][some] = 2.0
    assert guilty(looked(s7_upstream, before, inside(again(after, some, 3.0)))) == ["retries"]


def test_columns_that_are_missing():
    before, after = windows(11)
    (found,) = looked(s7_upstream, before, after, drop=("prompt", "attempt"))
    assert found.status == "not separable"
    assert found.missing == ("prompt_hash", "attempt")
    found = looked(s7_upstream, before, newcomer(after, 2000, client="crawler/0.1"), drop=("prompt", "attempt"))
    assert guilty(found) == ["new_client"]
    (found,) = looked(s7_upstream, before, after, drop=("prompt", "attempt", "client", "tenant"))
    assert found.status == "not separable"


def test_repeats_are_those_of_a_slow_count():
    random = np.random.default_rng(12)
    columns = prompted(served(traffic(12, 0, rows=600), 12), 0, robots=0.5)
    pair, _ = both(columns, columns)
    window = pair.before
    callers = random.integers(0, 3, 600).astype(np.int32)
    found = repeats_of(window, callers, 300.0)
    last: dict[tuple[int, int], float] = {}
    for row in range(600):
        key = int(window.prompt.codes[row]), int(callers[row])
        gap = window.ts_s[row] - last[key] if key in last else math.nan
        assert found.is_repeat[row] == (gap <= 300)
        assert found.gap_s[row] == pytest.approx(gap, nan_ok=True)
        last[key] = window.ts_s[row]


def test_nothing_changed():
    for seed in range(2):
        assert guilty(looked(s7_upstream, *windows(100 + seed, robots=0.2, burst=0.3 * (seed % 2)))) == []


@pytest.mark.full
def test_nothing_changed_two_hundred_times():
    accused = sum(
        bool(guilty(looked(s7_upstream, *windows(1000 + seed, robots=0.1 * (seed % 5), burst=0.3 * (seed % 2)))))
        for seed in range(200)
    )
    assert accused <= 2
