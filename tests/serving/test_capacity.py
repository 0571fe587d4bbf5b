"""Pace, capacity and replicas: against the slow oracle, by hand, and what must hold for any replica."""

from __future__ import annotations

import hosted_logs
import oracle_serving as oracle
import pytest
from hosted_logs import as_draft, replicas
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.serving.capacity import Load, capacity, pace, replicas_needed
from tenfold.serving.memory import deployment
from tenfold.serving.roofline import FITTED, decode_s, prefill_s, speed, step_cost
from tenfold.serving.speculation import Speculation

SOME = settings(max_examples=25, deadline=None)
loads = st.builds(Load, st.integers(0, 20_000), st.integers(0, 20_000), st.integers(1, 4_000))
drafts = st.none() | st.builds(Speculation, st.floats(0, 1), st.integers(1, 8), st.floats(0, 0.5))


def test_the_oracle_has_the_fitted_constants():
    assert tuple(FITTED) == oracle.FITTED


@SOME
@given(replicas(), loads, st.integers(1, 600), drafts)
def test_pace_is_the_oracle_s(one, load, batch, how):
    expected = oracle.pace(hosted_logs.replica(one), load, batch, as_draft(how))
    assert tuple(pace(one, load, batch, how)) == pytest.approx(expected, rel=1e-9)


@SOME
@given(replicas(), loads, st.integers(1, 200), st.none() | st.floats(0.001, 0.3), drafts)
def test_capacity_is_what_counting_up_finds(one, load, cap, slo, how):
    found = capacity(one, load, cap=cap, tpot_slo_s=slo, how=how)
    expected = oracle.capacity(hosted_logs.replica(one), load, cap, slo, as_draft(how))
    assert (None if found is None else (found.batch, found.bound)) == expected
    if found is not None:
        assert found.pace == pace(one, load, found.batch, how)


@SOME
@given(replicas(), loads, st.integers(1, 300), drafts)
def test_more_at_once_is_more_tokens_and_longer_ones(one, load, batch, how):
    before, after = pace(one, load, batch, how), pace(one, load, batch + 1, how)
    assert after.tpot_s > before.tpot_s
    assert after.tokens_per_s >= before.tokens_per_s * (1 - 1e-12)


@SOME
@given(replicas(), loads, st.floats(0.002, 0.2), st.floats(0, 0.5))
def test_a_stricter_limit_never_raises_capacity(one, load, slo, stricter):
    wide = capacity(one, load, cap=256, tpot_slo_s=slo)
    narrow = capacity(one, load, cap=256, tpot_slo_s=slo * (1 - stricter))
    assert (wide is None) == (narrow is None)
    if wide is not None:
        assert narrow.batch <= wide.batch
        assert narrow.pace.tokens_per_s <= wide.pace.tokens_per_s * (1 + 1e-12)


@SOME
@given(replicas(), st.integers(1, 20_000), st.integers(1, 4_000), st.integers(1, 600))
def test_without_cached_tokens_it_is_the_roofline(one, new, output, batch):
    found, expected = pace(one, Load(new, 0, output), batch), speed(one, batch, new, output)
    assert found.tokens_per_s / one.tp == pytest.approx(expected.tokens_per_s_per_gpu, rel=1e-9)
    assert found[1:] == pytest.approx((expected.tpot_s, expected.ttft_s), rel=1e-9)


def test_pace_by_hand():
    # Llama-3.1-8B on one H100, 32 at once, 800 computed, 400 cached, 100 out: 1,250 tokens of 131,072 B in memory each
    one, load = deployment("llama-3.1-8b", "h100-sxm"), Load(800, 400, 100)
    reading = (one.model.params * 2 + 32 * 1250 * 131_072) / (3350e9 * 0.9)
    step = reading + 32 * 56.9e-6 + 32 * 32 * 0.763e-6
    rate = one.gpu.tflops["bf16"] * 1e12 * 0.569
    prompt = 800 * 2 * one.model.params / rate + 4 * 32 * 4096 * (800 * 400 + 800 * 800 / 2) / rate
    found = pace(one, load, 32)
    assert found.ttft_s == pytest.approx(step + prompt)
    assert found.tpot_s == pytest.approx(step + 0.32 * prompt)
    assert found.tokens_per_s == pytest.approx(32 / (step + 0.32 * prompt))


def test_cached_tokens_are_read_and_attended_to_but_not_computed():
    one = deployment("llama-3.1-8b", "h100-sxm")
    computed, cached = pace(one, Load(2000, 0, 200), 16), pace(one, Load(200, 1800, 200), 16)
    cost = step_cost(one)
    step, prompt = decode_s(one, cost, 16, 2100), 200 * cost.token_s + cost.pair_s * (200 * 1800 + 200 * 200 / 2)
    assert cached.ttft_s == pytest.approx(step + prompt)
    assert cached.tokens_per_s > computed.tokens_per_s
    # a step reads as much either way
    other_prompts = [16 / 200 * prefill_s(cost, *parts) for parts in ((2000, 0), (200, 1800))]
    steps = [found.tpot_s - other for found, other in zip((computed, cached), other_prompts, strict=True)]
    assert steps == pytest.approx([step, step])


@pytest.mark.parametrize(
    ("cap", "slo", "batch", "bound"),
    # 4 x H100, 70B in 16 bits: (0.9 x 80 - 1.5) x 4 - 141.1 GB of pool, 4,096 tokens of 320 KiB: 104.7 (serving.md 2)
    [(256, None, 104, "memory"), (104, None, 104, "memory"), (103, None, 103, "cap"), (256, 0.001, 1, "missed")],
)
def test_what_stops_a_larger_batch(cap, slo, batch, bound):
    found = capacity(deployment("llama-3.1-70b", "h100-sxm", 4), Load(3096, 500, 1000), cap=cap, tpot_slo_s=slo)
    assert (found.batch, found.bound) == (batch, bound)


def test_the_limit_itself_is_kept():
    one, load = deployment("llama-3.1-8b", "h100-sxm"), Load(500, 0, 200)
    at = pace(one, load, 40).tpot_s
    assert capacity(one, load, cap=64, tpot_slo_s=at)[::2] == (40, "slo")
    assert capacity(one, load, cap=64, tpot_slo_s=at * 0.999999).batch == 39
    assert capacity(one, load, cap=40, tpot_slo_s=at)[::2] == (40, "cap")


def test_a_request_that_does_not_fit_has_no_capacity():
    assert capacity(deployment("llama-3.1-70b", "h100-sxm", 1), Load(100, 0, 10), cap=8) is None
    one = deployment("llama-3.1-8b", "l4")  # 7.5 of 4,096 tokens: 30.7 thousand tokens
    assert capacity(one, Load(30_000, 0, 400), cap=8).batch == 1
    assert capacity(one, Load(31_000, 0, 400), cap=8) is None


@pytest.mark.parametrize(
    ("asked", "each", "share", "least", "count"),
    [
        (1000, 100, 1.0, 1, 10), (1000.0001, 100, 1.0, 1, 11), (1000, 100, 0.6, 1, 17), (0, 100, 0.6, 2, 2),
        (0, 100, 0.6, 1, 1), (59.9, 100, 0.6, 1, 1), (60.1, 100, 0.6, 1, 2), (0.3, 0.1, 1.0, 1, 3),
    ],
)  # fmt: skip
def test_replicas_are_whole_and_at_least_two_where_asked(asked, each, share, least, count):
    assert replicas_needed(asked, each, share, least) == count


@SOME
@given(st.floats(0, 1e4), st.floats(1, 1e3), st.floats(0.05, 1), st.integers(1, 3))
def test_replicas_are_what_counting_up_finds(asked, each, share, least):
    found = replicas_needed(asked, each, share, least)
    assert found == oracle.replicas(asked, each, share, least)
    assert found * each * share >= asked * (1 - 1e-6)


def test_fuller_batches_are_what_ree2raz_measured_on_an_a100():
    # serving.md 7: Qwen2.5-7B in FP16 on an A100-40 at 1, 16, 64 at once: 80, 1,094, 3,102 tokens/s (prompts up to 256)
    one = deployment("Qwen/Qwen2.5-7B", "a100-40")
    found = [pace(one, Load(128, 0, 128), batch).tokens_per_s for batch in (1, 16, 64)]
    assert all(0.75 <= rate / said <= 1.33 for rate, said in zip(found, (80, 1094, 3102), strict=True)), found
