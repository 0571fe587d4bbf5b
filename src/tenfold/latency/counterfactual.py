"""What the tail of the window after would be with some of its parts put back: shares by Shapley, over all orders.

A request's time to the first token is its wait and a service time; the service time is what the window before gives
for its uncached tokens and its neighbours, times a residual. Its time an output token is what the window before gives
for its neighbours, times a residual. Each part can be put back by itself: lengths and mix by weights, cache, load and
residuals by mapping each value to the one of its rank in the window before. Source: serving.md 12 (counterfactual
reweighting; Shapley over causes); Shorrocks (2013) for Shapley shares of a decomposition.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import NamedTuple

import numpy as np

from tenfold.latency.cells import Kinds, Weights, kinds_of, ranked, weights_of
from tenfold.latency.facts import SLICES, Derived, Facts
from tenfold.latency.records import Codes, Component, Floats, Interval, Ints, Mask, Pair
from tenfold.latency.tails import Tail, draws_of

# Parts of the load: prompts that are waited for or come between, and answers written beside.
PROMPTS, ANSWERS = "prompts", "answers"
_CACHE, _MIX, _WITHIN, _NEW = "cache", "mix", "within", "new clients"
# Share of requests before that the window after has like ones of, and effective sample size over the size (serving.md
# 12, step 2): below, lengths hardly meet, and nothing can be reweighted.
LEAST_OVERLAP = 0.3
# Rows of a group before, from which its residuals are mapped to its own.
_LEAST = 30
# Parts by rank, within which what goes with the ranked is put back.
_RANKS = 5
# Quantile of the load before; above it the window before cannot say how load acts.
_KNOWN_LOAD = 0.995


class Parts(NamedTuple):
    """Which parts may have moved.

    Args:
        cache: Whether cached tokens are one.
        mix: Whether shares of tenants and routes are.
        within: Whether lengths within them are.
        new_clients: Requests after of clients that the window before did not have.
        residuals: By name, requests after whose residual is one, and of which component.
    """

    cache: bool = False
    mix: bool = False
    within: bool = False
    new_clients: Mask | None = None
    residuals: tuple[tuple[str, Mask, frozenset[Component]], ...] = ()


class Shares(NamedTuple):
    """Shares of a component's shift.

    Args:
        parts: By part, with its 95 % interval.
        unexplained: What stays when all parts are put back, the same way.
        tails: The quantile after, and with all parts put back.
    """

    parts: dict[str, Interval]
    unexplained: Interval
    tails: tuple[float, float]


class Counterfactual:
    """Both windows, ready to be put back part by part.

    Args:
        pair: The windows.
        facts: What is known of them.
        parts: Which parts may have moved.

    ``apart`` holds, by component, the overlap of windows whose lengths hardly meet: theirs have no share there.
    """

    def __init__(self, pair: Pair, facts: Facts, parts: Parts) -> None:
        self.pair, self.facts, self.parts = pair, facts, parts
        self.kinds: Kinds = kinds_of(pair)
        self.fresh = np.zeros(pair.after.size, np.bool_) if parts.new_clients is None else parts.new_clients
        self.apart: dict[Component, float] = {}
        self._uncached: Floats | None = None

    @property
    def uncached_back(self) -> Floats:
        """Uncached tokens of the requests after, had the cache held of each prompt what it held of such before."""
        if self._uncached is None:
            self._uncached = self._put_cache_back()
        return self._uncached

    def weights(self, component: Component) -> Weights:
        """Give the weights that put lengths and mix back, in cells of the length that this component depends on.

        Args:
            component: The component.

        Returns:
            The weights.
        """
        before, after = self.pair.windows
        if component != "ttft":
            lengths = before.output, after.output
        elif self.parts.cache:
            lengths = before.input, after.input
        else:
            # what takes time is what no cache holds, and where the cache did not change that is a matter of the prompt
            lengths = self.facts.before.uncached, self.facts.after.uncached
        known = [np.isfinite(column) for column in self._columns(component)]
        return weights_of(self.kinds, lengths, (known[0], known[1] & ~self.fresh))

    def shares(self, component: Component, *, is_burst: bool = False) -> Shares:
        """Share a component's shift among the parts.

        Args:
            component: The component.
            is_burst: Whether the shift sits in a few slices: requests are then drawn in blocks dealt over the window.

        Returns:
            The shares.
        """
        moves = {"ttft": self._ttft, "tpot": self._tpot, "output": self._output}[component]()
        names = list(moves.names)
        before, after = (one.slice for one in self.facts.windows)
        if is_burst:
            before, after = (np.arange(one.size, dtype=np.int32) % SLICES for one in (before, after))
        ground = Tail.of(self._columns(component)[0], before, self.facts.quantile, SLICES)
        count, subsets = len(names), 1 << len(names)
        drawn = draws_of(SLICES, stream=1)
        drawn = np.vstack([np.ones((1, SLICES)), drawn])
        values = np.empty((subsets, drawn.shape[0]))
        for kept in range(subsets):
            back = frozenset(name for at, name in enumerate(names) if not kept >> at & 1)
            value, weight = moves.make(back)
            values[kept] = Tail.of(value, after, self.facts.quantile, SLICES, weight).at(drawn)
        base = ground.at(np.vstack([np.ones((1, SLICES)), draws_of(SLICES, stream=0)]))
        whole = values[-1] - base
        shapley = np.zeros((count, drawn.shape[0]))
        for kept in range(subsets):
            size = kept.bit_count()
            for at in range(count):
                if not kept >> at & 1:
                    share = factorial(size) * factorial(count - size - 1) / factorial(count)
                    shapley[at] += share * (values[kept | 1 << at] - values[kept])
        parts = {name: _interval(shapley[at], whole) for at, name in enumerate(names)}
        return Shares(parts, _interval(values[0] - base, whole), (float(values[-1, 0]), float(values[0, 0])))

    def _columns(self, component: Component) -> tuple[Floats, Floats]:
        before, after = self.pair.windows
        if component == "ttft":
            return before.ttft_s, after.ttft_s
        if component == "tpot":
            return self.facts.before.tpot_s, self.facts.after.tpot_s
        return np.where(before.judged, before.output, np.nan), np.where(after.judged, after.output, np.nan)

    def _put_cache_back(self) -> Floats:
        before, after = self.pair.windows
        if before.cached is None or after.cached is None:
            return self.facts.after.uncached
        bins = [_octave(window.input) for window in self.pair.windows]
        width = max(int(each.max()) for each in bins) + 1
        cells = (self.kinds.after * width + bins[1], self.kinds.before * width + bins[0])
        hits = [
            np.nan_to_num(cached) / np.maximum(np.nan_to_num(window.input), 1.0)
            for cached, window in ((before.cached, before), (after.cached, after))
        ]
        back = ranked(hits[1], hits[0], cells, _LEAST)
        return np.nan_to_num(after.input) * (1 - np.clip(back, 0, 1))

    def _weighting(self, component: Component) -> tuple[list[str], Callable[[frozenset[str]], Floats]]:
        names = [name for name, used in ((_MIX, self.parts.mix), (_WITHIN, self.parts.within)) if used]
        size = self.pair.after.size
        found = self.weights(component) if names else None
        if found is not None and component != "output" and min(found.overlap, found.effective) < LEAST_OVERLAP:
            # the mix alone needs no like lengths, only the tenants and routes
            self.apart[component] = min(found.overlap, found.effective)
            names = [name for name in names if name == _MIX]
        if self.fresh.any():
            names.append(_NEW)

        def weight(back: frozenset[str]) -> Floats:
            out = np.ones(size)
            if found is not None and _MIX in back:
                out = out * found.mix
            if found is not None and _WITHIN in back:
                out = out * found.within
            return np.where(self.fresh, 0.0, out) if _NEW in back else out

        return names, weight

    def _residuals(
        self, component: Component, residuals: tuple[Floats, Floats], expected: tuple[Floats, ...]
    ) -> dict[str, tuple[Mask, Floats]]:
        """Residuals of each group put back, each row in one group only.

        They are mapped among requests of the same replica and structure, and of a like rank in expected time.
        """
        left = np.ones(self.pair.after.size, np.bool_)
        found: dict[str, tuple[Mask, Floats]] = {}
        cells = _within(
            tuple(
                _alike(window.is_structured, derived.replica)
                for window, derived in zip(self.pair.windows, self.facts.windows, strict=True)
            ),
            expected,
        )
        for name, rows, components in self.parts.residuals:
            if component in components and (rows & left).any():
                mine = rows & left
                values = np.where(mine, residuals[1], np.nan)
                found[name] = (mine, ranked(values, residuals[0], (cells[1], cells[0]), _LEAST))
                left &= ~mine
        return found

    def _ttft(self) -> _Moves:
        before, after = self.facts.windows
        names, weight = self._weighting("ttft")
        groups = self._residuals(
            "ttft",
            (before.prefill_residual, after.prefill_residual),
            tuple(self.facts.prefill.expected(one.uncached, one.under.at_start) for one in (before, after)),
        )
        whole = np.zeros(after.slice.size, np.int64), np.zeros(before.slice.size, np.int64)
        wait = np.zeros(after.slice.size)
        calm = wait
        if self.pair.after.queue_s is not None and self.pair.before.queue_s is not None:
            wait = np.minimum(np.nan_to_num(self.pair.after.queue_s), np.nan_to_num(self.pair.after.ttft_s))
            calm = ranked(
                np.where(self.pair.after.judged, wait, np.nan),
                np.where(self.pair.before.judged, self.pair.before.queue_s, np.nan),
                whole,
            )
        beside_back = ranked(
            np.where(self.pair.after.judged, after.under.at_start, np.nan),
            np.where(self.pair.before.judged, before.under.at_start, np.nan),
            whole,
        )
        beyond = _beyond((after.under.at_start,), (before.under.at_start,))
        calm_residual = ranked(np.where(beyond, after.prefill_residual, np.nan), before.prefill_residual, whole)
        prefill = self.facts.prefill

        def make(back: frozenset[str]) -> tuple[Floats, Floats]:
            uncached = self.uncached_back if _CACHE in back else after.uncached
            beside = beside_back if ANSWERS in back else after.under.at_start
            residual = (
                np.where(beyond, calm_residual, after.prefill_residual) if ANSWERS in back else after.prefill_residual
            )
            for name, (rows, mapped) in groups.items():
                if name in back:
                    residual = np.where(rows, mapped, residual)
            service = prefill.expected(uncached, beside) * np.exp(residual)
            return (calm if PROMPTS in back else wait) + service, weight(back)

        cache = [_CACHE] if self.parts.cache else []
        return _Moves((PROMPTS, ANSWERS, *cache, *names, *groups), make)

    def _tpot(self) -> _Moves:
        before, after = self.facts.windows
        names, weight = self._weighting("tpot")
        paces = tuple(self.facts.decode.expected(*_columns_of(one)) for one in (before, after))
        groups = self._residuals(
            "tpot",
            (before.decode_residual, after.decode_residual),
            paces,
        )
        # short answers meet few prompts, or many a second: like is compared with like
        long = _octave(self.pair.after.output), _octave(self.pair.before.output)
        columns = [_columns_of(one) for one in (after, before)]
        loads = [np.where(np.isfinite(after.tpot_s), each, np.nan) for each in columns[0]]
        calm = [np.where(np.isfinite(before.tpot_s), each, np.nan) for each in columns[1]]
        # what goes together in a window differs between them: each is put back among requests of a like first
        alike = _within(long, (loads[0], calm[0]))
        back_loads = [
            ranked(new, old, cells) for new, old, cells in zip(loads, calm, (long, alike, alike), strict=True)
        ]
        # what lies beyond what the window before knew goes with the part that took it there
        beyond = {PROMPTS: _beyond(tuple(loads[2:]), tuple(calm[2:]))}
        beyond[ANSWERS] = _beyond(tuple(loads[:2]), tuple(calm[:2])) & ~beyond[PROMPTS]
        strange = np.where(beyond[PROMPTS] | beyond[ANSWERS], after.decode_residual, np.nan)
        calm_residual = ranked(strange, before.decode_residual, long)
        calmed = _as_scattered(after.decode_residual, before.decode_residual, _within(long, paces[::-1]))
        decode = self.facts.decode

        def make(back: frozenset[str]) -> tuple[Floats, Floats]:
            answers, prompts = (back_loads if name in back else loads for name in (ANSWERS, PROMPTS))
            used = answers[0], answers[1], prompts[2]
            residual = calmed if back.issuperset((ANSWERS, PROMPTS)) else after.decode_residual
            for name, rows in beyond.items():
                if name in back:
                    residual = np.where(rows, calm_residual, residual)
            for name, (rows, mapped) in groups.items():
                if name in back:
                    residual = np.where(rows, mapped, residual)
            return decode.expected(*used) * np.exp(residual), weight(back)

        return _Moves((PROMPTS, ANSWERS, *names, *groups), make)

    def _output(self) -> _Moves:
        """Give the lengths of answers themselves, which need no overlap: each goes to the length of its rank."""
        names, weight = self._weighting("output")
        before, after = self._columns("output")
        known = ~self.fresh
        lengths = ranked(np.where(known, after, np.nan), before, (self.kinds.after, self.kinds.before), _LEAST)
        lengths = np.where(known, lengths, after)

        def make(back: frozenset[str]) -> tuple[Floats, Floats]:
            return (lengths if _WITHIN in back else after), weight(back - {_WITHIN})

        return _Moves(tuple(names), make)


class _Moves(NamedTuple):
    """What can be put back, and the values and weights of the window after once some of it is."""

    names: tuple[str, ...]
    make: Callable[[frozenset[str]], tuple[Floats, Floats]]


def _as_scattered(after: Floats, before: Floats, cells: tuple[Ints, Ints]) -> Floats:
    """Scatter residuals as before, where they scatter less now: under load a request meets a bit of everything.

    Where they scatter more there is something in them that has yet to be explained, and they stay.
    """
    middles = [float(np.nanmedian(each)) if np.isfinite(each).any() else 0.0 for each in (after, before)]
    spreads = [
        float(np.nanstd(np.clip(each - middle, -1, 1))) for each, middle in zip((after, before), middles, strict=True)
    ]
    if spreads[0] > spreads[1]:
        return after
    return ranked(after - middles[0], before - middles[1], cells) + middles[0]


def _within(cells: tuple[Ints, ...], values: tuple[Floats, ...]) -> tuple[Ints, Ints]:
    """Divide cells by the rank of values, each side's among its own."""
    out: list[Ints] = []
    for cell, value in zip(cells, values, strict=True):
        known = value[np.isfinite(value)]
        edges = np.quantile(known, np.arange(1, _RANKS) / _RANKS) if known.size else np.zeros(0)
        out.append(cell * _RANKS + np.searchsorted(edges, np.nan_to_num(value)))
    return out[0], out[1]


def _columns_of(one: Derived) -> tuple[Floats, Floats, Floats]:
    return one.under.decoding, one.under.context, one.under.between


def _octave(tokens: Floats) -> Ints:
    return np.floor(np.log2(np.nan_to_num(tokens) + 1)).astype(np.int64)


def _alike(structured: Mask | None, replica: Codes) -> Ints:
    return replica.astype(np.int64) * 2 + (0 if structured is None else structured.astype(np.int64))


def _beyond(after: tuple[Floats, ...], before: tuple[Floats, ...]) -> Mask:
    """Tell the requests under a load that the window before hardly had: how it acts cannot be learned from it."""
    out = np.zeros(after[0].size, np.bool_)
    for new, old in zip(after, before, strict=True):
        known = old[np.isfinite(old)]
        if known.size:
            out |= new > np.quantile(known, _KNOWN_LOAD)
    return out


def _interval(amount: Floats, whole: Floats) -> Interval:
    """Give a share with its 95 % interval; the first place is the sample, the others are draws."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = amount / whole
    drawn = share[1:][np.isfinite(share[1:])]
    low, high = np.quantile(drawn, (0.025, 0.975)) if drawn.size else (np.nan, np.nan)
    mid = float(share[0])
    return Interval(min(float(low), mid), mid, max(float(high), mid))
