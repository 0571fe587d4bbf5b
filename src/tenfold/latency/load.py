"""How much more the replicas had to do, and why: logs of load, in parts that add up, of prompts and of answers apart.

Prompts wait for prompts: what fills their queue is the time that prompts take. Answers slow each other and the prompts
beside them: what counts is how many are being written, by Little's law arrivals x tokens x time a token. For either,
``log(load after / load before)`` is the sum of arrivals (of clients known before, of new ones, of retries), of what a
request brings (mix of tenants and routes, lengths within them, cache) and of capacity lost (replicas, speed).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.cells import Kinds
from tenfold.latency.facts import Derived, Facts
from tenfold.latency.records import Floats, Mask, Pair, Window


class Work(NamedTuple):
    """Log changes of what a request brings, over first attempts.

    Args:
        prompt_mix: Time of a prompt, by the shares of tenants and routes.
        prompt_within: Time of a prompt, by lengths within them.
        prompt_cache: Time of a prompt, by what the cache held.
        answer_mix: Tokens of an answer, by the shares of tenants and routes.
        answer_within: Tokens of an answer, by lengths within them.
        beside: Time of a prompt, by the answers that were written beside it.
        between: Time a token of an answer, by the prompts that came between.
    """

    prompt_mix: float = 0.0
    prompt_within: float = 0.0
    prompt_cache: float = 0.0
    answer_mix: float = 0.0
    answer_within: float = 0.0
    beside: float = 0.0
    between: float = 0.0


def work_changes(pair: Pair, facts: Facts, kinds: Kinds, uncached_back: Floats, fresh: Mask) -> Work:
    """Say why a request brings more than before.

    Args:
        pair: The windows.
        facts: What is known of them.
        kinds: Who asks for what.
        uncached_back: Uncached tokens after, had the cache held what it held before.
        fresh: Requests of clients that are new; left out.

    Returns:
        Log changes of means.
    """
    before, after = facts.windows
    calm = float(np.nanmean(before.under.at_start)) if np.isfinite(before.under.at_start).any() else 0.0
    use = first_attempts(pair.before), first_attempts(pair.after) & ~fresh

    def prompts(uncached: Floats) -> Floats:
        return facts.prefill.expected(uncached, np.full(uncached.size, calm))

    back, now = prompts(uncached_back), prompts(after.uncached)
    prompt_mix, prompt_within = _mix_and_within((prompts(before.uncached), back), kinds, use)
    answer_mix, answer_within = _mix_and_within((pair.before.output, pair.after.output), kinds, use)
    return Work(
        prompt_mix=prompt_mix,
        prompt_within=prompt_within,
        prompt_cache=_log(_mean(now, use[1]), _mean(back, use[1])),
        answer_mix=answer_mix,
        answer_within=answer_within,
        beside=_log(_mean(facts.prefill.expected(after.uncached, after.under.at_start), use[1]), _mean(now, use[1]))
        - _log(
            _mean(facts.prefill.expected(before.uncached, before.under.at_start), use[0]),
            _mean(prompts(before.uncached), use[0]),
        ),
        between=_between(after, facts) - _between(before, facts),
    )


def _between(one: Derived, facts: Facts) -> float:
    """Log of what prompts add to the time a token."""
    under = one.under
    with_prompts = facts.decode.expected(under.decoding, under.context, under.between)
    without = facts.decode.expected(under.decoding, under.context, np.zeros(under.decoding.size))
    everything = np.ones(without.size, np.bool_)
    return _log(_mean(with_prompts, everything), _mean(without, everything))


def _mix_and_within(columns: tuple[Floats, Floats], kinds: Kinds, use: tuple[Mask, Mask]) -> tuple[float, float]:
    """Give log changes of the mean: by the mix of kinds, and within them."""
    old, new = (used & np.isfinite(column) for column, used in zip(columns, use, strict=True))
    if not old.any() or not new.any():
        return 0.0, 0.0
    many = len(kinds.names)
    counts = np.bincount(kinds.before[old], minlength=many)
    sums = np.bincount(kinds.before[old], columns[0][old], many)
    mean = np.divide(sums, counts, where=counts > 0, out=np.zeros(many))
    # kinds that are new have no mean before
    known = new & (counts > 0)[kinds.after]
    if not known.any():
        return 0.0, 0.0
    mixed = float(mean[kinds.after[known]].mean())
    return _log(mixed, float(columns[0][old].mean())), _log(float(columns[1][known].mean()), mixed)


def _mean(values: Floats, use: Mask) -> float:
    known = use & np.isfinite(values)
    return float(values[known].mean()) if known.any() else 0.0


def first_attempts(window: Window) -> Mask:
    """Tell first attempts from retries, as far as the log counts attempts.

    Args:
        window: The window.

    Returns:
        Whether a request is a first attempt, or not known to be another.
    """
    return np.ones(window.size, np.bool_) if window.attempt is None else ~(window.attempt > 0)


def _log(value: float, base: float) -> float:
    return float(np.log(value / base)) if value > 0 and base > 0 else 0.0
