"""Budgets and burn: what was meant to be spent, what is, and where that leads at the pace so far.

Budget burn is spend over (budget x elapsed share) (FinOps practice, ``reference/formats.md`` C1); alerts at 50, 80 and
100 % of the budget are its usual soft limits (C2). A month's budget is spread evenly over its days in whole picodollars
(largest remainder), so that every part of a month counts by days and parts sum to the month exactly.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import date, timedelta
from fractions import Fraction
from functools import cache
from itertools import accumulate
from pathlib import Path
from zoneinfo import ZoneInfo

from tenfold.analysis.budgets.file import WHOLE, Budget, Budgets, next_month, read_budgets
from tenfold.analysis.budgets.lines import Alert, Burn, Line, Range
from tenfold.display import counted, name_of, percent, sentence, small_dollars
from tenfold.errors import AssumptionError, near
from tenfold.ledger import Ledger, grain_text
from tenfold.ledger.span import span
from tenfold.money import share_out

__all__ = [
    "ALERTS",
    "WHOLE",
    "Alert",
    "Budget",
    "Budgets",
    "Burn",
    "Line",
    "Range",
    "burn",
    "read_budgets",
    "sentences",
]

ALERTS = (0.5, 0.8, 1.0)
_NAMED = 3
_Spent = Mapping[date, int]


def burn(
    ledger: Ledger,
    budgets: Budgets | str | Path,
    *,
    through: date | None = None,
    alerts: Sequence[float] = ALERTS,
    ahead: Mapping[str, Range] | None = None,
) -> Burn:
    """Hold spend against budgets over a ledger's window.

    Args:
        ledger: The ledger; its window says for which days, such as a quarter's.
        budgets: The budgets, or their file; owners are teams, ``*`` is the whole.
        through: Last day that is over; by default the last day of the window that the log reaches.
        alerts: Shares of a budget whose crossing is told.
        ahead: Owner (``*`` for the whole) to what is expected of the window's days after ``through``, in pUSD.

    Returns:
        The burn.

    Raises:
        AssumptionError: The window has no bounds, or the file cannot be used.
    """
    window = ledger.window
    if not isinstance(budgets, Budgets):
        budgets = read_budgets(budgets)
    if window.since is None or window.until is None:
        raise AssumptionError("a budget is held against a window: give its first and last day, or a quarter")
    zone = ZoneInfo(window.zone)
    days = window.dates(())
    reached = span(ledger)
    through = through or (None if reached is None else min(reached.last, days[-1]))
    over = () if through is None else tuple(day for day in days if day <= through)
    spent = _spent(ledger, over)
    own = {one.owner for one in budgets.rows} - {WHOLE}
    shares = tuple(Fraction(str(share)) for share in alerts)
    made = _Making(budgets, days, over, shares, dict(ahead or {}))
    owners = [line for owner in sorted(own) if (line := made.line(owner, spent.get(owner, {}))) is not None]
    owners.sort(key=lambda line: (-line.budget, line.owner))
    everyone = _summed(spent.values())
    charges = ledger.charges_pusd
    has_whole = any(one.owner == WHOLE for one in budgets.rows)
    total = made.line(WHOLE, everyone, charges) if has_whole else made.together(owners, everyone, charges)
    names = [WHOLE] if has_whole else []
    months = [line for name in (*names, *(line.owner for line in owners))
              for line in made.monthly(name, everyone if name == WHOLE else spent.get(name, {}))]  # fmt: skip
    without = [
        (owner, month, pusd)
        for owner, by_day in spent.items()
        for month, pusd in _by_month(by_day).items()
        if pusd and made.month(owner, month) is None
    ]
    notes: list[str] = []
    if has_whole and owners:
        gap = sum(line.budget for line in owners) - (total.budget if total else 0)
        if gap:
            side = "more" if gap > 0 else "less"
            notes.append(f"the owners' budgets together are {small_dollars(abs(gap))} {side} than that of the whole")
    if not has_whole and total is not None:
        notes += _ungranted(without, {one.month for one in budgets.rows})
    if charges and total is not None:
        notes.append(f"the whole holds {small_dollars(charges)} of idle GPUs, which are in no owner's line")
    if reached is not None and through == reached.last and through in reached.partial:
        notes.append(f"{through} is counted as a whole day; the log ends within it")
    if over and window.since.astimezone(zone).date() < over[0]:
        notes.append(f"the log begins on {over[0]}")
    outside = sum(1 for one in budgets.rows if not any(day.replace(day=1) == one.month for day in days))
    return Burn(
        total,
        tuple(owners),
        tuple(months),
        tuple(sorted(without, key=lambda one: (-one[2], one[0], one[1]))),
        tuple(line.owner + near(line.owner, set(spent) - own) for line in owners if not line.spend and line.days),
        outside,
        through if over else None,
        budgets.file,
        tuple(notes),
    )


class _Making:
    """What lines are made of: the budgets by owner and day."""

    def __init__(
        self,
        budgets: Budgets,
        days: Sequence[date],
        over: Sequence[date],
        alerts: tuple[Fraction, ...],
        ahead: dict[str, Range],
    ) -> None:
        self.days = days
        self.over = frozenset(over)
        self.alerts = alerts
        self.ahead = ahead
        self._months = {(one.owner, one.month): one.pusd for one in budgets.rows}
        self.daily = cache(self._daily)

    def month(self, owner: str, month: date) -> int | None:
        """Give the budget of a month."""
        return self._months.get((owner, month))

    def _daily(self, owner: str) -> dict[date, int]:
        made: dict[date, int] = {}
        for month in dict.fromkeys(day.replace(day=1) for day in self.days):
            budget = self.month(owner, month)
            if budget is not None:
                count = (next_month(month) - month).days
                parts = share_out(budget, [1] * count)
                made |= {month + timedelta(days=n): part for n, part in enumerate(parts)}
        inside = frozenset(self.days)
        return {day: part for day, part in made.items() if day in inside}

    def line(self, owner: str, spent: _Spent, charges: int = 0) -> Line | None:
        """Hold an owner's spend against its budget in the window."""
        daily = self.daily(owner)
        return self._line(owner, "total", daily, spent, self._ahead(owner, daily), charges)

    def _ahead(self, owner: str, daily: Mapping[date, int]) -> Range | None:
        """Take what is expected of the days ahead, where all of them have a budget; else the pace so far goes on."""
        is_of_all = all(day in daily for day in self.days if day not in self.over)
        return self.ahead.get(owner) if is_of_all else None

    def monthly(self, owner: str, spent: _Spent) -> Iterable[Line]:
        """Do so month by month."""
        daily = self.daily(owner)
        for month in sorted({day.replace(day=1) for day in daily}):
            part = {day: budget for day, budget in daily.items() if day.replace(day=1) == month}
            line = self._line(owner, grain_text("month", month) or "", part, spent, None, 0)
            if line is not None:
                yield line

    def together(self, owners: Sequence[Line], everyone: _Spent, charges: int) -> Line | None:
        """Hold all spend of the months that owners' budgets are for against their sum."""
        daily = _summed(self.daily(line.owner) for line in owners)
        return self._line(WHOLE, "total", daily, everyone, self._ahead(WHOLE, daily), charges)

    def _line(
        self, owner: str, label: str, daily: dict[date, int], spent: _Spent, ahead: Range | None, charges: int
    ) -> Line | None:
        if not daily:
            return None
        order = sorted(daily)
        over = [day for day in order if day in self.over]
        budget = sum(daily.values())
        running = list(accumulate(spent.get(day, 0) for day in over))
        crossed = tuple(
            Alert(
                share,
                next((day for day, sum_ in zip(over, running, strict=True) if sum_ >= max(share * budget, 1)), None),
            )
            for share in self.alerts
        )
        return Line(
            owner,
            label,
            order[0],
            order[-1],
            budget,
            sum(daily[day] for day in over),
            (running[-1] if running else 0) + charges,
            len(over),
            len(order),
            crossed,
            ahead,
        )


def _spent(ledger: Ledger, over: Sequence[date]) -> dict[str, dict[date, int]]:
    """Sum by team and day; what no team owns has the name that it is shown under."""
    frame = ledger.composition(["day", "team"]).frame.select("day", "team", "cost_pusd")
    inside = frozenset(over)
    made: dict[str, dict[date, int]] = {}
    for day, team, cost in frame.rows():
        if day in inside:
            by_day = made.setdefault(name_of("team", team), {})
            by_day[day] = by_day.get(day, 0) + int(cost)
    return made


def _ungranted(without: Iterable[tuple[str, date, int]], months: Container[date]) -> list[str]:
    """Name the spend that is in the whole and in no owner's budget."""
    found = [(owner, pusd) for owner, month, pusd in without if month in months]
    if not found:
        return []
    held = f"there is no budget for the whole ({WHOLE}), so all spend is held against the owners' budgets together"
    pusd = small_dollars(sum(one[1] for one in found))
    return [f"{held}; {pusd} of it has no budget ({_listed(sorted({one[0] for one in found}))})"]


def _listed(owners: Sequence[str]) -> str:
    more = len(owners) - _NAMED
    return ", ".join(owners[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _summed(parts: Iterable[Mapping[date, int]]) -> dict[date, int]:
    made: dict[date, int] = {}
    for part in parts:
        for day, pusd in part.items():
            made[day] = made.get(day, 0) + pusd
    return made


def _by_month(spent: _Spent) -> dict[date, int]:
    made: dict[date, int] = {}
    for day, pusd in spent.items():
        month = day.replace(day=1)
        made[month] = made.get(month, 0) + pusd
    return made


def sentences(found: Burn) -> list[str]:
    """Say what a burn says, the most urgent first.

    Args:
        found: The burn.

    Returns:
        One sentence each.
    """
    said: list[str] = []
    for line in found.lines:
        who = "The whole" if line.owner == WHOLE else line.owner
        if not line.budget:
            said += [f"{who} has a budget of $0 and spent {small_dollars(line.spend)}"] if line.spend else []
            continue
        spent = [one for one in line.alerts if one.day is not None]
        if spent:
            said.append(f"{who} reached {percent(spent[-1].share)} of its budget on {spent[-1].day}")
        if line.overrun is not None and line.overrun > 0:
            over = f"{small_dollars(line.overrun)} over its budget"
            by = "by the forecast" if line.ahead is not None else "at the pace so far"
            said.append(f"{who} ended {over}" if line.days == line.all_days else f"{who} ends {over} {by}")
    if found.without_budget:
        pusd = sum(one[2] for one in found.without_budget)
        owners = list(dict.fromkeys(one[0] for one in found.without_budget))
        who = f"{counted(len(owners), 'owner')}: {_listed(owners)}"
        said.append(f"{small_dollars(pusd)} of spend has no owner's budget ({who})")
    if found.without_spend:
        said.append(f"No spend so far: {', '.join(found.without_spend)}")
    return [*said, *map(sentence, found.notes)]
