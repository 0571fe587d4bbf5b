"""Read the prices of the installed genai-prices package (MIT): dated lists, context bands, variants by tier."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple

from tenfold.prices.importing.quotes import Collector, MissingPeerError, Quote, Reading, per_of
from tenfold.prices.windows import Window
from tenfold.prices.words import PROFILES, canonical_provider

if TYPE_CHECKING:
    from genai_prices.types import ConditionalPrice, ModelInfo, ModelPrice, PriceVariant, Provider

PACKAGE = "genai-prices"
KNOWN_VERSION = "0.2.3"
# Provider ids that tenfold prices; the package's google holds the Gemini API and Vertex AI alike. Not zhipuai (the
# mainland site, other prices than z.ai) and no other reseller.
_PROVIDERS = (
    *("anthropic", "aws", "azure", "cohere", "deepseek", "fireworks", "google", "groq", "mistral", "moonshotai"),
    *("openai", "openrouter", "together", "x-ai", "zai"),
)
METERS = {
    "input_mtok": "uncached_input",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_long",
    "input_audio_mtok": "input_audio",
    "input_image_mtok": "input_image",
    "input_video_mtok": "input_video",
    "cache_audio_read_mtok": "cache_read_audio",
    "cache_image_read_mtok": "cache_read_image",
    "cache_video_read_mtok": "cache_read_video",
    "output_mtok": "output",
    "output_reasoning_mtok": "reasoning",
    "output_audio_mtok": "output_audio",
    "output_image_mtok": "output_image",
    "output_video_mtok": "output_video",
    "web_searches_kcount": "web_search",
    "storage_searches_kcount": "file_search",
    "requests_kcount": "request",
    "input_document_kpages": "page",
    "input_mchars": "character",
    "input_audio_hours": "audio_time",
    "audio_hours": "audio_time",
}
_REGIONS = (*PROFILES, "in")


class _Period(NamedTuple):
    """A price of the standard tier with its validity."""

    since: datetime | None
    until: datetime | None
    window: Window | None
    prices: ModelPrice


class _Where(NamedTuple):
    """What the prices of one model, tier and period apply to."""

    provider: str
    model: str
    tier: str
    region: str
    key: str


def read(provider: str | None = None) -> Reading:
    """Read the package's data; importing it fetches nothing.

    Start dates of a tier's prices are days of verification: the first of a model and tier takes the start of the
    standard prices in force that day, and only a later one is a change. Rates that a tier does not restate are those of
    the standard tier, as the package bills them, and carry a note.

    Args:
        provider: Only this one, in tenfold's spelling; None for all.

    Returns:
        The quotes, and what has no meter, tier or provider here.

    Raises:
        MissingPeerError: The package is not installed.
    """
    try:
        providers: list[Provider] = importlib.import_module("genai_prices.data").providers
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "genai_prices":
            raise
        raise MissingPeerError(
            f"{PACKAGE} is not installed here. Install it, then ask again: pip install {PACKAGE}=={KNOWN_VERSION}"
        ) from error
    made = Collector()
    for one in providers:
        if one.id not in _PROVIDERS:
            made.leave(f"provider {one.id}", len(one.models))
            continue
        for model in one.models:
            for where in _places(one, model):
                if provider in (None, where.provider):
                    _read_model(model, where, made)
    return made.reading(PACKAGE, metadata.version(PACKAGE))


def _places(provider: Provider, model: ModelInfo) -> Iterator[_Where]:
    """Say what a model's prices are for: Bedrock's inference profiles are regions here, Google is two surfaces."""
    key = f"{provider.id}/{model.id}"
    if provider.id == "google":
        if not model.id.startswith("claude"):
            yield _Where("google", model.id, "standard", "", key)
        yield _Where("vertex", model.id, "standard", "", key)
        return
    name = canonical_provider(provider.id)
    kind, _, bare = model.id.partition(".")
    if name != "bedrock" or kind not in ("global", "regional"):
        yield _Where(name, model.id, "standard", "", key)
        return
    named = set(re.findall(r"['/]([a-z-]+)\.", str(model.match)))
    for word in _REGIONS:
        if word in named and provider.find_model(f"{word}.{bare}") is model:
            yield _Where(name, bare, "standard", word, key)
    if kind == "regional" and provider.find_model(bare) is model:
        yield _Where(name, bare, "standard", "", key)


def _read_model(model: ModelInfo, where: _Where, made: Collector) -> None:
    periods = list(_periods(model))
    for period in periods:
        _read_prices(period, where, made)
    by_tier: dict[tuple[str, str], list[PriceVariant]] = {}
    for variant in model.price_variants or ():
        tier = _tier(variant.when)
        if tier is not None:
            by_tier.setdefault(tier, []).append(variant)
        elif _set_keys(variant.prices):
            made.leave(f"variant {_words(variant.when)}")
    for (tier, route), variants in by_tier.items():
        _read_tier(model, periods, variants, where._replace(tier=tier, region=where.region or route), made)


def _tier(when: dict[str, str]) -> tuple[str, str] | None:
    """Name the tier and region of a variant's condition; None where there is no such tier."""
    match sorted(when.items()):
        case [("processing", "batch")]:
            return "batch", ""
        case [("service_tier", tier)] if tier != "default":
            return tier, ""
        case [("speed", "fast")]:
            return "fast", ""
        case [("route", route)]:
            return "standard", route
        case _:
            return None


def _words(when: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(when.items()))


def _periods(model: ModelInfo) -> Iterator[_Period]:
    if not isinstance(model.prices, list):
        yield _Period(None, None, None, model.prices)
        return
    dated: list[tuple[datetime | None, ModelPrice]] = []
    for one in model.prices:
        window = _window(one)
        if window is not None:
            yield _Period(None, None, window, one.prices)
        else:
            dated.append((None if one.constraint is None else _midnight(_start(one)), one.prices))
    dated.sort(key=lambda pair: pair[0] or datetime.min.replace(tzinfo=UTC))
    ends = [since for since, _ in dated[1:]] + [None]
    for (since, prices), until in zip(dated, ends, strict=True):
        yield _Period(since, until, None, prices)


def _start(one: ConditionalPrice | PriceVariant) -> date | None:
    return getattr(one.constraint, "start_date", None)


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), UTC)


def _window(one: ConditionalPrice) -> Window | None:
    start: time | None = getattr(one.constraint, "start_time", None)
    end: time | None = getattr(one.constraint, "end_time", None)
    if start is None or end is None:
        return None
    first, last = start.hour * 60 + start.minute, (end.hour * 60 + end.minute) or 24 * 60
    hours = ((first, last),) if first < last else ((0, last), (first, 24 * 60))
    return Window(tuple(range(7)), hours, "UTC")


def _read_tier(
    model: ModelInfo, periods: list[_Period], variants: list[PriceVariant], where: _Where, made: Collector
) -> None:
    dated = [period for period in periods if period.window is None]
    starts = sorted(start for one in variants if (start := _midnight(_start(one))) is not None)
    verified = starts[0] if starts and all(_start(one) for one in variants) else None
    first = None
    if verified is not None:
        first = next((one.since for one in dated if one.until is None or verified < one.until), None)
    changes = {one.since for one in dated if one.since and (first is None or one.since > first)}
    bounds = [first, *sorted({*changes, *starts[1 if verified else 0 :]} - {None, first})]
    own = {key for one in variants for key in _set_keys(one.prices)}
    for since, until in zip(bounds, [*bounds[1:], None], strict=True):
        known = [instant for instant in (since, verified) if instant is not None]
        at = max(known) if known else (until or datetime(2026, 1, 1, tzinfo=UTC)) - timedelta(seconds=1)
        if until is not None and at >= until:
            at = until - timedelta(seconds=1)
        prices = model.get_prices(at, variants[0].when)
        if own & _set_keys(prices):
            _read_prices(_Period(since, until, None, prices), where, made, own)


def _set_keys(prices: ModelPrice) -> set[str]:
    return {key for key, value in vars(prices).items() if value is not None and not key.startswith("_")}


def _read_prices(period: _Period, where: _Where, made: Collector, own: set[str] | None = None) -> None:
    """Turn a period's prices to quotes.

    Args:
        period: Prices and when they hold.
        where: What they apply to.
        made: Collector of the quotes.
        own: Keys that the tier states itself; None for all.
    """
    keys = _set_keys(period.prices)
    for key in sorted(keys):
        meter = METERS.get(key)
        if meter is None:
            made.leave(key)
            continue
        if key == "audio_hours" and "input_audio_hours" in keys:
            continue  # the same figure twice
        note = "" if own is None or key in own else "as in the standard tier"
        for above, usd in _bands(getattr(period.prices, key)):
            quote = Quote(
                *where[:4], above, meter, usd, per_of(meter),
                period.since, period.until, period.window, note, where.key,
            )  # fmt: skip
            made.quotes.append(quote)


def _bands(price: object) -> Iterator[tuple[int, Decimal]]:
    if isinstance(price, Decimal | int):
        yield 0, Decimal(price)
        return
    yield 0, Decimal(getattr(price, "base"))  # noqa: B009 -- TieredPrices, which only the package can name
    for tier in getattr(price, "tiers"):  # noqa: B009
        yield int(tier.start), Decimal(tier.price)
