"""Anomalies: days that cost what their past did not make likely, in dollars, each with its bridge in one line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from zoneinfo import ZoneInfo

import polars as pl

from tenfold import charts
from tenfold.analysis.anomalies import KIND_WORDS, TRAILING, Anomalies, Anomaly, owner_text, told
from tenfold.analysis.bridge import bridge
from tenfold.display import counted, name_of, sentence, small_dollars
from tenfold.errors import TenfoldError
from tenfold.ledger import Window
from tenfold.ledger.span import DAY, starts
from tenfold.reviewing.document import Block, Heading, Lines, Made, Picture, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import Facts
from tenfold.tables import Cell, Column, Grid, grid

_TITLE = "Anomalies"
_MADE = "made-anomalies"
# Anomalies that are told with their bridge; the table has more, --json all.
_BRIDGED = 8
_LISTED = 25
_PICTURED = 4


def section(facts: Facts) -> Section | Skipped:
    """Write the section on anomalies.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where the log is too short to judge a day.
    """
    found = facts.anomalies
    if isinstance(found, str):
        return Skipped(_TITLE, found)
    notes = tuple(sentence(note) for note in found.notes)
    if not found.found:
        text = f"No day stands out among {counted(found.series, 'series')} of {' and '.join(found.by)}."
        blocks: list[Block] = [Prose(text, _MADE), *([Lines(notes, _MADE)] if notes else [])]
        return Section("anomalies", _TITLE, tuple(blocks), (_made(found),))
    head = (
        f"{len(found.found):,} {'anomaly' if len(found.found) == 1 else 'anomalies'} among {found.series} series of "
        f"{' and '.join(found.by)}. More and less than expected: {found.summed()}."
    )
    top = found.found[:_BRIDGED]
    blocks = [
        Prose(head, _MADE),
        _picture(found, facts.quarter.bounds[0].date()),
        Table(_table(found), _MADE),
        Heading("The largest, and what moved them"),
        Lines(tuple(told(found.by, one) + _bridged(facts, found, one) for one in top), _MADE),
    ]
    if notes:
        blocks.append(Lines(notes, _MADE))
    return Section("anomalies", _TITLE, tuple(blocks), (_made(found),))


def _made(found: Anomalies) -> Made:
    return Made(
        _MADE,
        "Anomalies",
        f"The daily cost of each {' and '.join(found.by)} is held against the trailing median of up to 28 days, with "
        f"its weekday's effect and its slope; a day stands out beyond {found.k:g} scaled median absolute deviations "
        "(1.4826 x MAD), widened where few days say how much noise is usual. Days next to each other are one anomaly; "
        "seven in a row are a new level, told once. A series without a request for a week or more until the log's end, "
        "twice as long as ever before, has ended: its days since are held against the same weekdays of its last four "
        "weeks. Impact is cost less what was expected; that of a new level or a new combination runs to where it ends, "
        "or to the log's end. Impacts of different kinds are not added. The bridge holds the anomaly's days against "
        "the days before, scaled to what was expected, so that its bars sum to the impact.",
        "totals",
    )


def _table(found: Anomalies) -> Grid:
    columns = (
        *(Column(name, name) for name in found.by),
        Column("kind", "kind"),
        Column("first", "first day", "date"),
        Column("last", "last day", "date"),
        Column("cost", "cost (USD)", "pusd"),
        Column("expected", "expected (USD)", "pusd"),
        Column("impact", "impact (USD)", "pusd"),
        Column("score", "distance (MADs)", "number", 1),
    )
    rows: list[Sequence[Cell]] = [
        (
            *map(name_of, found.by, one.owner),
            KIND_WORDS[one.kind],
            one.first,
            one.until,
            one.cost,
            one.expected,
            one.impact,
            one.score or None,
        )
        for one in found.found[:_LISTED]
    ]
    left = len(found.found) - len(rows)
    note = f"{left} smaller ones are in `tenfold anomalies --json`." if left > 0 else ""
    return grid("anomalies", "Anomalies by impact", columns, rows, note=note)


def _picture(found: Anomalies, since: date) -> Picture:
    owners = list(dict.fromkeys(one.owner for one in found.found))[:_PICTURED]
    parts: list[pl.DataFrame] = []
    for owner in owners:
        own = [one for one in found.found if one.owner == owner]
        marked = {day for one in own for day in _days(one)}
        # what ended is to be seen as it was
        ends = [one.first - TRAILING * DAY for one in own if one.kind == "ended"]
        rows = found.band(owner).filter(pl.col("day") >= min([since, *ends]))
        parts.append(
            rows.select(
                pl.lit(owner_text(found.by, owner)).alias("name"),
                "day",
                "cost_pusd",
                "low_pusd",
                "high_pusd",
                pl.col("day").is_in(sorted(marked)).alias("is_marked"),
            )
        )
    names = ", ".join(owner_text(found.by, owner) for owner in owners)
    text = f"Daily cost of {names}, over what was expected of each day. Largest: {told(found.by, found.found[0])}."
    title = "Daily cost, with the days that stand out"
    return Picture(charts.anomaly_days(pl.concat(parts)), "anomaly-days", title, text, _MADE)


def _days(one: Anomaly) -> Sequence[date]:
    """Days to mark: of what begins and stays, the first."""
    stays = one.kind in ("new", "ended", "level_up", "level_down")
    return [one.first] if stays else [one.first + n * DAY for n in range(one.days)]


def _bridged(facts: Facts, found: Anomalies, one: Anomaly) -> str:
    """Say what moved an anomaly: its days against those it was held against, scaled to what was expected of it."""
    if one.baseline is None or not one.expected or one.kind in ("silence", "ended"):
        return "."
    where = {name: None if value is None else str(value) for name, value in zip(found.by, one.owner, strict=True)}
    zone = ZoneInfo(facts.zone)

    def between(first: date, last: date) -> Window:
        return Window(starts(first, zone), starts(last + DAY, zone), facts.zone)

    before = facts.whole.within(between(*one.baseline))
    past = before.composition(found.by).frame
    same = [pl.col(name).eq_missing(pl.lit(value)) for name, value in zip(found.by, one.owner, strict=True)]
    cost = int(past.filter(*same)["cost_pusd"].sum() or 0)
    if not cost:
        return "."
    try:
        made = bridge(
            before, facts.whole.within(between(one.first, one.last)), where=where, scale=Fraction(one.expected, cost)
        )
    except TenfoldError as error:
        return f"; no bridge: {error}."
    bars = sorted((bar for bar in made.bars if bar.pusd), key=lambda bar: -abs(bar.pusd))
    return f": {', '.join(f'{bar.name} {_signed(bar.pusd)}' for bar in bars)}." if bars else "."


def _signed(pusd: int) -> str:
    return f"{'+' if pusd > 0 else '-'}{small_dollars(abs(pusd))}"
