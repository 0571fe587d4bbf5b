"""What is asked of the simulator: logs, traces and processes; and which token budget it says to take."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from log_files import SAMPLES, chat, write
from real_data import real

import tenfold as tf
from tenfold.errors import NotEvaluable, ServingError, TenfoldError
from tenfold.replay.lru import lru_hits
from tenfold.serving import simulator
from tenfold.serving.memory import deployment
from tenfold.serving.simulator import from_database, from_trace, repeated, simulate, steady, timed

ONE = deployment("meta-llama/Llama-3.1-8B", "h100-sxm")


def test_times_at_a_rate_are_those_of_a_gamma_process():
    many = steady(50_000, 1, 1)
    for burstiness in (1.0, 4.0, 0.25):
        times = timed(many, 5.0, burstiness=burstiness, seed=1).arrival_s
        gaps = np.diff(times)
        assert times[0] == 0
        assert gaps.mean() == pytest.approx(0.2, rel=0.03)
        assert gaps.var() / gaps.mean() ** 2 == pytest.approx(burstiness, rel=0.06)
    np.testing.assert_array_equal(timed(many, 5.0, seed=1).arrival_s, timed(many, 5.0, seed=1).arrival_s)
    for rate, burstiness in ((0, 1), (1, 0), (float("nan"), 1)):
        with pytest.raises(ServingError):
            timed(many, rate, burstiness=burstiness)


def test_requests_over_and_over():
    arrivals = steady(3, 1, 1)._replace(
        input_tokens=np.array([10, 20, 30]), chained=np.array([0, 1, 1]), chain=np.array([0, 0]), block_tokens=16
    )
    again = repeated(arrivals, 5)
    assert again.input_tokens.tolist() == [10, 20, 30, 10, 20]
    assert (again.chained.tolist(), again.chain.tolist()) == ([0, 1, 1, 0, 1], [0, 0, 1])
    for wrong in (
        lambda: repeated(arrivals, 0),
        lambda: steady(0, 1, 1),
        lambda: steady(1, 0, 1),
        lambda: steady(1, 1, 0),
    ):
        with pytest.raises(ServingError, match="at least 1"):
            wrong()


def test_a_trace_with_prefixes():
    found = from_trace(SAMPLES / "mooncake_trace.jsonl")
    assert (found.input_tokens.tolist(), found.output_tokens.tolist(), found.block_tokens) == (
        [6955, 6472],
        [52, 26],
        512,
    )
    assert found.arrival_s.tolist() == [0, (30535 - 27482) / 1000]
    lines = [json.loads(line) for line in (SAMPLES / "mooncake_trace.jsonl").read_text().splitlines()]
    shared = len(set(lines[0]["hash_ids"]) & set(lines[1]["hash_ids"]))
    # whole blocks only: 6,955 tokens are 13 and a part
    assert (found.chained.tolist(), len(set(found.chain.tolist()))) == ([13, 12], 25 - shared)
    out = simulate(ONE, found, budget=2048, max_num_seqs=4)
    assert out.requests["cached"].tolist() == [0, shared * 512]


@pytest.mark.real_data
def test_prefixes_of_the_mooncake_trace_are_hit_as_in_a_plain_lru_cache():
    path = real("mooncake", "conversation_trace.jsonl")
    found = from_trace(path)
    alone = found._replace(
        arrival_s=np.arange(found.arrival_s.size) * 1000.0, output_tokens=np.ones_like(found.output_tokens)
    )
    ends = np.cumsum(found.chained)
    prompts = [
        (found.chain[end - count : end].tolist(), int(tokens))
        for end, count, tokens in zip(ends, found.chained, found.input_tokens, strict=True)
    ]
    for pool, room in ((100_000_000, 0), (3_000_000, 0.001)):
        out = simulate(ONE, alone, budget=8192, max_num_seqs=64, kv_pool_tokens=pool)
        expected = lru_hits(prompts, block_tokens=512, capacity_tokens=pool)
        # the tail of a prompt, no whole block, needs room too
        assert int(out.requests["cached"].sum()) == pytest.approx(expected.hit_tokens, rel=room, abs=0)


def test_a_log_leaves_out_what_cannot_be_replayed_and_says_so(tmp_path):
    lines = [
        chat(1),
        chat(2, usage=None),
        chat(3, usage={"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}),
    ]
    tf.load(write(tmp_path / "a.jsonl", lines), db=tmp_path / "u.duckdb")
    found = from_database(tmp_path / "u.duckdb")
    assert found.input_tokens.size == 1
    assert sum(count for _, count in found.left_out) == 2
    model = tf.open_log(tmp_path / "u.duckdb").requests["model"][0]
    assert from_database(tmp_path / "u.duckdb", model=model).input_tokens.size == 1
    with pytest.raises(NotEvaluable, match="no request of model"):
        from_database(tmp_path / "u.duckdb", model="other")
    tf.load(write(tmp_path / "b.jsonl", lines[1:]), db=tmp_path / "v.duckdb")
    with pytest.raises(NotEvaluable, match="no request can be replayed: "):
        from_database(tmp_path / "v.duckdb")
    with pytest.raises(TenfoldError):
        from_trace(write(tmp_path / "c.jsonl", [{"what": 1}]))


def test_prefixes_in_blocks_that_do_not_fit_are_left_out_and_said(tmp_path):
    rows = [
        {"ts": f"2026-01-01T00:00:0{n}Z", "input_tokens": 100, "output_tokens": 5, "prefix_hashes": ["a", "b"],
         "prefix_block_tokens": size}
        for n, size in enumerate((32, 20, 32, 64))
    ]  # fmt: skip
    frame = pl.DataFrame(rows).with_columns(pl.col("ts").str.to_datetime(time_zone="UTC"))
    frame.write_parquet(tmp_path / "a.parquet")
    found = from_trace(tmp_path / "a.parquet")
    assert (found.block_tokens, found.chained.tolist(), found.chain.tolist()) == (32, [2, 0, 2, 0], [0, 1, 0, 1])
    assert found.left_out == (("prefixes in blocks that are not of 32 tokens, as most", 2),)
    frame[1:2].write_parquet(tmp_path / "b.parquet")
    alone = from_trace(tmp_path / "b.parquet")
    assert (alone.block_tokens, alone.chain.size) == (0, 0)
    assert alone.left_out == (("prefixes in blocks that are not of a multiple of 16 tokens", 1),)


# token budgets


def test_budgets_trade_stalls_of_short_requests_for_the_wait_of_long_ones():
    lengths = np.where(np.arange(400) % 8 == 0, 8000, 200)
    arrivals = timed(steady(400, 1, 100)._replace(input_tokens=lengths), 4.0)
    made = simulator.token_budgets(ONE, arrivals, (512, 2048, 8192), max_num_seqs=256, ttft_slo_s=2.0, tpot_slo_s=0.05)
    stalls = [row.itl_short_max_s for row in made.rows]
    waits = [row.ttft_long_p95_s for row in made.rows]
    assert stalls == sorted(stalls)
    assert waits == sorted(waits, reverse=True)
    assert (made.short_tokens, made.long_tokens) == (200, 8000)
    assert made.recommended is not None
    assert "most requests" in made.why
    none = simulator.token_budgets(ONE, arrivals, (512,), max_num_seqs=1024, ttft_slo_s=1e-6)
    assert (none.recommended, none.rows[0].keeps) == (None, False)
    assert simulator.token_budgets(ONE, arrivals, (512,), max_num_seqs=256).recommended is None
    with pytest.raises(ServingError, match="at least one"):
        simulator.token_budgets(ONE, arrivals, (), max_num_seqs=256)
