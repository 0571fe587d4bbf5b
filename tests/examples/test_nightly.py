"""The nightly job: the same after a second run, after kills and in single tasks; alerts and exit codes; locks."""

import json
import signal
import subprocess
import sys
import time
import types
from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from examples_folder import EXAMPLES
from log_files import write
from quick import few
from small_nights import DAY, nightly_job
from small_stream import requests

import tenfold as tf
from tenfold.store.database import Store


@pytest.fixture
def job(tmp_path, example):
    return nightly_job(example, tmp_path)


def files(job):
    """What the job has made, without what bears the time of publishing."""
    made = {
        str(f.relative_to(job.out)): f.read_bytes() for part in ("bill", "alerts") for f in (job.out / part).glob("*")
    }
    made["costs"] = pl.read_parquet(job.out / "costs.parquet").rows()
    made["rows"] = tf.open_log(job.out / "published").requests.drop("load_id").rows()
    return made


def test_twice_is_once_and_the_figures_are_the_ledgers(night, example):
    nightly = example("nightly")
    heard = []
    job, result = night
    before = files(job)
    assert nightly.run(job, DAY, heard.extend) == result
    assert files(job) == before
    ledger = tf.attribute(tf.open_log(job.db))
    by_day = {row["day"]: int(row["cost_pusd"]) for row in ledger.composition(["day"]).frame.rows(named=True)}
    assert result.bill["day"]["total_pusd"] == by_day[DAY] > 0
    assert result.bill["month_to_date"]["total_pusd"] == ledger.total_pusd == sum(by_day.values())
    costs = pl.read_parquet(job.out / "costs.parquet")
    assert int(costs["cost_pusd"].sum()) == ledger.total_pusd
    assert costs["cost_pusd"].dtype == pl.Decimal(38, 0)
    assert {alert.kind for alert in heard} == {"coverage"}
    assert "gpt-4o (usage_partial), no-such-model (unpriced_model)" in heard[0].text
    kept = (job.out / "alerts" / f"{DAY}.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in kept] == [alert._asdict() for alert in result.alerts]


KILLED = """
import os, signal, sys
sys.path.insert(0, {examples!r})
import nightly, tenfold.export.day_files, tenfold.logs.filling
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
def after(whole):
    def do(*words, **more):
        whole(*words, **more)
        die()
    return do
{where}
nightly.main(sys.argv[1:])
"""
KILLS = few(
    0,
    {
        "before the commit": "tenfold.logs.filling.Load._publish = die",
        "after publishing": "nightly.tf.publish = after(nightly.tf.publish)",
        "after the load": "nightly.load = after(nightly.load)",
        "before costs are in place": "nightly.pl.DataFrame.write_parquet = after(nightly.pl.DataFrame.write_parquet)",
        "before the bill": "nightly.bill = die",
        "after the bill": "nightly.bill = after(nightly.bill)",
        "while the bill is written": "nightly.write = die",
    }.items(),
)


@pytest.mark.parametrize(("when", "where"), KILLS)
def test_killed_and_run_again_gives_the_same(job, example, tmp_path, when, where):  # noqa: ARG001
    words = ["--logs", job.logs[0], "--db", str(job.db), "--out", str(job.out), "--date", str(DAY)]
    program = KILLED.format(examples=str(EXAMPLES), where=where)
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    nightly = example("nightly")
    nightly.run(job, DAY)
    alone = nightly.Job(logs=job.logs, db=tmp_path / "alone.duckdb", out=tmp_path / "alone", patience_s=0)
    nightly.run(alone, DAY)
    assert files(job) == files(alone)


def code(nightly, job, *words):
    return nightly.main([*words, "--logs", job.logs[0], "--db", str(job.db), "--out", str(job.out), "--patience", "0"])


@pytest.mark.full
def test_exit_codes_and_alerts(job, example, tmp_path, capsys):
    nightly = example("nightly")
    assert code(nightly, job, "--date", str(DAY)) == 4
    (alert,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (alert["kind"], alert["day"]) == ("coverage", "2026-10-02")
    assert code(nightly, job, "--date", str(DAY), "--least-coverage", "0.5") == 0
    assert code(nightly, job, "--date", "2026-10-20") == 3
    assert code(nightly, job, "bill", "--date", "2026-10-20") == 3
    assert code(nightly, job, "check", "--date", str(DAY)) == 4
    (tmp_path / "budgets.csv").write_text("owner,month,usd\nsearch,2026-10,1\n*,2026-10,100000\n")
    (tmp_path / "logs" / "broken.jsonl").write_text(
        json.dumps(requests(1, 1, seed=9)[0] | {"ts": "2026-10-02T10:00:00Z"}) + "\n{broken\n"
    )
    capsys.readouterr()
    assert code(nightly, job, "--date", str(DAY), "--budgets", str(tmp_path / "budgets.csv")) == 4
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["kind"] for one in said] == ["coverage", "rejected", "budget"]
    assert "1 of 122 lines refused" in said[1]["text"]
    assert "broken.jsonl" in said[1]["text"]
    assert said[2]["text"].startswith("search: ")
    assert "% of the budget of the days so far" in said[2]["text"]
    # a budget that this very day uses up
    ledger = tf.attribute(tf.open_log(job.db))
    spent = [int(row["cost_pusd"]) for row in ledger.composition(["day"]).ordered().rows(named=True)]
    usd = f"{Decimal(spent[0] + spent[1] // 2) / 10**12:.6f}"
    (tmp_path / "budgets.csv").write_text(f"owner,month,usd\n*,2026-10,{usd}\n")
    capsys.readouterr()
    assert code(nightly, job, "check", "--date", str(DAY), "--budgets", str(tmp_path / "budgets.csv")) == 4
    assert "*: 100% of the month's budget is spent" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        nightly.main(["--date", "yesterday"])
    assert nightly.main(["--logs", str(tmp_path / "none.jsonl"), "--db", str(job.db), "--date", str(DAY)]) == 1
    assert "nightly: all failed: " in capsys.readouterr().err


@pytest.mark.full
def test_an_anomaly_is_told(job, example, tmp_path):
    nightly = example("nightly")
    alike = {"provider": "openai", "model": "gpt-5", "team": "search", "input_tokens": 1000, "output_tokens": 500}
    days = [{**row, **alike} for row in requests(20, 24) if row["status"] == "success"]
    dear = [{**row, "request_id": f"x{n}", "output_tokens": 900_000} for n, row in enumerate(days[-20:])]
    write(tmp_path / "logs" / "2026-10-01.jsonl", [*days, *dear])
    result = nightly.run(job, date(2026, 10, 20))
    assert any(one.kind == "anomaly" and "more than expected" in one.text for one in result.alerts)
    assert not any(one.kind == "anomaly" for one in nightly.check(job, date(2026, 10, 18)))


HOLD = """
import sys
from tenfold.store.database import Store
with Store(sys.argv[1]).writing():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.full
def test_who_has_the_database_is_named_and_waited_for(job, example, capsys, tmp_path, monkeypatch):
    nightly = example("nightly")
    (tmp_path / "tenfold.toml").write_text("lock_timeout_s = 0.05\n")
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-c", HOLD, str(job.db)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        writer.stdout.readline()
        assert code(nightly, job, "load", "--date", str(DAY)) == 1
        said = capsys.readouterr().err
        assert f"PID {writer.pid}" in said
        assert "Waited 0.05 s" in said
        # patient, it goes on as soon as the other has ended
        ends = types.SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: (writer.stdin.close(), writer.wait()))
        monkeypatch.setattr(nightly, "time", ends)
        patient = nightly.Job(logs=job.logs, db=job.db, out=job.out, patience_s=60)
        assert nightly.load(patient, DAY)["requests"] == 120
        assert "Trying again" in capsys.readouterr().err


@pytest.mark.full
def test_bill_and_check_read_what_is_published_while_somebody_writes(night, example):
    nightly = example("nightly")
    job, result = night
    with Store(job.db).writing():
        assert nightly.bill(job, DAY) == result.bill


# -- under a scheduler


@pytest.fixture
def airflow(monkeypatch):
    """Airflow's names, as far as the DAG file uses them; what it asks for is kept."""
    asked = types.SimpleNamespace(dag=None, tasks=[], chain=None)
    sdk = types.ModuleType("airflow.sdk")

    class Interval:
        def __init__(self, cron, timezone):
            self.cron, self.timezone = cron, timezone

    def dag(**options):
        asked.dag = options
        return lambda function: function

    def task(function):
        def called(*words):
            asked.tasks.append((function, words))
            return function.__name__

        return called

    sdk.CronDataIntervalTimetable, sdk.dag, sdk.task = Interval, dag, task
    sdk.chain = lambda *steps: setattr(asked, "chain", steps)
    package = types.ModuleType("airflow")
    package.__path__ = []
    package.sdk = sdk
    package.__spec__ = types.SimpleNamespace(name="airflow", loader=None, submodule_search_locations=[])
    monkeypatch.setitem(sys.modules, "airflow", package)
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    return asked


def scheduled(asked, day):
    """Run the tasks of one data interval in order, as the scheduler does: templates filled, results small and plain."""
    found = {}
    for function, words in asked.tasks:
        filled = [word.replace("{{ data_interval_start | ds }}", day) for word in words]
        found[function.__name__] = json.loads(json.dumps(function(*filled)))
    return found


@pytest.mark.full
def test_airflow_backfills_a_past_day_and_runs_again(tmp_path, example, airflow, monkeypatch, caplog):
    monkeypatch.setenv("LLM_COSTS", str(tmp_path))
    monkeypatch.setenv("LLM_LOGS", str(tmp_path / "logs" / "{day}.jsonl"))
    rows = requests(2, 60)
    (tmp_path / "logs").mkdir()
    for day in ("2026-10-01", "2026-10-02"):
        write(tmp_path / "logs" / f"{day}.jsonl", [row for row in rows if row["ts"].startswith(day)])
    module = example("nightly_airflow")
    assert airflow.chain == ("load", "publish", "bill", "check")
    assert (airflow.dag["schedule"].cron, airflow.dag["max_active_runs"]) == ("15 3 * * *", 1)
    newest = scheduled(airflow, "2026-10-02")
    assert newest["load"]["requests"] == 60
    backfilled = scheduled(airflow, "2026-10-01")
    by_day = {
        row["day"].isoformat(): int(row["cost_pusd"])
        for row in tf.attribute(tf.open_log(tmp_path / "usage.duckdb")).composition(["day"]).frame.rows(named=True)
    }
    assert (newest["bill"], backfilled["bill"]) == (by_day["2026-10-02"], by_day["2026-10-01"])
    again = scheduled(airflow, "2026-10-02")
    assert again["load"]["requests"] == 0
    assert {name: again[name] for name in ("publish", "bill", "check")} == {
        name: newest[name] for name in ("publish", "bill", "check")
    }
    # the month's figures now hold the day that came late
    document = json.loads((tmp_path / "nightly" / "bill" / "2026-10-02.json").read_text())
    assert document["month_to_date"]["total_pusd"] == sum(by_day.values())
    assert "coverage" in caplog.text
    with pytest.raises(LookupError, match="no request of 2026-09-30"):
        module.bill("2026-09-30")


@pytest.mark.full
def test_without_airflow_the_steps_import_and_the_tasks_run_alone(example, job, tmp_path):
    assert not hasattr(example("nightly_airflow"), "llm_costs_dag")
    command = [sys.executable, str(EXAMPLES / "nightly.py"), "load", "--date", str(DAY), "--logs", job.logs[0]]
    done = subprocess.run([*command, "--db", str(job.db)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert tf.open_log(job.db).summary["requests"] == 120
