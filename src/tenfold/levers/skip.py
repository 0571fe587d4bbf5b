"""Lever 1: requests that need no model: a stored answer serves them again, or a rule does."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple, cast

from tenfold.display import counted as count_of
from tenfold.display import percent
from tenfold.errors import near
from tenfold.levers.base import Advice, Assumed, Assumption, Bill, Judged, Look, Stage, Status, Unvetoed
from tenfold.levers.matching import matches_none
from tenfold.levers.repricing import filled_columns, mark_of, missing
from tenfold.levers.semantic import SEMANTIC, Traffic, semantic_facts, share_text
from tenfold.levers.tally import MOVED, Tally, fact
from tenfold.levers.values import amount, count, flag, predicate, words
from tenfold.money import PUSD_PER_USD, shown, usd_text
from tenfold.replay.exact import exact_hits, key_words
from tenfold.store import schema, steps

_JUDGED = "lever_skip_judged"
_REQUESTS = "lever_skip_requests"
_HITS = "lever_skip_hits"
_KEY = ("l.prompt_hash", "l.params_hash")
_FACTS_STEP = "lever_skip_facts"
_MICROSECONDS = 1_000_000
# Features that evidence names one by one, the dearest first.
_MOST_FEATURES = 10
# Share of repeated requests with another answer above which a feature is held back.
_UNSTABLE = Fraction(1, 10)
_FACTS = {
    "miss": "requests that no stored answer would have served",
    "no_key": "requests without a prompt hash, a parameter hash or a time: never served",
    "unpriced": "requests that would go but have no price now: they save nothing",
    "not_billed": "requests that are not billed",
}
_SCOPES = tuple(one.name for one in schema.REQUESTS if one.type == "VARCHAR" and one.group != "internal")


def _scope(raw: object) -> tuple[str, ...]:
    """Read the columns within which answers are shared."""
    found = words(raw)
    for name in found:
        if name not in _SCOPES:
            raise ValueError(f'names no column of text of requests: "{name}".{near(name, _SCOPES)}')
    return found


class Skip(Unvetoed):
    """A cache of whole answers, replayed over the log; and requests that a rule answers."""

    name = "skip"
    number = 1
    stage = Stage.REMOVE
    needs = (("prompt_hash",), ("params_hash",), ("ts",), ("duration_ms",), ("status",), ("finish_reason",))
    columns: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    assumptions = (
        Assumption(
            "ttl_s",
            3_600,
            "seconds that a stored answer may be served, from when it was stored",
            "one hour",
            conservative=True,
            read=count,
        ),
        Assumption(
            "scope",
            ("org", "project"),
            "columns within which answers are shared",
            "no answer crosses an organisation or a project",
            conservative=True,
            read=_scope,
        ),
        Assumption(
            "capacity",
            None,
            "answers held at once, the least recently used goes",
            "no limit: answers are small",
            conservative=False,
            read=count,
        ),
        Assumption("lookup_usd", Decimal(0), "USD a request in where", "own store", conservative=False, read=amount),
        Assumption(
            "singleflight",
            False,
            "whether a request waits for an equal one that is running",
            "most gateways call the model again",
            conservative=True,
            read=flag,
        ),
        Assumption(
            "admit",
            None,
            "SQL predicate over requests: whose answers may be stored",
            "all whole answers that succeeded",
            conservative=False,
            read=predicate,
        ),
        Assumption(
            "rule",
            None,
            "SQL predicate over requests: what needs no model",
            "none named",
            conservative=True,
            read=predicate,
        ),
        Assumption(
            "classifier_usd",
            Decimal(0),
            "USD a request in where, to tell whether the rule holds",
            "a rule costs nothing",
            conservative=False,
            read=amount,
        ),
        Assumption(
            "semantic",
            None,
            "a labelled sample of a semantic cache: evidence only",
            "none: equal requests only",
            conservative=True,
            read=SEMANTIC,
        ),
    )
    conflicts: tuple[str, ...] = ()
    effort_days = Decimal(5)
    risk: Literal["low", "medium", "high"] = "medium"
    reversible = True
    rule_of_thumb = (
        "no bound: share of repeated requests x spend; leaves out when they come, the time to live, answers still "
        "running, and that short, cheap prompts repeat most"
    )
    slo_effect = "hits answer at once; every other request takes a lookup longer: unknown"

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Replay the cache, and apply the rule.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged; the whole answer where the log cannot tell which requests are equal, or in whose name.
        """
        lacking, rule = missing(self, bill), _rule(assumed)
        if lacking and rule == "false":
            reason = f"{lacking}: not known which requests a stored answer would have served"
            return Look("not_measurable", reason, "replayed", None, None, (), _LOG_IT, applies=False)
        engine, scope = bill.session.engine, cast("tuple[str, ...]", assumed.values["scope"])
        empty = [] if lacking else _empty_scope(bill, assumed, scope)
        if empty:
            reason = f"no billed request of this log has {' or '.join(empty)}: leave it out of [skip] scope, or log it"
            return Look("not_measurable", reason, "replayed", None, None, (), _LOG_IT, applies=False)
        admit = f"b.{mark_of(self.name, 'admit')}" if assumed.values["admit"] else "true"
        key = key_words(_KEY, (*(f"l.{name}" for name in scope), "k.provider", "k.model"))
        steps.run(engine, _REQUESTS, materialised=True, admit="false" if lacking else admit, rule=rule, **key)
        exact_hits(
            engine,
            _REQUESTS,
            _HITS,
            ttl_us=cast("int", assumed.values["ttl_s"]) * _MICROSECONDS,
            capacity=cast("int | None", assumed.values["capacity"]),
            singleflight=bool(assumed.values["singleflight"]),
        )
        fee = _fee(assumed)
        steps.run(engine, _JUDGED, materialised=True, hits=_HITS, rule=rule, fee=str(fee))
        return Judged(_JUDGED, has_fee=fee > 0, is_ceiling=assumed.where is None)

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:  # noqa: ARG002 -- a change takes assumptions
        """Change the bill: the requests are gone.

        Args:
            bill: The bill before.
            assumed: Its assumptions.

        Returns:
            The bill after: none of the requests given.
        """
        name = f"{bill.requests}_gone"
        bill.session.engine.step(name, f"select * from {bill.requests} where false")
        return replace(bill, requests=name)

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        """Say which requests need no model, and what speaks against serving them.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.
            counted: What it did on its own, counted.

        Returns:
            Status, facts and advice.
        """
        engine = bill.session.engine
        sql = steps.filled(_FACTS_STEP, hits=_HITS, rule=_rule(assumed))
        features = [_Feature(**row) for row in engine.fetch(f"{sql}\norder by all nulls last").rows(named=True)]
        features.sort(key=lambda one: (-one.net_pusd, one.feature or ""))
        status, reason = _status(assumed, counted)
        if status == "nothing_eligible" and not counted.requests():
            reason = matches_none(engine, assumed.where)
        lacking = missing(self, bill)
        facts = [*_evidence(features, lacking), *counted.fates(_FACTS, _JUDGED)]
        given = cast("dict[str, Any] | None", assumed.values["semantic"])
        if given is not None:
            traffic = Traffic(sum(one.requests for one in features), sum(int(one.cost_pusd) for one in features))
            facts += semantic_facts(engine, given, traffic)
        return Look(
            status,
            reason,
            "ceiling" if assumed.where is None else "modelled" if lacking else "replayed",
            sum(int(one.cost_pusd) for one in features),
            None,
            tuple(facts),
            _advice(features, assumed),
            applies=status == "ok" or assumed.where is None,
        )


LEVER = Skip()
_NO_WHERE = (
    "no assumption yet: name the requests that may get an answer again as `where` of [skip] in the assumptions file; "
    "until then this is the most there is, if all may"
)
_LOG_IT = Advice(
    "Load the log with its text (it is hashed, then dropped), or log a hash of every prompt and answer with its "
    "parameters, duration, status and finish reason.",
    "Load a day of such requests and run this again: it then says how many asked the same again.",
    "Nothing to undo.",
)


class _Feature(NamedTuple):
    """What the replay found in one feature: see ``lever_skip_facts.sql``."""

    feature: str | None
    requests: int
    keyed: int
    hits: int
    compared: int
    differing: int
    stored: int
    concurrent: int
    by_rule: int
    cost_pusd: Decimal
    gone_pusd: Decimal
    fees_pusd: Decimal

    @property
    def net_pusd(self) -> int:
        """What goes, less the fees of all its requests."""
        return int(self.gone_pusd - self.fees_pusd)

    @property
    def name(self) -> str:
        return f"`{self.feature}`" if self.feature else "requests without a feature"

    @property
    def why_not(self) -> str:
        """Why it is held back; empty where it is not."""
        if self.compared and Fraction(self.differing, self.compared) > _UNSTABLE:
            share = percent(Fraction(self.differing, self.compared))
            return f"{self.name} ({share} of its repeated requests had another answer)"
        if self.net_pusd < 0:
            return f"{self.name} (lookups and classifier cost {shown(-self.net_pusd)} more than they save)"
        return ""


def _rule(assumed: Assumed) -> str:
    return f"b.{mark_of('skip', 'rule')}" if assumed.values["rule"] else "false"


def _empty_scope(bill: Bill, assumed: Assumed, scope: tuple[str, ...]) -> list[str]:
    """Name columns of a stated scope that hold nothing: answers would be shared by all, which nobody asked for."""
    if "scope" not in assumed.stated or not scope:
        return []
    return [name for name, filled in filled_columns(bill, scope).items() if not filled]


def _fee(assumed: Assumed) -> int:
    """What every request in where pays, in pUSD."""
    keys = ("lookup_usd", "classifier_usd") if assumed.values["rule"] else ("lookup_usd",)
    return sum(int(cast("Decimal", assumed.values[key]) * PUSD_PER_USD) for key in keys)


def _status(assumed: Assumed, counted: Tally) -> tuple[Status, str]:
    if assumed.where is None:
        return "no_assumption", _NO_WHERE
    if counted.requests(MOVED):
        return "ok", ""
    largest = max(_FACTS, key=counted.requests)
    counts = f"of {count_of(counted.requests(), 'request')} in its where, none can go"
    return "nothing_eligible", f"{counts}; {counted.requests(largest):,} are {_FACTS[largest]}"


def _evidence(features: list[_Feature], lacking: str) -> list[dict[str, Any]]:
    def total(name: str) -> int:
        return sum(int(getattr(one, name)) for one in features)

    def share(part: int, whole: int) -> str | None:
        return share_text(Fraction(part, whole)) if whole else None

    requests, hits, gone = total("requests"), total("hits"), total("gone_pusd")
    facts = [
        fact("requests_in_where", requests, "billed requests", "lever_log"),
        fact("hits", hits, "requests that a stored answer serves", "replay_exact"),
        fact("rule_matches", total("by_rule"), "requests that the rule names", _JUDGED),
        fact("hit_share_of_requests", share(hits, requests), "ratio", _FACTS_STEP),
        fact(
            "removed_share_of_spend",
            share(gone, total("cost_pusd")),
            "ratio; hits concentrate on short prompts",
            _FACTS_STEP,
        ),
        fact("cost_removed_usd", usd_text(gone), "USD", _FACTS_STEP),
        fact("fees_usd", usd_text(total("fees_pusd")), "USD", _FACTS_STEP),
        fact("stored", total("stored"), "answers stored", _FACTS_STEP),
        fact(
            "answer_instability",
            share(total("differing"), total("compared")),
            f"share of {count_of(total('compared'), 'hit')} whose logged answer differs from the stored one",
            _FACTS_STEP,
        ),
        fact(
            "concurrent_duplicates",
            total("concurrent"),
            "misses that began while an equal request was running",
            _FACTS_STEP,
        ),
    ]
    if lacking:
        facts.append(fact("cache_not_replayed", lacking, "only the rule has a figure", _JUDGED))
    for one in [one for one in features if one.gone_pusd or one.fees_pusd][:_MOST_FEATURES]:
        name, unit = one.feature or "no feature", f"of {count_of(one.requests, 'request')}"
        facts.append(fact(f"removed of {name}", one.hits + one.by_rule, unit, _FACTS_STEP))
        facts.append(fact(f"net of fees of {name}", usd_text(one.net_pusd), "USD", _FACTS_STEP))
    return facts


def _advice(features: list[_Feature], assumed: Assumed) -> Advice:
    held = [one for one in features if one.why_not]
    ready = [one for one in features if one.gone_pusd and not one.why_not]
    hold = f" Hold back {', '.join(one.why_not for one in held[:3])}." if held else ""
    if not ready:
        return Advice(f"Nothing to do first: no feature gains.{hold}", "Nothing to verify.", "Nothing to undo.")
    best = ready[0]
    ttl = f"{assumed.values['ttl_s']:,} s"
    gist = f"{best.hits + best.by_rule:,} of {count_of(best.requests, 'request')}, {shown(best.net_pusd)} net of fees"
    if assumed.where is None:
        question = f"Ask the owner of {best.name} whether an answer may be served again for {ttl} ({gist})"
        first = f"{question}; if so, name it in [skip] where."
    elif best.by_rule > best.hits:
        first = f"Let the rule answer {best.name} first, before any model: {gist}."
    else:
        first = f"Turn the response cache on for {best.name} first, with a time to live of {ttl}: {gist}."
    return Advice(
        first + hold,
        f"Serve it to every second user of {best.name} for two weeks: compare the share served with "
        f"{percent(Fraction(best.hits + best.by_rule, best.requests))}, cost a request and complaints, and read 200 "
        "served answers.",
        f"Switch the cache (and the rule) off for {best.name}, or set its time to live to 0: the next request goes to "
        "the model again.",
    )
