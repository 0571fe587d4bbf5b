"""Step 3 on planted caches: broken, alternating, spread over replicas, evicted; and what only looks like it."""

import numpy as np
import pytest
from latency.traffic_made import HITS, HOUR, again, both, guilty, looked, prompted, served, traffic

from tenfold.latency.steps import s3_cache


def windows(seed, change=None, **kwargs):
    before, after = traffic(seed, 0), traffic(seed, 1, **kwargs)
    if change is not None:
        change(after)
    return served(before, seed), served(after, seed + 1)


def of_client(columns, version):
    return columns["client"] == version


def test_a_release_that_pins_reads_is_found_with_who_where_and_when():
    began = HOUR + 600

    def release(after):
        new = of_client(after, "agent/2.2.0") & (after["ts_s"] >= began)
        after["client"][new] = "agent/2.3.0"
        after["cached"][new] = np.minimum(after["input"][new] // 16 * 16, 1280)

    before, after = windows(1, release)
    (found,) = looked(s3_cache, before, after)
    assert (found.status, found.kind, found.who) == ("guilty", "cache_broken", "agent/2.3.0")
    assert found.measures["break_tokens"] == 1280
    assert found.since_s == pytest.approx(began, abs=60)
    mine = after["client"] == "agent/2.3.0"
    # by hand: the tokens that its requests would have read at the hit rate of all clients before
    was = before["cached"].sum() / before["input"].sum()
    now = after["cached"][mine].sum() / after["input"][mine].sum()
    assert found.effect.mid == pytest.approx(now - was, abs=0.04)
    assert found.effect.low < now - was < found.effect.high
    assert found.measures["uncached_tokens_added"] == pytest.approx((was - now) * after["input"][mine].sum(), rel=0.1)
    assert found.measures["cohort_share"] == pytest.approx(mine.mean())
    assert found.rows.sum() == mine.sum()
    assert any("not the hardware" in text for text in found.evidence)
    assert "1,280" in found.next_action


def test_a_changing_first_line_breaks_at_zero():
    def stamped(after):
        after["cached"][of_client(after, "web/1.0.3")] = 0

    (found,) = looked(s3_cache, *windows(2, stamped))
    assert (found.kind, found.who, found.measures["break_tokens"]) == ("cache_broken", "web/1.0.3", 0)
    assert "first line" in found.next_action


def test_alternating_reads_are_seen_though_the_mean_falls_little():
    def alternate(after):
        lost = (np.arange(after["ts_s"].size) % 12 == 0) & (after["input"] > 1024)
        after["cached"][lost] = 0

    (found,) = looked(s3_cache, *windows(3, alternate))
    assert guilty((found,)) == ["cache_broken"]
    assert -0.1 < found.effect.mid < 0
    assert found.measures["cohort_cold_after"] - found.measures["cohort_cold_before"] > 0.05


def test_reads_that_stopped_there_before_as_well_are_no_break():
    before, after = windows(12)
    for side, share in ((before, 0.9), (after, 0.6)):
        pinned = np.random.default_rng(12).random(side["ts_s"].size) < share
        side["cached"] = np.where(pinned, np.minimum(side["input"] // 16 * 16, 1280), 0)
    (found,) = looked(s3_cache, before, after)
    assert found.kind == "cache_broken"
    assert np.isnan(found.measures["break_tokens"])


def test_a_partly_broken_cache_of_all_traffic_names_no_one():
    def clocked(after):
        after["cached"] = np.floor(after["cached"] * 0.6 / 16) * 16

    (found,) = looked(s3_cache, *windows(4, clocked))
    assert (found.kind, found.who) == ("cache_broken", "")
    assert found.measures["cohort_share"] == 1.0


def test_one_tenant_holds_what_all_its_clients_lost():
    def tenant(after):
        mine = after["tenant"] == "team-1"
        after["cached"][mine] = np.floor(after["cached"][mine] * 0.2 / 16) * 16

    (found,) = looked(s3_cache, *windows(5, tenant))
    assert (found.kind, found.who) == ("cache_broken", "team-1")


def test_more_traffic_of_a_tenant_that_always_read_little_is_no_broken_cache():
    shares = np.array([0.1, 0.1, 0.1, 0.1, 0.55, 0.05])
    before, after = windows(6, shares=shares)
    (found,) = looked(s3_cache, before, after)
    assert found.measures["hit_after"] - found.measures["hit_before"] < -0.2
    assert (found.status, found.kind) == ("innocent", "")
    assert any("mix" in text for text in found.evidence)
    # the second reading: hit rates tenant by tenant are what they were
    assert HITS[4] == pytest.approx(0.2)
    for name in ("team-0", "team-4"):
        rates = [
            side["cached"][side["tenant"] == name].sum() / side["input"][side["tenant"] == name].sum()
            for side in (before, after)
        ]
        assert rates[1] == pytest.approx(rates[0], abs=0.05)


def test_more_replicas_spread_prefixes_and_restarted_ones_start_empty():
    def scaled(after):
        random = np.random.default_rng(1)
        after["replica"] = np.array([f"pod-{at}" for at in range(8)], object)[random.integers(0, 8, after["ts_s"].size)]
        after["cached"] = np.floor(after["cached"] * 0.6 / 16) * 16

    (found,) = looked(s3_cache, *windows(7, scaled))
    assert guilty((found,)) == ["cache_diluted"]
    assert "4 -> 8" in " ".join(found.evidence)

    def restarted(after):
        after["cached"][after["replica"] == "pod-2"] = 0

    (found,) = looked(s3_cache, *windows(7, restarted))
    assert guilty((found,)) == []
    assert "pod-2" in " ".join(found.evidence)


def test_what_a_full_memory_evicts_is_for_step_4():
    before, after = windows(8)
    random = np.random.default_rng(8)
    for side, top in ((before, 0.4), (after, 1.0)):
        side["kv"] = random.random(side["ts_s"].size) * top
    after["cached"] = np.floor(after["cached"] * (1 - 0.6 * after["kv"]) / 16) * 16
    (found,) = looked(s3_cache, before, after)
    assert guilty((found,)) == []
    assert found.measures["evicted"] == 1.0
    after["cached"] = np.floor(windows(8)[1]["cached"] * 0.6 / 16) * 16
    assert guilty(looked(s3_cache, before, after)) == ["cache_broken"]


def test_the_cohort_that_evictions_hit_most_is_not_accused():
    """Whoever comes back late loses more than the others when memory is short (I11)."""
    before, after = windows(14)
    random = np.random.default_rng(14)
    for side, top in ((before, 0.5), (after, 0.9)):
        side["kv"] = random.random(side["ts_s"].size) * top
    mine = of_client(after, "web/1.0.3")
    whole = after["cached"]
    after["cached"] = np.where(mine, np.floor(whole * (1 - 0.5 * after["kv"]) / 16) * 16, whole)
    (found,) = looked(s3_cache, before, after)
    assert (found.status, found.who, found.measures["evicted"]) == ("innocent", "web/1.0.3", 1.0)
    # as much lost at any load is no eviction
    after["cached"] = np.where(mine, np.floor(whole * 0.75 / 16) * 16, whole)
    (found,) = looked(s3_cache, before, after)
    assert (found.kind, found.who) == ("cache_broken", "web/1.0.3")


def test_a_few_huge_prompts_that_no_cache_held_are_for_step_4():
    before, after = windows(15)
    for side, read in ((before, 240_000), (after, 0)):
        rows = np.arange(100, 8000, 200)
        for name, value in (("tenant", "team-0"), ("route", "/r0"), ("client", "agent/2.1.0")):
            side[name][rows] = value
        side["input"][rows], side["cached"][rows] = 250_000, read
    assert guilty(looked(s3_cache, before, after)) == []


def test_what_retries_find_is_not_the_cache_of_first_attempts():
    before, after = windows(13)
    before, after = (prompted(side, at) for at, side in enumerate((before, after)))
    after = again(after, np.arange(0, 8000, 2), 600.0)
    after["cached"][after["attempt"] > 0] = 0
    assert guilty(looked(s3_cache, before, after)) == []


def test_a_better_cache_is_said_and_left_to_the_runbook():
    def better(after):
        after["cached"] = np.floor(np.maximum(after["cached"], 0.95 * after["input"]) / 16) * 16

    (found,) = looked(s3_cache, *windows(9, better))
    assert found.kind == "cache_gained"
    assert any("better" in text for text in found.evidence)


def test_without_cached_tokens_it_cannot_tell():
    (found,) = looked(s3_cache, *windows(10), drop=("cached",))
    assert (found.status, found.missing) == ("not separable", ("cache_read_tokens",))
    before, after = windows(10)
    after["cached"] = np.full(after["ts_s"].size, np.nan)
    assert looked(s3_cache, before, after)[0].status == "not separable"


def test_without_names_it_still_sees_the_fall():
    def broken(after):
        after["cached"] = np.minimum(after["input"] // 16 * 16, 512)

    (found,) = looked(s3_cache, *windows(11, broken), drop=("client", "tenant", "route", "session", "replica"))
    assert guilty((found,)) == ["cache_broken"]
    assert found.measures["break_tokens"] == 512


def test_nothing_changed_and_the_same_twice():
    for seed in range(2):
        before, after = windows(100 + seed)
        pair, facts = both(before, after)
        one, two = s3_cache.look(pair, facts), s3_cache.look(pair, facts)
        assert guilty(one) == []
        assert one[0].evidence == two[0].evidence


@pytest.mark.full
def test_nothing_changed_two_hundred_times():
    accused = 0
    for seed in range(200):
        before, after = (served(traffic(1000 + seed, side, burst=0.3 * (seed % 2)), seed) for side in (0, 1))
        accused += bool(guilty(looked(s3_cache, before, after)))
    assert accused <= 2
