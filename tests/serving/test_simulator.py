"""The simulator held against a second, slow one, token by token, and against cases worked by hand."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from decimal import Decimal

import numpy as np
import oracle_simulator
import pytest

from tenfold.errors import ServingError
from tenfold.extras import MissingExtraError
from tenfold.serving import simulator
from tenfold.serving.memory import deployment
from tenfold.serving.roofline import step_cost
from tenfold.serving.simulator import Arrivals, Patience, Pools, jit, simulate, steady, timed

ONE = deployment("meta-llama/Llama-3.1-8B", "h100-sxm")
# layers that look back to the start; with windows and experts; with states; shared by two GPUs
ALL = (
    ONE,
    deployment("openai/gpt-oss-20b", "h100-sxm"),
    deployment("Qwen/Qwen3-Next-80B-A3B-Instruct", "h100-sxm", 4),
    deployment("mistralai/Mistral-7B-v0.1", "a100-80", 2),
)


def draw(seed):
    """A small random workload with every option of the simulator drawn, and the same for the slow one."""
    random = np.random.default_rng(seed)
    one = ALL[seed % len(ALL)]
    count = int(random.integers(3, 25))
    times = np.cumsum(random.exponential(random.choice([0.001, 0.02, 0.2]), count))
    inputs, outputs = random.integers(1, 400, count), random.integers(1, 120, count)
    block = int(random.choice([16, 32, 64]))
    chains = []
    for number, tokens in enumerate(inputs // block):
        shared = int(random.integers(0, tokens + 1))
        family = int(random.integers(0, 3))
        own = [(number, place) for place in range(tokens - shared)]
        chains.append([(-family - 1, place) for place in range(shared)] + own if random.random() < 0.7 else [])
    numbers = {name: place for place, name in enumerate(sorted(set(itertools.chain(*chains))))}
    arrivals = Arrivals(
        *(times - times[0], inputs, outputs, np.array([len(chain) for chain in chains], np.int64)),
        np.array([numbers[name] for name in itertools.chain(*chains)], np.int64),
        block,
    )
    most = int(random.integers(1, 9))
    pools = None
    if random.random() < 0.3:
        workers = random.integers(1, 3, 2)
        pools = Pools(
            int(workers[0]), int(workers[1]), float(random.choice([1e9, 1e10])), float(random.choice([0, 0.01]))
        )
    replicas = int(random.integers(1, 4)) if pools is None else pools.prefill + pools.decode
    common = {
        "budget": max(most, int(random.choice([8, 16, 64, 256, 2048]))),
        "policy": "chunked" if pools else str(random.choice(["chunked", "prefill_first"])),
        "concurrency": int(random.choice([0, 0, 1, 4])),
        "router": str(random.choice(["round_robin", "least_loaded"])),
        "watermark": float(random.choice([0, 0.01, 0.1])),
    }
    pool = int(random.choice([640, 800, 1600, 40_000])) + 2000 * (one is ALL[2])
    speeds = [float(speed) for speed in random.choice([1.0, 0.7, 1.3], replicas)]
    decode_speeds = [float(speed) for speed in random.choice([1.0, 0.5, 1.6], replicas)]
    patience = Patience(
        math.inf if common["concurrency"] else float(random.choice([math.inf, 0.02, 0.2])),
        int(random.integers(0, 4)),
        float(random.choice([0.0, 0.01, 0.3])),
    )
    requests = [
        oracle_simulator.Request(
            number, float(times[number] - times[0]), int(inputs[number]), int(outputs[number]), tuple(chain)
        )
        for number, chain in enumerate(chains)
    ]
    workers = {} if pools is None else {
        "workers": (pools.prefill, pools.decode), "link": pools.link_bytes_per_s, "latency": pools.latency_s
    }  # fmt: skip
    fast = simulate(
        one, arrivals, max_num_seqs=most, kv_pool_tokens=pool, replicas=replicas, replica_speed=speeds, pools=pools,
        replica_decode_speed=decode_speeds, patience=patience, **common,
    )  # fmt: skip
    slow = oracle_simulator.World(
        one, requests, most=most, pool_tokens=pool, speeds=speeds, decode_speeds=decode_speeds, block_tokens=block,
        patience=patience.first_token_s, retries=patience.retries, pause=patience.pause_s, **common, **workers,
    )  # fmt: skip
    return fast, slow.run()


def compare(seed):
    fast, slow = draw(seed)
    found = fast.requests
    requests = sorted(slow.requests, key=lambda one: (one.arrival, one.attempt, one.number))
    for name, values in {
        "arrival_s": [one.arrival for one in requests],
        "admitted_s": [one.admitted for one in requests],
        "first_s": [math.nan if one.dropped else one.token_times[0] for one in requests],
        "last_s": [math.nan if one.dropped else one.token_times[-1] for one in requests],
        "gap_s": [max(one.gaps, default=0) for one in requests],
    }.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-12, err_msg=f"{seed} {name}")
    for name, values in {
        "generated": [one.answered for one in requests],
        "preempted": [one.preempted for one in requests],
        "recomputed": [one.recomputed for one in requests],
        "cached": [one.cached for one in requests],
        "replica": [one.replica for one in requests],
        "number": [one.number for one in requests],
        "attempt": [one.attempt for one in requests],
        "met_running": [one.met[0] for one in requests],
        "met_waiting": [one.met[1] for one in requests],
        "met_pages": [one.met[2] // slow.page for one in requests],
    }.items():
        np.testing.assert_array_equal(found[name], values, err_msg=f"{seed} {name}")
    gaps = sorted(itertools.chain(*(one.gaps for one in requests)))
    assert fast.gaps.sum() == len(gaps)
    if gaps:
        assert fast.itl_s(0.5) == pytest.approx(gaps[max(0, -(-len(gaps) // 2) - 1)], rel=0.0051)
        assert fast.itl_s(1) == pytest.approx(gaps[-1])
    assert (int(fast.tally["steps"][0]), int(fast.tally["preempted"][0])) == (slow.steps, slow.preemptions)
    assert int(fast.tally["prefilled"][0] + fast.tally["decoded"][0]) == slow.tokens
    np.testing.assert_allclose(fast.replicas["busy_s"], [one.busy for one in slow.replicas])
    np.testing.assert_array_equal(fast.replicas["used"], 0)
    assert fast.kv_peak_ratio == pytest.approx(max(one.peak for one in slow.replicas) / slow.capacity)
    happened = [found[name] for name in ("preempted", "cached", "recomputed", "met_waiting", "attempt")]
    return [int(column.sum()) for column in happened]


def test_every_token_as_the_slow_simulator():
    # preemptions, shared prefixes, recomputation, queues and further attempts all occur
    assert min(np.sum([compare(seed) for seed in range(60)], axis=0)) > 0


@pytest.mark.full
def test_every_token_as_the_slow_simulator_in_numbers():
    for seed in range(60, 3000):
        compare(seed)


def one_by_one(*requests, block=0, chains=None, apart_s=100.0):
    """Requests far apart: (input, output) each."""
    chains = chains or [[] for _ in requests]
    inputs, outputs = (np.array(values) for values in zip(*requests, strict=True))
    chained = np.array([len(chain) for chain in chains])
    return Arrivals(
        np.arange(len(requests)) * apart_s,
        inputs,
        outputs,
        chained,
        np.array(list(itertools.chain(*chains)), np.int64),
        block,
    )


def test_a_prompt_in_chunks_by_hand():
    out = simulate(ONE, one_by_one((20, 3)), budget=8, max_num_seqs=1)
    cost = step_cost(ONE)
    kv_s = cost.kv_byte_s * ONE.kv_bytes(1)

    def prompt_s(tokens, earlier):
        multiplied = cost.token_s * tokens + cost.pair_s * (tokens * earlier + tokens**2 / 2)
        return max(cost.weights_s + kv_s * earlier, multiplied) + cost.overhead_s

    def decode_s(tokens):
        return max(cost.weights_s + kv_s * tokens, cost.token_s) + cost.overhead_s + cost.sequence_s

    first = prompt_s(8, 0) + prompt_s(8, 8) + prompt_s(4, 16)
    assert out.ttft_s[0] == pytest.approx(first)
    assert out.e2e_s[0] == pytest.approx(first + decode_s(21) + decode_s(22))
    assert int(out.tally["steps"][0]) == 5
    assert out.tpot_s[0] == pytest.approx((decode_s(21) + decode_s(22)) / 2)
    assert out.kv_peak_ratio * out.capacity == 2  # 22 tokens


def test_a_prefix_is_computed_once_and_its_last_token_always():
    chain = list(range(4))
    out = simulate(
        ONE, one_by_one((64, 2), (64, 2), (70, 2), (64, 2), block=16, chains=[chain, chain, chain, [0, 9, 8, 7]]),
        budget=64, max_num_seqs=1,
    )  # fmt: skip
    # of a whole prompt that is there, the last block is computed again for its last token
    assert out.requests["cached"].tolist() == [0, 48, 64, 16]
    assert int(out.tally["prefilled"][0]) == 64 + 16 + 6 + 48
    without = simulate(ONE, one_by_one((64, 2), (64, 2), block=16, chains=[chain, chain]), budget=64, max_num_seqs=1,
                       prefix_cache=False)  # fmt: skip
    assert without.requests["cached"].sum() == 0


def test_prefixes_that_nobody_holds_are_thrown_out_least_recently_used_first():
    # room for eight blocks: the third request's five push out the first one's tail, not what the second touched
    chains = [[0, 1, 2], [0, 1], [5, 6, 7, 8, 9], [0, 1, 2], [5]]
    arrivals = one_by_one((49, 1), (33, 1), (81, 1), (49, 1), (17, 1), block=16, chains=chains)
    out = simulate(ONE, arrivals, budget=2048, max_num_seqs=1, kv_pool_tokens=128, watermark=0)
    assert out.requests["cached"].tolist() == [0, 32, 0, 32, 16]


def test_memory_for_two_of_three():
    # a block each for 16 tokens: two requests of two blocks in a pool of four, the third waits for the first to leave
    arrivals = one_by_one((30, 2), (30, 2), (30, 2), apart_s=0)
    out = simulate(ONE, arrivals, budget=2048, max_num_seqs=8, kv_pool_tokens=64, watermark=0)
    assert out.requests["admitted_s"][:2].tolist() == [0, 0]
    assert out.requests["admitted_s"][2] == pytest.approx(out.requests["last_s"][0])
    assert (out.kv_peak_ratio, out.recompute_ratio) == (1.0, 0.0)


def test_the_last_admitted_starts_again_when_memory_runs_out():
    # 30 + 6 tokens are three blocks; two requests need six of five
    arrivals = one_by_one((30, 6), (30, 6), apart_s=0)
    out = simulate(ONE, arrivals, budget=2048, max_num_seqs=8, kv_pool_tokens=80, watermark=0)
    assert out.requests["preempted"].tolist() == [0, 1]
    # the 33rd token needs a third block: the second request's 32 are computed again, with its three answered ones
    assert out.requests["recomputed"].tolist() == [0, 32]
    assert out.recompute_ratio == 32 / (2 * 35 + 32)


def test_what_cannot_fit_is_refused_and_counted():
    out = simulate(ONE, one_by_one((100, 10), (1000, 10)), budget=64, max_num_seqs=4, kv_pool_tokens=160)
    assert (out.requests.size, out.refused) == (1, 1)
    assert out.goodput_ratio(ttft_s=10) == 0.5
    with pytest.raises(ServingError, match="160 tokens"):
        simulate(ONE, one_by_one((1000, 10)), budget=64, max_num_seqs=4, kv_pool_tokens=160)


def test_weights_must_fit_whatever_pool_is_stated():
    large = deployment("deepseek-v3", "l4")
    for pool in (None, 10**6):
        with pytest.raises(ServingError, match="does not fit on 1 x l4 with bf16 weights"):
            simulate(large, one_by_one((100, 10)), budget=64, max_num_seqs=4, kv_pool_tokens=pool)


def test_a_transfer_between_pools_is_in_the_second_token():
    pools = Pools(1, 1, link_bytes_per_s=1e9, latency_s=0.005)
    out = simulate(ONE, one_by_one((1000, 3)), budget=2048, max_num_seqs=4, pools=pools)
    alone = simulate(ONE, one_by_one((1000, 3)), budget=2048, max_num_seqs=4)
    assert out.ttft_s[0] == pytest.approx(alone.ttft_s[0])
    assert out.gpus == 2
    gap_s = ONE.kv_bytes(1000) / 1e9 + 0.005  # 131 MB in 131 ms
    assert out.requests["gap_s"][0] - alone.requests["gap_s"][0] == pytest.approx(gap_s, rel=1e-3)


def test_replicas_share_the_load_and_a_slow_one_gets_less_by_load():
    arrivals = timed(steady(400, 200, 50), 40.0, seed=3)
    even = simulate(ONE, arrivals, budget=2048, max_num_seqs=64, replicas=2, replica_speed=(1.0, 0.2))
    least = simulate(
        ONE, arrivals, budget=2048, max_num_seqs=64, replicas=2, replica_speed=(1.0, 0.2), router="least_loaded"
    )
    assert np.bincount(even.requests["replica"]).tolist() == [200, 200]
    assert np.bincount(least.requests["replica"])[1] < 150
    assert np.quantile(least.e2e_s, 0.95) < np.quantile(even.e2e_s, 0.95)


def test_a_host_that_decodes_at_half_speed_is_late_with_answers_only():
    asked = one_by_one((1000, 100), block=0)
    usual, slow = (
        simulate(ONE, asked, budget=2048, max_num_seqs=4, replica_decode_speed=(speed,)) for speed in (1.0, 0.5)
    )
    assert slow.ttft_s[0] == usual.ttft_s[0]
    assert slow.tpot_s[0] == pytest.approx(2 * usual.tpot_s[0])
    # speeds multiply: a slow replica whose decoding is as fast as ever is late with first tokens only
    prompts = simulate(ONE, asked, budget=2048, max_num_seqs=4, replica_speed=(0.5,), replica_decode_speed=(2.0,))
    assert prompts.ttft_s[0] == pytest.approx(2 * usual.ttft_s[0])
    assert prompts.tpot_s[0] == pytest.approx(usual.tpot_s[0])


def test_what_waits_too_long_is_given_up():
    # one at a time: the first is answered, the second is let go at the end of a step after half a second, and the
    # third, which came when the first was nearly done, is answered
    alone = simulate(ONE, one_by_one((1000, 100)), budget=2048, max_num_seqs=1)
    end_s = float(alone.e2e_s[0])
    times = np.array([0.0, 0.001, end_s - 0.001])
    asked = steady(3, 1000, 100)._replace(arrival_s=times)
    out = simulate(ONE, asked, budget=2048, max_num_seqs=1, patience=Patience(0.5))
    assert np.isnan(out.ttft_s).tolist() == [False, True, False]
    assert out.queue_s[[0, 2]].tolist() == pytest.approx([0, 0.001])
    assert 0.5 < out.queue_s[1] < 0.5 + 2 * out.tpot_s[0]
    assert int(out.tally["dropped"][0]) == 1
    assert out.goodput_ratio(tpot_s=10.0) == pytest.approx(2 / 3)
    assert out.span_s == pytest.approx(2 * end_s)
    assert out.as_dict()["ttft_ms"]["p99"] < 1e3 * end_s
    # its client asks once more after a pause, and is answered
    again = simulate(ONE, asked, budget=2048, max_num_seqs=1, patience=Patience(0.5, retries=1, pause_s=1.0)).requests
    assert again["number"].tolist() == [0, 1, 2, 1]
    assert again["attempt"].tolist() == [0, 0, 0, 1]
    assert again["arrival_s"][3] == pytest.approx(0.001 + 0.5 + 1.0)
    assert np.isnan(again["first_s"]).tolist() == [False, True, False, False]


def test_what_a_request_meets_when_it_arrives():
    asked = steady(3, 1000, 100)._replace(arrival_s=np.array([0.0, 0.1, 0.2]))
    out = simulate(ONE, asked, budget=2048, max_num_seqs=1)
    met = [out.requests[name].tolist() for name in ("met_running", "met_waiting")]
    assert met == [[0, 1, 1], [0, 0, 1]]
    assert out.requests["met_pages"][0] == 0
    # 1,000 tokens and the few of the answer that there are after 0.1 s, in blocks of 16
    assert 63 <= out.requests["met_pages"][1] <= 70


def test_metrics_goodput_and_money():
    out = simulate(ONE, one_by_one((100, 5), (100, 1), apart_s=10), budget=2048, max_num_seqs=4)
    assert np.isnan(out.tpot_s[1])
    assert out.goodput_ratio() is None
    assert out.goodput_ratio(1.0, 1.0) == 1.0
    assert out.goodput_ratio(tpot_s=1e-6) == 0.5  # one token has no time between tokens
    assert out.goodput_ratio(ttft_s=1e-6) == 0.0
    # 36 s and a bit more at 100 USD an hour are a bit more than a dollar
    span_s = 10 + out.e2e_s[1]
    assert float(out.usd(Decimal(100))) == pytest.approx(span_s / 36)
    document = out.as_dict(usd_per_gpu_hour=Decimal(100))
    assert document["usd_per_million_output"] == str(round(Decimal(document["usd"]) * 10**6 / 6, 6))


def test_a_row_a_request():
    out = simulate(ONE, one_by_one((100, 5), (100, 1), apart_s=10), budget=2048, max_num_seqs=4)
    first, second = out.frame().to_dicts()
    assert (first["arrival_s"], first["output_tokens"], second["arrival_s"], second["output_tokens"]) == (0, 5, 10, 1)
    assert first["e2e_s"] == pytest.approx(first["ttft_s"] + 4 * first["tpot_s"])
    assert (second["queue_s"], second["gap_s"], second["replica"]) == (0, 0, 0)


def test_the_time_series_is_bounded_and_shows_the_most():
    out = simulate(ONE, timed(steady(3000, 100, 20), 50.0), budget=2048, max_num_seqs=16)
    points = out.series()
    assert len(points) <= 512
    assert points[-1]["from_s"] <= out.span_s
    assert max(point["running"] for point in points) <= 16
    assert max(point["kv_ratio"] for point in points) <= out.kv_peak_ratio
    burst = simulate(ONE, steady(100, 100, 20), budget=2048, max_num_seqs=16)
    assert max(point["waiting"] for point in burst.series()) == 84


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"budget": 8, "max_num_seqs": 9}, "below max_num_seqs"),
        ({"max_num_seqs": 0}, "at least 1"),
        ({"watermark": 1.0}, "share below 1"),
        ({"concurrency": -1}, "at least 0"),
        ({"replicas": 0}, "positive numbers"),
        ({"replica_speed": (1.0, 2.0)}, "positive numbers"),
        ({"replica_speed": (0.0,)}, "positive numbers"),
        ({"replica_decode_speed": (-1.0,)}, "positive numbers"),
        ({"patience": Patience(0.0)}, "not negative"),
        ({"patience": Patience(1.0), "concurrency": 4}, "not in a closed loop"),
        ({"pools": Pools(1, 0, 1e9)}, "at least one worker"),
        ({"pools": Pools(1, 1, 1e9), "policy": "prefill_first"}, "policy chunked"),
        ({"pools": Pools(1, 1, 0.0)}, "must be positive"),
        ({"budget": 10_000_000}, "leaves no memory"),
    ],
)
def test_impossible_settings(change, said):
    with pytest.raises(ServingError, match=said):
        simulate(ONE, steady(1, 10, 10), **{"budget": 64, "max_num_seqs": 4, **change})


def test_weights_that_do_not_fit():
    with pytest.raises(ServingError, match="does not fit on 1 x h100-sxm"):
        simulate(deployment("meta-llama/Llama-3.1-70B", "h100-sxm"), steady(1, 10, 10), budget=64, max_num_seqs=4)


def test_without_the_extra_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("tenfold.extras.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"tenfold\[serving\]"):
        simulator.simulate  # noqa: B018
    with pytest.raises(AttributeError):
        simulator.nothing  # noqa: B018


def test_machine_code_is_not_kept_where_nothing_can_be_written(monkeypatch):
    def njit(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(jit, "_njit", njit)
    assert jit.entry(lambda: 7)() == 7


@pytest.mark.full
def test_a_million_requests_in_bounded_memory():
    script = """if True:
        import resource
        from tenfold.serving.memory import deployment
        from tenfold.serving.simulator import simulate, steady, timed
        out = simulate(
            deployment("meta-llama/Llama-3.1-8B", "h100-sxm"), timed(steady(1_000_000, 500, 100), 20.0), budget=2048,
            max_num_seqs=256,
        )
        print(out.requests.size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    count, peak_kib = (int(word) for word in ran.stdout.split())
    assert count == 1_000_000
    assert peak_kib < 800_000
