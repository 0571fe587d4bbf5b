"""Every reported incident of incidents.md, I01 to I51, as files through the runbook: the expected step comes first."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from quick import few

from tenfold._shipped.data.incident_reports import REPORTS

from .scenarios import Outcome, outcome

SEEDS = (0, 1, 2)


class Miss(NamedTuple):
    """Seeds of the three that may not come to the expected answer, and why they do not."""

    seeds: int
    why: str


# What a miss may be: nothing named, or the right step by another word. Nobody else is ever accused, in any seed.
MISSES = {
    "I10": Miss(2, "6,000 requests do not fill the KV cache for long: 0.6 to 0.9 % of them met a full one, and the "
                   "tail is 1 %: step 4 says queueing; the cache is named at 20,000 (S4)"),
    "I11": Miss(1, "near saturation, bursts of minutes move the tail with nothing changed: a shift is declared, a "
                   "cause is looked for, and none is found"),
    "I49": Miss(1, "the storm leaves TTFT-p99 at 1.2 times what it was in that draw: no shift at the 99 % level; step "
                   "7 shows the retries all the same"),
}  # fmt: skip


def innocents(one: Outcome) -> set[int]:
    """Steps that are called first causes and are none."""
    return {cause.step for cause in one.roots} - one.made.truth.first - one.made.truth.also


# a cache that answers in turns, whose mean hides it; and a control: new labels on some requests, as fast as ever
@pytest.mark.parametrize("name", few(1, ["I45", "I03"]))
def test_a_reported_incident_is_told(name):
    one = outcome(name, 1, requests=2200)
    assert one.is_right, one.found.as_dict()
    assert one.is_called
    assert not innocents(one)


@pytest.mark.full
@pytest.mark.parametrize("name", REPORTS)
def test_every_reported_incident_is_told(name, record_property):
    found = {seed: outcome(name, seed, requests=6000) for seed in SEEDS}
    accused = {seed: innocents(one) for seed, one in found.items() if innocents(one)}
    assert not accused, [found[seed].found.as_dict()["causes"] for seed in accused]
    wrong = {seed: one.found for seed, one in found.items() if not (one.is_right and one.is_called)}
    allowed = MISSES.get(name, Miss(0, ""))
    record_property("missed", f"{sorted(wrong)} {allowed.why}" if wrong else "")
    assert len(wrong) <= allowed.seeds, [(one.verdict, one.as_dict()["causes"]) for one in wrong.values()]
