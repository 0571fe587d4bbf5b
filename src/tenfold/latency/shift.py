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
        "output": (_answered(pair.before.output, pair.before.ok), _answered(pair.after.output, pair.after.ok)),
        "e2e": (pair.before.e2e_s, pair.after.e2e_s),
    }
    found: dict[str, Shift] = {}
    for name, (old, new) in columns.items():
        tails = [
            Tail.of(values, derived.slice, facts.quantile, SLICES)
            for values, derived in ((old, facts.before), (new, facts.after))
        ]
        if all(tail.values.size for tail in tails):
            found[name] = shift_of(*tails)
    return found


def shift_of(before: Tail, after: Tail) -> Shift:
    """Measure the shift between two tails.

    Args:
        before: Of the window before.
        after: Of the window after.

    Returns:
        The shift.
    """
    old, new = float(before.at()[0]), float(after.at()[0])
    drawn = [np.log(tail.at(draws_of(SLICES, stream=at))) for at, tail in enumerate((before, after))]
    if old <= 0 or new <= 0 or not all(np.isfinite(each).all() for each in drawn):
        return Shift(old, new, Interval(min(new - old, 0.0), new - old, max(new - old, 0.0)))
    ratio = np.log(new / old)
    spread = _T * float(np.std(drawn[1] - drawn[0], ddof=1))
    low, high = old * np.expm1(ratio - spread), old * np.expm1(ratio + spread)
    if abs(new - old) < _LEAST * old:
        low, high = min(low, 0.0), max(high, 0.0)
    return Shift(old, new, Interval(float(low), new - old, float(high)))


def _answered(values: Floats, ok: np.ndarray) -> Floats:
    return np.where(ok, values, np.nan)
