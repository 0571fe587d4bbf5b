"""Shares and paired ratios: closed forms, a slow second bootstrap, coverage of planted truth, properties."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenfold.levers.quality import (
    DRAWS,
    SEED,
    Estimated,
    Z,
    gap_recovered,
    quality_drop,
    sample_size,
    total_ratio,
    wilson,
)
from tenfold.levers.values import Range


@st.composite
def shares(draw):
    n = draw(st.integers(1, 5_000))
    return draw(st.integers(0, n)), n


@settings(max_examples=60, deadline=None)
@given(shares())
def test_wilson_solves_its_own_equation(share):
    k, n = share
    low, high = wilson(k, n)
    assert 0 <= low <= k / n <= high <= 1
    # the ends are the shares p at which the sample is z standard errors away: (k/n - p)^2 = z^2 p (1 - p) / n
    for p in (low, high):
        if 0 < p < 1:
            assert (k / n - p) ** 2 == pytest.approx(Z * Z * p * (1 - p) / n, abs=1e-12)
    assert wilson(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_wilson_by_hand():
    # 0 of n: z^2 / (n + z^2) above; textbook: 10 of 20 is 0.299 to 0.701
    assert wilson(0, 10) == (0.0, pytest.approx(Z * Z / (10 + Z * Z)))
    assert wilson(10, 10) == (pytest.approx(10 / (10 + Z * Z)), 1.0)
    assert wilson(10, 20) == (pytest.approx(0.2993, abs=1e-4), pytest.approx(0.7007, abs=1e-4))
    assert wilson(0, 0) == (0.0, 1.0)
    for k, n in ((-1, 5), (6, 5)):
        with pytest.raises(ValueError, match="0 <= successes <= n"):
            wilson(k, n)


@pytest.mark.parametrize("half", [0.3, 0.1, 0.05, 0.031])
def test_sample_size_is_the_least_that_always_bounds(half):
    def widest(n):
        return max((high - low) / 2 for low, high in (wilson(k, n) for k in range(n + 1)))

    n = sample_size(half)
    assert widest(n) <= half + 1e-12
    even = n - 2 + n % 2  # a share of exactly 1/2 needs an even sample
    assert widest(even) > half


def test_sample_size_by_hand():
    assert sample_size(0.05) == 381  # 384.15 of the normal approximation, less z^2
    assert sample_size(0.01) == 9_600
    for bad in (0, 0.5, -1, math.nan):
        with pytest.raises(ValueError, match="half width"):
            sample_size(bad)


WEAK = [0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1]
STRONG = [1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1]


def test_gap_recovered_by_hand():
    # weak 5 right, strong 9; the router keeps the strong answers of the first two: 7 right, half of the gap
    routed = STRONG[:2] + WEAK[2:]
    found = gap_recovered(routed, WEAK, STRONG)
    assert found.value == 0.5
    assert (found.pairs, found.clusters, found.left_out) == (12, 12, 0)
    assert quality_drop(routed, STRONG).value == pytest.approx(2 / 12)
    # every request three times: an interval, around the same figure; with 12 the gap itself is not sure
    assert found.low is found.high is None
    more = gap_recovered(routed * 3, WEAK * 3, STRONG * 3)
    assert more.low < more.value == 0.5 < more.high


def test_no_gap_no_figure():
    assert gap_recovered(WEAK, STRONG, WEAK) == (None, None, None, 12, 12, 0)  # the weak one is better
    assert gap_recovered(WEAK, WEAK, WEAK).value is None
    assert gap_recovered([], [], []).value is None
    assert quality_drop([], []).value is None
    # a gap that the sample does not bear out: there is a figure and no interval
    weak, strong = [0, 1] * 10 + [0], [1, 0] * 10 + [1]
    assert gap_recovered(strong, weak, strong)[:3] == (1.0, None, None)
    with pytest.raises(ValueError, match="zip"):
        quality_drop([1], [1, 1])


def test_fewer_than_ten_clusters_bound_nothing():
    before = list(range(10, 130, 10))
    assert total_ratio(before, before, clusters=[*"abcdefghaaa", None]) == (1.0, None, None, 12, 9, 0)
    assert total_ratio(before, before, clusters=[*"abcdefghaa", None, None]) == (1.0, 1.0, 1.0, 12, 10, 0)


def slow(tops, bottoms, groups):
    """The same bootstrap the long way: clusters drawn one by one from a list, sums of members."""
    by_group = {}
    for i, group in enumerate(groups):
        by_group.setdefault(i if group is None else group, []).append(i)
    blocks = sorted(
        (math.fsum(tops[i] for i in members), math.fsum(bottoms[i] for i in members)) for members in by_group.values()
    )
    rng = random.Random(SEED)
    ratios = []
    for _ in range(DRAWS):
        drawn = rng.choices(blocks, k=len(blocks))
        ratios.append(sum(top for top, _ in drawn) / sum(bottom for _, bottom in drawn))
    ratios.sort()
    return ratios[24], ratios[974]


@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_are_those_of_a_slow_bootstrap(clustered):
    rng = random.Random(5)
    before = [rng.randrange(50, 900) for _ in range(60)]
    after = [round(b * rng.uniform(0.4, 0.9)) for b in before]
    groups = [rng.choice("abcdefghijklmn") if clustered else None for _ in before]
    found = total_ratio(before, after, clusters=groups)
    assert found.value == pytest.approx(sum(after) / sum(before))
    assert (found.low, found.high) == pytest.approx(slow(after, before, groups))
    assert found.clusters == (len(set(groups)) if clustered else 60)
    # users who behave alike tell less than as many strangers
    alike = total_ratio([b for b in before for _ in range(4)], [a for a in after for _ in range(4)])
    by_user = total_ratio(
        [b for b in before for _ in range(4)],
        [a for a in after for _ in range(4)],
        clusters=[i for i in range(60) for _ in range(4)],
    )
    assert by_user.high - by_user.low > 1.5 * (alike.high - alike.low)


def test_truncated_pairs_are_left_out_and_counted():
    found = total_ratio([100, 200, 1_000], [50, 100, 1_000], [False, False, True])
    assert found == (0.5, None, None, 2, 2, 1)
    assert total_ratio([5], [5], [True]) == (None, None, None, 0, 0, 1)
    assert total_ratio([0], [5]).value is None
    # totals, not the mean of ratios: 1.0 and 0.1 with weights 10 and 1,000
    assert total_ratio([10, 1_000], [10, 100]).value == pytest.approx(110 / 1_010)


def test_as_range():
    assert Estimated(2 / 3, 0.5, 0.75, 9, 9).as_range() == Range(Decimal("0.5"), Decimal("0.666667"), Decimal("0.75"))
    assert Estimated(0.25, None, None, 9, 9).as_range() == Range(*[Decimal("0.25")] * 3)
    assert Estimated(None, None, None, 9, 9).as_range() is None


OUTCOMES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans(), st.integers(0, 14)), min_size=10, max_size=40
)


@settings(max_examples=25, deadline=None)
@given(OUTCOMES, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_ends_are_zero_and_one(sample, shuffler):
    def figures(rows):
        weak, strong = [w / 4 for w, *_ in rows], [s / 4 for _, s, *_ in rows]
        routed = [w / 4 if z else s / 4 for w, s, z, _ in rows]
        groups = [group or None for *_, group in rows]
        return (
            gap_recovered(routed, weak, strong, groups),
            gap_recovered(strong, weak, strong, groups),
            gap_recovered(weak, weak, strong, groups),
            quality_drop(routed, strong, groups),
        )

    found = figures(sample)
    gap = sum(s - w for w, s, *_ in sample)
    if gap > 0:
        assert found[1].value == 1
        assert found[2].value == 0
        exact = Fraction(sum(s - w for w, s, z, _ in sample if not z), gap)
        assert found[0].value == pytest.approx(float(exact))
    else:
        assert found[0].value is None
    for one in found:
        assert (one.low is None) == (one.high is None)
        if one.low is not None:
            assert one.low <= one.value <= one.high
    shuffled = list(sample)
    shuffler.shuffle(shuffled)
    assert figures(shuffled) == found


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**32))
def test_width_shrinks_with_the_root_of_the_sample(seed):
    rng = random.Random(seed)

    def width(n):
        before = [rng.lognormvariate(5, 0.6) for _ in range(n)]
        found = total_ratio(before, [b * rng.uniform(0.3, 1) for b in before])
        assume(found.low < found.value < found.high)
        return found.high - found.low

    assert width(100) / width(900) == pytest.approx(3, rel=0.4)


def test_grouping_many_clusters_keeps_the_width():
    # 3,000 requests go into 1,000 random groups: the width is that of the closed form, 2 z s / sqrt(n)
    rng = random.Random(3)
    drops = [rng.choice([0, 0, 0, 1, -1]) for _ in range(3_000)]
    found = quality_drop([0] * 3_000, drops)
    mean = sum(drops) / 3_000
    sd = math.sqrt(sum((d - mean) ** 2 for d in drops) / 3_000)
    assert found.clusters == 3_000
    assert found.high - found.low == pytest.approx(2 * Z * sd / math.sqrt(3_000), rel=0.12)


@pytest.mark.parametrize("seeds", [60, pytest.param(500, marks=pytest.mark.full)])
def test_intervals_cover_the_truth(seeds):
    """Planted: 40 sessions of three requests share their luck; the true PGR of a 60 % router is 0.6."""
    hits = 0
    for seed in range(seeds):
        rng = random.Random(seed)
        weak, strong, routed, sessions = [], [], [], []
        for session in range(40):
            luck = rng.uniform(-0.2, 0.2)
            for _ in range(3):
                weak.append(float(rng.random() < 0.4 + luck))
                strong.append(float(rng.random() < 0.9 + luck / 2))
                routed.append(strong[-1] if rng.random() < 0.6 else weak[-1])
                sessions.append(session)
        found = gap_recovered(routed, weak, strong, sessions)
        hits += found.low <= 0.6 <= found.high
    assert hits / seeds >= (0.92 if seeds >= 500 else 0.85)
