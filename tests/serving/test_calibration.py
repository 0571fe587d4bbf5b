"""Calibration: result files of the clients that people have, one measured point, and what is refused."""

from __future__ import annotations

import json
import math

import pytest
from real_data import real

from tenfold.errors import ServingError
from tenfold.serving import calibration, roofline, specs
from tenfold.serving.calibration import Given, Point, calibrate, read
from tenfold.serving.memory import Deployment

VLLM = {
    "date": "20261101-120000", "backend": "vllm", "model_id": "meta-llama/Llama-3.1-70B", "num_prompts": 640,
    "request_rate": "inf", "max_concurrency": 64, "duration": 236.5, "completed": 640, "failed": 0,
    "total_input_tokens": 655_360, "total_output_tokens": 655_360, "output_throughput": 2771.0,
    "mean_tpot_ms": 22.7, "median_tpot_ms": 22.6, "mean_ttft_ms": 417.0,
}  # fmt: skip
SGLANG = {
    "backend": "sglang", "dataset_name": "random", "request_rate": math.inf, "max_concurrency": 64,
    "duration": 236.5, "completed": 640, "total_input_tokens": 655_360, "total_output_tokens": 655_360,
    "total_output_tokens_retokenized": 655_100, "output_throughput": 2771.0, "mean_tpot_ms": 22.7,
    "mean_ttft_ms": 417.0, "mean_e2e_latency_ms": 23_640.0, "concurrency": 63.9,
}  # fmt: skip
AIPERF = {
    "request_count": {"unit": "requests", "avg": 640.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1024.0},
    "output_sequence_length": {"unit": "tokens", "avg": 1024.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 2771.0},
    "inter_token_latency": {"unit": "ms", "avg": 22.7},
    "time_to_first_token": {"unit": "ms", "avg": 417.0},
    "input_config": {"loadgen": {"concurrency": 64}},
}
OWN = {"concurrency": 64, "input_tokens": 1024, "output_tokens": 1024, "tokens_per_s": 2771}


def replica(model="llama-3.1-70b", gpu="h200-sxm", tp=2, weights="fp8", kv="bf16"):
    return Deployment(specs.model(model), specs.gpu(gpu), tp, specs.WEIGHTS[weights], specs.KV[kv])


def written(path, *rows):
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("row", [VLLM, SGLANG, AIPERF, OWN], ids=["vllm", "sglang", "aiperf", "own"])
def test_every_client_gives_the_same_point(tmp_path, row):
    (point,) = read(written(tmp_path / "result.json", row))
    assert point[:4] == (64, 1024, 1024, 2771)
    if row is not OWN:
        assert (point.tpot_s, point.ttft_s) == (pytest.approx(0.0227), pytest.approx(0.417))
        assert point.requests == 640
    found = calibrate(replica(), [point])
    predicted = roofline.speed(replica(), 64, 1024, 1024)
    assert found.scale == pytest.approx(2771 / 2 / predicted.tokens_per_s_per_gpu)
    scaled = roofline.speed(replica(), 64, 1024, 1024, scale=found.scale)
    assert scaled.tokens_per_s_per_gpu == pytest.approx(2771 / 2)
    assert found.source == str(tmp_path / "result.json")


def test_json_lines_are_points_and_weigh_alike(tmp_path):
    rows = [{**SGLANG, "output_throughput": rate} for rate in (2000.0, 2771.0, 2900.0)]
    points = read(written(tmp_path / "runs.jsonl", *rows))
    assert [point.source.rpartition(", ")[2] for point in points] == ["line 1", "line 2", "line 3"]
    found = calibrate(replica(), points)
    assert found.scale == pytest.approx(found.ratios[1])
    assert found.source == str(tmp_path / "runs.jsonl")
    two = calibrate(replica(), points[1:])  # between two, their geometric mean
    assert two.scale == pytest.approx(math.sqrt(two.ratios[0] * two.ratios[1]))


def test_requests_under_way_by_littles_law_where_a_rate_was_sent(tmp_path):
    sent = {key: value for key, value in VLLM.items() if key != "max_concurrency"}
    rated = {**sent, "request_rate": 2.7, "mean_e2el_ms": 23_650.0}
    (point,) = read(written(tmp_path / "a.json", rated))
    assert point.concurrency == pytest.approx(640 * 23.65 / 236.5)
    with pytest.raises(ServingError, match=r"b\.json: does not say its concurrency; give it \(--concurrency, or"):
        read(written(tmp_path / "b.json", {**sent, "request_rate": 2.7}))
    (point,) = read(tmp_path / "b.json", Given(concurrency=60))
    assert point.concurrency == 60
    (point,) = read(written(tmp_path / "c.json", sent))  # all at once
    assert point.concurrency == 640


def test_a_time_an_output_token_calibrates_too(tmp_path):
    row = {"input_tokens": 1024, "output_tokens": 1024, "concurrency": 64, "tpot_ms": 22.7}
    found = calibrate(replica(), read(written(tmp_path / "own.json", row)))
    assert found.scale == pytest.approx(roofline.speed(replica(), 64, 1024, 1024).tpot_s / 0.0227)


def test_a_static_batch_of_sglang(tmp_path):
    row = {
        "run_name": "x", "batch_size": 16, "input_len": 1024, "output_len": 256, "prefill_latency": 0.9,
        "median_decode_latency": 0.02, "total_latency": 6.0, "overall_throughput": 3413.3,
    }  # fmt: skip
    (point,) = read(written(tmp_path / "one.jsonl", row))
    assert point[:4] == (16, 1024, 256, pytest.approx(16 * 256 / 6.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total_input_tokens": None}, "needs total_input_tokens"),
        ({"completed": 0}, "completed is 0, not a number above zero"),
        ({"output_throughput": "fast"}, "output_throughput is 'fast', not a number above zero"),
        ({"output_throughput": True}, "output_throughput is True"),
        ({"mean_tpot_ms": -1}, "mean_tpot_ms is -1"),
        ({"completed": 10**400}, f"completed is 1{'0' * 59}, not a number above zero"),
    ],
)
def test_a_key_that_cannot_be_used_is_named(tmp_path, change, message):
    path = written(tmp_path / "bad.json", {**VLLM, **change})
    with pytest.raises(ServingError, match=f"bad.json: {message}"):
        read(path)


def test_files_that_are_no_results_are_refused(tmp_path):
    path = tmp_path / "x.json"
    with pytest.raises(ServingError, match=r"x\.json: cannot be read"):
        read(path)
    for text, message in (
        ("", "holds no results"),
        ("hello", "line 1: not JSON"),
        ("[" * 50_000, "line 1: not JSON"),
        ("[1]", "not a JSON object"),
        ('{"a": 1}', "no known benchmark result"),
        ('{"output_token_throughput": 5, "input_config": {"loadgen": {"concurrency": 1}}}', "needs input_sequence_len"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ServingError, match=message):
            read(path)


def test_what_does_not_belong_to_the_replica_is_refused():
    point = Point(64, 1024, 1024, 2771, source="run.json")
    with pytest.raises(ServingError, match=r'run\.json: measures "llama-3\.1-8b", not meta-llama/Llama-3\.1-70B'):
        calibrate(replica(), [point._replace(model="llama-3.1-8b")])
    assert calibrate(replica(), [point._replace(model="/models/ours")]).scale > 0  # a name of one's own
    with pytest.raises(ServingError, match=r"run\.json: cannot be true of 1 x h200-sxm: .* at most 67\."):
        calibrate(replica(tp=1), [Point(1, 512, 256, 120, source="run.json")])
    with pytest.raises(ServingError, match="does not fit on 1 x h100-sxm"):
        calibrate(replica(gpu="h100-sxm", tp=1, weights="bf16"), [point])
    with pytest.raises(ServingError, match="points of several engines: choose one with --engine .sglang, vllm."):
        calibrate(replica(), [point._replace(engine="vllm"), point._replace(engine="sglang")])
    with pytest.raises(ServingError, match="without a measured point"):
        calibrate(replica(), [])
    with pytest.raises(ServingError, match="holds neither tokens_per_s nor tpot_s"):
        calibrate(replica(), [Point(64, 1024, 1024)])


def test_notes_say_what_lowers_a_measured_rate():
    (crowd,) = calibrate(replica(), [Point(5000, 4096, 512, 2000)]).notes
    assert "fit in memory" in crowd
    (short,) = calibrate(replica(), [Point(64, 1024, 1024, 2000, requests=100)]).notes
    assert "filling and emptying" in short
    assert calibrate(replica(), [Point(64, 1024, 1024, 2000, requests=640)]).notes == ()
    # as many as fit: an offline table
    assert calibrate(replica(), [Point(math.inf, 1024, 1024, 5000)]).notes == ()


@pytest.fixture
def bench():
    return real("bench")


@pytest.mark.real_data
def test_a_stored_result_of_inferencex(bench):
    (point,) = read(bench / "inferencex_glm5_fp8_vllm_tp8_isl10240_osl128_conc16.json")
    assert point[:4] == (16, 10_240, 128, pytest.approx(95.416, abs=1e-3))
    assert (point.tpot_s, point.ttft_s, point.requests) == (
        pytest.approx(0.14105, abs=1e-5),
        pytest.approx(3.138, abs=1e-3),
        160,
    )


@pytest.mark.real_data
def test_stored_requests_and_their_summary_say_the_same(bench):
    (lines,) = read(bench / "ree2raz_raw_vllm_short_c4_r1.jsonl", Given(concurrency=4, input_tokens=128))
    summary = read(bench / "ree2raz_summary.jsonl", Given(input_tokens=128, engine="vllm"))
    first = next(point for point in summary if point.concurrency == 4 and point.output_tokens == 128)
    assert lines.tokens_per_s == pytest.approx(first.tokens_per_s, rel=1e-3)
    assert (first.tpot_s, first.ttft_s) == (pytest.approx(0.06, rel=0.02), pytest.approx(0.1228, abs=1e-3))  # seconds
    l4 = replica("Qwen2.5-7B-Instruct", "l4", 1, "fp16", "fp16")
    assert calibrate(l4, [lines]).scale == pytest.approx(1, abs=0.05)
    with pytest.raises(ServingError, match="needs? .*concurrency|does not say its concurrency"):
        read(bench / "ree2raz_raw_vllm_short_c4_r1.jsonl")
    # the summary mixes runs on another card into the same engine: an L4 cannot give 112 tokens a second and request
    with pytest.raises(ServingError, match="cannot be true of 1 x l4"):
        calibrate(l4, summary)
    with pytest.raises(ServingError, match="several engines"):
        calibrate(l4, read(bench / "ree2raz_summary.jsonl", Given(input_tokens=128)))
    with pytest.raises(ServingError, match='no point of engine "tgi"; it holds llamacpp'):
        read(bench / "ree2raz_summary.jsonl", Given(input_tokens=128, engine="tgi"))
    with pytest.raises(ServingError, match="line 1: does not say its input_tokens"):
        read(bench / "ree2raz_summary.jsonl")


@pytest.mark.real_data
def test_every_stored_file_is_read(bench):
    for path in bench.glob("*"):
        assert read(path, Given(concurrency=4, input_tokens=128)), path.name
    assert calibration.read(bench / "ree2raz_raw_llamacpp_short_c4_r1.jsonl", Given(4, 128))[0].ttft_s is None
