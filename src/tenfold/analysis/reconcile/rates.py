"""What a report bills at another rate than the log's: only where the rate is one that somebody may have agreed."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tenfold.analysis.reconcile.fitting import DEAREST, Structure
from tenfold.analysis.reconcile.parts import Part, take
from tenfold.money import divided

if TYPE_CHECKING:
    from tenfold.analysis.reconcile.logged import Series
    from tenfold.analysis.reconcile.splitting import Report


def other_rate(report: Report, part: Part, series: Series, structure: Structure) -> None:
    """Tell what is another rate: the units agree, or what is more of them is billed at none of the log's rates.

    A rate of nothing, below it, or more than ``DEAREST`` times the log's is no rate: the drift stays unexplained.

    Args:
        report: The report; what is told is taken from the cell's ``surplus``.
        part: The cell.
        series: The log's own, of the same model and meter.
        structure: How the report is made of the log.
    """
    units, pusd = part.told
    if part.extra is None:
        for key, over, under in structure.rates:
            if key == part.key:
                take(part, "rates", divided(pusd * over, under) - pusd)
        if abs(part.surplus) <= report.slack(part):
            take(part, "rounding")
        return
    if report.is_valued:
        return
    billed = sum(line.pusd or 0 for line in part.lines) - part.explained["unpriced"]
    if abs(part.extra) <= max(len(part.lines), 1) * report.unit_step // 2 and units:
        if abs(part.surplus) <= report.slack(part):
            take(part, "rounding")
        elif 0 < billed <= DEAREST * pusd:
            take(part, "rates")
        return
    if not part.extra or not part.units:
        return
    low, high = _unit_rates(series, structure)
    implied = Fraction(part.surplus, part.extra)
    margin = Fraction(report.slack(part), abs(part.extra))
    if low - margin <= implied <= high + margin:
        return
    if 0 < billed <= DEAREST * high * (part.extra + units):
        take(part, "rates", part.surplus - divided(part.extra * billed, part.extra + units))


def _unit_rates(series: Series, structure: Structure) -> tuple[Fraction, Fraction]:
    """Give the lowest and the highest of the log's own rates, by class of request, in pUSD a unit."""
    found: list[Fraction] = []
    for about, sums in series.classes.items():
        if structure.wants(about) and about.state == "priced" and sums.units[-1]:
            found.append(Fraction(sums.pusd[-1], sums.units[-1]))
    return (min(found), max(found)) if found else (Fraction(0), Fraction(0))
