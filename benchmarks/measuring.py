"""How benchmarks measure. Standard library alone, so that a child process holds nothing but what it measures.

A benchmark module has

* ``DATA``: one sentence on what it runs on (how the data is made), for the table's foot;
* ``measure(rows) -> list[Measured]``: both sides of each ratio in this process, ``side_by_side``, and peak memory in a
  fresh one, ``in_child``. It knows nothing of slack: the caller judges (``Measured.is_held``).

``python -m benchmarks`` runs the modules that ``__main__`` lists. Stores are made by ``benchmarks.data.store(rows)``, one
a size and run, and lie in ``folder()``.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

# Keeps what is made between runs, where set; else it goes at the end of the run.
FOLDER = "TENFOLD_BENCH_DIR"


class Measured(NamedTuple):
    """One line of the table.

    Args:
        name: Stable key, ``module/what``, such as ``attribution/raw rows``.
        what: The two sides, ``A / B``, as a reader needs them.
        ratio: A divided by B (MB where ``unit`` is ``memory``), or None where one was not measured (``note`` says why).
        bound: What the ratio is held to, without slack; None where it is only reported.
        is_lower_better: False where the ratio is to be at least the bound.
        rows: Requests (or calls) that the left side went through.
        seconds: CPU seconds of the left side (wall where ``unit`` says so), or None.
        peak_mb: Peak memory of a fresh process that does the left side, libraries included, or None.
        unit: What the ratio is of: ``CPU``, ``wall``; with ``memory``, ratio and bound are MB.
        note: Anything that a reader must know beside, in few words.
    """

    name: str
    what: str
    ratio: float | None
    bound: float | None
    is_lower_better: bool = True
    rows: int | None = None
    seconds: float | None = None
    peak_mb: float | None = None
    unit: str = "CPU"
    note: str = ""

    @property
    def rows_per_s(self) -> float | None:
        """Rows a second of ``seconds``."""
        return self.rows / self.seconds if self.rows and self.seconds else None

    def is_held(self, slack: float = 1.0) -> bool:
        """Tell whether the bound holds.

        Args:
            slack: Factor by which the bound may be missed, such as 1.25.

        Returns:
            True where there is nothing to hold.
        """
        if self.ratio is None or self.bound is None:
            return True
        return self.ratio <= self.bound * slack if self.is_lower_better else self.ratio >= self.bound / slack


def cpu(work: Callable[[], object], times: int = 3) -> float:
    """Time some work.

    Args:
        work: What to run.
        times: How often; the quickest counts.

    Returns:
        CPU seconds of this process, all its threads, user and system.
    """
    return side_by_side(work, times=times)[0]


def side_by_side(*works: Callable[[], object], times: int = 3) -> list[float]:
    """Time several works in turns, so that a slow moment of the machine meets all of them.

    Args:
        works: What to run.
        times: Rounds; the quickest of each work counts.

    Returns:
        CPU seconds of each.
    """
    least = [float("inf")] * len(works)
    for _ in range(times):
        for place, work in enumerate(works):
            before = time.process_time()
            work()
            least[place] = min(least[place], time.process_time() - before)
    return least


def wall(work: Callable[[], object], times: int = 3) -> float:
    """Time some work by the clock on the wall: only for ratios that are stated so.

    Args:
        work: What to run.
        times: How often; the quickest counts.

    Returns:
        Seconds.
    """
    least = float("inf")
    for _ in range(times):
        before = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - before)
    return least


def in_child(function: str, *args: object, cwd: Path | None = None) -> dict[str, Any]:
    """Run a function in a fresh process.

    Args:
        function: ``module:name`` of a function that returns a dict (or None); it may import what it needs itself.
        args: Arguments that JSON can carry.
        cwd: Directory to run in, such as one with a ``tenfold.toml``.

    Returns:
        What it gave, and ``cpu_s``, ``wall_s``, ``peak_mb`` (of the whole process), ``imported_mb`` (before the work).
    """
    code = "import sys; from benchmarks.measuring import _answer; _answer(sys.argv[1], sys.argv[2])"
    run = subprocess.run(
        [sys.executable, "-c", code, function, json.dumps(args)],
        capture_output=True, text=True, check=False, cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    if run.returncode:
        raise RuntimeError(f"{function} failed in a child process:\n{run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def _answer(function: str, args: str) -> None:
    module, name = function.split(":")
    work = getattr(import_module(module), name)
    imported, began, before = peak_mb(), time.perf_counter(), time.process_time()
    found = work(*json.loads(args)) or {}
    took = {"cpu_s": time.process_time() - before, "wall_s": time.perf_counter() - began}
    sys.stdout.write("\n" + json.dumps({**took, "imported_mb": imported, "peak_mb": peak_mb(), **found}))


def peak_mb() -> float:
    """Peak resident memory of this process in MiB (what ``getrusage`` says of a child begins at its parent's)."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


@cache
def folder() -> Path:
    """Where this run's data lies: ``TENFOLD_BENCH_DIR`` (kept), else a temporary directory that goes at the end."""
    kept = os.environ.get(FOLDER)
    if kept:
        path = Path(kept)
        path.mkdir(parents=True, exist_ok=True)
        return path.resolve()
    path = Path(tempfile.mkdtemp(prefix="tenfold-bench-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
