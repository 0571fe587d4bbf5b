"""A simulation set up and run: a replica's memory and step costs as numbers, requests as records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypedDict, cast

import numpy as np

from tenfold.errors import ServingError
from tenfold.serving.memory import BLOCK_TOKENS, Deployment
from tenfold.serving.roofline import FITTED, Constants, step_cost
from tenfold.serving.simulator.arrivals import Arrivals
from tenfold.serving.simulator.core import run
from tenfold.serving.simulator.layout import (
    GAP_BINS,
    POINTS,
    Cost,
    Grid,
    Ints,
    Prefix,
    Records,
    Replica,
    Request,
    Rows,
    Rules,
    State,
    Tally,
    dtype,
)
from tenfold.serving.simulator.result import Simulation

Policy = Literal["chunked", "prefill_first"]
Router = Literal["round_robin", "least_loaded"]

# Budget whose activations are within the overhead that the pool leaves (``memory.OVERHEAD_BYTES``).
_USUAL_BUDGET = 2048


class Pools(NamedTuple):
    """Replicas that only prefill, and replicas that only decode.

    Args:
        prefill: Replicas that prefill.
        decode: Replicas that decode.
        link_bytes_per_s: What one prefill worker sends, one KV cache after the other.
        latency_s: Seconds on top of each transfer.
    """

    prefill: int
    decode: int
    link_bytes_per_s: float
    latency_s: float = 0.0


class Patience(NamedTuple):
    """When clients give up, and whether they ask again.

    A request that is given up leaves the queue; one whose prompt is being computed by then is answered all the same,
    and asked for again no sooner than at its first token.

    Args:
        first_token_s: Seconds to the first token after which a client gives up.
        retries: How often it asks again.
        pause_s: Seconds that it waits before.
    """

    first_token_s: float
    retries: int = 0
    pause_s: float = 1.0


class Options(TypedDict, total=False):
    """What ``simulate`` takes besides the deployment, the requests and the budget."""

    policy: Policy
    concurrency: int
    replicas: int
    replica_speed: Sequence[float] | None
    replica_decode_speed: Sequence[float] | None
    router: Router
    pools: Pools | None
    kv_pool_tokens: int | None
    watermark: float
    patience: Patience
    prefix_cache: bool
    constants: Constants
    scale: float


_ENDLESS = Patience(math.inf)


def simulate(
    one: Deployment,
    arrivals: Arrivals,
    *,
    budget: int,
    max_num_seqs: int,
    policy: Policy = "chunked",
    concurrency: int = 0,
    replicas: int = 1,
    replica_speed: Sequence[float] | None = None,
    replica_decode_speed: Sequence[float] | None = None,
    router: Router = "round_robin",
    pools: Pools | None = None,
    kv_pool_tokens: int | None = None,
    watermark: float = 0.01,
    patience: Patience = _ENDLESS,
    prefix_cache: bool = True,
    groups: Ints | None = None,
    constants: Constants = FITTED,
    scale: float = 1.0,
) -> Simulation:
    """Simulate replicas of a model, step by step.

    A step computes at most ``budget`` tokens. ``chunked``: a token of every sequence that is decoded, then prompts in
    order of arrival, the last one cut. ``prefill_first``: whole prompts, as many as the budget holds (one above it goes
    alone), and decodes only where no prompt can start. A request starts when all its tokens fit into the pool above the
    watermark; when memory runs out, the request admitted last starts again later, its tokens computed anew.

    Args:
        one: A replica.
        arrivals: The requests.
        budget: Tokens a step (``max_num_batched_tokens``).
        max_num_seqs: Requests under way on a replica at most.
        policy: What goes first.
        concurrency: Keep this many requests under way in all and ignore their times; 0: they arrive at their times.
        replicas: Replicas, each with a queue of its own.
        replica_speed: Speed of each replica; 1 is as the model says.
        replica_decode_speed: On top of it, speed of what a step with decodes takes apart from prompts: below 1 where
            a host's CPU is slow to launch, or memory slow to read.
        router: How requests are spread.
        pools: Prefill and decode workers in place of ``replicas``.
        kv_pool_tokens: Tokens in the pool as the engine's log says, in place of the computed ones.
        watermark: Share of the pool that is kept free when a request starts.
        patience: When clients give up; not in a closed loop. What left the queue has NaN as times of its first and last
            token; attempts that follow have the same ``number``.
        prefix_cache: Share leading blocks between requests whose prefix hashes are known.
        groups: Histogram of gaps that each request's go to, from 0; all one by default.
        constants: Of the roofline.
        scale: Measured over predicted rate, of a calibration.

    Returns:
        What came out.

    Raises:
        ServingError: The weights do not fit, or a number is impossible.
    """
    rules = _rules(one, arrivals, budget, max_num_seqs, policy, concurrency, router, pools, kv_pool_tokens, watermark)
    count = replicas if pools is None else pools.prefill + pools.decode
    speed, decode_speed = (_speeds(given, count) for given in (replica_speed, replica_decode_speed))
    requests, chain, refused = _requests(arrivals, rules, groups, prefix_cache=prefix_cache)
    rules, requests = _with_attempts(rules, requests, patience)
    workers, tally, prefixes = _records(speed, decode_speed, int(chain.max()) + 1 if chain.size else 0)
    gaps = np.zeros((int(requests["group"].max()) + 1, GAP_BINS), np.int64)
    points = np.full((POINTS, 3), -1, np.int64)
    state = State(
        requests=cast("Rows[Request]", requests),
        replicas=cast("Rows[Replica]", workers),
        tally=cast("Rows[Tally]", tally),
        running=np.zeros((workers.size, min(rules.max_seqs, requests.size)), np.int64),
        chain=chain,
        prefixes=cast("Grid[Prefix]", prefixes),
        gaps=gaps,
        points=points,
    )
    ended = run(state, rules, _cost(one, constants, scale, rules))
    if ended != rules.asked + int(tally["again"][0]):  # a fault of the simulator
        raise ServingError("the simulation came to a halt with requests unanswered: please report the trace")
    return Simulation(
        requests=_that_came(requests, rules.asked),
        replicas=workers,
        tally=tally,
        gaps=gaps,
        points=points,
        capacity=rules.capacity,
        gpus=workers.size * one.tp,
        refused=refused,
        left_out=arrivals.left_out,
    )


def _rules(
    one: Deployment,
    arrivals: Arrivals,
    budget: int,
    max_num_seqs: int,
    policy: Policy,
    concurrency: int,
    router: Router,
    pools: Pools | None,
    kv_pool_tokens: int | None,
    watermark: float,
) -> Rules:
    _check_arrivals(arrivals)
    if not one.fits:
        raise ServingError(
            f"{one.model.name} does not fit on {one.tp} x {one.gpu.name} with {one.weights.name} weights: take more "
            "GPUs (tp) or smaller weights"
        )
    if min(budget, max_num_seqs) < 1 or concurrency < 0 or not 0 <= watermark < 1:
        raise ServingError(
            f"budget {budget}, max_num_seqs {max_num_seqs}, concurrency {concurrency}, watermark {watermark}: two of "
            "at least 1, one of at least 0, and a share below 1"
        )
    if policy == "chunked" and budget < max_num_seqs:
        raise ServingError(f"budget {budget} is below max_num_seqs {max_num_seqs}: a step gives each sequence a token")
    if pools is not None and (policy != "chunked" or min(pools.prefill, pools.decode) < 1):
        raise ServingError("separate pools need policy chunked, and at least one worker for prefill and for decode")
    if pools is not None and not (pools.link_bytes_per_s > 0 and pools.latency_s >= 0):
        raise ServingError(f"link of {pools.link_bytes_per_s} bytes/s, {pools.latency_s} s: must be positive")
    growing = [group for group in one.model.layers if group.kind != "linear"]
    numbers = [group.count * (group.kv_numbers or one.model.kv_numbers) for group in growing]
    width = math.gcd(*numbers) or 1
    token_bytes = _token_bytes(one) / max(sum(numbers) // width, 1)
    longest = int((arrivals.input_tokens + arrivals.output_tokens).max())
    sizes = [(number // width, group.window) for number, group in zip(numbers, growing, strict=True)]
    # a window that no request outgrows is none
    windowed = [size for size in sizes if 0 < size[1] < longest]
    full = sum(size[0] for size in sizes) - sum(size[0] for size in windowed)
    if kv_pool_tokens is None:
        capacity = _pool_bytes(one, budget) // (token_bytes * BLOCK_TOKENS)
    else:
        capacity = kv_pool_tokens // BLOCK_TOKENS * (sum(numbers) // width)
    return Rules(
        budget=budget,
        max_seqs=max_num_seqs,
        prefill_first=policy == "prefill_first",
        capacity=int(capacity),
        watermark=int(watermark * capacity),
        concurrency=concurrency,
        patience_s=math.inf,
        pause_s=0.0,
        asked=0,
        least_loaded=router == "least_loaded",
        prefill_workers=pools.prefill if pools else 0,
        # one copy travels, however many GPUs keep one
        transfer_token_s=token_bytes / one.kv_copies / pools.link_bytes_per_s if pools else 0.0,
        transfer_state_s=one.kv_bytes(0) / pools.link_bytes_per_s if pools else 0.0,
        transfer_latency_s=float(pools.latency_s) if pools else 0.0,
        chain_tokens=arrivals.block_tokens or BLOCK_TOKENS,
        chain_pages=full * (arrivals.block_tokens // BLOCK_TOKENS),
        state_pages=math.ceil(one.kv_bytes(0) / (token_bytes * BLOCK_TOKENS)),
        state_tokens=one.kv_bytes(0) / token_bytes,
        full_width=full,
        windowed=np.array(windowed, np.int64).reshape(-1, 2),
    )


def _speeds(given: Sequence[float] | None, count: int) -> list[float]:
    speeds = [1.0] * count if given is None else list(given)
    if count < 1 or len(speeds) != count or not all(math.isfinite(each) and each > 0 for each in speeds):
        raise ServingError(f"{count} replicas with speeds {speeds}: as many positive numbers are needed")
    return speeds


def _check_arrivals(arrivals: Arrivals) -> None:
    if arrivals.arrival_s.size == 0:
        raise ServingError("no requests to simulate")
    if min(int(arrivals.input_tokens.min()), int(arrivals.output_tokens.min())) < 1:
        raise ServingError("every request needs at least one token of input and one of output")
    if not (np.isfinite(arrivals.arrival_s).all() and (np.diff(arrivals.arrival_s) >= 0).all()):
        raise ServingError("requests must be in order of arrival, and their times finite")


def _token_bytes(one: Deployment) -> float:
    """Bytes a token of all layers; 1 where none grows with the tokens."""
    return one.kv_bytes_per_token or 1.0


def _width(rules: Rules) -> int:
    return max(rules.full_width + int(rules.windowed[:, 0].sum()), 1)


def _pool_bytes(one: Deployment, budget: int) -> float:
    """Give the KV pool, less the activations of a large budget.

    Formula:
        16-bit activations a token and GPU: four of the hidden size, and the feed-forward's gate and up, taken as 3.5
        times the hidden size each, shared by the GPUs. The overhead of the pool covers a budget of 2,048. (modelled)
    """
    activations = 2 * one.model.hidden * (4 + 7 / one.tp) * one.tp
    left = one.pool_bytes - max(0, budget - _USUAL_BUDGET) * activations
    if left <= 0:
        raise ServingError(f"a budget of {budget} leaves no memory for the KV cache: lower it, or take more GPUs")
    return left


def _requests(
    arrivals: Arrivals, rules: Rules, groups: Ints | None, *, prefix_cache: bool
) -> tuple[Records, Ints, int]:
    """Make the records of the requests that fit into the pool at all, with their prefix blocks."""
    tokens = arrivals.input_tokens + arrivals.output_tokens
    pages = rules.state_pages + rules.full_width * -(-tokens // BLOCK_TOKENS)
    for width, window in rules.windowed:
        pages += width * -(-np.minimum(tokens, window) // BLOCK_TOKENS)
    fits = pages <= rules.capacity
    if not fits.any():
        raise ServingError(
            f"no request fits into the KV pool of {rules.capacity * BLOCK_TOKENS // _width(rules):,} "
            "tokens: take more GPUs (tp), a smaller KV scheme or weights"
        )
    requests = np.zeros(int(fits.sum()), dtype(Request))
    requests["arrival_s"] = arrivals.arrival_s[fits]
    if rules.concurrency:
        requests["arrival_s"] = np.where(np.arange(requests.size) < rules.concurrency, 0.0, np.inf)
    requests["input"] = arrivals.input_tokens[fits]
    requests["output"] = arrivals.output_tokens[fits]
    requests["admitted_s"] = -1.0
    requests["group"] = 0 if groups is None else groups[fits]
    if prefix_cache and rules.chain_pages:
        starts = np.cumsum(arrivals.chained) - arrivals.chained
        requests["chain"] = starts[fits]
        requests["chained"] = arrivals.chained[fits]
        return requests, np.array(arrivals.chain, np.int64), int((~fits).sum())
    return requests, np.zeros(0, np.int64), int((~fits).sum())


def _with_attempts(rules: Rules, requests: Records, patience: Patience) -> tuple[Rules, Records]:
    """Add records for the attempts that may follow: those of each retry after those of the one before."""
    limit_s, retries, pause_s = patience
    if not (limit_s > 0 and retries >= 0 and pause_s >= 0) or (rules.concurrency and math.isfinite(limit_s)):
        raise ServingError(f"{patience}, concurrency {rules.concurrency}: not negative, and not in a closed loop")
    asked = requests.size
    requests["number"] = np.arange(asked)
    requests = np.tile(requests, 1 + retries)
    requests["attempt"] = np.repeat(np.arange(1 + retries), asked)
    requests["arrival_s"][asked:] = np.inf
    return rules._replace(patience_s=float(limit_s), pause_s=float(pause_s), asked=asked), requests


def _that_came(requests: Records, asked: int) -> Records:
    """Leave out attempts that were not needed."""
    if requests.size == asked:
        return requests
    came = requests[np.isfinite(requests["arrival_s"])]
    return came[np.argsort(came["arrival_s"], kind="stable")]


def _records(speed: Sequence[float], decode_speed: Sequence[float], blocks: int) -> tuple[Records, Records, Records]:
    """Make the records of idle replicas, of the tally, and of prefix blocks that are not in memory."""
    workers = np.zeros(len(speed), dtype(Replica))
    workers["speed"] = speed
    workers["decode_speed"] = decode_speed
    workers["ends_s"] = np.inf
    for queue in ("head", "tail", "sent_head", "sent_tail"):
        workers[queue] = -1
    tally = np.zeros(1, dtype(Tally))
    tally["point_s"] = 0.001
    tally["again_head"] = tally["again_tail"] = -1
    prefixes = np.zeros((len(speed), blocks + 1), dtype(Prefix))
    prefixes["holders"] = -1
    prefixes["before"] = prefixes["after"] = blocks
    return workers, tally, prefixes


def _cost(one: Deployment, constants: Constants, scale: float, rules: Rules) -> Cost:
    cost, spec = step_cost(one, constants, scale), one.model
    moe = spec.is_moe
    return Cost(
        weights_s=float(cost.weights_s),
        kept_token_s=cost.kv_byte_s * _token_bytes(one) / _width(rules),
        token_s=float(cost.token_s),
        pair_s=float(cost.pair_s),
        overhead_s=float(cost.overhead_s),
        sequence_s=float(cost.sequence_s),
        link_token_s=float(cost.link_token_s),
        expert_share=float(spec.expert_params / spec.params) if moe else 0.0,
        expert_miss=float(1 - spec.experts_per_token / spec.experts) if moe else 0.0,
    )
