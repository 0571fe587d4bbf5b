"""The cache rules of a log's models, laid over its time: what holds for which price key from when to when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import polars as pl

from tenfold.analysis.break_evens import Rates, hit_share, keep_alive_s, longer_lifetime_share, reads_per_write
from tenfold.ledger import Session
from tenfold.prices.book import EVER, FOREVER
from tenfold.prices.caching import CacheRule, CacheRules
from tenfold.prices.words import canonical_provider

# Where the rules say nothing: the highest minimum that any provider publishes for most models, and the usual lifetime.
LEAST_TOKENS = 4_096
LIFETIME_S = 300
_BASE_BAND = -1
_SCHEMA = {
    "price_key": pl.Int32(),
    "provider": pl.String(),
    "model": pl.String(),
    "valid_from": pl.Datetime("us"),
    "valid_to": pl.Datetime("us"),
    "control": pl.String(),
    "min_tokens": pl.Int64(),
    "is_min_published": pl.Boolean(),
    "increment_tokens": pl.Int64(),
    "lifetime_s": pl.Int64(),
    "is_lifetime_published": pl.Boolean(),
    "long_lifetime_s": pl.Int64(),
    "by_project": pl.Boolean(),
    "by_region": pl.Boolean(),
    "source": pl.String(),
}


class ModelRates(NamedTuple):
    """Rates of input of one model as the card has them, in pUSD a token; None where it has none.

    Args:
        uncached: Uncached input.
        read: Read from the cache.
        write: Written with the default lifetime.
        long_write: Written with the longer one.
    """

    uncached: int | None
    read: int | None
    write: int | None
    long_write: int | None


def rule_times(session: Session, rules: CacheRules) -> pl.DataFrame:
    """List the rules that hold over the log's days, cut where one ends.

    Args:
        session: The priced session.
        rules: The cache rules.

    Returns:
        One row per price key and stretch of time (naive UTC, the end not within); keys without a rule are left out.
    """
    if not session.days:
        return pl.DataFrame(schema=_SCHEMA)
    first = datetime.combine(min(session.days), datetime.min.time(), UTC)
    last = datetime.combine(max(session.days), datetime.min.time(), UTC) + timedelta(days=1)
    rows = [row for key in session.keys for row in _of_key(session, rules, key, first, last)]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _of_key(
    session: Session, rules: CacheRules, key: tuple[int, str, str, str, str], first: datetime, last: datetime
) -> Iterator[tuple[Any, ...]]:
    price_key, provider, model = key[:3]
    match = session.card.matches.get(price_key)
    canonical = (match.model if match else "") or model
    who = canonical_provider(provider)
    own = [rule for rule in rules.rules if canonical_provider(rule.provider) == who]
    bounds = {bound for rule in own for bound in (rule.valid_from or EVER, rule.valid_to or FOREVER)}
    edges = sorted({first, last, *(bound for bound in bounds if first < bound < last)})
    for start, end in pairwise(edges):
        rule = rules.find(provider, canonical, start)
        if rule is not None:
            yield (price_key, provider, model, _naive(start), _naive(end), *_facts(rules, rule))


def _facts(rules: CacheRules, rule: CacheRule) -> tuple[Any, ...]:
    least, is_published = rules.minimum(rule)
    return (
        rule.control,
        LEAST_TOKENS if least is None else least,
        is_published,
        rule.increment_tokens,
        rule.lifetime_s or LIFETIME_S,
        rule.lifetime_s is not None,
        rule.long_lifetime_s,
        not {"workspace", "project"}.isdisjoint(rule.scope),
        "region" in rule.scope,
        rule.source,
    )


def model_rates(session: Session) -> dict[tuple[str, str], ModelRates]:
    """Read the latest rates of each model: the standard tier's where it is used, below every context threshold.

    Args:
        session: The priced session.

    Returns:
        (Provider, model) to rates; models without a price are left out.
    """
    base = session.card.frame.filter(pl.col("above") == _BASE_BAND).sort("price_key", "day", "valid_from")
    latest = {row["price_key"]: row for row in base.rows(named=True)}
    found: dict[tuple[str, str], ModelRates] = {}
    for price_key, provider, model, tier, _ in session.keys:
        row = latest.get(price_key)
        if row is not None and ((provider, model) not in found or tier == "standard"):
            names = ("uncached_input", "cache_read", "cache_write", "cache_write_long")
            found[provider, model] = ModelRates(*(row[f"rate_{name}"] for name in names))
    return found


def model_break_evens(session: Session, times: pl.DataFrame) -> dict[tuple[str, str], Mapping[str, Fraction | None]]:
    """Give each model's break-evens from its latest rates.

    Args:
        session: The priced session.
        times: The rules over its days, from ``rule_times``.

    Returns:
        (Provider, model) to its break-evens by name; where writing is free there is none to give.
    """
    latest = {(row["provider"], row["model"]): row for row in times.sort("valid_from").rows(named=True)}
    found: dict[tuple[str, str], Mapping[str, Fraction | None]] = {}
    for key, card in sorted(model_rates(session).items()):
        rule = latest.get(key)
        if rule is None or card.uncached is None or card.read is None or card.write is None:
            continue
        long_write = card.long_write if rule["long_lifetime_s"] is not None else None
        rates = Rates(card.uncached, card.read, card.write, long_write)
        values = {
            "reads_per_write": reads_per_write(rates),
            "hit_share": hit_share(rates),
            "keep_alive_s": keep_alive_s(rule["lifetime_s"], rates),
        }
        if long_write is not None:
            values |= {
                "long_reads_per_write": reads_per_write(rates, long=True),
                "long_hit_share": hit_share(rates, long=True),
                "longer_lifetime_share": longer_lifetime_share(rates),
            }
        found[key] = values
    return found


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)
