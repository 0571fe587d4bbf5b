"""Every set of ten levers from one grouping pass: 1,024 values read off the cells that ten predicates cut a log into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import data
from benchmarks.measuring import Measured, side_by_side

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold.store.engines import Engine

DATA = data.DATA
BOUND = 2.0
# Ten levers: the traffic that each is let touch, and what it leaves of its cost, in thousandths.
LEVERS = (
    ("finish_reason = 'length'", 0),
    ("output_tokens < 300", 310),
    ("cache_read_tokens = 0", 820),
    ("provider = 'openai'", 940),
    ("team = 'team 3'", 970),
    ("input_tokens > 6000", 850),
    ("feature < 'feature 14'", 600),
    ("not is_stream", 500),
    ("project = 'project 1'", 910),
    ("service_tier = 'standard'", 1040),
)
_SUMS = (
    "cast(count(*) as bigint) as requests, cast(sum(input_tokens) as decimal(38, 0)) as input_tokens, "
    "cast(sum(cache_read_tokens) as decimal(38, 0)) as cache_read_tokens, "
    "cast(sum(output_tokens) as decimal(38, 0)) as output_tokens"
)
_PLAIN = f"select cast(ts as date) as day, team, model, {_SUMS} from requests group by cast(ts as date), team, model"
# what is unknown is not touched
_MASK = " + ".join(f"case when {where} then {1 << bit} else 0 end" for bit, (where, _) in enumerate(LEVERS))
_CELLS = f"select {_MASK} as touch, {_SUMS} from requests group by {_MASK}"
# pUSD a token of the one card that this prices by.
_INPUT, _CACHED, _OUTPUT = 1_250_000, 125_000, 10_000_000


def cells(engine: Engine) -> list[tuple[int, int]]:
    """Group the log by what touches a request.

    Returns:
        (Bits of the levers, cost in pUSD).
    """
    rows = engine.fetch(_CELLS).rows(named=True)
    return [
        (
            row["touch"],
            int(row["input_tokens"] or 0) * _INPUT
            - int(row["cache_read_tokens"] or 0) * (_INPUT - _CACHED)
            + int(row["output_tokens"] or 0) * _OUTPUT,
        )
        for row in rows
    ]


def left(cost: int, pulled: int) -> int:
    """What some levers leave of a cell, one after the other, in whole pUSD."""
    for bit, (_, keeps) in enumerate(LEVERS):
        if pulled >> bit & 1:
            cost = cost * keeps // 1000
    return cost


def values(found: Iterable[tuple[int, int]]) -> list[int]:
    """What each set of levers leaves of the bill, by the planner's own way."""
    from tenfold.planning.every_set import every_set, subsets_of

    parts: list[tuple[int, list[int]]] = []
    for touch, cost in found:
        amounts = [cost]
        for bit in range(len(LEVERS)):  # as subsets_of lists them: with each lever, all before it once more
            if touch >> bit & 1:
                amounts += [amount * LEVERS[bit][1] // 1000 for amount in amounts]
        assert len(amounts) == len(subsets_of(touch))
        parts.append((touch, amounts))
    return every_set(len(LEVERS), parts)


def measure(rows: int) -> list[Measured]:
    """Measure.

    Args:
        rows: Requests.

    Returns:
        CPU of all subsets beside a plain grouping pass.
    """
    from tenfold.store.database import Store
    from tenfold.store.engines.duckdb import reading

    with reading(Store(data.store(rows))) as engine:
        found = cells(engine)
        every = values(found)
        for pulled in (0, 1, 0b1010101010, 1023):
            assert every[pulled] == sum(left(cost, touch & pulled) for touch, cost in found)
        plain, whole = side_by_side(lambda: engine.fetch(_PLAIN), lambda: values(cells(engine)))
    return [
        Measured(
            "levers/every set", "grouping by ten levers' predicates and valuing all 1,024 sets / grouping by day, team, model",
            whole / plain, BOUND, rows=rows, seconds=whole, note=f"{len(found):,} of 1,024 masks occur",
        )
    ]  # fmt: skip
