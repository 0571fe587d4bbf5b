"""S1 to S12 of incidents.md, from files: the planted first cause, its share, what follows, and who is not accused."""

import os

import pytest
from quick import few

from .scenarios import SHARE, outcome

PLANTED = ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S11", "S12")
# Where the window before is close to a full cache in some draws, what evicts and what waits is not told apart as well.
NEAR = {"S4": 0.8}
SEEDS = int(os.environ.get("TENFOLD_SEEDS", "50"))


@pytest.mark.parametrize("name", few(1, ["S8", "S1", "S9", "S6", "S10"]))
def test_the_planted_cause_comes_first(name):
    """One seed of the quick run, at a tenth of the requests or so; the others and the shares are in the full one."""
    found = outcome(name, 0, requests=5000)
    assert found.is_right, found.found.as_dict()
    if name == "S8":
        assert found.consequences == {4: 6, 7: 6}


@pytest.mark.full
@pytest.mark.parametrize("name", PLANTED)
def test_causes_and_shares_over_seeds(name, record_property):
    """Right first cause in at least 95 %; shares of TTFT within 0.1 in as many.

    Shares of TPOT are held within 0.1 in three of four seeds, and within 0.25 in 95 %: its p99 moves by a fifth to half
    only (S2, S8, S11), of which the sampling of 20,000 requests alone is up to 0.07 either way.
    """
    found = [outcome(name, seed) for seed in range(SEEDS)]
    right = sum(one.is_right for one in found)
    misses = [one.misses() for one in found]
    near = {
        (component, bound): sum(
            all(abs(miss) <= bound for (_, moved), miss in each.items() if moved == component) for each in misses
        )
        for component, bound in (("ttft", SHARE), ("tpot", SHARE), ("tpot", 0.25))
    }
    called = sum(one.is_called for one in found)
    record_property("first cause right", right)
    record_property("and by its name", called)
    record_property("shares near", str(near))
    record_property("worst share", max((abs(miss) for each in misses for miss in each.values()), default=0.0))
    assert right >= 0.95 * SEEDS, [one.found.as_dict()["causes"] for one in found if not one.is_right]
    if name == "S8":
        marked = sum(one.consequences == {4: 6, 7: 6} for one in found)
        record_property("consequences marked", marked)
        assert marked >= 0.9 * SEEDS
    assert called >= 0.9 * SEEDS, [one.roots[0].kind for one in found if one.roots]
    assert near["ttft", SHARE] >= NEAR.get(name, 0.95) * SEEDS, misses
    assert near["tpot", SHARE] >= 0.75 * SEEDS, misses
    assert near["tpot", 0.25] >= 0.95 * SEEDS, misses


@pytest.mark.full
def test_nobody_is_accused_where_nothing_changed(record_property):
    """At most 2 of 50: a shift is declared at the 99 % level."""
    accused = [seed for seed in range(SEEDS) if not outcome("S9", seed).is_right]
    record_property("accused", len(accused))
    assert len(accused) <= 0.04 * SEEDS, accused


@pytest.mark.full
def test_another_model_is_refused():
    for seed in range(SEEDS):
        found = outcome("S10", seed, requests=5000).found
        assert found.verdict == "refused"
        assert "model" in (found.refused or "")
