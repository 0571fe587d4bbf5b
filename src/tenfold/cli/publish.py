"""``tenfold publish``: a database as a folder of Parquet files by day."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich import progress as bars
from rich.console import Console
from rich.progress import BarColumn, TextColumn

from tenfold.cli.common import DbFile, Json, Screen, print_json, shell
from tenfold.display import counted
from tenfold.export import Published
from tenfold.export import publish as publish_log
from tenfold.logs import open_log


def publish(
    db: DbFile,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder: new, empty, or published into before.", show_default=False),
    ],
    json: Json = False,
) -> None:
    """Publish the log as Parquet files by day, which every reading command takes as --db, also while loads run.

    Only days that changed are written; DIR/current is swapped when all of it is there. No prompts, answers or hash key.
    """
    with bar(json=json) as progress:
        done = publish_log(open_log(db), out, progress=progress)
    if json:
        print_json(done.as_dict())
    else:
        show(done, Screen())


def show(done: Published, screen: Screen) -> None:
    """Say what publishing did.

    Args:
        done: What it did.
        screen: Where to say it.
    """
    held = f"{counted(done.rows, 'request')}, {counted(done.days, 'day')}"
    if done.is_new:
        written = f"{done.written:,} written ({done.bytes / 1e6:,.1f} MB), {done.linked:,} as before"
        screen.line(f"published {held}: {written}")
    else:
        screen.line(f"nothing has changed since the current snapshot ({held})")
    if done.removed:
        screen.line(f"old snapshots removed: {', '.join(done.removed)}", style="dim")
    screen.raw(f"{done.snapshot}")
    screen.line(f"next: tenfold cost --db {shell(str(done.out))} --by model", style="dim")


@contextmanager
def bar(*, json: bool) -> Generator[Callable[[int, int], None] | None]:
    """Show on a terminal's standard error how many days are published; say nothing to pipes and scripts.

    Args:
        json: The answer is for a script.

    Yields:
        What publishing tells its days to.
    """
    if json or not sys.stderr.isatty():
        yield None
        return
    words = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} of {task.total:,.0f}")
    with bars.Progress(*words, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("days", total=1)
        yield lambda done, of: shown.update(task, completed=done, total=of)
