"""Fit the roofline's constants and say how far it is off: ``python -m benchmarks.roofline``, from the checkout's root.

Prints the constants (``tenfold.serving.roofline.FITTED`` holds them), the error of output tokens a second and GPU in
sample and leaving one GPU, model or backend out, the share of points in the stated interval, the time of a layer of
experts, and, where the published points are at hand (``TENFOLD_REAL_DATA``), the tables that were not fitted. Needs
scipy (``tenfold[dev]``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measured_points import PUBLISHED, SILICON_MOE, Measured, fit, published, silicon, splits

from tenfold.serving import roofline


def line(name: str, points: Iterable[Measured], constants: roofline.Constants, *, moe: bool = False) -> None:
    """Print the error of some points."""
    ratios = [point.ratio(constants) for point in points]
    errors = [abs(ratio - 1) for ratio in ratios]
    low, high = roofline.interval(calibrated=False, moe=moe)
    inside = mean(low <= 1 / ratio <= high for ratio in ratios)
    print(
        f"{name:36} {len(ratios):5}  median {median(errors):6.1%}  mean {mean(errors):6.1%}  "
        f"bias {median(ratios):.2f}  in interval {inside:.0%}"
    )


def main() -> None:
    """Print all of it."""
    points = silicon()
    found = fit(points)
    print("fitted  ", found)
    print("shipped ", roofline.FITTED, end="\n\n")
    line("in sample", points, found)
    line("in sample, shipped constants", points, roofline.FITTED)
    for name, is_out in splits(points):
        without = fit(point for point in points if not is_out(point))
        line(f"without {name}", filter(is_out, points), without)
    print()
    experts = silicon(SILICON_MOE)
    for microseconds in (0, 20, 30, 40, 50, 60):
        tried = roofline.FITTED._replace(expert_layer_s=microseconds * 1e-6)
        line(f"experts, {microseconds} us a layer on top", experts, tried, moe=True)
    if not PUBLISHED.is_file():
        return
    print()
    closed = published(lambda row: row["quality"] == "A" and row["scenario"].startswith("closed loop"))
    line("published, closed loop", closed, roofline.FITTED)
    offline = published(lambda row: row["scenario"] == "offline max load")
    line("published, offline", (p for p in offline if not p.deployment.model.is_moe), roofline.FITTED)
    line("published, offline, experts", (p for p in offline if p.deployment.model.is_moe), roofline.FITTED, moe=True)


if __name__ == "__main__":
    main()
