"""``tenfold export`` as scripts use it."""

import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.fixture(scope="module")
def made(main_in, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    samples = (SAMPLES / "openai_chat.jsonl", SAMPLES / "anthropic_messages.jsonl")
    assert main_in(folder, "load", *samples, "--db", "u.duckdb") == 0
    return folder / "u.duckdb"


def test_export_focus_sums_to_cost_and_checks_itself(as_json, made):
    bill = as_json("cost", "--db", made)
    found = as_json("export", "focus", "--db", made, "--out", "f.csv", "--check")
    assert Decimal(found["billed_usd"]) == Decimal(bill["total_usd"]) == Decimal(found["list_usd"])
    assert found["requests"] + found["unpriced_requests"] == bill["requests"]
    assert found["check"]["clean"] is True
    assert (found["card_version"], found["log_hash"]) == (bill["card_version"], bill["log_hash"])
    loaded = as_json("load", "f.csv", "--db", "back.duckdb")
    assert loaded["buckets_by_format"] == {"focus": 4 * found["rows"]}


def test_export_check_names_rows_and_exits_1(run, as_json, tmp_path):
    text = (SAMPLES / "focus_1_2_llm.csv").read_text(encoding="utf-8").replace("2.4,acct", "2.5,acct", 1)
    (tmp_path / "g.csv").write_text(text.replace(",Usage,", ",Use,", 1), encoding="utf-8")
    found = as_json("export", "check", "g.csv", code=1)
    assert ("ChargeCategory", 1) in {(one["column"], one["row"]) for one in found["findings"]}
    code, out, _ = run("export", "check", "g.csv")
    assert code == 1
    assert "ChargeCategory" in out
    code, out, _ = run("export", "check", SAMPLES / "focus_1_2_llm.csv")
    assert (code, "nothing wrong" in out) == (0, True)


@pytest.mark.full
def test_export_tables_and_explain(as_json, run, made, tmp_path):
    found = as_json("export", "csv", "--db", made, "--out", "t.csv", "--by", "model")
    assert found["rows"] == len(list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text(encoding="utf-8")))))
    assert as_json("export", "parquet", "--db", made, "--out", "r.parquet", "--requests")["by"] is None
    as_json("export", "xlsx", "--db", made, "--out", "t.xlsx", "--by", "model", "--by", "day")
    as_json("export", "focus", "--db", made, "--out", "f.csv")
    traced = as_json("export", "explain", "f.csv", "--row", "1", "--db", made)
    assert (traced["agrees"], traced["is_same_card"], traced["is_same_log"]) == (True, True, True)
    assert traced["requests"]
    code, out, _ = run("export", "explain", "f.csv", "--row", "1", "--db", made)
    assert (code, "agrees" in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("csv", "--out", "t.parquet"), "writes a .csv file"),
        (("csv", "--out", "t.csv", "--by", "model", "--requests"), "give one of them"),
        (("focus", "--out", "f.csv", "--focus-version", "1.3"), "one of 1.2, 1.4"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(run, made, words, why):
    code, _, err = run("export", words[0], "--db", made, *words[1:])
    assert (code, why in err, err.count("\n")) == (1, True, 1)
