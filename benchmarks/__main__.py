"""Run every benchmark: ``make bench``, or ``python -m benchmarks [rows]``."""

from __future__ import annotations

import sys

from benchmarks import attribution

if __name__ == "__main__":
    attribution.main(int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else 1_000_000)
