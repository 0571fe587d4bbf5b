"""Anomalies: days on which an owner's cost of a model was not what its past made likely, with what that cost.

Per (team, model), or whatever is asked for: daily cost against trailing median + k x MAD with a weekday effect
(``reference/formats.md`` C2). Spikes, drops, new levels (one anomaly each, not one a day), new combinations and silence
are told apart; impact is cost less what was expected, with its sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, TypeAlias

import polars as pl

from tenfold.analysis.anomalies.judging import LEAST, TRAILING, Band, Found, Judge, Kind
from tenfold.display import counted, name_of, percent, sentence
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.ledger import Ledger
from tenfold.ledger.span import DAY, Span, span, undated_notes
from tenfold.money import shown, usd_text
from tenfold.tables import card

__all__ = ["KIND_WORDS", "TRAILING", "Anomalies", "Anomaly", "Kind", "anomalies"]

Owner: TypeAlias = tuple[Any, ...]
BY = ("team", "model")
KIND_WORDS: dict[Kind, str] = {
    "spike": "spike",
    "drop": "drop",
    "level_up": "new level, up",
    "level_down": "new level, down",
    "new": "new",
    "ended": "ended",
    "silence": "silence",
}
# What is told apart, as dollars of one are not like those of another.
_GROUPS: tuple[tuple[str, tuple[Kind, ...]], ...] = (
    ("new", ("new",)),
    ("ended", ("ended",)),
    ("spikes, drops and silent days", ("spike", "drop", "silence")),
    ("level changes", ("level_up", "level_down")),
)
_SINGULAR = {"spikes, drops and silent days": "spike, drop or silent day", "level changes": "level change"}


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A run of days that stands out. Money in pUSD.

    Args:
        owner: Values of the dimensions.
        kind: spike, drop, level_up, level_down, new, ended (and did not come back) or silence.
        first: First day: the day it was to be seen.
        last: Last day; of a level, a new combination, an end and silence the last day that it lasts.
        is_open: It still goes on where the log ends.
        cost: On its days.
        expected: Of its days.
        score: Largest distance from what was expected, in scaled MADs; 0 without a past.
        baseline: First and last day that it was held against; None for a new combination.
    """

    owner: Owner
    kind: Kind
    first: date
    last: date
    is_open: bool
    cost: int
    expected: int
    score: float
    baseline: tuple[date, date] | None

    @property
    def impact(self) -> int:
        """Cost less what was expected: negative where less was spent."""
        return self.cost - self.expected

    @property
    def until(self) -> date | str:
        """Its last day, or in words that it lasts."""
        return "not back" if self.kind == "ended" else "still on" if self.is_open else self.last

    @property
    def days(self) -> int:
        """How many days it lasts."""
        return (self.last - self.first).days + 1

    def as_dict(self, by: Sequence[str]) -> dict[str, Any]:
        """Give the anomaly as a document."""
        return {
            **dict(zip(by, self.owner, strict=True)),
            "kind": self.kind,
            "first_day": self.first.isoformat(),
            "last_day": self.last.isoformat(),
            "days": self.days,
            "is_open": self.is_open,
            "cost_usd": usd_text(self.cost),
            "expected_usd": usd_text(self.expected),
            "impact_usd": usd_text(self.impact),
            "score": round(self.score, 2),
            "baseline": self.baseline and [day.isoformat() for day in self.baseline],
        }


@dataclass(frozen=True, slots=True)
class Anomalies:
    """What stands out in a ledger's days.

    Args:
        by: Dimensions of owners.
        found: Anomalies, the largest impact first, whatever its sign.
        small: How many more lie below what is asked for.
        judged: First and last day that could be judged.
        series: How many owners were looked at.
        k: Scaled MADs from which a day stands out.
        daily: Per owner and day: dimensions, ``day``, ``cost_pusd``, ``expected_pusd``, ``low_pusd``, ``high_pusd``
            (null where a day could not be judged), for owners with an anomaly.
        notes: What else a reader must know.
        zone: Zone of days.
    """

    by: tuple[str, ...]
    found: tuple[Anomaly, ...]
    small: int
    judged: tuple[date, date]
    series: int
    k: float
    daily: pl.DataFrame
    notes: tuple[str, ...]
    zone: str

    def sums(self) -> list[tuple[str, int, int, int]]:
        """Sum impacts by what they are: new streams, ended ones, single days, level changes.

        Returns:
            What, how many, pUSD more and pUSD less than expected; what there is none of is left out.
        """
        made: list[tuple[str, int, int, int]] = []
        for what, kinds in _GROUPS:
            own = [one.impact for one in self.found if one.kind in kinds]
            if own:
                name = _SINGULAR.get(what, what) if len(own) == 1 else what
                made.append((name, len(own), sum(max(one, 0) for one in own), sum(max(-one, 0) for one in own)))
        return made

    def summed(self) -> str:
        """Say the sums in one line.

        Returns:
            Text such as ``2 new: $33.00 more than expected; 1 level change: $4.00 less``.
        """
        said: list[str] = []
        for what, many, more, less in self.sums():
            sides = [f"{shown(pusd)} {side}" for pusd, side in ((more, "more"), (less, "less")) if pusd]
            said.append(f"{many} {what}: {' and '.join(sides) or shown(0)}")
        return "; ".join(said)

    def band(self, owner: Owner) -> pl.DataFrame:
        """Give an owner's days.

        Args:
            owner: Values of the dimensions.

        Returns:
            The rows of ``daily`` of that owner.
        """
        same = [pl.col(name).eq_missing(pl.lit(value)) for name, value in zip(self.by, owner, strict=True)]
        return self.daily.filter(*same)

    def as_dict(self) -> dict[str, Any]:
        """Give the document of ``tenfold anomalies --json``.

        Returns:
            ``by, anomalies[], sums[], small, judged[], series, k, notes[], sentences[]``.
        """
        return {
            "by": list(self.by),
            "anomalies": [one.as_dict(self.by) for one in self.found],
            "sums": [
                {"what": what, "count": many, "more_usd": usd_text(more), "less_usd": usd_text(less)}
                for what, many, more, less in self.sums()
            ],
            "small": self.small,
            "judged": [day.isoformat() for day in self.judged],
            "series": self.series,
            "k": self.k,
            "zone": self.zone,
            "notes": list(self.notes),
            "sentences": self.sentences(),
        }

    def sentences(self) -> list[str]:
        """Say each anomaly in one line.

        Returns:
            The lines, then the notes.
        """
        return [*(told(self.by, one) for one in self.found), *map(sentence, self.notes)]

    def __repr__(self) -> str:
        """Say what it is in one line."""
        return f"<Anomalies {self._counted()}>"

    def _counted(self) -> str:
        return f"{len(self.found)} in {self.series} series, {self.judged[0]} to {self.judged[1]}"

    def _repr_html_(self) -> str:
        """Show what stands out in a notebook, the largest impact first."""
        return card(f"Anomalies: {self._counted()}. {self.summed()}", self.sentences())


def anomalies(
    ledger: Ledger,
    *,
    by: Sequence[str] = BY,
    k: float = 4.0,
    least_pusd: int = 0,
    since: date | None = None,
) -> Anomalies:
    """Find what stands out in daily cost.

    Args:
        ledger: The ledger; all days of its window are a past to hold later ones against.
        by: Dimensions of owners; each combination is a series.
        k: Scaled MADs (1.4826 x MAD, the standard deviation of normal noise) from which a day stands out.
        least_pusd: Impact below which an anomaly is counted, not shown.
        since: Only tell anomalies that begin on this day or later; the days before it are past.

    Returns:
        The anomalies.

    Raises:
        NotEvaluable: Fewer than two weeks of whole days.
        AssumptionError: ``k`` is not above 0.
    """
    if not k > 0:
        raise AssumptionError(f"k {k}: write how many scaled MADs make an anomaly, such as 4")
    by = (by,) if isinstance(by, str) else tuple(by)
    found = span(ledger)
    days = _days(found)
    if found is None or len(days) <= LEAST:
        raise NotEvaluable(
            f"a day is held against at least {LEAST} days before it and this log has {counted(len(days), 'day')}: "
            "load more of it, or wait"
        )
    places = {day: n for n, day in enumerate(days)}
    partial = frozenset(places[day] for day in found.partial)
    billed = ledger.composition(["day", *by]).frame
    frame = billed.filter(pl.col("day").is_not_null())
    series: dict[Owner, tuple[list[int], list[int]]] = {}
    for day, *owner, requests, unpriced, cost in frame.select(
        "day", *by, "requests", "unpriced_requests", "cost_pusd"
    ).rows():
        counts, costs = series.setdefault(tuple(owner), ([0] * len(days), [0] * len(days)))
        counts[places[day]] += requests - unpriced
        costs[places[day]] += int(cost)
    start = 0 if since is None else max((since - days[0]).days, 0)
    made: list[Anomaly] = []
    rows: list[tuple[Any, ...]] = []
    for owner in sorted(series, key=str):
        counts, costs = series[owner]
        judge = Judge([float(cost) for cost in costs], counts, k=k, partial=partial)
        own = [_anomaly(owner, one, days, costs) for one in judge.found if one.first >= start]
        made += own
        if own:
            rows += _rows(owner, days, costs, judge.bands)
    shown_ = [one for one in made if abs(one.impact) >= least_pusd]
    shown_.sort(key=lambda one: (-abs(one.impact), one.first, str(one.owner)))
    judged = max(days[LEAST], days[min(start, len(days) - 1)])
    return Anomalies(
        by=by,
        found=tuple(shown_),
        small=len(made) - len(shown_),
        judged=(judged, days[-1]),
        series=len(series),
        k=k,
        daily=_daily(rows, by, frame),
        notes=(
            *_notes(len(made) - len(shown_), least_pusd, found.partial, judged, days[0] if not start else None),
            *undated_notes(billed),
        ),
        zone=ledger.window.zone,
    )


def _days(found: Span | None) -> tuple[date, ...]:
    """List the days of a log, those that it covers in part too."""
    if found is None:
        return ()
    return tuple(found.first + n * DAY for n in range((found.last - found.first).days + 1))


def _anomaly(owner: Owner, found: Found, days: Sequence[date], costs: Sequence[int]) -> Anomaly:
    past = found.baseline
    return Anomaly(
        owner=owner,
        kind=found.kind,
        first=days[found.first],
        last=days[found.last],
        is_open=found.is_open,
        cost=sum(costs[found.first : found.last + 1]),
        expected=round(sum(found.expected)),
        score=found.score,
        baseline=(days[past[0]], days[past[-1]]) if past else None,
    )


def _rows(
    owner: Owner, days: Sequence[date], costs: Sequence[int], bands: Sequence[Band | None]
) -> list[tuple[Any, ...]]:
    return [
        (*owner, day, cost, *((None, None, None) if band is None else map(round, band)))
        for day, cost, band in zip(days, costs, bands, strict=True)
    ]


def _daily(rows: Sequence[tuple[Any, ...]], by: Sequence[str], frame: pl.DataFrame) -> pl.DataFrame:
    money = ("cost_pusd", "expected_pusd", "low_pusd", "high_pusd")
    kinds = {**{name: frame.schema[name] for name in by}, "day": pl.Date, **dict.fromkeys(money, pl.Int128)}
    return pl.DataFrame(list(rows), schema=kinds, orient="row")


def _notes(small: int, least_pusd: int, partial: frozenset[date], judged: date, begins: date | None) -> list[str]:
    made: list[str] = []
    if begins is not None:
        made.append(f"the log begins on {begins}: days are judged from {judged} on, once there are {LEAST} before them")
    if small:
        made.append(f"{small} more below {shown(least_pusd)} not shown")
    if partial:
        named = " and ".join(map(str, sorted(partial)))
        made.append(f"{named}: covered in part, so judged as too dear only")
    return made


def owner_text(by: Sequence[str], owner: Owner) -> str:
    """Name an owner.

    Args:
        by: The dimensions.
        owner: Their values.

    Returns:
        The values, those that are absent in words.
    """
    return " · ".join(map(name_of, by, owner))


def told(by: Sequence[str], one: Anomaly) -> str:
    """Say an anomaly in one line.

    Args:
        by: The dimensions.
        one: The anomaly.

    Returns:
        Text such as ``search · m1: spike on 2026-08-12, $41.20 more than expected ($61.20 for $20.00, 12 MADs)``.
    """
    when = f"on {one.first}" if one.days == 1 else f"{one.first} to {one.last}"
    if one.is_open and one.days > 1:
        when = f"since {one.first}"
    still = ", still on" if one.is_open and one.kind in ("spike", "drop") else ""
    side = "more" if one.impact >= 0 else "less"
    amount = f"{shown(abs(one.impact))} {side} than expected"
    if one.kind == "ended":
        daily = shown(one.expected // one.days)
        return (
            f"{owner_text(by, one.owner)}: ended, no request since {one.first}, {shown(-one.impact)} less than if it "
            f"had gone on as in its last weeks ({daily} a day)"
        )
    if one.kind == "new":
        return f"{owner_text(by, one.owner)}: new {when}, {shown(one.cost)}"
    share = f", {percent(Fraction(abs(one.impact), one.expected))}" if one.expected else ""
    return (
        f"{owner_text(by, one.owner)}: {KIND_WORDS[one.kind]} {when}{still}, {amount} "
        f"({shown(one.cost)} for {shown(one.expected)}{share}; {one.score:.1f} MADs)"
    )
