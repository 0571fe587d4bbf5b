"""``tenfold anomalies``: days that cost what their past did not make likely."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import typer

from tenfold import config
from tenfold.analysis.anomalies import KIND_WORDS, Anomalies
from tenfold.analysis.anomalies import anomalies as anomalies_of
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
    working,
)
from tenfold.cli.serving_fleet import FleetFile, laid_on
from tenfold.display import counted, name_of, sentence
from tenfold.errors import AssumptionError
from tenfold.ledger import attribute, check_dimensions
from tenfold.money import PUSD_PER_USD, shown

_ROWS = 25  # on the screen; --json has all


def anomalies(
    db: Db,
    by: Annotated[
        str, typer.Option("--by", metavar="A,B", help="Each combination of these is a series.")
    ] = "team,model",
    k: Annotated[
        float | None, typer.Option("--k", metavar="K", help="Scaled MADs from which a day stands out; default 4.")
    ] = None,
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Find days that cost what their past did not make likely: spikes, drops, new levels, new models, silence.

    All of the log is the past; --from chooses from when on anomalies are told. Needs two weeks of days; exits 3 below.
    """
    columns = [name.strip() for name in by.split(",") if name.strip()]
    check_dimensions(columns)
    local = report_zone(zone)
    limits = config.settings().thresholds
    since = instant(from_, local, "--from")
    if k is not None and not k > 0:
        raise AssumptionError(f"--k {k}: write how many scaled MADs make an anomaly, such as 4")
    ledger = attribute(one_state(db), book_of(prices, only=prices_only), until=instant(to, local, "--to"), zone=local)
    with working("judging days", json=json):
        found = anomalies_of(
            laid_on(ledger, fleet),
            by=columns,
            k=limits.anomaly_k if k is None else k,
            least_pusd=round(Fraction(limits.anomaly_usd) * PUSD_PER_USD),
            since=None if since is None else since.astimezone(config.zone(local)).date(),
        )
    if json:
        print_json(found.as_dict())
    else:
        _show(Screen(), found)


def _show(screen: Screen, found: Anomalies) -> None:
    first, last = found.judged
    screen.line(
        f"{len(found.found)} in {counted(found.series, 'series').removesuffix('s')}, {first} to {last} {found.zone}"
    )
    for what, many, more, less in found.sums():
        sides = " and ".join(f"{shown(pusd)} {side}" for pusd, side in ((more, "more"), (less, "less")) if pusd)
        screen.line(f"{many:>3} {what}: {sides or shown(0)} than expected")
    screen.line()
    table = plain_table(
        *((name, False) for name in found.by),
        *(("what", False), ("first day", False), ("last day", False)),
        *(("cost", True), ("expected", True), ("impact", True), ("MADs", True)),
    )
    for one in found.found[:_ROWS]:
        table.add_row(
            *map(name_of, found.by, one.owner),
            KIND_WORDS[one.kind],
            one.first.isoformat(),
            str(one.until),
            *(shown(pusd) for pusd in (one.cost, one.expected, one.impact)),
            f"{one.score:.1f}" if one.score else "",
        )
    if found.found:
        screen.table(table)
    if len(found.found) > _ROWS:
        screen.line(f"{len(found.found) - _ROWS} more: --json")
    for note in found.notes:
        screen.line(sentence(note))
