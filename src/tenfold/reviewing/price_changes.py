"""Price changes that fell inside a window, of models and tiers that were used in it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

from tenfold.ledger import Session
from tenfold.prices.book import PriceList
from tenfold.prices.meters import meters


class PriceChange(NamedTuple):
    """One change of one price list.

    Args:
        at: When it came into force (aware).
        provider: Who bills.
        model: Canonical model.
        tier: Service tier.
        region: Price region; empty for none.
        rates: (meter, old price, new price) as text in USD per million tokens (per 1,000 calls), base band only.
        source: Where the new price is from.
    """

    at: datetime
    provider: str
    model: str
    tier: str
    region: str
    rates: tuple[tuple[str, str, str], ...]
    source: str


def price_changes(session: Session) -> tuple[PriceChange, ...]:
    """Find the price changes of a session's window.

    Args:
        session: A priced look at a store, its window having both bounds.

    Returns:
        The changes in time order; a price that merely begins or ends is none.
    """
    since, until = session.window.since or datetime.min.replace(tzinfo=UTC), session.window.until
    used = set(session.engine.fetch(f"select distinct price_key from {session.view_for(())}")["price_key"])
    found: dict[tuple[object, ...], PriceChange] = {}
    for key, match in session.card.matches.items():
        if key not in used:
            continue
        for before, after in zip(match.lists, match.lists[1:], strict=False):
            inside = since <= after.valid_from and (until is None or after.valid_from < until)
            rates = _changed(before, after)
            if inside and rates and before.valid_to == after.valid_from:
                entry = after.bands[0]
                change = PriceChange(
                    after.valid_from, entry.provider, entry.model, entry.tier, entry.region, rates, entry.source
                )
                found[change[:5]] = change
    return tuple(found[key] for key in sorted(found, key=str))


def _changed(before: PriceList, after: PriceList) -> tuple[tuple[str, str, str], ...]:
    pairs = zip(meters(), before.bands[0].rates, after.bands[0].rates, strict=True)
    changed = [(meter.name, _usd(old, meter.per), _usd(new, meter.per)) for meter, old, new in pairs if old != new]
    decimals = max((_decimals(usd) for _, *rates in changed for usd in rates if usd is not None), default=2)
    return tuple((name, _text(old, decimals), _text(new, decimals)) for name, old, new in changed)


def _usd(rate: int | None, per: int) -> Decimal | None:
    return None if rate is None else (Decimal(rate) * per).scaleb(-12).normalize()


def _decimals(usd: Decimal) -> int:
    """Count the decimals that a price needs, cents at least; all prices of a change get the same number."""
    return max(2, -int(usd.as_tuple().exponent))


def _text(usd: Decimal | None, decimals: int) -> str:
    return "no price" if usd is None else f"${usd:.{decimals}f}"
