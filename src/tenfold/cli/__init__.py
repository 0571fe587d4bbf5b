"""The command line: one thin module a command. Exit codes: 0 done, 1 refused or failed, 2 usage, 3 not evaluable."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import typer

from tenfold.cli import (
    assume,
    cost,
    demo,
    diagnose,
    explain,
    formats,
    levers,
    load,
    owners,
    price,
    prices,
    review,
    serving,
)
from tenfold.cli.common import fail
from tenfold.errors import NotEvaluable, TenfoldError

app = typer.Typer(
    name="tenfold",
    help="Find the next 10x in an LLM bill: exact cost from per-request token logs, and the levers that shrink it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("load")(load.load)
app.command("formats")(formats.formats)
app.command("owners")(owners.owners)
app.command("cost")(cost.cost)
app.command("assume")(assume.assume)
app.command("levers")(levers.levers)
app.command("review")(review.review)
app.command("diagnose")(diagnose.diagnose)
app.command("explain")(explain.explain)
app.command("price")(price.price)
app.add_typer(prices.app, name="prices")
app.add_typer(serving.app, name="serving")


def _print_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(metadata.version("tenfold") + "\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Find the next 10x in an LLM bill: exact cost from per-request token logs, and the levers that shrink it."""


def main() -> None:
    """Run the command line; errors become one line on standard error and an exit code."""
    try:
        app()
    except NotEvaluable as error:
        fail(error, 3)
    except (TenfoldError, OSError) as error:
        fail(error, 1)
