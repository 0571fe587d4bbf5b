"""``tenfold review``: the quarterly page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenfold import logs, reviewing
from tenfold.cli.common import Db, Json, Prices, PricesOnly, Screen, Zone, book_of, print_json, report_zone
from tenfold.cli.levers import Assume, SloFile
from tenfold.cli.serving_fleet import FleetFile, laid_on, span_of
from tenfold.ledger import attribute
from tenfold.planning import plan
from tenfold.serving.hosted import HostedLedger
from tenfold.slo import Slo


def review(
    db: Db,
    quarter: Annotated[
        str, typer.Option("--quarter", metavar="Q", help="Quarter, such as 2026Q3.", show_default=False)
    ],
    out_file: Annotated[Path, typer.Option("--out", metavar="FILE", help="HTML file to write.", show_default=False)],
    zone: Zone = None,
    assume: Assume = None,
    slo: SloFile = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Write the quarter's review: one HTML file that needs no network."""
    local = report_zone(zone)
    since, until = reviewing.quarter_bounds(quarter, local)
    ledger = attribute(logs.open_log(db), book_of(prices, only=prices_only), since=since, until=until, zone=local)
    ledger = laid_on(ledger, fleet)
    found = plan(ledger, assume=assume, slo=Slo.load(slo) if slo else None)
    page = reviewing.review(ledger, found, quarter=quarter, zone=local)
    page.save(out_file)
    if json:
        fleet_span = {"fleet_span": span_of(ledger)} if isinstance(ledger, HostedLedger) else {}
        card = ledger.book.version
        print_json({"out": str(out_file), "quarter": quarter, "zone": local, "card_version": card, **fleet_span})
    else:
        Screen().raw(f"review: {out_file}")
