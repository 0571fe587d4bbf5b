"""What the cube says of a log at large, and from it how few cells its requests may be summed to under a card."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from tenfold.ledger import metering
from tenfold.prices.day_map import DayMap
from tenfold.prices.meters import Meter
from tenfold.store import cells
from tenfold.store.engines import Engine
from tenfold.store.schema import TOKEN_COLUMNS

_FACTS = """
select price_key, day,
  bit_or(positive_mask) as positive, bit_or(unknown_mask) as unknown,
  bool_or(not is_billed) as has_unbilled, bool_or(is_overlap and (unknown_mask & 3) = 0) as has_overlap
from cube
group by price_key, day
order by price_key, day nulls last
"""


class Facts(NamedTuple):
    """A log at large; of each part of it, no more is true.

    Args:
        days: Price key to the UTC days it occurs on, None for requests without a time.
        positive: Price key to the bits of the counts that are above zero somewhere.
        unknown: Bits of ``unknown_mask`` that occur.
        has_unbilled: Some requests are not billed.
        has_overlap: Some requests of known totals have subsets that together exceed them.
    """

    days: dict[int, tuple[object, ...]]
    positive: dict[int, int]
    unknown: int
    has_unbilled: bool
    has_overlap: bool

    @property
    def counts(self) -> frozenset[str]:
        """Counts that are above zero somewhere."""
        return cells.present(_either(self.positive.values()))


def facts(engine: Engine) -> Facts:
    """Read what the cube says.

    Args:
        engine: Engine with the store's tables in reach.

    Returns:
        The facts.
    """
    found = engine.fetch(_FACTS)
    days: dict[int, tuple[object, ...]] = {}
    positive: dict[int, int] = {}
    for (key,), frame in found.group_by("price_key", maintain_order=True):
        days[key] = tuple(frame["day"])
        positive[key] = _either(frame["positive"].unique())
    return Facts(
        days=days,
        positive=positive,
        unknown=_either(found["unknown"].unique()),
        has_unbilled=bool(found["has_unbilled"].any()),
        has_overlap=bool(found["has_overlap"].any()),
    )


def shape(known: Facts, card: DayMap, used: Sequence[Meter]) -> cells.Shape:
    """Find what cells of the log's own requests must be alike in, so that a card prices each as one.

    A count's being above zero matters where it may lack a rate: for a price key that has such counts, on any day.

    Args:
        known: What the cube says of the log.
        card: The card, expanded to the log's days.
        used: Meters in use.

    Returns:
        The shape; the full one where media are priced apart or subsets overlap, as status then hangs on every count.
    """
    if known.has_overlap or any(meter.name.endswith(cells.MEDIA) for meter in used):
        return cells.FULL
    present = {"input_tokens", "output_tokens", "cache_write_long_tokens", *(meter.column for meter in used)}
    bits: list[str] = []
    for meter in metering.needing_a_rate(used):
        lacking = card.frame.filter(pl.col(f"rate_{meter.name}").is_null())["price_key"].unique()
        if any(meter.column in cells.present(known.positive.get(key, 0)) for key in lacking):
            bits.append(meter.column)
    return cells.Shape(
        counts=tuple(name for name in TOKEN_COLUMNS if name in present),
        bits=tuple(bits),
        unknown=known.unknown,
        has_unbilled=known.has_unbilled,
        has_overlap=False,
        has_undated=any(None in days for days in known.days.values()),
    )


def _either(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
