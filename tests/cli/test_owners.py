"""`tenfold owners`, and what `tenfold cost` says about owners."""

import contextlib
import json
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from tenfold.logs import load
from tenfold.logs.remapping import remap
from tenfold.store.database import Store

ROW = {"provider": "openai", "model": "gpt-4.1", "input_tokens": 1000, "output_tokens": 100}
RULES = """
[[owner]]
team = "search"
api_key_id = "k1"
[[owner]]
team = "platform"
shared = true
api_key_id = "k2"
"""
COST = Decimal("0.0028")  # 1,000 at 2 and 100 at 8 USD a million


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A log loaded without rules, and with them."""
    folder = tmp_path_factory.mktemp("stores")
    rows = [
        {**ROW, "request_id": str(i), "ts": "2026-09-01T00:00:00Z", **({"api_key_id": key} if key else {})}
        for i, key in enumerate(["k1", "k1", "k2", None])
    ]
    (folder / "l.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with contextlib.chdir(folder):
        load("l.jsonl", db="plain.duckdb")
        shutil.copy("plain.duckdb", "mapped.duckdb")
        Path("tenfold.toml").write_text(RULES)
        remap(Store("mapped.duckdb"))
    return folder


@pytest.fixture
def db(stores, tmp_path):
    (tmp_path / "tenfold.toml").write_text(RULES)
    return shutil.copy(stores / "plain.duckdb", tmp_path / "u.duckdb")


@pytest.fixture
def mapped(stores, tmp_path):
    (tmp_path / "tenfold.toml").write_text(RULES)
    return shutil.copy(stores / "mapped.duckdb", tmp_path / "u.duckdb")


def test_dry_run_then_for_good(as_json, run, db):
    dry = as_json("owners", "--db", db, "--dry-run")
    assert (dry["dry_run"], dry["changed_rows"], dry["rows"]) == (True, 3, 4)
    code, out, _ = run("owners", "--db", db, "--dry-run")
    assert code == 0
    assert "3 rows of 4 would change" in out
    assert "dry: the database is as it was" in out
    cost = as_json("cost", "--db", db, "--by", "team")
    assert [row["team"] for row in cost["rows"]] == [None]
    assert "Run: tenfold owners" in cost["owners"]["note"]
    assert "Run: tenfold owners" in " ".join(run("cost", "--db", db)[1].split())
    assert "Run: tenfold owners" in as_json("levers", "--db", db, code=3)["notes"][-1]
    done = as_json("owners", "--db", db)
    assert [(rule["team"], rule["rows"]) for rule in done["rules"]] == [("search", 2), ("platform", 1)]
    cost = as_json("cost", "--db", db, "--by", "team")
    assert {row["team"]: row["requests"] for row in cost["rows"]} == {"search": 2, "platform": 1, None: 1}
    assert cost["owners"]["note"] is None
    assert (cost["owners"]["owned_ratio"], cost["owners"]["unallocated_usd"]) == (0.75, str(COST))


def test_allocation_in_both_outputs(as_json, run, mapped):
    found = as_json("cost", "--db", mapped, "--by", "team", "--allocate", "usage")
    rows = {row["team"]: row for row in found["rows"]}
    assert {team: Decimal(row["allocated_usd"]) for team, row in rows.items()} == {
        "search": COST,
        "platform": 0,
        None: 0,
    }
    assert sum(Decimal(row["total_usd"]) for row in rows.values()) == Decimal(found["total_usd"]) == 4 * COST
    assert all(row["direct_usd"] == row["cost_usd"] for row in rows.values())
    told = found["allocation"]
    assert (told["method"], told["basis"], told["weights"], told["shared_teams"]) == ("usage", "cost", {}, ["platform"])
    assert (told["shared_usd"], told["unallocated_usd"]) == (str(COST), str(COST))
    out = run("cost", "--db", mapped, "--allocate", "even")[1]
    assert "in even parts, month by month (UTC)" in " ".join(out.split())
    assert "owned: 75.00 % of the bill has a team" in out
    assert "\nunallocated " in out
    assert "(none)" not in out


def test_the_settings_method_and_its_errors(as_json, run, mapped, tmp_path):
    (tmp_path / "tenfold.toml").write_text(RULES + '[allocation]\nmethod = "fixed"\nweights = {search = 1}\n')
    found = as_json("cost", "--db", mapped, "--allocate", "toml")["allocation"]
    assert (found["method"], found["weights"]) == ("fixed", {"search": "1"})
    code, _, err = run("cost", "--db", mapped, "--allocate", "evn")
    assert code == 1
    assert 'Did you mean "even"' in err
    assert "by team, alone or with" in run("cost", "--db", mapped, "--by", "model", "--allocate", "even")[2]
    (tmp_path / "tenfold.toml").write_text(RULES + "[allocation]\nweights = {serch = 1}\n")
    assert 'Did you mean "search"' in run("cost", "--db", mapped, "--allocate", "fixed")[2]


def test_without_settings_the_way_out_is_named(run, db, tmp_path):
    (tmp_path / "tenfold.toml").unlink()
    code, _, err = run("owners", "--db", db)
    assert code == 1
    assert "there is no tenfold.toml here" in err
