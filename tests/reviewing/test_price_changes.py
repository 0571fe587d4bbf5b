"""Price changes in a review."""

from types import SimpleNamespace

import pytest

from tenfold.prices.meters import meters
from tenfold.reviewing.price_changes import _changed


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (1_000_000, 200_000, ("$1.00", "$0.20")),
        (75_000, None, ("$0.075", "no price")),
        (4_000_000, 4_500, ("$4.0000", "$0.0045")),
    ],
)
def test_prices_of_one_change_have_the_same_decimals(old, new, shown):
    found = _changed(*(_list(rate) for rate in (old, new)))
    assert [rates[1:] for rates in found] == [shown]


def _list(rate):
    rates = (rate, *[None] * (len(meters()) - 1))
    return SimpleNamespace(bands=(SimpleNamespace(rates=rates),))
