"""Compositions and the ledger itself as files: exact in CSV and Parquet, native numbers and formulas in a workbook."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import datetime
from decimal import Decimal
from xml.etree import ElementTree as ET

import polars as pl
import pytest
import small_logs
from focus_rows import HOSTILE, rows_of
from quick import few

from tenfold.display import spreadsheet_safe, spreadsheet_text
from tenfold.errors import AssumptionError, ColumnError
from tenfold.export import export_compositions, export_table, workbook
from tenfold.logs import load

ROWS = [
    small_logs.row(team="search", ts=datetime(2026, 6, 1, 8)),
    small_logs.row(team="=cmd|'/c calc'!A1", cache_read_tokens=400, ts=datetime(2026, 6, 2)),
    small_logs.row(team="search", model="nix"),
    small_logs.row(team="none", model="nix"),
]


@pytest.fixture(scope="module")
def ledger():
    return small_logs.ledger(ROWS)


def test_a_composition_as_csv_is_exact_and_no_cost_is_no_zero(ledger, tmp_path):
    assert export_table(ledger, tmp_path / "t.csv", by=["team"]) == 3
    rows = {row["team"]: row for row in rows_of(tmp_path / "t.csv")}
    assert rows["search"]["cost_usd"] == "0.003"  # 1,000 x 2 + 100 x 10 per million
    # 600 x 2 + 400 x 0.2 + 100 x 10
    assert rows["'=cmd|'/c calc'!A1"]["cost_usd"] == "0.00228"
    assert (rows["none"]["cost_usd"], rows["none"]["requests"], rows["none"]["unpriced_requests"]) == ("", "1", "1")
    total = sum(Decimal(row["cost_usd"] or 0) for row in rows.values())
    assert total == Decimal(ledger.total_pusd).scaleb(-12)


def test_parquet_holds_decimals_and_the_order_of_reading(ledger, tmp_path):
    export_table(ledger, tmp_path / "t.parquet", by=["day", "model"])
    frame = pl.read_parquet(tmp_path / "t.parquet")
    assert frame.schema["cost_usd"] == pl.Decimal(38, 12)
    assert frame["day"].to_list() == sorted(frame["day"].to_list())
    assert frame["cost_usd"].sum() == Decimal(ledger.total_pusd).scaleb(-12)


@pytest.mark.parametrize("ending", few(1, ["parquet", "csv"]))
def test_the_ledger_itself_has_a_row_a_request_and_loads_again(ledger, tmp_path, ending):
    files = [tmp_path / f"{n}.{ending}" for n in range(2)]
    assert [export_table(ledger, file) for file in files] == [4, 4]
    assert files[0].read_bytes() == files[1].read_bytes()
    frame = pl.read_parquet(files[0]) if ending == "parquet" else pl.read_csv(files[0])
    assert frame["cost_pusd"].cast(pl.Int64).sum() == ledger.total_pusd
    assert frame.filter(pl.col("price_status") != "priced")["cost_pusd"].null_count() == 2
    assert not {"dedup_key", "id_hash", "load_id", "price_key"} & set(frame.columns)
    if ending == "parquet":
        again = load(files[0])
        assert again.requests["input_tokens"].sum() == 4_000


def sheets(file):
    """Read a workbook with the standard library: cells by sheet, formulas with their value."""
    space = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    with zipfile.ZipFile(file) as parts:
        strings = [
            "".join(one.itertext())
            for one in (
                ET.parse(io.BytesIO(parts.read("xl/sharedStrings.xml"))).getroot()
                if "xl/sharedStrings.xml" in parts.namelist()
                else []
            )
        ]
        book = ET.parse(io.BytesIO(parts.read("xl/workbook.xml")))
        names = [sheet.attrib["name"] for sheet in book.iterfind(".//m:sheet", space)]
        found = {}
        for number, name in enumerate(names, 1):
            tree = ET.parse(io.BytesIO(parts.read(f"xl/worksheets/sheet{number}.xml")))
            cells = {}
            for cell in tree.iterfind(".//m:c", space):
                value = cell.findtext("m:v", None, space)
                formula = cell.findtext("m:f", None, space)
                kind = cell.attrib.get("t", "n")
                if kind == "s":
                    value = strings[int(value)]
                elif kind == "inlineStr":
                    value = "".join(cell.find("m:is", space).itertext())
                cells[cell.attrib["r"]] = (kind, value, formula)
            found[name] = cells
        assert not [part for part in parts.namelist() if "externalLink" in part]
        links = [part for part in parts.namelist() if part.startswith("xl/worksheets/_rels")]
    assert links == []
    return found


def test_a_workbook_has_native_numbers_and_totals_that_are_formulas(ledger, tmp_path):
    out = tmp_path / "t.xlsx"
    export_compositions(ledger, out, [["team"], ["day", "model"], []])
    found = sheets(out)
    assert list(found) == ["cost by team", "cost by day, model", "total", "About"]
    cells = found["cost by team"]
    assert cells["A1"][1] == "team"
    assert cells["D1"][1] == "cost (USD)"
    assert (cells["A2"][:2], cells["D2"][:2]) == (
        ("s", "search") if cells["A2"][0] == "s" else ("inlineStr", "search"),
        ("n", "0.003"),
    )
    assert cells["D5"] == ("n", "0.00528", "SUM(D2:D4)")
    assert not [cell for cell, (_, _, formula) in cells.items() if formula and not formula.startswith("SUM(")]
    assert "D4" not in cells or cells["D4"][1] is None  # nothing priced: no number at all
    assert found["About"]["B1"][1] == ledger.book.version
    first = out.read_bytes()
    export_compositions(ledger, out, [["team"], ["day", "model"], []])
    assert out.read_bytes() == first


@pytest.mark.full
def test_names_in_a_workbook_are_texts_whatever_they_are(tmp_path):
    names = [name for name in HOSTILE if name] + ["{=1}", "http://example.com", "1e5", "x" * 40_000]
    ledger = small_logs.ledger([small_logs.row(team=name) for name in names])
    export_compositions(ledger, tmp_path / "t.xlsx", [["team"]])
    cells = sheets(tmp_path / "t.xlsx")["cost by team"]
    column = [cells[f"A{n}"] for n in range(2, 2 + len(names))]
    assert {kind for kind, _, _ in column} <= {"s", "inlineStr"}
    assert {formula for _, _, formula in column} == {None}
    shown = {value for _, value, _ in column}
    assert {'=HYPERLINK("http://x","y")', "+1+1", "http://example.com", "1e5", "⟨U+202E⟩evil"} <= shown
    assert max(len(value) for value in shown) == 32_767


def test_more_rows_than_a_sheet_holds_is_an_error_with_a_way_out(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "MOST_ROWS", 4)
    with pytest.raises(AssumptionError, match=r"3 rows, and a sheet holds 2 .* write .csv or .parquet"):
        export_compositions(ledger, tmp_path / "t.xlsx", [["team"]])
    assert list(tmp_path.iterdir()) == []
    export_compositions(ledger, tmp_path / "t.xlsx", [["feature"]])


def test_what_cannot_be_written_is_said(ledger, tmp_path):
    with pytest.raises(AssumptionError, match="one table a file"):
        export_compositions(ledger, tmp_path / "t.csv", [["team"], ["model"]])
    with pytest.raises(AssumptionError, match="a workbook holds compositions"):
        export_table(ledger, tmp_path / "t.xlsx")
    with pytest.raises(ColumnError, match="Did you mean"):
        export_table(ledger, tmp_path / "t.csv", by=["taem"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", [*HOSTILE, "", "''=", "a=b", "＋1", "-", "{=1}"])
def test_a_text_made_harmless_comes_back(text):
    safe = spreadsheet_safe(text)
    assert spreadsheet_text(safe) == text
    assert not re.match(r"[=+\-@\t\r\n＝＋－＠]", safe)
    assert safe in {text, f"'{text}"}
