from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold import money


@pytest.mark.parametrize(
    ("usd", "per", "right"),
    [
        ("1", 1_000_000, 1_000_000),  # $1 per million = 1e-6 USD = 1e6 pUSD a token
        ("0.000001", 1_000_000, 1),  # the finest rate that fits
        ("10", 1_000, 10_000_000_000),  # $10 per 1,000 searches = 1 cent each
        ("0", 1_000_000, 0),
    ],
)
def test_rate(usd, per, right):
    assert money.rate_pusd(Decimal(usd), per) == right


@pytest.mark.parametrize("usd", ["0.0000001", "-1", "NaN", "Infinity"])
def test_rate_refuses_what_is_not_exact_or_no_price(usd):
    with pytest.raises(ValueError, match="price must be|finer than"):
        money.rate_pusd(Decimal(usd), 1_000_000)


@pytest.mark.parametrize(
    ("pusd", "text"),
    [
        (77_433_060_000_000, "77.43306"),
        (0, "0.00"),
        (-12_300_000_000, "-0.0123"),
        (1, "0.000000000001"),
        (10**13, "10.00"),
    ],
)
def test_text_is_plain_and_exact(pusd, text):
    assert money.usd_text(pusd) == text
    assert Decimal(text) == money.to_usd(pusd)


def test_text_of_unknown_is_unknown():
    assert money.usd_text(None) is None


@given(st.integers(-(10**30), 10**30))
def test_text_round_trips(pusd):
    assert Fraction(money.usd_text(pusd)) * 10**12 == pusd


@pytest.mark.parametrize(("pusd", "shown"), [(5 * 10**9, "$0.00"), (15 * 10**9, "$0.02"), (-(10**15), "-$1,000.00")])
def test_shown_rounds_half_even(pusd, shown):
    assert money.shown(pusd) == shown


@given(st.integers(-(10**20), 10**20), st.lists(st.integers(0, 10**9), min_size=1, max_size=8).filter(any))
def test_shares_sum_exactly(total, weights):
    parts = money.share_out(total, weights)
    assert sum(parts) == total
    assert all(
        abs(part * sum(weights) - total * weight) < sum(weights) for part, weight in zip(parts, weights, strict=True)
    )


def test_shares_by_largest_remainder():
    # 100 over 1:1:1 is 33.3 each; one unit is left and the first of the equal remainders takes it
    assert money.share_out(100, [1, 1, 1]) == [34, 33, 33]
    # 10 over 5:3:1 is 5.56, 3.33, 1.11; the unit left goes to the largest remainder, the first
    assert money.share_out(10, [5, 3, 1]) == [6, 3, 1]


def test_shares_need_a_weight():
    with pytest.raises(ValueError, match="above zero"):
        money.share_out(1, [0, 0])


@given(
    st.lists(st.fractions(min_value=-50, max_value=50, max_denominator=1000), min_size=1, max_size=12),
)
def test_parts_foot_and_none_is_a_whole_unit_off(parts):
    whole = money.footed(parts, round(sum(parts)))
    assert sum(whole) == round(sum(parts))
    assert all(abs(one - part) < 1 for one, part in zip(whole, parts, strict=True))
    assert money.footed([Fraction(n) for n in whole], sum(whole)) == whole
    alone = [round(part) for part in parts]
    if sum(alone) == round(sum(parts)) and all(part % 1 != Fraction(1, 2) for part in parts):
        assert whole == alone  # nothing moves where nothing has to


def test_parts_of_an_amount_sum_to_it_as_shown():
    cent = 10**10
    assert money.shown_parts([61_644 * cent // 10, 4 * cent // 10, 7_214 * cent // 10]) == ["$61.65", "$0.00", "$7.21"]
    assert money.shown_parts([-3 * cent // 2, 3 * cent // 2, 0]) == ["-$0.01", "$0.01", "$0.00"]
    assert money.shown_parts([]) == []
