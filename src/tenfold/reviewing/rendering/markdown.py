"""A review as GitHub-flavoured Markdown: pipe tables, charts as their text, notes as footnotes, every name as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from tenfold.display import shortened, visible
from tenfold.reviewing.document import (
    Block,
    Card,
    Document,
    Heading,
    Lines,
    Picture,
    Prose,
    Table,
    Text,
    Tiles,
)
from tenfold.reviewing.rendering.notes import CODE, Notes, ident, prepared
from tenfold.tables import Grid

# What Markdown or HTML would read as a mark. A dollar before a digit opens no formula that anything could close.
_MARKS = re.compile(r"[\\`*_{}\[\]|~^]|\$(?!\d)")
# GitHub links bare addresses and names people; a comment between keeps them text.
_LINKS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)(?=\w)", re.IGNORECASE)
_AT_THE_START = re.compile(r"^(?:[#+=-]|\d+(?=[.)]))")
_SPACES = re.compile(r"\s+")
_FENCE = re.compile(r"`{3,}")


def render(document: Document) -> str:
    """Write the review as Markdown.

    Args:
        document: The review.

    Returns:
        Markdown as GitHub reads it, the same for the same review.
    """
    document = prepared(document)
    notes = Notes(document)
    parts = [f"# {_plain(document.title)}", _prose(document.subtitle)]
    parts.append("\n".join(f"- [{_plain(one.title)}](#{ident(one.key)})" for one in document.sections))
    for section in document.sections:
        parts += [f'<a id="{ident(section.key)}"></a>', f"## {_plain(section.title)}"]
        parts += [part for block in section.blocks for part in _block(block, notes)]
    parts += [f"[^{ident(key)}]: {_note(notes, key)}" for key in notes.made]
    return "\n\n".join(parts) + "\n"


def _block(block: Block, notes: Notes) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"### {_plain(text)}"
        case Prose(text, made):
            yield _prose(text) + _mark(notes, made)
        case Lines(items, made):
            yield _list([*map(_prose, items[:-1]), *(_prose(item) + _mark(notes, made) for item in items[-1:])])
        case Tiles(items):
            rows = [[tile.label, tile.value, tile.note] for tile in items]
            marks = [_mark(notes, tile.made) for tile in items]
            yield _pipes(["", "value", ""], [True, False, True], rows, marks)
        case Picture():
            lines = [f"**{_plain(block.title)}.** {_prose(block.text)}"]
            if block.caption and block.caption != block.text:
                lines.append(_prose(block.caption))
            yield "\n>\n".join(f"> {line}" for line in lines) + _mark(notes, block.made)
        case Table(grid, made):
            yield f"**{_plain(grid.caption)}**{_mark(notes, made)}"
            yield _table(grid)
            if grid.note:
                yield _prose(grid.note)
        case Card(title, pairs):
            yield f"**{_plain(title)}**"
            yield _list(f"{_plain(name)}: {'; '.join(map(_prose, lines))}" for name, lines in pairs)
        case Text(title, text):
            yield _folded(title, text)
        case _:
            yield _list(f"{_plain(note.title)}{_mark(notes, key)}" for key, note in notes.made.items())


def _table(grid: Grid) -> str:
    rows = grid.texts()
    bold = [""] * len(rows)
    if grid.has_total:
        bold[-1] = "**"
    head = [column.label for column in grid.columns]
    return _pipes(head, [place == 0 or one.is_words for place, one in enumerate(grid.columns)], rows, bold=bold)


def _pipes(
    head: Sequence[str],
    is_left: Sequence[bool],
    rows: Sequence[Sequence[str]],
    marks: Sequence[str] = (),
    bold: Sequence[str] = (),
) -> str:
    """Write a table; ``marks`` are footnotes after the second cell of a row, ``bold`` what is put around cells."""
    lines = [[_plain(label) for label in head], [":--" if left else "--:" for left in is_left]]
    for at, row in enumerate(rows):
        around = bold[at] if bold else ""
        cells = [f"{around}{_cell(text)}{around}" for text in row]
        if marks:
            cells[1] += marks[at]
        lines.append(cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _folded(title: str, text: str) -> str:
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCE.findall(text))])
    summary = f"<details><summary>{escape(visible(title))}</summary>"
    return f"{summary}\n\n{fence}sql\n{visible(text).rstrip()}\n{fence}\n\n</details>"


def _note(notes: Notes, key: str) -> str:
    note = notes.made[key]
    step = f" SQL step: `{visible(note.step)}`." if note.step else ""
    return f"{_plain(note.title)}. {_prose(note.how)}{step}"


def _mark(notes: Notes, key: str) -> str:
    return f"[^{ident(key)}]" if key in notes.made else ""


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _prose(text: str) -> str:
    """Write a line whose backticks mark code."""
    text = _SPACES.sub(" ", visible(text)).strip()
    parts = CODE.split(text)
    # odd parts are code, in which no mark is read
    made = [f"`{part}`" if place % 2 else _escaped(part) for place, part in enumerate(parts)]
    return _AT_THE_START.sub(_kept, "".join(made))


def _plain(text: str) -> str:
    """Write a line in which nothing is a mark."""
    return _AT_THE_START.sub(_kept, _escaped(_SPACES.sub(" ", visible(text)).strip()))


def _cell(text: str) -> str:
    lines = [_escaped(_SPACES.sub(" ", line)) for line in shortened(visible(text)).strip().split("\n")]
    return "<br>".join(lines)


def _escaped(text: str) -> str:
    text = _MARKS.sub(r"\\\g<0>", text)
    return _LINKS.sub("<!-- -->", escape(text, quote=False))


def _kept(found: re.Match[str]) -> str:
    start = found[0]
    return f"{start}\\" if start.isdigit() else f"\\{start}"
