"""``tenfold bridge``: what moved the bill from one period to the next."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import typer

from tenfold import config
from tenfold.analysis.bridge import BASES, METHODS, Bridge, Side
from tenfold.analysis.bridge import bridge as between
from tenfold.cli.common import (
    Db,
    Json,
    Prices,
    PricesOnly,
    Screen,
    Zone,
    book_of,
    instant,
    one_state,
    plain_table,
    print_json,
    report_zone,
)
from tenfold.cli.serving_fleet import FleetFile, laid_on
from tenfold.display import NONE, percent, sentence
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.ledger import Ledger, Window, attribute
from tenfold.ledger.span import span
from tenfold.reviewing.quarter import quarter as read_quarter
from tenfold.tables import Grid

_SEGMENTS = 8  # rows on the screen; --json has all
_BARS = 2  # columns of bars, the smaller ones in one


def bridge(
    db: Db,
    before: Annotated[
        str | None, typer.Option("--before", metavar="D..D", help="Period before: first day, and day to stop before.")
    ] = None,
    after: Annotated[str | None, typer.Option("--after", metavar="D..D", help="Period after.")] = None,
    quarter: Annotated[
        str | None, typer.Option("--quarter", metavar="Q", help="Quarter such as 2026Q3, against the one before it.")
    ] = None,
    by: Annotated[str, typer.Option("--by", metavar="A,B", help="Columns that make a segment.")] = "model,service_tier",
    base: Annotated[str, typer.Option("--base", metavar="WHAT", help=f"What volume counts: {', '.join(BASES)}.")] = (
        "requests"
    ),
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help=f"{', '.join(METHODS)}; all but pvm need no order.")
    ] = "pvm",
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="COLUMN=VALUE", help="Only that part of the traffic; (none) for none."),
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", metavar="R", help="Multiply the period before, such as 1/28 for a mean day.")
    ] = "1",
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Explain why the bill changed: volume, intensity, mix and price between two periods, to the cent."""
    local = report_zone(zone)
    windows = _windows(before, after, quarter, local)
    log, book = one_state(db), book_of(prices, only=prices_only)
    whole = attribute(log, book, zone=local)
    periods = [laid_on(attribute(log, book, since=one.since, until=one.until, zone=local), fleet) for one in windows]
    found = between(
        *periods,
        by=[name.strip() for name in by.split(",") if name.strip()],
        base=base,
        method=method,
        where=dict(_pair(text) for text in where or ()),
        scale=_scale(scale),
    )
    for when, side in (("before", found.before), ("after", found.after)):
        if not side.requests and not side.pusd:
            raise NotEvaluable(_empty(whole, when, side))
    if json:
        print_json(found.as_dict())
    else:
        show(Screen(), found)


def _windows(before: str | None, after: str | None, quarter: str | None, zone: str) -> tuple[Window, Window]:
    if quarter is not None and before is None and after is None:
        chosen = read_quarter(quarter, zone, fiscal_year_start=config.settings().fiscal_year_start)
        return chosen.previous.window, chosen.window
    if quarter is not None or before is None or after is None:
        raise AssumptionError("name two periods: --before D..D and --after D..D, or --quarter 2026Q3 alone")
    return _window(before, "--before", zone), _window(after, "--after", zone)


def _window(text: str, option: str, zone: str) -> Window:
    first, dots, last = text.partition("..")
    if not dots:
        raise AssumptionError(f'{option} "{text}": write two days, the second not in it: 2026-04-01..2026-07-01')
    return Window(instant(first or None, zone, option), instant(last or None, zone, option), zone)


def _pair(text: str) -> tuple[str, str | None]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise AssumptionError(f'--where "{text}": write COLUMN=VALUE, such as team=search')
    return name.strip(), None if value == NONE else value


def _scale(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise AssumptionError(f'--scale "{text}": write a number such as 1/28') from error


def _empty(whole: Ledger, when: str, side: Side) -> str:
    text = f"no request with a price in the period {when} ({side.period()})"
    if side.unpriced:
        return f"{text}: {sum(side.unpriced.values()):,} requests have none; see tenfold cost"
    held = span(whole)
    return text if held is None else f"{text}; the log runs from {held.first} to {held.last}"


def show(screen: Screen, found: Bridge) -> None:
    """Print a bridge.

    Args:
        screen: Where to.
        found: The bridge.
    """
    share = found.share(abs(found.change_pusd))
    ratio = "" if share is None else f" ({'+' if found.change_pusd >= 0 else '-'}{percent(share, 1)})"
    money = f"{found.money(found.before.pusd)} -> {found.money(found.after.pusd)}   "
    screen.line(f"{money}{found.signed(found.change_pusd)}{ratio}   prices {found.versions[1]}", style="bold")
    screen.line(f"{found.before.period()}, then {found.after.period()}", style="dim")
    screen.line(found.how(), style="dim")
    if found.where:
        screen.line("only " + ", ".join(f"{name} = {value or NONE}" for name, value in found.where.items()))
    screen.line()
    table = plain_table(("", False), ("USD", True), ("of before", True), ("what it is", False), wraps=("what it is",))
    for bar, pusd in found.shown_bars():
        of_before = found.share(bar.pusd)
        sign = "-" if bar.pusd < 0 else "+"
        table.add_row(
            bar.name,
            found.signed(pusd),
            "" if of_before is None else f"{sign}{percent(abs(of_before), 1)}",
            bar.what,
            style=None if bar.favourable is None else "green" if bar.favourable else "red",
        )
    screen.table(table)
    if found.bar("mix"):
        parts = " · ".join(f"{name.replace('_', ' ')} {found.signed(pusd)}" for name, pusd in found.mix_shown().items())
        screen.line(f"mix: {parts}")
    if found.swaps:
        screen.line()
        screen.line("a model took another's place", style="dim")
    for line in found.swap_lines():
        screen.line(line)
    if len(found.movers) > 1:
        screen.line()
        screen.line("segments that moved most", style="dim")
        _show_grid(screen, found.movers_grid(top=_SEGMENTS, most=_BARS))
    if found.notes:
        screen.line()
    for note in found.notes:
        screen.line(sentence(note), style="yellow")


def _show_grid(screen: Screen, grid: Grid) -> None:
    rows: Sequence[Sequence[str]] = grid.texts()
    table = plain_table(*((column.label, not column.is_words) for column in grid.columns))
    for row in rows:
        table.add_row(*row)
    screen.table(table)
