"""A lever's answer: money with an interval, what kind of figure it is, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tenfold.levers.base import Advice, Label, Status
from tenfold.money import shown, usd_text
from tenfold.tables import Column, card, grid


class Saving(NamedTuple):
    """A saving over the log's own window, in pUSD; negative where a change costs more.

    Args:
        low: Lower of the interval's end and the pessimistic scenario; None where the log is too short for one.
        mid: Point estimate on the whole log; None where nothing can be measured.
        high: Upper of the interval's other end and the optimistic scenario.
    """

    low: int | None
    mid: int | None
    high: int | None

    def at_most(self, pusd: int | None) -> Saving:
        """Bound the upper end: no saving exceeds the spend that it addresses.

        Args:
            pusd: That spend; None where it is not known.

        Returns:
            The saving, its upper end no higher than that, and no lower than its middle.
        """
        if pusd is None or self.high is None or self.mid is None:
            return self
        return self._replace(high=max(self.mid, min(self.high, pusd)))

    def as_dict(self) -> dict[str, str | None]:
        """Give the saving as decimal strings in USD.

        Returns:
            ``low``, ``mid``, ``high``.
        """
        return {"low": usd_text(self.low), "mid": usd_text(self.mid), "high": usd_text(self.high)}


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one lever is worth on one log, alone and beside the others.

    Args:
        name: Lever.
        number: Its number among the ten.
        label: exact, replayed, measured, modelled or ceiling.
        status: ok, no_assumption, nothing_eligible, vetoed, excluded or not_measurable.
        reason: Why it is not ok; empty where it is.
        addressed_pusd: What the requests it changes cost now.
        saving: Its saving on its own; ``mid`` equals ``alone_pusd``.
        alone_pusd: Re-priced with this lever only.
        last_pusd: What it adds to all the other levers; None unless it is ok.
        shapley_pusd: Its share of all levers together, whatever the order; None unless it is ok.
        as_billed_pusd: What was already saved or lost; never ranked or added.
        per_month_pusd: Projection of ``mid``; None below seven days.
        baseline: What it is measured against.
        rule_of_thumb: The rule that people use instead, and what it leaves out.
        assumptions: Each value with unit and source.
        conflicts: Levers that want the same traffic.
        evidence: Measured facts with the SQL step that gave each.
        effort_days: Working days to put it in place.
        risk: low, medium or high.
        reversible: Whether it can be taken back.
        slo_effect: What it does to latency, or unknown.
        advice: What to do first, how to verify, how to undo.
        left_out: Traffic that it may not touch, by feature, each with a ``text`` for people.
        holdout_pusd: Saving of a searched policy on the later third of the log, on which it was not chosen.
    """

    name: str
    number: int
    label: Label
    status: Status
    reason: str
    addressed_pusd: int | None
    saving: Saving
    alone_pusd: int | None
    last_pusd: int | None
    shapley_pusd: int | None
    as_billed_pusd: int | None
    per_month_pusd: int | None
    baseline: str
    rule_of_thumb: str
    assumptions: tuple[dict[str, Any], ...]
    conflicts: tuple[str, ...]
    evidence: tuple[dict[str, Any], ...]
    effort_days: float
    risk: str
    reversible: bool
    slo_effect: str
    advice: Advice
    left_out: tuple[dict[str, Any], ...] = ()
    holdout_pusd: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Give the estimate the keys that scripts rely on.

        Returns:
            One JSON object of ``levers[]``; money as decimal strings, None where unknown.
        """
        return {
            "name": self.name,
            "number": self.number,
            "label": self.label,
            "status": self.status,
            "reason": self.reason,
            "addressed_usd": usd_text(self.addressed_pusd),
            "saving_usd": self.saving.as_dict(),
            "alone_usd": usd_text(self.alone_pusd),
            "last_usd": usd_text(self.last_pusd),
            "shapley_usd": usd_text(self.shapley_pusd),
            "as_billed_usd": usd_text(self.as_billed_pusd),
            "per_month_usd": usd_text(self.per_month_pusd),
            "holdout_usd": usd_text(self.holdout_pusd),
            "baseline": self.baseline,
            "rule_of_thumb": self.rule_of_thumb,
            "assumptions": list(self.assumptions),
            "conflicts": list(self.conflicts),
            "evidence": list(self.evidence),
            "left_out": list(self.left_out),
            "effort_days": self.effort_days,
            "risk": self.risk,
            "reversible": self.reversible,
            "slo_effect": self.slo_effect,
            **self.advice._asdict(),
        }

    def _repr_html_(self) -> str:
        """Show in a notebook what it saves, what that rests on and what to do."""
        saves = "no figure" if self.saving.mid is None else f"saves {shown(self.saving.mid)} alone"
        if self.saving.low is not None and self.saving.high is not None:
            saves += f" [{shown(self.saving.low)} to {shown(self.saving.high)}]"
        said = {
            "Why": self.reason,
            "First": self.advice.first_action,
            "Verify": self.advice.verify,
            "Undo": self.advice.undo,
            "Latency": self.slo_effect,
        }
        columns = [Column("assumed", "assumed"), Column("value", "value, unit and source")]
        rows = [(one["name"], f"{one['value']} ({one['unit']}); {one['source']}") for one in self.assumptions]
        table = [grid("assumed", "What it assumes", columns, rows)] if rows else []
        title = f"{self.name} ({self.label}, {self.status.replace('_', ' ')}): {saves}"
        return card(title, [f"{name}: {text}" for name, text in said.items() if text], *table)
