"""Separate pools against the figures of the reference, an exact queue, a search written out, and field reports."""

import itertools
import json
import math

import pytest
from typer.testing import CliRunner

from tenfold.cli import app
from tenfold.errors import ServingError
from tenfold.serving import pools, queueing
from tenfold.serving.capacity import Load
from tenfold.serving.disaggregation import MIN_GAIN, Sizes, disaggregate
from tenfold.serving.memory import deployment
from tenfold.serving.pools import Bounds
from tenfold.serving.roofline import FITTED, step_cost
from tenfold.serving.transfer import Link, kv_bytes, sustained_gbps

LLAMA = "meta-llama/Llama-3.1-70B"
IB = Link(400)
PROMPT = Load(4096, 0, 1)


def llama(kv="bf16", tp=1, gpu="h200-sxm"):
    return deployment(LLAMA, gpu, tp, "fp8", kv)


# serving.md 8, first bullet
@pytest.mark.parametrize(
    ("gbps", "ms"), [(25, 430), (100, 107), (200, 54), (400, 27), (64 * 8, 21), (450 * 8, 3)], ids=str
)
def test_transfer_of_a_4k_prompt(gbps, ms):
    size = kv_bytes(llama(), PROMPT)
    assert size / 1e9 == pytest.approx(1.342, abs=5e-4)
    assert round(Link(gbps).transfer_s(size) * 1e3, -1 if ms == 430 else 0) == ms
    assert Link(gbps).transfer_s(kv_bytes(llama("fp8"), PROMPT)) == pytest.approx(Link(gbps).transfer_s(size) / 2)


def test_what_a_prefill_worker_of_four_h100_sends():
    cost = step_cost(llama(tp=4, gpu="h100-sxm"), FITTED._replace(compute_efficiency=0.65))
    seconds = cost.token_s * 4096  # multiplications with the weights alone, as the reference counts
    assert round(seconds * 1e3) == 112
    assert round(4096 / seconds / 1e3, 1) in {36.4, 36.6}
    assert round(sustained_gbps(llama().kv_bytes_per_token, 36_600)) == 96
    assert round(sustained_gbps(llama().kv_bytes_per_token, 36_600 / 4)) == 24
    assert sustained_gbps(llama("fp8").kv_bytes_per_token, 36_600) == pytest.approx(96 / 2, abs=0.1)


def test_layer_by_layer_only_the_last_layer_is_waited_for():
    size = kv_bytes(llama(), PROMPT)
    assert Link(100, layerwise=True).exposed_s(size, 80) == pytest.approx(Link(100).transfer_s(size) / 80)
    assert Link(100).exposed_s(size, 80) == Link(100).transfer_s(size)
    assert Link(100, latency_s=0.01, efficiency=0.5).transfer_s(size) == pytest.approx(
        0.01 + 2 * Link(100).transfer_s(size)
    )


def test_a_copy_is_sent_once_however_many_gpus_keep_it():
    model = deployment("deepseek-ai/DeepSeek-V3", "h200-sxm", 8, "fp8", "bf16")
    assert kv_bytes(model, PROMPT) == pytest.approx(4096 * 61 * (512 + 64) * 2)


# serving.md 8, and aiconfigurator 0.12.0 run again on 2026-11-30 (cli_default, vLLM, H200, defaults): tokens a second
# and GPU of the best split over those of the best aggregated replicas, at 8, 16 and 32 GPUs
TABLE = [
    (LLAMA, "fp8", 1000, 1000, 1000, 30, (0.976, 0.976, 0.976)),
    (LLAMA, "fp8", 4000, 500, 1000, 30, (1.167, 1.458, 1.458)),
    (LLAMA, "fp8", 4000, 500, 600, 15, (1.189, 1.189, 1.463)),
    (LLAMA, "fp8", 8000, 300, 2000, 30, (1.621, 1.621, 1.621)),
    ("meta-llama/Llama-3.1-8B", "bf16", 2000, 300, 500, 15, (0.899, 1.012, 1.012)),
]
EVEN = 0.03  # closer to 1 than this, neither way wins in the table


@pytest.mark.parametrize(("model", "numbers", "isl", "osl", "ttft", "tpot", "gains"), TABLE)
def test_the_table_of_the_reference(model, numbers, isl, osl, ttft, tpot, gains):
    one = deployment(model, "h200-sxm", 1, numbers, numbers)
    for gpus, expected in zip((8, 16, 32), gains, strict=True):
        gain = disaggregate(one, Load(isl, 0, osl), Bounds(ttft / 1e3, tpot / 1e3), gpus, IB).gain
        assert gain == pytest.approx(expected, rel=0.2)
        if abs(expected - 1) > EVEN:
            assert (gain > 1) == (expected > 1)
        else:
            assert abs(gain - 1) < 0.1


# incidents.md I29 and the issues it names: what was set up, and GPUs of an undivided replica and of the two workers.
# Where an issue does not say the GPU or the service level, a common one is taken and the level varied.
REPORTS = {
    "ai-dynamo/dynamo 3774": ("openai/gpt-oss-120b", "h200-sxm", "fp4", 8, (8, 4, 4), 1000, 500),
    "ai-dynamo/dynamo 4425": ("deepseek-ai/DeepSeek-V3", "h200-sxm", "fp8", 16, (8, 8, 8), 1000, 200),
    "vllm 23144": ("Qwen/Qwen3-8B", "h100-sxm", "bf16", 2, (1, 1, 1), 1024, 6),
    "vllm 6170": (LLAMA, "h100-sxm", "bf16", 8, (4, 4, 4), 2048, 150),
    "sglang 6411": ("deepseek-ai/DeepSeek-V3", "h200-sxm", "fp8", 32, (8, 8, 8), 4096, 1300),
}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("ttft_s", [1, 5])
@pytest.mark.parametrize("tpot_s", [0.02, 0.05, 0.1])
def test_field_reports_come_out_as_does_not_pay(report, ttft_s, tpot_s):
    model, gpu, weights, gpus, sizes, isl, osl = REPORTS[report]
    one = deployment(model, gpu, 1, weights, "bf16")
    verdict = disaggregate(one, Load(isl, 0, osl), Bounds(ttft_s, tpot_s), gpus, IB, sizes=Sizes(*sizes))
    assert not verdict.pays
    assert verdict.failing
    if report == "ai-dynamo/dynamo 4425":  # 16 GPUs, experts, 5:1, InfiniBand: only the gain can say no
        assert [one.name for one in verdict.failing] == ["gain"]


def test_a_large_fleet_with_long_prompts_pays_and_names_nothing():
    verdict = disaggregate(llama("fp8"), Load(8000, 0, 300), Bounds(2, 0.03), 32, IB)
    assert verdict.pays
    assert verdict.gain > MIN_GAIN
    assert verdict.failing == ()


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({"gpus": 8}, "gpus"),
        ({"link": Link(99)}, "link"),
        ({"load": Load(1400, 0, 300)}, "input_per_output"),
        ({"one": deployment("meta-llama/Llama-3.1-8B", "h200-sxm", 1, "fp8", "fp8")}, "model"),
    ],
)
def test_each_condition_fails_with_its_value(change, failing):
    asked = {"one": llama("fp8"), "load": Load(8000, 0, 300), "bounds": Bounds(2, 0.03), "gpus": 32, "link": IB}
    verdict = disaggregate(**{**asked, **change})
    assert failing in [one.name for one in verdict.failing]
    assert not verdict.pays
    assert verdict.advice.startswith("chunked prefill first")
    failed = next(one for one in verdict.failing if one.name == failing)
    assert failed.measured < failed.threshold


def test_a_split_is_held_against_the_best_replicas_not_those_of_today():
    asked = (llama("bf16"), Load(4000, 0, 500), Bounds(1, 0.03), 16, IB)
    best, pinned = disaggregate(*asked), disaggregate(*asked, sizes=Sizes(today=1))
    assert pinned.gain == best.gain
    assert pinned.today.tp == 1
    assert pinned.today.requests_per_s < pinned.together.requests_per_s
    assert "change that first" in pinned.notes[-1]


def test_a_small_mixture_of_experts_is_not_too_small():
    verdict = disaggregate(
        deployment("Qwen/Qwen3-30B-A3B", "h200-sxm", 1, "fp8", "fp8"), Load(8000, 0, 300), Bounds(2, 0.03), 32, IB
    )
    assert "model" not in [one.name for one in verdict.failing]


def erlang_wait(busy, workers):
    """Exact mean wait of M/M/n in service times (Erlang C)."""
    offered = busy * workers
    last = offered**workers / math.factorial(workers) / (1 - busy)
    waits = last / (sum(offered**k / math.factorial(k) for k in range(workers)) + last)
    return waits / (workers * (1 - busy))


@pytest.mark.parametrize(("busy", "workers"), [(u, n) for u in (0.5, 0.7, 0.9) for n in (2, 4, 12)])
def test_wait_is_about_half_of_the_exact_exponential_one(busy, workers):
    # the approximation's known error is at light load, where there is next to no wait
    assert queueing.wait(busy, workers) == pytest.approx(erlang_wait(busy, workers) / 2, rel=0.05, abs=0.02)


def test_wait_of_one_worker_is_exact_and_the_busiest_inverts_it():
    assert queueing.wait(0.6, 1) == pytest.approx(0.6 / (2 * 0.4))
    for workers, slack in ((1, 0.5), (3, 0.2), (8, 0.05)):
        busy = queueing.busiest(slack, workers)
        assert queueing.wait(busy, workers) == pytest.approx(slack)
    assert queueing.busiest(-0.1, 3) == 0
    assert queueing.busiest(100, 3) == queueing.POOL_LOAD


def test_slots_leave_room_for_a_deviation_and_more():
    for slots in (1, 20, 400):
        mean = queueing.slots_filled(slots)
        assert mean + 1.645 * math.sqrt(mean) == pytest.approx(slots)


def test_the_best_split_is_the_best_of_all_written_out():
    load, bounds, gpus, one = Load(4000, 0, 500), Bounds(1, 0.03), 12, llama("fp8")
    best = pools.best_split(one, load, bounds, gpus, IB)
    found = []
    for first, second in itertools.product((1, 2, 4, 8), repeat=2):
        for workers in range(1, 13):
            rest = gpus - first * workers
            if rest < second:
                continue
            pinned = pools.best_split(one, load, bounds, gpus, IB, prefill_tp=first, decode_tp=second)
            service = pools.prefill_service_s(step_cost(llama("fp8", first)), load)
            slack = (1 - IB.transfer_s(kv_bytes(one, load))) / service - 1
            prefill = workers * queueing.busiest(slack, workers) / service
            decode = rest // second * pinned.decode_per_s / pinned.decode_workers
            found.append(min(prefill, decode))
    assert best.requests_per_s == pytest.approx(max(found))
    assert best.gpus <= gpus
    assert best.requests_per_s == min(best.prefill_per_s, best.decode_per_s) <= best.unrounded_per_s


def test_bounds_hold_in_both_ways():
    load, bounds = Load(4000, 0, 500), Bounds(0.8, 0.025)
    verdict = disaggregate(llama("fp8"), load, bounds, 16, IB)
    for way in (verdict.together, verdict.split):
        assert way.ttft_s <= bounds.ttft_s * (1 + 1e-9)
        assert way.tpot_s <= bounds.tpot_s * (1 + 1e-9)


def test_more_of_anything_never_hurts():
    load, bounds, one = Load(4000, 0, 500), Bounds(1, 0.03), llama("fp8")
    rates = [pools.best_split(one, load, bounds, n, IB).requests_per_s for n in range(8, 25)]
    assert rates == sorted(rates)
    links = [pools.best_split(one, load, bounds, 16, Link(g)).requests_per_s for g in (10, 25, 100, 400)]
    assert links == sorted(links)
    limits = [pools.best_together(one, load, Bounds(1, t), 16).requests_per_s for t in (0.02, 0.03, 0.05)]
    assert limits == sorted(limits)


def test_a_slow_link_holds_the_prefill_pool_back():
    one, load, slow = llama("fp8"), Load(4000, 0, 500), Link(2)
    split = pools.best_split(one, load, Bounds(10, 0.03), 16, slow)
    assert split.prefill_per_s <= split.prefill_workers * 0.9 / slow.transfer_s(kv_bytes(one, load)) * (1 + 1e-9)
    assert split.prefill_per_s < pools.best_split(one, load, Bounds(10, 0.03), 16, IB).prefill_per_s


def test_a_prefix_cache_takes_the_gain_away():
    cold = disaggregate(llama("fp8"), Load(8000, 0, 300), Bounds(2, 0.03), 32, IB)
    warm = disaggregate(llama("fp8"), Load(800, 7200, 300), Bounds(2, 0.03), 32, IB)
    assert warm.gain < cold.gain
    assert warm.transfer_s == cold.transfer_s
    assert any("PR 19746" in note for note in warm.notes)


def test_a_service_level_that_nothing_meets():
    verdict = disaggregate(llama("fp8"), Load(8000, 0, 300), Bounds(0.01, 0.001), 32, IB)
    assert (verdict.gain, verdict.together, verdict.split) == (None, None, None)
    assert not verdict.pays
    assert verdict.advice.startswith("neither way")
    assert any("alone on the fastest worker" in note for note in verdict.notes)


def test_a_model_that_does_not_fit_is_refused_with_the_way_out():
    with pytest.raises(ServingError, match=r"does not fit on 1 GPUs.*--gpus"):
        disaggregate(deployment(LLAMA, "l4", 1, "bf16", "bf16"), Load(100, 0, 100), Bounds(1, 1), 1, IB)


COMMAND = ["serving", "disaggregate", "--model", LLAMA, "--gpu", "h200-sxm", "--weights", "fp8", "--kv", "fp8"]
COMMAND += ["--isl", "4000", "--osl", "500", "--ttft-slo-ms", "1000", "--tpot-slo-ms", "30", "--link-gbps", "400"]


def test_command_line():
    done = CliRunner().invoke(app, [*COMMAND, "--gpus", "8", "--json"])
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["pays"] is False
    assert [one["name"] for one in document["failing"]] == ["gain", "gpus"]
    assert document["failing"][1]["measured"] == 8
    assert document["failing"][1]["threshold"] == 16
    workers = document["workers"]
    used = workers["prefill"] * workers["prefill_tp"] + workers["decode"] * workers["decode_tp"]
    assert used <= 8
    assert document["transfer_ms"] == pytest.approx(4000 * 80 * 2 * 8 * 128 * 8 / 400e9 * 1e3, abs=1e-3)
    said = CliRunner().invoke(app, [*COMMAND, "--gpus", "8"]).stdout
    assert "Chunked prefill first" in said
    assert max(len(line.rstrip()) for line in said.splitlines()) <= 100


def test_command_line_refuses_what_makes_no_sense():
    for wrong in (["--gpus", "8", "--cached", "4000"], ["--gpus", "8", "--calibrate", "nowhere.json"]):
        done = CliRunner().invoke(app, [*COMMAND, *wrong])
        assert done.exit_code == 1 or done.exception is not None
