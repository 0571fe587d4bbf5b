"""Rates: list against effective cost, commitments, price changes in the quarter, and what the book knows to come."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tenfold import charts, tables
from tenfold.display import minute, sentence
from tenfold.ledger import Costs
from tenfold.reviewing.document import Block, Heading, Lines, Made, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.price_changes import PriceChange
from tenfold.tables import Cell, Column

_TITLE = "Rates and price changes"


def section(facts: Facts) -> Section | Skipped:
    """Write the section on rates.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where nothing is priced.
    """
    if not facts.reading.spend_pusd:
        return Skipped(_TITLE, "nothing in this quarter costs anything; see coverage")
    blocks: list[Block] = [Heading("List, contracted and effective"), *_costs(facts)]
    blocks.append(Heading("Price changes in the quarter"))
    if facts.price_changes:
        blocks.append(_changes(facts.price_changes, facts.zone, "table-changes", "Price changes in the quarter"))
    else:
        blocks.append(Prose("The price book has none for what was used in the quarter.", "made-changes"))
    blocks.append(Heading("Ahead"))
    ahead = facts.price_changes_ahead
    if ahead:
        caption = "After the quarter: price changes and prices that end"
        blocks.append(_changes(ahead, facts.zone, "table-ahead", caption))
    else:
        text = "The price book knows of no later price change, and of no price that ends, for what was used."
        blocks.append(Prose(text, "made-changes"))
    return Section("rates", _TITLE, tuple(blocks), (_COSTS, _CHANGES))


_COSTS = Made(
    "made-costs",
    "List, contracted and effective cost",
    "List cost is by the provider's list, contracted cost (the spend of this review) by your own prices over it. "
    "Effective cost adds commitments: each UTC day's capacity over that day's requests it covers, by tokens; idle days "
    "and what was not spent are no request's. The effective discount is one minus effective over list cost.",
    "totals",
)
_CHANGES = Made(
    "made-changes",
    "Price changes",
    "Read from the price book: entries that take over from another inside the quarter, for models and tiers used in "
    "it. Each request is priced by the entry in force at its start.",
)


def _costs(facts: Facts) -> list[Block]:
    costs = facts.costs
    lines = [*map(sentence, costs.sentences())]
    if not facts.ledger.book.is_own:
        lines.append(
            "No prices of your own were given (--prices DIR): all three are the list's, and no discount is in them."
        )
        return [Lines(tuple(lines), "made-costs")]
    return [Lines(tuple(lines), "made-costs"), Table(_by_model(costs), "made-costs")]


def _by_model(costs: Costs) -> tables.Grid:
    columns = (
        Column("provider", "provider"),
        Column("model", "model"),
        *(Column(kind, f"{kind} (USD)", "pusd", sums=True) for kind in ("list", "contracted", "effective")),
        Column("discount", "effective discount", "ratio"),
    )
    rows: list[Sequence[Cell]] = []
    for row in costs.frame.sort("contracted_pusd", descending=True, nulls_last=True).rows(named=True):
        amounts = [None if row[f"{kind}_pusd"] is None else int(row[f"{kind}_pusd"]) for kind in _KINDS]
        rows.append([row["provider"], row["model"], *amounts, _discount(amounts[0], amounts[2])])
    idle = [one for one in costs.commitments if one.unallocated_pusd]
    rows += [[None, f"{one.commitment.name}, no request's", None, None, one.unallocated_pusd, None] for one in idle]
    totals = [costs.total(kind) for kind in _KINDS]
    rows.append(["total", None, *totals, _discount(totals[0], totals[2])])
    return tables.grid("table-costs", "List, contracted and effective cost", columns, rows, has_total=True)


_KINDS = ("list", "contracted", "effective")


def _discount(listed: int | None, effective: int | None) -> Fraction | None:
    return 1 - Fraction(effective, listed) if listed and effective is not None else None


def _changes(changes: Sequence[PriceChange], zone: str, name: str, caption: str) -> Table:
    columns = [Column(key, key) for key in ("mark", "from", "model", "tier", "change", "source")]
    columns[4] = Column("change", "USD per million tokens (per 1,000 calls)")
    rows = [
        (
            str(number),
            minute(change.at, zone) + (" (announced)" if change.is_announced else ""),
            f"{change.model} ({change.provider})",
            change.tier + (f", {change.region}" if change.region else ""),
            _said(change),
            change.source,
        )
        for number, change in enumerate(changes, 1)
    ]
    return Table(tables.grid(name, caption, columns, rows), "made-changes")


def _said(change: PriceChange) -> str:
    if change.is_end:
        return "its price ends: requests after it are not priced"
    return "; ".join(f"{charts.METER_LABELS.get(meter, meter)} {old} to {new}" for meter, old, new in change.rates)
