"""A price on other terms follows from today's by lists that have both."""

from decimal import Decimal

import pytest

from tenfold.errors import NotEvaluable
from tenfold.serving import gpu_terms
from tenfold.serving.gpu_prices import GpuPrice, PriceRange
from tenfold.serving.gpu_terms import Terms, offer

LISTS = {
    ("a", "on_demand"): {"x": ["2"], "y": ["4", "6"], "z": ["1"]},
    ("b", "on_demand"): {"x": ["3"], "y": ["5"], "w": ["90"]},
    ("b", "spot"): {"w": ["1", "2"], "v": ["4"]},
}


@pytest.fixture(autouse=True)
def lists(monkeypatch):
    def price(gpu, commitment):
        there = LISTS.get((gpu, commitment))
        if there is None:
            raise NotEvaluable("none")
        entries = tuple(
            GpuPrice.model_construct(gpu=gpu, provider=name, commitment=commitment, usd_per_gpu_hour=Decimal(usd))
            for name, prices in there.items()
            for usd in prices
        )
        return PriceRange(gpu, commitment, entries, Decimal(0), Decimal(0), Decimal(0))

    monkeypatch.setattr(gpu_terms, "gpu_price", price)


def test_todays_price_times_the_ratio_of_lists_that_have_both():
    # x: 3 / 2, y: 5 / 5 (the median of its two); what w asks is no matter
    low, mid, high, basis = offer(Decimal(10), Terms("a", "on_demand"), Terms("b", "on_demand"))
    assert (low, mid, high) == (10, Decimal("12.5"), 15)
    assert "ratio of both in the lists of x, y" in basis


def test_lists_themselves_where_none_has_both():
    low, mid, high, basis = offer(Decimal(10), Terms("a", "on_demand"), Terms("b", "spot"))
    assert (low, mid, high) == (Decimal("1.5"), Decimal("2.75"), 4)
    assert "none has today's terms too" in basis
    assert offer(Decimal(10), Terms("a", "reserved_1y"), Terms("b", "spot")).mid == Decimal("2.75")
    with pytest.raises(NotEvaluable):
        offer(Decimal(10), Terms("a", "on_demand"), Terms("c", "spot"))
