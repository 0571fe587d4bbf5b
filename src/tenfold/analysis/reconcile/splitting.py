"""One report held against the log: every cell's drift split into causes, in whole pUSD that sum to it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property

from tenfold.analysis.reconcile.aliases import same_models
from tenfold.analysis.reconcile.elsewhere import is_elsewhere, left_out_of
from tenfold.analysis.reconcile.fitting import Cell, Fit, Fitter, Structure
from tenfold.analysis.reconcile.invoiced import LeftOut, Line
from tenfold.analysis.reconcile.logged import BILLED, Book, Class, Logged, Series, slot_of
from tenfold.analysis.reconcile.names import told_in
from tenfold.analysis.reconcile.owners import absent_owners, strangers_of
from tenfold.analysis.reconcile.parts import Key, Part, take
from tenfold.analysis.reconcile.periods import Period, periods_of, place_of
from tenfold.analysis.reconcile.rates import other_rate
from tenfold.analysis.reconcile.result import Compared
from tenfold.analysis.reconcile.surplus import lost_usage
from tenfold.money import divided

_CAUSE_OF_KIND = {
    "retry": "retries",
    "failed": "failed_calls",
    "repeat": "duplicates",
    "not_billed": "failed_calls",
    "gateway": "gateway_hits",
}
# The coarsest that amounts and quantities are taken to be rounded to: a cent, a thousand.
_COARSEST_PUSD = 10**10
_COARSEST_UNITS = 1000


def quantum(values: Iterable[int], coarsest: int) -> int:
    """Find what values are rounded to: the largest power of ten that divides them all.

    Args:
        values: Whole numbers.
        coarsest: At most this.

    Returns:
        A power of ten.
    """
    whole = math.gcd(coarsest, *values)
    made = 1
    while whole % (made * 10) == 0 and made < coarsest:
        made *= 10
    return made


class Report:
    """One provider's rows against the log.

    Args:
        provider: Who bills.
        logged: The log.
        costs: Its rows with amounts.
        usage: Its rows of usage reports.
        left_out: Its rows in other currencies.
    """

    def __init__(
        self, provider: str, logged: Logged, costs: list[Line], usage: list[Line], left_out: Sequence[LeftOut] = ()
    ) -> None:
        self.provider = provider
        self.logged = logged
        self.is_valued = not costs
        self.lines = costs or usage
        self.usage = usage if costs else []
        self.periods, self.are_days = periods_of((line.start, line.end) for line in self.lines)
        self.known = {line.meter for line in self.lines if line.meter is not None} or {None}
        self._alone = {line.meter for line in self.lines} - {line.meter for line in self.lines if line.model}
        self._is_whole = all(line.model is None for line in self.lines)
        self.book = Book(logged.of(provider), self.series_of)
        # Models of the report that the log calls otherwise: the log's name, equal cells, and of how many.
        self.renamed = same_models(self.lines, self.book, self.periods)
        self.lines = [self._named(line) for line in self.lines]
        self.amount_step = quantum((line.pusd or 0 for line in self.lines), _COARSEST_PUSD)
        self.unit_step = quantum((line.units or 0 for line in self.lines), _COARSEST_UNITS)
        # Lines that are told apart before anything is weighed: cause to lines, with what shows it.
        self.aside: dict[str, list[Line]] = defaultdict(list)
        self.evidence: dict[str, list[str]] = defaultdict(list)
        # What two causes may explain alike.
        self.doubts: list[str] = []
        self.parts: dict[tuple[Key, int], Part] = {}
        self.left_out = left_out
        self._place()

    def series_of(self, model: str, meter: str) -> Key:
        """Give model and meter of the log as this report tells them."""
        if not meter:
            return None if self._is_whole else model, None
        told = told_in(meter, self.known)
        return None if self._is_whole or told in self._alone else model, told

    def _named(self, line: Line) -> Line:
        found = self.renamed.get(line.model or "")
        return line if found is None else line._replace(model=found[0], is_known=True)

    def _place(self) -> None:
        strangers, said = strangers_of(self.lines, self.provider, self.logged)
        self.evidence["not_in_log"] += said
        for line in self.lines:
            place = self.periods.index(place_of((line.start, line.end), self.periods))
            part = self._part((line.model, line.meter), place)
            cause = "duplicates" if line.is_repeat else "not_in_log" if line in strangers else ""
            if cause:
                self.aside[cause].append(line)
                part.aside += line.pusd or 0
                part.explained[cause] += line.pusd or 0
            else:
                part.lines.append(line)
        for key, series in self.book.series.items():
            for place, period in enumerate(self.periods):
                logged = self._between(series, period.start, period.end, _is_billed)
                if any(logged) or (key, place) in self.parts:
                    self._part(key, place).logged = logged

    def _part(self, key: Key, place: int) -> Part:
        return self.parts.setdefault((key, place), Part(key, place))

    @staticmethod
    def _between(series: Series, start: datetime, end: datetime, wanted: Callable[[Class], bool]) -> tuple[int, int]:
        return series.between(slot_of(start), slot_of(end), wanted)

    @cached_property
    def stated_tiers(self) -> frozenset[str]:
        """Tiers that the report says it has; empty where it does not tell tiers."""
        said = {line.tier for line in self.lines}
        if said <= {None}:
            return frozenset()
        return frozenset(tier or "standard" for tier in said)

    def _start(self) -> Structure:
        """Say what the report itself tells of its structure: the tiers it has."""
        if not self.stated_tiers:
            return Structure()
        used = {about.tier for series in self.book.series.values() for about in series.classes if _is_billed(about)}
        return Structure(tiers=frozenset(used - self.stated_tiers))

    @cached_property
    def usage_units(self) -> Mapping[tuple[Key, int, str | None], int]:
        """Units that a usage report has beside the amounts, by series, place and tier."""
        made: dict[tuple[Key, int, str | None], int] = defaultdict(int)
        for line in self.usage:
            period = place_of((line.start, line.end), self.periods)
            if line.model is not None and line.meter and period.start <= line.start < period.end:
                made[self.series_of(line.model, line.meter), self.periods.index(period), line.tier] += line.units or 0
        return made

    def _units(self, part: Part, structure: Structure) -> int | None:
        """Give a cell's units: those beside its amounts, else those of a usage report, of the tiers that are billed."""
        if part.lines and all(line.units is not None for line in part.lines):
            return sum(line.units or 0 for line in part.lines)
        found = [
            (tier or "standard", units)
            for (key, place, tier), units in self.usage_units.items()
            if key == part.key and place == part.place
        ]
        if not found:
            return None
        has_tiers = any(tier is not None for _, _, tier in self.usage_units)
        if not has_tiers:
            return None if structure.tiers else sum(units for _, units in found)
        return sum(
            units
            for tier, units in found
            if tier not in structure.tiers and (not self.stated_tiers or tier in self.stated_tiers)
        )

    @cached_property
    def models_told(self) -> frozenset[str | None]:
        """Models that the report has."""
        return frozenset(line.model for line in self.lines)

    @cached_property
    def by_units(self) -> frozenset[Key]:
        """Series that are held against units: their rows have quantities, or tiers that a usage report has too."""
        held: dict[Key, bool] = {}
        start = self._start()
        tells = bool(self.stated_tiers) and any(tier is not None for _, _, tier in self.usage_units)
        for part in self.parts.values():
            if part.lines:
                own = all(line.units is not None for line in part.lines)
                fits = own or (tells and self._units(part, start) is not None)
                held[part.key] = held.get(part.key, True) and fits
        return frozenset(key for key, fits in held.items() if fits)

    @cached_property
    def unknown(self) -> Mapping[int, frozenset[str]]:
        """Models of the report that the log does not have, by place."""
        made: dict[int, set[str]] = defaultdict(set)
        for (model, _), place in self.parts:
            if model is not None and not any(key[0] == model for key in self.book.series):
                made[place].add(model)
        return {place: frozenset(models) for place, models in made.items()}

    def is_silent(self, period: Period) -> bool:
        """Tell whether the log has no request at all in a period."""
        return self.book.requests.between(slot_of(period.start), slot_of(period.end))[0] == 0

    def fit(self) -> Fit:
        """Find how the report is made of the log, without the projects and keys whose traffic it does not have."""
        found = self._fit()
        absent = absent_owners(self, found)
        for words, lines in absent:
            self.evidence["not_in_log"].append(words)
            for line in lines:
                part = self.parts[
                    (line.model, line.meter), self.periods.index(place_of((line.start, line.end), self.periods))
                ]
                part.lines.remove(line)
                part.aside += line.pusd or 0
                part.explained["not_in_log"] += line.pusd or 0
        return self._fit() if absent else found

    def _fit(self) -> Fit:
        start = self._start()
        cells: list[Cell] = []
        for part in self.parts.values():
            period = self.periods[part.place]
            if not period.is_reported or self.is_silent(period) or part.key not in self.book.series:
                continue
            if part.key[0] not in self.models_told or is_elsewhere(self, part):
                continue
            count = max(len(part.lines), 1)
            if part.key in self.by_units:
                observed, step = self._units(part, start) or 0, self.unit_step
            else:
                if self._has_unpriced(part.key, start):
                    continue
                observed, step = sum(line.pusd or 0 for line in part.lines), self.amount_step
            cells.append(Cell(part.key, part.place, observed, count * step // 2 + 1))
        self.fitter = Fitter(self.book, cells, self.periods, self.by_units, start, are_days=self.are_days)
        return self.fitter.find()

    def _has_unpriced(self, key: Key, start: Structure) -> bool:
        return any(about.state == "unpriced" and start.wants(about) for about in self.book.series[key].classes)

    def split(self, fit: Fit) -> list[Part]:
        """Split every cell.

        Args:
            fit: How the report is made of the log.

        Returns:
            The cells; what is left in ``surplus`` nothing explains.
        """
        structure = fit.structure
        for part in self.parts.values():
            series = self.book.series.get(part.key)
            period = self.periods[part.place]
            told, unpriced = self._path(part, series, period, structure)
            part.told = told
            part.units = self._units(part, structure)
            billed = sum(line.pusd or 0 for line in part.lines)
            if self.is_valued:
                # Tokens only: what differs is worth what the log's own tokens of the cell cost.
                billed = told[1] + self._valued(part, told, unpriced)
            part.invoiced = billed + part.aside
            part.surplus = billed - told[1]
            part.extra = None if part.units is None else part.units - told[0] - unpriced
            self._rest(part, series, period, told, unpriced, structure)
        self.doubts += lost_usage(self, structure)
        return [part for part in self.parts.values() if part.invoiced or part.logged[1] or part.explained]

    def _valued(self, part: Part, told: tuple[int, int], unpriced: int) -> int:
        extra = (part.units or 0) - told[0] - unpriced
        units, pusd = told if told[0] else part.logged
        return divided(extra * pusd, units) if units else 0

    def _path(
        self, part: Part, series: Series | None, period: Period, structure: Structure
    ) -> tuple[tuple[int, int], int]:
        """Walk from what the log counts to what the report counts; each step is a cause, exact."""
        if series is None:
            return (0, 0), 0
        wanted = _is_billed
        before = part.logged[1]
        kept = Structure(tiers=structure.tiers)
        wanted = kept.wants
        after = self._between(series, period.start, period.end, wanted)[1]
        part.explained["tier_missing"] += after - before
        billed = set(BILLED)
        for kind in sorted(set(BILLED) ^ structure.billed):
            billed ^= {kind}
            wanted = Structure(tiers=structure.tiers, billed=frozenset(billed)).wants
            before, after = after, self._between(series, period.start, period.end, wanted)[1]
            part.explained[_CAUSE_OF_KIND[kind]] += after - before
        span = structure.span(part.place, period)
        part.explained["day_boundaries"] += series.between(*span, wanted)[1] - after
        priced = series.between(*span, lambda about: wanted(about) and about.state == "priced")
        unpriced = series.between(*span, lambda about: wanted(about) and about.state == "unpriced")[0]
        return priced, unpriced

    def _rest(
        self,
        part: Part,
        series: Series | None,
        period: Period,
        told: tuple[int, int],
        unpriced: int,
        structure: Structure,
    ) -> None:
        """Tell rates, unpriced requests, rounding and what only one side has; requests without usage come after."""
        if not period.is_reported:
            part.explained["not_in_report"] += part.surplus
            part.surplus = 0
        elif self.is_silent(period):
            take(part, "not_in_log")
        elif part.key[0] not in self.models_told:
            take(part, "not_in_report")
        elif series is None:
            if not any(self.book.missing.get(part.key[0], ())):
                take(part, "not_in_log")
        elif abs(part.surplus) <= self.slack(part) and not part.extra:
            take(part, "rounding")
        else:
            if unpriced:
                self._unpriced(part, told, unpriced)
            other_rate(self, part, series, structure)
            if part.surplus < 0 and (not part.lines or left_out_of(self, part)):
                take(part, "not_in_report")

    def slack(self, part: Part) -> int:
        """Say how far a cell may be off by the report's rounding, in pUSD."""
        return max(len(part.lines), 1) * self.amount_step // 2 + 1

    def _unpriced(self, part: Part, told: tuple[int, int], unpriced: int) -> None:
        if not told[0] and not part.extra:
            take(part, "unpriced")
        elif part.units and part.invoiced:
            # At what the report takes for a unit of the cell.
            take(part, "unpriced", divided(sum(line.pusd or 0 for line in part.lines) * unpriced, part.units))

    def compared(self, parts: Iterable[Part]) -> list[Compared]:
        """Write the cells for the result."""
        made: list[Compared] = []
        for part in parts:
            period = self.periods[part.place]
            explained = {cause: pusd for cause, pusd in part.explained.items() if pusd}
            middle = period.start + (period.end - period.start) / 2
            made.append(
                Compared(
                    period.name,
                    date(middle.year, middle.month, 1),
                    self.provider,
                    *part.key,
                    part.logged[1],
                    part.invoiced,
                    part.logged[0],
                    part.units,
                    explained,
                    self.is_valued,
                )
            )
        return made


def _is_billed(about: Class) -> bool:
    return about.billing in BILLED
