"""A day of use on one database, made short: loads that follow each other, readers of all kinds beside them.

Run as ``python simulated_day.py ROLE FOLDER SEED``: every role is a process of its own, which writes what it saw to
``ROLE-SEED.jsonl``. The folder has the log files (``load-NNN.jsonl``) and, when the day is over, ``over``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from log_files import chat, write

import tenfold as tf
from tenfold.cli import main
from tenfold.store import database

TEAMS = ("search", "support", "agents")


class Day:
    """The folder of a day.

    Args:
        folder: Where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "usage.duckdb"
        self.published = folder / "published"

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("load-*.jsonl"))

    @property
    def is_over(self) -> bool:
        return (self.folder / "over").exists()

    def told(self, role: str) -> list[dict[str, Any]]:
        lines = [line for file in sorted(self.folder.glob(f"{role}-*.jsonl")) for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]


def make(folder: Path, *, loads: int, rows: int, big: int) -> Day:
    """Write a day's log files: some are big, some repeat earlier calls, some correct them.

    On a machine that is busy otherwise, everything takes its time: roles wait for minutes before they give up.
    """
    (folder / "tenfold.toml").write_text("lock_timeout_s = 300\n")
    for k in range(loads):
        made = [request(k, n, 10) for n in range(big if k % 7 == 3 else rows)]
        if k % 3 == 2:  # later snapshots of calls that are known: merged, and dearer than before
            made += [request(k - 1, n, 10 + k) for n in range(0, rows, 2)]
        if k % 4 == 1:
            made += [request(k - 1, n, 10) for n in range(rows)]
        write(folder / f"load-{k:03}.jsonl", made)
    return Day(folder)


def request(k: int, n: int, output: int) -> dict[str, Any]:
    number = 100_000 * k + n
    body = chat(number, prompt=1_000 + n % 7, completion=output)
    return {**body, "created": 1793577600 + 900 * k + n % 900, "_log": {"team": TEAMS[n % 3], "feature": f"f{n % 2}"}}


def state(db: Path) -> tuple[int, int]:
    """Requests and pUSD of all that is loaded."""
    ledger = tf.attribute(tf.open_log(db))
    return ledger.coverage.requests, ledger.total_pusd


def states(day: Day) -> list[tuple[int, int]]:
    """What every number of whole loads comes to, loaded one after the other with nobody beside."""
    alone = day.folder / "alone.duckdb"
    made = []
    for file in day.files:
        tf.load(file, db=alone)
        made.append(state(alone))
    return made


# -- roles


def loader(day: Day, tell: Callable[..., None], rng: random.Random) -> None:
    """Load file by file, each in a child of its own as a scheduler would; some are killed and run again."""
    for k, file in enumerate(day.files):
        time.sleep(rng.uniform(0.1, 0.3))
        if k % 5 == 4:
            child = forked(lambda: tf.load(file, db=day.db))  # noqa: B023 -- runs before the next file
            time.sleep(rng.uniform(0.0, 0.4))
            os.kill(child, signal.SIGKILL)
            tell(load=k, killed=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
        child = forked(lambda: _load(day, file, tell))  # noqa: B023
        tell(load=k, ended=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    (day.folder / "over").touch()


def _load(day: Day, file: Path, tell: Callable[..., None]) -> None:
    with waits() as waited:
        tf.load(file, db=day.db)
    tell(waited_s=max(waited))


def forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 -- a child must not come back from here
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return child


def notebook(day: Day, tell: Callable[..., None], rng: random.Random) -> None:
    """Keep a look at the log open for a while, and read in it again and again."""
    until_over(day, rng, lambda: _look(day, tell, rng))


def _look(day: Day, tell: Callable[..., None], rng: random.Random) -> None:
    with waits() as waited, tf.attribute(tf.open_log(day.db)).session() as session:
        seen = []
        for _ in range(3):
            row = session.totals().row(0, named=True)
            seen.append([row["requests"], int(row["cost_pusd"])])
            time.sleep(rng.uniform(0.05, 0.3))
    tell(seen=seen, waited_s=max(waited))


def cost(day: Day, tell: Callable[..., None], rng: random.Random) -> None:
    """Ask the command line for the bill by team."""
    until_over(day, rng, lambda: _cost(day.db, tell))


def always_on(day: Day, tell: Callable[..., None], rng: random.Random) -> None:
    """Ask for the bill from the published folder, all the time."""
    until_over(day, rng, lambda: _cost(day.published, tell), pause_s=0.05)


def _cost(db: Path, tell: Callable[..., None]) -> None:
    if not db.is_file() and not (db / "current").exists():  # nothing has been published yet
        return
    with waits() as waited:
        document = answered("cost", "--db", str(db), "--by", "team", "--json")
    rows = [row for row in document["rows"] if row["requests"]]
    total = sum(round(float(row["cost_usd"]) * 1e12) for row in rows)
    seen = [[sum(row["requests"] for row in rows), round(float(document["total_usd"]) * 1e12)]]
    covered = document["coverage"]["requests"]
    tell(seen=seen, foots=total == seen[0][1], agrees=covered == seen[0][0], waited_s=max(waited, default=0.0))


def levers(day: Day, tell: Callable[..., None], rng: random.Random) -> None:
    """Estimate the levers, now and then."""
    until_over(day, rng, lambda: _levers(day, tell), pause_s=1.0)


def _levers(day: Day, tell: Callable[..., None]) -> None:
    with waits() as waited:
        document = answered("levers", "--db", str(day.db), "--json")
    tell(spend=round(float(document["spend_usd"]) * 1e12), waited_s=max(waited))


def review(day: Day, tell: Callable[..., None], rng: random.Random) -> None:
    """Write the quarter's page, now and then."""
    until_over(day, rng, lambda: _review(day, tell), pause_s=1.0)


def _review(day: Day, tell: Callable[..., None]) -> None:
    out = day.folder / f"review-{os.getpid()}.md"
    with waits() as waited:
        answered("review", "--db", str(day.db), "--quarter", "2026Q4", "--out", str(out), "--json")
    tell(text=out.read_text(encoding="utf-8"), waited_s=max(waited))


def publisher(day: Day, tell: Callable[..., None], rng: random.Random) -> None:
    """Publish after every few loads."""

    def publish() -> None:
        with waits() as waited:
            tf.publish(tf.open_log(day.db), day.published)
        tell(waited_s=max(waited))

    until_over(day, rng, publish, pause_s=0.5)


ROLES: dict[str, Callable[[Day, Callable[..., None], random.Random], None]] = {
    one.__name__: one for one in (loader, notebook, cost, always_on, levers, review, publisher)
}


# -- what roles share


def until_over(day: Day, rng: random.Random, work: Callable[[], None], pause_s: float = 0.2) -> None:
    """Work again and again until the last load is in, and once more."""
    while not day.db.exists() and not day.is_over:
        time.sleep(0.05)
    is_over = False
    while not is_over:
        is_over = day.is_over
        try:
            work()
        except tf.TenfoldError as error:
            if "nothing has been loaded yet" not in str(error):
                raise
        time.sleep(rng.uniform(0, pause_s))


def answered(*words: str) -> dict[str, Any]:
    """Run a command in this process and read its JSON."""
    import contextlib
    import io

    text, before = io.StringIO(), sys.argv
    sys.argv = ["tenfold", *words]
    try:
        with contextlib.redirect_stdout(text):
            main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{words}: exit {end.code}") from end
    finally:
        sys.argv = before
    return json.loads(text.getvalue())


class waits:  # noqa: N801 -- reads as a word where it is used
    """Collect how long each opening of a database took."""

    def __enter__(self) -> list[float]:
        self.whole = database.Store._connect
        seconds: list[float] = []

        def timed(store: database.Store, *words: Any) -> Any:
            began = time.monotonic()
            try:
                return self.whole(store, *words)
            finally:
                seconds.append(time.monotonic() - began)

        database.Store._connect = timed  # type: ignore[method-assign]
        return seconds

    def __exit__(self, *_: object) -> None:
        database.Store._connect = self.whole  # type: ignore[method-assign]


def start(role: str, day: Day, seed: int = 0) -> subprocess.Popen[str]:
    """Start a role."""
    command = [sys.executable, __file__, role, str(day.folder), str(seed)]
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, cwd=day.folder)


def play(role: str, folder: Path, seed: int) -> None:
    out = folder / f"{role}-{seed}.jsonl"

    def tell(**what: Any) -> None:
        with out.open("a") as handle:
            handle.write(json.dumps(what) + "\n")

    ROLES[role](Day(folder), tell, random.Random(f"{role} {seed}"))


if __name__ == "__main__":
    play(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
