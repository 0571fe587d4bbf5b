"""A review as an Excel workbook: a sheet a section, numbers as numbers, sums and shares as formulas, names as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from io import BytesIO
from typing import TYPE_CHECKING

from tenfold.display import visible
from tenfold.extras import need
from tenfold.reviewing.document import Document, Section
from tenfold.reviewing.rendering.notes import Notes, prepared
from tenfold.reviewing.rendering.sheet import Looks, Sheet

if TYPE_CHECKING:
    from xlsxwriter import Workbook

# A workbook names the time it was made; this one is of its content alone.
_MADE = datetime(2000, 1, 1)  # noqa: DTZ001 - Excel's times have no zone
_OPTIONS = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_numbers": False,
    "strings_to_urls": False,
}
_NOT_IN_A_NAME = re.compile(r"[\[\]:*?/\\]")
_LONGEST_NAME = 31
_CONTENTS = "Contents"
_CELLS = (
    "Amounts are USD. A cell is a double of about 15 digits: amounts below $1,000 are exact to the picodollar, larger "
    "ones are not; `tenfold export` writes exact decimals. Totals and shares are formulas where the rows give their "
    "figure. Names from the log are text; characters that hide are written as their code, such as ⟨U+202E⟩."
)


def render(document: Document) -> bytes:
    """Write the review as a workbook.

    Args:
        document: The review.

    Returns:
        An .xlsx file without macros and without links to outside, the same bytes for the same review.

    Raises:
        MissingExtraError: The ``report`` extra is not installed.
    """
    need("xlsxwriter", "altair", "vl_convert", what="a workbook")
    from xlsxwriter import Workbook

    document = prepared(document)
    notes = Notes(document)
    file = BytesIO()
    book = Workbook(file, _OPTIONS)
    book.set_properties({"title": visible(document.title), "created": _MADE})
    book.set_size(2400, 1600)
    looks = Looks(book)
    names = dict(zip((one.key for one in document.sections), sheet_names(document.sections), strict=True))
    _contents(book, document, names, looks)
    for section in document.sections:
        sheet = Sheet(book, names[section.key], section, notes, looks)
        sheet.write(document.title)
    book.close()
    return file.getvalue()


def sheet_names(sections: tuple[Section, ...]) -> Iterator[str]:
    """Name sheets as Excel allows: 31 characters, no brackets, colons, stars, question marks or slashes, no two alike.

    Args:
        sections: The sections.

    Yields:
        A name for each.
    """
    taken = {_CONTENTS.casefold(), "history"}
    for section in sections:
        plain = " ".join(_NOT_IN_A_NAME.sub(" ", visible(section.title)).split())
        suffixes = ("", *(f" {at}" for at in range(2, len(sections) + 3)))
        names = (_cut(plain, _LONGEST_NAME - len(suffix)).strip("' ") + suffix for suffix in suffixes)
        name = next(one for one in names if one and one.casefold() not in taken)
        taken.add(name.casefold())
        yield name


def _cut(text: str, longest: int) -> str:
    """Cut a text to so many UTF-16 units, which is what Excel counts."""
    return text.encode("utf-16-le")[: 2 * longest].decode("utf-16-le", errors="ignore")


def _contents(book: Workbook, document: Document, names: dict[str, str], looks: Looks) -> None:
    sheet = book.add_worksheet(_CONTENTS)
    sheet.hide_gridlines(2)
    sheet.set_column(0, 0, 100)
    sheet.write_string(0, 0, visible(document.title), looks.title)
    sheet.write_string(1, 0, visible(document.subtitle), looks.prose)
    row = 3
    for section in document.sections:
        place = names[section.key].replace("'", "''")
        sheet.write_url(row, 0, f"internal:'{place}'!A1", looks.link, visible(section.title))
        row += 1
    sheet.write_string(row + 1, 0, _CELLS, looks.prose)
    sheet.set_row(row + 1, 62)
