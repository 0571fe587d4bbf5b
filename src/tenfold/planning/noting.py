"""What a reader of a plan must know beside its figures: prices that changed, levers that get in each other's way."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

import polars.selectors as cs

from tenfold.ledger import Session, Window
from tenfold.levers import Bill
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

_FREED = (
    "{}: what these take off self-hosted requests is GPU time at the fleet's rates; the GPUs are paid all the same "
    "until whole replicas go, which continuous_batching sizes by the log as it is"
)
_FULLER = (
    "continuous_batching and prefix_cache: fuller batches take the memory in which the engine keeps prefixes, so fewer "
    "reads stay cached; see kv_share_of_batches, and compare the engine's hit rate before and after"
)
_DRAFTS = (
    "continuous_batching and speculate: drafts pay at small batches, and fuller ones take that away; together they are "
    "valued at the batch that is planned with"
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
        if key in pusd and _is_within(session.window, day):
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


def _is_within(window: Window, day: date | None) -> bool:
    """Tell whether a UTC day of the card has any part in the window: the card holds every day of the log."""
    if day is None:
        return False
    start = datetime.combine(day, time(), UTC)
    begins_before_end = window.until is None or start < window.until
    return begins_before_end and (window.since is None or window.since < start + timedelta(days=1))


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
    pairs = (("skip", "batch_api", _LATE), ("continuous_batching", "prefix_cache", _FULLER),
             ("continuous_batching", "speculate", _DRAFTS))  # fmt: skip
    return [said for first, second, said in pairs if {first, second} <= set(names)]


def ends_in(bill: Bill, names: Collection[str]) -> list[str]:
    """Say where a plan leaves each model of a fleet, which no single lever's advice does.

    Args:
        bill: The log's own bill.
        names: Levers of the plan.

    Returns:
        One sentence a model that more than one of them changes.
    """
    sites = bill.sites
    if sites is None:
        return []
    said: list[str] = []
    for number, place in enumerate(sites.places):
        acting = sorted(name for name in set(names) & sites.names if number in sites.changes[name])
        if len(acting) > 1:
            one = sites.rehosted(number, frozenset(acting), "mid").in_words
            bill_now = shown(place.hosted.bill_pusd)
            said.append(f"{', '.join(acting)} together: {place.name} ends on {one}, where its bill is {bill_now} now")
    return said


def freed_on_fleet(bill: Bill, names: Collection[str]) -> list[str]:
    """Say which levers save time of GPUs that are paid for anyway.

    Args:
        bill: The log's own bill, with what the levers judged.
        names: Levers that have judged.

    Returns:
        One sentence naming them; none where there is nothing to say.
    """
    sites = bill.sites
    keys = [] if sites is None else [str(key) for place in sites.places for key in place.keys]
    if sites is None or not keys:
        return []
    touching = [
        name
        for name in sorted(set(names) - sites.names)
        if len(
            bill.session.engine.fetch(
                f"select 1 as one from lever_judgement_{name} as j join lever_base as b on j.rid = b.rid "
                f"where j.fate = 'touched' and b.price_key in ({', '.join(keys)}) limit 1"
            )
        )
    ]
    return [_FREED.format(", ".join(touching))] if touching else []
