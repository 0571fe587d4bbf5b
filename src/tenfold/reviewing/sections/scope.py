"""Coverage: how much of the log is priced, what is not, by name, and what was wrong with the data."""

from __future__ import annotations

from collections.abc import Sequence

from tenfold import tables
from tenfold.display import counted, percent, sentence
from tenfold.logs.owning import owner_state
from tenfold.money import shown
from tenfold.reviewing.document import Block, Heading, Lines, Made, Prose, Section, Table
from tenfold.reviewing.facts import Facts
from tenfold.tables import Column


def section(facts: Facts) -> Section:
    """Write the coverage section.

    Args:
        facts: What the review knows.

    Returns:
        The section.
    """
    found = facts.reading.coverage
    requests, tokens = percent(found.requests_ratio, 2), percent(found.tokens_ratio, 2)
    lines = [f"Priced: {requests} of {counted(found.requests, 'request')}, {tokens} of {found.tokens:,} known tokens."]
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
    blocks += [Heading("The data"), *_data(facts)]
    return Section("coverage", "Coverage", tuple(blocks), (_COVERAGE, _DATA))


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
