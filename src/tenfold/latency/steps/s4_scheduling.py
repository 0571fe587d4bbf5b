"""Step 4: whether queue or memory moved: waiting, a full KV cache, huge prompts in the way, a skewed balancer.

It says what moved. Whether that is the first cause, or follows from lost hosts or retries, ``causes`` decides, from
the load that the measures hold.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tenfold.latency.arrivals import measures_of
from tenfold.latency.balance import Fullest, fullest
from tenfold.latency.blocking import Blocking, blockings
from tenfold.latency.facts import Facts
from tenfold.latency.memory import Full, Preempted, filling, full_of, holds, preempted_of, recompute_tax
from tenfold.latency.records import Codes, Finding, Floats, Interval, Pair
from tenfold.latency.statistics import Estimate, around, log_change, long_blocks, onset, ratio, tail_mean

STEP = 4
# Columns of the requests table by field of Window.
_COLUMNS = {
    "queue_s": "queue_ms",
    "preemptions": "preemptions",
    "running": "running",
    "waiting": "waiting",
    "kv": "kv_usage_ratio",
    "replica": "replica",
}
# Share of the TTFT tail that is wait, and part of its rise, from which it is queueing (serving.md 12, step 4).
QUEUE_SHARE = 0.3
_GROWN = "wait of the slowest first tokens, after over before"
# Part of the TTFT tail before that a shorter wait in it counts as.
_FLOOR = 0.02
# Chance that an interval of a wait misses, by the t of slices; bursts that last make it four times as much.
_ALPHA = 0.0025
# Rise of the tail, and of the wait in it, that their intervals must lie above: bursts move the tail of a queue by more
# than slices of time that are taken to be independent can tell.
_RISE = 1.1
# Arrivals of known callers that are so many times as many, and the level of proof that a longer wait then takes.
_MORE, _ALPHA_ASKED = 1.2, 0.05
# Part of the rise of the tail that is wait, where the wait is no large part of the tail itself.
_NEARLY_ALL = 0.7
# Preemptions after over before that the interval must lie above (serving.md 12, step 4).
PREEMPTION_RATIO = 1.5
# A full cache: how many times as many requests met it as before, and how many of the slowest first tokens. Of all
# requests, as many as the tail has.
_MORE_FULL = 3.0
_TAIL_FULL = 0.4
# Slow requests beside a huge prefill, as a share, and against all: below a lift of 3, long waits meet any prefill.
BESIDE_SLOW = 0.4
LIFT = 3.0
_SLOW_ROWS = 20
# Requests of a replica over those of a mean one (6/4 of I18 is 1.2), by how much more, and the lift of the tail on it.
SKEW = 1.15
_SKEW_CHANGE = 0.1
_SKEW_LIFT = 1.15
# The tail has grown if this many times the share of 1 - quantile lies above the old quantile.
_GREW = 1.5
# KV in use that rises so far over a window, to this level, will be full soon (I13).
_TREND = 0.03
_NEARLY = 0.9
# Rank correlation of service time and requests under way from which time beyond a prompt's own is a wait.
_GOES_WITH = 0.4


class _Wait(NamedTuple):
    """Wait of each request of both windows, measured or taken from what is under way."""

    columns: tuple[Floats, Floats]
    is_measured: bool


def look(pair: Pair, facts: Facts, *, is_later: bool = False) -> tuple[Finding, ...]:
    """Look at scheduling and memory.

    Args:
        pair: The windows.
        facts: What is known of them.
        is_later: Whether the tail of the first token is known to have moved up (step 1).

    Returns:
        Guilty ones of ``kv_exhausted``, ``head_of_line`` and ``imbalance``, or ``queueing`` where there is no such
        reason for the wait; else one that is innocent or not separable. All hold the measures of the load.

    Source:
        serving.md 12, step 4; incidents.md, section B.
    """
    missing = tuple(
        column for field, column in _COLUMNS.items() if any(getattr(window, field) is None for window in pair.windows)
    )
    measures = measures_of(pair, facts)
    if len(missing) == len(_COLUMNS):
        text = "no wait, preemptions, KV use or replica in the log: provider-side, not separable"
        return (Finding(STEP, "", "not separable", (text,), measures, missing=missing),)
    band = 1 - 2 * (1 - facts.quantile)
    queue = _queueing(pair, facts, band, measures, is_later=is_later)
    preempted, full = preempted_of(pair, facts), full_of(pair, facts, band)
    if full is not None:
        measures |= {"kv_full_before": full.before, "kv_full_after": full.after, "kv_full_tail": full.in_tail}
    reasons = (_memory(pair, facts, preempted, full), _blocked(pair, facts), _skewed(pair, facts))
    found = [one for one in reasons if one is not None] or [queue]
    if found[0].status == "innocent":
        texts = (*queue.evidence, *_pressure(pair, preempted, measures))
        return (replace(queue, evidence=texts, measures=measures, missing=missing),)
    if found[0] is not queue:
        found[0] = replace(found[0], evidence=(*found[0].evidence, queue.evidence[0]))
    return tuple(replace(one, measures=measures | one.measures, missing=missing) for one in found)


def _queueing(pair: Pair, facts: Facts, band: float, measures: dict[str, float], *, is_later: bool) -> Finding:
    """Test the wait in the TTFT tail."""
    measures |= {"queue_share_before": math.nan, "queue_share_after": math.nan}
    wait = _waits(pair, facts)
    if wait is None:
        text = "the log has no wait, and first tokens do not take longer where more is under way"
        return Finding(STEP, "", "innocent", (text,))
    waits: list[Estimate] = []
    tails: list[Estimate] = []
    for window, derived, column in zip(pair.windows, facts.windows, wait.columns, strict=True):
        blocks = (derived.slice, long_blocks(derived.slice))
        waits.append(tail_mean(column, window.ttft_s, band, *blocks))
        tails.append(tail_mean(window.ttft_s, window.ttft_s, band, *blocks))
    shares = [one.value / tail.value if tail.value > 0 else math.nan for one, tail in zip(waits, tails, strict=True)]
    measures |= {"queue_share_before": shares[0], "queue_share_after": shares[1]}
    rate = measures["organic_rate_log_change"]
    # where more is asked, or the tail surely moved, a longer wait is no surprise, and takes less proof
    is_likely = is_later or rate >= math.log(_MORE)
    alpha = _ALPHA_ASKED if is_likely else _ALPHA
    grown, risen = (
        log_change(waits[0], waits[1], alpha, _FLOOR * tails[0].value),
        log_change(tails[0], tails[1], alpha),
    )
    rise = tails[1].value - tails[0].value
    part = (waits[1].value - waits[0].value) / rise if rise > 0 else math.nan
    how = "" if wait.is_measured else ", taken from what is under way"
    text = (
        f"wait is {shares[0]:.0%} -> {shares[1]:.0%} of the slowest {1 - band:.0%} of first tokens "
        f"({waits[0].value:.3g} s -> {waits[1].value:.3g} s{how})"
    )
    # a wait that is nearly all of the rise is what moved the tail, however short it is in it
    is_part = part >= QUEUE_SHARE and (shares[1] >= QUEUE_SHARE or part >= _NEARLY_ALL)
    is_wait = is_part and grown.low >= math.log(_RISE) and (is_later or risen.low >= math.log(_RISE))
    if not is_wait:
        return Finding(STEP, "", "innocent", (text,), effect=_factor(grown), effect_name=_GROWN)
    known = [np.nan_to_num(column) for column in wait.columns]
    under_way = f"{measures['in_flight_before']:.1f} -> {measures['in_flight_after']:.1f}"
    return Finding(
        STEP,
        "queueing",
        "guilty",
        (
            text,
            f"{part:.0%} of the rise of that tail is wait",
            f"callers known before ask {math.expm1(rate):+.0%}; requests under way on a replica {under_way}",
        ),
        {"queue_part": part},
        _factor(grown),
        _GROWN,
        since_s=onset(pair.windows, (known[0], known[1]), _ones(pair)),
        rows=known[1] > np.quantile(known[0], band),
        next_action=(
            "more is asked than before: add replicas, or limit who asks"
            if rate > math.log(_RISE)
            else "no more is asked than before: see what took capacity away (the other steps) before adding any"
        ),
    )


def _waits(pair: Pair, facts: Facts) -> _Wait | None:
    """Take the wait, or what the first token took beyond a prompt's time before, where that goes with the load."""
    if pair.before.queue_s is not None and pair.after.queue_s is not None:
        return _Wait((pair.before.queue_s, pair.after.queue_s), is_measured=True)
    after = facts.after
    if pair.after.replica is None or pair.before.replica is None:
        return None
    known = np.isfinite(after.prefill_residual) & np.isfinite(after.in_flight)
    if known.sum() < 200:
        return None
    goes_with = _rank_correlation(after.prefill_residual[known], after.in_flight[known], after.replica[known])
    if goes_with < _GOES_WITH:
        return None
    old, new = (
        np.maximum(one.service_s - facts.prefill.expected(one.uncached, np.zeros(one.uncached.size)), 0.0)
        for one in facts.windows
    )
    return _Wait((old, new), is_measured=False)


def _rank_correlation(one: Floats, other: Floats, group: Codes) -> float:
    """Correlate ranks within groups: a replica that is merely slow correlates nothing."""
    ranks: list[Floats] = []
    for values in (one, other):
        order = np.lexsort((values, group))
        rank = np.empty(values.size)
        rank[order] = np.arange(values.size)
        ranks.append(rank - (np.bincount(group, rank) / np.maximum(np.bincount(group), 1))[group])
    scale = math.sqrt(float((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float((ranks[0] * ranks[1]).sum()) / scale if scale > 0 else 0.0


def _memory(pair: Pair, facts: Facts, preempted: Preempted | None, full: Full | None) -> Finding | None:
    """Test preemptions and a full KV cache."""
    evidence: list[str] = []
    measures: dict[str, float] = {}
    rows = np.zeros(pair.after.size, np.bool_)
    tops: tuple[Floats, Floats] | None = None
    effect, name = Interval(0.0, 0.0, 0.0), ""
    if full is not None and _is_full(full, facts):
        evidence.append(
            f"{full.before:.1%} -> {full.after:.1%} of the requests met a full KV cache, {full.in_tail:.0%} of those "
            "with the slowest first tokens"
        )
        rows |= full.rows[1]
        tops = (np.where(full.rows[0], 1.0, 0.0), np.where(full.rows[1], 1.0, 0.0))
        effect, name = _factor(full.change), "slowest first tokens that met a full KV cache, after over before"
    if preempted is not None and _is_storm(preempted, facts):
        low, mid, high = preempted.ratio
        measures["recompute_tax"] = recompute_tax(pair.after, facts.after.uncached, preempted.counts[1])
        times = f"{mid:.1f} times [{low:.1f}, {high:.1f}] as many preemptions a request"
        evidence += [
            f"preempted requests {preempted.before:.2%} -> {preempted.after:.2%}, {times}",
            f"about {measures['recompute_tax']:.0%} of the tokens computed were computed again",
        ]
        rows |= preempted.counts[1] > 0
        tops = tops or preempted.counts
        effect, name = preempted.ratio, "preemptions a request, after over before"
    if tops is None:
        return None
    cap = "what the KV cache holds"
    held = None if full is None else holds(pair.after, full.rows[1])
    if held is not None:
        measures |= {"held": held[0], "waiting_beside": held[1]}
        cap = f"about {held[0]:.0f}"
        evidence.append(f"a full KV cache held about {held[0]:.0f} requests; {held[1]:.0f} waited beside them")
    return Finding(
        STEP,
        "kv_exhausted",
        "guilty",
        tuple(evidence),
        measures,
        effect,
        name,
        since_s=onset(pair.windows, tops, _ones(pair)),
        rows=rows,
        next_action=f"cap the requests under way on a replica at {cap}; then more replicas, FP8 KV, lower max_tokens",
    )


def _is_full(full: Full, facts: Facts) -> bool:
    grew = full.after >= max(1 - facts.quantile, _MORE_FULL * full.before)
    return grew and full.in_tail >= _TAIL_FULL and full.change.low > 0


def _is_storm(preempted: Preempted, facts: Facts) -> bool:
    return preempted.ratio.low > PREEMPTION_RATIO and preempted.after - preempted.before >= 1 - facts.quantile


def _pressure(pair: Pair, preempted: Preempted | None, measures: dict[str, float]) -> tuple[str, ...]:
    """Say what an innocent memory looks like: pressure without a storm (I11), a cache that fills (I13)."""
    texts: list[str] = []
    if preempted is not None:
        low, mid, high = preempted.ratio
        text = f"{preempted.before:.1%} -> {preempted.after:.1%} of the requests preempted"
        if min(preempted.before, preempted.after) >= 0.01:
            text = f"pressure, no storm: {text}, {mid:.2f} times [{low:.2f}, {high:.2f}] as often"
        texts.append(text)
    line = filling(pair.after)
    if line is not None:
        start, rise = line
        measures["kv_trend"] = rise
        texts.append(f"KV cache in use {measures['kv_before']:.0%} -> {measures['kv_after']:.0%}")
        if rise >= _TREND and start + rise >= _NEARLY:
            left = max(1 - start - rise, 0.0) / rise
            texts.append(
                f"it is filling: {start:.0%} -> {start + rise:.0%} over the window, full after {left:.1f} more"
            )
    return tuple(texts)


def _blocked(pair: Pair, facts: Facts) -> Finding | None:
    """Test head-of-line blocking."""
    guilty = [one for one in blockings(pair, facts) if _is_blocked(one, facts)]
    if not guilty:
        return None
    worst = max(guilty, key=lambda one: one.slow)
    evidence = [f"{worst.prompts} prompts of about {worst.tokens:,.0f} uncached tokens, far above any before"]
    evidence += [
        f"{one.beside_slow.value:.0%} of the requests slow in {one.component.upper()} were beside such a prefill on "
        f"their replica, {one.beside:.1%} of all were: {one.lift:.0f} times as often"
        for one in guilty
    ]
    if not math.isnan(worst.period_s):
        evidence.append(f"they come every {worst.period_s:.0f} s")
    low, mid, high = around(worst.beside_slow)
    return Finding(
        STEP,
        "head_of_line",
        "guilty",
        tuple(evidence),
        {
            "beside_slow": worst.beside_slow.value,
            "beside": worst.beside,
            "lift": worst.lift,
            "huge_prompts": float(worst.prompts),
            "huge_tokens": worst.tokens,
            "slow_share": worst.slow,
            "period_s": worst.period_s,
        },
        Interval(max(low, 0.0), mid, min(high, 1.0)),
        f"share of the slow {worst.component.upper()} beside a huge prefill",
        since_s=worst.since_s,
        rows=np.logical_or.reduce([one.rows for one in guilty]),
        next_action=(
            f"keep prompts above {worst.tokens / 2:,.0f} tokens apart: replicas of their own, or fewer long partial "
            "prefills and a smaller token budget a step"
        ),
    )


def _is_blocked(one: Blocking, facts: Facts) -> bool:
    enough = one.slow * facts.after.slice.size >= _SLOW_ROWS and one.slow >= _GREW * (1 - facts.quantile)
    return enough and one.beside_slow.value >= BESIDE_SLOW and one.lift >= LIFT


def _skewed(pair: Pair, facts: Facts) -> Finding | None:
    """Test whether one replica took a larger share, and the tail with it."""
    one = fullest(pair, facts)
    if one is None or one.after < SKEW or one.change.mid < _SKEW_CHANGE or one.change.low <= 0:
        return None
    slow = _slow_on(pair, facts, one)
    if slow is None:
        return None
    component, share, lift = slow
    low, mid, high = one.change
    change_text = f"{mid:+.2f} [{low:+.2f}, {high:+.2f}]"
    return Finding(
        STEP,
        "imbalance",
        "guilty",
        (
            f"{one.name} takes {one.before:.2f} -> {one.after:.2f} times the requests of a mean replica: {change_text}",
            f"{share:.0%} of the requests slow in {component.upper()} are on it, {lift:.1f} times its share",
        ),
        {"skew_before": one.before, "skew_after": one.after, "slow_on_it": share, "slow_lift": lift},
        one.change,
        "requests of the fullest replica over those of a mean one",
        rows=one.rows,
        who=one.name,
        next_action="look at the balancer: a stuck or skewed choice of replica; restart it, or go by least outstanding",
    )


def _slow_on(pair: Pair, facts: Facts, one: Fullest) -> tuple[str, float, float] | None:
    """Give component, share and lift of slow requests on a replica, where the tail grew and sits there."""
    sides = (
        ("ttft", pair.before.ttft_s, pair.after.ttft_s),
        ("tpot", facts.before.tpot_s, facts.after.tpot_s),
    )
    for component, old, new in sides:
        known = np.isfinite(new)
        if not np.isfinite(old).any() or not known.any():
            continue
        slow = known & (np.nan_to_num(new) > np.nanquantile(old, facts.quantile))
        if slow.sum() < max(_GREW * (1 - facts.quantile) * known.sum(), _SLOW_ROWS):
            continue
        on = ratio(slow & one.rows, slow, facts.after.slice)
        base = float(one.rows[known].mean())
        if on.value >= _SKEW_LIFT * base and around(on).low > base:
            return component, on.value, on.value / base
    return None


def _factor(log: Interval) -> Interval:
    return Interval(*(math.exp(min(each, 700.0)) for each in log))


def _ones(pair: Pair) -> tuple[Floats, Floats]:
    return np.ones(pair.before.size), np.ones(pair.after.size)
