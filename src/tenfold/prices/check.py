"""Lint a price book: usual ratios, order of tiers, stale or overdue entries. Warned of, never applied when billing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

from tenfold.prices.book import EVER, Entry, PriceBook
from tenfold.prices.meters import METER_NAMES

_STALE = timedelta(days=180)
# What providers usually charge, as multiples of the entry's input rate: reference tables of 2026-11 (cached reads 0.005
# to 1, DeepSeek's being the lowest; default writes 1 to 1.25, long writes 2 to 2.5, output 1 to 20).
_USUAL: dict[str, tuple[Fraction, Fraction]] = {
    "cache_read": (Fraction(1, 200), Fraction(1)),
    "cache_write": (Fraction(1), Fraction(5, 4)),
    "cache_write_long": (Fraction(2), Fraction(5, 2)),
    "output": (Fraction(1), Fraction(20)),
}


def check(book: PriceBook, *, today: date) -> list[str]:
    """List what looks odd in a book that loads.

    Args:
        book: The price book.
        today: Day that staleness and announced dates are measured against.

    Returns:
        One line per finding, naming file, entry and model; empty where nothing is odd.
    """
    found: list[str] = []
    for lists in book.lists.values():
        for one in lists:
            for entry in one.bands:
                found += [f"{_place(entry)}: {text}" for text in _of_entry(entry, one.valid_from, today)]
        plain = [one for one in lists if one.window is None]
        gaps = ((left, right) for left, right in pairwise(plain) if left.valid_to < right.valid_from)
        found += [
            f"{_place(left.bands[0])}: no price from {left.valid_to} to {right.valid_from}" for left, right in gaps
        ]
    return sorted({*found, *_dearer_batches(book), *_only_at_hours(book)})


def _of_entry(entry: Entry, valid_from: datetime, today: date) -> Iterator[str]:
    rates = dict(zip(METER_NAMES, entry.rates, strict=True))
    base = rates["uncached_input"]
    for meter, (least, most) in _USUAL.items():
        rate = rates[meter]
        if base and rate and not least <= Fraction(rate, base) <= most:
            yield f"{meter} is {float(Fraction(rate, base)):g}x input; usual is {float(least):g}x to {float(most):g}x"
    short, long = rates["cache_write"], rates["cache_write_long"]
    if short is not None and long is not None and long < short:
        yield "cache_write_long is cheaper than cache_write, which lives shorter"
    if date.fromisoformat(entry.checked) < today - _STALE:
        yield f"last checked {entry.checked}, more than {_STALE.days} days ago"
    if (
        entry.status == "announced"
        and valid_from != EVER
        and valid_from <= datetime.combine(today, datetime.min.time(), UTC)
    ):
        yield f"announced for {valid_from.date()}, which has passed; confirm it"


def _only_at_hours(book: PriceBook) -> Iterator[str]:
    """Name lists that hold at some hours of the week and have nothing for the others."""
    for lists in book.lists.values():
        for one in lists:
            others = [
                other
                for other in lists
                if other.window is None and other.valid_from < one.valid_to and one.valid_from < other.valid_to
            ]
            if one.window is not None and not others:
                yield f"{_place(one.bands[0])}: holds {one.window.text()} only, and nothing else holds at other hours"


def _dearer_batches(book: PriceBook) -> Iterator[str]:
    for (provider, model, tier, region), lists in book.lists.items():
        if tier not in ("batch", "flex"):
            continue
        standard = book.lists.get((provider, model, "standard", region), ())
        for one in lists:
            for entry in one.bands:
                for other in standard:
                    overlaps = other.valid_from < one.valid_to and one.valid_from < other.valid_to
                    twin = other.band(max(entry.above + 1, 0))
                    for meter, rate, full in zip(METER_NAMES, entry.rates, twin.rates, strict=True):
                        if overlaps and rate is not None and full is not None and rate > full:
                            yield f"{_place(entry)}: {meter} is dearer than the standard tier's"


def _place(entry: Entry) -> str:
    where = ", ".join(part for part in (entry.tier, entry.region) if part)
    return f'{entry.file}, entry {entry.number} (model "{entry.model}", {where})'
