"""How long a step of the engine takes, and what follows: the six-parameter closed form of serving.md 3.

A step reads the weights and the KV cache of the sequences that it decodes, and multiplies; it takes as long as the
slower of the two, and a fixed time a layer on top. A chunk of a prompt that shares a step adds its multiplications.
"""

from __future__ import annotations

from typing import NamedTuple

from tenfold.serving.memory import Deployment

# Interconnect that the fit of serving.md 3 was made with, bytes a second and GPU.
_LINK = 450e9


class Constants(NamedTuple):
    """What was fitted to measured points.

    Args:
        memory_efficiency: Share of the memory bandwidth that a step reaches (e_m).
        compute_efficiency: Share of the dense rate that it reaches (e_c).
        step_s: Seconds that any step takes (t0).
        layer_s: Seconds a layer, for launches and synchronisation (t_L).
        allreduce_s: Seconds an all-reduce, two a layer, with more than one GPU (t_AR).
        sequence_s: Seconds a decoded sequence and step, for scheduling and sampling (t_seq).
    """

    memory_efficiency: float
    compute_efficiency: float
    step_s: float
    layer_s: float
    allreduce_s: float
    sequence_s: float


# serving.md 3, fit with t_seq over 1,042 dense points of aiconfigurator-core 0.12.0's silicon_sample.csv (Apache-2.0).
FITTED = Constants(0.9, 0.84, 0.0, 54e-6, 4.7e-6, 28.7e-6)


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


def step_cost(one: Deployment, constants: Constants = FITTED) -> StepCost:
    """Work out what a step costs.

    Args:
        one: The replica.
        constants: Fitted constants.

    Returns:
        Seconds by what is in a step.

    Formula:
        serving.md 3: reading w / (t BW e_m); multiplying 2 P / (t F e_c) a token; attention 4 L q / (t F16 e_c) a pair
        of tokens, where q is query heads x head size; two all-reduces a layer with more than one GPU.
    """
    spec, gpu, tp = one.model, one.gpu, one.tp
    layers = spec.layer_count
    bandwidth = tp * gpu.bandwidth * constants.memory_efficiency
    flops = tp * gpu.flops(one.weights.compute) * constants.compute_efficiency
    flops16 = tp * gpu.flops("bf16") * constants.compute_efficiency
    attending = sum(group.count for group in spec.layers if group.kind == "full")
    shared = tp > 1
    return StepCost(
        weights_s=one.weight_bytes / bandwidth,
        kv_byte_s=1 / bandwidth,
        token_s=2 * spec.active / flops,
        pair_s=4 * attending * spec.q_heads * spec.head_dim / flops16,
        overhead_s=constants.step_s + constants.layer_s * layers + constants.allreduce_s * 2 * layers * shared,
        sequence_s=constants.sequence_s,
        link_token_s=2 * layers * spec.hidden * 4 * (tp - 1) / tp / _LINK * shared,
    )


def touched_share(one: Deployment, sequences: float) -> float:
    """Give the share of the weights that a step reads: a mixture of experts leaves some alone.

    Args:
        one: The replica.
        sequences: Tokens in the step.

    Returns:
        Share, 1 for a dense model.

    Formula:
        E (1 - (1 - k/E)^B) of E experts are touched by B tokens that choose k each. (serving.md 3; not validated there)
    """
    spec = one.model
    if not spec.is_moe:
        return 1.0
    touched = 1 - (1 - spec.experts_per_token / spec.experts) ** sequences
    return 1 - spec.expert_params / spec.params * (1 - touched)


def prefill_s(cost: StepCost, tokens: float, earlier: float = 0.0) -> float:
    """Give the seconds of multiplications that a piece of a prompt takes.

    Args:
        cost: What a step costs.
        tokens: Its tokens.
        earlier: Tokens before it whose keys and values are there.

    Returns:
        Seconds.
    """
    return cost.token_s * tokens + cost.pair_s * (tokens * earlier + tokens * tokens / 2)


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
    one: Deployment, batch: float, input_tokens: float, output_tokens: float, constants: Constants = FITTED
) -> Speed:
    """Work out a replica's speed with a fixed number of requests under way.

    Args:
        one: The replica.
        batch: Requests under way at once.
        input_tokens: Tokens of a prompt that are computed.
        output_tokens: Tokens of an answer.
        constants: Fitted constants.

    Returns:
        Times in seconds, tokens a second and GPU.

    Formula:
        serving.md 3: TPOT = decode step + (B/O) x prefill; tokens a second = B O / (TTFT + TPOT (O - 1)).
    """
    cost = step_cost(one, constants)
    mean = input_tokens + output_tokens / 2
    step = decode_s(one, cost, batch, mean) + cost.link_token_s * batch * input_tokens / output_tokens
    prompt = prefill_s(cost, input_tokens)
    tpot = step + batch / output_tokens * prompt
    took = prompt + tpot * (output_tokens - 1)
    read = cost.weights_s * touched_share(one, batch) + cost.kv_byte_s * one.kv_bytes(mean) * batch
    return Speed(
        ttft_s=prompt,
        tpot_s=tpot,
        decode_s=step,
        prefill_s=prompt,
        tokens_per_s_per_gpu=batch * output_tokens / took / one.tp,
        bound="memory" if read >= cost.token_s * batch else "compute",
    )
