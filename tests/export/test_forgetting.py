"""Forgetting: what is asked for goes, all else stays to the last count, and no byte or later load brings it back."""

import json
import shutil
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import duckdb
import pytest
from log_files import counted
from published_logs import USERS, killed, loaded, row, rows, tables

import tenfold as tf
from tenfold.errors import AssumptionError, StoreError
from tenfold.logs import cube
from tenfold.store import rewriting
from tenfold.store.database import Store

ASKED = [{"role": "user", "content": "tell me of ann-secret, at length"}]


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("origin")
    made = [*rows(), row(30, user="ann-long-id", prompt=ASKED), row(31, user="ann-long-id", hours=6)]
    loaded(folder / "log.duckdb", made, keep_text=True)
    with (folder / "b.jsonl").open("w") as handle:
        handle.write(json.dumps(row(40)) + '\n{"user_id": "ann-long-id", broken\n')
    tf.load(folder / "b.jsonl", db=folder / "log.duckdb", keep_text=True)
    return folder / "log.duckdb"


@pytest.fixture
def db(origin, tmp_path):
    shutil.copy(origin, tmp_path)
    shutil.copy(origin.with_name("a.jsonl"), tmp_path)
    return tmp_path / "log.duckdb"


def others(held, user):
    return [one for one in held if one["user_id"] != user]


def cubes(db):
    """The cube as it is, and as a rebuild makes it; cells summed."""
    with Store(db).writing() as connection:
        found = []
        for _ in range(2):
            found.append(connection.execute("FROM cube ORDER BY ALL").fetchall())
            cube.rebuild(connection, cube.thresholds_of(connection))
    return found


def test_a_user_goes_and_all_else_stays(db):
    log = tf.open_log(db)
    before, bill = log.requests.to_dicts(), tf.attribute(log)
    whole, theirs = bill.total_pusd, bill.composition("user_id").frame
    cost = int(theirs.filter(theirs["user_id"] == "ann-long-id")["cost_pusd"].item())
    dry = tf.forget(log, user="ann-long-id", dry_run=True)
    assert log.requests.to_dicts() == before
    done = tf.forget(log, user="ann-long-id")
    assert (done.requests, done.requests_left, done.texts, done.cost_pusd, done.excerpts) == (2, 25, 1, cost, 1)
    assert dry.as_dict() == {**done.as_dict(), "dry_run": True}
    after = tf.open_log(db)
    assert after.requests.to_dicts() == others(before, "ann-long-id")  # in the same order
    assert tf.attribute(after).total_pusd == whole - cost > 0
    assert after.texts.is_empty()
    assert after.rejects["excerpt"].to_list() == [None]
    one, other = cubes(db)
    assert one == other


def test_no_byte_of_the_user_is_left_in_the_file(db):
    for secret in (b"ann-long-id", b"ann-secret"):
        assert secret in db.read_bytes()
    tf.forget(tf.open_log(db), user="ann-long-id")
    left = [one for one in db.parent.iterdir() if one.suffix != ".jsonl"]
    assert left == [db]
    assert all(secret not in db.read_bytes() for secret in (b"ann-long-id", b"ann-secret"))


@pytest.mark.full
def test_loads_refuse_what_they_asked_before_and_take_what_they_ask_after(db):
    log = tf.open_log(db)
    hash_before = log.log_hash
    tf.forget(log, user="bob")
    assert tf.open_log(db).log_hash != hash_before
    # the same file is known; the same requests in another one, and one without a time, are refused
    assert counted(tf.load(db.with_name("a.jsonl"), db=db))[0] == 0
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    again = loaded(
        db,
        [row(3, user="bob"), row(50, user="bob", ts=None), row(51, user="bob", ts=later), row(52, user="eve")],
        "copy",
        keep_text=True,
    )
    assert counted(again) == (2, 0, 0, 2)
    assert again.rejects["reason"].str.contains("forgotten").all()
    assert again.rejects["excerpt"].null_count() == 2
    held = tf.open_log(db).requests
    assert sorted(held.filter(held["user_id"].is_in(["bob", "eve"]))["request_id"]) == ["r51", "r52"]
    one, other = cubes(db)
    assert one == other


@pytest.mark.full
def test_before_a_day_of_a_zone(db):
    log = tf.open_log(db)
    held = log.requests.to_dicts()
    limit = datetime(2026, 7, 3, 15)  # midnight of July 4 in Tokyo
    done = tf.forget(log, before="2026-07-04", zone="Asia/Tokyo")
    stays = [one for one in held if one["ts"] is None or one["ts"] >= limit]
    assert tf.open_log(db).requests.to_dicts() == stays
    assert (done.requests, done.undated) == (len(held) - len(stays), 3)
    assert any("without a time stay" in text for text in done.sentences())
    one, other = cubes(db)
    assert one == other


@pytest.mark.full
@pytest.mark.parametrize("user", [*USERS[1:], "'; DROP TABLE requests; --", "\x00", "", "%"])
def test_hostile_names(tmp_path, user):
    db = tmp_path / "log.duckdb"
    log = loaded(db, [row(0, user=user), row(1, user="other"), row(2, user=None)])
    name = log.requests["user_id"][0]  # NUL may be stored otherwise
    expected = 0 if name is None else 1
    done = tf.forget(log, user=user if name is None else name)
    assert (done.requests, done.requests_left) == (expected, 3 - expected)
    assert set(tf.open_log(db).requests["user_id"]) == {"other", None}


@pytest.mark.full
def test_reports_that_name_the_user_go(db):
    with Store(db).writing() as connection:
        for user, end in (("bob", "2026-07-02"), ("eve", "2026-07-02"), (None, "2026-07-02"), ("eve", "2026-08-01")):
            connection.execute(
                "INSERT INTO usage_buckets BY NAME SELECT $1 AS user_id, $2::TIMESTAMP AS bucket_end, 1 AS load_id",
                [user, end],
            )
    assert tf.forget(tf.open_log(db), user="bob").buckets == 1
    # before a day: those that name anybody and lie wholly before it
    assert tf.forget(tf.open_log(db), before="2026-07-03").buckets == 1
    assert sorted(str(user) for user in tf.open_log(db).buckets["user_id"]) == ["None", "eve"]


@pytest.mark.full
def test_a_user_stated_for_a_whole_file_is_not_left_in_its_settings(tmp_path):
    db = tmp_path / "log.duckdb"
    log = loaded(db, [row(0, user=None)], set={"user_id": "stated-user"})
    assert tf.forget(log, user="stated-user").requests == 1
    assert b"stated-user" not in db.read_bytes()


@pytest.mark.full
def test_what_names_the_user_elsewhere_is_told(tmp_path):
    db = tmp_path / "log.duckdb"
    log = loaded(db, [row(0, user="zoe"), row(1, user="x", tags={"of": "zoe"})], "of-zoe")
    assert len(tf.forget(log, user="zoe", dry_run=True).elsewhere) == 2


@pytest.mark.full
def test_in_memory(tmp_path):
    loaded(tmp_path / "x.duckdb", rows())
    log = tf.load(tmp_path / "a.jsonl")
    held = log.requests.to_dicts()
    tf.forget(log, user="bob")
    assert log.requests.to_dicts() == others(held, "bob")


@pytest.mark.full
def test_published_copies_go_too(db, tmp_path):
    out = tmp_path / "out"
    tf.publish(tf.open_log(db), out)
    loaded(db, [row(60)], "more")
    tf.publish(tf.open_log(db), out)
    done = tf.forget(tf.open_log(db), user="ann-long-id", published=out)
    assert done.published is not None
    assert len(done.published.removed) == 2
    assert len(list((out / "snapshots").iterdir())) == 1
    assert tables(tf.open_log(out)) == tables(tf.open_log(db))
    assert "ann-long-id" not in set(tf.open_log(out).requests["user_id"])


@pytest.mark.full
def test_refused_before_anything_is_touched(db, tmp_path, monkeypatch):
    log, held = tf.open_log(db), db.read_bytes()
    for more in ({}, {"user": "a", "before": "2026-01-01"}):
        with pytest.raises(AssumptionError, match="--user U or --before D"):
            tf.forget(log, **more)
    with pytest.raises(StoreError, match="no published folder"):
        tf.forget(log, user="bob", published=tmp_path)
    monkeypatch.setattr(rewriting.shutil, "disk_usage", lambda _: SimpleNamespace(free=1))
    with pytest.raises(StoreError, match="Make room"):
        tf.forget(log, user="bob")
    assert db.read_bytes() == held
    with Store(db).writing() as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS a")
    monkeypatch.undo()
    with pytest.raises(StoreError, match="not tenfold's \\(mine\\)"):
        tf.forget(log, user="bob")


@pytest.mark.full
def test_killed_it_has_forgotten_all_or_nothing(db, tmp_path):
    points = [("Path", "replace", 1, False), ("Path", "replace", 1, True), ("shutil", "copymode", 1, False)]
    places = [tmp_path / f"{number}.duckdb" for number in range(3)]
    for place in places:
        shutil.copy(db, place)
    cases = [{"at": at, "db": str(to), "out": None} for at, to in zip(points, places, strict=True)]
    assert killed(cases) == [-9] * 3
    left = [tf.open_log(place).requests["user_id"].to_list().count("ann") for place in places]
    assert left == [7, 0, 7]
    assert tf.forget(tf.open_log(places[0]), user="ann").requests == 7


def test_an_instant_without_a_zone_is_of_the_zone_asked(db, monkeypatch):
    log = tf.open_log(db)
    first = log.requests["ts"].min()
    day = (first + timedelta(days=1)).date()
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        asked = (day, datetime(day.year, day.month, day.day), day.isoformat())
        counts = {tf.forget(log, before=before, dry_run=True).requests for before in asked}
    finally:
        monkeypatch.undo()
        time.tzset()
    assert counts == {int((log.requests["ts"] < datetime(day.year, day.month, day.day)).sum())}
    assert counts != {0}


@pytest.mark.parametrize(
    "made",
    ["create schema mine; create table mine.texts as select 1 as a", "create macro doubled(a) as 2 * a",
     "create sequence counter", "alter table requests add column mine varchar"],
)  # fmt: skip
def test_what_is_not_tenfolds_is_not_dropped(db, made):
    with duckdb.connect(db) as connection:
        connection.execute(made)
    before = db.read_bytes()
    with pytest.raises(StoreError, match="not tenfold's"):
        tf.forget(tf.open_log(db), user="ann-long-id")
    assert db.read_bytes() == before


def test_another_logs_folder_is_left_alone(db, tmp_path):
    loaded(tmp_path / "other.duckdb", rows(5), name="other")
    out = tmp_path / "published"
    tf.publish(tf.open_log(tmp_path / "other.duckdb"), out)
    whole = tf.attribute(tf.open_log(out)).total_pusd
    with pytest.raises(StoreError, match="holds another log"):
        tf.publish(tf.open_log(db), out)
    before = db.read_bytes()
    with pytest.raises(StoreError, match="holds another log"):
        tf.forget(tf.open_log(db), user="ann-long-id", published=out)
    assert db.read_bytes() == before
    assert tf.attribute(tf.open_log(out)).total_pusd == whole


def test_a_file_of_two_names_is_refused(db, tmp_path):
    (tmp_path / "again.duckdb").hardlink_to(db)
    with pytest.raises(StoreError, match="hard link"):
        tf.forget(tf.open_log(db), user="ann-long-id")
