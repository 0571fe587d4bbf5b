"""Files of events and samples, and samples laid beside requests."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from tenfold.errors import AssumptionError
from tenfold.latency.engines import by_minute, filled
from tenfold.latency.records import Event, Labels, Samples
from tenfold.latency.sidefiles import read_events, read_metrics, read_samples

from .windows_made import made_pair

NOON = datetime(2026, 9, 8, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def file(tmp_path):
    def make(text, name="side.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return make


EVENTS_CSV = """ts,kind,what,where
2026-09-08T12:01:00Z,scale,"8 -> 6, by hand",
2026-09-08T12:00:00Z,deploy,5512,eu-1
"""
EVENTS_JSON = """{"ts": "2026-09-08T14:01:00+02:00", "kind": "scale", "what": "8 -> 6, by hand"}

{"ts": 1788868800, "kind": "deploy", "what": 5512, "where": "eu-1", "by": "ci"}
"""


@pytest.mark.parametrize(("text", "lines"), [(EVENTS_CSV, (3, 2)), (EVENTS_JSON, (3, 1))])
def test_events_are_read_in_order_of_time_with_their_lines(file, text, lines):
    assert read_events(file(text)) == (
        Event(NOON, "deploy", "5512", "eu-1", lines[0]),
        Event(NOON + 60, "scale", "8 -> 6, by hand", "", lines[1]),
    )


def test_a_header_alone_is_no_event(file):
    assert read_events(file("ts,kind,what,where\n")) == ()


@pytest.mark.parametrize("said", ["2026-09-08T12:00:00Z", "2026-09-08T14:00", NOON, NOON * 1000])
def test_times_are_instants_or_seconds_or_milliseconds(file, said):
    samples = read_samples(file(f"ts,replica,metric,value\n{said},a,clock_mhz,1980\n"), zone="Europe/Berlin")
    assert samples.ts_s.tolist() == [NOON]
    assert (samples.replica.tolist(), samples.metric.tolist(), samples.value.tolist()) == (["a"], ["clock_mhz"], [1980])


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        (read_events, "ts,kid,what\n", 'side.csv, line 1: no "kind". Did you mean "kid"? A line holds: ts, kind, what'),
        (read_events, '{"ts": 1, "kind": "deploy"}', 'side.csv, line 1: no "what"'),
        (read_events, "ts,kind,what\nsoon,deploy,1\n", 'side.csv, line 2: ts "soon": write a day such as'),
        (read_events, "ts,kind,what\n2026-09-08,deploy,1,2\n", "side.csv, line 2: 4 cells under 3 columns"),
        (read_events, '{"ts": 1,\n', "side.csv, line 1: is no JSON object"),
        (read_events, "\n", "is empty. Write CSV with the columns ts, kind, what, where"),
        (read_samples, "ts,metric,value\n1,power,high\n", "side.csv, line 2: \"value\" is no number: 'high'"),
        (read_samples, "ts,metric,value\n1,,3\n", 'side.csv, line 2: "metric" is empty'),
        (read_metrics, "vllm:num_requests_running 3\n", "side.csv, line 1: vllm:num_requests_running has no time"),
        (read_metrics, "# HELP x\nvllm:x{\n", "side.csv, line 2: no sample"),
        (
            read_events,
            'ts,kind,what\n1,deploy,"x\n2,deploy,y\n',
            "side.csv, line 2: is no CSV (unexpected end of data)",
        ),
        (read_events, 'ts,kind,what\n1,deploy,"x\n2,deploy,"y\n', "side.csv, line 2: is no CSV"),
        (read_events, "ts,kind,what,TS\n1,deploy,x,2\n", 'side.csv, line 1: two columns "ts"'),
        (read_events, f'{{"ts": {"9" * 400}, "kind": "a", "what": "b"}}', "side.csv, line 1: ts"),
        (read_events, f'{{"ts": {"[" * 2000}{"]" * 2000}}}', "side.csv, line 1: is no JSON object"),
        (read_events, '{"ts": [1], "kind": "a", "what": "b"}', 'side.csv, line 1: "ts" is no time: [1]'),
        (read_metrics, '{"ts": 1, "m": [1, 2]}', 'side.csv, line 1: "m" is no number: [1, 2]'),
        (read_metrics, '{"ts": 1, "m": {"a": 1}}', 'side.csv, line 1: "m" is no number'),
        (read_metrics, f"x 3 {'9' * 400}\n", "side.csv, line 1: x has no time of this calendar"),
    ],
)
def test_what_cannot_be_read_is_named_with_file_line_and_key(file, read, text, says):
    with pytest.raises(AssumptionError) as refused:
        read(file(text))
    assert says in str(refused.value)


def test_a_line_ends_at_its_end_and_no_text_drives_a_terminal(file):
    text = 'ts,kind,what,where\r\n1,deploy,a\u2028b\x85c,"pod\x1b[31m\nx"\r\n2,deploy,d,\r\n'
    assert read_events(file(text)) == (
        Event(1, "deploy", "a b c", r"pod\x1b[31m x", 2),
        Event(2, "deploy", "d", "", 4),
    )
    samples = read_metrics(file('{"ts": 1, "pod": "a\\u0007", "m\\u009b": 12345678}'))
    assert (samples.replica.tolist(), samples.metric.tolist()) == ([r"a\x07"], [r"m\x9b"])


def test_a_value_of_eight_digits_is_no_day(file):
    assert read_metrics(file("prompt_tokens_total 12345678 1788868800000\n")).value.tolist() == [12_345_678]
    assert read_samples(file("ts,metric,value\n20260908,power,20260908\n")).value.tolist() == [20_260_908]


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(AssumptionError, match=r"none\.csv: cannot read it: no such file"):
        read_events(tmp_path / "none.csv")


EXPOSITION = """# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",instance="pod-a:8000"} 3.0 1788868800000
vllm:num_requests_running{engine="1",instance="pod-a:8000"} 4.0 1788868800000
vllm:gpu_cache_usage_perc{engine="0",instance="pod-a:8000"} 0.5 1788868800000
vllm:gpu_cache_usage_perc{engine="1",instance="pod-a:8000"} 0.7 1788868800000
vllm:num_preemptions_total{instance="pod-a:8000"} 10 1788868800000
vllm:num_preemptions_total{instance="pod-a:8000"} 14 1788868830000
vllm:num_preemptions_total{instance="pod-a:8000"} 2 1788868850000
vllm:e2e_request_latency_seconds{instance="pod-a:8000"} NaN 1788868800000
"""
SNAPSHOTS = """{"ts": 1788868800, "pod": "pod-a", "sglang:num_running_reqs": 7, "sglang:token_usage": 0.6}
{"ts": 1788868800, "pod": "pod-b", "sglang:num_running_reqs": 1}
"""


def test_the_text_of_an_engine_and_snapshots_of_it_say_the_same(file):
    replicas = Labels(np.array([0, 0, 1, -1], np.int32), ("pod-a", "pod-b"))
    ts = np.array([NOON + 59.9, NOON + 60, NOON + 1, NOON + 1])
    told = read_metrics(file(EXPOSITION, "vllm.prom"))
    snapshots = read_metrics(file(SNAPSHOTS, "sglang.jsonl"))
    nan = np.nan
    np.testing.assert_array_equal(by_minute(told, "running", replicas, ts), [7, nan, nan, nan])
    np.testing.assert_array_equal(by_minute(snapshots, "running", replicas, ts), [7, nan, 1, nan])
    for samples in (told, snapshots):
        np.testing.assert_allclose(by_minute(samples, "kv_usage_ratio", replicas, ts), [0.6, nan, nan, nan])
    # 4 more, then a fresh start at 2
    np.testing.assert_array_equal(by_minute(told, "preemptions_total", replicas, ts), [6, nan, nan, nan])


def test_values_by_minute_are_means_of_the_replicas_own_samples():
    rng = np.random.default_rng(5)
    size = 300
    samples = Samples(
        np.sort(rng.uniform(0, 1200, size)),
        rng.choice(["a", "b", ""], size),
        rng.choice(["power_w", "clock_mhz"], size),
        rng.normal(size=size),
    )
    codes = rng.integers(-1, 3, 200).astype(np.int32)
    ts = rng.uniform(0, 1300, 200)
    found = by_minute(samples, "power_w", Labels(codes, ("a", "b", "c")), ts)
    for code, at, value in zip(codes, ts, found, strict=True):
        # replica c has no samples: those of all stand for it
        owner = "ab"[code] if 0 <= code < 2 else ""
        mine = (samples.replica == owner) & (samples.metric == "power_w") & (samples.ts_s // 60 == at // 60)
        if mine.any():
            assert value == pytest.approx(samples.value[mine].mean())
        else:
            assert np.isnan(value)


def test_what_the_log_lacks_of_load_is_filled_from_the_metrics():
    side = {"ts_s": np.arange(0, 240, 1.0), "replica": "pod-a", "waiting": 2.0}
    later = {**side, "ts_s": side["ts_s"] + 240}
    told = [(t, "pod-a", "num_requests_running", 5.0 if t < 240 else 9.0) for t in range(0, 480, 30)]
    pair = filled(made_pair(side, later, metrics=[*told, (0.0, "pod-b", "kv_cache_usage_perc", 0.4)]))
    assert (pair.before.running == 5).all()
    assert (pair.after.running == 9).all()
    assert pair.before.kv is None
    assert (pair.before.waiting == 2).all()
    assert pair.notes == (
        "running is filled from the metrics file, by replica and minute (100% of requests before, 100% after)",
        "kv_usage_ratio: no sample of the metrics file is of a replica and minute of either window",
    )
    assert "running" not in pair.missing
    assert filled(made_pair(side, later)).before.running is None
