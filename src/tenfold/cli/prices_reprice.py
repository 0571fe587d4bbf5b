"""``tenfold prices reprice``: what history would have cost under other prices."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated

import typer

from tenfold import display
from tenfold.cli.common import (
    Db,
    From,
    Json,
    Prices,
    PricesOnly,
    Screen,
    To,
    Zone,
    book_of,
    instant,
    one_state,
    plain_table,
    print_json,
    report_zone,
)
from tenfold.ledger import Window
from tenfold.ledger.repricing import Repriced, adjustment
from tenfold.ledger.repricing import reprice as under_both

With = Annotated[
    Path,
    typer.Option("--with", metavar="DIR", help="The other prices, laid over the shipped ones.", show_default=False),
]


def reprice(
    db: Db,
    other: With,
    with_only: Annotated[bool, typer.Option("--with-only", help="Use the files of --with alone.")] = False,
    credit: Annotated[bool, typer.Option("--credit", help="Print one adjustment a request, as CSV.")] = False,
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    json: Json = False,
) -> None:
    """Show what the log would have cost under other prices, by model and meter. Nothing is changed."""
    local = report_zone(zone)
    window = Window(instant(from_, local, "--from"), instant(to, local, "--to"), local)
    found = under_both(
        one_state(db), book_of(prices, only=prices_only), book_of(other, only=with_only), window, by_request=credit
    )
    if json:
        print_json(found.as_dict())
    elif credit:
        _print_csv(found)
    else:
        _show(found)


def _print_csv(found: Repriced) -> None:
    rows = [] if found.adjustments is None else [adjustment(row) for row in found.adjustments.rows(named=True)]
    if rows:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    sys.stderr.write(
        "\n".join([f"{display.counted(len(rows), 'adjustment')}; {_total(found)}", *_one_sided(found), ""])
    )


def _total(found: Repriced) -> str:
    old, new = found.total("old"), found.total("new")
    sign = "+" if new >= old else ""
    return (
        f"{display.small_dollars(old)} under {found.old_version}, {display.small_dollars(new)} under "
        f"{found.new_version}: {sign}{display.small_dollars(new - old)}"
    )


def _show(found: Repriced) -> None:
    screen = Screen()
    screen.line(_total(found), style="bold")
    table = plain_table(
        ("provider", False), ("model", False), ("meter", False), ("old", True), ("new", True), ("change", True)
    )
    for row in found.by_meter.rows(named=True):
        old, new = int(row["old_pusd"]), int(row["new_pusd"])
        if old != new:
            said = [display.small_dollars(amount) for amount in (old, new, new - old)]
            table.add_row(row["provider"] or display.NONE, row["model"] or display.NONE, row["meter"], *said)
    if table.row_count:
        screen.table(table)
    for line in _one_sided(found):
        screen.line(line, style="yellow")
    screen.line("dry: the database is as it was", style="dim")


def _one_sided(found: Repriced) -> list[str]:
    """Say what one book alone prices: it is in no change."""
    said: list[str] = []
    for row in found.by_model.rows(named=True):
        for side, other in (("old", "new"), ("new", "old")):
            if row[f"only_{side}_requests"]:
                amount = display.small_dollars(int(row[f"only_{side}_pusd"]))
                said.append(
                    f"{row['model'] or display.NONE}: {row[f'only_{side}_requests']:,} of {row['requests']:,} requests "
                    f"have no price in the {other} book ({amount} in the {side} one); they are not in the change"
                )
    return said
