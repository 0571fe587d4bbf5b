"""The oracle's price book: reads the price files itself, and imports nothing from tenfold.

Rates are picodollars (1e-12 USD), whole ones per unit; what would have to round raises `Inexact` or `ValueError`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation, localcontext
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

Request = Mapping[str, Any]
Toml = dict[str, Any]

EVER = datetime(1, 1, 1, tzinfo=UTC)  # valid_from of an entry that has none
TOKEN_RATES = (
    *("input", "cache_read", "cache_write", "cache_write_long", "input_audio", "input_image", "input_video"),
    *("cache_read_audio", "cache_read_image", "cache_read_video"),
    *("output", "reasoning", "output_audio", "output_image", "output_video"),
)
# pUSD per unit for each USD written: per million tokens or characters, per 1,000, or for one.
PUSD_PER_USD = {
    **dict.fromkeys((*TOKEN_RATES, "character", "cache_storage"), 10**6),
    **dict.fromkeys(("web_search", "web_search_preview", "file_search", "maps_search", "request", "page"), 10**9),
    **dict.fromkeys(("code_session", "image", "audio_hour", "output_hour"), 10**12),
}
RATES = tuple(PUSD_PER_USD)
WORDS = (
    *("model", "aliases", "patterns", "valid_from", "valid_to", "weekdays", "hours", "zone"),
    *("service_tier", "region", "above_input_tokens", "min_audio_s", "round_audio_s"),
    *("ambiguous", "source", "checked", "status", "note"),
)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# Sums of any size the tests draw stay exact; anything else raises instead of rounding.
EXACT = Context(prec=80, traps=[Inexact, InvalidOperation])


@dataclass(frozen=True)
class Window:
    """Times of the week at which a list applies: days and half-open minutes of the day on a zone's own clock."""

    weekdays: frozenset[int]  # 0 is Monday
    minutes: tuple[tuple[int, int], ...]
    zone: str

    def is_open(self, at: datetime) -> bool:
        """Whether an instant is inside."""
        local = at.astimezone(ZoneInfo(self.zone))
        minute = 60 * local.hour + local.minute
        return local.weekday() in self.weekdays and any(start <= minute < end for start, end in self.minutes)


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
    rates: dict[str, Decimal]  # pUSD per token, call, piece, character, hour, or token kept for an hour
    window: Window | None = None
    min_audio_ms: int = 0
    round_audio_ms: int = 0
    ambiguous: str | None = None
    source: str = ""
    checked: date | None = None


@dataclass
class Book:
    """All price entries, and every name a model or a region goes by (all in lower case)."""

    lists: dict[tuple[str, str, str, str], list[Entry]] = field(default_factory=dict)
    ids: dict[str, set[str]] = field(default_factory=dict)
    aliases: dict[tuple[str, str], str] = field(default_factory=dict)
    patterns: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # (glob, model) by provider
    neutral_regions: dict[str, set[str]] = field(default_factory=dict)
    # (words, globs of models or none for all, region) by provider, in file order
    region_aliases: dict[str, list[tuple[set[str], list[str], str]]] = field(default_factory=dict)

    @property
    def entries(self) -> list[Entry]:
        """All entries, those made by region factors included."""
        return [entry for entries in self.lists.values() for entry in entries]


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
        places = [(entry.window, entry.valid_from, entry.above) for entry in entries]
        if len(places) != len(set(places)):
            raise ValueError(f"two entries for the same band and date: {key}")
    return book


def _add_file(book: Book, toml: Toml) -> None:
    provider = lower(toml, "provider")
    words = {str(word).lower() for word in toml.get("region_neutral", [])}
    book.neutral_regions.setdefault(provider, set()).update(words)
    for raw in toml.get("region_alias", []):
        names = {str(word).lower() for word in raw["words"]}
        models = [str(model).lower() for model in raw.get("models", [])]
        book.region_aliases.setdefault(provider, []).append((names, models, lower(raw, "region")))
    entries: list[Entry] = []
    for raw in toml.get("price", []):
        entry = _read_entry(provider, raw)
        if raw.get("status") != "withdrawn":  # its names stay known, so that no other model answers to them
            entries.append(entry)
        book.ids.setdefault(provider, set()).add(entry.model)
        for pattern in raw.get("patterns", []):
            book.patterns.setdefault(provider, []).append((str(pattern).lower(), entry.model))
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
        model=lower(raw, "model"),
        tier=lower(raw, "service_tier", "standard"),
        region=lower(raw, "region"),
        above=raw.get("above_input_tokens", 0),
        valid_from=instant(raw["valid_from"]) if "valid_from" in raw else EVER,
        valid_to=instant(raw["valid_to"]) if "valid_to" in raw else None,
        rates=rates,
        window=_read_window(raw),
        min_audio_ms=1000 * raw.get("min_audio_s", 0),
        round_audio_ms=1000 * raw.get("round_audio_s", 0),
        ambiguous=raw.get("ambiguous"),
        source=raw.get("source", ""),
        checked=raw.get("checked"),
    )


def _read_window(raw: Toml) -> Window | None:
    """Without weekdays it is every day, without hours the whole day, without a zone UTC."""
    if "weekdays" not in raw and "hours" not in raw:
        return None
    days = frozenset(WEEKDAYS.index(str(day).lower()) for day in raw.get("weekdays", WEEKDAYS))
    spans = [str(span).split("-") for span in raw.get("hours", ["00:00-24:00"])]
    minutes = tuple(sorted((_minute(start), _minute(end)) for start, end in spans))
    return Window(days, minutes, raw.get("zone", "UTC"))


def _minute(clock: str) -> int:
    hour, minute = clock.split(":")
    return 60 * int(hour) + int(minute)


def _read_rates(raw: Toml) -> dict[str, Decimal]:
    rates: dict[str, Decimal] = {}
    for name in RATES:
        if name not in raw:
            continue
        written = str(raw[name])
        usd = Decimal(written.removesuffix("x"))
        if written.endswith("x"):
            usd *= Decimal(str(raw["input"]))
        rates[name] = _whole(usd * PUSD_PER_USD[name], f"{raw['model']} {name}")
    return rates


def _whole(pusd: Decimal, what: str) -> Decimal:
    if pusd < 0 or pusd != pusd.to_integral_value():
        raise ValueError(f"{what}: {pusd} pUSD a unit is negative or finer than 1e-12 USD")
    return Decimal(int(pusd))


def lower(mapping: Request, key: str, default: str = "") -> str:
    """A text in lower case; NULL and the empty text are the default."""
    return str(mapping.get(key) or default).lower()


def instant(value: datetime | date) -> datetime:
    """A date is its midnight in UTC; an instant keeps its zone, and without one is UTC."""
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _regional_entries(entries: list[Entry], factors: list[Toml]) -> Iterator[Entry]:
    """Copy entries without a region into a region, at a factor that starts on a date (or ever)."""
    for raw in factors:
        models = {str(model).lower() for model in raw["models"]}
        factor = Decimal(str(raw["factor"]).removesuffix("x"))
        start = instant(raw["valid_from"]) if "valid_from" in raw else EVER
        for entry in entries:
            if entry.model not in models or entry.region:
                continue
            # What was replaced or over when the factor began never had the factor.
            own = (entry.model, entry.tier, "", entry.window)
            same = [other for other in entries if (other.model, other.tier, other.region, other.window) == own]
            is_replaced = any(entry.valid_from < other.valid_from <= start for other in same)
            if is_replaced or (entry.valid_to is not None and entry.valid_to <= start):
                continue
            rates = {
                name: _whole(rate * factor, f"{entry.model} {name}") if name in TOKEN_RATES else rate
                for name, rate in entry.rates.items()
            }
            begins = max(entry.valid_from, start)
            yield replace(entry, region=lower(raw, "region"), rates=rates, valid_from=begins)


def fits(glob: str, name: str) -> bool:
    """Whether a glob matches a whole name; `*` stands for any text, none too, and nothing else is special."""
    return re.fullmatch(".*".join(map(re.escape, glob.split("*"))), name, re.DOTALL) is not None
