"""``tenfold serving fleet``: what GPUs of one's own cost, how busy they were, and the rate card that follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tenfold import display, logs
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
    plain_table,
    print_json,
    report_zone,
)
from tenfold.ledger import Ledger, attribute
from tenfold.money import divided, shown, usd_text
from tenfold.serving.hosted import Hosted, HostedLedger, on_fleet

FleetFile = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        metavar="FILE",
        help="GPUs of your own (TOML, [[pool]] tables): self-hosted requests get their price, idle time its own line.",
    ),
]
_PER_MILLION = 10**6


def laid_on(ledger: Ledger, fleet: Path | None) -> Ledger:
    """Lay the fleet that the option names under a ledger.

    Args:
        ledger: The ledger.
        fleet: The fleet file, or None.

    Returns:
        The ledger with its self-hosted requests priced; as it was without a fleet.
    """
    return ledger if fleet is None else on_fleet(ledger, fleet)


def fleet_line(ledger: HostedLedger) -> str:
    """Say in one line what the fleet cost, and how much of it waited.

    Args:
        ledger: The ledger.

    Returns:
        Text such as ``fleet $17,228.00: requests carry $9,003.12, $8,224.88 (47.7 %) is idle``.
    """
    carried = ledger.bill_pusd - ledger.idle_pusd
    share = f" ({display.percent(ledger.idle_pusd / ledger.bill_pusd, 1)})" if ledger.bill_pusd else ""
    said = f"fleet {display.small_dollars(ledger.bill_pusd)}: requests carry {display.small_dollars(carried)}, "
    return f"{said}{display.small_dollars(ledger.idle_pusd)}{share} is idle"


def fleet(
    db: Db,
    fleet_file: Annotated[
        Path,
        typer.Option("--fleet", metavar="FILE", help="The fleet (TOML, [[pool]] tables).", show_default=False),
    ],
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    json: Json = False,
) -> None:
    """Price a fleet of your own GPUs: its bill, its idle time, and what a token costs on it."""
    local = report_zone(zone)
    ledger = attribute(
        logs.open_log(db),
        book_of(prices, only=prices_only),
        since=instant(from_, local, "--from"),
        until=instant(to, local, "--to"),
        zone=local,
    )
    found = on_fleet(ledger, fleet_file)
    if json:
        print_json(document(found))
    else:
        _show(Screen(), found)


def document(ledger: HostedLedger) -> dict[str, Any]:
    """Give the fleet the keys that scripts rely on.

    Args:
        ledger: The ledger on its fleet.

    Returns:
        The document of ``tenfold serving fleet --json``: rates are USD per million tokens; with several models, or
        stretches of time, those at the top are the mean over tokens.
    """
    since, until = ledger.span
    return {
        "bill_usd": usd_text(ledger.bill_pusd),
        "idle_usd": usd_text(ledger.idle_pusd),
        "requests_usd": usd_text(ledger.bill_pusd - ledger.idle_pusd),
        "rates": _mean_rates(ledger.hosted),
        "from": since.isoformat(),
        "to": until.isoformat(),
        "pools": [
            {
                "name": pool.name,
                "model": pool.model,
                "gpu": pool.gpu,
                "tp": pool.tp,
                "replicas": pool.replicas,
                "usd_per_gpu_hour": usd_text(pool.pusd_per_hour),
                "commitment": pool.commitment,
                "from": None if pool.since is None else pool.since.isoformat(),
                "to": None if pool.until is None else pool.until.isoformat(),
                "sum": pool.sum_text(since, until),
                "bill_usd": usd_text(bill),
                "idle_usd": usd_text(charge.pusd),
            }
            for pool, bill, charge in zip(ledger.fleet.pools, ledger.pool_bills, ledger.charges, strict=True)
        ],
        "models": [_model(one) for one in ledger.hosted],
        "notes": list(ledger.notes),
        "card_version": ledger.book.version,
        "log_hash": ledger.log.log_hash,
    }


def _model(one: Hosted) -> dict[str, Any]:
    demand = one.demand
    return {
        "model": one.model,
        "from": one.since.isoformat(),
        "to": one.until.isoformat(),
        "hours": one.hours,
        "replicas": one.replicas,
        "gpus": one.gpus,
        "bill_usd": usd_text(one.bill_pusd),
        "idle_usd": usd_text(one.idle_pusd),
        "busy_ratio": one.busy_ratio,
        "label": one.label,
        "rates": dict(zip(one.rates._fields, (usd_text(rate * _PER_MILLION) for rate in one.rates), strict=True)),
        "requests": demand.requests,
        "tokens": {"input": demand.uncached_tokens, "cached": demand.cached_tokens, "output": demand.output_tokens},
        "batch": one.batch,
        "peak_in_flight": demand.peak,
        "gpu_seconds_per_million": {
            name: seconds * _PER_MILLION for name, seconds in zip(one.gpu_s._fields, one.gpu_s, strict=True)
        },
        "modelled_ratio": one.modelled_ratio,
        "hourly": [{**hour._asdict(), "starts_at": hour.starts_at.isoformat()} for hour in demand.hours],
        "notes": list(one.notes),
    }


def _mean_rates(hosted: Iterable[Hosted]) -> dict[str, str | None]:
    """Give the mean rate of each kind of token, in USD per million; null where there are none."""
    cost, tokens = [0, 0, 0], [0, 0, 0]
    for one in hosted:
        asked = (one.demand.uncached_tokens, one.demand.cached_tokens, one.demand.output_tokens)
        for kind, (rate, count) in enumerate(zip(one.rates, asked, strict=True)):
            cost[kind] += rate * count
            tokens[kind] += count
    return {
        name: usd_text(divided(pusd * _PER_MILLION, count)) if count else None
        for name, pusd, count in zip(("input", "cached", "output"), cost, tokens, strict=True)
    }


def _show(screen: Screen, ledger: HostedLedger) -> None:
    screen.line(fleet_line(ledger), style="bold")
    since, until = ledger.span
    screen.line(f"{display.minute(since)} to {display.minute(until)}")
    for pool, charge in zip(ledger.fleet.pools, ledger.charges, strict=True):
        screen.line(f"{pool.name}: {pool.sum_text(since, until)}, {display.small_dollars(charge.pusd)} of it idle")
    screen.line()
    table = plain_table(
        ("model", False), ("from", False), ("requests", True), ("batch", True), ("busy", True), ("", False),
        ("$/M input", True), ("$/M cached", True), ("$/M output", True), ("bill", True), ("idle", True),
    )  # fmt: skip
    for one in ledger.hosted:
        table.add_row(
            one.model, f"{one.since:%Y-%m-%d %H:%M}", f"{one.demand.requests:,}", display.number(one.batch, 1),
            display.percent(one.busy_ratio, 1), one.label, *_rates(one),
            display.small_dollars(one.bill_pusd), display.small_dollars(one.idle_pusd),
        )  # fmt: skip
    screen.table(table)
    notes: Sequence[str] = [*ledger.notes, *(f"{one.model}: {note}" for one in ledger.hosted for note in one.notes)]
    for note in dict.fromkeys(notes):
        screen.line(f"Note: {note}")


def _rates(one: Hosted) -> list[str]:
    return [shown(rate * _PER_MILLION, 4) if one.demand.requests else "" for rate in one.rates]
