"""Scope, coverage and reconciliation: what the log holds and is priced of it, and how far it is off what was billed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction

from tenfold import tables
from tenfold.analysis.reconcile import CAUSES, Reconciliation
from tenfold.display import counted, minute, percent, sentence
from tenfold.logs.owning import owner_state
from tenfold.money import shown
from tenfold.reviewing.document import Block, Heading, Lines, Made, Prose, Section, Table
from tenfold.reviewing.facts import Facts
from tenfold.tables import Cell, Column, Grid

# Lines of evidence of one cause, and examples of rows left out, that the page shows.
_SHOWN = 5


def section(facts: Facts) -> Section:
    """Write the section on scope, coverage and reconciliation.

    Args:
        facts: What the review knows.

    Returns:
        The section.
    """
    found = facts.reading.coverage
    requests, tokens = percent(found.requests_ratio, 2), percent(found.tokens_ratio, 2)
    lines = [
        *_scope(facts),
        f"Priced: {requests} of {counted(found.requests, 'request')}, {tokens} of {found.tokens:,} known tokens.",
    ]
    if found.money_ratio is not None and found.money_ratio < 1:
        lines.append(
            f"In money: {percent(found.money_ratio, 2)}, modelled with unpriced tokens at this log's own average price."
        )
    if found.split_unknown_requests:
        lines.append(
            f"{counted(found.split_unknown_requests, 'request')} of {found.requests:,} do not tell which part of "
            "their input was cached: all of it is priced as uncached."
        )
    lines += _owned(facts)
    if facts.undated_requests:
        lines.append(f"{counted(facts.undated_requests, 'request')} without a time belong to no quarter.")
    blocks: list[Block] = [Lines(tuple(lines), "made-coverage")]
    if found.unpriced:
        blocks += [Heading("Not priced"), _unpriced(facts)]
    blocks += [Heading("Reconciliation to what was billed"), *_reconciled(facts)]
    blocks += [Heading("The data"), *_data(facts)]
    return Section("coverage", "Scope, coverage and reconciliation", tuple(blocks), (_COVERAGE, _RECONCILED, _DATA))


def _scope(facts: Facts) -> list[str]:
    """Say what the review is of."""
    first, last = facts.reading.first, facts.reading.last
    if first is None or last is None:
        return []
    providers = sorted(str(one.value) for one in facts.reading.dimensions.get("provider", ()) if one.value)
    of_them = f", billed by {', '.join(providers)}" if providers else ""
    return [f"Scope: requests from {minute(first, facts.zone)} to {minute(last, facts.zone)}{of_them}."]


def _owned(facts: Facts) -> list[str]:
    """Say how much of the spend has an owner, and whether the owner rules are those of now."""
    mix, note = facts.composition("team"), owner_state(facts.ledger.log.store).note
    idle = facts.ledger.charges_pusd
    ratio = mix.owned_ratio(idle, idle)
    said: list[str] = []
    if ratio is not None:
        of_it = f", of which {shown(idle)} is idle GPUs, which no team owns" if idle else ""
        said.append(f"Owned: {percent(ratio, 2)} of spend; {shown(mix.unowned_pusd + idle)} is unallocated{of_it}.")
    return [*said, *([f"{sentence(note)}."] if note else [])]


_RECONCILED = Made(
    "made-reconciled",
    "Reconciliation",
    "The priced log against the amounts that reports and invoices bill, by day (or month), model and meter; one report "
    "for each provider and span, billed amounts only, never list or effective ones. A cause is believed where most "
    "cells that it touches then agree with the log. Causes and what is unexplained sum to the drift exactly.",
    "reconcile_slots",
)
_COVERAGE = Made(
    "made-coverage",
    "Coverage",
    "Priced over billable requests, and their known tokens. A model, tier, region or date without a price is never "
    "priced as something else.",
    "priced",
)
_DATA = Made(
    "made-data",
    "Rejected and flagged lines",
    "Counted by the loader over everything in the database; a rejected line is no request, a flagged one is. Flags are "
    "those of the quarter's requests.",
    "cells_requests",
)


def _unpriced(facts: Facts) -> Table:
    rows = facts.reading.coverage.unpriced
    return Table(tables.unpriced(rows, name="table-unpriced", caption="Requests without a price"), "made-coverage")


def _reconciled(facts: Facts) -> list[Block]:
    """Show how far the log is off what was billed, why, and what was left out."""
    found = facts.reconciliation
    if found is None:
        text = (
            "No report or invoice of this quarter is loaded, so nothing outside the log confirms its cost, and savings "
            "are unreconciled. Load OpenAI's costs, Anthropic's cost report, a FOCUS file or a CSV invoice with "
            "`tenfold load`, or hold one against the log with `tenfold reconcile`."
        )
        return [Prose(text, "made-reconciled")]
    limit, drift = percent(Fraction(found.max_drift), 1), percent(found.drift_ratio, 2)
    within = "within" if found.verdict == "reconciled" else "above"
    effect = "" if found.verdict == "reconciled" else ": savings are unreconciled until it is below it"
    covered = percent(found.covered_ratio, 1)
    amounts = f"Billed {shown(found.invoiced_pusd)}, logged {shown(found.compared_pusd)}"
    lines = [
        (
            f"{amounts}: the drift, parts of either sign counted, is {drift} of what was billed, {within} the limit of "
            f"{limit}{effect}."
        ),
        f"Reports cover {covered} of the quarter's spend; {shown(found.unexplained_pusd)} of the drift is unexplained.",
        *(f"{note}." for note in found.notes),
    ]
    blocks: list[Block] = [Lines(tuple(lines), "made-reconciled"), Table(_by_month(found), "made-reconciled")]
    if found.causes or found.unexplained_pusd:
        blocks.append(Table(_causes(found), "made-reconciled"))
        evidence = [f"{line}." for cause in found.causes for line in cause.evidence[:_SHOWN]]
        blocks += [Lines(tuple(evidence), "made-reconciled")] if evidence else []
    left_out = found.dropped or found.rejected
    return [*blocks, *([Table(_dropped(found), "made-reconciled")] if left_out else [])]


def _by_month(found: Reconciliation) -> Grid:
    sums: dict[tuple[str, date], list[int]] = {}
    for cell in found.cells:
        held = sums.setdefault((cell.provider, cell.month), [0, 0, 0, 0])
        amounts = (cell.logged_pusd, cell.invoiced_pusd, cell.drift_pusd, cell.unexplained_pusd)
        for place, pusd in enumerate(amounts):
            held[place] += pusd
    rows: list[tuple[Cell, ...]] = [
        (provider, f"{month:%Y-%m}", logged, billed, drift, Fraction(drift, billed) if billed else None, left)
        for (provider, month), (logged, billed, drift, left) in sorted(sums.items())
    ]
    drift, billed = found.drift_pusd, found.invoiced_pusd
    whole = Fraction(drift, billed) if billed else None
    rows.append(("all", "", found.compared_pusd, billed, drift, whole, found.unexplained_pusd))
    columns = (
        Column("provider", "provider"),
        Column("month", "month"),
        Column("logged", "logged (USD)", "pusd", sums=True),
        Column("billed", "billed (USD)", "pusd", sums=True),
        Column("drift", "drift (USD)", "pusd", sums=True),
        Column("ratio", "drift of billed", "ratio", 2),
        Column("unexplained", "unexplained (USD)", "pusd", sums=True),
    )
    note = "Drift: billed minus logged." + (
        " Reports without amounts are valued at the log's own rates."
        if any(cell.is_valued for cell in found.cells)
        else ""
    )
    caption = "Logged and billed, by provider and month"
    return tables.grid("table-reconciled", caption, columns, rows, note=note, has_total=True)


def _causes(found: Reconciliation) -> Grid:
    whole = found.invoiced_pusd
    amounts = [*((cause.name, cause.pusd) for cause in found.causes), ("unexplained", found.unexplained_pusd)]
    rows: list[tuple[Cell, ...]] = [
        (name.replace("_", " "), pusd, Fraction(pusd, whole) if whole else None, CAUSES.get(name, "what is left"))
        for name, pusd in amounts
    ]
    rows.append(("drift", found.drift_pusd, Fraction(found.drift_pusd, whole) if whole else None, ""))
    columns = (
        Column("cause", "cause"),
        Column("usd", "amount (USD)", "pusd", sums=True),
        Column("share", "of billed", "ratio", 2),
        Column("what", "what it is"),
    )
    return tables.grid("table-drift", "What explains the drift", columns, rows, has_total=True)


def _dropped(found: Reconciliation) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for one in found.dropped:
        other = ", ".join(f"{amount.normalize():f} {name}" for name, amount in one.amounts.items())
        rows.append((one.reason, one.provider, one.rows, one.pusd, other, "; ".join(one.examples)))
    if found.rejected:
        such = "; ".join(f"{one.file}:{one.line}: {one.reason}" for one in found.rejected[:_SHOWN])
        rows.append(("refused by the reader: what it bills is unknown", None, len(found.rejected), None, "", such))
    columns = (
        Column("reason", "why"),
        Column("provider", "provider"),
        Column("rows", "rows", "count"),
        Column("usd", "amount (USD)", "pusd"),
        Column("other", "in other currencies"),
        Column("examples", "such as"),
    )
    return tables.grid("table-dropped", "Rows of reports and invoices not held against the log", columns, rows)


def _data(facts: Facts) -> list[Block]:
    loads = facts.loads
    rejected = sum(number for _, number in facts.rejects)
    text = (
        f"{counted(loads['files'], 'file')}, {counted(loads['lines'], 'line')} read; {loads['duplicates']:,} exact "
        f"repeats dropped, {loads['merged']:,} snapshots merged, {counted(rejected, 'line')} rejected"
        f"{', ' + counted(loads['ignored'], 'line') + ' without a request' if loads['ignored'] else ''}. "
        "These are of all loads, not of the quarter only."
    )
    blocks: list[Block] = [Prose(text, "made-data")]
    if facts.rejects:
        blocks.append(_counts(facts.rejects, "reason", "lines", "table-rejects", "Rejected lines, all loads"))
    if facts.flags:
        blocks.append(_counts(facts.flags, "flag", "requests", "table-flags", "Flagged requests of the quarter"))
    return blocks


def _counts(rows: Sequence[tuple[str, int]], what: str, unit: str, name: str, caption: str) -> Table:
    return Table(tables.grid(name, caption, (Column(what, what), Column(unit, unit, "count")), rows), "made-data")
