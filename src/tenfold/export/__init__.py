"""Exports: FOCUS files with their checker, the ledger's tables, published day files; and forgetting."""

from __future__ import annotations

from tenfold.export.day_files import Published, publish
from tenfold.export.focus import FocusExport, export_focus
from tenfold.export.focus_check import Checked, Finding
from tenfold.export.focus_check import check as check_focus
from tenfold.export.forgetting import Forgotten, forget
from tenfold.export.ledger_tables import export_compositions, export_table

__all__ = [
    "Checked",
    "Finding",
    "FocusExport",
    "Forgotten",
    "Published",
    "check_focus",
    "export_compositions",
    "export_focus",
    "export_table",
    "forget",
    "publish",
]
