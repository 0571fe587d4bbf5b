"""A second implementation of the bill: slow, plain, and independent of the package it checks.

It imports nothing from tenfold, reads the price files itself, and prices one request after the other with
Decimals. Amounts are picodollars (1e-12 USD), whole ones per unit; what would have to round raises `Inexact`.
The order of the rules in `price_request` is the order in which an auditor would ask the questions.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, InvalidOperation, localcontext
from pathlib import Path
from typing import Any

Request = Mapping[str, Any]
Toml = dict[str, Any]

EVER = datetime(1, 1, 1, tzinfo=UTC)  # valid_from of an entry that has none
STANDARD_WORDS = ("default", "auto", "on_demand")
TOKEN_RATES = (
    *("input", "cache_read", "cache_write", "cache_write_long", "input_audio", "input_image", "input_video"),
    *("output", "reasoning", "output_audio", "output_image"),
)
RATES = (*TOKEN_RATES, "web_search")
WORDS = (
    *("model", "aliases", "valid_from", "valid_to", "service_tier", "region", "above_input_tokens"),
    *("ambiguous", "source", "checked", "status", "note"),
)
# Parts of a total that an entry may price apart, and the rate that holds for the total.
PARTS = {
    **dict.fromkeys(("input_audio", "input_image", "input_video"), "input"),
    **dict.fromkeys(("reasoning", "output_audio", "output_image"), "output"),
}
# Parts that are priced with their total where the entry has no rate for them; the others are then unpriced.
FALLS_UNDER_TOTAL = ("input_image", "input_video", "reasoning")
RATE_OF_METER = {"uncached_input": "input", **{rate: rate for rate in RATES if rate != "input"}}
DATE_SUFFIX = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|@\d{8})$")
# Sums of any size the tests draw stay exact; anything else raises instead of rounding.
EXACT = Context(prec=80, traps=[Inexact, InvalidOperation])


@dataclass(frozen=True)
class Entry:
    """One entry of a price file: the rates of one band of one price list."""

    provider: str
    model: str
    tier: str
    region: str
    above: int
    valid_from: datetime
    valid_to: datetime | None
    rates: dict[str, Decimal]  # pUSD per token or search
    ambiguous: str | None = None
    source: str = ""
    checked: date | None = None


@dataclass
class Book:
    """All price entries, and every name a model goes by (all in lower case)."""

    lists: dict[tuple[str, str, str, str], list[Entry]] = field(default_factory=dict)
    ids: dict[str, set[str]] = field(default_factory=dict)
    aliases: dict[tuple[str, str], str] = field(default_factory=dict)
    neutral_regions: dict[str, set[str]] = field(default_factory=dict)

    @property
    def entries(self) -> list[Entry]:
        """All entries, those made by region factors included."""
        return [entry for entries in self.lists.values() for entry in entries]


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


def load_book(folder: str | Path) -> Book:
    """Read every price file of a folder (those with a `provider`)."""
    return read_book(path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.toml")))


def read_book(texts: Iterable[str]) -> Book:
    """Read price files given as text."""
    book = Book()
    for text in texts:
        toml = tomllib.loads(text, parse_float=Decimal)
        if "provider" in toml:
            with localcontext(EXACT):
                _add_file(book, toml)
    for key, entries in book.lists.items():
        places = [(entry.valid_from, entry.above) for entry in entries]
        if len(places) != len(set(places)):
            raise ValueError(f"two entries for the same band and date: {key}")
    return book


def _add_file(book: Book, toml: Toml) -> None:
    provider = _lower(toml, "provider")
    words = {str(word).lower() for word in toml.get("region_neutral", [])}
    book.neutral_regions.setdefault(provider, set()).update(words)
    entries: list[Entry] = []
    for raw in toml.get("price", []):
        entry = _read_entry(provider, raw)
        if raw.get("status") != "withdrawn":  # its names stay known, so that no other model answers to them
            entries.append(entry)
        book.ids.setdefault(provider, set()).add(entry.model)
        for alias in raw.get("aliases", []):
            known = book.aliases.setdefault((provider, str(alias).lower()), entry.model)
            if known != entry.model:
                raise ValueError(f"alias {alias} of {provider} is two models: {known}, {entry.model}")
    for entry in (*entries, *_regional_entries(entries, toml.get("region_factor", []))):
        key = (entry.provider, entry.model, entry.tier, entry.region)
        book.lists.setdefault(key, []).append(entry)


def _read_entry(provider: str, raw: Toml) -> Entry:
    unknown = set(raw) - set(RATES) - set(WORDS)
    rates = _read_rates(raw)
    if unknown or ("ambiguous" in raw) == bool(rates):
        raise ValueError(f"{provider} {raw['model']}: unknown {unknown}, or not just one of rates, ambiguous")
    return Entry(
        provider=provider,
        model=_lower(raw, "model"),
        tier=_lower(raw, "service_tier", "standard"),
        region=_lower(raw, "region"),
        above=raw.get("above_input_tokens", 0),
        valid_from=_instant(raw["valid_from"]) if "valid_from" in raw else EVER,
        valid_to=_instant(raw["valid_to"]) if "valid_to" in raw else None,
        rates=rates,
        ambiguous=raw.get("ambiguous"),
        source=raw.get("source", ""),
        checked=raw.get("checked"),
    )


def _read_rates(raw: Toml) -> dict[str, Decimal]:
    rates: dict[str, Decimal] = {}
    for name in RATES:
        if name not in raw:
            continue
        written = str(raw[name])
        usd = Decimal(written.removesuffix("x"))
        if written.endswith("x"):
            usd *= Decimal(str(raw["input"]))
        # USD per million tokens is 1e6 pUSD a token; USD per 1,000 searches is 1e9 pUSD a search.
        rates[name] = _whole(usd * (10**6 if name in TOKEN_RATES else 10**9), f"{raw['model']} {name}")
    return rates


def _whole(pusd: Decimal, what: str) -> Decimal:
    if pusd < 0 or pusd != pusd.to_integral_value():
        raise ValueError(f"{what}: {pusd} pUSD a unit is negative or finer than 1e-12 USD")
    return Decimal(int(pusd))


def _lower(mapping: Request, key: str, default: str = "") -> str:
    return str(mapping.get(key) or default).lower()


def _instant(value: datetime | date) -> datetime:
    """A date is its midnight in UTC; an instant keeps its zone, and without one is UTC."""
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _regional_entries(entries: list[Entry], factors: list[Toml]) -> Iterator[Entry]:
    """Copy entries without a region into a region, at a factor that starts on a date (or ever)."""
    for raw in factors:
        models = {str(model).lower() for model in raw["models"]}
        factor = Decimal(str(raw["factor"]).removesuffix("x"))
        start = _instant(raw["valid_from"]) if "valid_from" in raw else EVER
        for entry in entries:
            if entry.model not in models or entry.region:
                continue
            # What was replaced or over when the factor began never had the factor.
            same = [e for e in entries if (e.model, e.tier, e.region) == (entry.model, entry.tier, "")]
            is_replaced = any(entry.valid_from < other.valid_from <= start for other in same)
            if is_replaced or (entry.valid_to is not None and entry.valid_to <= start):
                continue
            rates = {
                name: _whole(rate * factor, f"{entry.model} {name}") if name in TOKEN_RATES else rate
                for name, rate in entry.rates.items()
            }
            begins = max(entry.valid_from, start)
            yield replace(entry, region=_lower(raw, "region"), rates=rates, valid_from=begins)


def find_model(book: Book, provider: str, name: str) -> str | None:
    """The id a model name stands for: as written, without `provider/`, without a date; ids before aliases."""
    name = name.lower()
    short = name.removeprefix(f"{provider}/")
    for candidate in (name, short, DATE_SUFFIX.sub("", short)):
        if candidate in book.ids.get(provider, set()):
            return candidate
        if (provider, candidate) in book.aliases:
            return book.aliases[provider, candidate]
    return None


def find_entry(book: Book, request: Request, at: datetime) -> Entry | None:
    """The one entry that applies to a request at an instant, or None; nothing stands in for a missing one."""
    provider = _lower(request, "provider")
    model = find_model(book, provider, _lower(request, "model"))
    tier = _lower(request, "service_tier", "standard")
    tier = "standard" if tier in STANDARD_WORDS else tier
    region = _lower(request, "region")
    region = "" if region in book.neutral_regions.get(provider, set()) else region
    entries = book.lists.get((provider, model or "", tier, region), [])

    started = [entry for entry in entries if entry.valid_from <= at]
    newest = max((entry.valid_from for entry in started), default=EVER)
    in_force = [e for e in started if e.valid_from == newest and (e.valid_to is None or at < e.valid_to)]
    # A band starts strictly above its threshold; the band from 0 is for everything, 0 tokens too.
    bands = [e for e in in_force if e.above == 0 or request["input_tokens"] > e.above]
    return max(bands, key=lambda entry: entry.above, default=None)


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
    entry = find_entry(book, request, _instant(at))
    if entry is None:
        return Priced("unpriced_model", None, reason="nothing for this model, tier, region and date")
    if entry.ambiguous is not None:
        return Priced("ambiguous", None, entry=entry, reason=entry.ambiguous)

    units = disjoint_meters(entry, request)
    unpriced = [meter for meter, n in units.items() if n > 0 and RATE_OF_METER[meter] not in entry.rates]
    if unpriced:
        return Priced("unpriced_meter", None, entry=entry, reason=f"no rate: {unpriced}")
    media = units["input_audio"] + units["input_image"] + units["input_video"]
    if media > 0 and (units["cache_read"] > 0 or _count(request, "cache_write_tokens") > 0):
        return Priced("ambiguous", None, entry=entry, reason="how much of the media was cached is unknown")
    apart = media + units["reasoning"] + units["output_audio"] + units["output_image"]
    if apart > 0 and _overlaps(request):
        return Priced("ambiguous", None, entry=entry, reason="the parts exceed their total, and some are priced apart")
    negative = [meter for meter, n in units.items() if n < 0]
    if negative:
        raise ValueError(f"impossible usage, more in the parts than in the whole: {negative}")

    meters = {meter: (n, n * entry.rates[RATE_OF_METER[meter]]) for meter, n in units.items() if n > 0}
    cost = sum((amount for _, amount in meters.values()), Decimal(0))
    is_free = all(rate == 0 for rate in entry.rates.values())
    return Priced("known_zero" if is_free else "priced", cost, meters, entry)


def is_billed(request: Request) -> bool:
    """Whether the provider bills the request: NULL counts as billable, and as no gateway hit."""
    return request.get("is_billable") is not False and request.get("gateway_cache_hit") is not True


def split_unknown(request: Request) -> bool:
    """Whether the cached share of a known input is unknown, and so priced as if nothing had been cached."""
    return _count(request, "input_tokens") > 0 and request.get("cache_read_tokens") is None


def _overlaps(request: Request) -> bool:
    """Whether the parts of input or of output, taken together, exceed their total."""
    inputs = ("cache_read", "cache_write", "input_audio", "input_image", "input_video")
    outputs = ("reasoning", "output_audio", "output_image")
    return sum(_count(request, f"{part}_tokens") for part in inputs) > _count(request, "input_tokens") or sum(
        _count(request, f"{part}_tokens") for part in outputs
    ) > _count(request, "output_tokens")


def disjoint_meters(entry: Entry, request: Request) -> dict[str, int]:
    """Cut inclusive counts into meters that hold each token once; only parts priced apart are cut out."""
    units: dict[str, int] = {}
    for part, whole in PARTS.items():
        is_apart = part in entry.rates or part not in FALLS_UNDER_TOTAL
        if part == "input_audio":  # at the rate of all input it is input, and may overlap with a cache
            is_apart = entry.rates.get(part) != entry.rates.get(whole)
        units[part] = _count(request, f"{part}_tokens") if is_apart else 0
    read, written = _count(request, "cache_read_tokens"), _count(request, "cache_write_tokens")
    long = _count(request, "cache_write_long_tokens")
    parts_in = sum(units[part] for part, whole in PARTS.items() if whole == "input")
    parts_out = sum(units[part] for part, whole in PARTS.items() if whole == "output")
    return {
        **units,
        "uncached_input": _count(request, "input_tokens") - read - written - parts_in,
        "cache_read": read,
        "cache_write": written - long,
        "cache_write_long": long,
        "output": _count(request, "output_tokens") - parts_out,
        "web_search": _count(request, "web_searches"),
    }


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
        day = None if ts is None else _instant(ts).astimezone(zone).date()
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
        return {**request, "service_tier": "batch", "cache_read_tokens": kept_tokens}

    return _saving(book, filter(eligible_predicate, requests), moved)


def as_billed_saving(book: Book, requests: Iterable[Request]) -> Decimal:
    """What the priced rows would have cost with all input uncached, minus what they cost (pUSD).

    Per row: reads x (input - read) - writes x (write - input), short and long writes at their own rates.
    """
    none = {"cache_read_tokens": 0, "cache_write_tokens": 0, "cache_write_long_tokens": 0}
    return EXACT.minus(_saving(book, requests, lambda request: {**request, **none}))


def _saving(book: Book, requests: Iterable[Request], change: Callable[[Request], Request]) -> Decimal:
    saving = Decimal(0)
    for request in requests:
        now = price_request(book, request)
        if now.status == "priced" and now.cost_pusd is not None:
            then = price_request(book, change(request))
            if then.cost_pusd is not None:
                saving = EXACT.add(saving, EXACT.subtract(now.cost_pusd, then.cost_pusd))
    return saving
