"""10,000 bootstrap draws of a log's blocks beside the grouping pass that sums the blocks."""

from __future__ import annotations

from benchmarks import data
from benchmarks.measuring import Measured, side_by_side

DATA = data.DATA
DRAWS = 10_000
BOUND = 1.0
_BY_DAY = "cast(cast(ts as date) as varchar)"
_BY_USERS = "substr(md5(user_id), 1, 2)"
_GROUPED = """
select {block} as block, team, model, cast(count(*) as bigint) as requests,
  cast(sum(input_tokens) as decimal(38, 0)) as input_tokens, cast(sum(output_tokens) as decimal(38, 0)) as output_tokens
from requests
where ts is not null
group by {block}, team, model
"""


def measure(rows: int) -> list[Measured]:
    """Measure.

    Args:
        rows: Requests.

    Returns:
        CPU of drawing and bounding beside a grouping pass, for days and for groups of users.
    """
    from tenfold.planning.intervals import Draws
    from tenfold.store.database import Store
    from tenfold.store.engines.duckdb import reading

    measured: list[Measured] = []
    with reading(Store(data.store(rows))) as engine:
        for name, block in (("days", _BY_DAY), ("groups of users", _BY_USERS)):
            frame = engine.fetch(_GROUPED.format(block=block))
            amounts: dict[str, int] = {}
            for place, tokens in frame.select("block", "output_tokens").rows():
                amounts[place] = amounts.get(place, 0) + int(tokens) * 10_000_000
            blocks = sorted(amounts)
            grouped, drawn = side_by_side(
                lambda block=block: engine.fetch(_GROUPED.format(block=block)),
                lambda blocks=blocks, amounts=amounts: Draws(blocks, DRAWS).interval(amounts),
            )
            what = f"{DRAWS:,} draws of {len(blocks)} {name} and their interval / grouping by block, team, model"
            measured.append(Measured(f"bootstrap/{name}", what, drawn / grouped, BOUND, rows=rows, seconds=drawn))
    return measured
