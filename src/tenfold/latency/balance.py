"""How evenly requests are spread over the replicas that take any, slice by slice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.records import Codes, Floats, Interval, Mask, Pair
from tenfold.latency.statistics import ALPHA, Estimate, change

# Share of the slices before in which a replica must have had requests to be one that is balanced.
_THERE = 0.8
# Requests a slice and replica on average, below which shares are noise.
_LEAST = 5
# Slices in which all of them must have had requests.
_SLICES = 5


class Fullest(NamedTuple):
    """The replica whose load grew most against the others'.

    Args:
        name: Its name.
        rows: Its requests after.
        before: Its requests over those of a mean replica, before.
        after: The same after.
        change: After less before.
    """

    name: str
    rows: Mask
    before: float
    after: float
    change: Interval


def fullest(pair: Pair, facts: Facts) -> Fullest | None:
    """Find the replica whose share of the requests grew most.

    Only slices count in which all that served before have requests, and only those replicas: what a lost one leaves to
    the others, evenly or not, is no skew, nor is one that is added.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        The replica; None where the log names no two, or too few requests each.
    """
    if pair.before.replica is None or pair.after.replica is None:
        return None
    names = pair.after.replica.names
    counts = [_counts(side.replica, side.slice, len(names)) for side in facts.windows]
    there = (counts[0] > 0).mean(axis=0) >= _THERE
    if there.sum() < 2:
        return None
    one, two = (_loads(each[:, there]) for each in counts)
    if one is None or two is None:
        return None
    old, new = ([_mean(column) for column in loads.T] for loads in (one, two))
    codes = np.flatnonzero(there).tolist()
    both = [(at, was, now) for at, was, now in zip(codes, old, new, strict=True)]
    found: list[Fullest] = []
    for at, was, now in both:
        moved = change(was, now, ALPHA / len(both))
        found.append(Fullest(names[at], pair.after.replica.codes == at, was.value, now.value, moved))
    return max(found, key=lambda each: each.change.mid)


def _counts(replica: Codes, slices: Codes, count: int) -> Floats:
    cells = slices.astype(np.int64) * count + replica
    return np.bincount(cells, minlength=SLICES * count).reshape(SLICES, count).astype(np.float64)


def _loads(rows: Floats) -> Floats | None:
    """Give requests over those of a mean replica, a slice and replica, of the slices in which all took part."""
    complete = rows[(rows > 0).all(axis=1)]
    if complete.shape[0] < _SLICES or complete.mean() < _LEAST:
        return None
    return complete / complete.mean(axis=1, keepdims=True)


def _mean(loads: Floats) -> Estimate:
    return Estimate(float(loads.mean()), float(loads.var(ddof=1)) / loads.size, loads.size - 1.0)
