"""What a model needs of GPU memory: weights, KV a token, the pool that is left, and how many requests fit in it.

Source: serving.md 2; vLLM 0.33 takes ``gpu_memory_utilization`` of the memory, less weights and its own overhead, as
pool of KV blocks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tenfold.errors import ServingError
from tenfold.serving import specs
from tenfold.serving.model_spec import ModelSpec
from tenfold.serving.specs import Gpu, Scheme

UTILIZATION = 0.9
OVERHEAD_BYTES = 1.5e9
BLOCK_TOKENS = 16
# More GPUs than any engine shares one copy among; the largest link domains have under a hundred
MOST_TP = 1024


class Deployment(NamedTuple):
    """One replica of a model.

    Args:
        model: The model.
        gpu: The GPU it runs on.
        tp: GPUs that share one replica (tensor parallel).
        weights: How weights are kept.
        kv: How the KV cache is kept.
    """

    model: ModelSpec
    gpu: Gpu
    tp: int
    weights: Scheme
    kv: Scheme

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights, over all GPUs of the replica."""
        return self.model.params * float(self.weights.bytes)

    @property
    def kv_copies(self) -> float:
        """How often the KV cache lies in the replica's memory, all GPUs together.

        Formula:
            KV heads are shared out among the GPUs; where there are fewer heads than GPUs, each head lies on several.
            MLA's latent belongs to all heads: every GPU keeps the whole. (vLLM 0.33 get_num_kv_heads, MLA attention)
        """
        return self.tp if self.model.kv_latent else max(1.0, self.tp / self.model.kv_heads)

    def kv_bytes(self, tokens: float) -> float:
        """Give the KV cache of one sequence.

        Args:
            tokens: Its tokens, of prompt and answer.

        Returns:
            Bytes over all GPUs; layers with a sliding window stop growing at it, linear ones keep a state.

        Formula:
            Keys and values: 2 x layers x KV heads x head size x bytes a number, for each token; MLA: layers x (latent +
            rotary) x bytes. (serving.md 2)
        """
        return self._kept_bytes(tokens, 1)

    def held_bytes(self, tokens: int) -> float:
        """Give the memory that a sequence holds: its KV cache in whole blocks.

        Args:
            tokens: Its tokens.

        Returns:
            Bytes over all GPUs, each layer rounded up to blocks of 16 tokens.
        """
        return self._kept_bytes(tokens, BLOCK_TOKENS)

    def _kept_bytes(self, tokens: float, block: int) -> float:
        spec = self.model
        numbers = states = 0.0
        for group in spec.layers:
            if group.kind == "linear":
                states += group.count * group.state_bytes
                continue
            kept = min(tokens, group.window) if group.window else tokens
            whole = kept if block == 1 else math.ceil(kept / block) * block
            numbers += group.count * (group.kv_numbers or spec.kv_numbers) * whole
        return (numbers * float(self.kv.bytes)) * self.kv_copies + states

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes that one more token takes at the start of a sequence, in all layers."""
        return self.kv_bytes(1) - self.kv_bytes(0)

    @property
    def pool_bytes(self) -> float:
        """Bytes left for the KV cache, over all GPUs; negative where the weights do not fit.

        Formula:
            (0.9 x memory - 1.5 GB) x GPUs - weights. (serving.md 2)
        """
        return (UTILIZATION * self.gpu.memory_bytes - OVERHEAD_BYTES) * self.tp - self.weight_bytes

    @property
    def fits(self) -> bool:
        """Whether there is room for the weights at all."""
        return self.pool_bytes > 0

    @property
    def block_bytes(self) -> float:
        """Bytes of a block of 16 tokens, in all layers."""
        return BLOCK_TOKENS * self.kv_bytes_per_token

    @property
    def pool_blocks(self) -> int:
        """Whole blocks in the pool; 0 where the weights do not fit."""
        return max(0, math.floor(self.pool_bytes / self.block_bytes))

    def concurrency(self, tokens: float) -> float:
        """Give how many sequences fit at once.

        Args:
            tokens: Mean tokens that a sequence has in memory: prompt and half of its answer, while it is decoded.

        Returns:
            Sequences, not rounded; 0 where the weights do not fit.
        """
        return max(self.pool_bytes, 0.0) / self.kv_bytes(tokens)


def blocks(tokens: int) -> int:
    """Give the blocks that tokens take.

    Args:
        tokens: Tokens of a sequence.

    Returns:
        Blocks of 16 tokens, rounded up.
    """
    return -(-tokens // BLOCK_TOKENS)


class Caps(NamedTuple):
    """What an engine allows by default.

    Args:
        batched_tokens: Tokens of one step (``max_num_batched_tokens``).
        sequences: Sequences under way at once (``max_num_seqs``).
    """

    batched_tokens: int
    sequences: int


def default_caps(gpu: Gpu) -> Caps:
    """Give vLLM's defaults of an API server on a GPU.

    Args:
        gpu: The GPU.

    Returns:
        Tokens a step and sequences.

    Formula:
        By GPU memory: from 160 GiB 16,384 and 1,024; from 70 GiB, A100 excepted, 8,192 and 1,024; else 2,048 and 256.
        (vLLM 0.33.0 engine/arg_utils.py get_batch_defaults; serving.md 2)
    """
    gib = gpu.memory_bytes / 2**30
    if gib >= 160:
        return Caps(16_384, 1024)
    if gib >= 70 and not gpu.name.startswith("a100"):
        return Caps(8192, 1024)
    return Caps(2048, 256)


def deployment(model: str, gpu: str, tp: int = 1, weights: str = "bf16", kv: str = "bf16") -> Deployment:
    """Make a replica from names.

    Args:
        model: Model id, short name, or path of a Hugging Face ``config.json``.
        gpu: GPU name.
        tp: GPUs that share one copy.
        weights: Scheme of the weights.
        kv: Scheme of the KV cache.

    Returns:
        The replica.

    Raises:
        ServingError: A name is not known, or ``tp`` is not from 1 to 1,024.
    """
    if not 1 <= tp <= MOST_TP:
        raise ServingError(f"tp {tp}: a replica has at least one GPU, and {MOST_TP:,} at most")
    return Deployment(
        specs.model(model),
        specs.gpu(gpu),
        tp,
        specs.scheme(weights, specs.WEIGHTS, "weights"),
        specs.scheme(kv, specs.KV, "KV cache"),
    )
