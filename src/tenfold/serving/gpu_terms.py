"""What a GPU on other terms would cost one who pays a known price today: by the ratio of lists that have both."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from tenfold.errors import NotEvaluable
from tenfold.serving.gpu_prices import GpuPrice, gpu_price

_CENTS = Decimal("0.0001")


class Terms(NamedTuple):
    """A GPU and how it is paid for."""

    gpu: str
    commitment: str


class Offer(NamedTuple):
    """What one GPU would cost an hour, in USD.

    Args:
        low: Cheapest.
        mid: Median.
        high: Dearest.
        basis: Where that comes from.
    """

    low: Decimal
    mid: Decimal
    high: Decimal
    basis: str


def offer(usd_today: Decimal, today: Terms, wanted: Terms) -> Offer:
    """Estimate a price from one that is paid and from the lists.

    Args:
        usd_today: What a GPU costs an hour today.
        today: On which terms.
        wanted: Other terms.

    Returns:
        Today's price times the ratio of both in each list that has both, as unlike lists differ more among themselves
        than GPUs do; the lists' own prices where none has both.

    Raises:
        NotEvaluable: No list has the wanted terms.
    """
    there = _by_provider(gpu_price(wanted.gpu, wanted.commitment).entries)
    try:
        paid = _by_provider(gpu_price(today.gpu, today.commitment).entries)
    except NotEvaluable:
        paid = {}
    both = sorted(paid.keys() & there.keys())
    if both and usd_today:
        prices = [(usd_today * there[one] / paid[one]).quantize(_CENTS) for one in both]
        return _offer(prices, f"today's price times the ratio of both in the lists of {', '.join(both)}")
    return _offer(list(there.values()), f"the lists of {', '.join(sorted(there))}, of which none has today's terms too")


def _offer(prices: Sequence[Decimal], basis: str) -> Offer:
    return Offer(min(prices), statistics.median(prices), max(prices), basis)


def _by_provider(entries: Sequence[GpuPrice]) -> dict[str, Decimal]:
    names = dict.fromkeys(one.provider for one in entries)
    return {name: statistics.median(one.usd_per_gpu_hour for one in entries if one.provider == name) for name in names}
