"""A hosted model's bill if it were hosted otherwise: other weights, another GPU, fewer replicas, speculation.

Today's hosting and the other one are held to the same demand and the same limit on time per output token. Without
right-sizing, the other hosting must carry what today's could, in whole replicas; with it, what the log's busiest hour
asked for. Sources: serving.md 2 (what fits), 3 (speed), 7 (replicas), 9 (procurement), 10 (speculation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from tenfold.display import counted
from tenfold.money import PUSD_PER_USD, shown
from tenfold.serving.capacity import Capacity, Load, capacity, replicas_needed
from tenfold.serving.memory import Deployment, default_caps
from tenfold.serving.roofline import prefill_s, step_cost
from tenfold.serving.specs import Gpu, Scheme
from tenfold.serving.speculation import Speculation, step_s

TPS = (1, 2, 4, 8)


class Tokens(NamedTuple):
    """Tokens of a hosted model in the window, as the ledger prices them."""

    input: int
    cached: int
    output: int


class Site(NamedTuple):
    """How a model is hosted today, and what is asked of it.

    Args:
        deployment: One replica.
        replicas: How many there are.
        usd_per_gpu_hour: What a GPU costs an hour.
        hours: Hours of the window in which they are paid.
        cap: Most requests that the engine runs at once in one replica; None for its default on the GPU.
        load: What requests look like.
        tokens: Their sums.
        hourly: Output tokens a second, hour by hour; every hour of the window, also those without any.
        waiting: The part of ``hourly`` that may wait, and that may therefore run on spot GPUs.
        seconds: How long each of those hours is; empty where all are alike.
        peak: Output tokens a second of the busiest sixty minutes, wherever they begin; None for the busiest hour's.
        kept_peak: The same of what may not wait.
        busy_ratio: Share of the bill that requests take today; the rest is idle.
        tpot_slo_s: Limit on seconds an output token; None for none.
        ttft_slo_s: Limit on seconds to the first token, without queueing; None for none.
        scale: Measured pace over the modelled one, 1 where the log has no latency.
    """

    deployment: Deployment
    replicas: int
    usd_per_gpu_hour: Decimal
    hours: Fraction
    cap: int | None
    load: Load
    tokens: Tokens
    hourly: Sequence[float]
    waiting: Sequence[float]
    busy_ratio: float
    tpot_slo_s: float | None = None
    ttft_slo_s: float | None = None
    scale: float = 1.0
    seconds: Sequence[float] = ()
    peak: float | None = None
    kept_peak: float | None = None

    @property
    def weights(self) -> list[Fraction]:
        """Share of the window that each hour is."""
        lengths = [Fraction(one) for one in self.seconds or [1.0] * len(self.hourly)]
        return [one / sum(lengths) for one in lengths]

    @property
    def peaks(self) -> tuple[float, float]:
        """Output tokens a second at the peak: all, and what may not wait."""
        kept = [max(all_of - late, 0.0) for all_of, late in zip(self.hourly, self.waiting, strict=True)]
        most = max(self.hourly, default=0.0) if self.peak is None else self.peak
        return most, max(kept, default=0.0) if self.kept_peak is None else self.kept_peak


class Hosting(NamedTuple):
    """What is changed; None where it stays.

    Args:
        weights: How weights are kept.
        kv: How the KV cache is kept.
        utilization: Share of a replica's capacity to plan with, where replicas are to follow the measured demand.
        follows: Whether replicas are started and stopped by the hour, where they follow the demand; else there are
            always as many as the busiest hour takes.
        least: Replicas that there are at least, unless there are fewer today.
        cap: Most requests at once in one replica.
        gpu: Another GPU.
        usd_per_gpu_hour: What it costs an hour on demand.
        reserved_usd_per_gpu_hour: What it costs an hour reserved, used or not.
        spot_usd_per_gpu_hour: What it costs an hour on spot, for what may wait.
        spot_rework: Share of work on spot GPUs that is done again after they are taken away.
        speculation: How tokens are drafted.
        pace: Factor on the modelled pace of what is changed: the end of the model's interval.
    """

    weights: Scheme | None = None
    kv: Scheme | None = None
    utilization: float | None = None
    follows: bool = False
    least: int = 2
    cap: int | None = None
    gpu: Gpu | None = None
    usd_per_gpu_hour: Decimal | None = None
    reserved_usd_per_gpu_hour: Decimal | None = None
    spot_usd_per_gpu_hour: Decimal | None = None
    spot_rework: float = 0.0
    speculation: Speculation | None = None
    pace: float = 1.0

    @property
    def is_faster(self) -> bool:
        """Whether it changes how fast a replica is, and so relies on the model."""
        return any(one is not None for one in (self.weights, self.kv, self.gpu, self.speculation))


class Rehosted(NamedTuple):
    """A hosting with its bill.

    Args:
        deployment: One replica.
        replicas: Replicas at the busiest hour.
        capacity: What one carries.
        carries_tokens_per_s: What all of them carry at their capacity, in output tokens a second.
        reserved: Replicas that are reserved.
        on_demand_hours: GPU hours on demand.
        spot_hours: GPU hours on spot.
        bill_pusd: What it costs over the window.
        rates: Pico-dollars a token: input, cached, output; rounded down.
        idle_pusd: What is left of the bill beside the requests.
    """

    deployment: Deployment
    replicas: int
    capacity: Capacity
    carries_tokens_per_s: float
    reserved: int
    on_demand_hours: Fraction
    spot_hours: Fraction
    bill_pusd: int
    rates: Tokens
    idle_pusd: int

    @property
    def gpus_in_words(self) -> str:
        """How many GPUs of which kind, such as ``2 replicas of 4 h100-sxm``."""
        one = self.deployment
        each = f"{one.tp} {one.gpu.name}" if one.tp > 1 else one.gpu.name
        return f"{counted(self.replicas, 'replica')} of {each}"

    @property
    def in_words(self) -> str:
        """The hosting in a few words, with its bill."""
        one = self.deployment
        return (
            f"{self.gpus_in_words} with {one.weights.name} weights and {one.kv.name} KV cache, at most "
            f"{self.capacity.batch} requests at once in each, for {shown(self.bill_pusd)}"
        )


def rehosted(site: Site, how: Hosting) -> Rehosted | None:
    """Work out a hosting, with the number of GPUs a replica that costs least.

    Args:
        site: How it is hosted today.
        how: What is changed.

    Returns:
        The cheapest hosting; None where the model fits on no number of GPUs a replica that was tried.
    """
    today = _capacity(site, site.deployment, site.cap, None)
    if today is None:
        return None
    # another number of GPUs a replica is only looked for where weights or GPUs change; today's, of any size, can stay
    own = site.deployment.tp
    tps = (
        sorted({*(tp for tp in TPS if not site.deployment.model.q_heads % tp), own})
        if how.gpu is not None or how.weights is not None
        else (own,)
    )
    tried = (_with_tp(site, how, tp, today) for tp in tps)
    found = [one for one in tried if one is not None]
    kept = [one for one in found if one.capacity.bound != "missed"] or found
    return min(kept, key=lambda one: (one.bill_pusd, one.deployment.tp * one.replicas), default=None)


def gpu_seconds(one: Deployment, load: Load, batch: float, how: Speculation | None = None) -> tuple[float, ...]:
    """Give the GPU time that a token takes, by kind.

    Args:
        one: The replica.
        load: What requests look like.
        batch: Requests under way at once.
        how: How tokens are drafted.

    Returns:
        GPU seconds of a computed input token, of a cached one, and of an output token.

    Formula:
        Prefill seconds without the cached part, over its tokens; attention of the computed tokens to a cached one; a
        decoding step over its sequences; each times the GPUs of a replica. (serving.md 3, end)
    """
    cost = step_cost(one)
    prompt = prefill_s(cost, load.input_tokens) / load.input_tokens if load.input_tokens else cost.token_s
    step = step_s(one, cost, batch, load.resident_tokens, how) / (how.expected_tokens if how else 1)
    return one.tp * prompt, one.tp * cost.pair_s * load.input_tokens, one.tp * step / batch


def _capacity(site: Site, one: Deployment, cap: int | None, how: Speculation | None) -> Capacity | None:
    limits = [None if limit is None else limit * site.scale for limit in (site.tpot_slo_s, site.ttft_slo_s)]
    most = cap or default_caps(one.gpu).sequences
    return capacity(one, site.load, cap=most, tpot_slo_s=limits[0], ttft_slo_s=limits[1], how=how)


def _with_tp(site: Site, how: Hosting, tp: int, today: Capacity) -> Rehosted | None:
    before = site.deployment
    one = Deployment(before.model, how.gpu or before.gpu, tp, how.weights or before.weights, how.kv or before.kv)
    cap = how.cap or site.cap
    able = _capacity(site, one, cap, how.speculation)
    if able is None:
        return None
    is_modelled = how.is_faster or how.utilization is not None
    each = able.pace.tokens_per_s * site.scale * (how.pace if is_modelled else 1.0)
    least = min(site.replicas, how.least)  # where one is enough today, it is still
    target = site.replicas * today.pace.tokens_per_s * site.scale
    needed, kept = (_needed(site, how, each, target, least, is_kept=is_kept) for is_kept in (False, True))
    if how.spot_usd_per_gpu_hour is None:
        kept = needed
    return _billed(site, how, one, able, each, needed, kept)


def _needed(site: Site, how: Hosting, each: float, target: float, least: int, *, is_kept: bool) -> list[int]:
    """Count the replicas that each hour takes: for all that is asked, or for what may not wait."""
    all_of, not_late = site.peaks
    peak, part = (not_late, not_late / all_of if all_of else 1.0) if is_kept else (all_of, 1.0)
    if how.utilization is None:
        return [replicas_needed(target * part, each, 1.0, least)] * max(len(site.hourly), 1)
    if not how.follows:
        return [replicas_needed(peak, each, how.utilization, least)] * max(len(site.hourly), 1)
    late = site.waiting if is_kept else [0.0] * len(site.hourly)
    return [
        replicas_needed(max(rate - wait, 0.0), each, how.utilization, least)
        for rate, wait in zip(site.hourly, late, strict=True)
    ]


def _billed(
    site: Site,
    how: Hosting,
    one: Deployment,
    able: Capacity,
    each: float,
    needed: Sequence[int],
    kept: Sequence[int],
) -> Rehosted:
    price = Fraction(how.usd_per_gpu_hour if how.usd_per_gpu_hour is not None else site.usd_per_gpu_hour)
    hours = [weight * site.hours for weight in site.weights] or [site.hours]
    reserved = 0
    cost = Fraction(0)
    if how.reserved_usd_per_gpu_hour is not None:
        fixed = Fraction(how.reserved_usd_per_gpu_hour)
        reserved = reserve(kept, fixed / price, hours) if price else 0
        cost += reserved * one.tp * fixed * site.hours
    hired = (max(number - reserved, 0) * hour for number, hour in zip(kept, hours, strict=True))
    on_demand = sum(hired, Fraction(0)) * one.tp
    spot = Fraction(0)
    if how.spot_usd_per_gpu_hour is not None:
        # what need not stay runs on as many replicas as it takes beside the others, and some of it twice
        parts = ((number - stays) * hour for number, stays, hour in zip(needed, kept, hours, strict=True))
        freed = sum(parts, Fraction(0))
        spot = freed * one.tp * (1 + Fraction(how.spot_rework))
        cost += spot * Fraction(how.spot_usd_per_gpu_hour)
    bill = round((cost + on_demand * price) * PUSD_PER_USD)  # half to even: a meter of time
    replicas = max(needed)
    carries = each * replicas
    today = _capacity(site, site.deployment, site.cap, None)
    assert today is not None
    could = today.pace.tokens_per_s * site.scale * site.replicas
    taken = min(1.0, site.busy_ratio * could / carries)
    seconds = gpu_seconds(one, site.load, able.batch, how.speculation)
    rates = shared_out(math.floor(taken * bill), site.tokens, seconds)
    idle = bill - sum(rate * tokens for rate, tokens in zip(rates, site.tokens, strict=True))
    return Rehosted(one, replicas, able, carries, reserved, on_demand, spot, bill, rates, idle)


def shared_out(pusd: int, tokens: Tokens, seconds: Sequence[float]) -> Tokens:
    """Share an amount out to kinds of tokens by the GPU time that each takes.

    Args:
        pusd: The amount.
        tokens: Tokens by kind.
        seconds: GPU seconds a token, by kind.

    Returns:
        pUSD a token by kind, rounded down, so that what is left over is never negative.
    """
    total = sum(Fraction(second) * count for second, count in zip(seconds, tokens, strict=True))
    if not total:
        return Tokens(0, 0, 0)
    return Tokens(*(math.floor(pusd * Fraction(second) / total) for second in seconds))


def reserve(needed: Sequence[int], price_ratio: Fraction, hours: Sequence[Fraction] = ()) -> int:
    """Give how many replicas to reserve: as many as are busy for a larger share of hours than their price is.

    Args:
        needed: Replicas that each hour needs.
        price_ratio: Reserved price over price on demand.
        hours: How long each hour is; empty where all are alike.

    Returns:
        Replicas.

    Formula:
        The newsvendor quantile: reserve the k-th iff the share of hours that need k or more exceeds the price ratio.
        (serving.md 9)
    """
    lengths = hours or [Fraction(1)] * len(needed)
    whole = sum(lengths)
    kept = 0
    while (
        whole and sum(long for number, long in zip(needed, lengths, strict=True) if number > kept) / whole > price_ratio
    ):
        kept += 1
    return kept
