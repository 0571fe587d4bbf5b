"""What can be the matter, by the step that finds it: the words for it, and the lever of the bill that it bears on."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of cause.

    Args:
        step: Step of the runbook that finds it.
        name: In words.
        lever: Lever of the bill that it bears on.
    """

    step: int
    name: str
    lever: str | None = None


KINDS: dict[str, Kind] = {
    "mix": Kind(2, "mix of tenants and routes"),
    "input_length": Kind(2, "length of prompts", "trim"),
    "output_length": Kind(2, "length of answers", "trim"),
    "cache_broken": Kind(3, "prefix cache broke", "prefix_cache"),
    "cache_diluted": Kind(3, "prefix cache spread over more replicas", "prefix_cache"),
    "cache_evicted": Kind(3, "prefixes thrown out of a full cache"),
    "cache_gained": Kind(3, "prefix cache holds more", "prefix_cache"),
    "queueing": Kind(4, "queueing", "continuous_batching"),
    "kv_exhausted": Kind(4, "KV cache full", "quantize"),
    "head_of_line": Kind(4, "huge prompts block the others"),
    "imbalance": Kind(4, "requests spread unevenly"),
    "version": Kind(5, "deploy or version"),
    "limit": Kind(5, "changed limit or setting"),
    "scaled": Kind(5, "replicas scaled"),
    "warm_up": Kind(5, "warm-up after a start"),
    "cohort": Kind(5, "change that hits some requests only"),
    "slow_host": Kind(6, "slow host"),
    "lost_host": Kind(6, "host lost"),
    "drift": Kind(6, "hosts slow down under load"),
    "front_end": Kind(6, "CPU front end"),
    "idle_clocks": Kind(6, "clocks drop when idle"),
    "retries": Kind(7, "retries"),
    "storm": Kind(7, "retry storm"),
    "new_client": Kind(7, "new heavy client"),
    "overlap": Kind(7, "retries beside live requests"),
}

# Names of the seven steps.
STEPS: dict[int, str] = {
    1: "split",
    2: "lengths",
    3: "prefix cache",
    4: "scheduling and memory",
    5: "deploy and configuration",
    6: "hardware and hosts",
    7: "upstream",
}
