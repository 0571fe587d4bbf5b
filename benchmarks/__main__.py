"""Run the benchmarks: ``python -m benchmarks [rows] [--check] [--only NAME]...`` (``make bench``, ``make bench-check``).

Exits 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from benchmarks import report
from benchmarks.measuring import Measured

# Module to its requests in `make bench`. Modules that stand here before they are written are passed over, and named.
SIZES = {
    "prices": 20_000,
    "load": 2_000_000,
    "attribution": 10_000_000,
    "at_scale": 100_000_000,
    "export": 2_000_000,
    "replay": 100_000_000,
    "levers": 2_000_000,
    "bootstrap": 10_000_000,
    "simulator": 100_000,
    "diagnose": 1_000_000,
    "plan": 1_000_000,
    "review": 10_000_000,
    "spark": 16_000_000,
}
# What `--check` runs, with slack; exports write every column, so they take fewer rows.
CHECK_ROWS, SLACK = 2_000_000, 1.25
# Machines of checks are shared: what is missed is measured again, this often at most.
TRIES = 3
CHECKED = {
    "attribution": CHECK_ROWS,
    "export": 400_000,
    "replay": CHECK_ROWS,
    "levers": CHECK_ROWS,
    "bootstrap": CHECK_ROWS,
}


def held(module: ModuleType, rows: int, slack: float, tries: int) -> list[Measured]:
    """Measure a module, and again where a bound is missed."""
    found: list[Measured] = []
    for _ in range(tries):
        found = module.measure(rows)
        if all(one.is_held(slack) for one in found):
            break
    return found


def main() -> int:
    """Run, print and write; 1 where a bound is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("rows", nargs="?", type=lambda text: int(text.replace("_", "")), help="of every module")
    parser.add_argument("--check", action="store_true", help=f"{CHECK_ROWS:,} rows, {SLACK}x slack, no files written")
    parser.add_argument("--only", action="append", choices=list(SIZES), default=[], help="this module (repeatable)")
    parser.add_argument("--out", type=Path, help="folder for table and chart of a run that is not the whole one")
    given = parser.parse_args()
    sizes = CHECKED if given.check else SIZES
    slack = SLACK if given.check else 1.0
    measured: list[Measured] = []
    about: dict[str, str] = {}
    for name in given.only or sizes:
        if find_spec(f"benchmarks.{name}") is None or not hasattr(import_module(f"benchmarks.{name}"), "measure"):
            print(f"{name}: not there yet", file=sys.stderr)
            continue
        module = import_module(f"benchmarks.{name}")
        began = time.perf_counter()
        found = held(module, given.rows or sizes.get(name, SIZES[name]), slack, TRIES if given.check else 1)
        print(report.lines(found, slack), flush=True)
        print(f"{name}: {time.perf_counter() - began:,.0f} s\n", file=sys.stderr)
        measured += found
        about[name] = module.DATA
    if given.out:
        report.write(measured, about, given.out)
    elif not given.check and not given.only and not given.rows:
        report.write(measured, about)
    missed = [one.name for one in measured if not one.is_held(slack)]
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
