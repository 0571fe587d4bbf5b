"""Appendix: versions, assumptions, and how each number was made, down to the SQL that ran."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from tenfold.display import minute, percent
from tenfold.ledger import metering
from tenfold.prices.meters import CORE, meters
from tenfold.reviewing.document import Block, Card, Heading, MadeList, Prose, Section, Table, Text
from tenfold.reviewing.facts import Facts
from tenfold.store import cells, steps
from tenfold.tables import Column, Grid, grid

_STEPS = (
    "cells_requests", "cells_cube", "cells_grouped", "cells_mixed", "priced", "totals", "token_mix", "calls",
    "concurrency",
)  # fmt: skip
_FLEET_STEPS = (
    "fleet_timed", "fleet_log", "fleet_covered", "fleet_requests", "fleet_tally", "fleet_spans", "fleet_levels",
    "fleet_busy", "fleet_profile",
)  # fmt: skip


def section(facts: Facts) -> Section:
    """Write the appendix.

    Args:
        facts: What the review knows.

    Returns:
        The section.
    """
    blocks: list[Block] = [
        Heading("Versions"),
        Card("This review", _versions(facts)),
        Heading("Method"),
        *(Prose(text) for text in _METHOD),
        Heading("Words"),
        Card("Data dictionary", _WORDS),
        Table(_dictionary(facts), "made-total"),
        Heading("How each number was made"),
        MadeList(),
        Heading("SQL steps"),
        Prose(
            "The text that ran, before the window's bounds and the view names were put in. Folded away on the page, "
            "left out of print and PDF."
        ),
        *(Text(name, _shown(name, facts.reading.meters)) for name in _steps(facts)),
    ]
    return Section("appendix", "Appendix", tuple(blocks))


_METHOD = (
    (
        "Money is counted in whole picodollars (1e-12 USD) and rounded only for display. Prices are list prices of the "
        "dated price book unless an overlay was given. An unknown count is not zero: what the log does not tell is "
        "left out of a ratio and named beside it."
    ),
    (
        "Input tokens include cached reads and writes, output tokens include reasoning; the meters cut from them do "
        "not overlap. Requests that a gateway cache answered, and calls the provider does not bill, are not in any sum."
    ),
)


_WORDS = (
    ("request", ("One billable provider call; a retry is one of its own.",)),
    ("meter", ("A billable quantity, such as output tokens; meters do not overlap.",)),
    ("rate", ("The price of one unit of a meter, from a dated entry of the price book.",)),
    ("list, contracted, effective", ("By the provider's list; by your prices; with commitments (FOCUS 1.2).",)),
    ("coverage", ("The share of requests, tokens and money that has a price.",)),
    ("drift", ("What was invoiced less what was logged, over what was invoiced.",)),
    ("lever, plan, fold", ("A change that shrinks the bill; the best set of them; spend before over spend after.",)),
    (
        "exact, replayed, measured, modelled, ceiling",
        ("Priced as logged; by a provider's rules; from paired data; needs an assumption; at most, never added.",),
    ),
    ("unknown", ("What the log does not say. It is never zero, and never in a sum.",)),
)


def _dictionary(facts: Facts) -> Grid:
    columns = (Column("meter", "meter"), Column("unit", "unit"), Column("meaning", "what it is"))
    rows = [(one.name.replace("_", " "), one.unit, one.meaning) for one in meters() if one.name in facts.reading.meters]
    return grid("table-meters", "Meters of this bill", columns, rows)


def _versions(facts: Facts) -> tuple[tuple[str, tuple[str, ...]], ...]:
    reading, price_at = facts.reading, facts.ledger.price_at
    pairs: list[tuple[str, tuple[str, ...]]] = [
        ("Card version", (facts.ledger.book.version,)),
        ("Log hash", (facts.ledger.log.log_hash,)),
        ("Zone", (facts.zone,)),
    ]
    if reading.first is not None and reading.last is not None:
        span = f"{minute(reading.first, facts.zone)} to {minute(reading.last, facts.zone)}"
        pairs.append(("Requests start", (span,)))
    if price_at is not None:
        pairs.append(("What-if", (f"every request priced as at {minute(price_at, facts.zone)}",)))
    limits = facts.settings.thresholds
    alerts = ", ".join(percent(share) for share in limits.budget_alerts)
    said = (
        f"drift {percent(limits.drift, 1)}; variances explained from {percent(limits.explain)}, acted on from "
        f"{percent(limits.act)}; anomalies from {limits.anomaly_k:g} scaled MADs and {limits.anomaly_usd:g} USD; "
        f"budget alerts at {alerts}"
    )
    pairs.append(("Thresholds", (said,)))
    return (*pairs, *_assumptions(facts.plan))


def _assumptions(plan: Mapping[str, Any] | None) -> list[tuple[str, tuple[str, ...]]]:
    """Write the tables of the assumptions file and the service levels as the plan carries them."""
    if plan is None:
        return [("Assumptions", ("none: no plan was given",))]
    tables: Mapping[str, Any] = plan.get("assumptions") or {}
    lines = tuple(f"{name}: {_pairs(table)}" for name, table in tables.items())
    levels: Mapping[str, Any] = plan.get("slo") or {}
    return [
        ("Assumptions", lines or ("none stated; each lever's defaults stand under it",)),
        ("Service levels", (_pairs(levels) or "none",)),
    ]


def _pairs(table: object) -> str:
    if not isinstance(table, Mapping):
        return str(table)
    found: Mapping[Any, Any] = table  # pyright: ignore[reportUnknownVariableType]
    said = {str(key): _pairs(value) for key, value in found.items() if value not in (None, [], {})}
    return ", ".join(f"{key} ({value})" if " " in value else f"{key} {value}" for key, value in said.items())


def _steps(facts: Facts) -> list[str]:
    """Name the steps behind this review, those of a fleet and of the levers' evidence included."""
    plan = facts.plan
    fleet = _FLEET_STEPS if facts.ledger.charges else ()
    levers: Sequence[Mapping[str, Any]] = () if plan is None else plan["levers"]
    seen = [str(fact["step"]) for lever in levers for fact in lever["evidence"] or () if "step" in fact]
    return [name for name in dict.fromkeys((*_STEPS, *fleet, *seen)) if _is_step(name)]


def _shown(name: str, occurring: Iterable[str]) -> str:
    """Show a step as it runs for the meters that occur; the views' names stay placeholders."""
    used = tuple(meter for meter in meters() if meter.name in {*CORE, *occurring})
    by_step = {
        "priced": metering.pricing_words(used),
        "totals": metering.total_words(used),
        "cells_grouped": cells.grouping_words((200_000,)),
        "cells_mixed": {"counts": cells.counts()},
    }
    words = by_step.get(name, {})
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), steps.text(name))


def _is_step(name: str) -> bool:
    return (resources.files("tenfold.store") / "sql" / f"{name}.sql").is_file()
