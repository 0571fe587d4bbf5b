"""The load that a log shows: how much is asked, how unevenly, and how much is under way."""

from __future__ import annotations

import math

import numpy as np

from tenfold.latency.callers import caller_codes, newcomers, repeats_of
from tenfold.latency.facts import Facts
from tenfold.latency.records import Floats, Mask, Pair, Window

# Bins of a second at most; longer windows get wider ones.
_BINS = 200_000


def measures_of(pair: Pair, facts: Facts) -> dict[str, float]:
    """Measure the load of both windows.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        ``organic_rate_log_change`` (log of arrivals a second of first requests of callers known before, after over
        before), and before and after: ``burstiness`` (variance over mean of arrivals a second, 1 for random ones),
        ``in_flight``, ``preempted`` (share), ``kv``, NaN where not known.
    """
    callers = caller_codes(pair)
    new = newcomers(pair, (facts.before.uncached, facts.after.uncached), (facts.before.slice, facts.after.slice))
    out: dict[str, float] = {}
    rates: list[float] = []
    for name, window, derived, codes in zip(("before", "after"), pair.windows, facts.windows, callers, strict=True):
        own = ~repeats_of(window, codes).is_repeat
        for one in new if name == "after" else ():
            own &= ~one.rows
        span = max(window.until_s - window.since_s, 1e-9)
        rates.append(max(float(own.sum()), 0.5) / span)
        out[f"burstiness_{name}"] = dispersion(window)
        out[f"in_flight_{name}"] = _mean(derived.in_flight)
        out[f"preempted_{name}"] = (
            math.nan if window.preemptions is None else _mean(np.where(window.preemptions > 0, 1.0, 0.0))
        )
        out[f"kv_{name}"] = math.nan if window.kv is None else _mean(window.kv)
    out["organic_rate_log_change"] = math.log(rates[1] / rates[0])
    return out


def dispersion(window: Window, rows: Mask | None = None) -> float:
    """Give how bunched arrivals are: variance over mean of their counts a second.

    Args:
        window: The window.
        rows: Its requests that count; None: all.

    Returns:
        1 for random arrivals, more for bursts; NaN where there are none.
    """
    span = max(window.until_s - window.since_s, 1.0)
    width = max(1.0, span / _BINS)
    whole = max(int(span / width), 1)
    at = (window.ts_s if rows is None else window.ts_s[rows]) - window.since_s
    counts = np.bincount(np.floor(np.maximum(at, 0) / width).astype(np.int64), minlength=whole)[:whole]
    return float(counts.var() / counts.mean()) if counts.any() else math.nan


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else math.nan
