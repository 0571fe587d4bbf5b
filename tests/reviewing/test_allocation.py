"""The section on allocation: hand-worked lines that sum to the bill, the change, and nothing hidden."""

from datetime import datetime
from fractions import Fraction
from pathlib import Path

import pytest
from log_files import chat, write
from small_logs import ledger, row

import tenfold as tf
from tenfold.analysis.tagged import by_tag
from tenfold.config import Currency, Settings
from tenfold.reviewing.document import Lines, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections import allocation

REQUEST = 3_000_000_000  # pUSD of row(): 1,000 input at 2 and 100 output at 10 USD a million
EUR = Settings(currency=Currency("EUR", "0.92", "ECB, 2026-10-01"))
MAY, JULY, AUGUST = datetime(2026, 5, 1, 12), datetime(2026, 7, 1, 12), datetime(2026, 8, 1, 12)
EVIL = "<script>\u202e=1+1"
PLATFORM = '[[owner]]\nteam = "platform"\nclient = "gateway*"\nshared = true\n'


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def times(count, **columns):
    return [row(**{"feature": None, **columns}) for _ in range(count)]


# July: platform 6, a 1, b 2, nobody 3. August: platform 1, a 4. Quarter before: a 2, gone 5, nobody 1.
ROWS = [
    *times(2, team="a", ts=MAY, feature="x"),
    *times(5, team="gone", ts=MAY),
    *times(1, ts=MAY),
    *times(6, team="platform", ts=JULY),
    *times(1, team="a", ts=JULY, feature="x"),
    *times(2, team="b", ts=JULY, feature=EVIL),
    *times(3, ts=JULY),
    *times(1, team="platform", ts=AUGUST),
    *times(4, team="a", ts=AUGUST),
    *times(2, team="ghosts", ts=AUGUST, feature="haunt", model="no-such-model"),
]


def made(rows, settings=None, text="2026Q3"):
    facts = Facts(ledger(rows), None, quarter(text), settings or Settings())
    return facts, allocation.section(facts)


def cells(found, dimension):
    """Line to its cells, money in requests' cost."""
    grids = {block.grid.name: block.grid for block in found.blocks if isinstance(block, Table)}
    grid = grids[f"table-allocation-{dimension}"]
    kinds = [column.kind for column in grid.columns[1:]]
    return {
        line[0]: tuple(
            Fraction(cell, REQUEST) if kind == "pusd" and isinstance(cell, int) else cell
            for kind, cell in zip(kinds, line[1:], strict=True)
        )
        for line in grid.rows
    }, [column.label for column in grid.columns]


def said(found):
    return [line for block in found.blocks if isinstance(block, Lines) for line in block.items]


def test_shared_costs_are_allocated_and_what_is_left_is_a_line():
    Path("tenfold.toml").write_text(PLATFORM)
    facts, found = made(ROWS)
    lines, labels = cells(found, "team")
    assert labels == [
        "team", "direct", "shared out", "allocated", "total", "share", "2026Q2", "change", "change, relative",
    ]  # fmt: skip
    # July's 6 by 1:2, August's 1 to a alone; the quarter before has no platform
    assert lines == {
        "a": (5, 0, 3, 8, Fraction(8, 17), 2, 6, Fraction(3)),
        "b": (2, 0, 4, 6, Fraction(6, 17), 0, 6, "new"),
        "ghosts": (None, 0, 0, "not priced", "–", 0, None, None),
        "gone": (0, 0, 0, 0, 0, 5, -5, Fraction(-1)),
        "platform": (7, 7, 0, 0, 0, 0, 0, None),
        "unallocated": (3, 0, 0, 3, Fraction(3, 17), 1, 2, Fraction(2)),
        "total": (17, 7, 7, 17, 1, 8, 9, Fraction(9, 8)),
    }
    assert list(lines)[-2:] == ["unallocated", "total"]
    assert lines["total"][3] * REQUEST == facts.spend_pusd
    assert said(found)[:3] == [
        "Allocation coverage: of $0.05 that requests cost, 82.4 % names a team, 17.6 % a feature.",
        f"Unallocated: $0.01 of it has no team; {allocation._HINT}.",
        "Largest changes against 2026Q2: a +$0.02, b +$0.02, gone -$0.02.",
    ]
    assert "in proportion to their cost, month by month (UTC)" in said(found)[3]
    features, labels = cells(found, "feature")
    assert labels == ["feature", "cost", "share", "2026Q2", "change", "change, relative"]
    assert features == {
        EVIL: (2, Fraction(2, 17), 0, 2, "new"),
        "x": (1, Fraction(1, 17), 2, -1, Fraction(-1, 2)),
        "haunt": ("not priced", "–", 0, None, None),
        "(none)": (14, Fraction(14, 17), 6, 8, Fraction(4, 3)),
        "total": (17, 1, 8, 9, Fraction(9, 8)),
    }


def test_nothing_unallocated_is_a_line_of_zero_and_another_currency_stands_beside():
    _, found = made([*times(3, team="a", ts=JULY), *times(1, team="b", ts=JULY)], EUR)
    lines, labels = cells(found, "team")
    assert labels == ["team", "cost", "share", "in EUR"]
    # 0.012 USD at 0.92
    assert lines == {
        "a": (3, Fraction(3, 4), Fraction("0.00828")),
        "b": (1, Fraction(1, 4), Fraction("0.00276")),
        "unallocated": (0, 0, 0),
        "total": (4, 1, Fraction("0.01104")),
    }
    assert said(found)[1:3] == [
        "Unallocated: $0.00 of it has no team.",
        "The log has no request in 2026Q2: there is no change to show.",
    ]
    assert said(found)[-1] == "The spend of $0.01 is 0.01 EUR (ECB, 2026-10-01)."


def test_customers_come_from_a_tag():
    rows = [
        *times(2, ts=JULY, tags={"tenant": "acme"}),
        *times(1, ts=JULY, tags={"tenant": EVIL}),
        *times(1, ts=JULY, tags={"other": "x"}),
        *times(1, ts=JULY),
        *times(3, ts=JULY, tags={"tenant": "acme"}, gateway_cache_hit=True),
        *times(1, ts=MAY, tags={"tenant": "acme"}),
    ]
    facts, found = made(rows)
    lines, _ = cells(found, "customer")
    assert lines == {
        "acme": (2, Fraction(2, 5), 1, 1, Fraction(1)),
        EVIL: (1, Fraction(1, 5), 0, 1, "new"),
        "(none)": (2, Fraction(2, 5), 0, 2, "new"),
        "total": (5, 1, 1, 4, Fraction(4)),
    }
    assert said(found)[0].endswith('0.0 % names a team, 60.0 % a customer (tag "tenant").')
    frame = by_tag(facts.ledger, "tenant")
    assert {value: requests for value, requests, _, _ in frame.rows()} == {"acme": 2, EVIL: 1, None: 2}
    assert int(frame["cost_pusd"].sum()) == facts.ledger.total_pusd
    assert {note.key for note in found.made} == {"made-allocation", "made-customers"}


@pytest.mark.full
def test_many_owners_are_summed_beyond_the_largest():
    rows = [one for n in range(1, 21) for one in times(n, team=f"t{n:02}", ts=JULY)]
    _, found = made(
        [*rows, *times(4, ts=JULY), *times(9, team="t01", ts=MAY), *times(1, team="z", ts=JULY, model="none")]
    )
    lines, _ = cells(found, "team")
    assert list(lines)[:15] == [f"t{n:02}" for n in range(20, 5, -1)]
    assert list(lines)[15:] == ["6 others, 1 not priced", "unallocated", "total"]
    assert lines["6 others, 1 not priced"] == (15, Fraction(15, 214), 9, 6, Fraction(2, 3))
    assert lines["total"][0] == 214 == sum(line[0] for name, line in lines.items() if name != "total")


@pytest.mark.full
def test_weights_that_do_not_fit_the_quarter_before_leave_its_column_out():
    Path("tenfold.toml").write_text(PLATFORM + '[allocation]\nmethod = "fixed"\nweights = { b = 1 }\n')
    _, found = made(ROWS)
    lines, labels = cells(found, "team")
    assert labels[-2:] == ["total", "share"]
    assert lines["b"][:4] == (2, 0, 7, 9)
    assert "2026Q2 cannot be allocated by this method, so no change by team is shown." in said(found)


@pytest.mark.full
def test_owner_rules_that_requests_do_not_bear_yet_are_told(tmp_path):
    tf.load(write(tmp_path / "a.jsonl", [chat(1)]), db="u.duckdb")
    (tmp_path / "tenfold.toml").write_text('[[owner]]\nteam = "a"\norg = "o"\n')
    priced = tf.attribute(tf.open_log("u.duckdb"), tf.price_book())
    with_team = Facts(priced, None, quarter("2026Q4"), Settings())
    skipped = allocation.section(with_team)
    assert isinstance(skipped, Skipped)
    assert "[[owner]] rules" in skipped.reason
    tf.load(write(tmp_path / "b.jsonl", [chat(2)]), db="u.duckdb", set={"team": "a"})
    found = allocation.section(Facts(priced, None, quarter("2026Q4"), Settings()))
    assert isinstance(found, Section)
    notes = [block.text for block in found.blocks if isinstance(block, Prose)]
    assert notes
    assert "Run: tenfold owners" in notes[0]


def test_skipped_where_nothing_has_a_price():
    _, found = made(times(1, team="a", ts=JULY, model="no-such-model"))
    assert isinstance(found, Skipped)
    assert "price" in found.reason
