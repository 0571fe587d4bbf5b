"""What one replica can carry under a service level, and how many replicas a demand takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from tenfold.serving.memory import Deployment
from tenfold.serving.roofline import FITTED, Constants, prefill_s, step_cost
from tenfold.serving.speculation import Speculation, step_s


class Load(NamedTuple):
    """What requests look like on average.

    Args:
        input_tokens: Prompt tokens that are computed.
        cached_tokens: Prompt tokens whose keys and values are there already.
        output_tokens: Answer tokens.
    """

    input_tokens: float
    cached_tokens: float
    output_tokens: float

    @property
    def resident_tokens(self) -> float:
        """Mean tokens that a request has in memory while it is decoded: prompt and half of the answer."""
        return self.input_tokens + self.cached_tokens + self.output_tokens / 2


class Pace(NamedTuple):
    """A replica at a batch.

    Args:
        tokens_per_s: Output tokens a second, of the whole replica.
        tpot_s: Seconds an output token.
        ttft_s: Seconds to the first token, without queueing.
    """

    tokens_per_s: float
    tpot_s: float
    ttft_s: float


class Capacity(NamedTuple):
    """The most that a replica carries.

    Args:
        batch: Requests under way at once.
        pace: Its pace at that batch.
        bound: What stops a larger batch: memory, the engine's cap, or the limit on time per output token; ``missed``
            where even one request at a time misses that limit.
    """

    batch: int
    pace: Pace
    bound: Literal["memory", "cap", "slo", "missed"]


def pace(
    one: Deployment, load: Load, batch: float, how: Speculation | None = None, constants: Constants = FITTED
) -> Pace:
    """Work out a replica's pace at a batch.

    Args:
        one: The replica.
        load: What requests look like.
        batch: Requests under way at once.
        how: Speculation; None for none.
        constants: Fitted constants.

    Returns:
        The pace.

    Formula:
        As ``roofline.speed``, with cached tokens read and not computed, and a step's yield of tokens with speculation.
    """
    cost = step_cost(one, constants)
    prompt = prefill_s(cost, load.input_tokens, load.cached_tokens)
    step = step_s(one, cost, batch, load.resident_tokens, how)
    tpot = step / (how.expected_tokens if how else 1) + batch / load.output_tokens * prompt
    return Pace(batch / tpot, tpot, step + prompt)


def capacity(
    one: Deployment,
    load: Load,
    *,
    cap: int,
    tpot_slo_s: float | None = None,
    ttft_slo_s: float | None = None,
    how: Speculation | None = None,
    constants: Constants = FITTED,
) -> Capacity | None:
    """Find the largest batch that memory, the engine's cap and the limit on time per output token leave.

    Args:
        one: The replica.
        load: What requests look like.
        cap: Most requests that the engine runs at once.
        tpot_slo_s: Limit on seconds an output token; None for none.
        ttft_slo_s: Limit on seconds to the first token, without queueing; None for none.
        how: Speculation; None for none.
        constants: Fitted constants.

    Returns:
        The capacity; None where the model, or a single request, does not fit.
    """
    in_memory = math.floor(one.concurrency(load.resident_tokens))
    if in_memory < 1:
        return None
    most = min(in_memory, cap)
    bound: Literal["memory", "cap", "slo", "missed"] = "memory" if in_memory <= cap else "cap"

    def at(batch: int) -> Pace:
        return pace(one, load, batch, how, constants)

    def keeps(batch: int) -> bool:
        reached = at(batch)
        return within(reached.tpot_s, tpot_slo_s) and within(reached.ttft_s, ttft_slo_s)

    if keeps(most):
        return Capacity(most, at(most), bound)
    batch = largest(most, keeps)
    return Capacity(batch, at(batch), "slo") if batch else Capacity(1, at(1), "missed")


def within(took_s: float, limit_s: float | None) -> bool:
    """Tell whether a time keeps a limit.

    Args:
        took_s: The time.
        limit_s: The limit; None for none.

    Returns:
        Whether it does.
    """
    return limit_s is None or took_s <= limit_s


def largest(most: int, keeps: Callable[[int], bool]) -> int:
    """Find the largest batch that keeps a limit which larger batches miss: times only grow with the batch.

    Args:
        most: Largest batch to look at.
        keeps: Whether a batch keeps it; false for all above the first for which it is.

    Returns:
        The batch; 0 where none keeps it.
    """
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def replicas_needed(demand_tokens_per_s: float, capacity_tokens_per_s: float, utilization: float, least: int) -> int:
    """Give how many replicas a demand takes.

    Args:
        demand_tokens_per_s: Output tokens a second at the peak.
        capacity_tokens_per_s: What one replica gives.
        utilization: Share of it that is planned with: the rest carries bursts within the hour.
        least: Replicas that availability asks for.

    Returns:
        Whole replicas.

    Formula:
        ceil(peak / (rate x utilisation)). (serving.md 7)
    """
    return max(least, math.ceil(demand_tokens_per_s / (capacity_tokens_per_s * utilization) - 1e-9))
