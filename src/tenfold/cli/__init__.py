"""The command line: one thin module a command. Exit codes: 0 done, 1 refused or failed, 2 usage, 3 not evaluable."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import typer

from tenfold.cli import (
    anomalies,
    assume,
    bridge,
    cost,
    demo,
    diagnose,
    explain,
    export,
    forecast,
    forget,
    formats,
    guide,
    kpis,
    levers,
    load,
    owners,
    price,
    prices,
    publish,
    reconcile,
    review,
    serving,
)
from tenfold.cli.common import fail, holding
from tenfold.cli.plain_text import write_what_can_be_written
from tenfold.errors import NotEvaluable, TenfoldError

app = typer.Typer(
    name="tenfold",
    cls=guide.Guided,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("load")(load.load)
app.command("formats")(formats.formats)
app.command("owners")(owners.owners)
app.command("cost")(cost.cost)
app.command("bridge")(bridge.bridge)
app.command("kpis")(kpis.kpis)
app.command("anomalies")(anomalies.anomalies)
app.command("forecast")(forecast.forecast)
app.command("reconcile")(reconcile.reconcile)
app.command("assume")(assume.assume)
app.command("levers")(levers.levers)
app.command("review")(review.review)
app.command("diagnose")(diagnose.diagnose)
app.command("explain")(explain.explain)
app.command("price")(price.price)
app.command("publish")(publish.publish)
app.command("forget")(forget.forget)
app.add_typer(export.app, name="export")
app.add_typer(prices.app, name="prices")
app.add_typer(serving.app, name="serving")
guide.teach(app)


def _print_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(metadata.version("tenfold") + "\n")
        raise typer.Exit


@app.callback(help=guide.WAY)
def options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 -- its own callback acts on it
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Find the next 10x in an LLM bill: exact cost from per-request token logs, and the levers that shrink it."""
    context.with_resource(holding())


def main() -> None:
    """Run the command line; errors become one line on standard error and an exit code."""
    write_what_can_be_written()
    try:
        app(prog_name="tenfold")
    except NotEvaluable as error:
        fail(error, 3)
    except (TenfoldError, OSError) as error:
        fail(error, 1)
