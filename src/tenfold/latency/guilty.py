"""The findings that accuse, and which parts of a request's time they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tenfold.latency.counterfactual import Parts
from tenfold.latency.kinds import KINDS
from tenfold.latency.records import Component, Finding, Mask, Pair

# Kinds that are about what the cache held.
CACHE = ("cache_broken", "cache_diluted", "cache_gained")
_HELD = ("slow_host", "drift", "front_end", "idle_clocks", "version", "limit", "warm_up", "cohort", "scaled")


class Guilty:
    """The findings that accuse, by kind; and ``evicted``, the prefixes that a full cache threw out, if step 3 saw it.

    Args:
        findings: Of all steps.
        pair: The windows.
    """

    def __init__(self, findings: Sequence[Finding], pair: Pair) -> None:
        self.all = [one for one in findings if one.status == "guilty" and one.kind in KINDS]
        self.pair = pair
        # acquitted by step 3, as it only follows from a full cache: what it moved belongs to who filled that
        found = next((one for one in findings if one.step == 3 and one.measures.get("evicted", 0) > 0), None)
        self.evicted = None if found is None else replace(found, kind="cache_evicted")

    def of(self, *kinds: str) -> Finding | None:
        """Give the first finding of these kinds, in the order of the kinds.

        Args:
            kinds: The kinds.

        Returns:
            The finding, or None.
        """
        return next((one for kind in kinds for one in self.all if one.kind == kind), None)

    def parts(self) -> Parts:
        """Say which parts of a request's time may have moved.

        Returns:
            The parts.
        """
        fresh = self.of("new_client")
        residuals: list[tuple[str, Mask, frozenset[Component]]] = []
        for kind in _HELD:
            for at, one in enumerate(one for one in self.all if one.kind == kind):
                rows = np.ones(self.pair.after.size, np.bool_) if one.rows is None else one.rows
                residuals.append((f"{kind} {at}", rows, _components(one)))
        return Parts(
            cache=self.of(*CACHE) is not None or self.evicted is not None,
            mix=self.of("mix") is not None,
            within=self.of("input_length", "output_length") is not None,
            new_clients=None if fresh is None else fresh.rows,
            residuals=tuple(residuals),
        )


def _components(one: Finding) -> frozenset[Component]:
    """Components that a finding about serving bears on: those whose residual it says it moved, or both."""
    said: dict[Component, float] = {
        component: max((abs(one.measures[name]) for name in names if name in one.measures), default=0.0)
        for component, names in _EFFECTS.items()
    }
    moved: list[Component] = [component for component, value in said.items() if value >= np.log(1.05)]
    return frozenset(moved or list(_EFFECTS))


_EFFECTS: dict[Component, tuple[str, ...]] = {
    "ttft": ("prefill_residual", "prefill_effect"),
    "tpot": ("decode_residual", "decode_effect"),
}
