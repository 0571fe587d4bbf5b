"""Rates with clustered errors, the verdict and costs. Part of the slow second implementation of the runbook."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from math import inf, isfinite, log, nan, sqrt
from typing import Any

from oracle_latency.basics import Numbers, known, labels, numbers


def cluster_variance(influence: Numbers, clusters: Sequence[Hashable]) -> tuple[float, float]:
    """Variance of a sum over clusters, n / (n - 1), and its degrees of freedom by the kurtosis of the sums."""
    sums: dict[Hashable, float] = defaultdict(float)
    for cluster, value in zip(clusters, influence, strict=True):
        sums[cluster] += value
    squares = [each**2 for each in sums.values()]
    many, total = len(squares), sum(squares)
    if many < 2 or total == 0:
        return (inf, 3.0) if many < 2 else (0.0, 3.0)
    kurtosis = many * sum(each**2 for each in squares) / total**2
    return total * many / (many - 1), min(2 * many / max(kurtosis - 1, 1e-9), many - 1.0)


def standardised(
    before: tuple[Numbers, Numbers, Sequence[Hashable], Sequence[Hashable]],
    after: tuple[Numbers, Numbers, Sequence[Hashable], Sequence[Hashable]],
) -> tuple[float, float, float, float]:
    """A ratio after less what its cells (of four requests before at least) gave; error, freedom and excess.

    Either side: numerator, denominator, cell, cluster.
    """
    rows: dict[Hashable, list[tuple[float, float]]] = defaultdict(list)
    for top, below, cell, _ in zip(*before, strict=True):
        rows[cell].append((top, below))
    rate = {
        cell: sum(top for top, _ in held) / sum(below for _, below in held)
        for cell, held in rows.items()
        if len(held) >= 4 and sum(below for _, below in held) > 0
    }
    common = [
        (top - rate[cell] * below, below, cell, by) for top, below, cell, by in zip(*after, strict=True) if cell in rate
    ]
    whole = sum(below for _, below, _, _ in common)
    excess = sum(more for more, _, _, _ in common)
    mid = excess / whole
    # requests of cells that are not known are clusters that say nothing
    silent = [(0.0, by) for _, _, cell, by in zip(*after, strict=True) if cell not in rate]
    told = [((more - mid * below) / whole, by) for more, below, _, by in common] + silent
    new = cluster_variance([each for each, _ in told], [by for _, by in told])
    asked: dict[Hashable, float] = defaultdict(float)
    for _, below, cell, _ in common:
        asked[cell] += below
    errors: list[float] = []
    for top, below, cell, _ in zip(*before, strict=True):
        if cell not in rate:
            errors.append(0.0)
            continue
        many, base = len(rows[cell]), sum(each for _, each in rows[cell])
        errors.append(asked[cell] / base * sqrt(many / (many - 1)) * (top - rate[cell] * below) / whole)
    old = cluster_variance(errors, before[3])
    total = old[0] + new[0]
    freedom = total**2 / (old[0] ** 2 / old[1] + new[0] ** 2 / new[1]) if total else inf
    return mid, sqrt(total), freedom, excess


def repeats(window: Any, callers: Sequence[Hashable], horizon: Callable[[Hashable], float]) -> list[bool]:
    """Further attempts, and the same prompt of the same caller within the horizon."""
    count = len(window.ts_s)
    prompts, ts = labels(window.prompt, count), numbers(window.ts_s)
    out: list[bool] = []
    for at in range(count):
        gaps = [
            ts[at] - ts[o]
            for o in range(at)
            if prompts[at] is not None and prompts[o] == prompts[at] and callers[o] == callers[at]
        ]
        again = window.attempt is not None and float(window.attempt[at]) > 0
        out.append(again or bool(gaps and min(gaps) <= horizon(callers[at])))
    return out


def false_discovery(p: Numbers) -> list[float]:
    """Benjamini-Hochberg: the least level at which each test is rejected."""
    tested = known(p)
    return [
        nan
        if not isfinite(mine)
        else min(1.0, *(each * len(tested) / sum(one <= each for one in tested) for each in tested if each >= mine))
        for mine in p
    ]


# ---- the answer


def verdict(
    moved: dict[str, tuple[float, float, bool]], roots: Sequence[dict[str, float]]
) -> tuple[str, dict[str, float]]:
    """Give the verdict and what is unexplained, of (before, after, is a change) and the shares of first causes.

    A component that moved less than a third of the one that moved most, as logs, does not decide.
    """
    logs = {name: abs(log(after / before)) for name, (before, after, is_change) in moved.items() if is_change}
    if not logs:
        return "no_change", {}
    rest = {
        name: 1 - sum(shares.get(name, 0.0) for shares in roots)
        for name, size in logs.items()
        if size >= max(logs.values()) / 3
    }
    if not roots:
        return "refused", rest
    return ("partly" if any(abs(each) > 0.4 for each in rest.values()) else "explained"), rest


def cost_a_day(
    now: tuple[int, int, int],
    calm: tuple[int, int, int],
    usd_a_million: tuple[str, str, str],
    requests: int,
    span_s: int,
) -> Decimal:
    """USD a day more: (prompt, cached, answer) tokens of a mean call at the book's input, cached and output prices."""
    uncached_rate, cached_rate, output_rate = (Decimal(each) / 1_000_000 for each in usd_a_million)
    prices = [
        (asked - read) * uncached_rate + read * cached_rate + told * output_rate for asked, read, told in (now, calm)
    ]
    return (prices[0] - prices[1]) * requests * 86_400 / span_s
