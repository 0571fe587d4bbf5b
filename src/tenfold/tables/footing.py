"""Columns whose rows sum to their total as shown: rounded one by one, they may miss it by units of the last place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

from tenfold.money import footed

# Rows whose sum is further off the total, in units of the last place, are not all that it is made of.
_SLACK = Fraction(1, 100)


def foot(
    cells: Sequence[object], texts: Sequence[str], unit: Fraction, write: Callable[[Fraction], str], *, is_share: bool
) -> list[str]:
    """Write a column so that its rows sum to its last one as shown (largest remainder).

    Args:
        cells: Values, the total last; what is no number has no part in it.
        texts: The same cells, each written for itself.
        unit: One of the last place that is shown.
        write: Writes an amount.
        is_share: What is below or above what can be shown, and is written with a limit, stays so.

    Returns:
        The texts, none a whole unit off its value; unchanged where the values do not sum to the last one.
    """
    *parts, total = (Fraction(cell) if isinstance(cell, (int, float, Fraction, Decimal)) else None for cell in cells)
    known = {at: part for at, part in enumerate(parts) if part is not None}
    if total is None or abs(sum(known.values()) - total) > unit * _SLACK:
        return list(texts)
    told = {at: part for at, part in known.items() if not (is_share and texts[at].startswith(("<", ">")))}
    rest = total - sum(part for at, part in known.items() if at not in told)
    made = list(texts)
    for at, count in zip(told, footed([part / unit for part in told.values()], round(rest / unit)), strict=True):
        value = count * unit
        if is_share and not value and told[at] > 0:
            value = unit / 4  # what is not nothing never looks like it
        if is_share and value == 1 > told[at]:
            value = 1 - unit / 4
        made[at] = write(value)
    return made
