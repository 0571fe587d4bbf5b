"""The load as a whole: all or nothing, nothing twice, exact line numbers, packed files, maps, refusals."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import zstandard

from tenfold.errors import AssumptionError, LogFormatError, StoreError
from tenfold.logs import READERS, load, loading, open_log
from tenfold.store.database import Store

SAMPLES = Path(__file__).parents[1] / "samples"
DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
COUNTED = ("requests", "duplicates", "merged", "rejected")
HIDDEN_COLUMNS = ["source_file", "load_id"]


def chat(number, *, prompt=100, completion=10, cached=0, **more):
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
    }
    base = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1793577600 + number, "model": "gpt-5"}
    return {**base, "usage": usage, **more}


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def counted(log):
    return tuple(log.summary[name] for name in COUNTED)


def table(log):
    return log.requests.drop(HIDDEN_COLUMNS).sort("source_line", "request_id").to_dicts()


def test_same_files_again_change_nothing(tmp_path):
    db = tmp_path / "log.duckdb"
    paths = [SAMPLES / "openai_chat.jsonl", SAMPLES / "nasty.jsonl"]
    first = load(paths, db=db)
    before, cube, log_hash = table(first), cells(first), first.log_hash
    again = load(paths, db=db)
    assert counted(again) == (0, 13, 0, 0)
    assert again.rejects.height == 0
    assert first.rejects.height == 4
    reopened = open_log(db)
    assert (table(reopened), cells(reopened), reopened.log_hash) == (before, cube, log_hash)
    assert reopened.summary["requests"] == 13
    assert reopened.summary["by_format"] == {"openai_chat": 13}


def cells(log):
    with log.store.reading() as connection:
        return connection.execute("FROM cube ORDER BY ALL").fetchall()


def test_a_grown_file_adds_only_what_is_new(tmp_path):
    db, file = tmp_path / "log.duckdb", tmp_path / "a.jsonl"
    load(write(file, [chat(1), chat(2)]), db=db)
    log = load(write(file, [chat(1), chat(2), chat(3)]), db=db)
    assert counted(log) == (1, 2, 0, 0)
    assert sorted(log.requests["request_id"]) == ["chatcmpl-1", "chatcmpl-2", "chatcmpl-3"]


def test_files_of_one_call_share_their_ids_and_copies_are_read_once(tmp_path):
    write(tmp_path / "a.jsonl", [chat(1), chat(2)])
    write(tmp_path / "b.jsonl", [chat(2), chat(3)])
    write(tmp_path / "copy.jsonl", [chat(1), chat(2)])
    (tmp_path / ".hidden.jsonl").write_text("no log at all\n")
    (tmp_path / "empty.jsonl").write_text("")
    log = load(tmp_path)
    # a: 2 new; b: 1 repeat, 1 new; copy: both known.
    assert counted(log) == (3, 3, 0, 0)
    assert log.summary["files"] == 4


@pytest.mark.parametrize("packed", ["gzip", "zstd", "two members"])
def test_packed_files_equal_plain_ones_whatever_their_name(tmp_path, packed):
    plain = write(tmp_path / "a.jsonl", [chat(n, metadata={"team": f"t{n % 3}"}) for n in range(3000)])
    content = plain.read_bytes()
    cut = len(content) // 2
    bytes_ = {
        "gzip": gzip.compress(content),
        "zstd": zstandard.compress(content),
        "two members": gzip.compress(content[:cut]) + gzip.compress(content[cut:]),
    }[packed]
    file = tmp_path / "b.log"
    file.write_bytes(bytes_)
    assert table(load(file)) == table(load(plain))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_cut_archive_keeps_the_lines_before_the_cut(tmp_path, pack):
    rows = [chat(n, metadata={"team": os.urandom(12).hex()}) for n in range(20000)]
    plain = write(tmp_path / "plain.jsonl", rows)
    packed = pack(plain.read_bytes())
    file = tmp_path / "cut.jsonl"
    file.write_bytes(packed[: len(packed) // 2])
    log = load(file)
    assert 0 < log.summary["requests"] < 20000
    assert log.summary["rejected"] == 1
    reason = log.rejects.to_dicts()[0]
    assert "archive ends" in reason["reason"]
    assert reason["source_line"] == log.summary["requests"] + 1


def test_line_numbers_are_physical_lines(tmp_path):
    one, two = json.dumps(chat(1)), json.dumps(chat(2, note="a\u2028b"), ensure_ascii=False)
    lines = ["\ufeff" + one, "", two, "{broken", "", '{"id": "x", "usage": [1]}', json.dumps(chat(3))]
    file = tmp_path / "a.jsonl"
    file.write_bytes("\r\n".join(lines).encode())
    log = load(file)
    assert dict(zip(log.requests["request_id"], log.requests["source_line"], strict=True)) == {
        "chatcmpl-1": 1,
        "chatcmpl-2": 3,
        "chatcmpl-3": 7,
    }
    assert [(row["source_line"], row["path"]) for row in log.rejects.to_dicts()] == [(4, None), (6, "$.usage")]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('{"id": "x", "id": "y", "usage": {"prompt_tokens": 1}}', "twice"),
        ('{"id": "x", "usage": {"prompt_tokens": 1}} trailing', "JSON"),
        ('{"id": "x"}{"id": "y"}', "JSON"),
        ('{"usage": {"prompt_tokens_details": 5}}', "expected an object"),
        ('{"choices": {"finish_reason": "stop"}}', "expected a list"),
        ("[" * 100000, "JSON"),
    ],
    ids=["key twice", "trailing text", "two objects", "no object", "no list", "deep"],
)
def test_each_kind_of_bad_line_is_put_aside_with_its_reason(tmp_path, line, word):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(chat(1)) + "\n" + line + "\n" + json.dumps(chat(2)) + "\n")
    log = load(file)
    assert log.summary["requests"] == 2
    (reject,) = log.rejects.to_dicts()
    assert reject["source_line"] == 2
    assert word in reject["reason"]
    assert len(reject["excerpt"]) <= 80


def test_excerpts_show_structure_and_no_text(tmp_path):
    file = tmp_path / "a.jsonl"
    line = '{"id": "secret-id", "messages": [{"content": "my secret prompt"}], "usage": {"prompt_tokens": 12'
    file.write_text(json.dumps(chat(1)) + "\n" + line + "\nplain secret words, 42\n")
    shown = load(file).rejects["excerpt"].to_list()
    assert "secret" not in " ".join(shown)
    assert '"usage": {"prompt_tokens": 12' in shown[0]
    assert "secret" in load(file, keep_text=True).rejects["excerpt"].to_list()[1]


@pytest.mark.parametrize("broken", ["", "{broken"], ids=["strict read", "line by line"])
def test_counts_that_are_no_counts_are_seen_not_coerced(tmp_path, broken):
    cases = {
        "9" * 5000: None,
        "3.7": None,
        "true": None,
        '"many"': None,
        "5.0": 5,
        '"1,024"': 1024,
        "-1": None,
        "1e3": 1000,
        "1000000000": None,
    }
    file = tmp_path / "a.jsonl"
    file.write_text(
        "".join(
            f'{{"id": "{n}", "created": 1793577600, "usage": {{"prompt_tokens": {raw}, "completion_tokens": 1}}}}\n'
            for n, raw in enumerate(cases)
        )
        + broken
    )
    rows = {int(row["request_id"]): row for row in load(file).requests.to_dicts()}
    for n, (raw, right) in enumerate(cases.items()):
        assert rows[n]["input_tokens"] == right, raw
        assert ("coerced" if right is not None else "bad_count") in rows[n]["flags"], raw


def test_a_key_that_comes_late_is_found(tmp_path):
    rows = [chat(n) for n in range(30000)] + [chat(30000, prompt=9000, cached=4)]
    log = load(write(tmp_path / "a.jsonl", rows))
    assert log.requests["cache_read_tokens"].sum() == 4


def test_an_error_in_the_middle_leaves_nothing(tmp_path, monkeypatch):
    db = tmp_path / "log.duckdb"
    load(write(tmp_path / "a.jsonl", [chat(1)]), db=db)
    before = (table(open_log(db)), cells(open_log(db)))

    def fail(*_args, **_kwargs):
        raise RuntimeError("power cut")

    write(tmp_path / "b.jsonl", [chat(2)])
    with monkeypatch.context() as patch:
        # after the manifest and the rejects are written, inside the transaction
        patch.setattr(loading, "publish", fail)
        with pytest.raises(RuntimeError, match="power cut"):
            load(tmp_path / "b.jsonl", db=db)
    assert (table(open_log(db)), cells(open_log(db))) == before
    assert open_log(db).summary["files"] == 1
    assert counted(load(tmp_path / "b.jsonl", db=db)) == (1, 0, 0, 0)


def test_a_memory_log_can_be_loaded_again_after_an_error(tmp_path):
    with pytest.raises(LogFormatError):
        load(write(tmp_path / "x.jsonl", [{"foo": 1}]))
    assert load(write(tmp_path / "a.jsonl", [chat(1)])).requests.height == 1


def test_unknown_formats_are_refused_with_what_was_looked_for(tmp_path):
    strange = write(tmp_path / "strange.jsonl", [{"foo": 1, "bar": 2}])
    with pytest.raises(LogFormatError) as caught:
        load(strange)
    text = str(caught.value)
    assert "Found: foo, bar" in text
    for reader in READERS:
        assert f"{reader.name}: {reader.detect.looked_for()}" in text
    write(tmp_path / "good.jsonl", [chat(1)])
    with pytest.raises(LogFormatError, match=r"1 of 2 files .* nothing was loaded"):
        load(tmp_path)
    with pytest.raises(LogFormatError, match='Did you mean "openai_chat"'):
        load(strange, format="openai_chats")
    with pytest.raises(LogFormatError, match="no such file"):
        load(tmp_path / "missing.jsonl")


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


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
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


def test_ragged_and_quoted_csv_rows(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(
        b"\xef\xbb\xbfrequest_id,ts,input_tokens,output_tokens,team\r\n"
        b'a,2026-11-02T00:00:00Z,1,2,"two\r\nlines"\r\n'
        b"b,2026-11-02T00:00:00Z,1\r\n"
        b"c,2026-11-02T00:00:00Z,3,4,\xff\r\n"
        b'd,2026-11-02T00:00:00Z,"1,024",5.0,x\r\n'
    )
    log = load(file)
    rows = {row["request_id"]: row for row in log.requests.to_dicts()}
    assert {name: row["source_line"] for name, row in rows.items()} == {"a": 2, "d": 6}
    assert (rows["d"]["input_tokens"], rows["d"]["output_tokens"], rows["d"]["flags"]) == (1024, 5, ["coerced"])
    assert [row["source_line"] for row in log.rejects.to_dicts()] == [4, 5]


def test_set_overrides_and_is_checked(tmp_path):
    file = write(tmp_path / "a.jsonl", [chat(1, metadata={"team": "logged"})])
    (row,) = load(file, set={"provider": "azure", "team": "stated", "is_billable": "false"}).requests.to_dicts()
    assert (row["provider"], row["team"], row["is_billable"]) == ("azure", "stated", False)
    with pytest.raises(LogFormatError, match='Did you mean "team"'):
        load(file, set={"teem": "x"})
    with pytest.raises(LogFormatError, match="cannot be set"):
        load(file, set={"input_tokens": "5"})


def test_rows_without_an_id_are_kept_and_repeats_are_suspected(azure_map, tmp_path):
    file = tmp_path / "a.csv"
    line = "2023-11-16 18:15:46.6805900,374,44\n"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + line + line + "2023-11-16 18:15:47,374,44\n")
    log = load(file, map=azure_map, zone="UTC")
    assert counted(log) == (3, 0, 0, 0)
    assert log.requests.sort("source_line")["flags"].to_list() == [["dup_suspect"], ["dup_suspect"], None]
    assert log.summary["flagged"] == 2


def test_progress_is_called_for_each_file(tmp_path):
    write(tmp_path / "a.jsonl", [chat(1)])
    write(tmp_path / "b.jsonl", [chat(2)])
    seen = []
    load(tmp_path, progress=lambda name, number, of: seen.append((Path(name).name, number, of)))
    assert seen == [("a.jsonl", 1, 2), ("b.jsonl", 2, 2)]


def test_a_store_without_loads_says_what_to_do(tmp_path):
    with Store(tmp_path / "new.duckdb").writing():
        pass
    with pytest.raises(StoreError, match="tenfold load"):
        open_log(tmp_path / "new.duckdb")


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "requests"), [("conv", 19366), ("code", 8819)])
def test_azure_traces(name, requests, azure_map):
    file = DATA / "azure" / f"AzureLLMInferenceTrace_{name}.csv"
    if not file.is_file():
        pytest.skip("no real data: set TENFOLD_REAL_DATA")
    log = load(file, map=azure_map)
    assert counted(log) == (requests, 0, 0, 0)
    frame = pl.read_csv(file)
    assert log.requests["input_tokens"].sum() == frame["ContextTokens"].sum()
    assert log.requests["output_tokens"].sum() == frame["GeneratedTokens"].sum()


@pytest.mark.full
def test_a_killed_load_leaves_all_or_nothing(tmp_path):
    db, file = tmp_path / "log.duckdb", write(tmp_path / "a.jsonl", [chat(n) for n in range(60000)])
    load(write(tmp_path / "first.jsonl", [chat(n) for n in range(100)]), db=db)
    code = f"from tenfold.logs import load; print('go', flush=True); load({str(file)!r}, db={str(db)!r})"
    left = set()
    for wait_s in (0.05, 0.4, 0.8, 1.2, 1.6, 2.0, 2.4):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(wait_s)
            process.kill()
            process.wait()
        with Store(db).reading() as connection:
            rows = connection.execute("SELECT count(*) FROM requests").fetchall()[0][0]
            manifest = connection.execute("SELECT sum(requests)::BIGINT FROM loads").fetchall()[0][0]
            cubed = connection.execute("SELECT sum(requests)::BIGINT FROM cube").fetchall()[0][0]
        assert rows == manifest == cubed
        left.add(rows)
    assert left <= {100, 60000}
    load(file, db=db)
    assert open_log(db).summary["requests"] == 60000
    assert load(file, db=db).summary["requests"] == 0
