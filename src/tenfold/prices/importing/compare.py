"""Hold a package's quotes against a price book, one value at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from tenfold.prices.book import Entry, Match, PriceBook, PriceList
from tenfold.prices.importing.quotes import Quote
from tenfold.prices.meters import METER_NAMES, meters

Outcome: TypeAlias = Literal["equal", "differs", "ambiguous", "no_model", "no_list", "no_rate"]


class Compared(NamedTuple):
    """A quote and what the book says to it.

    Args:
        quote: The quote.
        outcome: equal, differs (both have a figure), ambiguous (the book says why it has none), or what the book lacks:
            the model, a price list for tier, region and date, or a rate for the meter.
        match: How the book found the model.
        price_list: Its price list at the quote's instant, or None.
        entry: The entry of the quote's context band, or None.
        rate: The book's rate in pUSD per unit, or None.
    """

    quote: Quote
    outcome: Outcome
    match: Match
    price_list: PriceList | None
    entry: Entry | None
    rate: int | None


def compare(quotes: Iterable[Quote], book: PriceBook, today: datetime) -> Iterator[Compared]:
    """Look every quote up in a book, at an instant at which the quote holds.

    Args:
        quotes: The quotes.
        book: The book.
        today: Aware instant for quotes that are in force then.

    Yields:
        One result a quote. A rate is equal where it differs by less than 1 pUSD a unit, the grain of the card.
    """
    for quote in quotes:
        match = book.match(quote.provider, quote.model, quote.tier, quote.region)
        price_list = match.at(quote.instant(today))
        if price_list is None:
            yield Compared(quote, "no_list" if match.model else "no_model", match, None, None, None)
            continue
        entry = price_list.band(quote.above_input_tokens + 1)
        if entry.ambiguous:
            yield Compared(quote, "ambiguous", match, price_list, entry, None)
            continue
        rate = rate_for(entry, quote.meter)
        outcome: Outcome = "no_rate" if rate is None else "equal" if abs(rate - quote.pusd) < 1 else "differs"
        yield Compared(quote, outcome, match, price_list, entry, rate)


def rate_for(entry: Entry, meter: str) -> int | None:
    """Find the rate that a meter's units are billed at.

    Args:
        entry: The entry.
        meter: Name of the meter.

    Returns:
        pUSD per unit: the meter's own rate, else that of the meter it falls under; None where it has no price.
    """
    index = METER_NAMES.index(meter)
    rate, under = entry.rates[index], meters()[index].falls_under
    return rate_for(entry, under) if rate is None and under and under != meter else rate
