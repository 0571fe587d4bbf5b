"""The runbook on two windows of equal size: CPU as a multiple of one scan of the columns it reads, and memory.

The scan reads the same columns of the same rows out of the same DuckDB file, unsorted, into a frame. Each is timed in a
fresh child; memory is the peak of the child that diagnoses, libraries included.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import Measured, folder, in_child

if TYPE_CHECKING:
    import polars as pl

DATA = (
    "two days of eight replicas, 22 columns: prompts and answers log-normal, queues exponential; on the second day a third of "
    "prompts no longer hit the cache"
)
BOUND_MB = 2_000.0
START = datetime(2026, 11, 2, tzinfo=UTC)
COLUMNS = (
    "ts", "status", "ttft_ms", "duration_ms", "input_tokens", "output_tokens", "cache_read_tokens", "queue_ms",
    "preemptions", "running", "waiting", "kv_usage_ratio", "attempt", "team", "feature", "client", "replica",
    "deployment", "model", "model_revision", "prompt_hash", "session_id",
)  # fmt: skip


def window(count: int, seed: int, day: int, *, is_broken: bool) -> pl.DataFrame:
    """A day of requests of eight replicas; broken: a client's prompts no longer hit the cache."""
    import numpy as np
    import polars as pl

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


def store(rows: int) -> Path:
    """Make the log of two days."""
    from tenfold.logs import load

    db = folder() / f"diagnose-{rows}.duckdb"
    if db.exists():
        return db
    files = [folder() / f"diagnose-{rows}-{day}.parquet" for day in range(2)]
    for day, file in enumerate(files):
        window(rows // 2, day, day, is_broken=day == 1).write_parquet(file)
    load(files, db=db)
    for file in files:
        file.unlink()
    return db


def scanned(db: str) -> dict[str, Any]:
    """Read the columns once, in a fresh process."""
    import duckdb

    with duckdb.connect(db, read_only=True) as connection:
        connection.execute(f"select {', '.join(COLUMNS)} from requests").fetchnumpy()
    return {}


def diagnosed(db: str) -> dict[str, Any]:
    """Diagnose in a fresh process."""
    from tenfold.latency import diagnose

    found = diagnose(f"{db}@2026-11-02..2026-11-03", f"{db}@2026-11-03..2026-11-04").main
    return {"verdict": found.verdict, "causes": [f"step {cause.step} {cause.kind}" for cause in found.causes]}


def measure(rows: int) -> list[Measured]:
    """Measure.

    Args:
        rows: Requests, half of them in each window.

    Returns:
        CPU beside a scan, and memory.
    """
    db = str(store(rows))
    scan = min(in_child("benchmarks.diagnose:scanned", db)["cpu_s"] for _ in range(3))
    found = in_child("benchmarks.diagnose:diagnosed", db)
    if found["verdict"] != "explained":
        raise SystemExit(f"the planted cause was not found: {found['verdict']}")
    return [
        Measured("diagnose", f"the runbook on two windows / reading the {len(COLUMNS)} columns into a frame", found["cpu_s"] / scan,
                 None, rows=rows, seconds=found["cpu_s"], peak_mb=found["peak_mb"], note="; ".join(found["causes"])),
        Measured("diagnose/memory", "peak of the process that diagnoses", found["peak_mb"], BOUND_MB, rows=rows, unit="memory"),
    ]  # fmt: skip
