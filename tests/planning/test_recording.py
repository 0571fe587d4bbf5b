"""Recorded plans: kept whole or not at all, under any name, also in a store made before plans could be recorded."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from functools import cache

import pytest
from log_files import chat, write
from small_logs import Shorten, ledger, row

import tenfold as tf
from tenfold.errors import AssumptionError, StoreError
from tenfold.planning import record, recorded, recording
from tenfold.store import schema
from tenfold.store.database import Store

NOON = datetime(2026, 6, 1, 12)
AT = datetime(2026, 7, 3, 9, 30, 15, 123456, tzinfo=UTC)
HOSTILE = (
    "'; DROP TABLE plans; --",
    "<script>alert(1)</script>",
    "=1+1",
    "{marks} {} %s",
    "\u202egnp.exe",
    "a\tb\n\x1b[31mred",
    "é",
    "e\u0301",
    "🤷🏽‍♀️",
    "x" * 5_000,
    "2026Q3",
    "2026q3",
    " 2026Q3",
    "NULL",
)


@cache
def document():
    """Twelve days at 3,000 uUSD, of which half the output goes."""
    rows = [row(ts=NOON + timedelta(days=n)) for n in range(12)]
    return tf.plan(ledger(rows), levers=(Shorten("shorten", 50),)).as_dict()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    file = tmp_path_factory.mktemp("recording") / "a.jsonl"
    tf.load(write(file, [chat(1)]), db=file.with_suffix(".duckdb"))
    return file.with_suffix(".duckdb")


@pytest.fixture
def db(loaded, tmp_path):
    copy = tmp_path / "log.duckdb"
    copy.write_bytes(loaded.read_bytes())
    return copy


def old(db):
    """Make the file one of an earlier release: the same version of the tables, without this one."""
    with Store(db).writing() as connection:
        connection.execute("DROP TABLE plans")
    return db


def tables(db):
    # past the store's own door, which adds what is missing
    with Store(db)._opened(db, read_only=True) as connection:
        rows = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
    return {name for (name,) in rows}


def test_what_was_recorded_is_read_back(db):
    log = tf.open_log(db)
    made = record(document(), log, "2026Q2", at=AT)
    assert recorded(tf.open_log(db)) == (made,) == (recording.read_back(log, "2026Q2"),)
    assert (made.recorded_at, made.first_day, made.last_day) == (AT, date(2026, 6, 1), date(2026, 6, 12))
    assert (made.zone, made.levers, made.tenfold_version) == ("UTC", ("shorten",), tf.__version__)
    assert (made.card_version, made.log_hash) == (document()["card_version"], document()["log_hash"])
    assert made.document == document()
    row = made.as_dict()
    assert row["window"] == {"first_day": "2026-06-01", "last_day": "2026-06-12", "zone": "UTC"}
    assert (row["spend_usd"], row["saving_usd"]["mid"]) == ("0.036", "0.006")
    assert json.loads(json.dumps(row)) == row


def test_a_plan_and_its_document_are_recorded_alike():
    rows = [row(ts=NOON + timedelta(days=n)) for n in range(12)]
    made = ledger(rows)
    plan = tf.plan(made, levers=(Shorten("shorten", 50),))
    record(plan, made.log, "plan", at=AT)
    record(plan.as_dict(), made.log, "document", at=AT)
    first, second = recorded(made.log)
    assert (first.name, second.name) == ("document", "plan")  # of one instant: by name
    assert first.document == second.document
    kept = tf.track(first.document, made)
    assert kept.as_dict() == tf.track(plan.as_dict(), made).as_dict()


def test_recording_changes_nothing_else(db):
    log = tf.open_log(db)
    before = (log.log_hash, log.summary)
    record(document(), log, "2026Q2", at=AT)
    assert (tf.open_log(db).log_hash, tf.open_log(db).summary) == before


def test_a_name_is_taken_once(db):
    log = tf.open_log(db)
    record(document(), log, "2026Q2", at=AT)
    other = {**document(), "card_version": "other"}
    with pytest.raises(AssumptionError, match=r'"2026Q2" was recorded at 2026-07-03 09:30 UTC: .*--replace'):
        record(other, log, "2026Q2")
    with pytest.raises(AssumptionError, match="--replace"):
        recording.check_free(log, "2026Q2")
    recording.check_free(log, "2026Q2", replace=True)
    assert [one.card_version for one in recorded(log)] == [document()["card_version"]]
    record(other, log, "2026Q2", replace=True, at=AT + timedelta(days=1))
    assert [(one.card_version, one.recorded_at) for one in recorded(log)] == [("other", AT + timedelta(days=1))]
    record(document(), log, "0", replace=True, at=AT + timedelta(days=2))  # nothing to replace is no error
    assert [one.name for one in recorded(log)] == ["2026Q2", "0"]


def test_any_text_is_a_name():
    made = ledger([row()])
    for name in HOSTILE:
        record(document(), made.log, name, at=AT)
    assert {one.name for one in recorded(made.log)} == set(HOSTILE)
    for name in HOSTILE:
        assert recording.read_back(made.log, name).name == name
        with pytest.raises(AssumptionError) as refused:
            record(document(), made.log, name)
        said = str(refused.value)
        assert len(said) < 400
        assert not set(said) & set("\u202e\x1b\n\t")


def test_no_plan_of_that_name_says_what_there_is():
    made = ledger([row()])
    with pytest.raises(AssumptionError, match="None was: tenfold levers --record NAME keeps one"):
        recording.read_back(made.log, "2026Q2")
    for number in range(7):
        record(document(), made.log, f"plan {number}", at=AT + timedelta(minutes=number))
    with pytest.raises(
        AssumptionError, match=r'no plan "plan 66" .*Did you mean "plan 6".* Recorded: plan 2, .* and 2 mo'
    ):
        recording.read_back(made.log, "plan 66")


@pytest.mark.parametrize("name", ["", "  \n", "\udcff"], ids=["empty", "blank", "surrogate"])
def test_names_by_which_nothing_could_be_found(name):
    made = ledger([row()])
    with pytest.raises(AssumptionError, match="blank|UTF-8"):
        record(document(), made.log, name)
    assert recorded(made.log) == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"plan": None}, "no plan.levers"),
        ({"plan": {"levers": [], "roadmap": [], "saving_usd": {}}}, "no plan.promised"),
        ({"window": {}}, "no window.first_day"),
        ({"window": {"first_day": "June", "last_day": None, "zone": "UTC"}}, "'June', which is none"),
    ],
)
def test_what_is_no_plan_is_not_recorded(changes, said):
    made = ledger([row()])
    with pytest.raises(AssumptionError, match=said):
        record({**document(), **changes}, made.log, "x")
    with pytest.raises(AssumptionError, match="it has no window; give what `tenfold levers --json` printed"):
        record({"a": 1}, made.log, "x")
    assert recorded(made.log) == ()


def test_a_log_without_times_has_a_plan_without_days():
    window = {"first_day": None, "last_day": None, "days": 0, "zone": "UTC"}
    made = ledger([row()])
    record({**document(), "window": window}, made.log, "x")
    assert recorded(made.log)[0].window == "a log without times"


def test_a_file_of_an_earlier_release_reads_as_without_plans(db):
    log = tf.open_log(old(db))
    db.chmod(0o444)
    assert recorded(log) == ()
    assert log.requests.height == 1
    with pytest.raises(AssumptionError, match="None was"):
        recording.read_back(log, "x")
    assert "plans" not in tables(db)
    db.chmod(0o644)
    assert record(document(), log, "x", at=AT) == recorded(tf.open_log(db))[0]
    assert tables(db) == set(schema.TABLES)


@pytest.mark.full
def test_a_load_gives_a_file_of_an_earlier_release_the_table(db, tmp_path):
    tf.load(write(tmp_path / "b.jsonl", [chat(2)]), db=old(db))
    assert "plans" in tables(db)
    record(document(), tf.open_log(db), "x")
    tf.load(write(tmp_path / "c.jsonl", [chat(3)]), db=db)  # and a later load leaves it alone
    assert len(recorded(tf.open_log(db))) == 1


def test_a_store_that_is_not_there(tmp_path, db):
    log = tf.open_log(db)
    db.rename(tmp_path / "gone.duckdb")
    with pytest.raises(StoreError, match="no such database"):
        recorded(log)


# Stops without any clean-up, as a kill does, once the row is written and before it is kept.
KILLED = """
import json, os, sys
import tenfold as tf
from tenfold.planning import recording
whole = recording._insert
def stop(*args, **kwargs):
    whole(*args, **kwargs)
    os._exit(9)
recording._insert = stop
tf.record(json.load(open(sys.argv[1])), tf.open_log(sys.argv[2]), "2026Q2", replace=True)
"""


@pytest.mark.parametrize("is_old", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_kill_in_mid_write_leaves_what_was_there(db, tmp_path, is_old):
    log = tf.open_log(old(db) if is_old else db)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({**document(), "card_version": "new"}))
    if not is_old:
        record(document(), log, "2026Q2", at=AT)
    before = recorded(log)
    assert len(before) == (not is_old)
    done = subprocess.run([sys.executable, "-c", KILLED, str(file), str(db)], check=False)
    assert done.returncode == 9
    assert recorded(tf.open_log(db)) == before
    record(json.loads(file.read_text()), log, "2026Q2", replace=True)
    assert [one.card_version for one in recorded(log)] == ["new"]


REPEATED = """
import json, sys
import tenfold as tf
document, log = json.load(open(sys.argv[1])), tf.open_log(sys.argv[2])
print("go", flush=True)
for number in range(100_000):
    tf.record({**document, "card_version": str(number), "log_hash": str(number)}, log, "2026Q2", replace=True)
"""


@pytest.mark.full
def test_a_kill_at_any_moment_leaves_one_whole_plan(db, tmp_path):
    log, file, rng = tf.open_log(db), tmp_path / "plan.json", random.Random(8)
    file.write_text(json.dumps(document()))
    record(document(), log, "2026Q2", at=AT)
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", REPEATED, str(file), str(db)], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0, 0.5))
            process.kill()
            process.wait()
        (left,) = recorded(tf.open_log(db))
        assert left.document["card_version"] == left.card_version
        assert {**left.document, "card_version": "", "log_hash": ""} == {
            **document(), "card_version": "", "log_hash": "",
        }  # fmt: skip
    assert left.card_version.isdigit()
