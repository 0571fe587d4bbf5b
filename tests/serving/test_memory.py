"""Memory: the figures of the reference to the digit, hybrids by hand, and what must hold for any replica."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.errors import ServingError
from tenfold.serving import specs
from tenfold.serving.memory import blocks, default_caps, deployment

SCHEMES = (("bf16", "bf16"), ("fp8", "bf16"), ("fp8", "fp8"), ("int4", "bf16"), ("int4", "fp8"))
# serving.md 2: requests of 4,096 tokens at once, and the gain over 16 bits, as printed there (but for the last
# gain, 3.849, which is rounded twice there, to 3.9)
TABLE = [
    ("llama-3.1-8b", "l4", 1, ("7.5", "22.5", "45", "29", "58"), ("", "3.0", "5.98", "3.9", "7.7")),
    ("llama-3.1-8b", "a10g", 1, ("7.5", "22.5", "45", "29", "58"), ("", "3.0", "5.98", "3.9", "7.7")),
    ("llama-3.1-8b", "h100-sxm", 1, ("101", "116", "233", "123", "246"), ("", "1.15", "2.3", "1.2", "2.4")),
    ("llama-3.1-70b", "h100-sxm", 2, ("0", "52", "105", "75", "151"), ("", "", "", "", "")),
    ("llama-3.1-70b", "h100-sxm", 4, ("105", "157", "315", "180", "361"), ("", "1.5", "3.0", "1.7", "3.4")),
    ("llama-3.1-70b", "h100-sxm", 8, ("315", "368", "735", "391", "781"), ("", "1.17", "2.3", "1.24", "2.5")),
    ("llama-3.1-70b", "h200-sxm", 2, ("82", "134", "269", "157", "315"), ("", "1.6", "3.3", "1.9", "3.85")),
]


def printed(value: float, text: str) -> bool:
    """Whether a figure is the printed one: rounded, or cut, at the printed digits (the table does both)."""
    unit = 10.0 ** -len(text.partition(".")[2])
    return abs(value - float(text)) <= unit / 2 + 1e-9 or 0 <= value - float(text) < unit


@pytest.mark.parametrize(("model", "gpu", "tp", "counts", "gains"), TABLE)
def test_the_concurrency_table_of_the_reference(model, gpu, tp, counts, gains):
    found = [deployment(model, gpu, tp, weights, kv).concurrency(4096) for weights, kv in SCHEMES]
    assert all(printed(value, text) for value, text in zip(found, counts, strict=True)), found
    for value, text in zip(found, gains, strict=True):
        assert not text or printed(value / found[0], text), (value / found[0], text)


def test_a_4k_sequence_of_llama_70b_is_1_25_gib():
    assert deployment("llama-3.1-70b", "h100-sxm", 8).kv_bytes(4096) == 1.25 * 2**30
    assert deployment("llama-3.1-70b", "h100-sxm", 8, kv="fp8").kv_bytes(4096) == 0.625 * 2**30
    assert deployment("llama-3.1-8b", "h100-sxm").kv_bytes(4096) == 0.5 * 2**30


def test_windows_stop_growing():
    one = deployment("gpt-oss-120b", "h100-sxm", 2)
    # a token and layer: 2 x 8 heads x 64 x 2 bytes = 2 KiB; 36 layers, of which 18 stop at 128 tokens
    assert one.kv_bytes(100) == 100 * 36 * 2048
    assert one.kv_bytes(10_000) == (10_000 + 128) * 18 * 2048
    assert one.kv_bytes_per_token == 36 * 2048
    full = one._replace(model=one.model.model_copy(update={"layers": [specs.model("llama-3.1-8b").layers[0]]}))
    assert full.kv_bytes(10_000) == 10_000 * 32 * 2048


def test_gemma_4_keeps_other_heads_in_layers_that_attend_to_the_start():
    one = deployment("google/gemma-4-31B", "h100-sxm", 2)
    # 50 layers of 16 heads x 256 within 1,024 tokens; 10 of 4 heads x 512
    assert one.kv_bytes(5000) == 2 * 2 * (50 * 16 * 256 * 1024 + 10 * 4 * 512 * 5000)


def test_linear_layers_keep_a_state():
    one = deployment("Qwen/Qwen3.5-27B", "h100-sxm")
    # 48 value heads of 128 x 128 in 32 bits, and 3 earlier inputs of a convolution over 10,240 channels in 16
    state = 48 * (48 * 128 * 128 * 4 + 3 * 10_240 * 2)
    assert one.kv_bytes(0) == state
    assert one.kv_bytes(1000) == state + 1000 * 16 * 2 * 4 * 256 * 2
    assert one.kv_bytes_per_token == 16 * 2 * 4 * 256 * 2


def test_fewer_heads_than_gpus_are_kept_more_than_once():
    assert deployment("qwen2.5-7b", "h100-sxm", 4).kv_copies == 1
    assert deployment("qwen2.5-7b", "h100-sxm", 8).kv_bytes(10) == 2 * deployment("qwen2.5-7b", "h100-sxm").kv_bytes(10)
    one = deployment("deepseek-r1", "h200-sxm", 8, "fp8", "fp8")
    assert one.kv_bytes(1) == 8 * 61 * 576  # every GPU keeps the whole latent


def test_blocks():
    assert [blocks(tokens) for tokens in (0, 1, 16, 17)] == [0, 1, 1, 2]
    one = deployment("llama-3.1-8b", "l4", weights="fp8")
    assert one.held_bytes(17) == one.kv_bytes(32) == 2 * one.block_bytes
    assert one.pool_blocks == int(one.pool_bytes // (16 * 131_072))
    assert deployment("llama-3.1-70b", "h100-sxm").pool_blocks == 0


@pytest.mark.parametrize(
    ("gpu", "caps"),
    [
        ("b200", (16_384, 1024)), ("mi300x", (16_384, 1024)), ("h200-sxm", (8192, 1024)), ("h100-sxm", (8192, 1024)),
        ("a100-80", (2048, 256)), ("a100-80-pcie", (2048, 256)), ("a100-40", (2048, 256)), ("l4", (2048, 256)),
        ("rtx-pro-6000", (8192, 1024)), ("l40s", (2048, 256)),
    ],
)  # fmt: skip
def test_default_caps_of_the_engine(gpu, caps):
    assert default_caps(specs.gpu(gpu)) == caps


def test_a_replica_needs_a_gpu():
    with pytest.raises(ServingError, match="at least one GPU"):
        deployment("llama-3.1-8b", "l4", 0)


NAMES = st.sampled_from(
    ["llama-3.1-70b", "gpt-oss-20b", "deepseek-r1", "gemma-3-27b", "Qwen/Qwen3.5-27B", "qwen2.5-7b"]
)


@settings(max_examples=30, deadline=None)
@given(NAMES, st.sampled_from([1, 2, 4, 8]), st.integers(1, 200_000), st.integers(1, 5000))
def test_more_tokens_take_more_and_more_bits_hold_fewer(model, tp, tokens, more):
    one = deployment(model, "b300", tp, "fp8", "fp8")
    assert one.kv_bytes(tokens) <= one.kv_bytes(tokens + more)
    assert one.kv_bytes(tokens) <= one.held_bytes(tokens) <= one.kv_bytes(tokens + 15) + 15 * one.kv_bytes_per_token
    bigger = one._replace(kv=specs.KV["bf16"])
    assert bigger.concurrency(tokens) <= one.concurrency(tokens)
    assert one._replace(weights=specs.WEIGHTS["int4"]).concurrency(tokens) >= one.concurrency(tokens)
