"""``tenfold explain``: one number traced back to its log line and its price entry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tenfold.cli.common import (
    Db,
    From,
    Json,
    PriceAt,
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
from tenfold.display import number, percent
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
    fleet: FleetFile = None,
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    json: Json = False,
) -> None:
    """Trace one request's cost: log line, reported counts, meters, rates, price entry and its source.

    With --fleet a self-hosted request's rate is traced to its pools, their bill and the GPU time of a token. A fleet's
    rates are of a window: give the --from and --to of the bill in question.
    """
    local = report_zone(zone)
    ledger = attribute(
        one_state(db),
        book_of(prices, only=prices_only),
        price_at=instant(price_at, "UTC", "--price-at"),
        since=instant(from_, local, "--from"),
        until=instant(to, local, "--to"),
        zone=local,
    )
    ledger = laid_on(ledger, fleet)
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
    if "fleet" in trace:
        screen.line()
        screen.said(_hosting(trace["fleet"]))
    if "line" in trace:
        screen.raw(trace["line"] or f"no line: {trace['line_note']}")


def _hosting(fleet: dict[str, Any]) -> list[tuple[str, str]]:
    """Say how the rates of a fleet came to be, so that a reader can work them out again."""
    busy = f"{percent(fleet['busy_ratio'], 2)} of {number(fleet['replica_seconds'], 0)} replica-seconds"
    if fleet["busy_replica_seconds"] is not None:
        busy += f": a request was under way in {number(fleet['busy_replica_seconds'], 3)} of them"
    each = {name: f"{seconds:.9g}" for name, seconds in fleet["gpu_seconds"].items()}
    rates = {name: f"{rate:,}" for name, rate in fleet["rates_pusd"].items()}
    at_once = f"{number(fleet['batch'], 2)} requests at once ({fleet['busy_label']})"
    pace = fleet["pace_ratio"]
    said = "not known, no durations"
    if pace is not None:
        said = f"{number(pace, 3)} (the tokens' modelled GPU time over the GPU time of busy replicas)"
    return [
        *(("pool", f"{one['name']}: {one['sum']} = ${one['bill_usd']}") for one in fleet["pools"]),
        ("stretch", f"{fleet['from']} to {fleet['to']}"),
        (f"busy, {fleet['busy_label']}", f"{busy}; that much of the bill is ${fleet['busy_usd']}"),
        ("tokens, measured", _listed({name: f"{count:,}" for name, count in fleet["tokens"].items()})),
        (
            "GPU s, modelled",
            f"{_listed(each)} a token, by the roofline at {at_once}; only their proportions matter",
        ),
        ("rate", f"{_listed(rates)} pUSD a token: {fleet['formula']}"),
        ("pace", f"measured over modelled: {said}; the rates do not depend on it"),
    ]


def _listed(values: dict[str, Any]) -> str:
    told = {name: ", ".join(map(str, value)) if name == "flags" and value else value for name, value in values.items()}
    return "; ".join(f"{name} {value}" for name, value in told.items() if value not in (None, "", []))
