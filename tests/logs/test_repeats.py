"""What shares an id: exact repeats, snapshots, conflicts; and the cube that is corrected with them."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenfold.logs import cube, direct, load, publish


def message(name, *, inputs=10, read=0, output=5, model="claude-haiku-5", second=0, **more):
    usage = {
        "input_tokens": inputs,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": 0,
        "output_tokens": output,
    }
    log = {"ts": f"2026-11-02T10:00:{second:02d}Z", "team": "a"}
    return {"id": name, "type": "message", "model": model, "usage": usage, "_log": log, **more}


def write(folder, name, rows):
    file = Path(folder) / name
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def counted(log):
    return tuple(log.summary[name] for name in ("requests", "duplicates", "merged", "rejected"))


def outputs(log):
    return dict(log.requests.select("request_id", "output_tokens").iter_rows())


def kept_and_rebuilt(log):
    """Give the maintained cube and one built from the rows alone, both summed to whole cells."""
    keys = ", ".join(cube._KEYS)
    sums = ", ".join(f"sum({name})::HUGEINT" for name in cube._SUMS)
    with log.store.reading() as connection:
        limits = cube.thresholds_of(connection)
        sources = ("cube", f"({cube.cells_sql('requests', limits)})")
        sql = "SELECT {keys}, {sums} FROM {source} GROUP BY ALL HAVING sum(requests) <> 0 ORDER BY ALL"
        return [connection.execute(sql.format(keys=keys, sums=sums, source=source)).fetchall() for source in sources]


def test_stream_snapshots_in_one_file_become_one_request(tmp_path):
    # output 9, 9, 159: summing would give 177, the first line 9
    rows = [message("m", output=9), message("m", output=9), message("m", output=159, second=1)]
    log = load(write(tmp_path, "a.jsonl", rows))
    assert counted(log) == (1, 1, 1, 0)
    assert outputs(log) == {"m": 159}


def test_a_later_snapshot_replaces_the_stored_one_and_corrects_the_cube(tmp_path):
    db = tmp_path / "log.duckdb"
    load(write(tmp_path, "a.jsonl", [message("m", output=9), message("n", output=1)]), db=db)
    log = load(write(tmp_path, "b.jsonl", [message("m", output=159, second=1)]), db=db)
    assert counted(log) == (0, 0, 1, 0)
    assert outputs(log) == {"m": 159, "n": 1}
    kept, rebuilt = kept_and_rebuilt(log)
    assert kept == rebuilt
    with log.store.reading() as connection:
        assert connection.execute("SELECT sum(requests), sum(output_tokens), min(requests) FROM cube").fetchall()[0][
            :2
        ] == (2, 160)
    # the smaller snapshot again, from another file: nothing changes
    log = load(write(tmp_path, "c.jsonl", [message("m", output=8)]), db=db)
    assert (counted(log), outputs(log)) == ((0, 0, 1, 0), {"m": 159, "n": 1})


def test_an_unrelated_payload_under_a_known_id_is_a_conflict_not_a_loss(tmp_path):
    db = tmp_path / "log.duckdb"
    load(write(tmp_path, "a.jsonl", [message("m", output=9)]), db=db)
    others = [message("m", output=500, model="claude-opus-5-5"), message("m", inputs=1, output=70), message("k")]
    log = load(write(tmp_path, "b.jsonl", others), db=db)
    assert counted(log) == (1, 0, 0, 2)
    assert outputs(log) == {"m": 9, "k": 5}
    assert [(row["source_line"], row["path"]) for row in log.rejects.to_dicts()] == [(1, "id"), (2, "id")]
    assert "unrelated" in log.rejects["reason"][0]


def test_an_unknown_cache_lifetime_leaves_the_row_unpriced_and_named(tmp_path):
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_creation": {"ephemeral_30m_input_tokens": 10000}}
    log = load(write(tmp_path, "a.jsonl", [message("m", usage=usage), message("n")]))
    row = next(row for row in log.requests.to_dicts() if row["request_id"] == "m")
    assert row["flags"] == ["unknown_meter"]
    assert (row["input_tokens"], row["output_tokens"]) == (None, 1)


def test_id_hashes_are_a_named_function_pinned(tmp_path):
    # the last 8 bytes of md5('anthropic|...'), little end first
    log = load(write(tmp_path, "a.jsonl", [message(name) for name in ("m1", "m2", "msg_011AAA")]))
    assert dict(log.requests.select("dedup_key", "id_hash").iter_rows()) == {
        "anthropic|m1": PINNED[0],
        "anthropic|m2": PINNED[1],
        "anthropic|msg_011AAA": PINNED[2],
    }


def test_no_engines_own_hash_decides_what_is_equal(tmp_path):
    # its values may change with the engine's version
    for module in (cube, publish):
        assert not re.search(r"\bhash\(", Path(module.__file__).read_text(encoding="utf-8"))
    # every column of the payload counts: lists, maps and NULLs too
    rows = [{"request_id": "a", "ts": 1793577600, "input_tokens": 1, "output_tokens": 1, **more} for more in MORE]
    db = tmp_path / "log.duckdb"
    assert counted(load(write(tmp_path, "a.jsonl", rows[:1]), db=db)) == (1, 0, 0, 0)
    for number, row in enumerate(rows):
        log = load(write(tmp_path, f"{number}.jsonl", [row, message(f"own-{number}")]), db=db, format="tenfold")
        assert (log.summary["duplicates"], log.summary["merged"]) == ((1, 0) if number == 0 else (0, 1)), row


MORE = ({}, {"tags": {"k": "v"}}, {"prefix_hashes": ["h"]}, {"team": ""} | {"feature": "x"})

PINNED = (13_670_066_088_233_970_991, 13_398_978_949_572_646_966, 7_966_626_451_302_419_194)


def test_a_new_threshold_rebuilds_the_cube(tmp_path):
    db = tmp_path / "log.duckdb"
    load(write(tmp_path, "a.jsonl", [message("m", inputs=150), message("n", inputs=50)]), db=db, thresholds=(200,))
    log = load(write(tmp_path, "b.jsonl", [message("k", inputs=101)]), db=db, thresholds=(100,))
    with log.store.reading() as connection:
        found = connection.execute(
            "SELECT context_tokens, sum(input_tokens) FROM cube GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        assert cube.thresholds_of(connection) == (100, 200)
    assert found == [(0, 50), (101, 251)]


CALL = st.builds(
    message,
    st.sampled_from(["a", "b", "c", "d"]),
    inputs=st.sampled_from([0, 10, 300000]),
    read=st.sampled_from([0, 7]),
    output=st.integers(0, 3),
    model=st.sampled_from(["x", "y"]),
    second=st.sampled_from([0, 1]),
)


FILES = st.lists(st.lists(CALL, min_size=1, max_size=6), min_size=1, max_size=4)


@settings(max_examples=1, deadline=None)
@given(FILES)
# snapshots that grow and fall, repeats and a conflict, over three files
@example(
    [
        [message("a", output=1), message("a", output=3), message("b", model="x")],
        [message("a", output=2), message("b", model="y"), message("c", inputs=300000)],
        [message("c", inputs=300000, read=7), message("a", output=3), message("d")],
    ]
)
def test_the_maintained_cube_equals_one_built_from_scratch(files):
    check_cube(files)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(FILES)
def test_the_maintained_cube_equals_one_built_from_scratch_in_many_orders(files):
    check_cube(files)


def check_cube(files):
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "log.duckdb"
        for number, rows in enumerate(files):
            # one message of its own, so that no file is a copy of another and skipped
            log = load(write(folder, f"{number}.jsonl", [*rows, message(f"own-{number}")]), db=db)
            assert sum(counted(log)) == len(rows) + 1
            kept, rebuilt = kept_and_rebuilt(log)
            assert kept == rebuilt
        ids = log.requests["request_id"].to_list()
        assert len(ids) == len(set(ids)) == len({row["id"] for rows in files for row in rows}) + len(files)


def test_the_first_line_of_the_first_file_stands_whichever_way_its_rows_came(tmp_path, monkeypatch):
    # The large file's lines come into the batch at once, the small file's and the torn one later.
    monkeypatch.setattr(direct, "LEAST_BYTES", 3000)
    write(tmp_path, "a.jsonl", [message("m", output=9)])
    others = [message(name, inputs=1, output=70) for name in "mn"]
    large = write(tmp_path, "b.jsonl", [message("n", output=8), *others, *(message(f"k{i}") for i in range(20))])
    large.write_bytes(b"\0" + large.read_bytes())
    log = load(tmp_path)
    assert {name: outputs(log)[name] for name in "mn"} == {"m": 9, "n": 8}
    assert sorted(log.rejects["source_line"]) == [2, 3]
