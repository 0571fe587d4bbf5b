"""``tenfold load``: log files into a database."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich import progress as bars
from rich.console import Console
from rich.progress import BarColumn, TextColumn

from tenfold import display, logs
from tenfold.cli import completion
from tenfold.cli.common import DbFile, Json, Screen, plain_table, print_json
from tenfold.errors import AssumptionError
from tenfold.logs.owning import owner_state
from tenfold.logs.progress import Step

# Files and lines that the screen names.
_SHOWN = 5
# Characters of a file's name beside the progress bar.
_NAME = 40


def load(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Log files, folders, globs; - (standard input); s3://, gs://, az://, postgresql:// URLs.",
            show_default=False,
        ),
    ],
    db: DbFile,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Reader to use; default: by content.",
            autocompletion=completion.formats,
        ),
    ] = None,
    map: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="Map (TOML) of a file's own columns.")
    ] = None,
    zone: Annotated[str | None, typer.Option("--zone", metavar="Z", help="Zone of times that carry none.")] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="COLUMN=VALUE", help="What the lines cannot say.")
    ] = None,
    keep_text: Annotated[bool, typer.Option("--keep-text", help="Keep prompts and answers.")] = False,
    no_hashes: Annotated[
        bool, typer.Option("--no-hashes", help="Leave text unread: no hashes for the caching levers, but faster.")
    ] = False,
    json: Json = False,
) -> None:
    """Load log files; the format is detected, bad lines are kept aside with a reason, loading twice changes nothing."""
    with _bar() as progress:
        done = logs.load(
            paths,
            db=db,
            format=format,
            map=map,
            zone=zone,
            set=constants(set or []),
            keep_text=keep_text,
            hashes=not no_hashes,
            progress=progress,
        )
    summary = done.summary
    if json:
        print_json(summary)
        return
    _show(done, db, keep_text=keep_text)


def _show(done: logs.Log, db: Path, *, keep_text: bool) -> None:
    summary, screen = done.summary, Screen()
    buckets = summary["buckets_by_format"]
    table = plain_table(("format", False), ("requests", True), *([("usage buckets", True)] if buckets else []))
    for name, count in summary["by_format"].items():
        table.add_row(name, f"{count:,}", *([f"{buckets.get(name, 0):,}"] if buckets else []))
    screen.table(table)
    screen.line(
        f"{display.counted(summary['files'], 'file')}: {summary['requests']:,} new requests, "
        f"{summary['duplicates']:,} already known, {summary['merged']:,} merged, "
        f"{display.counted(summary['rejected'], 'line')} rejected"
        + (f", {summary['ignored']:,} without a request" if summary["ignored"] else "")
        + (f", {summary['buckets']:,} usage buckets" if summary["buckets"] else "")
    )
    _show_odd(done, screen, keep_text=keep_text)
    if summary["unread"]:
        screen.line(f"NOT READ: {display.counted(len(summary['unread']), 'file')} of no known format", style="bold red")
        for one in summary["unread"][:_SHOWN]:
            screen.raw(f"  {one['file']}: {one['why']}")
        screen.line(
            "Load one of them by its own name to see what was looked for; --format NAME or --map FILE reads it"
            + (f", and --json lists all {len(summary['unread'])}" if len(summary["unread"]) > _SHOWN else ""),
            style="yellow",
        )
    if summary["rejected"]:
        screen.line("REJECTED" + (f", the first {_SHOWN}:" if summary["rejected"] > _SHOWN else ":"), style="bold red")
        for row in done.rejects.head(_SHOWN).iter_rows(named=True):
            screen.raw(f"  {row['source_file']}:{row['source_line']}: {row['reason']}")
    if note := owner_state(done.store).note:
        screen.line(note, style="yellow")
    if buckets and not summary["requests"] + summary["duplicates"]:
        first = "" if _has_requests(done) else "load the requests too, then: "
        screen.line(
            f"next: {first}tenfold reconcile --db {db}; or, in Python, tenfold.open_log(DB).buckets; they are no "
            "requests, and cost counts none of them"
        )
        return
    screen.line(f"next: tenfold cost --db {db} --by model", style="dim")


def _has_requests(done: logs.Log) -> bool:
    with done.store.reading() as connection:
        return bool(connection.execute("SELECT 1 FROM requests LIMIT 1").fetchall())


def _show_odd(done: logs.Log, screen: Screen, *, keep_text: bool) -> None:
    if done.flags:
        flagged = ", ".join(f"{name} {count:,}" for name, count in done.flags.items())
        screen.line(f"flagged: {flagged} (what they mean: tenfold formats)")
    if done.estimated:
        screen.line(f"estimated: the token counts of {display.counted(done.estimated, 'request')}, from their text")
    if keep_text and done.summary["duplicates"]:
        screen.line(
            "--keep-text keeps the text of new requests; for that of known ones load into a new database",
            style="yellow",
        )
    if "not_tokenised" in done.flags:
        screen.line(
            "not_tokenised: tiktoken is not installed, so text was hashed whole only, and not counted where a log has "
            'no usage. Install with: pip install "tenfold[tokens]", and load into a new database',
            style="yellow",
        )
    if "dup_suspect" in done.flags:
        screen.line(
            "dup_suspect: rows without an id that equal others; they are counted. Where an export grew or overlaps, "
            "name the columns that make a row one request (dedup_key = [...] in a map), or load into a new database",
            style="yellow",
        )


@contextmanager
def _bar() -> Generator[Callable[[Step], None] | None]:
    """Show on a terminal's standard error how far the load is; say nothing to pipes."""
    if not sys.stderr.isatty():
        yield None
        return
    words = TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[done]}")
    with bars.Progress(*words, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, done="")
        began, before = time.monotonic(), _Before()

        def show(step: Step) -> None:
            if step.number != before.number:
                before.number, before.finished = step.number, before.finished + before.read
            before.read = step.read_bytes
            speed = (before.finished + before.read) / 1e6 / max(time.monotonic() - began, 1e-3)
            name = Path(step.file).name[-_NAME:]
            rejects = f", {step.rejected:,} rejected" if step.rejected else ""
            bar.update(
                task,
                description=f"{step.number} of {step.files}: {name}",
                total=max(step.file_bytes, 1),
                completed=step.read_bytes,
                done=f"{step.rows:,} rows, {speed:,.0f} MB/s{rejects}",
            )

        yield show


@dataclass(slots=True)
class _Before:
    """Bytes of the files before, and of the one being read."""

    number: int = 0
    finished: int = 0
    read: int = 0


def constants(pairs: list[str]) -> dict[str, str]:
    """Read what ``--set`` says.

    Args:
        pairs: Texts such as ``service_tier=batch``.

    Returns:
        Value by column.

    Raises:
        AssumptionError: A text is no pair.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        column, equals, value = pair.partition("=")
        if not equals or not column:
            raise AssumptionError(f'--set "{pair}": write COLUMN=VALUE, such as service_tier=batch')
        found[column.strip()] = value.strip()
    return found
