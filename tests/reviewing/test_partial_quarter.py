"""A quarter that is not over is compared with as many days of the one before, and says so."""

from datetime import date, timedelta
from fractions import Fraction

import pytest
from bills import ledger_of

from tenfold.config import Settings
from tenfold.reviewing.document import Tiles
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections import summary


def facts(tmp_path, first, last):
    # a million in for 1 USD, at noon of every day; output would fall in price in August
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    rows = [{"ts": f"{day}T{hour}:00:00", "input_tokens": 500_000, "output_tokens": 0} for day in days for hour in
            ("00", "23")]  # fmt: skip
    return Facts(ledger_of(rows, tmp_path), None, quarter("2026Q3"), Settings())


def tiles(found):
    return {tile.label: tile for block in summary.section(found).blocks if isinstance(block, Tiles)
            for tile in block.items}  # fmt: skip


def test_half_a_quarter_at_a_constant_rate_did_not_move(tmp_path):
    found = facts(tmp_path, date(2026, 4, 1), date(2026, 8, 8))
    assert found.pace == Fraction(39, 91)
    assert found.bridge.change_pusd == 0
    made = tiles(found)
    assert made["against the quarter before"].value == "0.0 %"
    assert made["against the quarter before"].note == "$0.00, from $39.00 in 2026Q2, scaled to as many days"
    assert made["against forecast"].value == "0.0 %"
    assert "the log covers 39 of the 92 days, to 2026-08-08" in str(summary.section(found).blocks)


@pytest.mark.full
def test_two_whole_quarters_are_compared_as_they_are(tmp_path):
    found = facts(tmp_path, date(2026, 4, 1), date(2026, 9, 30))
    assert found.pace == 1
    assert tiles(found)["against the quarter before"].value == "+1.1 %"
    assert found.pace_note == ""


@pytest.mark.full
def test_a_log_that_begins_within_the_quarter_before(tmp_path):
    found = facts(tmp_path, date(2026, 6, 1), date(2026, 9, 30))
    assert found.pace == Fraction(92, 30)
    assert found.bridge.change_pusd == 0
