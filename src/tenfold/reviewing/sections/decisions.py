"""Risks and decisions: what somebody has to say yes or no to, who, and by when, each from a figure above."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from tenfold import tables
from tenfold.analysis.bridge import Bridge
from tenfold.display import counted, dollars, percent
from tenfold.money import shown
from tenfold.reviewing.document import Made, Prose, Section, Table
from tenfold.reviewing.facts import Facts
from tenfold.tables import Column

_TITLE = "Risks and decisions"
# Share of the spend that lacks an owner or a price from which somebody must act, whatever the threshold for variances.
_UNKNOWN = Fraction(1, 100)
_SOON_DAYS = 31
_FINANCE, _PLATFORM = "finance", "whoever runs the gateway"


class Decision(NamedTuple):
    """One thing to decide.

    Args:
        what: What is wanted.
        why: The figure behind it.
        owner: Who decides.
        by: Until when.
        made: How the figure was made.
    """

    what: str
    why: str
    owner: str
    by: date
    made: str


def section(facts: Facts) -> Section:
    """Write the section on risks and decisions.

    Args:
        facts: What the review knows.

    Returns:
        The section.
    """
    found = sorted(decisions(facts), key=lambda one: one.by)
    if not found:
        text = "None: nothing in this review is beyond its threshold, and no lever of a plan waits for a decision."
        return Section("decisions", _TITLE, (Prose(text, "made-decisions"),), (_DECISIONS,))
    columns = [Column(key, key) for key in ("decision", "risk", "who", "by")]
    grid = tables.grid("table-decisions", "Decisions wanted", columns, [(d.what, d.why, d.owner, d.by) for d in found])
    lead = (
        f"{counted(len(found), 'decision')} wanted. Owners are proposals; the dates are when the figure begins to cost."
    )
    return Section("decisions", _TITLE, (Prose(lead), Table(grid, "made-decisions")), (_DECISIONS,))


_DECISIONS = Made(
    "made-decisions",
    "Risks and decisions",
    "A row appears where a figure of this review passes its threshold in tenfold.toml (drift, variances to act on, "
    "budgets), where a price ends or changes ahead, where spend lacks a price or an owner, and for every lever of the "
    "plan.",
)


def decisions(facts: Facts) -> Iterator[Decision]:
    """List what is to be decided.

    Args:
        facts: What the review knows.

    Yields:
        The decisions, by kind.
    """
    end = facts.quarter.last_day + timedelta(days=1)
    soon = end + timedelta(days=_SOON_DAYS - 1)
    yield from _data(facts, soon)
    yield from _moved(facts, soon)
    yield from _budgets(facts, soon)
    yield from _prices(facts)
    yield from _levers(facts, soon)


def _data(facts: Facts, soon: date) -> Iterator[Decision]:
    found, coverage = facts.reconciliation, facts.reading.coverage
    if found is None:
        why = "no provider's report or invoice was loaded for this quarter"
        yield Decision("load the providers' cost reports and reconcile", why, _FINANCE, soon, "made-coverage")
    elif not facts.is_reconciled:
        why = f"{percent(found.drift_ratio, 2)} drift (either sign), {shown(found.unexplained_pusd)} of it unexplained"
        yield Decision("find what the log lacks before savings are booked", why, _FINANCE, soon, "made-reconciliation")
    if coverage.money_ratio is not None and 1 - coverage.money_ratio > _UNKNOWN:
        models = ", ".join(sorted({str(row["model"]) for row in coverage.unpriced if row["model"]})[:3])
        why = f"{percent(1 - coverage.money_ratio, 1)} of the money, at this log's average price"
        yield Decision(f"give prices to what has none: {models}", why, _FINANCE, soon, "made-coverage")
    mix, idle = facts.composition("team"), facts.ledger.charges_pusd
    owned = mix.owned_ratio(idle, idle)
    if owned is not None and 1 - owned > _UNKNOWN:
        why = f"{shown(mix.unowned_pusd + idle)} of the spend ({percent(1 - owned, 1)}) has no team"
        yield Decision("name owners for unallocated spend", why, _PLATFORM, soon, "made-coverage")


def _moved(facts: Facts, soon: date) -> Iterator[Decision]:
    """Ask about what moved the bill beyond the threshold for action, and about the largest anomaly."""
    limit = Fraction(facts.settings.thresholds.act)
    if facts.bridge is not None:
        for bar, pusd in zip(facts.bridge.bars, facts.bridge.rounded()[1], strict=True):
            share = facts.bridge.share(bar.pusd)
            if share is not None and share > limit:
                why = f"{facts.bridge.signed(pusd)}, {percent(share, 1)} of last quarter's spend: {bar.what}"
                what = f"say whether it stays: {bar.name}, most of it {_most(facts.bridge, bar.key)}"
                yield Decision(what, why, _FINANCE, soon, "made-bridge")
    if facts.tracked is not None and facts.tracked.kept is not None:
        kept = facts.tracked.kept
        ratio = kept.kept_ratio
        if ratio is not None and ratio < 1 - limit:
            why = f"{shown(kept.realised_pusd)} of {shown(kept.promised_pusd)} promised was realised ({percent(ratio)})"
            yield Decision("do last quarter's plan, or drop it", why, _PLATFORM, soon, "made-tracked")


def _most(found: Bridge, key: str) -> str:
    """Name the segment that a bar is most of."""
    row = found.movers.sort(f"{key}_pusd", descending=True).row(0, named=True)
    return " ".join(found.named(row, name) for name in found.by)


def _budgets(facts: Facts, soon: date) -> Iterator[Decision]:
    if facts.burn is None:
        return
    limit = Fraction(facts.settings.thresholds.act)
    for line in facts.burn.owners:
        if line.burn_ratio is not None and line.burn_ratio - 1 > limit:
            over = line.spend - line.elapsed_budget
            why = f"{shown(over)} over {shown(line.elapsed_budget)} ({percent(line.burn_ratio)})"
            yield Decision(f"raise the budget of {line.owner} or cut its traffic", why, line.owner, soon, "made-burn")
    without = sum(pusd for _, _, pusd in facts.burn.without_budget)
    if without:
        names = ", ".join(dict.fromkeys(owner for owner, _, _ in facts.burn.without_budget))
        yield Decision(f"give a budget to {names}", f"{shown(without)} of spend has none", _FINANCE, soon, "made-burn")


def _prices(facts: Facts) -> Iterator[Decision]:
    for change in facts.price_changes_ahead:
        day = change.at.astimezone(facts.quarter.bounds[0].tzinfo).date()
        name = f"{change.model} ({change.provider}, {change.tier})"
        if change.is_end:
            why = "its price ends, and the book knows no other"
            yield Decision(f"move traffic off {name}, or enter its next price", why, _PLATFORM, day, "made-changes")
        elif change.is_rise:
            yield Decision(f"decide on {name} before it costs more", "a price rises", _FINANCE, day, "made-changes")


def _levers(facts: Facts, soon: date) -> Iterator[Decision]:
    plan = facts.plan
    if plan is None or facts.differences:
        return
    levers: Sequence[Mapping[str, Any]] = plan["levers"]
    by_name = {lever["name"]: lever for lever in levers}
    for step in plan["plan"]["roadmap"]:
        lever = by_name[step["name"]]
        unsure = "" if facts.is_reconciled else ", unreconciled"
        why = f"adds {dollars(step['marginal_usd'])} ({lever['label']}{unsure}); risk {lever['risk'] or 'not stated'}"
        first = str(lever["first_action"] or "").replace("`", "")
        yield Decision(f"{step['name']}: {first}" if first else step["name"], why, _PLATFORM, soon, "made-levers")
