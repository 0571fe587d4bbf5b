"""Budgets without one for the whole: the summary's tile and the burn table hold all spend against their sum."""

import bills
import pytest

from tenfold.config import Settings
from tenfold.money import PUSD_PER_USD
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections import decisions, forecast, summary


def request(day, team, usd):
    return {
        "request_id": f"{day}{team}", "ts": f"{day}T12:00:00", "team": team,
        "input_tokens": usd * 1_000_000, "output_tokens": 0,
    }  # fmt: skip


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """A quarter of $2,500, of which one team's $1,245 has a budget of $1,848."""
    folder = tmp_path_factory.mktemp("budgets")
    spent = [
        request("2026-09-30", "search", 1245),
        request("2026-07-02", "agents", 1000),
        request("2026-08-03", "", 255),
    ]
    (folder / "budgets.csv").write_text("owner,month,usd\n" + "".join(f"search,2026-0{n},616\n" for n in (7, 8, 9)))
    return Facts(bills.ledger_of(spent, folder), None, quarter("2026Q3"), Settings(budgets=str(folder / "budgets.csv")))


def test_the_tile_says_over_where_the_company_is_over(facts):
    (tile,) = [tile for tile in summary._against(facts) if tile.label == "against budget"]
    assert (tile.value, tile.note.split(",")[0]) == ("135.3 %", "$652.00 over of $1")
    assert "the owners' budgets together; $1,255.00 of the spend has none" in tile.note


def test_the_burn_table_has_a_row_for_spend_without_a_budget_and_foots(facts):
    (table,) = [block.grid for block in forecast.section(facts).blocks if getattr(block, "grid", None)]
    rows = {row[0]: row for row in table.rows}
    whole, search, without = rows.values()
    assert whole[0] == "the whole, against the owners' budgets together"
    assert without[0] == "spend without a budget"
    assert whole[3] == search[3] + without[3] == 2500 * PUSD_PER_USD
    assert whole[6] == 652 * PUSD_PER_USD
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_spend_without_a_budget_asks_for_a_decision(facts):
    (found,) = [one for one in decisions.decisions(facts) if "give a budget to" in one.what]
    assert found.why.startswith("$1,255.00")
