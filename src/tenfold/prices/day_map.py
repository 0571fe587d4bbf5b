"""The rate card as a day map: one row for each (price key, UTC day, interval, context band), for an equi-join."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter
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
_SPANS = {name: _SCHEMA[name] for name in ("price_key", "day", "valid_from", "valid_to", "entry_id", "is_cut")}


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
    rows: list[tuple[object, ...]] = []
    entries: dict[Entry, int] = {}
    matches: dict[int, Match] = {}
    for key in keys:
        found = book.match(key.provider, key.model, key.service_tier, key.region)
        matches[key.price_key] = found
        numbers: dict[int, list[int]] = {}
        for day, price_list, start, end, is_cut in _of_days(found, key.days, price_at):
            if id(price_list) not in numbers:
                numbers[id(price_list)] = [entries.setdefault(band, len(entries)) for band in price_list.bands]
            rows += [(key.price_key, day, start, end, number, is_cut) for number in numbers[id(price_list)]]
    by_time = [i for i, meter in enumerate(meters()) if meter.divisor > 1 and meter.column in counts]
    spans = pl.DataFrame(rows, schema=_SPANS, orient="row")
    frame = spans.join(_entries(entries, by_time), on="entry_id", how="left", maintain_order="left").with_columns(
        is_cut=pl.col("is_cut") | pl.col("is_by_time")
    )
    frame = frame.select(*_SCHEMA)
    has_fee = any(band.rates[_REQUEST] is not None for band in entries)
    return DayMap(frame, tuple(entries), matches, has_fee)


def _entries(entries: Iterable[Entry], by_time: Collection[int]) -> pl.DataFrame:
    """Lay out the entries by number, so that what a day repeats is written once; by columns, as rows take longer."""
    bands = list(entries)
    rates = [card_rates(band.rates) for band in bands]
    columns: dict[str, list[object]] = {
        "entry_id": list(range(len(bands))),
        "above": [band.above for band in bands],
        "up_to": [band.up_to for band in bands],
        "is_by_time": [any(band.rates[i] is not None for i in by_time) for band in bands],
        "is_ambiguous": [bool(band.ambiguous) for band in bands],
        "is_free": [is_free(band.rates) for band in bands],
        "audio_min_ms": [band.audio_min_ms for band in bands],
        "audio_step_ms": [band.audio_step_ms for band in bands],
        **{f"rate_{name}": [one[i] for one in rates] for i, name in enumerate(METER_NAMES)},
    }
    kinds = {**_SCHEMA, "is_by_time": pl.Boolean()}
    return pl.DataFrame({name: pl.Series(values, dtype=kinds[name]) for name, values in columns.items()})


def _of_days(
    found: Match, days: Iterable[date | None], price_at: datetime | None
) -> Iterator[tuple[date, PriceList, datetime, datetime, bool]]:
    """Yield the lists that apply on each day, clipped to it, and whether its rates change inside it."""
    if price_at is not None:
        price_list = found.at(price_at)
        if price_list is not None:
            for day in days:
                yield day or UNDATED, price_list, _naive(EVER), _naive(FOREVER), False
        return
    # Lists without a window follow one another; a long book is not gone through for every day.
    windowed = [one for one in found.lists if one.window is not None]
    plain = sorted((one for one in found.lists if one.window is None), key=attrgetter("valid_from"))
    begins = [one.valid_from for one in plain]
    is_sequence = all(one.valid_to <= after.valid_from for one, after in pairwise(plain))
    for day in days:
        if day is None:
            continue
        starts, ends, naive_starts, naive_ends = _bounds(day)
        near = [one for one in windowed if one.valid_from < ends and one.valid_to > starts]
        first = max(bisect_right(begins, starts) - 1, 0) if is_sequence else 0
        near += [one for one in plain[first : bisect_left(begins, ends)] if one.valid_to > starts]
        if len(near) == 1 and near[0].window is None and near[0].valid_from <= starts and near[0].valid_to >= ends:
            yield day, near[0], naive_starts, naive_ends, False
        else:
            for now, start, end, is_cut in _pieces(found, near, starts, ends):
                yield day, now, start, end, is_cut


@lru_cache(maxsize=4096)
def _bounds(day: date) -> tuple[datetime, datetime, datetime, datetime]:
    """Begin and end a UTC day, aware and naive."""
    starts = datetime.combine(day, time(), UTC)
    ends = starts + timedelta(days=1)
    return starts, ends, _naive(starts), _naive(ends)


def _pieces(
    found: Match, near: Iterable[PriceList], starts: datetime, ends: datetime
) -> Iterator[tuple[PriceList, datetime, datetime, bool]]:
    """Cut a day where its list changes."""
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
