"""The shipped demo logs against the truth that their generator wrote beside them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tenfold.logs import load

DEMO = Path(__file__).parents[2] / "data" / "demo"
TRUTH = json.loads((DEMO / "truth.json").read_text(encoding="utf-8"))["files"]

WHO = {"environment", "api_key_id"}
NOT_LOGGED = {name: set() for name in TRUTH} | {"gateway.csv": WHO}
WITHOUT_SESSIONS = {"gateway.csv"}


# One of JSON and the table with a map; the whole demo is loaded again for its plan (tests/planning/test_demo_plan.py).
QUICK = {"openai_responses.jsonl.gz", "gateway.csv"}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in TRUTH]
)
def test_every_line_is_accounted_for_and_every_token_counted(name):
    right = TRUTH[name]
    log = load(DEMO / name, map=DEMO / "gateway.map.toml" if name == "gateway.csv" else None)
    summary = log.summary
    assert (summary["requests"], summary["duplicates"]) == (right["requests"], right["duplicates"])
    assert log.rejects["source_line"].to_list() == [reject["line"] for reject in right["rejected"]]
    rows = log.requests
    lines = right["physical_lines"] - right["header_lines"]
    assert lines == summary["requests"] + summary["duplicates"] + summary["merged"] + summary["rejected"]
    for flag, flagged in right["flagged"].items():
        found = rows.filter(pl.col("flags").list.contains(flag))
        assert sorted(found["source_line"]) == flagged, flag
    if name != "gateway.csv":  # its log says nothing about the outcome
        assert dict(rows["status"].value_counts().iter_rows()) == right["status"]
    # Who: every log of the demo names all of these, but for jobs and single calls, which have no session.
    who = {"team", "feature", "user_id"} | (WHO - NOT_LOGGED[name])
    assert {column for column in who if rows[column].null_count() == 0} == who
    if name not in WITHOUT_SESSIONS:
        assert rows["session_id"].null_count() < rows.height
    hit = pl.col("gateway_cache_hit").fill_null(value=False)
    whole = pl.col("input_tokens").is_not_null() & pl.col("output_tokens").is_not_null()
    billed = rows.filter(whole & ~hit & pl.col("is_billable").fill_null(value=True))
    counted = {column: billed[column].sum() for column in right["counted"] if column != "requests"}
    assert {"requests": billed.height, **counted} == right["counted"]
    assert rows.filter(hit).height == right["gateway_cache_hits"]
