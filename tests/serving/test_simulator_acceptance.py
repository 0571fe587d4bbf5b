"""The eight things that a simulator of serving engines must show (serving.md 6), and the field reports behind them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from real_data import real

from tenfold.serving import roofline
from tenfold.serving.memory import deployment
from tenfold.serving.simulator import from_trace, repeated, simulate, steady, timed

LLAMA8 = deployment("meta-llama/Llama-3.1-8B", "h100-sxm")
MISTRAL = deployment("mistralai/Mistral-7B-v0.1", "a100-80")


def mixed(count, rate, *, seed=0, most=2000):
    """Log-normal lengths, as traffic has them."""
    random = np.random.default_rng(seed)
    lengths = {
        "input_tokens": np.clip(random.lognormal(6.0, 1.0, count), 8, most).astype(np.int64),
        "output_tokens": np.clip(random.lognormal(4.5, 0.7, count), 2, 500).astype(np.int64),
    }
    return timed(steady(count, 1, 1)._replace(**lengths), rate, seed=seed)


# 1: no token waits longer than one step of a full budget


@pytest.mark.parametrize("budget", [256, 512, 2048])
def test_no_stall_is_longer_than_a_full_step(budget):
    arrivals = mixed(1500, 12.0)
    out = simulate(LLAMA8, arrivals, budget=budget, max_num_seqs=128)
    assert out.tally["preempted"][0] == 0
    cost, most = roofline.step_cost(LLAMA8), 2500
    longest = roofline.decode_s(LLAMA8, cost, 128, most) + roofline.prefill_s(cost, budget, most)
    # every chunk reads again what came before it, and a step holds a few chunks at most where they are 8 tokens or more
    longest += cost.kv_byte_s * LLAMA8.kv_bytes(most) * budget / 8
    assert 0 < out.requests["gap_s"].max() <= longest
    # and a step that is all prompt is reached, so that the bound says something
    assert out.requests["gap_s"].max() >= roofline.prefill_s(cost, budget)


# 2: prefill first stalls whoever is decoded for as long as the prompts take (incidents I14 to I16)


def stall(prompts, tokens, policy="prefill_first"):
    """The longest gap of a request that is decoded while prompts arrive together."""
    arrivals = steady(1 + prompts, tokens, 2)
    arrivals = arrivals._replace(
        input_tokens=np.array([100] + [tokens] * prompts),
        output_tokens=np.array([400] + [2] * prompts),
        arrival_s=np.array([0.0] + [0.5] * prompts),
    )
    out = simulate(LLAMA8, arrivals, budget=2048, max_num_seqs=64, policy=policy)
    return float(out.requests["gap_s"][0]), out


def test_prefill_first_stalls_for_the_whole_prompt():
    cost = roofline.step_cost(LLAMA8)
    for tokens in (2200, 9100, 52_900):
        gap_s, _ = stall(1, tokens)
        assert gap_s == pytest.approx(roofline.prefill_s(cost, tokens), rel=0.15)
    # I16: 9.1k tokens 0.80 s, 52.9k 7.6 s: 9.5 times as long for 5.8 times as many
    assert 5.8 < stall(1, 52_900)[0] / stall(1, 9100)[0] < 9.5
    # linear in the prompts that come together (I16)
    gaps = [stall(count, 2000)[0] for count in (1, 2, 4)]
    assert gaps[1] / gaps[0] == pytest.approx(2, rel=0.1)
    assert gaps[2] / gaps[0] == pytest.approx(4, rel=0.1)
    # chunked, it is at most that of the last chunk, which attends to all before it and reads it again (I15: 200k)
    longest = roofline.prefill_s(cost, 2048, 200_000) + cost.kv_byte_s * LLAMA8.kv_bytes(200_000)
    gap_s, _ = stall(1, 200_000, "chunked")
    assert gap_s <= longest + roofline.decode_s(LLAMA8, cost, 1, 500)
    assert stall(1, 200_000)[0] > 50 * gap_s


# 3: a larger budget waits less for the first token and stalls more


def test_a_larger_budget_lowers_ttft_and_raises_stalls():
    lengths = np.where(np.arange(1200) % 6 == 0, 6000, 300)
    arrivals = timed(steady(1200, 1, 120)._replace(input_tokens=lengths), 7.0, seed=2)
    outs = [simulate(LLAMA8, arrivals, budget=budget, max_num_seqs=256) for budget in (256, 512, 1024, 2048, 4096)]
    first = [float(np.mean(out.ttft_s)) for out in outs]
    stalls = [out.itl_s(0.99) for out in outs]
    assert first == sorted(first, reverse=True)
    assert stalls == sorted(stalls)
    assert stalls[-1] > 3 * stalls[0]


# 4: a budget whose activations take the KV cache's memory costs throughput (vllm PR 17885)


def test_too_large_a_budget_costs_throughput_where_memory_is_short():
    def rate(tp, budget):
        one = deployment("meta-llama/Llama-3.1-70B", "a100-80", tp)
        # 80 GiB, of which the driver leaves 85 GB: by its name plate the card has no room for 70B in 16 bits on two
        one = one._replace(gpu=one.gpu.model_copy(update={"memory_gb": 85.0}))
        return simulate(one, steady(400, 2000, 200), budget=budget, max_num_seqs=256, concurrency=400).tokens_per_s

    # reported: +36 % when set back to 2,048 with two GPUs, -2 % with four
    assert 1.2 < rate(2, 2048) / rate(2, 16_384) < 1.5
    assert 0.95 < rate(4, 2048) / rate(4, 16_384) < 1.05


# 5: tokens are conserved, memory is never exceeded, recomputation only adds


@pytest.mark.parametrize("policy", ["chunked", "prefill_first"])
@pytest.mark.parametrize("pool", [4000, 20_000, None])
def test_conservation(policy, pool):
    arrivals = mixed(800, 15.0, seed=4)
    out = simulate(LLAMA8, arrivals, budget=1024, max_num_seqs=64, policy=policy, kv_pool_tokens=pool)
    requests, tally = out.requests, out.tally[0]
    assert (requests["generated"] == requests["output"]).all()
    needed = int((requests["input"] + requests["output"] - 1).sum())
    assert int(tally["prefilled"] + tally["decoded"]) == needed + int(requests["recomputed"].sum())
    assert (requests["recomputed"] >= 0).all()
    assert out.kv_peak_ratio <= 1
    assert (requests["recomputed"][requests["preempted"] == 0] == 0).all()
    assert (pool is None) == (out.recompute_ratio == 0)
    assert int(out.gaps.sum()) == int((requests["output"] - 1).sum())
    assert out.requests["first_s"].min() > 0
    assert (out.queue_s >= 0).all()


# 6: more clients than memory (incident I10: 256 clients, 77,088 KV tokens, Qwen2.5-7B on an A10G)


def test_clients_beyond_the_kv_cache_wait():
    one = deployment("Qwen/Qwen2.5-7B", "a10g")
    pool = {"budget": 2048, "max_num_seqs": 256, "kv_pool_tokens": 77_088}
    out = simulate(one, steady(3000, 900, 200), concurrency=256, **pool)
    points = out.series()
    # reported: about 72 running and 184 waiting, first tokens after 60 s in the median, some 10 % of requests preempted
    assert np.median([point["running"] for point in points]) == pytest.approx(72, rel=0.1)
    assert np.median([point["waiting"] for point in points]) == pytest.approx(184, rel=0.1)
    assert 20 < np.median(out.ttft_s) < 90
    assert np.median(out.queue_s) / np.median(out.ttft_s) > 0.9
    assert 0.05 < out.tally["preempted"][0] / 3000 < 0.3
    # the way out: as many as memory holds, no slower
    held = int(77_088 / (900 + 200))
    capped = simulate(one, steady(3000, 900, 200), concurrency=held, **pool)
    assert capped.tally["preempted"][0] == 0
    assert np.median(capped.ttft_s) < 2
    assert capped.tokens_per_s > 0.98 * out.tokens_per_s


# 7: in a closed loop it agrees with the closed form


@pytest.mark.parametrize(
    ("model", "gpu", "tp", "weights", "batch", "lengths"),
    [
        ("meta-llama/Llama-3.1-8B", "h100-sxm", 1, "bf16", 1, (512, 128)),
        ("meta-llama/Llama-3.1-8B", "h100-sxm", 1, "fp8", 64, (1000, 1000)),
        ("meta-llama/Llama-3.1-8B", "l4", 1, "fp8", 16, (500, 200)),
        ("meta-llama/Llama-3.1-70B", "h100-sxm", 4, "fp8", 32, (2000, 500)),
        ("meta-llama/Llama-3.1-70B", "b200", 2, "fp4", 128, (1000, 1000)),
        ("Qwen/Qwen3-32B", "h200-sxm", 2, "bf16", 48, (4000, 300)),
        ("Qwen/Qwen3-32B", "a100-80", 4, "bf16", 8, (8000, 100)),
    ],
)
def test_closed_loop_agrees_with_the_closed_form(model, gpu, tp, weights, batch, lengths):
    one = deployment(model, gpu, tp, weights)
    out = simulate(one, steady(max(20 * batch, 40), *lengths), budget=2048, max_num_seqs=256, concurrency=batch)
    assert out.tally["preempted"][0] == 0
    inner = slice(3 * batch, -2 * batch)  # between the common start and the end
    done = np.sort(out.requests["last_s"])[inner]
    rate = (done.size - 1) * lengths[1] / (done[-1] - done[0])
    expected = roofline.speed(one, batch, *lengths)
    assert rate / tp == pytest.approx(expected.tokens_per_s_per_gpu, rel=0.1)
    assert np.median(out.tpot_s[inner]) == pytest.approx(expected.tpot_s, rel=0.1)


# 8: one request at a time, it is the queue M/G/1


def test_one_at_a_time_is_an_m_g_1_queue():
    random = np.random.default_rng(5)
    count = 60_000
    arrivals = timed(steady(count, 1, 1)._replace(output_tokens=random.integers(1, 6, count)), 1.0, seed=6)
    service = [
        float(simulate(LLAMA8, steady(1, 1, tokens), budget=1, max_num_seqs=1).e2e_s[0]) for tokens in range(1, 6)
    ]
    takes = np.array(service)[arrivals.output_tokens - 1]
    rate = 0.6 / takes.mean()
    arrivals = arrivals._replace(arrival_s=arrivals.arrival_s / rate)
    out = simulate(LLAMA8, arrivals, budget=1, max_num_seqs=1)
    # each wait, by Lindley's recursion
    wait, waits = 0.0, [0.0]
    for took, gap in zip(takes[:-1], np.diff(arrivals.arrival_s), strict=True):
        wait = max(0.0, wait + took - gap)
        waits.append(wait)
    np.testing.assert_allclose(out.queue_s, waits, atol=1e-6)
    # and on average, by Pollaczek and Khinchine
    load = rate * takes.mean()
    assert out.queue_s.mean() == pytest.approx(rate * (takes**2).mean() / (2 * (1 - load)), rel=0.08)


# Sarathi-Serve's ordering on the Azure conversation trace (serving.md 6: prototype figures)


@pytest.fixture(scope="module")
def conv(tmp_path_factory):
    with real("azure", "AzureLLMInferenceTrace_conv.csv").open() as lines:
        head = tmp_path_factory.mktemp("azure") / "conv.csv"
        head.write_text("".join(itertools.islice(lines, 2001)))
    return from_trace(head)


def served(conv, rate, policy, budget, count=2000):
    return simulate(MISTRAL, timed(repeated(conv, count), rate, seed=1), budget=budget, max_num_seqs=128, policy=policy)


@pytest.mark.real_data
def test_chunks_keep_tokens_coming_on_the_azure_trace(conv):
    first, small, large = (
        served(conv, 4.0, *how) for how in (("prefill_first", 4096), ("chunked", 512), ("chunked", 2048))
    )
    # prototype: p99 0.230 s and a stall of 2.34 s; 0.043 and 0.045 s; 0.157 s
    assert 0.15 < first.itl_s(0.99) < 0.3
    assert 1.5 < first.itl_s(1) < 3.5
    assert 0.03 < small.itl_s(0.99) < 0.065
    assert small.itl_s(1) < 0.07
    assert 0.12 < large.itl_s(0.99) < 0.2
    # small chunks cost time to the first token, but not its order of magnitude
    assert 1.1 < np.median(small.ttft_s) / np.median(first.ttft_s) < 2


@pytest.mark.real_data
def test_capacity_is_in_sarathis_order_on_the_azure_trace(conv):
    def capacity(policy, budget):
        """The highest rate with p99 of the time between tokens at most 0.1 s and a median delay of at most 2 s."""
        rate, keeps = 0.5, True
        while keeps:
            rate += 0.5
            out = served(conv, rate, policy, budget)
            keeps = out.itl_s(0.99) <= 0.1 and np.median(out.queue_s) <= 2
        return rate - 0.5

    whole, small = capacity("prefill_first", 4096), capacity("chunked", 512)
    assert 1.5 <= whole <= 3  # prototype: about 2
    assert 5 <= small <= 10  # prototype: 8 to 9
    assert small / whole >= 2.5  # prototype: 4, the paper on other traces: 2.6
