"""``tenfold prices``: look at the price book and lint it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from tenfold.cli.common import Json, Prices, PricesOnly, Screen, book_of, plain_table, print_json
from tenfold.errors import NotEvaluable, near
from tenfold.money import usd_text
from tenfold.prices.book import EVER, Entry, PriceBook, PriceList
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
    screen = Screen()
    for line in found:
        screen.line(line)
    screen.line(f"{entries:,} entries in {len(book.lists):,} price lists, card {book.version}: {len(found)} findings")


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
        raise NotEvaluable(_unknown(book, model, provider))
    if json:
        print_json(
            {"card_version": book.version, "model": model, "history": [_as_dict(one, entry) for one, entry in rows]}
        )
        return
    _show(rows)


def _show(rows: list[tuple[PriceList, Entry]]) -> None:
    used = [(i, meter) for i, meter in enumerate(meters()) if any(entry.rates[i] is not None for _, entry in rows)]
    screen = Screen()
    for provider, model in dict.fromkeys((entry.provider, entry.model) for _, entry in rows):
        table = plain_table(("tier", False), ("from", False), ("above", True), *((m.price, True) for _, m in used))
        for one, entry in rows:
            if (entry.provider, entry.model) == (provider, model):
                rates = [_rate(entry, i, meter.per) for i, meter in used]
                tier = " ".join(part for part in (entry.tier, entry.region) if part)
                since = "" if one.valid_from == EVER else one.valid_from.date().isoformat()
                table.add_row(tier, since, f"{entry.above:,}" if entry.above > 0 else "", *rates)
        screen.line(f"{provider}: {model}", style="bold")
        screen.table(table)
    screen.line(
        "USD per million tokens, web_search per 1,000 calls; no date: as long as the book knows it", style="dim"
    )
    screen.said(("note", note) for note in dict.fromkeys(t for _, e in rows for t in (e.ambiguous, e.note) if t))


def _rate(entry: Entry, index: int, per: int) -> str:
    rate = entry.rates[index]
    return "" if rate is None else (usd_text(rate * per) or "")


def _history(book: PriceBook, model: str, provider: str | None) -> list[tuple[PriceList, Entry]]:
    providers = sorted({key[0] for key in book.lists}) if provider is None else [canonical_provider(provider)]
    found = {(name, book.match(name, model).model) for name in providers}
    return [
        (one, entry) for key, lists in book.lists.items() if key[:2] in found for one in lists for entry in one.bands
    ]


def _unknown(book: PriceBook, model: str, provider: str | None) -> str:
    if provider is not None:
        return book.match(provider, model).reason
    return f'no provider here has a price for model "{model}".{near(model.lower(), {name for _, name in book.ids})}'


def _as_dict(one: PriceList, entry: Entry) -> dict[str, Any]:
    rates = {
        meter.price: usd_text(None if rate is None else rate * meter.per)
        for meter, rate in zip(meters(), entry.rates, strict=True)
    }
    return {
        **entry.as_dict(one.valid_from, one.valid_to),
        "rates_usd": {name: rate for name, rate in rates.items() if rate is not None},
        "ambiguous": entry.ambiguous or None,
    }
