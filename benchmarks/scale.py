"""The page on scale, worked out from a few measured numbers (``scale.json``): every figure on it is made here."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.data import DAYS
from benchmarks.spark import line

# Assumed, as the page says.
REQUESTS_A_DAY = 10_000_000_000
CELLS_A_DAY = 1_000_000
PARTITION_BYTES = 128 * 2**20  # spark.sql.files.maxPartitionBytes, as Spark sets it
CORES_AN_EXECUTOR, MEMORY_AN_EXECUTOR_GIB = 4, 16
MINUTES = 15
USD_PER_CORE_HOUR = 0.053801
PRICE = (
    "Alibaba Cloud EMR Serverless Spark, US (Virginia), pay as you go: 0.053801 USD a CU-hour, a CU being 1 core and "
    "4 GiB (alibabacloud.com/help/en/emr/emr-serverless-spark/product-overview/compute-resources-pay-as-you-go, as of "
    "2026-03-26)"
)
BIGINT_PUSD = 2**63 - 1


def figures(found: Sequence[dict[str, float]]) -> dict[str, float]:
    """Work out what the page shows.

    Args:
        found: One dict a size, as ``benchmarks.spark.sizes`` gives, the largest last.

    Returns:
        Figures by name.
    """
    last = found[-1]
    rows = [one["rows"] for one in found]
    slope, fixed = line(rows, [one["task_cpu_s"] for one in found])
    bytes_a_request = last["parquet_bytes"] / last["rows"]
    day_bytes = REQUESTS_A_DAY * bytes_a_request
    partitions = -(-day_bytes // PARTITION_BYTES)
    requests_a_partition = REQUESTS_A_DAY / partitions
    bytes_a_cell = last["shuffle_bytes"] / last["shuffle_cells"]
    core_s = REQUESTS_A_DAY * slope
    cores = core_s / (60 * MINUTES)
    return {
        "runs": last["runs"],
        "load": max(one["load"] for one in found),
        "cores_here": last["cores"],
        "slope_us": 1e6 * slope,
        "fixed_s": fixed,
        "bytes_a_request": bytes_a_request,
        "read_a_request": last["read_bytes"] / last["rows"],
        "day_tb": day_bytes / 1e12,
        "year_tb": 365 * day_bytes / 1e12,
        "partitions": partitions,
        "requests_a_partition": requests_a_partition,
        "rows_here": last["rows"],
        "cells_times": CELLS_A_DAY * DAYS / last["cube_cells"],
        "bytes_a_cell": bytes_a_cell,
        "cells_a_thousand": 1000 * last["shuffle_cells"] / last["rows"],
        "shuffle_gb": partitions * min(requests_a_partition, CELLS_A_DAY) * bytes_a_cell / 1e9,
        "cube_bytes_a_cell": last["cube_bytes"] / last["cube_cells"],
        "cube_day_mb": CELLS_A_DAY * last["cube_bytes"] / last["cube_cells"] / 1e6,
        "cube_year_gb": 365 * CELLS_A_DAY * last["cube_bytes"] / last["cube_cells"] / 1e9,
        "core_hours": core_s / 3600,
        "executors": -(-cores // CORES_AN_EXECUTOR),
        "usd": core_s / 3600 * USD_PER_CORE_HOUR,
        "beside_s": max(one["spark_cpu_s"] - one["task_cpu_s"] for one in found),
        "duckdb_us": 1e6 * line(rows, [one["duckdb_cpu_s"] for one in found])[0],
        "limit_usd": BIGINT_PUSD / 1e12,
    }


def page(found: Sequence[dict[str, float]]) -> str:
    """Write the page.

    Args:
        found: As ``figures``.

    Returns:
        Markdown.
    """
    of = figures(found)
    rows = "\n".join(
        f"| {one['rows']:,} | {one['spark_cpu_s']:.2f} | {one['task_cpu_s']:.2f} "
        f"| {of['fixed_s'] + of['slope_us'] * one['rows'] / 1e6:.2f} "
        f"| {one['duckdb_cpu_s']:.2f} | {one['cube_cpu_s']:.2f} | {one['read_bytes'] / 1e6:,.1f} "
        f"| {one['shuffle_bytes'] / 1e6:,.2f} | {one['shuffle_cells']:,} |"
        for one in found
    )
    return _PAGE.format(
        rows=rows, requests=REQUESTS_A_DAY, cells=CELLS_A_DAY, cores=CORES_AN_EXECUTOR, memory=MEMORY_AN_EXECUTOR_GIB,
        minutes=MINUTES, price=PRICE, usd_per_core_hour=USD_PER_CORE_HOUR, partition_mib=PARTITION_BYTES // 2**20, **of,
    )  # fmt: skip


_PAGE = """# From one machine to ten billion requests a day

Written by `python -m benchmarks.spark` (`benchmarks/scale.py`); a test works every figure out again from `scale.json`. What
was measured stands in the first table, what is assumed in the second, and nothing else goes in.

## Measured

Attribution of every request by team, model and whether it was streamed (not in the cube, so each row is read and priced) over
published Parquet, Spark on two threads of one machine, warmed up on the smallest size, the least of {runs} runs; CPU is that of
the whole JVM (tasks, driver, compiler, collector) and of Python. The totals are the integers that DuckDB gives. The load average
was up to {load:.0f} on {cores_here} cores: what is above {cores_here} was other work beside, which makes CPU seconds larger, not smaller.

| requests | Spark, CPU s | of which tasks, CPU s | the line, CPU s | DuckDB, CPU s | from the cube on Spark, CPU s | read, MB | shuffled, MB | cells shuffled |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{rows}

The line through the tasks: **{slope_us:.2f} us of CPU a request** and {fixed_s:.2f} s a query. Beside the tasks a query took up to
{beside_s:.1f} s here, whatever the size: planning and compiling on the driver, the JVM's own compiler, and collection. DuckDB's line
rises by {duckdb_us:.2f} us a request on the same files.

## Assumed

| what | value | why |
|---|---:|---|
| requests a day | {requests:,} | the question |
| bytes of a request in Parquet | {bytes_a_request:.1f} | as measured (the benchmark's 27 columns, zstd); prefix hashes and tags add theirs |
| cells a day: owners x models x tiers x bands x kinds of usage | {cells:,} | {cells_times:,.0f} times the benchmark's of {rows_here:,} requests; a cell is a row of the cube |
| input of a task | {partition_mib} MiB | Spark's own setting |
| executor | {cores} cores, {memory} GiB | a common size |
| a core-hour | {usd_per_core_hour} USD | {price} |
| CPU a request | {slope_us:.2f} us | the slope of the tasks holds: each request is read once and summed where it lies, and only cells move |

## Worked out, for one day's requests

| what | figure | how |
|---|---:|---|
| Parquet | {day_tb:.2f} TB a day, {year_tb:,.0f} TB a year | requests x bytes |
| tasks | {partitions:,.0f}, of {requests_a_partition:,.0f} requests | bytes / {partition_mib} MiB |
| read for this question | {read_a_request:.1f} bytes a request | the columns it names, as measured |
| shuffled, at most | {shuffle_gb:,.1f} GB | tasks x the lesser of a task's requests and all cells x {bytes_a_cell:.0f} bytes a cell as measured |
| CPU | {core_hours:,.1f} core-hours | requests x slope / 3600 |
| executors to be done in {minutes} minutes | {executors:,.0f} | core-hours / {minutes} minutes / {cores} |
| cost | {usd:,.2f} USD a day | core-hours x list price |
| cube | {cube_day_mb:,.0f} MB a day, {cube_year_gb:,.1f} GB a year | cells x {cube_bytes_a_cell:.0f} bytes a cell as measured |

Reports by owner, model and time read the cube, so a year of them reads {cube_year_gb:,.1f} GB and not {year_tb:,.0f} TB: the pass
above is for a column that the cube does not keep, another zone, or a price that changes inside a day.

## Limits

- A cell's cost is a 64-bit integer of 1e-12 USD: one (day, price key, group) may cost up to {limit_usd:,.0f} USD a meter. Beyond,
  both engines stop with an overflow error, they do not wrap; group by one more column (team, feature) and it fits. Totals are
  38-digit decimals.
- Skew: partial sums are made before anything moves, so a model that takes nine requests in ten makes no slow task here. The
  replays do move requests (by prefix block, by session): there the largest key bounds the slowest task.
- A step that is kept for several queries lies on the executors; set `spark.checkpoint.dir` where executors may be lost.
- What comes back to the driver is the result, a row a group: keep groups below some millions.
- Not measured: more than one machine, object stores, spot loss. The slope is that of local threads, with {cells_a_thousand:.0f} cells
  shuffled for 1,000 requests: a day whose every task holds most of the cells moves more, up to the bound above, and costs more.
"""
