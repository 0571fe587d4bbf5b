"""The page of a diagnosis: what ``tenfold diagnose --out`` writes, in the form of a review."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tenfold import charts, tables
from tenfold.charts.theme import AnyChart
from tenfold.display import counted, sentence
from tenfold.extras import need
from tenfold.latency import amounts, pictures, wording
from tenfold.latency.answers import Diagnosis
from tenfold.latency.kinds import STEPS
from tenfold.latency.records import Pair
from tenfold.latency.wording import CauseSaid
from tenfold.reviewing import Review
from tenfold.reviewing.document import (
    Block,
    Card,
    Document,
    Heading,
    Lines,
    Made,
    MadeList,
    Picture,
    Prose,
    Section,
    Table,
    Tile,
    Tiles,
)
from tenfold.tables import Column

if TYPE_CHECKING:
    from tenfold.latency.diagnosis import Diagnoses

_TITLE = "Latency diagnosis"
_SHIFT = Made(
    "made-shift",
    "How the tail moved",
    "The quantile of each window, and the change with an interval from 40 slices of time drawn again (block "
    "bootstrap), 99 % for all components together. A component moved where its interval leaves zero out. TPOT is over "
    "answers of 16 tokens and more.",
)
_SHARES = Made(
    "made-shares",
    "Shares of the causes",
    "Requests of the window before are weighed and timed as the window after had them, one factor at a time in every "
    "order (Shapley); what the factors leave is unexplained. What follows from a first cause is in its share.",
)
_STEPS = Made("made-steps", "Steps", "Seven tests in the order of the runbook; a step that lacks its columns says so.")


class Asked(NamedTuple):
    """What was asked.

    Args:
        before: The window that was fine, as it was given.
        after: The window in question.
        where: Whose latencies are looked at; None: all.
        command: What makes the page again.
    """

    before: Sequence[str]
    after: Sequence[str]
    where: str | None
    command: str


def diagnosis_page(found: Diagnoses, pairs: Mapping[str, Pair] | None = None, asked: Asked | None = None) -> Review:
    """Make the page of a diagnosis.

    Args:
        found: The answers.
        pairs: The windows by model, for the pictures of quantiles and of time; without them those are left out.
        asked: What was asked, to be repeated; None: it is not known.

    Returns:
        The page: the same bytes for the same windows.

    Raises:
        MissingExtraError: The ``report`` extra is not installed.
    """
    need("jinja2", "altair", "great_tables", "vl_convert", what="a page")
    several = len(found.all) > 1
    sections = [
        _section(one, (pairs or {}).get(one.model), number, several=several) for number, one in enumerate(found.all, 1)
    ]
    if len(found.mix) > 1:
        sections.append(_mix(found))
    if asked is not None or found.notes:
        sections.append(_asked(found, asked))
    sections.append(Section("made", "How the numbers were made", (MadeList(),), (_SHIFT, _SHARES, _STEPS)))
    return Review(Document(_TITLE, _subtitle(found, asked), tuple(sections)))


def _subtitle(found: Diagnoses, asked: Asked | None) -> str:
    texts = dict(wording.told(found.main).windows)
    where = f" · where {asked.where}" if asked is not None and asked.where is not None else ""
    if len(found.all) > 1:
        # each model has counts of its own, in its section
        names = ", ".join(one.model for one in found.all)
        return f"{counted(len(found.all), 'model')}: {names}{where}"
    return f"model: {texts['model']} · before: {texts['before']} · after: {texts['after']}{where}"


def _asked(found: Diagnoses, asked: Asked | None) -> Section:
    lines: list[str] = []
    if asked is not None:
        lines += [f"{name}: `{' '.join(specs)}`" for name, specs in (("Before", asked.before), ("After", asked.after))]
        lines += [f"Where: `{asked.where}`"] if asked.where is not None else []
        lines += [f"Made with: `{asked.command}`"]
    lines += [amounts.spaced(note) for note in found.notes]
    return Section("asked", "What was compared", (Lines(tuple(lines)),))


def _section(one: Diagnosis, pair: Pair | None, number: int, *, several: bool) -> Section:
    texts = wording.told(one)
    blocks: list[Block] = [Prose(texts.answer)]
    if several:
        blocks.append(Lines(tuple(f"{sentence(label)}: {text}" for label, text in texts.windows if label != "model")))
    if texts.heed:
        blocks.append(Prose(texts.heed))
    if tiles := tuple(_tiles(one)):
        blocks.append(Tiles(tiles))
    if texts.split:
        blocks.append(Prose(f"{sentence(texts.split)}."))
    if texts.causes:
        blocks += [Heading("Causes"), *(_card(cause) for cause in texts.causes)]
    if texts.rest:
        blocks.append(Lines(tuple(f"{sentence(label)}: {text}" for label, text in texts.rest), "made-shares"))
    if texts.next:
        blocks += [Heading("What to measure next"), Lines(texts.next)]
    blocks += _pictures(one, pair, number)
    if steps := tuple(_steps(one)):
        blocks += [Heading("What each step found"), Lines(steps, "made-steps")]
    if texts.notes:
        blocks += [Heading("Notes"), Lines(texts.notes)]
    title = f"What moved {one.model}" if several else "What moved the tail"
    return Section(f"model-{number}", title, tuple(blocks))


def _tiles(one: Diagnosis) -> Iterable[Tile]:
    for name, shift in one.shift.items():
        unit = amounts.unit_of(name, shift.before, shift.after)
        label = f"{one.percent} {amounts.NAMES[name]}"
        note = f"{unit.text(shift.before)} {unit.name} before; {amounts.change_text(name, shift)}"
        yield Tile(label, f"{unit.text(shift.after)} {unit.name}", note, "made-shift")


def _card(cause: CauseSaid) -> Card:
    share = f"{cause.share}, {cause.follows}" if cause.follows else cause.share
    title = f"{cause.number} · {cause.title}" if cause.number else f"└ {cause.title}"
    pairs: list[tuple[str, tuple[str, ...]]] = [("share", (share,))]
    if cause.evidence:
        pairs.append(("evidence", cause.evidence))
    return Card(title, (*pairs, *((label, (text,)) for label, text in cause.said)))


def _pictures(one: Diagnosis, pair: Pair | None, number: int) -> Iterable[Block]:
    steps = pictures.waterfall(one)
    if not steps.is_empty():
        yield Heading("From before to after")
        chart = charts.tail_waterfall(steps, quantile=one.percent)
        yield _picture(chart, "Waterfall of the tail", _way(steps, one.percent), number, "made-shares")
    if pair is None or one.verdict == "refused":
        return
    over = pictures.timeline(pair, one)
    if over is not None:
        yield Heading("Over time")
        happened = _happened(over.marks, to_second=amounts.needs_seconds(one.windows))
        text = f"The {one.percent} and the median by slice of time; the window after is shaded. {happened}"
        yield _picture(charts.tail_timeline(*over), "Tail over time", text.strip(), number, "made-shift")
    quantiles = pictures.quantile_pairs(pair)
    if not quantiles.is_empty():
        yield Heading("All quantiles")
        chart = charts.quantile_shift(quantiles, quantile=one.quantile)
        text = "On the dashed line nothing changed; above it the window after is slower. " + " ".join(_ends(quantiles))
        yield _picture(chart, "Quantiles after against before", text.strip(), number, "made-shift")


def _picture(chart: AnyChart, title: str, text: str, number: int, made: str) -> Picture:
    name = f"chart-{number}-{title.split(maxsplit=1)[0].lower()}"
    return Picture(chart, name, title, text, made, f"{title}. {text}")


def _happened(marks: pl.DataFrame, *, to_second: bool) -> str:
    onsets = marks.filter(kind="onset")
    return " ".join(
        f"{sentence(row['label'])} from {amounts.moment(row['at'].timestamp(), to_second=to_second)}."
        for row in onsets.rows(named=True)
    )


def _ends(quantiles: pl.DataFrame) -> Iterable[str]:
    for row in quantiles.filter(pl.col("quantile").is_in([0.5, 0.99])).rows(named=True):
        name = row["component"]
        scale = 1 if name == "output" else 1000
        unit = amounts.unit_of(name, row["before"] / scale, row["after"] / scale)
        ends = " to ".join(unit.text(row[window] / scale) for window in ("before", "after"))
        yield f"{amounts.NAMES[name]} p{row['quantile'] * 100:g}: {ends} {unit.name}."


def _way(steps: pl.DataFrame, percent_name: str) -> str:
    """Tell the waterfall to those who do not see it."""
    said: list[str] = []
    for (component,), rows in steps.group_by("component", maintain_order=True):
        name = str(component)
        scale = 1 if name == "output" else 1000
        unit = amounts.unit_of(name, *(rows["to"] / scale))
        parts = [f"{row['label']} {unit.text((row['to'] - row['from']) / scale)}" for row in rows.rows(named=True)]
        # what rounds to nothing has no sign
        parts = [re.sub(r" -(0(\.0*)?)$", r" \1", part) for part in parts]
        said.append(f"{percent_name} {amounts.NAMES[name]}, {unit.name}: {', '.join(parts)}")
    return f"{'; '.join(said)}."


def _steps(one: Diagnosis) -> Iterable[str]:
    for finding in one.findings:
        said = "; ".join(amounts.tidied(text) for text in finding.evidence)
        lacks = f"needs {', '.join(finding.missing)}" if finding.missing else ""
        status = {"guilty": "accused", "innocent": "not guilty"}.get(finding.status, finding.status)
        if finding.step == 1:
            status = "moved" if finding.status == "guilty" else "did not move"
        text = "; ".join(part for part in (said, lacks) if part)
        yield f"Step {finding.step}, {STEPS[finding.step]}, {status}{f': {text}' if text else ''}"


def _mix(found: Diagnoses) -> Section:
    rows = [(one.model, one.before, one.after, one.before_ratio, one.after_ratio) for one in found.mix]
    columns = (
        Column("model", "model"),
        Column("before", "requests before", "count"),
        Column("after", "requests after", "count"),
        Column("before_ratio", "share before", "ratio"),
        Column("after_ratio", "share after", "ratio"),
    )
    grid = tables.grid("table-mix", "Requests by model", columns, rows)
    said = "Each model is diagnosed by itself: a shift between models moves the tail of all with no model being slower."
    return Section("mix", "Mix of models", (Prose(said), Table(grid, "")))
