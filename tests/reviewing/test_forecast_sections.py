"""The sections on forecast, budget and anomalies: what they say of a small bill, and when they are left out."""

from datetime import date, timedelta
from fractions import Fraction

import bills
import pytest

from tenfold import charts
from tenfold.config import Settings, Thresholds
from tenfold.money import PUSD_PER_USD, usd_text
from tenfold.reviewing.document import Lines, Picture, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections import anomalies, forecast

pytestmark = pytest.mark.full
HOSTILE = "<b>=1+1\u202e"


def request(day, team, usd, hour=12):
    return {
        "request_id": f"{day}{team}{hour}{usd}", "ts": f"{day}T{hour:02d}:00:00", "team": team,
        "input_tokens": round(usd * 1_000_000), "output_tokens": 0,
    }  # fmt: skip


def facts_of(requests, folder, settings=None):
    ledger = bills.ledger_of(requests, folder)
    return Facts(ledger, None, quarter("2026Q3"), settings or Settings())


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sections")
    days = [date(2026, 6, 1) + timedelta(days=n) for n in range(76)]
    made = [request(day, HOSTILE, 1, hour) for day in days for hour in range(6, 18)]
    # 120 more of the same size on 20 July: volume, and nothing else
    made += [request("2026-07-20", HOSTILE, 1 + n / 1_000_000, hour) for hour in range(6, 18) for n in range(1, 11)]
    (folder / "budgets.csv").write_text(
        f"owner,month,usd\n{HOSTILE},2026-07,310\n{HOSTILE},2026-08,310\nops,2026-09,30\n"
    )
    return facts_of(made, folder, Settings(budgets=str(folder / "budgets.csv")))


def blocks(section, kind):
    assert isinstance(section, Section)
    return [block for block in section.blocks if isinstance(block, kind)]


def cells(section, name):
    (found,) = [block.grid for block in blocks(section, Table) if block.grid.name == name]
    return [dict(zip((column.name for column in found.columns), row, strict=True)) for row in found.rows]


def test_forecast_and_budget(facts):
    made = forecast.section(facts)
    # the log ends on 15 August; the quarter's other 46 days are expected to cost 12 each
    (row,) = [row for row in cells(made, "forecast-periods") if row["period"] == "2026Q3"]
    assert row["mid"] == pytest.approx((46 * 12 + 46 * 12 + 120) * PUSD_PER_USD, rel=0.02)
    burnt = {row["owner"]: row for row in cells(made, "budget-burn")}
    # 31 + 15 days of 10 a day against 12 (and 120 more once)
    own = burnt[HOSTILE]
    assert (own["budget"], own["elapsed"]) == (620 * PUSD_PER_USD, 460 * PUSD_PER_USD)
    assert own["burn"] == Fraction(own["spend"], own["elapsed"])
    assert own["spend"] == pytest.approx(672 * PUSD_PER_USD, rel=1e-5)
    assert burnt["ops"]["spend"] == 0
    (picture,) = blocks(made, Picture)
    assert "2026-08" in picture.text
    assert {row["scenario"] for row in cells(made, "forecast-scenarios")} == {
        "as is",
        "growth stopped",
        "growth doubled",
    }
    assert cells(made, "forecast-accuracy")
    assert facts.burn.total.projected.mid > facts.burn.total.spend


def test_an_anomaly_has_its_bridge_in_one_line(facts):
    made = anomalies.section(facts)
    (row,) = cells(made, "anomalies")
    assert (row["team"], row["kind"], row["first"]) == (HOSTILE, "spike", date(2026, 7, 20))
    assert row["impact"] == pytest.approx(120 * PUSD_PER_USD, rel=1e-3)
    line = blocks(made, Lines)[0].items[0]
    assert "volume +$120.00" in line
    assert "price" not in line
    assert blocks(made, Picture)[0].text.startswith("Daily cost of")


def test_the_pictures_are_drawn_and_names_are_text(facts):
    for made in (forecast.section(facts), anomalies.section(facts)):
        (picture,) = blocks(made, Picture)
        drawn = charts.to_svg(picture.chart, picture.title, picture.text, name=picture.name)
        assert drawn.startswith("<svg")
        assert "NaN" not in drawn
        assert "<b>" not in drawn
    # two months have a range, three a budget
    months = charts.spec_of(blocks(forecast.section(facts), Picture)[0].chart)
    rows = [row for rows in months["datasets"].values() for row in rows]
    assert [(row["month"], row["low"] is not None, row["budget"] is not None) for row in rows][:3] == [
        ("2026-07", False, True), ("2026-08", True, True), ("2026-09", True, True),
    ]  # fmt: skip


def test_without_budgets_the_picture_has_no_layer_for_them(facts):
    bare = Facts(facts.whole, None, quarter("2026Q3"), Settings())
    (picture,) = blocks(forecast.section(bare), Picture)
    layers = charts.spec_of(picture.chart)["layer"]
    # spent, ranges, middles; a layer of nothing is an extent that Vega warns of
    assert [layer["encoding"]["y"]["field"] for layer in layers] == ["spent", "low", "mid"]
    (picture,) = blocks(forecast.section(facts), Picture)
    assert [layer["encoding"]["y"]["field"] for layer in charts.spec_of(picture.chart)["layer"]][-1] == "budget"


def test_what_the_plan_saves_is_a_scenario_or_says_why_not(facts):
    spend = facts.ledger.total_pusd
    saved = {"low": usd_text(spend // 10), "mid": usd_text(spend // 4), "high": usd_text(spend // 2)}
    plan = {"spend_usd": usd_text(spend), "plan": {"saving_usd": saved}}
    made = forecast.section(Facts(facts.whole, plan, quarter("2026Q3"), Settings()))
    rows = {row["scenario"]: row for row in cells(made, "forecast-scenarios")}
    assert rows["levers done"]["mid"] == pytest.approx(rows["as is"]["mid"] * 3 / 4, rel=1e-9)
    assert rows["levers done"]["low"] == pytest.approx(rows["as is"]["low"] / 2, rel=1e-9)
    assert rows["levers done"]["high"] == pytest.approx(rows["as is"]["high"] * 9 / 10, rel=1e-9)
    # a plan of another bill belongs to no day of this one
    plan["spend_usd"] = "1"
    made = forecast.section(Facts(facts.whole, plan, quarter("2026Q3"), Settings()))
    assert "levers done" not in {row["scenario"] for row in cells(made, "forecast-scenarios")}
    said = [item for block in blocks(made, Lines) for item in block.items]
    assert any(line.startswith("The plan's levers are in no scenario: made on $1.00 of spend, not on") for line in said)


def test_the_band_is_in_sight(facts):
    (picture,) = blocks(anomalies.section(facts), Picture)
    spec = charts.spec_of(picture.chart)
    top = spec["vconcat"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"][1]
    highs = [row["high"] for rows in spec["datasets"].values() for row in rows if row["high"] is not None]
    assert sum(high <= top for high in highs) >= 0.9 * len(highs)


def test_sections_without_data_say_what_is_missing(tmp_path):
    few = [request(date(2026, 7, 1) + timedelta(days=n), "a", 1) for n in range(10)]
    bare = facts_of(few, tmp_path)
    found = forecast.section(bare)
    assert isinstance(found, Skipped)
    assert "28 whole days" in found.reason
    assert "no budgets are set" in found.reason
    found = anomalies.section(bare)
    assert isinstance(found, Skipped)
    assert "at least 14 days" in found.reason
    calm = [request(date(2026, 7, 1) + timedelta(days=n), "a", 1, hour) for n in range(40) for hour in range(12)]
    found = anomalies.section(facts_of(calm, tmp_path, Settings(thresholds=Thresholds(anomaly_k=5.0))))
    assert "No day stands out" in blocks(found, Prose)[0].text


def test_the_quarter_is_held_against_what_was_expected_of_it(facts):
    # of June alone, twelve a day: the 120 of 20 July were not to be expected
    assert facts.expected.mid == pytest.approx(92 * 12 * PUSD_PER_USD, rel=1e-9)
    first = blocks(forecast.section(facts), Lines)[0].items[0]
    assert first.startswith("2026Q3 was expected to cost $1,104")
