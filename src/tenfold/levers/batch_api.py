"""Lever 8: requests that nobody waits for, sent to the provider's batch API, its flex tier or its cheaper hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, cast

import polars as pl

from tenfold.display import percent
from tenfold.ledger.metering import half_even
from tenfold.levers.base import Advice, Assumed, Assumption, Bill, Judged, Label, Look, Stage, Status
from tenfold.levers.hours import cheaper_hours, no_hours
from tenfold.levers.matching import matches_none
from tenfold.levers.provisioned import PROVISIONED, provisioned_facts
from tenfold.levers.repricing import missing
from tenfold.levers.tally import MOVED, Tally, fact
from tenfold.levers.values import Range, choice, share
from tenfold.money import shown, usd_text
from tenfold.slo import Slo
from tenfold.store import steps
from tenfold.store.cells import CACHED_MEDIA

BATCH_DELAY_S = 86_400
OFF_PEAK = "off_peak"
_PLACES = {
    "batch": "to the batch endpoint",
    "flex": "to the flex tier",
    OFF_PEAK: "from a queue that waits for the model's cheapest hour",
}
_BACK = {
    "batch": "at once to the standard endpoint again",
    "flex": "to the standard tier again",
    OFF_PEAK: "at once again, whatever the hour",
}
_STANDARD = "lever_batch_standard"
_STEP = "lever_batch_api"
_JUDGED = "lever_batch_api_judged"
_FACTS = {
    "other_tier": "requests of another tier than standard",
    "streamed": "requests that were streamed: someone reads along",
    "stream_unknown": "requests that do not say whether they were streamed: left as they are",
    "chained": "requests that the same session followed up before a delayed answer would be there",
    "retry": "retries of an attempt that was billed itself: the work is saved once",
    "vetoed": "requests that the service levels forbid to wait",
    "one_price": "requests of a model whose price does not change within the day",
    "cheapest_now": "requests that already run at the cheapest hour of the next 24",
    "unpriced": "requests without a price now: left as they are",
    "no_price": "requests whose model has no price in that tier: left as they are",
    "not_billed": "requests that are not billed",
}


class BatchApi:
    """The batch API, for requests that a rule or a tag declares able to wait."""

    name = "batch_api"
    number = 8
    stage = Stage.TIER
    needs = (("is_stream",), ("ts",))
    columns: tuple[str, ...] = ("is_stream",)
    changed = ("price_key", "ts", "cache_read_tokens", *CACHED_MEDIA)
    assumptions = (
        Assumption(
            "tier",
            "batch",
            "batch, flex, or off_peak (the model's cheapest hour within the next 24)",
            "the tier with a published delay",
            conservative=True,
            read=choice("batch", "flex", OFF_PEAK),
        ),
        Assumption(
            "cache_hit_factor",
            Range(*[Decimal(1)] * 3),
            "share of today's cached reads that stay cached, 0 to 1",
            "optimistic: every cached read stays cached; providers publish 0.30 to 0.98 for batches",
            conservative=False,
            read=share,
        ),
        Assumption(
            "expiry_ratio",
            Range(*[Decimal(0)] * 3),
            "share of the moved requests that expire and are sent again at today's price, 0 to 1",
            "providers publish no such share",
            conservative=False,
            read=share,
            falls=True,
        ),
        Assumption(
            "provisioned",
            None,
            "capacity by the hour to compare with: usd_per_hour, tokens_per_minute (evidence only)",
            "no public price",
            conservative=True,
            read=PROVISIONED,
        ),
    )
    conflicts: tuple[str, ...] = ()
    effort_days = Decimal(2)
    risk: Literal["low", "medium", "high"] = "low"
    reversible = True
    rule_of_thumb = "2x: leaves out cached reads that get no second discount, or are lost, and what cannot wait"
    slo_effect = "answers within 24 hours (batch, off_peak); unknown (flex)"

    def allowed(self, slo: Slo, assumed: Assumed) -> str:
        """Write which requests the service levels leave to this lever.

        Batch may take a day: a smaller deadline, or a limit on the first token, forbids it. Flex answers at once but
        promises no speed: a limit on the first token forbids it. Cheaper hours are a wait that differs by request: it
        is held against its deadline in ``judge``.

        Args:
            slo: The service levels.
            assumed: Its assumptions.

        Returns:
            A SQL condition.
        """
        return slo.may_wait(BATCH_DELAY_S if assumed.values["tier"] == "batch" else 0)

    def marks(self, slo: Slo, assumed: Assumed) -> Mapping[str, str]:  # noqa: ARG002 -- the same for every tier
        """Write how long each request may wait.

        Args:
            slo: The service levels.
            assumed: Its assumptions.

        Returns:
            ``batch_api_wait_s``.
        """
        return {"batch_api_wait_s": slo.longest_wait(BATCH_DELAY_S)}

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Decide which requests can wait.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            What it judged; the whole answer where the log does not say who waits.
        """
        lacking = missing(self, bill)
        if lacking:
            reason = f"{lacking}: not known whether anyone waits for an answer"
            reason += _SET_IT if "is_stream" in lacking else ""
            return Look("not_measurable", reason, "exact", None, None, (), _LOG_IT, applies=False)
        engine = bill.session.engine
        engine.register(_STANDARD, pl.DataFrame({"price_key": _standard(bill)}, schema={"price_key": pl.Int32}))
        by_hours = _by_hours(assumed)
        steps.run(
            engine,
            _JUDGED,
            keys=_STANDARD,
            hours=_hours(bill, assumed),
            by_hours=str(by_hours).lower(),
            due="h.moved_to" if by_hours else "b.ts + interval '24' hour",
        )
        return Judged(_JUDGED, is_ceiling=assumed.where is None)

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Change the bill: eligible requests take the other tier's rates, with the cached reads assumed to stay.

        Args:
            bill: The bill before.
            assumed: Its assumptions.

        Returns:
            The bill after.
        """
        name = f"{bill.requests}_moved"
        media = [column for column in CACHED_MEDIA if column in bill.columns]
        share_of = "{0} * kept_num - {0} * kept_num % kept_den"
        steps.run(
            bill.session.engine,
            _STEP,
            name=name,
            requests=bill.requests,
            keys=_keys(bill, assumed),
            hours=_hours(bill, assumed),
            media="".join(f",\n  cast(({share_of.format(one)}) / kept_den as bigint) as new_{one}" for one in media),
        )
        return replace(bill, requests=name, settled=_settled(Fraction(assumed.number("expiry_ratio"))))

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        """Say which requests can wait and what stands against the others.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.
            counted: What it did on its own, counted.

        Returns:
            Status, facts and advice.
        """
        is_ceiling = assumed.where is None
        status, reason = _status(counted, is_ceiling=is_ceiling)
        if status == "nothing_eligible" and not counted.requests():
            reason = matches_none(bill.session.engine, assumed.where)
        is_known = status != "not_measurable"
        facts = _evidence(counted)
        given = cast("dict[str, Any] | None", assumed.values["provisioned"])
        if given is not None:
            facts = (*facts, *provisioned_facts(bill.session, given, _STANDARD))
        return Look(
            status,
            reason,
            _label(assumed, counted, is_ceiling=is_ceiling),
            counted.total("now_pusd", MOVED) if is_known else None,
            None,
            facts,
            _advice(counted, assumed, status) if is_known else _LOG_IT,
            applies=status == "ok" or (is_ceiling and is_known),
            left_out=(
                *counted.left_out("vetoed", "left out by the service levels"),
                *counted.left_out("no_price", f"no price in tier {assumed.values['tier']}"),
            ),
        )


def _keys(bill: Bill, assumed: Assumed) -> str:
    """Make the table of the keys that requests move to: another tier's, or their own at another hour."""
    tier = str(assumed.values["tier"])
    kept = Fraction(assumed.number("cache_hit_factor"))
    standard = _standard(bill)
    moved = dict(zip(standard, standard, strict=True))
    if not _by_hours(assumed):
        moved = bill.session.add_keys({key: {"service_tier": tier} for key in standard})
    rows = [(key, moved[key], kept.numerator, kept.denominator) for key in standard]
    name = f"{bill.requests}_keys"
    bill.session.engine.register(name, pl.DataFrame(rows, schema=_KEYS, orient="row"))
    return name


def _by_hours(assumed: Assumed) -> bool:
    return assumed.values["tier"] == OFF_PEAK


def _hours(bill: Bill, assumed: Assumed) -> str:
    """Make the table of hours to move to; without a row where that is not the tier."""
    name = f"{bill.requests}_hours"
    hours = cheaper_hours(bill.session, bill.requests) if _by_hours(assumed) else no_hours()
    bill.session.engine.register(name, hours)
    return name


def _settled(expired: Fraction) -> str:
    """Write what a moved request costs where a share of them expires and is paid as it is now."""
    if not expired:
        return "new_pusd"
    more = f"(cast(own_pusd - new_pusd as decimal(19, 0)) * cast({expired.numerator} as decimal(19, 0)))"
    return f"new_pusd + {half_even(more, expired.denominator)}"


def _standard(bill: Bill) -> list[int]:
    return [row[0] for row in bill.session.keys if row[3] == "standard"]


LEVER = BatchApi()
_KEYS: dict[str, pl.DataType] = {
    "price_key": pl.Int32(),
    "moved_key": pl.Int32(),
    "kept_num": pl.Int64(),
    "kept_den": pl.Int64(),
}
_NO_WHERE = (
    "no assumption yet: name the requests that can wait as `where` of [batch_api] in the assumptions file; until then "
    "this is the most there is, if all could"
)
_SET_IT = "; if none was streamed, say so when you load: tenfold load ... --set is_stream=false"
_LOG_IT = Advice(
    "Log whether each request was streamed, and when it began.",
    "Load a day of such requests and run this again.",
    "Nothing to undo.",
)


def _status(counted: Tally, *, is_ceiling: bool) -> tuple[Status, str]:
    known = counted.requests() - counted.requests("not_billed", "retry", "other_tier")
    if known and known == counted.requests("stream_unknown"):
        return (
            "not_measurable",
            f"is_stream is NULL in all {known:,} requests in its where: unknown whether anyone waits{_SET_IT}",
        )
    if is_ceiling:
        return "no_assumption", _NO_WHERE
    if counted.requests(MOVED):
        return "ok", ""
    if counted.requests("vetoed"):
        return "vetoed", f"the service levels let none of the {counted.requests('vetoed'):,} eligible requests wait"
    return "nothing_eligible", _why_none(counted)


def _why_none(counted: Tally) -> str:
    largest = max(_FACTS, key=counted.requests)
    counts = f"of {counted.requests():,} requests in its where, none can be moved"
    return f"{counts}; {counted.requests(largest):,} are {_FACTS[largest]}"


def _label(assumed: Assumed, counted: Tally, *, is_ceiling: bool) -> Label:
    """Call the figure exact only where no unstated hope, and no stated share, acts on it."""
    if is_ceiling:
        return "ceiling"
    all_kept = assumed.values["cache_hit_factor"] == Range(*[Decimal(1)] * 3)
    is_known = all_kept and "cache_hit_factor" in assumed.stated
    expires = any(cast("Range", assumed.values["expiry_ratio"]))
    return "exact" if not expires and (is_known or not counted.total("read_tokens", MOVED)) else "modelled"


def _evidence(counted: Tally) -> tuple[dict[str, Any], ...]:
    facts = [
        fact("requests_in_where", counted.requests(), "requests", "lever_log"),
        fact("requests_moved", counted.requests(MOVED), "requests", _STEP),
        fact("cost_now_usd", usd_text(counted.total("now_pusd", MOVED)), "USD", "priced"),
        fact("cost_moved_usd", usd_text(counted.total("then_pusd", MOVED)), "USD", "priced"),
        fact("cache_read_tokens", counted.total("read_tokens", MOVED), "tokens", _STEP),
        fact("cache_read_tokens_kept", counted.total("kept_read_tokens", MOVED), "tokens", _STEP),
    ]
    return (*facts, *counted.fates(_FACTS, _JUDGED))


def _advice(counted: Tally, assumed: Assumed, status: Status) -> Advice:
    tier = str(assumed.values["tier"])
    where = _PLACES[tier]
    moved = counted.by_saving()
    if not moved:
        first = "Nothing to do first: no request can be moved."
        if status == "vetoed":
            first = "Nothing to do first: the service levels let none of these requests wait."
        elif assumed.where is not None and not counted.requests():
            first = "Correct where of [batch_api], so that it matches requests."
        return Advice(first, "Nothing to verify.", "Nothing to undo.")
    name, requests, saving = moved[0]
    total = counted.total("now_pusd", MOVED) - counted.total("then_pusd", MOVED)
    part = f", {percent(Fraction(saving, total))} of this saving" if 0 < saving <= total else ""
    gist = f"{requests:,} requests, {shown(saving)}{part}"
    if assumed.where is None:
        question = f"Ask the owner of {name} whether its answers may come a day later ({gist})"
        first = f"{question}; if so, name it in [batch_api] where."
    else:
        first = f"Send {name} {where}: {gist}."
    return Advice(
        first,
        f"Move one in twenty of {name} for two weeks: compare cost a request, cached share and time to answer.",
        f"Send {name} {_BACK[tier]}; nothing else depends on it.",
    )
