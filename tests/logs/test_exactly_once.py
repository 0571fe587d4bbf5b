"""Loads again and again, killed at any moment, on a torn write-ahead log: nothing is lost, nothing counts twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from random import Random

import pytest
from log_files import SAMPLES, chat, write
from warm import warm

from tenfold.config import Settings
from tenfold.errors import StoreError
from tenfold.logs import load, open_log
from tenfold.logs.cube import _KEYS, _SUMS, cells_sql, thresholds_of
from tenfold.logs.publish import _PAYLOAD
from tenfold.store.database import Store

# What a row says, wherever and whenever it was read.
SAID = ", ".join(name for name in _PAYLOAD if name != "prefix_hashes")

_NAMES = "row(k.provider, k.model, k.service_tier, k.region)"


def held(db):
    """Everything the table says, and the cube against one that is made from the rows alone."""
    with Store(db).reading() as connection:
        rows = connection.execute(f"SELECT {SAID} FROM requests ORDER BY ALL").fetchall()
        # price keys are numbered as they come: their names stand for them
        keys = ", ".join(f"({_NAMES})" if name == "price_key" else f"c.{name}" for name in _KEYS)
        sums = ", ".join(f"sum(c.{name})::HUGEINT" for name in _SUMS)
        cells = f"({cells_sql('requests', thresholds_of(connection) or ())})"
        cubes = [
            connection.execute(
                f"SELECT {keys}, {sums} FROM {source} c JOIN price_keys k USING (price_key) "
                "GROUP BY ALL HAVING sum(c.requests) <> 0 ORDER BY ALL"
            ).fetchall()
            for source in ("cube", cells)
        ]
        counted = connection.execute("SELECT coalesce(sum(requests), 0)::BIGINT FROM loads").fetchall()[0][0]
    assert cubes[0] == cubes[1]
    assert counted == len(rows)
    return rows, cubes[0]


# -- reloads


def versions(number, *, last):
    """A call's snapshots: its output grows."""
    return [chat(number, completion=10 + 7 * step, prompt=50 + number) for step in range(last + 1)]


def exports(folder):
    """Files that overlap in every way, and the output that each call has in the end."""
    calls = {n: versions(n, last=n % 3) for n in range(60)}
    first = [calls[n][0] for n in range(40)]
    grown = [*first, *(calls[n][0] for n in range(40, 50))]
    overlap = [calls[n][min(1, n % 3)] for n in range(30, 60)]
    later = [snapshots[-1] for n, snapshots in calls.items() if n % 3 or n >= 50]
    mixed = [snapshot for n in range(0, 60, 4) for snapshot in calls[n]]
    made = [write(folder / "a.jsonl", first)]
    made += [shutil.copy(made[0], folder / "renamed.log")]
    for name, rows in (("grown", grown), ("overlap", overlap), ("later", later), ("mixed", mixed)):
        made.append(write(folder / f"{name}.jsonl", rows))
    made += [SAMPLES / name for name in ("litellm_spendlogs.csv", "claude_code_session.jsonl", "azure_llm_trace.csv")]
    return made, {f"chatcmpl-{n}": snapshots[-1]["usage"]["completion_tokens"] for n, snapshots in calls.items()}


def reload_often(folder, seed, count, *, at_once=False):
    rng = Random(seed)
    files, outputs = exports(folder)
    db = folder / "log.duckdb"
    order = rng.sample(files, len(files))
    for some in [order] if at_once else order:
        load(some, db=db, thresholds=())
    before = held(db)
    found = dict(open_log(db).requests.select("request_id", "output_tokens").iter_rows())
    assert {name: found.get(name) for name in outputs} == outputs
    assert len(before[0]) == len(outputs) + 4 + 2 + 2
    for _ in range(count):
        some = rng.sample(files, rng.choice((1, 1, 1, 3)))
        log = load(some, db=db, thresholds=())
        assert log.summary["requests"] == 0
    assert held(db) == before
    return before


def test_the_same_files_in_any_order_and_again_are_the_same_table(tmp_path):
    seen = []
    for seed, count in ((1, 3), (2, 0)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        seen.append(reload_often(folder, seed, count, at_once=seed == 2))
    assert seen[0] == seen[1]


@pytest.mark.full
def test_a_thousand_reloads(tmp_path):
    seen = []
    for seed in range(10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        seen.append(reload_often(folder, seed, 100, at_once=seed > 5))
    assert all(one == seen[0] for one in seen)


# -- kills


def kill_often(folder, count, seed, *, parts, loaded):
    """Load some files one after the other, killed at random moments and started again, until all are in."""
    rng = Random(seed)
    # a later file also takes stored rows away, for snapshots that have grown
    files = [
        write(folder / f"{part}.jsonl", [chat(n, completion=10 + part) for n in range(200 * part, 200 * part + 400)])
        for part in range(parts)
    ]
    states, starts = {0: ([], [])}, folder / "starts.duckdb"
    for number, file in enumerate(files, 1):
        load(file, db=folder / "right.duckdb", thresholds=())
        right = held(folder / "right.duckdb")
        states[len(right[0])] = right
        if number == loaded:
            shutil.copy(folder / "right.duckdb", starts)
    seen, kills, round_number = set(), 0, 0
    with warm() as server:
        began = time.monotonic()
        server.start(folder / "timed.duckdb", *files[loaded:])
        assert server.wait() == 0
        whole_s = time.monotonic() - began
        while kills < count:
            round_number += 1
            db = folder / f"{round_number}.duckdb"
            if loaded:
                shutil.copy(starts, db)
            ended = -signal.SIGKILL
            while ended and kills < count:
                child = server.start(db, *files[loaded:])
                time.sleep(rng.uniform(0, whole_s))
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                ended = server.wait()
                assert ended in {0, -signal.SIGKILL}
                kills += ended != 0
                rows, cube = held_if_any(db)
                assert (rows, cube) == states[len(rows)]
                seen.add(len(rows))
            if ended:
                server.start(db, *files[loaded:])
                assert server.wait() == 0
            assert held(db) == right
    return seen


def held_if_any(db):
    try:
        return held(db)
    except StoreError as error:  # killed before the tables were made
        if "nothing has been loaded yet" in str(error) or "no such database" in str(error):
            return [], []
        raise


def test_four_kills_lose_and_double_nothing(tmp_path):
    kill_often(tmp_path, 4, 5, parts=2, loaded=1)


@pytest.mark.full
def test_a_hundred_kills_lose_and_double_nothing(tmp_path):
    # kills hit before, between and after the loads
    assert len(kill_often(tmp_path, 100, 6, parts=3, loaded=0)) >= 3


# -- a torn write-ahead log


@pytest.fixture(scope="module")
def torn(tmp_path_factory):
    """A database whose last load is committed and stands in the write-ahead log alone; the states before and after."""
    folder = tmp_path_factory.mktemp("torn")
    db, wal = folder / "log.duckdb", folder / "log.duckdb.wal"
    files = [write(folder / f"{part}.jsonl", [chat(n, completion=9 + part) for n in range(300)]) for part in range(2)]
    with warm() as server:
        server.start(db, files[0])
        assert server.wait() == 0
        before = held(db)
        server.start(db, files[1], kind="commit")
        assert server.wait() == 9
    assert wal.stat().st_size > 10_000
    whole = folder / "whole"
    whole.mkdir()
    for file in (db, wal):
        shutil.copy(file, whole)
    after = held(whole / "log.duckdb")
    assert before != after
    return db, wal, files, before, after


def damaged(how, data):
    rng = Random(how)
    if isinstance(how, int):
        return data[:-how]
    if how.startswith("flip"):
        at = rng.randrange(len(data))
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    return data[: {"half": len(data) // 2, "nearly all": 200, "all": 0}[how]]


def check_torn(folder, torn, how):
    db, wal, files, before, after = torn
    copy = folder / "log.duckdb"
    shutil.copy(db, copy)
    (folder / "log.duckdb.wal").write_bytes(damaged(how, wal.read_bytes()))
    try:
        found = held(copy)
    except StoreError as error:
        said = str(error)
        assert str(copy) in said
        assert "\n" not in said
        return "refused"
    assert found in (before, after)
    if found == before:
        # the last load is gone as a whole, and can be had again
        load(files[1], db=copy, thresholds=())
        assert held(copy) == after
        return "the load before"
    return "the whole load"


FULL = [pytest.param(how, marks=pytest.mark.full) for how in (1, 100, 5000, "nearly all", "all", "flip 2", "flip 3")]


@pytest.mark.parametrize("how", ["half", "flip 1", *FULL])
def test_a_torn_write_ahead_log_gives_the_last_whole_load_or_is_refused(tmp_path, torn, how):
    found = check_torn(tmp_path, torn, how)
    assert found != "the whole load" or str(how).startswith("flip")


@pytest.mark.full
def test_many_torn_write_ahead_logs(tmp_path, torn):
    size = torn[1].stat().st_size
    seen = set()
    for number in range(200):
        folder = tmp_path / str(number)
        folder.mkdir()
        seen.add(check_torn(folder, torn, f"flip {number}" if number % 2 else Random(number).randrange(1, size)))
    assert "the load before" in seen


# -- two processes


HOLD = """
import sys
from tenfold.store.database import Store
with Store(sys.argv[1]).writing():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_who_writes_and_readers_work_when_nobody_does(tmp_path):
    db = tmp_path / "log.duckdb"
    file = write(tmp_path / "a.jsonl", [chat(1)])
    load(file, db=db)
    command = [sys.executable, "-c", HOLD, str(db)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "held\n"
        limits = Settings(lock_timeout_s=0.1)
        for open_it in (Store(db, limits=limits).reading, Store(db, limits=limits).writing):
            with pytest.raises(StoreError, match=rf"is being \w+ by PID {writer.pid}\b.*Waited 0\.1 s"), open_it():
                pass
        writer.stdin.close()
        writer.wait()
    # any number of readers, also in another process, while nobody writes
    with Store(db).reading() as one, Store(db).reading() as two:
        reader = "import sys; from tenfold.logs import open_log; print(open_log(sys.argv[1]).summary['requests'])"
        done = subprocess.run([sys.executable, "-c", reader, str(db)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "1"
        assert one.execute("SELECT count(*) FROM requests").fetchall() == two.execute("SELECT 1").fetchall()
    assert load(write(tmp_path / "b.jsonl", [chat(2)]), db=db).summary["requests"] == 1
