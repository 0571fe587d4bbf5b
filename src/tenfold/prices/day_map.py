"""The rate card as a day map: one row for each (price key, UTC day, interval, context band), for an equi-join."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from tenfold.prices.book import EVER, FOREVER, Entry, Match, PriceBook, PriceList
from tenfold.prices.meters import METER_NAMES, card_rates, is_free, meters

# Where requests without a time stand in the day map: no request has this day (offsets from an unknown start are set on
# 1970-01-01). The cell steps (store/sql/cells_*.sql) write it out.
UNDATED = date(1900, 1, 1)
_REQUEST = METER_NAMES.index("request")
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
    "audio_min_ms": pl.Int64(),
    "audio_step_ms": pl.Int64(),
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
        has_request_fee: Some entry charges for the request itself.
    """

    frame: pl.DataFrame
    entries: tuple[Entry, ...]
    matches: dict[int, Match]
    has_request_fee: bool


def day_map(
    book: PriceBook, keys: Iterable[KeyDays], *, price_at: datetime | None = None, counts: Collection[str] = ()
) -> DayMap:
    """Expand the price lists that a log needs to its days.

    Args:
        book: The price book.
        keys: Price keys with the days they occur on.
        price_at: Price every request at this one instant instead of its own (a what-if).
        counts: Columns that are above zero somewhere in the log.

    Returns:
        The day map. A key or day without a price has no row. ``is_cut`` marks days whose requests cannot be priced from
        daily sums: more than one interval, or a cost that is rounded by request.
    """
    by_time = [i for i, meter in enumerate(meters()) if meter.divisor > 1 and meter.column in counts]
    rows: list[tuple[object, ...]] = []
    entries: dict[Entry, int] = {}
    matches: dict[int, Match] = {}
    for key in keys:
        found = book.match(key.provider, key.model, key.service_tier, key.region)
        matches[key.price_key] = found
        for day in key.days:
            for price_list, start, end, is_cut in _of_day(found, day, price_at):
                for band in price_list.bands:
                    rates = card_rates(band.rates)
                    rows.append((
                        key.price_key, day or UNDATED, start, end, band.above, band.up_to,
                        entries.setdefault(band, len(entries)),
                        is_cut or any(band.rates[i] is not None for i in by_time),
                        bool(band.ambiguous), is_free(band.rates), band.audio_min_ms, band.audio_step_ms, *rates,
                    ))  # fmt: skip
    has_fee = any(band.rates[_REQUEST] is not None for band in entries)
    return DayMap(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), tuple(entries), matches, has_fee)


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
    near = [one for one in found.lists if one.valid_from < ends and one.valid_to > starts]
    cuts = {starts, ends}
    for one in near:
        inside = max(one.valid_from, starts), min(one.valid_to, ends)
        cuts |= set(inside)
        if one.window is not None:
            cuts.update(edge for piece in one.window.pieces(*inside) for edge in piece)
    edges = sorted(cuts)
    spans: list[tuple[PriceList | None, datetime, datetime]] = []
    for start, end in pairwise(edges):
        now = found.at(start)
        if spans and spans[-1][0] == now:
            spans[-1] = (now, spans[-1][1], end)
        else:
            spans.append((now, start, end))
    for now, start, end in spans:
        if now is not None:
            yield now, _naive(start), _naive(end), len(spans) > 1


def _naive(instant: datetime) -> datetime:
    return instant.replace(tzinfo=None)
