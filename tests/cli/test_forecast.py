"""`tenfold forecast` and `tenfold anomalies`: one document each, a screen that fits, reasons where there is nothing."""

from datetime import date, timedelta

import pytest

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def made(tmp_path_factory, main_in):
    folder = tmp_path_factory.mktemp("forecast")
    lines = ["ts,provider,model,team,input_tokens,output_tokens"]
    for n in range(60):
        day = date(2026, 7, 1) + timedelta(days=n)
        for hour in range(24):
            for team in ("search", "agents"):
                tokens = 200_000 * (40 if (n, team) == (40, "search") else 1)
                lines.append(f"{day}T{hour:02d}:30:00Z,openai,gpt-4.1-mini,{team},{tokens},1000")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    (folder / "budgets.csv").write_text('owner,month,usd\nsearch,2026-07,40\n*,2026-07,"1,000"\n')
    assert main_in(folder, "load", folder / "log.csv", "--db", folder / "log.duckdb") == 0
    return folder


def test_forecast_as_a_document_and_on_a_screen(made, as_json, run):
    given = ("forecast", "--db", made / "log.duckdb", "--budgets", made / "budgets.csv")
    found = as_json(*given)
    assert [one["period"] for one in found["periods"]][-2:] == ["2026Q3", "2026Q4"]
    assert {row["team"] for row in found["owners"]} == {"search", "agents"}
    quarter = found["periods"][-2]["total_usd"]
    assert float(quarter["low"]) < float(quarter["mid"]) < float(quarter["high"])
    assert found["burn"]["owners"][0]["owner"] == "search"
    assert found["accuracy"][0]["days_ahead"] == 7
    code, out, _ = run(*given)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 100
    assert "2026Q4" in out
    assert "growth doubled" in out


def test_anomalies_as_a_document_and_on_a_screen(made, as_json, run):
    found = as_json("anomalies", "--db", made / "log.duckdb")
    (one,) = found["anomalies"]
    assert (one["team"], one["kind"], one["first_day"]) == ("search", "spike", "2026-08-10")
    # 24 x 39 x 200,000 tokens at 0.40 USD a million
    assert float(one["impact_usd"]) == pytest.approx(24 * 39 * 0.08, rel=1e-3)
    code, out, _ = run("anomalies", "--db", made / "log.duckdb", "--from", "2026-08-01")
    assert code == 0
    assert "spike" in out
    assert as_json("anomalies", "--db", made / "log.duckdb", "--from", "2026-08-20")["anomalies"] == []


def test_what_cannot_be_answered_says_why(made, run):
    code, _, err = run("forecast", "--db", made / "log.duckdb", "--from", "2026-08-20")
    assert code == 3
    assert "28 whole days" in err
    code, _, err = run("anomalies", "--db", made / "log.duckdb", "--to", "2026-07-10")
    assert code == 3
    assert "at least 14 days" in err
    for words, said in (
        (("forecast", "--until", "soon"), "--until"),
        (("forecast", "--budgets", "none.csv"), "no such file"),
        (("anomalies", "--k", "0"), "--k"),
        (("anomalies", "--by", "taem"), "team"),
    ):
        code, _, err = run(*words[:1], "--db", made / "log.duckdb", *words[1:])
        assert code == 1
        assert said in err
