"""``--fleet`` on cost, levers and review, ``serving fleet`` and ``serving breakeven``: sums, keys, exit codes."""

import json
import re
import tomllib
from dataclasses import fields
from decimal import Decimal

import pytest
from fleets import MODEL, fleet_file, pool

import tenfold as tf


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    # nine days, every six hours: one of our own for ten minutes, and one at an API
    rows = []
    for number in range(36):
        day, hour = divmod(number * 6, 24)
        ours = number % 3 > 0
        rows.append({
            "request_id": f"r{number}", "ts": f"2026-07-{day + 1:02}T{hour:02}:00:00Z", "duration_ms": 600_000,
            "provider": "self-hosted" if ours else "openai", "model": MODEL if ours else "gpt-4.1",
            "team": "ab"[number % 2], "input_tokens": 4000, "cache_read_tokens": 1000, "output_tokens": 2000,
        })  # fmt: skip
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    tf.load(folder / "log.jsonl", db=folder / "u.duckdb")
    return ("--db", folder / "u.duckdb", "--fleet", fleet_file(folder, pool(replicas=2, usd=2.5)))


def test_the_fleet_has_the_keys_of_the_contract(as_json, run, db):
    made = as_json("serving", "fleet", *db)
    # from 2026-07-01T00:00 (the log's first) to 2026-07-09T18:10: 210 h 10 min of two GPUs at 2.50
    hours = Decimal(210) + Decimal(1) / 6
    assert Decimal(made["bill_usd"]) == (2 * Decimal("2.5") * hours).quantize(Decimal("1e-12"))
    assert Decimal(made["idle_usd"]) + Decimal(made["requests_usd"]) == Decimal(made["bill_usd"])
    assert set(made["rates"]) == {"input", "cached", "output"}
    (one,) = made["models"]
    assert one["rates"] == made["rates"]
    assert one["busy_ratio"] == pytest.approx(24 / 6 / float(2 * hours))
    assert (one["requests"], one["batch"], one["label"]) == (24, 1.0, "measured")
    spent = sum(Decimal(one["rates"][kind]) * one["tokens"][kind] for kind in ("input", "cached", "output")) / 10**6
    assert spent == Decimal(made["requests_usd"])
    assert made["pools"][0]["sum"] == "2 GPUs x $2.50/h x 210.2 h"
    assert (made["from"], made["to"]) == ("2026-07-01T00:00:00+00:00", "2026-07-09T18:10:00+00:00")
    assert made["window"] == {"from": None, "to": None}
    assert made["covered"] == {"from": made["from"], "to": made["to"]}
    # 1,050.8333 USD over 24 x 6,000 tokens
    loaded = {one["loaded_usd_per_million"][:9] for one in (made, made["models"][0], made["pools"][0])}
    assert loaded == {"7297.4537"}
    _, out, _ = run("serving", "fleet", *db)
    assert " ".join(out.split()).startswith(
        "fleet $1,050.83, 2026-07-01 00:00 UTC to 2026-07-09 18:10 UTC: requests carry $10.00, $1,040.83 (99.0 %)"
    )
    assert "$7,297.4537 per million tokens of any kind, idle time included" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.full
def test_the_hours_of_a_fleet_are_asked_for(as_json, db):
    assert "hourly" not in as_json("serving", "fleet", *db)["models"][0]
    assert len(as_json("serving", "fleet", *db, "--hours")["models"][0]["hourly"]) == 211


@pytest.mark.full
def test_a_window_beyond_the_log_is_not_billed(as_json, db):
    window = ("--from", "2026-04-01", "--to", "2026-10-01")
    made = as_json("cost", *db, *window)
    assert made["fleet_usd"].startswith("1050.83")
    assert made["fleet_span"]["window"]["to"] == "2026-10-01T00:00:00+00:00"
    assert made["fleet_span"]["covered"]["to"] == "2026-07-09T18:10:00+00:00"
    assert "2026-07-01 00:00 UTC to 2026-07-09 18:10 UTC of this window" in made["fleet_notes"][0]


@pytest.mark.full
def test_the_heading_spans_a_pool_that_states_more(run, db, tmp_path):
    longer = fleet_file(tmp_path, pool(replicas=2, usd=2.5, to="2026-07-31T00:00:00Z"))
    _, out, _ = run("cost", *db[:2], "--fleet", longer, "--from", "2026-07-01", "--to", "2026-08-01")
    said = " ".join(out.split())
    assert "2026-07-01 to 2026-07-31 (exclusive) UTC" in said
    assert "fleet $3,600.00, 2026-07-01 00:00 UTC to 2026-07-31 00:00 UTC" in said


def test_idle_time_has_no_team(as_json, run, db):
    made = as_json("cost", *db, "--by", "team")
    idle, whole = Decimal(made["idle_usd"]), Decimal(made["total_usd"])
    assert Decimal(made["owners"]["unallocated_usd"]) == idle
    assert made["owners"]["owned_ratio"] == pytest.approx(float(1 - idle / whole))
    _, out, _ = run("cost", *db, "--by", "team")
    assert "$1,040.83 unallocated, of which $1,040.83 is idle GPUs" in " ".join(out.split())


@pytest.mark.parametrize("method", ["usage", pytest.param("even", marks=pytest.mark.full)])
def test_idle_time_is_allocated_too(as_json, run, db, method):
    made = as_json("cost", *db, "--by", "team,month", "--allocate", method)
    whole = Decimal(made["total_usd"])
    rows = made["rows"]
    for key in ("cost_usd", "direct_usd", "total_usd"):
        assert sum(Decimal(row[key]) for row in rows) == whole
    (idle,) = (row for row in rows if row.get("charge") == "idle")
    assert (idle["team"], idle["month"], idle["total_usd"]) == ("(idle)", "2026-07", "0.00")
    assert idle["shared_out_usd"] == made["allocation"]["idle_usd"] == made["idle_usd"]
    carried = [Decimal(row["allocated_usd"]) for row in rows if row is not idle]
    assert sum(carried) == Decimal(made["idle_usd"])
    if method == "even":
        assert abs(carried[0] - carried[1]) <= Decimal("1e-12")
    assert made["owners"]["owned_ratio"] == 1.0
    _, out, _ = run("cost", *db, "--allocate", method)
    assert "allocated: the cost of idle GPUs ($1,040.83)" in " ".join(out.split())


def test_explain_traces_a_request_to_its_pools(as_json, run, db):
    made = as_json("explain", *db, "--request", "r1")["fleet"]
    assert made["pools"][0]["sum"] == "2 GPUs x $2.50/h x 210.2 h"
    code, out, _ = run("explain", *db, "--request", "r1")
    said = " ".join(out.split())
    assert code == 0
    assert "a request was under way in 14,400.000 of them; that much of the bill is $9.999999999999" in said
    assert f"output {made['rates_pusd']['output']:,} pUSD a token" in said
    assert "measured over modelled:" in said


@pytest.mark.full
def test_a_pool_of_no_logged_model_is_the_first_thing_said(run, db, tmp_path):
    wrong = fleet_file(tmp_path, pool(), pool(model="Qwen/Qwen3-32B"))
    code, _, err = run("serving", "fleet", *db[:2], "--fleet", wrong)
    assert code == 0
    assert err.startswith(f'warning: {wrong}, pool 2: no request of the log is of model "Qwen/Qwen3-32B"')
    code, _, err = run("cost", *db[:2], "--fleet", fleet_file(tmp_path, pool(model="Llama-3.1-8B-Instruct")))
    assert code == 3
    assert f'Did you mean "{MODEL}"?' in err


def test_help_names_the_table_of_a_pool(run):
    for words in (("serving", "fleet"), ("cost",)):
        assert "[[pool]]" in run(*words, "--help")[1]


@pytest.mark.parametrize("by", [pytest.param("", marks=pytest.mark.full), "model,day"])
def test_cost_rows_and_idle_sum_to_the_total(as_json, db, by):
    made = as_json("cost", *db, *(["--by", by] if by else []))
    assert sum(Decimal(row["cost_usd"]) for row in made["rows"]) == Decimal(made["total_usd"])
    idle = [row for row in made["rows"] if row.get("charge") == "idle"]
    assert [row["cost_usd"] for row in idle] == [made["idle_usd"]]
    assert all(idle[0].get(name, "(idle)") in ("(idle)", "self-hosted", MODEL) for name in by.split(","))
    assert made["coverage"]["requests_ratio"] == 1.0
    assert Decimal(made["fleet_usd"]) > Decimal(made["idle_usd"])


@pytest.mark.full
def test_cost_without_a_fleet_has_no_such_keys(as_json, db):
    made = as_json("cost", *db[:2])
    assert made.keys().isdisjoint({"fleet_usd", "idle_usd", "fleet_notes"})
    assert made["coverage"]["unpriced"][0]["requests"] == 24


@pytest.mark.full
def test_people_see_idle_time_in_the_table(run, db):
    code, out, _ = run("cost", *db, "--by", "model,team")
    assert code == 0
    assert "$1,040.83 (99.0 %) is idle" in " ".join(out.split())
    (row,) = [line for line in out.splitlines() if "(idle)" in line]
    assert row.split()[:4] == [MODEL, "(idle)", "0", "$1,040.83"]


@pytest.mark.full
def test_levers_are_about_the_same_bill(as_json, db):
    whole = Decimal(as_json("cost", *db)["total_usd"])
    assert Decimal(as_json("levers", *db)["spend_usd"]) == whole


@pytest.mark.full
def test_the_table_of_levers_fits_the_screen(run, db, tmp_path):
    (tmp_path / "assume.toml").write_text('[procure]\nwhere = "true"\ncommitment = "reserved_1y"\n')
    code, out, err = run("levers", *db, "--assume", "assume.toml")
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.full
def test_a_review_has_the_fleet(run, db, tmp_path):
    code, _, err = run("review", *db, "--quarter", "2026Q3", "--out", "r.html")
    assert code == 0, err
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    # not the quarter's 92 days: what the log covers of them
    assert "2 GPUs x $2.50/h x 210.2 h = $1,050.83" in page
    assert "2026-07-01 00:00 UTC to 2026-07-09 18:10 UTC of this window" in page
    # 10.00 of ours, 12 x 0.0225 of the API's, and idle time, of which no team owns any
    assert "$1,051.10" in page
    assert "requests $10.27 and idle GPUs $1,040.83" in page
    assert "Owned: 0.98 % of spend; $1,040.83 is unallocated" in page.replace("\u00a0", " ")
    assert "Cost by team, idle GPUs left out" in page
    assert "idle GPUs" in page
    assert "fleet_busy" in page
    assert "of another bill" not in page


def test_a_what_if_instant_is_refused_with_a_fleet(run, db):
    code, _, err = run("cost", *db, "--price-at", "2026-07-01")
    assert code == 1
    assert "leave out --price-at" in err


def test_breakeven_has_the_keys_of_the_contract(as_json, run, db):
    words = ("serving", "breakeven", *db[:2], "--model", MODEL, "--gpu", "h100-sxm", "--weights", "fp8")
    made = as_json(*words, "--usd-per-gpu-hour", "2.5")
    assert {"tokens_per_month", "utilisation_ratio", "gpus", "sensitivity"} <= made.keys()
    assert made["gpus"] == 2
    # gpt-4.1: 3,000 at 2, 1,000 at 0.5 and 2,000 at 8 USD per million
    assert made["api"]["usd_per_million"] == str(Decimal(3 * 2 + Decimal("0.5") + 16) / 6)[:14]
    assert made["tokens_per_month"] == -(-3648 * 6 * 10**6 * 10 // 225)
    assert made["measured"]["pays"] is False
    assert {row["what"] for row in made["sensitivity"]} == {
        "throughput",
        "TPOT limit",
        "price",
        "utilisation",
        "mix",
        "ops",
    }
    code, out, _ = run(*words)
    assert code == 0
    assert "2 x h100-sxm pay from" in out
    assert "hosting is dearer" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 100
    assert "ms an output token: no limit on it is set" in " ".join(out.split())
    assert "median of the lists of" in " ".join(out.split())
    limited = as_json(*words, "--tpot-slo-ms", 10)
    assert limited["tpot_ms"] <= limited["tpot_slo_ms"] == 10 < made["tpot_ms"]


def test_a_template_of_a_fleet_has_every_key_and_loads(run, tmp_path):
    code, out, _ = run("serving", "fleet", "--template")
    assert code == 0
    filled = re.sub(r"(?m)^# (?=[a-z_]+ = )", "", out)
    (tmp_path / "full.toml").write_text(filled)
    (table,) = tomllib.loads(filled)["pool"]
    wanted = {field.name for field in fields(tf.Fleet.load(tmp_path / "full.toml").pools[0])}
    assert table.keys() == (wanted - {"since", "until"}) | {"from", "to"}
    (tmp_path / "bare.toml").write_text(out)
    (bare,) = tf.Fleet.load(tmp_path / "bare.toml").pools
    assert (bare.gpus, bare.commitment, bare.weights, bare.since) == (1, "on_demand", None, None)


@pytest.mark.full
def test_breakeven_of_hosted_traffic(as_json, run, db):
    words = ("serving", "breakeven", *db[:2], "--model", MODEL, "--gpu", "h100-sxm")
    made = as_json(*words, "--api-model", "openai/gpt-4.1")
    assert (made["measured"]["requests"], made["api"]["label"]) == (24, "modelled")
    for more, said in (
        (("--api-model", "gpt-4.1"), "write PROVIDER/MODEL"),
        (("--where", "select 1"), "--where"),
        (("--utilisation", "1.5"), "a share above 0"),
        (("--ops-usd-per-month", "-1"), "at least 0"),
    ):
        code, _, err = run(*words, *more)
        assert code == 1
        assert said in err
    assert run(*words, "--where", "team = 'nobody'")[0] == 3
