"""Incidents with planted causes run through the runbook, and what of the answer is right."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from tenfold._shipped.data.incidents import Incident, incident
from tenfold.latency.answers import Diagnosis
from tenfold.latency.diagnosis import diagnose

# How far a share may be from the planted one (issue: within 0.1, at 20,000 requests).
SHARE = 0.1


class Outcome(NamedTuple):
    """What came of an incident.

    Args:
        made: The incident.
        found: The answer.
    """

    made: Incident
    found: Diagnosis

    @property
    def roots(self):
        return [cause for cause in self.found.causes if cause.consequence_of is None]

    @property
    def is_right(self) -> bool:
        """Whether the verdict and the first causes are those that were planted."""
        truth, steps = self.made.truth, [cause.step for cause in self.roots]
        if not truth.first:
            return self.found.verdict == truth.verdict and not self.found.causes
        is_first = bool(steps) and steps[0] in truth.first
        return self.found.verdict in ("explained", "partly") and is_first and truth.first <= set(steps)

    @property
    def is_called(self) -> bool:
        """Whether the first cause bears the planted name, and not another of its step's."""
        return not self.made.truth.kinds or (bool(self.roots) and self.roots[0].kind in self.made.truth.kinds)

    @property
    def consequences(self) -> dict[int, int]:
        return {cause.step: cause.consequence_of for cause in self.found.causes if cause.consequence_of is not None}

    def misses(self) -> dict[tuple[int, str], float]:
        """Shares found less those planted, on TTFT and TPOT where they moved."""
        out = {}
        for step, shares in self.made.truth.shares.items():
            for component in ("ttft", "tpot"):
                if component in shares and self.found.shift[component].is_change:
                    mine = [
                        cause.shares[component].mid
                        for cause in self.roots
                        if cause.step == step and component in cause.shares
                    ]
                    out[step, component] = sum(mine) - shares[component]
        return out


def outcome(name: str, seed: int, requests: int = 20_000) -> Outcome:
    """Make an incident, write it as files, and run the runbook on these."""
    made = incident(name, seed, requests=requests)
    with tempfile.TemporaryDirectory() as directory:
        files = made.write(Path(directory))
        found = diagnose(
            [str(files["before"])],
            [str(files["after"])],
            events=files["events"] if made.events else None,
            hosts=files["hosts"] if made.hosts else None,
        )
    return Outcome(made, found.main)
