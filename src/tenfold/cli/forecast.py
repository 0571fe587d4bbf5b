"""``tenfold forecast``: what is going to be spent, as ranges, and how fast budgets burn."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from tenfold import config
from tenfold.analysis.budgets import WHOLE, Burn, Range, burn, sentences
from tenfold.analysis.forecast import Forecast, owner_text, said_range
from tenfold.analysis.forecast import Range as Expected
from tenfold.analysis.forecast import forecast as forecast_of
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
from tenfold.display import name_of, percent, sentence, small_dollars
from tenfold.errors import AssumptionError
from tenfold.ledger import Ledger, Window, attribute, check_dimensions
from tenfold.ledger.span import DAY, starts
from tenfold.money import shown


def forecast(
    db: Db,
    budgets: Annotated[
        Path | None,
        typer.Option("--budgets", metavar="F", help="CSV of owner, month, usd; default: budgets in tenfold.toml."),
    ] = None,
    by: Annotated[str, typer.Option("--by", metavar="A,B", help="Owners that get a forecast of their own.")] = "team",
    until: Annotated[
        str | None, typer.Option("--until", metavar="D", help="Last day; default: the end of the next quarter.")
    ] = None,
    level: Annotated[
        float, typer.Option("--level", metavar="R", help="Share of ranges that are to hold what comes.")
    ] = 0.8,
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Forecast spend from requests a day, tokens a request and rates, as ranges that the log's own past has tested.

    With budgets it also says how fast they burn. Needs 28 whole days; exits 3 below.
    """
    columns = [name.strip() for name in by.split(",") if name.strip()]
    check_dimensions(columns)
    local = report_zone(zone)
    settings = config.settings()
    ledger = attribute(
        one_state(db),
        book_of(prices, only=prices_only),
        since=instant(from_, local, "--from"),
        until=instant(to, local, "--to"),
        zone=local,
    )
    ledger = laid_on(ledger, fleet)
    with working("forecasting", json=json):
        found = forecast_of(
            ledger, until=_day(until), by=columns, level=level, fiscal_year_start=settings.fiscal_year_start
        )
        file = str(budgets) if budgets is not None else settings.budgets
        spent = _burn(ledger, found, file, settings) if file else None
    if json:
        print_json({**found.as_dict(), "burn": None if spent is None else spent.as_dict()})
    else:
        _show(Screen(), found, spent)


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise AssumptionError(f'--until "{text}": write a day such as 2026-12-31') from error


def _burn(ledger: Ledger, found: Forecast, file: str, settings: config.Settings) -> Burn:
    """Hold the quarter in which the past ends against its budgets, its other days as they are forecast."""
    last = found.first - DAY
    months = last.year * 12 + last.month - 1
    begins = months - (months - (settings.fiscal_year_start - 1)) % 3
    zone = ZoneInfo(found.zone)
    first, after = (date(n // 12, n % 12 + 1, 1) for n in (begins, begins + 3))
    window = Window(starts(first, zone), starts(after, zone), found.zone)
    ahead: dict[str, Range] = {}
    for owner in found.tracks if found.by in ((), ("team",)) else (None,):
        one = found.ahead(after - DAY, owner)
        if one is not None and one.low is not None and one.high is not None:
            name = WHOLE if owner is None else name_of("team", owner[0])
            ahead[name] = Range(one.low, one.mid, one.high)
    alerts = settings.thresholds.budget_alerts
    return burn(ledger.within(window), file, through=last, alerts=alerts, ahead=ahead)


def _show(screen: Screen, found: Forecast, spent: Burn | None) -> None:
    ahead = f"{found.first} to {found.until} {found.zone}"
    screen.line(f"{ahead}   {percent(found.level)} ranges   prices {found.card_version}")
    screen.line()
    money = (("low", True), ("middle", True), ("high", True))
    table = plain_table(("period", False), ("spent", True), *money, ("days ahead", True))
    for one in found.periods:
        table.add_row(one.label, shown(one.spent), *map(_usd, one.total), str(one.days_ahead))
    screen.table(table)
    if found.owners:
        label = next(one.label for one in reversed(found.periods) if one.kind != "month")
        screen.line()
        table = plain_table((", ".join(found.by), False), ("period", False), *money)
        for owner, periods in found.owners.items():
            total = next(one.total for one in periods if one.label == label)
            table.add_row(owner_text(found.by, owner), label, *map(_usd, total))
        screen.table(table)
    screen.line()
    screen.said((one.name.replace("_", " "), _scenario(one.ahead)) for one in found.scenarios)
    screen.line()
    for line in found.sentences():
        screen.line(sentence(line))
    if spent is not None:
        _show_burn(screen, spent)


def _show_burn(screen: Screen, spent: Burn) -> None:
    screen.line()
    screen.line(f"Budgets ({spent.file}), through {spent.through}")
    table = plain_table(
        ("owner", False), ("budget", True), ("spend", True), ("burn", True), ("projected", True), ("over", True)
    )
    for line in spent.lines:
        ends = line.projected
        owner = "the whole" if line.owner == WHOLE else line.owner
        burnt = "–" if line.burn_ratio is None else percent(line.burn_ratio)
        table.add_row(
            owner,
            shown(line.budget),
            shown(line.spend),
            burnt,
            "–" if ends is None else shown(ends.mid),
            _usd(line.overrun),
        )
    if spent.ungranted:
        table.add_row("spend without a budget", "–", shown(spent.ungranted), "–", "–", "–")
    screen.table(table)
    for said in sentences(spent):
        screen.line(said)


def _usd(pusd: int | None) -> str:
    return "–" if pusd is None else small_dollars(pusd)


def _scenario(ahead: Mapping[str, Expected]) -> str:
    return "; ".join(f"{label}: {said_range(one)} ahead" for label, one in ahead.items())
