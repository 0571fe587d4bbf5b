"""A fleet's rate card as entries of a price file, one a stretch of time, for every tier and region of the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tenfold.display import percent
from tenfold.errors import near
from tenfold.logs import Log
from tenfold.prices.words import canonical_provider
from tenfold.serving.allocation import Rates
from tenfold.serving.fleet import PROVIDER, Fleet
from tenfold.store.database import query

if TYPE_CHECKING:
    from tenfold.serving.hosted import Hosted


def kinds(log: Log) -> list[tuple[str, str]]:
    """List tiers and regions of self-hosted requests: a GPU costs the same whatever a log calls them.

    Args:
        log: The log.

    Returns:
        Pairs of tier and region.
    """
    with log.store.reading() as connection:
        keys = query(connection, "select distinct provider, service_tier, region from price_keys").rows()
    found = {(tier, region) for provider, tier, region in keys if provider and canonical_provider(provider) == PROVIDER}
    return sorted(found | {("standard", "")})


def for_all(card: Sequence[dict[str, Any]], places: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Write entries for every tier and region.

    Args:
        card: The entries.
        places: Pairs of tier and region.

    Returns:
        The entries of each.
    """
    return [{**one, "service_tier": tier, "region": region} for one in card for tier, region in places]


def entries(hosted: Sequence[Hosted]) -> list[dict[str, Any]]:
    """Write the rate card as entries of a price file: one a stretch with requests, open where its pools go on.

    Args:
        hosted: Models on their fleet.

    Returns:
        The entries.
    """
    made: list[dict[str, Any]] = []
    last = {one.model.lower(): one.until for one in hosted}
    for one in (one for one in hosted if one.demand.requests):
        is_last = one.until == last[one.model.lower()]
        goes_on = is_last and any(pool.until is None or pool.until > one.until for pool in one.pools)
        sums = " + ".join(pool.sum_text(one.since, one.until) for pool in one.pools)
        said = f"{sums}, busy {percent(one.busy_ratio, 1)} ({one.label})"
        made.append(entry(one.model, one.rates, said, one.until.date(), one.since, None if goes_on else one.until))
    return made


def entry(
    model: str, rates: Rates, source: str, checked: date, since: datetime | None = None, until: datetime | None = None
) -> dict[str, Any]:
    """Write one entry; what is written to a cache was computed, and costs what computed tokens cost.

    Args:
        model: The model.
        rates: pUSD a token.
        source: What they come from.
        checked: The day that they are as of.
        since: From when on they hold; None for always.
        until: Until when.

    Returns:
        Keys of a price file's entry.
    """
    per_million = [Decimal(rate).scaleb(-6) for rate in rates]
    return {
        "model": model,
        "input": per_million[0],
        "cache_read": per_million[1],
        "cache_write": per_million[0],
        "cache_write_long": per_million[0],
        "output": per_million[2],
        "source": source,
        "checked": checked,
        "valid_from": since,
        "valid_to": until,
    }


def unknown(fleet: Fleet) -> Callable[[str], str]:
    """Make what says why a self-hosted model has no price on this fleet.

    Args:
        fleet: The fleet.

    Returns:
        Function from a model to the reason.
    """
    own = {pool.model.lower(): pool.model for pool in fleet.pools}

    def why(model: str) -> str:
        if not model:
            return f"the log names no model (provider {PROVIDER})"
        if model.lower() in own:
            return f'no request of "{model}" has usage and a time while a pool of the fleet ({fleet.place}) runs it'
        return f'no pool of the fleet ({fleet.place}) runs "{model}".{near(model, own.values())}'

    return why
