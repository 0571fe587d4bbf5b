"""How long a step of the engine takes, and what follows: the six-parameter closed form of serving.md 3.

A step reads the weights and the KV cache of the sequences that it decodes, and multiplies; it takes as long as the
slower of the two, and a fixed time a layer on top. A chunk of a prompt that shares a step adds its multiplications.

How far to trust it, over measured points (tests/serving/test_roofline_accuracy.py, benchmarks/roofline.py): see
``interval``. Mixtures of experts, GPUs that were not in the fit, and the time to the first token are less certain.
"""

from __future__ import annotations

from typing import NamedTuple

from tenfold.serving.memory import Deployment


class Constants(NamedTuple):
    """What was fitted to measured points.

    Args:
        memory_efficiency: Share of the memory bandwidth that a step reaches (e_m).
        compute_efficiency: Share of the dense rate that it reaches (e_c).
        step_s: Seconds that any step takes (t0).
        layer_s: Seconds a layer, for launches and synchronisation (t_L).
        allreduce_s: Seconds an all-reduce, two a layer, with more than one GPU (t_AR).
        sequence_s: Seconds a decoded sequence and layer, for its attention and bookkeeping (t_seq).
        expert_layer_s: Seconds a layer on top, in a mixture of experts: routing, permuting, one kernel more.
    """

    memory_efficiency: float
    compute_efficiency: float
    step_s: float
    layer_s: float
    allreduce_s: float
    sequence_s: float
    expert_layer_s: float = 40e-6


# benchmarks/roofline.py, over 1,042 dense points of aiconfigurator-core 0.12.0's silicon_sample.csv (Apache-2.0). e_m
# and t0 are held: 0.9 is what copies reach, and t0 cannot be told from t_L with models of 32 to 80 layers. The layer of
# experts is fitted alone, to 2,056 points of mixtures of experts.
FITTED = Constants(0.9, 0.569, 0.0, 56.9e-6, 3.83e-6, 0.763e-6)

# Measured over predicted tokens a second: the range that holds four of five measured points on every split that
# tests/serving/test_roofline_accuracy.py makes. Uncalibrated: points of a GPU, model or backend that the constants were
# not fitted to. Calibrated: by any other one point of the same model and GPU, whatever its TP and lengths; of a mixture
# of experts also of the same engine and number scheme, or else the point does not narrow the range.
_UNCALIBRATED, _CALIBRATED = (0.75, 1.33), (0.79, 1.27)
_EXPERTS_UNCALIBRATED, _EXPERTS_CALIBRATED = (0.68, 1.4), (0.74, 1.35)


def interval(calibrated: bool, moe: bool = False) -> tuple[float, float]:  # noqa: FBT001 -- what it depends on
    """Give the range that a measured rate is in, as factors of the predicted one.

    Args:
        calibrated: Whether the prediction was scaled by a measurement of the same model and GPU.
        moe: Whether the model is a mixture of experts (``ModelSpec.is_moe``).

    Returns:
        Lowest and highest factor; four of five measured points lie between. (serving.md 3, consequences)
    """
    if moe:
        return _EXPERTS_CALIBRATED if calibrated else _EXPERTS_UNCALIBRATED
    return _CALIBRATED if calibrated else _UNCALIBRATED


class StepCost(NamedTuple):
    """What a step costs, in seconds, by what is in it.

    Args:
        weights_s: Reading the weights once (of a mixture of experts: all of them).
        kv_byte_s: Reading a byte of KV cache.
        token_s: Multiplying one token with the weights.
        pair_s: Attention between one new and one earlier token, over all layers that attend to the start.
        overhead_s: Whatever is in it.
        sequence_s: A sequence that is decoded.
        link_token_s: Exchanging one token's activations between GPUs.
    """

    weights_s: float
    kv_byte_s: float
    token_s: float
    pair_s: float
    overhead_s: float
    sequence_s: float
    link_token_s: float


class Speed(NamedTuple):
    """A replica under a steady load.

    Args:
        ttft_s: Seconds from the start of the prefill to the first token, without queueing.
        tpot_s: Seconds an output token, prefills of other requests included.
        decode_s: Seconds a step that only decodes.
        prefill_s: Seconds of prefill that one request takes.
        tokens_per_s_per_gpu: Output tokens a second and GPU.
        bound: What limits a decode step.
    """

    ttft_s: float
    tpot_s: float
    decode_s: float
    prefill_s: float
    tokens_per_s_per_gpu: float
    bound: str


def step_cost(one: Deployment, constants: Constants = FITTED, scale: float = 1.0) -> StepCost:
    """Work out what a step costs.

    Args:
        one: The replica.
        constants: Fitted constants.
        scale: Measured over predicted rate (``calibration.Calibration.scale``); all times are divided by it.

    Returns:
        Seconds by what is in a step.

    Formula:
        serving.md 3: reading w / (t BW e_m); multiplying 2 P / (t F e_c) a token; attention 4 L q / (t F16 e_c) a pair
        of tokens, where q is query heads x head size; two all-reduces a layer with more than one GPU, of 16-bit
        activations, twice (t-1)/t of them over the link. A sequence costs a time a layer: fitted so, the offline tables
        come out 10 % off in the median; with a time a step, as in serving.md, 15 %.
    """
    spec, gpu, tp = one.model, one.gpu, one.tp
    layers = spec.layer_count
    bandwidth = tp * gpu.bandwidth * constants.memory_efficiency
    flops = tp * gpu.flops(one.weights.compute) * constants.compute_efficiency
    flops16 = tp * gpu.flops("bf16") * constants.compute_efficiency
    attending = sum(group.count for group in spec.layers if group.kind == "full")
    shared = tp > 1
    each = constants.layer_s + constants.expert_layer_s * spec.is_moe
    cost = StepCost(
        weights_s=one.weight_bytes / bandwidth,
        kv_byte_s=1 / bandwidth,
        token_s=2 * spec.active / flops,
        pair_s=4 * attending * spec.q_heads * spec.head_dim / flops16,
        overhead_s=constants.step_s + (each + constants.allreduce_s * 2 * shared) * layers,
        sequence_s=constants.sequence_s * layers,
        link_token_s=2 * layers * spec.hidden * 4 * (tp - 1) / tp / (gpu.link_gb_per_s * 1e9) * shared,
    )
    return StepCost(*(seconds / scale for seconds in cost))


def touched_share(one: Deployment, sequences: float) -> float:
    """Give the share of the weights that a step reads: a mixture of experts leaves some alone.

    Args:
        one: The replica.
        sequences: Tokens in the step.

    Returns:
        Share, 1 for a dense model.

    Formula:
        E (1 - (1 - k/E)^B) of E experts are touched by B tokens that choose k each. (serving.md 3; over 2,056 measured
        points of mixtures of experts the rate comes out 16 % off in the median, of dense models 7 %)
    """
    spec = one.model
    if not spec.is_moe:
        return 1.0
    touched = 1 - (1 - spec.experts_per_token / spec.experts) ** sequences
    return 1 - spec.expert_params / spec.params * (1 - touched)


def prefill_s(cost: StepCost, tokens: float, earlier: float = 0.0) -> float:
    """Give the seconds of multiplications, and of exchange between GPUs, that a piece of a prompt takes.

    Args:
        cost: What a step costs.
        tokens: Its tokens.
        earlier: Tokens before it whose keys and values are there.

    Returns:
        Seconds.
    """
    return (cost.token_s + cost.link_token_s) * tokens + cost.pair_s * (tokens * earlier + tokens * tokens / 2)


def decode_s(one: Deployment, cost: StepCost, sequences: float, tokens: float) -> float:
    """Give the seconds of a step that decodes.

    Args:
        one: The replica.
        cost: What a step costs.
        sequences: Sequences, of which each gets a token.
        tokens: Mean tokens that each has in memory.

    Returns:
        Seconds.
    """
    read = cost.weights_s * touched_share(one, sequences) + cost.kv_byte_s * one.kv_bytes(tokens) * sequences
    busy = max(read, cost.token_s * sequences)
    return busy + cost.overhead_s + (cost.sequence_s + cost.link_token_s) * sequences


def speed(
    one: Deployment,
    batch: float,
    input_tokens: float,
    output_tokens: float,
    constants: Constants = FITTED,
    scale: float = 1.0,
) -> Speed:
    """Work out a replica's speed with a fixed number of requests under way.

    Args:
        one: The replica.
        batch: Requests in memory at once (``in_memory`` of those that clients send).
        input_tokens: Tokens of a prompt that are computed.
        output_tokens: Tokens of an answer.
        constants: Fitted constants.
        scale: Measured over predicted rate (``calibration.Calibration.scale``).

    Returns:
        Times in seconds, tokens a second and GPU.

    Formula:
        serving.md 3: TPOT = decode step + (B/O) x prefill; a prompt shares its step with the sequences under way, so
        TTFT = decode step + prefill. Tokens a second = B / TPOT: each of the sequences under way gets a token in that
        time, whatever the answers' length (serving.md has B O / (TTFT + TPOT (O - 1)), which leaves out the other
        prompts of the first step, and so overstates short answers).
    """
    cost = step_cost(one, constants, scale)
    mean = input_tokens + output_tokens / 2
    step = decode_s(one, cost, batch, mean)
    prompt = prefill_s(cost, input_tokens)
    tpot = step + batch / output_tokens * prompt
    read = cost.weights_s * touched_share(one, batch) + cost.kv_byte_s * one.kv_bytes(mean) * batch
    return Speed(
        ttft_s=step + prompt,
        tpot_s=tpot,
        decode_s=step,
        prefill_s=prompt,
        tokens_per_s_per_gpu=batch / tpot / one.tp,
        bound="memory" if read >= cost.token_s * batch else "compute",
    )


def in_memory(one: Deployment, concurrency: float, input_tokens: float, output_tokens: float) -> float:
    """Give how many of the requests that clients have under way are decoded at once; the others queue.

    Args:
        one: The replica.
        concurrency: Requests that clients have under way; infinity for as many as fit.
        input_tokens: Tokens of a prompt.
        output_tokens: Tokens of an answer.

    Returns:
        Requests, not rounded; at least the one that any engine admits.
    """
    return max(1.0, min(concurrency, one.concurrency(input_tokens + output_tokens / 2)))
