"""Replicas taken away or added on purpose: whether the rest had more to do, or the new ones are slower for good."""

from __future__ import annotations

import numpy as np

from tenfold.latency.deploys import LEAST
from tenfold.latency.equal_load import Loads, Side, at_equal_load
from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.records import Finding, Pair
from tenfold.latency.replicas import Serving, serving_of
from tenfold.latency.server_changes import naming
from tenfold.latency.slices import percent
from tenfold.latency.slower import slower_log
from tenfold.latency.warm_up import SPANS

# Capacity taken away, and what the rest must have more to do and under way, from which it can matter.
_TAKEN, _MORE = 0.05, 0.03
_ROWS = 200


def look_for_scaling(pair: Pair, facts: Facts, loads: Loads, looked: list[str]) -> list[Finding]:
    """Look for scaling that hurt.

    Args:
        pair: The windows.
        facts: What is known of them.
        loads: Cells of load.
        looked: Takes a sentence of what was looked at.

    Returns:
        One guilty finding, or none.
    """
    serving = serving_of(pair, facts)
    if serving is None:
        return []
    change = serving.capacity_log_change
    counts = [float(each.max()) for each in serving.active()]
    if serving.fresh.size or serving.silences:
        looked.append(
            f"At most {counts[0]:.0f} replicas served at once before and {counts[1]:.0f} after "
            f"({serving.fresh.size} new, {len(serving.silences)} gone)."
        )
    if serving.fresh.size > len(serving.silences):
        return _added(pair, facts, loads, serving, looked)
    return _taken(pair, facts, serving, change, looked)


def _taken(pair: Pair, facts: Facts, serving: Serving, change: float, looked: list[str]) -> list[Finding]:
    length = (pair.after.until_s - pair.after.since_s) / SLICES
    gone = [
        one
        for one in serving.silences
        if naming(pair, serving.names[one.replica], pair.after.since_s + one.first * length)
    ]
    if len(gone) <= serving.fresh.size or not change <= np.log(1 - _TAKEN):
        return []
    since = pair.after.since_s + min(one.first for one in gone) * length
    rows = pair.after.ts_s >= since
    rates = [
        float(served.sum()) / max(float(active.sum()), 1.0) / (window.until_s - window.since_s)
        for served, active, window in zip((serving.before, serving.after), serving.active(), pair.windows, strict=True)
    ]
    more = float(np.log(rates[1] / rates[0])) if min(rates) > 0 else 0.0
    under = [float(np.nanmean(each)) for each in (facts.before.in_flight, facts.after.in_flight[rows])]
    crowd = float(np.log((under[1] + 1) / (under[0] + 1)))
    names = ", ".join(serving.names[one.replica] for one in gone)
    sentence = (
        f"{names} were scaled away: {percent(change)} replicas on average; the others had {percent(more)} requests "
        f"each, {under[0]:.1f} under way before and {under[1]:.1f} after."
    )
    looked.append(sentence)
    if more < _MORE or crowd < _MORE:
        return []
    return [
        Finding(
            step=5,
            kind="scaled",
            status="guilty",
            evidence=(sentence, "An event of the file names it."),
            measures={
                "capacity_log_change": change,
                "load_log_change": more,
                "queue_at_equal_load": 0.0,
                "prefill_residual": 0.0,
                "decode_residual": 0.0,
            },
            since_s=since,
            rows=rows,
            who=names,
            next_action="Scale back to the count before, or let the autoscaler act on the queue, not on utilization.",
        )
    ]


def _added(pair: Pair, facts: Facts, loads: Loads, serving: Serving, looked: list[str]) -> list[Finding]:
    """Requests on new replicas against those on the others at the same time, once the new ones are warm."""
    fresh = np.isin(facts.after.replica, serving.fresh)
    first = np.full(len(serving.names), np.inf)
    np.minimum.at(first, facts.after.replica[fresh], pair.after.ts_s[fresh])
    warm = fresh & (pair.after.ts_s >= first[facts.after.replica] + SPANS[-1])
    since = float(first.min())
    others = ~fresh & (pair.after.ts_s >= since)
    if min(warm.sum(), others.sum()) < _ROWS:
        looked.append(f"{serving.fresh.size} replicas were added; too few requests of theirs once warm to compare.")
        return []
    effects = [
        at_equal_load(
            Side(values, warm, cells.after, facts.after.slice, 1),
            Side(values, others, cells.after, facts.after.slice, 1),
        ).median
        for values, cells in (
            (facts.after.prefill_residual, loads.prefill),
            (facts.after.decode_residual, loads.decode),
        )
    ]
    sentence = (
        f"{serving.fresh.size} replicas were added; against the others at equal load, once warm: prefill "
        f"{percent(effects[0].mid)} [{percent(effects[0].low)}, {percent(effects[0].high)}], decode "
        f"{percent(effects[1].mid)} [{percent(effects[1].low)}, {percent(effects[1].high)}]."
    )
    looked.append(sentence)
    main = max(effects, key=lambda one: one.mid if np.isfinite(one.mid) else -np.inf)
    if not (main.low > 0 and main.mid >= LEAST):
        return []
    prefill, decode = (one.mid if np.isfinite(one.mid) else 0.0 for one in effects)
    return [
        Finding(
            step=5,
            kind="scaled",
            status="guilty",
            evidence=(sentence, "They are slower for good: other hardware, or other settings chosen for it."),
            measures={
                "capacity_log_change": serving.capacity_log_change,
                "queue_at_equal_load": 0.0,
                "prefill_residual": prefill,
                "decode_residual": decode,
                "row_share": float(fresh.mean()),
                "slower_log": slower_log(pair, facts, fresh, max(prefill, 0.0), max(decode, 0.0)),
            },
            effect=main,
            effect_name="log of time on new replicas over that on the others, at equal load",
            since_s=since,
            rows=fresh,
            who=", ".join(serving.names[int(at)] for at in serving.fresh),
            next_action="Compare GPU, driver, power cap and effective settings of a new replica with an old one's.",
        )
    ]
