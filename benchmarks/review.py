"""The review of a quarter of 10,000,000 requests: CPU as a multiple of one attribution of the quarter, and peak memory.

Both sides run in fresh children on the same store; memory is the peak of the child that makes the review, libraries
included. The quarter before holds half as many requests, so that bridge, trends, anomalies and forecast have their
data. The plan of levers is measured in `benchmarks/levers.py` and not in here.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

import tenfold as tf

MEMORY_BYTES = 3e9
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
_ATTRIBUTE = """
import sys, time
from datetime import UTC, datetime
import tenfold as tf
log, book = tf.open_log(sys.argv[1]), tf.price_book()
before = time.process_time()
found = tf.attribute(log, book, since=datetime(2026, 7, 1, tzinfo=UTC), until=datetime(2026, 10, 1, tzinfo=UTC))
with found.session() as session:
    session.engine.fetch("select sum(output_pusd), count(price_status) from priced_requests")
print(time.process_time() - before)
"""
_REVIEW = """
import resource, sys, time
import tenfold as tf
log, book = tf.open_log(sys.argv[1]), tf.price_book()
started, before = time.time(), time.process_time()
page = tf.review(tf.attribute(log, book), quarter="2026Q3")
page.save(sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(time.process_time() - before, time.time() - started, peak, len(page.document.sections))
print("; ".join(f"{one.title}: {one.reason}" for one in page.skipped))
"""


def _child(code: str, *given: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code, *given], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def main(count: int = 10_000_000, *_: int) -> bool:
    """Measure and print; tells whether the bound on memory holds."""
    with tempfile.TemporaryDirectory() as directory:
        db = str(Path(directory) / "usage.duckdb")
        quarters = (("a", "2026-04-01", 91, count // 2), ("b", "2026-07-01", 92, count))
        for key, start, days, requests in quarters:
            file = str(Path(directory) / f"{key}.parquet")
            # weekends lose half of their rows
            duckdb.sql(_ROWS.format(count=requests * 7 // 6, days=days, start=start, key=key, file=file))
            tf.load(file, db=db)
        scan = float(_child(_ATTRIBUTE, db)[0])
        first, skipped = _child(_REVIEW, db, str(Path(directory) / "review.html"))
        cpu, wall, peak, sections = (float(part) for part in first.split())
        size = tf.open_log(db)
        print(f"{size!r}")
        print(f"attribution of the quarter: {scan:.1f} s of CPU")
        print(
            f"review: {cpu:.1f} s of CPU ({cpu / scan:.1f} attributions), {wall:.1f} s, {count / cpu:,.0f} requests a CPU second"
        )
        print(
            f"peak memory of the process: {peak / 1e9:.2f} GB (bound {MEMORY_BYTES / 1e9:.0f}); {sections:.0f} sections; left out: {skipped or 'none'}"
        )
        return peak <= MEMORY_BYTES


if __name__ == "__main__":
    sys.exit(0 if main(*map(int, sys.argv[1:])) else 1)
