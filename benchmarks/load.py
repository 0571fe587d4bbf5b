"""Loading: reading and mapping beside other ways to do the same, whole loads, broken files, known ids, peak memory.

``python -m benchmarks.load [rows] [--big]``. Ratios are of CPU (user and system, best of three, both sides in one
process), but for the loops, which are compared by wall clock. What is written is the table `requests` in a DuckDB file,
from JSON lines or CSV and from Parquet; the same in Parquet stands beside it. The loops map the same rows to the same
main columns. ``--big`` loads a file of more than 4 GB in a fresh process and prints its peak memory.
"""

from __future__ import annotations

import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

import tenfold as tf
from benchmarks.mappings import COLUMNS, loop, polars_csv, polars_json
from tenfold.logs import batch, detect, direct, files, slices
from tenfold.logs.plans import plans as planned
from tenfold.logs.publish import find_known
from tenfold.logs.raw import Job
from tenfold.logs.sources import Known, opened
from tenfold.logs.text.fields import without_text
from tenfold.store import schema
from tenfold.store.database import query

MODELS = (
    "gpt-4o-2024-11-20",
    "gpt-4o-mini-2024-07-18",
    "gpt-4.1-2025-04-14",
    "gpt-5-2025-08-07",
    "gpt-5-mini-2025-08-07",
)
MEMORY_LIMIT_MB = 512
BOUNDS = {"write": 1.8, "orjson": 5, "json": 9, "polars json": 1.0, "polars csv": 1.3, "dirty": 3.0, "ids": 2.5}
LINE = (
    '{"id":"chatcmpl-%016x","object":"chat.completion","created":%d,"model":"%s","choices":[{"index":0,"message":{"role":'
    '"assistant","content":null,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"%s"}],"usage":'
    '{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,'
    '"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,"accepted_prediction_tokens":0,'
    '"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_%06x","metadata":'
    '{"team":"team-%d","feature":"feature-%d"}}\n'
)  # fmt: skip
BAD = (
    b'{"id":"chatcmpl-torn","usage":{"prompt_tok\n',
    b"2026-11-01 INFO not a record\n",
    b"[1,2,3]\n",
    b'{"id":"x"]\n',
    b'{"id":"\xff\xfe","usage":{"prompt_tokens":1}}\n',
    b'{"id":"chatcmpl-kind","object":"chat.completion","usage":"none"}\n',
    b"42\n",
)  # fmt: skip


def chat_lines(rows: int) -> Iterator[str]:
    """Nested OpenAI Chat answers, about 630 bytes each, their text taken out."""
    draw = random.Random(7)
    start = int(datetime(2026, 7, 1, tzinfo=UTC).timestamp())
    for number in range(rows):
        prompt, completion = draw.randrange(50, 9000), draw.randrange(1, 900)
        cached = draw.choice((0, 0, prompt // 2 // 128 * 128))
        reason = draw.choice(("stop", "stop", "length", "tool_calls"))
        thought = completion // 3 if number % 5 > 2 else 0
        yield LINE % (
            number * 0x9E3779B97F4A7C15 % 2**64, start + number // 4, MODELS[number % 5], reason, prompt, completion,
            prompt + completion, cached, thought, draw.getrandbits(20), draw.randrange(12), draw.randrange(30),
        )  # fmt: skip


def write_files(folder: Path, rows: int) -> dict[str, Path]:
    """The JSON lines, the same with 1 bad line in about 1,000, and a table in CSV."""
    made = {name: folder / name for name in ("chat.jsonl", "dirty.jsonl", "rows.csv")}
    draw = random.Random(5)
    with made["chat.jsonl"].open("w") as clean, made["dirty.jsonl"].open("wb") as dirty:
        for number, line in enumerate(chat_lines(rows)):
            clean.write(line)
            dirty.write(line.encode())
            if number % 1029 == 500:
                dirty.write(draw.choice(BAD))
    with made["rows.csv"].open("w") as table:
        table.write(
            "request_id,ts,provider,model,service_tier,team,feature,input_tokens,cache_read_tokens,output_tokens,status\n"
        )
        for number in range(rows):
            prompt = draw.randrange(50, 9000)
            table.write(
                f"req-{number:012x},2026-07-{1 + number % 28:02}T10:00:{number % 60:02}Z,openai,{MODELS[number % 5]},standard,"
                f"team-{number % 12},feature-{number % 30},{prompt},{draw.choice((0, prompt // 2))},{draw.randrange(1, 900)},success\n"
            )
    return made


def head(file: Path, folder: Path) -> Path:
    """The first 20,000 lines."""
    out = folder / "head.jsonl"
    with file.open("rb") as lines:
        out.write_bytes(b"".join(next(lines) for _ in range(20_000)))
    return out


def cpu() -> float:
    """CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def best(work: Callable[[], Any], times: int = 3) -> tuple[float, float]:
    """CPU and wall seconds, each the best of some runs."""
    least, quickest = float("inf"), float("inf")
    for _ in range(times):
        before, began = cpu(), time.perf_counter()
        work()
        least, quickest = min(least, cpu() - before), min(quickest, time.perf_counter() - began)
    return least, quickest


class Store:
    """A DuckDB file with the table `requests`, made anew for each run."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "bench.duckdb"

    def connect(self) -> duckdb.DuckDBPyConnection:
        self.file.unlink(missing_ok=True)
        connection = duckdb.connect(str(self.file))
        connection.execute("SET TimeZone='UTC'")
        connection.execute(schema.ddl("requests"))
        batch.make(connection)
        return connection


def map_file(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Read a clean file into `batch`, as the load does."""
    with opened(file, Known(None, {})) as found:
        (plan,) = planned(found.here, None, None, None, {}, [])
    job = Job(
        file,
        slices.whole(file, plan.scan),
        without_text(plan.reader),
        plan.held,
        file.parent,
        keep_text=False,
        zone=None,
    )
    for part in slices.slices(file, plan.scan, is_table=plan.held.kind == "csv"):
        direct.read(
            connection,
            direct.expected(job._replace(part=part)),
            source_file=str(file),
            load_id=1,
            zone=None,
            constants={},
        )


def read_and_map(store: Store, file: Path) -> None:
    """From the file to the stored table."""
    connection = store.connect()
    map_file(connection, file)
    connection.execute("INSERT INTO requests BY NAME FROM batch; DROP TABLE batch")
    connection.close()


def apart(store: Store, file: Path) -> float:
    """CPU of hashing the file and the ids, which ``map_file`` does too, and which is no part of reading and mapping."""
    connection = store.connect()
    map_file(connection, file)
    ids = best(lambda: connection.execute("SELECT sum(md5_number_lower(dedup_key)) FROM batch").fetchall())[0]
    connection.close()
    return ids + best(lambda: (files.scan(file), detect.content(file)))[0]


def write(store: Store, table: Path) -> None:
    """From Parquet to the stored table."""
    connection = store.connect()
    connection.execute(f"INSERT INTO requests BY NAME FROM read_parquet('{table}')")
    connection.close()


def check_same(store: Store, file: Path) -> None:
    """Refuse to compare mappings that give different tables."""
    connection = store.connect()
    map_file(connection, file)
    ours = query(connection, f"SELECT {', '.join(COLUMNS)} FROM batch")
    connection.close()
    theirs = loop(file, json.loads)
    for column in COLUMNS:
        mine, other = ours[column], theirs[column]
        if mine.to_list() != other.to_list():
            raise SystemExit(f"the loop and the load differ in {column}")


def known_ids(folder: Path, stored: int, fresh: int) -> float:
    """Finding which of a batch's ids are stored, beside a scan of the stored ids."""
    connection = duckdb.connect(str(folder / "ids.duckdb"))
    made = "md5_number_lower('openai|chatcmpl-' || i)"
    connection.execute(f"CREATE TABLE requests AS SELECT {made} AS id_hash FROM range({stored}) r(i)")
    connection.execute(
        f"CREATE TEMP TABLE batch AS SELECT {made} AS id_hash FROM range({stored - fresh // 10}, {stored + fresh}) r(i)"
    )
    scan = best(lambda: connection.execute("SELECT sum(id_hash) FROM requests").fetchall())[0]
    took = best(lambda: find_known(connection))[0]
    connection.close()
    return took / scan


def whole(file: Path, folder: Path) -> tf.Log:
    """A whole load into a new database."""
    db = folder / "whole.duckdb"
    db.unlink(missing_ok=True)
    return tf.load(file, db=db, hashes=False)


def big(folder: Path) -> None:
    """Load more than 4 GB in a fresh process under a memory limit."""
    file, size = folder / "big.jsonl", 0
    lines = "".join(chat_lines(200_000))
    with file.open("w") as out:
        for copy in range(35):
            out.write(lines.replace('"chatcmpl-', f'"chatcmpl-{copy}-'))
    size = file.stat().st_size
    (folder / "tenfold.toml").write_text(f'memory_limit = "{MEMORY_LIMIT_MB}MB"\n')
    code = (
        "import resource, tenfold as tf, time; b = time.process_time(); "
        f"n = tf.load({str(file)!r}, db={str(folder / 'big.duckdb')!r}).summary['requests']; "
        "print(n, time.process_time() - b, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    rows, took, peak = run.stdout.split()
    bound = MEMORY_LIMIT_MB + 300
    print(
        f"{size / 1e9:.2f} GB, {int(rows):,} requests: {size / 1e6 / float(took):,.0f} MB/CPU-s, peak memory {float(peak):,.0f} MB "
        f"with memory_limit {MEMORY_LIMIT_MB} MB ({'held' if float(peak) <= bound else 'MISSED'}: at most {bound})"
    )


def main(rows: int = 2_000_000) -> bool:
    """Print the ratios; tell whether all bounds hold."""
    try:
        import orjson
    except ImportError:
        orjson = None
    shown: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = write_files(folder, rows)
        chat, table, store = made["chat.jsonl"], made["rows.csv"], Store(folder)
        check_same(store, head(chat, folder))
        print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, DuckDB {duckdb.__version__}, "
              f"Polars {pl.__version__}; {rows:,} JSON lines of {chat.stat().st_size / rows:,.0f} bytes, {rows:,} CSV rows")  # fmt: skip
        for file, kind in ((chat, "JSON lines"), (table, "CSV")):
            parquet = folder / f"{kind}.parquet"
            connection = store.connect()
            map_file(connection, file)
            connection.execute(f"COPY batch TO '{parquet}' (FORMAT parquet)")
            connection.close()
            hashing = apart(store, file)
            ours, _ = best(lambda file=file: read_and_map(store, file))
            floor, _ = best(lambda parquet=parquet: write(store, parquet))
            shown.append(
                (
                    f"{kind}: read and map / writing the table from Parquet (CPU)",
                    (ours - hashing) / floor,
                    f"<= {BOUNDS['write']}",
                )
            )
            if kind == "CSV":
                theirs, _ = best(lambda: polars_csv(table, folder / "out.parquet"))
                mapped, _ = best(lambda: _only_map(store, table))
                shown.append(
                    ("CSV: read and map / Polars (CPU)", (mapped - hashing) / theirs, f"<= {BOUNDS['polars csv']}")
                )
                continue
            mapped, mapped_wall = best(lambda: _only_map(store, chat))
            theirs, _ = best(lambda: polars_json(chat, folder / "out.parquet"))
            shown.append(
                ("JSON lines: Polars / read and map (CPU)", theirs / (mapped - hashing), f">= {BOUNDS['polars json']}")
            )
            for label, loads in (("orjson", orjson and orjson.loads), ("json", json.loads)):
                if loads:
                    _, wall = best(lambda loads=loads: loop(chat, loads).write_parquet(folder / "loop.parquet"), 1)
                    shown.append(
                        (f"JSON lines: {label} loop / read and map (wall)", wall / mapped_wall, f">= {BOUNDS[label]}")
                    )
        clean, _ = best(lambda: whole(chat, folder), 2)
        dirty, _ = best(lambda: whole(made["dirty.jsonl"], folder), 2)
        shown.append(("whole load: file with bad lines / clean one (CPU)", dirty / clean, f"<= {BOUNDS['dirty']}"))
        rejected = whole(made["dirty.jsonl"], folder).rejects
        _check_rejects(made["dirty.jsonl"], set(rejected["source_line"]))
        print(
            f"whole load: {rows / clean:,.0f} rows/CPU-s, {chat.stat().st_size / 1e6 / clean:,.0f} MB/CPU-s; {len(rejected):,} bad lines, each found"
        )
        shown.append(
            (
                f"{rows // 2:,} ids among {50 * rows:,} stored / a scan of them (CPU)",
                known_ids(folder, 50 * rows, rows // 2),
                f"<= {BOUNDS['ids']}",
            )
        )
        print(f"\n{'what':<66}{'ratio':>8}  bound")
        held = True
        for label, ratio, bound in shown:
            kept = ratio <= float(bound[2:]) if bound[0] == "<" else ratio >= float(bound[2:])
            held &= kept
            print(f"{label:<66}{ratio:>8.2f}  {bound}{'' if kept else '  MISSED'}")
        if "--big" in sys.argv:
            big(folder)
    return held


def _only_map(store: Store, file: Path) -> None:
    connection = store.connect()
    map_file(connection, file)
    connection.close()


def _check_rejects(file: Path, found: set[int]) -> None:
    bad = {line.rstrip(b"\n") for line in BAD}
    planted = {number for number, line in enumerate(file.read_bytes().split(b"\n"), 1) if line in bad}
    if planted != found:
        raise SystemExit(f"bad lines: {len(planted - found)} not found, {len(found - planted)} invented")


if __name__ == "__main__":
    numbers = [int(word.replace("_", "")) for word in sys.argv[1:] if word[0] != "-"]
    sys.exit(0 if main(*numbers) else 1)
