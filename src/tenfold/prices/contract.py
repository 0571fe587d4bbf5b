"""Your own prices: discounts on list prices and commitments, from ``contract.toml`` in a folder of price files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

from pydantic import Field

from tenfold.errors import PriceFileError, near
from tenfold.money import MOST_PUSD, WIDE, scaled
from tenfold.prices.book import EVER, FOREVER, Commitment, Entry, Key, PriceList
from tenfold.prices.globs import matches
from tenfold.prices.meters import meters
from tenfold.prices.models import Amount, Instant, Strict, decimal, parse_as
from tenfold.prices.words import canonical_provider, canonical_tier, profile_of

FILE = "contract.toml"
Ids: TypeAlias = Mapping[tuple[str, str], tuple[str, str]]


class Discount(Strict):
    """One ``[[discount]]`` table: a percentage off the list rates it names, from a date on."""

    provider: str = Field(min_length=1)
    models: list[str] = Field(default=[])
    tiers: list[str] = Field(default=[])
    meters: list[str] = Field(default=[])
    percent: Amount
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    source: str = Field(min_length=1)
    note: str = ""


class CommitmentTable(Strict):
    """One ``[[commitment]]`` table: capacity paid by the hour, or an amount to be spent in a window."""

    name: str = Field(min_length=1)
    provider: str = Field(min_length=1)
    models: list[str] = Field(default=[])
    tiers: list[str] = Field(default=[])
    usd_per_hour: Amount | None = None
    units: int = Field(default=1, ge=1)
    usd: Amount | None = None
    valid_from: Instant
    valid_to: Instant
    source: str = Field(min_length=1)
    note: str = ""


class ContractFile(Strict):
    """The whole file."""

    discount: list[Discount] = Field(default=[])
    commitment: list[CommitmentTable] = Field(default=[])


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract that was read."""

    file: str
    discounts: tuple[Discount, ...]
    commitments: tuple[Commitment, ...]


def read(files: Iterable[tuple[str, bytes]]) -> Contract | None:
    """Read the contract among the files of a folder.

    Args:
        files: Pairs of file name and bytes.

    Returns:
        The contract; None where there is none.

    Raises:
        PriceFileError: Something in it cannot be used; names file, entry and key.
    """
    content = dict(files).get(FILE)
    if content is None:
        return None
    found = parse_as(FILE, content, ContractFile, {"discount": Discount, "commitment": CommitmentTable})
    for number, discount in enumerate(found.discount, 1):
        _check_discount(f"{FILE}, discount {number}", discount)
    commitments = tuple(_commitment(f"{FILE}, commitment {n}", one) for n, one in enumerate(found.commitment, 1))
    return Contract(FILE, tuple(found.discount), commitments)


def applied(contract: Contract, lists: dict[Key, tuple[PriceList, ...]], ids: Ids) -> dict[Key, tuple[PriceList, ...]]:
    """Take the discounts off the price lists.

    Args:
        contract: The contract.
        lists: Price lists in force without it.
        ids: (provider, lower-case id) to (canonical model, how), so that a contract may name a model as logs spell it.

    Returns:
        All lists; where a discount applies, split at its dates and scaled, rounded half-even to 1 pUSD a unit.

    Raises:
        PriceFileError: A discount or commitment names what has no price, or two discounts meet the same price.
    """
    for number, commitment in enumerate(contract.commitments, 1):
        where = f"{contract.file}, commitment {number}"
        if commitment.name in {other.name for other in contract.commitments[: number - 1]}:
            raise PriceFileError(f'{where}: the name "{commitment.name}" is taken; each needs its own')
        _models(where, commitment.provider, commitment.models, lists, ids)
    made = dict(lists)
    touched: dict[tuple[Key, int], list[tuple[datetime, datetime, int]]] = {}
    for number, discount in enumerate(contract.discounts, 1):
        where = f"{contract.file}, discount {number}"
        keys, indexes = _met(where, discount, lists, ids)
        start, end = discount.valid_from or EVER, discount.valid_to or FOREVER
        for key in keys:
            for i in indexes:
                for since, until, other in touched.setdefault((key, i), []):
                    if since < end and start < until:
                        raise PriceFileError(
                            f"{where}: {key[1]} ({key[2]}) already has discount {other} at that time; cut the two "
                            "apart by models, tiers, meters or dates"
                        )
                touched[key, i].append((start, end, number))
            made[key] = tuple(
                piece for one in made[key] for piece in _discounted(one, discount, start, end, indexes, where)
            )
    return made


def _met(where: str, discount: Discount, lists: Mapping[Key, object], ids: Ids) -> tuple[list[Key], list[int]]:
    """Find the price lists and meters that a discount is about; every word in it must name something."""
    provider = canonical_provider(discount.provider)
    models = _models(where, provider, discount.models, lists, ids)
    keys = [key for key in lists if key[0] == provider and key[1] in models]
    known = {key[2] for key in keys}
    tiers = {canonical_tier(tier) for tier in discount.tiers}
    for tier in sorted(tiers - known):
        raise PriceFileError(f'{where}: none of these models is sold as tier "{tier}".{near(tier, known)}')
    names = {word: i for i, meter in enumerate(meters()) for word in (meter.price, meter.name)}
    indexes = sorted({names[name] for name in discount.meters}) or list(range(len(meters())))
    return [key for key in keys if not tiers or key[2] in tiers], indexes


def _models(where: str, provider: str, globs: Iterable[str], lists: Mapping[Key, object], ids: Ids) -> frozenset[str]:
    """Resolve the models that a contract names, as the book or as logs spell them."""
    known = {key[1] for key in lists if key[0] == provider}
    if not known:
        providers = {key[0] for key in lists}
        raise PriceFileError(f'{where}: no prices of provider "{provider}".{near(provider, providers)}')
    spelt = {name: model for (owner, name), (model, _) in ids.items() if owner == provider}
    found: set[str] = set()
    for glob in globs:
        bare = profile_of(provider, glob.lower())[1]
        models = {spelt.get(name, name) for name in {*known, *spelt} if matches(bare, name)}
        if not models:
            raise PriceFileError(f'{where}: {provider} has no price for a model "{glob}".{near(glob.lower(), spelt)}')
        found |= models
    return frozenset(found or known)


def _discounted(
    one: PriceList, discount: Discount, start: datetime, end: datetime, indexes: Sequence[int], where: str
) -> list[PriceList]:
    inside = max(one.valid_from, start), min(one.valid_to, end)
    if inside[0] >= inside[1]:
        return [one]
    factor = WIDE.subtract(Decimal(1), _percent(discount).scaleb(-2, WIDE))
    why = f"{discount.percent}% off ({where}: {discount.source})"
    try:
        bands = tuple(_scaled(band, factor, indexes, why) for band in one.bands)
    except ValueError as error:
        raise PriceFileError(f"{where}, {one.bands[0].model}: {error}") from error
    pieces = [
        one._replace(valid_to=inside[0]),
        one._replace(valid_from=inside[0], valid_to=inside[1], bands=bands),
        one._replace(valid_from=inside[1]),
    ]
    return [piece for piece in pieces if piece.valid_from < piece.valid_to]


def _scaled(band: Entry, factor: Decimal, indexes: Sequence[int], why: str) -> Entry:
    rates = list(band.rates)
    is_rounded = False
    for i in indexes:
        rate = rates[i]
        if rate is not None:
            rates[i] = scaled(rate, factor)
            is_rounded = is_rounded or rates[i] != WIDE.multiply(Decimal(rate), factor)
    if rates == list(band.rates):
        return band
    adjusted = f"{why}{', rates rounded half-even to 1 pUSD' if is_rounded else ''}"
    return band._replace(
        rates=tuple(rates), layer="contract", adjusted="; ".join(part for part in (band.adjusted, adjusted) if part)
    )


def _percent(discount: Discount) -> Decimal:
    return discount.percent if isinstance(discount.percent, Decimal) else decimal(discount.percent.removesuffix("%"))


def _check_discount(where: str, discount: Discount) -> None:
    known = {word for meter in meters() for word in (meter.name, meter.price)}
    for name in discount.meters:
        if name not in known:
            raise PriceFileError(f'{where}: no meter "{name}".{near(name, known)}')
    try:
        percent = _percent(discount)
    except ValueError as error:
        raise PriceFileError(f"{where}: percent: {error}") from error
    if percent > 100:
        raise PriceFileError(f"{where}: percent {percent} is more than the whole price")
    if percent < -100:
        raise PriceFileError(f"{where}: percent {percent} more than doubles the price; write price entries of your own")
    if (discount.valid_to or FOREVER) <= (discount.valid_from or EVER):
        raise PriceFileError(f"{where}: valid_to must be after valid_from")


def _commitment(where: str, table: CommitmentTable) -> Commitment:
    if (table.usd_per_hour is None) == (table.usd is None):
        raise PriceFileError(f"{where}: give usd_per_hour (capacity) or usd (an amount to be spent), one of the two")
    if table.valid_to <= table.valid_from:
        raise PriceFileError(f"{where}: valid_to must be after valid_from")
    return Commitment(
        name=table.name,
        provider=canonical_provider(table.provider),
        models=tuple(profile_of(canonical_provider(table.provider), model.lower())[1] for model in table.models),
        tiers=tuple(canonical_tier(tier) for tier in table.tiers),
        pusd_per_hour=None if table.usd_per_hour is None else _pusd(where, table.usd_per_hour) * table.units,
        pusd=None if table.usd is None else _pusd(where, table.usd),
        valid_from=table.valid_from,
        valid_to=table.valid_to,
        source=table.source,
    )


def _pusd(where: str, written: Any) -> int:  # noqa: ANN401 -- Decimal or its text
    try:
        exact = WIDE.multiply(written if isinstance(written, Decimal) else decimal(str(written)), Decimal(10**12))
    except ValueError as error:
        raise PriceFileError(f"{where}: {error}") from error
    if exact != exact.to_integral_value() or not 0 <= exact <= MOST_PUSD:
        raise PriceFileError(f"{where}: {written} USD is no amount of 0 to 4 million with at most 12 decimals")
    return int(exact)
