"""The review's page as a reader sees it: tables, tiles and text, read back as numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br", "hr", "input", "col", "path", "line", "rect", "wbr", "circle", "source"}


class Page(HTMLParser):
    """Tables by (section, caption), tiles, and the text of each section."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.section = ""
        self.text: dict[str, str] = {}
        self.tables: dict[tuple[str, str], list[list[str]]] = {}
        self._table: list[list[str]] | None = None
        self._cell: list[str] | None = None
        self._caption: list[str] | None = None
        self._title = ""
        self._silent = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style", "svg"):
            self._silent += 1
        elif tag == "section":
            self.section = dict(attrs).get("id") or self.section
        elif tag == "table":
            self._table, self._title = [], ""
        elif tag == "caption":
            self._caption = []
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in ("td", "th") and self._table:
            self._cell = []
        if tag in ("p", "li", "div", "dd", "dt", "h2", "h3"):
            self.text[self.section] = self.text.get(self.section, "") + "\n"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "svg"):
            self._silent -= 1
        elif tag == "caption" and self._caption is not None:
            self._title, self._caption = "".join(self._caption).strip(), None
        elif tag in ("td", "th") and self._cell is not None and self._table:
            self._table[-1].append("".join(self._cell).strip())
            self._cell = None
        elif tag == "table" and self._table is not None:
            self.tables[self.section, self._title] = [row for row in self._table if row]
            self._table = None

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        if self._caption is not None:
            self._caption.append(data)
        elif self._cell is not None:
            self._cell.append(data)
        self.text[self.section] = self.text.get(self.section, "") + data

    def table(self, section: str, caption: str) -> dict[str, dict[str, str]]:
        """The table whose caption begins so: first cell to the others by their heading."""
        found = next(t for (where, title), t in self.tables.items() if where == section and title.startswith(caption))
        head, *rows = found
        return {row[0]: dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)}


NUMBER = re.compile(r"([+-]?)\$?(-?[\d,]+(?:\.\d+)?)(\s*%?)")


def says(shown: str, exact: Fraction | int, *, places: int = 0, slack: int = 0) -> bool:
    """Whether what is shown is the exact number rounded to as many places as are shown.

    `places` moves the point first (12 for pUSD); `slack` allows units of the last place, where rows must foot.
    """
    shown = shown.strip().splitlines()[0]
    found = NUMBER.search(shown.replace("\N{MINUS SIGN}", "-"))
    assert found is not None, shown
    sign, digits, percent = found.groups()
    value = Fraction(Decimal(digits.replace(",", ""))) * (-1 if sign == "-" else 1)
    real = Fraction(exact) / 10**places * (100 if percent.strip() else 1)
    unit = Fraction(1, 10 ** len(digits.partition(".")[2]))
    if "<" in shown:
        return abs(real) < value or real == 0
    if ">" in shown:
        return real > value
    return abs(value - real) <= unit / 2 + slack * unit
