"""What the commands share: options, output for people and for scripts, exit codes."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from tenfold import config
from tenfold.errors import AssumptionError, TenfoldError
from tenfold.prices import PriceBook, price_book
from tenfold.prices.opening import SHIPPED

SCHEMA_VERSION = 1
instant = config.instant
_WIDTH = 100  # columns, where output is no terminal
_NARROW = 10  # columns that a wrapped column keeps

Db = Annotated[Path, typer.Option("--db", help="The database that `tenfold load` made.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
From = Annotated[str | None, typer.Option("--from", metavar="D", help="First day or instant to count.")]
To = Annotated[str | None, typer.Option("--to", metavar="D", help="Day or instant to stop before.")]
Zone = Annotated[str | None, typer.Option("--zone", metavar="Z", help="Time zone of report days; default UTC.")]
Prices = Annotated[Path | None, typer.Option("--prices", metavar="DIR", help="Price files laid over the shipped ones.")]
PricesOnly = Annotated[bool, typer.Option("--prices-only", help="Use the files of --prices alone.")]
PriceAt = Annotated[
    str | None, typer.Option("--price-at", metavar="T", help="Price everything at this instant: a what-if.")
]


class Screen:
    """Output for people. Text is printed as it is: what a log says is never read as markup."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, markup=False, emoji=False)
        if not self.console.is_terminal:
            self.console = Console(highlight=False, markup=False, emoji=False, width=_WIDTH)

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
        """Print a table with every name whole: columns that may wrap give way, then it is wider than the screen.

        Args:
            table: The table.
        """
        wraps = [column for column in table.columns if not column.no_wrap]
        for column in wraps:
            column.max_width = _NARROW
        wide = Measurement.get(self.console, self.console.options.update(max_width=10_000), table).maximum
        for column in wraps:
            column.max_width = None
        screen, self.console.width = self.console.width, max(wide, self.console.width)
        self.console.print(table, crop=False)
        self.console.width = screen

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


def plain_table(*columns: tuple[str, bool], wraps: Iterable[str] = ()) -> Table:
    """Make a table without rules, for terminals and pipes alike.

    Args:
        columns: Pairs of heading (a long one on lines of its own) and whether it is a number (right-aligned).
        wraps: Headings of columns that wrap where the table is wider than the screen.

    Returns:
        The empty table.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, is_number in columns:
        table.add_column(
            heading, justify="right" if is_number else "left", no_wrap=heading not in wraps, overflow="fold"
        )
    return table


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
