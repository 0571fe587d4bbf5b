"""Models that the report and the log call differently, such as deployments: known by equal quantities, day by day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tenfold.analysis.reconcile.invoiced import Line
from tenfold.analysis.reconcile.logged import BILLED, Book, slot_of
from tenfold.analysis.reconcile.periods import Period, place_of

# Cells that must be equal: so many, and this share of all, as (over, under).
_LEAST = 4
_SHARE = (4, 5)


def same_models(lines: Sequence[Line], book: Book, periods: tuple[Period, ...]) -> Mapping[str, tuple[str, int, int]]:
    """Find the log's names of models that the report names otherwise.

    Args:
        lines: Rows of the report.
        book: The provider's log.
        periods: Periods of the report.

    Returns:
        Model of the report to the log's name, how many cells have equal units, and of how many.
    """
    told: dict[str, dict[tuple[str | None, int], int]] = defaultdict(lambda: defaultdict(int))
    for line in lines:
        if line.model is not None and not line.is_known and line.units is not None:
            told[line.model][line.meter, periods.index(place_of((line.start, line.end), periods))] += line.units
    free = {key[0] for key in book.series if key[0]} - {line.model for line in lines}
    found: dict[str, tuple[str, int, int]] = {}
    if not told or not free:
        return found
    logged = {model: _units(book, model, periods) for model in free}
    for model, cells in told.items():
        fits: list[tuple[str, int, int]] = []
        for name, own in logged.items():
            places = {place for place in {*cells, *own} if cells.get(place) or own.get(place)}
            equal = sum(cells.get(place, 0) == own.get(place, 0) for place in places)
            if equal >= _LEAST and equal * _SHARE[1] >= len(places) * _SHARE[0]:
                fits.append((name, equal, len(places)))
        if len(fits) == 1:
            found[model] = fits[0]
    return found


def _units(book: Book, model: str, periods: tuple[Period, ...]) -> dict[tuple[str | None, int], int]:
    return {
        (key[1], place): series.between(
            slot_of(period.start), slot_of(period.end), lambda about: about.billing in BILLED
        )[0]
        for key, series in book.series.items()
        if key[0] == model
        for place, period in enumerate(periods)
    }
