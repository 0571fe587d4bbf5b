"""Intervals from whole days."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.planning.intervals import DayDraws


def test_days_that_are_alike_have_no_spread():
    assert DayDraws(12).interval([7] * 12) == (84, 84)


def test_what_belongs_to_no_day_is_added_once():
    assert DayDraws(12).interval([7] * 12, 5) == (89, 89)


def test_one_day_of_ten_carries_all():
    # The number of times that day is drawn is binomial(10, 1/10): P(0) = 0.35, P(<= 3) = 0.987, P(<= 2) = 0.930.
    assert DayDraws(10).interval([100] + [0] * 9) == (0, 300)
    assert DayDraws(10).interval([0] + [100] * 9) == (700, 1_000)


def test_the_same_days_give_the_same_bounds():
    daily = [3**n for n in range(20)]
    assert DayDraws(20).interval(daily) == DayDraws(20).interval(daily)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-(10**18), 10**18), min_size=10, max_size=15))
def test_bounds_hold_the_sum_exactly(daily):
    low, high = DayDraws(len(daily)).interval(daily)
    assert low <= sum(daily) <= high
    assert min(daily) * len(daily) <= low
    assert high <= max(daily) * len(daily)
