"""Cells that a report says something of in another place: in a row left out, or under a misspelt model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.analysis.reconcile.names import one_edit

if TYPE_CHECKING:
    from tenfold.analysis.reconcile.invoiced import LeftOut
    from tenfold.analysis.reconcile.parts import Part
    from tenfold.analysis.reconcile.splitting import Report


def left_out_of(report: Report, part: Part) -> list[LeftOut]:
    """Find the rows that a cell would have if they were in dollars.

    Args:
        report: The report.
        part: The cell.

    Returns:
        The rows.
    """
    period, (model, meter) = report.periods[part.place], part.key
    return [
        one
        for one in report.left_out
        if period.start <= one.start + (one.end - one.start) / 2 < period.end
        and (one.model is None or model in (None, one.model))
        and (one.meter is None or meter in (None, one.meter))
    ]


def is_elsewhere(report: Report, part: Part) -> bool:
    """Tell whether what a cell lacks may be in a row left out, or under a model one letter off its own.

    Args:
        report: The report.
        part: The cell.

    Returns:
        Whether its silence says nothing about how the report is made.
    """
    if left_out_of(report, part):
        return True
    model = part.key[0]
    if part.lines or model is None:
        return False
    return any(one_edit(other, [model]) for other in report.unknown.get(part.place, ()))
