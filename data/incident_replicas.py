"""Replicas that answer the traffic of incidents: which one gets a session, who gives up on it and asks again."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from tenfold.serving.memory import Deployment, deployment
from tenfold.serving.simulator.arrivals import Arrivals
from tenfold.serving.simulator.simulating import Patience, Policy, Pools, simulate

from .incident_traffic import BLOCK, Flags, Floats, Ints, Requests

OK, TIMEOUT, ERROR, CANCELLED = 0, 1, 2, 3
STATUSES = ("success", "timeout", "error", "cancelled")
GOLDEN = (5**0.5 - 1) / 2
_NOISE = 0.03
"""Sigma of what a measured time has on top of the simulated one: lognormal, a request."""


class Engine(NamedTuple):
    """A fleet of equal replicas, and in what they differ.

    Args:
        model: Model.
        gpu: GPU; one a replica.
        weights: How weights are kept.
        kv: How the KV cache is kept.
        budget: Tokens a step.
        max_num_seqs: Requests under way on a replica at most.
        policy: What goes first.
        watermark: Share of the pool that is kept free when a request starts.
        kv_pool_tokens: Tokens of a replica's KV pool; None: what the GPU's memory leaves.
        replicas: How many.
        speed: Speed of each; empty: 1.
        decode_speed: On top of it, speed of decoding; empty: 1.
        spread: Share of the sessions that each gets; empty: equal ones.
        lost: Replica that is lost, and at which share of the window; -1: none.
        is_sticky: Whether a session stays with a replica.
        prefix_cache: Whether prompts share what they begin with.
        pools: Replicas that prefill and replicas that decode, in place of ``replicas``.
    """

    model: str = "meta-llama/Llama-3.1-8B"
    gpu: str = "h100-sxm"
    weights: str = "bf16"
    kv: str = "fp8"
    budget: int = 2048
    max_num_seqs: int = 32
    policy: Policy = "chunked"
    watermark: float = 0.01
    kv_pool_tokens: int | None = None
    replicas: int = 4
    speed: tuple[float, ...] = ()
    decode_speed: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()
    lost: tuple[int, float] = (-1, 0.0)
    is_sticky: bool = True
    prefix_cache: bool = True
    pools: tuple[int, int] | None = None


class Clients(NamedTuple):
    """When clients give up and ask again. What they gave up on is computed to its end all the same.

    Args:
        first_token_s: Seconds to the first token after which a client gives up; inf: never.
        stuck: Share of prompts whose answer a client never takes for complete.
        stuck_s: Seconds after which it then gives up.
        retries: How often it asks again.
        wait_s: Seconds that it waits before.
        growth: How much longer it waits each time.
        is_whole: Whether the log is the engine's, which knows how long it went on with what was given up.
    """

    first_token_s: float = np.inf
    stuck: float = 0.0
    stuck_s: float = 10.0
    retries: int = 0
    wait_s: float = 2.0
    growth: float = 1.0
    is_whole: bool = False


class Served(NamedTuple):
    """What became of requests; times in seconds.

    Args:
        requests: The requests, attempts included, in order of arrival.
        queue_s: Wait before the prompt was scheduled.
        ttft_s: Time to the first token.
        e2e_s: Time to the last token, or until the client gave up.
        cached: Tokens that the prefix cache had; -1: never scheduled.
        preempted: Preemptions.
        running: Requests that the replica computed at the arrival.
        waiting: Requests in its queue then.
        kv: Share of its KV cache in use then.
        replica: Which it was.
        status: Place in ``STATUSES``.
    """

    requests: Requests
    queue_s: Floats
    ttft_s: Floats
    e2e_s: Floats
    cached: Ints
    preempted: Ints
    running: Ints
    waiting: Ints
    kv: Floats
    replica: Ints
    status: Ints

    def take(self, places: Ints | Flags) -> Served:
        """Give some of them.

        Args:
            places: Places, or a flag a request.

        Returns:
            Those.
        """
        return Served._make((self.requests.take(places), *(column[places] for column in self[1:])))


@cache
def _deployment(model: str, gpu: str, weights: str, kv: str) -> Deployment:
    return deployment(model, gpu, 1, weights, kv)


def serve(requests: Requests, engine: Engine, clients: Clients, span_s: float) -> Served:
    """Answer requests.

    Args:
        requests: First attempts, in order of arrival.
        engine: Who answers.
        clients: When clients give up.
        span_s: Seconds of the window.

    Returns:
        What became of them and of the attempts that followed.
    """
    lost, share = engine.lost
    home = _homes(requests, engine)
    if lost < 0:
        return _attempts(requests, home, engine, clients)
    gone_s = share * span_s
    others = _homes(requests, engine._replace(spread=tuple(float(at != lost) for at in range(engine.replicas))))
    at_home = (home == lost) & (requests.at_s < gone_s)
    first = _attempts(requests.take(at_home), home[at_home], engine, clients._replace(retries=0))
    cut = first.requests.at_s + first.e2e_s > gone_s
    # what the lost replica had not finished fails when it goes, and is asked for again elsewhere
    again = first.requests.take(cut)
    again = again._replace(at_s=np.full(again.at_s.size, gone_s) + 0.5 + again.draw, attempt=again.attempt + 1)
    rest = _joined([requests.take(~at_home), again])
    where = np.concatenate([np.where(home == lost, others, home)[~at_home], others[at_home][cut]])
    order = np.argsort(rest.at_s, kind="stable")
    second = _attempts(rest.take(order), where[order], engine, clients)
    lasted = np.where(cut, gone_s - first.requests.at_s, first.e2e_s)
    first = first._replace(
        e2e_s=lasted,
        ttft_s=np.where(first.ttft_s <= lasted, first.ttft_s, np.nan),
        queue_s=np.where(first.queue_s <= lasted, first.queue_s, np.nan),
        status=np.where(cut, ERROR, first.status),
    )
    return _by_arrival([first, second])


def _homes(requests: Requests, engine: Engine) -> Ints:
    """Route each session to a replica, where it stays, so that its prefix is there; else each request."""
    if engine.pools is not None:
        return np.zeros(requests.at_s.size, np.int64)
    shares = np.array(engine.spread or (1.0,) * engine.replicas)
    ends = np.cumsum(shares / shares.sum())
    # golden ratio: neighbours in time go to different replicas, evenly
    what = requests.session if engine.is_sticky else requests.number
    return np.searchsorted(ends, what * GOLDEN % 1.0, side="right")


def _attempts(requests: Requests, home: Ints, engine: Engine, clients: Clients) -> Served:
    """Answer requests, with the further attempts of clients that give up."""
    tries = [(requests, home)]
    stuck = requests.draw < clients.stuck
    for attempt in range(clients.retries if clients.stuck else 0):
        last = tries[-1][0] if attempt else requests.take(stuck)
        at_s = last.at_s + clients.stuck_s + clients.wait_s * clients.growth**attempt
        tries.append((last._replace(at_s=at_s, attempt=last.attempt + 1), home[stuck]))
    asked, where = _joined([one for one, _ in tries]), np.concatenate([home for _, home in tries])
    parts: list[Served] = []
    for at in range(engine.replicas):
        chosen = np.flatnonzero(where == at)
        if chosen.size:
            order = chosen[np.argsort(asked.at_s[chosen], kind="stable")]
            parts.append(_one_replica(asked.take(order), at, engine, clients))
    return _by_arrival(parts)


def _one_replica(requests: Requests, at: int, engine: Engine, clients: Clients) -> Served:
    count, chain = requests.chains()
    one = _deployment(engine.model, engine.gpu, engine.weights, engine.kv)
    simulation = simulate(
        one,
        Arrivals(requests.at_s - requests.at_s[0], requests.input, requests.output, count, chain, BLOCK),
        budget=engine.budget,
        max_num_seqs=engine.max_num_seqs,
        policy=engine.policy,
        kv_pool_tokens=engine.kv_pool_tokens,
        replica_speed=engine.speed[at : at + 1] or None,
        replica_decode_speed=engine.decode_speed[at : at + 1] or None,
        watermark=engine.watermark,
        patience=Patience(clients.first_token_s, 0 if clients.stuck else clients.retries, clients.wait_s),
        prefix_cache=engine.prefix_cache,
        pools=None if engine.pools is None else Pools(*engine.pools, link_bytes_per_s=50e9),
    )
    found = simulation.requests
    asked = requests.take(found["number"])
    requests = asked._replace(at_s=found["arrival_s"] + requests.at_s[0], attempt=asked.attempt + found["attempt"])
    stuck = requests.draw < clients.stuck
    gave_up = stuck | ~(simulation.ttft_s <= clients.first_token_s)
    limit_s = np.where(stuck, clients.stuck_s, clients.first_token_s)
    queue_s = simulation.queue_s
    ttft_s = queue_s + (simulation.ttft_s - queue_s) * _noise(requests, 1)
    ttft_s = np.where(gave_up, ttft_s, np.minimum(ttft_s, limit_s))
    e2e_s = ttft_s + (simulation.e2e_s - simulation.ttft_s) * _noise(requests, 3)
    # the log of a client ends where it gives up
    end_s = np.where(gave_up & (not clients.is_whole), limit_s, np.inf)
    return Served(
        requests=requests,
        queue_s=np.where(queue_s <= end_s, queue_s, np.nan),
        ttft_s=np.where(ttft_s <= end_s, ttft_s, np.nan),
        e2e_s=np.where(np.isinf(end_s), e2e_s, end_s),
        cached=np.where(np.isnan(found["first_s"]), -1, found["cached"]),
        preempted=found["preempted"],
        running=found["met_running"],
        waiting=found["met_waiting"],
        kv=found["met_pages"] / simulation.capacity,
        replica=np.full(requests.at_s.size, at) if engine.pools is None else found["replica"],
        status=np.where(gave_up, CANCELLED if clients.is_whole else TIMEOUT, OK),
    )


def _noise(requests: Requests, which: int) -> Floats:
    """Give factors that hang on the request alone, whatever else a scenario changes (Box-Muller)."""
    first, second = ((requests.draw * (1009 * at) + requests.attempt * GOLDEN) % 1.0 for at in (which, which + 1))
    return np.exp(_NOISE * np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second))


def _joined(parts: list[Requests]) -> Requests:
    return Requests._make(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _by_arrival(parts: list[Served]) -> Served:
    requests = _joined([one.requests for one in parts])
    order = np.argsort(requests.at_s, kind="stable")
    columns = (np.concatenate(columns) for columns in zip(*(one[1:] for one in parts), strict=True))
    return Served._make((requests, *columns)).take(order)
