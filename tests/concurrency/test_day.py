"""A day of use: one loader that is killed now and then, readers of every kind and a publisher, all at once on one file.

Nobody reads half a load: every total that anybody sees is that of some number of whole loads, and one report is of one
state. No load is lost, no writer starves, and readers of what is published do not wait. `-s` prints the waits.
"""

import statistics
import time
from collections import defaultdict

import pytest
from simulated_day import Day, make, start, state, states

import tenfold as tf
from tenfold.money import shown
from tenfold.store import database, locks
from tenfold.store.database import Store

EVERYBODY = ("loader", "notebook", "notebook", "cost", "levers", "review", "publisher", "always_on", "always_on")


def played(day: Day, roles):
    """Play a day; what every role told. A role that fails, or waits beyond the limit, fails the test with its words."""
    processes = [(role, start(role, day, seed)) for seed, role in enumerate(roles)]
    ended = [(role, process.communicate()[1], process.returncode) for role, process in processes]
    failed = [f"{role}: {said[-2000:]}" for role, said, code in ended if code]
    assert not failed, "\n".join(failed)
    return {role: day.told(role) for role in dict.fromkeys(roles)}


def check(day: Day, right, told):
    """Hold what was told against the totals after every whole number of loads."""
    for role, reports in told.items():
        for report in reports:
            seen = [tuple(one) for one in report.get("seen", ())]
            assert set(seen) <= set(right), (role, set(seen) - set(right))
            assert len(set(seen)) <= 1, f"{role}: two states in one look: {seen}"
            assert report.get("foots", True), (role, report)
            assert report.get("agrees", True), f"{role}: total and coverage are of two states"
            assert report.get("spend", right[0][1]) in {pusd for _, pusd in right}, role
            if "text" in report:
                named = {pusd for _, pusd in right if f"{shown(pusd)}" in report["text"]}
                assert named, "the review names the total of no whole number of loads"
    for role in ("notebook", "cost", "always_on"):
        assert all(report["seen"] for report in told.get(role, ())), role
    assert all(one["ended"] == 0 for one in told["loader"] if "ended" in one)
    assert state(day.db) == right[-1]
    assert tf.open_log(day.db).summary["files"] >= len(day.files)
    assert not day.db.with_name(f"{day.db.name}.waiting").exists()


def report_waits(told):
    waits = defaultdict(list)
    for role, reports in told.items():
        waits[role] += [one["waited_s"] for one in reports if "waited_s" in one]
    for role, seconds in waits.items():
        print(  # noqa: T201 -- what `-s` shows
            f"{role}: {len(seconds)} times, waited {statistics.median(seconds):.2f} s (p50), {max(seconds):.2f} s (max)"
        )


@pytest.mark.full
def test_a_day_of_use(tmp_path):
    day = make(tmp_path, loads=16, rows=60, big=3000)
    right = states(day)
    assert len(set(right)) == len(day.files)
    told = played(day, EVERYBODY)
    check(day, right, told)
    assert sum(one["killed"] for one in told["loader"] if "killed" in one) >= 1
    # they have met: readers saw several states, and the last one is published
    assert len({tuple(one["seen"][0]) for one in told["notebook"]}) > 2
    assert len({tuple(one["seen"][0]) for one in told["always_on"]}) > 2
    assert all(one["waited_s"] == 0 for one in told["always_on"])
    report_waits(told)


@pytest.mark.full
def test_a_small_day(tmp_path):
    day = make(tmp_path, loads=5, rows=30, big=300)
    right = states(day)
    told = played(day, ("loader", "notebook", "cost"))
    check(day, right, told)


@pytest.mark.full
def test_readers_that_overlap_for_ever_do_not_keep_a_load_out(tmp_path):
    day = make(tmp_path, loads=6, rows=20, big=20)
    for file in day.files[:3]:
        tf.load(file, db=day.db)
    readers = [start("notebook", day, seed) for seed in range(4)]  # each reads most of the time
    for file in day.files[3:]:
        tf.load(file, db=day.db)  # raises after lock_timeout_s
    (tmp_path / "over").touch()
    for one in readers:
        said = one.communicate()[1]
        assert one.returncode == 0, said[-2000:]


@pytest.mark.full
def test_readers_of_what_is_published_open_no_database(tmp_path, monkeypatch):
    day = make(tmp_path, loads=2, rows=20, big=20)
    tf.load(day.files[0], db=day.db)
    tf.publish(tf.open_log(day.db), day.published)
    first = state(day.published)
    monkeypatch.setattr(locks, "Wait", None)  # whoever waits for a lock needs one
    monkeypatch.setattr(database.Store, "_connect", None)
    assert state(day.published) == first


@pytest.mark.full
def test_a_report_of_what_is_published_is_of_one_snapshot(tmp_path):
    day = make(tmp_path, loads=3, rows=20, big=20)
    tf.load(day.files[0], db=day.db)
    tf.publish(tf.open_log(day.db), day.published)
    log = tf.open_log(day.published)
    first = state(day.published)
    with log.steady():
        for file in day.files[1:]:
            tf.load(file, db=day.db)
            tf.publish(tf.open_log(day.db), day.published)
            ledger = tf.attribute(log)
            assert (ledger.coverage.requests, ledger.total_pusd) == first
    assert state(day.published) == state(day.db) != first


@pytest.mark.full
def test_loads_that_follow_each_other_for_ever_do_not_keep_a_reader_out(tmp_path):
    day = make(tmp_path, loads=1, rows=5, big=5)
    tf.load(day.files[0], db=day.db)
    reader = start("notebook", day)
    while len(day.told("notebook")) < 2 and reader.poll() is None:  # it fails after lock_timeout_s
        with Store(day.db).writing():
            time.sleep(0.02)
    (tmp_path / "over").touch()
    said = reader.communicate()[1]
    assert reader.returncode == 0, said[-2000:]
