"""``tenfold kpis``: what an outcome, a request and a token cost, and how well the spend was used."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import typer
from rich.table import Table

from tenfold import config
from tenfold.analysis.efficiency import Change, Efficiency
from tenfold.analysis.efficiency import efficiency as measured
from tenfold.analysis.unit_economics import UnitCost, UnitEconomics, dollars_each
from tenfold.analysis.unit_economics import unit_economics as divided_up
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
from tenfold.display import UNMEASURED, counted, name_of, number, percent, sentence, small_dollars
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.ledger import Ledger, Window, attribute
from tenfold.ledger.breakdowns import breakdowns
from tenfold.reviewing.quarter import quarter as read_quarter

_ROWS = 12  # values of a breakdown on the screen; --json has all


class Kpis(NamedTuple):
    """Both analyses of one window.

    Args:
        ledger: The priced window.
        units: What units cost.
        efficiency: How well it was used.
    """

    ledger: Ledger
    units: UnitEconomics
    efficiency: Efficiency

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold kpis --json``.

        Returns:
            ``from``, ``to``, ``unit_economics`` and ``efficiency``.
        """
        window = self.ledger.window
        return {
            "from": None if window.since is None else window.since.isoformat(),
            "to": None if window.until is None else window.until.isoformat(),
            "unit_economics": self.units.as_dict(),
            "efficiency": self.efficiency.as_dict(),
        }


def kpis(
    db: Db,
    by: Annotated[
        str, typer.Option("--by", metavar="A,B", help="Columns, each with a table of its own, such as team,feature.")
    ] = "",
    quarter: Annotated[
        str | None, typer.Option("--quarter", metavar="Q", help="Quarter such as 2026Q3, beside the one before it.")
    ] = None,
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Show what a successful outcome costs, and how well the spend was used: caching, batch, waste, context growth.

    With --quarter, or --from and --to, every figure stands beside that of the period before.
    """
    names = breakdowns([name.strip() for name in by.split(",") if name.strip()])
    local = report_zone(zone)
    window, earlier = _windows(quarter, from_, to, local)
    log, book = one_state(db), book_of(prices, only=prices_only)

    def of(one: Window) -> Ledger:
        return laid_on(attribute(log, book, since=one.since, until=one.until, zone=local), fleet)

    ledger = of(window)
    now = Kpis(ledger, divided_up(ledger, names), measured(ledger, names))
    if not now.units.total.sums["requests"]:
        raise NotEvaluable("no billable request in this window, so there is nothing to divide; see tenfold cost")
    before = None if earlier is None else _before(of(earlier))
    if json:
        print_json(_document(now, before))
    else:
        show(Screen(), now, before)


def _before(ledger: Ledger) -> Kpis | None:
    found = divided_up(ledger)
    return Kpis(ledger, found, measured(ledger)) if found.total.sums["requests"] else None


def _windows(quarter: str | None, from_: str | None, to: str | None, zone: str) -> tuple[Window, Window | None]:
    if quarter is None:
        window = Window(instant(from_, zone, "--from"), instant(to, zone, "--to"), zone)
        return window, window_before(window)
    if from_ is not None or to is not None:
        raise AssumptionError("--quarter names the window: leave out --from and --to")
    chosen = read_quarter(quarter, zone, fiscal_year_start=config.settings().fiscal_year_start)
    return chosen.window, chosen.previous.window


def window_before(window: Window) -> Window | None:
    """Give the window of equal length that ends where another begins.

    Args:
        window: A window; one of whole calendar months in its zone goes back by as many months.

    Returns:
        The window before; None where an end is open.
    """
    if window.since is None or window.until is None:
        return None
    zone = ZoneInfo(window.zone)
    since, until = (bound.astimezone(zone).replace(tzinfo=None) for bound in (window.since, window.until))
    if _begins_month(since) and _begins_month(until):
        months = 12 * (until.year - since.year) + until.month - since.month
        year, month = divmod(12 * since.year + since.month - 1 - months, 12)
        begins = since.replace(year=year, month=month + 1)
    else:  # by the clock, so that whole days stay whole where clocks change
        begins = since - (until - since)
    return Window(begins.replace(tzinfo=zone).astimezone(UTC), window.since, window.zone)


def _begins_month(local: datetime) -> bool:
    return local.day == 1 and local.time() == datetime.min.time()


def _document(now: Kpis, before: Kpis | None) -> dict[str, Any]:
    ledger = now.ledger
    return {
        "zone": ledger.window.zone,
        "card_version": ledger.book.version,
        "log_hash": ledger.log.log_hash,
        **now.as_dict(),
        "before": None if before is None else before.as_dict(),
    }


def show(screen: Screen, now: Kpis, before: Kpis | None) -> None:
    """Print both analyses: the answer first, then what moved, then the breakdowns.

    Args:
        screen: Where to print.
        now: The window.
        before: The window before, or None.
    """
    total = now.units.total
    spend = "no price" if total.is_blank else small_dollars(total.spend_pusd)
    parts = (spend, counted(total.sums["requests"], "request"), f"prices {now.ledger.book.version}")
    screen.line("   ".join(parts), style="bold")
    unpriced = total.sums["requests"] - total.request.units
    if unpriced:
        screen.line(f"{counted(unpriced, 'request')} without a price: in no figure", style="dim")
    if now.ledger.charges:
        screen.line("of what requests carry, idle time left out:", style="dim")
    for line in (*now.units.sentences(), *now.efficiency.sentences()):
        if not line.startswith(UNMEASURED):
            screen.line(sentence(line))
    lacking = {**now.units.not_measurable, **now.efficiency.not_measurable}
    if lacking:
        named = ", ".join(f"{name.replace('_', ' ')} ({columns})" for name, columns in lacking.items())
        screen.line(f"{sentence(UNMEASURED)}: {named}", style="dim")
    if before is not None:
        screen.line()
        since, until = before.ledger.window.since, before.ledger.window.until
        if since is not None and until is not None:
            zone = ZoneInfo(now.ledger.window.zone)
            days = (f"{bound.astimezone(zone):%Y-%m-%d}" for bound in (since, until))
            screen.line(f"beside {' to '.join(days)} (exclusive)", style="dim")
        screen.table(_beside(now, before))
    if len(now.units.months) > 1:
        screen.line()
        screen.table(_by("month", [(f"{month:%Y-%m}", at) for at, (month, _) in enumerate(now.units.months)], now))
    for name, values in now.units.groups.items():
        screen.line()
        screen.table(_by(name, [(name_of(name, value), at) for at, (value, _) in enumerate(values[:_ROWS])], now))
        if len(values) > _ROWS:
            screen.line(f"and {len(values) - _ROWS:,} more", style="dim")


def _beside(now: Kpis, before: Kpis) -> Table:
    table = plain_table(("", False), ("now", True), ("before", True), ("change", True))
    for unit in now.units.total.all:
        old = before.units.total.unit(unit.name)
        change = now.units.change(before.units, unit.name)
        then = dollars_each(None if old is None or old.basis != unit.basis else old.per_unit)
        moved = "" if change is None else _signed(change)
        table.add_row(f"per {_word(unit)}", dollars_each(unit.per_unit), then, moved)
    for one in now.efficiency.against(before.efficiency):
        if one.now is not None:
            table.add_row(one.measure.title, _text(one, one.now), _text(one, one.before), _difference(one))
    return table


def _word(unit: UnitCost | None) -> str:
    """Name a unit; what stands in for an outcome never bears its name."""
    return "success" if unit is not None and unit.basis == "status" else "" if unit is None else unit.name


def _signed(share: Any) -> str:  # noqa: ANN401 -- any number
    return f"{'+' if share >= 0 else '-'}{percent(abs(share), 1)}"


def _text(one: Change, value: Any) -> str:  # noqa: ANN401 -- a value of any kind
    if value is None:
        return "unknown"
    if one.measure.kind == "ratio":
        return percent(value, 1)
    if one.measure.kind == "pusd":
        return small_dollars(int(value))
    return number(value, 0 if value >= 100 else 2)


def _difference(one: Change) -> str:
    if one.difference is None:
        return ""
    if one.measure.kind == "ratio":
        points = one.difference * 100
        return f"{'+' if points >= 0 else '-'}{number(abs(points), 1)} points"
    sign = "+" if one.difference >= 0 else "-"
    return f"{sign}{_text(one, abs(one.difference))}"


def _by(name: str, values: list[tuple[str, int]], now: Kpis) -> Table:
    """Lay unit costs and indicators of the same slices side by side; both analyses list them in one order."""
    outcome = now.units.total.outcome
    lead = "outcome" if outcome is not None and outcome.units else "request"
    units = now.units.months if name == "month" else now.units.groups[name]
    kpis_of = dict(now.efficiency.months if name == "month" else now.efficiency.groups[name])
    each = f"per {_word(now.units.total.unit(lead))}"
    table = plain_table(
        (name, False), ("spend", True), (each, True), ("$/M tokens", True), ("in:out", True),
        ("cache hit", True), ("batch", True), ("waste", True), ("input a request", True),
    )  # fmt: skip
    for text, at in values:
        value, one = units[at]
        found = kpis_of[value]
        unit = one.unit(lead)
        ratio = one.input_output_ratio
        table.add_row(
            text,
            "no price" if one.is_blank else small_dollars(one.spend_pusd),
            dollars_each(None if unit is None else unit.per_unit),
            dollars_each(one.tokens[0].per_million),
            "unknown" if ratio is None else f"{number(ratio, 1)}:1",
            percent(found.cache_hit_ratio),
            percent(found.tier_share("batch")),
            percent(found.waste_share, 1),
            "unknown" if found.mean_input_tokens is None else number(found.mean_input_tokens, 0),
        )
    return table
