"""``tenfold reconcile``: keys, exit codes and the screen."""

import json

import pytest

ROWS = "request_id,ts,provider,model,input_tokens,output_tokens\n" + "".join(
    f"r{day},2026-06-{day:02}T12:00:00Z,openai,gpt-4o-mini,0,1000000\n" for day in (1, 2, 3)
)
BILL = "date,model,meter,amount,currency\n" + "".join(
    f"2026-06-{day:02},GPT-4o mini,Output tokens,{amount},USD\n"
    for day, amount in ((1, "0.60"), (2, "0.60"), (4, "0.60"))
)


@pytest.fixture(scope="module")
def db(main_in, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reconcile")
    (folder / "rows.csv").write_text(ROWS)
    (folder / "bill.csv").write_text(BILL + "2026-06-04,GPT-4o mini,Output tokens,5,EUR\n")
    assert main_in(folder, "load", "rows.csv", "--db", "u.duckdb") == 0
    return folder / "u.duckdb"


def test_json(as_json, db):
    found = as_json("reconcile", "--db", db, "--invoice", db.parent / "bill.csv")
    assert (found["verdict"], found["unexplained_usd"]) == ("unreconciled", "0.00")
    assert {one["cause"]: one["usd"] for one in found["causes"]} == {"not_in_log": "0.60", "not_in_report": "-0.60"}
    assert found["total"]["drift_usd"] == "0.00"
    by_day = {one["day"]: one for one in found["by_meter"]}
    assert by_day["2026-06-03"]["explained"] == [{"cause": "not_in_report", "usd": "-0.60"}]
    assert (by_day["2026-06-01"]["drift_ratio"], by_day["2026-06-01"]["logged_tokens"]) == (0.0, 1_000_000)
    assert found["dropped"][0]["other_currencies"] == {"EUR": "5.000000000000"}
    assert found["coverage"]["compared_ratio"] == 1.0


@pytest.mark.full
def test_screen_window_and_limit(run, db):
    bill = db.parent / "bill.csv"
    code, out, _ = run("reconcile", "--db", db, "--invoice", bill, "--to", "2026-06-03")
    assert code == 0
    assert "reconciled: the drift is within" in out
    code, out, _ = run("reconcile", "--db", db, "--invoice", bill, "--from", "2026-06-02", "--max-drift", "0.9")
    assert code == 1
    assert "not_in_log" in out
    assert "1 row (in EUR, not in dollars)" in out


def test_refusals(run, db):
    code, _, err = run("reconcile", "--db", db)
    assert (code, "tenfold load" in err or "--invoice FILE" in err) == (3, True)
    code, _, err = run("reconcile", "--db", db, "--invoice", db.parent / "bill.csv", "--max-drift", "much")
    assert (code, "write a share such as 0.01" in err) == (1, True)


def test_refused_rows_are_named_and_a_limit_that_is_given_decides_the_exit(run, db, tmp_path):
    """Without --max-drift it reads and exits 0; with it, a drift above it exits 1 after printing what it found."""
    bad = tmp_path / "bad.csv"
    bad.write_text(BILL.replace("2026-06-02,GPT-4o mini,Output tokens,0.60", "2026-08-32,GPT-4o mini,Output tokens,1"))
    code, out, err = run("reconcile", "--db", db, "--invoice", bad)
    assert (code, err) == (0, "")
    assert f"1 row of {bad} was refused" in " ".join(out.split())
    assert "bad.csv:3: no date: '2026-08-32'" in " ".join(out.split())
    code, out, err = run("reconcile", "--db", db, "--invoice", bad, "--max-drift", "0.05", "--json")
    assert (code, json.loads(out)["verdict"]) == (1, "unreconciled")
    assert "above --max-drift 0.05" in err
    assert err.count("\n") == 1
    code, _, err = run("reconcile", "--db", db, "--invoice", bad, "--max-drift", "9", "--json")
    assert (code, err) == (0, "")
    bad.write_text("date,model,amount\n2026-08-32,GPT-4o mini,1\n")
    code, _, err = run("reconcile", "--db", db, "--invoice", bad)
    assert (code, "bad.csv:2: no date: '2026-08-32'" in err) == (3, True)


@pytest.mark.full
def test_the_next_step_after_loading_an_invoice_knows_whether_requests_are_there(run, db, tmp_path):
    new = tmp_path / "n.duckdb"
    _, out, _ = run("load", db.parent / "bill.csv", "--db", new)
    assert "next: load the requests too, then: tenfold reconcile --db" in " ".join(out.split())
    run("load", db.parent / "rows.csv", "--db", new)
    (tmp_path / "july.csv").write_text(BILL.replace("2026-06", "2026-07"))
    _, out, _ = run("load", tmp_path / "july.csv", "--db", new)
    assert "next: tenfold reconcile --db" in " ".join(out.split())


@pytest.mark.full
def test_files_that_say_nothing(run, db, tmp_path):
    code, _, err = run("reconcile", "--db", db, "--invoice", db.parent / "bill.csv", "--from", "2027-01-01")
    assert code == 3
    code, _, err = run("reconcile", "--db", db, "--invoice", db.parent / "rows.csv")
    assert (code, "holds requests" in err) == (1, True)
    bad = tmp_path / "bad.csv"
    bad.write_text("date,model,costs\n2026-06-01,a,1\n")
    code, _, err = run("reconcile", "--db", db, "--invoice", bad)
    assert code == 1
