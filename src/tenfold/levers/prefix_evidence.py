"""What a replayed cache policy did, as evidence: tokens, what writing costs extra, and from where on it pays."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tenfold.analysis.cache_breaks.rules import model_break_evens, rule_times
from tenfold.levers.base import Assumed, Bill
from tenfold.levers.repricing import VERSION_HEAD, VERSION_TAIL, changed, counts_in_use
from tenfold.levers.tally import MOVED, Tally, fact
from tenfold.money import usd_text
from tenfold.prices.caching import rules_of
from tenfold.replay.rules import rule_frame
from tenfold.store import steps

_WRITES = ("cache_write_tokens", "cache_write_long_tokens")
_READ = "lever_prefix_read"
_UNWRITTEN = "lever_prefix_unwritten"
_BREAK_EVENS = {
    "reads_per_write": "reads of a written token from which its write has paid",
    "hit_share": "share of cacheable tokens that must be reads",
    "keep_alive_s": "seconds of pause up to which reading once a lifetime beats writing again",
    "long_reads_per_write": "reads of a token written with the longer lifetime from which its write has paid",
    "long_hit_share": "share of cacheable tokens that must be reads, with the longer lifetime",
    "longer_lifetime_share": "tokens kept by the longer lifetime for each token still written, from which it pays",
}


class _Unwritten:
    """Writes billed as uncached input: the difference is what writing costs extra."""

    changed = _WRITES

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:  # noqa: ARG002 -- a change takes assumptions
        name = f"{bill.requests}_free"
        steps.run(bill.session.engine, _UNWRITTEN, name=name, requests=bill.requests)
        return replace(bill, requests=name)


def replayed(bill: Bill, assumed: Assumed, counted: Tally) -> tuple[dict[str, Any], ...]:
    """Write what a replayed policy does to the requests that it moves.

    Args:
        bill: The log's own bill.
        assumed: The assumptions.
        counted: What the policy did on its own, counted.

    Returns:
        Tokens read and written after, cost before and after, the write premium in it, the break-evens of the models
        whose writes have a price, and the provider's lookback, which no log can be held against.
    """
    written = counted.total("kept_write_tokens", MOVED)
    models = set(counted.frame.filter(fate=MOVED)["model"])
    return (
        fact("replayed_read_tokens", counted.total("kept_read_tokens", MOVED), "tokens", _READ),
        fact("replayed_write_tokens", written, "tokens", _READ),
        fact("cost_now_usd", usd_text(counted.total("now_pusd", MOVED)), "USD", "priced"),
        fact("cost_moved_usd", usd_text(counted.total("then_pusd", MOVED)), "USD", "priced"),
        fact("write_premium_usd", usd_text(_premium(bill, assumed, counted) if written else 0), "USD", _UNWRITTEN),
        *_break_evens(bill, models),
        *_lookback(bill, models),
    )


def _premium(bill: Bill, assumed: Assumed, counted: Tally) -> int:
    """Price the replayed requests with their writes as uncached input; what that takes off the bill is the premium."""
    columns = (*VERSION_HEAD, *counts_in_use(bill.session), *VERSION_TAIL)
    engine = bill.session.engine
    given = f"{_UNWRITTEN}_given"
    listed = ", ".join(f"v.{column}" for column in columns)
    engine.step(given, f"select {listed} from {counted.versions} as v where v.levers = {counted.bit} and v.is_kept")
    changed(_Unwritten(), Bill(bill.session, given, columns), assumed, f"{_UNWRITTEN}_done", 0)
    sums = [
        engine.fetch(f"select coalesce(sum(cast(cost_pusd as decimal(38, 0))), 0) as cost_pusd from {table}").item()
        for table in (given, f"{_UNWRITTEN}_done")
    ]
    return int(sums[0]) - int(sums[1])


def _break_evens(bill: Bill, models: set[str | None]) -> list[dict[str, Any]]:
    times = rule_times(bill.session, rules_of(bill.session.book))
    return [
        fact(f"{model}_{name}", None if value is None else _short(value), _BREAK_EVENS[name], "rates")
        for (_, model), values in model_break_evens(bill.session, times).items()
        for name, value in values.items()
        if model in models
    ]


def _lookback(bill: Bill, models: set[str | None]) -> list[dict[str, Any]]:
    frame = rule_frame(bill.session)
    limits = [
        row["lookback_blocks"]
        for row in frame.rows(named=True)
        if row["model"] in models and row["lookback_blocks"] is not None
    ]
    if not limits:
        return []
    unit = (
        "content blocks before a breakpoint in which the provider looks for an entry: not applied, as a log has no "
        "count of content blocks; a turn that adds more of them reads less than replayed"
    )
    return [fact("lookback_blocks_not_applied", min(limits), unit, "caching.toml")]


def _short(value: Fraction) -> str:
    rounded = round(value, 6)
    return str(Decimal(rounded.numerator) / Decimal(rounded.denominator))
