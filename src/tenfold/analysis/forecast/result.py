"""What a forecast is made of: periods with ranges, drivers, scenarios, and how the past was forecast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from tenfold.analysis.forecast.arithmetic import Arithmetic
from tenfold.analysis.forecast.learning import Accuracy, Learned
from tenfold.analysis.forecast.prices import Owner, PriceAhead
from tenfold.display import counted, name_of, percent, sentence
from tenfold.ledger.span import DAY
from tenfold.money import shown, usd_text
from tenfold.tables import Column, card, grid


class Range(NamedTuple):
    """An amount that is not known, in pUSD: ends of its interval (None where none can be said) and the middle."""

    low: int | None
    mid: int
    high: int | None

    def plus(self, pusd: int) -> Range:
        """Add what is known.

        Args:
            pusd: The amount.

        Returns:
            The range of the sum.
        """
        low, high = (None if end is None else end + pusd for end in (self.low, self.high))
        return Range(low, self.mid + pusd, high)

    def as_dict(self) -> dict[str, str | None]:
        """Write it as decimal strings."""
        return {name: usd_text(part) for name, part in zip(Range._fields, self, strict=True)}


class Period(NamedTuple):
    """A month, a quarter, or what was asked for.

    Args:
        label: Such as ``2026-10`` or ``2026Q4``.
        kind: ``month``, ``quarter`` or ``all``.
        first: First day.
        last: Last day.
        spent: pUSD on its days that are over.
        ahead: What its other days are expected to cost.
        days_ahead: How many these are.
        is_tested: The past is long enough to have been asked so many days ahead.
    """

    label: str
    kind: str
    first: date
    last: date
    spent: int
    ahead: Range
    days_ahead: int
    is_tested: bool

    @property
    def total(self) -> Range:
        """What is spent and what is expected."""
        return self.ahead.plus(self.spent)

    def as_dict(self) -> dict[str, Any]:
        """Give the period as a document."""
        return {
            "period": self.label,
            "kind": self.kind,
            "first_day": self.first.isoformat(),
            "last_day": self.last.isoformat(),
            "spent_usd": usd_text(self.spent),
            "ahead_usd": self.ahead.as_dict(),
            "total_usd": self.total.as_dict(),
            "days_ahead": self.days_ahead,
            "backtested": self.is_tested,
        }


class Scenario(NamedTuple):
    """The days ahead if something were otherwise.

    Args:
        name: ``as_is``, ``growth_stopped``, ``growth_doubled`` or ``levers_done``.
        what: In words.
        ahead: Label of the period to what its days ahead then cost.
    """

    name: str
    what: str
    ahead: Mapping[str, Range]


@dataclass(frozen=True, slots=True)
class Drivers:
    """What the spend of late is made of: requests a day x tokens a request x rate.

    Args:
        days: Last days that this is of.
        requests_per_day: Priced requests.
        growth_per_month: Growth of requests over the next 30 days, as the forecast has it.
        pusd_per_request: Cost, at the prices of the first day ahead.
        cost_growth_per_month: Growth of that.
        weekdays: Monday first: cost of the weekday over an average day.
        tokens_per_request: Meter to units a request.
        pusd_per_unit: Meter to cost of one unit.
    """

    days: int
    requests_per_day: float
    growth_per_month: float
    pusd_per_request: float
    cost_growth_per_month: float
    weekdays: tuple[float, ...]
    tokens_per_request: Mapping[str, float]
    pusd_per_unit: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Give the drivers as a document."""
        return {
            "days": self.days,
            "requests_per_day": self.requests_per_day,
            "growth_per_month": self.growth_per_month,
            "usd_per_request": self.pusd_per_request / 1e12,
            "cost_growth_per_month": self.cost_growth_per_month,
            "weekdays": list(self.weekdays),
            "meters": {
                name: {"units_per_request": units, "usd_per_million": self.pusd_per_unit[name] / 1e6}
                for name, units in self.tokens_per_request.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Track:
    """One owner's days ahead.

    Args:
        owner: Values of the dimensions; empty for the whole.
        mids: pUSD a day.
        spent: Day to pUSD that was spent, before them.
        learned: How sums of them may be off; None where the owner has too short a past for an interval.
    """

    owner: Owner
    mids: tuple[int, ...]
    spent: Mapping[date, int]
    learned: Learned | None

    def range(self, first: int, last: int) -> Range:
        """Sum days ahead.

        Args:
            first: First of them, from 0.
            last: Last one.

        Returns:
            The range of the sum.
        """
        mid = sum(self.mids[first : last + 1])
        if self.learned is None or not mid:
            return Range(None, mid, None)
        factor = self.learned.factor(first, last)
        return Range(round(mid / factor), mid, round(mid * factor))


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is going to be spent, as ranges. Requests alone: idle GPUs of your own are not in it.

    Args:
        by: Dimensions of owners.
        first: First day ahead.
        until: Last one.
        level: Share of intervals that are to hold what comes.
        periods: The whole, by period.
        owners: Owner to its periods; together their middles are the whole.
        scenarios: The whole if something were otherwise.
        drivers: What the spend of late is made of.
        arithmetic: Factors of the last period's middle; None where nothing is expected.
        changes: Prices that change in the days ahead.
        accuracy: How the past was forecast, by days ahead.
        history: First and last day of the past that it is learned from.
        tracks: The whole and the owners, day by day.
        notes: What else a reader must know.
        zone: Zone of days.
        card_version: Price book.
    """

    by: tuple[str, ...]
    first: date
    until: date
    level: float
    periods: tuple[Period, ...]
    owners: Mapping[Owner, tuple[Period, ...]]
    scenarios: tuple[Scenario, ...]
    drivers: Drivers
    arithmetic: Arithmetic | None
    changes: tuple[PriceAhead, ...]
    accuracy: tuple[Accuracy, ...]
    history: tuple[date, date]
    tracks: Mapping[Owner | None, Track]
    notes: tuple[str, ...]
    zone: str
    card_version: str

    def period(self, label: str) -> Period | None:
        """Find a period of the whole.

        Args:
            label: Such as ``2026Q4``.

        Returns:
            The period, or None.
        """
        return next((one for one in self.periods if one.label == label), None)

    def ahead(self, last: date, owner: Owner | None = None) -> Range | None:
        """Sum the days ahead until a day.

        Args:
            last: The day.
            owner: Whose; None for the whole.

        Returns:
            The range; None where the forecast does not go there or has no such owner.
        """
        track = self.tracks.get(owner)
        if track is None or last > self.until:
            return None
        return Range(0, 0, 0) if last < self.first else track.range(0, (last - self.first).days)

    def sentences(self) -> list[str]:
        """Say what it says, in plain lines.

        Returns:
            One sentence each: ranges, growth, prices ahead, how the past was forecast, notes.
        """
        said = [
            f"{one.label}: {said_range(one.total)}" + (f" ({shown(one.spent)} of it spent)" if one.spent else "")
            for one in self.periods
            if one.kind != "month"
        ]
        drivers = self.drivers
        said.append(
            f"{drivers.requests_per_day:,.0f} requests a day over the last {drivers.days} days, "
            f"{_growth(drivers.growth_per_month)} in the next 30 days; cost per request "
            f"{_growth(drivers.cost_growth_per_month)}"
        )
        if self.arithmetic is not None:
            said.append(self.arithmetic.text())
        said += [change_text(change) for change in self.changes]
        tested = [one for one in self.accuracy if one.coverage is not None]
        if tested:
            one = tested[-1]
            better = "better than" if one.mape < one.naive_mape else "no better than"
            said.append(
                f"{counted(one.origins, 'forecast')} of the log's own past, {one.days} days ahead: off by "
                f"{percent(one.mape, 1)} on average, {better} repeating the last week ({percent(one.naive_mape, 1)}); "
                f"{percent(one.coverage)} of {percent(self.level)} intervals held what came"
            )
        return [*said, *self.weak(), *self.notes]

    def weak(self) -> list[str]:
        """Say where the past would have been forecast better by repeating its last week.

        Returns:
            One sentence, or none where the model was closer at every horizon that was tested.
        """
        lost = [one for one in self.accuracy if one.mape >= one.naive_mape]
        if not lost:
            return []
        named = ", ".join(
            f"{one.days} days ahead {percent(one.naive_mape, 1)} against {percent(one.mape, 1)}" for one in lost
        )
        where = "at every horizon tested" if len(lost) == len(self.accuracy) else "at some horizons"
        return [f"on this log's past, repeating the last week would have been as close or closer {where}: {named}"]

    def as_dict(self) -> dict[str, Any]:
        """Give the document of ``tenfold forecast --json``.

        Returns:
            ``first_day, until, level, periods[], owners[], scenarios[], drivers, price_changes[], accuracy[], ...``.
        """
        return {
            "by": list(self.by),
            "first_day": self.first.isoformat(),
            "until": self.until.isoformat(),
            "zone": self.zone,
            "level": self.level,
            "label": "modelled",
            "periods": [one.as_dict() for one in self.periods],
            "owners": [
                {**dict(zip(self.by, owner, strict=True)), "periods": [one.as_dict() for one in periods]}
                for owner, periods in self.owners.items()
            ],
            "scenarios": [
                {"name": one.name, "what": one.what, "ahead_usd": {k: v.as_dict() for k, v in one.ahead.items()}}
                for one in self.scenarios
            ],
            "drivers": self.drivers.as_dict(),
            "arithmetic": self.arithmetic and self.arithmetic.as_dict(),
            "price_changes": [{**one._asdict(), "at": one.at.isoformat()} for one in self.changes],
            "accuracy": [
                {
                    "days_ahead": one.days,
                    "forecasts": one.origins,
                    "coverage": one.coverage,
                    "mape": one.mape,
                    "naive_mape": one.naive_mape,
                }
                for one in self.accuracy
            ],
            "history": [day.isoformat() for day in self.history],
            "notes": list(self.notes),
            "card_version": self.card_version,
            "sentences": self.sentences(),
        }

    def __repr__(self) -> str:
        """Say what it is in one line."""
        return f"<Forecast {self.first} to {self.until}: {said_range(self.periods[-1].total)}>"

    def _repr_html_(self) -> str:
        """Show the months ahead and what they rest on in a notebook."""
        columns = [Column("period", "period"), Column("spent", "spent (USD)", "pusd")]
        columns += [Column(end, f"{end} (USD)", "pusd") for end in Range._fields]
        rows = [(one.label, one.spent, *one.total) for one in self.periods]
        table = grid("forecast", f"Expected spend, {percent(self.level)} ranges", columns, rows)
        return card(f"Forecast {self.first} to {self.until}", map(sentence, self.sentences()), table)


def said_range(found: Range) -> str:
    """Write a range for people.

    Args:
        found: The range.

    Returns:
        Text such as ``$1,200 ($1,050 to $1,380)``; cents below a hundred dollars.
    """
    decimals = 0 if found.mid >= 100 * 10**12 else 2
    if found.low is None or found.high is None:
        return f"{shown(found.mid, decimals)} (no interval)"
    return f"{shown(found.mid, decimals)} ({shown(found.low, decimals)} to {shown(found.high, decimals)})"


def change_text(change: PriceAhead) -> str:
    """Say a price change ahead.

    Args:
        change: The change.

    Returns:
        One sentence without a full stop.
    """
    what = " ".join(part for part in (change.model, change.tier) if part)
    if change.ratio is None:
        return f"price of {what}: none in the book from {change.at:%Y-%m-%d} on: taken to cost what it does"
    status = f" ({change.status})" if change.status else ""
    return f"price of {what}: {_growth(change.ratio - 1)} from {change.at:%Y-%m-%d} on{status}"


def owner_text(by: Sequence[str], owner: Owner) -> str:
    """Name an owner.

    Args:
        by: The dimensions.
        owner: Their values.

    Returns:
        The values, those that are absent in words.
    """
    return ", ".join(map(name_of, by, owner))


def days_between(first: date, last: date) -> Iterable[date]:
    """List days, both ends in."""
    return (first + n * DAY for n in range((last - first).days + 1))


def _growth(share: float) -> str:
    if abs(share) < 0.0005:
        return "unchanged"
    return f"{'+' if share > 0 else '-'}{percent(abs(share), 1)}"
