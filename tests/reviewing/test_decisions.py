"""Decisions: each follows from a figure that passes its threshold, and none is asked for where nothing does."""

from datetime import date, timedelta

import pytest
from bills import ledger_of

from tenfold.config import Settings
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections.decisions import decisions

FIRST, LAST = date(2026, 4, 1), date(2026, 9, 30)


def wanted(tmp_path, rows, **settings):
    found = Facts(ledger_of(rows, tmp_path), None, quarter("2026Q3"), Settings(**settings))
    return {one.what: one for one in decisions(found)}


def days(first=FIRST, last=LAST, **changes):
    made = {"input_tokens": 500_000, "output_tokens": 0, "team": "a", **changes}
    return [
        {**made, "ts": f"{first + timedelta(days=n)}T{hour}:00:00"}
        for n in range((last - first).days + 1)
        for hour in ("00", "23")
    ]


def test_a_quiet_quarter_wants_invoices_only(tmp_path):
    assert list(wanted(tmp_path, days())) == ["load the providers' cost reports and reconcile"]


def test_growth_a_budget_and_what_nobody_owns(tmp_path):
    # from July on as much again by a team without a name; 92 + 92 USD of 91 before
    rows = [*days(), *days(date(2026, 7, 1), team=None)]
    budgets = tmp_path / "budgets.csv"
    budgets.write_text("owner,month,usd\na,2026-07,20\na,2026-08,31\na,2026-09,30\n")
    found = wanted(tmp_path, rows, budgets=str(budgets))
    assert found["say whether it stays: volume, most of it m1 standard"].why.startswith("+$93.00, 102.2 %")
    assert found["name owners for unallocated spend"].why == "$92.00 of the spend (50.0 %) has no team"
    # 92 of 81, more than a tenth over
    assert found["raise the budget of a or cut its traffic"].why == "$11.00 over $81.00 (114 %)"
    assert any(what.startswith("give a budget to ") for what in found)


@pytest.mark.full
def test_a_price_that_is_missing_is_asked_for(tmp_path):
    rows = [*days(), *days(date(2026, 7, 1), model="ghost")]
    found = wanted(tmp_path, rows)
    assert found["give prices to what has none: ghost"].why == "50.0 % of the money, at this log's average price"
