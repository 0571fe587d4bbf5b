"""The gate: each bound by hand, and the published claims: none of quality A or B rejected, the vendor's of C all."""

from __future__ import annotations

import measured_points
import pytest
from measured_points import SILICON_MOE, silicon
from real_data import real

from tenfold.serving import physics, specs
from tenfold.serving.memory import Deployment
from tenfold.serving.physics import Claim


def replica(model="llama-3.1-70b", gpu="h100-sxm", tp=1, weights="fp8", kv="fp8"):
    return Deployment(specs.model(model), specs.gpu(gpu), tp, specs.WEIGHTS[weights], specs.KV[kv])


def bounds(**claim):
    return [broken.bound for broken in physics.check(Claim(claim.pop("one", None) or replica(), **claim))]


def test_one_stream_cannot_read_the_weights_faster_than_the_memory():
    # 3,350 GB/s over 70.55 GB: 47.5 tokens a second (serving.md 3)
    (broken,) = physics.check(Claim(replica(), tokens_per_s=120, concurrency=1))
    assert (broken.bound, broken.unit) == ("bandwidth", "tokens/s/sequence")
    assert broken.limit == pytest.approx(47.5, rel=2e-3)
    assert "120 tokens/s" in broken.why
    assert "47.5" in broken.why
    assert bounds(tokens_per_s=52, concurrency=1) == []
    assert bounds(tokens_per_s=53, concurrency=1) == ["bandwidth"]  # a tenth above
    assert bounds(tpot_s=0.018) == ["bandwidth"]
    assert bounds(tpot_s=0.020) == []
    # two GPUs read twice as fast, fewer bits are read faster, and a draft model gets several tokens a step
    assert bounds(one=replica(tp=2), tokens_per_s=90, concurrency=1) == []
    assert bounds(one=replica(weights="fp4"), tokens_per_s=80, concurrency=1) == []
    assert bounds(tokens_per_s=120, concurrency=1, tokens_per_step=3.0) == []
    assert bounds(tokens_per_s=120, concurrency=1, tokens_per_step=None) == []


def test_the_cache_is_read_too():
    # 30 sequences x 4,096 tokens x 160 KiB are 20 GB: 19 ms a step on one H200 in place of 15
    one = replica(gpu="h200-sxm")
    step = (one.weight_bytes + 30 * 4096 * 163_840) / 4.8e12
    claim = {"one": one, "concurrency": 30, "input_tokens": 96, "output_tokens": 8000}
    assert bounds(tokens_per_s=30 / step * 1.09, **claim) == []
    assert bounds(tokens_per_s=30 / step * 1.11, **claim) == ["bandwidth"]
    # more clients than fit do not help: their caches are not there to be read
    fitting = (141e9 * 1.1 - one.weight_bytes) / (163_840 * 4096)
    crowd = {**claim, "concurrency": 10_000}
    assert bounds(tokens_per_s=fitting / ((141e9 * 1.1) / 4.8e12) * 1.2, **crowd) == ["bandwidth"]


def test_every_token_is_multiplied_with_every_parameter():
    most = 1978e12 / (2 * replica().model.params)  # 14,019 tokens a second
    assert bounds(tokens_per_s=most * 1.09) == []
    assert bounds(tokens_per_s=most * 1.11) == ["compute"]
    # with prompts nine times as long as answers, a tenth of that
    lengths = {"input_tokens": 900, "output_tokens": 100}
    assert "compute" in bounds(tokens_per_s=most * 0.12, **lengths)
    assert "compute" not in bounds(tokens_per_s=most * 0.10, **lengths)
    # of a mixture of experts only what it chooses
    experts = replica("deepseek-ai/DeepSeek-R1", tp=8, gpu="h200-sxm")
    assert bounds(one=experts, tokens_per_s=8 * 1978e12 / (2 * experts.model.active)) == []


def test_a_prompt_is_multiplied_before_its_first_token():
    # 8,192 tokens x 2 x 70.55e9 at 1,978 TFLOPS: 0.584 s
    assert bounds(ttft_s=0.5, input_tokens=8192) == ["prefill"]
    assert bounds(ttft_s=0.6, input_tokens=8192) == []


def test_weights_fit_in_memory():
    (broken,) = physics.check(Claim(replica(weights="bf16"), tokens_per_s=1))
    assert (broken.bound, broken.limit) == ("memory", 80)
    assert broken.claimed == pytest.approx(141.1, rel=0.01)
    assert bounds(one=replica(weights="bf16", tp=2), tokens_per_s=1) == []


def test_sequences_decoded_at_once_fit_and_are_under_way():
    # 1,500 tokens/s, one every 40 ms each: 60 sequences at once
    assert bounds(tokens_per_s=1500, tpot_s=0.040, concurrency=50) == ["streams"]
    assert bounds(tokens_per_s=1500, tpot_s=0.040, concurrency=60) == []
    # of 8,192 tokens on a card with 17 GB beside the weights: 13 fit
    long = {"input_tokens": 8000, "output_tokens": 384}
    assert "kv_memory" in bounds(tokens_per_s=400, tpot_s=0.040, **long)
    assert bounds(tokens_per_s=200, tpot_s=0.040, **long) == []


def test_a_bound_without_its_facts_is_not_tried_and_the_facts_are_named():
    (verdict,) = physics.judge([Claim(replica(), tokens_per_s=5333)])
    assert not verdict.is_rejected
    assert verdict.missing == ("concurrency", "input_tokens", "output_tokens")
    (verdict,) = physics.judge([Claim(replica(), concurrency=1, input_tokens=1, output_tokens=1)])
    assert verdict.missing == ("tokens_per_s or tpot_s",)


def test_one_impossible_figure_discredits_its_series():
    claims = [
        Claim(replica(), tokens_per_s=rate, concurrency=held, source=source)
        for source, held, rate in (("a", 1, 120), ("a", 50, 1900), ("b", 50, 1900), ("", 1, 200), ("", 50, 1900))
    ]
    verdicts = physics.judge(claims)
    assert [[broken.bound for broken in one.broken] for one in verdicts] == [
        ["bandwidth"], ["series"], [], ["bandwidth"], [],
    ]  # fmt: skip
    assert "120 tokens/s" in verdicts[1].broken[0].why
    # by its worst figure
    worse = physics.judge([*claims[:2], Claim(replica(), tokens_per_s=700, concurrency=10, source="a"), claims[0]])
    assert worse[1].broken[0].claimed == 120
    # another model of the same source is another series
    other = Claim(replica("llama-3.1-8b"), tokens_per_s=100, concurrency=1, source="a")
    assert not physics.judge([claims[0], other])[1].is_rejected


def test_measured_points_are_possible():
    points = [*silicon(), *silicon(SILICON_MOE)]
    claims = [
        Claim(
            point.deployment._replace(kv=specs.KV["fp8"]),
            point.rate * point.deployment.tp,
            point.concurrency,
            point.input_tokens,
            point.output_tokens,
            None,  # prompts of some are cached
            point.tpot_s,
        )
        for point in points
    ]
    broken = [(point, found) for point, claim in zip(points, claims, strict=True) if (found := physics.check(claim))]
    assert [(point.name, point.model, found) for point, found in broken] == []


def claim_of(row):
    one = measured_points.deployment_of(row)
    if one is None or not row["out_tok_s_per_gpu"]:
        return None
    tp = one.tp if row["parallel"] else min(int(float(row["n_gpus"] or 1)), 8)
    one = one._replace(tp=tp, kv=specs.KV["fp8"])  # what most rows do not say: taken as small as engines keep it
    number = row["concurrency"]
    return Claim(
        one,
        float(row["out_tok_s_per_gpu"]) * tp,
        float(number) if number.isdigit() else None,
        measured_points.length(row["isl"]),
        measured_points.length(row["osl"]),
        None,
        float(row["tpot_ms"]) / 1e3 if row["tpot_ms"] else None,
        None if "spec=" in row["scenario"] else 1.0,
        row["source"],
    )


@pytest.fixture
def verdicts():
    real("serving", "serving_points.csv")
    rows = [(row, claim) for row in measured_points.published_rows() if (claim := claim_of(row)) is not None]
    return [(row, one) for (row, _), one in zip(rows, physics.judge(claim for _, claim in rows), strict=True)]


@pytest.mark.real_data
def test_no_published_point_of_quality_a_or_b_is_rejected(verdicts):
    sound = [(row["id"], one.broken) for row, one in verdicts if row["quality"] in {"A", "B"}]
    assert len(sound) >= 150
    assert [(name, broken) for name, broken in sound if broken] == []


@pytest.mark.real_data
def test_the_vendors_claims_are_rejected_with_the_bound_that_they_break(verdicts):
    vendor = {row["id"]: one for row, one in verdicts if row["quality"] == "C" and row["source"].startswith("Spheron")}
    assert len(vendor) >= 7
    assert all(one.is_rejected for one in vendor.values())
    assert {name: one.broken[0].bound for name, one in vendor.items()} == {
        "P266": "bandwidth",
        "P267": "bandwidth",
        "P269": "bandwidth",
        "P270": "bandwidth",
        "P271": "series",
        "P273": "bandwidth",
        "P274": "series",
    }
    assert "at most 47.4" in vendor["P266"].broken[0].why


@pytest.mark.real_data
def test_what_physics_cannot_refute_is_said_to_lack_facts(verdicts):
    # 8B in 16 bits on one H100 at 5,300 to 16,200 tokens/s: below every bound, so only named as not checkable
    others = [one for row, one in verdicts if row["quality"] == "C" and not row["source"].startswith("Spheron")]
    assert not any(one.is_rejected for one in others)
    assert all({"input_tokens", "output_tokens", "concurrency"} <= set(one.missing) for one in others)
