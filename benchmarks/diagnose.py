"""The runbook on two windows of a million requests: CPU as a multiple of one scan of the columns it reads, and memory.

The scan reads the same columns of the same rows out of the same DuckDB file, unsorted, into a frame. Each is timed in a
fresh child; memory is the peak of the child that diagnoses, libraries included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from tenfold.logs import load

START = datetime(2026, 11, 2, tzinfo=UTC)
MEMORY_BYTES = 2e9
COLUMNS = (
    "ts", "status", "ttft_ms", "duration_ms", "input_tokens", "output_tokens", "cache_read_tokens", "queue_ms",
    "preemptions", "running", "waiting", "kv_usage_ratio", "attempt", "team", "feature", "client", "replica",
    "deployment", "model", "model_revision", "prompt_hash", "session_id",
)  # fmt: skip
_SCAN = """
import sys, time
import duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
connection.execute("set enable_progress_bar = false")
before = time.process_time()
connection.execute("select {columns} from requests").fetchnumpy()
print(time.process_time() - before)
"""
_DIAGNOSE = """
import resource, sys, time
from tenfold.latency import diagnose
before = time.process_time()
found = diagnose(f"{sys.argv[1]}@2026-11-02..2026-11-03", f"{sys.argv[1]}@2026-11-03..2026-11-04")
print(time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, found.main.verdict)
print(";".join(f"step {cause.step} {cause.kind}" for cause in found.main.causes))
"""


def window(count: int, seed: int, day: int, *, is_broken: bool) -> pl.DataFrame:
    """A day of requests of eight replicas; broken: a client's prompts no longer hit the cache."""
    random = np.random.default_rng(seed)
    at = np.sort(random.random(count)) * 86400
    tokens = np.exp(random.normal(7.2, 0.9, count)).astype(np.int64) + 20
    client = random.integers(0, 3, count)
    hit = np.where(is_broken & (client == 1), 0.1, 0.7) + 0.2 * random.random(count)
    cached = (tokens * hit).astype(np.int64)
    queue = random.exponential(0.03, count)
    ttft = queue + (0.02 + 5e-5 * (tokens - cached)) * np.exp(random.normal(0, 0.05, count))
    output = np.exp(random.normal(5.0, 0.8, count)).astype(np.int64) + 2
    lasts = ttft + output * 0.012 * np.exp(random.normal(0, 0.05, count))
    start = START + timedelta(days=day)
    return pl.DataFrame(
        {
            "request_id": [f"{day}-{number}" for number in range(count)],
            "ts": pl.Series((at * 1e6).astype(np.int64)).cast(pl.Duration("us")) + start,
            "provider": "self_hosted", "model": "m", "model_revision": "r1", "status": "success",
            "ttft_ms": ttft * 1000, "duration_ms": lasts * 1000, "queue_ms": queue * 1000,
            "input_tokens": tokens, "cache_read_tokens": cached, "output_tokens": output, "attempt": 0,
            "team": pl.Series(random.integers(0, 20, count)).cast(pl.String), "feature": pl.Series(random.integers(0, 8, count)).cast(pl.String),
            "client": pl.Series(client).cast(pl.String), "replica": pl.Series(random.integers(0, 8, count)).cast(pl.String),
            "deployment": "d1", "session_id": pl.Series(random.integers(0, count // 5, count)).cast(pl.String),
        }
    )  # fmt: skip


def main(count: int = 1_000_000, *_: int) -> bool:
    """Measure and print; tells whether the bounds hold."""
    with tempfile.TemporaryDirectory() as directory:
        files: list[str] = []
        for day in range(2):
            files.append(str(Path(directory) / f"{day}.parquet"))
            window(count, day, day, is_broken=day == 1).write_parquet(files[-1])
        db = str(Path(directory) / "usage.duckdb")
        load(files, db=db)
        scan = float(_child(_SCAN.format(columns=", ".join(COLUMNS)), db)[-1])
        words, causes = _child(_DIAGNOSE, db)[-2:]
    seconds, peak, verdict = words.split()
    print(f"runbook: two windows of {count:,} requests, {verdict} ({causes})")
    print(
        f"  {float(seconds):.1f} s of CPU, {float(seconds) / scan:.0f} times one scan of the same columns ({scan:.1f} s)"
    )
    is_held = float(peak) <= MEMORY_BYTES
    print(f"  peak of the process {float(peak) / 1e9:.2f} GB (bound {MEMORY_BYTES / 1e9:g} GB)")
    return is_held and verdict == "explained"


def _child(code: str, db: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code, db], check=True, capture_output=True, text=True)
    return done.stdout.strip().split("\n")


if __name__ == "__main__":
    sys.exit(0 if main(*map(int, sys.argv[1:])) else 1)
