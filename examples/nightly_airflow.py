"""The nightly job for Airflow 3: each step of ``nightly.py`` a task, the day a parameter. Put both files into dags/.

    airflow backfill create --dag-id llm_costs --from-date 2026-09-01 --to-date 2026-09-30      past days, in any order

A run covers one UTC day, and every task takes it from the run's data interval, so a backfilled run bills the day it is
for, and a run that is cleared and run again writes the same files. ``max_active_runs=1``, since loads take turns on one
database. Alerts fail no task: ``check`` sends them and returns them. Other schedulers run the same steps as
``python nightly.py TASK --date DAY``; Airflow itself is imported only where the DAG is made.
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import nightly

DEFAULTS = {"retries": 3, "retry_delay": timedelta(minutes=10)}


def job() -> nightly.Job:
    """Say what to work on: folders of this machine, from the environment."""
    home = Path(os.environ.get("LLM_COSTS", "/srv/llm-costs"))
    budgets = home / "budgets.csv"
    return nightly.Job(
        logs=(os.environ.get("LLM_LOGS", f"{home}/logs/**/*.jsonl.gz"),),
        db=home / "usage.duckdb",
        out=home / "nightly",
        budgets=budgets if budgets.is_file() else None,
    )


def send(alerts: Sequence[nightly.Alert]) -> None:
    """Hand alerts to whoever is on call; here, to the task's log."""
    for alert in alerts:
        logging.getLogger("llm_costs").warning("%s, %s: %s", alert.day, alert.kind, alert.text)


# The steps as Airflow calls them: what they are given and what they return is small and plain (it goes through XCom).


def load(day: str) -> dict[str, int]:
    """Load the files that are new."""
    done = nightly.load(job(), date.fromisoformat(day))
    return {name: done[name] for name in ("files", "requests", "duplicates", "merged", "rejected")}


def publish() -> str:
    """Publish requests and daily costs."""
    return str(nightly.publish(job()))


def bill(day: str) -> int:
    """Bill the day; gives its cost in picodollars."""
    made = nightly.bill(job(), date.fromisoformat(day))
    if made is None:
        raise LookupError(f"the log has no request of {day}: have its files arrived? Clear this run when they have")
    return int(made["day"]["total_pusd"])


def check(day: str) -> list[dict[str, str]]:
    """Look for what is off, and send it."""
    alerts = nightly.check(job(), date.fromisoformat(day))
    send(alerts)
    return [alert._asdict() for alert in alerts]


def make() -> Any:  # noqa: ANN401 -- Airflow's own type
    """Make the DAG."""
    from airflow.sdk import CronDataIntervalTimetable, chain, dag, task

    @dag(
        dag_id="llm_costs",
        schedule=CronDataIntervalTimetable("15 3 * * *", timezone="UTC"),
        start_date=datetime(2026, 9, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        default_args=DEFAULTS,
    )
    def llm_costs() -> None:
        day = "{{ data_interval_start | ds }}"  # the day before the one on which the run starts
        chain(task(load)(day), task(publish)(), task(bill)(day), task(check)(day))

    return llm_costs()


if importlib.util.find_spec("airflow"):  # without it, the steps above can still be imported and run
    llm_costs_dag = make()
