"""Levers: what would shrink the bill, ranked, with interval, label, first action, how to verify and how to undo."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import polars as pl

from tenfold import charts, tables
from tenfold.display import dollars, number, percent, saved_or_lost, small_dollars
from tenfold.money import shown
from tenfold.reviewing.document import Block, Card, Heading, Lines, Made, Picture, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import Facts, why_none
from tenfold.tables import Column

Lever = Mapping[str, Any]
_STEP = re.compile(r"[\w.]+")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")


def section(facts: Facts) -> Section | Skipped:
    """Write the section on levers.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where there is no plan.
    """
    plan = facts.plan
    if plan is None:
        return Skipped("Levers", "no plan was given to this review; tenfold levers --db FILE shows what it would hold")
    chosen: Sequence[Mapping[str, Any]] = plan["plan"]["roadmap"]
    levers: Sequence[Lever] = plan["levers"]
    ranked = _ranked(levers, [step["name"] for step in chosen])
    blocks: list[Block] = [*_headline(facts, plan)]
    if chosen and plan["spend_usd"] is not None:
        blocks.append(_waterfall(plan))
    if ranked:
        marginals = {step["name"]: step["marginal_usd"] for step in chosen}
        grid = tables.levers(
            ranked,
            marginals,
            name="table-levers",
            caption="Levers, those of the plan first (USD over the window)",
            note="Saves alone: only this lever pulled. Adds in plan: on top of the levers before it; these add up.",
        )
        blocks += [Heading("Ranked"), Table(grid, "made-levers"), *(_card(lever) for lever in ranked)]
    blocks += [*_apart(levers), *_others([lever for lever in levers if lever not in ranked])]
    return Section("levers", "Levers", tuple(blocks), (_LEVERS,))


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
    blocks: list[Block] = [Prose(text, "made-levers")]
    if facts.differences:
        said = "; ".join(facts.differences)
        blocks.insert(0, Prose(f"Not a plan of this quarter's bill: {said}. All figures of this section are its own."))
    notes: Sequence[str] = plan.get("notes") or ()
    return [*blocks, Lines(tuple(notes))] if notes else blocks


def _waterfall(plan: Mapping[str, Any]) -> Picture:
    roadmap = plan["plan"]["roadmap"]
    names = ["spend", *(step["name"] for step in roadmap)]
    amounts = [_pusd(plan["spend_usd"]), *(_pusd(step["marginal_usd"]) for step in roadmap)]
    after = shown(amounts[0] - sum(amounts[1:]))
    steps = ", ".join(f"{step['name']} {dollars(step['marginal_usd'])}" for step in roadmap)
    title = "From spend to spend after the plan"
    text = f"A waterfall: from {shown(amounts[0])}, less {steps}, to {after}."
    frame = pl.DataFrame({"step": names, "pusd": pl.Series(amounts, dtype=pl.Int128)})
    return Picture(charts.waterfall(frame), "chart-plan", title, text, "made-levers", f"{title}: {after} left.")


def _pusd(usd: str) -> int:
    whole, _, part = usd.lstrip("-").partition(".")
    return (-1 if usd.startswith("-") else 1) * int(whole + part.ljust(12, "0")[:12])


def _card(lever: Lever) -> Card:
    pairs = [
        ("First action", (str(lever["first_action"] or ""),)),
        ("Verify", (str(lever["verify"] or ""),)),
        ("Undo", (str(lever["undo"] or ""),)),
        ("Assumes", tuple(_assumed(item) for item in lever["assumptions"] or ())),
        ("Not touched", tuple(str(item["text"]) for item in lever.get("left_out") or ())),
        ("Excludes", tuple(_excluded(str(item)) for item in lever["conflicts"] or ())),
        ("Evidence", tuple(_seen(item) for item in lever["evidence"] or ())),
    ]
    return Card(str(lever["name"]), tuple((title, lines) for title, lines in pairs if any(lines)))


def _excluded(rival: str) -> str:
    """Say that it is requests that exclude each other, not plans: two rivals may both be in one."""
    return f"{rival}, request by request: on requests that both want, only one of them acts."


def _assumed(item: object) -> str:
    """Write one assumption: its value, where it comes from, and whether it errs towards a larger saving."""
    facts = _keys(item)
    if facts is None:
        return str(item)
    source = str(facts.get("source") or "no source")
    daring = "; errs towards a larger saving" if facts.get("conservative") is False else ""
    said = _value(facts.get("value"))
    return f"{facts.get('name')}{said} ({facts.get('unit')}; {source}{daring})"


def _value(value: object) -> str:
    """Write an assumption's value as its file would."""
    if value is None:
        return ": not stated"
    return f" = {_toml(value)}"


def _toml(value: object) -> str:
    if (given := _keys(value)) is not None:
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in given.items())} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        items: Sequence[object] = value  # pyright: ignore[reportUnknownVariableType]
        return f"[{', '.join(map(_toml, items))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _seen(item: object) -> str:
    """Write one piece of evidence with the SQL step that gave it."""
    facts = _keys(item)
    if facts is None:
        return str(item)
    name, value, unit = str(facts.get("name", "")).replace("_", " "), facts.get("value"), str(facts.get("unit") or "")
    # some facts are arithmetic on others and name a formula in place of a step
    step = f" (step {facts['step']})" if _STEP.fullmatch(str(facts.get("step") or "")) else ""
    if unit.startswith("USD"):
        return f"{name.removesuffix(' usd')}: {_money(value)}{unit.removeprefix('USD')}{step}"
    if unit.startswith("times"):
        return f"{name}: {_amount(value)}x{unit.removeprefix('times')}{step}"
    if unit.startswith("share") and _DECIMAL.fullmatch(str(value)):
        return f"{name}: {percent(Fraction(str(value)))} ({unit}){step}"
    return f"{name}: {_amount(value)} {unit}".rstrip() + step


def _money(value: object) -> str:
    return "unknown" if value is None else small_dollars(_pusd(str(value)))


def _amount(value: object) -> str:
    """Write a measured value: counts with separators, decimals with two places, or four below 1."""
    if value is None:
        return "unknown"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    if not _DECIMAL.fullmatch(text):
        return text
    value = Fraction(text)
    return number(value, min(4 if abs(value) < 1 else 2, len(text.partition(".")[2])))


def _keys(item: object) -> dict[str, Any] | None:
    if not isinstance(item, Mapping):
        return None
    found: Mapping[Any, Any] = item  # pyright: ignore[reportUnknownVariableType]
    return {str(key): value for key, value in found.items()}


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
    return f"{lever['name']} {saved_or_lost(_pusd(lever['as_billed_usd']))} in this window against going without."


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
