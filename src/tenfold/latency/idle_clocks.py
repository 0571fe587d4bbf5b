"""Requests after a rest of their replica: whether it needs a moment to get going (clocks that drop when idle).

The reverse of load: the first request after a gap pays, back-to-back ones do not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.facts import SLICES, Derived, Facts
from tenfold.latency.records import Finding, Floats, Interval, Mask, Pair, Window
from tenfold.latency.slices import from_draws, percent
from tenfold.latency.tails import draws_of

# Seconds of rest after which clocks drop (vllm#31602: 10 s).
REST_S = 10.0
# Requests after a rest, and others that found their replica idle for less, that a comparison needs.
_LEAST = 20
# Residuals are held at this many logs either way: one stuck request is no clock.
_HELD = 3.0
# Log of the effect that can matter, as for a slow host; and share of the tail's shift that it must make.
LEAST, _TAIL_SHARE = float(np.log(1.10)), 0.25


class Rested(NamedTuple):
    """What requests after a rest cost.

    Args:
        rows: Requests of the window after that came after a rest.
        share: Their share, before and after.
        effect: Log of their service time over that of others at idle replicas, in the window after, with its interval.
        effect_before: The same in the window before; NaN where it has too few.
        tail_share: Share of the shift of the TTFT's tail that is gone when they are served as the others.
    """

    rows: Mask
    share: tuple[float, float]
    effect: Interval
    effect_before: float
    tail_share: float


def rested(pair: Pair, facts: Facts) -> Rested | None:
    """Compare requests after a rest with others.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        The comparison; None where too few requests came after a rest.
    """
    gaps = [_gaps(window, derived.replica) for window, derived in zip(pair.windows, facts.windows, strict=True)]
    rest = [gap >= REST_S for gap in gaps]
    effects = [
        _effect(derived, gap, stream) for stream, (derived, gap) in enumerate(zip(facts.windows, gaps, strict=True))
    ]
    if effects[1] is None:
        return None
    shares = tuple(float(rows.mean()) if rows.size else 0.0 for rows in rest)
    before = effects[0].mid if effects[0] is not None else float("nan")
    back = np.where(rest[1], facts.after.service_s * -np.expm1(-effects[1].mid), 0.0)
    tails = [_tail(ttft, facts.quantile) for ttft in (pair.before.ttft_s, pair.after.ttft_s, pair.after.ttft_s - back)]
    moved = tails[1] - tails[0]
    tail_share = (tails[1] - tails[2]) / moved if moved > 0.05 * tails[0] else 0.0
    return Rested(rest[1], (shares[0], shares[1]), effects[1], before, tail_share)


def _gaps(window: Window, replica: np.ndarray) -> Floats:
    """Seconds since the last request on its replica ended; negative while one is under way; NaN for the first."""
    out = np.full(window.size, np.nan)
    ends = window.ts_s + np.nan_to_num(window.e2e_s)
    order = np.argsort(replica, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(replica[order])) + 1):
        if rows.size > 1:
            out[rows[1:]] = window.ts_s[rows[1:]] - np.maximum.accumulate(ends[rows])[:-1]
    return out


def _effect(one: Derived, gaps: Floats, stream: int) -> Interval | None:
    residual = np.clip(one.prefill_residual, -_HELD, _HELD)
    known = np.isfinite(residual)
    first = known & (gaps >= REST_S)
    others = known & (gaps > 0) & (gaps < REST_S)
    if others.sum() < _LEAST:
        others = known & ~first & (one.in_flight <= 1)
    if first.sum() < _LEAST or others.sum() < _LEAST:
        return None
    drawn = draws_of(SLICES, stream=stream)
    sums = [
        (np.bincount(one.slice[rows], residual[rows], SLICES), np.bincount(one.slice[rows], minlength=SLICES))
        for rows in (first, others)
    ]
    mids = [float(total.sum() / count.sum()) for total, count in sums]
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = [(drawn @ total) / (drawn @ count) for total, count in sums]
    return from_draws(mids[0] - mids[1], draws[0] - draws[1])


def _tail(values: Floats, quantile: float) -> float:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, quantile)) if known.size else float("nan")


def look_for_idle_clocks(pair: Pair, facts: Facts, looked: list[str]) -> list[Finding]:
    """Look for requests that pay for a rest of their replica.

    Args:
        pair: The windows.
        facts: What is known of them.
        looked: Takes a sentence of what was looked at.

    Returns:
        One guilty finding, or none.
    """
    one = rested(pair, facts)
    if one is None:
        looked.append(f"Too few requests come after {REST_S:.0f} s of rest to tell clocks that drop.")
        return []
    sentence = (
        f"{one.share[1]:.1%} of requests (before: {one.share[0]:.1%}) come {REST_S:.0f} s or more after the last on "
        f"their replica ended; to the first token they take {percent(one.effect.mid)} "
        f"[{percent(one.effect.low)}, {percent(one.effect.high)}] against others at idle replicas, and make "
        f"{one.tail_share:.0%} of the tail's shift."
    )
    looked.append(sentence)
    if not (one.effect.low > 0 and one.effect.mid >= LEAST and one.tail_share >= _TAIL_SHARE):
        return []
    return [
        Finding(
            step=6,
            kind="idle_clocks",
            status="guilty",
            evidence=(sentence, "The reverse of load: back-to-back requests are not slow."),
            measures={
                "prefill_effect": one.effect.mid,
                "effect_before": one.effect_before,
                "rested_share": one.share[1],
                "rested_share_before": one.share[0],
                "tail_share": one.tail_share,
            },
            effect=one.effect,
            effect_name="log of service time of requests after a rest over others",
            rows=one.rows,
            next_action="Lock the GPU clocks (nvidia-smi -lgc), or keep replicas warm with a small request every 5 s.",
        )
    ]
