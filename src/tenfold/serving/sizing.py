"""How many requests a replica carries, how fast, and what a token costs there at full load."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Literal, NamedTuple

from tenfold.display import counted
from tenfold.errors import ServingError
from tenfold.money import PUSD_PER_USD
from tenfold.serving.calibration import Calibration
from tenfold.serving.capacity import largest, within
from tenfold.serving.memory import Caps, Deployment, default_caps
from tenfold.serving.roofline import Speed, interval, speed

Bound = Literal["given", "memory", "cap", "slo", "missed", "none"]

# How often the interval holds (``roofline.interval``); its constants are fitted to points of three GPUs
INTERVAL_HOLDS = (
    "the interval is made to hold four of five measured points: one in five lies outside, and more on GPUs other than "
    "h100-sxm, h200-sxm and b200, to which the closed form was fitted"
)
_LARGEST_TP = 64


class Band(NamedTuple):
    """A figure with the range that it is in.

    Args:
        low: Lowest.
        mid: As computed.
        high: Highest.
    """

    low: float
    mid: float
    high: float


class TokenCost(NamedTuple):
    """What one token costs at full load, by the GPU time that it takes.

    Args:
        input: pUSD a prompt token that is computed.
        output: pUSD an answer token.
    """

    input: int
    output: int


class CostBand(NamedTuple):
    """What a token costs, with the range that the throughput's interval gives.

    Args:
        low: At the highest throughput.
        mid: As computed.
        high: At the lowest throughput.
    """

    low: TokenCost
    mid: TokenCost
    high: TokenCost


class Size(NamedTuple):
    """A replica under a load.

    Args:
        deployment: The replica.
        input_tokens: Tokens of a prompt.
        output_tokens: Tokens of an answer.
        fits: Whether such requests can be served.
        unservable: Why they cannot; empty where they can.
        concurrency: Requests that memory holds at once, on average half answered; not rounded.
        full_length: Requests that it holds with their whole answers.
        caps: The engine's default caps on this GPU.
        batch: Requests under way at once; 0 where nothing fits.
        bound: What stops a larger batch: ``given`` by the caller, ``memory``, the engine's ``cap``, the ``slo``;
            ``missed`` where one request alone misses the SLO, ``none`` where nothing fits.
        speed: Times and rate at that batch; None where nothing fits.
        tokens_per_s_per_gpu: Output tokens a second and GPU with their interval; None where nothing fits.
        calibrated: Whether a measurement scaled it.
        cost: Cost of a token; None without a price, or where nothing fits.
        notes: What to know of the figures.
    """

    deployment: Deployment
    input_tokens: int
    output_tokens: int
    fits: bool
    unservable: str
    concurrency: float
    full_length: float
    caps: Caps
    batch: int
    bound: Bound
    speed: Speed | None
    tokens_per_s_per_gpu: Band | None
    calibrated: bool
    cost: CostBand | None
    notes: tuple[str, ...]


def size(
    deployment: Deployment,
    input_tokens: int,
    output_tokens: int,
    *,
    concurrency: int | None = None,
    tpot_slo_s: float | None = None,
    ttft_slo_s: float | None = None,
    calibration: Calibration | None = None,
    usd_per_gpu_hour: Decimal | None = None,
) -> Size:
    """Size a replica for requests of one shape.

    Args:
        deployment: The replica.
        input_tokens: Tokens of a prompt that are computed.
        output_tokens: Tokens of an answer.
        concurrency: Requests under way at once; without it, the most that memory, the engine's cap and the SLO leave.
        tpot_slo_s: Limit on seconds an output token.
        ttft_slo_s: Limit on seconds to the first token, without queueing.
        calibration: What was measured of this replica.
        usd_per_gpu_hour: Price of one GPU for one hour.

    Returns:
        The size.

    Raises:
        ServingError: A count, limit or price is not above zero.

    Formula:
        Resident tokens of a request: I + O/2; TPOT grows with the batch, so the largest batch under a limit is searched
        by halving. (serving.md 2, 3)
    """
    for name, value in (("input tokens", input_tokens), ("output tokens", output_tokens), ("concurrency", concurrency),
                        ("TPOT SLO", tpot_slo_s), ("TTFT SLO", ttft_slo_s), ("price", usd_per_gpu_hour)):  # fmt: skip
        if value is not None and not value > 0:
            raise ServingError(f"{name} {value}: must be above zero")
    scale = 1.0 if calibration is None else calibration.scale
    caps = default_caps(deployment.gpu)
    held = deployment.concurrency(input_tokens + output_tokens / 2)

    def at(batch: int) -> Speed:
        return speed(deployment, batch, input_tokens, output_tokens, scale=scale)

    def keeps(batch: int) -> bool:
        reached = at(batch)
        return within(reached.tpot_s, tpot_slo_s) and within(reached.ttft_s, ttft_slo_s)

    reason = unservable(deployment, input_tokens + output_tokens) or _too_large(deployment, input_tokens, output_tokens)
    batch, bound = _batch(0 if reason else math.floor(held), caps, concurrency, keeps)
    found = at(batch) if batch else None
    rate = None if found is None else found.tokens_per_s_per_gpu
    low, high = interval(calibration is not None, moe=deployment.model.is_moe)
    made = Size(
        deployment=deployment,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        fits=not reason,
        unservable=reason,
        concurrency=held,
        full_length=deployment.concurrency(input_tokens + output_tokens),
        caps=caps,
        batch=batch,
        bound=bound,
        speed=found,
        tokens_per_s_per_gpu=None if rate is None else Band(rate * low, rate, rate * high),
        calibrated=calibration is not None,
        cost=None
        if found is None or usd_per_gpu_hour is None
        else CostBand(
            *(
                token_cost(deployment.tp, found, batch, input_tokens, usd_per_gpu_hour / Decimal(str(factor)))
                for factor in (high, 1.0, low)
            )
        ),
        notes=(),
    )
    said = _calibration_notes(calibration) if made.batch else []
    return made._replace(notes=(*_notes(made, concurrency, keeps), *said))


def token_cost(gpus: int, at: Speed, batch: float, input_tokens: float, usd_per_gpu_hour: Decimal) -> TokenCost:
    """Price a token by the GPU time that it takes at full load.

    Args:
        gpus: GPUs of the replica.
        at: Its speed.
        batch: Requests under way at once.
        input_tokens: Tokens of a prompt that are computed.
        usd_per_gpu_hour: Price of one GPU for one hour.

    Returns:
        pUSD a token, rounded half-even.

    Formula:
        A prompt takes its prefill, an answer token its share of a decoding step: prefill / I and decode / B, times GPUs
        and price. (serving.md 3)
    """
    second = usd_per_gpu_hour * PUSD_PER_USD * gpus / 3600
    return TokenCost(
        *(
            int((second * Decimal(seconds)).to_integral_value(ROUND_HALF_EVEN))
            for seconds in (at.prefill_s / input_tokens, at.decode_s / batch)
        )
    )


def minimum_tp(deployment: Deployment, tokens: float, sequences: float = 1) -> int | None:
    """Find the smallest power of two of GPUs that holds a model with its requests.

    Args:
        deployment: The replica; its ``tp`` does not matter.
        tokens: Mean tokens that a request has in memory.
        sequences: Requests at once.

    Returns:
        GPUs a replica, such that query heads divide among them; None where 64 are too few.
    """
    tp = 1
    while tp <= _LARGEST_TP:
        one = deployment._replace(tp=tp)
        if divides(one) and one.concurrency(tokens) >= sequences:
            return tp
        tp *= 2
    return None


def divides(deployment: Deployment) -> bool:
    """Say whether the query heads can be shared out among the GPUs, without which engines refuse to start.

    Args:
        deployment: The replica.

    Returns:
        Whether each GPU gets as many.
    """
    return deployment.model.q_heads % deployment.tp == 0


def unservable(deployment: Deployment, tokens: float = 0) -> str:
    """Say why an engine would not start so, or would refuse such requests, however much memory there is.

    Args:
        deployment: The replica.
        tokens: Tokens of prompt and answer.

    Returns:
        The reason; empty where there is none.
    """
    spec = deployment.model
    if not divides(deployment):
        return f"{spec.q_heads} query heads do not divide among {deployment.tp} GPUs: engines refuse to start so"
    if spec.max_context and tokens > spec.max_context:
        return f"prompt and answer have {tokens:,} tokens, more than the {spec.max_context:,} of the model's context"
    return ""


def _too_large(one: Deployment, input_tokens: int, output_tokens: int) -> str:
    if one.concurrency(input_tokens + output_tokens / 2) >= 1:
        return ""
    enough = minimum_tp(one, input_tokens + output_tokens / 2)
    least = "no power of two up to 64 is enough" if enough is None else f"{enough} are enough"
    return (
        f"does not fit, as {one.weights.name} weights take {one.weight_bytes / 1e9:,.1f} GB of "
        f"{one.tp} x {one.gpu.memory_gb:g} GB and leave no room for one request; {least}"
    )


def _batch(held: int, caps: Caps, concurrency: int | None, keeps: Callable[[int], bool]) -> tuple[int, Bound]:
    if held < 1:
        return 0, "none"
    most = min(held, caps.sequences)
    if concurrency is not None:
        return (concurrency, "given") if concurrency <= most else (most, "memory" if most == held else "cap")
    if keeps(most):
        return most, "memory" if most == held else "cap"
    under = largest(most, keeps)
    return (under, "slo") if under else (1, "missed")


def _notes(made: Size, concurrency: int | None, keeps: Callable[[int], bool]) -> list[str]:
    notes = [f"not servable: {made.unservable}"] if made.unservable else []
    if made.batch and concurrency is not None and concurrency > made.batch:
        what = "memory holds" if made.bound == "memory" else "the engine's default cap is"
        notes.append(f"{counted(concurrency, 'request')} asked for, {what} {made.batch}: the others queue")
    elif made.bound == "given" and not keeps(made.batch):
        notes.append(f"the SLO is missed with {counted(made.batch, 'request')} at once")
    if made.bound == "missed" and made.speed is not None:
        notes.append(
            f"the SLO cannot be met: one request alone has a TTFT of {made.speed.ttft_s * 1e3:,.1f} ms and a TPOT of "
            f"{made.speed.tpot_s * 1e3:,.2f} ms; more GPUs, smaller numbers or a shorter prompt would help"
        )
    return [*notes, *_facts(made.deployment)]


def _facts(one: Deployment) -> list[str]:
    """Say what to know of a model and a GPU, whatever the load."""
    spec = one.model
    notes: list[str] = []
    if one.kv_copies > 1:
        notes.append(
            f"each GPU keeps KV that others keep too ({one.kv_copies:g} copies): "
            + ("data-parallel attention holds more requests" if spec.kv_latent else "fewer GPUs a replica waste less")
        )
    if any(group.kind != "full" for group in spec.layers):
        notes.append(
            "layers with a window or a state stop growing: KV a token is that of a short sequence, concurrency counts "
            "what a request of this length keeps"
        )
    if spec.is_moe:
        notes.append("mixture of experts: the closed form is less certain here than for dense models")
    if spec.note:
        notes.append(f"{spec.name}: {spec.note}")
    if one.gpu.note:
        notes.append(f"{one.gpu.name}: {one.gpu.note}")
    if one.weights.compute != "bf16" and one.weights.compute not in one.gpu.tflops:
        notes.append(f"{one.gpu.name} has no {one.weights.compute} arithmetic: weights are unpacked to 16 bits")
    return notes


def _calibration_notes(calibration: Calibration | None) -> list[str]:
    if calibration is None:
        return [f"not calibrated: one measured point of this model and GPU narrows the interval; {INTERVAL_HOLDS}"]
    return [
        INTERVAL_HOLDS,
        f"calibrated by {calibration.source}: measured over predicted rate {calibration.scale:.2f}",
        calibration.said_of_ttft,
        *calibration.notes,
    ]
