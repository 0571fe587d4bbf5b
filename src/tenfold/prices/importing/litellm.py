"""Read litellm's price table, a JSON file, without importing litellm (which is heavy and fetches at import)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast

from tenfold.errors import PriceFileError
from tenfold.prices.importing.quotes import Collector, MissingPeerError, Quote, Reading, listed, per_of
from tenfold.prices.meters import meters
from tenfold.prices.windows import Window, window
from tenfold.prices.words import PROFILES, PROVIDERS, canonical_provider

PACKAGE = "litellm"
KNOWN_VERSION = "1.110.2"
FILE = "model_prices_and_context_window_backup.json"

# litellm_provider where it is none of tenfold's spellings; what follows "vertex_ai-" or "fireworks_ai-" is no provider.
_PROVIDERS = {"azure_text": "azure", "bedrock_mantle": "bedrock"}
_FAMILIES = ("vertex_ai", "fireworks_ai")
_MILLION, _THOUSAND, _HOUR = 1_000_000, 1_000, 3_600
# Key (longest first) to meter and to what its amount is multiplied by to give USD for the meter's units.
_KEYS: dict[str, tuple[str, int]] = {
    "cache_creation_input_token_cost_above_12hr": ("cache_write_long", _MILLION),
    "cache_creation_input_token_cost_above_1hr": ("cache_write_long", _MILLION),
    "cache_creation_input_token_cost": ("cache_write", _MILLION),
    "cache_read_input_audio_token_cost": ("cache_read_audio", _MILLION),
    "cache_read_input_image_token_cost": ("cache_read_image", _MILLION),
    "cache_read_input_token_cost": ("cache_read", _MILLION),
    "input_cost_per_audio_token": ("input_audio", _MILLION),
    "input_cost_per_image_token": ("input_image", _MILLION),
    "input_cost_per_video_token": ("input_video", _MILLION),
    "input_cost_per_token": ("uncached_input", _MILLION),
    "output_cost_per_reasoning_token": ("reasoning", _MILLION),
    "output_cost_per_audio_token": ("output_audio", _MILLION),
    "output_cost_per_image_token": ("output_image", _MILLION),
    "output_cost_per_video_token": ("output_video", _MILLION),
    "output_cost_per_token": ("output", _MILLION),
    "google_maps_grounding_cost_per_query": ("maps_search", _THOUSAND),
    "code_interpreter_cost_per_session": ("code_session", 1),
    "input_cost_per_query": ("request", _THOUSAND),
    "ocr_cost_per_page": ("page", _THOUSAND),
}
# Keys that bill only in some modes of use: elsewhere they are another way to state the token price.
_BY_MODE: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "input_cost_per_character": ("character", _MILLION, ("audio_speech",)),
    "input_cost_per_second": ("audio_time", _HOUR, ("audio_transcription", "realtime")),
    "output_cost_per_second": ("output_time", _HOUR, ("video_generation",)),
    "output_cost_per_video_per_second": ("output_time", _HOUR, ("video_generation",)),
    "output_cost_per_image": ("image", 1, ("image_generation",)),
    "input_cost_per_image": ("image", 1, ("image_generation",)),
}
_SUFFIX = re.compile(r"(?:_above_(\d+)k_tokens)?(?:_(batches|flex|priority|ultrafast|balanced|decisions))?")
# Factors on every token rate of the standard tier, for a region or for a tier of its own.
_REGION_FACTORS = {
    "regional_processing_uplift_multiplier_eu": "eu",
    "regional_processing_uplift_multiplier_us": "us",
    "regional_endpoint_uplift_multiplier": "regional",
}
_DAY_MINUTES = 24 * 60
_ISO_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_REGIONS = (*PROFILES, "in")
_AZURE_PLACES = ("global", "global-standard", "us", "eu", "apac", "us-gov")
_AWS_PLACE = re.compile(r"(?:us-gov|us|eu|ap|ca|sa|me|af|il|mx)-[a-z]+-\d")
_MONEY = ("cost", "pricing", "multiplier", "ptu")


class _Amount(NamedTuple):
    """One amount of a row: to what it applies and how much it is."""

    tier: str
    above: int
    meter: str
    usd: Decimal
    window: Window | None = None


def read(path: Path | None = None, provider: str | None = None) -> Reading:
    """Read the table of the installed package, or of a file; no code of the package runs.

    Amounts are floats per token. Each is taken as its shortest decimal, ``Decimal(repr(float))``, times the meter's
    units; a product with float noise is rounded to 12 significant digits only if that is exact at six decimals, and
    stays as it is otherwise.

    Args:
        path: The JSON file; None for the installed package's.
        provider: Only this one, in tenfold's spelling; None for all.

    Returns:
        The quotes, and the keys that have no meter, tier or provider here.

    Raises:
        MissingPeerError: The package is not installed.
        PriceFileError: The file is no price table of litellm.
    """
    version = ""
    if path is None:
        path, version = installed(), metadata.version(PACKAGE)
    try:
        rows = json.loads(path.read_bytes(), parse_float=_shortest)
    except ValueError as error:
        raise PriceFileError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(rows, dict):
        raise PriceFileError(f"{path}: no price table of litellm; it is one JSON object of models ({FILE})")
    made = Collector()
    for key, row in cast("dict[str, Any]", rows).items():
        if key == "sample_spec" or not isinstance(row, dict):
            continue
        row = cast("dict[str, Any]", row)
        name = _provider(str(row.get("litellm_provider") or ""))
        if name not in PROVIDERS:
            made.leave(f"provider {name or '(none)'}")
        elif provider in (None, name):
            _read_row(key, name, row, made)
    return made.reading(PACKAGE, version)


def installed() -> Path:
    """Find the installed package's table.

    Returns:
        Path of the JSON file.

    Raises:
        MissingPeerError: The package, or the file in it, is not there.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingPeerError(
            f"{PACKAGE} is not installed here. Install its data alone, then ask again: "
            f"pip install --no-deps {PACKAGE}=={KNOWN_VERSION}; or name the file: --from {FILE}"
        )
    found = Path(spec.origin).with_name(FILE)
    if not found.is_file():
        raise MissingPeerError(
            f"{found} is not there; install {PACKAGE}=={KNOWN_VERSION}, or name the file with --from"
        )
    return found


def _shortest(text: str) -> Decimal:
    return Decimal(repr(float(text)))


def _provider(name: str) -> str:
    family = name.split("-", 1)[0]
    return canonical_provider(family if family in _FAMILIES else _PROVIDERS.get(name, name))


def _read_row(key: str, provider: str, row: Mapping[str, Any], made: Collector) -> None:
    model, region = place(key, provider)
    amounts = list(_amounts(row, made))
    factors = _factors(row, made)
    token_meters = {meter.name for meter in meters() if meter.unit == "tokens"}
    for one in amounts:
        quote = Quote(
            provider, model, one.tier, region, one.above, one.meter, listed(one.usd), per_of(one.meter),
            window=one.window, key=key,
        )  # fmt: skip
        made.quotes.append(quote)
        for tier, place_of, factor in factors:
            if tier and one.tier != "standard":
                continue
            usd = listed(one.usd * factor) if one.meter in token_meters else quote.usd
            made.quotes.append(
                quote._replace(
                    tier=tier or one.tier,
                    region=place_of or region,
                    usd=usd,
                    note=f"times {factor.normalize():f}" if one.meter in token_meters else "",
                )
            )


def _factors(row: Mapping[str, Any], made: Collector) -> list[tuple[str, str, Decimal]]:
    found = [("", region, Decimal(row[key])) for key, region in _REGION_FACTORS.items() if row.get(key)]
    for word, value in cast("dict[str, Any]", row.get("provider_specific_entry") or {}).items():
        if word == "fast":
            found.append(("fast", "", Decimal(value)))
        elif word == "us":
            found.append(("", "us", Decimal(value)))
        else:
            made.leave(f"provider_specific_entry.{word}")
    return found


def place(key: str, provider: str) -> tuple[str, str]:
    """Split a key of the table into model id and price region.

    Args:
        key: Such as ``azure/us/gpt-4o`` or ``bedrock/eu-west-1/anthropic.claude-v2``.
        provider: Who bills, in tenfold's spelling.

    Returns:
        Model id without routing prefixes, and region (empty for none).
    """
    head, slash, rest = key.partition("/")
    model = rest if slash and _provider(head) == provider else key
    if provider == "azure":
        head, slash, rest = model.partition("/")
        return (rest, head) if slash and head in _AZURE_PLACES else (model, "")
    if provider == "bedrock":
        model = model.removeprefix("invoke/")
        head, slash, rest = model.partition("/")
        region = head if slash and _AWS_PLACE.fullmatch(head) else ""
        model = rest if region else model
        head, dot, rest = model.partition(".")
        return (rest, region or head) if dot and head in _REGIONS else (model, region)
    return model, ""


def _amounts(row: Mapping[str, Any], made: Collector) -> Iterator[_Amount]:
    off_peak = cast("dict[str, Any] | None", row.get("off_peak_pricing"))
    windows = _windows(off_peak) if off_peak else ()
    peak: tuple[Window | None, ...] = _complement(windows) if windows else (None,)
    for amount in _scalars(row, made):
        for one in peak if amount.tier == "standard" else (None,):
            yield amount._replace(window=one)
    for amount in _scalars(off_peak or {}, made):
        for one in windows:
            yield amount._replace(window=one)
    for band in cast("list[dict[str, Any]]", row.get("tiered_pricing") or []):
        span = band.get("range")
        if not span:
            made.leave("tiered_pricing (not by tokens)")
            continue
        for amount in _scalars(band, made):
            yield amount._replace(above=int(span[0]))
    sizes = cast("dict[str, Any]", row.get("search_context_cost_per_query") or {})
    if len(set(sizes.values())) == 1:
        yield _Amount("standard", 0, "web_search", next(iter(sizes.values())) * _THOUSAND)
    elif sizes:
        made.leave("search_context_cost_per_query (by size)")


def _scalars(row: Mapping[str, Any], made: Collector) -> Iterator[_Amount]:
    for key, value in row.items():
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        if not is_number or key in _REGION_FACTORS or not any(word in key for word in _MONEY):
            continue
        found = _one(key, Decimal(value), row)
        if found is None:
            made.leave(key)
        else:
            yield found


def _one(key: str, value: Decimal, row: Mapping[str, Any]) -> _Amount | None:
    for prefix, (meter, times) in _KEYS.items():
        if key.startswith(prefix):
            tail = _SUFFIX.fullmatch(key[len(prefix) :])
            if tail is not None:
                tier = {"batches": "batch"}.get(tail[2] or "", tail[2] or "standard")
                return _Amount(tier, int(tail[1] or 0) * _THOUSAND, meter, value * times)
    if key in _BY_MODE and row.get("mode") in _BY_MODE[key][2] and not _by_token(key, row):
        meter, times, _ = _BY_MODE[key]
        return _Amount("standard", 0, meter, value * times)
    return None


def _by_token(key: str, row: Mapping[str, Any]) -> bool:
    """Tell whether the row prices the same thing by the token, so that this key is a second statement of it."""
    if "image" in key:
        return "output_cost_per_image_token" in row or "input_cost_per_token" in row
    return key == "input_cost_per_second" and "input_cost_per_audio_token" in row


def _windows(off_peak: Mapping[str, Any]) -> tuple[Window, ...]:
    found: list[Window] = []
    for one in cast("list[dict[str, Any]]", off_peak.get("windows") or []):
        hours = cast("str | list[str]", one.get("hours_utc") or [])
        ranges = [hours] if isinstance(hours, str) else hours
        ranges = [text.removesuffix("-00:00") + "-24:00" if text.endswith("-00:00") else text for text in ranges]
        days = [_ISO_DAYS[int(day) - 1] for day in cast("list[int]", one.get("weekdays") or range(1, 8))]
        made = window(days, ranges, "UTC")
        if made is not None:
            found.append(made)
    return tuple(found)


def _complement(windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """Give the times of the week that no window covers: what the row's plain prices hold at."""
    free: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for day in range(7):
        taken = sorted(hours for one in windows if day in one.weekdays for hours in one.hours)
        left: list[tuple[int, int]] = []
        begin = 0
        for start, end in [*taken, (_DAY_MINUTES, _DAY_MINUTES)]:
            if begin < start:
                left.append((begin, start))
            begin = max(begin, end)
        if left:
            free.setdefault(tuple(left), []).append(day)
    return tuple(Window(tuple(days), hours, windows[0].zone) for hours, days in free.items())
