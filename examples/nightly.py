"""The nightly job: load what is new, publish, bill yesterday and the month to date, and say when something is off.

    python nightly.py --logs "logs/**/*.jsonl.gz" --db usage.duckdb --out nightly
    python nightly.py bill --date 2026-10-01 ...          one task alone, for any scheduler and for any past date

Tasks, in order: ``load`` (files that are new), ``publish`` (OUT/published, the requests by day, for readers that never
wait; OUT/costs.parquet, the daily costs), ``bill`` (OUT/bill/DAY.json: yesterday and the month to date), ``check`` (the
alerts). The last two read what is published. Every task may be run again, and after a crash: a load is one transaction
and skips what it knows, files appear whole or not at all, and the same day of the same log gives the same files.

Alerts are JSON lines on standard output, kept in OUT/alerts/DAY.jsonl; in Python, `run(job, day, send=...)` hands them
to a function of yours. Exit codes: 0 all is well; 1 it failed, and says why; 2 the command line is wrong; 3 the log
has no request of that day; 4 done, and there are alerts.

    # crontab: at 03:15, for the day before (UTC)
    15 3 * * *  cd /srv/llm-costs && .venv/bin/python nightly.py --logs "logs/**/*.jsonl.gz" --patience 900
    # systemd: nightly.service with ExecStart= that command; nightly.timer with OnCalendar=*-*-* 03:15:00 UTC and
    # Persistent=true
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import polars as pl

import tenfold as tf
from tenfold.errors import LockedError

_T = TypeVar("_T")
ONE_DAY = timedelta(days=1)
# What the daily costs are kept apart by: columns of the cube, so that a year of them is read in a moment.
OWNERS = ("day", "team", "feature", "environment", "provider", "model", "service_tier")


@dataclass(frozen=True)
class Job:
    """What the job works on, and what it calls an alert.

    Args:
        logs: Files, folders or globs; ``{day}`` in them stands for the day (2026-10-01), where logs lie by day.
        db: The database.
        out: Folder of what the job makes.
        prices: Folder of your own price files over the shipped ones.
        budgets: File of budgets (owner, month, usd).
        zone: IANA zone of days and months.
        least_coverage: Share of requests that must have a price.
        most_rejected: Share of lines that may be refused.
        most_burn: Spend over the budget of the days that are over.
        anomaly_usd: Impact below which an anomaly is no alert.
        patience_s: How long to wait altogether for whoever else has the database.
    """

    logs: tuple[str, ...]
    db: Path = Path("usage.duckdb")
    out: Path = Path("nightly")
    prices: Path | None = None
    budgets: Path | None = None
    zone: str = "UTC"
    least_coverage: float = 0.99
    most_rejected: float = 0.001
    most_burn: float = 1.2
    anomaly_usd: int = 10
    patience_s: float = 900.0


class Alert(NamedTuple):
    """Something to look at.

    Args:
        kind: coverage, rejected, budget or anomaly.
        day: The day that was looked at.
        text: One sentence.
    """

    kind: str
    day: str
    text: str


class Result(NamedTuple):
    """What a run came to.

    Args:
        bill: The day's bill, as in OUT/bill/DAY.json; None where the log has no request of that day.
        alerts: What is off.
    """

    bill: dict[str, Any] | None
    alerts: tuple[Alert, ...]


# -- the tasks


def load(job: Job, day: date) -> dict[str, Any]:
    """Load the files that are new; a file or request that is known is not counted again."""
    paths = [one.replace("{day}", day.isoformat()) for one in job.logs]
    return patiently(job, lambda: tf.load(paths, db=job.db).summary)


def publish(job: Job) -> Path:
    """Publish the requests by day, and beside them what they cost by day and owner."""
    published = job.out / "published"
    job.out.mkdir(parents=True, exist_ok=True)
    patiently(job, lambda: tf.publish(tf.open_log(job.db), published))
    log = tf.open_log(published)
    with log.steady():
        mix = tf.attribute(log, book(job), zone=job.zone).composition(OWNERS)
        made_of = {"card_version": pl.lit(book(job).version), "log_hash": pl.lit(log.log_hash)}
    names = [name for name in mix.frame.columns if name.endswith("_pusd") and name != "cost_pusd"]
    used = [name.removesuffix("_pusd") for name in names if (mix.frame[name] != 0).any()]
    meters = [f"{name}_{kind}" for name in used for kind in ("units", "pusd")]
    costs = mix.frame.select(*OWNERS, "requests", "unpriced_requests", *meters, "cost_pusd", **made_of)
    part = job.out / ".costs.parquet"
    costs.sort(OWNERS, nulls_last=True).write_parquet(part)
    part.replace(job.out / "costs.parquet")
    return published


def bill(job: Job, day: date) -> dict[str, Any] | None:
    """Write the day's bill and the month's to date; None where the log has no request of that day."""
    log = tf.open_log(job.out / "published")
    made: dict[str, Any] = {"date": day.isoformat(), "zone": job.zone}
    with log.steady():  # nothing is published between the figures
        for name, first in (("day", day), ("month_to_date", day.replace(day=1))):
            ledger = tf.attribute(log, book(job), **bounds(job, first, day))
            mix = ledger.composition(["team", "model"])
            if not mix.frame["rows_seen"].sum():
                return None
            coverage = {key: value for key, value in ledger.coverage.as_dict().items() if key != "unpriced"}
            made[name] = {"total_pusd": mix.total_pusd, "coverage": coverage, "rows": mix.rows()}
        made |= {"card_version": book(job).version, "log_hash": log.log_hash}
    write(job.out / "bill" / f"{day}.json", json.dumps(made, indent=2, default=str) + "\n")
    return made


def check(job: Job, day: date) -> tuple[Alert, ...]:
    """Look for what is off with the day, and keep it in OUT/alerts/DAY.jsonl."""
    log = tf.open_log(job.out / "published")
    with log.steady():
        alerts = tuple(_alerts(job, log, day))
    write(job.out / "alerts" / f"{day}.jsonl", "".join(f"{json.dumps(one._asdict())}\n" for one in alerts))
    return alerts


def run(job: Job, day: date, send: Callable[[Sequence[Alert]], None] = lambda _: None) -> Result:
    """Run all tasks for one day.

    Args:
        job: What to work on.
        day: The day to bill; usually yesterday.
        send: Called with the alerts where there are any.

    Returns:
        The bill and the alerts.
    """
    load(job, day)
    publish(job)
    made = bill(job, day)
    alerts = check(job, day)
    if alerts:
        send(alerts)
    return Result(made, alerts)


# -- what they are made of


def patiently(job: Job, work: Callable[[], _T]) -> _T:
    """Work; where another process has the database, say which, and try again until the patience ends."""
    until = time.monotonic() + job.patience_s
    while True:
        try:
            return work()
        except LockedError as error:  # tenfold has waited lock_timeout_s (tenfold.toml) already, and says for whom
            if time.monotonic() >= until:
                raise
            sys.stderr.write(f"nightly: {error}. Trying again\n")
            time.sleep(1)


def bounds(job: Job, first: date, last: date) -> dict[str, Any]:
    """Give the instants that days begin and end at in the job's zone, as `tf.attribute` takes them."""
    zone = ZoneInfo(job.zone)
    since, until = (datetime.combine(one, clock(), zone) for one in (first, last + ONE_DAY))
    return {"since": since, "until": until, "zone": job.zone}


def book(job: Job) -> tf.PriceBook:
    """Read the price book: the shipped one, and your own prices over it."""
    return tf.price_book(overlay=job.prices) if job.prices else tf.price_book()


def _alerts(job: Job, log: tf.Log, day: date) -> Iterator[Alert]:
    said = day.isoformat()
    of_day = tf.attribute(log, book(job), **bounds(job, day, day))
    ratio = of_day.coverage.requests_ratio
    if ratio is not None and ratio < job.least_coverage:
        models = sorted({f"{row['model']} ({row['price_status']})" for row in of_day.coverage.unpriced})
        text = (
            f"{ratio:.2%} of requests have a price, fewer than {job.least_coverage:.2%}; without: {', '.join(models)}"
        )
        yield Alert("coverage", said, text)
    refused, lines, files = _rejected(log, of_day, day)
    if lines and refused / lines > job.most_rejected:
        text = f"{refused:,} of {lines:,} lines refused, more than {job.most_rejected:.2%}: {', '.join(files)}"
        yield Alert("rejected", said, text)
    if job.budgets:
        first = day.replace(day=1)
        last = (first + timedelta(days=31)).replace(day=1) - ONE_DAY
        burn = tf.burn(tf.attribute(log, book(job), **bounds(job, first, last)), job.budgets, through=day)
        for line in burn.lines:
            reached = [f"{float(one.share):.0%}" for one in line.alerts if one.day == day]
            if reached:
                yield Alert("budget", said, f"{line.owner}: {reached[-1]} of the month's budget is spent")
            if line.burn_ratio is not None and line.burn_ratio > job.most_burn:
                yield Alert(
                    "budget", said, f"{line.owner}: {float(line.burn_ratio):.0%} of the budget of the days so far"
                )
    past = tf.attribute(log, book(job), until=bounds(job, day, day)["until"], zone=job.zone)
    try:
        found = tf.anomalies(past, since=day, least_pusd=job.anomaly_usd * 10**12)
    except tf.NotEvaluable:  # fewer than two weeks of log: nothing to hold the day against
        return
    for text in found.sentences()[: len(found.found)]:
        yield Alert("anomaly", said, text)


def _rejected(log: tf.Log, of_day: tf.Ledger, day: date) -> tuple[int, int, list[str]]:
    """Count refused lines and all lines of the files that hold requests of the day or came in the night after it."""
    names = of_day.composition(["source_file"]).frame["source_file"].to_list()
    night = datetime.combine(day + ONE_DAY, clock())
    is_new = (pl.col("loaded_at") >= night) & (pl.col("loaded_at") < night + ONE_DAY)
    loads = log.loads.filter(pl.col("source_file").is_in(names) | is_new)
    worst = loads.filter(pl.col("rejected") > 0).sort("rejected", descending=True)["source_file"].head(3).to_list()
    return int(loads["rejected"].sum()), int(loads["lines"].sum()), worst


def write(file: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def main(words: Sequence[str] | None = None) -> int:
    """Run the job, or one task of it, from the command line; gives the exit code."""
    parser = argparse.ArgumentParser(description="The nightly job.", epilog="Exit codes: see the head of the file.")
    parser.add_argument("task", nargs="?", default="all", choices=("all", "load", "bill", "publish", "check"))
    parser.add_argument("--date", type=date.fromisoformat, help="the day to bill; default: yesterday")
    parser.add_argument("--logs", action="append", required=True, help="files, folders, globs; may be repeated")
    for name, kind in (("db", Path), ("out", Path), ("prices", Path), ("budgets", Path), ("zone", str)):
        parser.add_argument(f"--{name}", type=kind, default=getattr(Job, name))
    for name in ("least-coverage", "most-rejected", "most-burn", "patience"):
        field = "patience_s" if name == "patience" else name.replace("-", "_")
        parser.add_argument(f"--{name}", type=float, dest=field, default=getattr(Job, field))
    given = vars(parser.parse_args(words))
    task, day = given.pop("task"), given.pop("date")
    given["logs"] = tuple(given["logs"])
    job = Job(**given)
    day = day or (datetime.now(UTC).astimezone(ZoneInfo(job.zone)).date() - ONE_DAY)
    try:
        return one(job, task, day)
    except (tf.TenfoldError, OSError) as error:
        sys.stderr.write(f"nightly: {task} failed: {error}\n")
        return 1


def one(job: Job, task: str, day: date) -> int:
    """Run one task, or all, and say in an exit code what it came to."""

    def told(alerts: Sequence[Alert]) -> None:
        sys.stdout.write("".join(f"{json.dumps(alert._asdict())}\n" for alert in alerts))

    if task == "load":
        load(job, day)
    elif task == "publish":
        publish(job)
    elif task == "bill":
        return 0 if bill(job, day) else _none(day)
    elif task == "check":
        alerts = check(job, day)
        told(alerts)
        return 4 if alerts else 0
    else:
        result = run(job, day, told)
        return _none(day) if result.bill is None else 4 if result.alerts else 0
    return 0


def _none(day: date) -> int:
    sys.stderr.write(f"nightly: no request on {day}: nothing to bill\n")
    return 3


if __name__ == "__main__":
    sys.exit(main())
