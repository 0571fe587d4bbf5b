"""``tenfold prices``: look at the price book and lint it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from tenfold.cli import completion, prices_diff, prices_import, prices_reprice
from tenfold.cli.common import Json, Prices, PricesOnly, Screen, book_of, plain_table, print_json
from tenfold.errors import NotEvaluable, near
from tenfold.money import usd_text
from tenfold.prices.book import EVER, FOREVER, Entry, PriceBook, PriceList
from tenfold.prices.check import check as lint
from tenfold.prices.meters import meters
from tenfold.prices.words import canonical_provider

app = typer.Typer(help="Look at the price book and check it.", no_args_is_help=True)
app.command("import")(prices_import.import_prices)
app.command("diff")(prices_diff.diff)
app.command("reprice")(prices_reprice.reprice)


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
    model: Annotated[str, typer.Argument(help="Model id.", show_default=False, autocompletion=completion.models)],
    provider: Annotated[
        str | None,
        typer.Option("--provider", metavar="P", help="Only this provider.", autocompletion=completion.providers),
    ] = None,
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
    _show(rows, datetime.now(tz=UTC))


def _show(rows: list[tuple[PriceList, Entry]], today: datetime) -> None:
    screen = Screen()
    for provider, model in dict.fromkeys((entry.provider, entry.model) for _, entry in rows):
        own = [(one, entry) for one, entry in rows if (entry.provider, entry.model) == (provider, model)]
        used = [(i, m) for i, m in enumerate(meters()) if any(entry.rates[i] is not None for _, entry in own)]
        facts = [_facts(one, entry) for one, entry in own]
        shown = [name for name in facts[0] if name == "tier" or any(fact[name] for fact in facts)]
        rates = [m.price for _, m in used]
        table = plain_table(
            *((name, name == "above") for name in shown),
            *((name, True) for name in rates),
            spare=[name for name in reversed(rates) if name not in _MAIN],
        )
        for fact, (one, entry) in zip(facts, own, strict=True):
            style = None if one.valid_from <= today < one.valid_to else "dim"
            table.add_row(*(fact[name] for name in shown), *(_rate(entry, i, m.per) for i, m in used), style=style)
        screen.line(f"{provider}: {model}", style="bold")
        screen.table(table)
    kinds = dict.fromkeys(
        _UNITS[meter.price] for i, meter in enumerate(meters())
        if meter.price in _UNITS and any(entry.rates[i] is not None for _, entry in rows)
    )  # fmt: skip
    screen.line(
        f"USD per million tokens{''.join(f', {kind}' for kind in kinds)}. No date: as long as the book knows it. "
        "Dim: not in force today",
        style="dim",
    )
    notes = dict.fromkeys(text for _, entry in rows for text in (entry.ambiguous, entry.adjusted, entry.note) if text)
    screen.said(("note", note) for note in notes)


def _facts(one: PriceList, entry: Entry) -> dict[str, str]:
    return {
        "tier": entry.tier,
        "region": entry.region,
        "from": "" if one.valid_from == EVER else _day(one.valid_from),
        "to": "" if one.valid_to == FOREVER else _day(one.valid_to),
        "hours": one.window.text() if one.window else "",
        "above": f"{entry.above:,}" if entry.above > 0 else "",
        "status": "" if entry.status == "confirmed" else entry.status,
        "yours": "yours" if entry.layer == "contract" else "",
    }


_MAIN = ("input", "output")  # rates that a narrow screen keeps
_UNITS = {
    "web_search": "searches per 1,000", "web_search_preview": "searches per 1,000", "file_search": "searches per 1,000",
    "maps_search": "searches per 1,000", "request": "request per 1,000", "page": "page per 1,000",
    "image": "image each", "code_session": "session each", "audio_hour": "audio_hour per hour of input audio",
    "output_hour": "output_hour per hour generated", "cache_storage": "cache_storage per million tokens an hour",
    "character": "character per million",
}  # fmt: skip


def _day(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d" if instant.hour == instant.minute == 0 else "%Y-%m-%d %H:%MZ")


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
        "hours": one.window.text() if one.window else None,
        "rates_usd": {name: rate for name, rate in rates.items() if rate is not None},
        "ambiguous": entry.ambiguous or None,
    }
