"""Prices in other currencies: kept as written, converted by a dated table (``currencies.toml``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field

from tenfold.errors import PriceFileError
from tenfold.money import scaled
from tenfold.prices.book import EVER, FOREVER, Entry, Key, PriceList
from tenfold.prices.models import Instant, Strict, as_decimal, parse_as

FILE = "currencies.toml"
_NO_RATE = f"{FILE} has no rate for that time"


class Conversion(Strict):
    """One ``[[rate]]`` table: USD for one unit of a currency, from an instant on."""

    currency: str = Field(pattern="^[A-Z]{3}$")
    usd: Annotated[Decimal, BeforeValidator(as_decimal), Field(gt=0)]
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    source: str = Field(min_length=1)


class CurrencyFile(Strict):
    """The whole file."""

    rate: list[Conversion] = Field(default=[])


def read(files: Iterable[tuple[str, bytes]]) -> tuple[Conversion, ...]:
    """Read the conversion table among the files of a folder.

    Args:
        files: Pairs of file name and bytes.

    Returns:
        Its rows, each with the instant at which the next of its currency takes over; empty without the file.

    Raises:
        PriceFileError: Something in it cannot be used, or two rows of a currency begin at the same instant.
    """
    content = dict(files).get(FILE)
    if content is None:
        return ()
    rows = parse_as(FILE, content, CurrencyFile, {"rate": Conversion}).rate
    made: list[Conversion] = []
    for currency in sorted({row.currency for row in rows}):
        own = sorted((row for row in rows if row.currency == currency), key=lambda row: row.valid_from or EVER)
        starts = [row.valid_from or EVER for row in own]
        if len(set(starts)) < len(starts):
            raise PriceFileError(f"{FILE}: two rates of {currency} begin at the same instant; keep one")
        for row, following in zip(own, [*starts[1:], FOREVER], strict=True):
            ends = min(row.valid_to or FOREVER, following)
            made.append(row.model_copy(update={"valid_from": row.valid_from or EVER, "valid_to": ends}))
    return tuple(made)


def converted(
    lists: Mapping[Key, tuple[PriceList, ...]], table: Iterable[Conversion]
) -> dict[Key, tuple[PriceList, ...]]:
    """Convert the price lists that are not in USD.

    Args:
        lists: Price lists as written.
        table: Rows of the conversion table.

    Returns:
        All lists in USD, split where a rate changes; a time without a rate is ambiguous and says why.
    """
    rows = tuple(table)
    made: dict[Key, tuple[PriceList, ...]] = {}
    for key, own in lists.items():
        made[key] = tuple(piece for one in own for piece in (_pieces(one, rows) if _is_foreign(one) else [one]))
    return made


def _is_foreign(one: PriceList) -> bool:
    return one.bands[0].currency != "USD" and not one.bands[0].exchange


def _pieces(one: PriceList, rows: tuple[Conversion, ...]) -> list[PriceList]:
    currency = one.bands[0].currency
    found: list[PriceList] = []
    reached = one.valid_from
    for row in rows:
        start, end = max(row.valid_from or EVER, reached), min(row.valid_to or FOREVER, one.valid_to)
        if row.currency == currency and start < end:
            found += _without(one, reached, start)
            bands = tuple(_in_usd(band, row) for band in one.bands)
            found.append(one._replace(valid_from=start, valid_to=end, bands=bands))
            reached = end
    return [*found, *_without(one, reached, one.valid_to)]


def _without(one: PriceList, start: datetime, end: datetime) -> list[PriceList]:
    if start >= end:
        return []
    why = f"the price is in {one.bands[0].currency} and {_NO_RATE}"
    bands = tuple(band._replace(rates=(None,) * len(band.rates), ambiguous=band.ambiguous or why) for band in one.bands)
    return [one._replace(valid_from=start, valid_to=end, bands=bands)]


def _in_usd(band: Entry, row: Conversion) -> Entry:
    try:
        rates = tuple(None if rate is None else scaled(rate, row.usd) for rate in band.native)
    except ValueError as error:
        raise PriceFileError(f"{FILE}: {band.currency} for {band.model}: {error}") from error
    said = f"{band.currency} at {row.usd} USD ({row.source}), rates rounded half-even to 1 pUSD"
    adjusted = "; ".join(part for part in (band.adjusted, said) if part)
    ambiguous = band.ambiguous if not band.ambiguous.endswith(_NO_RATE) else ""
    return band._replace(rates=rates, ambiguous=ambiguous, exchange=str(row.usd), adjusted=adjusted)
