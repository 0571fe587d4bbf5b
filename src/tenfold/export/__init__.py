"""Exports: FOCUS files with their checker, and the ledger's tables as CSV, Parquet and workbooks."""

from __future__ import annotations

from tenfold.export.focus import FocusExport, export_focus
from tenfold.export.focus_check import Checked, Finding
from tenfold.export.focus_check import check as check_focus
from tenfold.export.ledger_tables import export_compositions, export_table

__all__ = ["Checked", "Finding", "FocusExport", "check_focus", "export_compositions", "export_focus", "export_table"]
