"""A load that is killed leaves all or nothing, and one that is refused leaves no file."""

from __future__ import annotations

import subprocess
import sys
import time

import duckdb
import pytest
from log_files import chat, counted, write
from quick import few

from tenfold.errors import LogFormatError, StoreError
from tenfold.logs import load, open_log
from tenfold.store.database import Store

# Stops the process without any clean-up, as a kill does, right after the named function has done its work.
KILLED = """
import os, sys
from tenfold.logs import load, publish
from tenfold.store import database

def stop_after(module, name):
    whole = getattr(module, name)
    def stop(*args, **kwargs):
        whole(*args, **kwargs)
        os._exit(9)
    setattr(module, name, stop)

stop_after({"publish": publish, "database": database}[sys.argv[1]], sys.argv[2])
load(sys.argv[3], db=sys.argv[4])
"""


def killed(module, name, file, db):
    done = subprocess.run([sys.executable, "-c", KILLED, module, name, str(file), str(db)], check=False)
    assert done.returncode == 9


def held(db):
    with Store(db).reading() as connection:
        return {
            table: connection.execute(f"FROM {table} ORDER BY ALL").fetchall()
            for table in ("requests", "loads", "rejects", "cube", "price_keys", "meta")
        }


def test_a_kill_between_insert_and_commit_leaves_nothing_of_the_load(tmp_path):
    db = tmp_path / "log.duckdb"
    load(write(tmp_path / "first.jsonl", [chat(1)]), db=db)
    before = held(db)
    # also a later snapshot of a stored request, which takes a stored row away
    file = write(tmp_path / "a.jsonl", [chat(1, completion=90), *(chat(n) for n in range(2, 5))])
    killed("publish", "_count", file, db)
    assert held(db) == before
    assert counted(load(file, db=db)) == (3, 0, 1, 0)


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(("publish", "_insert"), id="rows"),
        pytest.param(("database", "_create"), id="tables", marks=pytest.mark.full),
    ],
)
def test_a_kill_on_a_fresh_file_leaves_one_that_can_be_loaded_into(tmp_path, place):
    db, file = tmp_path / "log.duckdb", write(tmp_path / "a.jsonl", [chat(1), chat(2)])
    killed(*place, file, db)
    with pytest.raises(StoreError, match="nothing has been loaded yet"):
        open_log(db)
    assert counted(load(file, db=db)) == (2, 0, 0, 0)


@pytest.mark.parametrize("left", few(1, ["no tables", "no bytes"]))
def test_what_a_kill_before_the_tables_leaves_is_fresh(tmp_path, left):
    db, file = tmp_path / "log.duckdb", write(tmp_path / "a.jsonl", [chat(1)])
    if left == "no tables":
        duckdb.connect(str(db)).close()
        with pytest.raises(StoreError, match="nothing has been loaded yet"):
            open_log(db)
    else:
        db.touch()
    assert counted(load(file, db=db)) == (1, 0, 0, 0)


@pytest.mark.parametrize(
    ("rows", "how"),
    [
        ([{"foo": 1}], {}),
        ([chat(1)], {"set": {"is_billable": "maybe"}}),
        ([chat(1)], {"map": {"columns": {"input_tokens": "tokens_in"}}}),
        ([chat(1)], {"format": "openai_chats"}),
    ],
    ids=["format", "constant", "map", "name"],
)
def test_a_refused_load_leaves_no_database(tmp_path, rows, how):
    db = tmp_path / "log.duckdb"
    with pytest.raises(LogFormatError):
        load(write(tmp_path / "a.jsonl", rows), db=db, **how)
    assert not db.exists()


def test_a_path_that_can_be_no_database_says_why(tmp_path):
    file = write(tmp_path / "a.jsonl", [chat(1)])
    with pytest.raises(StoreError, match=r"no/log\.duckdb: there is no directory .*no\. Make it"):
        load(file, db=tmp_path / "no" / "log.duckdb")
    for open_it in (open_log, lambda db: load(file, db=db)):
        with pytest.raises(StoreError, match=r"a\.jsonl: not a DuckDB database\. .*--db FILE"):
            open_it(file)
    with pytest.raises(StoreError, match="a directory, not a database"):
        load(file, db=tmp_path)
    other = tmp_path / "other.duckdb"
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE theirs (x INTEGER)")
    with pytest.raises(StoreError, match="not one that tenfold made"):
        load(file, db=other)


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
