"""The bridge's arithmetic: the worked example, identities of every method, zeros, rounding."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.analysis.bridge import METHODS, Effects, Segment, decompose
from tenfold.analysis.bridge.factors import effects, last_weight
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.money import footed

F = Fraction
# A 80 M tokens at $5, B 20 M at $0.5; then A 90 M at $4, B 110 M at $0.5
EXAMPLE = [Segment(("A",), 80, 5, 90, 4), Segment(("B",), 20, F(1, 2), 110, F(1, 2))]
ORDER_FREE = [name for name in METHODS if name != "pvm"]
some = settings(max_examples=8, deadline=None)
values = st.fractions(min_value=F(1, 10), max_value=50, max_denominator=40)
pairs = st.lists(st.tuples(values, values), min_size=1, max_size=6)
segment_lists = st.lists(
    st.tuples(st.integers(1, 900), values, st.integers(1, 900), values), min_size=1, max_size=5
).map(lambda rows: [Segment((n % 2, n), *row) for n, row in enumerate(rows)])


def sums(found):
    """Volume, intensity, mix, price, new, discontinued over all segments."""
    return (
        sum(one.volume for one in found), sum(one.intensity for one in found), sum(sum(one.mix) for one in found),
        sum(one.price for one in found), sum(one.new for one in found), sum(one.discontinued for one in found),
    )  # fmt: skip


def swapped(segments):
    return [Segment(one.path, one.q1, one.p1, one.q0, one.p0) for one in segments]


def test_the_worked_example():
    assert sums(decompose(EXAMPLE)) == (410, 0, -315, -90, 0, 0)
    # per segment: volume (200 - 100) * share * price; mix 200 * (share after - before) * price; price
    a, b = decompose(EXAMPLE)
    assert (a.volume, a.mix, a.price, a.weight) == (400, (200 * (F(45, 100) - F(80, 100)) * 5,), -90, 90)
    assert (b.volume, b.mix, b.price) == (10, (200 * (F(55, 100) - F(20, 100)) * F(1, 2),), 0)
    assert a.total + b.total == 5


def test_intensity_takes_what_requests_do_not_explain():
    # 100 requests became 125, of 1 M tokens, then of 1.6 M: volume 25 % of 410, the rest of the 410 is intensity
    assert sums(decompose(EXAMPLE, base=(100, 125))) == (F(410, 4), 410 - F(410, 4), -315, -90, 0, 0)


def test_new_and_discontinued_stand_apart_and_are_never_price():
    more = [*EXAMPLE, Segment(("C",), 0, None, 10, 2), Segment(("D",), 7, 3, 0, None)]
    for method in METHODS:
        found = decompose(more, method=method)
        assert [one.total for one in found] == [-40, 45, 20, -21]
        assert found[2] == Effects(mix=(0,), new=F(20))
        assert found[3] == Effects(mix=(0,), discontinued=F(-21))
    # their units count: of 107 that became 210, A has 80 and 90
    a = decompose(more)[0]
    assert (a.volume, a.mix, a.price) == (F(103, 107) * 400, (210 * (F(90, 210) - F(80, 107)) * 5,), -90)


def test_what_stands_apart_is_what_it_would_add_at_any_price():
    for price in (1, 7):
        alone = decompose([*EXAMPLE, Segment(("C",), 0, price, 10, 2), Segment(("D",), 7, 3, 0, price)])
        assert [one.total for one in alone[2:]] == [20, -21]
        assert alone[:2] == decompose([*EXAMPLE, Segment(("C",), 0, None, 10, 2), Segment(("D",), 7, 3, 0, None)])[:2]


def test_a_new_segment_with_a_price_before_is_mix():
    # 10 M at a price of 2 that became 3: mix 100 * (0.1 - 0) * 2, price 10 * 1; A lost share: 100 * (0.9 - 1) * 5
    found = decompose([Segment(("A",), 100, 5, 90, 5), Segment(("C",), 0, 2, 10, 3)])
    assert sums(found) == (0, 0, 20 - 50, 10, 0, 0)


def test_mix_by_dimension_by_hand():
    # (model, kind): X in 60 at 1, X out 20 at 4, Y in 20 at 2; then X in 30, X out 30, Y in 40; Q stays 100
    segments = [
        Segment(("X", "in"), 60, 1, 30, 1), Segment(("X", "out"), 20, 4, 30, 4), Segment(("Y", "in"), 20, 2, 40, 2),
    ]  # fmt: skip
    found = decompose(segments)
    # models: X 0.8 -> 0.6 at mean price 140/80, Y 0.2 -> 0.4 at 2; kinds within X: in 3/4 -> 1/2, out 1/4 -> 1/2
    assert sum(one.mix[0] for one in found) == 100 * (F(-2, 10) * F(140, 80) + F(2, 10) * 2)
    assert sum(one.mix[1] for one in found) == 60 * (F(-1, 4) * 1 + F(1, 4) * 4)
    assert sums(found) == (0, 0, 50, 0, 0, 0)


def test_bennet_by_its_formulas():
    found = sums(decompose(EXAMPLE, method="bennet"))
    price = F(80 + 90, 2) * (4 - 5)
    quantity = F(5 + 4, 2) * (90 - 80) + F(1, 2) * (110 - 20)
    assert (found[3], found[0] + found[1] + found[2]) == (price, quantity)


@some
@given(segment_lists)
def test_bennet_identities(segments):
    found = sums(decompose(segments, base=(3, 4), method="bennet"))
    assert found[3] == sum(F(one.q0 + one.q1, 2) * (one.p1 - one.p0) for one in segments)
    assert sum(found[:3]) == sum((one.p0 + one.p1) / 2 * (one.q1 - one.q0) for one in segments)


@some
@given(pairs)
def test_lmdi_identities(factors):
    found = effects(factors, "lmdi")
    before, after = math.prod(float(a) for a, _ in factors), math.prod(float(b) for _, b in factors)
    assert sum(found) == math.prod(b for _, b in factors) - math.prod(a for a, _ in factors)
    mean = before if math.isclose(before, after) else (after - before) / math.log(after / before)
    for effect, (a, b) in zip(found, factors, strict=True):
        assert float(effect) == pytest.approx(mean * math.log(b / a), rel=1e-6, abs=1e-6 * max(before, after))


@some
@given(pairs.filter(lambda factors: len(factors) < 6))
def test_shapley_is_the_mean_over_all_orders(factors):
    orders = list(itertools.permutations(range(len(factors))))
    expected = [F(0)] * len(factors)
    for order in orders:
        now = [pair[0] for pair in factors]
        for place in order:
            was = math.prod(now)
            now[place] = factors[place][1]
            expected[place] += (math.prod(now) - was) / F(len(orders))
    assert list(effects(factors, "shapley")) == expected


@pytest.mark.parametrize("method", METHODS)
@some
@given(segments=segment_lists)
def test_effects_sum_to_the_change(method, segments):
    found = decompose(segments, base=(5, 7), method=method)
    for one, effect in zip(segments, found, strict=True):
        assert effect.total == one.q1 * one.p1 - one.q0 * one.p0
        assert effect.price == effect.weight * (one.p1 - one.p0)


@pytest.mark.parametrize("method", ORDER_FREE)
@some
@given(segments=segment_lists)
def test_order_free_methods_negate_when_periods_change_places(method, segments):
    segments = [*segments, Segment((2, "new"), 0, None, 5, 2), Segment((2, "gone"), 3, 7, 0, None)]
    forth = sums(decompose(segments, base=(5, 7), method=method))
    back = sums(decompose(swapped(segments), base=(7, 5), method=method))
    expected = (*(-one for one in forth[:4]), -forth[5], -forth[4])
    assert [float(one) for one in back] == pytest.approx([float(one) for one in expected], rel=1e-12)
    if method != "lmdi":  # whose logarithms are rounded at 50 digits
        assert back == expected


class TestZeros:
    @pytest.mark.parametrize(("before", "after"), [(0, 6), (6, 0)])
    def test_lmdi_gives_the_change_to_the_factor_that_is_zero(self, before, after):
        found = effects([(F(2), F(3)), (F(before), F(after)), (F(5), F(7))], "lmdi")
        change = 3 * after * 7 - 2 * before * 5
        assert found == (0, change, 0)
        # and that is the limit
        tiny = F(1, 10**40)
        near = effects([(F(2), F(3)), (before or tiny, after or tiny), (F(5), F(7))], "lmdi")
        assert float(near[1]) == pytest.approx(change, rel=0.05)

    def test_two_factors_that_come_from_zero_share_and_nothing_is_nothing(self):
        assert effects([(F(0), F(2)), (F(0), F(3))], "lmdi") == (3, 3)
        assert effects([(F(0), F(2)), (F(3), F(0))], "lmdi") == (0, 0)

    def test_weight_of_a_price_that_did_not_change(self):
        assert last_weight([(F(2), F(4)), (F(3), F(3))], F(0), "bennet") == 3
        assert float(last_weight([(F(2), F(4)), (F(3), F(3))], F(0), "lmdi")) == pytest.approx(2 / math.log(2))
        assert last_weight([(F(2), F(4)), (F(0), F(0))], F(0), "lmdi") == 3

    @pytest.mark.parametrize("method", METHODS)
    def test_a_period_without_anything(self, method):
        # all is volume at the price before, and then the price
        found = decompose([Segment(("A",), 0, 5, 90, 4)], base=(0, 9), method=method)
        assert found[0].total == 360
        assert (found[0].intensity, found[0].mix) == (0, (0,))
        assert decompose([], method=method) == ()
        nothing = decompose([Segment(("A",), 0, 5, 0, 4)], base=(0, 0), method=method)
        assert nothing[0].total == 0

    def test_units_that_nothing_counts(self):
        with pytest.raises(NotEvaluable, match="the period before has 100 units and nothing to count them by"):
            decompose(EXAMPLE, base=(0, 5))


@pytest.mark.parametrize(
    "segments",
    [
        [Segment(("A",), 1, None, 1, 1)],
        [Segment(("A",), 1, 1, 1, None)],
        [Segment(("A",), 0, None, 0, None)],
        [Segment(("A",), 1, 1, 1, 1), Segment(("A",), 1, 1, 1, 1)],
        [Segment(("A",), 1, 1, 1, 1), Segment(("A", "B"), 1, 1, 1, 1)],
    ],
)
def test_segments_that_say_nothing_are_refused(segments):
    with pytest.raises(ValueError, match="units without a price|must differ"):
        decompose(segments)


def test_unknown_method():
    with pytest.raises(AssumptionError, match='method "benet": one of pvm, .* Did you mean "bennet"?'):
        decompose(EXAMPLE, method="benet")


class TestRounding:
    def test_largest_remainder_of_either_sign(self):
        assert footed([F(1, 3), F(1, 3), F(1, 3)], 1) == [1, 0, 0]
        assert footed([F(5, 2), F(-5, 2)], 0) == [3, -3]
        assert footed([F(7, 10), F(-2, 10), F(0)], 1) == [1, 0, 0]  # the total was rounded
        assert footed([F(3, 10), F(0)], 0) == [0, 0]
        assert footed([], 0) == []

    @some
    @given(st.lists(st.fractions(min_value=-90, max_value=90, max_denominator=30), min_size=1, max_size=9))
    def test_parts_foot_and_stay_near(self, parts):
        total = round(sum(parts))
        found = footed(parts, total)
        assert sum(found) == total
        assert all(abs(one - part) < 2 for one, part in zip(found, parts, strict=True))

    def test_parts_of_another_total_are_refused(self):
        with pytest.raises(ValueError, match="cannot be rounded to 9"):
            footed([F(1), F(2)], 9)
