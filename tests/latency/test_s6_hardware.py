"""Step 6 on small windows that are served here: what is planted is found, with its size, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from latency.served import SPAN, Plan, pair_of
from quick import few

from tenfold.latency.facts import facts_of
from tenfold.latency.host_cells import known_rows
from tenfold.latency.hosts import host_effects
from tenfold.latency.records import Finding
from tenfold.latency.replicas import serving_of
from tenfold.latency.slices import benjamini_hochberg, group_quantile
from tenfold.latency.steps.s6_hardware import look

CALM = Plan(rate=0.6)


def looked(seed: int, before: Plan = CALM, after: Plan = CALM, **kwargs) -> tuple[Finding, ...]:
    pair = pair_of(seed, before, after, **kwargs)
    return look(pair, facts_of(pair, 0.99))


def slow_at(name: str, factor: float, since: float = 0.0):
    return lambda replica, at, _: factor if replica == name and at >= since else 1.0


def test_a_slow_host_is_found_with_its_size() -> None:
    found = looked(1, after=Plan(rate=0.6, decode=slow_at("r2", 1.4)))
    assert [(one.kind, one.status, one.who) for one in found] == [("slow_host", "guilty", "r2")]
    one = found[0]
    assert one.effect is not None
    assert one.effect.low <= np.log(1.4) <= one.effect.high
    assert abs(one.measures["prefill_effect"]) < 0.03
    assert "Mainly decode" in " ".join(one.evidence)
    assert one.since_s == SPAN
    assert one.rows is not None
    assert 0.2 < one.rows.mean() < 0.3
    # a quarter of the requests at 1.4 times: their answers' part of all time
    assert 0.05 < one.measures["slower_log"] < np.log(1 + 0.25 * 0.4)


def test_a_slow_host_is_found_from_when_it_began() -> None:
    (one,) = looked(2, after=Plan(rate=0.6, prefill=slow_at("r1", 1.3, 1600)))
    assert (one.kind, one.who) == ("slow_host", "r1")
    assert one.effect is not None
    assert one.effect.low <= np.log(1.3) <= one.effect.high
    assert one.since_s is not None
    assert abs(one.since_s - SPAN - 1600) <= SPAN / 40
    assert "Mainly prefill" in " ".join(one.evidence)


def test_the_metric_that_moved_most_is_named() -> None:
    hosts = [
        (at, name, metric, value + 0.01 * (at // 100 % 3) * value)
        for at in np.arange(0, 2 * SPAN, 100.0)
        for name in ("r0", "r1", "r2", "r3")
        for metric, value in (("clock_mhz", 900.0 if name == "r2" and at >= SPAN else 1700.0), ("temp_c", 60.0))
    ]
    (one,) = looked(1, after=Plan(rate=0.6, prefill=slow_at("r2", 1.5)), hosts=hosts)
    assert any("clock_mhz of r2 went from" in sentence for sentence in one.evidence)


@pytest.mark.parametrize(
    "after",
    few(
        2,
        [
            CALM,
            Plan(rate=1.0),
            Plan(rate=0.6, decode=lambda *_: 1.4),
            Plan(rate=0.6, decode=slow_at("r2", 0.6)),
            Plan(rate=0.6, decode=slow_at("r2", 1.05)),
        ],
    ),
    ids=["nothing", "more load", "all alike", "one faster", "one a little slower"],
)
def test_controls_are_innocent(after: Plan) -> None:
    (one,) = looked(1, after=after)
    assert (one.kind, one.status) == ("", "innocent")
    assert one.evidence


def test_a_host_that_was_slow_before_is_not_accused() -> None:
    old = Plan(rate=0.6, decode=slow_at("r2", 1.4))
    (one,) = looked(1, before=old, after=old)
    assert one.status == "innocent"


def test_a_host_whose_deployment_changed_is_left_to_step_5() -> None:
    after = Plan(rate=0.6, decode=slow_at("r2", 1.4))
    (one,) = looked(1, after=after, events=[(SPAN, "deploy", "canary", "r2")])
    assert one.status == "innocent"
    assert any("its deployment changed" in sentence for sentence in one.evidence)


def test_a_lost_host_is_found() -> None:
    (one,) = looked(1, after=Plan(rate=0.6, is_there=lambda name, at: name != "r3" or at < 1000))
    assert (one.kind, one.who) == ("lost_host", "r3")
    assert one.since_s is not None
    assert 0 <= SPAN + 1000 - one.since_s < 60
    # a quarter of the capacity, three quarters of the time
    assert one.measures["capacity_log_change"] == pytest.approx(np.log(1 - 0.25 * 0.75), abs=0.03)
    assert one.measures["lost_share"] == pytest.approx(0.25)


def test_a_host_that_fails_all_requests_is_lost() -> None:
    def failing(replica: np.ndarray, ts: np.ndarray) -> dict[str, np.ndarray]:
        return {"ok": ~((replica == "r0") & (ts > 500))}

    (one,) = looked(1, after=Plan(rate=0.8, columns=failing))
    assert (one.kind, one.who) == ("lost_host", "r0")
    assert "were sent to it and failed" in one.evidence[0]


@pytest.mark.parametrize(
    ("after", "events"),
    [
        (Plan(rate=0.6, is_there=lambda name, at: name != "r3" or at < 1000), [(SPAN + 990, "scale", "down", "r3")]),
        (Plan(rate=0.6, is_there=lambda name, at: name != "r3" or at < 1000), [(SPAN + 990, "scale", "4 -> 3", "")]),
        (Plan(rate=0.6, replicas=("r0", "r1", "r2", "r9")), None),
        (Plan(rate=0.35, is_there=lambda name, at: name != "r3" or at < 1000), None),
    ],
    ids=["scaled by name", "scaled", "replaced", "and less to do"],
)
def test_a_host_that_left_without_harm_or_on_purpose_is_not_lost(after: Plan, events: list | None) -> None:
    (one,) = looked(1, after=after, events=events)
    assert one.status == "innocent"


def busy_then_rest(random: np.random.Generator) -> np.ndarray:
    ts = np.sort(random.uniform(0, SPAN, 4500))
    return ts[(ts % 1600 < 1000) | (random.random(ts.size) < 0.05)]


def heat_of(tau: float, size: float, *, skips: str = ""):
    """Decode slows down with seconds since a spell of load began, and cools down between them."""

    def decode(replica: str, at: float, _: int) -> float:
        phase = at % 1600
        top = 1 - np.exp(-1000 / tau)
        warm = 1 - np.exp(-phase / tau) if phase < 1000 else top * np.exp(-(phase - 1000) / tau)
        return 1.0 if replica == skips else 1 + size * float(warm)

    return decode


def test_heat_is_found() -> None:
    plan = Plan(arrivals=busy_then_rest)
    (one,) = looked(10, before=plan, after=Plan(arrivals=busy_then_rest, decode=heat_of(400, 0.8)))
    assert (one.kind, one.status) == ("drift", "guilty")
    assert "falls again when it rests" in one.evidence[0]
    assert one.effect is not None
    # from cold to what it reaches after 1000 s: log(1 + 0.8 x (1 - exp(-2.5)))
    assert one.effect.mid == pytest.approx(np.log(1 + 0.8 * 0.92), abs=0.2)
    assert one.who == "r0, r1, r2, r3" or set(one.who.split(", ")) == {"r0", "r1", "r2", "r3"}


def test_load_in_spells_alone_is_no_heat() -> None:
    plan = Plan(arrivals=busy_then_rest)
    (one,) = looked(1, before=plan, after=plan)
    assert one.status == "innocent"


@pytest.mark.parametrize("since", [300.0, 1000.0])
def test_a_change_of_level_is_no_heat(since: float) -> None:
    plan = Plan(rate=1.0)
    after = Plan(rate=1.0, decode=lambda _, at, __: 1.5 if at > since else 1.0)
    assert all(one.kind != "drift" for one in looked(1, before=plan, after=after))


def test_of_two_hosts_the_one_that_did_not_change_is_not_slow() -> None:
    two = ("r0", "r1")
    after = Plan(replicas=two, rate=0.4, decode=slow_at("r0", 0.6))
    (one,) = looked(1, before=Plan(replicas=two, rate=0.4), after=after)
    assert one.status == "innocent"


def sparse(random: np.random.Generator) -> np.ndarray:
    return np.cumsum(random.exponential(4.0, 1500))


def test_clocks_that_drop_at_rest_are_found() -> None:
    pair = pair_of(13, Plan(replicas=("r0", "r1"), arrivals=sparse), Plan(replicas=("r0", "r1"), arrivals=sparse))
    after = pair.after
    slow = np.zeros(after.size, np.bool_)
    assert after.replica is not None
    for code in (0, 1):
        rows = np.flatnonzero(after.replica.codes == code)
        ends = np.maximum.accumulate(after.ts_s[rows] + after.e2e_s[rows])
        slow[rows[1:]] = after.ts_s[rows[1:]] - ends[:-1] >= 10
    after.e2e_s[slow] += after.ttft_s[slow]
    after.ttft_s[slow] *= 2
    (one,) = look(pair, facts_of(pair, 0.99))
    assert (one.kind, one.status) == ("idle_clocks", "guilty")
    assert one.effect is not None
    assert one.effect.low <= np.log(2) <= one.effect.high
    assert one.rows is not None
    # the first rest may end in another request's slower answer; the planted rows are nearly all of them
    assert (one.rows & slow).sum() >= 0.98 * slow.sum()


def test_rests_without_a_price_are_innocent() -> None:
    plan = Plan(replicas=("r0", "r1"), arrivals=sparse)
    (one,) = looked(14, before=plan, after=plan)
    assert one.status == "innocent"
    assert any("come 10 s or more after" in sentence for sentence in one.evidence)


def crowd(rate: float):
    return Plan(replicas=("r0",), rate=rate, slots=64, burst=0.5)


def test_a_slow_front_end_is_found() -> None:
    pair = pair_of(15, crowd(1.6), crowd(1.6))
    random = np.random.default_rng(0)
    crowded = facts_of(pair, 0.99).after.in_flight > 2
    held = np.where(crowded & (random.random(pair.after.size) < 0.08), random.exponential(1.5, pair.after.size), 0.0)
    pair.after.ttft_s[:] += held
    pair.after.e2e_s[:] += held
    (one,) = look(pair, facts_of(pair, 0.99))
    assert (one.kind, one.status) == ("front_end", "guilty")
    assert one.measures["slope"] > one.measures["slope_before"]


def test_missing_columns_are_told() -> None:
    pair = pair_of(16, CALM, CALM, drop=("replica", "queue_s", "running", "waiting"))
    (one,) = look(pair, facts_of(pair, 0.99))
    assert one.status == "not separable"
    assert "replica" in one.missing
    pair = pair_of(16, CALM, CALM, drop=("replica",))
    (one,) = look(pair, facts_of(pair, 0.99))
    assert one.status == "innocent"
    assert "replica" in one.missing


def test_slices_in_which_requests_fail_are_left_out() -> None:
    """What clients give up on is computed still, and the log does not show it: its load is unknown."""

    def jam(replica: np.ndarray, ts: np.ndarray) -> dict[str, np.ndarray]:
        return {"ok": ~((replica == "r1") & (ts > 2000) & (np.arange(ts.size) % 3 == 0))}

    after = Plan(rate=0.6, columns=jam, decode=slow_at("r1", 1.4, 2000))
    pair = pair_of(1, CALM, after)
    facts = facts_of(pair, 0.99)
    assert pair.after.replica is not None
    jammed = (pair.after.replica.codes == 1) & (facts.after.slice >= 20)
    known = known_rows(pair, facts, 4)
    assert known[0].all()
    assert not known[1][jammed].any()
    assert known[1][~jammed].all()
    (one,) = look(pair, facts)
    assert one.kind != "slow_host"


def test_failed_rows_only_are_no_error() -> None:
    pair = pair_of(17, CALM, Plan(rate=0.6, extra={"ok": False}))
    assert all(one.status != "" for one in look(pair, facts_of(pair, 0.99)))


def test_capacity_counts_a_replica_from_its_first_answer_to_its_last() -> None:
    pair = pair_of(
        18, CALM, Plan(rate=0.6, replicas=("r0", "r1", "r2", "r3", "r4"), is_there=lambda n, at: n != "r4" or at > 2000)
    )
    serving = serving_of(pair, facts_of(pair, 0.99))
    assert serving is not None
    assert [serving.names[at] for at in serving.fresh] == ["r4"]
    assert serving.capacity_log_change == pytest.approx(np.log(4.5 / 4), abs=0.02)


def test_group_quantiles_are_numpys() -> None:
    random = np.random.default_rng(1)
    values, groups = random.normal(size=500), random.integers(-1, 6, 500)
    values[::7] = np.nan
    for q in (0.0, 0.5, 0.9):
        expected = [np.nanquantile(values[groups == at], q) for at in range(6)]
        assert group_quantile(values, groups, 7, q)[:6] == pytest.approx(expected)
    assert np.isnan(group_quantile(values, groups, 7)[6])


def test_false_discovery_rates_by_hand() -> None:
    p = np.array([0.01, np.nan, 0.04, 0.03, 0.20])
    assert benjamini_hochberg(p)[[0, 2, 3, 4]] == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.20])
    assert np.isnan(benjamini_hochberg(p)[1])


@pytest.mark.full
@pytest.mark.parametrize("replicas", [4, 16, 64])
def test_nothing_accuses_nobody_in_many_windows(replicas: int) -> None:
    plan = Plan(replicas=tuple(f"r{at}" for at in range(replicas)), rate=1.7, slots=4, burst=0.5)
    accused = [seed for seed in range(100, 160) if any(one.status == "guilty" for one in looked(seed, plan, plan))]
    assert len(accused) <= 1


@pytest.mark.full
def test_chances_of_hosts_are_chances() -> None:
    chances = []
    for seed in range(200, 260):
        pair = pair_of(seed, Plan(slots=4, rate=2.0, burst=0.5), Plan(slots=4, rate=2.0, burst=0.5))
        facts = facts_of(pair, 0.99)
        known = known_rows(pair, facts, 4)
        chances.extend(one.p for each in ("prefill", "decode") for one in host_effects(facts, known, 4, each))
    assert np.mean(np.array(chances) < 0.01) < 0.03
