"""The p99 runbook held against a slow second implementation, and against what must not change its answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import numpy as np
import oracle_latency as slow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import few
from scipy import stats
from small_logs import book

from tenfold.latency.answers import Shift
from tenfold.latency.blame import Load, parts_of_load
from tenfold.latency.callers import HORIZON_S, caller_codes, repeats_of
from tenfold.latency.causes import causes_of
from tenfold.latency.cells import kinds_of, ranked, weights_of
from tenfold.latency.costing import cost_words
from tenfold.latency.counterfactual import Counterfactual, Parts, Shares
from tenfold.latency.facts import facts_of
from tenfold.latency.guilty import Guilty
from tenfold.latency.kinds import KINDS
from tenfold.latency.load import work_changes
from tenfold.latency.memory import preempted_of
from tenfold.latency.records import Finding, Interval
from tenfold.latency.shift import shift_of, shifts
from tenfold.latency.slices import benjamini_hochberg
from tenfold.latency.statistics import Standardised
from tenfold.latency.steps import s7_upstream
from tenfold.latency.steps.s1_split import band_shares
from tenfold.latency.tails import DRAWS, Tail, draws_of
from tenfold.latency.under_way import under_way

from .oracle_windows import EXAMPLES, NUMBERS, SEEDS, lists, near, pair_of
from .windows_made import made_pair


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(
    rows=st.lists(st.tuples(st.one_of(NUMBERS, st.just(float("nan")), st.integers(1, 4).map(float)),
                            st.integers(0, 39), st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1, max_size=60),
    q=st.sampled_from([0.5, 0.95, 0.99]),
    is_weighted=st.booleans(),
)  # fmt: skip
def test_a_quantile_is_the_least_value_that_so_much_lies_above(rows, q, is_weighted):
    values, slices, weights = map(list, zip(*rows, strict=True))
    draws = draws_of(slow.SLICES, 60, 5)
    tail = Tail.of(np.array(values), np.array(slices), q, slow.SLICES, np.array(weights) if is_weighted else None)
    given_weights = weights if is_weighted else None
    known = [v for v, w in zip(values, given_weights or [1] * len(values), strict=True) if np.isfinite(v) and w > 0]
    expected = slow.quantiles(values, slices, q, draws.tolist(), given_weights)
    near(tail.at()[0], expected[0])
    drawn = draws @ tail.totals > 0
    near(tail.at(draws)[drawn], np.array(expected[1:])[drawn])
    # and by its words, on the sample without weights
    if known and not is_weighted:
        allowed = round((1 - q) * len(known), 9)
        near(expected[0], min(v for v in known if sum(other > v for other in known) <= allowed))


@pytest.mark.parametrize("seed", SEEDS)
def test_shifts_are_log_ratios_with_the_spread_of_their_draws(seed):
    pair = pair_of(seed, 500 if seed == 0 else 2500)
    draws = lists(0), lists(1)
    assert len(draws[0]) == DRAWS
    for q in (0.95, 0.99):
        found = shifts(pair, facts_of(pair, q))
        for name, one in found.items():
            old, new = (
                slow.quantiles(slow.component(window, name), slow.slices_of(window), q, drawn)
                for window, drawn in zip(pair.windows, draws, strict=True)
            )
            expected = slow.shift(old, new)
            if not one.burst_slices:
                near((one.before, one.after, one.change.low, one.change.high), expected)
        split = band_shares(pair, q)
        near(list(split.values()), list(slow.band_shares(*pair.windows, q).values()))
        assert sum(split.values()) == pytest.approx(1)


@pytest.mark.parametrize(("factor", "spread"), [(1.02, 0.01), (1.06, 0.01), (0.9, 0.02), (1.3, 1.0), (3.0, 0.5)])
def test_small_shifts_are_none_and_others_as_sure_as_their_draws(factor, spread):
    random = np.random.default_rng(3)
    sides = [by * np.exp(spread * random.standard_normal(600)) for by in (1.0, factor)]
    slices = [random.integers(0, slow.SLICES, 600).astype(np.int32) for _ in sides]
    found = shift_of(*(Tail.of(*side, 0.95, slow.SLICES) for side in zip(sides, slices, strict=True)))
    expected = slow.shift(
        *(
            slow.quantiles(v.tolist(), s.tolist(), 0.95, lists(at))
            for at, (v, s) in enumerate(zip(sides, slices, strict=True))
        )
    )
    near((found.before, found.after, found.change.low, found.change.high), expected)
    assert found.is_change == expected.is_change == (factor in (1.06, 0.9, 3.0))


@pytest.mark.parametrize("pieces", few(1, [1, 6, 2, 4, 5]))
def test_a_burst_is_a_few_pieces_of_time_judged_by_their_requests(pieces):
    random = np.random.default_rng(pieces)
    sides = []
    for side in (0, 1):
        ts = random.uniform(0, 400, 2000)
        is_slow = (side == 1) & (ts < 10 * pieces) & (random.random(2000) < 1.2 / pieces)
        sides.append({"ts_s": ts + 400 * side, "ttft_s": np.where(is_slow, 5.0, 1.0) * random.uniform(0.9, 1.1, 2000)})
    pair = made_pair(*sides, spans=((0.0, 400.0), (400.0, 800.0)))
    found = shifts(pair, facts_of(pair, 0.99))["ttft"]
    columns, slices = zip(*((window.ttft_s.tolist(), slow.slices_of(window)) for window in pair.windows), strict=True)
    plain = slow.shift(*(slow.quantiles(columns[at], slices[at], 0.99, lists(at)) for at in (0, 1)))
    expected = plain if plain.is_change else slow.burst(columns, slices, 0.99) or plain
    near((found.before, found.after, found.change.low, found.change.high), expected)
    assert bool(found.burst_slices) == (expected is not plain)


# ---- cells, ranks, load


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_are_shares_before_over_shares_after(seed):
    pair = pair_of(seed, 700, mix=0.2, length=1)
    used = tuple(np.isfinite(window.ttft_s) for window in pair.windows)
    for column in ("input", "output"):
        lengths = tuple(getattr(window, column) for window in pair.windows)
        found = weights_of(kinds_of(pair), lengths, used)
        mix, within, overlap, effective = slow.weights(
            tuple(slow.kinds(window) for window in pair.windows), lengths, tuple(mask.tolist() for mask in used)
        )
        near(found.mix, mix)
        near(found.within, within)
        near((found.overlap, found.effective), (overlap, effective))


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(
    values=st.lists(st.tuples(st.one_of(st.floats(-5, 5), st.just(float("nan"))), st.integers(0, 2)), max_size=40),
    reference=st.lists(st.tuples(st.one_of(st.floats(-5, 5), st.just(float("nan"))), st.integers(0, 3)), max_size=40),
    least=st.integers(1, 12),
)
def test_ranks_are_mapped_within_cells(values, reference, least):
    sides = [(np.array([v for v, _ in side]), np.array([c for _, c in side], int)) for side in (values, reference)]
    found = ranked(sides[0][0], sides[1][0], (sides[0][1], sides[1][1]), least)
    near(found, slow.ranked(*(side[0].tolist() for side in sides), tuple(side[1].tolist() for side in sides), least))


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(logs=st.lists(st.floats(0.03, 1.5), min_size=1, max_size=5), ratio=st.floats(0.5, 200))
def test_load_is_shared_over_all_orders(logs, ratio):
    found = parts_of_load(logs, ratio)
    near(found, slow.load_shares(logs, ratio))
    assert sum(found) == pytest.approx(1)
    # who adds more is given more
    order = np.argsort(logs, kind="stable")
    assert (np.diff(np.array(found)[order]) >= -1e-9).all()


@pytest.mark.parametrize(
    ("seed", "drop"), few(1, [(0, ()), (1, ("queue_s",)), (2, ("replica",)), (3, ("seen_end_s",))])
)
def test_what_is_under_way_is_seen_by_a_look_at_each_pair(seed, drop):
    pair = pair_of(seed, 250, drop)
    for window in pair.windows:
        tokens = slow.uncached(window)
        found, expected = under_way(window, np.array(tokens)), slow.under_way(window, tokens)
        for name in expected._fields:
            got, wanted = getattr(found, name), np.array(getattr(expected, name))
            assert np.allclose(got, wanted, rtol=1e-6, atol=1e-4, equal_nan=True), name


NO_PARTS = Parts()


def ready(pair, q=0.95, parts=NO_PARTS):
    facts = facts_of(pair, q)
    models = slow.Model.of(facts.prefill), slow.Model.of(facts.decode)
    # what is under way is held by itself: its rounding (1e-12 for nobody) would decide ranks here
    under = tuple(
        slow.UnderWay(*(getattr(one.under, name).tolist() for name in slow.UnderWay._fields)) for one in facts.windows
    )
    return facts, Counterfactual(pair, facts, parts), slow.Game(pair.windows, models, under, parts)


@pytest.mark.parametrize("seed", SEEDS)
def test_load_logs_are_those_of_means(seed):
    pair = pair_of(seed, 300, mix=0.2, cache=1, length=1)
    facts, game, other = ready(pair)
    near(game.uncached_back, other.back)
    found = work_changes(pair, facts, game.kinds, game.uncached_back, game.fresh)
    expected = slow.work(*pair.windows, other.under, other.prefill, other.decode, other.back)
    near([found._asdict()[name] for name in expected], list(expected.values()), least=2e-6)


# ---- the counterfactual


def some_parts(pair, case):
    size = pair.after.size
    first, everyone = np.arange(size) % 3 == 0, np.ones(size, bool)
    both = frozenset({"ttft", "tpot"})
    return {
        "load": Parts(),
        "cache, mix, within": Parts(cache=True, mix=True, within=True),
        "residuals": Parts(residuals=(("slow_host 0", first, both), ("version 0", everyone, frozenset({"tpot"})))),
        "new clients": Parts(mix=True, within=True, new_clients=first, residuals=(("drift 0", ~first, both),)),
    }[case]


@pytest.mark.parametrize(
    ("case", "seed"),
    few(
        2,
        [
            ("residuals", 1),
            ("cache, mix, within", 0),
            ("load", 2),
            ("new clients", 3),
            ("residuals", 4),
            ("new clients", 5),
        ],
    ),
)
@pytest.mark.parametrize("component", ["ttft", "tpot", "output"])
def test_shares_are_those_of_every_order(case, seed, component, monkeypatch):
    few_draws = {stream: draws_of(slow.SLICES, 20, stream) for stream in (0, 1)}
    monkeypatch.setattr("tenfold.latency.counterfactual.draws_of", lambda _, stream: few_draws[stream])
    pair = pair_of(seed, 300 if seed < 2 else 800, mix=0.2, cache=1, length=1)
    _, game, other = ready(pair, parts=some_parts(pair, case))
    found = game.shares(component)
    expected = other.shares(component, 0.95, tuple(each.tolist() for each in few_draws.values()))
    rest = expected.pop("unexplained")
    assert set(found.parts) == set(expected)
    for name, share in [*found.parts.items(), ("unexplained", found.unexplained)]:
        draws = expected.get(name, rest)
        low, high = np.quantile([each for each in draws[1:] if np.isfinite(each)], (0.025, 0.975))
        near(share, (min(low, draws[0]), draws[0], max(high, draws[0])), rel=1e-5)
    assert sum(share.mid for share in found.parts.values()) + found.unexplained.mid == pytest.approx(1)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(
    logs=st.tuples(st.floats(0.05, 1), st.floats(0.05, 1), st.floats(0.05, 1)),
    prompts=st.floats(0.2, 0.9),
    host=st.floats(-0.3, 0.5),
    rise=st.floats(1.2, 20),
)
def test_load_belongs_to_who_made_it_and_all_adds_up_to_one(logs, prompts, host, rise):
    """A lost host and longer prompts made load, retries followed, queueing shows it; a slow host is for itself."""
    kinds = ("lost_host", "input_length", "retries", "queueing", "slow_host")
    found = {kind: Finding(KINDS[kind].step, kind, "guilty") for kind in kinds}
    made = tuple((found[kind], log) for kind, log in zip(kinds, logs, strict=False))
    load = Load(prompts=made, followers=(found["retries"],), pressure=found["queueing"])
    moved = {"ttft": Shift(1.0, rise, Interval(rise - 1, rise - 1, rise - 1))}
    parts = {"prompts": prompts, "slow_host 0": host}
    shares = Shares(
        {name: Interval(share, share, share) for name, share in parts.items()}, Interval(0, 0, 0), (rise, 1.0)
    )
    guilty = Guilty(tuple(found.values()), pair_of(0, 4))
    causes, rest = causes_of(guilty, {"ttft": shares}, moved, load)
    of = slow.load_shares(logs, rise / (rise - prompts * (rise - 1)))
    ground = of[0] + of[1]
    expected = {
        "lost_host": prompts * of[0] / ground,
        "input_length": prompts * of[1] / ground,
        "slow_host": host,
    }
    told = {one.kind: one.shares["ttft"].mid for one in causes if one.consequence_of is None}
    assert told == pytest.approx({kind: share for kind, share in expected.items() if share >= 0.1})
    assert rest["ttft"] + sum(told.values()) == pytest.approx(1)
    for step, kind in {KINDS[kind].step: kind for kind in ("lost_host", "input_length") if kind in told}.items():
        after = {one.kind: one.shares["ttft"].mid for one in causes if one.consequence_of == step}
        parts = {"retries": of[2] * told[kind], "queueing": ground * told[kind]}
        # what goes through several adds up to no more than their cause
        assert sum(parts.values()) == pytest.approx(told[kind])
        assert after == pytest.approx({name: share for name, share in parts.items() if share >= 0.05})


# ---- rates


@pytest.mark.parametrize("seed", SEEDS)
def test_hit_rates_are_standardised_with_the_error_of_clusters(seed):
    pair = pair_of(seed, 600, mix=0.2, cache=1)
    sides, fast, clusters = [], [], []
    kinds = kinds_of(pair)
    for window, kind in zip(pair.windows, (kinds.before, kinds.after), strict=True):
        cell = kind * 20 + np.floor(np.log2(window.input)).astype(int)
        read = np.nan_to_num(window.cached)
        fast.append((read, window.input, cell.astype(np.int32)))
        clusters.append((window.session.codes, np.array(slow.slices_of(window), np.int32)))
        sides.append((read.tolist(), window.input.tolist(), cell.tolist()))
    found = Standardised.of(*fast, tuple(clusters)).change()
    for alone in (0, 1):
        single = Standardised.of(*fast, tuple((each[alone],) for each in clusters)).change()
        mid, error, freedom, excess = slow.standardised(
            *((*side, each[alone].tolist()) for side, each in zip(sides, clusters, strict=True))
        )
        near(single.mid, mid)
        near(single.high - single.mid, stats.t.ppf(0.995, freedom) * error, rel=0.01)
        near(Standardised.of(*fast, tuple(clusters)).excess.sum(), excess)
        # of two clusterings the one of more variance is told; its degrees of freedom may be more, too
        assert found.high - found.mid >= (single.high - single.mid) * 0.9


@pytest.mark.parametrize(
    ("seed", "drop"), few(1, [(0, ()), (1, ("prompt",)), (2, ("attempt",)), (3, ()), (4, ("client",))])
)
def test_retries_and_preemptions_are_counted(seed, drop):
    pair = pair_of(seed, 400, drop)
    facts = facts_of(pair, 0.95)
    codes = caller_codes(pair)
    callers = [
        [f"{tenant}/{'' if 'client' in drop else 'app'}" for tenant in slow.labels(window.tenant, window.size)]
        for window in pair.windows
    ]
    rates = [Counter(side) for side in callers]

    def horizon(who):
        return HORIZON_S * min(max(rates[1][who] / rates[0][who], 1.0), 10.0)

    before = slow.repeats(pair.before, callers[0], horizon)
    after = slow.repeats(pair.after, callers[1], lambda _: HORIZON_S)
    assert repeats_of(pair.after, codes[1]).is_repeat.tolist() == after
    measures = s7_upstream.look(pair, facts)[0].measures
    shares = [sum(each) / len(each) for each in (before, after)]
    near((measures["duplicate_share_before"], measures["duplicate_share_after"]), shares)
    near((measures["amplification_before"], measures["amplification_after"]), [1 / (1 - each) for each in shares])
    ones = [1.0] * 400
    *_, excess = slow.standardised(
        (list(map(float, before)), ones, callers[0], range(400)),
        (list(map(float, after)), ones, callers[1], range(400)),
    )
    near(measures["retry_log_change"], np.log(400 / (400 - max(excess, 0))))
    found = preempted_of(pair, facts)
    counts = [window.preemptions.tolist() for window in pair.windows]
    near((found.before, found.after), [sum(each > 0 for each in side) / 400 for side in counts])
    near(found.ratio.mid, sum(counts[1]) / sum(counts[0]))


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(p=st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), min_size=1, max_size=25))
def test_false_discovery_rates(p):
    found = benjamini_hochberg(np.array(p))
    near(found, slow.false_discovery(p))
    there = [each for each in p if np.isfinite(each)]
    if there:
        near([each for each in found if np.isfinite(each)], stats.false_discovery_control(there))


# ---- costs


@pytest.mark.parametrize(
    ("kind", "seed"),
    few(3, [(kind, seed) for seed in range(4) for kind in ("cache_broken", "input_length", "output_length")]),
)
def test_a_cause_costs_what_the_price_book_says(kind, seed):
    pair = replace(pair_of(seed, 500, cache=float(kind == "cache_broken")), billed=("openai", "plain"))
    game = ready_back(pair)
    used = pair.after.ok
    sizes = [
        np.nan_to_num(each[used]).sum() / used.sum()
        for each in (pair.after.input, pair.after.cached, pair.after.output)
    ]
    now = tuple(map(round, sizes))
    log = 0.6 - 0.3 * seed
    calm = {
        "cache_broken": (now[0], max(now[0] - round(game[used].mean()), 0), now[2]),
        "input_length": (round(now[0] * np.exp(-log)), min(now[1], round(now[0] * np.exp(-log))), now[2]),
        "output_length": (now[0], now[1], round(now[2] * np.exp(-log))),
    }[kind]
    usd = slow.cost_a_day(now, calm, ("2", "0.2", "10"), 500, 600)
    words = cost_words(Finding(0, kind, "guilty", measures={"within_log_change": log}), pair, game, book())
    expected = f"${abs(usd.quantize(Decimal(1))):,} a day {'more' if usd > 0 else 'less'}" if abs(usd) >= 1 else None
    assert words == expected or (words or "").startswith(f"{expected}, ")


def ready_back(pair):
    return Counterfactual(pair, facts_of(pair, 0.95), NO_PARTS).uncached_back
