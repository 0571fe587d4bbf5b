"""The gate for claimed speeds: what no engine can beat, since bytes must be read and numbers multiplied.

Every bound is generous: the data sheet's bandwidth and dense rate in full, all memory for weights and cache, reading
and multiplying at the same time, no attention, of a mixture of experts only what one token touches. A claim must exceed
a bound by more than a tenth to break it: input embeddings (up to 7 % of a small model) are looked up and not read,
cards report up to 7 % more memory than their name plate, and clocks rise a little above the data sheet's. (serving.md
3, consequence c)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tenfold.serving.memory import Deployment

SLACK = 1.1


class Claim(NamedTuple):
    """What somebody says a replica does. A fact that is not stated is None, and its bounds are not tried.

    Args:
        deployment: The replica; where the claim does not say how the KV cache is kept, give the smallest scheme.
        tokens_per_s: Output tokens a second of the whole replica.
        concurrency: Requests under way at once.
        input_tokens: Mean tokens of a prompt, cached ones not counted.
        output_tokens: Mean tokens of an answer.
        ttft_s: Seconds to the first token.
        tpot_s: Seconds an output token after the first.
        tokens_per_step: Tokens that a sequence gets a step; None with speculative decoding of unknown acceptance.
        source: Who says so, for ``judge``.
    """

    deployment: Deployment
    tokens_per_s: float | None = None
    concurrency: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    tokens_per_step: float | None = 1.0
    source: str = ""


class Broken(NamedTuple):
    """A bound that a claim breaks.

    Args:
        bound: Its name: ``memory``, ``bandwidth``, ``compute``, ``prefill``, ``kv_memory``, ``streams`` or ``series``.
        claimed: What the claim says, or what follows from it.
        limit: What the bound allows, in the same unit.
        unit: Unit of both.
        why: The bound in words, with its figures.
    """

    bound: str
    claimed: float
    limit: float
    unit: str
    why: str


class Verdict(NamedTuple):
    """What the gate says of a claim.

    Args:
        claim: The claim.
        broken: The bounds that it breaks; none does not make it true.
        missing: Facts that it does not state, without which some bounds cannot be tried.
    """

    claim: Claim
    broken: tuple[Broken, ...]
    missing: tuple[str, ...]

    @property
    def is_rejected(self) -> bool:
        """Whether the claim cannot be true as stated."""
        return bool(self.broken)


def check(claim: Claim) -> list[Broken]:
    """Find the physical bounds that a claim breaks.

    Args:
        claim: The claim.

    Returns:
        The broken bounds with both figures; empty where none is broken.

    Formula:
        memory: P w <= t M. bandwidth: a step of B sequences reads P w + B kv(I + O/2) at t BW, so tokens a second <=
        B / step, and TPOT >= step. compute: 2 P for each token of prompt and answer at t F. prefill: TTFT >= the
        prompt's part of that. kv_memory: tokens a second x TPOT sequences are decoded at once, whose caches fit beside
        the weights. streams: they are no more than the requests under way. (serving.md 3)
    """
    if claim.deployment.weight_bytes > claim.deployment.tp * claim.deployment.gpu.memory_bytes * SLACK:
        return [_weights(claim)]
    tried = (_bandwidth(claim), _step(claim), _compute(claim), _prefill(claim), _kv_memory(claim), _streams(claim))
    return [broken for broken in tried if broken is not None]


def judge(claims: Iterable[Claim]) -> list[Verdict]:
    """Judge claims together: one impossible figure discredits what the same source measured by the same means.

    Args:
        claims: The claims; those of one ``source`` on the same model and GPU are one series.

    Returns:
        A verdict each, in order. A claim that is possible by itself, in a series with an impossible one, breaks
        ``series``: it came out of the same measurement.
    """
    found = [Verdict(claim, tuple(check(claim)), _missing(claim)) for claim in claims]
    worst: dict[tuple[str, str, str], Broken] = {}
    for verdict in found:
        for broken in verdict.broken:
            first = worst.setdefault(_series(verdict.claim), broken)
            if _excess(broken) > _excess(first):
                worst[_series(verdict.claim)] = broken
    return [
        verdict._replace(broken=(_by_series(worst[_series(verdict.claim)]),))
        if not verdict.broken and verdict.claim.source and _series(verdict.claim) in worst
        else verdict
        for verdict in found
    ]


def _series(claim: Claim) -> tuple[str, str, str]:
    return claim.source, claim.deployment.model.name, claim.deployment.gpu.name


def _excess(broken: Broken) -> float:
    return max(broken.claimed / broken.limit, broken.limit / broken.claimed)


def _by_series(broken: Broken) -> Broken:
    return broken._replace(bound="series", why=f"same source, model and GPU as a claim that cannot be: {broken.why}")


def _missing(claim: Claim) -> tuple[str, ...]:
    return tuple(_absent(claim))


def _absent(claim: Claim) -> Iterator[str]:
    if claim.tokens_per_s is None and claim.tpot_s is None:
        yield "tokens_per_s or tpot_s"
    if claim.concurrency is None:
        yield "concurrency"
    if claim.input_tokens is None:
        yield "input_tokens"
    if claim.output_tokens is None:
        yield "output_tokens"


def _weights(claim: Claim) -> Broken:
    one = claim.deployment
    room = one.tp * one.gpu.memory_bytes
    return Broken(
        "memory",
        one.weight_bytes / 1e9,
        room / 1e9,
        "GB",
        f"weights of {one.weight_bytes / 1e9:.1f} GB do not fit in {one.tp} x {one.gpu.memory_gb:g} GB",
    )


def _fitting(claim: Claim) -> float | None:
    """Sequences whose caches fit in all memory beside the weights; None without lengths."""
    if claim.input_tokens is None or claim.output_tokens is None:
        return None
    one = claim.deployment
    room = one.tp * one.gpu.memory_bytes * SLACK - one.weight_bytes
    return room / one.kv_bytes(claim.input_tokens + claim.output_tokens / 2)


def _batch(claim: Claim) -> float | None:
    """Most sequences that can be decoded at once: those under way, as far as they fit."""
    limits = [limit for limit in (claim.concurrency, _fitting(claim)) if limit is not None]
    return max(1.0, min(limits)) if limits else None


def _least_step_s(claim: Claim, batch: float) -> float:
    """Seconds that reading takes at the data sheet's bandwidth."""
    one = claim.deployment
    cache = 0.0
    if claim.input_tokens is not None and claim.output_tokens is not None:
        cache = batch * one.kv_bytes(claim.input_tokens + claim.output_tokens / 2)
    weights = one.weight_bytes * one.model.active / one.model.params
    return (weights + cache) / (one.tp * one.gpu.bandwidth)


def _bandwidth(claim: Claim) -> Broken | None:
    batch = _batch(claim)
    if claim.tokens_per_s is None or claim.tokens_per_step is None or batch is None:
        return None
    step, one = _least_step_s(claim, batch), claim.deployment
    limit = claim.tokens_per_step * batch / step
    if claim.tokens_per_s <= limit * SLACK:
        return None
    return Broken(
        "bandwidth",
        claim.tokens_per_s / batch,
        limit / batch,
        "tokens/s/sequence",
        f"{claim.tokens_per_s / batch:.3g} tokens/s for each of {batch:.4g} sequences; reading weights and cache at "
        f"{one.tp} x {one.gpu.bandwidth_gb_per_s:g} GB/s takes {step * 1e3:.3g} ms a step, so at most "
        f"{limit / batch:.3g}",
    )


def _step(claim: Claim) -> Broken | None:
    if claim.tpot_s is None or claim.tokens_per_step is None:
        return None
    one, limit = claim.deployment, _least_step_s(claim, 1) / claim.tokens_per_step
    if claim.tpot_s * SLACK >= limit:
        return None
    return Broken(
        "bandwidth",
        claim.tpot_s,
        limit,
        "s/token",
        f"a token every {claim.tpot_s * 1e3:.3g} ms; reading the weights once at {one.tp} x "
        f"{one.gpu.bandwidth_gb_per_s:g} GB/s takes {limit * 1e3:.3g} ms",
    )


def _compute(claim: Claim) -> Broken | None:
    if claim.tokens_per_s is None:
        return None
    one = claim.deployment
    rate = one.tp * one.gpu.flops(one.weights.compute)
    each = 2 * one.model.active
    if claim.input_tokens is not None and claim.output_tokens:
        each *= 1 + claim.input_tokens / claim.output_tokens
    limit = rate / each
    if claim.tokens_per_s <= limit * SLACK:
        return None
    return Broken(
        "compute",
        claim.tokens_per_s,
        limit,
        "tokens/s",
        f"{claim.tokens_per_s:.4g} tokens/s; each takes {each / 1e9:.4g} GFLOP with its share of the prompt, and "
        f"{one.tp} x {one.gpu.flops(one.weights.compute) / 1e12:g} TFLOPS do {limit:.4g}",
    )


def _prefill(claim: Claim) -> Broken | None:
    if claim.ttft_s is None or claim.input_tokens is None:
        return None
    one = claim.deployment
    limit = 2 * one.model.active * claim.input_tokens / (one.tp * one.gpu.flops(one.weights.compute))
    if claim.ttft_s * SLACK >= limit:
        return None
    return Broken(
        "prefill",
        claim.ttft_s,
        limit,
        "s",
        f"first token after {claim.ttft_s * 1e3:.3g} ms; multiplying {claim.input_tokens:g} tokens takes "
        f"{limit * 1e3:.3g} ms at the dense rate",
    )


def _kv_memory(claim: Claim) -> Broken | None:
    fitting = _fitting(claim)
    if fitting is None:
        return None
    return _decoded(claim, "kv_memory", max(1.0, fitting), f"the memory beside the weights holds {fitting:.4g}")


def _streams(claim: Claim) -> Broken | None:
    if claim.concurrency is None:
        return None
    return _decoded(claim, "streams", claim.concurrency, f"{claim.concurrency:g} were under way")


def _decoded(claim: Claim, bound: str, limit: float, why: str) -> Broken | None:
    if claim.tokens_per_s is None or claim.tpot_s is None:
        return None
    decoded = claim.tokens_per_s * claim.tpot_s
    if decoded <= limit * SLACK:
        return None
    rate = f"{claim.tokens_per_s:.4g} tokens/s, one every {claim.tpot_s * 1e3:.3g} ms each"
    return Broken(bound, decoded, limit, "sequences", f"{rate}, are {decoded:.4g} sequences at once; {why}")
