"""How the middle of a period comes about, in factors whose product a reader can check."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, floor, log10
from typing import Any, NamedTuple

from tenfold.analysis.forecast.learning import Learned
from tenfold.analysis.forecast.smoothing import NOTHING
from tenfold.money import PUSD_PER_USD, shown, usd_text

# Digits of a factor: enough that the product is right to a few hundredths of a percent.
_DIGITS = 5


class Arithmetic(NamedTuple):
    """Factors of the days ahead of one period, if growth stopped; and what growth does to them.

    Args:
        label: The period.
        days: Days ahead in it.
        requests: Requests a day at the end of the past, weekdays left out.
        pusd_each: What one then costs, in pUSD, at the prices of the first day ahead.
        weekday: Mean effect of the weekdays among the days ahead.
        skew: What a day costs on average over a usual one: scatter, and rare dear days.
        prices: Mean effect of price changes ahead.
        stopped: Product of these and the days: the middle if growth stopped, in pUSD.
        growth: The middle as it is over that.
        mid: The middle as it is, in pUSD.
    """

    label: str
    days: int
    requests: float
    pusd_each: float
    weekday: float
    skew: float
    prices: float
    stopped: int
    growth: float
    mid: int

    def text(self) -> str:
        """Say the product in one line.

        Returns:
            Text such as ``the days ahead of 2026Q4 if growth stopped: 100.00 requests a day x ... = $460; ...``.
        """
        decimals = 0 if self.stopped >= 100 * PUSD_PER_USD else 2
        each = _digits(self.pusd_each / PUSD_PER_USD)
        return (
            f"the days ahead of {self.label} if growth stopped: {_digits(self.requests)} requests a day x ${each} each "
            f"(a middling day at the end of the log) x {_digits(self.weekday)} for weekdays x {_digits(self.skew)} for "
            f"scatter and rare dear days x {_digits(self.prices)} for prices ahead x {self.days} days = "
            f"{shown(self.stopped, decimals)}; x {_digits(self.growth)} for growth = {shown(self.mid, decimals)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Give the factors as a document."""
        return {
            "period": self.label,
            "days": self.days,
            "requests_per_day": self.requests,
            "usd_per_request": self.pusd_each / PUSD_PER_USD,
            "weekday_factor": self.weekday,
            "skew_factor": self.skew,
            "price_factor": self.prices,
            "growth_stopped_usd": usd_text(self.stopped),
            "growth_factor": self.growth,
            "middle_usd": usd_text(self.mid),
        }


def arithmetic(
    label: str, learned: Learned, factors: Sequence[float], days: tuple[int, int], mids: Sequence[int]
) -> Arithmetic | None:
    """Take the middle of a period apart.

    Args:
        label: The period.
        learned: What the past says of the whole.
        factors: What each day ahead costs over the first, by price changes.
        days: First and last day ahead in the period, from 0.
        mids: Middle of each day ahead, in pUSD.

    Returns:
        The factors; None where nothing is expected.
    """
    first, last = days
    ahead = slice(first, last + 1)
    daily = learned.ahead(last + 1, 0.0)[ahead]
    usual, count = sum(daily) / learned.lift, last - first + 1
    requests, each = exp(learned.requests.level) - NOTHING, exp(learned.costs.level)
    priced = [one * factor for one, factor in zip(daily, factors[ahead], strict=True)]
    stopped, mid = sum(map(round, priced)), sum(mids[ahead])
    if not (requests > 0 and usual and stopped):
        return None
    return Arithmetic(
        label,
        count,
        requests,
        each,
        usual / (count * requests * each),
        learned.lift,
        sum(priced) / sum(daily),
        stopped,
        mid / stopped,
        mid,
    )


def _digits(value: float) -> str:
    return f"{value:,.{max(_DIGITS - 1 - floor(log10(value)), 0)}f}"
