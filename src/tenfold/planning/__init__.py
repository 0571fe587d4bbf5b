"""The plan: every lever estimated on one log, conflicts settled, the best feasible set in the order to do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from tenfold.display import percent
from tenfold.errors import NotEvaluable
from tenfold.ledger import Ledger
from tenfold.ledger.session import DAYS_PER_MONTH
from tenfold.levers import LEVERS, Estimate, Lever, Look
from tenfold.levers.assume import Assumptions, assumptions
from tenfold.levers.matching import unknown_in, unknown_values
from tenfold.levers.repricing import own_bill
from tenfold.levers.sites import Sites
from tenfold.logs.owning import owner_state
from tenfold.planning.attribution import last_in, shapley
from tenfold.planning.estimating import Standing, estimate, giving_way, left_out, nothing
from tenfold.planning.noting import ends_in, freed_on_fleet, in_each_others_way, price_changes
from tenfold.planning.plan_result import Plan
from tenfold.planning.portfolio import Portfolio
from tenfold.planning.recording import Recorded, record, recorded
from tenfold.planning.tracking import Promised, Tracked, promised, track
from tenfold.serving.hosted import HostedLedger
from tenfold.slo import Slo
from tenfold.store.engines import Engine

__all__ = ["Plan", "Recorded", "Tracked", "plan", "record", "recorded", "track"]


def plan(
    ledger: Ledger,
    *,
    assume: str | Path | Mapping[str, Any] | None = None,
    slo: Slo | str | Path | None = None,
    levers: Sequence[Lever] = LEVERS,
) -> Plan:
    """Estimate every lever on a priced log and find the best feasible set of them.

    Args:
        ledger: The priced log.
        assume: Assumptions file, or its tables as a mapping; without it only what the log itself proves has a figure.
        slo: Service levels, or the file that holds them.
        levers: The levers to look at.

    Returns:
        The plan.

    Raises:
        AssumptionError: The assumptions or service levels cannot be used.
        NotEvaluable: The store holds reports and no request: nothing says which traffic a saving would come from.
    """
    assumed = assumptions(assume, levers)
    limits = slo if isinstance(slo, Slo) else Slo() if slo is None else Slo.load(slo)
    owners = owner_state(ledger.log.store).note
    with ledger.session() as session:
        _has_requests(session.engine)
        own = assumed.levers
        fixed = sum(charge.pusd for charge in ledger.charges)
        sites = Sites(session, ledger.hosted, limits) if isinstance(ledger, HostedLedger) else None
        bill = own_bill(session, levers, own, limits, sites=sites, fixed_pusd=fixed)
        verdicts = {lever.name: lever.judge(bill, own[lever.name]) for lever in levers}
        wished = left_out(assumed, [one.name for one in levers])
        portfolio = Portfolio(bill, levers, own, verdicts, frozenset(wished), assumed.plan)
        looks = {lever.name: _look(lever, portfolio) for lever in levers}
        own_notes = (*_notes(session.engine, looks, assumed, limits), *price_changes(session))
        of_fleet = ledger.notes if isinstance(ledger, HostedLedger) else ()
        notes = (*own_notes, *of_fleet, *([owners] if owners else []))
        return _planned(ledger, portfolio, looks, assumed, limits, notes)


def _has_requests(engine: Engine) -> None:
    found = engine.fetch(
        "select (select count(*) from requests) as requests, (select count(*) from usage_buckets) as buckets"
    ).row(0, named=True)
    if not found["requests"] and found["buckets"]:
        raise NotEvaluable(
            f"{found['buckets']:,} rows of reports (usage_buckets) and no request: a saving is refused where nothing "
            "says which requests it would come from. Load the requests themselves: tenfold load LOGS --db FILE"
        )


def _look(lever: Lever, portfolio: Portfolio) -> Look:
    verdict = portfolio.verdicts[lever.name]
    if isinstance(verdict, Look):
        return verdict
    found = lever.look(portfolio.bill, portfolio.assumed[lever.name], portfolio.tally(lever.name))
    return replace(found, evidence=(*found.evidence, *verdict.evidence))


def _notes(engine: Engine, looks: Mapping[str, Look], assumed: Assumptions, limits: Slo) -> tuple[str, ...]:
    """Say what the assumptions and service levels name that the log does not have, unless a lever's reason does."""
    notes = [f"service levels: {said}" for said in unknown_values(engine, "feature", tuple(limits.feature))]
    for name, look in looks.items():
        said = unknown_in(engine, assumed.levers[name].where)
        notes += [f"[{name}] where: {one}" for one in said if one not in look.reason]
        notes += [f"[{name}] {one}" for one in look.notes if one.removeprefix("evals: ") not in look.reason]
    return tuple(notes)


def _planned(
    ledger: Ledger,
    portfolio: Portfolio,
    looks: Mapping[str, Look],
    assumed: Assumptions,
    limits: Slo,
    notes: tuple[str, ...],
) -> Plan:
    out = left_out(assumed, [name for name, look in looks.items() if look.status == "ok"])
    out |= giving_way(portfolio)
    names = [name for name in looks if name in portfolio.names and looks[name].status == "ok" and name not in out]
    best = portfolio.best(names, assumed.plan)
    roadmap = portfolio.roadmap(best, assumed.plan)
    idle = {name: 0 for name, look in looks.items() if look.status == "ok" and name not in (*out, *names)}
    standing = Standing(out, best, last_in(names, portfolio.value) | idle, shapley(names, portfolio.value) | idle)
    estimates = [estimate(one, looks[one.name], portfolio, assumed, standing) for one in portfolio.levers]
    order = [name for name, _ in roadmap]
    addressed = min(portfolio.spend_pusd, sum(looks[name].addressed_pusd or 0 for name in best))
    days = portfolio.days.all
    return Plan(
        estimates=tuple(sorted(estimates, key=lambda one: _rank(one, order))),
        levers=tuple(order),
        roadmap=roadmap,
        saving=portfolio.saving(best).at_most(addressed) if best else nothing(portfolio),
        joint_all_pusd=portfolio.value(frozenset(names)),
        spend_pusd=portfolio.spend_pusd,
        bound_by=_bound_by(portfolio, best),
        payback_days=_payback_days(portfolio, best, assumed),
        first_day=days[0] if days else None,
        last_day=days[-1] if days else None,
        days=len(days),
        requests=portfolio.requests,
        unpriced_requests=portfolio.unpriced_requests,
        assumed=assumed,
        slo=limits,
        card_version=ledger.book.version,
        log_hash=ledger.log.log_hash,
        zone=ledger.window.zone,
        notes=(
            *notes,
            *in_each_others_way(best),
            *ends_in(portfolio.bill, best),
            *freed_on_fleet(portfolio.bill, portfolio.names),
        ),
        promised=promised(ledger, _left_by(portfolio, best, "feature")) if best else Promised(),
    )


def _rank(one: Estimate, order: Sequence[str]) -> tuple[int, int, int]:
    """Put the plan's levers first, then other figures by size, ceilings and levers without a figure last."""
    if one.name in order:
        return (0, order.index(one.name), one.number)
    if one.status in ("ok", "excluded"):
        return (1, -(one.alone_pusd or 0), one.number)
    return (2, 0, one.number)


def _payback_days(portfolio: Portfolio, best: frozenset[str], assumed: Assumptions) -> float | None:
    if not best or not portfolio.days.all:
        return None
    running = sum(assumed.levers[name].running_pusd_per_month for name in best)
    per_month = portfolio.projected(portfolio.value(best), 1) - running
    work = Fraction(sum(assumed.levers[name].effort_days for name in best)) * assumed.plan.day_rate_pusd
    return round(float(work / per_month * DAYS_PER_MONTH), 1) if per_month > 0 else None


def _left_by(portfolio: Portfolio, best: frozenset[str], dimension: str) -> dict[str | None, int]:
    left: dict[str | None, int] = {}
    for row in portfolio.left(best).rows(named=True):
        pusd = sum(int(row[meter.name] or 0) for meter in portfolio.bill.session.meters)
        left[row[dimension]] = left.get(row[dimension], 0) + pusd
    return left


def _bound_by(portfolio: Portfolio, best: frozenset[str]) -> str:
    """Name what bounds the fold: the largest (meter, feature) cost that the plan leaves."""
    if portfolio.days.is_short:
        return "short_log"
    if not portfolio.spend_pusd:
        return "no_spend"
    rows = portfolio.left(best).rows(named=True)
    named = (one for one in ("feature", "team", "model") if any(row[one] for row in rows))
    dimension = next(named, "model")
    left: dict[tuple[str | None, str], int] = {}
    for row in rows:
        for meter in portfolio.bill.session.meters:
            key = (row[dimension] or None, meter.name)
            left[key] = left.get(key, 0) + int(row[meter.name] or 0)
    name, meter = max(left, key=lambda key: left[key])
    of_what = f"{dimension} {name}" if name else f"requests without a {dimension}"
    return f"{meter} of {of_what}: {percent(Fraction(left[name, meter], portfolio.spend_pusd))} of spend"
