"""Run every benchmark: ``make bench``, or ``python -m benchmarks [rows]``."""

from __future__ import annotations

import sys

from benchmarks import attribution, prices

if __name__ == "__main__":
    is_held = prices.main()
    print()
    attribution.main(int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else 1_000_000)
    sys.exit(0 if is_held else 1)
