"""``tenfold serving size`` and ``serving prices``: keys, units, exit codes."""

import json

import pytest

WORDS = ("--model", "llama-3.3-70b", "--gpu", "h100-sxm", "--tp", 4, "--weights", "fp8", "--kv", "fp8")
SHAPE = ("--isl", 1000, "--osl", 1000)


def test_the_document_has_the_keys_of_the_contract(as_json):
    made = as_json("serving", "size", *WORDS, *SHAPE, "--usd-per-gpu-hour", "2.95", "--tpot-slo-ms", 30)
    assert made["fits"] is True
    assert made["kv_bytes_per_token"] == 163_840
    assert made["kv_pool_bytes"] == pytest.approx(4 * 70.5e9 - 70.55e9, rel=1e-4)
    assert made["concurrency"] == pytest.approx(860.4, abs=0.1)
    assert made["batch"] < 860
    assert made["batch_bound"] == "slo"
    assert made["tpot_ms"] <= 30
    assert made["ttft_ms"] > 0
    rate = made["tokens_per_s_per_gpu"]
    assert rate["low"] < rate["mid"] < rate["high"]
    assert set(made["usd_per_million"]) == {"input", "output"}
    assert float(made["usd_per_million_low"]["output"]) < float(made["usd_per_million"]["output"])
    assert made["calibrated"] is False
    assert made["notes"]


def test_people_read_the_answer_first(run):
    code, out, _ = run("serving", "size", *WORDS, *SHAPE, "--usd-per-gpu-hour", "2.95")
    first, *rest = out.splitlines()
    assert code == 0
    assert first.strip() == "meta-llama/Llama-3.1-70B, fp8 weights, fp8 KV, on 4 x h100-sxm: fits"
    assert "860 requests at once: all that memory holds" in rest[0]
    assert "output tokens/s and GPU" in rest[1]


def test_what_holds_is_half_answered_and_how_often_the_interval_holds(as_json, run):
    made = as_json("serving", "size", *WORDS, *SHAPE)
    # (4 x 70.5 - 70.55) GB / 163,840 bytes / 1,500 tokens on average, 2,000 at the end
    assert made["concurrency"] == pytest.approx(860.4, abs=0.1)
    assert made["concurrency_full_length"] == pytest.approx(860.4 * 1500 / 2000, abs=0.1)
    assert any("four of five measured points" in note for note in made["notes"])
    out = " ".join(run("serving", "size", *WORDS, *SHAPE)[1].split())
    assert "860.4 requests of 1,000 + 1,000 tokens, on average half answered; 645.3 of full length" in out
    assert "four of five measured points lie in such a range" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tp", 3, *SHAPE), "64 query heads do not divide among 3 GPUs"),
        (("--isl", 200_000, "--osl", 1000), "201,000 tokens, more than the 131,072 of the model's context"),
        (("--tp", 1, "--weights", "bf16", *SHAPE), "does not fit, as bf16 weights take 141.1 GB of 1 x 80 GB"),
    ],
)
def test_what_no_engine_would_serve_does_not_fit(as_json, run, words, said):
    made = as_json("serving", "size", *WORDS, *words)
    assert (made["fits"], made["batch"], made["tpot_ms"], made["usd_per_million"]) == (False, 0, None, None)
    assert said in made["unservable"]
    out = " ".join(run("serving", "size", *WORDS, *words)[1].split())
    assert f"not servable: {made['unservable']}" in out
    assert "$" not in out


def test_without_a_price_the_table_is_asked(as_json):
    made = as_json("serving", "size", *WORDS, *SHAPE)
    assert "median of" in made["usd_per_gpu_hour_source"]
    none = as_json("serving", "size", "--model", "llama-3.1-8b", "--gpu", "a10g", "--weights", "int4", *SHAPE)
    assert (none["usd_per_gpu_hour"], none["usd_per_million"]) == (None, None)
    assert none["fits"]
    one = as_json("serving", "size", "--model", "llama-3.1-8b", "--gpu", "l4", "--weights", "int4", *SHAPE)
    assert one["usd_per_gpu_hour_source"].startswith("the only on-demand price in gpu_prices.toml, of aws")


def test_what_does_not_fit_is_an_answer(as_json):
    made = as_json("serving", "size", "--model", "llama-3.3-70b", "--gpu", "l4", *SHAPE)
    assert (made["fits"], made["batch"], made["tokens_per_s_per_gpu"], made["tpot_ms"]) == (False, 0, None, None)


def test_a_measured_point_calibrates(as_json, tmp_path):
    file = tmp_path / "point.json"
    file.write_text(json.dumps({"concurrency": 64, "tokens_per_s": 3000}), encoding="utf-8")
    made = as_json("serving", "size", *WORDS, *SHAPE, "--concurrency", 64, "--calibrate", file)
    assert made["calibrated"] is True
    assert made["tokens_per_s_per_gpu"]["mid"] == pytest.approx(750, rel=1e-3)
    assert made["measured_ttft_ms"] == []


def test_a_measured_ttft_stands_beside_the_modelled_one(as_json, run, tmp_path):
    points = [
        {"engine": engine, "concurrency": held, "tokens_per_s": 40 * held, "ttft_ms": ttft}
        for engine, held, ttft in (("vllm", 4, 812.4), ("vllm", 64, 3000), ("sglang", 4, 500))
    ]
    (tmp_path / "points.jsonl").write_text("\n".join(map(json.dumps, points)), encoding="utf-8")
    words = ("serving", "size", *WORDS, *SHAPE, "--concurrency", 4, "--calibrate", "points.jsonl")
    code, _, err = run(*words)
    assert code == 1
    assert "points.jsonl: points of several engines: choose one with --engine (sglang, vllm)" in err
    made = as_json(*words, "--engine", "vllm")
    assert [(one["concurrency"], one["ttft_ms"]) for one in made["measured_ttft_ms"]] == [(4, 812.4), (64, 3000)]
    assert any("not calibrated by itself" in note and "812 ms at concurrency 4" in note for note in made["notes"])
    out = " ".join(run(*words, "--engine", "vllm")[1].split())
    assert "without queueing, modelled and not calibrated; measured was 812 ms at concurrency 4" in out
    assert run("serving", "size", *WORDS, *SHAPE, "--engine", "vllm")[0] == 1


def test_a_config_of_ones_own(as_json, tmp_path):
    config = {
        "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 8192, "vocab_size": 128_256, "max_position_embeddings": 8192, "tie_word_embeddings": True,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    made = as_json("serving", "size", "--model", "config.json", "--gpu", "l4", *SHAPE)
    assert made["weight_bytes"] == 2 * (1_235_814_400 - 2048)  # the published count, but for the last norm
    assert made["kv_bytes_per_token"] == 2 * 16 * 8 * 64 * 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--usd-per-gpu-hour", "free"), 1, '--usd-per-gpu-hour "free": write a number of USD'),
        (("--usd-per-gpu-hour", "0"), 1, "write a price above 0 USD"),
        (("--tpot-slo-ms", "0"), 1, "--tpot-slo-ms 0: write milliseconds above zero"),
        (("--concurrency", "0"), 2, "concurrency"),
        (("--calibrate", "none.json"), 1, "none.json"),
    ],
)
def test_what_is_wrong_is_named(run, words, code, message):
    found, _, err = run("serving", "size", *WORDS, *SHAPE, *words)
    assert found == code
    assert message in err


def test_prices_of_a_gpu(as_json, run):
    made = as_json("serving", "prices", "h100", "--provider", "nebius")
    assert made["usd_per_gpu_hour"] == {"low": "2.95", "median": "2.95", "high": "2.95"}
    assert made["entries"][0]["source"] == "skypilot-catalog v8 nebius/vms.csv"
    code, out, _ = run("serving", "prices", "h100")
    assert code == 0
    assert "6.88" in out
    assert "10.08" in out
    assert run("serving", "prices", "l4", "--commitment", "owned")[0] == 3
    assert run("serving", "prices")[0] == 1


def test_a_price_that_is_called_old_is_shown_and_not_counted(as_json, run):
    made = as_json("serving", "prices", "h200-sxm")
    # nebius 3.50, market 4.06, oci 10.00; aws 15.99 is marked as old
    assert made["usd_per_gpu_hour"] == {"low": "3.50", "median": "4.06", "high": "10.00"}
    assert [one["provider"] for one in made["not_counted"]] == ["aws"]
    out = run("serving", "prices", "h200-sxm")[1]
    assert "not counted: p5en, an old price" in " ".join(out.split())


@pytest.mark.parametrize("gpu", ["h100-sxm", "h200-sxm"])
def test_a_table_of_prices_fits_the_screen(run, gpu):
    out = run("serving", "prices", gpu)[1]
    assert max(map(len, out.splitlines())) <= 100
    assert "analyzer/constants.py" in "".join(out.split()) or gpu != "h100-sxm"


def test_a_catalogue_is_printed_as_entries(run, tmp_path):
    (tmp_path / "vms.csv").write_text(
        "InstanceType,AcceleratorName,AcceleratorCount,Price,Region,SpotPrice\na,H100,8,24.00,eu,10.00\nb,V9,1,1,eu,\n",
        encoding="utf-8",
    )
    code, out, err = run("serving", "prices", "--import", "vms.csv", "--provider", "nebius")
    assert code == 0
    assert "usd_per_gpu_hour = 3.00" in out
    assert "1.25" not in out  # there already
    assert "1 entries of skypilot to append, 1 there already" in err
    assert "V9 (1)" in err
