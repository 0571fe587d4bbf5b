"""What was under way, and who made the load. Part of the slow second implementation of the runbook."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from math import exp, floor, isfinite, log, log2, nan
from statistics import fmean, median
from typing import Any, NamedTuple

from oracle_latency.basics import Numbers, between, kinds, known, labels, numbers, ranked, shapley, zero


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
