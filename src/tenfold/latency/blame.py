"""Who made the load: what each finding added to it, and what it takes of the wait that the load made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import factorial
from typing import NamedTuple

import numpy as np

from tenfold.latency.counterfactual import PROMPTS
from tenfold.latency.facts import Facts
from tenfold.latency.guilty import CACHE, Guilty
from tenfold.latency.load import Work
from tenfold.latency.records import Finding, Floats

# Of the log of load: what is less than this part of all of it is left out, and what is less than that is none at all.
_LEAST_PART, _LEAST_LOG = 0.15, 0.03
# Arrivals of known clients that are so many more, as a log, are a cause of queueing.
_ORGANIC = 0.08
# Wait at equal load that is so much longer, as a log, is the scheduler's doing and not the load's.
_SCHEDULER = 0.3
# KV cache in use at equal load is so much more, as a log, where an engine has less of it.
_SMALLER = 0.2
# Retries that began so long before the others, in seconds, did not come of them.
_SLACK_S = 120.0
_PRESSURE = ("kv_exhausted", "queueing", "imbalance")
_RETRIES = ("retries", "storm", "overlap")


class Load(NamedTuple):
    """Who made the load, and what only followed.

    Args:
        prompts: Finding and its log of the time that prompts take, all positive.
        answers: Finding and its log of the answers being written, all positive.
        followers: Findings of either that follow from the others.
        pressure: The finding of step 4 that shows it; None: step 4 did not accuse.
        evicted: The finding of step 3, where a full KV cache threw prefixes out: what follows from the load.
    """

    prompts: tuple[tuple[Finding, float], ...] = ()
    answers: tuple[tuple[Finding, float], ...] = ()
    followers: tuple[Finding, ...] = ()
    pressure: Finding | None = None
    evicted: Finding | None = None

    def of(self, part: str) -> tuple[tuple[Finding, float], ...]:
        """Give who made a part of the load; where it is not known apart, who made the other.

        Args:
            part: ``counterfactual.PROMPTS`` or another.

        Returns:
            Findings and logs.
        """
        return (self.prompts or self.answers) if part == PROMPTS else (self.answers or self.prompts)


def load_of(guilty: Guilty, facts: Facts, work: Work, rate_log: float) -> Load:
    """Say who made the load that the replicas had more of.

    Args:
        guilty: The findings that accuse.
        facts: What is known of the windows.
        work: What a request brings more.
        rate_log: Log of arrivals a second after over before, retries and new clients in them.

    Returns:
        Who, with the weights of their parts.
    """
    pressure = guilty.of(*_PRESSURE)
    retries, fresh, broken = guilty.of(*_RETRIES), guilty.of("new_client"), guilty.of(*CACHE)
    slow, changed = guilty.of("slow_host", "drift"), guilty.of("version", "limit", "cohort", "warm_up")
    # more traffic, or a smaller cache, throws prefixes out: hits of everybody fall, at no place in particular
    is_everybody = (
        broken is not None
        and broken.kind == "cache_broken"
        and not broken.who
        and not np.isfinite(broken.measures.get("break_tokens", np.nan))
    )
    is_smaller = is_everybody and changed is not None and changed.measures.get("kv_at_equal_load", 0) >= _SMALLER
    is_fuller = pressure is not None and (pressure.kind == "kv_exhausted" or rate_log >= _ORGANIC)
    evicted = broken if is_everybody and (is_smaller or is_fuller) else guilty.evicted
    scheduler = next((one for one in guilty.all if one.measures.get("queue_at_equal_load", 0) >= _SCHEDULER), None)
    if scheduler is not None:
        return Load(((scheduler, 1.0),), (), (), pressure, evicted)
    retry_log = 0.0 if retries is None else retries.measures.get("retry_log_change", 0.0)
    fresh_log = 0.0 if fresh is None else fresh.measures.get("new_client_log_change", 0.0)
    lost = guilty.of("lost_host", "scaled")
    lost_log = 0.0 if lost is None else -lost.measures.get("capacity_log_change", 0.0)
    organic = rate_log - retry_log - fresh_log
    prompt, answer = facts.after.prefill_residual, facts.after.decode_residual
    # finding, what it adds to the time of prompts, and to answers being written
    table = [
        (lost, lost_log, lost_log),
        (slow, _slower(slow, prompt), _slower(slow, answer)),
        (changed, work.prompt_cache if is_smaller else _slower(changed, prompt), _slower(changed, answer)),
        (guilty.of("mix"), work.prompt_mix, work.answer_mix),
        (guilty.of("input_length"), work.prompt_within, 0.0),
        (guilty.of("output_length"), 0.0, work.answer_within),
        (broken if broken is not evicted else None, work.prompt_cache, 0.0),
        (fresh, fresh_log, fresh_log),
        (retries, retry_log, retry_log),
        (pressure, organic if organic >= _ORGANIC else 0.0, organic if organic >= _ORGANIC else 0.0),
    ]
    known = [(one, prompts, answers) for one, prompts, answers in table if one is not None]
    blocked = guilty.of("head_of_line")
    others = [one for one, *more in table if one is not None and one.step in (5, 6, 7) and max(more) >= _LEAST_LOG]
    if blocked is not None and not others:
        return Load(((blocked, 1.0),), (), (), None, evicted)
    prompts, answers = _each_with_the_other(known, work)
    if not prompts and not answers:
        return Load(((pressure, 1.0),) if pressure is not None else (), (), (), pressure, evicted)
    makers = [one for one, _ in (*prompts, *answers)]
    followers = (retries,) if retries in makers and _follows(retries, makers) else ()
    return Load(prompts, answers, followers, pressure, evicted)


def _each_with_the_other(
    known: Sequence[tuple[Finding, float, float]], work: Work
) -> tuple[tuple[tuple[Finding, float], ...], tuple[tuple[Finding, float], ...]]:
    """Add to either load what came of the other: answers slow prompts, and prompts slow answers."""
    findings = [one for one, _, _ in known]
    prompts = [max(log, 0.0) for _, log, _ in known]
    answers = [max(log, 0.0) for _, _, log in known]
    return (
        _enough(findings, _with(prompts, answers, work.beside)),
        _enough(findings, _with(answers, prompts, work.between)),
    )


def _with(own: Sequence[float], other: Sequence[float], through: float) -> list[float]:
    """Add what came of the other load, to each its part of that."""
    whole = sum(other)
    return [log + max(through, 0.0) * (part / whole if whole else 0.0) for log, part in zip(own, other, strict=True)]


def _enough(findings: Sequence[Finding], logs: Sequence[float]) -> tuple[tuple[Finding, float], ...]:
    """Leave out what is little; retries stay, as they may have come of the others and are then to be told."""
    whole = sum(log for log in logs if log >= _LEAST_LOG)
    return tuple(
        (one, log)
        for one, log in zip(findings, logs, strict=True)
        if log >= (_LEAST_LOG if one.kind in _RETRIES else max(_LEAST_LOG, _LEAST_PART * whole))
    )


def _slower(one: Finding | None, residual: Floats) -> float:
    """Log of the time that slower serving of the accused requests adds to that of all."""
    known = np.isfinite(residual)
    rows = known if one is None or one.rows is None else known & one.rows
    if one is None or not rows.any():
        return 0.0
    added = float(np.expm1(np.median(residual[rows]))) * int(rows.sum()) / int(known.sum())
    return float(np.log1p(max(added, 0.0)))


def _follows(retries: Finding, makers: Sequence[Finding]) -> bool:
    """Tell whether retries came of the others: something else made load, and not long after they began."""
    began = retries.measures.get("retries_since_s", np.nan)
    for one in makers:
        if one is retries:
            continue
        if one.since_s is None or np.isnan(began) or began >= one.since_s - _SLACK_S:
            return True
    return False


def parts_of_load(logs: Sequence[float], ratio: float) -> list[float]:
    """Share a growth of waiting among those who made the load.

    Args:
        logs: Log of load that each made, positive.
        ratio: What waits after, over what waited before.

    Returns:
        Shares that add up to 1.

    Formula:
        Shapley over all orders of W = u / (1 - u), the wait of a queue at utilisation u (Pollaczek and Khinchine, up to
        a factor), u = u0 x exp(sum of the logs of those that are there); u0 so that all of them together make ``ratio``
        of it: u0 = (ratio / growth - 1) / (ratio - 1), growth = exp(sum of all logs). Near u0 = 0 that is in proportion
        to the load; near saturation who tips it over counts as much as who filled it.
    """
    if len(logs) == 1:
        return [1.0]
    growth = float(np.exp(sum(logs)))
    start = min(max((ratio / growth - 1) / (ratio - 1), 0.0), 0.999 / growth) if ratio > 1 else 0.0

    def wait(there: tuple[int, ...]) -> float:
        made = float(np.exp(sum(logs[at] for at in there)))
        return made / (1 - start * made)

    count, out = len(logs), [0.0] * len(logs)
    for at in range(count):
        others = [other for other in range(count) if other != at]
        for size in range(count):
            weight = factorial(size) * factorial(count - size - 1) / factorial(count)
            for there in combinations(others, size):
                out[at] += weight * (wait((*there, at)) - wait(there))
    whole = sum(out)
    return [part / whole for part in out]
