"""What was under way beside each request, held against a look at every other request."""

import numpy as np

from tenfold.latency.records import Labels, Window
from tenfold.latency.under_way import under_way


def drawn(seed=1, count=120):
    random = np.random.default_rng(seed)
    ts = np.sort(random.uniform(0, 60, count)) + 1e9
    ttft = random.exponential(0.5, count) + 0.01
    output = random.integers(1, 60, count).astype(float)
    e2e = ttft + np.where(output > 1, output * 0.05, 0.0)
    ttft[5] = e2e[5] = np.nan
    codes = random.integers(0, 3, count).astype(np.int32)
    return Window(
        name="before", since_s=1e9, until_s=1e9 + 60, ts_s=ts, ok=np.isfinite(ttft), ttft_s=ttft, e2e_s=e2e,
        input=random.integers(10, 500, count).astype(float), output=output,
        queue_s=np.minimum(ttft, random.exponential(0.1, count)), replica=Labels(codes, ("a", "b", "c")),
    )  # fmt: skip


def test_counts_are_those_of_a_look_at_every_other_request():
    window = drawn()
    found = under_way(window, window.input)
    first, end = window.ts_s + window.ttft_s, window.ts_s + window.e2e_s
    for one in range(window.size):
        if not window.ok[one]:
            assert np.isnan(found.at_arrival[one])
            continue
        others = [
            other
            for other in range(window.size)
            if other != one and window.ok[other] and window.replica.codes[other] == window.replica.codes[one]
        ]
        arrival = window.ts_s[one]
        start = arrival + window.queue_s[one]
        span = end[one] - first[one]
        assert found.at_arrival[one] == sum(window.ts_s[o] < arrival < end[o] for o in others)
        assert found.at_start[one] == sum(first[o] < start < end[o] for o in others)
        if span == 0:
            assert np.isnan(found.decoding[one])
            continue
        shared = {o: max(0.0, min(end[o], end[one]) - max(first[o], first[one])) for o in others}
        held = {o: window.input[o] + window.output[o] / 2 for o in others}
        assert np.isclose(found.decoding[one], sum(shared.values()) / span, atol=1e-5)
        assert np.isclose(found.context[one], sum(shared[o] * held[o] for o in others) / span, atol=1e-3)
        tokens = sum(window.input[o] for o in others if first[one] < first[o] <= end[one])
        assert np.isclose(found.between[one], tokens / (window.output[one] - 1))
