"""Prefill and decode on workers of their own, or together: what each way carries under the same service level.

A split is worth what its slower pool carries, in whole workers. Both ways are priced by the same roofline; what is
special to each is said where it is added.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tenfold.serving.capacity import Load
from tenfold.serving.memory import Deployment, default_caps
from tenfold.serving.queueing import POOL_LOAD, busiest, largest, slots_filled, wait
from tenfold.serving.roofline import StepCost, decode_s, prefill_s, step_cost, touched_share
from tenfold.serving.transfer import Link, kv_bytes

# Some slots wait for their KV cache, and a step takes longer than in an engine of its own, for the connector. Defaults
# of aiconfigurator 0.12.0: rate matching (sdk/picking.py) and decode correction (sdk/task_v2.py).
SLOTS_IN_USE = 0.92
DECODE_STEP = 1.08
_SIZES = (1, 2, 4, 8)
_ACROSS_NODES = 16


class Bounds(NamedTuple):
    """A service level.

    Args:
        ttft_s: Longest time to first token, on average, in s.
        tpot_s: Longest time per output token, on average, in s.
    """

    ttft_s: float
    tpot_s: float


class Together(NamedTuple):
    """Aggregated replicas with chunked prefill.

    Args:
        tp: GPUs a replica.
        replicas: Replicas.
        batch: Requests under way in each.
        requests_per_s: Requests within the service level, of all replicas.
        ttft_s: Time to first token, waiting included.
        tpot_s: Time per output token.
    """

    tp: int
    replicas: int
    batch: float
    requests_per_s: float
    ttft_s: float
    tpot_s: float


class Split(NamedTuple):
    """A prefill pool and a decode pool.

    Args:
        prefill_tp: GPUs a prefill worker.
        prefill_workers: Prefill workers.
        decode_tp: GPUs a decode worker.
        decode_workers: Decode workers.
        batch: Requests decoded at once in each decode worker, on average.
        prefill_per_s: Requests that the prefill pool carries.
        decode_per_s: Requests that the decode pool carries.
        requests_per_s: Requests within the service level: the smaller of the two.
        ttft_s: Time to first token at the prefill pool's rate, waiting and transfer included.
        tpot_s: Time per output token.
        unrounded_per_s: What as many GPUs would carry if workers could be divided between the pools at will.
    """

    prefill_tp: int
    prefill_workers: int
    decode_tp: int
    decode_workers: int
    batch: float
    prefill_per_s: float
    decode_per_s: float
    requests_per_s: float
    ttft_s: float
    tpot_s: float
    unrounded_per_s: float

    @property
    def gpus(self) -> int:
        """GPUs in use."""
        return self.prefill_tp * self.prefill_workers + self.decode_tp * self.decode_workers


class _Prefill(NamedTuple):
    tp: int
    service_s: float


class _Decode(NamedTuple):
    tp: int
    batch: float
    tpot_s: float
    requests_per_s: float


def prefill_service_s(cost: StepCost, load: Load) -> float:
    """Give how long a prefill worker is busy with one prompt.

    Args:
        cost: What a step costs.
        load: What requests look like.

    Returns:
        Seconds: multiplications or reading the weights, whichever is slower, and the overhead of a step.
    """
    return max(cost.weights_s, prefill_s(cost, load.input_tokens, load.cached_tokens)) + cost.overhead_s


def worker_sizes(one: Deployment, gpus: int, tp: int | None, tokens: float) -> list[int]:
    """List how many GPUs a worker may have.

    Args:
        one: Model, GPU and schemes; its own number of GPUs is not looked at.
        gpus: GPUs there are.
        tp: The only number allowed; None for any power of two within a server, beyond it only where none fits.
        tokens: Tokens of one request, which must fit into memory.

    Returns:
        Numbers of GPUs that hold the model and one request.
    """
    fitting = [n for n in ((tp,) if tp else (*_SIZES, _ACROSS_NODES)) if n <= gpus and _room(one, n, tokens) >= 1]
    return [n for n in fitting if n < _ACROSS_NODES] or fitting


def best_together(
    one: Deployment, load: Load, bounds: Bounds, gpus: int, *, tp: int | None = None, scale: float = 1.0
) -> Together | None:
    """Find the aggregated replicas that carry most within a service level.

    Args:
        one: Model, GPU and schemes.
        load: What requests look like.
        bounds: The service level.
        gpus: GPUs there are.
        tp: GPUs a replica; None for the best.
        scale: Measured over predicted rate, from a calibration.

    Returns:
        The replicas; None where none meets the service level.
    """
    sizes = worker_sizes(one, gpus, tp, load.resident_tokens)
    found = [_together(one._replace(tp=n), load, bounds, gpus // n, scale) for n in sizes]
    return max((made for made in found if made), key=lambda made: made.requests_per_s, default=None)


def best_split(
    one: Deployment,
    load: Load,
    bounds: Bounds,
    gpus: int,
    link: Link,
    *,
    prefill_tp: int | None = None,
    decode_tp: int | None = None,
    scale: float = 1.0,
) -> Split | None:
    """Find the division of GPUs into two pools that carries most within a service level: all of them are tried.

    Args:
        one: Model, GPU and schemes.
        load: What requests look like.
        bounds: The service level.
        gpus: GPUs there are.
        link: What the KV cache travels over.
        prefill_tp: GPUs a prefill worker; None for the best.
        decode_tp: GPUs a decode worker; None for the best.
        scale: Measured over predicted rate, from a calibration.

    Returns:
        The split; None where none meets the service level.
    """
    prompt = load.input_tokens + load.cached_tokens
    prefills = [
        _Prefill(n, prefill_service_s(step_cost(one._replace(tp=n), scale=scale), load))
        for n in worker_sizes(one, gpus, prefill_tp, prompt)
    ]
    sizes = worker_sizes(one, gpus, decode_tp, load.resident_tokens)
    decodes = [made for n in sizes if (made := _decode(one._replace(tp=n), load, bounds, scale))]
    size = kv_bytes(one, load)
    exposed = link.exposed_s(size, one.model.layer_count)
    sent_per_s = POOL_LOAD / link.transfer_s(size) if size else math.inf
    found = [
        _split(first, workers, second, bounds, gpus, exposed, sent_per_s)
        for first in prefills
        for workers in range(1, gpus // first.tp + 1)
        for second in decodes
        if gpus - workers * first.tp >= second.tp
    ]
    best = max((made for made in found if made.requests_per_s > 0), key=_worth, default=None)
    if best is None:
        return None
    # Never rounded: the best worker of each kind, in pools of any size.
    a_prefill = max(
        min(POOL_LOAD / one.service_s, sent_per_s) / one.tp for one in prefills if one.service_s < bounds.ttft_s
    )
    a_decode = max(one.requests_per_s / one.tp for one in decodes)
    return best._replace(unrounded_per_s=gpus / (1 / a_prefill + 1 / a_decode))


def _worth(split: Split) -> tuple[float, int]:
    return split.requests_per_s, -split.gpus


def _split(
    first: _Prefill, workers: int, second: _Decode, bounds: Bounds, gpus: int, exposed: float, sent_per_s: float
) -> Split:
    busy = busiest((bounds.ttft_s - exposed) / first.service_s - 1, workers)
    prefill = workers * min(busy / first.service_s, sent_per_s)
    others = (gpus - workers * first.tp) // second.tp
    decode = others * second.requests_per_s
    return Split(
        prefill_tp=first.tp,
        prefill_workers=workers,
        decode_tp=second.tp,
        decode_workers=others,
        batch=second.batch,
        prefill_per_s=prefill,
        decode_per_s=decode,
        requests_per_s=min(prefill, decode),
        ttft_s=first.service_s * (1 + wait(busy, workers)) + exposed,
        tpot_s=second.tpot_s,
        unrounded_per_s=0.0,
    )


def _decode(one: Deployment, load: Load, bounds: Bounds, scale: float) -> _Decode | None:
    cost = step_cost(one, scale=scale)

    def step(batch: float) -> float:
        return DECODE_STEP * decode_s(one, cost, batch, load.resident_tokens)

    slots = largest(lambda batch: step(batch) <= bounds.tpot_s, 1.0, _most(one, load))
    if not slots:
        return None
    batch = SLOTS_IN_USE * slots_filled(slots)
    return _Decode(one.tp, batch, step(batch), batch / (load.output_tokens * step(batch)))


def _together(one: Deployment, load: Load, bounds: Bounds, replicas: int, scale: float) -> Together | None:
    """Work out chunked prefill: a prompt shares its steps with the sequences under way.

    TPOT = decode step + (B/O) x prefill, as in ``roofline.speed``, less the reading of the weights in the steps that a
    prompt shares: its multiplications hide it. Prompts wait for one another (M/D/1).
    """
    cost = step_cost(one, scale=scale)
    prompt = prefill_s(cost, load.input_tokens, load.cached_tokens)
    steps = max(1, math.ceil(load.input_tokens / default_caps(one.gpu).batched_tokens))

    def at(batch: float) -> Together:
        step = decode_s(one, cost, batch, load.resident_tokens)
        hidden = min(prompt, cost.weights_s * touched_share(one, batch))
        tpot = step + batch / load.output_tokens * (prompt - hidden)
        service = prompt + steps * step
        rate = batch / (service + tpot * (load.output_tokens - 1))
        busy = rate * service
        ttft = service * (1 + wait(busy, 1)) if busy < 1 else math.inf
        return Together(one.tp, replicas, batch, replicas * rate, ttft, tpot)

    def meets(batch: float) -> bool:
        made = at(batch)
        return made.ttft_s <= bounds.ttft_s and made.tpot_s <= bounds.tpot_s

    batch = largest(meets, 1.0, _most(one, load))
    return at(batch) if batch else None


def _most(one: Deployment, load: Load) -> float:
    return min(one.concurrency(load.resident_tokens), default_caps(one.gpu).sequences)


def _room(one: Deployment, tp: int, tokens: float) -> float:
    return one._replace(tp=tp).concurrency(tokens)
