"""Attribution on Spark, two threads of one machine: CPU a request, shuffled bytes, DuckDB beside. ``benchmarks/scale.md``
is worked out from what this writes (``python -m benchmarks.spark``)."""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from benchmarks import data
from benchmarks.measuring import Measured, folder, in_child

DATA = "as attribution, published: Parquet by day; read on Spark (local[2]) and on DuckDB (2 threads) alike"
# Two that the cube answers with, and one that it does not have: then every request is read and priced.
RAW, CUBE = ["team", "model", "is_stream"], ["team", "model"]
MEASURED = Path(__file__).with_name("scale.json")
# Of what Spark's own counters say of the run over requests whose tasks took least: bytes read and shuffled, CPU of tasks alone.
COUNTERS = ("inputBytes", "shuffleWriteBytes", "shuffleWriteRecords", "executorCpuTime")
KEPT = ("spark_cpu_s", "cube_cpu_s", "task_cpu_s", "read_bytes", "shuffle_bytes", "shuffle_cells", "cube_cells")


def measure(rows: int) -> list[Measured]:
    """Measure both engines on 1/16, 1/4 and all of the rows; the totals must be the same integers."""
    if find_spec("pyspark") is None:
        return [Measured("spark/raw rows", "Spark / DuckDB", None, None, note="pyspark is not installed: make spark")]
    found = sizes(rows)
    last = found[-1]
    slope, _ = line([one["rows"] for one in found], [one["task_cpu_s"] for one in found])
    return [
        Measured(
            "spark/raw rows", "attribution of requests on Spark / on DuckDB", last["spark_cpu_s"] / last["duckdb_cpu_s"], None,
            rows=rows, seconds=last["spark_cpu_s"],
            note=f"{1e6 * slope:.2f} us of tasks' CPU a request, {last['spark_cpu_s'] - last['task_cpu_s']:.1f} s beside them; "
            f"{last['shuffle_bytes'] / rows:.2f} bytes shuffled a request",
        ),
        Measured(
            "spark/growth", "tasks over all rows / over a quarter of them",
            last["task_cpu_s"] / found[1]["task_cpu_s"], 4.4, rows=rows, seconds=last["task_cpu_s"],
        ),
        Measured(
            "spark/cube", "attribution from the cube on Spark / of requests", last["cube_cpu_s"] / last["spark_cpu_s"], None,
            rows=rows, seconds=last["cube_cpu_s"],
        ),
    ]  # fmt: skip


def line(rows: list[int], seconds: list[float]) -> tuple[float, float]:
    """Fit seconds = fixed + slope x rows by least squares.

    Returns:
        Slope (seconds a row) and fixed seconds.
    """
    mean_rows, mean_s = sum(rows) / len(rows), sum(seconds) / len(seconds)
    away = [row - mean_rows for row in rows]
    slope = sum(one * (each - mean_s) for one, each in zip(away, seconds, strict=True)) / sum(one * one for one in away)
    return slope, mean_s - slope * mean_rows


def sizes(rows: int, times: int = 3) -> list[dict[str, float]]:
    """Measure 1/16, 1/4 and all of the rows on both engines, Spark in one process; named as in ``benchmarks/scale.json``.

    Args:
        rows: The largest size.
        times: Runs of each, of which the least counts, after one that warms up.
    """
    counts = [rows // 16, rows // 4, rows]
    published = [_published(size) for size in counts]
    spark = in_child("benchmarks.spark:on_spark", published, times)["each"]
    found = []
    for size, folder_, there in zip(counts, published, spark, strict=True):
        duckdb = in_child("benchmarks.spark:on_duckdb", folder_, times)
        if there["sums"] != duckdb["sums"]:
            raise RuntimeError(f"{size:,} rows: Spark's totals are not DuckDB's")
        current = Path(folder_, "current")
        found.append(
            {
                "rows": size,
                "runs": times,
                "cores": os.cpu_count(),
                "load": round(max(there["load"], duckdb["load"]), 1),
                **{name: there[name] for name in KEPT},
                "duckdb_cpu_s": duckdb["best_s"],
                "parquet_bytes": sum(file.stat().st_size for file in current.glob("requests/*/*.parquet")),
                "cube_bytes": (current / "cube.parquet").stat().st_size,
            }
        )
    return found


def _published(rows: int) -> str:
    import tenfold as tf

    out = folder() / f"published-{rows}"
    if not out.exists():
        tf.publish(tf.open_log(data.store(rows)), out)
    return str(out)


def on_duckdb(published: str, times: int) -> dict[str, object]:
    """Attribute from the published folder on DuckDB."""
    import tenfold as tf

    ledger = tf.attribute(tf.open_log(published), data.book())
    best = float("inf")
    for _ in range(times):
        before = time.process_time()
        frame = ledger.composition(RAW).frame
        best = min(best, time.process_time() - before)
    return {"best_s": best, "load": os.getloadavg()[0], "sums": _sums(frame)}


def on_spark(published: list[str], times: int) -> dict[str, object]:
    """Attribute from published folders on Spark, warmed up on the first; CPU of the JVM and of Python."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "8")
        # vectored reads of local files pass by Spark's counter of bytes read
        .config("spark.hadoop.parquet.hadoop.vectored.io.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    _on_spark(session, published[0], 1)
    each = [_on_spark(session, one, times) for one in published]
    session.stop()
    return {"each": each}


def _on_spark(session, published: str, times: int) -> dict[str, object]:
    import tenfold as tf

    ledger = tf.attribute(tf.open_log(published), data.book(), engine=tf.Spark(session))
    store = session.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 -- Spark has no public name for its counters
    jvm, found, frame, counted = _children(), {}, None, {}
    for name, by in (("cube", CUBE), ("spark", RAW)):
        best, runs = float("inf"), []
        for _ in range(times):
            started, before = _counters(store), _cpu(jvm)
            frame = ledger.composition(by).frame
            best = min(best, _cpu(jvm) - before)
            runs.append({key: now - started[key] for key, now in _counters(store).items()})
        found[f"{name}_cpu_s"] = best
        counted = min(runs, key=lambda one: one["executorCpuTime"])
    with ledger.session() as priced:
        cells = priced.engine.fetch("select count(*) as n from cube").item()
    return {
        **found,
        "task_cpu_s": counted["executorCpuTime"] / 1e9,
        "read_bytes": counted["inputBytes"],
        "shuffle_bytes": counted["shuffleWriteBytes"],
        "shuffle_cells": counted["shuffleWriteRecords"],
        "cube_cells": cells,
        "load": os.getloadavg()[0],
        "sums": _sums(frame),
    }


def _sums(frame) -> list[str]:
    return [
        str(frame[name].sum()) for name in frame.columns if name.endswith(("_pusd", "_units")) or name == "requests"
    ]


def _counters(store) -> dict[str, int]:
    """Add up Spark's own counters over all stages so far."""
    from py4j.protocol import Py4JJavaError

    sums, stage = dict.fromkeys(COUNTERS, 0), 0
    while True:
        try:
            one = store.lastStageAttempt(stage)
        except Py4JJavaError:
            return sums
        for name in COUNTERS:
            sums[name] += getattr(one, name)()
        stage += 1


def _children() -> list[int]:
    """Processes below this one: the JVM and what it started."""
    below, found = {os.getpid()}, []
    for status in sorted(Path("/proc").glob("[0-9]*/stat"), key=lambda file: int(file.parent.name)):
        parts = status.read_text().rsplit(")", 1)[1].split()
        if int(parts[1]) in below:
            below.add(int(status.parent.name))
            found.append(int(status.parent.name))
    return found


def _cpu(processes: list[int]) -> float:
    """CPU seconds of this process and those, user and system (Linux)."""
    ticks = 0
    for one in processes:
        parts = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(parts[11]) + int(parts[12])
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


def main() -> None:
    """Measure and write what the page on scale is worked out from: ``python -m benchmarks.spark [rows] [times]``."""
    from benchmarks.scale import page

    given = [int(text.replace("_", "")) for text in sys.argv[1:]]
    found = sizes(*(given or [16_000_000]))
    MEASURED.write_text(json.dumps(found, indent=1) + "\n")
    MEASURED.with_name("scale.md").write_text(page(found))


if __name__ == "__main__":
    main()
