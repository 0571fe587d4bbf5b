"""Each lever's own estimate: what it found on the log, with the money that re-pricing gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tenfold.levers import Estimate, Judged, Lever, Look, Saving
from tenfold.levers.assume import Assumptions, described
from tenfold.levers.base import Meeting, Status
from tenfold.money import PUSD_PER_USD, shown
from tenfold.planning.intervals import MIN_DAYS
from tenfold.planning.portfolio import Portfolio

_PUSD_PER_CENT = PUSD_PER_USD // 100
_UNTOUCHED: tuple[Status, ...] = ("vetoed", "nothing_eligible", "no_assumption")
_BASELINE = "the log as billed, at the prices in force when each request ran"


@dataclass(frozen=True, slots=True)
class Standing:
    """What the plan decided about the levers.

    Args:
        left_out: Lever to the reason why it stays out of every plan.
        best: Levers of the plan.
        last: What each lever adds to all the others, in pUSD.
        shapley: Each lever's share of all of them, in pUSD.
    """

    left_out: Mapping[str, str]
    best: frozenset[str]
    last: Mapping[str, int]
    shapley: Mapping[str, int]


def left_out(assumed: Assumptions, names: Sequence[str]) -> dict[str, str]:
    """Say which levers the user wants in no plan.

    Args:
        assumed: The assumptions.
        names: The levers.

    Returns:
        Lever to reason.
    """
    reasons: dict[str, str] = {}
    for name in names:
        if name in assumed.plan.exclude:
            reasons[name] = "left out by [plan] exclude"
        elif assumed.plan.include is not None and name not in assumed.plan.include:
            reasons[name] = "left out by [plan] include, which does not name it"
    return reasons


def giving_way(portfolio: Portfolio) -> dict[str, str]:
    """Say which levers lost all their traffic to another that saves more of it.

    Args:
        portfolio: The levers on this log.

    Returns:
        Lever to reason.
    """
    return {name: f"shares its traffic with {rival} ({rival} saves more)" for name, rival in portfolio.beaten().items()}


def estimate(lever: Lever, look: Look, portfolio: Portfolio, assumed: Assumptions, standing: Standing) -> Estimate:
    """Complete a lever's look with its money.

    Args:
        lever: The lever.
        look: What it found.
        portfolio: The levers on this log.
        assumed: The assumptions.
        standing: What the plan decided.

    Returns:
        The estimate.
    """
    own = assumed.levers[lever.name]
    saving = _saving(lever.name, look, portfolio)
    out = standing.left_out.get(lever.name, "")
    is_projected = look.applies and look.label != "ceiling" and len(portfolio.days.all) >= MIN_DAYS
    return Estimate(
        name=lever.name,
        number=lever.number,
        label=look.label,
        status="excluded" if out else look.status,
        reason=out or look.reason or _not_worth_it(lever.name, portfolio, assumed, standing.best),
        addressed_pusd=look.addressed_pusd,
        saving=saving,
        alone_pusd=saving.mid,
        last_pusd=standing.last.get(lever.name),
        shapley_pusd=standing.shapley.get(lever.name),
        as_billed_pusd=look.as_billed_pusd,
        per_month_pusd=_cents(portfolio.projected(saving.mid or 0, 1)) if is_projected else None,
        baseline=_BASELINE,
        rule_of_thumb=lever.rule_of_thumb,
        assumptions=tuple(described(lever, own)),
        conflicts=(*lever.conflicts, *(lever.meets if isinstance(lever, Meeting) else ())),
        evidence=look.evidence,
        effort_days=float(own.effort_days),
        risk=lever.risk,
        reversible=lever.reversible,
        slo_effect=lever.slo_effect,
        advice=look.advice,
        left_out=look.left_out,
        holdout_pusd=verdict.holdout_pusd if isinstance(verdict := portfolio.verdicts[lever.name], Judged) else None,
    )


def nothing(portfolio: Portfolio) -> Saving:
    """Write the saving of changing nothing.

    Args:
        portfolio: The levers on this log.

    Returns:
        Zero; without an interval where the log is too short for one.
    """
    return Saving(None, 0, None) if portfolio.days.is_short else Saving(0, 0, 0)


def _saving(name: str, look: Look, portfolio: Portfolio) -> Saving:
    if look.applies and isinstance(portfolio.verdicts[name], Look):
        return nothing(portfolio)  # it changes nothing
    if look.applies:
        found = portfolio.alone(name)
        # the most that could be saved has no lower end
        return Saving(None, found.mid, found.mid) if look.label == "ceiling" else found.at_most(look.addressed_pusd)
    is_none = look.status in _UNTOUCHED and look.addressed_pusd is not None
    return nothing(portfolio) if is_none else Saving(None, None, None)


def _not_worth_it(name: str, portfolio: Portfolio, assumed: Assumptions, best: frozenset[str]) -> str:
    """Say why a lever that has a figure is not in the plan."""
    if name in best or name not in portfolio.names:
        return ""
    saving = portfolio.saving(frozenset({name}))
    low = saving.low
    if low is None or (saving.mid or 0) <= 0:
        return ""
    months = assumed.plan.horizon_months
    beside = ""
    if portfolio.net(frozenset({name}), assumed.plan) > 0:  # on its own it would be worth its while
        low = (portfolio.saving(best | {name}).low or 0) - (portfolio.saving(best).low or 0)
        beside = f" beside {', '.join(sorted(best))}"
    projected = round(portfolio.projected(low, months))
    saved = f"saves at least {shown(projected)}" if projected >= 0 else f"may cost {shown(-projected)} more"
    taken = shown(round(portfolio.cost_of(frozenset({name}), assumed.plan)))
    own = assumed.levers[name]
    work = f"{float(own.effort_days):g} d of work at {_plain_dollars(assumed.plan.day_rate_pusd)} a day"
    if own.running_pusd_per_month:
        work += f" and {_plain_dollars(own.running_pusd_per_month)} a month to run"
    keys = "effort_days" + (" and running_usd_per_month" if own.running_pusd_per_month else "")
    return (
        f"not in the plan: over {months} months it {saved}{beside} and takes {taken} ({work}; set {keys} in "
        f"[{name}], day_rate_usd and horizon_months in [plan])"
    )


def _plain_dollars(pusd: int) -> str:
    """Write an amount that the user may have set, without cents where it has none."""
    return shown(pusd, 0 if pusd % PUSD_PER_USD == 0 else 2)


def _cents(pusd: Fraction) -> int:
    """Round a projection to whole cents: it is no more precise than that."""
    return round(pusd / _PUSD_PER_CENT) * _PUSD_PER_CENT
