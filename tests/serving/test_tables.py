"""GPU and model tables: every published spelling is known, and parameters are what the makers publish."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import pytest
from real_data import real

from tenfold.errors import PriceFileError, ServingError
from tenfold.prices.files import shipped
from tenfold.serving import hf_config, specs
from tenfold.serving.model_spec import ModelSpec

# Billions of parameters, total and active for a token, on the makers' model cards and in their papers.
PUBLISHED = {
    "Llama-2-7b-hf": (6.74, None), "Llama-2-13b-hf": (13.02, None), "Llama-2-70b-hf": (68.98, None),
    "Meta-Llama-3-8B": (8.03, None), "Llama-3.1-8B": (8.03, None), "Llama-3.1-70B": (70.6, None),
    "Llama-3.1-405B": (405.9, None), "Llama-3.2-1B": (1.24, None), "Llama-3.2-3B": (3.21, None),
    "Llama-4-Scout-17B-16E-Instruct": (109, 17), "Llama-4-Maverick-17B-128E-Instruct": (402, 17),
    "Qwen2.5-0.5B": (0.49, None), "Qwen2.5-1.5B": (1.54, None), "Qwen2.5-3B": (3.09, None),
    "Qwen2.5-7B": (7.61, None), "Qwen2.5-14B": (14.7, None), "Qwen2.5-32B": (32.5, None), "Qwen2.5-72B": (72.7, None),
    "Qwen3-0.6B": (0.6, None), "Qwen3-1.7B": (1.7, None), "Qwen3-4B": (4.0, None), "Qwen3-8B": (8.2, None),
    "Qwen3-14B": (14.8, None), "Qwen3-32B": (32.8, None), "Qwen3-30B-A3B": (30.5, 3.3),
    "Qwen3-235B-A22B": (235, 22), "Qwen3-Coder-480B-A35B-Instruct": (480, 35),
    "Qwen3-Next-80B-A3B-Instruct": (80, None), "Qwen3.5-27B": (27, None), "Qwen3.5-35B-A3B": (35, None),
    "Qwen3.5-122B-A10B": (122, 10), "Qwen3.5-397B-A17B": (397, 17),
    "Mistral-7B-v0.1": (7.24, None), "Mistral-7B-v0.3": (7.25, None), "Mistral-Nemo-Instruct-2407": (12.2, None),
    "Codestral-22B-v0.1": (22.2, None), "Mistral-Small-24B-Instruct-2501": (23.6, None),
    "Mistral-Large-Instruct-2407": (123, None), "Mixtral-8x7B-v0.1": (46.7, 12.9), "Mixtral-8x22B-v0.1": (141, 39),
    "DeepSeek-V2-Lite": (15.7, None), "DeepSeek-V3": (671, 37), "DeepSeek-R1": (671, 37),
    "gpt-oss-20b": (20.9, None), "gpt-oss-120b": (116.8, None),
    "gemma-2-9b": (9.24, None), "gemma-2-27b": (27.2, None), "gemma-3-1b-it": (1.0, None),
    "gemma-3-12b-it": (11.8, None), "gemma-3-27b-it": (27.0, None), "gemma-4-31B": (30.7, None),
    "Kimi-K2-Instruct": (1026, 32.9), "GLM-4.5": (353, 32), "GLM-4.5-Air": (106, 13), "GLM-5": (744, None),
    "MiniMax-M2.5": (229, None), "phi-4": (14.7, None), "Phi-4-mini-instruct": (3.84, None), "Yi-34B": (34.4, None),
}  # fmt: skip


def tables() -> tuple[list[dict], list[dict]]:
    return tuple(
        tomllib.loads((shipped() / name).read_text(encoding="utf-8"))[key]
        for name, key in (("gpus.toml", "gpu"), ("models.toml", "model"))
    )


@pytest.mark.real_data
def test_every_spelling_of_the_published_points_is_known():
    with real("serving", "serving_points.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 212
    for row in rows:
        memory = [part for part in row["hardware"].replace("-", " ").split() if part.endswith("GB")]
        found = specs.gpu(row["hardware"])
        # where a spelling names the memory, it is that of the GPU
        assert not memory or float(memory[0].removesuffix("GB")) == found.memory_gb, row["hardware"]
        assert specs.model(row["model"]).params > 1e9
    assert specs.gpu("H100 (assumed)").name == "h100-sxm"
    assert specs.model("llama2-70b-99").name == "meta-llama/Llama-2-70b-hf"
    assert specs.model("Llama-3.3-70B-Instruct").name == "meta-llama/Llama-3.1-70B"


def test_models_of_the_silicon_points_are_known():
    for name in ("zhipuai/GLM-5", "nvidia/DeepSeek-R1-NVFP4", "nvidia/Qwen3-32B-NVFP4", "Qwen/Qwen3.5-397B-A17B",
                 "moonshotai/Kimi-K2.5", "MiniMaxAI/MiniMax-M2.5", "Qwen/Qwen3-235B-A22B-FP8"):  # fmt: skip
        assert specs.model(name).is_moe == (name != "nvidia/Qwen3-32B-NVFP4")


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_parameters_are_what_the_makers_publish(name):
    total, active = PUBLISHED[name]
    spec = specs.model(name)
    assert spec.params / 1e9 == pytest.approx(total, rel=0.02)
    if active is not None:  # published active counts are rounded, and some leave the embeddings out
        assert spec.active / 1e9 == pytest.approx(active, rel=0.06)


def plain_count(spec: ModelSpec) -> float:
    """Parameters of the layers that need no more than the table's own numbers: attention and routed experts."""
    attention = spec.hidden * spec.head_dim * (2 * spec.q_heads + 2 * spec.kv_heads) * spec.layer_count
    return spec.expert_params + attention


def test_every_entry_is_sound():
    gpus, models = tables()
    assert len({one["name"] for one in gpus}) == len(gpus) >= 25
    assert len({one["name"] for one in models}) == len(models) >= 60
    for entry in gpus:
        gpu = specs.gpu(entry["name"])
        assert "bf16" in gpu.tflops, gpu.name
        assert set(gpu.tflops) <= {"bf16", "fp8", "int8", "fp4"}
        if "fp8" in gpu.tflops:
            assert gpu.tflops["fp8"] == pytest.approx(2 * gpu.tflops["bf16"], rel=0.02), gpu.name
        # memory is read in 5 to 90 ms: outside that a digit is wrong
        assert 0.005 < gpu.memory_gb / gpu.bandwidth_gb_per_s < 0.09, gpu.name
    for entry in models:
        spec = specs.model(entry["name"])
        assert spec.hidden > spec.head_dim, spec.name
        assert spec.q_heads % spec.kv_heads == 0
        assert spec.max_context >= 2048
        assert (
            plain_count(spec) < spec.params * 1.15 or spec.kv_latent or any(one.kind == "linear" for one in spec.layers)
        )
        if spec.is_moe:
            assert 0 < spec.experts_per_token < spec.experts
            shared = spec.params - spec.expert_params
            assert spec.active == pytest.approx(
                shared + spec.expert_params * spec.experts_per_token / spec.experts, rel=0.001
            )


# Units (SM or CU), boost clock in GHz, 16-bit operations a clock and unit: from lists of chips, not from data sheets.
CHIPS = {
    "t4": (40, 1.59, 1024), "a10": (72, 1.695, 1024), "a10g": (80, 1.71, 512), "a40": (84, 1.74, 1024),
    "rtx-a6000": (84, 1.8, 1024), "a100-40": (108, 1.41, 2048), "a100-80": (108, 1.41, 2048), "l40": (142, 2.49, 512),
    "rtx-4090": (128, 2.52, 512), "rtx-5090": (170, 2.407, 512), "h100-sxm": (132, 1.83, 4096),
    "gh200": (132, 1.83, 4096), "mi300x": (304, 2.1, 2048), "mi325x": (304, 2.1, 2048), "mi350x": (256, 2.2, 4096),
    "mi355x": (256, 2.4, 4096),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CHIPS))
def test_rates_are_what_units_and_clock_give(name):
    units, ghz, operations = CHIPS[name]
    gpu = specs.gpu(name)
    rounded = 1e-4 if gpu.vendor == "amd" else 0.0025  # NVIDIA's sheets round to whole TFLOPS
    assert gpu.tflops["bf16"] == pytest.approx(units * ghz * operations / 1e3, rel=rounded)


def test_every_source_can_be_looked_up_or_the_note_says_that_it_was_not_seen():
    for entry in (*tables()[0], *tables()[1]):
        known = "https://" in entry["source"] or "aiconfigurator-core" in entry["source"]
        assert known or "not seen at a source" in entry.get("note", ""), entry["name"]


def test_variants_with_a_longer_context_are_entries_of_their_own():
    for name, longer, context in (
        ("Qwen3-30B-A3B", "Qwen3-Coder-30B-A3B-Instruct", 262144), ("GLM-4.5", "GLM-4.6-FP8", 202752),
        ("Qwen3-235B-A22B", "Qwen3-235B-A22B-Instruct-2507", 262144), ("kimi-k2", "Kimi-K2-Thinking", 262144),
        ("Qwen2.5-14B", "DeepSeek-R1-Distill-Qwen-14B", 131072), ("Qwen2.5-32B", "QwQ-32B", 131072),
    ):  # fmt: skip
        short, long = specs.model(name), specs.model(longer)
        assert short.max_context < long.max_context == context
        other = {"name", "aliases", "max_context", "source"}
        assert short.model_dump(exclude=other) == long.model_dump(exclude=other)


def test_dimensions_behind_the_known_kv_sizes():
    # KiB a token in 16 bits, as serving.md 2 and the papers have them
    for name, kib in (("llama-3.1-70b", 320), ("llama-3.1-8b", 128), ("llama-2-7b", 512), ("qwen2.5-7b", 56)):
        assert specs.model(name).kv_numbers * specs.model(name).layer_count * 2 / 1024 == kib
    # MLA: 512 latent and 64 rotary numbers a layer
    assert specs.model("deepseek-r1").kv_numbers == 576
    assert specs.model("deepseek-r1").head_dim == (128 + 64 + 128) // 2


def test_unknown_names_say_what_is_near():
    with pytest.raises(ServingError, match=r'GPU "h100-sxn" .*Did you mean "h100-sxm"'):
        specs.gpu("h100-sxn")
    with pytest.raises(ServingError, match=r'model "lama-3.1-8b" .*Did you mean'):
        specs.model("lama-3.1-8b")
    with pytest.raises(ServingError, match=r'weights "fp7" is not known\. Did you mean "fp'):
        specs.scheme("fp7", specs.WEIGHTS, "weights")


LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}  # fmt: skip


def config(folder: Path, values: object) -> Path:
    path = folder / "own" / "config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(values if isinstance(values, str) else json.dumps(values), encoding="utf-8")
    return path


def test_a_config_gives_the_same_model_as_the_table(tmp_path):
    path = config(tmp_path, LLAMA)
    for name in (str(path), str(path.parent)):
        spec = specs.model(name)
        known = specs.model("llama-3.1-8b")
        assert spec.name == "own"
        # 2 x 128256 x 4096 + 32 x (4096 x 128 x (32 + 2 x 8) + 4096 x 4096 + 3 x 4096 x 14336 + 2 x 4096)
        assert spec.params == 8_030_257_152
        assert spec.params == pytest.approx(known.params, rel=1e-4)
        same = {"layers", "hidden", "q_heads", "kv_heads", "head_dim", "kv_latent", "max_context"}
        assert spec.model_dump(include=same) == known.model_dump(include=same)


def test_a_config_of_experts_by_hand(tmp_path):
    moe = {**LLAMA, "num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 1024,
           "shared_expert_intermediate_size": 512, "first_k_dense_replace": 2}  # fmt: skip
    spec = specs.model(str(config(tmp_path, moe)))
    one = 3 * 4096 * 1024
    assert spec.expert_params == 30 * 4 * one
    attention = 32 * (4096 * 128 * 48 + 4096 * 4096 + 2 * 4096)
    other = 2 * 3 * 4096 * 14336 + 30 * (3 * 4096 * 512 + 4096 * 4)
    assert spec.params == 2 * 128256 * 4096 + attention + other + spec.expert_params
    assert spec.active == spec.params - 30 * 3 * one


@pytest.mark.parametrize(
    ("more", "layers"),
    [
        ({"sliding_window": 1024, "sliding_window_pattern": 4}, [(24, 1024), (8, 0)]),
        ({"sliding_window": 1024, "use_sliding_window": False}, [(32, 0)]),
        ({"sliding_window": 131072}, [(32, 0)]),
        ({"sliding_window": 4096, "model_type": "gemma2"}, [(16, 4096), (16, 0)]),
        ({"sliding_window": 4096}, [(32, 4096)]),
        ({"sliding_window": 64, "layer_types": ["full_attention", "sliding_attention"] * 16}, [(16, 0), (16, 64)]),
        ({"attention_chunk_size": 8192}, [(24, 8192), (8, 0)]),
        # behind the layers, one for multi-token prediction
        ({"layer_types": ["full_attention"] * 33, "num_nextn_predict_layers": 1}, [(32, 0)]),
        # fewer layers than the pattern is long: none of the other kind
        ({"num_hidden_layers": 3, "attention_chunk_size": 8192}, [(3, 8192)]),
    ],
)
def test_windows_of_a_config(tmp_path, more, layers):
    spec = hf_config.read(config(tmp_path, {**LLAMA, **more}))
    assert [(one.count, one.window) for one in spec.layers] == layers


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({key: value for key, value in LLAMA.items() if key != "vocab_size"}, 'needs "vocab_size"'),
        ({**LLAMA, "hidden_size": "4096"}, 'needs "hidden_size" as a positive whole number'),
        ({**LLAMA, "hybrid_override_pattern": "M*M"}, '"hybrid_override_pattern" is a design'),
        ({**LLAMA, "attn_type_list": [1, 0]}, '"attn_type_list" is a design'),
        ({**LLAMA, "layer_types": ["mamba"] * 32}, 'layer type "mamba" is not known'),
        ({**LLAMA, "num_key_value_heads": 0}, 'needs "num_key_value_heads" as a positive'),
        ({**LLAMA, "num_key_value_heads": 3}, '"num_key_value_heads" must divide "num_attention_heads", 32'),
        ({**LLAMA, "sliding_window": 0}, 'needs "sliding_window" as a positive'),
        ({**LLAMA, "layer_types": ["full_attention"]}, '"layer_types" names 1 layers, and "num_hidden_layers" is 32'),
        ({**LLAMA, "layer_types": 5}, 'needs "layer_types" as a list'),
        ({**LLAMA, "hidden_size": 10**12}, 'needs "hidden_size" as a positive whole number, 1,000,000 at most'),
        (
            {**LLAMA, "num_local_experts": 8, "num_experts_per_tok": 9},
            '"num_experts_per_tok" is 9, of 8 experts: it cannot be more',
        ),
        (
            {**LLAMA, "num_local_experts": 8, "num_experts_per_tok": 2, "first_k_dense_replace": 40},
            'experts in -8 of 32 layers, by "moe_layer_freq", "first_k_dense_replace"',
        ),
        ("[" * 50_000, "cannot be read as JSON"),
        ([LLAMA], "is a JSON object"),
        ("{", "cannot be read as JSON"),
    ],
)
def test_what_a_config_lacks_is_named(tmp_path, values, message):
    path = config(tmp_path, values)
    with pytest.raises(ServingError, match=message) as caught:
        specs.model(str(path))
    assert "own/config.json" in str(caught.value)


def test_a_config_that_is_not_there(tmp_path):
    with pytest.raises(ServingError, match="no such file"):
        specs.model(str(tmp_path / "config.json"))


# Dimensions as the makers' configs state them, and the parameters in the makers' weight files.
REAL = {
    "Llama-3.1-70B": (
        70_553_706_496,
        {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64},
    ),
    "Qwen2.5-7B": (  # biases of queries, keys and values
        7_615_616_512,
        {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
         "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152_064},
    ),
    "gemma-2-9b": (  # embeddings tied
        9_241_705_984,
        {"model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
         "num_attention_heads": 16, "head_dim": 256, "vocab_size": 256_000, "tie_word_embeddings": True},
    ),
    "Mixtral-8x7B": (
        46_702_792_704,
        {"num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32_000},
    ),
    "Qwen3-30B-A3B": (
        30_532_122_624,
        {"hidden_size": 2048, "num_hidden_layers": 48, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
         "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1, "mlp_only_layers": [],
         "vocab_size": 151_936},
    ),
    "gpt-oss-20b": (  # biases everywhere, experts too
        20_914_757_184,
        {"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
         "num_attention_heads": 64, "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4,
         "attention_bias": True, "vocab_size": 201_088},
    ),
    "DeepSeek-V3": (  # MLA, three dense layers, a shared expert
        671_026_419_200,
        {"hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61, "num_attention_heads": 128,
         "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
         "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "num_experts_per_tok": 8,
         "n_shared_experts": 1, "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "moe_layer_freq": 1,
         "vocab_size": 129_280},
    ),
    "Llama-4-Maverick": (  # every second layer dense; 0.9 of the published 401.6 billion are the vision tower's
        400_700_000_000,
        {"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
         "num_hidden_layers": 48, "num_attention_heads": 40, "head_dim": 128, "num_local_experts": 128,
         "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "attention_chunk_size": 8192,
         "vocab_size": 202_048},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REAL))
def test_parameters_counted_from_a_config_are_those_of_the_weight_files(tmp_path, name):
    published, dimensions = REAL[name]
    counted = hf_config.read(config(tmp_path, {**LLAMA, **dimensions})).params
    assert counted == pytest.approx(published, rel=2e-4)


def test_linear_attention_by_hand(tmp_path):
    # gated delta net: 2 key heads and 4 value heads of 8 on 64 channels, convolution over 4
    small = {
        **LLAMA, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "intermediate_size": 32, "vocab_size": 10, "attn_output_gate": True,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"], "linear_num_key_heads": 2,
        "linear_key_head_dim": 8, "linear_num_value_heads": 4, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4,
    }  # fmt: skip
    spec = hf_config.read(config(tmp_path, small))
    mixed = 16 + 16 + 32  # query, key and value channels
    linear = 64 * mixed + 64 * 32 + 2 * 64 * 4 + 4 * mixed + 32 * 64
    full = 64 * (2 * 64 + 2 * 32) + 64 * 64
    assert spec.params == 2 * 10 * 64 + 3 * linear + full + 4 * (3 * 64 * 32 + 2 * 64)
    assert [(one.kind, one.count, one.state_bytes) for one in spec.layers] == [
        ("linear", 3, 4 * 4 * 8 * 8 + 2 * 3 * mixed),
        ("full", 1, 0),
    ]


OWN_GPU = """[[gpu]]
name = "mine"
vendor = "amd"
memory_gb = 64
bandwidth_gb_per_s = 1600
tflops = { bf16 = 383 }
link_gb_per_s = 50
source = "data sheet"
checked = 2026-11-30
"""
OWN_MODEL = """[[model]]
name = "mine"
params = 12e9
active_params = 3e9
layers = [{ count = 20 }]
hidden = 2048
q_heads = 16
kv_heads = 4
head_dim = 128
experts = 8
experts_per_token = 2
expert_params = 9e9
source = "our own"
checked = 2026-11-30
"""


def test_a_gpu_and_a_model_of_ones_own(tmp_path):
    gpu, model = tmp_path / "gpu.toml", tmp_path / "model.toml"
    gpu.write_text(OWN_GPU, encoding="utf-8")
    model.write_text(OWN_MODEL, encoding="utf-8")
    assert specs.gpu(str(gpu)).flops("fp8") == 383e12  # no 8-bit units: unpacked to 16 bits
    assert specs.model(str(model)).active == 3e9
    model.write_text(OWN_MODEL.replace("experts_per_token = 2\n", ""), encoding="utf-8")
    with pytest.raises(PriceFileError, match=r"model\.toml.*experts need experts_per_token"):
        specs.model(str(model))
    for text, message in (
        (OWN_GPU.replace("bf16", "fp8"), "needs a rate for bf16"),
        (OWN_GPU.replace("bf16", "fp7"), "fp7"),
        (OWN_GPU.replace("memory_gb", "memory"), 'unknown key "memory".*memory_gb'),
        (OWN_GPU + OWN_GPU, "holds 2 tables"),
    ):
        gpu.write_text(text, encoding="utf-8")
        with pytest.raises((PriceFileError, ServingError), match=message):
            specs.gpu(str(gpu))
    with pytest.raises(ServingError, match=r"none\.toml: cannot be read"):
        specs.gpu("none.toml")
