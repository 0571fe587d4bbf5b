"""``tenfold serving simulate``: keys, sources of requests, exit codes."""

import json
from decimal import Decimal

import pytest
from log_files import SAMPLES, chat, write

WORDS = ("serving", "simulate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--budget", 2048, "--max-num-seqs", 64)
SHAPE = ("--isl", 500, "--osl", 50, "--requests", 200)


def test_the_document_has_the_keys_of_the_contract(as_json, tmp_path):
    (tmp_path / "slo.toml").write_text('ttft_p95_ms = 500\ntpot_p95_ms = 30\n[feature."a"]\nttft_p95_ms = 1\n')
    made = as_json(*WORDS, *SHAPE, "--rate", 10, "--slo", "slo.toml", "--usd-per-gpu-hour", "2.95")
    for key in ("ttft_ms", "e2e_ms", "tpot_ms", "queue_ms"):
        assert list(made[key]) == ["p50", "p95", "p99"]
    assert list(made["itl_ms"]) == ["p50", "p99", "max"]
    assert 0 < made["goodput_ratio"] <= 1
    assert (made["preemptions"], made["recompute_ratio"], made["requests"], made["label"]) == (0, 0.0, 200, "modelled")
    assert 0 < made["kv_peak_ratio"] < 1
    assert Decimal(made["usd"]) == pytest.approx(Decimal("2.95") * Decimal(made["span_s"]) / 3600)
    assert made["series"]
    assert any("by feature" in note for note in made["notes"])
    assert any("uncalibrated" in note for note in made["notes"])
    again = as_json(*WORDS, *SHAPE, "--rate", 10, "--seed", 1)
    assert again["goodput_ratio"] is None
    # without a price: the median of the lists, as in size and breakeven
    listed = as_json("serving", "prices", "h100-sxm")["usd_per_gpu_hour"]["median"]
    assert again["usd_per_gpu_hour"] == listed
    assert Decimal(again["usd"]) == pytest.approx(Decimal(listed) * Decimal(again["span_s"]) / 3600)
    assert again["ttft_ms"] != made["ttft_ms"]


def test_a_trace_a_database_and_a_closed_loop(as_json, tmp_path):
    trace = as_json(*WORDS, "--trace", SAMPLES / "azure_llm_trace.csv", "--policy", "prefill_first")
    assert (trace["requests"], trace["policy"]) == (2, "prefill_first")
    longer = as_json(*WORDS, "--trace", SAMPLES / "azure_llm_trace.csv", "--requests", 50, "--concurrency", 8)
    assert longer["requests"] == 50
    write(tmp_path / "a.jsonl", [chat(1), chat(2)])
    as_json("load", "a.jsonl", "--db", "u.duckdb")
    assert as_json(*WORDS, "--db", "u.duckdb")["requests"] == 2


def test_pools_replicas_and_a_measurement(as_json, tmp_path):
    pools = ("--prefill-workers", 1, "--decode-workers", 2, "--link-gbps", 400)
    assert as_json(*WORDS, *SHAPE, "--rate", 10, *pools)["gpus"] == 3
    assert as_json(*WORDS, *SHAPE, "--rate", 10, "--replicas", 2, "--router", "least_loaded")["gpus"] == 2
    (tmp_path / "point.json").write_text(
        json.dumps({"concurrency": 32, "input_tokens": 500, "output_tokens": 50, "tokens_per_s": 500})
    )
    slow = as_json(*WORDS, *SHAPE, "--concurrency", 32, "--calibrate", "point.json")
    assert slow["tokens_per_s"] == pytest.approx(500, rel=0.15)
    assert not any("uncalibrated" in note for note in slow["notes"])


def test_overload_and_refusal_are_said(as_json):
    made = as_json(*WORDS, *SHAPE, "--rate", 1000)
    assert any("faster than they are answered" in note for note in made["notes"])
    assert not any("faster" in note for note in as_json(*WORDS, *SHAPE, "--concurrency", 200)["notes"])
    trace = ("--trace", SAMPLES / "azure_llm_trace.csv", "--kv-pool-tokens", 432)
    made = as_json(*WORDS, *trace)
    assert made["refused"] == 1
    assert any("1 request longer than the whole KV pool" in note for note in made["notes"])


def test_people_read_tables(run):
    code, out, err = run(*WORDS, *SHAPE, "--rate", 10, "--ttft-slo-ms", 500, "--usd-per-gpu-hour", 3)
    assert (code, err) == (0, "")
    assert "of requests keep TTFT 500 ms" in out
    assert "USD a million output tokens" in out
    code, out, err = run(*WORDS, *SHAPE, "--rate", 10, "--ttft-slo-ms", 500, "--sweep")
    assert (code, err) == (0, "")
    assert "tokens a step" in out
    assert max(map(len, out.splitlines())) <= 100


def test_sweep_document(as_json):
    made = as_json(*WORDS, *SHAPE, "--rate", 10, "--ttft-slo-ms", 500, "--tpot-slo-ms", 50, "--sweep")
    assert made["recommended_budget"] in [row["budget"] for row in made["budgets"]]
    assert {"itl_short_p99_ms", "ttft_long_p95_ms", "tokens_per_s", "keeps"} <= set(made["budgets"][0])
    # the contract's keys are those of the budget that is asked for
    (row,) = [row for row in made["budgets"] if row["budget"] == made["budget"]]
    assert made["budget"] == 2048
    assert {"ttft_ms", "itl_ms", "e2e_ms", "preemptions", "recompute_ratio", "kv_peak_ratio", "usd"} <= made.keys()
    assert row["goodput_ratio"] == made["goodput_ratio"]
    assert row["tokens_per_s"] == pytest.approx(made["tokens_per_s"], rel=1e-3)
    free = as_json(*WORDS[:6], *SHAPE, "--rate", 10, "--ttft-slo-ms", 500, "--sweep")
    assert free["budget"] == free["recommended_budget"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give one of --trace"),
        (("--isl", 5, "--rate", 1), "--isl and --osl go together"),
        (("--isl", 5, "--osl", 5), "need --rate R or --concurrency C"),
        (("--isl", 5, "--osl", 5, "--rate", 1, "--concurrency", 1), "exclude each other"),
        (("--isl", 5, "--osl", 5, "--rate", 0), "must be positive"),
        (("--isl", 5, "--osl", 5, "--rate", 1, "--tp", 3), "is not servable: 32 query heads do not divide"),
        (("--isl", 5, "--osl", 5, "--rate", 1, "--db", "x.duckdb"), "give one of --trace"),
        (("--isl", 5, "--osl", 5, "--rate", 1, "--link-gbps", 5), "go together"),
        (("--isl", 5, "--osl", 5, "--rate", 1, "--max-num-seqs", 4096), "below max_num_seqs"),
        (("--trace", SAMPLES / "azure_llm_trace.csv", "--requests", 5), "give --rate or --concurrency"),
    ],
)
def test_what_cannot_be_meant(run, words, said):
    code, out, err = run(*WORDS, *words)
    assert (code, out) == (1, "")
    assert said in err
