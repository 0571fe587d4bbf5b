"""Quantiles, shifts, cells and ranks. Part of the slow second implementation of the runbook."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import permutations
from math import exp, floor, isfinite, log, log2, nan, sqrt
from statistics import fmean, stdev
from typing import Any, NamedTuple

SLICES = 40
COMPONENTS = ("ttft", "tpot", "output")
Numbers = Sequence[float]


def numbers(column: Any) -> list[float]:
    """A column as numbers."""
    return [float(each) for each in column]


def labels(column: Any, count: int) -> list[str | None]:
    """A column of codes and names as names."""
    if column is None:
        return [None] * count
    return [column.names[code] if code >= 0 else None for code in column.codes.tolist()]


def known(values: Iterable[float]) -> list[float]:
    return [each for each in values if isfinite(each)]


def zero(value: float) -> float:
    return value if isfinite(value) else 0.0


def linear_quantile(values: Numbers, q: float) -> float:
    """Quantile between the two neighbours in order."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = min(int(place), len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def between(at: float, xs: Numbers, ys: Numbers) -> float:
    """Straight lines through points, level outside."""
    if not isfinite(at):
        return nan
    place = bisect_right(xs, at)
    if place == 0:
        return ys[0]
    if place == len(xs):
        return ys[-1]
    part = (at - xs[place - 1]) / (xs[place] - xs[place - 1])
    return ys[place - 1] + part * (ys[place] - ys[place - 1])


def slices_of(window: Any) -> list[int]:
    """Which fortieth of the window a request arrived in."""
    span = window.until_s - window.since_s
    return [min(max(floor((at - window.since_s) / span * SLICES), 0), SLICES - 1) for at in numbers(window.ts_s)]


# ---- quantiles and shifts


def quantiles(
    values: Numbers, slices: Sequence[int], q: float, draws: Sequence[Numbers] = (), weights: Numbers | None = None
) -> list[float]:
    """Least value that no more than 1 - q of the weight lies above: of the sample, then with slices drawn so often."""
    weight = [1.0] * len(values) if weights is None else weights
    rows = [at for at, value in enumerate(values) if isfinite(value) and weight[at] > 0]
    rows.sort(key=lambda at: -values[at])
    totals = [0.0] * SLICES
    for at in rows:
        totals[slices[at]] += weight[at]
    out: list[float] = []
    for times in ([1.0] * SLICES, *draws):
        allowed = (1 - q) * sum(times[place] * totals[place] for place in range(SLICES))
        reached, found = 0.0, rows[-1] if rows else None
        for at in rows:
            reached += weight[at] * times[slices[at]]
            if reached > allowed * (1 + 1e-10):
                found = at
                break
        out.append(nan if found is None else values[found])
    return out


class Moved(NamedTuple):
    """How a quantile moved."""

    before: float
    after: float
    low: float
    high: float

    @property
    def is_change(self) -> bool:
        return self.low > 0 or self.high < 0


def shift(old: Numbers, new: Numbers) -> Moved:
    """Log ratio +- 3.13 standard deviations of its draws; below 5 % it is none. First place: the sample."""
    before, after = old[0], new[0]
    if not all(isfinite(log(each)) if each > 0 else False for each in (*old, *new)):
        return Moved(before, after, min(after - before, 0.0), max(after - before, 0.0))
    spread = 3.13 * stdev([log(b / a) for a, b in zip(old[1:], new[1:], strict=True)])
    ratio = log(after / before)
    low, high = before * (exp(ratio - spread) - 1), before * (exp(ratio + spread) - 1)
    if abs(after - before) < 0.05 * before:
        low, high = min(low, 0.0), max(high, 0.0)
    return Moved(before, after, low, high)


def burst(columns: tuple[Numbers, Numbers], slices: tuple[Sequence[int], Sequence[int]], q: float) -> Moved | None:
    """Up to four pieces of time after, slow as none before was, that alone make the tail: judged by their requests.

    Slow is above the quantile before; a piece counts with a tenth and ten of its requests slow, three times the worst
    piece before. The interval is by ranks, 3.13 binomial deviations either way.
    """
    values = [known(side) for side in columns]
    tail = [quantiles(side, by, q)[0] for side, by in zip(columns, slices, strict=True)]
    shares: list[list[float]] = []
    counts: list[list[int]] = []
    for side, by in zip(columns, slices, strict=True):
        pieces: list[list[float]] = [[] for _ in range(SLICES)]
        for value, place in zip(side, by, strict=True):
            if isfinite(value):
                pieces[place].append(value)
        counts.append([sum(value > tail[0] for value in piece) for piece in pieces])
        shares.append([count / max(len(piece), 1) for count, piece in zip(counts[-1], pieces, strict=True)])
    least = max(0.1, 3 * max(shares[0]))
    slow = [count for count, share in zip(counts[1], shares[1], strict=True) if share >= least and count >= 10]
    if not 1 <= len(slow) <= 4 or sum(slow) < (1 - q) * len(values[1]):
        return None
    ends = [
        [linear_quantile(side, min(max(q + sign * 3.13 * sqrt(q * (1 - q) / len(side)), 0), 1)) for sign in (-1, 1)]
        for side in values
    ]
    low, high = ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]
    return Moved(tail[0], tail[1], low, high) if low > 0 else None


def tpot(window: Any) -> list[float]:
    """Time an output token after the first, of answers of 16 tokens and more."""
    columns = zip(numbers(window.e2e_s), numbers(window.ttft_s), numbers(window.output), strict=True)
    return [(e2e - ttft) / (output - 1) if output >= 16 else nan for e2e, ttft, output in columns]


def component(window: Any, name: str) -> list[float]:
    """Values of a component."""
    if name == "ttft":
        return numbers(window.ttft_s)
    if name == "tpot":
        return tpot(window)
    if name == "e2e":
        return numbers(window.e2e_s)
    return [value if ok else nan for value, ok in zip(numbers(window.output), window.ok.tolist(), strict=True)]


def shapley(names: Sequence[str], value: Callable[[frozenset[str]], Sequence[float]]) -> dict[str, list[float]]:
    """What each adds to a value, on average over all orders in which they come."""
    cache: dict[frozenset[str], Sequence[float]] = {}

    def at(there: frozenset[str]) -> Sequence[float]:
        if there not in cache:
            cache[there] = value(there)
        return cache[there]

    width = len(at(frozenset()))
    out = {name: [0.0] * width for name in names}
    orders = list(permutations(names))
    for order in orders:
        there: frozenset[str] = frozenset()
        for name in order:
            more = there | {name}
            old, new = at(there), at(more)
            for place in range(width):
                out[name][place] += (new[place] - old[place]) / len(orders)
            there = more
    return out


def band_shares(before: Any, after: Any, q: float) -> dict[str, float]:
    """Shares of TTFT, TPOT and output in the change of E2E around its tail (means of q98 to q100 for 0.99)."""
    means: list[dict[str, float]] = []
    for window in (before, after):
        rows = zip(numbers(window.e2e_s), numbers(window.ttft_s), tpot(window), numbers(window.output), strict=True)
        rows = [row for row in rows if all(isfinite(each) for each in row[:3])]
        start = linear_quantile([row[0] for row in rows], 1 - 2 * (1 - q))
        slow = [row for row in rows if row[0] >= start]
        means.append(
            {name: fmean(row[at] for row in slow) for at, name in enumerate(("e2e", "ttft", "tpot", "output"))}
        )

    def time(there: frozenset[str]) -> list[float]:
        one = {name: means[name in there][name] for name in ("ttft", "tpot", "output")}
        return [one["ttft"] + one["tpot"] * (one["output"] - 1)]

    names = ("ttft", "tpot", "output")
    whole = time(frozenset(names))[0] - time(frozenset())[0]
    return {name: amount[0] / whole for name, amount in shapley(names, time).items()}


# ---- cells, weights, ranks


def kinds(window: Any) -> list[tuple[str | None, str | None]]:
    count = len(window.ts_s)
    return list(zip(labels(window.tenant, count), labels(window.route, count), strict=True))


def weights(
    kind: tuple[Sequence[Hashable], Sequence[Hashable]],
    lengths: tuple[Numbers, Numbers],
    used: tuple[Sequence[bool], Sequence[bool]],
) -> tuple[list[float], list[float], float, float]:
    """DiNardo-Fortin-Lemieux by cells, share before over share after: mix, within, overlap, effective over all."""
    bins = [[floor(3 * log2(max(zero(each), 0) + 1)) for each in side] for side in lengths]
    cells: list[list[Hashable]] = [list(zip(*side, strict=True)) for side in zip(kind, bins, strict=True)]

    def count(side: int, of: Sequence[Sequence[Hashable]]) -> Counter[Hashable]:
        return Counter(cell for cell, use in zip(of[side], used[side], strict=True) if use)

    full = [count(side, cells) for side in (0, 1)]
    cells = [
        [cell if min(full[0][cell], full[1][cell]) >= 20 else length for cell, length in zip(*side, strict=True)]
        for side in zip(cells, bins, strict=True)
    ]

    def ratio(of: Sequence[Sequence[Hashable]]) -> dict[Hashable, float]:
        counts = [count(side, of) for side in (0, 1)]
        sizes = [sum(each) for each in used]
        return {cell: (counts[0][cell] / sizes[0]) / (many / sizes[1]) for cell, many in counts[1].items()}

    of_cell, of_kind = ratio(cells), ratio(kind)
    mix = [of_kind[one] if use else 1.0 for one, use in zip(kind[1], used[1], strict=True)]
    whole = [of_cell[one] if use else 1.0 for one, use in zip(cells[1], used[1], strict=True)]
    within = [both / one if one > 0 else 0.0 for both, one in zip(whole, mix, strict=True)]
    there = count(1, cells)
    overlap = sum(many for cell, many in count(0, cells).items() if there[cell]) / sum(used[0])
    mine = [one for one, use in zip(whole, used[1], strict=True) if use]
    return mix, within, overlap, sum(mine) ** 2 / sum(one * one for one in mine) / len(mine)


def ranked(
    values: Numbers, reference: Numbers, cells: tuple[Sequence[Hashable], Sequence[Hashable]], least: int = 30
) -> list[float]:
    """Each value becomes the one of its rank among the reference of its cell; of all of it where that has too few."""
    everything = sorted(known(reference))
    grounds: dict[Hashable, list[float]] = defaultdict(list)
    for cell, value in zip(cells[1], reference, strict=True):
        if isfinite(value):
            grounds[cell].append(value)
    out = list(values)
    if not everything:
        return out
    members: dict[Hashable, list[int]] = defaultdict(list)
    for at, (cell, value) in enumerate(zip(cells[0], values, strict=True)):
        if isfinite(value):
            members[cell].append(at)
    for cell, rows in members.items():
        target = sorted(grounds[cell]) if len(grounds[cell]) >= least else everything
        # equal values keep the order of arrival
        for rank, at in enumerate(sorted(rows, key=lambda row: values[row])):
            place = (rank + 0.5) / len(rows) * len(target) - 0.5
            out[at] = between(place, range(len(target)), target)
    return out
