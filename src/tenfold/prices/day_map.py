"""The rate card as a day map: one row for each (price key, UTC day, interval, context band), for an equi-join."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

import polars as pl

from tenfold.prices.book import EVER, FOREVER, Entry, Match, PriceBook, PriceList
from tenfold.prices.meters import INPUT_AUDIO, METER_NAMES, UNCACHED_INPUT

UNDATED = date(1970, 1, 1)
_SCHEMA: dict[str, pl.DataType] = {
    "price_key": pl.Int32(),
    "day": pl.Date(),
    "valid_from": pl.Datetime("us"),
    "valid_to": pl.Datetime("us"),
    "above": pl.Int64(),
    "up_to": pl.Int64(),
    "entry_id": pl.Int32(),
    "is_cut": pl.Boolean(),
    "is_ambiguous": pl.Boolean(),
    "is_free": pl.Boolean(),
    "is_audio_apart": pl.Boolean(),
    **{f"rate_{name}": pl.Int64() for name in METER_NAMES},
}


class KeyDays(NamedTuple):
    """One price key and the days it occurs on.

    Args:
        price_key: Number in ``price_keys``.
        provider: Who bills.
        model: Model as served.
        service_tier: Tier.
        region: Price region, empty for none.
        days: UTC days, None for requests without a time.
    """

    price_key: int
    provider: str
    model: str
    service_tier: str
    region: str
    days: tuple[date | None, ...]


class DayMap(NamedTuple):
    """A compiled card for the keys and days of one log.

    Args:
        frame: One row per (price key, day, interval, band), rates in pUSD per unit.
        entries: The price entries that ``entry_id`` numbers.
        matches: How each price key was matched.
    """

    frame: pl.DataFrame
    entries: tuple[Entry, ...]
    matches: dict[int, Match]


def day_map(book: PriceBook, keys: Iterable[KeyDays], *, price_at: datetime | None = None) -> DayMap:
    """Expand the price lists that a log needs to its days.

    Args:
        book: The price book.
        keys: Price keys with the days they occur on.
        price_at: Price every request at this one instant instead of its own (a what-if).

    Returns:
        The day map. A key or day without a price has no row. ``is_cut`` marks days with more than one interval, whose
        requests cannot be priced from daily sums.
    """
    rows: list[tuple[object, ...]] = []
    entries: dict[Entry, int] = {}
    matches: dict[int, Match] = {}
    for key in keys:
        found = book.match(key.provider, key.model, key.service_tier, key.region)
        matches[key.price_key] = found
        for day in key.days:
            for price_list, start, end, is_cut in _of_day(found, day, price_at):
                for band in price_list.bands:
                    priced = [rate for rate in band.rates if rate is not None]
                    audio = band.rates[INPUT_AUDIO]
                    rows.append((
                        key.price_key, day or UNDATED, start, end, band.above, band.up_to,
                        entries.setdefault(band, len(entries)), is_cut,
                        bool(band.ambiguous), bool(priced) and not any(priced),
                        audio is not None and audio != band.rates[UNCACHED_INPUT], *band.rates,
                    ))  # fmt: skip
    return DayMap(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), tuple(entries), matches)


def _of_day(
    found: Match, day: date | None, price_at: datetime | None
) -> Iterator[tuple[PriceList, datetime, datetime, bool]]:
    """Yield the lists that apply on a day, clipped to it, and whether its rates change inside it."""
    if price_at is not None:
        price_list = found.at(price_at)
        if price_list is not None:
            yield price_list, _naive(EVER), _naive(FOREVER), False
        return
    if day is None:
        return
    starts = datetime.combine(day, time(), UTC)
    ends = starts + timedelta(days=1)
    inside = [one for one in found.lists if one.valid_from < ends and one.valid_to > starts]
    whole = len(inside) == 1 and inside[0].valid_from <= starts and inside[0].valid_to >= ends
    for one in inside:
        yield one, _naive(max(one.valid_from, starts)), _naive(min(one.valid_to, ends)), not whole


def _naive(instant: datetime) -> datetime:
    return instant.replace(tzinfo=None)
