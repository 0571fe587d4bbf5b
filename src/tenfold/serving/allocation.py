"""From a fleet's bill to a rate card: GPU time a token, and rates that never sum to more than the busy time cost.

The busy share is measured where requests have a duration. Elsewhere it is modelled from arrivals hour by hour: a
replica that takes whatever arrives (M/G/infinity) with N requests under way on average is busy for 1 - e^-N of the
time, and N is the arrival rate times how long a request takes, by the roofline at the batch that this makes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from tenfold.serving.capacity import Load, pace
from tenfold.serving.demand import Demand
from tenfold.serving.fleet import Pool
from tenfold.serving.memory import Deployment
from tenfold.serving.replanning import Tokens, gpu_seconds, shared_out

_ROUNDS = 60


class GpuSeconds(NamedTuple):
    """GPU seconds that one token takes, over all GPUs of a replica.

    Args:
        input: A prompt token that is computed.
        cached: A prompt token whose keys and values are there.
        output: A token of an answer.
    """

    input: float
    cached: float
    output: float


class Rates(NamedTuple):
    """A rate card, in pUSD a token.

    Args:
        input: A prompt token that is computed.
        cached: A prompt token whose keys and values are there.
        output: A token of an answer.
    """

    input: int
    cached: int
    output: int

    def cost_pusd(self, demand: Demand) -> int:
        """Price a demand.

        Args:
            demand: Tokens by kind.

        Returns:
            pUSD, exactly what the ledger prices the same requests with.
        """
        return (
            self.input * demand.uncached_tokens
            + self.cached * demand.cached_tokens
            + self.output * demand.output_tokens
        )


class Busy(NamedTuple):
    """How busy replicas were.

    Args:
        ratio: Share of their time with at least one request; above 1 where more was asked than they can give.
        batch: Requests under way in a busy replica, on average.
        over_hours: Modelled hours in which more arrives than all replicas can decode.
        worst: The most of them that an hour asks for, as a share of what they can decode.
    """

    ratio: Fraction
    batch: float
    over_hours: int = 0
    worst: float = 0.0


def load_of(demand: Demand) -> Load:
    """Describe a demand's mean request.

    Args:
        demand: At least one request.

    Returns:
        Tokens by kind.
    """
    return Load(
        demand.uncached_tokens / demand.requests,
        demand.cached_tokens / demand.requests,
        max(demand.output_tokens / demand.requests, 1.0),
    )


def room(one: Deployment, load: Load, cap: int) -> float:
    """Give the most requests that a replica decodes at once.

    Args:
        one: The replica.
        load: Its mean request.
        cap: The engine's limit on sequences.

    Returns:
        Requests, at least 1: what fits into memory, or the limit.
    """
    return max(1.0, min(one.concurrency(load.resident_tokens), cap))


def measured(demand: Demand, replicas: int, lasts_us: int) -> Busy:
    """Take the busy share from durations.

    Args:
        demand: With durations.
        replicas: Replicas of the fleet.
        lasts_us: Length of the stretch in microseconds.

    Returns:
        The share, and the mean batch by Little's law.
    """
    return Busy(Fraction(demand.busy_us, replicas * lasts_us), demand.in_flight_us / demand.busy_us)


def modelled(demand: Demand, one: Deployment, replicas: int, most: float) -> Busy:
    """Work out the busy share from arrivals, for a log without durations.

    Args:
        demand: At least one request.
        one: A replica.
        replicas: Replicas of the fleet.
        most: The most requests that a replica decodes at once.

    Returns:
        The share, and the mean batch.
    """
    load = load_of(demand)
    slowest = _takes_s(one, load, most)
    seconds = busy = under_way = asked = worst = 0.0
    over = 0
    for hour in demand.hours:
        rate = hour.requests / hour.seconds / replicas
        need = rate * slowest / most
        asked += need * hour.seconds
        over += need > 1
        worst = max(worst, need)
        number = _under_way(one, load, rate, most)
        seconds += hour.seconds
        busy += -math.expm1(-number) * hour.seconds
        under_way += number * hour.seconds
    share = max(busy, asked) / seconds
    return Busy(Fraction(share), under_way / busy, over, worst)


def _under_way(one: Deployment, load: Load, rate: float, most: float) -> float:
    """Solve N = rate x time in system at the batch that N makes; at most ``most``."""
    number = 0.0
    for _ in range(_ROUNDS):
        batch = number / -math.expm1(-number) if number else 1.0
        after = min(rate * _takes_s(one, load, min(batch, most)), most)
        if math.isclose(after, number, rel_tol=1e-9):
            break
        number = after
    return number


def _takes_s(one: Deployment, load: Load, batch: float) -> float:
    """Give the seconds that a request takes."""
    return batch * load.output_tokens / pace(one, load, batch).tokens_per_s


def seconds_a_token(pools: Sequence[Pool], weights: Sequence[int], load: Load, batch: float) -> GpuSeconds:
    """Give the GPU time of a token; where pools differ, their mean by cost.

    Args:
        pools: The pools.
        weights: What each costs.
        load: The mean request.
        batch: Requests under way in a replica.

    Returns:
        GPU seconds by kind. (serving.md 3, end)
    """
    by_pool = [gpu_seconds(pool.deployment, load, batch) for pool in pools]
    whole = sum(weights) or len(pools)
    shares = [weight / whole for weight in weights] if sum(weights) else [1 / whole] * len(pools)
    return GpuSeconds(
        *(math.fsum(share * one[i] for share, one in zip(shares, by_pool, strict=True)) for i in range(3))
    )


def gpu_time(demand: Demand, seconds: GpuSeconds) -> float:
    """Give the GPU time that a demand takes by the roofline.

    Args:
        demand: Tokens by kind.
        seconds: GPU seconds a token, by kind.

    Returns:
        GPU seconds.
    """
    return math.fsum(
        (
            demand.uncached_tokens * seconds.input,
            demand.cached_tokens * seconds.cached,
            demand.output_tokens * seconds.output,
        )
    )


def rate_card(busy_pusd: int, demand: Demand, seconds: GpuSeconds) -> Rates:
    """Share the cost of the busy time out to tokens by GPU time.

    Args:
        busy_pusd: What the busy time cost.
        demand: Tokens by kind.
        seconds: GPU seconds a token, by kind.

    Returns:
        Rates, rounded down: priced with them, the demand costs at most ``busy_pusd``.
    """
    tokens = Tokens(demand.uncached_tokens, demand.cached_tokens, demand.output_tokens)
    return Rates(*shared_out(busy_pusd, tokens, seconds))
