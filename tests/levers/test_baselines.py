"""What routers and semantic caches are held against: by hand, by properties, and the published numbers."""

from __future__ import annotations

import csv
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import few

from tenfold.levers.baselines import (
    Outcome,
    Point,
    baselines,
    best_single,
    change_ratio,
    cheapest_within,
    semantic_net,
)
from tenfold.levers.quality import gap_recovered, quality_drop, wilson

DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
HALF, ONE, NONE = Decimal("0.5"), Decimal(1), Decimal(0)
SAMPLE = [
    Outcome(NONE, ONE, 10, 100),  # only the large one
    Outcome(ONE, NONE, 20, 200),  # only the small one
    Outcome(ONE, ONE, 30, 300),
    Outcome(NONE, NONE, 500, 400),  # both wrong; here the small one is dearer
]


def rows_of(*parts):
    path = DATA.joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"no {path}: set TENFOLD_REAL_DATA")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def points(rows):
    return [Point(row["Method"], Decimal(row["Test_acc"]), Decimal(row["Test_cost"])) for row in rows]


def test_by_hand():
    found = baselines(SAMPLE, [False, True, True, False])
    assert found.always_strong == (HALF, 1_000, 1)
    assert found.always_weak == (HALF, 560, 0)
    assert found.oracle == (Decimal("0.75"), 100 + 20 + 30 + 400, HALF)
    assert found.routed == (Decimal("0.75"), 550, HALF)
    assert found.random == (HALF, 780, HALF)
    with pytest.raises(ValueError, match="at least one"):
        baselines([], [])


SCORES = st.integers(0, 4).map(lambda n: Decimal(n) / 4)
OUTCOMES = st.lists(
    st.tuples(st.builds(Outcome, SCORES, SCORES, st.integers(0, 99), st.integers(0, 999)), st.booleans()),
    min_size=1,
    max_size=30,
)


@settings(max_examples=30, deadline=None)
@given(OUTCOMES, st.randoms(use_true_random=False))
def test_properties(routed, shuffler):
    sample, to_weak = map(list, zip(*routed, strict=True))
    found = baselines(sample, to_weak)
    # nothing beats the oracle, and no way to its quality is cheaper
    for other in found:
        assert other.quality <= found.oracle.quality
        assert other.quality < found.oracle.quality or other.cost_pusd >= found.oracle.cost_pusd
    # a coin at the ends is a fixed model
    assert baselines(sample, [True] * len(sample)).random == found.always_weak
    assert baselines(sample, [False] * len(sample)).random == found.always_strong
    assert found.random.strong_share == found.routed.strong_share
    shuffler.shuffle(routed)
    assert baselines(*map(list, zip(*routed, strict=True))) == found


def test_best_static():
    models = [
        Point("a", Decimal("0.90"), ONE * 9),
        Point("b", Decimal("0.90"), ONE * 8),
        Point("c", Decimal("0.89"), ONE),
    ]
    assert best_single(models).name == "b"
    assert cheapest_within(models, Decimal("0.90")).name == "b"
    assert cheapest_within(models, Decimal("0.90") - Decimal("0.01")).name == "c"  # exactly at the tolerance
    assert cheapest_within(models, Decimal("0.91")) is None
    assert change_ratio(2, 8) == Decimal("-0.75")


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "to_match", "within_a_point"),
    [
        ("HEADLINES_e8", "-94.2", "-99.5"),
        ("OVERRULING_e5", "-57.3", "-95.9"),
        ("AGNEWS_e8", "-72.3", "-75.2"),
        ("SCIQ_e8", "-88.4", "-66.8"),
        ("COQA_e2", "0.6", "0.0"),
    ],
)
def test_frugalgpt(name, to_match, within_a_point):
    """levers.md 3: cost to match the best single model, and the cheapest single model within a point of it."""
    rows = rows_of("frugalgpt", f"summary_{name}_full_2024.csv")
    cascades = points(row for row in rows if row["Method"] == "FrugalGPT")
    singles = points(row for row in rows if row["Method"] != "FrugalGPT")
    assert (len(cascades), len(singles)) == (20, 10)
    best = best_single(singles)
    matching = cheapest_within(cascades, best.score)
    assert round(100 * change_ratio(matching.cost, best.cost), 1) == Decimal(to_match)
    static = cheapest_within(singles, best.score - Decimal("0.01"))
    assert round(100 * change_ratio(static.cost, best.cost), 1) == Decimal(within_a_point)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "clean", "n", "strong", "weak", "only_strong", "only_weak", "oracle"),
    few(
        1,
        [
            ("mmlu", False, 14_042, "80.580", "68.081", 2_497, 742, "85.864"),
            ("mmlu", True, 14_037, "80.587", "68.091", 2_496, 742, "85.873"),
            ("gsm8k", True, 1_307, "85.769", "63.734", 382, 94, "92.961"),
        ],
    ),
)
def test_routellm_outcomes(name, clean, n, strong, weak, only_strong, only_weak, oracle):
    """levers.md 3: RouteLLM's paired outcomes, GPT-4 against Mixtral."""
    rows = [row for row in rows_of("routellm", f"{name}_outcomes.csv") if not clean or row["contaminated"] == "0"]
    sample = [Outcome(Decimal(row["weak_correct"]), Decimal(row["strong_correct"]), 24, 2_470) for row in rows]
    found = baselines(sample, [True] * len(sample))

    def percent(one):
        return round(100 * one.quality, 3)

    assert len(sample) == n
    assert percent(found.always_strong) == Decimal(strong)
    assert percent(found.always_weak) == Decimal(weak)
    assert percent(found.oracle) == Decimal(oracle)
    pairs = Counter((one.weak, one.strong) for one in sample)
    assert (pairs[0, 1], pairs[1, 0]) == (only_strong, only_weak)
    # the oracle pays for the large model only where it alone is right
    assert found.oracle.strong_share == Decimal(only_strong) / n

    weak_scores, strong_scores = [float(one.weak) for one in sample], [float(one.strong) for one in sample]
    best = [max(pair) for pair in zip(weak_scores, strong_scores, strict=True)]
    assert gap_recovered(strong_scores, weak_scores, strong_scores)[:3] == (1, 1, 1)
    recovered = gap_recovered(best, weak_scores, strong_scores)
    assert recovered.value == pytest.approx(only_strong / (only_strong - only_weak))
    assert 1 < recovered.low < recovered.value < recovered.high
    # McNemar's standard error of the drop from strong to weak, from the discordant pairs alone
    drop = quality_drop(weak_scores, strong_scores)
    half = 1.96 * ((only_strong + only_weak - (only_strong - only_weak) ** 2 / n) ** 0.5) / n
    assert (drop.low, drop.high) == pytest.approx((drop.value - half, drop.value + half), abs=0.15 * half)


@pytest.mark.real_data
def test_routellm_mt_bench():
    """levers.md 3: the weak model alone has 90.4 % of the strong one's score, so "95 % of GPT-4" is half a gap."""
    rows = rows_of("routellm", "mt_bench_scores.csv")
    scores = {}
    for row in rows:
        scores.setdefault(row["model"], {})[row["question_id"], row["turn"]] = float(row["score"])
    strong, weak = scores["gpt-4-1106-preview"], scores["mistralai/Mixtral-8x7B-Instruct-v0.1"]
    assert strong.keys() == weak.keys()
    assert len(strong) == 160
    mean_strong, mean_weak = sum(strong.values()) / 160, sum(weak.values()) / 160
    assert (round(mean_strong, 3), round(mean_weak, 3)) == (9.228, 8.341)
    assert round(100 * mean_weak / mean_strong, 1) == 90.4
    # the two turns of a question go together
    asked = sorted(strong)
    drop = quality_drop([weak[one] for one in asked], [strong[one] for one in asked], [one[0] for one in asked])
    assert drop.value == pytest.approx(0.8875)
    assert drop.clusters == 80
    assert drop.low > 0


def test_gptcache_table():
    """levers.md 2: 1,000 pairs at three thresholds: hits, wrong hits, and Wilson's interval of their share."""
    # Threshold: right, wrong, missed; percent of hits, of wrong hits, and its bounds. levers.md prints 7.1 for the
    # lower bound of 77 in 881, which is 7.0497.
    table = {
        0.95: (425, 25, 549, "45.0", "5.6", "3.8", "8.1"),
        0.9: (804, 77, 118, "88.2", "8.7", "7.0", "10.8"),
        0.8: (904, 92, 3, "99.7", "9.2", "7.6", "11.2"),
    }
    for right, wrong, missed, hit, share, low, high in table.values():
        hits = right + wrong
        bound = wilson(wrong, hits)
        assert hits + missed == 999  # pairs in the benchmark's file
        assert f"{100 * hits / (hits + missed):.1f}" == hit
        assert [f"{100 * one:.1f}" for one in (wrong / hits, *bound)] == [share, low, high]


def test_semantic_net_by_hand():
    # 450 hits save $9.00, 1,000 lookups at $0.001; 25 of 450 wrong at $0.10 each: 9 - 1 - 2.50 = 5.50
    usd = 10**12
    found = semantic_net(saving_pusd=9 * usd, hits=450, labelled=450, wrong=25, wrong_pusd=usd // 10, lookups_pusd=usd)
    assert found.net_mid_pusd == 5 * usd + usd // 2
    assert found.bound == wilson(25, 450)
    assert found.net_pusd == pytest.approx((8 - found.bound.high * 45) * usd)
    assert found.net_pusd < found.net_mid_pusd
    # no wrong one among 20 is not none: the bound is 16 %
    few = semantic_net(saving_pusd=usd, hits=100, labelled=20, wrong=0, wrong_pusd=usd // 10, lookups_pusd=0)
    assert few.net_mid_pusd == usd
    assert few.net_pusd == pytest.approx((1 - 0.16113 * 10) * usd, rel=1e-3)
    none = semantic_net(saving_pusd=0, hits=0, labelled=1, wrong=0, wrong_pusd=1, lookups_pusd=5)
    assert (none.net_pusd, none.net_mid_pusd, none.break_even_wrong_pusd) == (-5, -5, None)
    with pytest.raises(ValueError, match="without labelled hits"):
        semantic_net(saving_pusd=1, hits=1, labelled=0, wrong=0, wrong_pusd=1, lookups_pusd=0)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**15), st.integers(1, 5_000), st.integers(0, 300), st.integers(0, 10**13), st.integers(0, 10**13)
)
def test_semantic_net_falls_with_the_harm_and_crosses_zero(saving, hits, wrong, harm, lookups):
    def net(wrong_pusd):
        return semantic_net(
            saving_pusd=saving, hits=hits, labelled=300, wrong=wrong, wrong_pusd=wrong_pusd, lookups_pusd=lookups
        )

    found = net(harm)
    assert found.net_pusd <= found.net_mid_pusd <= saving - lookups
    assert net(harm + 1).net_pusd <= found.net_pusd
    edge = found.break_even_wrong_pusd
    if edge >= 0:
        assert net(edge).net_pusd >= 0
        assert net(edge + 1).net_pusd <= 0
    else:
        assert net(0).net_pusd < 0
