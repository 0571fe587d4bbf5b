"""Tables of one's own: through a map, or by tenfold's column names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest
from log_files import SAMPLES, counted, write
from quick import few

from tenfold.errors import AssumptionError, LogFormatError
from tenfold.logs import load, open_log

DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))


AZURE_MAP = """
[columns]
ts = "TIMESTAMP"
input_tokens = "ContextTokens"
output_tokens = "GeneratedTokens"
[constants]
provider = "azure"
model = "gpt-4"
service_tier = "default"
"""


@pytest.fixture
def azure_map(tmp_path):
    file = tmp_path / "azure.toml"
    file.write_text(AZURE_MAP)
    return file


def test_a_table_is_read_through_a_map(azure_map):
    log = load(SAMPLES / "azure_llm_trace.csv", map=azure_map)
    rows = log.requests.to_dicts()
    assert [(str(row["ts"]), row["input_tokens"], row["output_tokens"]) for row in rows] == [
        ("2023-11-16 18:15:46.680590", 374, 44),
        ("2023-11-16 18:15:50.995169", 396, 109),
    ]
    assert {(row["provider"], row["model"], row["service_tier"]) for row in rows} == {("azure", "gpt-4", "standard")}
    assert {tuple(row["flags"]) for row in rows} == {("naive_ts",)}
    assert [row["source_line"] for row in rows] == [2, 3]


def test_naive_times_mean_the_zone_that_was_named(azure_map):
    log = load(SAMPLES / "azure_llm_trace.csv", map=azure_map, zone="America/New_York")
    # 18:15 in New York is 23:15 UTC in November
    assert str(log.requests["ts"][0]) == "2023-11-16 23:15:46.680590"
    assert log.requests["flags"].null_count() == 2
    with pytest.raises(AssumptionError, match="Europe/Berlin"):
        load(SAMPLES / "azure_llm_trace.csv", map=azure_map, zone="Europe/Berln")


def test_the_same_rows_under_other_settings_cannot_count_twice(azure_map, tmp_path):
    db = tmp_path / "log.duckdb"
    load(SAMPLES / "azure_llm_trace.csv", map=azure_map, db=db)
    with pytest.raises(LogFormatError, match="already loaded"):
        load(SAMPLES / "azure_llm_trace.csv", map=azure_map, db=db, zone="America/New_York")
    assert open_log(db).requests.height == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[colums]\nts = 'a'", ["colums", 'Did you mean "columns"']),
        ("[columns]\ninput_token = 'a'", ["input_token", 'Did you mean "input_tokens"']),
        (
            "[columns]\ninput_tokens = 'ContextToken'",
            ["ContextToken", 'Did you mean "ContextTokens"', "azure_llm_trace.csv"],
        ),
        ("[columns]\ninput_tokens = 'ContextTokens'\ncache_read_tokens = 'GeneratedTokens'", ["convention"]),
        ("convention = 'in'\n[columns]\ninput_tokens = 'ContextTokens'", ["convention", "inclusive"]),
        ("[columns]\nts = 'TIMESTAMP'", ["neither input_tokens nor output_tokens"]),
        ("[columns\n", ["not valid TOML"]),
        ("zone = 'Mars'\n[columns]\ninput_tokens = 'ContextTokens'", ["zone", "Mars"]),
        ("dedup_key = ['id']\n[columns]\ninput_tokens = 'ContextTokens'", ["dedup_key", '"id"']),
        ("[columns]\ninput_tokens = 'ContextTokens'\n[constants]\noutput_tokens = 5", ["output_tokens"]),
    ],
    ids=range(10),
)
def test_a_map_that_does_not_fit_is_refused_by_name(tmp_path, text, words):
    file = tmp_path / "map.toml"
    file.write_text(text)
    with pytest.raises(LogFormatError) as caught:
        load(SAMPLES / "azure_llm_trace.csv", map=file)
    for word in [*words, "map.toml"]:
        assert word in str(caught.value)


def test_an_exclusive_table_becomes_inclusive_and_its_total_may_prove_another_reading(tmp_path):
    file = tmp_path / "a.csv"
    # 10 + 5 + 90 = 105 is exclusive as declared; 100 + 5 = 105 is inclusive; 7 fits neither.
    file.write_text(
        "id,in,cached,out,all,T.ime\na,10,90,5,105,1793577600\nb,100,90,5,105,1793577600123\nc,10,90,5,7,2026-11-02T00:00:00+01:00\n"
    )
    columns = {"request_id": "id", "input_tokens": "in", "cache_read_tokens": "cached", "output_tokens": "out"}
    mapping = {"convention": "exclusive", "columns": {**columns, "total_tokens": "all", "ts": "T.ime"}}
    rows = {row["request_id"]: row for row in load(file, map=mapping).requests.to_dicts()}
    assert {name: row["input_tokens"] for name, row in rows.items()} == {"a": 100, "b": 100, "c": 100}
    assert {name: row["flags"] for name, row in rows.items()} == {
        "a": None,
        "b": ["convention_by_total"],
        "c": ["total_mismatch"],
    }
    assert str(rows["b"]["ts"]) == "2026-11-02 00:00:00.123000"
    assert str(rows["c"]["ts"]) == "2026-11-01 23:00:00"


def test_json_lines_are_mapped_by_path(tmp_path):
    file = write(tmp_path / "a.jsonl", [{"meta": {"at": 1793577600}, "u": {"in": 7, "out": 2}, "team": "x"}])
    mapping = {"columns": {"ts": "meta.at", "input_tokens": "u.in", "output_tokens": "u.out", "team": "team"}}
    (row,) = load(file, map=mapping).requests.to_dicts()
    assert (str(row["ts"]), row["input_tokens"], row["output_tokens"], row["team"]) == (
        "2026-11-02 00:00:00",
        7,
        2,
        "x",
    )


IDENTITY = [
    {
        "request_id": "a",
        "ts": "2026-11-02T00:00:00Z",
        "provider": "vertex_ai",
        "model": "m",
        "input_tokens": 100,
        "cache_read_tokens": 40,
        "output_tokens": 5,
        "is_stream": True,
        "prompt_hash": 77,
        "prefix_hashes": ["h1", "h2"],
        "tags": {"k": "v"},
        "duration_ms": 12.5,
        "attempt": 0,
    },
    {
        "request_id": "a",
        "ts": "2026-11-02T00:00:01Z",
        "provider": "vertex_ai",
        "model": "m",
        "input_tokens": 100,
        "cache_read_tokens": None,
        "output_tokens": 6,
        "is_stream": False,
        "prompt_hash": 78,
        "prefix_hashes": None,
        "tags": None,
        "duration_ms": None,
        "attempt": 1,
    },
]


@pytest.mark.parametrize("kind", few(1, ["jsonl", "csv", "parquet"]))
def test_tenfolds_own_column_names_need_no_map(tmp_path, kind):
    file = tmp_path / f"a.{kind}"
    if kind == "jsonl":
        write(file, IDENTITY)
    elif kind == "csv":
        nested = [
            {
                **row,
                "prefix_hashes": row["prefix_hashes"] and json.dumps(row["prefix_hashes"]),
                "tags": row["tags"] and json.dumps(row["tags"]),
            }
            for row in IDENTITY
        ]
        pl.DataFrame(nested).write_csv(file)
    else:
        frame = pl.DataFrame([{**row, "tags": None} for row in IDENTITY])
        frame.with_columns(ts=pl.col("ts").str.to_datetime(time_zone="UTC").dt.replace_time_zone(None)).write_parquet(
            file
        )
    rows = load(file).requests.sort("attempt").to_dicts()
    got = [
        (r["request_id"], str(r["ts"]), r["provider"], r["input_tokens"], r["cache_read_tokens"], r["output_tokens"])
        for r in rows
    ]
    assert got == [
        ("a", "2026-11-02 00:00:00", "vertex", 100, 40, 5),
        ("a", "2026-11-02 00:00:01", "vertex", 100, None, 6),
    ]
    first = rows[0]
    assert (first["is_stream"], first["prompt_hash"], first["prefix_hashes"]) == (True, "77", ["h1", "h2"])
    assert (first["duration_ms"], first["flags"]) == (12.5, None)
    if kind != "parquet":
        assert first["tags"] == {"k": "v"}


def test_a_count_column_that_is_almost_ours_is_refused(tmp_path):
    file = write(
        tmp_path / "a.jsonl", [{"ts": 1793577600, "input_tokens": 1, "output_tokens": 1, "cached_read_tokens": 1}]
    )
    with pytest.raises(LogFormatError, match='Did you mean "cache_read_tokens"'):
        load(file)


def test_rows_without_an_id_are_kept_and_repeats_are_suspected(azure_map, tmp_path):
    file = tmp_path / "a.csv"
    line = "2023-11-16 18:15:46.6805900,374,44\n"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + line + line + "2023-11-16 18:15:47,374,44\n")
    log = load(file, map=azure_map, zone="UTC")
    assert counted(log) == (3, 0, 0, 0)
    assert log.requests.sort("source_line")["flags"].to_list() == [["dup_suspect"], ["dup_suspect"], None]
    assert log.summary["flagged"] == 2


@pytest.mark.full
def test_a_grown_export_without_ids_is_suspected_and_with_a_key_known(tmp_path):
    head, rows = "t,u,in,out\n", ["1793577600,ann,5,1\n", "1793577601,bob,6,2\n", "1793577602,,6,2\n"]
    columns = {"ts": "t", "user_id": "u", "input_tokens": "in", "output_tokens": "out"}
    file = tmp_path / "a.csv"
    for key, right in ((None, (3, 0, 0, 0)), (["ts", "user_id"], (1, 2, 0, 0))):
        mapping = {"columns": columns} | ({"dedup_key": key} if key else {})
        db = tmp_path / f"{key is None}.duckdb"
        file.write_text(head + "".join(rows[1:]))
        load(file, map=mapping, db=db)
        file.write_text(head + "".join(rows))
        log = load(file, map=mapping, db=db)
        assert counted(log) == right, key
        # without a key all stay counted; those that equal rows stored before are named
        assert log.requests.height == (5 if key is None else 3)
        assert log.flags == ({"dup_suspect": 2} if key is None else {})
        assert log.summary["flagged"] == (2 if key is None else 0)


def test_rows_that_only_look_alike_are_no_suspects(tmp_path):
    db, names = tmp_path / "log.duckdb", ("a", "b", "c")
    for name in names:
        row = {"ts": 1793577600, "input_tokens": 1, "output_tokens": 1, "feature": name}
        log = load(write(tmp_path / f"{name}.jsonl", [row]), db=db)
        assert log.flags == {}
    log = load(write(tmp_path / "d.jsonl", [row, {**row, "feature": "d"}]), db=db)
    assert log.requests.filter(pl.col("flags").is_not_null())["source_line"].to_list() == [1]


def test_parts_of_a_key_do_not_run_into_each_other(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("t,u,in,out\na|b,c,5,1\na,b|c,6,9\n,,7,1\n")
    columns = {"team": "t", "user_id": "u", "input_tokens": "in", "output_tokens": "out"}
    log = load(file, map={"columns": columns, "dedup_key": ["team", "user_id"]})
    assert (counted(log), log.requests["dedup_key"].null_count()) == ((3, 0, 0, 0), 1)


@pytest.mark.parametrize(
    ("column", "value", "wanted"),
    [
        ("is_billable", "maybe", "true or false"),
        ("is_stream", "", "true or false"),
        ("preemptions", "x", "a whole number"),
        ("preemptions", "3.7", "a whole number"),
        ("kv_usage_ratio", "half", "a number"),
    ],
)
def test_a_constant_that_is_no_value_of_its_column_is_refused(tmp_path, column, value, wanted):
    file = write(tmp_path / "a.jsonl", [{"ts": 1793577600, "input_tokens": 1, "output_tokens": 1}])
    with pytest.raises(LogFormatError, match=f'{column} = "{value}" cannot be read: it takes {wanted}'):
        load(file, set={column: value})
    mapping = {"columns": {"input_tokens": "input_tokens"}, "constants": {column: value}}
    with pytest.raises(LogFormatError, match=column):
        load(file, map=mapping)


def test_a_maps_attempt_is_checked_and_a_readable_constant_is_stored(tmp_path):
    file = write(tmp_path / "a.jsonl", [{"ts": 1793577600, "input_tokens": 1, "output_tokens": 1}])
    mapping = {"columns": {"input_tokens": "input_tokens"}, "constants": {"attempt": "x"}}
    with pytest.raises(LogFormatError, match='attempt = "x" cannot be read: it takes a whole number'):
        load(file, map=mapping)
    rows = load(file, set={"is_billable": "No", "preemptions": " 2 ", "kv_usage_ratio": "0.5"}).requests
    assert rows.select("is_billable", "preemptions", "kv_usage_ratio").rows() == [(False, 2, 0.5)]


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "requests"), few(1, [("conv", 19366), ("code", 8819)]))
def test_azure_traces(name, requests, azure_map):
    file = DATA / "azure" / f"AzureLLMInferenceTrace_{name}.csv"
    if not file.is_file():
        pytest.skip("no real data: set TENFOLD_REAL_DATA")
    log = load(file, map=azure_map)
    assert counted(log) == (requests, 0, 0, 0)
    frame = pl.read_csv(file)
    assert log.requests["input_tokens"].sum() == frame["ContextTokens"].sum()
    assert log.requests["output_tokens"].sum() == frame["GeneratedTokens"].sum()


def test_times_in_other_units_become_milliseconds(tmp_path):
    file = write(
        tmp_path / "times.jsonl",
        [
            {"out": 3, "wall": 7.5, "first": 250_000, "waited": 12.5, "good": True},
            {"out": 4, "wall": "soon", "first": None, "waited": "1e1", "good": False},
        ],
    )
    columns = {
        "output_tokens": "out",
        "duration_ms": "wall",
        "ttft_ms": "first",
        "queue_ms": "waited",
        "status": "good",
    }
    log = load(file, map={"columns": columns, "units": {"duration_ms": "s", "ttft_ms": "us", "queue_ms": "ms"}})
    rows = log.requests.sort("source_line").to_dicts()
    assert [(row["duration_ms"], row["ttft_ms"], row["queue_ms"]) for row in rows] == [
        (7500, 250, 12.5),
        (None, None, 10),
    ]
    assert [row["status"] for row in rows] == ["success", "error"]
    assert ["bad_value" in row["flags"] for row in rows] == [False, True]
    for units, says in (
        ({"duration_ms": "sec"}, 'units] duration_ms = "sec": one of s, ms, us, ns'),
        ({"input_tokens": "s"}, "Units are for duration_ms, ttft_ms, queue_ms"),
    ):
        with pytest.raises(LogFormatError) as refused:
            load(file, map={"columns": columns, "units": units})
        assert says in str(refused.value)
