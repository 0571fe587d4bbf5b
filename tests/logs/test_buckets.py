"""Usage buckets: reports, invoices, benchmark results and counters, apart from requests and in their own currency."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from tenfold.errors import LogFormatError
from tenfold.logs import load, open_log
from tenfold.logs.buckets import BUCKET_READERS, bucket_reader

SAMPLES = Path(__file__).parents[1] / "samples"
DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILES = {
    "openai_org_usage_completions.json": "openai_org_usage",
    "openai_org_costs.json": "openai_org_costs",
    "anthropic_usage_report_messages.json": "anthropic_usage_report",
    "anthropic_cost_report.json": "anthropic_cost_report",
    "focus_1_2_llm.csv": "focus",
    "vllm_bench_serve_result.json": "vllm_bench",
    "vllm_metrics.prom": "prometheus",
}


@pytest.fixture(scope="module")
def all_of_them(tmp_path_factory):
    db = tmp_path_factory.mktemp("buckets") / "u.duckdb"
    return load([*(SAMPLES / name for name in FILES), SAMPLES / "openai_chat.jsonl"], db=db), db


def rows_of(log, name):
    return [row for row in log.buckets.to_dicts() if row["source_format"] == name]


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.*")), ids=lambda path: path.name)
def test_each_sample_has_at_most_one_reader_of_buckets(path):
    head = path.read_text(encoding="utf-8", errors="replace")
    fitting = [reader.name for reader in BUCKET_READERS if reader.fits(head)]
    assert fitting == ([FILES[path.name]] if path.name in FILES else [])
    found = bucket_reader(path, None)
    assert (found.name if found else None) == FILES.get(path.name)


def test_buckets_are_no_requests(all_of_them):
    log, db = all_of_them
    assert (log.summary["requests"], log.summary["rejected"]) == (5, 0)
    # 2 + 2 + 1 + 1, 4 charges in 4 kinds of amount, 1 + 14 measures, 10 counters
    assert log.summary["buckets"] == len(log.buckets) == 2 + 2 + 1 + 1 + 16 + 15 + 10
    assert open_log(db).summary["buckets"] == 47
    again = load([SAMPLES / name for name in FILES], db=db)
    assert (again.summary["buckets"], len(again.buckets)) == (0, 47)


def test_openai_counts_are_inclusive_and_null_is_not_none(all_of_them):
    one, two = rows_of(all_of_them[0], "openai_org_usage")
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens", "output_tokens")
    assert [one[name] for name in names] == [1_000_000, 700_000, 50_000, 0, 80_000]
    assert [two[name] for name in names] == [90_000, 0, None, None, 9_000]
    assert (str(one["bucket_start"]), str(one["bucket_end"])) == ("2026-11-02 00:00:00", "2026-11-03 00:00:00")
    told = ("provider", "project", "api_key_id", "model", "service_tier", "requests", "source_line")
    assert [one[name] for name in told] == ["openai", "proj_search", "key_1", "gpt-5.6-luna", "standard", 420, 9]
    assert (two["service_tier"], two["requests"], two["project"]) == ("batch", 30, None)
    # A report that is not split by a dimension leaves it out everywhere: nobody was asked about users.
    assert one["grouped_by"] == two["grouped_by"] == "project,api_key_id,model,service_tier"


def test_import_20_openai_is_in_dollars_and_anthropic_in_cents(all_of_them):
    log = all_of_them[0]
    one, two = rows_of(log, "openai_org_costs")
    assert (one["amount_usd"], two["amount_usd"]) == (Decimal("0.06"), Decimal("1.2"))
    assert (one["model"], one["meter"], one["quantity"], one["unit"]) == (
        "gpt-5.6-luna",
        "uncached_input",
        Decimal(250_000),
        "tokens",
    )
    (cost,) = rows_of(log, "anthropic_cost_report")
    assert (cost["amount_usd"], cost["currency"], cost["amount_kind"]) == (Decimal("1.2378912"), "USD", "billed")
    assert (cost["model"], cost["meter"], cost["context_band"]) == ("claude-opus-5-5", "uncached_input", "0-200k")


def test_anthropic_counts_become_inclusive(all_of_them):
    (row,) = rows_of(all_of_them[0], "anthropic_usage_report")
    # 150,000 + 2,000,000 read + 50,000 and 1,000 written
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens", "output_tokens")
    assert [row[name] for name in names] == [2_201_000, 2_000_000, 51_000, 1_000, 60_000]
    assert (row["web_searches"], row["region"], row["api_key_id"]) == (10, "us", "apikey_1")


def test_focus_keeps_kinds_of_amount_apart(all_of_them):
    rows = rows_of(all_of_them[0], "focus")
    sums = {}
    for row in rows:
        sums[row["amount_kind"]] = sums.get(row["amount_kind"], 0) + row["amount_usd"]
    assert sums == dict.fromkeys(
        ("list", "contracted", "billed", "effective"), Decimal("33.9")
    )  # 1.5 + 7.5 + 2.4 + 22.5
    billed = [row for row in rows if row["amount_kind"] == "billed"]
    assert {row["meter"]: int(row["quantity"]) for row in billed} == {
        "uncached_input": 500_000,
        "cache_write": 2_000_000,
        "cache_read": 8_000_000,
        "output": 1_500_000,
    }
    assert {(row["model"], row["project"], row["unit"]) for row in rows} == {
        ("example-large-1", "team-search", "tokens")
    }
    assert dict(rows[0]["tags"]) if isinstance(rows[0]["tags"], dict) else rows[0]["tags"]


def test_benchmark_and_counters(all_of_them):
    bench = {row["meter"]: row for row in rows_of(all_of_them[0], "vllm_bench")}
    total = bench["duration"]
    assert (total["input_tokens"], total["output_tokens"], total["requests"]) == (204_800, 25_472, 199)
    assert (str(total["bucket_start"]), str(total["bucket_end"])) == (
        "2026-11-02 09:59:18.800000",
        "2026-11-02 10:00:00",
    )
    assert (bench["p99_ttft_ms"]["quantity"], bench["p99_ttft_ms"]["unit"]) == (Decimal(655), "ms")
    counters = {row["meter"]: row for row in rows_of(all_of_them[0], "prometheus")}
    prompt = counters["vllm:prompt_tokens_total"]
    assert (prompt["quantity"], prompt["unit"], prompt["is_cumulative"]) == (Decimal(8_128_902), "tokens", True)
    assert (prompt["model"], prompt["bucket_start"]) == ("Qwen/Qwen3-8B", None)


def page(*results, **more):
    return {
        "object": "page",
        "data": [{"start_time": 1793577600, "end_time": 1793664000, "results": list(results)}],
    } | more


def usage(**more):
    return {"object": "organization.usage.completions.result", "input_tokens": 10, "output_tokens": 1, **more}


def write(file, content):
    file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return file


def test_a_report_fetched_again_replaces_the_first_and_other_groups_stay(tmp_path):
    db = tmp_path / "u.duckdb"
    load(write(tmp_path / "a.json", page(usage(model="m"), usage(model="n"))), db=db)
    later = load(write(tmp_path / "b.json", page(usage(model="m", input_tokens=30), usage(model="n"))), db=db)
    assert (later.summary["buckets"], later.summary["merged"]) == (2, 2)
    assert sorted(later.buckets["input_tokens"].to_list()) == [10, 30]
    by_key = load(write(tmp_path / "c.json", page(usage(api_key_id="k", input_tokens=40))), db=db)
    assert sorted(by_key.buckets["input_tokens"].to_list()) == [10, 30, 40]


def test_pages_a_line_and_a_file_that_breaks_off(tmp_path):
    lines = json.dumps(page(usage(model="m"))) + "\n" + json.dumps(page(usage(model="n")))
    assert load(write(tmp_path / "a.jsonl", lines)).buckets["source_line"].to_list() == [1, 2]
    whole = json.dumps(page(usage(model="m"), usage(model="n"), usage(model="o")), indent=1)
    cut = load(write(tmp_path / "b.json", whole[: whole.index('"o"')]))
    assert (cut.summary["buckets"], cut.summary["rejected"]) == (2, 1)
    assert "breaks off" in cut.rejects["reason"][0]


@pytest.mark.parametrize("bad", [-5, 2.5, "many", True])
def test_impossible_counts_are_refused_with_their_line(tmp_path, bad):
    log = load(write(tmp_path / "a.json", page(usage(model="m"), usage(model="n", output_tokens=bad))))
    assert (log.summary["buckets"], log.summary["rejected"]) == (1, 1)
    (reject,) = log.rejects.to_dicts()
    assert (reject["path"], reject["source_line"]) == ("output_tokens", 14)
    assert "no count" in reject["reason"]


def test_other_currencies_are_no_dollars(tmp_path):
    result = {"object": "organization.costs.result", "amount": {"value": 3.5, "currency": "eur"}}
    (row,) = load(write(tmp_path / "a.json", page(result))).buckets.to_dicts()
    assert (row["amount"], row["currency"], row["amount_usd"]) == (Decimal("3.5"), "EUR", None)


def focus_file(tmp_path, **changes):
    with (SAMPLES / "focus_1_2_llm.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))[:1]
    rows[0] |= changes
    file = tmp_path / "f.csv"
    with file.open("w", newline="", encoding="utf-8-sig") as out:  # with a byte order mark
        writer = csv.DictWriter(out, fieldnames=[name for name in rows[0] if rows[0][name] is not None])
        writer.writeheader()
        writer.writerows(rows)
    return file


APRIL = {"BillingPeriodStart": "4/1/25", "BillingPeriodEnd": "5/1/25"}


@pytest.mark.parametrize(
    ("start", "end", "billing", "right"),
    [
        ("4/1/25", "4/2/25", APRIL, "2025-04-01"),  # a month runs from 4/1 to 5/1
        ("1/4/25", "2/4/25", {"BillingPeriodStart": "1/4/25", "BillingPeriodEnd": "1/5/25"}, "2025-04-01"),
        ("2025-04-01T00:00Z", "2025-04-02T00:00Z", {}, "2025-04-01"),  # Microsoft's, without seconds
    ],
)
def test_import_28_dates_are_proven_by_their_periods(tmp_path, start, end, billing, right):
    file = focus_file(tmp_path, ChargePeriodStart=start, ChargePeriodEnd=end, BilledCost="0.00 ", **billing)
    rows = load(file).buckets.to_dicts()
    assert {str(row["bucket_start"])[:10] for row in rows} == {right}
    assert {row["amount_kind"]: row["amount_usd"] for row in rows}["billed"] == 0


def test_import_28_a_date_that_nothing_proves_names_its_column(tmp_path):
    same = {"BillingPeriodStart": "1/1/25", "BillingPeriodEnd": ""}
    file = focus_file(tmp_path, ChargePeriodStart="4/5/25", ChargePeriodEnd="5/6/25", **same)
    with pytest.raises(LogFormatError, match="ChargePeriodStart.*month first or day first"):
        load(file)


@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ({"ConsumedQuantity": "5", "ConsumedUnit": "1K Tokens"}, 5_000),
        ({"ConsumedQuantity": "", "PricingQuantity": "0.5", "PricingUnit": "1000000 Tokens"}, 500_000),
        ({"ConsumedQuantity": "", "PricingQuantity": "2", "PricingUnit": "1M Tokens"}, 2_000_000),
    ],
)
def test_units_of_tokens(tmp_path, changes, right):
    rows = load(focus_file(tmp_path, **changes)).buckets.to_dicts()
    assert {(int(row["quantity"]), row["unit"]) for row in rows} == {(right, "tokens")}


def test_parts_of_one_export_add_up_and_a_restatement_replaces(tmp_path):
    parts = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for folder, cost in zip(parts, ("1.5", "1.5", "1.4"), strict=True):
        folder.mkdir()
        focus_file(folder, BilledCost=cost)
    (parts[1] / "f.csv").write_bytes((parts[1] / "f.csv").read_bytes() + b"\n")  # not the very same file
    log = load(parts[:2], db=tmp_path / "u.duckdb")
    assert (len(log.buckets), log.summary["merged"]) == (8, 0)
    later = load(parts[2], db=tmp_path / "u.duckdb")
    assert (len(later.buckets), later.summary["merged"]) == (4, 8)
    assert Decimal("1.4") in later.buckets["amount"].to_list()


def test_rows_of_other_services_are_left_out_and_odd_amounts_refused(tmp_path):
    other = {"ServiceCategory": "Compute", "ServiceSubcategory": "", "SkuMeter": "Hours", "ChargeDescription": "VM"}
    log = load(focus_file(tmp_path, **other))
    assert [log.summary[name] for name in ("buckets", "ignored", "rejected")] == [0, 1, 0]
    log = load(focus_file(tmp_path, BilledCost="1,5"))
    assert (log.summary["buckets"], log.rejects["path"].to_list()) == (0, ["BilledCost"])


def test_counters_with_times_give_what_they_grew_by(tmp_path):
    samples = [(100, 1000), (160, 61_000), (30, 121_000)]  # the server was started anew before the third
    text = "".join(f'vllm:prompt_tokens_total{{model_name="m"}} {value} {at}\n' for value, at in samples)
    rows = load(write(tmp_path / "a.prom", text + "go_threads 7\n")).buckets.sort("source_line").to_dicts()
    assert [(int(row["quantity"]), row["is_cumulative"]) for row in rows] == [(60, False), (30, False)]


def test_the_command_names_the_buckets(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from tenfold.cli import main; main()",
        "load",
        str(SAMPLES / "openai_org_costs.json"),
    ]
    done = subprocess.run(
        [*command, "--db", str(tmp_path / "u.duckdb"), "--json"], capture_output=True, text=True, check=False
    )
    assert json.loads(done.stdout)["buckets"] == 2, done.stderr


@pytest.mark.real_data
def test_real_focus_and_benchmark_files():
    if not (DATA / "focus_spec").is_dir():
        pytest.skip("no real data: set TENFOLD_REAL_DATA")
    log = load([DATA / "focus_spec", *DATA.glob("bench/inferencex*.json")])
    assert log.summary["rejected"] == 0
    rows = log.buckets.to_dicts()
    billed = [row for row in rows if row["amount_kind"] == "billed"]
    by_file = {}
    for row in billed:
        name = Path(row["source_file"]).stem
        by_file[name] = by_file.get(name, 0) + row["amount_usd"]
    assert by_file["draft1.5_ai_prompt_caching_a"] == Decimal("33.9")
    assert by_file["v1.2_virtual_currency_pricing_model_a1"] == 200_000
    assert by_file["v1.2_virtual_currency_pricing_model_b1"] == 100_000
    # Purchases of 1 April 2025, not of 4 January; a virtual currency's tokens are no model's.
    virtual = [row for row in billed if "virtual" in row["source_file"]]
    assert {str(row["bucket_start"])[:10] for row in virtual} <= {"2025-04-01", "2025-10-01"}
    assert {row["unit"] for row in virtual} == {"token"}
    bench = {row["meter"]: row for row in rows if row["source_format"] == "vllm_bench"}
    assert bench["duration"]["input_tokens"] == 1_638_400
    assert bench["p99_ttft"]["unit"] == "s"


ODD = {
    "surrogate": json.dumps(page(usage(model="m\ud800"))),
    "zero byte": json.dumps(page(usage(model="m\0"))),
    "huge": json.dumps(page(usage(model="m"))).replace('"output_tokens": 1', '"output_tokens": 1e999999999'),
    "long": json.dumps(page(usage(model="m"))).replace('"output_tokens": 1', '"output_tokens": 1' + "0" * 30),
    "no bucket": json.dumps({"data": [5, {"results": "x"}], "results": '"organization.usage.'}),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_reports_are_refused_or_read_and_nothing_else(tmp_path, name):
    log = load(write(tmp_path / "a.json", ODD[name]), format="openai_org_usage")
    assert log.summary["buckets"] + log.summary["rejected"] >= 1


def test_a_wrongly_named_source_is_refused(tmp_path):
    with pytest.raises(LogFormatError, match="does not look like focus"):
        load(write(tmp_path / "a.csv", "ts,input_tokens\n1,2\n"), format="focus")


def test_a_focus_file_as_parquet_says_the_same(tmp_path):
    source, file = SAMPLES / "focus_1_2_llm.csv", tmp_path / "f.parquet"
    typed = "Tags::JSON::MAP(VARCHAR, VARCHAR) AS Tags, ChargePeriodStart::TIMESTAMPTZ AS ChargePeriodStart"
    typed += ", EffectiveCost::DECIMAL(20, 10) AS EffectiveCost, nullif(InvoiceId, '') AS InvoiceId"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"COPY (SELECT * REPLACE ({typed}) FROM read_csv('{source}', all_varchar=true)) TO '{file}'")
    place = ["source_file", "source_line"]
    plain, log = load(source), load(file, format="focus")
    assert log.summary == plain.summary
    assert log.buckets.drop(place).to_dicts() == plain.buckets.drop(place).to_dicts()
    assert log.buckets["source_line"].unique().sort().to_list() == [1, 2, 3, 4]
    with pytest.raises(LogFormatError, match="does not look like prometheus"):
        load(file, format="prometheus")


def test_a_misspelt_format_of_buckets_is_recognised():
    with pytest.raises(LogFormatError, match='Did you mean "focus"'):
        load(SAMPLES / "focus_1_2_llm.csv", format="focuss")
