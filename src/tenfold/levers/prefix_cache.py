"""Lever 3: prompt caching at the provider: what it already saved or lost, and what turning it off would change."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

from tenfold.display import saved_or_lost
from tenfold.levers.base import Advice, Assumed, Assumption, Bill, Judged, Label, Look, Stage, Status
from tenfold.levers.matching import matches_none
from tenfold.levers.repricing import missing, tried
from tenfold.levers.tally import MOVED, Tally, fact
from tenfold.levers.values import choice, count
from tenfold.money import shown, usd_text
from tenfold.slo import Slo
from tenfold.store import steps
from tenfold.store.cells import CACHED_MEDIA

_STEP = "lever_prefix_cache"
_JUDGED = "lever_prefix_cache_judged"
_CACHED = ("cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens", *CACHED_MEDIA)
_FACTS = {
    "not_cached": "requests without cached or written tokens",
    "split_unknown": "requests whose cached share the log does not say: left as they are",
    "unpriced": "requests without a price now: left as they are",
    "not_billed": "requests that are not billed",
}


class PrefixCache:
    """Prompt caching at the provider, under one of its policies."""

    name = "prefix_cache"
    number = 3
    stage = Stage.PREFIX
    needs = (("cache_read_tokens", "cache_write_tokens"),)
    columns: tuple[str, ...] = ()
    changed = _CACHED
    assumptions = (
        Assumption(
            "policy",
            "as_shipped",
            "none, as_shipped, system or history",
            "the log as it is",
            conservative=True,
            read=choice("none", "as_shipped", "system", "history"),
        ),
        Assumption(
            "lifetime",
            "default",
            "default or long",
            "the provider's default lifetime",
            conservative=True,
            read=choice("default", "long"),
        ),
        Assumption("system_tokens", None, "tokens", "the prompt's own length", conservative=True, read=count),
    )
    conflicts: tuple[str, ...] = ()
    effort_days = Decimal(1)
    risk: Literal["low", "medium", "high"] = "low"
    reversible = True
    rule_of_thumb = "hit rate x 90 % of input: overstates, as it leaves out what writes cost extra"
    slo_effect = "unknown"
    settled = "new_pusd"

    def allowed(self, slo: Slo, assumed: Assumed) -> str:  # noqa: ARG002 -- no latency model, so nothing is vetoed
        """Write which requests the service levels leave to this lever: all, as it has no latency model.

        Args:
            slo: The service levels.
            assumed: Its assumptions.

        Returns:
            A SQL condition.
        """
        return "true"

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Find the requests that use a cache.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged; the whole answer for a policy that changes nothing, or has no figure.
        """
        lacking = missing(self, bill)
        if lacking:
            return Look("not_measurable", lacking, "exact", None, None, (), _LOG_IT, applies=False)
        steps.run(bill.session.engine, _JUDGED)
        judged = Judged(_JUDGED)
        if assumed.values["policy"] == "none":
            return judged
        return self._found(bill, assumed, tried(_UNCACHED, bill, judged, assumed, "lever_uncached"))

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Change the bill: policy ``none`` makes all input uncached.

        Args:
            bill: The bill before.
            assumed: Its assumptions.

        Returns:
            The bill after.
        """
        return _UNCACHED.apply(bill, assumed)

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        """Say what caching already saved or lost.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.
            counted: What turning it off did, counted.

        Returns:
            Status, facts and advice.
        """
        return self._found(bill, assumed, counted)

    def _found(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        as_billed = counted.total("then_pusd") - counted.total("now_pusd")
        policy = assumed.values["policy"]
        addressed = counted.total("now_pusd", MOVED) if policy == "none" else 0
        status, reason, label = _status(policy, counted, has_table=assumed.has_table)
        if status == "nothing_eligible":
            reason = matches_none(bill.session.engine, assumed.where)
        shown_addressed = None if status == "not_measurable" else addressed
        return Look(
            status,
            reason,
            label,
            shown_addressed,
            as_billed,
            _evidence(counted, as_billed),
            _advice(counted, as_billed, policy),
            applies=status == "ok",
        )


class _Uncached:
    """The same tokens without any caching."""

    changed = _CACHED
    settled = "new_pusd"

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:  # noqa: ARG002 -- a change takes assumptions
        name = f"{bill.requests}_uncached"
        cached = [column for column in _CACHED if column in bill.columns]
        uncached = ",\n  ".join(f"p.{column} * 0 as new_{column}" for column in cached)
        steps.run(bill.session.engine, _STEP, name=name, requests=bill.requests, uncached=uncached)
        return replace(bill, requests=name)


_UNCACHED = _Uncached()
LEVER = PrefixCache()
_NO_TABLE = (
    'no assumption yet: add [prefix_cache] with policy = "none" to the assumptions file to see what caching is worth'
)
_LOG_IT = Advice(
    "Log the provider's cached and written token counts with every request.",
    "Load a day of them and run this again: it then says what caching saved or lost.",
    "Nothing to undo.",
)


def _status(policy: object, counted: Tally, *, has_table: bool) -> tuple[Status, str, Label]:
    if policy in ("system", "history"):
        reason = f'policy "{policy}" needs a replay of the prompts\' prefixes, which this version does not have'
        return "not_measurable", f'{reason}; policy = "none" shows what caching did so far', "replayed"
    if not has_table:
        return "no_assumption", _NO_TABLE, "exact"
    if not counted.requests():
        return "nothing_eligible", "", "exact"
    return "ok", "", "exact"


def _evidence(counted: Tally, as_billed: int) -> tuple[dict[str, Any], ...]:
    facts = [
        fact("cached_requests", counted.requests(MOVED), "requests", _STEP),
        fact("cache_read_tokens", counted.total("read_tokens", MOVED), "tokens", _STEP),
        fact("cache_write_tokens", counted.total("write_tokens", MOVED), "tokens", _STEP),
        fact("cost_as_billed_usd", usd_text(counted.total("now_pusd", MOVED)), "USD", "priced"),
        fact("cost_uncached_usd", usd_text(counted.total("now_pusd", MOVED) + as_billed), "USD", "priced"),
    ]
    return (*facts, *counted.fates(_FACTS, _JUDGED))


def _advice(counted: Tally, as_billed: int, policy: object) -> Advice:
    saved_without = counted.by_saving()
    if saved_without and saved_without[0][2] > 0:
        name, requests, lost = saved_without[0]
        gist = f"{requests:,} requests lost {shown(lost)}"
        first = f"Stop writing to the cache, or repair the prompt's head, in {name}: {gist}."
    elif not counted.requests(MOVED):
        first = "Nothing to change: no request here reads or writes a prompt cache."
    elif policy == "none":
        first = f"Keep the cache on: it {saved_or_lost(as_billed)} against the same tokens without it."
    else:
        first = f"Nothing to change yet: caching {saved_or_lost(as_billed)} in this log."
    return Advice(
        first,
        "Compare what caching saved in the next full week with this one, feature by feature.",
        "Put the cache markers back as they were; the next request writes the cache again.",
    )
