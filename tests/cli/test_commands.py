"""The command line as scripts use it: JSON on standard output and nothing else, exit codes, one-line errors."""

import json
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from tenfold.levers import LEVERS

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "samples"
MAP = """
convention = "inclusive"
[columns]
ts = "TIMESTAMP"
input_tokens = "ContextTokens"
output_tokens = "GeneratedTokens"
[constants]
provider = "openai"
model = "gpt-4.1"
"""


@pytest.fixture(scope="module")
def made(main_in, tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    samples = (SAMPLES / "openai_chat.jsonl", SAMPLES / "anthropic_messages.jsonl")
    code = main_in(folder, "load", *samples, "--db", "u.duckdb")
    assert code == 0
    return folder / "u.duckdb"


@pytest.fixture
def db(made, tmp_path):
    return shutil.copy(made, tmp_path / "u.duckdb")


def test_load_says_what_it_did_and_a_second_time_changes_nothing(as_json):
    first = as_json("load", SAMPLES / "openai_chat.jsonl", "--db", "x.duckdb")
    counts = {key: first[key] for key in ("files", "requests", "duplicates", "merged", "rejected", "by_format")}
    assert counts == {
        "files": 1, "requests": 5, "duplicates": 0, "merged": 0, "rejected": 0, "by_format": {"openai_chat": 5},
    }  # fmt: skip
    again = as_json("load", SAMPLES / "openai_chat.jsonl", "--db", "x.duckdb")
    assert (again["requests"], again["duplicates"]) == (0, 5)


def test_cost_rows_sum_to_the_total(as_json, db):
    whole = as_json("cost", "--db", db)
    split = as_json("cost", "--db", db, "--by", "model,team")
    assert sum(Decimal(row["cost_usd"] or 0) for row in split["rows"]) == Decimal(whole["total_usd"])
    assert sum(row["requests"] for row in split["rows"]) == whole["requests"]
    assert {"total_usd", "requests", "coverage", "card_version", "rows"} <= whole.keys()
    assert {"requests_ratio", "tokens_ratio", "unpriced"} <= whole["coverage"].keys()


def test_cost_of_a_known_request_by_hand(as_json, db):
    # gpt-4o: 42 input at 2.50 and 7 output at 10 per million = 0.000105 + 0.00007
    trace = as_json("explain", "--db", db, "--request", "chatcmpl-S003")
    assert Decimal(trace["cost_usd"]) == Decimal("0.000175")
    assert trace["source_line"] == 3
    assert trace["entry"]["file"] == "openai.toml"
    assert {"source_file", "reported", "meters", "how_matched", "rounding"} <= trace.keys()


def test_explain_prints_the_line(run, db):
    code, out, _ = run("explain", "--db", db, "--request", "chatcmpl-S003", "--line")
    assert code == 0
    assert '"id": "chatcmpl-S003"' in out


def test_explain_finds_a_request_by_its_place_and_names_the_way_out(run, as_json, tmp_path):
    text = {"messages": [{"role": "user", "content": "Hello there"}]}
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
    line = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1793577600, "model": "gpt-4o", **text, **answer}
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "t.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")
    both = [SAMPLES / "anthropic_messages.jsonl", SAMPLES / "otlp_traces.jsonl"]
    code, out, _ = run("load", "a.jsonl", "t.csv", *both, "--db", "p.duckdb")
    assert code == 0
    assert "estimated: the token counts of 1 request" in out
    # a row without an id, whose provider no line and no option said
    trace = as_json("explain", "--db", "p.duckdb", "--request", "t.csv:2")
    assert (trace["request_id"], trace["reported"]["input_tokens"], trace["source_line"]) == (None, 374, 2)
    assert "--set provider=NAME" in trace["how_matched"]["reason"]
    # counts that are estimated are not said to be reported
    _, out, _ = run("explain", "--db", "p.duckdb", "--request", "chatcmpl-1")
    assert "\nestimated " in out
    assert "\nreported " not in out
    # one id in two kinds of log
    code, _, err = run("explain", "--db", "p.duckdb", "--request", "msg_S301")
    assert code == 1
    assert "Name one by its place" in err
    place = next(word.rstrip(",") for word in err.split() if "otlp_traces.jsonl:" in word)
    assert as_json("explain", "--db", "p.duckdb", "--request", place)["source_format"] == "otlp"
    # one line that holds two
    code, _, err = run("explain", "--db", "p.duckdb", "--request", "anthropic_messages.jsonl:3")
    assert code == 1
    assert "msg_S303#compaction" in err
    assert run("explain", "--db", "p.duckdb", "--request", "t.csv:99")[0] == 1


@pytest.mark.full
def test_keep_text_says_when_it_comes_too_late(run):
    words = ("load", SAMPLES / "openai_chat.jsonl", "--db", "k.duckdb")
    assert "--keep-text" not in run(*words)[1]
    assert "load into a new database" in run(*words, "--keep-text")[1]


@pytest.mark.full
@pytest.mark.real_data
def test_azure_conversations_cost_what_they_must(as_json, tmp_path, azure_trace):
    (tmp_path / "azure.toml").write_text(MAP)
    for name, requests, usd in (("conv", 19_366, "77.433060"), ("code", 8_819, "38.087116")):
        loaded = as_json("load", azure_trace(name), "--map", "azure.toml", "--db", f"{name}.duckdb")
        assert loaded["requests"] == requests
        cost = as_json("cost", "--db", f"{name}.duckdb", "--price-at", "2026-10-01")
        assert Decimal(cost["total_usd"]) == Decimal(usd)
        assert cost["price_at"] == "2026-10-01T00:00:00+00:00"


@pytest.fixture
def azure_trace():
    import os

    folder = Path(os.environ.get("TENFOLD_REAL_DATA", ROOT.parent / "shared" / "data")) / "azure"
    if not folder.is_dir():
        pytest.skip("no real data: set TENFOLD_REAL_DATA")
    return lambda name: folder / f"AzureLLMInferenceTrace_{name}.csv"


def test_price_exit_codes(run, as_json):
    usage = '{"input_tokens": 1000, "output_tokens": 200}'
    call = ("price", "--provider", "openai", "--at", "2026-10-01")
    priced = as_json(*call, "--model", "gpt-4.1", "--usage", usage)
    assert (priced["status"], Decimal(priced["cost_usd"])) == ("priced", Decimal("0.0036"))  # 1000 x 2 + 200 x 8
    assert priced["meters"]["output"] == {"tokens": 200, "rate_pusd": 8_000_000, "cost_usd": "0.0016"}
    assert {"model", "valid_from", "source", "checked"} <= priced["entry"].keys()
    missing = as_json(*call, "--model", "gpt-4.l", "--usage", usage, code=3)
    assert (missing["status"], missing["cost_usd"]) == ("unpriced_model", None)
    assert run(*call, "--model", "gpt-4.1", "--usage", '{"input_tokens": -1, "output_tokens": 1}')[0] == 1
    assert run(*call, "--model", "gpt-4.1", "--usage", "not json")[0] == 1
    assert run("price", "--provider", "openai")[0] == 2


def test_min_coverage_exits_three_after_the_answer(run, db):
    code, out, err = run("cost", "--db", db, "--json", "--min-coverage", "1.0")
    assert code == 3
    assert json.loads(out)["coverage"]["requests_ratio"] < 1
    assert "--min-coverage" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cost", "--db", "nowhere.duckdb"), "nowhere.duckdb: no such database"),
        (("cost", "--db", "u.duckdb", "--by", "taem"), 'Did you mean "team"?'),
        (("cost", "--db", "u.duckdb", "--zone", "Europe/Berlni"), 'Did you mean "Europe/Berlin"?'),
        (("cost", "--db", "u.duckdb", "--from", "yesterday"), "--from"),
        (("cost", "--db", "u.duckdb", "--prices-only"), "--prices-only needs --prices"),
        (("explain", "--db", "u.duckdb", "--request", "nope"), 'no request "nope"'),
        (("review", "--db", "u.duckdb", "--quarter", "2026-3", "--out", "r.html"), "2026Q"),
        (("load", "missing.jsonl", "--db", "y.duckdb"), "missing.jsonl"),
        (("load", "u.duckdb", "--db", "y.duckdb", "--set", "tier"), "COLUMN=VALUE"),
        (("levers", "--db", "u.duckdb", "--assume", "none.toml"), "none.toml"),
    ],
)
@pytest.mark.usefixtures("db")
def test_errors_are_one_line_that_names_the_place(run, words, says):
    code, out, err = run(*words)
    assert code == 1
    assert out == ""
    assert says in err
    assert len(err.strip().splitlines()) == 1


def test_levers_document(as_json, db):
    found = as_json("levers", "--db", db)
    assert {"spend_usd", "levers", "joint_all_usd", "plan"} <= found.keys()
    assert {"levers", "roadmap", "saving_usd", "fold", "bound_by"} <= found["plan"].keys()
    keys = {
        "name", "number", "label", "addressed_usd", "saving_usd", "alone_usd", "last_usd", "shapley_usd",
        "as_billed_usd", "per_month_usd", "status", "reason", "rule_of_thumb", "assumptions", "conflicts", "evidence",
        "effort_days",
        "risk", "first_action", "verify", "undo",
    }  # fmt: skip
    assert {lever["name"] for lever in found["levers"]} == {lever.name for lever in LEVERS}
    for lever in found["levers"]:
        assert keys <= lever.keys()


@pytest.mark.full
def test_a_lever_without_an_assumption_touches_nothing_in_the_table(run, as_json, db):
    found = {lever["name"]: lever for lever in as_json("levers", "--db", db)["levers"]}
    assert (found["prefix_cache"]["status"], found["prefix_cache"]["addressed_usd"]) == ("no_assumption", "0.00")
    _, out, _ = run("levers", "--db", db)
    line = next(line for line in out.splitlines() if "prefix_cache" in line and "no assumption" in line)
    assert "$" not in line


def test_prices_show_and_check(as_json, run):
    history = as_json("prices", "show", "gpt-5.6-luna", "--provider", "openai")["history"]
    standard = [row for row in history if (row["service_tier"], row["above_input_tokens"]) == ("standard", 0)]
    assert [row["rates_usd"]["input"] for row in standard if not row["region"]] == ["1.00", "0.20"]
    assert run("prices", "show", "gpt-nothing")[0] == 3
    checked = as_json("prices", "check")
    assert checked["entries"] > 500


def test_help_names_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    for name in ("demo", "load", "formats", "cost", "levers", "review", "explain", "price", "prices"):
        assert name in out


def test_formats_are_listed_for_people_and_for_scripts(run, as_json):
    listed = as_json("formats")["formats"]
    found = {one["name"]: one for one in listed}
    assert found["anthropic_messages"]["convention"] == "exclusive"
    assert found["focus"]["containers"] == ["CSV", "Parquet"]
    assert "--set model=NAME" in found["bedrock_batch"]["must_be_set"]
    code, out, _ = run("formats")
    assert code == 0
    assert all(name in out for name in found)


def test_the_columns_that_a_file_may_fill_are_listed(run, as_json):
    told = {one["name"]: one for one in as_json("formats")["columns"]}
    assert told["duration_ms"] == {
        "group": "time", "name": "duration_ms", "type": "DOUBLE", "unit": "ms", "meaning": "start to last token"
    }  # fmt: skip
    assert not {"dedup_key", "price_key", "source_file", "flags", "team_logged"} & told.keys()
    code, out, _ = run("formats", "--columns")
    assert code == 0
    assert all(name in out for name in told)
    assert "anthropic_messages" not in out


def test_a_folder_with_a_stray_file_says_so_loudly(run, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes((SAMPLES / "openai_chat.jsonl").read_bytes())
    (folder / "notes.txt").write_text("hello\n")
    code, out, _ = run("load", str(folder), "--db", str(tmp_path / "u.duckdb"))
    assert code == 0
    assert "NOT READ: 1 file" in out
    assert str(folder / "notes.txt") in out


def test_usage_buckets_alone_do_not_lead_to_cost(run):
    code, out, _ = run("load", SAMPLES / "openai_org_costs.json", "--db", "b.duckdb")
    assert code == 0
    assert "buckets; they are no requests" in out
    assert "tenfold cost" not in out
