"""LiteLLM's spend logs in a real PostgreSQL."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import traceback
from datetime import datetime

import pytest
from log_files import SAMPLES, counted
from servers import OWNER_PASSWORD, command

from tenfold.errors import AssumptionError
from tenfold.extras import MissingExtraError
from tenfold.logs import files, load, sources
from tenfold.logs.sources import Known, Mark, SourceError, move
from tenfold.logs.sources import postgres as source
from tenfold.store.database import Store

TABLE = '"LiteLLM_SpendLogs"'
# As LiteLLM's schema makes them; the columns whose text must never leave the server among them.
MAKE = f"""CREATE TABLE {TABLE} (
  request_id text PRIMARY KEY, call_type text NOT NULL, api_key text NOT NULL DEFAULT '',
  spend double precision NOT NULL DEFAULT 0, total_tokens integer NOT NULL DEFAULT 0,
  prompt_tokens integer NOT NULL DEFAULT 0, completion_tokens integer NOT NULL DEFAULT 0,
  "startTime" timestamp(3) NOT NULL, "endTime" timestamp(3) NOT NULL, "completionStartTime" timestamp(3),
  model text NOT NULL DEFAULT '', model_group text DEFAULT '', custom_llm_provider text DEFAULT '',
  "user" text DEFAULT '', metadata jsonb DEFAULT '{{}}', cache_hit text DEFAULT '', request_tags jsonb DEFAULT '[]',
  team_id text, end_user text, status text, messages jsonb DEFAULT '{{}}', response jsonb DEFAULT '{{}}'
)"""
PRIVATE = "my private prompt"


def literal(value):
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


def insert(rows):
    columns = ", ".join(f'"{name}"' for name in rows[0])
    values = ", ".join("(" + ", ".join(literal(value) for value in row.values()) + ")" for row in rows)
    return f"INSERT INTO {TABLE} ({columns}) VALUES {values}"


def call(number, start, *, prompt=100, completion=10, **more):
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    metadata = {"usage_object": usage, "requester_metadata": {"note": PRIVATE}, "error_information": {"error": PRIVATE}}
    return {
        "request_id": f"chatcmpl-{number}",
        "call_type": "acompletion",
        "spend": 0.25,
        **usage,
        "startTime": start,
        "endTime": start,
        "model": "gpt-5",
        "custom_llm_provider": "openai",
        "status": "success",
        "metadata": json.dumps(metadata),
        "messages": json.dumps([{"content": PRIVATE}]),
        **more,
    }


@pytest.fixture
def logs(postgres):
    postgres.run(f"DROP TABLE IF EXISTS {TABLE}", MAKE)
    return postgres


def place(server, table="LiteLLM_SpendLogs"):
    return f"postgresql://127.0.0.1:{server.port}/litellm/{table}"


def mark(db, server):
    with Store(db).reading() as connection:
        rows = connection.execute("SELECT value FROM meta WHERE name = ?", [f"mark:{place(server)}"]).fetchall()
    return rows[0][0] if rows else None


def test_a_table_gives_what_its_export_gives(logs, tmp_path):
    with (SAMPLES / "litellm_spendlogs.csv").open(encoding="utf-8", newline="") as file:
        rows = [{name: value or None for name, value in row.items()} for row in csv.DictReader(file)]
    logs.run(insert([{name: value for name, value in row.items() if value is not None} for row in rows[:1]]))
    for row in rows[1:]:
        logs.run(insert([{name: value for name, value in row.items() if value is not None}]))
    db = tmp_path / "u.duckdb"
    log = load(logs.url(), db=db)
    where = ["source_file", "source_line", "load_id"]
    right = load(SAMPLES / "litellm_spendlogs.csv")
    assert log.requests.drop(where).sort("ts").to_dicts() == right.requests.drop(where).sort("ts").to_dicts()
    assert log.requests["source_line"].to_list() == [1, 2, 3, 4]  # by time
    assert set(log.requests["source_file"]) == {place(logs)}
    assert log.requests["ts"][0] == datetime(2026, 11, 2, 10, 0, 0, 101000)
    # the same calls from a file are known
    assert counted(load(SAMPLES / "litellm_spendlogs.csv", db=db))[:2] == (0, 4)


def test_a_nightly_run_takes_only_what_is_new(logs, tmp_path, monkeypatch):
    db = tmp_path / "u.duckdb"
    read = []
    lines = source._lines
    monkeypatch.setattr(source, "_ROWS", 3)

    def watched(*args):
        for piece in lines(*args):
            read.extend(json.loads(line)["request_id"] for line in piece.splitlines())
            yield piece

    monkeypatch.setattr(source, "_lines", watched)
    days = ("2026-10-01", "2026-10-08", "2026-10-09")
    logs.run(insert([call(n, f"{day} 12:00:0{n}.5") for n, day in enumerate([days[0]] * 4 + [days[1]] * 4)]))
    assert counted(load(logs.url(), db=db)) == (8, 0, 0, 0)
    assert mark(db, logs) == "2026-10-08 12:00:07.5"
    # new ones, a late one within the day, one known that has grown, and one that came too late
    logs.run(
        insert([call(8, f"{days[2]} 01:00:00"), call(9, "2026-10-07 12:00:08"), call(10, "2026-10-07 12:00:00")]),
        f"UPDATE {TABLE} SET completion_tokens = 30, total_tokens = 130, metadata = '{{}}' "
        "WHERE request_id = 'chatcmpl-4'",
    )
    read.clear()
    log = load(logs.url(), db=db)
    assert read == [f"chatcmpl-{n}" for n in (9, 4, 5, 6, 7, 8)]
    assert counted(log) == (2, 3, 1, 0)
    assert dict(log.requests.select("request_id", "output_tokens").rows())["chatcmpl-4"] == 30
    assert mark(db, logs) == "2026-10-09 01:00:00"
    # the one before the overlap is found by asking for more of it
    read.clear()
    source.read(logs.url(query="?overlap_days=10"), tmp_path, Known(db, {}).mark)
    assert len(read) == 11
    # and nothing new is nothing new
    read.clear()
    assert source.read(logs.url(), tmp_path, Known(db, {}).mark).mark.value == "2026-10-09 01:00:00"
    assert read == [f"chatcmpl-{n}" for n in (4, 5, 6, 7, 8)]


def test_a_clock_that_is_ahead_does_not_carry_the_mark_away(logs, tmp_path):
    logs.run(insert([call(1, "2026-10-01 12:00:00"), call(2, "2099-01-01 00:00:00"), call(3, "infinity")]))
    kept = source.read(logs.url(), tmp_path, {}.get)
    assert kept.mark.value == "2026-10-01 12:00:00"
    assert b"".join(files.chunks(kept.file)).count(b"\n") == 3
    logs.run(insert([call(4, "2026-10-02 12:00:00")]))
    assert source.read(logs.url(), tmp_path, dict([kept.mark]).get).mark.value == "2026-10-02 12:00:00"


def test_an_empty_table_is_no_error(logs, tmp_path):
    db = tmp_path / "u.duckdb"
    assert counted(load(logs.url(), db=db)) == (0, 0, 0, 0)
    assert mark(db, logs) is None


KILLED = """
import os, sys
from tenfold.logs import load, loading, sources

whole = sources.move
def stop(*args):
    if sys.argv[1] == "after":
        whole(*args)
    os._exit(9)
sources.move = stop
load(sys.argv[2], db=sys.argv[3])
"""


def test_a_load_that_fails_in_the_end_leaves_neither_rows_nor_mark(logs, tmp_path, monkeypatch):
    db = tmp_path / "u.duckdb"
    logs.run(insert([call(1, "2026-10-01 12:00:00")]))

    def failing(*args):
        move(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(sources, "move", failing)
    with pytest.raises(KeyboardInterrupt):
        load(logs.url(), db=db)
    assert mark(db, logs) is None
    with Store(db).reading() as connection:
        assert connection.execute("FROM requests").fetchall() == []


@pytest.mark.full
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_leaves_both_rows_and_mark_or_neither(logs, tmp_path, when):
    db = tmp_path / "u.duckdb"
    logs.run(insert([call(1, "2026-10-01 12:00:00")]))
    load(logs.url(), db=db)
    logs.run(insert([call(2, "2026-10-02 12:00:00")]))
    done = subprocess.run([sys.executable, "-c", KILLED, when, logs.url(), str(db)], check=False)
    assert done.returncode == 9
    assert mark(db, logs) == "2026-10-01 12:00:00"
    assert counted(load(logs.url(), db=db))[:2] == (1, 1)
    assert mark(db, logs) == "2026-10-02 12:00:00"


def test_marks_never_move_back():
    with Store().writing() as connection:
        for value in ("2026-10-02 12:00:00", "2026-10-02 12:00:00.5", "2026-09-30 00:00:00"):
            move(connection, [Mark("mark:x", value)])
        assert connection.execute("SELECT value FROM meta WHERE name = 'mark:x'").fetchall() == [
            ("2026-10-02 12:00:00.5",)
        ]


def test_only_what_the_reader_takes_leaves_the_server(logs, monkeypatch):
    held = []
    lines = source._lines

    def watched(*args):
        for piece in lines(*args):
            held.append(piece)
            yield piece

    monkeypatch.setattr(source, "_lines", watched)
    odd = ['"text"', "[1]", "null", '{"usage_object": "text"}', '{"usage_object": null}']
    rows = [call(9, "2026-10-01 12:00:00")]
    rows += [call(n, f"2026-10-01 12:00:1{n}", metadata=text) for n, text in enumerate(odd)]
    logs.run(insert(rows))
    log = load(logs.url())
    text = b"".join(held).decode()
    assert PRIVATE not in text
    assert text.count("usage_object") == 2  # what is no object there stays, for the reader to judge
    flags = dict(log.requests.select("request_id", "flags").rows())
    assert [n for n in range(len(odd)) if "details_missing" in (flags[f"chatcmpl-{n}"] or [])] == [0, 1, 3]


def test_nothing_can_be_written(logs, monkeypatch):
    logs.run(insert([call(1, "2026-10-01 12:00:00")]))
    run = source._run
    tried = []

    def writing(connection, sql):
        if sql.startswith("DECLARE"):
            tried.append(sql)
            sql = f"DELETE FROM {TABLE}"
        return run(connection, sql)

    monkeypatch.setattr(source, "_run", writing)
    with pytest.raises(SourceError, match="read-only transaction"):
        load(logs.url())
    assert tried


@pytest.mark.full
def test_other_tables_schemas_and_column_types(logs, tmp_path):
    table = 'proxy."Spend ""Logs"""'
    metadata = '{\n"usage_object":\r\n {"prompt_tokens": 100,\n"completion_tokens": 10}}'
    made = MAKE.replace(TABLE, table).replace("timestamp(3)", "timestamptz(3)")
    logs.run(
        "DROP SCHEMA IF EXISTS proxy CASCADE",
        "CREATE SCHEMA proxy",
        made.replace("metadata jsonb", "metadata json").replace("double precision", "numeric"),
        f'ALTER TABLE {table} DROP COLUMN "completionStartTime"',
        insert([call(1, "2026-10-01 12:00:00+02", metadata=metadata)]).replace(TABLE, table),
    )
    db, url = tmp_path / "u.duckdb", logs.url(query="?schema=proxy&table=Spend%20%22Logs%22&connection_limit=5")
    (row,) = load(url, db=db).requests.to_dicts()
    assert (row["ts"], row["input_tokens"], row["flags"]) == (datetime(2026, 10, 1, 10), 100, None)
    assert row["source_file"] == place(logs, 'proxy.Spend "Logs"')
    assert source.read(url, tmp_path, Known(db, {}).mark).mark.value == "2026-10-01 10:00:00+00"


def refused(url, db=None):
    with pytest.raises(SourceError) as caught:
        load(url, db=db)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_errors_say_what_is_wrong_and_what_to_do(logs, tmp_path, monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    db = tmp_path / "u.duckdb"
    there = place(logs)
    for url in (logs.url(password=False), logs.url(user="nobody"), logs.url().replace("%C3%A4", "wrong")):
        assert refused(url, db).startswith((f"{there}: the server refused user or password.",)), url
    dead = f"postgresql://u:{OWNER_PASSWORD[:3]}@127.0.0.1:9/litellm"
    assert refused(dead, db).startswith("postgresql://127.0.0.1:9/litellm/LiteLLM_SpendLogs: nothing listens there.")
    assert "there is no such host" in refused("postgresql://u@no-such-host.invalid/litellm", db)
    assert "there is no such database" in refused(logs.url("nodb"), db)
    assert "there is no such table in the database" in refused(logs.url(query="?table=Spend"), db)
    assert 'unknown parameter "ssl_mode". Did you mean "sslmode"?' in refused(logs.url(query="?ssl_mode=x"), db)
    assert "write whole days" in refused(logs.url(query="?overlap_days=-1"), db)
    logs.run(f'ALTER TABLE {TABLE} DROP COLUMN spend, DROP COLUMN "startTime"')
    assert refused(logs.url(), db).startswith(f"{there}: the table has no column startTime, spend, so it holds no")
    assert not db.exists()


def test_a_user_without_the_right_to_read(logs, monkeypatch):
    logs.run("DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN PASSWORD 'guest-pass'")
    monkeypatch.setenv("PGPASSWORD", "guest-pass")
    assert "the user may not read the table. Grant it SELECT" in refused(
        f"postgresql://guest@127.0.0.1:{logs.port}/litellm"
    )


def test_a_connection_that_is_cut_loads_nothing(logs, tmp_path, monkeypatch):
    db = tmp_path / "u.duckdb"
    logs.run(insert([call(n, f"2026-10-01 12:00:0{n}") for n in range(9)]))
    monkeypatch.setattr(source, "_ROWS", 3)
    run = source._run

    def cut(connection, sql):
        if sql.startswith("FETCH"):
            logs.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tenfold'")
        return run(connection, sql)

    monkeypatch.setattr(source, "_run", cut)
    assert "the connection was cut" in refused(logs.url(), db)
    assert not db.exists()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:planted/in@url@host/litellm",
        "postgresql://me:12planted@host:x/litellm",
        "postgresql://me:12/planted@host/litellm",
        "postgresql://me:planted#in@host/litellm",
        "postgresql://me:planted@host",
        "postgresql://me:planted@host:70000/litellm",
        "postgresql://host/litellm?password=planted&bogus=planted",
        "postgresql://[me:planted@host/litellm",
    ],
)
def test_an_url_that_cannot_be_read_shows_nothing_of_itself(url):
    with pytest.raises(SourceError) as caught:
        load(url)
    assert "planted" not in str(caught.value)


def test_no_password_turns_up_anywhere(logs, tmp_path, monkeypatch, capsys):
    db = tmp_path / "u.duckdb"
    monkeypatch.chdir(tmp_path)
    logs.run(insert([call(1, "2026-10-01 12:00:00")]), insert([call(2, "2026-10-01 12:00:01", metadata="[]")]))
    said = []
    code, out, err = command(monkeypatch, capsys, "load", logs.url(), "--db", db)
    assert code == 0, err
    said += [out, err]
    monkeypatch.setenv("PGPASSWORD", OWNER_PASSWORD)
    code, out, err = command(monkeypatch, capsys, "load", logs.url(password=False), "--db", db, "--json")
    assert code == 0, err
    said += [out, err]
    logs.run(f"ALTER TABLE {TABLE} DROP COLUMN spend")
    for url in (logs.url(), logs.url("nodb"), logs.url(query="?table=x"), logs.url(user=f"u{OWNER_PASSWORD}")):
        with pytest.raises((SourceError, AssumptionError)) as caught:
            load(url, db=db)
        error = caught.value
        while error is not None:
            said += [str(error), repr(error)]
            error = error.__cause__ or error.__context__
        said += traceback.format_exception(caught.value)
        code, out, err = command(monkeypatch, capsys, "load", url, "--db", db)
        assert (code, err.count("\n")) == (1, 1)
        said += [out, err]
    held = "".join(said).encode() + b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert place(logs).encode() in held
    for secret in (OWNER_PASSWORD, "%C3%A4", "tenfold owner", "tenfold%20owner"):
        assert secret.encode() not in held


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("tenfold.extras.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"reading postgresql:// needs adbc_driver.*tenfold\[postgres\]"):
        load("postgresql://me@host/litellm")
