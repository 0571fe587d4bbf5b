"""Price changes inside a window and after it, of models and tiers that were used in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from tenfold.ledger import Session
from tenfold.prices.book import FOREVER, PriceList
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
        source: Where the new price is from; the old one's, where the price ends.
        is_announced: It is announced, not in force yet.
        is_rise: A rate of it rises.
    """

    at: datetime
    provider: str
    model: str
    tier: str
    region: str
    rates: tuple[tuple[str, str, str], ...]
    source: str
    is_announced: bool = False
    is_rise: bool = False

    @property
    def is_end(self) -> bool:
        """Whether the price ends and no other takes over."""
        return not self.rates


def price_changes(session: Session) -> tuple[PriceChange, ...]:
    """Find the price changes of what was used in a session's window, from its start on.

    Args:
        session: A priced look at a store.

    Returns:
        The changes in time order, those after the window too; a price that merely begins is none.
    """
    since = session.window.since or datetime.min.replace(tzinfo=UTC)
    used = set(session.engine.fetch(f"select distinct price_key from {session.view_for(())}")["price_key"])
    found: dict[tuple[object, ...], PriceChange] = {}
    for key, match in session.card.matches.items():
        if key not in used:
            continue
        for change in (*_takeovers(match.lists), *_ends(match.lists)):
            if change.at >= since:
                found[change[:5]] = change
    return tuple(found[key] for key in sorted(found, key=str))


def _takeovers(lists: Sequence[PriceList]) -> Iterator[PriceChange]:
    for before, after in pairwise(lists):
        rates = _changed(before, after)
        if rates and before.valid_to == after.valid_from:
            pairs = zip(before.bands[0].rates, after.bands[0].rates, strict=True)
            rises = any(old is not None and new is not None and new > old for old, new in pairs)
            yield _change(after.valid_from, after, rates)._replace(is_rise=rises)


def _ends(lists: Sequence[PriceList]) -> Iterator[PriceChange]:
    last = max((one.valid_to for one in lists), default=FOREVER)
    if last < FOREVER:
        yield _change(last, next(one for one in lists if one.valid_to == last), ())


def _change(at: datetime, of: PriceList, rates: tuple[tuple[str, str, str], ...]) -> PriceChange:
    one = of.bands[0]
    announced = bool(rates) and one.status == "announced"
    return PriceChange(at, one.provider, one.model, one.tier, one.region, rates, one.source, announced)


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
