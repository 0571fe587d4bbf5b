"""Step 4 on planted queues, full caches, huge prompts and skewed balancers; and what only looks like them."""

import math

import numpy as np
import pytest
from latency.traffic_made import HOUR, again, both, guilty, joined, looked, prompted, served, traffic

from tenfold.latency.blocking import Blocking, _spent, _union
from tenfold.latency.statistics import Estimate
from tenfold.latency.steps import s4_scheduling


def windows(seed, rows=8000, work=(4.0, 4.0), **kwargs):
    return (
        served(traffic(seed, 0, **kwargs), seed, work[0]),
        served(traffic(seed, 1, rows=rows, **kwargs), seed + 1, work[1]),
    )


def memory(columns, seed, *, kv=0.4, preempted=0.07, factor=None):
    """Add memory: use of the cache with the queue, preemptions in bursts of a minute."""
    random = np.random.default_rng((seed, 5))
    count = columns["ts_s"].size
    burst = random.gamma(2.0, 0.5, 121)[(columns["ts_s"] // 60).astype(int)]
    waiting = np.floor(columns["queue_s"] / 0.1)
    return columns | {
        "preemptions": random.poisson(preempted * burst if factor is None else preempted * burst * factor) * 1.0,
        "kv": np.clip(kv + 0.05 * random.standard_normal(count), 0, 1),
        "waiting": waiting,
        "running": np.full(count, 72.0),
    }


def test_more_requests_than_replicas_can_take_queue():
    before, after = windows(1, rows=16_000, work=(5.0, 6.0))
    (found,) = looked(s4_scheduling, before, after)
    assert (found.status, found.kind) == ("guilty", "queueing")
    assert found.measures["organic_rate_log_change"] == pytest.approx(math.log(16 / 8), abs=0.01)
    assert "add replicas" in found.next_action
    # by hand: the share of the wait among the slowest 2 % of first tokens
    slow = after["ttft_s"] > np.quantile(after["ttft_s"], 0.98)
    assert found.measures["queue_share_after"] == pytest.approx(
        after["queue_s"][slow].sum() / after["ttft_s"][slow].sum()
    )
    assert found.effect.low > 1
    assert found.rows.mean() > 0.02
    assert found.missing == ("preemptions", "running", "waiting", "kv_usage_ratio")


def test_capacity_taken_away_queues_with_no_more_asked():
    (found,) = looked(s4_scheduling, *windows(2, work=(6.0, 11.0)))
    assert found.kind == "queueing"
    assert abs(found.measures["organic_rate_log_change"]) < 0.05
    assert "took capacity" in found.next_action


def test_without_a_queue_column_the_wait_is_taken_from_what_is_under_way():
    before, after = windows(1, rows=16_000, work=(5.0, 6.0))
    (found,) = looked(s4_scheduling, before, after, drop=("queue_s",))
    assert found.kind == "queueing"
    assert "queue_ms" in found.missing
    assert any("taken from" in text for text in found.evidence)
    # slower prompts on all replicas are no queue
    before, after = windows(3, work=(1.0, 1.0))
    after["ttft_s"] = after["ttft_s"] * 2
    assert guilty(looked(s4_scheduling, before, after, drop=("queue_s",))) == []


def test_retries_and_new_clients_are_not_organic():
    before, after = windows(4)
    before, after = prompted(before, 0), prompted(after, 1)
    after = again(after, np.arange(0, 8000, 2), 20.0)
    fresh = {name: value[:3000].copy() for name, value in after.items()}
    fresh["client"][:] = "crawler/0.1"
    fresh["prompt"] = np.array([f"c{at}" for at in range(3000)], object)
    fresh["attempt"] = np.zeros(3000)
    (found,) = looked(s4_scheduling, before, joined(after, fresh))
    assert abs(found.measures["organic_rate_log_change"]) < 0.02


def test_a_storm_of_preemptions_is_a_full_cache_and_steady_ones_are_pressure():
    before, after = windows(5)
    steady = looked(s4_scheduling, memory(before, 5), memory(after, 6))
    assert guilty(steady) == []
    assert any("pressure, no storm" in text for text in steady[0].evidence)
    late = np.where(after["ts_s"] > HOUR + 1800, 8.0, 1.0)
    (found,) = looked(s4_scheduling, memory(before, 5), memory(after, 6, factor=late))
    assert (found.kind, found.status) == ("kv_exhausted", "guilty")
    # preemptions a request: 1 before, 1 and 8 in halves after, on average 4.5 times as many
    assert found.effect.low > 1.5
    assert found.effect.low < 4.5 < found.effect.high
    assert found.since_s == pytest.approx(HOUR + 1800, abs=240)
    assert 0 < found.measures["recompute_tax"] < 1


def test_more_concurrency_than_the_cache_holds():
    before, after = windows(6, rows=16_000, work=(5.0, 6.0))
    before, after = memory(before, 6, preempted=0.0), memory(after, 7, preempted=0.0)
    after["kv"] = np.where(after["waiting"] > 0, 0.995, after["kv"])
    before["kv"] = np.minimum(before["kv"], 0.9)
    (found,) = looked(s4_scheduling, before, after)
    assert found.kind == "kv_exhausted"
    assert found.measures["held"] == 72
    assert "72" in found.next_action
    assert any("slowest" in text for text in found.evidence)


def test_a_cache_that_fills_is_said_before_it_is_full():
    before, after = windows(7)
    before, after = memory(before, 7, preempted=0.0), memory(after, 8, preempted=0.0)
    after["kv"] = 0.80 + 0.12 * (after["ts_s"] - HOUR) / HOUR
    (found,) = looked(s4_scheduling, before, after)
    assert found.status == "innocent"
    assert found.measures["kv_trend"] == pytest.approx(0.12, abs=0.001)
    assert any("filling" in text for text in found.evidence)


def blocked(after, component, every=200.0, tokens=400_000.0):
    """Put huge prompts on one replica, which hold up what arrives, or is written, meanwhile."""
    starts = np.arange(HOUR + 50, 2 * HOUR, every)
    huge = {name: value[: starts.size].copy() for name, value in after.items()}
    huge |= {"ts_s": starts, "input": np.full(starts.size, tokens), "cached": np.zeros(starts.size)}
    huge |= {
        "queue_s": np.zeros(starts.size),
        "ttft_s": np.full(starts.size, 20.0),
        "e2e_s": np.full(starts.size, 25.0),
    }
    huge["replica"] = np.full(starts.size, "pod-1", object)
    for start in starts:
        on = after["replica"] == "pod-1"
        if component == "ttft":
            during = on & (after["ts_s"] >= start) & (after["ts_s"] < start + 20)
            late = start + 20 - after["ts_s"][during]
            for column in ("queue_s", "ttft_s", "e2e_s"):
                after[column][during] += late
        else:
            first, end = after["ts_s"] + after["ttft_s"], after["ts_s"] + after["e2e_s"]
            after["e2e_s"][on & (first > start) & (first < start + 19) & (end > first + 1)] += 15.0
    return joined(after, huge)


@pytest.mark.parametrize("component", ["ttft", "tpot"])
def test_a_huge_prompt_blocks_the_short_ones(component):
    before, after = windows(9, work=(1.0, 1.0))
    (found,) = looked(s4_scheduling, before, blocked(after, component))
    assert (found.kind, found.status) == ("head_of_line", "guilty")
    assert found.measures["huge_prompts"] == 18
    assert found.measures["beside_slow"] > 0.5
    assert found.measures["lift"] > 3
    assert found.measures["period_s"] == pytest.approx(200)
    assert any(component.upper() in text for text in found.evidence)
    assert any("every 200 s" in text for text in found.evidence)


def test_huge_prompts_that_block_no_one_and_long_ones_of_all_are_no_blocking():
    before, after = windows(10, work=(1.0, 1.0))
    harmless = blocked({name: value.copy() for name, value in after.items()}, "ttft")
    harmless["ttft_s"][:8000], harmless["e2e_s"][:8000] = after["ttft_s"], after["e2e_s"]
    assert guilty(looked(s4_scheduling, before, harmless)) == []
    slow = {name: value.copy() for name, value in harmless.items()}
    slow["ttft_s"], slow["e2e_s"] = slow["ttft_s"] * 3, slow["e2e_s"] + 2 * slow["ttft_s"]
    assert guilty(looked(s4_scheduling, before, slow)) == []


def test_where_most_requests_are_beside_a_huge_prompt_slow_ones_prove_nothing():
    before, after = windows(9, work=(1.0, 1.0))
    _, facts = both(before, after)
    one = Blocking("ttft", 12, 4e5, 0.05, Estimate(0.6, 1e-4, 30.0), 0.1, np.zeros(8000, bool), math.nan, HOUR)
    assert s4_scheduling._is_blocked(one, facts)
    assert not s4_scheduling._is_blocked(one._replace(beside=0.4), facts)
    assert not s4_scheduling._is_blocked(one._replace(slow=0.012), facts)


def test_time_within_intervals_by_hand():
    busy = _union(np.array([5.0, 0.0, 1.0, 8.0]), np.array([6.0, 2.0, 3.0, 9.0]))
    np.testing.assert_array_equal(busy, ([0.0, 5.0, 8.0], [3.0, 6.0, 9.0]))
    nested = _union(np.array([0.0, 1.0, 11.0]), np.array([10.0, 2.0, 12.0]))
    np.testing.assert_array_equal(nested, ([0.0, 11.0], [10.0, 12.0]))
    np.testing.assert_allclose(_spent(busy, np.array([-1.0, 1.5, 4.0, 5.5, 20.0])), [0, 1.5, 3, 3.5, 5])


def test_a_stuck_balancer_is_found_and_a_lost_replica_is_not_one():
    before = served(traffic(11, 0), 11, 5.0)
    skewed = traffic(11, 1)
    random = np.random.default_rng(11)
    skewed["replica"] = np.array([f"pod-{at}" for at in range(4)], object)[
        random.choice(4, skewed["ts_s"].size, p=[0.55, 0.15, 0.15, 0.15])
    ]
    (found,) = looked(s4_scheduling, before, served(skewed, 12, 5.0))
    assert (found.kind, found.who) == ("imbalance", "pod-0")
    assert found.measures["skew_after"] == pytest.approx(4 * 0.55, abs=0.1)
    lost = traffic(11, 1)
    gone = (lost["replica"] == "pod-3") & (lost["ts_s"] > HOUR + 900)
    # what it leaves goes to one other only, as with consistent hashing
    lost["replica"][gone] = "pod-0"
    assert "imbalance" not in guilty(looked(s4_scheduling, before, served(lost, 12, 5.0)))


def test_a_slow_replica_is_no_imbalance():
    before, after = windows(12)
    slow = after["replica"] == "pod-2"
    after["ttft_s"][slow] *= 3
    assert guilty(looked(s4_scheduling, before, after)) == []


def test_logs_of_a_provider_cannot_tell():
    before, after = windows(13)
    (found,) = looked(s4_scheduling, before, after, drop=("queue_s", "replica"))
    assert found.status == "not separable"
    assert found.missing == ("queue_ms", "preemptions", "running", "waiting", "kv_usage_ratio", "replica")
    assert "burstiness_after" in found.measures


def test_nothing_changed():
    for seed in range(2):
        before, after = windows(100 + seed, work=(6.0, 6.0), burst=0.3 * (seed % 2))
        assert guilty(looked(s4_scheduling, memory(before, seed), memory(after, seed + 50))) == []


@pytest.mark.full
def test_nothing_changed_two_hundred_times():
    accused = 0
    for seed in range(200):
        before, after = windows(1000 + seed, work=(6.0, 6.0), burst=0.2 * (seed % 2))
        before, after = memory(before, 2 * seed), memory(after, 2 * seed + 1)
        accused += bool(guilty(looked(s4_scheduling, before, after)))
    assert accused <= 2
