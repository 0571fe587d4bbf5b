"""``tenfold cost``: the exact bill, by any dimensions, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

import typer
from rich.table import Table

from tenfold import display
from tenfold.analysis import composition as reading
from tenfold.analysis.allocation import Allocation
from tenfold.analysis.allocation import allocate as to_teams
from tenfold.cli import completion
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
    working,
)
from tenfold.cli.serving_fleet import FleetFile, fleet_line, laid_on, span_of
from tenfold.errors import AssumptionError, NotEvaluable, near
from tenfold.ledger import Composition, Costs, Ledger, attribute, check_dimensions, grain_text
from tenfold.ledger.charges import charge_rows
from tenfold.logs.owning import owner_state
from tenfold.money import usd_text
from tenfold.owners import METHODS
from tenfold.serving.hosted import PROVIDER, HostedLedger

_AS_SET = "toml"  # the method that the settings name
_ALLOCATED = ("direct", "shared_out", "allocated", "total")
_HEAVIEST = ("cache write", "cache read", "uncached in", "output")  # columns that a narrow screen keeps longest
_NAMED = 4  # groups without a price that are named on the screen; --json has all
_SWEPT_AT_MOST = 2_000_000  # requests; the concurrency sweep takes seconds beyond, and the review has it


def cost(
    db: Db,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="A,B",
            help="Columns to group by, or day, week, month, quarter.",
            autocompletion=completion.columns,
        ),
    ] = "",
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    price_at: PriceAt = None,
    min_coverage: Annotated[
        float,
        typer.Option(
            "--min-coverage",
            metavar="R",
            min=0,
            max=1,
            help="Exit 3 when a smaller share (0 to 1) of requests is priced.",
        ),
    ] = 0.0,
    allocate: Annotated[
        str | None,
        typer.Option(
            "--allocate",
            metavar="METHOD",
            help="Allocate shared costs to the other teams: usage, even, fixed; or toml, as tenfold.toml says.",
        ),
    ] = None,
    fleet: FleetFile = None,
    json: Json = False,
) -> None:
    """Show what the log cost: exact, grouped, with the share that has no price named beside the total."""
    columns = [name.strip() for name in by.split(",") if name.strip()]
    columns = columns or ["team"] * (allocate is not None)
    check_dimensions(columns)
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
    allocated = None if allocate is None else _allocated(ledger, columns, allocate)
    with working("pricing the log", json=json):
        mix = ledger.composition(columns) if allocated is None else allocated.mix
    if not mix.frame["rows_seen"].sum() and not ledger.charges_pusd:
        raise NotEvaluable(_empty(ledger))
    if json:
        print_json(document(ledger, mix, allocated))
    else:
        show(Screen(), ledger, mix, allocated)
    ratio = ledger.coverage.requests_ratio
    if min_coverage and ratio is None:
        raise NotEvaluable("nothing in this window is billable, so there is no coverage")
    if ratio is not None and not ratio >= min_coverage:  # written so that it also fails for a NaN
        raise NotEvaluable(
            f"{display.percent(ratio, 2)} of requests are priced; --min-coverage asks for {min_coverage:.2%}"
        )


def _allocated(ledger: Ledger, columns: list[str], method: str) -> Allocation:
    if method not in (*METHODS, _AS_SET):
        raise AssumptionError(f'--allocate "{method}": one of {", ".join((*METHODS, _AS_SET))}.{near(method, METHODS)}')
    return to_teams(ledger, columns, method=None if method == _AS_SET else method)


def _empty(ledger: Ledger) -> str:
    whole = attribute(ledger.log, ledger.book, zone=ledger.window.zone)
    held = reading.read(whole, with_concurrency=False)
    return f"no request in this window; the log holds {held.requests:,} billable ones, {held.period()}"


def document(ledger: Ledger, mix: Composition, allocated: Allocation | None = None) -> dict[str, Any]:
    """Give the bill the keys that scripts rely on.

    Args:
        ledger: The ledger.
        mix: Its composition.
        allocated: Its shared costs allocated, over the same rows.

    Returns:
        The document of ``tenfold cost --json``.
    """
    coverage = ledger.coverage
    own = _own_prices(ledger, mix)
    if allocated is not None:
        rows = [{**row, **more} for row, more in zip(own["rows"], allocated.rows(), strict=True)]
        own |= {"allocation": allocated.as_dict(), "rows": rows}
    own["rows"] += _charged(ledger, mix) if allocated is None else _charged_out(allocated)
    return {
        "total_usd": None if coverage.is_unpriced and not ledger.charges else usd_text(_total(ledger, mix)),
        "requests": coverage.requests,
        "coverage": coverage.as_dict(),
        "card_version": ledger.book.version,
        "log_hash": ledger.log.log_hash,
        "price_at": ledger.price_at.isoformat() if ledger.price_at else None,
        "zone": ledger.window.zone,
        "by": list(mix.by),
        "owners": {**owner_state(ledger.log.store).as_dict(), **_owned(ledger, mix, allocated)},
        **own,
        **_fleet(ledger),
    }


def _total(ledger: Ledger, mix: Composition) -> int:
    return mix.total_pusd + ledger.charges_pusd


def _fleet(ledger: Ledger) -> dict[str, Any]:
    """Give what the fleet costs, over which span, and what of it no request carries."""
    if not isinstance(ledger, HostedLedger):
        return {}
    return {
        "fleet_usd": usd_text(ledger.bill_pusd),
        "idle_usd": usd_text(ledger.idle_pusd),
        "fleet_span": span_of(ledger),
        "fleet_notes": [*ledger.notes, *(note for one in ledger.hosted for note in one.notes)],
    }


def _charged(ledger: Ledger, mix: Composition) -> list[dict[str, Any]]:
    """Give charges as rows of their own, so that rows sum to the total."""
    return [_charge_row(mix.by, values, one.what, one.pusd) for values, one in charge_rows(ledger.charges, mix.by)]


def _charged_out(allocated: Allocation) -> list[dict[str, Any]]:
    """Give charges as rows of their own where they are shared out."""
    return [
        {**_charge_row(allocated.mix.by, values, "idle", money[0]),
         **{f"{name}_usd": usd_text(pusd) for name, pusd in zip(_ALLOCATED, money, strict=True)}}
        for values, money in allocated.charge_lines()
    ]  # fmt: skip


def _charge_row(by: Sequence[str], values: Sequence[str | None], what: str, pusd: int) -> dict[str, Any]:
    own = dict(zip(by, values, strict=True))
    return {**own, "charge": what, "requests": 0, "unpriced_requests": 0, "cost_usd": usd_text(pusd)}


def _idle_left(ledger: Ledger, allocated: Allocation | None) -> int:
    """Give the idle time that no team carries."""
    return ledger.charges_pusd - (0 if allocated is None else allocated.charges_shared_pusd)


def _owned(ledger: Ledger, mix: Composition, allocated: Allocation | None) -> dict[str, Any]:
    """Give the allocation coverage; null where teams are not kept apart."""
    idle = _idle_left(ledger, allocated)
    ratio = mix.owned_ratio(idle, ledger.charges_pusd)
    return {
        "owned_ratio": None if ratio is None else float(ratio),
        "unallocated_usd": usd_text(mix.unowned_pusd + idle) if "team" in mix.by else None,
    }


def _own_prices(ledger: Ledger, mix: Composition) -> dict[str, Any]:
    """Give the rows; where the book holds prices of your own, list, contracted and effective cost beside them."""
    if not ledger.book.is_own:
        return {"rows": mix.rows()}
    costs = ledger.costs(mix.by)
    by_group = costs.rows()
    groups = [tuple(row[name] for name in mix.by) for row in mix.ordered().rows(named=True)]
    rows = [{**row, **by_group.get(group, {})} for row, group in zip(mix.rows(), groups, strict=True)]
    return {**costs.as_dict(), "rows": rows}


def show(screen: Screen, ledger: Ledger, mix: Composition, allocated: Allocation | None = None) -> None:
    """Print the bill for people: answer first, coverage beside it, then rows and what they bound.

    Args:
        screen: Where to print.
        ledger: The ledger.
        mix: Its composition.
        allocated: Its shared costs allocated, over the same rows.
    """
    coverage = ledger.coverage
    said = reading.read(ledger, with_concurrency=coverage.requests <= _SWEPT_AT_MOST)
    is_blank = coverage.is_unpriced and not ledger.charges
    total = "no price" if is_blank else display.small_dollars(_total(ledger, mix))
    parts = (
        total,
        display.counted(coverage.requests, "request"),
        _period(ledger, said),
        f"prices {ledger.book.version}",
    )
    screen.line("   ".join(parts), style="bold")
    if ledger.price_at:
        screen.line(f"what-if: every request priced at {ledger.price_at.isoformat()}, not when it ran", style="yellow")
    screen.line(_coverage_line(ledger))
    _show_prices(screen, ledger)
    if mix.by and _total(ledger, mix):
        screen.line()
        screen.table(_table(ledger, mix, ledger.costs(mix.by) if ledger.book.commitments else None))
        screen.line("share: of the bill; the columns after it: of the row's own cost", style="dim")
        idle = _idle_left(ledger, allocated)
        ratio = mix.owned_ratio(idle, ledger.charges_pusd)
        if ratio is not None:
            lost = display.small_dollars(mix.unowned_pusd + idle)
            of_it = f", of which {display.small_dollars(idle)} is idle GPUs (--allocate shares it out)" if idle else ""
            screen.line(f"owned: {display.percent(ratio, 2)} of the bill has a team; {lost} unallocated{of_it}")
        if allocated is not None:
            screen.line()
            screen.table(_allocated_table(allocated))
            for sentence in allocated.sentences():
                screen.line(sentence)
    screen.line()
    if ledger.charges:
        screen.line("of what requests carry, idle time left out:", style="dim")
    for sentence in said.sentences():
        screen.line(sentence)
    for row in coverage.unpriced[:_NAMED]:
        if row["price_status"] == "unpriced_model" and not _is_on_no_pool(ledger, row):
            screen.line(f"not priced: {row['reason']}", style="yellow")


def _period(ledger: Ledger, said: reading.Reading) -> str:
    """Write the days that the total is of: those of requests, and of a fleet that ran longer."""
    if not isinstance(ledger, HostedLedger) or said.first is None or said.last is None:
        return said.period()
    since, until = ledger.span
    return replace(said, first=min(said.first, since), last=max(said.last, until - timedelta(microseconds=1))).period()


def _show_prices(screen: Screen, ledger: Ledger) -> None:
    """Print what the prices are besides a list: a fleet, owners' mappings that changed, prices of your own."""
    if isinstance(ledger, HostedLedger):
        screen.line(fleet_line(ledger))
        for note in ledger.notes[len(ledger.warnings) :]:
            screen.line(note, style="yellow")
    if note := owner_state(ledger.log.store).note:
        screen.line(note, style="yellow")
    if ledger.book.is_own:
        for sentence in ledger.costs().sentences():
            screen.line(sentence)


def _coverage_line(ledger: Ledger) -> str:
    coverage = ledger.coverage
    parts: list[str] = []
    if coverage.requests_ratio is not None:
        tokens = "" if coverage.tokens_ratio is None else f", {display.percent(coverage.tokens_ratio, 2)} of tokens"
        parts.append(f"priced {display.percent(coverage.requests_ratio, 2)} of requests{tokens}")
    if coverage.not_billed_requests:
        parts.append(
            f"{coverage.not_billed_requests:,} more not billed (failed, retrieved, answered by a gateway cache)"
        )
    if coverage.split_unknown_requests:
        parts.append(f"cached share unknown for {coverage.split_unknown_requests:,}: priced as uncached")
    if coverage.unpriced:
        names = [
            f"{row['model'] or 'no model'} ({display.counted(row['requests'], 'request')}: "
            f"{'on no pool' if _is_on_no_pool(ledger, row) else display.status_words(row['price_status'])})"
            for row in coverage.unpriced[:_NAMED]
        ]
        more = len(coverage.unpriced) - _NAMED
        parts.append("not priced: " + ", ".join(names) + (f" and {more} more" if more > 0 else ""))
    return " · ".join(parts)


def _is_on_no_pool(ledger: Ledger, row: Mapping[str, Any]) -> bool:
    """Whether a group has no price because no pool of the fleet runs it, which the fleet's own notes say."""
    is_hosted = isinstance(ledger, HostedLedger) and row["provider"] == PROVIDER
    return is_hosted and row["price_status"] == "unpriced_model"


def _usd(pusd: Decimal | None) -> str:
    return "no price" if pusd is None else display.small_dollars(int(pusd))


def _allocated_table(allocated: Allocation) -> Table:
    by = allocated.mix.by
    table = plain_table(*((name, False) for name in by), *((name.replace("_", " "), True) for name in _ALLOCATED))
    for row in allocated.frame.rows(named=True):
        names = (display.name_of(name, grain_text(name, row[name])) for name in by)
        table.add_row(*names, *(_usd(row[f"{name}_pusd"]) for name in _ALLOCATED))
    for values, money in allocated.charge_lines():
        table.add_row(*(value or "" for value in values), *(display.small_dollars(pusd) for pusd in money))
    return table


def _table(ledger: Ledger, mix: Composition, costs: Costs | None) -> Table:
    groups = {
        heading: names
        for _, heading, names in display.METER_GROUPS
        if any((mix.frame[f"{name}_pusd"] != 0).any() for name in names)
    }
    table = plain_table(
        *((name, False) for name in mix.by),
        ("requests", True),
        ("cost", True),
        *((("effective", True),) if costs else ()),
        ("share", True),
        *((heading, True) for heading in groups),
        spare=[*(heading for heading in reversed(groups) if heading not in _HEAVIEST), "requests", *_HEAVIEST],
    )
    effective = (
        {}
        if costs is None
        else {tuple(row[name] for name in mix.by): row["effective_pusd"] for row in costs.frame.rows(named=True)}
    )
    total = _total(ledger, mix)
    for row in mix.ordered().rows(named=True):
        cost_pusd = int(row["cost_pusd"])
        blank = display.nothing_priced(row["requests"], row["unpriced_requests"])
        parts = [sum(int(row[f"{name}_pusd"]) for name in names) for names in groups.values()]
        table.add_row(
            *(display.name_of(name, grain_text(name, row[name])) for name in mix.by),
            f"{row['requests']:,}",
            "no price" if blank else display.small_dollars(cost_pusd),
            *((_usd(effective[tuple(row[name] for name in mix.by)]),) if costs else ()),
            "" if blank else display.percent(Fraction(cost_pusd, total), 1),
            *("" if not cost_pusd else display.percent(Fraction(part, cost_pusd), 1) for part in parts),
        )
    for values, one in charge_rows(ledger.charges, mix.by):
        share = display.percent(Fraction(one.pusd, total), 1)
        table.add_row(
            *values, "0", display.small_dollars(one.pusd), *([""] * bool(costs)), share, *([""] * len(groups))
        )
    return table
