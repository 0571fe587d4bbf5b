"""``tenfold review``: the quarterly page, and its Markdown, workbook and PDF."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tenfold import config, logs, reviewing
from tenfold.cli.common import (
    Db,
    Json,
    Prices,
    PricesOnly,
    Screen,
    Zone,
    book_of,
    one_state,
    print_json,
    report_zone,
    working,
)
from tenfold.cli.levers import Assume, SloFile
from tenfold.cli.levers_recorded import Record, Replace
from tenfold.cli.serving_fleet import FleetFile, laid_on, span_of
from tenfold.errors import AssumptionError
from tenfold.files import check_place
from tenfold.ledger import attribute
from tenfold.planning import plan, recording
from tenfold.reviewing.rendering import form_of
from tenfold.serving.hosted import HostedLedger
from tenfold.slo import Slo


def review(
    db: Db,
    quarter: Annotated[
        str,
        typer.Option("--quarter", metavar="Q", help="Quarter, such as 2026Q3, of the fiscal year.", show_default=False),
    ],
    out_files: Annotated[
        list[Path],
        typer.Option(
            "--out",
            metavar="FILE",
            help="File to write: .html, .md, .xlsx or .pdf; may be repeated.",
            show_default=False,
        ),
    ],
    zone: Zone = None,
    assume: Assume = None,
    slo: SloFile = None,
    budgets: Annotated[
        Path | None, typer.Option("--budgets", metavar="FILE", help="Budgets (owner, month, usd); else tenfold.toml's.")
    ] = None,
    record: Record = None,
    replace_record: Replace = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Let the page's charts answer the mouse; it grows by 1 MB.")
    ] = False,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Write the quarter's review: one file that needs no network.

    Zone, fiscal year, currency, budgets and thresholds come from tenfold.toml in the working directory, if it is there.
    """
    local, settings = report_zone(zone), config.settings()
    forms = [form_of(file) for file in out_files]  # refused before the work, not after it
    for file in out_files:
        check_place(file)
    if interactive and ".html" not in forms:
        raise AssumptionError("--interactive: only a page can be; give it with --out F.html")
    if budgets is not None:
        settings = replace(settings, budgets=str(budgets))
    since, until = reviewing.quarter_bounds(quarter, local, fiscal_year_start=settings.fiscal_year_start)
    book = book_of(prices, only=prices_only)
    log = one_state(db) if record is None else logs.open_log(db)
    ledger = laid_on(attribute(log, book, since=since, until=until, zone=local), fleet)
    if record is not None:
        recording.check_free(ledger.log, record, replace=replace_record)
    with working("estimating the levers", json=json):
        found = plan(ledger, assume=assume, slo=Slo.load(slo) if slo else None)
    if record is not None:
        recording.record(found, ledger.log, record, replace=replace_record)
    with working("writing the review", json=json):
        made = reviewing.review(ledger, found, quarter=quarter, zone=local, settings=settings)
        for file, form in zip(out_files, forms, strict=True):
            made.save(file, interactive=interactive and form == ".html")
    if json:
        fleet_span = {"fleet_span": span_of(ledger)} if isinstance(ledger, HostedLedger) else {}
        print_json(
            {
                "out": str(out_files[0]),
                "files": [str(file) for file in out_files],
                "quarter": quarter,
                "zone": local,
                "card_version": ledger.book.version,
                "log_hash": ledger.log.log_hash,
                "sections": [one.key for one in made.document.sections],
                "skipped": [{"title": one.title, "reason": one.reason} for one in made.skipped],
                **fleet_span,
            }
        )
        return
    screen = Screen()
    for file in out_files:
        screen.raw(f"review: {file}")
    for one in made.skipped:
        screen.line(f"left out: {one.title}: {one.reason}", style="dim")
