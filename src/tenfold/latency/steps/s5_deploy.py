"""Step 5, deploy and configuration: did the servers change when the level changed, at equal load and lengths?

Source: serving.md 12, step 5 (a change point of adjusted residuals within one slice of an event, and a difference in
differences against what ran without the change).
"""

from __future__ import annotations

import numpy as np

from tenfold.latency.cohorts import Cohort, cohort_of
from tenfold.latency.deploys import LEAST, Effect, effect_of
from tenfold.latency.equal_load import Loads, loads_of
from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.limits import CHANGED, Limit, limit_change, plateau_interval
from tenfold.latency.records import Finding, Interval, Pair
from tenfold.latency.scaling import look_for_scaling
from tenfold.latency.server_changes import Moment, everywhere, moments
from tenfold.latency.slices import percent
from tenfold.latency.slower import slower_log
from tenfold.latency.warm_up import WarmUp, warm_up

# Moments that are measured at most: new labels first, then events in order of time.
_MOMENTS = 12
# Mean wait that a lowered limit must add, as a share of the median TTFT before.
_OF_TTFT = 0.10
# A shift the other way, from which a trade-off is told.
_BETTER = float(np.log(1.05))


def look(pair: Pair, facts: Facts) -> tuple[Finding, ...]:
    """Look for versions, limits, scaling, warm-up and changes that hit a cohort.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        Findings, the guilty ones first; one innocent or not separable if there is none.
    """
    looked = _clients(pair)
    found: list[Finding] = []
    loads = loads_of(pair, facts)
    done = moments(pair, facts)[:_MOMENTS]
    warm = warm_up(pair, facts)
    if warm is not None:
        looked.append(_warm_sentence(pair, warm))
        if warm.is_guilty:
            done = [one._replace(rows=one.rows & ~warm.rows) for one in done]
    cohort = cohort_of(pair, facts, loads, done)
    versions = _versions(pair, facts, loads, done, cohort, looked)
    found.extend(versions)
    if cohort is not None and not versions:
        found.append(_cohort_finding(pair, facts, cohort))
    if warm is not None and warm.is_guilty:
        found.append(_warm_finding(pair, facts, warm))
    if not versions:
        found.extend(look_for_scaling(pair, facts, loads, looked))
    if found:
        return tuple(found)
    missing = tuple(
        name
        for name, absent in (("deployment", pair.after.deployment is None), ("events", pair.events is None))
        if absent
    )
    if len(missing) == 2:
        return (
            Finding(
                step=5,
                kind="",
                status="not separable",
                evidence=(*looked, "Neither deployments nor events are known: what the servers ran is not separable."),
                missing=missing,
                next_action="Log the deployment (image and settings) of each request, or give a file of events.",
            ),
        )
    if not done:
        looked.append("No new deployment and no event about servers between the windows or in the one after.")
    return (Finding(step=5, kind="", status="innocent", evidence=tuple(looked), missing=missing),)


def _place(slices: float) -> str:
    """Say how far a change is from what was done, by fortieths of the window."""
    return "at that time" if round(slices) == 0 else f"{slices / SLICES:.1%} of the window's time away from it"


def _clients(pair: Pair) -> list[str]:
    old, new = pair.before.client, pair.after.client
    if old is None or new is None:
        return []
    fresh = np.setdiff1d(np.unique(new.codes[new.codes >= 0]), np.unique(old.codes))
    if not fresh.size:
        return []
    names = ", ".join(new.names[int(code)] for code in fresh[:3])
    return [f"Client {names} is new in the window after: a client's version is no deploy of the servers (see step 3)."]


def _versions(
    pair: Pair, facts: Facts, loads: Loads, done: list[Moment], cohort: Cohort | None, looked: list[str]
) -> list[Finding]:
    limit = limit_change(pair, facts)
    measured = [(one, effect_of(pair, facts, loads, one)) for one in done]
    looked.extend(_sentence(one, effect) for one, effect in measured)
    accused = [(one, effect) for one, effect in measured if effect.accused]
    if cohort is not None:
        # what moved in the cohort alone is the cohort's
        accused = [
            entry for entry in accused if any(not each.startswith(cohort.component) for each in entry[1].accused)
        ]
    # a label says which requests; else the event that moved most
    accused.sort(key=lambda entry: (entry[0].kind != "label", -entry[1].size))
    if accused:
        return [_version_finding(pair, facts, *accused[0], [one for one, _ in accused[1:]], limit)]
    if limit is None or limit.log_change > -CHANGED or pair.after.queue_s is None or pair.before.queue_s is None:
        if limit is not None:
            looked.append(_limit_sentence(limit))
        return []
    looked.append(_limit_sentence(limit))
    waits = [float(np.nanmean(window.queue_s)) for window in pair.windows if window.queue_s is not None]
    whole = everywhere(pair, "limit", _limit_sentence(limit))
    effect = effect_of(pair, facts, loads, whole)
    if waits[1] - waits[0] < _OF_TTFT * float(np.nanmedian(pair.before.ttft_s)) or effect.queue.high < 0:
        return []
    return [_version_finding(pair, facts, whole, effect, [], limit)]


def _version_finding(
    pair: Pair, facts: Facts, one: Moment, effect: Effect, others: list[Moment], limit: Limit | None
) -> Finding:
    is_limited = limit is not None and abs(limit.log_change) >= CHANGED
    is_config = any(other.kind == "config" and other.place == one.place for other in (one, *others))
    kind = "limit" if is_limited or is_config or effect.accused == ("kv",) else "version"
    evidence = [_sentence(one, effect)]
    if np.isfinite(effect.distance):
        evidence.append(f"The level changes {_place(effect.distance)} (by chance with probability {effect.p:.3f}).")
    beside = [each for each in effect.beside if np.isfinite(each.mid)]
    if beside:
        evidence.append(
            "What ran without it at the same time: prefill "
            f"{percent(effect.beside[0].mid)}, decode {percent(effect.beside[1].mid)}."
        )
    if limit is not None:
        evidence.append(_limit_sentence(limit))
    e2e = _e2e(pair, one)
    evidence.extend(_trade_off(effect, e2e))
    evidence.extend(f"At the same time: {other.what}." for other in others[:3])
    main = _main(effect) if effect.accused else effect.queue
    if kind == "limit" and limit is not None and not effect.accused:
        main = plateau_interval(limit)
    prefill, decode = _mid(effect.prefill.median), _mid(effect.decode.median)
    measures = {
        # a limit that was seen itself needs no proof by the wait
        "queue_at_equal_load": _mid(effect.queue) if is_limited else _clear(effect.queue),
        "prefill_residual": prefill,
        "decode_residual": decode,
        "kv_at_equal_load": _clear(effect.kv),
        "prefill_residual_tail": _mid(effect.prefill.tail),
        "decode_residual_tail": _mid(effect.decode.tail),
        "e2e_log_change": e2e,
        "row_share": float(one.rows.mean()),
        "slower_log": slower_log(pair, facts, one.rows, max(prefill, 0.0), max(decode, 0.0)),
    }
    if np.isfinite(effect.distance):
        measures |= {"distance_slices": effect.distance, "p": effect.p}
    if limit is not None:
        measures |= {"limit_before": limit.before, "limit_after": limit.after}
    return Finding(
        step=5,
        kind=kind,
        status="guilty",
        evidence=tuple(evidence),
        measures=measures,
        effect=main,
        effect_name="log change at equal load and lengths",
        missing=() if pair.events is not None else ("events",),
        since_s=max(one.ts_s, pair.after.since_s),
        rows=one.rows,
        who=one.who,
        next_action=_VERSION_NEXT[kind].format(who=one.who or one.what),
    )


_VERSION_NEXT = {
    "version": (
        "Diff image, engine version and effective settings (the engine's start-up log) of {who} and the one before; "
        "roll one replica back and compare it with the others for ten minutes."
    ),
    "limit": (
        "Compare the effective limits before and after (max_num_seqs, max_num_batched_tokens, KV memory, replicas' "
        "concurrency) of {who}; set the old value on one replica and watch its queue."
    ),
}


def _sentence(one: Moment, effect: Effect) -> str:
    parts = [
        f"{name} {percent(shifted.median.mid)} [{percent(shifted.median.low)}, {percent(shifted.median.high)}] "
        f"(its p90 {percent(shifted.tail.mid)})"
        for name, shifted in (("prefill", effect.prefill), ("decode", effect.decode))
        if np.isfinite(shifted.median.mid)
    ]
    if np.isfinite(effect.queue.mid):
        waits = " to ".join(f"{each * 1000:.0f} ms" for each in effect.queue_s)
        parts.append(f"wait {waits} at the same requests under way")
    if effect.kv.low > LEAST:
        parts.append(f"KV cache in use {percent(effect.kv.mid)} by the same requests under way")
    said = ", ".join(parts) if parts else "loads before and after are too unlike to compare"
    verdict = f" Moved with it: {', '.join(effect.accused)}." if effect.accused else " Nothing moved with it by enough."
    return f"{one.what}: at equal load and lengths {said}.{verdict}"


def _limit_sentence(limit: Limit) -> str:
    before = f"{limit.before:.0f}" if limit.is_bound else f"{limit.before:.0f} or more"
    return (
        f"Replicas computed {before} requests at once before others had to wait, and {limit.after:.0f} after "
        f"({limit.seen[1]} requests found others waiting)."
    )


def _trade_off(effect: Effect, e2e: float) -> list[str]:
    worse = [
        name for name in ("prefill", "decode", "queue", "kv") if any(each.startswith(name) for each in effect.accused)
    ]
    better = [
        f"{name} {percent(value)}"
        for name, value in (
            ("prefill", effect.prefill.median.mid),
            ("decode", effect.decode.median.mid),
            ("E2E (median)", e2e),
        )
        if value <= -_BETTER
    ]
    return [f"A trade-off: {' and '.join(worse)} got worse while {', '.join(better)}."] if worse and better else []


def _e2e(pair: Pair, one: Moment) -> float:
    medians = [
        float(np.median(known)) if (known := each[np.isfinite(each)]).size else 0.0
        for each in (pair.before.e2e_s[one.ground], pair.after.e2e_s[one.rows])
    ]
    return float(np.log(medians[1] / medians[0])) if min(medians) > 0 else 0.0


def _main(effect: Effect) -> Interval:
    by_name = {
        "prefill": effect.prefill.median,
        "decode": effect.decode.median,
        "queue": effect.queue,
        "kv": effect.kv,
        "prefill tail": effect.prefill.tail,
        "decode tail": effect.decode.tail,
    }
    return max((by_name[each] for each in effect.accused), key=lambda each: each.mid)


def _mid(one: Interval) -> float:
    return one.mid if np.isfinite(one.mid) else 0.0


def _clear(one: Interval) -> float:
    return one.mid if one.excludes_zero else 0.0


def _cohort_finding(pair: Pair, facts: Facts, one: Cohort) -> Finding:
    prefill, decode = (value if np.isfinite(value) else 0.0 for value in one.effects)
    span = f"[{percent(one.shift.low)}, {percent(one.shift.high)}]"
    evidence = [
        f"{one.component} of {one.name}: {percent(one.shift.mid)} {span} against the others ({percent(one.rest)}).",
        "Lengths, cache and load are taken out; most replicas show it.",
    ]
    if one.moment is not None:
        evidence.append(f"With it: {one.moment.what}.")
    return Finding(
        step=5,
        kind="cohort",
        status="guilty",
        evidence=tuple(evidence),
        measures={
            "queue_at_equal_load": 0.0,
            "prefill_residual": prefill,
            "decode_residual": decode,
            "rest": one.rest,
            "row_share": float(one.rows.mean()),
            "slower_log": slower_log(pair, facts, one.rows, max(prefill, 0.0), max(decode, 0.0)),
        },
        effect=one.shift,
        effect_name=f"log of {one.component} time after over before, less that of the other requests",
        since_s=pair.after.since_s if one.moment is None else max(one.moment.ts_s, pair.after.since_s),
        rows=one.rows,
        who=one.who,
        next_action=(
            f"Send one prompt with and without what makes {one.name} special to one replica; for structured output, "
            "switch the grammar backend back, or cache compiled grammars."
        ),
    )


def _warm_sentence(pair: Pair, one: WarmUp) -> str:
    names = () if pair.after.replica is None else pair.after.replica.names
    who = ", ".join(names[code] for code, _ in one.starts[:5]) if names else "the servers"
    more = f" and {len(one.starts) - 5} more" if len(one.starts) > 5 else ""
    failed = f" {one.failed} of the {one.given} requests of the first minute failed." if one.failed else ""
    return (
        f"After the start of {who}{more}: {one.component} {percent(one.excess)} in the first {one.span_s:.0f} s "
        f"({percent(one.first_half)} in the first half of it, {percent(one.second_half)} in the second; "
        f"by chance with probability {one.p:.3f}), {one.tail_share:.0%} of the slow requests.{failed}"
    )


def _warm_finding(pair: Pair, facts: Facts, one: WarmUp) -> Finding:
    names = () if pair.after.replica is None else pair.after.replica.names
    effects = {"ttft": 0.0, "decode": 0.0} | {one.component: one.excess}
    return Finding(
        step=5,
        kind="warm_up",
        status="guilty",
        evidence=(
            _warm_sentence(pair, one),
            "It gets better by itself: compilation, graphs or caches, not the version.",
        ),
        measures={
            "queue_at_equal_load": 0.0,
            "prefill_residual": effects["ttft"],
            "decode_residual": effects["decode"],
            "span_s": one.span_s,
            "p": one.p,
            "tail_share": one.tail_share,
            "row_share": float(one.rows.mean()),
            "slower_log": slower_log(pair, facts, one.rows, effects["ttft"], effects["decode"]),
        },
        effect=Interval(one.second_half, one.excess, one.first_half),
        effect_name=f"log of {one.component} time in the first {one.span_s:.0f} s over later (by halves)",
        since_s=max(min(at for _, at in one.starts), pair.after.since_s),
        rows=one.rows,
        who=", ".join(names[code] for code, _ in one.starts) if names else "",
        next_action=(
            "Warm replicas up before they take traffic: a readiness probe that waits for compiled kernels and captured "
            "graphs, then requests of usual lengths; start them one after the other."
        ),
    )
