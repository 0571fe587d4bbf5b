"""Who has a database, who waits and who goes first: threads of a process, processes, and what is said meanwhile."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from other_process import other
from small_logs import ledger, row

from tenfold.config import Settings
from tenfold.errors import LockedError, StoreError
from tenfold.ledger import attribute
from tenfold.logs import Log
from tenfold.store import locks
from tenfold.store.database import Store


@pytest.fixture(scope="module")
def neighbour():
    with other() as one:
        yield one


@pytest.fixture
def db(tmp_path, neighbour):
    file = tmp_path / "usage.duckdb"
    with Store(file).writing():
        pass
    yield file
    neighbour.does("leave")


def store(db, wait_s=0.0):
    return Store(db, limits=Settings(lock_timeout_s=wait_s))


def waiting(db):
    return db.with_name(f"{db.name}.waiting")


def until(true):
    for _ in range(20_000):
        if true():
            return
        time.sleep(0.001)
    raise AssertionError("it never came to that")


# -- threads of one process


def test_readers_of_one_process_hold_the_lock_until_the_last_has_gone(db, neighbour):
    # a process that closes any other handle of the file loses DuckDB's lock, and a writer could come in
    with store(db).reading():
        with store(db).reading():
            pass
        with pytest.raises(LockedError, match="read by this very thread"), store(db).writing():
            pass
        assert f"PID {os.getpid()}" in neighbour.does("writing", db)
    assert neighbour.does("writing", db) == "done"


def test_a_writer_of_one_process_keeps_its_lock_whoever_tries(db, neighbour):
    with store(db).writing():
        for mode in ("reading", "writing"):
            with pytest.raises(LockedError, match="written by this very thread.*ledger.session"):
                getattr(store(db), mode)().__enter__()
        assert f"being used by PID {os.getpid()}" in neighbour.does("writing", db)
        assert f"being written by PID {os.getpid()}" in neighbour.does("reading", db)


def test_threads_take_turns(db):
    steps, is_reading, may_end = [], threading.Event(), threading.Event()

    def read():
        with store(db, 30).reading() as connection:
            is_reading.set()
            may_end.wait()
            steps.append(("read", connection.execute("SELECT count(*) FROM meta WHERE name = 'x'").fetchall()[0][0]))

    def write():
        with store(db, 30).writing() as connection:
            connection.execute("INSERT INTO meta VALUES ('x', 'y')")
            steps.append("written")

    reader, writer = threading.Thread(target=read), threading.Thread(target=write)
    reader.start()
    is_reading.wait()
    writer.start()
    until(lambda: locks.gate_of(db)._writers_waiting)
    # a reader that comes later lets the writer go first, and is told who it waits for
    with pytest.raises(LockedError, match=r"written by another thread of this process. Waited 0 s"):
        store(db).reading().__enter__()
    may_end.set()
    writer.join()
    reader.join()
    with store(db).reading() as connection:
        assert connection.execute("SELECT count(*) FROM meta WHERE name = 'x'").fetchall() == [(1,)]
    assert steps == [("read", 0), "written"]


def test_a_thread_that_reads_may_read_again_though_a_writer_waits(db):
    with store(db, 30).reading():
        writer = threading.Thread(target=lambda: store(db, 30).writing().__enter__())
        writer.start()
        until(lambda: locks.gate_of(db)._writers_waiting)
        with store(db).reading() as connection:
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
    writer.join()


@pytest.mark.full
def test_threads_on_one_log_in_memory_do_not_meet():
    made = ledger([row(team=f"t{n % 3}", input_tokens=1000 + n) for n in range(60)])
    right = {tuple(by): made.composition(by).frame.sort(by) for by in (["team"], ["feature"], ["model", "team"])}
    found, failed = [], []

    def ask(by):
        try:
            for _ in range(3):
                mix = attribute(Log(made.log.store, {}), made.book).composition(by)
                found.append(mix.frame.sort(by).equals(right[tuple(by)]))
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=ask, args=(list(by),)) for by in right]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (failed, all(found), len(found)) == ([], True, 9)


# -- processes


def test_a_writer_that_waits_goes_before_readers_that_come_later(db, neighbour):
    assert neighbour.does("reading", db) == "done"
    got_in = threading.Event()

    def write():
        with store(db, 30).writing():
            got_in.set()

    writer = threading.Thread(target=write)
    writer.start()
    until(lambda: waiting(db).exists() and waiting(db).read_text() == str(os.getpid()))
    with other() as later:
        said = later.does("reading", db, 0.05)
        assert said.startswith(f"LockedError: {db} is waited for by PID {os.getpid()}, tenfold")
        assert "tenfold publish" in said
        # who came first may read again, and the writer is in as soon as it has gone
        assert not got_in.is_set()
        assert neighbour.does("reading", db) == "done"
        neighbour.does("leave")
        writer.join()
        assert later.does("reading", db) == "done"
    assert got_in.is_set()
    assert not waiting(db).exists()


def test_a_reader_that_waits_goes_before_writers_that_come_later(db, neighbour):
    with store(db).writing():
        neighbour.asks("reading", db, 30)
        until(lambda: waiting(db).exists() and waiting(db).read_text() == str(neighbour.pid))
    # this process comes again at once, and all the same after it
    with pytest.raises(LockedError, match=rf"(waited for|used) by PID {neighbour.pid}\b"), store(db).writing():
        pass
    assert neighbour.answer() == "done"


def test_what_a_killed_writer_leaves_keeps_nobody_out(db, neighbour):
    waiting(db).write_text("4711")
    with store(db).reading():
        pass
    with store(db).writing():
        pass
    assert neighbour.does("reading", db) == "done"
    with pytest.raises(LockedError, match=f"PID {neighbour.pid}"), store(db, 1).writing():
        pass
    assert not waiting(db).exists()  # the next that waited has taken it away


def test_where_no_file_can_be_made_there_is_no_queue_and_all_else_works(db, neighbour, monkeypatch):
    assert neighbour.does("reading", db) == "done"

    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(locks.os, "open", refused)
    with pytest.raises(LockedError, match=r"Waited 0\.05 s"), store(db, 0.05).writing():
        pass
    with store(db).reading():
        pass
    neighbour.does("leave")
    with store(db).writing():
        pass


def test_a_wait_is_told_once_with_who_and_how_long(db, neighbour, monkeypatch, caplog):
    monkeypatch.setattr(locks, "_TOLD_AFTER_S", 0)
    assert neighbour.does("writing", db) == "done"
    with pytest.raises(LockedError) as found, store(db, 1).reading():
        pass
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"{db} is being written by PID {neighbour.pid}, python")
    assert said.endswith("waiting, up to 1 s")
    for part in ("Waited 1 s", "open notebook", "tenfold publish", "lock_timeout_s"):
        assert part in str(found.value)


def test_a_process_is_named_by_its_script_and_never_by_its_arguments(tmp_path):
    script = tmp_path / "ipykernel_launcher.py"
    script.write_text("import sys\nprint(1, flush=True)\nsys.stdin.read()\n")
    command = [sys.executable, "-u", str(script), "--password=hunter2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        one.stdout.readline()
        named = locks.process(one.pid, "python3")
        one.stdin.close()
    if Path("/proc/self").is_dir():
        assert named == f"PID {one.pid}, python3 (ipykernel_launcher.py, a notebook)"
    assert "hunter2" not in named
    assert locks._script(["-m", "tenfold", "load"]) == "tenfold"
    assert locks._script(["-c", "password = 1"]) == ""
    assert locks._script(["/usr/bin/tenfold", "load"]) == "tenfold"


def test_a_file_that_somebody_is_making_is_not_taken_away(tmp_path):
    made = tmp_path / "usage.duckdb"
    made.touch()
    with pytest.raises(StoreError), store(made, 0.4).writing():
        pass
    assert made.exists()
    os.utime(made, (1, 1))
    with store(made, 5).writing():
        pass
    assert made.stat().st_size > 0


def test_one_state_for_all_that_is_read_within(db, neighbour):
    with store(db).steady():
        assert "LockedError" in neighbour.does("writing", db)
        with store(db).reading():
            pass
    assert neighbour.does("writing", db) == "done"
