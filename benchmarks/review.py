"""The review of a quarter: CPU as a multiple of one attribution of the quarter, and peak memory.

Both sides run in fresh children on the same store; memory is the peak of the child that makes the review, libraries
included. The quarter before holds half as many requests, so that bridge, trends, anomalies and forecast have their
data. The plan of levers is measured in ``benchmarks/plan.py`` and not in here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measuring import Measured, folder, in_child

DATA = (
    "two quarters, the first of half as many requests: 20 teams, 40 features, 5,000 users, four models of two providers, "
    "weekends half as busy"
)
BOUND_MB = 3_000.0
# Rows by arithmetic on their number: no two runs differ. A quarter of 92 days from July, its weekends half as busy.
_ROWS = """
copy (
  with n as (select range as i, hash(range) as h, hash(range + 1000000007) as g from range({count})),
  d as (select *, (i * {days} // {count}) as day from n),
  t as (
    select *, timestamp '{start}' + to_days(cast(day as int)) + to_seconds(h % 86400) + to_milliseconds(g % 1000) as ts
    from d where not (dayofweek(timestamp '{start}' + to_days(cast(day as int))) in (0, 6) and g % 2 = 0)
  )
  select
    '{key}' || i as request_id, ts, 300 + h % 9000 as duration_ms, 100 + h % 900 as ttft_ms,
    'team ' || (h // 7) % 20 as team, 'feature ' || (h // 11) % 40 as feature, 'user ' || (g // 3) % 5000 as user_id,
    'session ' || (i // 6) as session_id, 'key ' || (h // 7) % 20 as api_key_id,
    case when (h // 13) % 4 < 3 then 'openai' else 'anthropic' end as provider,
    case (h // 13) % 4 when 0 then 'gpt-5.6-luna' when 1 then 'gpt-5.6-sol' when 2 then 'gpt-4.1-mini'
      else 'claude-sonnet-4-5' end as model,
    case when (g // 5) % 20 = 0 then 'batch' else 'standard' end as service_tier,
    (g // 5) % 20 <> 0 as is_stream, 200 + h % 20000 as input_tokens, (h % 20000) * ((g // 17) % 80) // 100 as
    cache_read_tokens, 0 as cache_write_tokens, 20 + g % 1500 as output_tokens,
    case when (g // 19) % 50 = 0 then 1 else 0 end as attempt,
    case when (g // 23) % 100 = 0 then 'error' else 'success' end as status,
    case when (g // 29) % 60 = 0 then 'length' else 'stop' end as finish_reason, (g // 31) % 10 <> 0 as outcome_ok
  from t
) to '{file}' (format parquet)
"""


def store(rows: int) -> Path:
    """Make the log of two quarters."""
    import duckdb

    import tenfold as tf

    db = folder() / f"review-{rows}.duckdb"
    if db.exists():
        return db
    for key, start, days, requests in (("a", "2026-04-01", 91, rows // 2), ("b", "2026-07-01", 92, rows)):
        file = folder() / f"review-{key}.parquet"
        # weekends lose half of their rows
        duckdb.sql(_ROWS.format(count=requests * 7 // 6, days=days, start=start, key=key, file=file))
        tf.load(file, db=db)
        file.unlink()
    return db


def attributed(db: str) -> dict[str, Any]:
    """Price the quarter's requests one by one in a fresh process."""
    import tenfold as tf
    from benchmarks.measuring import cpu

    since, until = datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC)
    found = tf.attribute(tf.open_log(db), tf.price_book(), since=since, until=until)
    with found.session() as session:
        sql = "select sum(output_pusd), count(price_status) from priced_requests"
        return {"pass_s": cpu(lambda: session.engine.fetch(sql))}


def reviewed(db: str, page: str) -> dict[str, Any]:
    """Make the review in a fresh process."""
    import tenfold as tf

    made = tf.review(tf.attribute(tf.open_log(db), tf.price_book()), quarter="2026Q3")
    made.save(page)
    return {"sections": len(made.document.sections), "skipped": [one.title for one in made.skipped]}


def measure(rows: int) -> list[Measured]:
    """Measure.

    Args:
        rows: Requests of the quarter, about.

    Returns:
        CPU beside an attribution pass, and memory.
    """
    db = str(store(rows))
    found = in_child("benchmarks.review:reviewed", db, str(folder() / "review.html"))
    least = in_child("benchmarks.review:attributed", db)["pass_s"]
    note = f"{found['sections']} sections" + (f"; left out: {', '.join(found['skipped'])}" if found["skipped"] else "")
    return [
        Measured("review", "the page of a quarter with the quarter before / pricing the quarter's rows", found["cpu_s"] / least, None,
                 rows=rows, seconds=found["cpu_s"], peak_mb=found["peak_mb"], note=note),
        Measured("review/memory", "peak of the process that makes it", found["peak_mb"], BOUND_MB, rows=rows, unit="memory"),
    ]  # fmt: skip
