"""Frames for charts of serving: each held against the room it comes from, worked out anew."""

import math
from decimal import Decimal

import hosted_logs
import pytest

from tenfold.errors import ServingError
from tenfold.serving import frames, roofline
from tenfold.serving.breakeven import Outcome
from tenfold.serving.memory import deployment
from tenfold.serving.simulator import Budgets
from tenfold.serving.simulator.budgets import Budget

SMALL = {"bf16": deployment("llama-3.1-8b", "l4"), "fp8": deployment("llama-3.1-8b", "l4", weights="fp8")}


class TestFrontier:
    def test_batches_are_powers_the_largest_and_the_largest_within_the_limit(self):
        # by trying every batch: memory holds 14 and 43 requests of 2,100 tokens
        frame = frames.frontier(SMALL, 1800, 600, tpot_slo_s=0.08)
        for name, one in SMALL.items():
            held = int(one.concurrency(2100))
            within = [n for n in range(1, held + 1) if roofline.speed(one, n, 1800, 600).tpot_s <= 0.08]
            powers = [2**n for n in range(9) if 2**n <= held]
            assert frame.filter(setting=name)["batch"].to_list() == sorted({*powers, max(within), held})

    def test_each_row_is_the_rooflines(self):
        for setting, batch, user, gpu in frames.frontier(SMALL, 1800, 600, scale=0.9).iter_rows():
            found = roofline.speed(SMALL[setting], batch, 1800, 600, scale=0.9)
            assert (user, gpu) == (1 / found.tpot_s, found.tokens_per_s_per_gpu)

    def test_what_does_not_fit_has_no_row(self):
        frame = frames.frontier({"32B": deployment("qwen3-32b", "l4")}, 1000, 100, tpot_slo_s=0.1)
        assert frame.columns == ["setting", "batch", "tokens_per_s_per_user", "tokens_per_s_per_gpu"]
        assert frame.is_empty()


def test_memory_split_is_all_of_the_memory():
    frame = frames.memory_split({**SMALL, "32B": deployment("qwen3-32b", "l4")}, 2100)
    for row in frame.head(2).rows(named=True):
        assert row["weights_bytes"] + row["overhead_bytes"] + row["kv_bytes"] == pytest.approx(24e9)
        # a tenth that the engine leaves alone, and 1.5 GB of its own
        assert row["overhead_bytes"] == pytest.approx(3.9e9)
    last = frame.row(2, named=True)
    assert (last["kv_bytes"], last["requests"]) == (0.0, 0.0)
    assert last["overhead_bytes"] == pytest.approx(3.9e9)


class TestHourlyNeed:
    COUNTS = (3, 0, 40, 9)

    def hosted(self, **more):
        log = hosted_logs.rows(self.COUNTS, seconds=60, cache_read_tokens=0)
        return log, hosted_logs.hosted(log, hosted_logs.pool(**more), hours=4).hosted

    def test_replicas_hour_by_hour(self):
        log, hosted = self.hosted()
        frame = frames.hourly_need(hosted, utilization=0.5, scale=0.8)
        count = len(log)
        means = [sum(row[key] for row in log) / count for key in ("input_tokens", "output_tokens")]
        rate = 0.8 * roofline.speed(hosted[0].deployment, 4, *means).tokens_per_s_per_gpu  # at most 4 at once
        asked = [0.0] * 4
        for row in log:
            asked[row["ts"].hour] += row["output_tokens"] / 3600
        assert frame["needed"].to_list() == [math.ceil(each / (rate * 0.5)) for each in asked]
        assert frame["needed"][1] == 0
        assert len(set(frame["needed"])) >= 3
        assert frame["paid"].to_list() == [4] * 4
        assert [at.hour for at in frame["starts_at"]] == [0, 1, 2, 3]
        assert (frame["ends_at"] - frame["starts_at"]).dt.total_hours().to_list() == [1] * 4

    def test_a_tighter_limit_needs_more(self):
        _, hosted = self.hosted()
        # one request alone takes 69 ms a token: smaller batches, then batches of one
        sums = [frames.hourly_need(hosted, tpot_slo_s=limit)["needed"].sum() for limit in (None, 0.075, 0.001)]
        assert sums[0] <= sums[1] <= sums[2]
        assert sums[0] < sums[2]

    def test_requests_larger_than_the_memory_are_named(self):
        log = hosted_logs.rows([1], seconds=60, input_tokens=40_000)
        hosted = hosted_logs.hosted(log, hosted_logs.pool(), hours=1).hosted
        with pytest.raises(ServingError, match=r"a request of this log does not fit on 1 x l4"):
            frames.hourly_need(hosted)

    def test_a_model_without_requests_needs_none(self):
        log = hosted_logs.rows([5], seconds=60)
        pools = (hosted_logs.pool(), hosted_logs.pool(hosted_logs.QWEN, replicas=2))
        frame = frames.hourly_need(hosted_logs.hosted(log, *pools, hours=1).hosted)
        assert frame.filter(paid=2)["needed"].to_list() == [0]


def test_fleet_adds_up():
    made = hosted_logs.hosted(hosted_logs.rows([5], seconds=60), hosted_logs.pool(usd="0.80"), hours=1)
    row = frames.fleet(made.hosted).row(0, named=True)
    assert (row["gpus"], row["requests"], row["bill_usd"]) == ("4 l4", 5, 3.2)
    assert row["idle_usd"] == round(float(Decimal(made.idle_pusd).scaleb(-12)), 3)
    assert row["output_usd"] == round(made.hosted[0].rates.output / 1e6, 3)


def test_sweeps_and_outcomes_keep_their_figures():
    one = Budget(512, 0.1, 0.2, 0.3, math.nan, 0.5, 0.06, None, 70.0, 0, None)
    row = frames.token_budgets(Budgets((one,), None, "", 1, 2)).row(0, named=True)
    assert (row["budget"], row["itl_short_p99_ms"], row["itl_short_max_ms"], row["ttft_long_p95_ms"]) == (
        *(512, 100.0, 200.0, None),
    )
    ends = [Outcome("price", str(ratio), 1.0, 1, 2, 2, 10, 77, ratio, None, None, 0.04) for ratio in (1.0, 1.1)]
    assert frames.break_even(ends).rows() == [("price", "1.0", 77, True), ("price", "1.1", 77, False)]
