"""One price as another package states it, in tenfold's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from typing import NamedTuple

from tenfold.errors import TenfoldError
from tenfold.money import PUSD_PER_USD
from tenfold.prices.meters import meters
from tenfold.prices.windows import Window

_TWELVE = Context(prec=12, rounding=ROUND_HALF_EVEN)
_WIDE = Context(prec=60)
_WEEK = timedelta(days=7)
_MONDAY = 0


class MissingPeerError(TenfoldError):
    """A package whose prices were asked for is not installed; the message holds the command."""


class Quote(NamedTuple):
    """One price of a package.

    Args:
        provider: Who bills, in tenfold's spelling.
        model: Model id as the package has it, without the package's own routing prefixes.
        tier: Service tier.
        region: Price region; empty for none.
        above_input_tokens: The price holds above this total input, in tokens.
        meter: Name of the meter.
        usd: Price in USD for ``per`` units.
        per: Units the price is for: those of the meter in ``meters.toml``.
        valid_from: Start of its validity; None where the package knows none.
        valid_to: End, exclusive; None where the package knows none.
        window: Times of the week at which it holds, or None.
        note: What else is known.
        key: Where the package has it, for people.
    """

    provider: str
    model: str
    tier: str
    region: str
    above_input_tokens: int
    meter: str
    usd: Decimal
    per: int
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    window: Window | None = None
    note: str = ""
    key: str = ""

    @property
    def window_text(self) -> str:
        """The window in words; empty for none."""
        return "" if self.window is None else self.window.text()

    @property
    def pusd(self) -> Decimal:
        """The price in pUSD per unit; a fraction where it is finer than tenfold's money."""
        return _WIDE.divide(_WIDE.multiply(self.usd, PUSD_PER_USD), Decimal(self.per))

    def in_force(self, today: datetime) -> bool:
        """Tell whether the price is in force at an instant, hours aside.

        Args:
            today: An aware instant.

        Returns:
            Whether it is.
        """
        return (self.valid_from is None or self.valid_from <= today) and (
            self.valid_to is None or today < self.valid_to
        )

    def instant(self, today: datetime) -> datetime:
        """Choose an instant at which the price holds, to ask a book for the same.

        Args:
            today: Aware instant that is taken where the price is in force then.

        Returns:
            ``today``, else the price's own start or last moment; with a window, the window's first moment in a week
            that begins on a Monday, since a package that knows hours need not know weekdays.
        """
        at = today
        if not self.in_force(today):
            at = self.valid_from if self.valid_from is not None else today
            if self.valid_to is not None and self.valid_to <= at:
                at = self.valid_to - timedelta(microseconds=1)
        if self.window is None:
            return at
        monday = at + timedelta(days=(_MONDAY - at.weekday()) % 7)
        monday = monday.replace(hour=0, minute=0, second=0, microsecond=0)
        return next((start for start, _ in self.window.pieces(monday, monday + _WEEK)), at)


class Reading(NamedTuple):
    """What a package was found to say.

    Args:
        package: Name of the package as pip knows it.
        version: Its version; empty where only a file was given.
        quotes: Its prices.
        left_out: What it says that tenfold has no meter, tier or provider for, with how often.
    """

    package: str
    version: str
    quotes: tuple[Quote, ...]
    left_out: Mapping[str, int]

    @property
    def name(self) -> str:
        """Package and version, as sources in price files name them."""
        return f"{self.package} {self.version}".strip()


@dataclass
class Collector:
    """Quotes and what was left out, while a package is read."""

    quotes: list[Quote] = field(default_factory=list[Quote])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def leave(self, what: str, count: int = 1) -> None:
        """Note what has no place in tenfold's words.

        Args:
            what: Key or other name.
            count: How often it was met.
        """
        self.left_out[what] += count

    def reading(self, package: str, version: str) -> Reading:
        """Close the collection.

        Args:
            package: Name of the package.
            version: Its version.

        Returns:
            The reading; what was left out comes most frequent first.
        """
        return Reading(package, version, tuple(self.quotes), dict(self.left_out.most_common()))


@cache
def per_of(meter: str) -> int:
    """Give the number of units that prices of a meter are for.

    Args:
        meter: Name of the meter.

    Returns:
        The ``per`` of ``meters.toml``.
    """
    return next(one.per for one in meters() if one.name == meter)


def listed(usd: Decimal) -> Decimal:
    """Clean a listed price of float noise.

    Packages keep prices as floats per token: ``1.0000000000000001e-07`` was 0.1 USD per million. The value is rounded
    to 12 significant digits only if that is exact at six decimals and it was not before; any other stays as it is.

    Args:
        usd: Price in USD for the meter's units.

    Returns:
        The price a person would have listed.
    """
    if _is_listable(usd):
        return usd
    rounded = _TWELVE.plus(usd)
    return rounded if _is_listable(rounded) else usd


def providers_of(quotes: Iterable[Quote]) -> tuple[str, ...]:
    """Name the providers that quotes are for.

    Args:
        quotes: The quotes.

    Returns:
        Providers in alphabetical order.
    """
    return tuple(sorted({quote.provider for quote in quotes}))


def _is_listable(usd: Decimal) -> bool:
    exponent = usd.normalize(_WIDE).as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -6
