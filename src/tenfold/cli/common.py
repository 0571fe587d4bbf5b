"""What the commands share: options, output for people and for scripts, exit codes."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from tenfold import config
from tenfold.cli import completion
from tenfold.errors import AssumptionError, TenfoldError
from tenfold.prices import PriceBook, price_book
from tenfold.prices.opening import SHIPPED

if TYPE_CHECKING:
    from tenfold.logs import Log

SCHEMA_VERSION = 1
instant = config.instant
_WIDTH = 100  # columns, where output is no terminal
_NARROW = 10  # columns that a wrapped column keeps

Db = Annotated[
    Path,
    typer.Option("--db", help="The database that `tenfold load` made, or a published folder.", show_default=False),
]
DbFile = Annotated[Path, typer.Option("--db", help="The database that `tenfold load` makes.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
From = Annotated[str | None, typer.Option("--from", metavar="D", help="First day or instant to count.")]
To = Annotated[str | None, typer.Option("--to", metavar="D", help="Day or instant to stop before.")]
Zone = Annotated[
    str | None,
    typer.Option("--zone", metavar="Z", help="Time zone of report days; default UTC.", autocompletion=completion.zones),
]
Prices = Annotated[Path | None, typer.Option("--prices", metavar="DIR", help="Price files laid over the shipped ones.")]
PricesOnly = Annotated[bool, typer.Option("--prices-only", help="Use the files of --prices alone.")]
PriceAt = Annotated[
    str | None, typer.Option("--price-at", metavar="T", help="Price everything at this instant: a what-if.")
]


class _Out(Console):
    """A reader that has gone, such as `head`, is told to the caller instead of ending the process here."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Screen:
    """Output for people. Text is printed as it is: what a log says is never read as markup."""

    def __init__(self) -> None:
        self.console = _Out(highlight=False, markup=False, emoji=False)
        if not self.console.is_terminal:
            asked = os.environ.get("COLUMNS", "")
            width = int(asked) if asked.isdecimal() and int(asked) > 0 else _WIDTH
            self.console = _Out(highlight=False, markup=False, emoji=False, width=width)

    def line(self, text: str = "", style: str | None = None) -> None:
        """Print a paragraph, wrapped at words.

        Args:
            text: The text.
            style: Rich style.
        """
        self.console.print(text, style=style)

    def raw(self, text: str) -> None:
        """Print text that must stay in one piece, such as a path or a log line.

        Args:
            text: The text.
        """
        self.console.print(text, soft_wrap=True)

    def command(self, text: str) -> None:
        """Print a command to copy, broken with backslashes where it is wider than the screen.

        Args:
            text: The command, in one line.
        """
        parts: list[str] = []
        for word in shlex.split(text):
            # an option and its value stay on one line
            if parts and parts[-1].startswith("-") and " " not in parts[-1] and not word.startswith("-"):
                parts[-1] += f" {shell(word)}"
            else:
                parts.append(shell(word))
        lines = [" "]
        for part in parts:
            if len(lines[-1]) + len(part) + 3 > self.console.width and lines[-1].strip():
                lines.append("     ")
            lines[-1] += f" {part}"
        self.raw(" \\\n".join(lines))

    def table(self, table: Table) -> None:
        """Print a table that fits: columns that may wrap give way, then the least needed are left out and named.

        Where the needed columns alone are too wide, columns of text wrap, all but the first: its names stay whole.

        Args:
            table: The table.
        """
        left_out: list[str] = []
        for at in _spare(table):
            if self._width_of(_without(table, left_out)) <= self.console.width:
                break
            left_out.append(at)
        shown = _without(table, left_out)
        if self._width_of(shown) > self.console.width:
            for column in shown.columns[1:]:
                column.no_wrap = column.justify == "right"
        screen, self.console.width = self.console.width, max(self._width_of(shown), self.console.width)
        self.console.print(shown, crop=False)
        self.console.width = screen
        if left_out:
            names = [name for name in map(_heading, table.columns) if name in left_out]
            wider = "a wider terminal" if self.console.is_terminal else "a larger COLUMNS"
            self.line(
                f"left out to fit {screen} columns: {', '.join(names)} ({wider} or --json shows them)", style="dim"
            )

    def _width_of(self, table: Table) -> int:
        """Columns that a table takes at least, in which what may wrap has wrapped."""
        wraps = [column for column in table.columns if not column.no_wrap]
        for column in wraps:
            column.max_width = _NARROW
        wide = Measurement.get(self.console, self.console.options.update(max_width=10_000), table).maximum
        for column in wraps:
            column.max_width = None
        return wide

    def said(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print labelled sentences, their text in one column.

        Args:
            rows: Pairs of label and text.
        """
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for label, text in rows:
            grid.add_row(label, text)
        self.console.print(grid)


def shell(word: str) -> str:
    """Quote a word for a shell, readably.

    Args:
        word: The word.

    Returns:
        As it is where nothing in it is special; else in double quotes where it holds single ones, such as SQL.
    """
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document on standard output.

    Args:
        document: What to print; ``schema_version`` is added first.

    Raises:
        ValueError: It holds infinity or NaN, which JSON does not have.
    """
    text = json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2, default=str, allow_nan=False)
    sys.stdout.write(text + "\n")


def book_of(prices: Path | None, *, only: bool) -> PriceBook:
    """Load the price book that the options name.

    Args:
        prices: Folder of the user's own price files, or None.
        only: Use them alone instead of laying them over the shipped ones.

    Returns:
        The book.

    Raises:
        AssumptionError: ``--prices-only`` without ``--prices``.
    """
    if prices is None:
        if only:
            raise AssumptionError("--prices-only needs --prices DIR")
        return price_book()
    if str(prices) == SHIPPED:
        return price_book()
    return price_book(prices) if only else price_book(overlay=prices)


def report_zone(zone: str | None) -> str:
    """Choose the report zone: the option, else ``tenfold.toml``, else UTC.

    Args:
        zone: The option's value, or None.

    Returns:
        A known IANA zone name.
    """
    name = zone or config.settings().report_zone
    config.zone(name, where="--zone")
    return name


class PlainTable(Table):
    """A table without rules that knows which of its columns are needed least."""

    spare: Iterable[str] | None = None


def plain_table(
    *columns: tuple[str, bool], wraps: Iterable[str] = (), spare: Iterable[str] | None = None
) -> PlainTable:
    """Make a table without rules, for terminals and pipes alike.

    Args:
        columns: Pairs of heading (a long one on lines of its own) and whether it is a number (right-aligned).
        wraps: Headings of columns that wrap where the table is wider than the screen.
        spare: Headings of columns that are left out where it still is, the least needed first; without it columns of
            numbers, the last first, but for the first of them.

    Returns:
        The empty table.
    """
    table = PlainTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.spare = spare
    for heading, is_number in columns:
        table.add_column(
            heading, justify="right" if is_number else "left", no_wrap=heading not in wraps, overflow="fold"
        )
    return table


def _heading(column: Column) -> str:
    return " ".join(str(column.header).split())


def _spare(table: Table) -> list[str]:
    """Headings that may be left out, the least needed first."""
    asked = table.spare if isinstance(table, PlainTable) else None
    if asked is not None:
        return [" ".join(name.split()) for name in asked]
    numbers = [_heading(column) for column in table.columns if column.justify == "right"]
    return numbers[:0:-1]


def _without(table: Table, headings: Iterable[str]) -> Table:
    left_out = set(headings)
    if not left_out:
        return table
    kept = [column for column in table.columns if _heading(column) not in left_out]
    made = plain_table()
    for column in kept:
        made.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap, overflow=column.overflow)
    cells = [list(column.cells) for column in kept]
    for at, row in enumerate(table.rows):
        made.add_row(*(column[at] for column in cells), style=row.style)
    return made


_HELD: ContextVar[ExitStack | None] = ContextVar("held", default=None)


@contextmanager
def holding() -> Generator[None]:
    """Hold what a command opens until it ends.

    Yields:
        Nothing.
    """
    with ExitStack() as stack:
        before = _HELD.set(stack)
        try:
            yield
        finally:
            _HELD.reset(before)


def one_state(db: Path) -> Log:
    """Open a log for a command that only reads: all that it says is of one state, and a load waits until it ends.

    Args:
        db: The database, or a published folder.

    Returns:
        The log.
    """
    from tenfold.logs import open_log  # not in the way of commands without a log

    log, held = open_log(db), _HELD.get()
    if held is not None:
        held.enter_context(log.steady())
    return log


@contextmanager
def working(what: str, *, json: bool) -> Generator[None]:
    """Say on a terminal's standard error what is being worked on, until it is done; say nothing to pipes and scripts.

    Args:
        what: The step, such as "pricing the log".
        json: The answer is for a script.

    Yields:
        Nothing.
    """
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if json or not console.is_interactive:
        yield
        return
    with console.status(Text(what)):
        yield


def fail(error: TenfoldError | OSError, code: int) -> None:
    """Say on standard error, in one line, why the command ends.

    Args:
        error: What went wrong.
        code: Exit code: 1 refused or failed, 3 not evaluable with the data at hand.
    """
    text = _plain(error) if isinstance(error, OSError) else " ".join(str(error).split())
    sys.stderr.write(f"error: {text}\n")
    raise SystemExit(code)


def _plain(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{(error.strerror or str(error)).lower()}"
