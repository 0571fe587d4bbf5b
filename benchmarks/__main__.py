"""Run every benchmark: ``make bench``, or ``python -m benchmarks [rows]``."""

from __future__ import annotations

import sys

from benchmarks import attribution, diagnose, levers, load, prices, simulator

if __name__ == "__main__":
    rows = [int(word.replace("_", "")) for word in sys.argv[1:] if word[0] != "-"]
    is_held = prices.main()
    print()
    attribution.main(*(rows or [1_000_000]))
    print()
    is_held &= load.main(*rows)
    print()
    is_held &= levers.main(*rows)
    print()
    is_held &= simulator.main()
    print()
    is_held &= diagnose.main(*rows)
    sys.exit(0 if is_held else 1)
