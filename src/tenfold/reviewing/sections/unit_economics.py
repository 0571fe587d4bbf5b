"""Unit economics: what an outcome, a request, a session, a user and a million tokens cost, and how that moved."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import polars as pl

from tenfold import charts, tables
from tenfold.analysis.unit_economics import UnitCost, UnitEconomics, Units, dollars_each
from tenfold.display import name_of, sentence
from tenfold.money import PUSD_PER_USD, divided
from tenfold.reviewing.document import Block, Heading, Lines, Made, Picture, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import OF_REQUESTS, Facts
from tenfold.tables import Cell, Column

_TITLE = "Unit economics"
_NAMES = {"outcome": "successful outcome", "user": "active user"}
# Rows of a breakdown that are shown; the workbook and the page are of one content.
_MOST = 20


def section(facts: Facts) -> Section | Skipped:
    """Write the section on unit costs.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where nothing is priced.
    """
    if not facts.reading.spend_pusd:
        return Skipped(_TITLE, "nothing in this quarter costs anything; see coverage")
    found, before = facts.units, facts.units_before
    said = [*([OF_REQUESTS] if facts.ledger.charges else []), *map(sentence, found.sentences())]
    blocks: list[Block] = [Lines(tuple(said), "made-units"), Table(_now(found, before), "made-units")]
    trend = _trend(found)
    if trend is not None:
        blocks += [Heading("By month"), trend, Table(_monthly(found), "made-units")]
    blocks += [Heading("A million tokens"), *_tokens(found, before)]
    for name, values in found.groups.items():
        if len(values) > 1:
            blocks += [Heading(f"By {name}"), Table(_by(found, before, name), "made-units")]
    return Section("unit-economics", _TITLE, tuple(blocks), (_MADE, _TOKENS))


_MADE = Made(
    "made-units",
    "Unit costs",
    "Cost of the priced requests that belong to a unit, over how many different ones there are. A good outcome is one "
    "with `outcome_ok`; its cost is that of all attempts whose outcome is known: a failed attempt and one that was "
    "tried again are known to be none, and other requests of a session in which one was judged were made for that "
    "one. Without `outcome_ok` anywhere, requests with status success stand in, and the text says so. Requests that "
    "name no unit are in neither number; the share of spend that is in stands beside it.",
    "unit_sums",
)
_TOKENS = Made(
    "made-token-prices",
    "Price of a million tokens",
    "Cost over tokens of priced requests, by kind; blended is the whole cost over all tokens, so it moves with the "
    "ratio of input to output, too.",
    "unit_sums",
)


def _label(unit: UnitCost) -> str:
    if unit.basis == "status":
        return "successful request (stand-in for an outcome)"
    return _NAMES.get(unit.name, unit.name)


def _short(unit: UnitCost) -> str:
    """Name a unit in a narrow column: a stand-in by what it is."""
    return "successful request" if unit.basis == "status" else unit.name


def _pusd(value: Fraction | None) -> int | None:
    return None if value is None else divided(value.numerator, value.denominator)


def _decimals(values: Sequence[Fraction | None]) -> int:
    """Choose decimals that leave the smallest amount of a column three figures."""
    small = min((abs(value) for value in values if value), default=Fraction(PUSD_PER_USD))
    return next((n for n in range(2, 7) if small >= Fraction(PUSD_PER_USD, 10 ** (n - 2))), 6)


def _now(found: UnitEconomics, before: UnitEconomics | None) -> tables.Grid:
    units = found.total.all
    then = [None if before is None else before.total.unit(unit.name) for unit in units]
    costs = [
        (unit.per_unit, None if old is None or old.basis != unit.basis else old.per_unit)
        for unit, old in zip(units, then, strict=True)
    ]
    decimals = _decimals([cost for pair in costs for cost in pair])
    columns = (
        Column("unit", "unit"),
        Column("now", "USD per unit", "pusd", decimals),
        Column("before", "quarter before", "pusd", decimals),
        Column("change", "change", "ratio"),
        Column("units", "units", "count"),
        Column("share", "share of spend in it", "ratio"),
    )
    rows = [
        (_label(unit), _pusd(now), _pusd(old), found.change(before, unit.name), unit.units, unit.spend_share)
        for unit, (now, old) in zip(units, costs, strict=True)
    ]
    return tables.grid("table-units", "Cost per unit", columns, rows)


def _lead(found: UnitEconomics) -> UnitCost:
    """Choose the unit that is drawn: the outcome where there is one."""
    outcome = found.total.outcome
    return outcome if outcome is not None and outcome.units else found.total.request


def _trend(found: UnitEconomics) -> Picture | None:
    lead = _lead(found)
    costs = [
        (month, None if (unit := units.unit(lead.name)) is None else unit.per_unit) for month, units in found.months
    ]
    known = [(month, cost) for month, cost in costs if cost is not None]
    if len(known) < 2:
        return None
    frame = pl.DataFrame(
        [(month, None if cost is None else float(cost)) for month, cost in costs],
        schema={"month": pl.Date, "pusd": pl.Float64},
        orient="row",
    )
    (first, old), (last, new) = known[0], known[-1]
    then, now = f"{dollars_each(old)} in {first:%Y-%m}", f"{dollars_each(new)} in {last:%Y-%m}"
    said = f"Cost per {_label(lead)} went from {then} to {now}."
    chart = charts.unit_cost_trend(frame, _label(lead))
    return Picture(chart, "chart-unit-cost", f"Cost per {_label(lead)} by month", said, "made-units")


def _monthly(found: UnitEconomics) -> tables.Grid:
    units = found.total.all
    costs: list[list[Fraction | None]] = [
        [None if (one := slice_.unit(unit.name)) is None else one.per_unit for unit in units]
        for _, slice_ in found.months
    ]
    decimals = [_decimals([row[place] for row in costs]) for place in range(len(units))]
    columns = (
        Column("month", "month"),
        *(
            Column(unit.name, f"USD per {_short(unit)}", "pusd", places)
            for unit, places in zip(units, decimals, strict=True)
        ),
        Column("blended", "blended USD per million tokens", "pusd"),
        Column("ratio", "input to output tokens", "number", 1),
    )
    rows: list[list[Cell]] = [
        [f"{month:%Y-%m}", *map(_pusd, row), _pusd(slice_.tokens[0].per_million), slice_.input_output_ratio]
        for (month, slice_), row in zip(found.months, costs, strict=True)
    ]
    return tables.grid("table-units-monthly", "Cost per unit by month", columns, rows)


def _tokens(found: UnitEconomics, before: UnitEconomics | None) -> list[Block]:
    prices = found.total.tokens
    old = {} if before is None else {one.kind: one.per_million for one in before.total.tokens}
    columns = (
        Column("kind", "kind"),
        Column("now", "USD per million tokens", "pusd"),
        Column("before", "quarter before", "pusd"),
        Column("change", "change", "ratio"),
        Column("tokens", "tokens", "count"),
        Column("cost", "cost (USD)", "pusd"),
    )
    rows: list[list[Cell]] = []
    for one in prices:
        then = old.get(one.kind)
        change = one.per_million / then - 1 if one.per_million is not None and then else None
        rows.append([one.title, _pusd(one.per_million), _pusd(then), change, one.tokens, one.pusd])
    ratios = [f"input to output {_ratio(found.total)}"]
    if before is not None:
        ratios.append(f"{_ratio(before.total)} in the quarter before")
    return [
        Prose(sentence("; ".join(ratios)) + ": a blended price moves with it.", "made-token-prices"),
        Table(tables.grid("table-token-prices", "Price of a million tokens", columns, rows), "made-token-prices"),
    ]


def _ratio(units: Units) -> str:
    ratio = units.input_output_ratio
    return "unknown" if ratio is None else f"{float(ratio):,.1f}:1"


def _by(found: UnitEconomics, before: UnitEconomics | None, name: str) -> tables.Grid:
    values = found.groups[name]
    old = {} if before is None else dict(before.groups.get(name, ()))
    lead = _lead(found)
    shown = values[:_MOST]
    costs = [(_each(units, lead.name), units.request.per_unit) for _, units in shown]
    columns = (
        Column(name, name),
        Column("spend", "spend (USD)", "pusd"),
        Column("share", "share of spend", "ratio"),
        Column("outcome", f"USD per {_short(lead)}", "pusd", _decimals([cost for cost, _ in costs])),
        Column("change", "change", "ratio"),
        Column("request", "USD per request", "pusd", _decimals([cost for _, cost in costs])),
        Column("requests", "requests", "count"),
    )
    rows: list[list[Cell]] = []
    for (value, units), (cost, per_request) in zip(shown, costs, strict=True):
        then = _each(old[value], lead.name) if value in old else None
        is_alike = before is not None and before.basis == found.basis
        change = cost / then - 1 if cost is not None and then and (is_alike or lead.name != "outcome") else None
        spend: Cell = "not priced" if units.is_blank else units.spend_pusd
        share = None if units.is_blank else Fraction(units.spend_pusd, found.total.spend_pusd)
        rows.append([
            name_of(name, value), spend, share, _pusd(cost), change, _pusd(per_request), units.request.units
        ])  # fmt: skip
    more = len(values) - len(shown)
    note = f"{more:,} more {name}s cost less and are not shown." if more else ""
    return tables.grid(f"table-units-{name}", f"Unit costs by {name}", columns, rows, note=note)


def _each(units: Units, name: str) -> Fraction | None:
    unit = units.unit(name)
    return None if unit is None else unit.per_unit
