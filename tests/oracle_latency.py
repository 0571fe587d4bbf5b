"""A second, slow way through the p99 runbook: plain lists and loops, every order of causes tried, every pair looked at.

Written from serving.md 12 and the definitions in the docstrings of tenfold.latency; of tenfold it uses nothing but the
columns of a window that it is handed. A missing number is NaN, a missing label None.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from itertools import permutations
from math import exp, floor, inf, isfinite, log, log2, nan, sqrt
from statistics import fmean, median, pstdev, stdev
from typing import Any, NamedTuple

SLICES = 40
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


# ---- load


def load_shares(logs: Numbers, ratio: float) -> list[float]:
    """Shapley of W = u / (1 - u), u = u0 x what those that are there make; u0 so that all of them give the ratio."""
    growth = exp(sum(logs))
    start = (ratio / growth - 1) / (ratio - 1) if ratio > 1 else 0.0
    start = min(max(start, 0.0), 0.999 / growth)
    names = [str(at) for at in range(len(logs))]

    def wait(there: frozenset[str]) -> list[float]:
        made = exp(sum(logs[int(name)] for name in there))
        return [made / (1 - start * made)]

    parts = [amount[0] for amount in shapley(names, wait).values()]
    return [part / sum(parts) for part in parts]


class Model(NamedTuple):
    """How a prompt or an answer was served before: what `tenfold.latency.mechanics` fitted, as numbers."""

    weights: Numbers
    edges: Numbers
    centre: Numbers
    low: float

    @classmethod
    def of(cls, fitted: Any) -> Model:
        lines = fitted.lines
        return cls(numbers(lines.weights), numbers(lines.edges), numbers(lines.centre), lines.low)

    def _time(self, terms: Numbers, by: float) -> float:
        line = sum(weight * term for weight, term in zip(self.weights, terms, strict=True))
        return max(line, self.low) * exp(between(by, self.edges, self.centre)) if isfinite(line) else nan

    def prompt(self, uncached: float, beside: float) -> float:
        return self._time((1.0, uncached, uncached * uncached, beside, uncached * beside), uncached)

    def answer(self, decoding: float, context: float, prompts: float) -> float:
        return self._time((1.0, decoding, context, prompts), decoding)


def uncached(window: Any) -> list[float]:
    """Prompt tokens that no cache held; of an answered request no cached tokens are none."""
    if window.cached is None:
        return numbers(window.input)
    rows = zip(numbers(window.input), numbers(window.cached), window.ok.tolist(), strict=True)
    return [asked - (zero(read) if ok else read) for asked, read, ok in rows]


def firsts(window: Any) -> list[bool]:
    """First attempts, or not known to be others."""
    return [True] * len(window.ts_s) if window.attempt is None else [not each > 0 for each in window.attempt.tolist()]


def hits_put_back(before: Any, after: Any) -> list[float]:
    """Uncached tokens after, had the cache held of each prompt what it held of such (kind and octave) before."""
    shares: list[list[float]] = []
    cells: list[list[Hashable]] = []
    for window in (before, after):
        asked = [zero(each) for each in numbers(window.input)]
        shares.append([zero(read) / max(each, 1.0) for read, each in zip(numbers(window.cached), asked, strict=True)])
        cells.append([(kind, floor(log2(each + 1))) for kind, each in zip(kinds(window), asked, strict=True)])
    back = ranked(shares[1], shares[0], (cells[1], cells[0]))
    return [zero(each) * (1 - min(max(hit, 0.0), 1.0)) for each, hit in zip(numbers(after.input), back, strict=True)]


class UnderWay(NamedTuple):
    """What else was under way, a place a request."""

    at_arrival: list[float]
    at_start: list[float]
    decoding: list[float]
    context: list[float]
    between: list[float]


def under_way(window: Any, tokens: Numbers) -> UnderWay:
    """Look at every other request of the replica, one by one."""
    count = len(window.ts_s)
    seen_first = window.ttft_s if window.seen_first_s is None else window.seen_first_s
    seen_end = window.e2e_s if window.seen_end_s is None else window.seen_end_s
    usual = median(known(numbers(window.ttft_s)) or [0.0])
    replica, ok, output = labels(window.replica, count), window.ok.tolist(), numbers(window.output)
    times: list[tuple[float, float, float, float] | None] = []
    for at in range(count):
        first, end = float(seen_first[at]), float(seen_end[at])
        if not isfinite(end):
            times.append(None)
            continue
        first = min(first if isfinite(first) else usual if ok[at] else end, end)
        wait = 0.0 if window.queue_s is None else zero(float(window.queue_s[at]))
        arrival = float(window.ts_s[at]) - window.since_s
        times.append((arrival, arrival + min(wait, first), arrival + first, arrival + end))
    held = [zero(asked) + zero(told) / 2 for asked, told in zip(numbers(window.input), output, strict=True)]
    out = UnderWay(*([nan] * count for _ in UnderWay._fields))
    for at, mine in enumerate(times):
        if mine is None:
            continue
        arrival, start, first, end = mine
        others = [o for o in range(count) if o != at and times[o] is not None and replica[o] == replica[at]]
        of = {o: times[o] or mine for o in others}
        out.at_arrival[at] = sum(of[o][0] < arrival < of[o][3] for o in others)
        out.at_start[at] = sum(of[o][2] < start < of[o][3] for o in others)
        if end > first:
            shared = {o: max(min(end, of[o][3]) - max(first, of[o][2]), 0.0) / (end - first) for o in others}
            out.decoding[at] = sum(shared.values())
            out.context[at] = sum(part * held[o] for o, part in shared.items())
        arrived = [o for o in others if first < of[o][2] <= end and (ok[o] or of[o][3] > of[o][2])]
        out.between[at] = sum(zero(tokens[o]) for o in arrived) / max(output[at] - 1, 1.0)
    return out


def work(
    before: Any, after: Any, under: tuple[UnderWay, UnderWay], prefill: Model, decode: Model, back: Numbers
) -> dict[str, float]:
    """Log changes of what a first attempt brings: mix, lengths within, cache, what the other load makes of it."""
    use = firsts(before), firsts(after)
    beside = known(under[0].at_start)
    calm = fmean(beside) if beside else 0.0
    fresh = uncached(before), uncached(after)
    times = [[prefill.prompt(each, calm) for each in side] for side in (fresh[0], back, fresh[1])]

    def mean(values: Numbers, used: Sequence[bool]) -> float:
        return fmean(value for value, use in zip(values, used, strict=True) if use and isfinite(value))

    def split(old: Numbers, new: Numbers) -> tuple[float, float]:
        means: dict[Hashable, list[float]] = defaultdict(list)
        for kind, value, use_it in zip(kinds(before), old, use[0], strict=True):
            if use_it and isfinite(value):
                means[kind].append(value)
        rows = zip(kinds(after), new, use[1], strict=True)
        shared = [(fmean(means[kind]), value) for kind, value, on in rows if on and isfinite(value) and means[kind]]
        mixed = fmean(one for one, _ in shared)
        return log(mixed / mean(old, use[0])), log(fmean(one for _, one in shared) / mixed)

    beside_log = [
        log(mean([prefill.prompt(*pair) for pair in zip(side, one.at_start, strict=True)], used) / mean(plain, used))
        for side, one, plain, used in zip(fresh, under, (times[0], times[2]), use, strict=True)
    ]
    between_log = [
        log(
            fmean(known(decode.answer(*row) for row in zip(one.decoding, one.context, one.between, strict=True)))
            / fmean(known(decode.answer(*row, 0.0) for row in zip(one.decoding, one.context, strict=True)))
        )
        for one in under
    ]
    prompt, answer = split(times[0], times[1]), split(numbers(before.output), numbers(after.output))
    return {
        "prompt_mix": prompt[0],
        "prompt_within": prompt[1],
        "prompt_cache": log(mean(times[2], use[1]) / mean(times[1], use[1])),
        "answer_mix": answer[0],
        "answer_within": answer[1],
        "beside": beside_log[1] - beside_log[0],
        "between": between_log[1] - between_log[0],
    }


# ---- what the tail would be with some of its parts put back


class Game:
    """Both windows; values and weights of the window after once some parts are put back, as `counterfactual` defines.

    Args:
        windows: Before and after.
        models: Of prompts and of answers, before.
        under: What was under way in both.
        parts: Which parts may have moved: cache, mix, within; new clients as rows; residuals (name, rows, components).
    """

    def __init__(self, windows: Any, models: tuple[Model, Model], under: tuple[UnderWay, UnderWay], parts: Any) -> None:
        self.windows, self.parts, self.under = windows, parts, under
        self.prefill, self.decode = models
        self.slices = [slices_of(window) for window in windows]
        self.uncached = [uncached(window) for window in windows]
        self.back = hits_put_back(*windows) if windows[0].cached is not None else self.uncached[1]
        self.size = len(windows[1].ts_s)
        fresh = parts.new_clients
        self.fresh = [False] * self.size if fresh is None else fresh.tolist()

    def shares(self, name: str, q: float, draws: tuple[Sequence[Numbers], Sequence[Numbers]]) -> dict[str, list[float]]:
        """Shapley shares of the shift, of the sample and of each draw; `unexplained` stays with all put back."""
        names, values = {"ttft": self._ttft, "tpot": self._tpot, "output": self._output}[name]()
        weigh = self._weights(name)
        names = [*names, *weigh[0]]

        def at(kept: frozenset[str]) -> list[float]:
            back = frozenset(names) - kept
            return quantiles(values(back), self.slices[1], q, draws[1], weigh[1](back))

        base = quantiles(component(self.windows[0], name), self.slices[0], q, draws[0])
        whole = [new - old for new, old in zip(at(frozenset(names)), base, strict=True)]
        amounts = shapley(names, at)
        amounts["unexplained"] = [new - old for new, old in zip(at(frozenset()), base, strict=True)]
        return {
            part: [each / all_of_it for each, all_of_it in zip(amount, whole, strict=True)]
            for part, amount in amounts.items()
        }

    def _weights(self, name: str) -> tuple[list[str], Callable[[frozenset[str]], list[float]]]:
        if name != "ttft":
            lengths = [numbers(window.output) for window in self.windows]
        else:
            lengths = [numbers(window.input) for window in self.windows] if self.parts.cache else self.uncached
        there = [[isfinite(each) for each in component(window, name)] for window in self.windows]
        there[1] = [here and not new for here, new in zip(there[1], self.fresh, strict=True)]
        mix, within, *overlap = weights((kinds(self.windows[0]), kinds(self.windows[1])), tuple(lengths), tuple(there))
        names = [part for part, on in (("mix", self.parts.mix), ("within", self.parts.within)) if on]
        # lengths that hardly meet can not be reweighted
        if name != "output" and min(overlap) < 0.3:
            names = []
        if any(self.fresh):
            names.append("new clients")

        def weight(back: frozenset[str]) -> list[float]:
            out = [1.0] * self.size
            for part, factors in (("mix", mix), ("within", within)):
                if part in back and (name, part) != ("output", "within"):
                    out = [one * factor for one, factor in zip(out, factors, strict=True)]
            return [0.0 if new and "new clients" in back else one for one, new in zip(out, self.fresh, strict=True)]

        return names, weight

    def _groups(self, name: str, residuals: Any, expected: Any) -> dict[str, list[float]]:
        """Residuals of each accused group as before, on the same replica and structure, like rank of expected."""
        cells: list[list[Hashable]] = []
        for window, ranks in zip(self.windows, map(fifths, expected), strict=True):
            count = len(window.ts_s)
            structured = [False] * count if window.is_structured is None else window.is_structured.tolist()
            cells.append(list(zip(labels(window.replica, count), structured, ranks, strict=True)))
        out: dict[str, list[float]] = {}
        taken = [False] * self.size
        for part, rows, of in self.parts.residuals:
            mine = [on and not used for on, used in zip(rows.tolist(), taken, strict=True)]
            if name in of and any(mine):
                values = [one if on else nan for one, on in zip(residuals[1], mine, strict=True)]
                mapped = ranked(values, residuals[0], (cells[1], cells[0]))
                out[part] = [one if on else nan for one, on in zip(mapped, mine, strict=True)]
                taken = [used or on for used, on in zip(taken, mine, strict=True)]
        return out

    def _ttft(self) -> tuple[list[str], Callable[[frozenset[str]], list[float]]]:
        before, after = self.windows
        expected = [
            [self.prefill.prompt(*pair) for pair in zip(tokens, one.at_start, strict=True)]
            for tokens, one in zip(self.uncached, self.under, strict=True)
        ]
        waits = [
            [0.0] * len(window.ts_s) if window.queue_s is None else [zero(each) for each in numbers(window.queue_s)]
            for window in self.windows
        ]
        waits[1] = [min(wait, zero(ttft)) for wait, ttft in zip(waits[1], numbers(after.ttft_s), strict=True)]
        services = [
            [max(ttft - wait, 0.0) for ttft, wait in zip(numbers(window.ttft_s), wait, strict=True)]
            for window, wait in zip(self.windows, (waits[0], [zero(x) for x in numbers(after.queue_s)]), strict=True)
        ]
        residuals = [log_ratios(*each) for each in zip(services, expected, strict=True)]
        one_cell = [0] * self.size, [0] * len(before.ts_s)
        answered = [
            [wait if ok else nan for wait, ok in zip(numbers(column), window.ok.tolist(), strict=True)]
            for column, window in ((before.queue_s, before), (waits[1], after))
        ]
        calm = ranked(answered[1], answered[0], one_cell)
        beside = ranked(self.under[1].at_start, self.under[0].at_start, one_cell)
        strange = beyond([self.under[1].at_start], [self.under[0].at_start])
        calmed = ranked(
            [r if odd else nan for r, odd in zip(residuals[1], strange, strict=True)], residuals[0], one_cell
        )
        groups = self._groups("ttft", residuals, expected)

        def values(back: frozenset[str]) -> list[float]:
            tokens = self.back if "cache" in back else self.uncached[1]
            others = beside if "answers" in back else self.under[1].at_start
            out: list[float] = []
            for at in range(self.size):
                residual = calmed[at] if "answers" in back and strange[at] else residuals[1][at]
                for part, mapped in groups.items():
                    if part in back and isfinite(mapped[at]):
                        residual = mapped[at]
                wait = calm[at] if "prompts" in back else waits[1][at]
                out.append(wait + self.prefill.prompt(tokens[at], others[at]) * exp(residual))
            return out

        return ["prompts", "answers", *(["cache"] if self.parts.cache else []), *groups], values

    def _tpot(self) -> tuple[list[str], Callable[[frozenset[str]], list[float]]]:
        before, after = self.windows
        loads = [list(zip(one.decoding, one.context, one.between, strict=True)) for one in self.under]
        paces = [[self.decode.answer(*row) for row in side] for side in loads]
        measured = [tpot(window) for window in self.windows]
        residuals = [log_ratios(*each) for each in zip(measured, paces, strict=True)]
        octaves = [[floor(log2(zero(each) + 1)) for each in numbers(window.output)] for window in (after, before)]
        # each load among the requests that have a time a token
        mine, calm = (
            [[row[at] if isfinite(time) else nan for row, time in zip(side, times, strict=True)] for at in range(3)]
            for side, times in ((loads[1], measured[1]), (loads[0], measured[0]))
        )
        alike = [
            list(zip(octave, fifths(first), strict=True))
            for octave, first in zip(octaves, (mine[0], calm[0]), strict=True)
        ]
        put_back = [
            ranked(new, old, tuple(cells)) for new, old, cells in zip(mine, calm, (octaves, alike, alike), strict=True)
        ]
        odd_prompts = beyond(mine[2:], calm[2:])
        odd_answers = [odd and not other for odd, other in zip(beyond(mine[:2], calm[:2]), odd_prompts, strict=True)]
        strange = [r if a or b else nan for r, a, b in zip(residuals[1], odd_prompts, odd_answers, strict=True)]
        calmed = ranked(strange, residuals[0], tuple(octaves))
        scattered = self._scattered(residuals, octaves, paces)
        groups = self._groups("tpot", residuals, paces)

        def values(back: frozenset[str]) -> list[float]:
            out: list[float] = []
            answers = put_back if "answers" in back else mine
            prompts = put_back if "prompts" in back else mine
            for at in range(self.size):
                residual = scattered[at] if {"answers", "prompts"} <= back else residuals[1][at]
                if ("prompts" in back and odd_prompts[at]) or ("answers" in back and odd_answers[at]):
                    residual = calmed[at]
                for part, mapped in groups.items():
                    if part in back and isfinite(mapped[at]):
                        residual = mapped[at]
                out.append(self.decode.answer(answers[0][at], answers[1][at], prompts[2][at]) * exp(residual))
            return out

        return ["prompts", "answers", *groups], values

    def _scattered(self, residuals: Any, octaves: Any, paces: Any) -> list[float]:
        """Residuals scattered as before, where they scatter less now."""
        middles = [median(known(side)) for side in residuals]
        spreads = [
            pstdev(min(max(each - mid, -1), 1) for each in known(side))
            for side, mid in zip(residuals, middles, strict=True)
        ]
        if spreads[1] > spreads[0]:
            return residuals[1]
        cells = [
            list(zip(octave, fifths(pace), strict=True)) for octave, pace in zip(octaves, paces[::-1], strict=True)
        ]
        centred = [[each - mid for each in side] for side, mid in zip(residuals, middles, strict=True)]
        return [each + middles[1] for each in ranked(centred[1], centred[0], tuple(cells))]

    def _output(self) -> tuple[list[str], Callable[[frozenset[str]], list[float]]]:
        """Lengths within kinds are put back by rank, not by weight: they need no overlap."""
        told = component(self.windows[1], "output")
        mine = [nan if new else each for each, new in zip(told, self.fresh, strict=True)]
        cells = kinds(self.windows[1]), kinds(self.windows[0])
        mapped = ranked(mine, component(self.windows[0], "output"), cells)
        lengths = [each if new else one for each, one, new in zip(told, mapped, self.fresh, strict=True)]
        return [], lambda back: lengths if "within" in back else told


def log_ratios(measured: Numbers, expected: Numbers) -> list[float]:
    return [log(m / e) if m > 0 and e > 0 else nan for m, e in zip(measured, expected, strict=True)]


def beyond(after: Sequence[Numbers], before: Sequence[Numbers]) -> list[bool]:
    """Requests under a load above the 0.995 quantile of before, in any column."""
    tops = [linear_quantile(known(column), 0.995) for column in before]
    return [any(value > top for value, top in zip(row, tops, strict=True)) for row in zip(*after, strict=True)]


def fifths(values: Numbers) -> list[int]:
    """Fifth of each value among its own; missing ones count as zero."""
    there = known(values)
    edges = [linear_quantile(there, at / 5) for at in range(1, 5)]
    return [sum(edge < zero(value) for edge in edges) for value in values]


# ---- rates


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
