"""`tenfold kpis`: unit costs and efficiency in one document and on one screen, beside the period before."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tenfold.cli.kpis import window_before
from tenfold.ledger import Window

HEAD = "request_id,ts,provider,model,team,input_tokens,cache_read_tokens,output_tokens,outcome_ok,attempt\n"
# gpt-4.1: 2 / 0.5 / 8 USD per million
LINES = [
    "a,2026-06-10T12:00:00Z,openai,gpt-4.1,search,1000,0,100,true,0",
    "b,2026-07-10T12:00:00Z,openai,gpt-4.1,search,1000,0,100,true,0",
    "c,2026-07-11T12:00:00Z,openai,gpt-4.1,agents,1000,1000,100,false,1",
]


@pytest.fixture(scope="module")
def made(main_in, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kpis")
    (folder / "log.csv").write_text(HEAD + "\n".join(LINES) + "\n")
    assert main_in(folder, "load", "log.csv", "--db", "u.duckdb") == 0
    return folder / "u.duckdb"


def test_both_beside_the_period_before(as_json, made):
    found = as_json("kpis", "--db", made, "--from", "2026-07-01", "--to", "2026-08-01", "--by", "team")
    outcome = found["unit_economics"]["units"]["outcome"]
    # 2.8 and 1.3 thousandths over one good outcome, against 2.8
    assert (outcome["usd_per_unit"], outcome["units"], outcome["basis"]) == ("0.0041", 1, "outcome_ok")
    assert found["before"]["from"] == "2026-06-01T00:00:00+00:00"
    assert found["before"]["unit_economics"]["units"]["outcome"]["usd_per_unit"] == "0.0028"
    assert found["efficiency"]["cache_hit_ratio"] == 0.5
    assert found["efficiency"]["cache"]["saving_usd"] == "0.0015"
    assert [one["value"] for one in found["efficiency"]["groups"]["team"]] == ["search", "agents"]
    assert found["efficiency"]["not_measurable"]["duplicate"] == "prompt_hash and params_hash"


def test_on_the_screen(run, made):
    code, out, err = run("kpis", "--db", made, "--quarter", "2026Q3", "--by", "team")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].startswith("$0.00410 per successful outcome")
    assert any(line.startswith("per outcome") and "+46.4 %" in line for line in lines)
    assert any(line.startswith("agents") for line in lines)


def test_what_is_refused(run, made):
    assert run("kpis", "--db", made, "--from", "2027-01-01")[0] == 3
    code, _, err = run("kpis", "--db", made, "--quarter", "2026Q3", "--from", "2026-07-01")
    assert (code, "leave out --from" in err) == (1, True)
    code, _, err = run("kpis", "--db", made, "--by", "taem")
    assert (code, '"team"' in err) == (1, True)


@pytest.mark.parametrize(
    ("since", "until", "begins"),
    [
        ((2026, 7, 1), (2026, 10, 1), (2026, 4, 1)),
        ((2026, 1, 1), (2026, 3, 1), (2025, 11, 1)),
        ((2026, 3, 25), (2026, 4, 1), (2026, 3, 18)),  # a clock is put forward within it
    ],
)
def test_the_window_before(since, until, begins):
    zone = ZoneInfo("Europe/Berlin")
    window = Window(datetime(*since, tzinfo=zone), datetime(*until, tzinfo=zone), "Europe/Berlin")
    found = window_before(window)
    assert found.since == datetime(*begins, tzinfo=zone)
    assert found.until == window.since
    assert window_before(Window(window.since, None)) is None
    assert (
        window_before(Window(datetime(2026, 7, 1, 6, tzinfo=UTC), datetime(2026, 7, 1, 9, tzinfo=UTC))).since.hour == 3
    )
