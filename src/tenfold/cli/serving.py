"""``tenfold serving``: the economics of models on GPUs of one's own."""

from __future__ import annotations

import typer

from tenfold.cli import (
    serving_breakeven,
    serving_choose,
    serving_disaggregate,
    serving_fleet,
    serving_prices,
    serving_simulate,
    serving_size,
)

app = typer.Typer(help="Size, simulate and price models on GPUs of your own.", no_args_is_help=True)
app.command("size")(serving_size.size)
app.command("simulate")(serving_simulate.simulate)
app.command("fleet")(serving_fleet.fleet)
app.command("prices")(serving_prices.prices)
app.command("disaggregate")(serving_disaggregate.disaggregate_command)
app.command("breakeven")(serving_breakeven.breakeven)
app.command("choose")(serving_choose.choose_command)
