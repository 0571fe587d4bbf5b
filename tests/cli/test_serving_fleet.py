"""``--fleet`` on cost, levers and review, ``serving fleet`` and ``serving breakeven``: sums, keys, exit codes."""

import json
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
    # from 2026-07-01T06:00 (the first of ours) to 2026-07-09T18:10: 204 h 10 min of two GPUs at 2.50
    hours = Decimal(204) + Decimal(1) / 6
    assert Decimal(made["bill_usd"]) == (2 * Decimal("2.5") * hours).quantize(Decimal("1e-12"))
    assert Decimal(made["idle_usd"]) + Decimal(made["requests_usd"]) == Decimal(made["bill_usd"])
    assert set(made["rates"]) == {"input", "cached", "output"}
    (one,) = made["models"]
    assert one["rates"] == made["rates"]
    assert one["busy_ratio"] == pytest.approx(24 / 6 / float(2 * hours))
    assert (one["requests"], one["batch"], one["label"]) == (24, 1.0, "measured")
    spent = sum(Decimal(one["rates"][kind]) * one["tokens"][kind] for kind in ("input", "cached", "output")) / 10**6
    assert spent == Decimal(made["requests_usd"])
    assert made["pools"][0]["sum"] == "2 GPUs x $2.50/h x 204.2 h"
    _, out, _ = run("serving", "fleet", *db)
    assert out.startswith("fleet $1,020.83: requests carry $10.00, $1,010.83 (99.0 %) is idle")


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
    assert "$1,010.83 (99.0 %) is idle" in out
    (row,) = [line for line in out.splitlines() if "(idle)" in line]
    assert row.split()[:4] == [MODEL, "(idle)", "0", "$1,010.83"]


@pytest.mark.full
def test_levers_are_about_the_same_bill(as_json, db):
    whole = Decimal(as_json("cost", *db)["total_usd"])
    assert Decimal(as_json("levers", *db)["spend_usd"]) == whole


@pytest.mark.full
def test_a_review_has_the_fleet(run, db, tmp_path):
    code, _, err = run("review", *db, "--quarter", "2026Q3", "--out", "r.html")
    assert code == 0, err
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    # the quarter's own window: 92 days of both GPUs
    assert "2 GPUs x $2.50/h x 2,208 h = $11,040.00" in page
    assert "the rest of the window is idle" in page
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
    assert {row["what"] for row in made["sensitivity"]} == {"throughput", "price", "utilisation", "mix", "ops"}
    code, out, _ = run(*words)
    assert code == 0
    assert "2 x h100-sxm pay from" in out
    assert "hosting is dearer" in " ".join(out.split())


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
