"""Loading: reading and mapping beside other ways to do the same, whole loads, broken files, known ids, peak memory.

What is written is the table `requests` in a DuckDB file, from JSON lines or CSV and from Parquet. The loops map the same
rows to the same main columns; they are compared by the clock on the wall, all else by CPU. Memory is that of a fresh process
that loads the JSON lines under a limit.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

import tenfold as tf
from benchmarks.mappings import COLUMNS, loop, polars_csv, polars_json
from benchmarks.measuring import Measured, cpu, folder, in_child, side_by_side, wall
from tenfold.logs import batch, detect, direct, files, slices
from tenfold.logs.plans import plans as planned
from tenfold.logs.publish import find_known
from tenfold.logs.raw import Job
from tenfold.logs.sources import Known, opened
from tenfold.logs.text.fields import without_text
from tenfold.store import schema
from tenfold.store.database import query

DATA = (
    "OpenAI Chat answers as JSON lines of about 630 bytes, the same with one bad line in about 1,000, and a table of 11 columns "
    "in CSV"
)
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
    ids = cpu(lambda: connection.execute("SELECT sum(md5_number_lower(dedup_key)) FROM batch").fetchall())
    connection.close()
    return ids + cpu(lambda: (files.scan(file), detect.content(file)))


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
    scan, took = side_by_side(
        lambda: connection.execute("SELECT sum(id_hash) FROM requests").fetchall(), lambda: find_known(connection)
    )
    connection.close()
    return took / scan


def whole(file: Path, folder: Path) -> tf.Log:
    """A whole load into a new database."""
    db = folder / "whole.duckdb"
    db.unlink(missing_ok=True)
    return tf.load(file, db=db, hashes=False)


def child(file: str, db: str) -> dict[str, Any]:
    """Load in a fresh process."""
    return {"requests": tf.load(file, db=db).summary["requests"]}


def measure(rows: int) -> list[Measured]:
    """Measure.

    Args:
        rows: Lines.

    Returns:
        The ratios, and memory.
    """
    work = folder() / f"load-{rows}"
    work.mkdir(exist_ok=True)
    made = write_files(work, rows)
    chat, table, store = made["chat.jsonl"], made["rows.csv"], Store(work)
    check_same(store, head(chat, work))
    found = [*_mapped("JSON lines", store, chat, rows), *_mapped("CSV", store, table, rows)]
    clean, dirty = side_by_side(lambda: whole(chat, work), lambda: whole(made["dirty.jsonl"], work), times=2)
    rejected = whole(made["dirty.jsonl"], work).rejects
    _check_rejects(made["dirty.jsonl"], set(rejected["source_line"]))
    note = f"{len(rejected):,} bad lines, each found; a clean file {chat.stat().st_size / 1e6 / clean:,.0f} MB/CPU-s"
    found.append(
        Measured("load/bad lines", "a whole load with bad lines / a clean one", dirty / clean, BOUNDS["dirty"], rows=rows,
                 seconds=clean, note=note)
    )  # fmt: skip
    what = f"finding {rows // 2:,} ids among {50 * rows:,} stored / a scan of them"
    found.append(Measured("load/known ids", what, known_ids(work, 50 * rows, rows // 2), BOUNDS["ids"], rows=rows // 2))
    (work / "tenfold.toml").write_text(f'memory_limit = "{MEMORY_LIMIT_MB}MB"\n')
    (work / "alone.duckdb").unlink(missing_ok=True)
    alone = in_child("benchmarks.load:child", str(chat), str(work / "alone.duckdb"), cwd=work)
    found.append(
        Measured("load/memory", "peak of the process that loads", alone["peak_mb"], MEMORY_LIMIT_MB + 300.0, rows=rows,
                 seconds=alone["cpu_s"], unit="memory", note=f"memory_limit {MEMORY_LIMIT_MB}MB, {chat.stat().st_size / 1e9:.1f} GB")
    )  # fmt: skip
    return found


def _mapped(kind: str, store: Store, file: Path, rows: int) -> list[Measured]:
    """Reading and mapping beside writing the same table, beside Polars, and beside loops."""
    parquet, out = file.with_suffix(".parquet"), file.with_suffix(".out.parquet")
    parquet.unlink(missing_ok=True)
    connection = store.connect()
    map_file(connection, file)
    connection.execute(f"COPY batch TO '{parquet}' (FORMAT parquet)")
    connection.close()
    hashing, is_csv = apart(store, file), kind == "CSV"
    ours, floor, mapped, theirs = side_by_side(
        lambda: read_and_map(store, file), lambda: write(store, parquet), lambda: _only_map(store, file),
        lambda: (polars_csv if is_csv else polars_json)(file, out),
    )  # fmt: skip
    found = [
        Measured(f"load/{kind}", "reading and mapping / writing the table from Parquet", (ours - hashing) / floor, BOUNDS["write"],
                 rows=rows, seconds=ours - hashing),
        Measured(f"load/{kind}, Polars", "reading and mapping / the same in Polars", (mapped - hashing) / theirs,
                 BOUNDS["polars csv" if is_csv else "polars json"], rows=rows, seconds=mapped - hashing),
    ]  # fmt: skip
    for label, loads in [] if is_csv else _decoders():
        slow = wall(lambda loads=loads: loop(file, loads).write_parquet(out), 1)
        quick = wall(lambda: _only_map(store, file))
        found.append(
            Measured(f"load/{label} loop", f"a loop over {label}.loads / reading and mapping", slow / quick, BOUNDS[label],
                     is_lower_better=False, rows=rows, seconds=quick, unit="wall")
        )  # fmt: skip
    return found


def _decoders() -> list[tuple[str, Any]]:
    try:
        import orjson
    except ImportError:
        return [("json", json.loads)]
    return [("orjson", orjson.loads), ("json", json.loads)]


def _only_map(store: Store, file: Path) -> None:
    connection = store.connect()
    map_file(connection, file)
    connection.close()


def _check_rejects(file: Path, found: set[int]) -> None:
    bad = {line.rstrip(b"\n") for line in BAD}
    planted = {number for number, line in enumerate(file.read_bytes().split(b"\n"), 1) if line in bad}
    if planted != found:
        raise SystemExit(f"bad lines: {len(planted - found)} not found, {len(found - planted)} invented")
