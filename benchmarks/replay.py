"""The exact-cache replay beside a scan of the columns that it reads, and its peak memory in a fresh process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import data
from benchmarks.measuring import Measured, in_child, side_by_side

if TYPE_CHECKING:
    from tenfold.store.engines import Engine

DATA = data.DATA
BOUND, BOUND_MB = 7.0, 1_200.0
TTL_S = 3_600
MEMORY_LIMIT = "512MB"
# Models of the data hang on features, not on prompts, so that they are no part of the key here: hardly any would repeat.
SCOPE, KEY = ("project",), ("prompt_hash", "params_hash")
# All that the replay reads of a request; the scan takes the largest of each, so that every value is looked at.
COLUMNS = (*SCOPE, *KEY, "ts", "duration_ms", "status", "finish_reason")
_SCAN = f"select {', '.join(f'max({column})' for column in COLUMNS)} from requests"
_ASKED = """
select {row_id} as rid, {key_hash} as key_hash, {key_check} as key_check, ts,
  case when status = 'success' and finish_reason <> 'length'
    then ts + interval '0.001' second * cast(duration_ms as int) end as stored_at
from requests
where prompt_hash is not null and params_hash is not null
"""


@contextmanager
def asked(db: Path) -> Generator[Engine]:
    """Open a store as the replay finds it."""
    from tenfold.config import settings
    from tenfold.replay.exact import key_words
    from tenfold.store.database import Store
    from tenfold.store.engines.duckdb import reading

    limits = replace(settings(), memory_limit=MEMORY_LIMIT)
    with reading(Store(db, limits=limits)) as engine:
        engine.step("asked", _ASKED.format(row_id=engine.row_id, **key_words(KEY, SCOPE)))
        yield engine


def replay(engine: Engine) -> None:
    """Replay a cache of an hour, without a limit on its entries."""
    from tenfold.replay.exact import exact_hits

    exact_hits(engine, "asked", "hits", ttl_us=TTL_S * 1_000_000)


def child(db: str) -> dict[str, Any]:
    """Replay in a fresh process."""
    with asked(Path(db)) as engine:
        replay(engine)
        return {"hits": int(engine.fetch("select count(*) as hits from hits")["hits"][0])}


def measure(rows: int) -> list[Measured]:
    """Measure.

    Args:
        rows: Requests.

    Returns:
        CPU beside a scan; peak memory.
    """
    db = data.store(rows)
    with asked(db) as engine:
        scan, replayed = side_by_side(lambda: engine.fetch(_SCAN), lambda: replay(engine))
    alone = in_child("benchmarks.replay:child", str(db))
    what = f"exact-cache replay, an hour to live / scan of its {len(COLUMNS)} columns (scope, key, start, duration, outcome)"
    note = f"{alone['hits'] / rows:.0%} are hits"
    return [
        Measured("replay/exact", what, replayed / scan, BOUND, rows=rows, seconds=replayed, peak_mb=alone["peak_mb"], note=note),
        Measured(
            "replay/memory", "peak of the process that replays", alone["peak_mb"], BOUND_MB, rows=rows, unit="memory",
            note=f"memory_limit {MEMORY_LIMIT}",
        ),
    ]  # fmt: skip
