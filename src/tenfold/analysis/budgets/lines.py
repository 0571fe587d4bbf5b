"""What a burn is made of: owners' budgets against spend, as lines of exact picodollars."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, NamedTuple

from tenfold.analysis.budgets.file import WHOLE
from tenfold.display import percent, sentence
from tenfold.ledger import grain_text
from tenfold.money import divided, shown, usd_text
from tenfold.tables import Column, card, grid


class Alert(NamedTuple):
    """A share of a budget, and when spend reached it.

    Args:
        share: The share, 1 being all of the budget.
        day: First day on which spend had reached it; None where it has not.
    """

    share: Fraction
    day: date | None


class Range(NamedTuple):
    """What is expected of days to come, in pUSD."""

    low: int
    mid: int
    high: int


@dataclass(frozen=True, slots=True)
class Line:
    """One owner's budget against spend, over the months that have a budget. Money in pUSD.

    Args:
        owner: Team; ``*`` for the whole.
        label: ``total``, or the month as ``2026-07``.
        first: First day of what the budget is for.
        last: Last one.
        budget: For all of it.
        elapsed_budget: For the days that are over.
        spend: On those days.
        days: Days that are over.
        all_days: Days that the budget is for.
        alerts: When each share of the budget was reached.
        ahead: What is expected of the days to come, where a forecast was given; else the pace so far goes on.
    """

    owner: str
    label: str
    first: date
    last: date
    budget: int
    elapsed_budget: int
    spend: int
    days: int
    all_days: int
    alerts: tuple[Alert, ...]
    ahead: Range | None = None

    @property
    def burn_ratio(self) -> Fraction | None:
        """Spend over the budget of the days that are over: above 1 is too fast; None where that budget is 0."""
        return Fraction(self.spend, self.elapsed_budget) if self.elapsed_budget else None

    @property
    def used_ratio(self) -> Fraction | None:
        """Spend over the whole budget."""
        return Fraction(self.spend, self.budget) if self.budget else None

    @property
    def projected(self) -> Range | None:
        """Where it ends: spend and what is expected ahead; the pace so far without a forecast, None without a day."""
        if self.ahead is not None:
            return Range(*(self.spend + part for part in self.ahead))
        if not self.days:
            return None
        return Range(*[divided(self.spend * self.all_days, self.days)] * 3)

    @property
    def overrun(self) -> int | None:
        """Projected end over the budget, in pUSD; negative where less is spent."""
        return None if self.projected is None else self.projected.mid - self.budget

    def as_dict(self) -> dict[str, Any]:
        """Give the line as a document.

        Returns:
            Money as decimal strings, ratios as numbers.
        """
        ends = self.projected
        return {
            "owner": self.owner,
            "period": self.label,
            "first_day": self.first.isoformat(),
            "last_day": self.last.isoformat(),
            "budget_usd": usd_text(self.budget),
            "elapsed_budget_usd": usd_text(self.elapsed_budget),
            "spend_usd": usd_text(self.spend),
            "days": self.days,
            "all_days": self.all_days,
            "burn_ratio": None if self.burn_ratio is None else float(self.burn_ratio),
            "used_ratio": None if self.used_ratio is None else float(self.used_ratio),
            "projected_usd": None
            if ends is None
            else {name: usd_text(part) for name, part in zip(Range._fields, ends, strict=True)},
            "projected_by": None if ends is None else "forecast" if self.ahead is not None else "pace",
            "overrun_usd": usd_text(self.overrun),
            "alerts": [{"share": float(one.share), "day": one.day and one.day.isoformat()} for one in self.alerts],
        }


@dataclass(frozen=True, slots=True)
class Burn:
    """Budgets against spend over a window.

    Args:
        total: The whole: the budget for ``*`` against all spend, or without one the owners' budgets together against
            all spend of their months, so that spend without a budget counts as over.
        owners: One line an owner with a budget, the largest budget first.
        months: The same by owner and month.
        without_budget: Owner, month and pUSD of spend that no owner's budget is for, dearest first.
        without_spend: Owners with a budget and no spend in its months, with the near match.
        outside: Budgets for other months than the window's.
        through: Last day that is counted as over; None where nothing of the window is.
        file: Where the budgets come from.
        notes: What else a reader must know.
    """

    total: Line | None
    owners: tuple[Line, ...]
    months: tuple[Line, ...]
    without_budget: tuple[tuple[str, date, int], ...]
    without_spend: tuple[str, ...]
    outside: int
    through: date | None
    file: str
    notes: tuple[str, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The whole and the owners."""
        return (*([] if self.total is None else [self.total]), *self.owners)

    @property
    def is_summed(self) -> bool:
        """Whether the whole is the owners' budgets together, as none is for ``*``."""
        return self.total is not None and all(line.owner != WHOLE for line in self.months)

    @property
    def ungranted(self) -> int:
        """Spend in the whole that no owner's budget is for, in pUSD; 0 where the whole has a budget of its own."""
        if self.total is None or not self.is_summed:
            return 0
        return self.total.spend - sum(line.spend for line in self.owners)

    def as_dict(self) -> dict[str, Any]:
        """Give the burn as a document.

        Returns:
            ``total, owners[], months[], without_budget[], without_spend[], through, file, notes[]``.
        """
        return {
            "total": None if self.total is None else self.total.as_dict(),
            "owners": [line.as_dict() for line in self.owners],
            "months": [line.as_dict() for line in self.months],
            "without_budget": [
                {"owner": owner, "month": grain_text("month", month), "spend_usd": usd_text(pusd)}
                for owner, month, pusd in self.without_budget
            ],
            "without_spend": list(self.without_spend),
            "through": self.through and self.through.isoformat(),
            "file": self.file,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        """Say what it is in one line."""
        through = "no day over yet" if self.through is None else f"through {self.through}"
        if self.total is None:
            return f"<Burn {through}: no budget>"
        spend, budget = shown(self.total.spend), shown(self.total.budget)
        return f"<Burn {through}: {spend} of {budget} ({percent(self.total.used_ratio)}), {len(self.owners)} owners>"

    def _repr_html_(self) -> str:
        """Show budgets against spend in a notebook."""
        columns = [Column("owner", "owner"), Column("budget", "budget (USD)", "pusd")]
        columns += [Column("spend", "spend (USD)", "pusd"), Column("used", "used", "ratio")]
        columns += [Column("ends", "projected (USD)", "pusd"), Column("reached", "reached on", "date")]
        rows = [
            (
                "the whole" if line.owner == WHOLE else line.owner,
                line.budget,
                line.spend,
                line.used_ratio,
                line.projected and line.projected.mid,
                ", ".join(f"{percent(one.share)} {one.day}" for one in line.alerts if one.day) or None,
            )
            for line in self.lines
        ]
        through = "no day of it is over yet" if self.through is None else f"through {self.through}"
        table = grid("burn", "By owner", columns, rows)
        return card(f"Budgets against spend, {through}", map(sentence, self.notes), table)
