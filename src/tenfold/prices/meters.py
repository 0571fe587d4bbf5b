"""The billable meters of ``pricing/meters.toml``, in the order in which every rate tuple holds them."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any, NamedTuple, cast

from tenfold.prices.files import shipped


class Meter(NamedTuple):
    """One billable quantity.

    Args:
        name: Name in ledgers and reports.
        price: Key in a price file.
        tokens: Column of ``requests`` it is cut from.
        per: Units the price in a file is for.
        unit: ``tokens`` or ``calls``.
        falls_under: Meter that takes the tokens where this one has no price; empty for none.
        meaning: One line for people.
    """

    name: str
    price: str
    tokens: str
    per: int
    unit: str
    falls_under: str
    meaning: str


@cache
def meters() -> tuple[Meter, ...]:
    """Read the meters.

    Returns:
        The meters in file order, which is the order of every rate tuple.
    """
    with (shipped() / "meters.toml").open("rb") as file:
        rows = tomllib.load(file)["meter"]
    return tuple(Meter(**cast("dict[str, Any]", {"falls_under": "", **row})) for row in rows)


def counted(unit: str, units: int) -> dict[str, int]:
    """Give a meter's quantity the keys of the JSON documents.

    Args:
        unit: ``tokens`` or ``calls``.
        units: How many.

    Returns:
        ``tokens``, and ``calls`` beside it (with no tokens) for a meter that counts calls.
    """
    return {"tokens": units} if unit == "tokens" else {"tokens": 0, unit: units}


# The ledger's SQL and every rate tuple name these; a test holds them equal to the file.
METER_NAMES: tuple[str, ...] = (
    "uncached_input",
    "cache_read",
    "cache_write",
    "cache_write_long",
    "input_audio",
    "input_image",
    "input_video",
    "output",
    "reasoning",
    "output_audio",
    "output_image",
    "web_search",
)
UNCACHED_INPUT = METER_NAMES.index("uncached_input")
INPUT_AUDIO = METER_NAMES.index("input_audio")
