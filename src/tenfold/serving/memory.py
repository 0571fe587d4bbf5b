"""What a model needs of GPU memory: weights, KV a token, the pool that is left, and how many requests fit in it.

Source: serving.md 2; vLLM 0.33 takes ``gpu_memory_utilization`` of the memory, less weights and its own overhead, as
pool of KV blocks.
"""

from __future__ import annotations

from typing import NamedTuple

from tenfold.serving.specs import Gpu, ModelSpec, Scheme

UTILIZATION = 0.9
OVERHEAD_BYTES = 1.5e9
BLOCK_TOKENS = 16


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

    def kv_bytes(self, tokens: float) -> float:
        """Give the KV cache of one sequence.

        Args:
            tokens: Its tokens, of prompt and answer.

        Returns:
            Bytes over all GPUs; layers with a sliding window stop growing at it.

        Formula:
            Keys and values: 2 x layers x KV heads x head size x bytes a number, for each token; MLA: layers x (latent +
            rotary) x bytes; linear layers keep a state that does not grow, here not counted. (serving.md 2)
        """
        spec = self.model
        per_layer = (spec.kv_latent or 2 * spec.kv_heads * spec.head_dim) * float(self.kv.bytes)
        kept = sum(
            group.count * (min(tokens, group.window) if group.window else tokens)
            for group in spec.layers
            if group.kind != "linear"
        )
        return per_layer * kept

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes that one more token takes at the start of a sequence, in all layers."""
        return self.kv_bytes(1)

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

    def concurrency(self, tokens: float) -> float:
        """Give how many sequences fit at once.

        Args:
            tokens: Mean tokens that a sequence has in memory: prompt and half of its answer, while it is decoded.

        Returns:
            Sequences, not rounded; 0 where the weights do not fit.
        """
        return max(self.pool_bytes, 0.0) / self.kv_bytes(tokens)
