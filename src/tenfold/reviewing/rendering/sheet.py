"""One sheet of a workbook: a section's blocks from top to bottom."""

from __future__ import annotations

import struct
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any

from tenfold import charts
from tenfold.display import shortened, visible
from tenfold.money import PUSD_PER_USD
from tenfold.reviewing.document import (
    Block,
    Card,
    Heading,
    Lines,
    MadeList,
    Picture,
    Prose,
    Section,
    Table,
    Text,
    Tile,
    Tiles,
)
from tenfold.reviewing.rendering.notes import Notes
from tenfold.tables import EMPTY, NAMELESS, Cell, Column, Grid, Kind

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

# Excel takes no more in a cell, and says nothing of what it leaves out.
_MOST_CHARACTERS = 32_000
_MOST_OF_A_TIP = 250
_WIDEST, _NARROWEST, _FIRST = 44, 10, 24
# Columns that prose goes across, and points and pixels of a row.
_ACROSS = 7
_POINTS, _PIXELS = 15, 20
_FROZEN_TO = 8
_FORMATS: dict[Kind, str] = {"ratio": "0{}%", "count": "#,##0{}", "number": "#,##0{}", "date": "yyyy-mm-dd"}
_USD = "[$$-409]#,##0{0};-[$$-409]#,##0{0}"
_RULE = {"top": 1}


class Looks:
    """The formats of a workbook, each made once.

    Args:
        book: The workbook.
    """

    def __init__(self, book: Workbook) -> None:
        self._book = book
        self._made: dict[str, Format] = {}
        self.title = self.of(bold=True, font_size=16)
        self.heading = self.of(bold=True, font_size=12)
        self.caption = self.of(bold=True)
        self.prose = self.of(text_wrap=True, valign="top")
        self.soft = self.of(font_color="#59626e", text_wrap=True, valign="top")
        self.link = self.of(font_color="#00559e", underline=1, valign="top")
        self.code = self.of(font_name="Consolas", font_size=9)

    def of(self, **properties: str | float) -> Format:
        """Give a format.

        Args:
            properties: What it is to be.

        Returns:
            The format, the same object for the same properties.
        """
        key = repr(sorted(properties.items()))
        if key not in self._made:
            self._made[key] = self._book.add_format(dict(properties))
        return self._made[key]


class Sheet:
    """A sheet that is written from top to bottom.

    Args:
        book: The workbook.
        name: The sheet's name.
        section: What it shows.
        notes: Links to how numbers were made.
        looks: Formats.
    """

    def __init__(self, book: Workbook, name: str, section: Section, notes: Notes, looks: Looks) -> None:
        self._book, self._section, self._notes, self._looks = book, section, notes, looks
        self._place = "'" + name.replace("'", "''") + "'"
        self._sheet: Worksheet = book.add_worksheet(name)
        self._row = 0
        self._grids = [block.grid for block in section.blocks if isinstance(block, Table)]
        self._widths = _widths(section, self._grids)
        self._keys = {key: at for at, key in enumerate(notes.made, 1)}

    def write(self, title: str) -> None:
        """Write the section.

        Args:
            title: Title of the review.
        """
        sheet = self._sheet
        sheet.hide_gridlines(2)
        sheet.set_landscape()
        sheet.set_paper(9)
        sheet.fit_to_pages(1, 0)
        sheet.set_footer("&R&P / &N")
        for place, width in enumerate(self._widths):
            sheet.set_column(place, place, width)
        sheet.write_string(0, 0, visible(self._section.title), self._looks.title)
        sheet.set_row(0, 24)
        sheet.write_url(1, 0, "internal:Contents!A1", self._looks.link, "Contents")
        sheet.write_string(1, 1, visible(title), self._looks.of(font_color="#59626e"))
        sheet.freeze_panes(2, 0)
        self._row = 3
        for block in self._section.blocks:
            self._block(block)
            self._row += 1

    def _block(self, block: Block) -> None:
        match block:
            case Picture():
                self._picture(block)
                self._prose(block.caption or block.text, self._looks.soft)
            case Table(grid):
                self._table(grid)
            case Tiles(items):
                for tile in items:
                    self._tile(tile)
            case Card(title, pairs):
                self._text(title, self._looks.caption)
                for name, lines in pairs:
                    self._pair(name, "\n".join(lines))
            case MadeList():
                self._made()
            case _:
                self._words(block)
        self._how(getattr(block, "made", ""))

    def _words(self, block: Heading | Prose | Lines | Text) -> None:
        match block:
            case Heading(text):
                self._text(text, self._looks.heading)
            case Prose(text):
                self._prose(text)
            case Lines(items):
                for item in items:
                    self._prose(f"• {item}")
            case Text(title, text):
                self._text(title, self._looks.caption)
                for line in text.splitlines():
                    self._text(line, self._looks.code)

    def _tile(self, tile: Tile) -> None:
        self._text(tile.label, self._looks.caption)
        self._put(1, tile.value, self._looks.of(bold=True, align="right"))
        self._put(2, tile.note, self._looks.of(font_color="#59626e"))
        self._how(tile.made, into=self._row - 1, place=len(self._widths) - 1)

    def _text(self, text: str, look: Format) -> None:
        """Write a line of its own."""
        self._row += 1
        self._put(0, text, look)

    def _put(self, place: int, text: str, look: Format) -> None:
        """Write text into the row that was begun last."""
        self._sheet.write_string(self._row - 1, place, shortened(visible(text), _MOST_CHARACTERS), look)

    def _prose(self, text: str, look: Format | None = None) -> None:
        """Write a paragraph across the columns, as high as it needs."""
        self._across(0, text, look or self._looks.prose)
        self._row += 1

    def _pair(self, name: str, text: str) -> None:
        self._across(1, text, self._looks.prose)
        self._row += 1
        self._put(0, name, self._looks.soft)

    def _across(self, first: int, text: str, look: Format) -> None:
        text = shortened(visible(text.replace("`", "")), _MOST_CHARACTERS)
        last = len(self._widths) - 1
        lines = sum(max(1, ceil(1.15 * len(line) / sum(self._widths[first:]))) for line in text.split("\n"))
        self._sheet.set_row(self._row, min(400, _POINTS * lines + 1))
        self._sheet.merge_range(self._row, first, self._row, last, "", look)
        self._sheet.write_string(self._row, first, text, look)

    def _how(self, key: str, *, into: int | None = None, place: int = 0) -> None:
        """Link to the note on how a number was made, its words in the tip; name the place once, to come back to."""
        if key not in self._notes.made:
            return
        note = self._notes.made[key]
        row = self._row if into is None else into
        words = f"how: {shortened(visible(note.title), 80)}"
        tip = shortened(visible(note.how), _MOST_OF_A_TIP - 30)[:_MOST_OF_A_TIP]
        self._sheet.write_url(row, place, f"internal:how_{self._keys[key]}", self._looks.link, words, tip)
        if used := self._notes.first(self._section, key):
            self._book.define_name(self._use(key, used), f"={self._place}!${_letters(place)}${row + 1}")
        if into is None:
            self._row += 1

    def _use(self, key: str, used: str) -> str:
        places = [place for place, _ in self._notes.uses(key)]
        return f"use_{self._keys[key]}_{places.index(used) + 1}"

    def _made(self) -> None:
        """List the notes, with the ways back to the numbers."""
        for key, note in self._notes.made.items():
            at = self._keys[key]
            self._book.define_name(f"how_{at}", f"={self._place}!$A${self._row + 1}")
            step = f" SQL step: {note.step}." if note.step else ""
            self._pair(note.title, f"{note.how}{step}")
            for number, (_, title) in enumerate(self._notes.uses(key), 1):
                words = f"used in: {visible(title)}"
                self._sheet.write_url(self._row, 1, f"internal:use_{at}_{number}", self._looks.link, words)
                self._row += 1

    def _picture(self, block: Picture) -> None:
        image = charts.to_png(block.chart)
        height, scale = _size(image)
        options = {
            "image_data": BytesIO(image),
            "description": visible(f"{block.title}. {block.text}"),
            "x_scale": scale,
            "y_scale": scale,
            "object_position": 2,
        }
        self._sheet.insert_image(self._row, 0, f"{block.name}.png", options)
        self._row += ceil(height / _PIXELS) + 1

    def _table(self, grid: Grid) -> None:
        self._text(grid.caption, self._looks.caption)
        head = self._row
        for place, column in enumerate(grid.columns):
            side = "left" if place == 0 or column.is_words else "right"
            look = self._looks.of(bold=True, text_wrap=True, align=side, valign="bottom", bottom=1, bg_color="#f4f6f8")
            self._sheet.write_string(head, place, visible(column.label), look)
        if len(self._grids) == 1 and head < _FROZEN_TO:
            self._sheet.freeze_panes(head + 1, 0)
            self._sheet.repeat_rows(head)
        for at, row in enumerate(grid.rows):
            is_total = grid.has_total and at == len(grid.rows) - 1
            for place, column in enumerate(grid.columns):
                self._cell(grid, head + 1, at, place, row[place], column, is_total=is_total)
        self._row = head + 1 + len(grid.rows)
        if grid.note:
            self._prose(grid.note, self._looks.soft)

    def _cell(self, grid: Grid, top: int, at: int, place: int, cell: Cell, column: Column, *, is_total: bool) -> None:
        """Write a cell: a formula where the rows give its figure, else its value."""
        row, decimals = top + at, grid.decimals(place)
        base: dict[str, str | float] = {"valign": "top", **({"bold": True, **_RULE} if is_total else {})}
        if cell is None or isinstance(cell, str):
            text = EMPTY if cell is None else cell or ("" if place else NAMELESS)
            is_words = place == 0 or column.is_words
            look = self._looks.of(**base, align="left" if is_words else "right", text_wrap=is_words)
            self._sheet.write_string(row, place, shortened(visible(text), _MOST_CHARACTERS), look)
            return
        look = self._looks.of(**base, num_format=_number_format(column.kind, decimals, cell))
        if isinstance(cell, date):
            self._sheet.write_datetime(row, place, datetime.combine(cell, time()), look)
            return
        # xlsxwriter's own word for the cached result of a formula is an integer
        value: Any = _double(column.kind, cell)
        formula = _sum_of(grid, place, top) if is_total else ""
        formula = formula or _share_of(grid, at, place, top)
        if formula:
            self._sheet.write_formula(row, place, formula, look, value)
        else:
            self._sheet.write_number(row, place, value, look)


def _sum_of(grid: Grid, place: int, top: int) -> str:
    """Write the sum of the rows above a total, where it is that total."""
    column, (*above, total) = grid.columns[place], [row[place] for row in grid.rows]
    if not column.sums or not above or sum(_exact(cell) for cell in above) != _exact(total):
        return ""
    letters = _letters(place)
    return f"=SUM({letters}{top + 1}:{letters}{top + len(above)})"


def _share_of(grid: Grid, at: int, place: int, top: int) -> str:
    """Write a share of a total, where the column that it is a share of gives it."""
    names = [column.name for column in grid.columns]
    whole_of = grid.columns[place].share_of
    if not grid.has_total or whole_of not in names:
        return ""
    whole_place = names.index(whole_of)
    part, whole, share = grid.rows[at][whole_place], grid.rows[-1][whole_place], grid.rows[at][place]
    if part is None or not _exact(whole) or _exact(part) / _exact(whole) != _exact(share):
        return ""
    letters = _letters(whole_place)
    return f"={letters}{top + at + 1}/{letters}${top + len(grid.rows)}"


def _exact(cell: Cell) -> Fraction:
    """Count what is not a number as Excel does: as nothing."""
    return Fraction(0) if cell is None or isinstance(cell, str | date) else Fraction(cell)


def _double(kind: Kind, cell: float | Fraction | Decimal) -> float:
    return float(Fraction(cell) / PUSD_PER_USD) if kind == "pusd" else float(cell)


def _number_format(kind: Kind, decimals: int, cell: Cell) -> str:
    if isinstance(cell, date):
        return _FORMATS["date"]
    if kind == "count" and _exact(cell).denominator == 1:
        decimals = 0
    digits = f".{'0' * decimals}" if decimals else ""
    return (_USD if kind == "pusd" else _FORMATS.get(kind, _FORMATS["number"])).format(digits)


def _size(image: bytes) -> tuple[int, float]:
    """Read a PNG's height, halved since it is drawn twice as large, and the scale that Excel needs for it."""
    (height,) = struct.unpack(">I", image[20:24])
    found = image.find(b"pHYs")
    dots = struct.unpack(">I", image[found + 4 : found + 8])[0] * 0.0254 if found > 0 else 96
    return height // 2, dots / 96 / 2


def _widths(section: Section, grids: list[Grid]) -> list[int]:
    """Give columns the width that their tables need, and enough of them for prose."""
    columns = max([_ACROSS, *(len(grid.columns) for grid in grids)])
    widths = [_FIRST, *[_NARROWEST] * (columns - 1)]
    for grid in grids:
        texts = grid.texts()
        for place, column in enumerate(grid.columns):
            longest = max([len(column.label) * 0.7, *(len(row[place]) for row in texts)])
            widths[place] = max(widths[place], min(_WIDEST, ceil(longest * 1.1) + 2))
    if any(isinstance(block, Tiles) for block in section.blocks):
        widths[1] = max(widths[1], 16)
    return widths


def _letters(place: int) -> str:
    """Name a column as Excel does."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
