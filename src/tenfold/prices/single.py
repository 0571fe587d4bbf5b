"""The price of a single call, for billing pipelines: the ledger's rules in plain Python, no engine imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from tenfold.errors import UsageError
from tenfold.money import to_usd, usd_text
from tenfold.prices.book import EVER, FOREVER, Entry, Match, PriceBook, PriceList
from tenfold.prices.compiling import price_book
from tenfold.prices.meters import METER_NAMES, counted, meters
from tenfold.usage import Tokens, tokens_from

_MEDIA = ("input_audio", "input_image", "input_video")


@dataclass(frozen=True, slots=True)
class MeterCost:
    """One line of a call's bill.

    Args:
        units: Disjoint units of the meter (tokens or calls).
        rate_pusd: Rate per unit; None where there is no price.
        cost_pusd: Their product; None unless the call is priced.
    """

    units: int
    rate_pusd: int | None
    cost_pusd: int | None


@dataclass(frozen=True, slots=True)
class CallPrice:
    """What one call costs, and why.

    Args:
        status: priced, known_zero, unpriced_model, unpriced_meter, usage_missing, usage_partial or ambiguous.
        cost_pusd: Cost in pUSD; None unless priced or known_zero.
        meters: Meters that occur.
        entry: The price entry; None where none applies.
        valid_from: Start of its validity; None where the price has no known start.
        valid_to: End of its validity; None where none is known.
        how_matched: exact, alias, prefix, dated_id, fine_tune or none.
        reason: Why there is no cost; empty where there is one.
        card_version: The book's version.
    """

    status: str
    cost_pusd: int | None
    meters: Mapping[str, MeterCost]
    entry: Entry | None
    valid_from: datetime | None
    valid_to: datetime | None
    how_matched: str
    reason: str
    card_version: str

    @property
    def cost_usd(self) -> Decimal | None:
        """Cost in USD, exactly; None unless priced or known_zero."""
        return None if self.cost_pusd is None else to_usd(self.cost_pusd)

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold price --json``.

        Returns:
            ``status``, ``cost_usd``, ``meters{}``, ``entry{}``, ``how_matched``, ``reason``, ``card_version``.
        """
        unit = {meter.name: meter.unit for meter in meters()}
        return {
            "status": self.status,
            "cost_usd": usd_text(self.cost_pusd),
            "meters": {
                name: {
                    **counted(unit[name], line.units),
                    "rate_pusd": line.rate_pusd,
                    "cost_usd": usd_text(line.cost_pusd),
                }
                for name, line in self.meters.items()
            },
            "entry": self.entry and self.entry.as_dict(self.valid_from, self.valid_to),
            "how_matched": self.how_matched,
            "reason": self.reason or None,
            "card_version": self.card_version,
        }


def price(
    *,
    provider: str,
    model: str,
    at: datetime | date | str,
    usage: Mapping[str, object],
    tier: str | None = None,
    region: str | None = None,
    book: PriceBook | None = None,
) -> CallPrice:
    """Price one call.

    Args:
        provider: Who bills, in any known spelling.
        model: Model id as served.
        at: Start of the call: an aware instant, ISO text with a zone, or a date (00:00 UTC).
        usage: ``tf.Usage(...)``, counts by tenfold's names (inclusive totals), or a provider's own usage object.
        tier: Service tier; by default the one the usage object answers, else standard.
        region: Price region; by default the one the usage object answers, else none.
        book: The price book; the shipped one by default.

    Returns:
        The price, with its meters and its entry. A call without a price has ``cost_pusd`` None and a reason.

    Raises:
        UsageError: The usage is impossible or ambiguous, or ``at`` has no zone.

    Source: DESIGN "Rules that hold everywhere": bands are cliffs on total input, meters are disjoint, rates are exact.
    """
    book = book or price_book()
    instant = instant_of(at)
    tokens = tokens_from(usage)
    found = book.match(provider, model, tier or tokens.tier_hint, region or tokens.region_hint)
    price_list = found.at(instant)
    if tokens.input_tokens is None or tokens.output_tokens is None:
        whole = tokens.input_tokens is None and tokens.output_tokens is None
        status = "usage_missing" if whole else "usage_partial"
        return _unpriced(status, "the usage names no total for input, output or both", found, price_list, book)
    if price_list is None:
        reason = found.reason or f"{found.model} has no price at {instant.isoformat()}"
        return _unpriced("unpriced_model", reason, found, None, book)
    entry = price_list.band(tokens.input_tokens)
    if entry.ambiguous:
        return _unpriced("ambiguous", entry.ambiguous, found, price_list, book, entry)
    return _priced(tokens, entry, found, price_list, book)


def instant_of(at: datetime | date | str) -> datetime:
    """Read an instant; a bare date is 00:00 UTC of that day.

    Args:
        at: Instant, date, or ISO text of either.

    Returns:
        The aware instant.

    Raises:
        UsageError: The text is no instant, or it has a clock time and no zone.
    """
    if isinstance(at, str):
        try:
            at = date.fromisoformat(at) if len(at) <= 10 else datetime.fromisoformat(at)
        except ValueError as error:
            raise UsageError(f'"{at}" is no instant; write 2026-10-01 or 2026-10-01T12:00:00Z') from error
    if not isinstance(at, datetime):
        return datetime.combine(at, time(), UTC)
    if at.tzinfo is None:
        raise UsageError(f"{at.isoformat()} has no zone, so the price date is unknown; add Z or an offset")
    return at.astimezone(UTC)


def _units(tokens: Tokens, entry: Entry) -> tuple[int, ...]:
    rates = dict(zip(METER_NAMES, entry.rates, strict=True))
    total_in, total_out = tokens.input_tokens or 0, tokens.output_tokens or 0
    reads, writes = tokens.cache_read_tokens or 0, tokens.cache_write_tokens or 0
    long = tokens.cache_write_long_tokens or 0
    image = (tokens.input_image_tokens or 0) if rates["input_image"] is not None else 0
    video = (tokens.input_video_tokens or 0) if rates["input_video"] is not None else 0
    audio = (tokens.input_audio_tokens or 0) if rates["input_audio"] != rates["uncached_input"] else 0
    reasoning = (tokens.reasoning_tokens or 0) if rates["reasoning"] is not None else 0
    audio_out, image_out = tokens.output_audio_tokens or 0, tokens.output_image_tokens or 0
    return (
        total_in - reads - writes - image - video - audio,
        reads,
        writes - long,
        long,
        audio,
        image,
        video,
        total_out - reasoning - audio_out - image_out,
        reasoning,
        audio_out,
        image_out,
        tokens.web_searches or 0,
    )


def _priced(tokens: Tokens, entry: Entry, found: Match, price_list: PriceList, book: PriceBook) -> CallPrice:
    units = _units(tokens, entry)
    by_name = dict(zip(METER_NAMES, units, strict=True))
    without = [name for name, rate in zip(METER_NAMES, entry.rates, strict=True) if rate is None and by_name[name] > 0]
    status, reason = "priced", ""
    media = sum(by_name[name] for name in _MEDIA)
    if without or tokens.unknown_meters:
        missing = ", ".join([*without, *tokens.unknown_meters])
        status, reason = "unpriced_meter", f"{entry.model} ({entry.tier}) has no price for {missing}"
    elif media and (by_name["cache_read"] or tokens.cache_write_tokens):
        status, reason = "ambiguous", "media tokens are priced apart and may overlap the cached ones"
    elif _overlaps(tokens) and media + by_name["reasoning"] + by_name["output_audio"] + by_name["output_image"]:
        status, reason = "ambiguous", "the parts of input or output exceed their total, and some are priced apart"
    elif not any(entry.rates):
        status = "known_zero"
    is_priced = status in ("priced", "known_zero")
    lines = {
        name: MeterCost(count, rate, count * (rate or 0) if is_priced else None)
        for name, count, rate in zip(METER_NAMES, units, entry.rates, strict=True)
        if count
    }
    cost = sum(line.cost_pusd or 0 for line in lines.values()) if is_priced else None
    return CallPrice(status, cost, lines, entry, *_validity(price_list), found.how, reason, book.version)


def _overlaps(tokens: Tokens) -> bool:
    parts_in = (
        tokens.cache_read_tokens, tokens.cache_write_tokens, tokens.input_audio_tokens,
        tokens.input_image_tokens, tokens.input_video_tokens,
    )  # fmt: skip
    parts_out = (tokens.output_audio_tokens, tokens.output_image_tokens, tokens.reasoning_tokens)
    total_in, total_out = tokens.input_tokens or 0, tokens.output_tokens or 0
    return sum(part or 0 for part in parts_in) > total_in or sum(part or 0 for part in parts_out) > total_out


def _unpriced(
    status: str,
    reason: str,
    found: Match,
    price_list: PriceList | None,
    book: PriceBook,
    entry: Entry | None = None,
) -> CallPrice:
    return CallPrice(status, None, {}, entry, *_validity(price_list), found.how, reason, book.version)


def _validity(price_list: PriceList | None) -> tuple[datetime | None, datetime | None]:
    if price_list is None:
        return None, None
    since = None if price_list.valid_from == EVER else price_list.valid_from
    return since, None if price_list.valid_to == FOREVER else price_list.valid_to
