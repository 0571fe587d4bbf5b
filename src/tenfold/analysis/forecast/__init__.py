"""Forecast: drivers (requests a day x tokens a request x rate) followed day by day, as ranges that the past has tested.

FinOps practice: calls x context size x rate per driver; ranges, not a point (``reference/formats.md`` C2). Requests
and cost per request are followed apart, at the prices of the first day ahead, so that a price cut in the past is no
trend; prices of the days ahead are those of the dated book, announced changes among them. A price change counts as
known beforehand: one that nobody announced is in no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from fractions import Fraction
from itertools import groupby
from math import exp

import polars as pl

from tenfold.analysis.forecast.arithmetic import Arithmetic, arithmetic
from tenfold.analysis.forecast.learning import LEAST_DAYS, Accuracy, Learned, learn
from tenfold.analysis.forecast.owners import Compared, Own, by_share, compare, is_own_closer, own
from tenfold.analysis.forecast.prices import Owner, PriceAhead, PricePath, price_path
from tenfold.analysis.forecast.result import (
    Drivers,
    Forecast,
    Period,
    Range,
    Scenario,
    Track,
    change_text,
    days_between,
    owner_text,
    said_range,
)
from tenfold.analysis.forecast.smoothing import WEEK, State
from tenfold.display import counted, percent
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.ledger import Ledger
from tenfold.ledger.span import DAY, span, undated_notes
from tenfold.money import share_out
from tenfold.prices.meters import METER_NAMES

__all__ = [
    "Accuracy", "Arithmetic", "Drivers", "Forecast", "Period", "PriceAhead", "Range", "Saving", "Scenario", "Track",
    "change_text", "forecast", "owner_text", "said_range",
]  # fmt: skip

# Owners that get a forecast of their own; the rest is one.
_MOST_OWNERS = 20
_MOST_DAYS = 400
# Days without any request in a row after which the log is taken for one with a hole.
_HOLE = WEEK
_MOST_AHEAD = 400
_MONTH = 30
Saving = tuple[Fraction | None, Fraction, Fraction | None]


def forecast(
    ledger: Ledger,
    *,
    until: date | None = None,
    by: Sequence[str] = (),
    level: float = 0.8,
    fiscal_year_start: int = 1,
    saving: Saving | None = None,
) -> Forecast:
    """Forecast spend from a ledger's past.

    Args:
        ledger: The ledger; its window, or all of the log, is the past.
        until: Last day; by default that of the quarter after the one in which the past ends.
        by: Dimensions of owners, such as ``team``; the whole always is forecast, and owners' middles sum to it.
        level: Share of intervals that are to hold what comes, 0.5 to 0.99.
        fiscal_year_start: Month in which a fiscal year begins; quarters follow.
        saving: Low, middle and high share of spend that the plan's levers save, for a scenario.

    Returns:
        The forecast.

    Raises:
        NotEvaluable: The past is too short (fewer than 28 whole days), or nothing in it has a price; says which.
        AssumptionError: An argument is out of range.
    """
    if not 0.5 <= level <= 0.99:
        raise AssumptionError(f"level {level}: write a share from 0.5 to 0.99")
    if not 1 <= fiscal_year_start <= 12:
        raise AssumptionError(f"fiscal_year_start {fiscal_year_start}: write a month from 1 to 12")
    by = (by,) if isinstance(by, str) else tuple(by)
    billed = ledger.composition(["day", *by]).frame
    past, notes = _past(ledger, billed)
    first = past[-1] + DAY
    until = until or _quarter(_quarter(past[-1], fiscal_year_start)[1] + DAY, fiscal_year_start)[1]
    if not first <= until < first + _MOST_AHEAD * DAY:
        raise AssumptionError(
            f"until {until}: the log's last whole day is {past[-1]}; forecast to a day after it, at most "
            f"{_MOST_AHEAD} days ahead"
        )
    ahead = tuple(days_between(first, until))
    path = price_path(ledger, by, past, ahead, LEAST_DAYS)
    columns = _Columns(path.daily, by, past)
    requests, costs = columns.of(None)
    if not sum(costs[-LEAST_DAYS:]):
        raise NotEvaluable("nothing in the last 28 days has a price, so there is nothing to forecast; see coverage")
    learned = learn(requests, costs, level)
    factors = path.factors(ahead)
    mids = _pusd(learned, factors)
    spent = _spent(billed, by, first)
    whole = Track((), mids, _all(spent), learned)
    tracks: dict[Owner | None, Track] = {None: whole}
    if by:
        owners, said = _owners(columns, path, ahead, mids, spent, level, Own(costs, 0, learned))
        tracks |= owners
        notes += said
    if columns.left and by:
        notes.append(f"{counted(len(columns.left), 'small owner')} forecast only within the whole")
    if ledger.charges:
        notes.append("idle GPUs are left out: only what requests cost is forecast")
    notes += undated_notes(billed)
    unpriced = int(billed.filter(pl.col("day").is_not_null())["unpriced_requests"].sum())
    if unpriced:
        notes.append(f"{counted(unpriced, 'request')} without a price left out")
    longest = max((one.days for one in learned.accuracy), default=0)
    if len(ahead) > longest:
        notes.append(
            f"beyond {longest} days ahead the past is too short to test: intervals there widen as the model has it"
        )
    spans = _spans(first, until, fiscal_year_start)
    label, _, begins, ends = next(one for one in reversed(spans) if one[1] != "month")
    return Forecast(
        by=by,
        first=first,
        until=until,
        level=level,
        periods=_periods(whole, spans, first, longest),
        owners={owner: _periods(track, spans, first, longest) for owner, track in tracks.items() if owner is not None},
        scenarios=_scenarios(whole, learned, factors, spans, first, saving),
        drivers=_drivers(path.daily, past, learned),
        arithmetic=arithmetic(label, learned, factors, (max((begins - first).days, 0), (ends - first).days), mids),
        changes=path.changes,
        accuracy=learned.accuracy,
        history=(past[0], past[-1]),
        tracks=tracks,
        notes=tuple(notes),
        zone=ledger.window.zone,
        card_version=ledger.book.version,
    )


def _past(ledger: Ledger, billed: pl.DataFrame) -> tuple[tuple[date, ...], list[str]]:
    """Choose the days to learn from: whole ones, after the last hole in the log."""
    found = span(ledger)
    whole = () if found is None else found.whole()
    notes: list[str] = []
    busy = set(billed.filter(pl.col("requests") > 0)["day"].to_list())
    while whole and whole[0] not in busy:
        whole = whole[1:]
    at = 0
    for is_busy, run in groupby(enumerate(whole), key=lambda one: one[1] in busy):
        days = [n for n, _ in run]
        # a log that ends in silence has stopped; only what lies between requests is a hole
        if not is_busy and len(days) >= _HOLE and days[-1] + 1 < len(whole):
            at = days[-1] + 1
    if at:
        notes.append(f"no request for {_HOLE} days or more until {whole[at]}: the past before it is left out")
    whole = whole[at:][-_MOST_DAYS:]
    if len(whole) < LEAST_DAYS:
        why = f" after the hole that ends on {whole[0]}" if at and whole else ""
        raise NotEvaluable(
            f"a forecast needs {LEAST_DAYS} whole days (each weekday four times) and this log has {len(whole)}{why}: "
            "load more of it, or wait"
        )
    return whole, notes


class _Columns:
    """Requests and costs a day, of the whole and of owners."""

    def __init__(self, daily: pl.DataFrame, by: Sequence[str], past: Sequence[date]) -> None:
        self.by = by
        self.past = past
        places = {day: n for n, day in enumerate(past)}
        self._rows: dict[Owner, tuple[list[float], list[float]]] = {}
        for row in daily.select("day", *by, "requests", "cost_pusd").rows():
            requests, costs = self._rows.setdefault(row[1:-2], ([0.0] * len(past), [0.0] * len(past)))
            requests[places[row[0]]] += float(row[-2])
            costs[places[row[0]]] += float(row[-1])
        late = {owner: sum(costs[-LEAST_DAYS:]) for owner, (_, costs) in self._rows.items()}
        self.ranked = sorted((owner for owner in late if late[owner]), key=lambda owner: (-late[owner], str(owner)))
        self.left = self.ranked[_MOST_OWNERS:]
        self.ranked = self.ranked[:_MOST_OWNERS]

    def of(self, owner: Owner | None) -> tuple[list[float], list[float]]:
        """Give an owner's columns; None for the whole."""
        if owner is not None:
            return self._rows[owner]
        both = list(self._rows.values())
        return [sum(day) for day in zip(*(one[0] for one in both), strict=True)], [
            sum(day) for day in zip(*(one[1] for one in both), strict=True)
        ]


def _owners(
    columns: _Columns,
    path: PricePath,
    ahead: Sequence[date],
    mids: Sequence[int],
    spent: Mapping[Owner, Mapping[date, int]],
    level: float,
    whole: Own,
) -> tuple[dict[Owner, Track], list[str]]:
    """Share the whole's middles out by the split that did better on the past; owners sum to it day by day."""
    known = {owner: own(*columns.of(owner), level) for owner in columns.ranked}
    tested = compare(list(known.values()))
    is_own = is_own_closer(tested)
    late_whole = sum(whole.costs[-LEAST_DAYS:])
    usual = path.factors(ahead)
    raw: dict[Owner, tuple[int, ...]] = {}
    learned: dict[Owner, Learned | None] = {}
    for owner, one in known.items():
        learned[owner] = one.learned if is_own else by_share(one, whole, level)
        factors = path.factors(ahead, owner)
        if is_own and one.learned is not None:
            raw[owner] = _pusd(one.learned, factors)
        else:
            share = sum(one.costs[-LEAST_DAYS:]) / late_whole
            dearer = [here / all_ for here, all_ in zip(factors, usual, strict=True)]
            raw[owner] = tuple(round(share * mid * ratio) for mid, ratio in zip(mids, dearer, strict=True))
    left = sum(sum(columns.of(owner)[1][-LEAST_DAYS:]) for owner in columns.left) / late_whole
    shared: list[list[int]] = []
    for day, mid in enumerate(mids):
        weights = [raw[owner][day] for owner in columns.ranked]
        # small owners keep their share of late; it has no line of its own
        rest = round(left * mid)
        shared.append(share_out(mid - rest, weights)[: len(weights)] if sum(weights) else [0] * len(weights))
    made = {
        owner: Track(owner, tuple(day[n] for day in shared), spent.get(owner, {}), learned[owner])
        for n, owner in enumerate(columns.ranked)
    }
    return made, _split_notes(columns.by, tested, [owner for owner, one in known.items() if one.learned is None])


def _split_notes(by: Sequence[str], tested: Sequence[Compared], short: Sequence[Owner]) -> list[str]:
    """Say how the whole is shared out, and how both ways did on the past."""
    is_own = is_own_closer(tested)
    how = "their own forecasts" if is_own else f"their share of the last {LEAST_DAYS} days"
    why = ""
    if tested:
        # differences of shares count twice: what one has too much, another has too little
        errors = [sum(part) / 2 / len(tested) for part in ([one.own for one in tested], [one.late for one in tested])]
        other = "shares of late" if is_own else "their own forecasts"
        mine, theirs = errors if is_own else errors[::-1]
        why = (
            f": in {counted(len(tested), 'test')} of the past that misplaced {percent(mine)} of the whole, {other} "
            f"{percent(theirs)}"
        )
    notes = [f"the middles of each {' and '.join(by)} sum to the whole, shared out by {how}{why}"]
    if short:
        named = ", ".join(owner_text(by, owner) for owner in short[:3]) + (" and more" if len(short) > 3 else "")
        notes.append(f"too short a past for an interval of their own, so a share of the whole: {named}")
    return notes


def _pusd(learned: Learned, factors: Sequence[float], growth_factor: float = 1.0) -> tuple[int, ...]:
    daily = learned.ahead(len(factors), growth_factor)
    return tuple(round(one * factor) for one, factor in zip(daily, factors, strict=True))


def _spent(billed: pl.DataFrame, by: Sequence[str], first: date) -> dict[Owner, dict[date, int]]:
    """Sum what was spent by owner and day, as billed."""
    frame = billed.filter(pl.col("day") < first)
    made: dict[Owner, dict[date, int]] = {}
    for day, *owner, cost in frame.select("day", *by, "cost_pusd").rows():
        made.setdefault(tuple(owner), {})[day] = int(cost)
    return made


def _all(spent: Mapping[Owner, Mapping[date, int]]) -> dict[date, int]:
    made: dict[date, int] = {}
    for by_day in spent.values():
        for day, pusd in by_day.items():
            made[day] = made.get(day, 0) + pusd
    return made


def _quarter(day: date, start: int) -> tuple[date, date, str]:
    """Find the quarter of a day: first and last day, and its name by the fiscal year (the year that one ends in)."""
    months = day.year * 12 + day.month - 1
    begins = months - (months - (start - 1)) % 3
    year, number = divmod(begins - (start - 1), 12)
    name = f"{year + (start > 1)}Q{number // 3 + 1}"
    return _month_start(begins), _month_start(begins + 3) - DAY, name


def _month_start(months: int) -> date:
    return date(months // 12, months % 12 + 1, 1)


def _spans(first: date, until: date, start: int) -> list[tuple[str, str, date, date]]:
    """List the periods that days ahead lie in: months, quarters that are reached whole, and all of it."""
    made: list[tuple[str, str, date, date]] = []
    month = first.replace(day=1)
    while month <= until:
        end = _month_start(month.year * 12 + month.month) - DAY
        made.append((f"{month:%Y-%m}", "month", month, min(end, until)))
        month = end + DAY
    begins, ends, name = _quarter(first, start)
    while ends <= until:
        made.append((name, "quarter", begins, ends))
        begins, ends, name = _quarter(ends + DAY, start)
    return made if any(kind == "quarter" for _, kind, *_ in made) else [*made, (f"to {until}", "all", first, until)]


def _periods(
    track: Track, spans: Sequence[tuple[str, str, date, date]], first: date, longest: int
) -> tuple[Period, ...]:
    made: list[Period] = []
    for label, kind, begins, ends in spans:
        since, last = max((begins - first).days, 0), (ends - first).days
        spent = sum(pusd for day, pusd in track.spent.items() if begins <= day <= ends)
        found = track.range(since, last)
        made.append(Period(label, kind, begins, ends, spent, found, last - since + 1, last < longest))
    return tuple(made)


def _scenarios(
    whole: Track,
    learned: Learned,
    factors: Sequence[float],
    spans: Sequence[tuple[str, str, date, date]],
    first: date,
    saving: Saving | None,
) -> tuple[Scenario, ...]:
    def ranges(of: Callable[[int, int], Range]) -> dict[str, Range]:
        long = [one for one in spans if one[1] != "month"]
        return {label: of(max((begins - first).days, 0), (ends - first).days) for label, _, begins, ends in long}

    def grown(factor: float) -> dict[str, Range]:
        return ranges(Track((), _pusd(learned, factors, factor), {}, learned).range)

    made = [
        Scenario("as_is", "growth goes on as the past has it", ranges(whole.range)),
        Scenario("growth_stopped", "requests and cost per request stay where they are", grown(0.0)),
        Scenario("growth_doubled", "both grow twice as fast", grown(2.0)),
    ]
    if saving is not None:

        def saved(since: int, last: int) -> Range:
            low, mid, high = whole.range(since, last)
            least, middle, most = saving
            # the dear end is the one where the levers save least
            return Range(
                None if low is None or most is None else round(low * (1 - most)),
                round(mid * (1 - middle)),
                None if high is None or least is None else round(high * (1 - least)),
            )

        made.append(
            Scenario("levers_done", "the plan's levers save the share that they would have saved", ranges(saved))
        )
    return tuple(made)


def _drivers(daily: pl.DataFrame, past: Sequence[date], learned: Learned) -> Drivers:
    late = daily.filter(pl.col("day") > past[-1] - LEAST_DAYS * DAY)
    requests = int(late["requests"].sum())
    by_weekday = [0.0] * WEEK
    for day, cost in late.select("day", "cost_pusd").rows():
        by_weekday[day.weekday()] += float(cost)
    cost = sum(by_weekday)
    units = {name: int(late[f"{name}_units"].sum() or 0) for name in METER_NAMES if f"{name}_units" in late.columns}
    costs = {name: float(late[f"{name}_pusd"].sum() or 0) for name in units}
    used = [name for name, count in units.items() if count]
    return Drivers(
        LEAST_DAYS,
        requests / LEAST_DAYS,
        _growth(learned.requests),
        cost / requests,
        _growth(learned.costs),
        tuple(one * WEEK / cost for one in by_weekday),
        {name: units[name] / requests for name in used},
        {name: costs[name] / units[name] for name in used},
    )


def _growth(state: State) -> float:
    """Growth over a month, weekdays left out."""
    ahead = state.ahead(_MONTH)
    return exp(ahead[-1] - state.weekdays[(_MONTH - 1) % WEEK] - state.level) - 1
