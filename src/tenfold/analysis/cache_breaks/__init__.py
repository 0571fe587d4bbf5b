"""What breaks the prompt cache in a log as billed, and what each break cost.

Every billed request is held against the one that may have left its beginning in the cache: the turn before of its
session and model; where that is gone, the turn before by another model; outside sessions, the last request of the pool
with the same first blocks. What that one left there (what it read and wrote; where nothing is written for a fee, all of
it), at most the request's own input, rounded as the provider does and 0 below the model's minimum, would have been
read. Where less was read, by a block or more, the request has one cause: the first of ``result.CAUSES`` that holds.

Cost of a break: the request as billed minus the same request with those tokens as reads, both by the one pricing
function, at its own day, tier and context band. The tokens right behind what was read are taken: the written ones
first (of these the ones with the longer lifetime), then uncached ones. A write in vain is counted only where no turn of
the session follows (what a follower lost is the follower's break) and nothing else read its beginning, and without what
is in a break already; the last lifetime of the log is left out, as what reads it may not be there yet.

Several conversations under one ``session_id`` (agents beside each other) look like broken prefixes: give each its own.
Rules: ``pricing/caching.toml``. Method: the same replay as the lever ``prefix_cache``, of one step instead of all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import polars as pl

from tenfold.analysis.cache_breaks.result import CAUSES, CEILINGS, UNCOSTED, CacheBreaks
from tenfold.analysis.cache_breaks.rules import model_break_evens, rule_times
from tenfold.analysis.cache_breaks.wording import cause as wording
from tenfold.ledger import Ledger, Session
from tenfold.prices.caching import CacheRules, rules_of
from tenfold.store import schema, steps

__all__ = ["CAUSES", "CacheBreaks", "cache_breaks"]

# A shortfall below one block of prefix hashes is how blocks and increments fall, not a break.
_SLACK_TOKENS = 128
# A feature's head is volatile where so many of at least so many beginnings are its own.
_STARTS = 10
_OWN_HEADS = Fraction(9, 10)
# A depth is fixed where so many sessions, and so large a share of the broken ones, break there.
_SESSIONS = 3
_AT_DEPTH = Fraction(1, 10)
_GROUP = ("provider", "model", "feature")
_CHANGED = ("cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens")
_KEPT = (
    *("price_key", "ts", "feature", "session_id", "is_billable", "gateway_cache_hit"),
    *("load_id", "source_line", "dedup_key", *schema.TOKEN_COLUMNS),
)
# What each part needs: of every entry one column at least.
_NEEDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gaps": (("ts",), ("session_id",), ("cache_read_tokens",)),
    "model_switches": (("ts",), ("session_id",), ("cache_read_tokens",)),
    "prefixes": (("ts",), ("prefix_hashes",), ("cache_read_tokens",)),
    "heads": (("prefix_hashes",),),
    "misses": (("ts",), ("prefix_hashes",), ("cache_read_tokens",)),
    "unread_writes": (("ts",), ("cache_write_tokens",), ("session_id", "prefix_hashes"), ("cache_read_tokens",)),
    "longer_lifetime": (("ts",), ("cache_write_tokens",), ("session_id", "prefix_hashes"), ("cache_read_tokens",)),
    "in_flight": (("ts",), ("ttft_ms", "duration_ms")),
    "wording": (("texts.prompt",),),
}


def cache_breaks(priced: Ledger | Session, *, rules: CacheRules | None = None, texts_at_most: int = 500) -> CacheBreaks:
    """Find what breaks the prompt cache, with its cost.

    Args:
        priced: The ledger, or an open session of it; its window says which requests are judged, and the whole log what
            came before them.
        rules: The cache rules; those that go with the session's price book by default.
        texts_at_most: How many of the dearest breaks are looked at in their texts, where texts were kept.

    Returns:
        The breaks; parts that the log's columns do not allow are named in ``not_measurable``.
    """
    with priced.session() if isinstance(priced, Ledger) else nullcontext(priced) as session:
        return _found(session, rules_of(session.book) if rules is None else rules, texts_at_most)


def _found(session: Session, rules: CacheRules, texts_at_most: int) -> CacheBreaks:
    engine = session.engine
    times = rule_times(session, rules)
    engine.register("cache_rule_times", times)
    steps.run(engine, "cache_breaks_turns", materialised=True, columns=_listed(_KEPT, "r"))
    steps.run(engine, "cache_breaks_pairs")
    steps.run(engine, "cache_breaks_common", materialised=True, slack=str(_SLACK_TOKENS))
    heads = _heads(engine.fetch(f"{steps.filled('cache_breaks_heads')}\norder by all nulls last"))
    volatile = heads.filter("is_volatile").select(
        "provider", "model", pl.col("feature").fill_null("").alias("feature_key")
    )
    engine.register("cache_breaks_volatile", volatile)
    steps.run(
        engine, "cache_breaks_judged", materialised=True, kept=", ".join(_KEPT), slack=str(_SLACK_TOKENS)
    )  # fmt: skip
    session.price("cache_breaks_judged", "cache_breaks_now")
    cost = _cost(session, "p")
    engine.register("cache_breaks_changes", pl.DataFrame({"change": ["hit", "unread", "long"]}))
    kept = _listed([name for name in _KEPT if name not in _CHANGED], "p")
    steps.run(engine, "cache_breaks_versions", kept=kept, priced="cache_breaks_now", cost=cost)
    session.price("cache_breaks_versions", "cache_breaks_then")
    costs = engine.fetch(steps.filled("cache_breaks_costs", priced="cache_breaks_then", cost=cost))
    counts = engine.fetch(steps.filled("cache_breaks_counts", priced="cache_breaks_now"))
    depths = _depths(costs.filter(pl.col("broken_at").is_not_null()))
    missing = _missing(session)
    return CacheBreaks(
        frame=_breaks(costs, counts, depths),
        depths=depths,
        gaps=_gaps(counts),
        lifetimes=_lifetimes(costs),
        heads=heads,
        misses=_misses(counts),
        rules=times.drop("price_key", "by_project", "by_region").unique(maintain_order=True),
        break_evens=model_break_evens(session, times),
        texts=_texts(session, cost, depths, texts_at_most),
        not_measurable=missing,
    )


def _listed(names: Iterable[str], table: str) -> str:
    return ",\n  ".join(f"{table}.{name}" for name in names)


def _cost(session: Session, table: str) -> str:
    return " + ".join(f"coalesce({table}.{meter.name}_pusd, 0)" for meter in session.meters)


def _heads(found: pl.DataFrame) -> pl.DataFrame:
    own = pl.col("heads") * _OWN_HEADS.denominator >= pl.col("starts") * _OWN_HEADS.numerator
    return found.with_columns(is_volatile=(pl.col("starts") >= _STARTS) & own)


def _depths(broken: pl.DataFrame) -> pl.DataFrame:
    """Say where prefixes broke: at the head, at a depth that many sessions share, or elsewhere."""
    sessions = pl.col("sessions").sum().over(_GROUP)
    many = (pl.col("sessions") >= _SESSIONS) & (
        pl.col("sessions") * _AT_DEPTH.denominator >= sessions * _AT_DEPTH.numerator
    )
    place = pl.when(pl.col("broken_at") == 0).then(pl.lit("head")).when(many).then(pl.lit("fixed_depth"))
    return broken.select(
        *_GROUP,
        pl.col("broken_at").alias("block"),
        pl.col("broken_token").alias("token"),
        place.otherwise(pl.lit("elsewhere")).alias("place"),
        "sessions",
        "turns",
        "tokens",
        "unpriced_turns",
        _money("saved_pusd").alias("cost_pusd"),
    )


_FRAME = ("cause", "place", "label", "turns", "tokens", "unpriced_turns", "cost_pusd")


def _breaks(costs: pl.DataFrame, counts: pl.DataFrame, depths: pl.DataFrame) -> pl.DataFrame:
    """Put all causes in one frame: the costed ones with their cost, the others counted."""
    place = pl.lit(None, dtype=pl.String).alias("place")
    hit = costs.filter((pl.col("change") == "hit") & pl.col("broken_at").is_null()).with_columns(place)
    unread = costs.filter(pl.col("change") == "unread").with_columns(place, cause=pl.lit("write_unread"))
    costed = pl.concat([hit, unread]).select(
        *_GROUP, "cause", "place", "turns", "tokens", "unpriced_turns", _money("saved_pusd").alias("cost_pusd")
    )
    known = pl.when(pl.col("cost_pusd").count() > 0).then(pl.col("cost_pusd").sum())
    broken = depths.group_by(*_GROUP, "place").agg(pl.col("turns", "tokens", "unpriced_turns").sum(), known)
    broken = broken.with_columns(_money("cost_pusd"), cause=pl.lit("prefix_broken")).select(costed.columns)
    counted = (
        counts.filter(pl.col("cause").is_in(UNCOSTED))
        .group_by(*_GROUP, "cause")
        .agg(pl.col("turns").sum(), pl.col("input_tokens").sum().alias("tokens"))
        .with_columns(
            place,
            unpriced_turns=pl.lit(0, dtype=pl.Int64),
            cost_pusd=pl.lit(None, dtype=pl.Decimal(38, 0)),
        )
        .select(costed.columns)
    )
    order = {name: number for number, name in enumerate(CAUSES)}
    label = pl.when(pl.col("cause").is_in(CEILINGS)).then(pl.lit("ceiling"))
    return (
        pl.concat([costed, broken, counted])
        .with_columns(label.otherwise(pl.lit("replayed")).alias("label"))
        .select(*_GROUP, *_FRAME)
        .sort(*_GROUP, pl.col("cause").replace_strict(order), "place", nulls_last=True)
    )


def _gaps(counts: pl.DataFrame) -> pl.DataFrame:
    order = {"up_to_5_min": 0, "up_to_1_h": 1, "above_1_h": 2}
    return (
        counts.filter(pl.col("gap").is_not_null())
        .group_by(*_GROUP, "gap")
        .agg(pl.col("turns", "prefix_tokens").sum())
        .sort(*_GROUP, pl.col("gap").replace_strict(order), nulls_last=True)
    )


def _lifetimes(costs: pl.DataFrame) -> pl.DataFrame:
    return costs.filter(pl.col("change") == "long").select(
        *_GROUP,
        pl.col("tokens").alias("band_tokens"),
        "written_tokens",
        "unpriced_turns",
        _money("saved_pusd").alias("saving_pusd"),
    )


def _misses(counts: pl.DataFrame) -> pl.DataFrame:
    found = counts.group_by(_GROUP).agg(pl.col("eligible_turns", "missed_turns").sum())
    return found.filter(pl.col("eligible_turns") > 0).sort(*_GROUP, nulls_last=True)


def _money(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.Decimal(38, 0))


_TEXTS = {
    **dict.fromkeys((*_GROUP, "cause", "place", "why"), pl.String()),
    **dict.fromkeys(("turns", "tokens", "unpriced_turns"), pl.Int64()),
    "cost_pusd": pl.Int128(),
}


def _texts(session: Session, cost: str, depths: pl.DataFrame, at_most: int) -> pl.DataFrame:
    """Name the causes of the dearest breaks of which both prompts were kept."""
    sql = steps.filled("cache_breaks_texts", priced="cache_breaks_then", cost=cost, at_most=str(at_most))
    places = {tuple(row[:4]): row[4] for row in depths.select(*_GROUP, "block", "place").iter_rows()}
    sums: dict[tuple[str | None, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in session.engine.fetch(sql).rows(named=True):
        why, _ = wording(row["before_prompt"], row["after_prompt"])
        saved = row["saved_pusd"]
        group = tuple(row[name] for name in _GROUP)
        key = (*group, row["cause"], places.get((*group, row["broken_at"])), why)
        add = (1, row["lost_tokens"], int(saved is None), int(saved or 0))
        sums[key] = [before + more for before, more in zip(sums[key], add, strict=True)]
    rows = [(*key, *values) for key, values in sums.items()]
    made = pl.DataFrame(rows, schema=_TEXTS, orient="row").with_columns(_money("cost_pusd"))
    return made.sort(*_GROUP, "cost_pusd", "why", descending=[False, False, False, True, False], nulls_last=True)


def _missing(session: Session) -> dict[str, tuple[str, ...]]:
    """Name the columns that are empty in every billed request, by the part that needs them."""
    names = sorted({name for needs in _NEEDS.values() for one in needs for name in one if "." not in name})
    has = ", ".join(f"count({name}) > 0 as {name}" for name in names)
    billed = "coalesce(is_billable, true) and not coalesce(gateway_cache_hit, false)"
    known: dict[str, Any] = session.engine.fetch(f"select {has} from requests where {billed}").row(0, named=True)
    kept = session.engine.fetch("select count(prompt) > 0 as kept from texts").item()
    known["texts.prompt"] = kept
    lacking = {
        part: tuple(" or ".join(one) for one in needs if not any(known[name] for name in one))
        for part, needs in _NEEDS.items()
    }
    return {part: columns for part, columns in lacking.items() if columns}
