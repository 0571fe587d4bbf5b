"""Lever 2: a smaller model for requests that it answers well enough (router), or tried on all first (cascade)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from oracle_levers.core import (
    DAY_US,
    Bill,
    Pricer,
    Request,
    Table,
    Version,
    count,
    end_of,
    in_where,
    number,
    parts,
    pusd,
    rhe,
    start_us,
    with_parts,
)
from oracle_levers.scoring import measured, score, threshold


@dataclass(frozen=True)
class Judged:
    """What routing does to each request, decided once on the log as billed (SPEC: levers judge once)."""

    goes: dict[int, bool | None]
    tried: frozenset[int]  # run on the small model and priced there
    keeps: dict[int, bool]  # whether cached reads are still there


def judge(bill: Bill, pricer: Pricer, table: Table, scenario: str, slo: Table | None) -> Judged:
    """Decide on the requests as they were billed; what has no price there was never routed, so nothing follows it."""
    goes = _verdicts([one for one in bill.versions if in_where(table, one.request)], table, slo)
    verifier = table.get("verifier")
    # In a cascade every request with a score is tried on the small model.
    moving = frozenset(place for place, good in goes.items() if good or (verifier and good is not None))
    keeps = kept_reads(bill.versions, moving, table, scenario)
    tried = frozenset(
        one.origin
        for one in bill.versions
        if one.origin in moving and pricer.may_become(one, [_moved(one, pricer, table, scenario, keeps)])
    )
    return Judged(goes, tried, kept_reads(bill.versions, tried, table, scenario))


def apply(bill: Bill, pricer: Pricer, table: Table, scenario: str, judged: Judged, ceded: Collection[int] = ()) -> Bill:
    """Router or cascade, on all but the requests ceded to a rival."""
    inside = [one for one in bill.versions if in_where(table, one.request) and one.origin not in ceded]
    goes, keeps, verifier = judged.goes, judged.keeps, table.get("verifier")
    made = Bill([], bill.fees, dict(bill.touched))
    # The rule: "router_usd on every billed request in where and allowed (routed or not). Not in a cascade unless
    # stated."
    made.fees += pusd(table.get("router_usd", 0)) * len(inside)
    for one in bill.versions:
        after = [one]
        is_tried = one.origin in judged.tried and one.origin not in ceded
        if is_tried:
            after = [_moved(one, pricer, table, scenario, keeps)]
            if verifier and not goes[one.origin]:
                after.append(_again(one, after[0], table))
        elif one.origin not in judged.tried and not verifier and not keeps.get(one.origin, True):
            after = [forfeited(one)]
        if after == [one] or not pricer.may_become(one, after):
            made.versions.append(one)
            continue
        made.versions.extend(after)
        if is_tried:
            made.touch("route", one.origin)
            made.fees += pusd(verifier["usd"]) if verifier else 0
    return made


def _verdicts(inside: list[Version], table: Table, slo: Table | None) -> dict[int, bool | None]:
    """The rule: "With evals: routed iff score >= threshold. Without evals: every request in where is routed"."""
    goes: dict[int, bool | None] = {}
    for one in inside:
        if is_target(one.request, table):  # "A request already of the target key is not touched"
            continue
        if table.get("evals") is None:
            goes[one.origin] = True
            continue
        has = score(table["evals"], table["to_model"], one.request)
        needs = threshold(table, slo, one.request, table["evals"])
        goes[one.origin] = None if has is None or needs is None else has >= needs
    if table.get("sticky"):
        # The rule: "a session is routed iff every request of it in where qualifies; those without session_id are judged
        # singly"
        bad = {
            one.request.get("session_id")
            for one in inside
            if not goes.get(one.origin) and not is_target(one.request, table)
        }
        for one in inside:
            if one.request.get("session_id") is not None and one.request["session_id"] in bad and one.origin in goes:
                goes[one.origin] = False
    return goes


def target(request: Request, table: Table) -> dict[str, Any]:
    """The rule: "(to_provider, to_model, its tier, its region if the provider stays the same, else none)"."""
    provider = table.get("to_provider") or request.get("provider")
    region = request.get("region") if provider == request.get("provider") else None
    return {"provider": provider, "model": table["to_model"], "region": region}


def is_target(request: Request, table: Table) -> bool:
    """Whether it already runs there."""
    return all((request.get(column) or "") == (value or "") for column, value in target(request, table).items())


def kept_reads(versions: list[Version], moving: Collection[int], table: Table, scenario: str) -> dict[int, bool]:
    """For each request with cached reads, whether they are still there: the cache belongs to the model."""
    keeps: dict[int, bool] = {}
    for one in versions:
        how = table.get("cache", "follow")
        if how != "follow":
            if one.origin in moving:
                keeps[one.origin] = how == "keep"
            continue
        previous = previous_turn(one, versions)
        is_moving = one.origin in moving
        if previous is not None:
            # kept "only if the previous request of the same session that is within 24 h is routed too"; one "NOT
            # routed although its previous request was routed: its reads are forfeited too"
            keeps[one.origin] = is_moving == (previous.origin in moving)
        elif one.request.get("session_id") is None and is_moving:
            keeps[one.origin] = scenario != "low"  # "kept in mid and high, lost in the scenario low"
        else:
            keeps[one.origin] = True  # "a first turn with reads keeps them"
    return keeps


def previous_turn(one: Version, versions: list[Version]) -> Version | None:
    """The last request of the same session that began before, within 24 hours."""
    session, t = one.request.get("session_id"), start_us(one.request)
    if session is None or t is None:
        return None
    earlier = [
        (at, other.request.get("request_id") or "", other.origin, other)
        for other in versions
        if other.request.get("session_id") == session and (at := start_us(other.request)) is not None and at < t
    ]
    at, _, _, last = max(earlier, key=lambda found: found[:3], default=(0, "", 0, None))
    return last if last is not None and t - at <= DAY_US else None


def _moved(one: Version, pricer: Pricer, table: Table, scenario: str, keeps: dict[int, bool]) -> Version:
    """The same request on the other model."""
    known = measured(table, table["to_model"], one.request)
    moved = retold(
        {**one.request, **target(one.request, table)}, pricer, table, scenario, known, keeps_reads=keeps[one.origin]
    )
    fixed = None if known.get("cost_usd") is None else pusd(known["cost_usd"])
    return one.changed(moved, fixed=fixed, by_route=True)


def retold(
    request: Request, pricer: Pricer, table: Table, scenario: str, known: dict[str, Any], *, keeps_reads: bool
) -> dict[str, Any]:
    """Tokens on another model: each class x token_ratio, output x output_ratio, caches as assumed."""
    if request.get("input_tokens") is None or request.get("output_tokens") is None:
        return dict(request)
    default = 1 if table.get("student") else (0.7, 1, 1.5)
    per_token = end_of(table.get("token_ratio", 1), scenario, low_is_largest=True)
    per_output = end_of(table.get("output_ratio", default), scenario, low_is_largest=True)
    text, read, write, long = (rhe(part * per_token) for part in parts(request))
    if known.get("input_tokens") is not None:
        # The rule: "those replace the scaled ones (classes: read and write scaled in proportion, rhe)"
        was, now = count(request, "input_tokens"), int(known["input_tokens"])
        ratio = number(now) / was if was else number(0)
        read, write, long = (rhe(part * ratio) for part in parts(request)[1:])
        text = now - read - write - (was - sum(parts(request)[:3]))
    output, reasoning = count(request, "output_tokens"), count(request, "reasoning_tokens")
    if known.get("output_tokens") is not None:
        per_output = number(known["output_tokens"]) / output if output else number(0)
        new_output = int(known["output_tokens"])
    else:
        new_output = rhe(output * per_output)
    how = table.get("cache", "follow")
    if how == "lose":  # "reads and writes become uncached input"
        text, read, write, long = text + read + write, 0, 0, 0
    if not keeps_reads:
        text, read = text + read, 0
    made = with_parts(request, text, read, write, min(long, write))
    made["output_tokens"] = new_output
    if request.get("reasoning_tokens") is not None:
        made["reasoning_tokens"] = min(rhe(reasoning * per_output), new_output)
    return without_missing_rates(made, pricer)


def without_missing_rates(request: dict[str, Any], pricer: Pricer) -> dict[str, Any]:
    """The rule: "if the target has no cache_read rate (cache_write, cache_write_long), those tokens become
    uncached input".
    """
    entry = pricer.entry(request)
    if entry is None:
        return request
    text, read, write, long = parts(request)
    short = write - long
    if "cache_read" not in entry.rates:
        text, read = text + read, 0
    if "cache_write_long" not in entry.rates:  # "long writes without a long rate become default writes if that exists"
        short, long = short + long, 0
    if "cache_write" not in entry.rates:
        text, short = text + short, 0
    return with_parts(request, text, read, short + long, long)


def _again(one: Version, trial: Version, table: Table) -> Version:
    """The original call of a cascade: "with the candidate's output tokens added to its uncached input"."""
    if not table["verifier"].get("candidate_in_prompt"):
        return one
    added = count(trial.request, "output_tokens")
    return one.changed({**one.request, "input_tokens": one.request["input_tokens"] + added})


def forfeited(one: Version) -> Version:
    """The rule: "its reads are forfeited too and become uncached at its own model"."""
    text, read, write, long = parts(one.request)
    return one.changed(with_parts(one.request, text + read, 0, write, long)) if read else one
