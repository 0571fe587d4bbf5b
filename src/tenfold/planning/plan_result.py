"""The plan as a result: what to do in which order, what it saves, and the JSON document of ``tenfold levers``."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from tenfold import tables
from tenfold.display import counted, nothing_priced, percent, sentence
from tenfold.levers import Estimate, Saving
from tenfold.money import PUSD_PER_USD, read_usd, shown, usd_text
from tenfold.planning.tracking import Promised

if TYPE_CHECKING:
    from datetime import date

    from tenfold.charts.theme import AnyChart
    from tenfold.levers.assume import Assumptions
    from tenfold.slo import Slo

SCHEMA_VERSION = 1
# What low and high of every saving are, for people and scripts.
INTERVAL = (
    "low to high: where 95 % of windows like this one lie (its days, and its groups of users, drawn again), so how "
    "much such a window varies, volume included; widened by the ends of assumed ranges, never above what is touched"
)
_BOUND = {
    "short_log": "The log is too short for an interval: load ten days or more with requests.",
    "no_spend": "Nothing was spent.",
}


# Statuses of levers that have a figure.
_FIGURES = ("ok", "excluded")
# By status, the most telling first; the first one is a lever that is ok and saves, only not enough.
_WHY_NONE = {
    "not_worth_it": "none pays for its effort: {}",
    "excluded": "left out: {}",
    "vetoed": "the service levels forbid {}",
    "ok": "nothing to save with {}",
    "nothing_eligible": "no eligible request for {}",
    "not_measurable": "not measurable: {}",
    "no_assumption": "nothing assumed yet for {}: write an assumptions file (--assume)",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The best feasible set of levers on one log, and every lever's own estimate.

    Args:
        estimates: Every lever: those in the plan first, in its order, then the others by what they save alone.
        levers: Levers of the plan in roadmap order.
        roadmap: (Lever, marginal saving in pUSD) in that order; the marginals sum to ``saving.mid``.
        saving: Joint saving of the plan, re-priced.
        joint_all_pusd: Joint saving of all levers that are ok, of which last-in and Shapley values are shares.
        spend_pusd: The bill of the window.
        bound_by: What bounds the fold: ``short_log``, ``no_spend``, or the largest cost that is left.
        payback_days: Days until the plan has paid for its work, at the middle saving; None where nothing is saved.
        first_day: First day of the window; None for a log without times.
        last_day: Last day of the window.
        days: Days of the window.
        requests: Billed requests of the window.
        unpriced_requests: Those of them without a price, in no figure here.
        assumed: The assumptions.
        slo: The service levels.
        card_version: Hash of the price files.
        log_hash: Hash of the loaded files.
        zone: Zone that days are cut in.
        notes: What the assumptions or service levels name that the log does not have.
        promised: What the plan promises of the provider's bill by feature, to be tracked in a later log.
    """

    estimates: tuple[Estimate, ...]
    levers: tuple[str, ...]
    roadmap: tuple[tuple[str, int], ...]
    saving: Saving
    joint_all_pusd: int
    spend_pusd: int
    bound_by: str
    payback_days: float | None
    first_day: date | None
    last_day: date | None
    days: int
    requests: int
    unpriced_requests: int
    assumed: Assumptions
    slo: Slo
    card_version: str
    log_hash: str
    zone: str = "UTC"
    notes: tuple[str, ...] = ()
    promised: Promised = field(default_factory=Promised)

    @property
    def is_unpriced(self) -> bool:
        """Whether no billed request has a price, and nothing is charged beside: there is no spend then, not none."""
        return not self.spend_pusd and nothing_priced(self.requests, self.unpriced_requests)

    @property
    def fold(self) -> float | None:
        """Spend before over spend after: 10 means a tenth is left, None that nothing is; 1 for an empty plan."""
        after = self.spend_pusd - (self.saving.mid or 0)
        if not self.saving.mid:
            return 1.0
        return float(Fraction(self.spend_pusd, after)) if after > 0 else None

    @property
    def is_evaluable(self) -> bool:
        """Whether anything asked for can be measured with the data at hand."""
        # a lever that waits for its assumptions and shows nothing meanwhile measures nothing
        waits = [one.status == "no_assumption" and one.addressed_pusd is None for one in self.estimates]
        return any(one.status != "not_measurable" and not wait for one, wait in zip(self.estimates, waits, strict=True))

    @property
    def charges_pusd(self) -> int:
        """Charges that are no provider's (lookups, hosting, training): the promises less these are the saving."""
        promised = sum(read_usd(row["saving_usd"]) for row in self.promised.rows)
        return promised - (self.saving.mid or 0) if self.promised.rows else 0

    def as_dict(self) -> dict[str, Any]:
        """Give the plan the keys that scripts rely on.

        Returns:
            The document of ``tenfold levers --json``: money as decimal strings over the log's window.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "spend_usd": None if self.is_unpriced else usd_text(self.spend_pusd),
            "window": {
                "first_day": None if self.first_day is None else self.first_day.isoformat(),
                "last_day": None if self.last_day is None else self.last_day.isoformat(),
                "days": self.days,
                "zone": self.zone,
            },
            "requests": self.requests,
            "unpriced_requests": self.unpriced_requests,
            "levers": [one.as_dict() for one in self.estimates],
            "joint_all_usd": usd_text(self.joint_all_pusd),
            "plan": {
                "levers": list(self.levers),
                "roadmap": [{"name": name, "marginal_usd": usd_text(pusd)} for name, pusd in self.roadmap],
                "saving_usd": self.saving.as_dict(),
                "fold": self.fold,
                "why_none": self.why_none(),
                "bound_by": self.bound_by,
                "payback_days": self.payback_days,
                "promised": list(self.promised.rows),
                "prices_at": self.promised.prices_at,
                "charges_usd": usd_text(self.charges_pusd),
            },
            "assumptions": self.assumed.as_dict(),
            "slo": self.slo.as_dict(),
            "notes": list(self.notes),
            "interval": INTERVAL,
            "card_version": self.card_version,
            "log_hash": self.log_hash,
        }

    def headline(self) -> str:
        """Say what matters first: spend, what the plan saves, the fold, and what stands between it and ten.

        Returns:
            Two lines of text, and one for each note.
        """
        if self.is_unpriced:
            first = f"None of the {counted(self.requests, 'request')} has a price, so there is no plan: see coverage."
            return "\n".join((first, *self._noted()))
        decimals = 0 if self.spend_pusd >= 1_000 * PUSD_PER_USD else 2
        spend = f"Spend {shown(self.spend_pusd, decimals)} in {counted(self.days, 'day')}{self._without_price()}."
        low, mid, high = self.saving
        if not self.levers:
            first = f"{spend} Best feasible plan: no lever. {sentence(self.why_none() or '')}."
        else:
            ends = "" if low is None else f" [{shown(low, decimals)} to {shown(high or 0, decimals)}]"
            fold = "nothing is left" if self.fold is None else f"fold {self.fold:.2f}"
            first = f"{spend} Best feasible plan saves {shown(mid or 0, decimals)}{ends}: {fold}."
        reached = Fraction(mid or 0, self.spend_pusd) if self.spend_pusd else None
        bound = _BOUND.get(self.bound_by, f"The largest cost left is {self.bound_by}.")
        second = f"For 10x a plan would need 90 %; this one has {percent(reached)}. {bound}"
        return "\n".join((first, second, *self._noted()))

    def _without_price(self) -> str:
        if not self.unpriced_requests:
            return ""
        share = percent(Fraction(self.unpriced_requests, self.requests), 1)
        return (
            f", without {self.unpriced_requests:,} of {counted(self.requests, 'request')} ({share}) that have no price"
        )

    def _noted(self) -> list[str]:
        return [f"Note: {note}" for note in self.notes]

    def why_none(self) -> str | None:
        """Say why the plan is empty: for each status that its levers have, in its own words.

        Returns:
            Text such as ``"nothing assumed yet for batch_api: write an assumptions file (--assume)"``; None where the
            plan has a lever.
        """
        if self.levers:
            return None
        if not self.estimates:
            return "no lever was looked at"
        names: dict[str, list[str]] = {}
        for one in self.estimates:
            gains = one.status == "ok" and (one.alone_pusd or 0) > 0
            names.setdefault("not_worth_it" if gains else one.status, []).append(one.name)
        said = [text.format(", ".join(names[status])) for status, text in _WHY_NONE.items() if status in names]
        return "; ".join(said)

    def frame(self) -> pl.DataFrame:
        """Give the plan as steps from the bill to what is left of it, for charts.

        Returns:
            ``step`` and ``pusd`` (Decimal): first the spend, then each lever's marginal saving in roadmap order.
        """
        rows = [("spend", self.spend_pusd), *self.roadmap]
        return pl.DataFrame(rows, schema={"step": pl.String, "pusd": pl.Decimal(38, 0)}, orient="row")

    def waterfall(self) -> AnyChart:
        """Draw the plan: the bill, what each lever takes off it in order, what is left.

        Returns:
            An Altair chart; USD over the window.

        Raises:
            MissingExtraError: Altair is not installed.
        """
        from tenfold import charts

        return charts.waterfall(self.frame())

    def __repr__(self) -> str:
        """Say what it is in one line."""
        names = ", ".join(self.levers) or "no lever"
        if self.is_unpriced:
            return f"<Plan no lever: none of {counted(self.requests, 'request')} has a price>"
        saved, spend = shown(self.saving.mid or 0), shown(self.spend_pusd)
        return f"<Plan {names}: saves {saved} of {spend}, bound by {self.bound_by}>"

    def _repr_html_(self) -> str:
        """Show the headline and the levers that have a figure in a notebook; the others in a line."""
        document = self.as_dict()
        marginals = {step["name"]: step["marginal_usd"] for step in document["plan"]["roadmap"]}
        levers = [one for one in document["levers"] if one["status"] in _FIGURES]
        others = [
            f"{one.name} ({one.status.replace('_', ' ')})" for one in self.estimates if one.status not in _FIGURES
        ]
        title, *lines = self.headline().splitlines()
        lines += [f"No figure: {', '.join(others)}"] if others else []
        caption = "Levers (USD over the window)"
        table = [tables.levers(levers, marginals, name="plan-levers", caption=caption)] if levers else []
        return tables.card(title, lines, *table)
