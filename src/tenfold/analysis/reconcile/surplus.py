"""What a report has beyond the log where requests have no usage: theirs as far as so many may be so large."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tenfold.analysis.reconcile.fitting import AGREES, Cell, Structure
from tenfold.analysis.reconcile.parts import Key, Part, take
from tenfold.display import small_dollars
from tenfold.money import shown

if TYPE_CHECKING:
    from tenfold.analysis.reconcile.splitting import Report


def lost_usage(report: Report, structure: Structure) -> list[str]:
    """Give surpluses to requests without usage.

    Each cell's surplus is bounded by what its requests without usage may come to, and all of them together once more:
    chance evens out, so a surplus that is larger everywhere is something else.

    Args:
        report: The report; what is given is taken from its cells' ``surplus``.
        structure: How it is made of the log.

    Returns:
        What cannot be told apart, in words.
    """
    taken: list[tuple[Part, int]] = []
    expected = variance = 0.0
    for part in report.parts.values():
        surplus = part.extra if part.key in report.by_units else part.surplus
        if part.surplus <= 0 or surplus is None or surplus <= 0 or not _count(report, part, structure):
            continue
        if part.key not in report.book.series:
            # None of the model's requests has usage: nothing to compare with, and nothing else it could be.
            take(part, "usage_missing")
            continue
        told = report.fitter.told(Cell(part.key, part.place, 0, 0), structure)
        spread, worth = told.spread - told.tight, part.surplus / surplus
        most = Fraction(told.more + max(AGREES * spread, _largest(report, part.key)))
        taken.append((part, round(part.surplus * min(Fraction(1), most / surplus))))
        # Meters of a model are of the same requests, so their chances do not even out among them.
        expected, variance = expected + told.more * worth, variance + (spread * worth) ** 2 * len(report.known)
    doubts: list[str] = []
    whole = sum(pusd for _, pusd in taken)
    share = Fraction(1)
    if whole > expected + AGREES * math.sqrt(variance):
        share = Fraction(expected) / whole
        doubts.append(
            f"requests without token counts explain {shown(round(expected))} if they are of usual size; on their days "
            f"the report bills {shown(whole)} more than the log, and how much of the rest is theirs cannot be told"
        )
    for part, pusd in taken:
        take(part, "usage_missing", round(pusd * share))
    left = [part for part in report.parts.values() if part.surplus > report.slack(part) and (part.extra or 0) > 0]
    if left:
        more = small_dollars(sum(part.surplus for part in left))
        doubts.append(
            f"{more} of what is unexplained is billed at the log's own rates: requests that the log does not have, or "
            "whose token counts it lost"
        )
    return doubts


def _count(report: Report, part: Part, structure: Structure) -> int:
    span = structure.span(part.place, report.periods[part.place])
    return sum(count for _, count in report.book.without_usage(part.key[0], span, structure.wants))


def _largest(report: Report, key: Key) -> float:
    """Give the largest request of a series, in what it is held against."""
    sizes = report.book.series[key].sizes.values()
    of_units = key in report.by_units
    return max((one.units[2] if of_units else one.pusd[2] for one in sizes), default=0.0)
