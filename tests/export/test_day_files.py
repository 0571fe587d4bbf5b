"""Publishing: the folder says what the database says, changes by day, and is whole at any moment."""

import json
import os
import shutil
import tempfile
import threading
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_logs import START, killed, loaded, row, rows, tables
from quick import few
from stores import log_of

import tenfold as tf
from tenfold.errors import StoreError
from tenfold.export import snapshots
from tenfold.logs.remapping import remap
from tenfold.owners import Owners, Rule
from tenfold.store import schema
from tenfold.store.database import Store
from tenfold.store.manifest import is_published
from tenfold.store.published import PublishedStore


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("origin")
    return folder, tf.publish(loaded(folder / "log.duckdb", rows()), folder / "out")


@pytest.fixture
def published(origin, tmp_path):
    """A database and a folder it was published into."""
    folder, done = origin
    out = tmp_path / "out"
    shutil.copy(folder / "log.duckdb", tmp_path)
    shutil.copytree(folder / "out", out, symlinks=True)
    return tmp_path / "log.duckdb", out, replace(done, out=out, snapshot=out / "snapshots" / done.snapshot.name)


def files(folder):
    """Bytes of every file but the manifest, by path."""
    real = Path(folder).resolve()
    return {
        str(file.relative_to(real)): file.read_bytes()
        for file in real.rglob("*")
        if file.is_file() and file.name != "manifest.json"
    }


def manifest(folder):
    held = json.loads((Path(folder) / "manifest.json").read_text())
    return {name: value for name, value in held.items() if name != "made_at"}


def test_every_table_and_total_is_that_of_the_database(published):
    db, out, done = published
    log, folder = tf.open_log(db), tf.open_log(out)
    assert tables(folder) == tables(log)
    assert folder.summary == log.summary
    assert folder.log_hash == log.log_hash
    assert folder.requests.columns == log.requests.columns
    assert folder.texts.is_empty()
    for by in ((), ("team", "model"), ("user_id", "day")):
        one, other = (tf.attribute(opened, zone="Asia/Tokyo").composition(by).frame for opened in (log, folder))
        assert one.equals(other)
    assert (done.rows, done.days, done.written, done.is_new) == (24, 7, 7, True)
    for path in (out / "current", done.snapshot):
        assert is_published(path)
        assert tables(tf.open_log(path)) == tables(log)


def test_days_are_utc_and_rows_are_numbered_by_day_and_place(published):
    _, _, done = published
    for day in sorted((done.snapshot / "requests").iterdir()):
        frame = pl.read_parquet(day / "requests.parquet", hive_partitioning=False)
        assert frame.columns == ["rid", *schema.names("requests")]
        name = day.name.removeprefix("day=")
        if name == "undated":
            assert frame["ts"].null_count() == frame.height == 3
            number = 2**27
        else:
            assert {ts.date().isoformat() for ts in frame["ts"]} == {name}
            assert frame["ts"].is_sorted()
            number = (datetime.fromisoformat(name) - datetime(1970, 1, 1)).days
        assert frame["rid"].to_list() == [number * 2**32 + at for at in range(frame.height)]


@pytest.mark.full
def test_prefix_blocks_are_the_hashes_in_order(tmp_path):
    text = [{"role": "user", "content": "word " * 700}]
    db = tmp_path / "log.duckdb"
    log = loaded(db, [row(0, prompt=text), row(1, prompt=text), row(9)])
    done = tf.publish(log, tmp_path / "out")
    with PublishedStore(tmp_path / "out").reading() as connection:
        held = connection.execute("SELECT rid, prefix_hashes FROM requests ORDER BY rid").fetchall()
        blocks = connection.execute("SELECT rid, block_no, hash FROM prefix_blocks ORDER BY ALL").fetchall()
    assert blocks == [(rid, at, one) for rid, hashes in held for at, one in enumerate(hashes or [], 1)]
    assert len(blocks) >= 10
    # nothing secret: no key of the hashes, which the database has, and no text
    with Store(db).reading() as connection:
        (key,) = connection.execute("SELECT value FROM meta WHERE name = 'hash_key'").fetchall()[0]
    meta = pl.read_parquet(done.snapshot / "meta.parquet")
    assert not {"hash_key", "hash_key_fingerprint", "forgotten_key"} & set(meta["name"])
    assert all(key.encode() not in content and b"word word" not in content for content in files(done.snapshot).values())


@pytest.mark.full
def test_no_text_of_refused_lines_is_published(tmp_path):
    db = tmp_path / "log.duckdb"
    log = loaded(db, [row(0), {**row(1), "input_tokens": "many", "prompt": "a secret"}, row(2)], keep_text=True)
    with db.with_name("b.jsonl").open("w") as handle:
        handle.write(json.dumps(row(5)) + "\n{broken 'a secret'\n")
    log = tf.load(db.with_name("b.jsonl"), db=db, keep_text=True)
    assert log.rejects["excerpt"].str.contains("secret").any()
    done = tf.publish(log, tmp_path / "out")
    assert pl.read_parquet(done.snapshot / "rejects.parquet")["excerpt"].null_count() == 1
    assert not (done.snapshot / "texts.parquet").exists()


def test_a_second_publish_of_the_same_makes_nothing(published):
    db, out, first = published
    again = tf.publish(tf.open_log(db), out)
    assert (again.is_new, again.written, again.linked, again.bytes) == (False, 0, 7, 0)
    assert again.snapshot == first.snapshot
    assert len(list((out / "snapshots").iterdir())) == 1


# Rules give teams over again what they had: r3 of bob alone has another one after.
RULES = (Rule("here", "new/team", None, (("user_id", ("bob",)), ("team", ("c'd",))), override=True),)
CHANGES = {
    "load": lambda db: loaded(db, [row(402, user="late"), row(400)], "more"),
    # a fuller record of a stored request, told to be of another day: both days change
    "snapshot": lambda db: loaded(db, [{**row(3, user="bob"), "output_tokens": 99, "ts": row(7)["ts"]}], "fuller"),
    "owner": lambda db: remap(Store(db), Owners("v1", RULES)),
    "forget": lambda db: tf.forget(tf.open_log(db), user="bob"),
}


@pytest.mark.parametrize("name", few(1, ["owner", "load", "snapshot", "forget"]))
def test_a_change_of_any_kind_writes_its_days_alone_and_bytes_as_anew(published, tmp_path, name):
    """Incremental equals full: owner rules laid over, a new load, a request told again, a user forgotten."""
    db, out, before = published
    old = {path: file.stat().st_ino for path, file in _files(before.snapshot)}
    CHANGES[name](db)
    log = tf.open_log(db)
    done = tf.publish(log, out)
    full = tf.publish(log, tmp_path / "full")
    assert 0 < done.written < done.days
    assert files(done.snapshot) == files(full.snapshot)
    assert manifest(done.snapshot) == manifest(full.snapshot)
    assert tables(tf.open_log(out)) == tables(log)
    same = sum(old.get(path) == file.stat().st_ino for path, file in _files(done.snapshot) if "day=" in path)
    assert same == 2 * done.linked


@pytest.mark.full
def test_changes_one_after_the_other_leave_two_snapshots(published, tmp_path):
    db, out, _ = published
    for change in CHANGES.values():
        change(db)
        done = tf.publish(tf.open_log(db), out)
    full = tf.publish(tf.open_log(db), tmp_path / "full")
    assert files(done.snapshot) == files(full.snapshot)
    assert len(list((out / "snapshots").iterdir())) == 2


def _files(folder):
    return [(str(file.relative_to(folder)), file) for file in Path(folder).rglob("*.parquet")]


@pytest.mark.full
@settings(max_examples=4, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([None, "a", "\x00'", "é/\n"]), st.integers(0, 10**6)), max_size=6
    )
)
def test_any_rows_come_back_as_they_were(made):
    given_rows = [
        {
            "ts": None if day == 3 else START.replace(day=1 + day), "user_id": user, "team": user,
            "input_tokens": tokens, "output_tokens": 1, "provider": "openai", "model": "gpt-5", "load_id": 1,
            "source_line": 1,
        }
        for day, user, tokens in made
    ]  # fmt: skip
    log = log_of(given_rows)
    with tempfile.TemporaryDirectory() as folder:
        tf.publish(log, Path(folder) / "out")
        store = PublishedStore(Path(folder) / "out")
        columns = ", ".join(schema.names("requests"))
        with store.reading() as here, log.store.reading() as there:
            sql = f"SELECT {columns} FROM requests ORDER BY ALL"
            assert here.execute(sql).fetchall() == there.execute(sql).fetchall()
            assert here.execute("SELECT count(DISTINCT rid) FROM requests").fetchall() == [(len(made),)]


@pytest.mark.full
def test_a_store_without_requests_has_the_columns_still(tmp_path):
    log = loaded(tmp_path / "log.duckdb", [row(0)])
    tf.forget(log, before="2030-01-01")
    done = tf.publish(tf.open_log(tmp_path / "log.duckdb"), tmp_path / "out")
    assert (done.rows, done.days) == (0, 1)
    folder = tf.open_log(tmp_path / "out")
    assert folder.requests.is_empty()
    assert tf.attribute(folder).total_pusd == 0


@pytest.mark.parametrize("spoil", few(1, ["other", "current", "file", "inside", "parent", "link"]))
def test_a_place_that_holds_something_else_is_left_alone(published, tmp_path, spoil):
    db, out, done = published
    place = tmp_path / "place"
    if spoil == "file":
        place.write_text("mine")
    elif spoil == "other":
        place.mkdir()
        (place / "thesis.txt").write_text("mine")
    elif spoil == "current":
        shutil.copytree(out, place, symlinks=True)
        (place / "current").unlink()
        (place / "current").mkdir()
    elif spoil == "inside":
        place = done.snapshot
    elif spoil == "parent":
        place = tmp_path / "none" / "such"
    else:
        place.symlink_to(tmp_path / "nowhere")
    before = {str(one): one.lstat().st_mtime_ns for one in tmp_path.rglob("*")}
    with pytest.raises(StoreError, match=str(place)):
        tf.publish(tf.open_log(db), place)
    assert {str(one): one.lstat().st_mtime_ns for one in tmp_path.rglob("*")} == before


@pytest.mark.full
def test_a_failed_publish_leaves_the_snapshot_before_whole(published, monkeypatch):
    db, out, done = published
    loaded(db, [row(500)], "more")
    held = files(out / "current")

    def full(path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(snapshots, "synced", full)
    with pytest.raises(OSError, match="No space left"):
        tf.publish(tf.open_log(db), out)
    monkeypatch.undo()
    assert files(out / "current") == held
    assert [one.name for one in (out / "snapshots").iterdir()] == [done.snapshot.name]
    assert tf.publish(tf.open_log(db), out).written == 1


POINTS = (
    ("snapshots", "synced", 1, False), ("snapshots", "linked", 3, True), ("snapshots", "synced", 5, True),
    ("Path", "rename", 1, False), ("Path", "rename", 1, True), ("Path", "symlink_to", 1, True),
    ("Path", "replace", 1, False), ("Path", "replace", 1, True), ("Path", "rename", 2, True),
    ("shutil", "rmtree", 1, False),
)  # fmt: skip


@pytest.mark.full
def test_killed_at_any_moment_a_whole_snapshot_is_current(published, tmp_path):
    db, out, _ = published
    loaded(db, [row(500)], "second")
    tf.publish(tf.open_log(db), out)
    old = tables(tf.open_log(out))
    loaded(db, [row(600)], "third")
    new = tables(tf.open_log(db))
    places = [tmp_path / f"place{number}" for number in range(len(POINTS))]
    for place in places:
        shutil.copytree(out, place, symlinks=True)
    codes = killed([{"at": at, "db": str(db), "out": str(to)} for at, to in zip(POINTS, places, strict=True)])
    assert codes == [-9] * len(POINTS)
    swap = POINTS.index(POINTS[7])
    assert [tables(tf.open_log(place)) for place in places] == [new if at >= swap else old for at in range(len(POINTS))]
    for place in places:
        tf.publish(tf.open_log(db), place)
        assert tables(tf.open_log(place)) == new
        left = [one.name for one in (place / "snapshots").iterdir()]
        assert len(left) == 2
        assert not any(name.startswith(".") for name in left)


@pytest.mark.full
def test_a_second_publisher_waits_and_then_says_who_is_first(published):
    db, out, _ = published
    said = pytest.raises(StoreError, match=f"process \\(PID {os.getpid()}\\). Waited 0 s")
    with snapshots.opened(out, 1), said, snapshots.opened(out, 0):
        pass
    began, done = threading.Event(), []

    def hold():
        with snapshots.opened(out, 1):
            began.set()
            threading.Event().wait(0.3)
            done.append("first")

    first = threading.Thread(target=hold)
    first.start()
    began.wait()
    tf.publish(tf.open_log(db), out)
    assert done == ["first"]
    first.join()


@pytest.mark.full
def test_a_snapshot_that_is_read_is_not_removed(published):
    db, out, first = published
    with PublishedStore(out).reading() as connection:
        for number in (1, 2, 3):
            loaded(db, [row(500 + number)], f"more{number}")
            tf.publish(tf.open_log(db), out)
        assert connection.execute("SELECT count(*) FROM requests").fetchall() == [(24,)]
        assert first.snapshot.is_dir()
    loaded(db, [row(700)], "last")
    assert first.snapshot.name in tf.publish(tf.open_log(db), out).removed


@pytest.mark.full
def test_readings_within_a_steady_one_are_of_one_snapshot(published):
    db, out, _ = published
    log = tf.open_log(out)
    with log.store.steady():
        loaded(db, [row(500)], "more")
        tf.publish(tf.open_log(db), out)
        assert log.requests.height == 24
    assert log.requests.height == 25


def _broken(name):
    def spoil(folder):
        file = folder / "manifest.json"
        held = json.loads(file.read_text())
        if name == "version":
            held["schema_version"] = 1
        elif name == "days":
            del held["days"]
        file.write_text("{" if name == "json" else json.dumps(held))

    return spoil


def _missing(folder):
    next(folder.glob("requests/day=*/requests.parquet")).unlink()


def _short(folder):
    file = next(folder.glob("requests/day=*/requests.parquet"))
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[:-9])


@pytest.mark.parametrize(
    ("spoil", "said"),
    few(
        1,
        [
            (_broken("version"), "another version of tenfold"),
            (_missing, "requests.parquet: missing"),
            (_broken("json"), "manifest.json: broken"),
            (_broken("days"), "manifest.json: broken"),
            (lambda folder: (folder / "manifest.json").unlink(), "Publish"),
            (_short, "bytes long, not"),
            (lambda folder: (folder / "cube.parquet").unlink(), "cube.parquet: missing"),
        ],
    ),
    ids=["version", "no day", "json", "days", "no manifest", "cut day", "no cube"],
)
def test_a_broken_snapshot_is_refused_and_mended_by_the_next_publish(published, spoil, said):
    db, out, done = published
    spoil(done.snapshot)
    for path in (out, done.snapshot):
        with pytest.raises(StoreError, match=said):
            tf.open_log(path)
    again = tf.publish(tf.open_log(db), out)
    assert again.is_new
    assert again.linked == 0
    assert tables(tf.open_log(out)) == tables(tf.open_log(db))


def test_writing_to_a_folder_is_refused_with_the_way_out(published):
    _, out, _ = published
    log = tf.open_log(out)
    for write in (
        lambda: tf.load(out.parent / "a.jsonl", db=out),
        lambda: remap(log.store, Owners("v", ())),
        lambda: tf.forget(log, user="ann"),
        lambda: log.store.writing().__enter__(),
    ):
        with pytest.raises(StoreError, match="can only be read.*--db FILE"):
            write()
    with pytest.raises(StoreError, match="Publish from the database"):
        tf.publish(log, out.parent / "copy")


@pytest.mark.full
def test_the_hash_is_of_all_columns(tmp_path):
    """Each column alone changes the day's number."""
    log = loaded(tmp_path / "log.duckdb", [row(0)])
    first = tf.publish(log, tmp_path / "out").snapshot
    number = json.loads((first / "manifest.json").read_text())["days"]["2026-07-01"]["content"]
    values = {"VARCHAR": "'?'", "TIMESTAMP": "ts + INTERVAL 1 SECOND", "BOOLEAN": "NOT coalesce(@, false)"}
    values |= {"MAP(VARCHAR, VARCHAR)": "MAP {'a': 'b'}", "VARCHAR[]": "['a']"}
    columns = ", ".join(schema.names("requests"))
    with duckdb.connect(tmp_path / "log.duckdb", read_only=True) as connection:
        for column in schema.REQUESTS:
            changed = values.get(column.type, "77").replace("@", column.name)
            told = f"SELECT * REPLACE (({changed})::{column.type} AS {column.name}) FROM requests"
            found = connection.execute(f"SELECT sum(hash({columns})::HUGEINT)::VARCHAR FROM ({told})").fetchall()
            assert f"1 {found[0][0]}" != number, column.name
