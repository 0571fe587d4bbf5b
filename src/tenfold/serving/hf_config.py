"""A model's dimensions from its Hugging Face ``config.json``; parameters are counted from them.

What a family does that is not counted here ends in an error, never in a guess. Vision and audio towers and layers for
multi-token prediction are left out: text requests do not read them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from tenfold.errors import ServingError
from tenfold.serving.model_spec import Layers, ModelSpec

# Keys of designs whose memory or parameters do not follow from what is read below
_NOT_COUNTED = (
    "hybrid_override_pattern", "hybrid_layer_pattern", "block_configs", "layers_block_type", "compress_ratios",
    "linear_attn_config", "sparse_attention_config", "ssm_cfg", "ssm_state_size", "mamba_d_state", "state_size",
    "num_kv_shared_layers", "hidden_size_per_layer_input", "use_double_wide_mlp", "is_encoder_decoder",
    "cross_attention_layers",
)  # fmt: skip
_UNGATED = {"falcon", "gpt_bigcode", "gpt_neox", "nemotron", "phi", "starcoder2"}
_TIED = ("cohere", "gemma")
_QKV_BIAS = {"qwen2", "qwen2_moe"}
# Layer types that keep as much as another: chunks bound what is kept like a window; sparse attention keeps all
_SAME = {"chunked": "sliding", "deepseek_sparse": "full"}
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")
_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk")
# Above these no model is: a unit or digit went wrong
_MOST, _MOST_TOKENS = 10**6, 10**9
_TOKENS = {"vocab_size", "max_position_embeddings", "sliding_window", "attention_chunk_size"}


class _Config(NamedTuple):
    """The text part of a config, and where it stands."""

    values: Mapping[str, Any]
    place: str

    @property
    def family(self) -> str:
        return str(self.values.get("model_type", ""))

    def has(self, key: str) -> bool:
        return bool(self.values.get(key))

    def need(self, *keys: str) -> int:
        key = next((key for key in keys if self.values.get(key) is not None), keys[0])
        value, most = self.values.get(key), _MOST_TOKENS if key in _TOKENS else _MOST
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
            raise ServingError(f'{self.place}: needs "{key}" as a positive whole number, {most:,} at most')
        return value

    def number(self, *keys: str) -> int:
        filled = [key for key in keys if self.has(key)]
        return self.need(*filled) if filled else 0

    def listed(self, key: str) -> list[Any]:
        value: object = self.values.get(key) or []
        if not isinstance(value, list):
            raise ServingError(f'{self.place}: needs "{key}" as a list')
        return cast("list[Any]", value)


def read(path: Path) -> ModelSpec:
    """Read a config.

    Args:
        path: A ``config.json``, or the folder that holds it.

    Returns:
        The model, named after ``_name_or_path`` or the folder.

    Raises:
        ServingError: It is no such config, lacks a key, or is of a design that is not counted; names file and key.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        whole: object = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ServingError(f"{file}: there is no such file") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ServingError(f"{file}: cannot be read as JSON: {error}") from error
    if not isinstance(whole, dict):
        raise ServingError(f"{file}: a model's config is a JSON object")
    outer = cast("dict[str, Any]", whole)
    inner: object = outer.get("text_config")
    # the outer part of a multimodal config knows whether embeddings are tied
    tied = {key: outer[key] for key in ("tie_word_embeddings",) if key in outer}
    values = {**tied, **cast("dict[str, Any]", inner)} if isinstance(inner, dict) else outer
    name = str(outer.get("_name_or_path") or file.resolve().parent.name)
    try:
        return _spec(_Config(values, str(file)), name)
    except ValidationError as error:
        raise ServingError(f"{file}: describes no model: {error.errors()[0]['msg']}") from None


def _spec(config: _Config, name: str) -> ModelSpec:
    odd = [key for key in _NOT_COUNTED if config.has(key)]
    if odd or 0 in config.listed("attn_type_list"):
        raise ServingError(
            f'{config.place}: "{(odd or ["attn_type_list"])[0]}" is a design whose parameters are not counted here; '
            "describe it in a TOML file with a [[model]] table, by figures that its makers publish"
        )
    kinds = +_kinds(config)  # a model may have too few layers to have some of each kind
    heads = config.need("num_attention_heads")
    for key in ("num_key_value_heads", "num_global_key_value_heads"):
        if config.values.get(key) is not None and heads % config.need(key):
            raise ServingError(f'{config.place}: "{key}" must divide "num_attention_heads", {heads}')
    hidden, count = config.need("hidden_size"), config.need("num_hidden_layers")
    attention = sum(_attention(config, kind) * layers for kind, layers in kinds.items())
    experts, expert_params, feed_forward = _feed_forward(config, hidden, count)
    embeddings = config.need("vocab_size") * hidden * (1 if _is_tied(config) else 2)
    params = attention + feed_forward + embeddings + 2 * hidden * count
    chosen = config.need(*_CHOSEN) if experts else 0
    if chosen > experts:
        key = next(key for key in _CHOSEN if config.has(key))
        raise ServingError(f'{config.place}: "{key}" is {chosen}, of {experts} experts: it cannot be more')
    return ModelSpec(
        name=name,
        params=params,
        active_params=params - expert_params * (1 - chosen / experts) if experts else None,
        layers=[_layers(config, kind, layers) for kind, layers in kinds.items()],
        hidden=hidden,
        q_heads=heads,
        kv_heads=config.need("num_key_value_heads", "num_attention_heads"),
        head_dim=_head_dim(config),
        kv_latent=_latent(config),
        experts=experts,
        experts_per_token=chosen,
        expert_params=expert_params,
        max_context=config.number("max_position_embeddings"),
        source=f"{config.place}, parameters counted from it",
        checked=datetime.now(tz=UTC).date(),
    )


def _is_tied(config: _Config) -> bool:
    return bool(config.values.get("tie_word_embeddings", config.family.startswith(_TIED)))


def _kinds(config: _Config) -> Counter[str]:
    """Layers by how they attend: full, sliding or linear."""
    count = config.need("num_hidden_layers")
    if listed := config.listed("layer_types"):
        # layers for multi-token prediction stand behind the others
        if len(listed) - count not in {0, config.number("num_nextn_predict_layers")}:
            raise ServingError(
                f'{config.place}: "layer_types" names {len(listed)} layers, and "num_hidden_layers" is {count}'
            )
        kinds = [str(kind).removesuffix("_attention") for kind in listed[:count]]
        return Counter(_SAME.get(kind, kind) for kind in kinds)
    if config.has("attention_chunk_size"):  # Llama 4: every fourth layer attends to the start
        return Counter({"sliding": count - count // 4, "full": count // 4})
    window = None if config.values.get("use_sliding_window") is False else config.values.get("sliding_window")
    if window is None or config.need("sliding_window") >= config.need("max_position_embeddings"):
        return Counter({"full": count})
    every = config.number("sliding_window_pattern", "_sliding_window_pattern") or (
        2 if config.family == "gemma2" else 0
    )
    return Counter({"sliding": count - count // every, "full": count // every}) if every else Counter(sliding=count)


def _layers(config: _Config, kind: str, count: int) -> Layers:
    if kind == "linear":
        keys, values = _linear(config)
        state = config.need("linear_num_value_heads") * config.need("linear_key_head_dim") * config.need(
            "linear_value_head_dim"
        )  # fmt: skip
        kept = config.need("linear_conv_kernel_dim") - 1
        return Layers(count=count, kind="linear", state_bytes=4 * state + 2 * kept * (2 * keys + values))
    if kind == "sliding":
        return Layers(count=count, kind="sliding", window=config.need("attention_chunk_size", "sliding_window"))
    if kind != "full":
        raise ServingError(f'{config.place}: layer type "{kind}" is not known here')
    numbers = 2 * _kv_heads(config, kind) * _size(config, kind) if config.has("global_head_dim") else 0
    return Layers(count=count, kv_numbers=numbers)


def _linear(config: _Config) -> tuple[int, int]:
    keys = config.need("linear_num_key_heads") * config.need("linear_key_head_dim")
    return keys, config.need("linear_num_value_heads") * config.need("linear_value_head_dim")


def _size(config: _Config, kind: str) -> int:
    if kind == "full" and config.has("global_head_dim"):  # Gemma 4
        return config.need("global_head_dim")
    if config.has("head_dim"):
        return config.need("head_dim")
    return config.need("hidden_size") // config.need("num_attention_heads")


def _kv_heads(config: _Config, kind: str) -> int:
    if kind == "full" and config.has("num_global_key_value_heads"):
        return config.need("num_global_key_value_heads")
    return config.need("num_key_value_heads", "num_attention_heads")


def _head_dim(config: _Config) -> int:
    if not config.has("kv_lora_rank"):
        return _size(config, "sliding")
    keys = config.need("qk_nope_head_dim") + config.need("qk_rope_head_dim")
    return (keys + config.need("v_head_dim")) // 2


def _latent(config: _Config) -> int:
    if not config.has("kv_lora_rank"):
        return 0
    # sparse attention (DSA) keeps the keys of its indexer too
    return config.need("kv_lora_rank") + config.need("qk_rope_head_dim") + config.number("index_head_dim")


def _attention(config: _Config, kind: str) -> int:
    """Parameters of one layer's attention."""
    hidden, heads = config.need("hidden_size"), config.need("num_attention_heads")
    if kind == "linear":  # gated delta net: query, key, value, gate, two scalars a head, convolution, output
        keys, values = _linear(config)
        mixed = 2 * keys + values
        scalars = 2 * config.need("linear_num_value_heads")
        return hidden * (mixed + values + scalars) + config.need("linear_conv_kernel_dim") * mixed + values * hidden
    if config.has("kv_lora_rank"):
        rank, rope = config.need("kv_lora_rank"), config.need("qk_rope_head_dim")
        nope, value, query = config.need("qk_nope_head_dim"), config.need("v_head_dim"), config.number("q_lora_rank")
        queries = hidden * query + query * heads * (nope + rope) if query else hidden * heads * (nope + rope)
        index = config.number("index_n_heads") * (query * config.number("index_head_dim") + hidden)
        return (
            queries + hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden
            + index + hidden * config.number("index_head_dim")
        )  # fmt: skip
    size, kv_heads = _size(config, kind), _kv_heads(config, kind)
    gate = 2 if config.has("attn_output_gate") else 1
    pairs = 1 if kind == "full" and config.has("attention_k_eq_v") else 2
    bias = (heads + 2 * kv_heads) * size if config.has("attention_bias") or config.family in _QKV_BIAS else 0
    return hidden * size * (heads * gate + pairs * kv_heads) + heads * size * hidden + bias


def _feed_forward(config: _Config, hidden: int, count: int) -> tuple[int, int, int]:
    """Experts a layer, parameters in all routed experts, parameters of all feed-forward blocks."""
    matrices = 2 if config.family in _UNGATED else 3
    experts = config.number(*_EXPERTS)
    routed = _moe_layers(config, count) if experts else 0
    if experts and not 0 < routed <= count:
        raise ServingError(
            f'{config.place}: experts in {routed} of {count} layers, by "moe_layer_freq", "first_k_dense_replace", '
            '"decoder_sparse_step" and the like'
        )
    dense = (count - routed) * matrices * hidden * config.need(
        "intermediate_size_mlp", "dense_intermediate_size", "intermediate_size"
    ) if routed < count or config.has("enable_moe_block") else 0  # fmt: skip
    if config.has("enable_moe_block"):  # Gemma 4: a dense block next to the experts of every layer
        dense = count * matrices * hidden * config.need("intermediate_size")
    if not experts:
        return 0, 0, dense
    width = config.need("moe_intermediate_size", "intermediate_size")
    one = matrices * hidden * width + (2 * width + hidden if config.family == "gpt_oss" else 0)
    expert_params = routed * experts * one
    shared = config.number("shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size")
    if not shared:
        shared = width * (1 if config.family == "llama4_text" else config.number("n_shared_experts"))
    return experts, expert_params, dense + expert_params + routed * hidden * (matrices * shared + experts)


def _moe_layers(config: _Config, count: int) -> int:
    every: object = config.values.get("moe_layer_freq")
    if isinstance(every, list):
        return sum(1 for one in cast("list[int]", every) if one)
    if config.has("first_k_dense_replace"):
        return count - config.need("first_k_dense_replace")
    step = config.number("interleave_moe_layer_step", "decoder_sparse_step") or 1
    return count // step - len(config.listed("mlp_only_layers"))
