"""A tail of the first token that grows with the requests under way, while neither queue nor prompts explain it.

The CPU in front of the GPU (tokenizer, event loop) does one thing at a time: sglang#7250 shows TTFT p99 at 17 times and
its mean at twice, with four requests at once instead of one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.equal_load import Side, at_equal_load, pending_tokens
from tenfold.latency.facts import Derived, Facts
from tenfold.latency.records import Finding, Floats, Interval, Mask, Pair
from tenfold.latency.slices import group_quantile, percent

# The tail that is looked at: a few in a hundred requests are held up; farther out, a third of a window is too few.
TAIL = 0.98
# Log of the tail's growth that can matter: a quarter more.
LEAST = float(np.log(1.25))
# Queue's share of the slow requests' TTFT from which it is step 4's (serving.md 12).
_QUEUE = 0.3
_ROWS = 200
# Prompts that changed more than this make a tail of their own: steps 2 and 3.
_SAME_PROMPTS = 0.10


class FrontEnd(NamedTuple):
    """What the tail of service times does with the requests under way.

    Args:
        growth: Log of its tail after over before, with its interval.
        slope: Log of its tail with many under way over that with few, in the window after.
        slope_before: The same in the window before.
        slope_short: As ``slope``, of requests with few prompt tokens ahead of them.
        median: Log of its median after over before.
        decode: Log of the tail of decode after over before.
        queue_share: Share of the queue in the slow requests' TTFT, after.
        prompts: Log of the mean uncached prompt after over before, either way.
        spread: Share of the replicas that show half of the growth.
        rows: Requests of the window after with more than a few under way.
        above: Requests under way from which they are many.
    """

    growth: Interval
    slope: Interval
    slope_before: float
    slope_short: float
    median: float
    decode: float
    queue_share: float
    prompts: float
    spread: float
    rows: Mask
    above: float

    @property
    def is_guilty(self) -> bool:
        """Whether all of its marks are there."""
        return (
            self.growth.low > 0
            and self.growth.mid >= LEAST
            and self.slope.low > 0
            and self.slope.mid >= LEAST
            and not self.slope_before > self.slope.mid / 2
            and not self.slope_short < self.slope.mid / 2
            and self.median <= self.growth.mid / 2
            and not self.decode > self.growth.mid / 2
            and self.queue_share < _QUEUE
            and self.prompts <= _SAME_PROMPTS
            and self.spread >= 0.6
        )


def front_end(pair: Pair, facts: Facts) -> FrontEnd | None:
    """Look for it.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        What was seen; None without the queue's time, or where the load hardly varies.
    """
    queue, after = pair.after.queue_s, facts.after
    if queue is None or pair.before.queue_s is None:
        return None
    under = after.in_flight
    known = np.isfinite(under) & np.isfinite(after.prefill_residual)
    if known.sum() < 3 * _ROWS:
        return None
    low, high = np.quantile(under[known], (1 / 3, 2 / 3))
    few, many = known & (under <= low), known & (under > max(low, high - 1e-9))
    if min(few.sum(), many.sum()) < _ROWS:
        return None
    pending = pending_tokens(pair.after, after)
    ahead = pending[known & (pending > 0)]
    short = pending <= (float(np.median(ahead)) if ahead.size else 0.0)
    before = facts.before
    cuts = (before.in_flight <= low, before.in_flight > max(low, high - 1e-9))
    slow = np.isfinite(pair.after.ttft_s) & (pair.after.ttft_s >= np.nanquantile(pair.after.ttft_s, TAIL))
    growth = _gap(after, before, known, np.isfinite(before.prefill_residual))
    return FrontEnd(
        growth=growth,
        slope=_gap(after, after, many, few),
        slope_before=_gap(before, before, cuts[1], cuts[0]).mid,
        slope_short=_gap(after, after, many & short, few & short).mid,
        median=float(np.nanmedian(after.prefill_residual) - np.nanmedian(before.prefill_residual)),
        decode=_quantile(after.decode_residual) - _quantile(before.decode_residual),
        queue_share=float(np.nan_to_num(queue[slow]).sum() / pair.after.ttft_s[slow].sum()),
        prompts=_apart(float(np.nanmean(before.uncached)), float(np.nanmean(after.uncached))),
        spread=_spread(facts, growth.mid / 2),
        rows=known & (under > low),
        above=float(max(low, high)),
    )


def _apart(one: float, other: float) -> float:
    if one == other:
        return 0.0
    # where all of it is cached in one window alone, nothing is as it was
    return abs(float(np.log(other / one))) if one > 0 and other > 0 else float("inf")


def _gap(one: Derived, other: Derived, rows: Mask, others: Mask) -> Interval:
    sides = [
        Side(each.prefill_residual, mask, np.zeros(mask.size, np.int64), each.slice, stream)
        for each, mask, stream in ((one, rows, 0), (other, others, 0 if one is other else 1))
    ]
    return at_equal_load(sides[0], sides[1], tail=TAIL).tail


def _quantile(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, TAIL)) if known.size else float("nan")


def _spread(facts: Facts, least: float) -> float:
    many = int(max(one.replica.max(initial=0) for one in facts.windows)) + 1
    old, new = (group_quantile(one.prefill_residual, one.replica, many, TAIL, least=20) for one in facts.windows)
    moved = (new - old)[np.isfinite(new - old)]
    return float((moved >= least).mean()) if moved.size else 1.0


def look_for_front_end(pair: Pair, facts: Facts, looked: list[str]) -> list[Finding]:
    """Look for a CPU in front of the GPU that falls behind.

    Args:
        pair: The windows.
        facts: What is known of them.
        looked: Takes a sentence of what was looked at.

    Returns:
        One guilty finding, or none.
    """
    one = front_end(pair, facts)
    if one is None:
        looked.append("Without the queue's time, or with a load that hardly varies, a slow front end cannot be told.")
        return []
    sentence = (
        f"Service time's p{TAIL * 100:.0f} moved by {percent(one.growth.mid)} (median {percent(one.median)}); with "
        f"more than {one.above:.0f} under way it is {percent(one.slope.mid)} against few (before: "
        f"{percent(one.slope_before)}); the queue is {one.queue_share:.0%} of slow requests' TTFT."
    )
    looked.append(sentence)
    if not one.is_guilty:
        return []
    return [
        Finding(
            step=6,
            kind="front_end",
            status="guilty",
            evidence=(
                sentence,
                f"With few prompt tokens ahead it is {percent(one.slope_short)}: neither queue nor prompts explain it.",
                "Decode does not show it: CPU in front of the GPU.",
            ),
            measures={
                "prefill_effect": one.growth.mid,
                "slope": one.slope.mid,
                "slope_before": one.slope_before,
                "queue_share": one.queue_share,
            },
            effect=one.growth,
            effect_name=f"log change of the p{TAIL * 100:.0f} of service time at equal prompts and load",
            missing=() if pair.hosts is not None else ("hosts",),
            rows=one.rows,
            next_action=(
                "Profile the API server's process (tokenizer, event loop; py-spy dump) at this concurrency; give it "
                "more cores or more front-end workers."
            ),
        )
    ]
