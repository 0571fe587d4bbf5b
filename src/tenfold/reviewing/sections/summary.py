"""The first screen: spend against what it was, was granted and was expected to be; why; what to do; how sure it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tenfold.analysis.unit_economics import dollars_each
from tenfold.display import dollars, percent, sentence
from tenfold.money import shown
from tenfold.reviewing.document import Block, Heading, Lines, Made, Prose, Section, Tile, Tiles
from tenfold.reviewing.facts import OF_REQUESTS, Facts, why_none


def section(facts: Facts) -> Section:
    """Write the summary.

    Args:
        facts: What the review knows.

    Returns:
        The section.
    """
    tiles = (
        _spend_tile(facts),
        *_against(facts),
        *_unit_tile(facts),
        *_idle_tile(facts),
        *([] if facts.plan is None else [_foreign_tile(facts) if facts.differences else _plan_tile(facts.plan)]),
        _priced_tile(facts),
    )
    said = [*([OF_REQUESTS] if facts.ledger.charges else []), *map(sentence, facts.reading.sentences()[:3])]
    blocks: list[Block] = [Tiles(tiles)]
    causes = () if facts.bridge is None else tuple(map(sentence, facts.bridge.sentences()[1:4]))
    if causes:
        blocks += [Heading("Why it moved"), Lines(causes, "made-bridge")]
    blocks += [Heading("What it is made of"), Lines(tuple(said), "made-reading")]
    top = () if facts.differences else _top(facts.plan)
    if top:
        blocks += [Heading("What to do first"), Lines(top, "made-levers")]
    blocks += [Heading("How sure it is"), Lines(tuple(_confidence(facts)), "made-coverage")]
    if beside := facts.beside(facts.spend_pusd):
        currency = facts.settings.currency
        source = f", by {currency.source}" if currency and currency.source else ""
        blocks.append(Prose(f"The spend is {beside}{source}. All other amounts are in USD.", "made-total"))
    return Section("summary", "Summary", tuple(blocks), (_TOTAL, _EXPECTED, _READING))


_TOTAL = Made(
    "made-total",
    "Spend and requests",
    "Every billable request that no gateway cache answered is priced by the entry in force when it ran, meter by "
    "meter, in whole picodollars; the sum is exact. With GPUs of your own, their idle time is part of the spend. "
    "Requests without a price are not in it: they are counted beside it.",
    "totals",
)
_EXPECTED = Made(
    "made-expected",
    "Expected spend",
    "The forecast of this quarter from the requests before it, with its interval. No request of the quarter is in it; "
    "price changes of the quarter are, as far as the price book holds them today, whenever they were announced.",
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


def _spend_tile(facts: Facts) -> Tile:
    requests, parts = f"{facts.reading.requests:,} requests", ""
    if facts.ledger.charges:
        parts = f": {shown(facts.reading.spend_pusd)} and idle GPUs {shown(facts.ledger.charges_pusd)}"
    missing = facts.reading.coverage.unpriced_requests
    note = f"; {missing:,} of them are not priced and not in it" if missing else ""
    return Tile("spend, priced", shown(facts.spend_pusd), f"{requests}{parts}{note}", "made-total")


def _against(facts: Facts) -> Iterator[Tile]:
    """Hold the spend against the quarter before, the budget and what was expected."""
    spend = facts.spend_pusd
    if facts.bridge is not None:
        before = facts.bridge.before.pusd
        scaled = "" if facts.pace == 1 else ", scaled to as many days"
        note = f"{_signed(spend - before)}, from {shown(before)} in {facts.previous.title}{scaled}"
        yield Tile("against the quarter before", _change(spend, before), note, "made-bridge")
    burn = facts.burn
    if burn is not None and burn.total is not None and burn.total.days:
        line = burn.total
        left = line.elapsed_budget - line.spend
        words = f"{shown(abs(left))} {'left' if left >= 0 else 'over'} of {shown(line.elapsed_budget)}"
        if burn.ungranted:
            words += f", the owners' budgets together; {shown(burn.ungranted)} of the spend has none"
        yield Tile("against budget", percent(line.burn_ratio, 1), words, "made-burn")
    expected = facts.expected
    if expected is not None:
        low, high = expected.low, expected.high
        ends = "" if low is None or high is None else f" [{shown(low, 0)} to {shown(high, 0)}]"
        place = "within" if low is None or high is None or low <= facts.reading.spend_pusd <= high else "outside"
        note = f"{shown(expected.mid, 0)}{ends} was expected; {place} the interval" if ends else "no interval"
        yield Tile("against forecast", _change(facts.reading.spend_pusd, expected.mid), note, "made-expected")


def _change(now: int, then: int) -> str:
    if not then:
        return "new" if now else "none"
    share = Fraction(now, then) - 1
    return f"{'+' if share > 0 else ''}{percent(share, 1)}"


def _signed(pusd: int) -> str:
    return f"{'+' if pusd > 0 else ''}{shown(pusd)}"


def _unit_tile(facts: Facts) -> Iterator[Tile]:
    units = facts.units
    outcome = units.total.outcome or units.total.request
    if outcome.per_unit is None:
        return
    name = {"outcome": "successful outcome", "request": "request"}[outcome.name]
    if outcome.basis == "status":
        name = "successful request"
    change = units.change(facts.units_before, outcome.name)
    said = "no quarter before to compare" if change is None else f"{_percent(change)} on the quarter before"
    yield Tile(f"per {name}", dollars_each(outcome.per_unit), said, "made-units")


def _percent(change: Fraction) -> str:
    return f"{'+' if change > 0 else ''}{percent(change, 1)}"


def _idle_tile(facts: Facts) -> Iterator[Tile]:
    if facts.ledger.charges:
        idle = facts.ledger.charges_pusd
        share = percent(Fraction(idle, facts.spend_pusd)) if facts.spend_pusd else "none"
        yield Tile("idle GPUs", shown(idle), f"in the spend; {share} of it", "made-fleet")


def _priced_tile(facts: Facts) -> Tile:
    coverage = facts.reading.coverage
    note = f"of requests; {percent(coverage.tokens_ratio, 2)} of known tokens"
    return Tile("priced", f"{percent(coverage.requests_ratio, 2)}", note, "made-coverage")


def _confidence(facts: Facts) -> Iterator[str]:
    if facts.pace_note:
        yield f"Days: {facts.pace_note}."
    coverage = facts.reading.coverage
    requests = percent(coverage.requests_ratio, 2)
    yield f"Prices: {requests} of requests have one, dated and sourced; the rest is named under scope, never guessed."
    found = facts.reconciliation
    if found is None:
        yield ("Invoices: none is loaded, so nothing outside the log confirms the spend, and savings are unreconciled.")
    else:
        limit = percent(Fraction(found.max_drift), 1)
        drift = percent(found.drift_ratio, 2)
        state = "reconciled" if facts.is_reconciled else "unreconciled, and so are the savings"
        covered = percent(found.covered_ratio, 1)
        said = f"the log is {drift} off what was billed (parts of either sign counted)"
        yield f"Invoices: {said} for {covered} of the spend (limit {limit}): {state}."
    if facts.plan is not None and facts.plan["plan"]["saving_usd"]["low"] is None:
        yield "Savings: the log is too short for an interval."


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
