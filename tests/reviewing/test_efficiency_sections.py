"""Sections on unit costs and efficiency: native values beside the quarter before, linked to how they were made."""

from datetime import datetime
from fractions import Fraction

import pytest
from small_logs import ledger, row

from tenfold.config import Settings
from tenfold.reviewing.document import Section, Skipped
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections import efficiency, unit_economics

EVIL = "<script>alert(1)</script>"
JUNE, JULY, AUGUST = datetime(2026, 6, 3), datetime(2026, 7, 3), datetime(2026, 8, 3)
ROWS = [
    row(ts=JUNE, outcome_ok=True, team="a", session_id="old"),
    row(ts=JULY, outcome_ok=True, team="a", session_id="s", attempt=0),
    row(ts=JULY, outcome_ok=False, team=EVIL, session_id="s", attempt=1, cache_read_tokens=500),
    row(ts=AUGUST, outcome_ok=True, team="a", finish_reason="length", attempt=0),
    row(ts=AUGUST, team="b", model="ghost"),
]


def facts_of(rows):
    return Facts(ledger(rows), None, quarter("2026Q3"), Settings())


@pytest.fixture(scope="module")
def facts():
    return facts_of(ROWS)


def grids(section):
    return {block.grid.name: block.grid for block in section.blocks if block.kind == "table"}


def test_unit_costs_stand_beside_the_quarter_before(facts):
    found = unit_economics.section(facts)
    assert isinstance(found, Section)
    table = grids(found)["table-units"]
    label, now, before, change, units, share = table.rows[0]
    # 3 + 2.1 + 3 thousandths over two good ones, against one at 3
    assert (label, now, before, units, share) == ("successful outcome", 4_050_000_000, 3_000_000_000, 2, 1)
    assert change == Fraction(35, 100)
    assert [one[0] for one in grids(found)["table-units-monthly"].rows] == ["2026-07", "2026-08"]
    teams = {one[0]: one for one in grids(found)["table-units-team"].rows}
    assert teams["b"][1] == "not priced"
    assert EVIL in teams  # raw: renderers make it harmless
    assert "went from" in next(block for block in found.blocks if block.kind == "picture").text


def test_efficiency_stands_beside_the_quarter_before(facts):
    found = efficiency.section(facts)
    tables = grids(found)
    hit = tables["table-kpis"].rows[0]
    assert hit[:3] == ("Input read from a prompt cache", Fraction(500, 4000), 0)
    # points are no percent
    change = [column.name for column in tables["table-kpis"].columns].index("change")
    assert tables["table-kpis"].texts()[0][change] == "12.5"
    assert [one[0] for one in tables["table-cache-return"].rows] == [
        "2026-07",
        "2026-08",
        "this quarter",
        "quarter before",
    ]
    waste = {one[0]: one[2:5] for one in tables["table-waste"].rows}
    assert waste["Asked again"] == (1, 2_100_000_000, Fraction(21, 81))
    assert waste["total, ceilings left out"] == (2, 5_100_000_000, Fraction(51, 81))
    assert len(tables["table-growth"].rows) == 2


def test_every_number_is_linked_to_how_it_was_made(facts):
    for section in (unit_economics.section, efficiency.section):
        found = section(facts)
        known = {note.key for note in found.made}
        for block in found.blocks:
            assert getattr(block, "made", None) is None or block.made in known


def test_without_a_price():
    ghosts = facts_of([row(ts=JULY, model="ghost")])
    assert isinstance(unit_economics.section(ghosts), Skipped)
    assert isinstance(efficiency.section(ghosts), Skipped)


@pytest.mark.full
def test_without_a_quarter_before():
    alone = grids(unit_economics.section(facts_of([row(ts=JULY)])))["table-units"].rows
    assert alone == (("request", 3_000_000_000, None, None, 1, 1),)
