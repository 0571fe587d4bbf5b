"""``tenfold export``: FOCUS files and their checker, and the ledger's tables as CSV, Parquet and workbooks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

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
from tenfold.cli.serving_fleet import FleetFile, laid_on
from tenfold.errors import AssumptionError, near
from tenfold.export import FocusExport, check_focus, export_compositions, export_focus, export_table
from tenfold.export.focus import UNKNOWN_ACCOUNT, Source, Written
from tenfold.export.focus_check import Checked
from tenfold.export.focus_lines import Grain
from tenfold.export.focus_spec import VERSIONS, Version
from tenfold.export.focus_trace import trace
from tenfold.export.ledger_tables import BY_DEFAULT
from tenfold.export.writing import kind_of
from tenfold.ledger import Ledger, attribute
from tenfold.money import shown

app = typer.Typer(help="Write FOCUS files, CSV, Parquet and Excel workbooks from the ledger.", no_args_is_help=True)
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write.", show_default=False)]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A FOCUS file: CSV, gzipped CSV or Parquet.")]
By = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="A,B", help="Columns to group by, or day, week, month, quarter, year."),
]
Requests = Annotated[bool, typer.Option("--requests", help="The ledger itself: one row a request, every meter.")]
_SHOWN = 20  # findings, or reasons, that the screen names; --json has more


@app.command("focus")
def focus(
    db: Db,
    out_file: Out,
    focus_version: Annotated[
        str, typer.Option("--focus-version", metavar="V", help="Version of the standard: 1.2 or 1.4.")
    ] = "1.2",
    grain: Annotated[str, typer.Option("--grain", metavar="G", help="Length of a charge period: day or hour.")] = "day",
    account: Annotated[
        str, typer.Option("--account", metavar="ID", help="BillingAccountId where the log names no organisation.")
    ] = UNKNOWN_ACCOUNT,
    cost_source: Annotated[
        str,
        typer.Option("--cost-source", metavar="S", help="reconciled, once billed costs were held against an invoice."),
    ] = "estimated",
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    check: Annotated[
        bool, typer.Option("--check", help="Hold the file against the standard; exit 1 on findings.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a FOCUS file: one SKU a token meter, token quantities, list, contracted, effective and billed cost."""
    made = export_focus(
        _ledger(db, from_, to, zone, prices, fleet, only=prices_only),
        out_file,
        version=cast("Written", focus_version),
        grain=cast("Grain", grain),
        cost_source=cast("Source", cost_source),
        account=account,
    )
    checked = check_focus(out_file, cast("Version", focus_version)) if check else None
    if json:
        print_json({**made.as_dict(), **({} if checked is None else {"check": checked.as_dict()})})
    else:
        _show_export(Screen(), made, cost_source)
        if checked is not None:
            _show_check(Screen(), checked)
    if checked is not None and not checked.is_clean:
        raise typer.Exit(1)


@app.command("check")
def check(
    file: File,
    focus_version: Annotated[
        str | None, typer.Option("--focus-version", metavar="V", help="1.0 to 1.4; by default told by the columns.")
    ] = None,
    json: Json = False,
) -> None:
    """Hold any FOCUS file against the standard: columns, types, nulls, value lists, products, periods."""
    if focus_version not in (None, *VERSIONS):
        raise AssumptionError(
            f'--focus-version "{focus_version}": one of {", ".join(VERSIONS)}.{near(focus_version, VERSIONS)}'
        )
    checked = check_focus(file, focus_version)
    if json:
        print_json(checked.as_dict())
    else:
        _show_check(Screen(), checked)
    if not checked.is_clean:
        raise typer.Exit(1)


@app.command("explain")
def explain(
    file: File,
    row: Annotated[int, typer.Option("--row", metavar="N", min=1, help="Row of the file, from 1 below its header.")],
    db: Db,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Trace a row of an export back to its requests, its price entry and their cost in the ledger."""
    found = trace(_ledger(db, None, None, "UTC", prices, fleet, only=prices_only), file, row)
    if json:
        print_json(found)
        return
    screen = Screen()
    plain = {name: value for name, value in found.items() if not isinstance(value, (dict, list))}
    entry = cast("dict[str, Any] | None", found["entry"])
    if entry is not None:
        plain["price"] = f"{entry['file']} #{entry['number']}, {entry['source']}, checked {entry['checked']}"
    screen.said((name.replace("_", " "), display.visible(str(value))) for name, value in plain.items())
    for request in cast("list[dict[str, object]]", found["requests"])[:_SHOWN]:
        screen.raw(f"  {request['request_id'] or '(no id)'}  {request['source_file']}:{request['source_line']}")


@app.command("csv")
def csv(
    db: Db,
    out_file: Out,
    by: By = None,
    requests: Requests = False,
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Write a composition, or the ledger itself, as CSV (also gzipped): money exact, names no formulas."""
    _write(
        "csv", _ledger(db, from_, to, zone, prices, fleet, only=prices_only), out_file, by, requests=requests, json=json
    )


@app.command("parquet")
def parquet(
    db: Db,
    out_file: Out,
    by: By = None,
    requests: Requests = False,
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Write a composition, or the ledger itself, as Parquet: money as exact decimals."""
    ledger = _ledger(db, from_, to, zone, prices, fleet, only=prices_only)
    _write("parquet", ledger, out_file, by, requests=requests, json=json)


@app.command("xlsx")
def xlsx(
    db: Db,
    out_file: Out,
    by: By = None,
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Write compositions as an Excel workbook, a sheet for each --by, totals as formulas."""
    _write(
        "xlsx", _ledger(db, from_, to, zone, prices, fleet, only=prices_only), out_file, by, requests=False, json=json
    )


def _ledger(
    db: Path,
    from_: str | None,
    to: str | None,
    zone: str | None,
    prices: Path | None,
    fleet: Path | None,
    *,
    only: bool,
) -> Ledger:
    local = report_zone(zone)
    ledger = attribute(
        one_state(db),
        book_of(prices, only=only),
        since=instant(from_, local, "--from"),
        until=instant(to, local, "--to"),
        zone=local,
    )
    return laid_on(ledger, fleet)


def _write(kind: str, ledger: Ledger, out: Path, by: list[str] | None, *, requests: bool, json: bool) -> None:
    if not kind_of(out).startswith(kind):
        raise AssumptionError(f"{out}: tenfold export {kind} writes a .{kind} file; name it so")
    if requests and by:
        raise AssumptionError("--by groups requests and --requests does not: give one of them")
    breakdowns = [[name.strip() for name in one.split(",") if name.strip()] for one in by or []] or [list(BY_DEFAULT)]
    rows = export_table(ledger, out) if requests else export_compositions(ledger, out, breakdowns)
    if json:
        print_json(
            {
                "out": str(out),
                "rows": rows,
                "by": None if requests else breakdowns,
                "card_version": ledger.book.version,
                "log_hash": ledger.log.log_hash,
            }
        )
    else:
        Screen().raw(f"{out}: {display.counted(rows, 'row')}")


def _show_export(screen: Screen, made: FocusExport, cost_source: str) -> None:
    screen.raw(f"{made.path}: FOCUS {made.version}, {display.counted(made.rows, 'row')}")
    names = (("list", "ListCost"), ("contracted", "ContractedCost"), ("effective", "EffectiveCost"))
    costs = " · ".join(f"{word} {shown(made.costs[name])}" for word, name in (*names, ("billed", "BilledCost")))
    screen.line(f"{display.counted(made.requests, 'request')}: {costs} ({cost_source})")
    if made.without_list_pusd:
        screen.line(
            f"{shown(made.without_list_pusd)} of the list cost is your own price: those rows have no list price "
            "(x_ListPrice none)",
            style="yellow",
        )
    if made.unpriced_requests:
        screen.raw(
            f"NOT IN IT: {display.counted(made.unpriced_requests, 'request')} without a price, in {made.unpriced_path}"
        )
        for reason, count in made.unpriced[:_SHOWN]:
            screen.line(f"  {display.counted(count, 'request')}: {display.visible(reason)}", style="yellow")


def _show_check(screen: Screen, checked: Checked) -> None:
    if checked.is_clean:
        screen.line(f"FOCUS {checked.version}: {display.counted(checked.rows, 'row')}, nothing wrong")
        return
    screen.line(f"FOCUS {checked.version}: {display.counted(checked.rows, 'row')}", style="bold red")
    table = plain_table(("findings", True), ("column", False), ("rule", False), wraps=("rule",))
    for (column, rule), count in checked.counts.most_common(_SHOWN):
        table.add_row(f"{count:,}", column, rule)
    screen.table(table)
    for one in checked.findings[:_SHOWN]:
        screen.line(f"  {display.visible(str(one))}")
