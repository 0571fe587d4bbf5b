"""The file of budgets: owner, month, usd. Read strictly, to exact picodollars; what cannot be read is named."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from tenfold.errors import AssumptionError, near
from tenfold.money import EXACT, PUSD_PER_USD

# The owner that stands for the whole bill.
WHOLE = "*"
_COLUMNS = ("owner", "month", "usd")
_NOTE = "note"
_MONTH = re.compile(r"(?P<year>[12]\d{3})-(?P<month>0[1-9]|1[0-2])")
# 120000, 120000.50, $120,000.50: commas only between groups of three
_USD = re.compile(r"\$? ?(?P<whole>\d{1,3}(?:,\d{3})+|\d{1,15})(?P<part>\.\d{1,12})?")


class Budget(NamedTuple):
    """One owner's budget for one month.

    Args:
        owner: Team, or ``*`` for the whole.
        month: First day of the month.
        pusd: The budget.
        line: Where it stands in the file.
    """

    owner: str
    month: date
    pusd: int
    line: int


@dataclass(frozen=True, slots=True)
class Budgets:
    """The budgets of a file.

    Args:
        file: Its name.
        rows: In the order of the file.
    """

    file: str
    rows: tuple[Budget, ...]


def read_budgets(path: str | Path) -> Budgets:
    """Read a file of budgets: CSV with the columns ``owner``, ``month``, ``usd`` (and ``note``, which is left alone).

    Args:
        path: The file. ``owner`` is a team, or ``*`` or ``total`` for the whole bill; ``month`` is such as 2026-07;
            ``usd`` an exact decimal, a dollar sign and commas between thousands allowed.

    Returns:
        The budgets.

    Raises:
        AssumptionError: A line cannot be used; names file, line, column and what to write.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise AssumptionError(f"{file}: no such file; budgets are a CSV with the columns owner, month, usd") from None
    except UnicodeDecodeError as error:
        raise AssumptionError(f"{file}: byte {error.start} is not UTF-8: save the file as CSV UTF-8") from error
    records = _records(file, text)
    header = next((cells for _, cells in records), [""])
    places = _places(file, header)
    rows: list[Budget] = []
    seen: dict[tuple[str, date], int] = {}
    for line, cells in records:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise AssumptionError(
                f"{file}, line {line}: {len(cells)} cells where the header has {len(header)}; "
                'an amount with commas needs quotes: "120,000.00"'
            )
        owner, month, usd = (cells[places[name]].strip() for name in _COLUMNS)
        row = Budget(_owner(file, line, owner), _month(file, line, month), _pusd(file, line, usd), line)
        first = seen.setdefault((row.owner, row.month), line)
        if first != line:
            raise AssumptionError(
                f"{file}, line {line}, column owner: {owner!r} has a budget for {month} in line {first} already; "
                "keep one of the two"
            )
        rows.append(row)
    if not rows:
        raise AssumptionError(f"{file}: no budget in it; write a line such as search,2026-07,1200")
    return Budgets(str(file), tuple(rows))


def _records(file: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV with the line each begins on."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise AssumptionError(f"{file}, line {line}: no CSV: {error}; close the quotes of a cell") from error
        yield line, cells
        line = reader.line_num + 1


def _places(file: Path, header: list[str]) -> dict[str, int]:
    names = [cell.strip().lower() for cell in header]
    wanted = ", ".join(_COLUMNS)
    if len(names) == 1 and any(sign in names[0] for sign in ";\t"):
        raise AssumptionError(f"{file}, line 1: separate the columns by commas: {wanted}")
    for name in names:
        if name not in (*_COLUMNS, _NOTE):
            raise AssumptionError(
                f"{file}, line 1: unknown column {name!r}; the columns are {wanted} (and note).{near(name, _COLUMNS)}"
            )
        if names.count(name) > 1:
            raise AssumptionError(f"{file}, line 1: column {name} is there twice; keep one")
    for name in _COLUMNS:
        if name not in names:
            raise AssumptionError(f"{file}, line 1: no column {name}; the first line names the columns: {wanted}")
    return {name: place for place, name in enumerate(names)}


def _owner(file: Path, line: int, text: str) -> str:
    if not text:
        raise AssumptionError(f"{file}, line {line}, column owner: empty; write a team, or * for the whole")
    return WHOLE if text.lower() == "total" else text


def _month(file: Path, line: int, text: str) -> date:
    found = _MONTH.fullmatch(text)
    if found is None:
        raise AssumptionError(f"{file}, line {line}, column month: {text!r} is no month; write it like 2026-07")
    return date(int(found["year"]), int(found["month"]), 1)


def _pusd(file: Path, line: int, text: str) -> int:
    found = _USD.fullmatch(text)
    if found is None:
        raise AssumptionError(
            f"{file}, line {line}, column usd: {text!r} is no amount; write USD like 120000.50 or $120,000.50, "
            "at least 0, with a point before the cents"
        )
    usd = Decimal(found["whole"].replace(",", "") + (found["part"] or ""))
    return int(EXACT.multiply(usd, Decimal(PUSD_PER_USD)))


def next_month(month: date) -> date:
    """Give the first day of the month after.

    Args:
        month: Any day of a month.

    Returns:
        The first day of the next one.
    """
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)
