"""What fewer bits do to the pace, against measured pairs of the same model, GPU and load (serving.md 4)."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from statistics import median

import pytest
from measured_points import silicon

from tenfold.serving.capacity import Load, pace
from tenfold.serving.memory import deployment
from tenfold.serving.roofline import FITTED, interval
from tenfold.serving.specs import Scheme

LOW, HIGH = interval(calibrated=False)
# ree2raz, vLLM, Qwen2.5-7B, prompts up to 256, answers of 128 (serving_points.csv P234 to P255): 16 bits, AWQ
MEASURED = {
    ("a100-40", 1): (80, 177), ("a100-40", 16): (1094, 2248), ("a100-40", 64): (3102, 4762),
    ("l4", 1): (17.11, 43.19), ("l4", 4): (66.16, 162.58), ("l4", 16): (254.83, 549.07),
}  # fmt: skip
# an AWQ kernel without graphs: 1.17 times as fast as 16 bits, where others are 1.5 times; no roofline knows kernels
KERNEL = ("l4", 64), (831.76, 975.64)


@pytest.fixture(scope="module")
def pairs():
    """B200, Llama-3.1-70B: (TP, concurrency, FP4 over FP8 as modelled and as measured)."""
    found = defaultdict(dict)
    for point in silicon():
        if point.gpu.startswith("b200") and "70B" in point.model:
            load = (point.backend, point.tp, point.concurrency, point.input_tokens, point.output_tokens)
            found[load][point.scheme] = point
    return [(load, both["fp4"], both["fp8"]) for load, both in found.items() if {"fp4", "fp8"} <= set(both)]


def ratios(pairs, constants=FITTED):
    """(TP, FP4 over FP8 as modelled, as measured)."""
    return [
        (load[1], four.predicted(constants).tokens_per_s_per_gpu / eight.predicted().tokens_per_s_per_gpu,
         four.rate / eight.rate)
        for load, four, eight in pairs
    ]  # fmt: skip


def off(made):
    return median(abs(modelled / measured - 1) for _, modelled, measured in made)


def test_fp4_over_fp8_on_a_b200(pairs):
    made = ratios(pairs)
    assert len(made) == 132
    assert median(measured for *_, measured in made) == pytest.approx(1.09, abs=0.005)
    # every pair is within the stated interval, and the ratio falls with the width as measured
    assert all(LOW <= measured / modelled <= HIGH for _, modelled, measured in made)
    by_tp = {tp: median(modelled for width, modelled, _ in made if width == tp) for tp in (1, 2, 4, 8)}
    assert 0.89 <= by_tp[8] < by_tp[4] < by_tp[2] < by_tp[1] <= 1.5
    # the model promises a tenth too much (10.4 % off in the median) ...
    assert off(made) <= 0.12
    # ... as 14 us a layer for rounding activations to FP4, which no constant holds, would explain
    assert off(ratios(pairs, FITTED._replace(layer_s=FITTED.layer_s + 14e-6))) <= 0.03


def awq(gpu, batch, weights="int4"):
    one = deployment("Qwen/Qwen2.5-7B", gpu)
    four = (
        one._replace(weights=weights) if isinstance(weights, Scheme) else deployment("Qwen/Qwen2.5-7B", gpu, 1, weights)
    )
    load = Load(128, 0, 128)
    return pace(one, load, batch).tokens_per_s, pace(four, load, batch).tokens_per_s


@pytest.mark.parametrize(("gpu", "batch"), MEASURED)
def test_awq_over_16_bits(gpu, batch):
    measured, modelled = MEASURED[gpu, batch], awq(gpu, batch)
    assert LOW <= measured[0] / modelled[0] <= HIGH
    # at 4.5 bits a weight, Qwen2.5-7B's embeddings and head, a seventh of it, are taken for quantized: the L4, where
    # reading is all, comes out at the very end of the interval (0.749 at 4 at once)
    assert LOW - 0.01 <= measured[1] / modelled[1] <= HIGH
    ratio = (measured[1] / measured[0]) / (modelled[1] / modelled[0])
    assert LOW <= ratio <= HIGH


@pytest.mark.parametrize(("gpu", "batch"), MEASURED)
def test_embeddings_and_head_in_16_bits_are_what_is_missing(gpu, batch):
    # 152,064 words x 3,584, twice; the rest at 4.25 bits: 5.93 bits a weight
    whole, kept = 7.61561e9, 2 * 152_064 * 3584
    bits = Fraction(int((whole - kept) * 4.25 + kept * 16)) / int(whole)
    assert float(bits) == pytest.approx(5.93, abs=0.005)
    _, modelled = awq(gpu, batch, Scheme("int4", bits, "bf16", "embeddings and head in 16 bits"))
    assert modelled == pytest.approx(MEASURED[gpu, batch][1], rel=0.16)


def test_a_kernel_makes_more_of_a_difference_than_the_bits():
    (gpu, batch), (plain, four) = KERNEL
    modelled = awq(gpu, batch)
    assert LOW <= plain / modelled[0] <= HIGH
    assert four / modelled[1] < LOW  # outside, and said so: 1.17 against 2.2
