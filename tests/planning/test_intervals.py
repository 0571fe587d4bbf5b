"""Intervals by drawing whole blocks: fixed draws, whole money, and what cannot vary does not."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.planning.intervals import DRAWS, SEED, Draws

DAYS = [str(n) for n in range(20)]


def by_day(amounts):
    return dict(zip(DAYS, amounts, strict=False))


def test_equal_days_have_no_width():
    assert Draws(DAYS).interval(by_day([7] * 20), rest_pusd=3) == (143, 143)


def test_the_same_seed_gives_the_same_interval():
    amounts = by_day([n * n for n in range(20)])
    assert Draws(DAYS).interval(amounts) == Draws(DAYS).interval(amounts)


def test_known_interval_of_a_two_point_log():
    # half of 20 days save 100, the others nothing: Binomial(20, 1/2) x 100, whose 2.5 % and 97.5 % points are 6 and 14
    assert Draws(DAYS).interval(by_day([0, 100] * 10)) == (600, 1400)


def test_a_block_without_an_amount_is_drawn_all_the_same():
    assert Draws(DAYS).interval(dict.fromkeys(DAYS[1::2], 100)) == Draws(DAYS).interval(by_day([0, 100] * 10))


def test_more_blocks_narrow_the_interval_by_the_root():
    def width(times):
        days = [str(n) for n in range(20 * times)]
        low, high = Draws(days).interval({day: 1000 * (n % 5) // times for n, day in enumerate(days)})
        return high - low

    assert 1.6 < width(1) / width(4) < 2.4


def test_whole_money_of_any_size():
    big = 10**30
    assert Draws(DAYS).interval(by_day([big] * 20)) == (20 * big, 20 * big)
    assert DRAWS == 1_000


def test_one_block_of_ten_carries_all():
    # The number of times that block is drawn is binomial(10, 1/10): P(0) = 0.35, P(<= 3) = 0.987, P(<= 2) = 0.930.
    ten = Draws(DAYS[:10])
    assert ten.interval({"0": 100}) == (0, 300)
    assert ten.interval(by_day([0] + [100] * 9)) == (700, 1_000)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-(10**18), 10**18), min_size=10, max_size=15))
def test_bounds_hold_the_sum_exactly(daily):
    low, high = Draws(DAYS[: len(daily)]).interval(by_day(daily))
    assert low <= sum(daily) <= high
    assert min(daily) * len(daily) <= low
    assert high <= max(daily) * len(daily)


@pytest.mark.parametrize(("blocks", "draws"), [(1, 40), (2, 40), (3, 1000), (64, 400), (92, 1000), (256, 200)])
def test_as_drawn_and_summed_one_by_one(blocks, draws):
    rng, names = random.Random(SEED), [str(n) for n in range(blocks)]
    amounts = [(n * 7919 % 1000 - 400) * 10**15 for n in range(blocks)]
    sums = sorted(sum(amounts[rng.randrange(blocks)] for _ in range(blocks)) for _ in range(draws))
    wanted = (sums[draws * 25 // 1000 - 1] + 5, sums[draws * 975 // 1000 - 1] + 5)
    assert Draws(names, draws).interval(dict(zip(names, amounts, strict=True)), 5) == wanted


def test_no_blocks_leave_the_rest():
    assert Draws([]).interval({}, 9) == (9, 9)
