"""Levers: what would shrink the bill, ranked, what they save together, and what last quarter's plan came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from tenfold import charts, tables
from tenfold.display import dollars, name_of, percent, saved_or_lost, sentence
from tenfold.money import read_usd, shown
from tenfold.planning import Tracked
from tenfold.reviewing import lever_cards
from tenfold.reviewing.document import Block, Heading, Lines, Made, Picture, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import Facts, why_none
from tenfold.reviewing.promises import Followed, how_to_record, named, of_quarter
from tenfold.tables import EMPTY, Cell, Column

Lever = Mapping[str, Any]


def section(facts: Facts) -> Section | Skipped:
    """Write the section on levers.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where there is neither a plan nor one of the quarter before.
    """
    plan = facts.plan
    if plan is None and facts.tracked is None:
        reason = "no plan was given to this review, and none was recorded on the quarter before"
        return Skipped("Levers", f"{reason}; {how_to_record(facts.quarter)} keeps one for the next review")
    blocks: list[Block] = [] if plan is None else _planned(facts, plan)
    blocks += [Heading("Last quarter's plan: promised against realised"), *_tracker(facts)]
    return Section("levers", "Levers", tuple(blocks), (_LEVERS, _TRACKED) if plan else (_TRACKED,))


def _planned(facts: Facts, plan: Mapping[str, Any]) -> list[Block]:
    chosen: Sequence[Mapping[str, Any]] = plan["plan"]["roadmap"]
    levers: Sequence[Lever] = plan["levers"]
    ranked = _ranked(levers, [step["name"] for step in chosen])
    blocks: list[Block] = [*_headline(facts, plan)]
    if chosen and plan["spend_usd"] is not None:
        blocks.append(_waterfall(plan))
    if ranked:
        marginals = {step["name"]: step["marginal_usd"] for step in chosen}
        mark = "" if facts.is_reconciled else "; unreconciled"
        grid = tables.levers(
            ranked,
            marginals,
            name="table-levers",
            caption=f"Levers, those of the plan first (USD over the window{mark})",
            note="Saves alone: only this lever pulled. Adds in plan: on top of the levers before it; these add up.",
            has_first_action=False,
        )
        blocks += [Heading("Ranked"), Table(grid, "made-levers"), *_together(plan, ranked, mark)]
        blocks += map(lever_cards.card, ranked)
    return [*blocks, *_apart(levers), *_others([lever for lever in levers if lever not in ranked])]


_LEVERS = Made(
    "made-levers",
    "Levers and the plan",
    "A lever turns the logged requests, the card and fixed charges into others; its saving is the difference between "
    "the two totals, both priced by the same function. The plan's saving is that of its levers together, priced once, "
    "never a sum. Labels: exact (priced as logged), replayed (request by request under the provider's rules), "
    "measured (from the user's own paired data), modelled (needs a stated assumption), ceiling (at most; never ranked "
    "or added).",
    "priced",
)


def _ranked(levers: Sequence[Lever], chosen: Sequence[str]) -> list[Lever]:
    ok = [lever for lever in levers if lever["status"] == "ok" and lever["label"] != "ceiling"]
    place = {name: number for number, name in enumerate(chosen)}
    return sorted(
        ok, key=lambda lever: (place.get(lever["name"], len(place)), -_usd(lever["saving_usd"]["mid"]), lever["number"])
    )


def _usd(text: str | None) -> float:
    return float(text or 0)


def _headline(facts: Facts, plan: Mapping[str, Any]) -> list[Block]:
    saving, made = plan["plan"]["saving_usd"], plan["plan"]
    low, high = saving["low"], saving["high"]
    interval = f" [{dollars(low)} to {dollars(high)}]" if low is not None and high is not None else ""
    fold = "" if made["fold"] is None else f": fold {float(made['fold']):.2f}"
    spend = "no priced spend" if plan["spend_usd"] is None else dollars(plan["spend_usd"])
    text = f"The best feasible plan saves {dollars(saving['mid'])}{interval} of {spend} in this window{fold}."
    if not made["roadmap"]:
        text = f"The best feasible plan, on {spend}, is to pull no lever: {why_none(made)}."
    elif made["bound_by"]:
        text += f" What bounds it: {str(made['bound_by']).replace('_', ' ')}."
    blocks: list[Block] = [Prose(text, "made-levers"), *_standing(facts)]
    if facts.differences:
        said = "; ".join(facts.differences)
        blocks.insert(0, Prose(f"Not a plan of this quarter's bill: {said}. All figures of this section are its own."))
    notes: Sequence[str] = plan.get("notes") or ()
    return [*blocks, Lines(tuple(notes))] if notes else blocks


def _waterfall(plan: Mapping[str, Any]) -> Picture:
    roadmap = plan["plan"]["roadmap"]
    names = ["spend", *(step["name"] for step in roadmap)]
    amounts = [read_usd(plan["spend_usd"]), *(read_usd(step["marginal_usd"]) for step in roadmap)]
    after = shown(amounts[0] - sum(amounts[1:]))
    steps = ", ".join(f"{step['name']} {dollars(step['marginal_usd'])}" for step in roadmap)
    title = "From spend to spend after the plan"
    text = f"A waterfall: from {shown(amounts[0])}, less {steps}, to {after}."
    frame = pl.DataFrame({"step": names, "pusd": pl.Series(amounts, dtype=pl.Int128)})
    return Picture(charts.waterfall(frame), "chart-plan", title, text, "made-levers", f"{title}: {after} left.")


def _standing(facts: Facts) -> list[Block]:
    """Say whether the cost that savings are taken from was held to an invoice."""
    if facts.is_reconciled:
        return []
    why = "no invoice or cost report was loaded that the logged cost could be held against"
    if facts.is_reconciled is False:
        limit = percent(Fraction(str(facts.settings.thresholds.drift)), 1)
        why = f"the logged cost is {limit} or more off what was invoiced"
    return [Prose(f"All savings here are unreconciled: {why}; see scope, coverage and reconciliation.")]


def _together(plan: Mapping[str, Any], ranked: Sequence[Lever], mark: str) -> list[Block]:
    """Show what the levers save together: alone they count the same tokens more than once."""
    sharing = [lever for lever in ranked if lever.get("shapley_usd") is not None]
    if len(sharing) < 2:
        return []
    joint = read_usd(plan["joint_all_usd"])
    alone = sum(read_usd(lever["alone_usd"]) for lever in sharing)
    rows = [_shares(lever, joint) for lever in sharing]
    columns = [
        Column("lever", "lever"),
        Column("alone", "saves alone", "pusd"),
        Column("last", "adds to all others", "pusd"),
        Column("share", "its part of the joint saving", "pusd", sums=True),
        Column("ratio", "of the joint saving", "ratio", share_of="share"),
    ]
    grid = tables.grid(
        "table-levers-together",
        f"What the levers save together, overlap taken out (USD over the window{mark})",
        columns,
        [*rows, ("together", None, None, joint, Fraction(1) if joint else None)],
        note="Its part: the Shapley value, the mean of what it adds over every order of pulling them.",
        has_total=True,
    )
    over = f"{shown(alone - joint)} of it is the same money twice" if alone >= joint else "they help each other"
    text = f"Added up, what these levers save alone is {shown(alone)}; together they save {shown(joint)}: {over}."
    return [Heading("Together"), Prose(text, "made-levers"), Table(grid, "made-levers")]


def _shares(lever: Lever, joint: int) -> tuple[Cell, ...]:
    part = read_usd(lever["shapley_usd"])
    ratio = Fraction(part, joint) if joint else None
    return str(lever["name"]), read_usd(lever["alone_usd"]), read_usd(lever["last_usd"]), part, ratio


def _tracker(facts: Facts) -> list[Block]:
    found, here = facts.tracked, of_quarter(facts.plans, facts.quarter)
    blocks: list[Block] = []
    if found is None:
        blocks.append(Prose(f"No plan was recorded on {facts.previous.title}, so there is no promise to hold it to."))
    elif found.kept is None:
        blocks.append(Prose(f"Plan {named(found.plan)} cannot be held against this quarter: {found.why_not}."))
    else:
        blocks += _kept(facts, found, found.kept)
    said = [] if found is None else [f"Other recorded plan {other}." for other in found.others]
    if here:
        said.append(f"This quarter's plan is recorded as {named(here[-1])}; the next review reads it.")
    else:
        said.append(f"{how_to_record(facts.quarter)} keeps this quarter's plan; the next review reads it.")
    return [*blocks, Lines(tuple(said))]


def _kept(facts: Facts, found: Followed, kept: Tracked) -> list[Block]:
    interval = "" if kept.low_pusd is None else f" [{shown(kept.low_pusd)} to {shown(kept.high_pusd or 0)}]"
    share = "" if kept.kept_ratio is None else f", {percent(kept.kept_ratio)} of the promise"
    mark = "" if facts.is_reconciled else ", unreconciled"
    text = f"Plan {named(found.plan)} promised {shown(kept.promised_pusd)} for the requests of this quarter; "
    text += f"{shown(kept.realised_pusd)}{interval} was realised{share} ({kept.label}{mark})."
    notes = [f"baseline: {kept.baseline}"]
    if not interval:
        notes.append("no interval: it takes requests on ten days or more")
    if kept.price_change_pusd:
        fell = "took off" if kept.price_change_pusd > 0 else "added"
        notes.append(f"changed prices {fell} {shown(abs(kept.price_change_pusd))} beside it: in neither figure")
    notes += [f"not in this quarter's log: {feature}" for feature in kept.unseen]
    notes += [*found.notes, *kept.notes]
    columns = [
        Column("feature", "feature"),
        Column("requests", "requests", "count", sums=True),
        Column("cost", "cost at the plan's prices", "pusd", sums=True),
        Column("expected", "would have cost", "pusd", sums=True),
        Column("promised", "promised", "pusd", sums=True),
        Column("realised", "realised", "pusd", sums=True),
        Column("kept", "kept", "ratio"),
        Column("prices", "changed prices took off", "pusd", sums=True),
    ]
    rows = [
        (
            name_of("feature", row.feature),
            row.requests,
            row.cost_pusd,
            round(row.expected_pusd),
            round(row.promised_pusd),
            round(row.realised_pusd),
            row.realised_pusd / row.promised_pusd if row.promised_pusd else EMPTY,
            row.cost_pusd - row.billed_pusd,
        )
        for row in kept.rows
    ]
    expected = round(sum((row.expected_pusd for row in kept.rows), Fraction(0)))
    total = (
        *("total", sum(row.requests for row in kept.rows), sum(row.cost_pusd for row in kept.rows), expected),
        *(kept.promised_pusd, kept.realised_pusd, kept.kept_ratio, kept.price_change_pusd),
    )
    caption = "Promised against realised by feature (USD over the quarter)"
    grid = tables.grid("table-tracked", caption, columns, [*rows, total], has_total=True)
    return [Prose(text, "made-tracked"), Table(grid, "made-tracked"), Lines(tuple(map(sentence, notes)))]


_TRACKED = Made(
    "made-tracked",
    "Promised against realised",
    "Of every feature that the recorded plan changes: realised is its requests of this quarter times what one cost "
    "before the plan, less what they cost, both at the last prices of the plan's window. Growth is no loss then, "
    "shrinking no saving, and a price cut neither: what prices changed stands apart. Promised is what the plan saves a "
    "request, times the same requests. The interval draws the days of the quarter again.",
    "plan_tracked",
)


def _apart(levers: Sequence[Lever]) -> list[Block]:
    ceilings = tuple(_ceiling(lever) for lever in levers if lever["label"] == "ceiling" and _most(lever))
    past = tuple(_past(lever) for lever in levers if lever["as_billed_usd"] is not None)
    blocks: list[Block] = []
    if ceilings:
        blocks += [Heading("Ceilings: not ranked, not added"), Lines(ceilings, "made-levers")]
    if past:
        blocks += [Heading("Already in the bill: not ranked, not added"), Lines(past, "made-levers")]
    return blocks


def _most(lever: Lever) -> str | None:
    saving: Mapping[str, str | None] = lever["saving_usd"]
    return saving["high"] or saving["mid"]


def _ceiling(lever: Lever) -> str:
    return f"{lever['name']}: at most {dollars(_most(lever))}. {lever['reason'] or ''}".strip()


def _past(lever: Lever) -> str:
    return f"{lever['name']} {saved_or_lost(read_usd(lever['as_billed_usd']))} in this window against going without."


def _others(levers: Sequence[Lever]) -> list[Block]:
    if not levers:
        return []
    rows = [
        (
            lever["name"],
            str(lever["status"]).replace("_", " "),
            *(str(lever[key] or "–").replace("`", "") for key in ("reason", "first_action")),
        )
        for lever in levers
    ]
    columns = [Column(name, name.replace("_", " ")) for name in ("lever", "status", "why", "first_action")]
    grid = tables.grid("table-other-levers", "Levers without a ranked figure", columns, rows)
    return [Heading("Not ranked"), Table(grid, "made-levers")]
