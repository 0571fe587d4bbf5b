"""What the samples of hosts say of one replica: the metric that moved most, beside those of the others."""

from __future__ import annotations

import numpy as np

from tenfold.latency.records import Pair, Samples
from tenfold.latency.slices import robust_sd

# Samples of a metric on a replica that either window needs, and robust deviations from which it is named.
_LEAST, _CLEAR = 3, 3.0


def moved_most(pair: Pair, name: str, names: tuple[str, ...]) -> str | None:
    """Name the metric whose mean moved most on a replica, in its own robust deviations before.

    Args:
        pair: The windows, with samples of hosts or without.
        name: The replica.
        names: All replicas.

    Returns:
        A sentence; None without samples, or where none moved clearly more than on the others.
    """
    samples = pair.hosts
    if samples is None or not name:
        return None
    best: tuple[float, str] | None = None
    mine = samples.replica == name
    for metric in sorted(set(samples.metric[mine].tolist())):
        change = _change(pair, samples, metric, name)
        if change is None:
            continue
        before, after, sd = change
        peers = [
            (other[1] - other[0]) / sd
            for each in names
            if each != name and (other := _change(pair, samples, metric, each)) is not None
        ]
        score = abs((after - before) / sd - (float(np.median(peers)) if peers else 0.0))
        by = f"{(after - before) / sd:+.1f} standard deviations"
        text = f"{metric} of {name} went from {before:.4g} to {after:.4g} ({by}"
        text += f"; others {float(np.median(peers)):+.1f})." if peers else ")."
        if score >= _CLEAR and (best is None or score > best[0]):
            best = (score, text)
    return None if best is None else best[1]


def _change(pair: Pair, samples: Samples, metric: str, name: str) -> tuple[float, float, float] | None:
    chosen = (samples.metric == metric) & (samples.replica == name) & np.isfinite(samples.value)
    values = [
        samples.value[chosen & (samples.ts_s >= window.since_s) & (samples.ts_s < window.until_s)]
        for window in pair.windows
    ]
    if min(each.size for each in values) < _LEAST:
        return None
    means = [float(each.mean()) for each in values]
    # a gauge that stood still before is given a hundredth of its value as its deviation
    return means[0], means[1], max(robust_sd(values[0]), abs(means[0]) / 100, 1e-9)
