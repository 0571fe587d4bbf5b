"""Requests drawn at random over every model that tenfold and genai-prices both price, priced by both."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import genai_prices
from genai_prices.data import providers
from prices.agreement import TODAY, readings

import tenfold as tf
from tenfold.prices import price_book
from tenfold.prices.importing.genai_prices import METERS
from tenfold.prices.importing.quotes import Quote

# tenfold's count of a meter, and the package's.
COUNTS = {
    "cache_read": ("cache_read_tokens", "cache_read_tokens"),
    "cache_write": ("cache_write_tokens", "cache_write_tokens"),
    "cache_write_long": ("cache_write_long_tokens", "cache_write_1h_tokens"),
    "input_audio": ("input_audio_tokens", "input_audio_tokens"),
    "input_image": ("input_image_tokens", "input_image_tokens"),
    "input_video": ("input_video_tokens", "input_video_tokens"),
    "cache_read_audio": ("cache_read_audio_tokens", "cache_audio_read_tokens"),
    "cache_read_image": ("cache_read_image_tokens", "cache_image_read_tokens"),
    "cache_read_video": ("cache_read_video_tokens", "cache_video_read_tokens"),
    "reasoning": ("reasoning_tokens", "output_reasoning_tokens"),
    "output_audio": ("output_audio_tokens", "output_audio_tokens"),
    "output_image": ("output_image_tokens", "output_image_tokens"),
    "output_video": ("output_video_tokens", "output_video_tokens"),
    "web_search": ("web_searches", "web_searches"),
    "file_search": ("file_searches", "storage_searches"),
    "page": ("pages", "input_document_pages"),
    "character": ("characters", "input_characters"),
}
KEYS = {meter: key for key, meter in METERS.items()} | {"audio_time": "input_audio_hours"}
PACKAGE_PROVIDERS = {one.id: one for one in providers}
FIRST, LAST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC)


@dataclass
class Place:
    """One model, tier and region that both know."""

    provider: str
    model: str
    tier: str
    region: str
    provider_id: str
    ref: str
    info: Any
    quotes: list[Quote]

    def __post_init__(self) -> None:
        starts = {(q.valid_from, q.valid_to) for q in self.quotes}
        edges = {instant for pair in starts for instant in pair if instant}
        self.edges = sorted(edges | {midnight(s) for s in self.variant_starts()})
        self.bands = sorted({q.above_input_tokens for q in self.quotes} - {0})
        self.meters = sorted({q.meter for q in self.quotes})

    @property
    def context(self) -> dict[str, str] | None:
        if self.region == "mistral/eu":
            return {"route": self.region}
        if self.tier == "standard":
            return None
        if self.tier == "batch":
            return {"processing": "batch"}
        return {"speed": "fast"} if self.provider == "anthropic" else {"service_tier": self.tier}

    def variant_starts(self) -> list[datetime]:
        context = self.context or {}
        mine = [v for v in self.info.price_variants or () if all(context.get(k) == w for k, w in v.when.items())]
        return sorted(v.constraint.start_date for v in mine if v.constraint is not None and v.prices.__dict__)


@dataclass
class Case:
    """One request, and what both say to it."""

    place: Place
    at: datetime
    ours: dict[str, int]
    theirs: dict[str, int]
    counted: list[str]
    price: Any = None
    usd: Decimal = field(default=Decimal(0))

    def run(self) -> None:
        place = self.place
        self.price = tf.price(
            provider=place.provider, model=place.model, at=self.at, tier=place.tier, region=place.region or None,
            usage=tf.Usage(**self.ours), book=book(),
        )  # fmt: skip
        self.usd = self.there(self.at, place.context)

    def there(self, at: datetime, context: dict[str, str] | None) -> Decimal:
        usage = genai_prices.Usage(**self.theirs)
        return genai_prices.calc_price(
            usage, self.place.ref, provider_id=self.place.provider_id, genai_request_timestamp=at, price_context=context
        ).total_price

    def reduced(self) -> Case | None:
        """Leave out what is counted and has no price in the package; None where there is nothing of the kind.

        The package bills such tokens as their parent and such calls at 0, and says nothing: so does ``theirs`` here.
        """
        known = self.prices_there()
        absent = {COUNTS[meter][0] for meter in self.counted if meter in COUNTS and KEYS[meter] not in known}
        if "cache_read_tokens" in absent:
            absent |= {name for name in self.ours if name.startswith("cache_read_")}
        if "cache_write_tokens" in absent:
            absent.add("cache_write_long_tokens")
        if not absent & self.ours.keys():
            return None
        ours = {name: count for name, count in self.ours.items() if name not in absent}
        counted = [meter for meter in self.counted if meter not in COUNTS or COUNTS[meter][0] not in absent]
        made = Case(self.place, self.at, ours, self.theirs, counted)
        made.run()
        return made

    def equal(self, usd: Decimal | None = None) -> bool:
        return self.price.cost_pusd == round((self.usd if usd is None else usd) * 10**12)

    def prices_there(self) -> dict[str, Any]:
        return {
            k: v for k, v in self.place.info.get_prices(self.at, self.place.context).__dict__.items() if v is not None
        }


def midnight(day) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


@cache
def book():
    return price_book()


@cache
def places() -> list[Place]:
    """Every model that the package prices and the book knows by the same id, by tier and region."""
    groups: dict[tuple, list[Quote]] = defaultdict(list)
    for quote in readings()[0].quotes:
        groups[quote.provider, quote.model, quote.tier, quote.region, quote.key].append(quote)
    found = []
    for (provider, model, tier, region, key), quotes in groups.items():
        owner, _, name = key.partition("/")
        info = next(one for one in PACKAGE_PROVIDERS[owner].models if one.id == name)
        ref = f"{region}.{model}" if provider == "bedrock" and region else model
        if PACKAGE_PROVIDERS[owner].find_model(ref) is info and book().match(provider, model, tier, region).lists:
            found.append(Place(provider, model, tier, region, owner, ref, info, quotes))
    return found


def drawn(rng: random.Random) -> Case:
    """Draw a request: any place, any date the package knows, band edges and times of day more often than not."""
    by_provider = defaultdict(list)
    for place in places():
        by_provider[place.provider].append(place)
    place = rng.choice(by_provider[rng.choice(sorted(by_provider))])
    ours, theirs, counted = _counts(place, rng)
    return Case(place, _instant(place, rng), ours, theirs, counted)


def _instant(place: Place, rng: random.Random) -> datetime:
    if place.edges and rng.random() < 0.3:
        return rng.choice(place.edges) + rng.choice([timedelta(0), -timedelta(microseconds=1), timedelta(days=1)])
    if rng.random() < 0.2:  # hours at which windows begin and end, any day of the week
        day = TODAY.replace(hour=0) + timedelta(days=rng.randrange(-90, 14))
        return (
            day
            + timedelta(hours=rng.choice([0, 1, 4, 6, 10, 23]))
            - rng.choice([timedelta(0), timedelta(microseconds=1)])
        )
    return FIRST + (LAST - FIRST) * rng.random()


def _counts(place: Place, rng: random.Random) -> tuple[dict[str, int], dict[str, int], list[str]]:
    total = rng.choice([rng.randrange(1, 5_000), rng.randrange(1, 2_000_000)])
    if place.bands and rng.random() < 0.6:
        total = rng.choice(place.bands) + rng.choice([0, 1, -1, rng.randrange(1, 50_000)])
    ours = {"input_tokens": total, "output_tokens": rng.randrange(0, 100_000)}
    wanted = {meter for meter in place.meters if rng.random() < 0.6}
    if rng.random() < 0.1:
        wanted.add(rng.choice(["cache_read", "web_search", "cache_write"]))
    amounts = _input_parts(wanted, total, rng)
    left = ours["output_tokens"]
    for meter in ("reasoning", "output_audio", "output_image", "output_video"):
        if meter in wanted:
            amounts[meter] = rng.randrange(0, left // 2 + 1)
            left -= amounts[meter]
    amounts |= {
        meter: rng.randrange(1, 30) for meter in ("web_search", "file_search", "page", "character") if meter in wanted
    }
    theirs = dict(ours)
    for meter, count in amounts.items():
        mine, other = COUNTS[meter]
        ours[mine] = count
        if count or meter in place.meters:
            theirs[other] = count
    if "audio_time" in wanted:
        seconds = rng.randrange(0, 4_000)
        ours["input_audio_ms"] = seconds * 1000
        theirs |= {"audio_seconds": seconds, "input_audio_seconds": seconds}
        amounts["audio_time"] = seconds
    if "request" in place.meters:
        theirs["requests"] = 1
    return ours, theirs, [*(meter for meter, count in amounts.items() if count), "uncached_input", "output"]


def _input_parts(wanted: set[str], total: int, rng: random.Random) -> dict[str, int]:
    """Draw the parts of the input: media are never in a cache write, which neither could price."""
    amounts: dict[str, int] = {}
    left = total
    media = [kind for kind in ("audio", "image", "video") if f"input_{kind}" in wanted]
    if {"cache_write", "cache_write_long"} & wanted:
        amounts["cache_write"] = rng.randrange(0, left // 2 + 1)
        left -= amounts["cache_write"]
        media = []
        if "cache_write_long" in wanted:
            amounts["cache_write_long"] = rng.randrange(0, amounts["cache_write"] + 1)
    if any(meter.startswith("cache_read") for meter in wanted):
        amounts["cache_read"] = rng.randrange(0, left // 2 + 1)
        left -= amounts["cache_read"]
    cached = amounts.get("cache_read", 0)
    for kind in media:
        fresh = rng.randrange(0, left // 2 + 1)
        left -= fresh
        shared = rng.randrange(0, cached + 1) if f"cache_read_{kind}" in wanted else 0
        cached -= shared
        amounts[f"cache_read_{kind}"] = shared
        amounts[f"input_{kind}"] = fresh + shared
    return amounts
