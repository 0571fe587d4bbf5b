"""``tenfold price``: the price of one call."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Any, cast

import typer

from tenfold.cli.common import Json, Prices, PricesOnly, book_of, out, plain_table, print_json
from tenfold.errors import NotEvaluable, UsageError
from tenfold.money import shown, usd_text
from tenfold.prices.single import CallPrice
from tenfold.prices.single import price as price_call


def price(
    provider: Annotated[str, typer.Option("--provider", metavar="P", help="Who bills.", show_default=False)],
    model: Annotated[str, typer.Option("--model", metavar="M", help="Model id as served.", show_default=False)],
    at: Annotated[
        str, typer.Option("--at", metavar="T", help="Day or instant (with a zone) of the call.", show_default=False)
    ],
    usage: Annotated[
        str,
        typer.Option(
            "--usage", metavar="JSON", help="Token counts, or a provider's own usage object.", show_default=False
        ),
    ],
    tier: Annotated[
        str | None, typer.Option("--tier", metavar="S", help="Service tier; default: as the usage says.")
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", metavar="R", help="Price region; default: as the usage says.")
    ] = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    json: Json = False,
) -> None:
    """Price one call exactly, with the entry that was used; exits 3 where there is no price, 1 for impossible usage."""
    found = price_call(
        provider=provider,
        model=model,
        at=at,
        usage=_usage(usage),
        tier=tier,
        region=region,
        book=book_of(prices, only=prices_only),
    )
    if json:
        print_json(found.as_dict())
    else:
        _show(found)
    if found.cost_pusd is None:
        raise NotEvaluable(f"{found.status}: {found.reason}")


def _usage(text: str) -> dict[str, object]:
    try:
        parsed: Any = json_text.loads(text)
    except json_text.JSONDecodeError as error:
        raise UsageError(f"--usage is no JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise UsageError('--usage must be one JSON object, such as {"input_tokens": 1000, "output_tokens": 200}')
    return cast("dict[str, object]", parsed)


def _show(found: CallPrice) -> None:
    console = out()
    console.print(
        "no price" if found.cost_pusd is None else f"[bold]${usd_text(found.cost_pusd)}[/bold]", f"  {found.status}"
    )
    table = plain_table(("meter", False), ("units", True), ("USD per million", True), ("cost", True))
    for name, line in found.meters.items():
        rate = "no price" if line.rate_pusd is None else f"{line.rate_pusd / 1_000_000:g}"
        table.add_row(name, f"{line.units:,}", rate, "" if line.cost_pusd is None else shown(line.cost_pusd, 8))
    console.print(table)
    if found.entry:
        console.print(
            f"{found.entry.file} entry {found.entry.number}: {found.entry.model} ({found.entry.tier}), "
            f"checked {found.entry.checked}, {found.entry.source}",
            style="dim",
        )
