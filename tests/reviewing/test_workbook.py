"""The workbook, read back from its XML: native numbers, formulas that give the figures they cache, names as text."""

import hashlib
import re
import zipfile
from datetime import date
from fractions import Fraction
from io import BytesIO
from xml.etree import ElementTree as ET

import documents
import pytest
from documents import HOSTILE, SCRIPT, USD

from tenfold.display import visible
from tenfold.reviewing.document import Document, Picture, Section, Table, Text
from tenfold.reviewing.rendering import workbook
from tenfold.tables import Column, grid

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class Book:
    """A workbook as Excel would read it: sheets by name, each a dict from a cell's place to (type, formula, value)."""

    def __init__(self, file):
        self.zip = zipfile.ZipFile(BytesIO(file))
        self.names = self.zip.namelist()
        self._strings = ["".join(part.itertext()) for part in self.xml("xl/sharedStrings.xml")]
        book = self.xml("xl/workbook.xml")
        self.defined = {one.get("name"): one.text for one in book.iter(f"{MAIN}definedName")}
        self.sheets = {}
        for at, sheet in enumerate(book.iter(f"{MAIN}sheet"), 1):
            self.sheets[sheet.get("name")] = self.xml(f"xl/worksheets/sheet{at}.xml")

    def xml(self, name):
        return ET.fromstring(self.zip.read(name))

    def cells(self, sheet):
        found = {}
        for cell in self.sheets[sheet].iter(f"{MAIN}c"):
            value, formula = cell.find(f"{MAIN}v"), cell.find(f"{MAIN}f")
            text = None if value is None else value.text
            if cell.get("t") == "s":
                text = self.unescaped(self._strings[int(text)])
            found[cell.get("r")] = (cell.get("t", "n"), None if formula is None else formula.text, text)
        return found

    @staticmethod
    def unescaped(text):
        return re.sub(r"_x([0-9A-F]{4})_", lambda code: chr(int(code[1], 16)), text)

    def links(self, sheet):
        return [one.attrib for one in self.sheets[sheet].iter(f"{MAIN}hyperlink")]


def one_table(table, **more):
    return workbook.render(Document("t", "s", (Section("k", "Sheet", (Table(table, ""),)),), **more))


@pytest.fixture(scope="module")
def file():
    return workbook.render(documents.hostile(pictures=False))


@pytest.fixture(scope="module")
def book(file):
    return Book(file)


@pytest.fixture(scope="module")
def spent(book):
    """The table of spend: cells by column letter, a list from the first row to the total."""
    cells = book.cells("Composition & allocation of <sc")
    (head,) = [int(place[1:]) for place, cell in cells.items() if cell[2] == "team"]
    return {letter: [cells[f"{letter}{head + n}"] for n in range(1, len(HOSTILE) + 2)] for letter in "ABCDEFG"}, head


class TestHostileNames:
    def test_every_name_is_whole_and_text(self, spent):
        columns, _ = spent
        assert [(kind, text) for kind, _, text in columns["A"][:-1]] == [
            ("s", visible(one) or "(empty)") for one in HOSTILE
        ]
        assert max(len(text) for _, _, text in columns["A"]) > 300

    def test_only_our_formulas(self, book):
        formulas = {formula for sheet in book.sheets for _, formula, _ in book.cells(sheet).values() if formula}
        assert formulas
        assert [
            one for one in formulas if not re.fullmatch(r"SUM\([A-Z]+\d+:[A-Z]+\d+\)|[A-Z]+\d+/[A-Z]+\$\d+", one)
        ] == []

    def test_no_link_to_outside(self, book):
        relations = [book.zip.read(name).decode() for name in book.names if name.endswith(".rels")]
        assert not [one for one in relations if "External" in one or "hyperlink" in one]
        assert all("location" in link for sheet in book.sheets for link in book.links(sheet))
        assert not [name for name in book.names if "vba" in name or "externalLink" in name]

    def test_hidden_characters_are_seen(self, book):
        assert visible(book.zip.read("xl/sharedStrings.xml").decode().replace("\u200d", "").replace("\r", "")) == (
            book.zip.read("xl/sharedStrings.xml").decode().replace("\u200d", "").replace("\r", "")
        )

    def test_what_excel_would_decode_is_not(self):
        cells = Book(one_table(grid("g", "c", [Column("a", "a")], [("_x0041_",)]))).cells("Sheet")
        assert "_x0041_" in {text for _, _, text in cells.values()}


class TestNumbers:
    def test_money_is_a_number_exact_to_the_picodollar_where_a_double_is(self, spent):
        columns, _ = spent
        made = documents.spend(HOSTILE)
        for (kind, _, text), row in zip(columns["B"][:-1], made.rows, strict=False):
            assert kind == "n"
            assert Fraction(text) * USD == row[1]

    def test_sums_are_formulas_that_give_the_total_they_cache(self, spent):
        columns, head = spent
        last = head + len(HOSTILE)
        kind, formula, cached = columns["B"][-1]
        assert (kind, formula) == ("n", f"SUM(B{head + 1}:B{last})")
        assert float(cached) == pytest.approx(sum(float(text) for _, _, text in columns["B"][:-1]), abs=1e-9)
        assert float(cached) == documents.spend(HOSTILE).rows[-1][1] / USD
        assert columns["D"][-1][1] == f"SUM(D{head + 1}:D{last})"

    def test_shares_are_formulas_over_the_total(self, spent):
        columns, head = spent
        total = head + len(HOSTILE) + 1
        for n, (_, formula, cached) in enumerate(columns["C"]):
            assert formula == f"B{head + 1 + n}/B${total}"
            assert float(cached) == pytest.approx(float(columns["B"][n][2]) / float(columns["B"][-1][2]), abs=1e-12)

    def test_a_total_that_is_no_sum_and_a_share_of_something_else_stay_values(self):
        columns = [Column("a", "a"), Column("b", "b", "pusd", sums=True), Column("c", "c", "ratio", share_of="b")]
        rows = [("x", 2 * USD, Fraction(1, 3)), ("y", None, None), ("all", 5 * USD, Fraction(1))]
        cells = Book(one_table(grid("g", "c", columns, rows, has_total=True))).cells("Sheet")
        values = {cell[2]: cell[1] for cell in cells.values()}
        # 2 of 5 is no third; 5 is not the sum of 2 and what is unknown; all is all of itself
        assert values["0.3333333333333333"] is None
        assert values["5"] is None
        assert [formula for formula in values.values() if formula] == ["B8/B$8"]

    def test_unknown_is_a_dash_and_not_nothing(self, spent):
        columns, _ = spent
        assert columns["D"][0] == ("s", None, "–")
        assert columns["E"][0] == ("s", None, "not measured")

    def test_dates_are_dates(self, spent):
        columns, _ = spent
        days = (date(2026, 7, 2) - date(1899, 12, 30)).days
        assert columns["F"][1][2] == str(days)

    def test_formats_say_what_a_number_is(self, book):
        styles = book.zip.read("xl/styles.xml").decode()
        for code in ("[$$-409]#,##0.00;-[$$-409]#,##0.00", "0.0%", "yyyy-mm-dd"):
            assert f'formatCode="{code}"' in styles


class TestSheets:
    def test_one_a_section_and_the_contents(self, book):
        assert list(book.sheets) == [
            *("Contents", "Summary", "Composition & allocation of <sc", "Levers", "Appendix", "Left out"),
        ]

    def test_names_are_what_excel_allows(self):
        titles = [
            "a" * 40,
            "a" * 41,
            "A" * 31,
            "[b]:*?/\\c",
            "'",
            "History",
            "",
            "\U0001f389" * 20,
            "Contents",
            "x\x00y",
        ]
        sections = tuple(Section(str(n), title, ()) for n, title in enumerate(titles))
        names = list(workbook.sheet_names(sections))
        assert names[3] == "b c"
        assert len({name.casefold() for name in names}) == len(titles)
        for name in names:
            assert 0 < len(name.encode("utf-16-le")) <= 62
            assert not re.search(r"[\[\]:*?/\\\x00-\x1f]|^'|'$", name)
        assert not {"history", "contents"} & {name.casefold() for name in names}
        assert len(Book(workbook.render(Document("t", "s", sections))).sheets) == len(titles) + 1

    def test_numbers_link_to_notes_and_notes_back(self, book):
        places = {
            link["location"] for sheet in book.sheets for link in book.links(sheet) if "!" not in link["location"]
        }
        assert {"how_1", "how_2", "use_1_1", "use_1_2"} <= places <= set(book.defined)
        sheet, place = re.fullmatch(r"'(.*)'!\$A\$(\d+)", book.defined["how_1"]).groups()
        assert book.cells(sheet)[f"A{place}"][2] == f"Spend of {SCRIPT}"
        assert {link["tooltip"] for link in book.links("Summary") if "tooltip" in link} >= {
            "By day in the report's zone."
        }

    def test_header_of_a_single_table_is_frozen(self):
        made = Book(one_table(grid("g", "c", [Column("a", "alpha")], [("x",)])))
        pane = next(made.sheets["Sheet"].iter(f"{MAIN}pane"))
        head = next(place for place, cell in made.cells("Sheet").items() if cell[2] == "alpha")
        assert pane.get("ySplit") == head[1:]

    def test_text_that_is_too_long_for_a_cell_says_so(self):
        section = Section("k", "Sheet", (Text("sql", "x" * 40_000),))
        cells = Book(workbook.render(Document("t", "s", (section,)))).cells("Sheet")
        assert any("(8000 more)" in (text or "") for _, _, text in cells.values())


def test_same_bytes_again(file, book):
    assert b"2000-01-01T00:00:00Z</dcterms:created>" in book.zip.read("docProps/core.xml")
    assert hashlib.sha256(workbook.render(documents.hostile(pictures=False))).digest() == hashlib.sha256(file).digest()


def test_charts_are_pictures_with_a_text_alternative():
    picture = documents.document().sections[1].blocks[0]
    assert isinstance(picture, Picture)
    made = Book(workbook.render(Document("t", "s", (Section("k", "Sheet", (picture,)),))))
    assert made.zip.read("xl/media/image1.png").startswith(b"\x89PNG")
    drawing = made.zip.read("xl/drawings/drawing1.xml").decode()
    assert 'descr="Cost by team, cut by meter, search. A bar for each team' in drawing
    # as wide on the sheet as on the page: 9525 EMU a pixel
    width = int(re.search(r'<a:ext cx="(\d+)"', drawing)[1]) / 9525
    assert 640 < width < 900
