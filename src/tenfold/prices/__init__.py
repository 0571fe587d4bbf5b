"""The price book: dated entries, matching, the compiled card and the price of a single call."""

from tenfold.prices.book import Entry, Match, PriceBook, PriceList
from tenfold.prices.opening import price_book

__all__ = ["Entry", "Match", "PriceBook", "PriceList", "price_book"]
