"""``tenfold prices diff``: what differs between two price books."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenfold import display
from tenfold.cli.common import Json, Screen, plain_table, print_json
from tenfold.prices import PriceBook, price_book
from tenfold.prices.book import EVER
from tenfold.prices.diff import BookDiff, Difference, ListKey
from tenfold.prices.diff import diff as compared
from tenfold.prices.opening import SHIPPED

_BOOK = "a folder of price files, a wheel of tenfold, or `shipped`"


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help=f"The first book: {_BOOK}.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="The second book, likewise.", show_default=False)],
    json: Json = False,
) -> None:
    """List what differs between two price books: lists added and removed, rates changed."""
    found = compared(_book(a), _book(b))
    if json:
        print_json(found.as_dict())
        return
    _show(found)


def _book(name: str) -> PriceBook:
    return price_book() if name == SHIPPED else price_book(Path(name))


def _show(found: BookDiff) -> None:
    screen = Screen()
    _lists(screen, "added", found.added)
    _lists(screen, "removed", found.removed)
    if found.changed:
        screen.line("changed, USD", style="bold")
        table = plain_table(*_WHERE, ("above", True), ("meter", False), ("from", True), ("to", True))
        for one in found.changed:
            above = f"{one.above_input_tokens:,}" if one.above_input_tokens else ""
            table.add_row(*_where(one.key), above, one.meter, one.from_usd or "-", one.to_usd or "-")
        screen.table(table)
    if found.names:
        screen.line("names", style="bold")
        table = plain_table(("kind", False), ("provider", False), ("name", False), ("from", False), ("to", False))
        for name in found.names:
            table.add_row(name.kind, name.provider, name.name, name.before or "-", name.after or "-")
        screen.table(table)
    lists = f"{len(found.added):,} price lists added, {len(found.removed):,} removed"
    rates, names = display.counted(len(found.changed), "rate"), display.counted(len(found.names), "name")
    screen.line(f"{lists}, {rates} and {names} changed: card {found.versions[0]} to {found.versions[1]}")


_WHERE = (("provider", False), ("model", False), ("tier", False), ("region", False), ("since", False), ("hours", False))


def _where(key: ListKey) -> tuple[str, ...]:
    provider, model, tier, region, window, since = key
    return provider, model, tier, region, "" if since == EVER else since.date().isoformat(), window


def _lists(screen: Screen, heading: str, lists: tuple[Difference, ...]) -> None:
    if not lists:
        return
    screen.line(heading, style="bold")
    table = plain_table(*_WHERE, ("USD", False))
    for one in lists:
        for band in one.as_dict()["bands"]:
            rates = ", ".join(f"{name} {usd}" for name, usd in band["rates_usd"].items()) or band["ambiguous"]
            above = band["above_input_tokens"]
            table.add_row(*_where(one.key), f"above {above:,}: {rates}" if above else rates)
    screen.table(table)
