"""Logs for publishing and forgetting: rows with users on several days, as files of tenfold's own columns."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

from tenfold.logs import Log, load
from tenfold.store import schema

START = datetime(2026, 7, 1, 23, 30)
USERS = ("ann", 'o\'neil "x"', "na\u0308me\u202e", "bob")


def row(number: int, *, user: str | None = "ann", hours: float = 5, **more: object) -> dict[str, object]:
    """One request; they lie ``hours`` apart."""
    ts = (START + timedelta(hours=hours * number)).isoformat() + "Z"
    return {
        "request_id": f"r{number}",
        "ts": ts,
        "provider": "openai",
        "model": "gpt-5",
        "team": ("a/b", "c'd")[number % 2],
        "user_id": user,
        "input_tokens": 100 + number,
        "output_tokens": 10,
        "status": "success",
        **more,
    }


def rows(count: int = 24, first: int = 0) -> list[dict[str, object]]:
    """Requests of four users over days, one in eight without a time."""
    return [
        row(n, user=USERS[n % 4], tags={"who": USERS[n % 4]}, **({"ts": None} if n % 8 == 7 else {}))
        for n in range(first, first + count)
    ]


def loaded(db: Path, made: list[dict[str, object]], name: str = "a", **options: object) -> Log:
    """Load rows as a file."""
    file = db.with_name(f"{name}.jsonl")
    file.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in made), encoding="utf-8")
    return load(file, db=db, **options)  # pyright: ignore[reportArgumentType]


def tables(log: Log) -> dict[str, list[tuple[object, ...]]]:
    """What a store holds, all rows of the tables that a published folder has too."""
    names = ("requests", "cube", "price_keys", "rejects", "loads", "usage_buckets", "plans")
    held: dict[str, list[tuple[object, ...]]] = {}
    with log.store.reading() as connection:
        for name in names:
            columns = ", ".join(column for column in schema.names(name) if column != "excerpt")
            held[name] = connection.execute(f"SELECT {columns} FROM {name} ORDER BY ALL").fetchall()
    return held


# Forks a child for each point, before DuckDB has threads, which is killed there.
_KILLED = """
import json, os, shutil, signal, sys
from pathlib import Path
import polars, duckdb
import tenfold as tf
from tenfold.export import forgetting, snapshots

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def stop_at(home, name, call, after):
    whole, calls = getattr(home, name), [0]
    def stop(*args, **kwargs):
        calls[0] += 1
        if calls[0] == call and not after:
            kill()
        done = whole(*args, **kwargs)
        if calls[0] == call:
            kill()
        return done
    setattr(home, name, stop)

HOMES = {"snapshots": snapshots, "Path": Path, "shutil": shutil}
for case in json.loads(sys.stdin.read()):
    pid = os.fork()
    if pid == 0:
        try:
            home, name, call, after = case["at"]
            log = tf.open_log(case["db"])
            stop_at(HOMES[home], name, call, after)
            tf.publish(log, case["out"]) if case["out"] else tf.forget(log, user="ann")
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def killed(cases: list[dict[str, object]]) -> list[int]:
    """Run each case in a process that is killed at its point; exit codes, -9 where it was."""
    text = json.dumps(cases)
    done = subprocess.run([sys.executable, "-c", _KILLED], input=text, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return [int(word) for word in done.stdout.split()]
