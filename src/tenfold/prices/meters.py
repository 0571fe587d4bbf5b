"""The billable meters of ``pricing/meters.toml``, in the order in which every rate tuple holds them."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any, NamedTuple, cast

from tenfold.money import usd_text
from tenfold.prices.files import shipped


class Meter(NamedTuple):
    """One billable quantity.

    Args:
        name: Name in ledgers and reports.
        price: Key in a price file.
        column: Column of ``requests`` it is cut from; empty for the request itself.
        per: Units the price in a file is for.
        unit: What is counted: ``tokens``, ``calls``, ``images``, ``ms``, ...
        meaning: One line for people.
        parents: Meters whose counts hold this one's.
        falls_under: Meter that takes the units where this one has no price; empty for none.
        merges: Where its rate equals its parent's, its units count as the parent's.
        divisor: Units of ``column`` in one priced unit (milliseconds in an hour); above 1, costs are rounded half-even
            to 1 pUSD per request and meter.
    """

    name: str
    price: str
    column: str
    per: int
    unit: str
    meaning: str
    parents: tuple[str, ...] = ()
    falls_under: str = ""
    merges: bool = False
    divisor: int = 1


@cache
def meters() -> tuple[Meter, ...]:
    """Read the meters.

    Returns:
        The meters in file order, which is the order of every rate tuple.
    """
    with (shipped() / "meters.toml").open("rb") as file:
        rows = tomllib.load(file)["meter"]
    made = ({**row, "column": row["count"], "parents": tuple(row.get("parents", ()))} for row in rows)
    return tuple(
        Meter(**cast("dict[str, Any]", {key: row[key] for key in Meter._fields if key in row})) for row in made
    )


def counted(unit: str, units: int) -> dict[str, int]:
    """Give a meter's quantity the keys of the JSON documents.

    Args:
        unit: ``tokens``, ``calls`` or what else the meter counts.
        units: How many.

    Returns:
        ``tokens``, and the unit's own key beside it (with no tokens) for a meter that counts something else.
    """
    return {"tokens": units} if unit == "tokens" else {"tokens": 0, unit: units}


def rate_text(meter: Meter, rate_pusd: int | None) -> str:
    """Write a rate as price lists quote it.

    Args:
        meter: The meter.
        rate_pusd: Its rate; None where there is no price.

    Returns:
        Text such as ``3 per million tokens``, ``10 per 1,000 calls`` or ``0.111 per hour``.
    """
    if rate_pusd is None:
        return "no price"
    usd = usd_text(rate_pusd * meter.per) or ""
    usd = usd.removesuffix(".00")
    noun = {"token_s": "tokens"}.get(meter.unit, meter.unit)
    many = {1_000_000: f" million {noun}", 1_000: f" 1,000 {noun}"}.get(meter.per, f" {noun.removesuffix('s')}")
    if meter.divisor == 1:
        return f"{usd} per{many}"
    return f"{usd} per hour" if meter.per == 1 else f"{usd} per{many} an hour"


# The ledger's SQL and every rate tuple name these; a test holds them equal to the file.
METER_NAMES: tuple[str, ...] = (
    *("uncached_input", "cache_read", "cache_write", "cache_write_long"),
    *("input_audio", "input_image", "input_video", "cache_read_audio", "cache_read_image", "cache_read_video"),
    *("output", "reasoning", "output_audio", "output_image", "output_video"),
    *("web_search", "web_search_preview", "file_search", "maps_search", "code_session", "request"),
    *("image", "page", "character", "audio_time", "output_time", "cache_storage"),
)
# The two sides of a request; what is billed by the call is in neither.
INPUT_METERS = tuple(name for name in METER_NAMES if name.startswith(("uncached", "cache", "input")))
OUTPUT_METERS = tuple(name for name in METER_NAMES if name.startswith(("output", "reasoning")))
UNCACHED_INPUT = METER_NAMES.index("uncached_input")
# What every log may have or a lever may bring about; the other meters are computed where they occur.
CORE = ("uncached_input", "cache_read", "cache_write", "cache_write_long", "output")
# In a rate tuple of the card: no price of its own, so its units count as another meter's.
FALLS_UNDER = -1


@cache
def card_rates(rates: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Settle which meters an entry prices apart.

    Args:
        rates: An entry's rates as written, in meter order.

    Returns:
        The rates for the card: ``FALLS_UNDER`` where the meter's units count as another's (it has no rate of its own
        and may fall under one, or its rate is its parent's and it merges); None where a count would have no price.
    """
    made = list(rates)
    for i, meter in enumerate(meters()):
        parent = rates[METER_NAMES.index(meter.parents[0])] if meter.merges else None
        if (rates[i] is None and meter.falls_under) or (meter.merges and rates[i] is not None and rates[i] == parent):
            made[i] = FALLS_UNDER
    return tuple(made)


def is_free(rates: tuple[int | None, ...]) -> bool:
    """Tell whether an entry says that everything it prices costs nothing.

    Args:
        rates: An entry's rates, in meter order.

    Returns:
        Whether it has rates and all of them are 0.
    """
    return any(rate is not None for rate in rates) and not any(rates)
