"""Which replicas served when: requests by replica and slice, silences that are no chance, capacity in use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.records import Floats, Pair, Window

# Requests that a silence must have cost the replica at its usual share: a Poisson chance of exp(-30) by itself, so that
# bursts, stickiness and unequal shares have room.
SILENT = 30.0
# And as a multiple of the longest silence of any replica in the window before.
_LONGER = 3.0


class Silence(NamedTuple):
    """A replica that answered nothing for a while.

    Args:
        replica: Its code.
        first: First silent slice of the window after.
        last: Last one.
        expected: Requests that it would have answered meanwhile, at its share of the window before.
        asked: Requests that it was given meanwhile (all of them failed).
    """

    replica: int
    first: int
    last: int
    expected: float
    asked: int


class Serving(NamedTuple):
    """Requests answered by replica (rows) and slice (columns) of both windows.

    Args:
        names: Replicas.
        before: Answered in the window before.
        after: Answered in the window after.
        asked: Given to it in the window after, answered or not.
        silences: Silences of the window after that are no chance.
    """

    names: tuple[str, ...]
    before: Floats
    after: Floats
    asked: Floats
    silences: tuple[Silence, ...]

    @property
    def were(self) -> np.ndarray:
        """Replicas that answered in the window before."""
        return np.flatnonzero(self.before.sum(axis=1) > 0)

    @property
    def fresh(self) -> np.ndarray:
        """Replicas that answered in the window after and were not there before."""
        return np.flatnonzero((self.before.sum(axis=1) == 0) & (self.after.sum(axis=1) > 0))

    def active(self) -> tuple[Floats, Floats]:
        """Give how many replicas served in each slice, before and after.

        Returns:
            Counts a slice: a replica counts from its first answer to its last, but for its silences.
        """
        return _active(self.before, ()).sum(axis=0), _active(self.after, self.silences).sum(axis=0)

    @property
    def capacity_log_change(self) -> float:
        """Log of the mean count of serving replicas after over before, slices weighed by their requests."""
        means = [
            float((count * served.sum(axis=0)).sum() / max(served.sum(), 1.0))
            for count, served in zip(self.active(), (self.before, self.after), strict=True)
        ]
        return float(np.log(means[1] / means[0])) if min(means) > 0 else float("nan")


def serving_of(pair: Pair, facts: Facts) -> Serving | None:
    """Count who served when.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        The counts; None where the log does not name replicas in both windows.
    """
    old, new = pair.before.replica, pair.after.replica
    if old is None or new is None:
        return None
    names = old.names if len(old.names) >= len(new.names) else new.names
    before = _counts(pair.before, facts.before.slice, pair.before.ok, len(names))
    after = _counts(pair.after, facts.after.slice, pair.after.ok, len(names))
    asked = _counts(pair.after, facts.after.slice, np.ones(pair.after.size, np.bool_), len(names))
    longest = max((each.expected for each in _silences(before, before, before)), default=0.0)
    bound = max(SILENT, _LONGER * longest)
    found = tuple(each for each in _silences(before, after, asked) if each.expected >= bound)
    return Serving(names, before, after, asked, found)


def _counts(window: Window, slices: np.ndarray, counted: np.ndarray, many: int) -> Floats:
    assert window.replica is not None
    named = counted & (window.replica.codes >= 0)
    cells = window.replica.codes[named].astype(np.int64) * SLICES + slices[named]
    return np.bincount(cells, minlength=many * SLICES).reshape(many, SLICES).astype(np.float64)


def _silences(ground: Floats, served: Floats, asked: Floats) -> list[Silence]:
    """List each replica's longest silence, by the requests it would have had at its share of the ground."""
    total = served.sum(axis=0)
    shares = ground.sum(axis=1) / max(ground.sum(), 1.0)
    found: list[Silence] = []
    for replica in np.flatnonzero(shares > 0):
        quiet = np.concatenate(([0], (served[replica] == 0).astype(np.int8), [0]))
        starts, stops = np.flatnonzero(np.diff(quiet) == 1), np.flatnonzero(np.diff(quiet) == -1)
        runs = [
            Silence(
                int(replica),
                int(first),
                int(stop) - 1,
                float(shares[replica] * total[first:stop].sum()),
                int(asked[replica, first:stop].sum()),
            )
            for first, stop in zip(starts, stops, strict=True)
        ]
        if runs:
            found.append(max(runs, key=lambda run: run.expected))
    return found


def _active(served: Floats, silences: tuple[Silence, ...]) -> Floats:
    there = served > 0
    seen = np.cumsum(there, axis=1) > 0
    to_come = np.cumsum(there[:, ::-1], axis=1)[:, ::-1] > 0
    active = (seen & to_come).astype(np.float64)
    for one in silences:
        active[one.replica, one.first : one.last + 1] = 0.0
    return active
