"""``tenfold explain``: one number traced back to its log line and its price entry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tenfold import logs
from tenfold.cli.common import Db, Json, PriceAt, Prices, PricesOnly, Screen, book_of, instant, plain_table, print_json
from tenfold.ledger import attribute
from tenfold.logs import detect, files
from tenfold.prices.meters import meters, rate_text


def explain(
    db: Db,
    request: Annotated[
        str,
        typer.Option(
            "--request",
            metavar="ID",
            help="Provider's id of the request; or its place in the log, FILE:LINE.",
            show_default=False,
        ),
    ],
    line: Annotated[bool, typer.Option("--line", help="Print the log line itself.")] = False,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    price_at: PriceAt = None,
    json: Json = False,
) -> None:
    """Trace one request's cost: log line, reported counts, meters, rates, price entry and its source."""
    ledger = attribute(
        logs.open_log(db), book_of(prices, only=prices_only), price_at=instant(price_at, "UTC", "--price-at")
    )
    trace = ledger.explain(request)
    if line:
        trace["line"], trace["line_note"] = log_line(trace["source_file"], trace["source_line"], trace["source_sha256"])
    if json:
        print_json(trace)
    else:
        _show(trace)


def log_line(file: str, number: int, sha256: str | None) -> tuple[str | None, str | None]:
    """Read one line of a log file, compressed or not.

    Args:
        file: Path as it was loaded.
        number: Line, from 1.
        sha256: Hash of the file as it was loaded.

    Returns:
        The line and no note; or no line and the reason why it cannot be shown.
    """
    path = Path(file)
    if not path.is_file():
        return None, f"{file} is not there any more"
    if detect.is_parquet(path):
        return None, f"{file} is Parquet: record {number} has no line of text"
    if sha256 is not None and files.scan(path).sha256 != sha256:
        return None, f"{file} has changed since it was loaded"
    found = (raw for at, raw in files.lines(path) if at == number)
    raw = next(found, None)
    if raw is None:
        return None, f"{file} has no line {number}"
    return raw.decode("utf-8", "replace").rstrip("\r\n"), None


def _show(trace: dict[str, Any]) -> None:
    screen = Screen()
    cost = "no price" if trace["cost_usd"] is None else f"${trace['cost_usd']}"
    screen.line(f"{cost}   {trace['request_id'] or 'no id'}   {trace['status']}", style="bold")
    how, entry = trace["how_matched"], trace["entry"]
    rows = [
        ("log line", f"{trace['source_file']}:{trace['source_line']} ({trace['source_format']})"),
        ("request", _listed(trace["request"])),
        ("estimated" if trace["request"]["token_source"] == "estimated" else "reported", _listed(trace["reported"])),
        (
            "matched",
            f"{how['asked'] or 'no model'} to {how['model'] or 'nothing'} ({how['how']}). {how['reason'] or ''}",
        ),
    ]
    if entry:
        since = entry["valid_from"] or "as long as the book knows it"
        what = f"{entry['file']} no. {entry['number']}: {entry['model']}, {entry['service_tier']}, from {since}"
        rows.append(("price entry", f"{what}, checked {entry['checked']}, {entry['source']}"))
        if entry["adjusted"]:
            rows.append(("adjusted", entry["adjusted"]))
    rows.append(("rounded", "; ".join(trace["rounding"]) or "nothing: rates are whole pUSD (1e-12 USD)"))
    rows.append(("prices", trace["card_version"]))
    screen.said(rows)
    screen.line()
    table = plain_table(("meter", False), ("units", True), ("USD", True), ("cost USD", True))
    for meter in meters():
        line = trace["meters"].get(meter.name)
        if line:
            units = line["tokens"] or line.get(meter.unit, 0)
            table.add_row(meter.name, f"{units:,}", rate_text(meter, line["rate_pusd"]), line["cost_usd"] or "")
    if trace["meters"]:
        screen.table(table)
    if "line" in trace:
        screen.raw(trace["line"] or f"no line: {trace['line_note']}")


def _listed(values: dict[str, Any]) -> str:
    told = {name: ", ".join(map(str, value)) if name == "flags" and value else value for name, value in values.items()}
    return "; ".join(f"{name} {value}" for name, value in told.items() if value not in (None, "", []))
