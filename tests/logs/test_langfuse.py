"""Langfuse observations: disjoint or subset style as the total says, rollups left out, the last version of each."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import duckdb
import pytest

from tenfold.logs import load

SAMPLES = Path(__file__).parents[1] / "samples"
DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data")) / "langfuse"


def observation(number, usage=None, **more):
    return {
        "id": f"o{number}",
        "traceId": "t",
        "type": "GENERATION",
        "model": "gpt-4o",
        "startTime": f"2026-11-02T10:00:{number:02}.000Z",
        "usageDetails": usage or {},
        "parentObservationId": None,
        **more,
    }


def written(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def counts(row):
    return tuple(
        row[name]
        for name in (
            "input_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "cache_write_long_tokens",
            "output_tokens",
            "reasoning_tokens",
        )
    )


# usage map -> input, read, written, written for long, output, reasoning; flags
STYLES = {
    # B004: 86 fresh and 17,817 cached are 17,903, whichever way the map says it.
    "disjoint": (
        {"input": 86, "input_cached_tokens": 17817, "output": 9, "total": 17912},
        (17903, 17817, 0, None, 9, None),
        set(),
    ),
    "subset": (
        {"input": 17903, "input_cached_tokens": 17817, "output": 9, "total": 17912},
        (17903, 17817, 0, None, 9, None),
        set(),
    ),
    # B005: LangChain's cache_read of the second of two equal calls.
    "langchain": (
        {"input": 207, "input_cache_read": 1792, "output": 5, "total": 2004},
        (1999, 1792, 0, None, 5, None),
        set(),
    ),
    "openinference": (
        {"input": 1999, "prompt_details.cache_read": 1792, "output": 5, "total": 2004},
        (1999, 1792, 0, None, 5, None),
        set(),
    ),
    # import 14: Anthropic 5 + 128,955 + 1,253; an instrumentation that made it inclusive: 130,213
    "anthropic": (
        {
            "input": 5,
            "cache_read_input_tokens": 128955,
            "cache_creation_input_tokens": 1253,
            "output": 640,
            "total": 130853,
        },
        (130213, 128955, 1253, 0, 640, None),
        set(),
    ),
    "anthropic made inclusive": (
        {
            "input": 130213,
            "cache_read_input_tokens": 128955,
            "cache_creation_input_tokens": 1253,
            "output": 640,
            "total": 130853,
        },
        (130213, 128955, 1253, 0, 640, None),
        set(),
    ),
    "by lifetime": (
        {"input": 5, "input_cache_creation_5m": 100, "input_cache_creation_1h": 40, "output": 1, "total": 146},
        (145, 0, 140, 40, 1, None),
        set(),
    ),
    "input disjoint, output subset": (
        {"input": 86, "input_cached_tokens": 545, "output": 35, "output_reasoning_tokens": 10, "total": 666},
        (631, 545, 0, None, 35, 10),
        set(),
    ),
    "input subset, output disjoint": (
        {"input": 631, "input_cached_tokens": 545, "output": 25, "output_reasoning_tokens": 10, "total": 666},
        (631, 545, 0, None, 35, 10),
        set(),
    ),
    # no total: the keys' own style, and the row says that nothing proves it
    "no total": (
        {"input": 86, "input_cached_tokens": 545, "output": 35},
        (631, 545, 0, None, 35, None),
        {"convention_unproven"},
    ),
    "no total, parts named": (
        {"input": 631, "prompt_details.cache_read": 545, "output": 35},
        (631, 545, 0, None, 35, None),
        {"convention_unproven"},
    ),
    "total of neither": (
        {"input": 86, "input_cached_tokens": 545, "output": 35, "total": 9},
        (631, 545, 0, None, 35, None),
        {"convention_unproven", "total_mismatch"},
    ),
    # a large input without details: nobody said how much of it was cached
    "plain": ({"input": 2000, "output": 5, "total": 2005}, (2000, None, None, None, 5, None), set()),
    "plain and small": ({"input": 20, "output": 5, "total": 25}, (20, 0, 0, None, 5, None), set()),
    "input only": ({"input": 1988, "total": 1988}, (1988, None, None, None, None, None), set()),
    "none": ({}, (None,) * 6, {"usage_missing"}),
    "cached more than there is": (
        {"input": 100, "prompt_details.cache_read": 150, "output": 5, "total": 105},
        (None, None, 0, None, 5, None),
        {"cache_gt_input"},
    ),
    "no count": ({"input": 2.5, "output": 5}, (None, None, None, None, 5, None), {"bad_count"}),
    "another key": (
        {"input": 20, "output": 5, "search_units": 2, "total": 27},
        (20, 0, 0, None, 5, None),
        {"unknown_usage_key", "total_mismatch"},
    ),
}


@pytest.fixture(scope="module")
def styles(tmp_path_factory):
    rows = [observation(number, usage) for number, (usage, _, _) in enumerate(STYLES.values())]
    log = load(written(tmp_path_factory.mktemp("styles") / "a.jsonl", rows))
    return dict(zip(STYLES, log.requests.to_dicts(), strict=True))


@pytest.mark.parametrize("name", STYLES)
def test_the_total_decides_the_style(styles, name):
    _, right, flags = STYLES[name]
    row = styles[name]
    got = counts(row)
    if right[3] == 0:
        got = (*got[:3], got[3] or 0, *got[4:])
    assert got == right
    assert set(row["flags"] or ()) == flags


def blob(row):
    """Write an observation as the blob storage export does."""
    names = {
        "traceId": "trace_id",
        "startTime": "start_time",
        "endTime": "end_time",
        "completionStartTime": "completion_start_time",
        "usageDetails": "usage_details",
        "costDetails": "cost_details",
        "parentObservationId": "parent_observation_id",
        "model": "provided_model_name",
    }
    found = {names.get(key, key): value for key, value in row.items() if key not in {"latency", "timeToFirstToken"}}
    for key in ("start_time", "end_time", "completion_start_time"):
        if key in found:
            found[key] = found[key].replace("T", " ").replace("Z", "000")
    return found


# The blob's names and types in a CSV, and a document of one trace; the others are these one by one.
@pytest.mark.parametrize(
    "kind", ["blob csv", "trace", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("csv", "blob", "list"))]
)
def test_every_export_says_the_same(tmp_path, kind):
    rows = [json.loads(line) for line in (SAMPLES / "langfuse_observations.jsonl").read_text().splitlines()]
    rows = [{**dict.fromkeys(rows[1]), **row} for row in rows]  # a CSV's header is the first row's keys
    if "blob" in kind:
        rows = [blob({k: v for k, v in row.items() if v is not None}) for row in rows]
        rows = [{**dict.fromkeys(rows[1]), **row} for row in rows]
    file = tmp_path / "a.json"
    if "csv" in kind:
        with file.open("w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, fieldnames=list(rows[0]), quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(
                {k: json.dumps(v) if isinstance(v, dict) else "" if v is None else v for k, v in row.items()}
                for row in rows
            )
    elif kind == "blob":
        written(file, rows)
    else:
        trace = {"trace": {"id": "tr-1", "userId": None}, "observations": rows}
        file.write_text(json.dumps(rows if kind == "list" else trace, indent=2))
    place = ["source_file", "source_line"]
    plain = load(SAMPLES / "langfuse_observations.jsonl")
    log = load(file)
    assert log.requests.drop(place).to_dicts() == plain.requests.drop(place).to_dicts()
    assert log.summary == plain.summary


def test_the_last_version_wins(tmp_path):
    first = observation(1, {"input": 20, "output": 5, "total": 25}, updatedAt="2026-11-02T10:00:01Z")
    last = observation(1, {"input": 20, "output": 9, "total": 29}, updatedAt="2026-11-02T10:00:09Z")
    for rows in ([first, last], [last, first]):
        log = load(written(tmp_path / "a.jsonl", rows))
        assert log.requests["output_tokens"].to_list() == [9]
        assert log.summary["merged"] == 1
    blobs = [
        {**blob(row), "event_ts": when} for row, when in ((last, "2026-11-02 10:00:09"), (first, "2026-11-02 10:00:01"))
    ]
    assert load(written(tmp_path / "b.jsonl", blobs)).requests["output_tokens"].to_list() == [9]


def test_rollups_do_not_count(tmp_path):
    whole = {"input": 631, "output": 35, "total": 666}
    rows = [
        observation(1, whole, type="AGENT"),
        observation(2, whole, type="CHAIN"),
        observation(3, whole, type="SPAN"),
        observation(4, whole, parentObservationId="o1"),
        observation(5, whole, parentObservationId="o4"),  # the same call, instrumented twice
        observation(6, {"input": 7, "total": 7}, type="EMBEDDING", parentObservationId="o1"),
    ]
    log = load(written(tmp_path / "a.jsonl", rows))
    found = {row["request_id"]: (row["input_tokens"], row["operation"]) for row in log.requests.to_dicts()}
    assert found == {"o5": (631, "chat"), "o6": (7, "embeddings")}
    assert [log.summary[name] for name in ("requests", "merged", "ignored", "rejected")] == [2, 1, 3, 0]


@pytest.mark.full
def test_two_instrumentations_that_disagree_are_flagged(tmp_path):
    rows = [
        observation(1, {"input": 542, "output": 235, "total": 777}),
        observation(2, {"input": 163, "output": 20, "total": 183}, parentObservationId="o1"),
    ]
    (row,) = load(written(tmp_path / "a.jsonl", rows)).requests.to_dicts()
    assert (row["request_id"], row["flags"]) == ("o2", ["rollup_differs"])


def test_owners_and_what_became_of_it(tmp_path):
    rows = [
        observation(
            1,
            {"input": 1, "output": 1, "total": 2},
            sessionId="s",
            userId="u",
            projectId="p",
            environment="prod",
            totalCost=0.5,
            metadata={"team": "search", "attributes": {"gen_ai.system": "gcp.vertex_ai"}},
        ),
        observation(2, level="ERROR", metadata="plain text", statusMessage="timed out"),
    ]
    log = load(written(tmp_path / "a.jsonl", rows))
    one, two = log.requests.to_dicts()
    names = ("session_id", "user_id", "project", "environment", "team", "provider", "status", "is_billable")
    assert [one[name] for name in names] == ["s", "u", "p", "prod", "search", "vertex", "success", True]
    assert (float(one["cost_logged_usd"]), str(one["ts"])) == (0.5, "2026-11-02 10:00:01")
    assert (two["status"], two["is_billable"], two["team"]) == ("error", False, None)


@pytest.mark.full
def test_broken_lines_are_named(tmp_path):
    file = tmp_path / "a.jsonl"
    good = json.dumps(observation(1, {"input": 20, "output": -5, "total": 25}))
    foreign = json.dumps({"id": "c", "object": "chat.completion", "usage": {"prompt_tokens": 1}})
    file.write_text(f"{good}\n{foreign}\n{good[:60]}\n")
    db = tmp_path / "u.duckdb"
    log = load(file, db=db)
    assert dict(log.rejects.select("source_line", "reason").iter_rows()).keys() == {2, 3}
    assert "openai_chat" in log.rejects.filter(log.rejects["source_line"] == 2)["reason"][0]
    (row,) = log.requests.to_dicts()
    assert (row["source_line"], row["output_tokens"], row["flags"]) == (1, None, ["bad_count"])
    assert load(file, db=db).summary["requests"] == 0


@pytest.mark.full
@pytest.mark.real_data
def test_real_traces():
    if not DATA.is_dir():
        pytest.skip("no real data: set TENFOLD_REAL_DATA")
    log = load(DATA)
    assert (log.summary["files"], log.summary["rejected"]) == (13, 0)
    files = {}
    for row in log.requests.to_dicts():
        one = files.setdefault(Path(row["source_file"]).name.split("-2")[0], [0, 0, 0])
        one[0] += 1
        one[1] += row["input_tokens"] or 0
        one[2] += row["output_tokens"] or 0
    assert files == {
        "agno": [2, 826, 245],  # each call twice, by two instrumentations that disagree
        "autogen": [1, 41, 3],
        "beeai": [5, 5542, 0],  # input alone; two calls without usage
        "google-adk": [2, 67, 9],
        "google-gemini": [1, 6, 2055],
        "google-vertex-tools-langchain": [1, 1200, 15],
        "koog": [2, 215, 125],
        "langgraph": [2, 168, 66],
        "llamaindex": [1, 13, 81],
        "microsoft-agent": [2, 656, 105],  # 631 + 25; the agent's own 631 left out
        "openai-agents": [2, 140, 44],
        "openai-assistants": [1, 49, 40],
        "pydantic-ai-tools": [4, 1315, 209],
    }


@pytest.mark.full
def test_import_rollups_over_several_levels_do_not_add_up(tmp_path):
    whole = {"input": 631, "output": 35, "total": 666}
    two = {"input": 30, "output": 3, "total": 33}
    rows = [
        observation(1, whole, type="AGENT"),
        observation(2, type="CHAIN", parentObservationId="o1"),
        observation(3, whole, parentObservationId="o2"),  # a generation around another, with a tool between
        observation(4, type="TOOL", parentObservationId="o3"),
        observation(5, whole, parentObservationId="o4"),
        observation(6, {"input": 50, "output": 5, "total": 55}),  # says 50 and 5, below it are 60 and 6
        observation(7, type="SPAN", parentObservationId="o6"),
        observation(8, two, parentObservationId="o7"),
        observation(9, two, parentObservationId="o7"),
        observation(10, two, parentObservationId="o11"),  # two that stand above each other: odd, and kept
        observation(11, two, parentObservationId="o10"),
    ]
    file = written(tmp_path / "a.jsonl", rows)
    log = load(file)
    found = {row["request_id"]: (row["input_tokens"], row["flags"]) for row in log.requests.to_dicts()}
    assert found == {
        "o5": (631, None),
        "o8": (30, ["rollup_differs"]),
        "o9": (30, ["rollup_differs"]),
        "o10": (30, ["rollup_differs"]),
        "o11": (30, ["rollup_differs"]),
    }
    assert [log.summary[name] for name in ("requests", "merged", "ignored", "rejected")] == [5, 2, 4, 0]


@pytest.mark.parametrize("style", ["maps", pytest.param("text", marks=pytest.mark.full)])
def test_a_parquet_export_says_the_same(tmp_path, style):
    rows = [json.loads(line) for line in (SAMPLES / "langfuse_observations.jsonl").read_text().splitlines()]
    rows = [blob(row) for row in rows]
    rows = [{**dict.fromkeys(rows[1]), **row} for row in rows]
    (tmp_path / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    maps = "usage_details::MAP(VARCHAR, UBIGINT) AS usage_details, cost_details::MAP(VARCHAR, DECIMAL(38, 12)) AS "
    texts = "usage_details::VARCHAR AS usage_details, cost_details::VARCHAR AS "
    columns = "start_time::TIMESTAMP AS start_time, end_time::TIMESTAMP AS end_time, "
    kind = "usage_details: 'JSON', cost_details: 'JSON'" + "".join(
        f", {name}: 'VARCHAR'" for name in rows[0] if name not in {"usage_details", "cost_details"}
    )
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * REPLACE ({columns}{maps if style == 'maps' else texts}cost_details) "
            f"FROM read_ndjson('{tmp_path}/a.json', columns={{{kind}}})) TO '{tmp_path}/a.parquet'"
        )
    place = ["source_file", "source_line"]
    plain = load(SAMPLES / "langfuse_observations.jsonl")
    log = load(tmp_path / "a.parquet")
    assert log.requests.drop(place).to_dicts() == plain.requests.drop(place).to_dicts()
