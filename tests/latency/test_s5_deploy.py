"""Step 5 on small windows that are served here: what is planted is found at equal load, and mere events are not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from latency.served import SPAN, Plan, pair_of
from quick import few

from tenfold.latency.changepoints import change_points, gain_at
from tenfold.latency.equal_load import Side, at_equal_load, pending_tokens
from tenfold.latency.facts import facts_of
from tenfold.latency.limits import limit_change
from tenfold.latency.records import Finding, Pair
from tenfold.latency.steps.s5_deploy import look


def labelled(name: str, **more: Any) -> Callable[[np.ndarray, np.ndarray], dict[str, Any]]:
    return lambda *_: {"deployment": name, **more}


OLD = Plan(rate=0.6, columns=labelled("v1"))
DEPLOY = [(SPAN - 10, "deploy", "v2", "")]


def looked(seed: int, before: Plan = OLD, after: Plan = OLD, **kwargs: Any) -> tuple[Finding, ...]:
    pair = pair_of(seed, before, after, **kwargs)
    return look(pair, facts_of(pair, 0.99))


def test_a_version_is_found_with_its_size_and_its_trade_off() -> None:
    after = Plan(rate=0.6, columns=labelled("v2"), prefill=lambda *_: 3.0, decode=lambda *_: 0.7)
    (one,) = looked(1, after=after, events=DEPLOY)
    assert (one.kind, one.status, one.who) == ("version", "guilty", "v2")
    assert one.effect is not None
    assert one.effect.low <= np.log(3) <= one.effect.high
    assert one.measures["prefill_residual"] == pytest.approx(np.log(3), abs=0.03)
    assert one.measures["decode_residual"] == pytest.approx(np.log(0.7), abs=0.03)
    assert one.measures["queue_at_equal_load"] == pytest.approx(0, abs=0.3)
    assert any(sentence.startswith("A trade-off: prefill got worse while decode -30%") for sentence in one.evidence)
    assert one.rows is not None
    assert one.rows.all()


def test_an_event_at_the_change_is_found_and_elsewhere_is_not() -> None:
    after = Plan(rate=0.6, decode=lambda _, at, __: 1.3 if at >= 2000 else 1.0)
    plan = Plan(rate=0.6)
    (one,) = looked(1, plan, after, events=[(SPAN + 2005, "deploy", "v2", "")])
    assert (one.kind, one.measures["distance_slices"]) == ("version", 0)
    assert one.effect is not None
    assert one.effect.low <= np.log(1.3) <= one.effect.high
    assert one.since_s == SPAN + 2005
    for at in (SPAN - 10, SPAN + 1000, SPAN + 2800):
        (one,) = looked(1, plan, after, events=[(at, "deploy", "v2", "")])
        assert one.status == "innocent", at


@pytest.mark.parametrize(
    "after",
    few(
        2,
        [
            Plan(rate=0.6, columns=labelled("v2")),
            Plan(rate=1.2, columns=labelled("v2")),
            Plan(rate=0.6, columns=labelled("v2"), decode=lambda name, *_: 1.8 if name == "r1" else 1.0),
            Plan(rate=0.6, columns=labelled("v2"), prefill=lambda *_: 1.04),
            Plan(rate=0.6, columns=labelled("v2"), prefill=lambda *_: 0.6),
        ],
    ),
    ids=["nothing", "more load", "one slow host", "a little", "better"],
)
def test_a_new_version_that_moved_nothing_is_innocent(after: Plan) -> None:
    (one,) = looked(1, after=after, events=DEPLOY)
    assert (one.kind, one.status) == ("", "innocent")
    assert any("deployment v2 (before: v1)" in sentence for sentence in one.evidence)


@pytest.mark.full
def test_what_all_share_is_not_the_canarys() -> None:
    """Difference in differences: half of the replicas run the new version, and all are slower."""

    def canary(replica: np.ndarray, _: np.ndarray) -> dict[str, Any]:
        return {"deployment": np.where(np.isin(replica, ("r0", "r1")), "v2", "v1")}

    everywhere = Plan(rate=0.6, columns=canary, decode=lambda *_: 1.4)
    (one,) = looked(1, after=everywhere)
    assert one.status == "innocent"
    own = Plan(rate=0.6, columns=canary, decode=lambda name, *_: 1.4 if name in {"r0", "r1"} else 1.0)
    (one,) = looked(1, after=own)
    assert (one.kind, one.who) == ("version", "v2")
    assert one.rows is not None
    assert one.rows.mean() == pytest.approx(0.5, abs=0.1)


def test_a_client_is_no_deploy() -> None:
    (one,) = looked(
        5,
        Plan(rate=0.6, columns=labelled("v1", client="a/1")),
        Plan(rate=0.6, columns=labelled("v1", client="a/2"), prefill=lambda *_: 2.0),
        events=[(SPAN, "client", "a/2 is out", "a/2"), (SPAN, "deploy", "a/2", "a/2")],
    )
    assert one.status == "innocent"
    assert "a client's version is no deploy of the servers" in one.evidence[0]


@cache
def busy(slots: int, rate: float = 1.4) -> Plan:
    return Plan(replicas=("r0",), rate=rate, slots=slots, burst=0.3, columns=labelled("v1"))


def test_a_lower_limit_shows_in_the_wait_at_equal_load() -> None:
    (one,) = looked(6, busy(12), busy(4), events=[(SPAN - 5, "config", "max_num_seqs 12 -> 4", "")])
    assert (one.kind, one.status) == ("limit", "guilty")
    assert one.measures["queue_at_equal_load"] > 1
    assert one.measures["decode_residual"] == pytest.approx(0, abs=0.05)
    assert "at the same requests under way" in one.evidence[0]


@pytest.mark.full
def test_a_pool_of_half_the_size_counts_once_prefixes_are_thrown_out() -> None:
    """Long before it is full of requests (I28), and no sooner."""

    def used(name: str, kv: float, cached: float) -> Plan:
        return Plan(
            rate=0.6,
            columns=lambda _, ts: {"deployment": name, "kv": kv * (1 + 0.2 * np.sin(ts)), "cached": cached},
        )

    kinds: dict[tuple[float, float], str] = {}
    for kv, cached in ((0.25, 0.0), (0.25, 200.0), (0.06, 0.0)):
        (one,) = looked(1, used("v1", 0.05, 200.0), used("v2", kv, cached), events=DEPLOY)
        kinds[kv, cached] = one.kind
    assert kinds == {(0.25, 0.0): "limit", (0.25, 200.0): "", (0.06, 0.0): ""}


def test_a_limit_is_seen_without_an_event_by_what_runs_while_others_wait() -> None:
    pair = pair_of(6, busy(6), busy(4))
    facts = facts_of(pair, 0.99)
    limit = limit_change(pair, facts)
    assert limit is not None
    # a request that arrives while others wait finds every slot taken, itself not in them
    assert limit.after == 3
    assert limit.before in {5, 6, 7}
    (one,) = look(pair, facts)
    assert (one.kind, one.status) == ("limit", "guilty")
    # counted from the times in the log, where it has no `running`
    bare = pair_of(6, busy(6), busy(4), drop=("running", "waiting"))
    counted = limit_change(bare, facts_of(bare, 0.99))
    assert counted is not None
    assert counted.after == 4


def test_more_load_at_the_same_limit_is_no_limit() -> None:
    (one,) = looked(6, busy(4, 1.1), busy(4), events=[(SPAN, "config", "log level", "")])
    assert one.status == "innocent"


def warming(name: str, at: float, size: float = 3.0, tau: float = 80.0):
    def decode(replica: str, now: float, _: int) -> float:
        return 1 + size * float(np.exp(-(now - at) / tau)) if replica == name and now >= at else 1.0

    return decode


def test_warm_up_is_found_and_only_early() -> None:
    after = Plan(rate=1.2, columns=labelled("v1"), decode=warming("r1", 1500))
    (one,) = looked(9, Plan(rate=1.2, columns=labelled("v1")), after, events=[(SPAN + 1500, "restart", "oom", "r1")])
    assert (one.kind, one.status, one.who) == ("warm_up", "guilty", "r1")
    assert one.effect is not None
    assert one.effect.high > one.effect.mid > one.effect.low
    assert one.since_s == SPAN + 1500
    assert one.rows is not None
    assert 0 < one.rows.sum() < 100


def test_a_new_replica_warms_up() -> None:
    after = Plan(
        replicas=("r0", "r1", "r2", "r3", "r4"),
        rate=1.2,
        columns=labelled("v1"),
        is_there=lambda name, at: name != "r4" or at >= 1000,
        decode=warming("r4", 1000),
    )
    found = looked(10, Plan(rate=1.2, columns=labelled("v1")), after)
    assert [(one.kind, one.who) for one in found] == [("warm_up", "r4")]


@pytest.mark.parametrize(
    "events", few(1, [[(SPAN + 1500, "restart", "oom", "r1")], [(SPAN + 1500, "restart", "all", "")]])
)
def test_a_restart_without_warm_up_is_innocent(events: list) -> None:
    (one,) = looked(1, events=events)
    assert one.status == "innocent"


def test_a_cohort_is_found() -> None:
    def structured(replica: np.ndarray, _: np.ndarray) -> dict[str, Any]:
        random = np.random.default_rng(5)
        return {"is_structured": random.random(replica.size) < 0.25, "deployment": "v1"}

    plan = Plan(rate=1.0, columns=structured)
    pair = pair_of(12, plan, plan, events=DEPLOY)
    assert pair.after.is_structured is not None
    extra = np.where(pair.after.is_structured, 0.5 * pair.after.ttft_s, 0.0)
    pair.after.ttft_s[:] += extra
    pair.after.e2e_s[:] += extra
    (one,) = look(pair, facts_of(pair, 0.99))
    assert (one.kind, one.status) == ("cohort", "guilty")
    assert one.effect is not None
    assert one.effect.low <= np.log(1.5) <= one.effect.high
    assert one.rows is not None
    assert (one.rows == pair.after.is_structured).all()
    assert "structured output" in one.evidence[0]
    (one,) = looked(12, plan, plan, events=DEPLOY)
    assert one.status == "innocent"


def test_scaling_down_that_hurts_is_found() -> None:
    plan = Plan(rate=2.0, columns=labelled("v1"))
    after = Plan(rate=2.0, columns=labelled("v1"), is_there=lambda name, at: name not in {"r2", "r3"} or at < 1000)
    (one,) = looked(13, plan, after, events=[(SPAN + 995, "scale", "4 -> 2", "")])
    assert (one.kind, one.who) == ("scaled", "r2, r3")
    assert one.measures["capacity_log_change"] == pytest.approx(np.log(1 - 0.5 * 0.75), abs=0.1)


@pytest.mark.full
def test_scaling_up_that_hurts_nobody_is_innocent() -> None:
    five = ("r0", "r1", "r2", "r3", "r4")
    (one,) = looked(1, after=Plan(replicas=five, rate=0.6, columns=labelled("v1")), events=[(SPAN, "scale", "5", "")])
    assert one.status == "innocent"
    slow = Plan(replicas=five, rate=1.0, columns=labelled("v1"), decode=lambda name, *_: 1.5 if name == "r4" else 1.0)
    (one,) = looked(1, after=slow, events=[(SPAN, "scale", "5", "")])
    assert (one.kind, one.who) == ("scaled", "r4")
    assert one.effect is not None
    assert one.effect.low <= np.log(1.5) <= one.effect.high


def test_missing_columns_are_told() -> None:
    (one,) = looked(1, Plan(rate=0.6), Plan(rate=0.6), drop=("replica", "queue_s", "running", "waiting"))
    assert (one.status, set(one.missing)) == ("not separable", {"deployment", "events"})
    (one,) = looked(1, Plan(rate=0.6), Plan(rate=0.6, extra={"ok": False}), events=DEPLOY)
    assert one.status == "innocent"


def test_change_points_by_hand() -> None:
    series = np.repeat([0.0, 1.0, 1.4], (30, 30, 20)) + 0.05 * np.tile([1.0, -1.0], 40)
    series[7] = np.nan
    found = change_points(series)
    assert [one.place for one in found] == [30, 60]
    assert [one.size for one in found] == pytest.approx([1.0, 0.4], abs=0.11)
    assert gain_at(series, 30) == 1.0
    assert gain_at(series, 70) < 0.5
    assert change_points(np.zeros(80)) == ()
    assert change_points(np.full(80, np.nan)) == ()


def test_equal_load_takes_load_out() -> None:
    """Twice as many under way make values twice as large in both windows: at equal load nothing moved."""
    random = np.random.default_rng(0)
    cells = [random.binomial(10, p, 8000) for p in (0.4, 0.6)]
    values = [np.log1p(each) + random.normal(0, 0.1, each.size) for each in cells]
    slices = np.arange(8000) // 200
    everything = np.ones(8000, np.bool_)
    before, after = (Side(values[at], everything, cells[at], slices, at) for at in (0, 1))
    shifted = at_equal_load(after, before)
    assert np.median(values[1]) - np.median(values[0]) > 0.3
    assert shifted.median.low <= 0 <= shifted.median.high
    assert shifted.median.high - shifted.median.low < 0.08
    moved = at_equal_load(after._replace(values=values[1] + 0.2), before)
    assert moved.median.mid - shifted.median.mid == pytest.approx(0.2, abs=0.01)
    assert np.isnan(at_equal_load(after._replace(cells=cells[1] + 50), before).median.mid)


def test_prompt_tokens_ahead_are_counted_one_by_one() -> None:
    pair = pair_of(6, busy(6), busy(4))
    window, derived = pair.after, facts_of(pair, 0.99).after
    pending = pending_tokens(window, derived)
    first = window.ts_s + window.ttft_s
    for row in range(100, 700, 50):
        same = derived.replica == derived.replica[row]
        ahead = same & (window.ts_s < window.ts_s[row]) & (first > window.ts_s[row])
        assert pending[row] == pytest.approx(window.input[ahead].sum(), abs=1e-6)


def swapped(pair: Pair) -> str:
    return "; ".join(sentence for one in look(pair, facts_of(pair, 0.99)) for sentence in one.evidence)


def test_same_input_same_words() -> None:
    assert swapped(pair_of(6, OLD, busy(4))) == swapped(pair_of(6, OLD, busy(4)))


@pytest.mark.full
@pytest.mark.parametrize("replicas", [4, 16])
def test_mere_events_accuse_nobody_in_many_windows(replicas: int) -> None:
    names = tuple(f"r{at}" for at in range(replicas))
    accused = []
    for seed in range(300, 360):
        plans = [Plan(replicas=names, rate=1.7, slots=4, burst=0.5, columns=labelled(each)) for each in ("v1", "v2")]
        events = [(SPAN - 5, "deploy", "v2", ""), (SPAN + 1500, "config", "x", ""), (SPAN + 2500, "restart", "", "r1")]
        if any(one.status == "guilty" for one in looked(seed, *plans, events=events)):
            accused.append(seed)
    assert len(accused) <= 1
