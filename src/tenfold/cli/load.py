"""``tenfold load``: log files into a database."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tenfold import display, logs
from tenfold.cli.common import Db, Json, Screen, plain_table, print_json
from tenfold.errors import AssumptionError


def load(
    paths: Annotated[list[str], typer.Argument(help="Log files, folders or globs.", show_default=False)],
    db: Db,
    format: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="Reader to use; default: by content.")
    ] = None,
    map: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="Map (TOML) of a file's own columns.")
    ] = None,
    zone: Annotated[str | None, typer.Option("--zone", metavar="Z", help="Zone of times that carry none.")] = None,
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="COLUMN=VALUE", help="What the lines cannot say.")
    ] = None,
    keep_text: Annotated[bool, typer.Option("--keep-text", help="Show text in excerpts of refused lines.")] = False,
    json: Json = False,
) -> None:
    """Load log files; the format is detected, bad lines are kept aside with a reason, loading twice changes nothing."""
    done = logs.load(
        paths,
        db=db,
        format=format,
        map=map,
        zone=zone,
        set=_constants(set or []),
        keep_text=keep_text,
        progress=_progress,
    )
    summary = done.summary
    if json:
        print_json(summary)
        return
    _show(done, db)


def _show(done: logs.Log, db: Path) -> None:
    summary, screen = done.summary, Screen()
    table = plain_table(("format", False), ("requests", True))
    for name, count in summary["by_format"].items():
        table.add_row(name, f"{count:,}")
    screen.table(table)
    screen.line(
        f"{display.counted(summary['files'], 'file')}: {summary['requests']:,} new requests, "
        f"{summary['duplicates']:,} already known, {summary['merged']:,} merged, {summary['rejected']:,} lines rejected"
        + (f", {summary['ignored']:,} without a request" if summary["ignored"] else "")
        + (f", {summary['buckets']:,} usage buckets" if summary["buckets"] else "")
    )
    if done.flags:
        screen.line("flagged: " + ", ".join(f"{name} {count:,}" for name, count in done.flags.items()))
    if "dup_suspect" in done.flags:
        screen.line(
            "dup_suspect: rows without an id that equal others; they are counted. Where an export grew or overlaps, "
            "name the columns that make a row one request: dedup_key = [...] in the map",
            style="yellow",
        )
    if summary["rejected"]:
        rejects = plain_table(("rejected line", False), ("why", False))
        for row in done.rejects.head(5).iter_rows(named=True):
            rejects.add_row(f"{row['source_file']}:{row['source_line']}", row["reason"])
        screen.table(rejects)
    screen.line(f"next: tenfold cost --db {db} --by model", style="dim")


def _progress(name: str, number: int, of: int) -> None:
    """Name the file being read on a terminal's standard error; say nothing to pipes."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\rloading {number} of {of}: {Path(name).name[:60]:<60}" + ("\n" if number == of else ""))


def _constants(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        column, equals, value = pair.partition("=")
        if not equals or not column:
            raise AssumptionError(f'--set "{pair}": write COLUMN=VALUE, such as service_tier=batch')
        found[column.strip()] = value.strip()
    return found
