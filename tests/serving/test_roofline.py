"""The closed form against hand-worked figures, a second writing of serving.md 3, and what must hold of any speed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.serving import roofline, specs
from tenfold.serving.memory import Deployment


def replica(model="llama-3.1-70b", gpu="h100-sxm", tp=2, weights="fp8", kv="bf16"):
    return Deployment(specs.model(model), specs.gpu(gpu), tp, specs.WEIGHTS[weights], specs.KV[kv])


def test_a_step_by_hand():
    constants = roofline.Constants(0.9, 0.5, 1e-3, 50e-6, 5e-6, 1e-6)
    one = replica()
    cost = roofline.step_cost(one, constants)
    assert cost.weights_s == pytest.approx(one.model.params / (2 * 3350e9 * 0.9))  # 11.7 ms
    assert cost.weights_s == pytest.approx(11.7e-3, rel=0.01)
    assert cost.kv_byte_s * 327_680 == pytest.approx(54.3e-9, rel=0.01)  # a token of cache, 320 KiB
    assert cost.token_s == pytest.approx(2 * one.model.params / (2 * 1978e12 * 0.5))
    assert cost.pair_s == pytest.approx(4 * 80 * 8192 / (2 * 989e12 * 0.5))
    assert cost.overhead_s == pytest.approx(1e-3 + 80 * 50e-6 + 160 * 5e-6)  # 5.8 ms
    assert cost.sequence_s == pytest.approx(80e-6)
    # two all-reduces a layer of 8,192 16-bit numbers, each sent and received by half: 80 x 2 x 16 KiB over 450 GB/s
    assert cost.link_token_s == pytest.approx(80 * 2 * 16_384 / 450e9)
    alone = roofline.step_cost(replica(tp=1), constants)
    assert (alone.link_token_s, alone.overhead_s) == (0, pytest.approx(1e-3 + 80 * 50e-6))


def test_a_decode_step_takes_the_slower_of_reading_and_multiplying():
    one = replica()
    cost = roofline.step_cost(one)
    for batch in (1, 64, 2048):
        read = cost.weights_s + cost.kv_byte_s * 327_680 * 1000 * batch
        busy = max(read, cost.token_s * batch)
        expected = busy + cost.overhead_s + (cost.sequence_s + cost.link_token_s) * batch
        assert roofline.decode_s(one, cost, batch, 1000) == pytest.approx(expected)
    assert roofline.speed(one, 64, 1000, 100).bound == "memory"
    assert roofline.speed(one, 2048, 8, 8).bound == "compute"


def test_a_prompt_in_chunks_takes_as_long_as_at_once():
    cost = roofline.step_cost(replica())
    whole = roofline.prefill_s(cost, 3000)
    chunks = sum(roofline.prefill_s(cost, size, earlier) for size, earlier in ((512, 0), (1488, 512), (1000, 2000)))
    assert chunks == pytest.approx(whole)


def slow(gpu, tp, weight_bytes, kv_token, flops, batch, given, made):
    """serving.md 3 once more, for a dense model of 70.55e9 parameters, 80 layers, 8,192 wide."""
    c = roofline.FITTED
    mem = (weight_bytes + batch * kv_token * (given + made / 2)) / (tp * gpu.bandwidth)
    dcomp = 2 * 70.55e9 * batch / (tp * flops)
    ring = 2 * 80 * 8192 * 4 * (tp - 1) / tp / (gpu.link_gb_per_s * 1e9) if tp > 1 else 0.0
    pre = (2 * 70.55e9 * given / (tp * flops) + 2 * 80 * 8192 * given**2 / (tp * gpu.flops("bf16"))) / c[1]
    pre += ring * given
    dec = max(mem / c[0], dcomp / c[1]) + c[2] + c[3] * 80 + (c[4] * 160 if tp > 1 else 0)
    dec += (c[5] * 80 + ring) * batch
    tpot = dec + batch / made * pre
    return batch / tpot / tp, tpot


@settings(max_examples=40, deadline=None)
@given(
    gpu=st.sampled_from(["h100-sxm", "h200-sxm", "b200", "l40s"]),
    tp=st.sampled_from([1, 2, 4, 8]),
    weights=st.sampled_from(["bf16", "fp8", "int4"]),
    kv=st.sampled_from(["bf16", "fp8"]),
    batch=st.integers(1, 600),
    prompt=st.integers(1, 30_000),
    made=st.integers(2, 5000),
)
def test_it_is_the_form_of_the_reference(gpu, tp, weights, kv, batch, prompt, made):
    one = replica(gpu=gpu, tp=tp, weights=weights, kv=kv)
    per_weight = {"bf16": 2, "fp8": 1, "int4": 4.5 / 8}[weights]
    flops = one.gpu.flops("fp8" if weights == "fp8" else "bf16")
    kv_token = 2 * 80 * 8 * 128 * (2 if kv == "bf16" else 1)
    scaled = one.model.params / 70.55e9  # the table counts the parameters to the last
    rate, tpot = slow(one.gpu, tp, 70.55e9 * per_weight * scaled, kv_token, flops, batch, prompt, made)
    found = roofline.speed(one, batch, prompt, made)
    assert found.tokens_per_s_per_gpu == pytest.approx(rate, rel=2e-3)
    assert found.tpot_s == pytest.approx(tpot, rel=2e-3)


@settings(max_examples=30, deadline=None)
@given(
    batch=st.integers(1, 500),
    prompt=st.integers(1, 20_000),
    made=st.integers(2, 4000),
    scale=st.floats(0.3, 3),
    model=st.sampled_from(["llama-3.1-8b", "deepseek-ai/DeepSeek-R1", "openai/gpt-oss-120b"]),
)
def test_what_must_hold_of_any_speed(batch, prompt, made, scale, model):
    one = replica(model, tp=8)
    at, more = (roofline.speed(one, b, prompt, made) for b in (batch, batch + 1))
    assert more.tpot_s > at.tpot_s
    assert more.tokens_per_s_per_gpu >= at.tokens_per_s_per_gpu * (1 - 1e-9)
    assert at.ttft_s > at.prefill_s
    assert at.tpot_s >= at.decode_s
    assert roofline.speed(one._replace(gpu=specs.gpu("h200-sxm")), batch, prompt, made).tpot_s <= at.tpot_s
    # a calibrated replica is so much faster in everything
    scaled = roofline.speed(one, batch, prompt, made, scale=scale)
    assert scaled.tokens_per_s_per_gpu == pytest.approx(at.tokens_per_s_per_gpu * scale)
    assert (scaled.ttft_s, scaled.tpot_s) == (pytest.approx(at.ttft_s / scale), pytest.approx(at.tpot_s / scale))
    # ten times the requests never read less of the weights, and never more than all
    shares = [roofline.touched_share(one, tokens) for tokens in (1, batch, 10 * batch, 1e9)]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_one_token_touches_the_experts_that_it_chooses():
    one = replica("mixtral-8x7b", tp=4)
    spec = one.model
    assert (spec.experts, spec.experts_per_token) == (8, 2)
    share = roofline.touched_share(one, 1)
    assert share == pytest.approx(1 - spec.expert_params / spec.params * 0.75)
    assert share * spec.params == pytest.approx(spec.active, rel=0.02)
    assert roofline.touched_share(replica(), 1) == 1


def test_only_layers_that_attend_to_the_start_pair_tokens():
    one = replica("openai/gpt-oss-120b", tp=1)
    assert sum(group.count for group in one.model.layers if group.kind == "full") == 18  # the other 18 slide
    expected = 4 * 18 * one.model.q_heads * one.model.head_dim / (989e12 * roofline.FITTED.compute_efficiency)
    assert roofline.step_cost(one).pair_s == pytest.approx(expected)


def test_requests_that_do_not_fit_queue():
    one = replica(tp=4)
    fitting = one.concurrency(4096 + 128)
    assert roofline.in_memory(one, 20, 4096, 256) == 20
    assert roofline.in_memory(one, 1000, 4096, 256) == fitting
    assert roofline.in_memory(one, math.inf, 4096, 256) == fitting
    assert roofline.in_memory(replica(tp=1, weights="bf16"), 10, 4096, 256) == 1  # does not fit: sizing says so


def test_a_calibrated_interval_is_narrower():
    (low, high), (near, far) = roofline.interval(calibrated=False), roofline.interval(calibrated=True)
    assert low < near < 1 < far < high
    wide = roofline.interval(calibrated=False, moe=True)
    assert (wide[0] < low, wide[1] > high) == (True, True)
