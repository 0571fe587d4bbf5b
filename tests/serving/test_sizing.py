"""Sizing: the largest batch against a plain scan, costs against the bill, and what is said of what does not go."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.errors import ServingError
from tenfold.serving import roofline
from tenfold.serving.calibration import Point, calibrate
from tenfold.serving.memory import deployment
from tenfold.serving.sizing import largest, minimum_tp, size

L70 = deployment("llama-3.1-70b", "h100-sxm", 4, "fp8", "fp8")
L8 = deployment("llama-3.1-8b", "h100-sxm", 1, "fp8", "fp8")


def test_offline_it_takes_all_that_memory_holds_or_the_engine_allows():
    made = size(L70, 1000, 1000)
    # (0.9 x 80 - 1.5) x 4 - 70.55 GB over 1,500 tokens of 160 KiB
    assert made.batch == int((70.5e9 * 4 - L70.model.params) / (1500 * 163_840)) == 860
    assert (made.bound, made.fits, made.calibrated) == ("memory", True, False)
    short = size(L8, 128, 128)
    assert (short.batch, short.bound) == (1024, "cap")
    assert short.concurrency > 4000
    assert size(L70, 1000, 1000, concurrency=64).bound == "given"


@settings(max_examples=20, deadline=None)
@given(st.integers(5, 120), st.integers(50, 4000), st.integers(2, 1500))
def test_the_batch_under_an_slo_is_the_largest_one(milliseconds, input_tokens, output_tokens):
    slo = milliseconds / 1e3
    made = size(L70, input_tokens, output_tokens, tpot_slo_s=slo)
    most = min(int(L70.concurrency(input_tokens + output_tokens / 2)), 1024)
    kept = [b for b in range(1, most + 1) if roofline.speed(L70, b, input_tokens, output_tokens).tpot_s <= slo]
    assert made.batch == (kept[-1] if kept else 1)
    assert kept == list(range(1, len(kept) + 1))  # it only grows with the batch, else halving would not find it
    assert made.bound == ("missed" if not kept else "slo" if kept[-1] < most else made.bound)


def test_largest_is_exact_at_both_ends():
    assert [largest(10, lambda batch, at=at: batch <= at) for at in (0, 1, 9, 10, 11)] == [0, 1, 9, 10, 10]


def test_a_limit_on_the_first_token_counts_too():
    free = size(L70, 4000, 200)
    bound = size(L70, 4000, 200, ttft_slo_s=free.speed.ttft_s * 0.9)
    assert 0 < bound.batch < free.batch
    assert bound.speed.ttft_s <= free.speed.ttft_s * 0.9


def test_what_is_missed_or_queues_is_said():
    missed = size(L70, 1000, 1000, tpot_slo_s=0.001)
    assert (missed.batch, missed.bound) == (1, "missed")
    assert any("the SLO cannot be met: one request alone" in note for note in missed.notes)
    queued = size(L70, 1000, 1000, concurrency=5000)
    assert (queued.batch, queued.bound) == (860, "memory")
    assert "5,000 requests asked for, memory holds 860: the others queue" in queued.notes
    slow = size(L70, 1000, 1000, concurrency=800, tpot_slo_s=0.01)
    assert (slow.batch, slow.bound) == (800, "given")
    assert "the SLO is missed with 800 requests at once" in slow.notes


def test_what_does_not_fit_says_how_many_gpus_would():
    made = size(deployment("llama-3.1-70b", "h100-sxm"), 1000, 1000, usd_per_gpu_hour=Decimal("2.95"))
    assert (made.fits, made.batch, made.bound, made.speed, made.cost) == (False, 0, "none", None, None)
    assert "4 are enough" in made.notes[0]
    assert minimum_tp(L70._replace(tp=1, weights=L8.weights), 1500) == 2  # FP8 halves the GPUs: serving.md 2
    assert minimum_tp(deployment("llama-3.1-405b", "l4"), 100) == 64
    assert minimum_tp(deployment("kimi-k2", "t4"), 100) is None
    assert any("28 query heads do not divide" in n for n in size(deployment("qwen2.5-7b", "l4", 8), 100, 100).notes)


@settings(max_examples=25, deadline=None)
@given(st.integers(16, 800), st.integers(200, 3000), st.integers(300, 1000))
def test_what_requests_pay_is_what_the_gpus_cost(batch, input_tokens, output_tokens):
    made = size(L70, input_tokens, output_tokens, concurrency=batch, usd_per_gpu_hour=Decimal("2.95"))
    cost = made.cost.mid
    request = cost.input * input_tokens + cost.output * output_tokens
    requests_per_hour = made.tokens_per_s_per_gpu.mid * 4 / output_tokens * 3600
    # apart from the first token's own step, which the closed form counts and a steady state does not have
    assert request * requests_per_hour == pytest.approx(4 * 2.95e12, rel=0.01 + 2 / made.batch + 2 / output_tokens)


def test_cost_by_hand():
    made = size(L70, 1000, 1000, concurrency=64, usd_per_gpu_hour=Decimal(3))
    assert made.cost.mid.input == round(made.speed.prefill_s / 1000 * 4 * 3e12 / 3600)
    assert made.cost.mid.output == round(made.speed.decode_s / 64 * 4 * 3e12 / 3600)
    low, high = roofline.interval(calibrated=False)
    assert made.cost.low.output == pytest.approx(made.cost.mid.output / high, abs=1)
    assert made.cost.high.output == pytest.approx(made.cost.mid.output / low, abs=1)
    assert made.tokens_per_s_per_gpu.low == made.tokens_per_s_per_gpu.mid * low


def test_a_measured_point_scales_and_narrows():
    plain = size(L70, 1000, 1000, concurrency=64)
    measured = calibrate(L70, [Point(64, 1000, 1000, tokens_per_s=plain.tokens_per_s_per_gpu.mid * 4 * 0.8)])
    made = size(L70, 1000, 1000, concurrency=64, calibration=measured)
    assert made.tokens_per_s_per_gpu.mid == pytest.approx(plain.tokens_per_s_per_gpu.mid * 0.8)
    assert made.speed.tpot_s == pytest.approx(plain.speed.tpot_s / 0.8)
    narrow, wide = (one.tokens_per_s_per_gpu.high / one.tokens_per_s_per_gpu.low for one in (made, plain))
    assert narrow < wide
    assert any("calibrated by" in note for note in made.notes)
    assert any("not calibrated" in note for note in plain.notes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"input_tokens": 0}, {"output_tokens": -1}, {"concurrency": 0}, {"tpot_slo_s": 0.0}, {"ttft_slo_s": -1.0},
        {"usd_per_gpu_hour": Decimal(0)}, {"usd_per_gpu_hour": Decimal("NaN")}, {"tpot_slo_s": float("nan")},
    ],
)  # fmt: skip
def test_what_is_not_above_zero_is_refused(wrong):
    with pytest.raises((ServingError, ArithmeticError), match=r"above zero|InvalidOperation"):
        size(L70, **{"input_tokens": 100, "output_tokens": 100, **wrong})
