"""Compositions as an Excel workbook: native numbers, totals as formulas, a sheet a breakdown, names never formulas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tenfold.display import name_of, visible
from tenfold.errors import AssumptionError
from tenfold.extras import need
from tenfold.files import in_place
from tenfold.money import to_float_usd

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

# What one sheet holds (Excel specifications and limits): rows, characters of a cell and of a sheet's name.
MOST_ROWS = 1_048_576
_LONGEST = 32_767
_SHEET_NAME = 31
# The same content gives the same bytes, so a workbook bears no time of its own.
_MADE = datetime(2000, 1, 1, tzinfo=UTC)
_HEAD = 1
_NOTES = "About"


def write(
    out: Path, tables: Sequence[tuple[tuple[str, ...], pl.DataFrame]], *, notes: Sequence[tuple[str, str]]
) -> None:
    """Write tables to a workbook.

    Args:
        out: The file.
        tables: Per breakdown its dimensions and its rows; columns ending in ``_pusd`` are money.
        notes: Labels and texts of a last sheet.

    Raises:
        AssumptionError: A table has more rows than a sheet can hold; names the way out.
        MissingExtraError: xlsxwriter is not installed.
    """
    need("xlsxwriter", what="an Excel workbook")
    import xlsxwriter
    from xlsxwriter.exceptions import FileCreateError

    for by, frame in tables:
        if len(frame) + _HEAD + 1 > MOST_ROWS:
            most, what = MOST_ROWS - _HEAD - 1, ", ".join(by) or "the total"
            raise AssumptionError(
                f"{out}: {what}: {len(frame):,} rows, and a sheet holds {most:,} with its heading and total. "
                "Group by fewer columns, or write .csv or .parquet"
            )
    with in_place(out) as part:
        try:
            with xlsxwriter.Workbook(str(part), {"constant_memory": True}) as book:
                book.set_properties({"created": _MADE.replace(tzinfo=None)})
                formats = _formats(book)
                names: set[str] = set()
                for by, frame in tables:
                    _table(book.add_worksheet(_sheet_name(by, names)), by, frame, formats)
                _text_table(book.add_worksheet(_NOTES), notes, formats)
        except FileCreateError as error:
            raise OSError(*error.args[0].args) from error  # what the system said


def _formats(book: Workbook) -> dict[str, Format]:
    wanted: dict[str, dict[str, Any]] = {
        "head": {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"},
        "usd": {"num_format": "$#,##0.00####"},
        "count": {"num_format": "#,##0"},
        "date": {"num_format": "yyyy-mm-dd"},
        "text": {"num_format": "@"},
    }
    found = {name: book.add_format(what) for name, what in wanted.items()}
    totals = {f"{name}_total": book.add_format({**wanted[name], "bold": True, "top": 1}) for name in ("usd", "count")}
    return {**found, **totals, "label_total": book.add_format({"bold": True, "top": 1})}


def _table(sheet: Worksheet, by: Sequence[str], frame: pl.DataFrame, formats: dict[str, Format]) -> None:
    sheet.freeze_panes(_HEAD, len(by))
    for place, name in enumerate(frame.columns):
        sheet.set_column(place, place, 22 if name in by else 14)
    for place, name in enumerate(frame.columns):
        sheet.write_string(0, place, _heading(name), formats["head"])
    for number, row in enumerate(frame.iter_rows(), _HEAD):
        for place, (name, value) in enumerate(zip(frame.columns, row, strict=True)):
            _cell(sheet, number, place, name, _named(name, value) if name in by else value, formats)
    last = _HEAD + len(frame)
    for place, name in enumerate(frame.columns):
        if name in by:
            sheet.write_string(last, place, "total" if place == 0 else "", formats["label_total"])
        else:
            _total(sheet, last, place, name, frame[name], formats)


def _named(name: str, value: object) -> object:
    """Name what a log says nothing of, and what reads like such a name; days stay days."""
    return name_of(name, value) if value is None or isinstance(value, str) else value


def _total(sheet: Worksheet, last: int, place: int, name: str, values: pl.Series, formats: dict[str, Format]) -> None:
    """Write a column's sum as a formula, with its value for readers that do not calculate."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    is_money = name.endswith("_pusd")
    whole = int(values.sum() or 0)
    value = to_float_usd(whole) if is_money else whole
    if last == _HEAD:
        sheet.write_number(last, place, value, formats["usd_total" if is_money else "count_total"])
        return
    cells = f"{xl_rowcol_to_cell(_HEAD, place)}:{xl_rowcol_to_cell(last - 1, place)}"
    sheet.write_formula(last, place, f"=SUM({cells})", formats["usd_total" if is_money else "count_total"], value)  # pyright: ignore[reportArgumentType] -- takes any number


def _cell(sheet: Worksheet, row: int, place: int, name: str, value: object, formats: dict[str, Format]) -> None:
    if value is None:
        sheet.write_blank(row, place, None)
    elif isinstance(value, str):
        # a string cell, whatever it begins with: never a formula, a link or a number
        sheet.write_string(row, place, visible(value)[:_LONGEST], formats["text"])
    elif isinstance(value, date):
        sheet.write_datetime(row, place, datetime(value.year, value.month, value.day), formats["date"])  # noqa: DTZ001 -- a day
    elif name.endswith("_pusd"):
        sheet.write_number(row, place, to_float_usd(int(str(value))), formats["usd"])
    elif isinstance(value, bool):
        sheet.write_boolean(row, place, value)
    else:
        sheet.write_number(row, place, float(str(value)), formats["count"])


def _text_table(sheet: Worksheet, rows: Sequence[tuple[str, str]], formats: dict[str, Format]) -> None:
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 72)
    for number, (label, text) in enumerate(rows):
        sheet.write_string(number, 0, label)
        sheet.write_string(number, 1, visible(text)[:_LONGEST], formats["text"])


def _heading(name: str) -> str:
    words = name.removesuffix("_pusd").replace("_", " ")
    return f"{words} (USD)" if name.endswith("_pusd") else words


def _sheet_name(by: Sequence[str], taken: set[str]) -> str:
    """Name a sheet by its columns, within Excel's 31 characters, no two alike."""
    name = re.sub(r"[\[\]:*?/\\']", " ", " by ".join(["cost", ", ".join(by)]) if by else "total")[:_SHEET_NAME]
    number = 1
    while name.lower() in {*taken, _NOTES.lower()}:
        number += 1
        ending = f" {number}"
        name = name[: _SHEET_NAME - len(ending)] + ending
    taken.add(name.lower())
    return name
