"""``tenfold price``: the price of one call."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Any, cast

import typer

from tenfold.cli import completion
from tenfold.cli.common import Json, Prices, PricesOnly, Screen, book_of, plain_table, print_json
from tenfold.errors import NotEvaluable, UsageError
from tenfold.money import usd_text
from tenfold.prices.meters import meters, rate_text
from tenfold.prices.single import CallPrice
from tenfold.prices.single import price as price_call

_EXAMPLE = 'Write for example {"input_tokens": 1000, "output_tokens": 200}'


def price(
    provider: Annotated[
        str,
        typer.Option(
            "--provider", metavar="P", help="Who bills.", show_default=False, autocompletion=completion.providers
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="M", help="Model id as served.", show_default=False, autocompletion=completion.models
        ),
    ],
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
        parsed: Any = json_text.loads(text, object_pairs_hook=_once)
    except json_text.JSONDecodeError as error:
        raise UsageError(f"--usage is no JSON ({error}). {_EXAMPLE}") from error
    if not isinstance(parsed, dict) or not parsed:
        raise UsageError(f"--usage must be one JSON object with counts in it. {_EXAMPLE}")
    return cast("dict[str, object]", parsed)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f'--usage has the key "{twice}" twice')
    return dict(pairs)


def _show(found: CallPrice) -> None:
    screen = Screen()
    cost = "no price" if found.cost_pusd is None else f"${usd_text(found.cost_pusd)}"
    screen.line(f"{cost}   {found.status}", style="bold")
    table = plain_table(("meter", False), ("units", True), ("USD", True), ("cost USD", True))
    for meter in meters():
        line = found.meters.get(meter.name)
        if line:
            rate = rate_text(meter, line.rate_pusd)
            table.add_row(meter.name, f"{line.units:,}", rate, usd_text(line.cost_pusd) or "")
    if found.meters:
        screen.table(table)
    if found.entry:
        screen.line(
            f"{found.entry.file} no. {found.entry.number}: {found.entry.model} ({found.entry.tier}), "
            f"checked {found.entry.checked}, {found.entry.source}; matched as {found.how_matched}",
            style="dim",
        )
        if found.entry.adjusted:
            screen.line(f"adjusted: {found.entry.adjusted}", style="dim")
