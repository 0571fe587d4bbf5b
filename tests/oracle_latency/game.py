"""What the tail would be with some of its parts put back. Part of the slow second implementation of the runbook."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import exp, floor, isfinite, log, log2, nan
from statistics import median, pstdev
from typing import Any

from oracle_latency.basics import (
    Numbers,
    component,
    kinds,
    known,
    labels,
    linear_quantile,
    numbers,
    quantiles,
    ranked,
    shapley,
    slices_of,
    tpot,
    weights,
    zero,
)
from oracle_latency.load import Model, UnderWay, hits_put_back, uncached


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
            part: [each / all_of_it if all_of_it else nan for each, all_of_it in zip(amount, whole, strict=True)]
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
        met = [
            [others if ok else nan for others, ok in zip(one.at_start, window.ok.tolist(), strict=True)]
            for one, window in zip(self.under, self.windows, strict=True)
        ]
        beside = ranked(met[1], met[0], one_cell)
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
