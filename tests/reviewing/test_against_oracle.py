"""Reviews against a second implementation, written from the definitions: the demo, and small random logs."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from fractions import Fraction

import oracle
import pytest
import stores
from oracle_review import books
from quick import few
from review_cases import APRIL, DEMO, JULY, Case, drawn, near, pusd
from review_holding import (
    hold_allocation,
    hold_anomalies,
    hold_bridge,
    hold_burn,
    hold_composition,
    hold_efficiency,
    hold_focus,
    hold_identities,
    hold_units,
)

import tenfold as tf


@pytest.fixture
def small(request, prices):
    book = tf.price_book(prices)
    return Case(stores.log_of(drawn(request.param), book.thresholds), book, oracle.load_book(prices))


def seeds(quick, full):
    return pytest.mark.parametrize("small", few(quick, range(full)), indirect=True)


full = pytest.mark.full

# --- small logs -----------------------------------------------------------------------------------------------------


@seeds(1, 40)
def test_composition_and_allocation_of_small_logs(small):
    hold_composition(small)
    hold_allocation(small)


@seeds(1, 40)
def test_bridge_of_small_logs(small):
    hold_bridge(small)


@seeds(1, 40)
def test_unit_costs_of_small_logs(small):
    hold_units(small)


@seeds(1, 40)
def test_efficiency_of_small_logs(small):
    hold_efficiency(small)


@seeds(0, 15)
def test_focus_rows_of_small_logs(small, tmp_path):
    hold_focus(small, tmp_path / "focus.csv")


@seeds(0, 15)
def test_budgets_of_small_logs(small, tmp_path):
    file = tmp_path / "budgets.csv"
    file.write_text("owner,month,usd\nsearch,2026-07,0.5\nsearch,2026-08,0.7\nops,2026-08,1\nops,2026-09,0.333333\n")
    for through in (date(2026, 8, 11), date(2026, 9, 30)):
        hold_burn(small, file, through)


@seeds(0, 8)
def test_totals_of_small_logs_are_equal_everywhere(small):
    hold_identities(small)


@seeds(0, 8)
def test_impact_of_anomalies_of_small_logs(small):
    hold_anomalies(small)


def test_bridge_of_calls_that_only_moved_between_segments(prices):
    """Two web searches before and two after, in another segment: the whole's bar is 0, the segments' are not."""
    one = {"provider": "openai", "model": "a", "input_tokens": 1000, "cache_read_tokens": 0, "output_tokens": 100}
    rows = [
        {**one, "request_id": "x", "ts": APRIL, "web_searches": 2},
        {**one, "request_id": "y", "ts": JULY},
        {**one, "request_id": "z", "ts": JULY, "service_tier": "batch", "web_searches": 2},
    ]
    book = tf.price_book(prices)
    hold_bridge(Case(stores.log_of(rows, book.thresholds), book, oracle.load_book(prices)))


# --- the demo -------------------------------------------------------------------------------------------------------


@full
def test_demo_composition_allocation_and_totals(demo):
    hold_composition(demo)
    hold_allocation(demo)
    hold_identities(demo)


@full
def test_demo_bridge(demo):
    hold_bridge(demo)


@full
def test_demo_unit_costs(demo):
    hold_units(demo)


@full
def test_demo_efficiency(demo):
    hold_efficiency(demo)


@full
@pytest.mark.parametrize("through", [date(2026, 7, 9), date(2026, 8, 31), date(2026, 9, 30)])
def test_demo_budgets(demo, through):
    hold_burn(demo, DEMO / "budgets.csv", through)


@full
def test_demo_focus(demo, tmp_path):
    hold_focus(demo, tmp_path / "focus.csv")


@full
def test_demo_anomalies(demo):
    assert hold_anomalies(demo)["new"] == 6


@full
def test_demo_reconciliation(demo):
    billed = books.openai_costs(demo.prices, DEMO / "openai_costs.json.gz")
    billed |= books.anthropic_costs(demo.prices, DEMO / "anthropic_costs.json.gz")
    logged = {cell: cost for cell, cost in books.logged(demo.prices, demo.rows).items() if cell[1] != "google"}
    document = tf.reconcile(demo.ledger).as_dict()
    total = document["total"]
    assert pusd(total["logged_usd"]) == sum(logged.values())
    assert pusd(total["invoiced_usd"]) == sum(billed.values())
    drift = sum(billed.values()) - sum(logged.values())
    assert pusd(total["drift_usd"]) == drift
    assert near(total["drift_ratio"], Fraction(drift, sum(billed.values())))
    assert sum(pusd(one["usd"]) for one in document["causes"]) + pusd(document["unexplained_usd"]) == drift
    assert near(document["coverage"]["compared_ratio"], Fraction(sum(logged.values()), demo.spend))
    cells = {}
    for cell in document["by_meter"]:
        place = date.fromisoformat(cell["day"]), cell["provider"], cell["model"], cell["meter"]
        cells[place] = pusd(cell["logged_usd"]), pusd(cell["invoiced_usd"])
    # the report names the fine-tuned model by its provider's id
    names = {"ft:gpt-4o-mini-2024-07-18:larkspur::7": "larkspur-ft-7"}
    mine = defaultdict(lambda: [0, 0])
    for side, amounts in enumerate((logged, billed)):
        for (day, provider, model, meter), cost in amounts.items():
            mine[day, provider, names.get(model, model), meter][side] += cost
    mine = {place: tuple(pair) for place, pair in mine.items() if any(pair)}
    assert {place: pair for place, pair in cells.items() if any(pair)} == mine
