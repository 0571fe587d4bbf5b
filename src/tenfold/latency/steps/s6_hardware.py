"""Step 6, hardware, hosts and neighbours: which replica got slow or lost, and does heat, rest or the CPU explain it?

Source: serving.md 12, step 6 (host effect of 10 % and more at a false discovery rate below 0.01).
"""

from __future__ import annotations

import numpy as np

from tenfold.latency.drift import look_for_drift
from tenfold.latency.equal_load import Loads, Side, at_equal_load, loads_of
from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.front_end import look_for_front_end
from tenfold.latency.host_cells import known_rows
from tenfold.latency.host_samples import moved_most
from tenfold.latency.hosts import HostEffect, host_effects, with_rates
from tenfold.latency.idle_clocks import look_for_idle_clocks
from tenfold.latency.records import Finding, Mask, Pair
from tenfold.latency.replicas import Serving, Silence, serving_of
from tenfold.latency.server_changes import changed_replicas, naming
from tenfold.latency.slices import percent
from tenfold.latency.slower import slower_log

# A host is slow from 10 % at a false discovery rate of 0.01 (serving.md 12).
SLOW, RATE = float(np.log(1.10)), 0.01
# A component below half of the other, or below 5 %, has no part in it.
_PART = float(np.log(1.05))
# Share of the serving replicas that are lost, and what the others must have more to do, from which it can matter.
_LOST, _MORE = 0.05, 0.03
# Where no load is common, a host must be twice as slow: load alone makes that much seldom.
_BEYOND = float(np.log(2.0))
_COMPONENTS: tuple[str, ...] = ("prefill", "decode")
# Columns by which a log shows that it comes from the servers.
_OWN = ("queue_s", "running", "waiting", "kv", "preemptions", "deployment")


def look(pair: Pair, facts: Facts) -> tuple[Finding, ...]:
    """Look for slow and lost hosts, heat, clocks that drop at rest and CPUs in front.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        Findings, the guilty ones first; one innocent or not separable if there is none.
    """
    serving = serving_of(pair, facts)
    if serving is None and all(getattr(pair.after, name) is None for name in _OWN):
        return (
            Finding(
                step=6,
                kind="",
                status="not separable",
                evidence=("The log does not say which replica answered: hosts are provider-side, not separable.",),
                missing=("replica", "queue_ms"),
                next_action="Log the replica (pod, host or GPU) and the queue's time of each request.",
            ),
        )
    looked: list[str] = []
    found: list[Finding] = []
    many = 1 if serving is None else len(serving.names)
    names = ("",) if serving is None else serving.names
    drifting = look_for_drift(pair, facts, names, looked)
    found.extend(drifting)
    if serving is not None:
        found.extend(_lost(pair, serving, looked))
        taken = {name for one in drifting for name in one.who.split(", ") if name}
        found.extend(_slow(pair, facts, serving, many, taken, looked))
    else:
        looked.append("The log names no replica: hosts cannot be told from each other.")
    if not found:
        found.extend((*look_for_idle_clocks(pair, facts, looked), *look_for_front_end(pair, facts, looked)))
    if found:
        return tuple(found)
    missing = tuple(name for name, absent in (("replica", serving is None), ("hosts", pair.hosts is None)) if absent)
    return (Finding(step=6, kind="", status="innocent", evidence=tuple(looked), missing=missing),)


def _slow(pair: Pair, facts: Facts, serving: Serving, many: int, taken: set[str], looked: list[str]) -> list[Finding]:
    known = known_rows(pair, facts, many)
    effects = dict(
        zip(_COMPONENTS, with_rates(*(host_effects(facts, known, many, each) for each in _COMPONENTS)), strict=True)
    )
    tested = [at for at in range(many) if any(np.isfinite(effects[each][at].p) for each in _COMPONENTS)]
    if len(tested) < 2:
        looked.append(f"{len(tested)} replica with requests in both windows: no other to compare it with.")
        return []
    _leave_out_load(pair, facts, known, serving, effects, looked)
    slow = [at for at in tested if any(_is_slow(effects[each][at]) for each in _COMPONENTS)]
    worst = max(
        (
            (effects[each][at].effect.mid, each, at)
            for each in _COMPONENTS
            for at in tested
            if np.isfinite(effects[each][at].p)
        ),
    )
    looked.append(
        f"Of {len(tested)} replicas {serving.names[worst[2]]} stands out most: {worst[1]} {percent(worst[0])} against "
        f"itself before and the others (false discovery rate {effects[worst[1]][worst[2]].q:.2g}; slow is 10 % at a "
        "rate below 0.01)."
    )
    changed = changed_replicas(pair)
    if changed and len(changed & set(slow)) >= 0.6 * len(changed):
        looked.extend(
            f"{serving.names[at]} is slower, and its deployment changed with it: step 5."
            for at in sorted(changed & set(slow))
        )
        slow = [at for at in slow if at not in changed]
    slow = [at for at in slow if serving.names[at] not in taken]
    if not slow:
        return []
    slow.sort(key=lambda at: -max(effects[each][at].effect.mid for each in _COMPONENTS))
    rows = np.zeros(pair.after.size, np.bool_)
    for at in slow:
        since = min(effects[each][at].since for each in _COMPONENTS if _is_slow(effects[each][at]))
        rows |= (facts.after.replica == at) & (facts.after.slice >= since)
    return [_slow_finding(pair, facts, serving, slow, effects, rows)]


def _leave_out_load(
    pair: Pair,
    facts: Facts,
    known: tuple[Mask, Mask],
    serving: Serving,
    effects: dict[str, list[HostEffect]],
    looked: list[str],
) -> None:
    """Acquit hosts that are slower only by more load: at loads that they had before they must be slower too."""
    suspects = [(each, at) for each in _COMPONENTS for at, one in enumerate(effects[each]) if _is_slow(one)]
    if not suspects:
        return
    loads = loads_of(pair, facts)
    for each, at in suspects:
        if not _is_slow_at_equal_load(facts, known, loads, at, each, effects[each][at]):
            effects[each][at] = effects[each][at]._replace(q=1.0)
            looked.append(f"{serving.names[at]}: {each} is slower under more load, not at the load that it had before.")


def _is_slow(one: HostEffect) -> bool:
    return one.q < RATE and one.effect.mid >= SLOW and one.own >= SLOW and one.effect.low > 0


def _is_slow_at_equal_load(
    facts: Facts, known: tuple[Mask, Mask], loads: Loads, at: int, component: str, one: HostEffect
) -> bool:
    """Compare a host with itself before, else with the others after, within cells of load."""
    before, after = facts.windows
    if component == "prefill":
        old, new, cells = before.prefill_residual, after.prefill_residual, loads.prefill
    else:
        old, new, cells = before.decode_residual, after.decode_residual, loads.decode
    mine = after.replica == at
    touched = Side(new, mine & known[1] & (after.slice >= one.since), cells.after, after.slice, 1)
    grounds = (
        Side(old, known[0] & (before.replica == at), cells.before, before.slice, 0),
        Side(new, known[1] & ~mine, cells.after, after.slice, 1),
    )
    for ground in grounds:
        shifted = at_equal_load(touched, ground)
        if np.isfinite(shifted.median.mid):
            return shifted.median.low > 0 and shifted.median.mid >= SLOW
    return one.effect.mid >= _BEYOND


def _slow_finding(
    pair: Pair, facts: Facts, serving: Serving, slow: list[int], effects: dict[str, list[HostEffect]], rows: Mask
) -> Finding:
    means = {each: float(np.mean([effects[each][at].effect.mid for at in slow])) for each in _COMPONENTS}
    means = {each: value if np.isfinite(value) else 0.0 for each, value in means.items()}
    main = max(_COMPONENTS, key=lambda each: means[each])
    side = "prefill" if main == "decode" else "decode"
    only = means[side] < max(means[main] / 2, _PART)
    sinces = [effects[each][at].since for at in slow for each in _COMPONENTS if _is_slow(effects[each][at])]
    since = pair.after.since_s + min(sinces) * (pair.after.until_s - pair.after.since_s) / SLICES
    evidence = [_slow_sentence(serving.names[at], {each: effects[each][at] for each in _COMPONENTS}) for at in slow[:5]]
    if len(slow) > 5:
        evidence.append(f"And {len(slow) - 5} more.")
    evidence.append(_mechanism(main, only=only))
    evidence.extend(
        sentence for at in slow[:5] if (sentence := moved_most(pair, serving.names[at], serving.names)) is not None
    )
    prefill, decode = (means[each] if each == main or not only else 0.0 for each in _COMPONENTS)
    first = effects[main][slow[0]]
    return Finding(
        step=6,
        kind="slow_host",
        status="guilty",
        evidence=tuple(evidence),
        measures={
            "prefill_effect": means["prefill"],
            "decode_effect": means["decode"],
            "q": first.q,
            "hosts": float(len(slow)),
            "row_share": float(rows.mean()),
            "slower_log": slower_log(pair, facts, rows, prefill, decode),
        },
        effect=first.effect,
        effect_name=f"log of {main} time of {serving.names[slow[0]]} over what it was, less that of the others",
        missing=() if pair.hosts is not None else ("hosts",),
        since_s=since,
        rows=rows,
        who=", ".join(serving.names[at] for at in slow),
        next_action=(
            f"Drain {serving.names[slow[0]]} and compare its clocks, power cap, temperature, throttle reasons "
            "(nvidia-smi -q -d PERFORMANCE,POWER,CLOCK) and CPU share with a replica that is not slow."
        ),
    )


def _slow_sentence(name: str, effects: dict[str, HostEffect]) -> str:
    parts = [
        f"{each} {percent(one.effect.mid)} [{percent(one.effect.low)}, {percent(one.effect.high)}] "
        f"(false discovery rate {one.q:.2g})"
        for each, one in effects.items()
        if np.isfinite(one.p)
    ]
    return f"{name} against itself before and the other replicas, at equal lengths and load: {', '.join(parts)}."


def _mechanism(main: str, *, only: bool) -> str:
    if only and main == "prefill":
        return "Mainly prefill: compute, so clocks or a power cap (decode is bound by memory and hardly shows it)."
    if only:
        return (
            "Mainly decode: memory bandwidth, or a CPU too slow to launch steps (starved pod, neighbour on the node)."
        )
    return "Prefill and decode alike: the whole host (clocks, another GPU user, or a network between its GPUs)."


def _lost(pair: Pair, serving: Serving, looked: list[str]) -> list[Finding]:
    were, fresh = serving.were, serving.fresh
    silent = [one for one in serving.silences if not naming(pair, serving.names[one.replica], _lost_at(pair, one))]
    announced = len(serving.silences) - len(silent)
    looked.append(
        f"{were.size} replicas answered before; {len(serving.silences)} of them fell silent after, "
        f"{announced} with an event that says so; {fresh.size} new ones answered."
    )
    change = serving.capacity_log_change
    silent.sort(key=lambda one: -one.expected)
    if len(silent) <= fresh.size:
        if silent:
            looked.append("As many new replicas took over: replaced, not lost.")
        return []
    counts = serving.active()
    served = (serving.before.sum(axis=0), serving.after.sum(axis=0))
    worst = [one for one in silent if one.last - one.first >= 0]
    gone = np.zeros(SLICES, np.bool_)
    for one in worst:
        gone[one.first : one.last + 1] = True
    usual = float(np.median(counts[0]))
    share = 1 - float(counts[1][gone].min()) / usual if usual > 0 else 0.0
    spans = [window.until_s - window.since_s for window in pair.windows]
    each = [
        float(requests.sum()) / max(float(count.sum()), 1.0) / span
        for requests, count, span in zip((served[0], served[1][gone]), (counts[0], counts[1][gone]), spans, strict=True)
    ]
    more = float(np.log(each[1] / each[0])) if min(each) > 0 else 0.0
    names = ", ".join(serving.names[one.replica] for one in silent)
    looked.append(f"Lost: {names}; {share:.0%} of the capacity; the others had {percent(more)} to do, each.")
    if share < _LOST or more < _MORE:
        return []
    since = min(_lost_at(pair, one) for one in silent)
    return [
        Finding(
            step=6,
            kind="lost_host",
            status="guilty",
            evidence=(
                *(_lost_sentence(serving.names[one.replica], one) for one in silent[:5]),
                f"{share:.0%} of the serving replicas were gone at once; the rest got {percent(more)} on average.",
                "No scale or deploy event names them." if pair.events is not None else "No file of events was given.",
            ),
            measures={
                "capacity_log_change": change,
                "lost_share": share,
                "load_log_change": more,
                "hosts": float(len(silent)),
                "silent_requests": sum(one.expected for one in silent),
            },
            missing=() if pair.events is not None else ("events",),
            since_s=since,
            rows=pair.after.ts_s >= since,
            who=names,
            next_action=(
                f"See whether {serving.names[silent[0].replica]} is up and reachable (node and pod events, network "
                "routes, GPU errors such as Xid); replace it, or shed load until it is back."
            ),
        )
    ]


def _lost_at(pair: Pair, one: Silence) -> float:
    """Time of its last answered arrival before the silence; the window's start where it never answered in it."""
    if one.first == 0 or pair.after.replica is None:
        return pair.after.since_s
    length = (pair.after.until_s - pair.after.since_s) / SLICES
    mine = pair.after.ok & (pair.after.replica.codes == one.replica)
    earlier = pair.after.ts_s[mine & (pair.after.ts_s < pair.after.since_s + one.first * length)]
    return float(earlier.max()) if earlier.size else pair.after.since_s


def _lost_sentence(name: str, one: Silence) -> str:
    asked = f", {one.asked} were sent to it and failed" if one.asked else ", none was sent to it"
    end = "to the end" if one.last == SLICES - 1 else f"for {(one.last - one.first + 1) / SLICES:.0%} of the window"
    return (
        f"{name} answered nothing {end}{asked}; at its share of before it would have had {one.expected:,.0f} requests."
    )
