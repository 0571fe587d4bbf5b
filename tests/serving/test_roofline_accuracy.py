"""How far the roofline is off measured points: in sample, leaving out, on tables it was not fitted to, calibrated."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

import measured_points
import pytest
from measured_points import Measured, fit, published, silicon, splits
from real_data import real

from tenfold.serving import calibration, roofline

# Rows of Qwen3-32B on GB200 contradict each other: 121 tokens/s at concurrency 1 and 140 at 4; a token every 94 ms at 4
# and every 72 ms at 32
CONTRADICTORY = {"P122", "P123", "P125", "P126", "P127", "P129", "P130"}


def off(ratios):
    return median(abs(ratio - 1) for ratio in ratios)


def within(ratios, calibrated, moe=False):
    """Share of the points whose measured over predicted rate is in the stated interval."""
    low, high = roofline.interval(calibrated, moe)
    inside = [low <= 1 / ratio <= high for ratio in ratios]
    return sum(inside) / len(inside)


def by(points, *keys):
    groups = defaultdict(list)
    for point in points:
        groups[tuple(getattr(point, key) for key in keys)].append(point)
    return groups.values()


def calibrated_by(chosen: Measured, points):
    """Predicted over measured rate of the other points, after calibration with one."""
    one = calibration.Point(
        chosen.concurrency, chosen.input_tokens, chosen.output_tokens, chosen.rate * chosen.deployment.tp
    )
    scale = calibration.calibrate(chosen.deployment, [one]).scale
    return [point.ratio() * scale for point in points if point is not chosen]


def every_calibration(points, *keys):
    """The same over all pairs: any point of a group calibrates any other."""
    found = []
    for group in by(points, *keys):
        ratios = [point.ratio() for point in group]
        found += [b / a for i, a in enumerate(ratios) for j, b in enumerate(ratios) if i != j]
    return found


@pytest.fixture
def offline():
    real("serving", "serving_points.csv")
    points = published(lambda row: row["scenario"] == "offline max load")
    return [point for point in points if not point.deployment.model.is_moe]


@pytest.fixture
def closed():
    real("serving", "serving_points.csv")
    return published(lambda row: row["quality"] == "A" and row["scenario"].startswith("closed loop"))


def test_the_extract_is_the_one_that_the_reference_names():
    assert len(silicon()) == 1042
    assert {point.deployment.gpu.name for point in silicon()} == {"h100-sxm", "h200-sxm", "b200"}
    assert len(silicon(measured_points.SILICON_MOE)) == 514


def test_in_sample():
    ratios = [point.ratio() for point in silicon()]
    assert off(ratios) <= 0.08  # 7.1 %; wanted: 12 %
    assert 0.95 <= median(ratios) <= 1.05
    assert within(ratios, calibrated=False) >= 0.9
    # no scheme, GPU, backend or width of its own is far off (two groups whose labels contradict the others apart, which
    # serving.md 1 suspects: FP8 on vLLM 0.12 runs faster there than on any other engine)
    suspect = {("meta-llama/Llama-3.1-8B", "vllm", "fp8"), ("Qwen/Qwen3-32B", "vllm", "fp8")}
    for group in by(silicon(), "model", "gpu", "backend"):
        kept = [p for p in group if (p.model, p.backend, p.deployment.weights.name) not in suspect]
        assert not kept or off([p.ratio() for p in kept]) <= 0.16


def test_the_committed_constants_are_the_fit():
    fitted = fit(silicon())
    for ours, theirs in zip(roofline.FITTED, fitted, strict=True):
        assert ours == pytest.approx(theirs, rel=0.02)


def left_out(name):
    is_out = dict(splits(silicon()))[name]
    constants = fit(point for point in silicon() if not is_out(point))
    return [point.ratio(constants) for point in silicon() if is_out(point)]


# measured: 7.5, 8.7, 10.5; 9.7, 8.3, 12.1; 6.9, 10.2, 5.4 %
SPLITS = [name for name, _ in splits(silicon())]
QUICK = "model meta-llama/Llama-3.1-8B"  # the worst


@pytest.mark.parametrize(
    "name", [name if name == QUICK else pytest.param(name, marks=pytest.mark.full) for name in SPLITS]
)
def test_leaving_one_out(name):
    ratios = left_out(name)
    assert off(ratios) <= 0.13  # wanted: 20 %
    assert within(ratios, calibrated=False) >= 0.8


def test_calibrated_by_one_point_of_the_same_model_and_gpu():
    ratios = every_calibration(silicon(), "model", "gpu")
    assert off(ratios) <= 0.12  # 10.8 %, whatever engine, scheme and width the point had
    assert within(ratios, calibrated=True) >= 0.8
    same = every_calibration(silicon(), "model", "gpu", "backend", "scheme", "tp")
    assert off(same) <= 0.065  # 5.9 %, of the same deployment
    assert within(same, calibrated=True) >= 0.9


@pytest.mark.real_data
def test_closed_loops_of_the_published_points(closed):
    assert len(closed) >= 70
    ratios = [point.ratio() for point in closed]
    assert off(ratios) <= 0.12  # 10.5 %
    assert within(ratios, calibrated=False) >= 0.8
    sound = [point.ratio() for point in closed if point.name not in CONTRADICTORY]
    assert off(sound) <= 0.11  # 10.0 %
    assert within(sound, calibrated=False) >= 0.9


@pytest.mark.real_data
def test_offline_tables(offline):
    assert len(offline) >= 45
    ratios = [point.ratio() for point in offline]
    assert off(ratios) <= 0.12  # 9.6 %, uncalibrated; serving.md 3 had 27 %
    assert within(ratios, calibrated=False) >= 0.9


@pytest.mark.real_data
def test_offline_tables_calibrated_by_one_point_a_model_and_gpu(offline):
    ratios, means = [], []
    for group in by(offline, "model", "gpu"):
        if chosen := next((p for p in group if (p.input_tokens, p.output_tokens) == (1000, 1000)), None):
            found = calibrated_by(chosen, group)
            ratios += found
            means.append(sum(abs(ratio - 1) for ratio in found) / len(found))
    assert len(ratios) >= 35
    assert off(ratios) <= 0.09  # 7.0 %; wanted: 12 %
    assert max(means) <= 0.14  # mean of the worst group: 8B on H100
    assert within(ratios, calibrated=True) >= 0.8
    every = every_calibration(offline, "model", "gpu")
    assert off(every) <= 0.09  # 7.9 %, whichever point it is
    assert within(every, calibrated=True) >= 0.8


@pytest.mark.real_data
def test_gpus_that_were_not_fitted():
    # Qwen2.5-7B in 16 bits on L4 and A100-40, vLLM and SGLang; prompts of "<= 256" tokens taken as 128
    real("serving", "serving_points.csv")
    points = [
        measured_points.measured({**row, "isl": "128" if row["isl"] == "<=256" else "256"})
        for row in measured_points.published_rows()
        if row["quality"] == "B" and row["weights"] == "fp16" and row["isl"].startswith("<=")
    ]
    ratios = [point.ratio() for point in points if point is not None]
    assert len(ratios) >= 12
    assert off(ratios) <= 0.05
    assert within(ratios, calibrated=False) == 1


def test_mixtures_of_experts():
    points = silicon(measured_points.SILICON_MOE)
    ratios = [point.ratio() for point in points]
    assert off(ratios) <= 0.17  # 15.5 %: the dense constants, a time a layer of experts on top
    assert within(ratios, calibrated=False, moe=True) >= 0.8
    without = roofline.FITTED._replace(expert_layer_s=0.0)
    assert off([point.ratio(without) for point in points]) >= 0.25
    same = every_calibration(points, "model", "gpu", "backend", "scheme")
    assert within(same, calibrated=True, moe=True) >= 0.8


def test_time_an_output_token_is_better_known_than_time_to_the_first():
    tpot = [point.predicted().tpot_s / point.tpot_s for point in silicon()]
    ttft = [point.predicted().ttft_s / point.ttft_s for point in silicon()]
    assert off(tpot) <= 0.1  # 8.9 %
    # clients start their requests together, so measured first tokens have waited; the roofline knows no queue
    assert median(ttft) < 0.5
