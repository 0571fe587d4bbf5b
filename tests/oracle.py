"""A second implementation of the bill: slow, plain, and independent of the package it checks.

It imports nothing from tenfold, reads the price files itself, and prices one request after the other with
Decimals. Amounts are picodollars (1e-12 USD), whole ones per unit; what would have to round raises `Inexact`.
The order of the rules in `price_request` is the order in which an auditor would ask the questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from oracle_book import EVER, EXACT, RATES, Book, Entry, Request, Window, fits, instant, load_book, lower, read_book

__all__ = [
    "EVER",
    "Bill",
    "Book",
    "Entry",
    "Priced",
    "as_billed_saving",
    "batch_saving",
    "bill",
    "disjoint_meters",
    "find_entry",
    "find_model",
    "group",
    "is_billed",
    "load_book",
    "price_request",
    "read_book",
    "split_unknown",
]

STANDARD_WORDS = ("default", "auto", "on_demand")
MEDIA = ("audio", "image", "video")
MEDIA_OUT = ("output_audio", "output_image", "output_video")
# Meters that count a column as it is, each unit by itself.
SINGLE = {
    "web_search": "web_searches",
    "web_search_preview": "web_searches_preview",
    "file_search": "file_searches",
    "maps_search": "maps_searches",
    "code_session": "code_sessions",
    "image": "images",
    "page": "pages",
    "character": "characters",
    "output_time": "output_media_ms",
    "cache_storage": "cache_storage_token_s",
}
OTHER_NAMES = {"input": "uncached_input", "audio_hour": "audio_time", "output_hour": "output_time"}
RATE_OF_METER = {OTHER_NAMES.get(rate, rate): rate for rate in RATES}
# Rates for an hour, and what is counted of it: milliseconds, and seconds (times tokens).
PER_HOUR = {"audio_time": 3_600_000, "output_time": 3_600_000, "cache_storage": 3_600}
DATE_SUFFIX = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|@\d{8})$")

CACHED_MEDIA = ("cache_read_audio_tokens", "cache_read_image_tokens", "cache_read_video_tokens")


@dataclass(frozen=True)
class Priced:
    """One priced request: cost in pUSD (None where unknown), and per meter (units, cost in pUSD)."""

    status: str
    cost_pusd: Decimal | None
    meters: dict[str, tuple[int, Decimal]] = field(default_factory=dict[str, tuple[int, Decimal]])
    entry: Entry | None = None
    reason: str = ""
    split_unknown: bool = False

    @property
    def cost_usd(self) -> Decimal | None:
        """The same cost in USD, exact."""
        return None if self.cost_pusd is None else self.cost_pusd.scaleb(-12, EXACT)


@dataclass
class Bill:
    """Totals over requests. Rows without a cost are in the counts and in no amount."""

    requests: int = 0
    total_pusd: Decimal = Decimal(0)
    by_status: dict[str, int] = field(default_factory=dict[str, int])
    tokens_by_status: dict[str, int] = field(default_factory=dict[str, int])  # known input + output
    by_meter: dict[str, tuple[int, Decimal]] = field(default_factory=dict[str, tuple[int, Decimal]])
    split_unknown: int = 0  # priced rows with a NULL part of a known total


def find_model(book: Book, provider: str, name: str) -> str | None:
    """The id a model name stands for: as written, without prefixes, without a date; ids before aliases.

    Only a name that is none of these is held against the provider's patterns.
    """
    name = name.lower()
    short = name.removeprefix(f"{provider}/").removeprefix("models/").removeprefix(f"{provider}/")
    for candidate in (name, short, DATE_SUFFIX.sub("", short)):
        if candidate in book.ids.get(provider, set()):
            return candidate
        if (provider, candidate) in book.aliases:
            return book.aliases[provider, candidate]
    fitting = {model for pattern, model in book.patterns.get(provider, []) if fits(pattern, short)}
    if len(fitting) > 1:
        raise ValueError(f"{name} of {provider} fits patterns of several models: {fitting}")
    return next(iter(fitting), None)


def find_region(book: Book, provider: str, model: str, word: str) -> str:
    """The region a log's word stands for, for one model: aliases in file order, then words that mean none."""
    for words, globs, region in book.region_aliases.get(provider, []):
        if word in words and (not globs or any(fits(glob, model) for glob in globs)):
            return region
    return "" if word in book.neutral_regions.get(provider, set()) else word


def find_entry(book: Book, request: Request, at: datetime) -> Entry | None:
    """The one entry that applies to a request at an instant, or None; nothing stands in for a missing one."""
    provider = lower(request, "provider")
    model = find_model(book, provider, lower(request, "model"))
    tier = lower(request, "service_tier", "standard")
    tier = "standard" if tier in STANDARD_WORDS else tier
    region = find_region(book, provider, model or "", lower(request, "region"))
    by_window: dict[Window | None, list[Entry]] = {}
    for entry in book.lists.get((provider, model or "", tier, region), []):
        by_window.setdefault(entry.window, []).append(entry)

    in_force = {window: found for window, entries in by_window.items() if (found := _in_force(entries, at))}
    usual = in_force.pop(None, [])
    now_open = [entries for window, entries in in_force.items() if window is not None and window.is_open(at)]
    if len(now_open) > 1:
        raise ValueError(f"two windows are open at {at}: {now_open}")
    # A band starts strictly above its threshold; the band from 0 is for everything, 0 tokens too.
    bands = [e for e in (now_open[0] if now_open else usual) if e.above == 0 or request["input_tokens"] > e.above]
    return max(bands, key=lambda entry: entry.above, default=None)


def _in_force(entries: list[Entry], at: datetime) -> list[Entry]:
    """The newest started list, unless it is over: it does not give way to the one it had replaced."""
    started = [entry for entry in entries if entry.valid_from <= at]
    newest = max((entry.valid_from for entry in started), default=EVER)
    return [e for e in started if e.valid_from == newest and (e.valid_to is None or at < e.valid_to)]


def price_request(book: Book, request: Request, price_at: datetime | None = None) -> Priced:
    """Price one request (column names as in the requests table), at its own time or at `price_at`."""
    with localcontext(EXACT):
        return replace(_price(book, request, price_at), split_unknown=split_unknown(request))


def _price(book: Book, request: Request, price_at: datetime | None) -> Priced:  # noqa: PLR0911 -- one a rule
    if not is_billed(request):
        return Priced("known_zero", Decimal(0), reason="not billed")
    unknown = [name for name in ("input_tokens", "output_tokens") if request.get(name) is None]
    if unknown:
        status = "usage_missing" if len(unknown) == 2 else "usage_partial"
        return Priced(status, None, reason=f"NULL: {unknown}")
    at = price_at or request.get("ts")
    if at is None:
        return Priced("ambiguous", None, reason="no date to price at")
    entry = find_entry(book, request, instant(at))
    if entry is None:
        return Priced("unpriced_model", None, reason="nothing for this model, tier, region and date")
    if entry.ambiguous is not None:
        return Priced("ambiguous", None, entry=entry, reason=entry.ambiguous)

    units = disjoint_meters(entry, request)
    # Reads and audio need their rates even where all of them are cached media, which are counted elsewhere.
    counts = {**units, "cache_read": _count(request, "cache_read_tokens")}
    counts["input_audio"] = media_apart(entry, request)["audio"]
    unpriced = [meter for meter, n in counts.items() if n > 0 and RATE_OF_METER[meter] not in entry.rates]
    if unpriced:
        return Priced("unpriced_meter", None, entry=entry, reason=f"no rate: {unpriced}")
    media = media_apart(entry, request)
    read, written = _count(request, "cache_read_tokens"), _count(request, "cache_write_tokens")
    is_cached_unknown = any(n > 0 and request.get(f"cache_read_{kind}_tokens") is None for kind, n in media.items())
    if sum(media.values()) > 0 and (written > 0 or (read > 0 and is_cached_unknown)):
        return Priced("ambiguous", None, entry=entry, reason="how much of the media was cached is unknown")
    apart = sum(media.values()) + units["reasoning"] + sum(units[part] for part in MEDIA_OUT)
    if apart > 0 and _overlaps(request):
        return Priced("ambiguous", None, entry=entry, reason="the parts exceed their total, and some are priced apart")
    negative = [meter for meter, n in units.items() if n < 0]
    if negative:
        raise ValueError(f"impossible usage, more in the parts than in the whole: {negative}")

    meters = {meter: (n, _cost(entry, meter, n)) for meter, n in units.items() if n > 0}
    cost = sum((amount for _, amount in meters.values()), Decimal(0))
    is_free = all(rate == 0 for rate in entry.rates.values())
    return Priced("known_zero" if is_free else "priced", cost, meters, entry)


def is_billed(request: Request) -> bool:
    """Whether the provider bills the request: NULL counts as billable, and as no gateway hit."""
    return request.get("is_billable") is not False and request.get("gateway_cache_hit") is not True


def split_unknown(request: Request) -> bool:
    """Whether the cached share of a known input is unknown, and so priced as if nothing had been cached."""
    return _count(request, "input_tokens") > 0 and request.get("cache_read_tokens") is None


def _cost(entry: Entry, meter: str, units: int) -> Decimal:
    """Units times rate; what is priced by the hour is rounded to the nearest whole pUSD, a half to the even one."""
    amount = units * entry.rates[RATE_OF_METER[meter]]
    hour = PER_HOUR.get(meter)
    if hour is None:
        return amount
    whole, rest = divmod(int(amount), hour)
    is_up = 2 * rest > hour or (2 * rest == hour and whole % 2 == 1)
    return Decimal(whole + is_up)


def _overlaps(request: Request) -> bool:
    """Whether the parts of input or of output, taken together, exceed their total.

    Media known to be cached are in the reads and in the tokens of their kind, and are counted once.
    """
    parts_in = ("cache_read", "cache_write", *(f"input_{kind}" for kind in MEDIA))
    twice = sum(_count(request, f"cache_read_{kind}_tokens") for kind in MEDIA)
    total_in = sum(_count(request, f"{part}_tokens") for part in parts_in) - twice
    total_out = sum(_count(request, f"{part}_tokens") for part in ("reasoning", *MEDIA_OUT))
    return total_in > _count(request, "input_tokens") or total_out > _count(request, "output_tokens")


def media_apart(entry: Entry, request: Request) -> dict[str, int]:
    """Media input that is not priced as all input is, by kind, cached tokens still in it."""
    media: dict[str, int] = {}
    for kind in MEDIA:
        rate = entry.rates.get(f"input_{kind}")
        is_input = rate == entry.rates.get("input") if rate is not None else kind != "audio"
        media[kind] = 0 if is_input else _count(request, f"input_{kind}_tokens")
    return media


def disjoint_meters(entry: Entry, request: Request) -> dict[str, int]:
    """Cut inclusive counts into meters that hold each unit once; only parts priced apart are cut out."""
    media = media_apart(entry, request)
    # Cached media come off their kind where it is apart, and off the reads where they have a rate of their own.
    known = {kind: _count(request, f"cache_read_{kind}_tokens") for kind in MEDIA}
    off_kind = {kind: known[kind] if media[kind] > 0 else 0 for kind in MEDIA}
    off_reads = {kind: known[kind] if f"cache_read_{kind}" in entry.rates else 0 for kind in MEDIA}
    read, written = _count(request, "cache_read_tokens"), _count(request, "cache_write_tokens")
    long = _count(request, "cache_write_long_tokens")
    reasoning = _count(request, "reasoning_tokens") if "reasoning" in entry.rates else 0
    media_out = {part: _count(request, f"{part}_tokens") for part in MEDIA_OUT}
    return {
        "uncached_input": _count(request, "input_tokens")
        - (read + written + sum(media.values()))
        + sum(off_kind.values()),
        **{f"input_{kind}": media[kind] - off_kind[kind] for kind in MEDIA},
        "cache_read": read - sum(off_reads.values()),
        **{f"cache_read_{kind}": off_reads[kind] for kind in MEDIA},
        "cache_write": written - long,
        "cache_write_long": long,
        "output": _count(request, "output_tokens") - reasoning - sum(media_out.values()),
        "reasoning": reasoning,
        **media_out,
        **{meter: _count(request, column) for meter, column in SINGLE.items()},
        "audio_time": _billed_audio_ms(entry, _count(request, "input_audio_ms")),
        "request": 1 if "request" in entry.rates else 0,
    }


def _billed_audio_ms(entry: Entry, ms: int) -> int:
    """Whole steps of the audio heard, and no less than the least that is billed; nothing for nothing."""
    if ms <= 0:
        return 0
    step = entry.round_audio_ms or 1
    return max(entry.min_audio_ms, -(-ms // step) * step)


def _count(request: Request, column: str) -> int:
    """A count; NULL is part of its total, so nothing of its own."""
    return int(request.get(column) or 0)


def bill(book: Book, requests: Iterable[Request], price_at: datetime | None = None) -> Bill:
    """Total the requests: counts and tokens by status, amounts in pUSD."""
    total = Bill()
    for request in requests:
        priced = price_request(book, request, price_at)
        tokens = _count(request, "input_tokens") + _count(request, "output_tokens")
        total.requests += 1
        total.by_status[priced.status] = total.by_status.get(priced.status, 0) + 1
        total.tokens_by_status[priced.status] = total.tokens_by_status.get(priced.status, 0) + tokens
        total.split_unknown += priced.status == "priced" and priced.split_unknown
        with localcontext(EXACT):
            total.total_pusd += priced.cost_pusd or Decimal(0)
            for meter, (n, amount) in priced.meters.items():
                old_n, old_amount = total.by_meter.get(meter, (0, Decimal(0)))
                total.by_meter[meter] = (old_n + n, old_amount + amount)
    return total


def group(
    book: Book,
    requests: Iterable[Request],
    keys: Sequence[str],
    zone: tzinfo = UTC,
    at: datetime | None = None,
) -> dict[tuple[Any, ...], Bill]:
    """Bill per combination of columns; the key `day` is the date of `ts` in a zone (NULL: None)."""
    groups: dict[tuple[Any, ...], list[Request]] = {}
    for request in requests:
        ts = request.get("ts")
        day = None if ts is None else instant(ts).astimezone(zone).date()
        place = tuple(day if key == "day" else request.get(key) for key in keys)
        groups.setdefault(place, []).append(request)
    return {place: bill(book, rows, at) for place, rows in groups.items()}


def batch_saving(
    book: Book,
    requests: Iterable[Request],
    eligible_predicate: Callable[[Request], bool],
    cache_hit_factor: Decimal,
) -> Decimal:
    """Saving in pUSD (may be negative) of moving eligible requests to the batch tier, with fewer cache reads.

    Lost reads become uncached input at the batch rate; a request without a price now, or in batch, stays.
    """

    def moved(request: Request) -> Request:
        kept = EXACT.multiply(Decimal(_count(request, "cache_read_tokens")), cache_hit_factor)
        kept_tokens = int(kept.to_integral_value(ROUND_HALF_UP))
        # Cached media are parts of the reads: kept in the same share, rounded down so that they stay parts.
        media = {
            column: int(EXACT.multiply(Decimal(request[column]), cache_hit_factor))
            for column in CACHED_MEDIA
            if request.get(column) is not None
        }
        return {**request, **media, "service_tier": "batch", "cache_read_tokens": kept_tokens}

    return _saving(book, filter(eligible_predicate, requests), moved)


def as_billed_saving(book: Book, requests: Iterable[Request]) -> Decimal:
    """What the priced rows would have cost with all input uncached, minus what they cost (pUSD).

    Per row: reads x (input - read) - writes x (write - input), short and long writes at their own rates.
    """
    none = {"cache_read_tokens": 0, "cache_write_tokens": 0, "cache_write_long_tokens": 0}

    def uncached(request: Request) -> Request:
        return {**request, **none, **{column: 0 for column in CACHED_MEDIA if request.get(column) is not None}}

    return EXACT.minus(_saving(book, requests, uncached))


def _saving(book: Book, requests: Iterable[Request], change: Callable[[Request], Request]) -> Decimal:
    saving = Decimal(0)
    for request in requests:
        now = price_request(book, request)
        if now.status == "priced" and now.cost_pusd is not None:
            then = price_request(book, change(request))
            if then.cost_pusd is not None:
                saving = EXACT.add(saving, EXACT.subtract(now.cost_pusd, then.cost_pusd))
    return saving
