"""``tenfold prices``: look at the price book and lint it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from tenfold.cli.common import Json, Prices, PricesOnly, book_of, out, plain_table, print_json
from tenfold.errors import NotEvaluable, near
from tenfold.money import usd_text
from tenfold.prices.book import EVER, FOREVER, Entry, PriceBook, PriceList
from tenfold.prices.check import check as lint
from tenfold.prices.meters import meters
from tenfold.prices.words import canonical_provider

app = typer.Typer(help="Look at the price book and check it.", no_args_is_help=True)


@app.command("check")
def check(prices: Prices = None, prices_only: PricesOnly = False, json: Json = False) -> None:
    """Load the book (any error ends it) and list what looks odd: unusual ratios, dear batches, stale entries."""
    book = book_of(prices, only=prices_only)
    found = lint(book, today=datetime.now(tz=UTC).date())
    entries = sum(len(one.bands) for lists in book.lists.values() for one in lists)
    if json:
        print_json(
            {"card_version": book.version, "price_lists": len(book.lists), "entries": entries, "findings": found}
        )
        return
    console = out()
    for line in found:
        console.print(line)
    console.print(f"{entries:,} entries in {len(book.lists):,} price lists, card {book.version}: {len(found)} findings")


@app.command("show")
def show(
    model: Annotated[str, typer.Argument(help="Model id.", show_default=False)],
    provider: Annotated[str | None, typer.Option("--provider", metavar="P", help="Only this provider.")] = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    json: Json = False,
) -> None:
    """Show a model's price history, tier by tier."""
    book = book_of(prices, only=prices_only)
    rows = _history(book, model, provider)
    if not rows:
        known = {name for _, name in book.ids}
        raise NotEvaluable(f'no price for model "{model}".{near(model.lower(), known)}')
    if json:
        print_json(
            {"card_version": book.version, "model": model, "history": [_as_dict(one, entry) for one, entry in rows]}
        )
        return
    used = [(i, meter) for i, meter in enumerate(meters()) if any(entry.rates[i] is not None for _, entry in rows)]
    table = plain_table(
        ("provider", False),
        ("model", False),
        ("tier", False),
        ("from", False),
        ("above", True),
        *((m.price, True) for _, m in used),
    )
    for one, entry in rows:
        rates = ["" if entry.rates[i] is None else f"{(entry.rates[i] or 0) * m.per / 10**12:g}" for i, m in used]
        tier = entry.tier + (f" {entry.region}" if entry.region else "")
        since = "" if one.valid_from == EVER else one.valid_from.date().isoformat()
        table.add_row(entry.provider, entry.model, tier, since, f"{entry.above:,}" if entry.above > 0 else "", *rates)
    console = out()
    console.print(table)
    console.print("USD per million tokens, web_search per 1,000 calls", style="dim")
    for note in dict.fromkeys(text for _, entry in rows for text in (entry.ambiguous, entry.note) if text):
        console.print(f"- {note}", style="dim")


def _history(book: PriceBook, model: str, provider: str | None) -> list[tuple[PriceList, Entry]]:
    providers = sorted({key[0] for key in book.lists}) if provider is None else [canonical_provider(provider)]
    found = {(name, book.match(name, model).model) for name in providers}
    return [
        (one, entry) for key, lists in book.lists.items() if key[:2] in found for one in lists for entry in one.bands
    ]


def _as_dict(one: PriceList, entry: Entry) -> dict[str, Any]:
    rates = {
        meter.price: usd_text(None if rate is None else rate * meter.per)
        for meter, rate in zip(meters(), entry.rates, strict=True)
    }
    return {
        "provider": entry.provider,
        "model": entry.model,
        "service_tier": entry.tier,
        "region": entry.region or None,
        "valid_from": None if one.valid_from == EVER else one.valid_from.isoformat(),
        "valid_to": None if one.valid_to == FOREVER else one.valid_to.isoformat(),
        "above_input_tokens": max(entry.above, 0),
        "rates_usd": {name: rate for name, rate in rates.items() if rate is not None},
        "file": entry.file,
        "number": entry.number,
        "source": entry.source,
        "checked": entry.checked,
        "status": entry.status,
        "note": entry.note or None,
        "ambiguous": entry.ambiguous or None,
    }
