"""The figures on the demo's page against the second implementation, rounded as the page rounds."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from oracle_review import basics, books, bridging, efficiency, units
from oracle_review.page import says
from review_cases import COLUMNS, DEMO, USD

import tenfold as tf

full = pytest.mark.full


def tile(page, name):
    found = page.text["summary"].partition(name)[2]
    assert found, name
    return "\n".join(found.strip().splitlines()[:2])


@full
def test_demo_page_summary(demo):
    now, then = demo.spend, basics.spend(demo.old)
    assert says(tile(demo.page, "spend, priced"), now, places=12)
    shown = tile(demo.page, "against the quarter before")
    assert says(shown, Fraction(now - then, then))
    assert f"+${Decimal(now - then) / USD:,.2f}, from ${Decimal(then) / USD:,.2f}" in shown
    granted = books.burn(books.budgets(DEMO / "budgets.csv"), "*", date(2026, 7, 1), date(2026, 9, 30))
    assert says(tile(demo.page, "against budget"), Fraction(now) / granted)
    cost, good = units.outcome(demo.rows, demo.all)
    assert says(tile(demo.page, "per successful request"), Fraction(cost, good), places=12)
    priced = sum(row.is_priced for row in demo.rows)
    assert says(tile(demo.page, "\npriced"), Fraction(priced, sum(row.is_billed for row in demo.rows)))


@full
def test_demo_page_bridge(demo):
    table = demo.page.table("bridge", "Spend bridge")
    mine = bridging.pvm(demo.prices, demo.old, demo.rows, tf.bridge(demo.before, demo.ledger).price_at)
    mine |= {"spend before": basics.spend(demo.old), "spend after": demo.spend, "web search": mine["web_search"]}
    for name, row in table.items():
        assert says(row["USD"], mine[name], places=12, slack=1), (name, row)
        if row["of spend before"] != "\N{EN DASH}":
            assert says(row["of spend before"], Fraction(mine[name]) / mine["spend before"]), (name, row)
    change = sum(Decimal(row["USD"].replace("$", "").replace(",", "")) for n, row in table.items() if "spend" not in n)
    assert change == round(Decimal(demo.spend) / USD, 2) - round(Decimal(mine["spend before"]) / USD, 2)


@full
@pytest.mark.parametrize("name", ["team", "feature"])
def test_demo_page_allocation(demo, name):
    table = demo.page.table("allocation", f"Cost by {name}")
    now, then = units.shares(demo.rows, name), units.shares(demo.old, name)
    shown = set(table) - {"total", "unallocated", "(none)"} - {owner for owner in table if "others" in owner}
    for owner in shown:
        cost, share = now[owner]
        before = then.get(owner, (0, 0))[0]
        # columns with a total foot as shown
        assert says(table[owner]["cost"], cost, places=12, slack=1), owner
        assert says(table[owner]["share"], share, slack=1), owner
        assert says(table[owner]["2026Q2"], before, places=12, slack=1), owner
        assert says(table[owner]["change"], cost - before, places=12, slack=1), owner
        if before:
            assert says(table[owner]["change, relative"], Fraction(cost - before, before)), owner


@full
def test_demo_page_units(demo):
    table = demo.page.table("unit-economics", "Cost per unit")
    for rows, heading in ((demo.rows, "USD per unit"), (demo.old, "quarter before")):
        mine = {
            "successful request (stand-in for an outcome)": units.outcome(rows, demo.all),
            "request": (basics.spend(rows), sum(row.is_priced for row in rows)),
            "session": units.distinct(rows, "session_id"),
            "active user": units.distinct(rows, "user_id"),
        }
        assert set(table) == set(mine)
        for unit, (cost, count) in mine.items():
            assert says(table[unit][heading], Fraction(cost, count), places=12), (unit, heading)
            if rows is demo.rows:
                assert says(table[unit]["units"], count)
                assert says(table[unit]["share of spend in it"], Fraction(cost, demo.spend))
    prices = demo.page.table("unit-economics", "Price of a million tokens")
    for rows, heading in ((demo.rows, "USD per million tokens"), (demo.old, "quarter before")):
        kinds = {"uncached": "uncached in", "read": "cache read", "write": "cache write"}
        for kind, price in basics.per_million(rows).items():
            assert says(prices[kinds.get(kind, kind)][heading], price, places=12), (kind, heading)


@full
def test_demo_page_composition(demo):
    for name in COLUMNS:
        table = demo.page.table("composition", f"Cost by {name.replace('_', ' ')}")
        mine = basics.by(demo.rows, basics.column(name))
        assert set(table) == {*mine, "total"}
        for value, sums in mine.items():
            row = table[value]
            assert says(row["requests"], sums.requests), (name, value)
            assert says(row["not priced"], sums.unpriced), (name, value)
            if sums.pusd:
                assert says(row["cost (USD)"], sums.pusd, places=12, slack=1), (name, value)
                assert says(row["share of cost"], Fraction(sums.pusd, demo.spend), slack=1), (name, value)
                for kind, heading in {"output": "output", "read": "cache read", "write": "cache write"}.items():
                    cost = sum(c for m, (_, c) in sums.meters.items() if basics.KINDS.get(m) == kind)
                    assert says(row[heading], Fraction(cost, sums.pusd)), (name, value, kind)


@full
def test_demo_page_efficiency(demo):
    table = demo.page.table("efficiency", "Efficiency: shares")
    for rows, heading in ((demo.rows, "this quarter"), (demo.old, "quarter before")):
        tokens, requests = efficiency.hit_ratios(rows)
        waste, spent = efficiency.waste(rows, demo.all), basics.spend(rows)
        mine = {
            "Input read from a prompt cache": tokens,
            "Requests that read from a prompt cache": requests,
            "Flex, share of spend": basics.tier_share(rows, "flex")[0],
            "Flex, share of tokens": basics.tier_share(rows, "flex")[1],
            "Reasoning tokens, share of spend": efficiency.reasoning_share(rows),
            "Waste, share of spend": Fraction(sum(cost for _, cost in waste.values()), spent),
        }
        for name, value in mine.items():
            assert says(table[name][heading], value), (name, heading)
    shown = demo.page.table("efficiency", "The same input with and without caching")
    for rows, name in ((demo.rows, "this quarter"), (demo.old, "quarter before")):
        without, billed, premium, storage = efficiency.cache_return(rows)
        assert says(shown[name]["input without caching (USD)"], without, places=12)
        assert says(shown[name]["as billed (USD)"], billed, places=12)
        assert says(shown[name]["saved (USD)"], without - billed, places=12)
        assert says(shown[name]["writes' premium (USD)"], premium, places=12)
        assert says(shown[name]["saved per $ of both"], Fraction(without - billed, premium + storage))
    causes = demo.page.table("efficiency", "Waste by first cause")
    words = {"error": "Failed and billed", "retry": "Asked again", "truncated": "Cut off at the limit"}
    for cause, (count, cost) in efficiency.waste(demo.rows, demo.all).items():
        assert says(causes[words[cause]]["requests"], count)
        if cost:
            assert says(causes[words[cause]]["cost (USD)"], cost, places=12)
    turns = demo.page.table("efficiency", "Input by turn of the session")
    for at, (count, mean, ratio) in enumerate(efficiency.by_turn(demo.rows)[:10]):
        row = turns[str(at + 1)]
        assert says(row["requests"], count)
        assert says(row["input tokens per request"], mean)
        assert says(row["over their sessions' first turn"], ratio)


@full
def test_demo_page_budgets(demo):
    table = demo.page.table("forecast", "Budgets against spend")
    granted = books.budgets(DEMO / "budgets.csv")
    first, last = date(2026, 7, 1), date(2026, 9, 30)
    for name, row in table.items():
        is_whole = name.startswith("the whole")
        rows = demo.rows if is_whole else [one for one in demo.rows if one["team"] == name]
        budget = books.burn(granted, "*" if is_whole else name, first, last)
        assert says(row["budget (USD)"], budget, places=12), name
        assert says(row["spend (USD)"], basics.spend(rows), places=12), name
        assert says(row["burn"], basics.spend(rows) / budget), name
        for percent in (50, 80, 100):
            day = books.reached(rows, first, last, budget * Fraction(percent, 100))
            assert row[f"{percent} % reached on"] == (day.isoformat() if day else "\N{EN DASH}"), (name, percent)


@full
def test_demo_page_says_one_number_for_one_thing(demo):
    """A bar's largest segment is the same figure in the text as in the table of segments."""
    text = demo.page.text["bridge"]
    (table,) = [t for (s, title), t in demo.page.tables.items() if s == "bridge" and title.startswith("Segments")]
    head, *rows = table
    for bar in ("volume", "mix", "discontinued"):
        line = next(one for one in text.splitlines() if one.startswith(bar.capitalize()) and "most of it" in one)
        segment, _, amount = line.partition("most of it ")[2].partition(" (")
        shown = next(row for row in rows if " ".join(row[:2]) == segment)[head.index(bar)]
        assert amount.split(")")[0].lstrip("+") == shown, (bar, line, shown)
