"""A review as a PDF on A4, tagged for screen readers (PDF/UA-1), set by Typst, which reads the review as data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, TypeAlias

from tenfold import charts
from tenfold.display import shortened, visible
from tenfold.extras import need
from tenfold.reviewing.document import (
    Block,
    Card,
    Document,
    Heading,
    Lines,
    Picture,
    Prose,
    Section,
    Table,
    Text,
    Tiles,
)
from tenfold.reviewing.rendering.notes import CODE, RIGHT_TO_LEFT, Notes, ident, prepared
from tenfold.tables import Grid

Data: TypeAlias = dict[str, Any]

_WIDTH = re.compile(r'<svg[^>]* width="([\d.]+)"')
_FONT = re.compile(r'font-family="[^"]*"')
# A picture of this many pixels is as wide as the text.
_FULL_WIDTH = 780
_LONG_WORD = re.compile(r"\S{10,}")
_BREAK = re.compile(r"(?<=[/_.,:;&=?⟩-])(?=[\w⟨])|(?<=\S{16})(?=[\w⟨])")
_BREAKS = "\n\t"
_HEAD = 90
# In characters of a table: a text that stays in one line, the space between columns, a line, what long texts are left.
_SHORT, _GAP, _ACROSS, _LEAST_OF_A_PAGE = 22, 3, 120, 30
_CODES = (
    "Characters that the fonts of this file lack stand as their code, such as ⟨U+4E2D⟩. The page (.html) and the "
    "workbook (.xlsx) of this review have them as they are."
)


def render(document: Document) -> bytes:
    """Write the review as a PDF.

    Its fonts come with Typst, so the bytes do not depend on the machine; a character that they lack is written as
    its code, and the file says so.

    Args:
        document: The review.

    Returns:
        A PDF file, the same bytes for the same review.

    Raises:
        MissingExtraError: The ``report`` extra is not installed.
    """
    need("typst", "altair", "vl_convert", what="a PDF")
    import typst

    try:
        return _compiled(document, _glyphs())
    except typst.TypstError:
        # some characters have a glyph each and none together: then only plain ones stand as they are
        return _compiled(document, frozenset(map(chr, range(0x20, 0x17F))))


def _compiled(document: Document, glyphs: frozenset[str]) -> bytes:
    import typst

    data = Writer(prepared(document), glyphs).data()
    return typst.compile(
        (resources.files("tenfold.reviewing.rendering") / "page.typ").read_bytes(),
        ignore_system_fonts=True,
        sys_inputs={"review": json.dumps(data, ensure_ascii=False)},
        format="pdf",
        pdf_standards=["ua-1"],
        timestamp=0,
    )


class Writer:
    """A review as the data that the Typst file reads.

    Args:
        document: The review.
        glyphs: Characters that the fonts have.
    """

    def __init__(self, document: Document, glyphs: frozenset[str]) -> None:
        self._document, self._glyphs = document, glyphs | frozenset(_BREAKS)
        self._notes = Notes(document)
        self._is_coded = False

    def data(self) -> Data:
        """Give everything that is to be set.

        Returns:
            What becomes JSON.
        """
        title = self._plain(self._document.title)
        sections = [
            {
                "key": ident(section.key),
                "title": self._plain(section.title),
                "blocks": list(self._blocks(section)),
            }
            for section in self._document.sections
        ]
        return {
            "title": title,
            "head": shortened(title, _HEAD),
            "subtitle": self._runs(self._document.subtitle),
            "sections": sections,
            "coded": self._is_coded,
            "codes": self._covered(_CODES.replace("⟨U+4E2D⟩", "(U+4E2D)")),
        }

    def _blocks(self, section: Section) -> Iterator[Data]:
        level = 2
        for block in section.blocks:
            if isinstance(block, Text):
                continue  # text to look up, folded away on the page, would be pages of print
            level = 3 if isinstance(block, Heading) else level
            yield {**self._block(block, section), "level": level}

    def _block(self, block: Block, section: Section) -> Data:
        made: Data = {"kind": block.kind, **self._how(section, getattr(block, "made", ""))}
        match block:
            case Heading(text):
                made["text"] = self._plain(text)
            case Prose(text):
                made["text"] = self._runs(text)
            case Lines(items):
                made["items"] = [self._runs(item) for item in items]
            case Tiles(items):
                made["items"] = [
                    {
                        "label": self._plain(tile.label),
                        "value": self._plain(tile.value),
                        "note": self._plain(tile.note),
                        **self._how(section, tile.made),
                    }
                    for tile in items
                ]
            case Picture():
                svg = self._svg(block)
                width = _WIDTH.search(svg)
                share = 100 * float(width[1]) / _FULL_WIDTH if width else 100
                made |= {"svg": svg, "width": share, "alt": self._plain(f"{block.title}. {block.text}")}
                made["caption"] = self._runs(block.caption or block.text)
            case Table(grid):
                made |= self._table(grid)
            case Card(title, pairs):
                made["title"] = self._plain(title)
                made["pairs"] = [
                    {"name": self._plain(name), "lines": [self._runs(line) for line in lines]} for name, lines in pairs
                ]
            case _:
                made["items"] = list(self._made())
        return made

    def _how(self, section: Section, key: str) -> Data:
        if key not in self._notes.made:
            return {}
        place = self._notes.first(section, key)
        return {"made": ident(key), **({"place": place} if place else {})}

    def _made(self) -> Iterator[Data]:
        for key, note in self._notes.made.items():
            how = note.how + (f" SQL step: `{note.step}`." if note.step else "")
            uses = [{"place": place, "title": self._plain(title)} for place, title in self._notes.uses(key)]
            yield {"key": ident(key), "title": self._plain(note.title), "how": self._runs(how), "uses": uses}

    def _table(self, grid: Grid) -> Data:
        rows = [[self._plain(shortened(visible(text))) for text in row] for row in grid.texts()]
        is_left = [place == 0 or column.is_words for place, column in enumerate(grid.columns)]
        return {
            "caption": self._plain(grid.caption),
            "head": [self._plain(column.label) for column in grid.columns],
            "left": is_left,
            "widths": _widths(grid, is_left),
            "rows": rows,
            "total": grid.has_total,
            "note": self._runs(grid.note) if grid.note else [],
        }

    def _svg(self, block: Picture) -> str:
        """Draw a chart for white paper, in a font that the file has."""
        svg = charts.to_svg(block.chart, "", "", name=ident(block.name))
        ink, paper = charts.PRINTED.values()
        svg = svg.replace('"currentColor"', f'"{ink}"').replace('"var(--paper, #fff)"', f'"{paper}"')
        return self._covered(_FONT.sub('font-family="Libertinus Serif"', svg))

    def _runs(self, text: str) -> list[Data]:
        """Cut text into plain runs and code."""
        parts = CODE.split(text)
        return [{"text": self._plain(part), "code": place % 2 == 1} for place, part in enumerate(parts) if part]

    def _plain(self, text: str) -> str:
        """Write text that can break within long words, what is written from the right set apart."""
        covered = self._covered(visible(text).replace("\t", " "))
        broken = _LONG_WORD.sub(lambda word: _BREAK.sub("\u200b", word[0]), covered)
        return RIGHT_TO_LEFT.sub("\u2068\\g<0>\u2069", broken)

    def _covered(self, text: str) -> str:
        missing = {character for character in set(text) if character not in self._glyphs}
        self._is_coded |= bool(missing)
        return text.translate({ord(one): f"⟨U+{ord(one):04X}⟩" for one in missing}) if missing else text


def _widths(grid: Grid, is_left: list[bool]) -> list[int]:
    """Give columns what they need (0), and share what is left of the page among those of long words."""
    texts = grid.texts()
    lengths = [max([len(row[place]) for row in texts], default=0) for place in range(len(grid.columns))]
    is_long = [left and length > _SHORT for left, length in zip(is_left, lengths, strict=True)]
    needed = sum(length + _GAP for length, long in zip(lengths, is_long, strict=True) if not long)
    if needed > _ACROSS - _LEAST_OF_A_PAGE * any(is_long):
        is_long = [left and column.kind != "date" for left, column in zip(is_left, grid.columns, strict=True)]
    return [min(60, max(12, length)) if long else 0 for length, long in zip(lengths, is_long, strict=True)]


@cache
def _glyphs() -> frozenset[str]:
    text = (resources.files("tenfold.reviewing.rendering") / "glyphs.txt").read_text(encoding="utf-8")
    ranges = [one.partition("-") for line in text.splitlines() if not line.startswith("#") for one in line.split()]
    return frozenset(
        chr(code) for first, _, last in ranges for code in range(int(first, 16), int(last or first, 16) + 1)
    )
