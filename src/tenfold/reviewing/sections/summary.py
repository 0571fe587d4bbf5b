"""The first screen: spend, coverage, what the bill says, what to do first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tenfold.display import dollars, percent, sentence
from tenfold.money import shown
from tenfold.reviewing.document import Block, Heading, Lines, Made, Section, Tile, Tiles
from tenfold.reviewing.facts import OF_REQUESTS, Facts, why_none


def section(facts: Facts) -> Section:
    """Write the summary.

    Args:
        facts: What the review knows.

    Returns:
        The section.
    """
    reading, coverage = facts.reading, facts.reading.coverage
    tiles = [
        Tile("spend, priced", shown(facts.spend_pusd), _of_spend(facts), "made-total"),
        Tile("requests", f"{reading.requests:,}", "billable, no gateway cache hit", "made-total"),
        Tile(
            "priced",
            f"{percent(coverage.requests_ratio, 2)}",
            f"of requests; {percent(coverage.tokens_ratio, 2)} of known tokens",
            "made-coverage",
        ),
    ]
    if facts.ledger.charges:
        idle = facts.ledger.charges_pusd
        share = percent(Fraction(idle, facts.spend_pusd)) if facts.spend_pusd else "none"
        tiles.append(Tile("idle GPUs", shown(idle), f"in the spend; {share} of it", "made-fleet"))
    if facts.plan is not None:
        tiles.append(_foreign_tile(facts) if facts.differences else _plan_tile(facts.plan))
    said = [*([OF_REQUESTS] if facts.ledger.charges else []), *map(sentence, reading.sentences()[:3])]
    blocks: list[Block] = [Tiles(tuple(tiles)), Lines(tuple(said), "made-reading")]
    top = () if facts.differences else _top(facts.plan)
    if top:
        blocks += [Heading("Top levers"), Lines(top, "made-levers")]
    return Section("summary", "Summary", tuple(blocks), (_TOTAL, _READING))


_TOTAL = Made(
    "made-total",
    "Spend and requests",
    "Every billable request that no gateway cache answered is priced by the entry in force when it ran, meter by "
    "meter, in whole picodollars; the sum is exact. With GPUs of your own, their idle time is part of the spend. "
    "Requests without a price are not in it: they are counted beside it.",
    "totals",
)
_READING = Made(
    "made-reading",
    "Shares, ratios and bounds",
    "Shares are of what priced requests cost. A lever that acts on the input side cannot save more than what input "
    "costs, and so on: the bound is one minus the share of everything the lever cannot touch. Ratios of tokens leave "
    "out requests for which the log does not tell, and say how much that is. Requests in flight come from starts and "
    "durations.",
    "token_mix",
)


def _of_spend(facts: Facts) -> str:
    if not facts.ledger.charges:
        return _unpriced(facts)
    requests, idle = shown(facts.reading.spend_pusd), shown(facts.ledger.charges_pusd)
    return f"requests {requests} and idle GPUs {idle}; {_unpriced(facts)}"


def _unpriced(facts: Facts) -> str:
    missing = facts.reading.coverage.unpriced_requests
    return f"{missing:,} requests are not priced and not in it" if missing else "every billable request has a price"


def _foreign_tile(facts: Facts) -> Tile:
    """Name a plan of another bill; its figures stay out of this summary, beside whose spend they would be false."""
    return Tile("plan", "of another bill", f"{'; '.join(facts.differences)}: see levers", "made-levers")


def _plan_tile(plan: Mapping[str, Any]) -> Tile:
    made = plan["plan"]
    if not made["roadmap"]:
        return Tile("best feasible plan", "no lever", why_none(made), "made-levers")
    saving, fold = made["saving_usd"], made["fold"]
    note = "the log is too short for an interval"
    if saving["low"] is not None and saving["high"] is not None:
        note = f"{dollars(saving['low'])} to {dollars(saving['high'])}"
    if fold is not None:
        note += f"; fold {float(fold):.2f}"
    return Tile("best feasible plan saves", dollars(saving["mid"]), note, "made-levers")


def _top(plan: Mapping[str, Any] | None) -> tuple[str, ...]:
    if plan is None:
        return ()
    levers: Sequence[Mapping[str, Any]] = plan["levers"]
    marginals = {step["name"]: step["marginal_usd"] for step in plan["plan"]["roadmap"]}
    by_name = {lever["name"]: lever for lever in levers}
    chosen = [_line(by_name[name], f"adds {dollars(usd)}") for name, usd in marginals.items()]
    # Without a plan that pays, say what the best levers would save before their effort is counted.
    figures = [lever for lever in levers if lever["status"] == "ok" and lever["label"] != "ceiling"]
    alone = [_line(one, f"saves {dollars(one['saving_usd']['mid'])} alone, not in plan") for one in figures]
    return tuple((chosen or alone)[:3])


def _line(lever: Mapping[str, Any], saves: str) -> str:
    return f"{lever['name']} {saves} ({lever['label']}). {lever['first_action'] or ''}".strip()
