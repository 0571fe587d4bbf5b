"""The provider's prompt-cache rules of a log's price keys, as a small dated frame that replays join."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from typing import Any

import polars as pl

from tenfold.ledger.session import Session
from tenfold.prices.caching import CacheRule, CacheRules, rules_of
from tenfold.prices.words import canonical_provider

# Where a provider publishes no minimum at all: the highest that any publishes (design, 6a).
UNKNOWN_MINIMUM = 4096
# Where no lifetime is published: that of the shortest published ones.
UNKNOWN_LIFETIME_S = 300
_MICROSECONDS = 1_000_000
_SCHEMA: dict[str, pl.DataType] = {
    "price_key": pl.Int32(),
    "valid_from": pl.Datetime("us"),
    "valid_to": pl.Datetime("us"),
    "provider": pl.String(),
    "model": pl.String(),
    "control": pl.String(),
    "min_tokens": pl.Int64(),
    "min_is_known": pl.Boolean(),
    "increment_tokens": pl.Int64(),
    "lifetime_us": pl.Int64(),
    "lifetime_is_known": pl.Boolean(),
    "lifetime_high_us": pl.Int64(),
    "long_lifetime_us": pl.Int64(),
    "is_isolated_by_project": pl.Boolean(),
    "lookback_blocks": pl.Int64(),
}


def rule_frame(session: Session, rules: CacheRules | None = None, *, surface: str = "") -> pl.DataFrame:
    """Give the cache rules of a log's price keys over its days.

    Args:
        session: The priced look at the log; one that prices at an instant takes the rules of that instant.
        rules: Rules to look them up in; those that go with the session's price book by default.
        surface: ``implicit`` or ``explicit`` where a provider has both; empty takes the first.

    Returns:
        A row a price key and time in which one rule holds, keys without a rule left out: ``price_key``;
        ``valid_from``, ``valid_to`` (naive UTC, half-open, within the log's days); ``provider``, ``model`` as in the
        log; ``control`` (automatic, explicit, both, none); ``min_tokens``, where ``min_is_known`` is false the highest
        that the provider publishes, else 4,096; ``increment_tokens`` (0: exact, or not published); ``lifetime_us``
        (300 s where ``lifetime_is_known`` is false), ``lifetime_high_us`` (a longer one that happens; else the same),
        ``long_lifetime_us`` (one that can be asked for; NULL without), in microseconds; ``is_isolated_by_project``;
        ``lookback_blocks`` (NULL: no limit known).
    """
    rules = rules_of(session.book) if rules is None else rules
    days = session.days
    if not days:
        return pl.DataFrame(schema=_SCHEMA)
    first = datetime.combine(min(days), time(), UTC)
    end = datetime.combine(max(days), time(), UTC) + timedelta(days=1)
    rows: list[dict[str, Any]] = []
    for price_key, provider, model, tier, region in session.keys:
        canonical = session.book.match(provider, model, tier, region).model or model
        for since, until in _spans(rules, provider, first, end, session.price_at):
            rule = rules.find(provider, canonical, session.price_at or since, surface=surface)
            if rule is None:
                continue
            row = {"price_key": price_key, "provider": provider, "model": model, **_terms(rules, rule)}
            span = {"valid_from": since.replace(tzinfo=None), "valid_to": until.replace(tzinfo=None)}
            before = rows[-1] if rows else {}
            if before.get("valid_to") == span["valid_from"] and {**before, **span} == {**row, **span}:
                before["valid_to"] = span["valid_to"]
            else:
                rows.append({**row, **span})
    return pl.DataFrame(rows, schema=_SCHEMA)


def _spans(
    rules: CacheRules, provider: str, first: datetime, end: datetime, price_at: datetime | None
) -> list[tuple[datetime, datetime]]:
    """Cut the log's days where a rule of the provider begins or ends."""
    who = canonical_provider(provider)
    bounds = {first, end}
    if price_at is None:
        own = [rule for rule in rules.rules if canonical_provider(rule.provider) == who]
        dates = [at for rule in own for at in (rule.valid_from, rule.valid_to) if at is not None]
        bounds.update(at for at in dates if first < at < end)
    cuts = sorted(bounds)
    return list(pairwise(cuts))


def _terms(rules: CacheRules, rule: CacheRule) -> dict[str, Any]:
    published, min_is_known = rules.minimum(rule)
    lifetime_s = rule.lifetime_s or UNKNOWN_LIFETIME_S
    return {
        "control": rule.control,
        "min_tokens": UNKNOWN_MINIMUM if published is None else published,
        "min_is_known": min_is_known,
        "increment_tokens": rule.increment_tokens or 0,
        "lifetime_us": lifetime_s * _MICROSECONDS,
        "lifetime_is_known": rule.lifetime_s is not None,
        "lifetime_high_us": (rule.lifetime_high_s or lifetime_s) * _MICROSECONDS,
        "long_lifetime_us": None if rule.long_lifetime_s is None else rule.long_lifetime_s * _MICROSECONDS,
        "is_isolated_by_project": "workspace" in rule.scope,
        "lookback_blocks": rule.lookback_blocks,
    }
