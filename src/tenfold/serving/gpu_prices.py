"""What a GPU costs an hour: ``pricing/gpu_prices.toml``, dated and with sources, conflicts side by side."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field

from tenfold.errors import NotEvaluable, ServingError, near
from tenfold.prices.files import shipped
from tenfold.prices.models import Strict, as_decimal, parse_as
from tenfold.serving.specs import gpu

FILE = "gpu_prices.toml"
Commitment = Literal["on_demand", "reserved_1y", "reserved_3y", "spot", "contract", "owned"]
COMMITMENTS: tuple[str, ...] = get_args(Commitment)


class GpuPrice(Strict):
    """One ``[[gpu_price]]`` table: what one GPU costs for an hour, who says so, and when."""

    gpu: str = Field(min_length=1)
    provider: str = Field(min_length=1)
    commitment: Commitment
    usd_per_gpu_hour: Annotated[Decimal, BeforeValidator(as_decimal)] = Field(gt=0)
    valid_from: date | None = None
    """First day; None where the source does not say."""
    valid_to: date | None = None
    """Day it ended; None where it holds or the source does not say."""
    source: str = Field(min_length=1)
    checked: date
    note: str = ""
    outdated: bool = False
    """The source is known to be behind, though nobody says since when: shown, and in no median."""

    @property
    def said(self) -> date:
        """The day that the figure is of: its start, else the day it was read."""
        return self.valid_from or self.checked


class PriceRange(NamedTuple):
    """What a GPU costs, by everybody who says so.

    Args:
        gpu: Its name in ``gpus.toml``.
        commitment: How it is paid for.
        entries: All entries in force, contradictory ones too.
        outdated: Entries that are shown beside them and not counted.
        low: Lowest price of one GPU for one hour, USD.
        median: Median over providers, each counted once with its own median: no provider counts more for being quoted
            more often.
        high: Highest price.
    """

    gpu: str
    commitment: str
    entries: tuple[GpuPrice, ...]
    low: Decimal
    median: Decimal
    high: Decimal
    outdated: tuple[GpuPrice, ...] = ()

    def __str__(self) -> str:
        """Where the median comes from, in words."""
        kind = self.commitment.replace("_", "-" if self.commitment == "on_demand" else " ")
        providers = sorted({one.provider for one in self.entries})
        if len(self.entries) == 1:
            return f"the only {kind} price in {FILE}, of {providers[0]}"
        many = f"the lists of {len(providers)} providers" if len(providers) > 1 else f"{providers[0]}'s lists"
        return f"median of {many} ({kind}: ${self.low} to ${self.high})"


class _Prices(Strict):
    gpu_price: list[GpuPrice]


@cache
def gpu_prices(own: Path | None = None) -> tuple[GpuPrice, ...]:
    """Read all entries, those that no longer hold too.

    Args:
        own: A file of the same form, added to the shipped entries.

    Returns:
        Entries; GPUs under their name in ``gpus.toml``.

    Raises:
        PriceFileError: A file cannot be used; names entry and key.
        ServingError: An entry's GPU is not known.
    """
    files = [(FILE, (shipped() / FILE).read_bytes())]
    if own is not None:
        files.append((str(own), own.read_bytes()))
    return tuple(
        entry.model_copy(update={"gpu": gpu(entry.gpu).name, "provider": entry.provider.lower()})
        for name, content in files
        for entry in parse_as(name, content, _Prices, {"gpu_price": GpuPrice}).gpu_price
    )


def gpu_price(
    name: str,
    commitment: str = "on_demand",
    provider: str | None = None,
    *,
    at: date | None = None,
    own: Path | None = None,
) -> PriceRange:
    """Look up what a GPU costs.

    Args:
        name: GPU name or alias.
        commitment: ``on_demand``, ``reserved_1y``, ``reserved_3y``, ``spot``, ``contract`` or ``owned``.
        provider: Only this provider.
        at: Day to price at; today where not given.
        own: A file of prices of one's own, added to the shipped ones.

    Returns:
        Entries in force, with median and range.

    Raises:
        ServingError: The GPU or the commitment is not known.
        NotEvaluable: No entry is in force; says what there is.
    """
    wanted = gpu(name).name
    if commitment not in COMMITMENTS:
        raise ServingError(
            f'commitment "{commitment}" is not known.{near(commitment, COMMITMENTS)} Known: {", ".join(COMMITMENTS)}'
        )
    day = at or datetime.now(tz=UTC).date()
    of_gpu = [one for one in gpu_prices(own) if one.gpu == wanted]
    held = in_force((one for one in of_gpu if one.commitment == commitment and provider in (None, one.provider)), day)
    entries = tuple(one for one in held if not one.outdated)
    if not entries:
        there = sorted({f"{one.commitment} of {one.provider}" for one in of_gpu})
        asked = f"{commitment} price of {wanted}" + (f" at {provider}" if provider else "")
        raise NotEvaluable(
            f"no {asked} on {day}. There is: {', '.join(there) or 'nothing'}. State the price, or add an entry to "
            f"pricing/{FILE}"
        )
    by_provider: defaultdict[str, list[Decimal]] = defaultdict(list)
    for one in entries:
        by_provider[one.provider].append(one.usd_per_gpu_hour)
    prices = [one.usd_per_gpu_hour for one in entries]
    middle = statistics.median(statistics.median(of_one) for of_one in by_provider.values())
    return PriceRange(
        wanted, commitment, entries, min(prices), middle, max(prices), tuple(one for one in held if one.outdated)
    )


def in_force(entries: Iterable[GpuPrice], day: date) -> tuple[GpuPrice, ...]:
    """Leave out what no longer holds on a day: ended, not begun, or said anew later by the same source.

    Args:
        entries: Entries.
        day: The day.

    Returns:
        The others, in their order.
    """
    begun = [one for one in entries if (one.valid_from or day) <= day and (one.valid_to is None or day < one.valid_to)]
    last: dict[tuple[str, str, str, str], date] = {}
    for one in begun:
        last[_place(one)] = max(one.said, last.get(_place(one), one.said))
    return tuple(one for one in begun if one.said == last[_place(one)])


def _place(one: GpuPrice) -> tuple[str, str, str, str]:
    return one.gpu, one.provider, one.commitment, one.source
