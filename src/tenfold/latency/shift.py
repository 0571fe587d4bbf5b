"""How the tail moved from one window to the other, with an interval by block bootstrap over slices of time.

Source: serving.md 12 (block bootstrap; a shift is declared at the 99 % level).
"""

from __future__ import annotations

import numpy as np

from tenfold.latency.answers import Shift
from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.records import Floats, Interval, Pair
from tenfold.latency.tails import Tail, draws_of

# 99 % for the three components together: two-sided 0.01/3 of Student's t with 39 degrees of freedom (40 slices).
_T = 3.13
# Requests above this quantile are slow, where it is asked whether slow times last: enough of them in a slice to count.
_LEVEL = 0.9
# A burst: so many times the value before, in at most so many pieces of time, in each of which at least this share and
# number of requests lie above the quantile before, and so many times the share of any piece before.
_BURST_RATIO, _BURST_SLICES, _BURST_SHARE, _BURST_COUNT, _BURST_TIMES = 1.5, 4, 0.1, 10, 3.0
# A shift below this share of the value is none that anybody is paged for.
_LEAST = 0.05


def shifts(pair: Pair, facts: Facts) -> dict[str, Shift]:
    """Measure how TTFT, TPOT, output and E2E moved.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        By name: ``ttft``, ``tpot``, ``e2e`` in seconds, ``output`` in tokens; those that no request has are left out.

    Formula:
        log(after / before) +- 3.13 standard deviations of its draws; below 5 % either way counts as no change.
    """
    columns: dict[str, tuple[Floats, Floats]] = {
        "ttft": (pair.before.ttft_s, pair.after.ttft_s),
        "tpot": (facts.before.tpot_s, facts.after.tpot_s),
        "output": (_answered(pair.before.output, pair.before.judged), _answered(pair.after.output, pair.after.judged)),
        "e2e": (pair.before.e2e_s, pair.after.e2e_s),
    }
    found: dict[str, Shift] = {}
    for name, (old, new) in columns.items():
        tails = [
            Tail.of(values, derived.slice, facts.quantile, SLICES)
            for values, derived in ((old, facts.before), (new, facts.after))
        ]
        if all(tail.values.size for tail in tails):
            one = shift_of(*tails, wider=_persistence(old, facts))
            if not one.is_change and one.after >= _BURST_RATIO * one.before:
                one = _burst(one, (old, new), facts) or one
            found[name] = one
    return found


def _burst(one: Shift, columns: tuple[Floats, Floats], facts: Facts) -> Shift | None:
    """Tell a burst: a few pieces of time after are slow as none was before, and they alone make the tail.

    Drawn with replacement such a piece is in or out, and the interval is as wide as the burst is high. The question is
    then not whether the window is slow, but whether those pieces are, and they are judged by their requests.
    """
    slow = [values > one.before for values in columns]
    known = [np.isfinite(values) for values in columns]
    shares: list[Floats] = []
    counts: list[Floats] = []
    for each, there, derived in zip(slow, known, facts.windows, strict=True):
        counts.append(np.bincount(derived.slice[each], minlength=SLICES).astype(np.float64))
        shares.append(counts[-1] / np.maximum(np.bincount(derived.slice[there], minlength=SLICES), 1))
    burst = (shares[1] >= max(_BURST_SHARE, _BURST_TIMES * float(shares[0].max()))) & (counts[1] >= _BURST_COUNT)
    if not 0 < int(burst.sum()) <= _BURST_SLICES:
        return None
    if float(counts[1][burst].sum()) < (1 - facts.quantile) * int(known[1].sum()):
        return None
    old, new = (_by_rank(values[there], facts.quantile) for values, there in zip(columns, known, strict=True))
    change = Interval(new[0] - old[1], one.after - one.before, new[1] - old[0])
    return Shift(one.before, one.after, change, int(burst.sum())) if change.low > 0 else None


def _by_rank(values: Floats, quantile: float) -> tuple[float, float]:
    """Give a quantile's interval by ranks, requests taken as independent (binomial, normal approximation)."""
    spread = _T * float(np.sqrt(quantile * (1 - quantile) / values.size))
    low, high = np.quantile(values, (max(quantile - spread, 0.0), min(quantile + spread, 1.0)))
    return float(low), float(high)


def _persistence(old: Floats, facts: Facts) -> float:
    """Tell how much wider the interval is for slow times that last: slices of the window before that follow each other.

    Formula:
        sqrt((1 + r) / (1 - r)), r the correlation of neighbouring slices' shares of slow requests (above the quantile),
        as of an autoregression; below twice its own error, 2 / sqrt(40), r is taken as 0.
    """
    known = np.isfinite(old)
    if not known.any():
        return 1.0
    level = float(np.quantile(old[known], _LEVEL))
    count = np.bincount(facts.before.slice[known], minlength=SLICES)
    share = np.bincount(facts.before.slice[known & (old > level)], minlength=SLICES) / np.maximum(count, 1)
    apart = (share - share.mean())[count > 0]
    square = float(apart @ apart)
    alike = float(apart[1:] @ apart[:-1]) / square if square > 0 else 0.0
    alike = min(alike, 0.9) if alike > 2 / np.sqrt(SLICES) else 0.0
    return float(np.sqrt((1 + alike) / (1 - alike)))


def shift_of(before: Tail, after: Tail, wider: float = 1.0) -> Shift:
    """Measure the shift between two tails.

    Args:
        before: Of the window before.
        after: Of the window after.
        wider: How many times wider the interval is than that of slices that know nothing of each other.

    Returns:
        The shift.
    """
    old, new = float(before.at()[0]), float(after.at()[0])
    # answers of no token have no logarithm
    with np.errstate(divide="ignore"):
        drawn = [np.log(tail.at(draws_of(SLICES, stream=at))) for at, tail in enumerate((before, after))]
    if old <= 0 or new <= 0 or not all(np.isfinite(each).all() for each in drawn):
        return Shift(old, new, Interval(min(new - old, 0.0), new - old, max(new - old, 0.0)))
    ratio = np.log(new / old)
    spread = wider * _T * float(np.std(drawn[1] - drawn[0], ddof=1))
    low, high = old * np.expm1(ratio - spread), old * np.expm1(ratio + spread)
    if abs(new - old) < _LEAST * old:
        low, high = min(low, 0.0), max(high, 0.0)
    return Shift(old, new, Interval(float(low), new - old, float(high)))


def _answered(values: Floats, ok: np.ndarray) -> Floats:
    return np.where(ok, values, np.nan)
