"""Step 1, split: did the first token come later, did each token take longer, or were there more of them?

Source: serving.md 12, step 1: TPOT = (E2E - TTFT) / (output - 1); a component has moved where the interval of its
shift leaves zero out; requests around the tail are compared, and the change of their time is shared among the three
by Shapley over all orders.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import numpy as np

from tenfold.latency.amounts import unit_of
from tenfold.latency.answers import Shift
from tenfold.latency.facts import Facts
from tenfold.latency.records import Finding, Pair, Window

_NAMES = ("ttft", "tpot", "output")
_WORDS = {"ttft": "time to the first token", "tpot": "time an output token", "output": "length of answers"}


def look(pair: Pair, facts: Facts, moved: Mapping[str, Shift]) -> tuple[Finding, ...]:
    """Say which component moved, and which part of the slow requests' time each is.

    Args:
        pair: The windows.
        facts: What is known of them.
        moved: How each component's quantile moved (``shift.shifts``).

    Returns:
        One finding; ``measures`` holds ``<component>_share`` of the change of the slow requests' time.
    """
    shares = band_shares(pair, facts.quantile)
    accused = [name for name in _NAMES if name in moved and moved[name].is_change]
    evidence = [_sentence(name, moved[name], facts.quantile) for name in _NAMES if name in moved]
    if shares:
        parts = ", ".join(f"{_WORDS[name]} {share:.0%}" for name, share in shares.items())
        evidence.append(f"Of the change of E2E around its tail: {parts}.")
    return (
        Finding(
            step=1,
            kind=" and ".join(accused),
            status="guilty" if accused else "innocent",
            evidence=tuple(evidence),
            measures={f"{name}_share": share for name, share in shares.items()},
            next_action="Go on with the steps that bear on what moved.",
        ),
    )


def band_shares(pair: Pair, quantile: float) -> dict[str, float]:
    """Share the change of the slow requests' E2E among TTFT, TPOT and output.

    Args:
        pair: The windows.
        quantile: Where their tail begins.

    Returns:
        Shares that add up to 1; empty where E2E did not change or is not known.

    Formula:
        Means of TTFT, TPOT and output tokens over the requests between the quantile's two neighbours at twice and at
        none of its distance from 1 (q98 to q100 for 0.99); Shapley of TTFT + TPOT x (output - 1) over the 3! orders.
    """
    bands = [_band(window, quantile) for window in pair.windows]
    if any(band is None for band in bands):
        return {}
    states: list[dict[str, float]] = [dict(zip(_NAMES, band, strict=True)) for band in bands if band is not None]
    old, new = states
    whole = _time(new) - _time(old)
    if whole == 0:
        return {}
    amounts = dict.fromkeys(_NAMES, 0.0)
    for order in permutations(_NAMES):
        state = dict(old)
        for name in order:
            without = _time(state)
            state[name] = new[name]
            amounts[name] += (_time(state) - without) / 6
    return {name: amount / whole for name, amount in amounts.items()}


def _time(state: Mapping[str, float]) -> float:
    return state["ttft"] + state["tpot"] * (state["output"] - 1)


def _band(window: Window, quantile: float) -> tuple[float, float, float] | None:
    tpot_s = window.tpot_s
    known = np.isfinite(window.e2e_s) & np.isfinite(tpot_s) & np.isfinite(window.ttft_s)
    if not known.any():
        return None
    slow = known & (window.e2e_s >= np.quantile(window.e2e_s[known], 1 - 2 * (1 - quantile)))
    return float(window.ttft_s[slow].mean()), float(tpot_s[slow].mean()), float(window.output[slow].mean())


def _sentence(name: str, one: Shift, quantile: float) -> str:
    words = f"p{quantile * 100:g} of {_WORDS[name]}"
    change = f"{one.after / one.before - 1:+.0%}" if one.before > 0 else "from nothing"
    if name == "output":
        values = f"{one.before:,.0f} to {one.after:,.0f} tokens"
    else:
        unit = unit_of(name, one.before, one.after)
        values = f"{unit.text(one.before)} to {unit.text(one.after)} {unit.name}"
    return f"{words}: {values} ({change}{'' if one.is_change else ', no change at the 99 % level'})."
