"""What a prompt's keys and values take to travel from a prefill worker to a decode worker (serving.md 8)."""

from __future__ import annotations

from typing import NamedTuple

from tenfold.serving.capacity import Load
from tenfold.serving.memory import Deployment


class Link(NamedTuple):
    """What the KV cache travels over, between a prefill worker and the decode workers.

    Args:
        gbps: Rate, in Gb/s (10^9 bits a second).
        latency_s: Time before the first byte, in s.
        efficiency: Share of the rate that is reached.
        layerwise: Each layer is sent while the next is computed, so only the last one is waited for.
    """

    gbps: float
    latency_s: float = 0.0
    efficiency: float = 1.0
    layerwise: bool = False

    def transfer_s(self, size_bytes: float) -> float:
        """Give the time that bytes take.

        Args:
            size_bytes: Bytes.

        Returns:
            Seconds: bytes / (efficiency x rate) + latency. (serving.md 8)
        """
        return size_bytes * 8 / (self.efficiency * self.gbps * 1e9) + self.latency_s

    def exposed_s(self, size_bytes: float, layers: int) -> float:
        """Give the part of a transfer that a request waits for.

        Args:
            size_bytes: Bytes.
            layers: Layers of the model.

        Returns:
            Seconds: all of it, or with layers sent one by one about 1/layers. (serving.md 8)
        """
        return self.transfer_s(size_bytes) / (layers if self.layerwise else 1)


def kv_bytes(one: Deployment, load: Load) -> float:
    """Give what a request's prompt leaves to be sent: one copy, however many GPUs keep it.

    Args:
        one: The replica.
        load: What requests look like.

    Returns:
        Bytes.
    """
    return one._replace(tp=1).kv_bytes(load.input_tokens + load.cached_tokens)


def sustained_gbps(kv_bytes_per_token: float, tokens_per_s: float) -> float:
    """Give the rate at which a prefill worker sends when it never pauses.

    Args:
        kv_bytes_per_token: KV cache of one token, in bytes.
        tokens_per_s: Prompt tokens that it computes in a second.

    Returns:
        Gb/s: 8 x bytes x tokens a second. (serving.md 8)
    """
    return 8 * kv_bytes_per_token * tokens_per_s / 1e9
