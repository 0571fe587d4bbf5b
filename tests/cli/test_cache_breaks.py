"""`tenfold levers --breaks`: what breaks the prompt cache, as a table for people and in the document for scripts."""

import json
from decimal import Decimal

import polars as pl
import pytest
from cached_turns import blocks, late, turn

COLUMNS = (
    *("provider", "model", "ts", "session_id", "feature", "org", "input_tokens", "output_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "cache_write_long_tokens", "prefix_hashes", "prefix_block_tokens"),
)


def broken(name, feature, text):
    """Two turns a minute apart whose first block differs: 12,800 tokens written twice, 3.45 a million lost."""
    return [
        turn(60 * n, 0, 12_800, blocks=blocks(100, (0, f"{text} {n}")), session_id=name, feature=feature)
        for n in range(2)
    ]


@pytest.fixture
def db(run, tmp_path):
    rows = [
        *broken("a", "support", "head"),
        *broken("b", "support", "head"),
        *(turn(at, 0, 20_000, blocks=blocks(156, (0, "gap")), session_id="g", feature="review") for at in (0, 301)),
        turn(0, 10_000, 0, blocks=blocks(78, (0, "r")), session_id="r", feature="fine"),
        late(),
    ]
    rows = [{name: one.get(name) for name in COLUMNS} for one in rows]
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(tmp_path / "requests.parquet")
    code, _, err = run("load", "requests.parquet", "--db", "u.duckdb")
    assert code == 0, err
    return "u.duckdb"


def test_document(as_json, db):
    found = as_json("levers", "--db", db, "--breaks")["cache_breaks"]
    ranked = [(one["cause"], one["feature"], one["turns"], one["tokens"], one["cost_usd"]) for one in found["ranked"]]
    # 2 x 12,800 and 20,000 tokens that were written at 3.75 instead of read at 0.30
    assert ranked[:2] == [
        ("prefix_broken", "support", 2, 25_600, "0.08832"),
        ("gap", "review", 1, 20_000, "0.069"),
    ]
    total = sum(Decimal(one["cost_usd"]) for one in found["ranked"] if one["label"] == "replayed")
    assert Decimal(found["cost_usd"]) == total


def test_text(run, db):
    code, out, err = run("levers", "--db", db, "--breaks")
    assert code == 0, err
    said = " ".join(out.split())
    assert "What breaks the prompt cache: $0." in said
    head = said.index("beginning changed support 2 25,600 $0.09")
    assert head < said.index("pause longer than the cache lives review 1 20,000 $0.07")
    assert "Put tools and fixed text first and what changes last." in said
    assert "Not told without kept texts (load with --keep-text): what changed in a prompt." in said
    # 20,000 x 3.45 against the one write that is left, at 6 instead of 3.75
    assert "Ask for the longer lifetime: net of its dearer writes it would have saved $0.02." in said
    named = "Dearest cache break so far: beginning changed in `support` (2 turns, $0.09 lost)."
    assert named in said
    assert "cache break" not in run("levers", "--db", db)[1]


def test_refused_with_track(run):
    code, _, err = run("levers", "--db", "u.duckdb", "--breaks", "--track", "plan.json")
    assert code == 1
    assert "leave it out with --track" in err


def test_help_says_where_the_document_has_it(run):
    out = " ".join(run("levers", "--help")[1].split())
    assert "--breaks" in out


def test_a_log_without_what_it_takes(run, tmp_path):
    one = {
        "provider": "openai",
        "model": "gpt-4.1",
        "ts": "2026-07-01T00:00:00Z",
        "input_tokens": 9,
        "output_tokens": 9,
    }
    (tmp_path / "u.jsonl").write_text(json.dumps(one) + "\n")
    assert run("load", "u.jsonl", "--db", "o.duckdb")[0] == 0
    code, out, _ = run("levers", "--db", "o.duckdb", "--breaks")
    said = " ".join(out.split())
    assert code == 3  # no lever can be measured either
    assert "What breaks the prompt cache: nothing found." in said
    assert "Not told without session_id and cache_read_tokens: pauses, model switches." in said
