"""What a reader of a plan must know beside its figures: prices that changed, levers that get in each other's way."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from itertools import pairwise

import polars.selectors as cs

from tenfold.ledger import Session
from tenfold.money import shown

_SHOWN = 3
_CHANGED = (
    "prices changed inside this window: {}. Savings and projections are at the prices in force when each request ran; "
    "a window from the last change on (--from) plans at today's"
)
_LATE = (
    "skip and batch_api: an answer of a batch comes up to a day later, so what skip stores of batched requests serves "
    "later than here; send to batch what skip does not answer, or leave its features out of [batch_api]"
)


def price_changes(session: Session) -> list[str]:
    """Say which models' prices changed inside the window: savings are at the prices in force when each request ran.

    Args:
        session: The priced session, with the log's own bill laid.

    Returns:
        One sentence, naming the dearest models; none where nothing changed.
    """
    spent = session.engine.fetch(
        "select price_key, sum(cast(cost_pusd as decimal(38, 0))) as pusd from lever_base "
        "where is_billed and cost_pusd > 0 group by price_key"
    )
    pusd = {key: int(cost) for key, cost in spent.iter_rows()}
    models = {key: model for key, _, model, _, _ in session.keys}
    by_day: dict[int, dict[date, set[tuple[object, ...]]]] = {}
    for key, day, *rates in session.card.frame.select("price_key", "day", "above", cs.starts_with("rate_")).iter_rows():
        if key in pusd:
            by_day.setdefault(key, {}).setdefault(day, set()).add(tuple(rates))
    changes = {key: _changes(days) for key, days in by_day.items()}
    lines = [
        f"{models[key]} on {', '.join(map(str, changes[key]))} ({shown(pusd[key])} of spend)"
        for key in sorted(changes, key=lambda one: (-pusd[one], one))
        if changes[key]
    ]
    if not lines:
        return []
    more = f", and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return [_CHANGED.format("; ".join(lines[:_SHOWN]) + more)]


def _changes(days: Mapping[date, set[tuple[object, ...]]]) -> list[date]:
    """Days whose rates differ from those of the day before among those with requests; hours of a day are no change."""
    return [day for before, day in pairwise(sorted(days)) if days[day] != days[before]]


def in_each_others_way(names: Collection[str]) -> list[str]:
    """Say what levers of one plan do to each other that re-pricing request by request cannot show.

    Args:
        names: Levers of the plan.

    Returns:
        Sentences.
    """
    return [_LATE] if {"skip", "batch_api"} <= set(names) else []
