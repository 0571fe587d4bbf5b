"""Reconciliation: planted drift is found and split into its causes; an honest log is not accused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
from decimal import Decimal

import pytest
from planted_invoices import (
    RATES,
    START,
    Planted,
    anthropic_costs,
    by_cause,
    changed,
    drawn,
    focus,
    invoice,
    lose_streams,
    openai_costs,
    rate,
)

import tenfold as tf

WRITERS = {"openai": openai_costs, "focus": focus, "csv": invoice, "anthropic": anthropic_costs}


def window(planted: Planted):
    since = START.replace(tzinfo=UTC)
    return {"since": since, "until": since + timedelta(days=planted.days)}


def held(planted: Planted, tmp_path, writer="openai", **options):
    if writer == "anthropic":
        planted.provider = "anthropic"
    file = WRITERS[writer](
        planted, tmp_path / ("report" + (".csv" if writer in ("focus", "csv") else ".json")), **options
    )
    found = tf.reconcile(planted.ledger(**window(planted)), file)
    for cell in found.cells:
        assert cell.drift_pusd == sum(cell.explained.values()) + cell.unexplained_pusd
    assert sum(cause.pusd for cause in found.causes) + found.unexplained_pusd == found.drift_pusd
    return found


def assert_split(found, truth, within=Decimal("0.001")):
    """Every cause, and what is unexplained, is within a share of the spend of what was planted."""
    said, most = by_cause(found), found.compared_pusd * within
    off = {name: said.get(name, 0) - truth.get(name, 0) for name in {*said, *truth}}
    assert all(abs(pusd) <= most for pusd in off.values()), (off, found.compared_pusd)


def all_three(seed, **options):
    planted = drawn(seed, **options)
    day = 1 + seed % (planted.days - 2)
    shift = (7, -8, 5.5, -2, 9)[seed % 5]
    planted.without_tiers, planted.shifts = frozenset({("priority", "batch")[seed % 2]}), {day: shift}
    return lose_streams(planted, seed=seed)


def test_three_planted_causes_are_split(tmp_path):
    planted = all_three(0, days=5, per_day=200)
    found = held(planted, tmp_path)
    truth = planted.truth()
    assert set(truth) == {"tier_missing", "day_boundaries", "usage_missing"}
    assert_split(found, truth)
    assert found.verdict == "unreconciled"
    evidence = {cause.name: " ".join(cause.evidence) for cause in found.causes}
    assert "tier priority" in evidence["tier_missing"]
    assert "2026-06-02 begins 7 h later, as a day of UTC-7 does" in evidence["day_boundaries"]
    document = found.as_dict()
    keys = {"day", "model", "meter", "logged_usd", "invoiced_usd", "drift_ratio", "explained"}
    assert all(keys <= cell.keys() for cell in document["by_meter"])
    cells = [sum(Decimal(one["usd"]) for one in cell["explained"]) for cell in document["by_meter"]]
    assert sum(cells) + Decimal(document["unexplained_usd"]) == Decimal(document["total"]["drift_usd"])


@pytest.mark.parametrize("writer", ["anthropic", pytest.param("csv", marks=pytest.mark.full)])
def test_an_honest_log_is_not_accused(tmp_path, writer):
    found = held(drawn(2, days=4, per_day=60), tmp_path, writer)
    assert found.verdict == "reconciled"
    assert {cause.name for cause in found.causes} <= {"rounding"}
    assert found.unexplained_pusd == 0
    assert found.covered_ratio == 1
    assert all(cell.logged_units == cell.invoiced_units for cell in found.cells if writer == "csv")


@pytest.mark.full
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(4))
def test_three_planted_causes_in_every_report(tmp_path, seed, writer):
    planted = all_three(seed, days=10, per_day=400)
    assert_split(held(planted, tmp_path, writer), planted.truth())


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_without_quantities_amounts_alone_tell(tmp_path, seed):
    planted = all_three(seed, days=10, per_day=400)
    assert_split(held(planted, tmp_path, with_quantity=False), planted.truth())


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_with_a_discount_and_all_days_cut_elsewhere(tmp_path, seed):
    planted = drawn(seed, days=10, per_day=400, discount=Decimal("0.9"), shifts=dict.fromkeys(range(10), 7))
    planted.without_tiers = frozenset({"batch"})
    planted = lose_streams(planted, seed=seed)
    found, truth = held(planted, tmp_path), planted.truth()
    # The causes are worth the log's rates; what the discount takes off is its own cause, over all that is billed.
    off = sum(truth.values()) - found.drift_pusd
    truth["usage_missing"] = int(truth["usage_missing"] * Decimal("0.9"))
    truth["rates"] = -off + (planted.truth()["usage_missing"] - truth["usage_missing"])
    assert_split(found, truth)


ALONE = {
    "tier_missing": lambda _: {"without_tiers": frozenset({"priority"})},
    "day_boundaries": lambda _: {"shifts": {2: 7}},
    "all_days": lambda p: {"shifts": dict.fromkeys(range(p.days), -9)},
}


@pytest.mark.full
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("cause", ALONE)
@pytest.mark.parametrize("seed", [1])
def test_each_cause_alone(tmp_path, cause, writer, seed):
    planted = drawn(seed, days=8, per_day=200)
    for name, value in ALONE[cause](planted).items():
        setattr(planted, name, value)
    found = held(planted, tmp_path, writer)
    assert_split(found, planted.truth(), Decimal("0.00001"))  # the CSV is in millionths of a dollar
    assert set(by_cause(found)) <= {*planted.truth(), "unexplained", "rounding"}


@pytest.mark.full
def test_requests_without_usage_alone(tmp_path):
    planted = lose_streams(drawn(1, days=4, per_day=80), 0.1)
    found = held(planted, tmp_path)
    assert_split(found, planted.truth(), Decimal(0))


KINDS = {
    # what the log's line says, whether the provider bills it, the cause and its sign
    "retries": ({"attempt": 1}, False, "retries", -1),
    "failed calls billed by the log": ({"status": "error"}, False, "failed_calls", -1),
    "failed calls billed by the provider": ({"is_billable": False, "status": "error"}, True, "failed_calls", 1),
    "gateway": ({"gateway_cache_hit": True}, True, "gateway_hits", 1),
    "repeats": ({"flags": ["dup_suspect"]}, False, "duplicates", -1),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_calls_billed_otherwise(tmp_path, kind):
    said, is_billed, cause, sign = KINDS[kind]
    planted = changed(
        drawn(4, days=6, per_day=150), lambda _: True, 5, 0.05, log=tuple(said.items()), is_billed=is_billed
    )
    changes = sum(
        call.cost(m)
        for call in planted.calls
        if call.log and START <= call.ts < START + timedelta(days=6)
        for m in range(4)
    )
    found = held(planted, tmp_path)
    assert by_cause(found) == {cause: sign * changes, "unexplained": 0}


@pytest.mark.full
def test_a_discount_is_a_rate_with_both_unit_rates(tmp_path):
    planted = drawn(3, days=3, per_day=40, discount=Decimal("0.9"))
    planted.calls = [call for call in planted.calls if call.tier == "standard"]
    found = held(planted, tmp_path)
    assert set(by_cause(found)) == {"rates", "unexplained"}
    assert found.unexplained_pusd == 0
    assert found.drift_pusd * 10 == -found.compared_pusd
    assert any(
        "$9.0000 per million, the log's price is $10.0000 (90.00 %)" in line for line in found.causes[0].evidence
    )


@pytest.mark.full
def test_a_tier_without_a_price_that_the_report_leaves_out_too(tmp_path):
    """Priority at Anthropic: not in the cost report, and the price book has no price: no money, and no drift."""
    planted = lose_streams(replace(drawn(6, days=5, per_day=150), without_tiers=frozenset({"priority"})))
    unpriced = [
        replace(one, log=(("service_tier", "scale"),)) if one.tier == "priority" else one for one in planted.calls
    ]
    found = held(replace(planted, calls=unpriced), tmp_path, "anthropic")
    assert_split(found, {"usage_missing": planted.truth()["usage_missing"]})


@pytest.mark.full
def test_traffic_that_the_log_lacks_is_not_blamed_on_others(tmp_path):
    planted = changed(all_three(3, days=10, per_day=400), lambda _: True, 5, 0.03, is_logged=False)
    truth = planted.truth()
    truth["unexplained"] = truth.pop("not_in_log")  # nothing tells whose it is
    found = held(planted, tmp_path)
    assert_split(found, truth, Decimal("0.005"))
    assert by_cause(found)["tier_missing"] == truth["tier_missing"]
    assert any("cannot be told" in note for note in found.notes)


def test_rates_of_the_generator_are_those_of_the_price_file():
    assert {(model, m): rate(model, "standard", m) for model in RATES for m in range(4)}["large", 3] == 10_000_000
