"""Lever 3: prompt caching at the provider: what it already saved or lost, and what another policy would change."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

from tenfold.levers import prefix_evidence
from tenfold.levers import prefix_wording as wording
from tenfold.levers.base import Assumed, Assumption, Bill, Judged, Label, Look, Stage, Status, Unvetoed
from tenfold.levers.matching import matches_none
from tenfold.levers.prefix_policies import Found, chosen
from tenfold.levers.prefix_replay import CHANGED, Agreement, Policy, Replayed, agreement, is_by_session, judge, prompts
from tenfold.levers.repricing import filled_columns, missing, tried
from tenfold.levers.tally import MOVED, Tally, fact
from tenfold.levers.values import Value, choice, count
from tenfold.money import usd_text
from tenfold.store import steps

_STEP = "lever_prefix_cache"
_JUDGED = "lever_prefix_cache_judged"
_FACTS = {
    "not_cached": "requests without cached or written tokens",
    "split_unknown": "requests whose cached share the log does not say: left as they are",
    "unpriced": "requests without a price now: left as they are",
    "not_billed": "requests that are not billed",
    "no_rule": "requests of models of which no cache is known: left as they are",
    "no_prefix": "requests of which nothing tells the prompt's beginning: left as they are",
    "no_price": "requests that have no price with a cache: left as they are",
}


class PrefixCache(Unvetoed):
    """Prompt caching at the provider, under one of its policies."""

    name = "prefix_cache"
    number = 3
    stage = Stage.PREFIX
    needs = (("cache_read_tokens", "cache_write_tokens"),)
    columns: tuple[str, ...] = ()
    changed = CHANGED
    assumptions = (
        Assumption(
            "policy",
            "as_shipped",
            "none, as_shipped, system, history, or best of them",
            "the log as it is",
            conservative=True,
            read=choice("none", "as_shipped", "system", "history", "best"),
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
    rule_of_thumb = (
        "10x on the cached input (20x or 40x on some models): of the input that is read, before what writes cost extra"
    )
    slo_effect = "unknown"

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Find the requests that use a cache, or that a replay can serve from one.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged; the whole answer for a policy that changes nothing, or has no figure.
        """
        policy = assumed.values["policy"]
        if policy in ("system", "history", "best"):
            return self._replayed(bill, assumed)
        lacking = missing(self, bill)
        if lacking:
            return Look("not_measurable", lacking, "exact", None, None, (), wording.LOG_IT, applies=False)
        steps.run(bill.session.engine, _JUDGED)
        if policy == "none":
            return Judged(_JUDGED)
        return self._found(bill, assumed, self._as_billed(bill, assumed))

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Change the bill: policy ``none`` makes all input uncached, ``system`` and ``history`` are replayed.

        Args:
            bill: The bill before.
            assumed: Its assumptions.

        Returns:
            The bill after.
        """
        if assumed.values["policy"] == "none":
            return _UNCACHED.apply(bill, assumed)
        return Replayed(_policy(assumed), assumed.values.get(_BY_SESSION) == "yes").apply(bill, assumed)

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        """Say what caching already saved or lost, and what the policy would.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.
            counted: What the policy did on its own, counted.

        Returns:
            Status, facts and advice.
        """
        if assumed.values["policy"] == "none":
            return self._found(bill, assumed, counted)
        as_billed, past = self._past(bill, assumed)
        moved = counted.requests(MOVED)
        reason = "" if moved else matches_none(bill.session.engine, assumed.where)
        found = prefix_evidence.replayed(bill, assumed, counted) if moved else ()
        return Look(
            "ok" if moved else "nothing_eligible",
            reason,
            "replayed",
            counted.total("now_pusd", MOVED),
            as_billed,
            (*past, *found, *counted.fates(_FACTS, "lever_prefix_cache_hashed")),
            wording.replayed(bill.session, counted, assumed),
            applies=moved > 0,
        )

    def _past(self, bill: Bill, assumed: Assumed) -> tuple[int | None, tuple[dict[str, Any], ...]]:
        """Say what caching saved or lost so far, whatever the policy; nothing where the log has no cached counts."""
        if missing(self, bill):
            return None, ()
        steps.run(bill.session.engine, _JUDGED)
        before = self._as_billed(bill, assumed)
        as_billed = before.total("then_pusd") - before.total("now_pusd")
        return as_billed, _evidence(before, as_billed)

    def _withheld(self, bill: Bill, assumed: Assumed, status: Status, reason: str) -> Look:
        as_billed, past = self._past(bill, assumed)
        reason = wording.with_past(reason, as_billed)
        return Look(status, reason, "replayed", None, as_billed, past, wording.HASH_IT, applies=False)

    def _as_billed(self, bill: Bill, assumed: Assumed) -> Tally:
        return tried(_UNCACHED, bill, Judged(_JUDGED), assumed, "lever_uncached")

    def _found(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        as_billed = counted.total("then_pusd") - counted.total("now_pusd")
        policy = assumed.values["policy"]
        addressed = counted.total("now_pusd", MOVED) if policy == "none" else 0
        status, reason, label = _status(counted, has_table=assumed.has_table)
        if status == "nothing_eligible":
            reason = matches_none(bill.session.engine, assumed.where)
        return Look(
            status,
            reason,
            label,
            addressed,
            as_billed,
            _evidence(counted, as_billed),
            wording.as_billed(counted, as_billed, policy),
            applies=status == "ok",
        )

    def _replayed(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        filled = filled_columns(bill, ("ts", "prefix_hashes", "session_id"))
        if not filled["ts"] or not (filled["prefix_hashes"] or filled["session_id"]):
            lacking = "ts" if not filled["ts"] else "prefix_hashes or session_id"
            reason = f"no billed request of this log has {lacking}: a prompt's beginning cannot be told"
            return self._withheld(bill, assumed, "not_measurable", reason)
        if assumed.values["policy"] == "system" and not assumed.values["system_tokens"]:
            reason = 'policy "system" needs system_tokens: how long the fixed head of the prompt is'
            return replace(self._withheld(bill, assumed, "no_assumption", reason), advice=wording.STATE_IT)
        prompts(bill.session)
        by_session = is_by_session(bill.session)
        judged = judge(bill.session, by_session=by_session)
        agreed = agreement(bill, judged, assumed, by_session=by_session)
        facts = _agreed(agreed, by_session=by_session)
        if not agreed.holds:
            reason = wording.disagreement(agreed.predicted_tokens, agreed.billed_tokens)
            withheld = self._withheld(bill, assumed, "not_measurable", reason)
            return replace(withheld, evidence=(*withheld.evidence, *facts), advice=wording.FIND_OUT)
        settings: dict[str, Value] = {
            _BY_SESSION: "yes" if by_session else "no",
            wording.UNREAD: wording.unread(agreed.unread),
        }
        if assumed.values["policy"] != "best":
            return judged._replace(settings=settings, evidence=facts)
        return self._best(bill, assumed, judged._replace(settings=settings, evidence=facts))

    def _best(self, bill: Bill, assumed: Assumed, judged: Judged) -> Judged | Look:
        """Choose the policy on the earlier two thirds of the log; what it saves on the rest stands beside it."""
        steps.run(bill.session.engine, _JUDGED)
        by_session = judged.settings[_BY_SESSION] == "yes"
        system = assumed.values["system_tokens"]
        policies = [Policy("history", "default"), Policy("history", "long")]
        if isinstance(system, int) and system:
            policies += [Policy("system", "default", system), Policy("system", "long", system)]
        tries: list[tuple[str, str, Any, Judged]] = [("none", "default", _UNCACHED, Judged(_JUDGED))]
        tries += [(one.name, one.lifetime, Replayed(one, by_session), judged) for one in policies]
        found = chosen(bill, assumed, tries)
        facts = (*judged.evidence, *found.evidence())
        if found.name == "as_shipped":
            return self._no_better(bill, assumed, found, facts)
        settings: dict[str, Value] = {**judged.settings, "policy": found.name, "lifetime": found.lifetime}
        own = Judged(_JUDGED) if found.name == "none" else judged
        return own._replace(settings=settings, evidence=facts, holdout_pusd=found.holdout_pusd)

    def _no_better(self, bill: Bill, assumed: Assumed, found: Found, facts: tuple[dict[str, Any], ...]) -> Look:
        look = self._found(bill, assumed, self._as_billed(bill, assumed))
        reason = f"no other policy saved anything on the earlier {found.days} days"
        return replace(look, status="ok", label="replayed", reason=reason, evidence=(*look.evidence, *facts))


class _Uncached:
    """The same tokens without any caching."""

    changed = CHANGED

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:  # noqa: ARG002 -- a change takes assumptions
        name = f"{bill.requests}_uncached"
        cached = [column for column in CHANGED if column in bill.columns]
        uncached = ",\n  ".join(f"p.{column} * 0 as new_{column}" for column in cached)
        steps.run(bill.session.engine, _STEP, name=name, requests=bill.requests, uncached=uncached)
        return replace(bill, requests=name)


_UNCACHED = _Uncached()
# What the lever settles with itself: whether a log without hashes is replayed by its sessions.
_BY_SESSION = "by_session"
LEVER = PrefixCache()


def _policy(assumed: Assumed) -> Policy:
    head = assumed.values["system_tokens"]
    return Policy(str(assumed.values["policy"]), str(assumed.values["lifetime"]), head if isinstance(head, int) else 0)


def _status(counted: Tally, *, has_table: bool) -> tuple[Status, str, Label]:
    if not has_table:
        return "no_assumption", wording.NO_TABLE, "exact"
    if not counted.requests():
        return "nothing_eligible", "", "exact"
    return "ok", "", "exact"


def _agreed(agreed: Agreement, *, by_session: bool) -> tuple[dict[str, Any], ...]:
    told = "turns of sessions" if by_session else "prefix hashes"
    apart = [
        fact(f"as_shipped_{part}_read_tokens_{name.replace('`', '')}", tokens, "tokens", "lever_prefix_read")
        for name, sums in agreed.unread.items()
        for part, tokens in zip(("predicted", "billed"), sums, strict=True)
    ]
    return (
        fact("replayed_by", told, "what tells a prompt's beginning", "lever_prefix_reached"),
        fact("as_shipped_predicted_read_tokens", agreed.predicted_tokens, "tokens", "lever_prefix_read"),
        fact("as_shipped_billed_read_tokens", agreed.billed_tokens, "tokens", "lever_base"),
        *apart,
    )


def _evidence(counted: Tally, as_billed: int) -> tuple[dict[str, Any], ...]:
    facts = [
        fact("cached_requests", counted.requests(MOVED), "requests", _STEP),
        fact("cache_read_tokens", counted.total("read_tokens", MOVED), "tokens", _STEP),
        fact("cache_write_tokens", counted.total("write_tokens", MOVED), "tokens", _STEP),
        fact("cost_as_billed_usd", usd_text(counted.total("now_pusd", MOVED)), "USD", "priced"),
        fact("cost_uncached_usd", usd_text(counted.total("now_pusd", MOVED) + as_billed), "USD", "priced"),
    ]
    return (*facts, *counted.fates(_FACTS, _JUDGED))
