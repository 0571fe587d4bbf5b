"""The price of a single call, for billing pipelines: the ledger's rules in plain Python, no engine imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple, cast

from tenfold.errors import UsageError
from tenfold.money import to_usd, usd_text
from tenfold.prices.book import EVER, FOREVER, Entry, Match, PriceBook, PriceList
from tenfold.prices.meters import METER_NAMES, card_rates, counted, is_free, meters
from tenfold.prices.opening import shipped_book
from tenfold.prices.units import billed, disjoint, puzzle, without_rate
from tenfold.usage import Tokens, Usage, tokens_from
from tenfold.usage.keywords import Core, core_of_plain

_CORE_METERS = tuple(
    METER_NAMES.index(name) for name in ("uncached_input", "cache_read", "cache_write", "cache_write_long", "output")
)
_REQUEST = METER_NAMES.index("request")
_new = cast("Callable[[type[CallPrice], tuple[object, ...]], CallPrice]", tuple.__new__)


class MeterCost(NamedTuple):
    """One line of a call's bill.

    Args:
        units: Disjoint units of the meter.
        rate_pusd: Rate per unit (per hour for a meter by time); None where there is no price.
        cost_pusd: Their product; None unless the call is priced.
    """

    units: int
    rate_pusd: int | None
    cost_pusd: int | None


_NO_UNITS: Mapping[int, int] = {}


class Basis(NamedTuple):
    """What a price rests on.

    Args:
        status: As ``CallPrice.status``.
        reason: Why there is no cost; empty where there is one.
        found: How the id was matched.
        price_list: The list in force, or None.
        entry: The entry, or None.
        card_version: The book's version.
        units: Place of the meter to disjoint units; empty where the core counts tell.
        flags: What was odd about the usage (``total_mismatch``, ``convention_by_total``).
    """

    status: str
    reason: str
    found: Match
    price_list: PriceList | None
    entry: Entry | None
    card_version: str
    units: Mapping[int, int] = _NO_UNITS
    flags: tuple[str, ...] = ()


class CallPrice(NamedTuple):
    """What one call costs, and why.

    Args:
        cost_pusd: Cost in pUSD; None unless priced or known_zero.
        basis: Status, reason, match and entry.
        core: The counts, where they are only the usual ones.
    """

    cost_pusd: int | None
    basis: Basis
    core: Core | None = None

    @property
    def cost_usd(self) -> Decimal | None:
        """Cost in USD, exactly; None unless priced or known_zero."""
        return None if self.cost_pusd is None else to_usd(self.cost_pusd)

    @property
    def status(self) -> str:
        """priced, known_zero, unpriced_model, unpriced_meter, usage_missing, usage_partial or ambiguous."""
        return self.basis.status

    @property
    def reason(self) -> str:
        """Why there is no cost; empty where there is one."""
        return self.basis.reason

    @property
    def entry(self) -> Entry | None:
        """The price entry; None where none applies."""
        return self.basis.entry

    @property
    def how_matched(self) -> str:
        """exact, alias, prefix, dated_id, fine_tune, pattern, override or none."""
        return self.basis.found.how_priced(self.basis.entry)

    @property
    def flags(self) -> tuple[str, ...]:
        """What was odd about the usage: its total fits no reading of its parts, or proves another convention."""
        return self.basis.flags

    @property
    def card_version(self) -> str:
        """The book's version."""
        return self.basis.card_version

    @property
    def valid_from(self) -> datetime | None:
        """Start of the price's validity; None where it has no known start."""
        one = self.basis.price_list
        return None if one is None or one.valid_from == EVER else one.valid_from

    @property
    def valid_to(self) -> datetime | None:
        """End of the price's validity; None where none is known."""
        one = self.basis.price_list
        return None if one is None or one.valid_to == FOREVER else one.valid_to

    @property
    def meters(self) -> Mapping[str, MeterCost]:
        """Meters that occur: units, rate and cost."""
        entry = self.basis.entry
        units = self.basis.units if self.core is None else _core_units(self.core)
        if entry is None:
            return {}
        costs = {} if self.cost_pusd is None else billed(units, entry.rates)
        return {
            name: MeterCost(units[i], entry.rates[i], costs.get(i))
            for i, name in enumerate(METER_NAMES)
            if units.get(i)
        }

    def __repr__(self) -> str:
        cost = "no price" if self.cost_pusd is None else f"{usd_text(self.cost_pusd)} USD"
        return f"<CallPrice {cost}, {self.status}, {self.how_matched}, prices {self.card_version}>"

    def _repr_html_(self) -> str:
        """Show the call's bill in a notebook."""
        from tenfold import tables  # not in the way of pricing

        entry = self.entry
        title = "No price" if self.cost_pusd is None else f"{usd_text(self.cost_pusd)} USD"
        lines = [self.reason] if self.reason else []
        lines += [f"{entry.provider} {entry.model}, matched: {self.how_matched}"] if entry else []
        columns = [tables.Column("meter", "meter"), tables.Column("units", "units", "count")]
        columns += [tables.Column("cost", "USD", "number")]
        rows = [
            (name.replace("_", " "), line.units, usd_text(line.cost_pusd) or "no price")
            for name, line in self.meters.items()
        ]
        table = [tables.grid("call", "Its bill", columns, rows)] if rows else []
        return tables.card(title, [*lines, f"card {self.card_version}"], *table)

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold price --json``.

        Returns:
            ``status``, ``cost_usd``, ``meters{}``, ``entry{}``, ``how_matched``, ``reason``, ``flags``,
            ``card_version``.
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
            "flags": list(self.flags),
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
    used = shipped_book() if book is None else book
    try:
        # The usual call: known ids, usual counts, an aware instant. Whatever does not fit goes the long way below.
        spans = used.fast[provider, model, tier, region]
        core = usage.core if type(usage) is Usage else core_of_plain(usage)
        whole, out, read, write, long = cast("Core", core)  # None raises TypeError
        for since, until, above, up_to, fresh, outs, by_read, by_write, by_long, basis in spans:
            if since <= at < until and above < whole <= up_to:
                # All input at the fresh rate, and what reads and writes differ from it. A missing rate: TypeError.
                cost = whole * fresh + out * outs
                if read:
                    cost += read * by_read
                if write:
                    cost += write * by_write
                    if long:
                        cost += long * by_long
                return _new(CallPrice, (cost, basis, core))
    except (KeyError, TypeError, AttributeError):
        pass
    return _looked_up(used, provider, model, instant_of(at), usage, tier, region)


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
        if not isinstance(at, date):  # pyright: ignore[reportUnnecessaryIsInstance] -- pipelines hand over what they got
            raise UsageError(f"at {at!r} is no instant; give an aware datetime, a date, or text such as 2026-10-01")
        return datetime.combine(at, time(), UTC)
    if at.utcoffset() is None:
        raise UsageError(f"{at.isoformat()} has no zone, so the price date is unknown; add Z or an offset")
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise UsageError(f"{at.isoformat()} lies outside the calendar") from error


def _looked_up(
    book: PriceBook,
    provider: str,
    model: str,
    instant: datetime,
    usage: Mapping[str, object],
    tier: str | None,
    region: str | None,
) -> CallPrice:
    for name, word in (("provider", provider), ("model", model), ("tier", tier), ("region", region)):
        if not isinstance(word, str | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- as above
            raise UsageError(f"{name} {word!r} is no text")
    tokens = tokens_from(usage)
    found = book.match(provider, model, tier or tokens.tier_hint, region or tokens.region_hint)
    if (provider, model, tier, region) not in book.fast and not tokens.tier_hint and not tokens.region_hint:
        book.fast[provider, model, tier, region] = _spans(found, book)
    price_list = found.at(instant)
    if tokens.input_tokens is None or tokens.output_tokens is None:
        whole = tokens.input_tokens is None and tokens.output_tokens is None
        status = "usage_missing" if whole else "usage_partial"
        reason = (
            "the usage names no total for input, output or both (0 where there is none, as for audio billed by time)"
        )
        return CallPrice(None, Basis(status, reason, found, price_list, None, book.version))
    if price_list is None:
        return CallPrice(None, Basis("unpriced_model", found.missing(instant), found, None, None, book.version))
    entry = price_list.band(tokens.input_tokens)
    if entry.ambiguous:
        return CallPrice(None, Basis("ambiguous", entry.ambiguous, found, price_list, entry, book.version))
    return _priced(tokens, entry, found, price_list, book)


def _priced(tokens: Tokens, entry: Entry, found: Match, price_list: PriceList, book: PriceBook) -> CallPrice:
    rates = card_rates(entry.rates)
    units = disjoint(tokens, rates, entry.audio_min_ms, entry.audio_step_ms)
    without = without_rate(tokens, rates)
    status, reason = "priced", ""
    if without or tokens.unknown_meters:
        missing = ", ".join([*without, *tokens.unknown_meters])
        status, reason = "unpriced_meter", f"{entry.model} ({entry.tier}) has no price for {missing}"
    elif why := puzzle(tokens, rates):
        status, reason = "ambiguous", why
    elif is_free(entry.rates):
        status = "known_zero"
    shown = _NO_UNITS if status == "ambiguous" else units
    basis = Basis(status, reason, found, price_list, entry, book.version, shown, tokens.flags)
    if status not in ("priced", "known_zero"):
        return CallPrice(None, basis)
    return CallPrice(sum(billed(units, rates).values()), basis)


# From, to, above and up to this input; fresh and output rate; what a read, a write and a long write differ by; basis.
_Span = tuple[datetime, datetime, int, int, Any, Any, Any, Any, Any, Basis]


def _spans(found: Match, book: PriceBook) -> tuple[_Span, ...]:
    """Make a match ready to multiply, the latest price first; nothing where hours or fees decide."""
    if any(one.window is not None or _needs_look(one) for one in found.lists):
        return ()
    return tuple(_span(entry, one, found, book) for one in reversed(found.lists) for entry in one.bands)


def _span(entry: Entry, one: PriceList, found: Match, book: PriceBook) -> _Span:
    fresh, read, write, long, out = (entry.rates[i] for i in _CORE_METERS)
    status = "known_zero" if is_free(entry.rates) else "priced"
    basis = Basis(status, "", found, one, entry, book.version)
    by_read, by_write, by_long = _less(read, fresh), _less(write, fresh), _less(long, write)
    return one.valid_from, one.valid_to, entry.above, entry.up_to, fresh, out, by_read, by_write, by_long, basis


def _less(rate: int | None, base: int | None) -> int | None:
    return None if rate is None or base is None else rate - base


def _needs_look(one: PriceList) -> bool:
    return any(entry.ambiguous or entry.rates[_REQUEST] is not None for entry in one.bands)


def _core_units(core: Core) -> dict[int, int]:
    whole, out, read, write, long = core
    return dict(zip(_CORE_METERS, (whole - read - write, read, write - long, long, out), strict=True))
