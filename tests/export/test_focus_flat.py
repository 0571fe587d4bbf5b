"""Rows of a FOCUS export that are no usage of a meter: commitments, what is idle of them, idle time of a fleet."""

from datetime import timedelta
from decimal import Decimal

import fleets
import pytest
from focus_rows import CALL, DAY, SOLORA, column, hold_products, rows_of

from tenfold.export import check_focus, export_focus
from tenfold.serving.hosted import on_fleet

PTU = """
[[commitment]]
name = "PTU East"
provider = "openai"
usd_per_hour = 2
valid_from = 2026-07-01T12:00:00Z
valid_to = 2026-07-04
source = "t"
"""


@pytest.mark.full
def test_capacity_is_bought_by_the_day_and_carried_by_what_it_covers(exported):
    before, covered = {**CALL, "ts": DAY}, {**CALL, "ts": DAY + timedelta(hours=3)}
    rows = exported([before, covered, {**covered, "ts": DAY + timedelta(days=2)}], SOLORA, PTU)
    bought = [row for row in rows if row["ChargeCategory"] == "Purchase"]
    assert column(bought, "ChargePeriodStart", "ChargePeriodEnd", "BilledCost", "EffectiveCost") == [
        ("2026-07-01T12:00:00Z", "2026-07-02T00:00:00Z", "24.0", "0.0"),
        ("2026-07-02T00:00:00Z", "2026-07-03T00:00:00Z", "48.0", "0.0"),
        ("2026-07-03T00:00:00Z", "2026-07-04T00:00:00Z", "48.0", "0.0"),
    ]
    idle = [row for row in rows if row["CommitmentDiscountStatus"] == "Unused"]
    assert column(idle, "ChargePeriodStart", "EffectiveCost", "ConsumedQuantity") == [
        ("2026-07-02T00:00:00Z", "48.0", "")
    ]
    used = [row for row in rows if row["CommitmentDiscountStatus"] == "Used"]
    assert {row["ChargePeriodStart"] for row in used} == {"2026-07-01T12:00:00Z", "2026-07-03T00:00:00Z"}
    assert sum(Decimal(row["CommitmentDiscountQuantity"]) for row in used) == 24 + 48
    # 8 of 12 million tokens were read
    (read,) = [
        row for row in used if row["x_Meter"] == "cache_read" and row["ChargePeriodStart"].startswith("2026-07-01")
    ]
    assert (read["CommitmentDiscountQuantity"], read["EffectiveCost"]) == ("16.0", "18.4")
    assert (read["PricingCategory"], read["CommitmentDiscountId"]) == ("Committed", "PTU East")
    assert exported.made.costs["EffectiveCost"] == exported.ledger.costs().total("effective")
    assert exported.made.costs["BilledCost"] == exported.made.costs["EffectiveCost"]


@pytest.mark.full
def test_what_was_not_spent_is_due_on_the_last_day_of_its_term(exported):
    own = PTU.replace("usd_per_hour = 2", "usd = 100")
    rows = exported([CALL, {**CALL, "ts": DAY + timedelta(days=4)}], SOLORA, own)
    (due,) = [row for row in rows if row["ChargeCategory"] == "Purchase"]
    assert (due["ChargePeriodStart"], due["BilledCost"], due["ChargeFrequency"]) == (
        "2026-07-03T00:00:00Z", "100.0", "One-Time"
    )  # fmt: skip
    assert exported.made.costs["EffectiveCost"] == exported.ledger.costs().total("effective")


@pytest.mark.full
def test_idle_time_of_a_fleet_is_rows_by_month(tmp_path):
    calls = [fleets.request(hours * 3600, 600) for hours in (1, 24 * 35)]  # into August
    ledger = on_fleet(fleets.ledger_of(calls, tmp_path), fleets.fleet_file(tmp_path, fleets.pool()))
    made = export_focus(ledger, tmp_path / "f.csv")
    rows = rows_of(tmp_path / "f.csv")
    hold_products(rows)
    idle = [row for row in rows if row["x_Meter"] == "idle"]
    assert {row["ChargePeriodStart"] for row in idle} == {"2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"}
    assert sum(Decimal(row["BilledCost"]) for row in idle) == Decimal(ledger.idle_pusd).scaleb(-12)
    assert made.costs["BilledCost"] == ledger.bill_pusd
    assert not check_focus(tmp_path / "f.csv").findings
