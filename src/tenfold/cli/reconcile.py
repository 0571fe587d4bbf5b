"""``tenfold reconcile``: the priced log held against what providers bill, the difference split into causes."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tenfold import display
from tenfold.analysis.reconcile import CAUSES, Reconciliation
from tenfold.analysis.reconcile import reconcile as held_against
from tenfold.cli.common import (
    Db,
    From,
    Json,
    Prices,
    PricesOnly,
    Screen,
    To,
    book_of,
    instant,
    one_state,
    plain_table,
    print_json,
)
from tenfold.config import zone as known_zone
from tenfold.errors import AssumptionError, NotEvaluable, Unreconciled
from tenfold.ledger import attribute
from tenfold.money import shown

_WORDS = {
    "reconciled": "reconciled: the drift is within",
    "unreconciled": "UNRECONCILED: the drift is above",
}
# Lines that the screen shows of each kind; --json has all.
_SHOWN = 6


def reconcile(
    db: Db,
    invoice: Annotated[
        list[Path] | None,
        typer.Option(
            "--invoice",
            metavar="FILE",
            help="Report or invoice (OpenAI, Anthropic, FOCUS, CSV); default: those that are loaded.",
            show_default=False,
        ),
    ] = None,
    from_: From = None,
    to: To = None,
    zone: Annotated[
        str | None,
        typer.Option("--zone", metavar="Z", help="Zone of --from, --to and of dates in CSV invoices; default UTC."),
    ] = None,
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="P", help="Who bills, for invoices that do not say.")
    ] = None,
    max_drift: Annotated[
        str | None,
        typer.Option(
            "--max-drift",
            metavar="R",
            help="Drift (0 to 1) up to which the log counts as reconciled; where given, exit 1 above it (a nightly "
            "check). Default: drift of tenfold.toml, without a say on the exit code.",
            show_default=False,
        ),
    ] = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    json: Json = False,
) -> None:
    """Hold the log against reports and invoices, by day, model and meter, and say what explains the drift.

    Exit 0 when compared, 1 when --max-drift is given and the drift is above it, 3 when no report covers the window.
    """
    place = zone or "UTC"  # providers close their days in UTC, whatever the report zone
    known_zone(place, where="--zone")
    ledger = attribute(
        one_state(db),
        book_of(prices, only=prices_only),
        since=instant(from_, place, "--from"),
        until=instant(to, place, "--to"),
        zone=place,
    )
    found = held_against(ledger, invoice, max_drift=_share(max_drift), zone=zone, provider=provider)
    if json:
        print_json(found.as_dict())
    elif found.verdict != "not_evaluable":
        show(Screen(), found)
    if found.verdict == "not_evaluable":
        raise NotEvaluable(_nothing(found, has_files=invoice is not None))
    if max_drift is not None and found.verdict == "unreconciled":
        raise Unreconciled(f"the gross drift is {display.percent(found.drift_ratio, 2)}, above --max-drift {max_drift}")


def _share(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        share = Decimal(text)
    except InvalidOperation as error:
        raise AssumptionError(f'--max-drift "{text}": write a share such as 0.01') from error
    if not share.is_finite() or share < 0:
        raise AssumptionError(f'--max-drift "{text}": write a share of at least 0, such as 0.01')
    return share


def _nothing(found: Reconciliation, *, has_files: bool) -> str:
    if found.dropped:
        reasons = ", ".join(f"{display.counted(one.rows, 'row')} {one.reason}" for one in found.dropped)
        return f"no row of a report can be held against this window: {reasons}"
    if found.rejected:
        one = found.rejected[0]
        more = f" (and {len(found.rejected) - 1:,} more)" if len(found.rejected) > 1 else ""
        return f"no row of a report could be read: {one.file}:{one.line}: {one.reason}{more}"
    if has_files:
        return "the files have no amount and no token count for this window"
    return "no report or invoice is loaded for this window. Name one: --invoice FILE, or load it beside the log"


def show(screen: Screen, found: Reconciliation) -> None:
    """Print a reconciliation for people.

    Args:
        screen: Where.
        found: The reconciliation.
    """
    limit = display.percent(Fraction(found.max_drift), 2)
    net = Fraction(found.drift_pusd, found.invoiced_pusd) if found.invoiced_pusd else None
    drift, gross = display.percent(net, 2), display.percent(found.drift_ratio, 2)
    cancels = (
        "" if net is not None and abs(net) == found.drift_ratio else f" (gross {gross}: opposite drifts do not cancel)"
    )
    screen.line(
        f"billed {shown(found.invoiced_pusd)}, logged {shown(found.compared_pusd)}: drift {_signed(found.drift_pusd)} "
        f"({drift} of what is billed)",
        style="bold",
    )
    screen.line(
        f"{_WORDS[found.verdict]} {limit}{cancels}", style="green" if found.verdict == "reconciled" else "bold red"
    )
    spans = [
        f"{one.provider} {one.since:%Y-%m-%d} to {one.until:%Y-%m-%d} UTC ({one.name})"
        for one in found.sources[:_SHOWN]
    ]
    covered = display.percent(found.covered_ratio, 1)
    screen.line(f"covers {covered} of the log's spend: {'; '.join(spans)}")
    screen.line()
    if found.causes or found.unexplained_pusd:
        screen.table(_causes(found))
    for cause in found.causes:
        for line in cause.evidence[:_SHOWN]:
            screen.line(f"  {line}", style="dim")
    if any(cell.drift_pusd for cell in found.cells):
        screen.line()
        screen.table(_by_model(found))
    if found.rejected:
        screen.line("REJECTED" + (f", the first {_SHOWN}:" if len(found.rejected) > _SHOWN else ":"), style="bold red")
        for one in found.rejected[:_SHOWN]:
            screen.raw(f"  {one.file}:{one.line}: {one.reason}")
    screen.said(
        [
            *(("left out", _dropped(found)) for _ in range(bool(found.dropped))),
            *(("note", note) for note in found.notes[:_SHOWN]),
        ]
    )


def _signed(pusd: int) -> str:
    return f"+{shown(pusd)}" if pusd > 0 else shown(pusd)


def _dropped(found: Reconciliation) -> str:
    parts: list[str] = []
    for one in found.dropped[:_SHOWN]:
        other = "".join(f", {amount.normalize():f} {name}" for name, amount in one.amounts.items())
        parts.append(f"{display.counted(one.rows, 'row')} ({one.reason}), {shown(one.pusd)}{other}")
    return "; ".join(parts)


def _causes(found: Reconciliation) -> Table:
    table = plain_table(
        ("cause", False), ("amount", True), ("of billed", True), ("what it is", False), wraps=("what it is",)
    )
    whole = found.invoiced_pusd or 1
    for cause in found.causes:
        share = display.percent(Fraction(cause.pusd, whole), 2)
        table.add_row(cause.name, _signed(cause.pusd), share, CAUSES[cause.name])
    left = found.unexplained_pusd
    table.add_row("unexplained", _signed(left), display.percent(Fraction(left, whole), 2), "what is left")
    return table


def _by_model(found: Reconciliation) -> Table:
    """Sum the cells over the days, those with the largest drift first."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for cell in found.cells:
        key = (cell.provider, cell.model or "all", cell.meter or "all")
        held = sums.setdefault(key, [0, 0, 0])
        for place, value in enumerate((cell.logged_pusd, cell.invoiced_pusd, cell.unexplained_pusd)):
            held[place] += value
    table = plain_table(
        ("provider", False), ("model", False), ("meter", False), ("logged", True), ("billed", True), ("drift", True),
        ("unexplained", True),
    )  # fmt: skip
    rows = sorted(sums.items(), key=lambda item: -abs(item[1][1] - item[1][0]))
    for key, (logged, billed, left) in rows[: 2 * _SHOWN]:
        table.add_row(*key, shown(logged), shown(billed), _signed(billed - logged), _signed(left))
    return table
