"""A cell while its drift is split."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

from tenfold.analysis.reconcile.invoiced import Line

Key: TypeAlias = tuple[str | None, str | None]
"""Model and meter as the report tells them; None for all together."""


@dataclass(slots=True)
class Part:
    """A cell while it is split.

    Args:
        key: Series.
        place: Place of its period.
        lines: Rows of the report in it that are held against the log.
        logged: Units and pUSD of the log in the period, as the calendar has it.
        told: Units and pUSD of the log as the report counts them, those without a price apart.
        aside: What its other rows come to: repeats, and what the log cannot have; pUSD.
        invoiced: All that is billed in it, pUSD.
        units: Units in the report; None where it has none.
        explained: Cause to pUSD.
        surplus: What is left to be told, in pUSD.
        extra: The same in units; None where the report has none.
    """

    key: Key
    place: int
    lines: list[Line] = field(default_factory=list[Line])
    logged: tuple[int, int] = (0, 0)
    told: tuple[int, int] = (0, 0)
    aside: int = 0
    invoiced: int = 0
    units: int | None = None
    explained: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    surplus: int = 0
    extra: int | None = None


def take(part: Part, cause: str, pusd: int | None = None) -> None:
    """Give some of what is left of a cell's drift to a cause.

    Args:
        part: The cell.
        cause: Key of ``CAUSES``.
        pusd: How much; all by default.
    """
    taken = part.surplus if pusd is None else pusd
    if taken:
        part.explained[cause] += taken
        part.surplus -= taken
