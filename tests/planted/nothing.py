"""P8: a log on which no lever saves anything."""

from __future__ import annotations

import random

from planted.base import SONNET, Planted, is_one_of, when


def null_log(seed: int) -> Planted:
    """No request is asked twice, no model is smaller, no prompt is long enough to cache or is cut, somebody waits."""
    rng = random.Random(f"P8 {seed}")
    days, where = rng.randint(14, 21), is_one_of("feature", "chat")
    log = Planted(
        assume={
            "skip": {"where": where},
            "route": {"where": where, "to_model": SONNET[1], "output_ratio": 1, "evals": []},
            "prefix_cache": {"where": where, "policy": "history"},
            "trim": {"where": where, "input_remove_ratio": 0, "output_ratio": 1},
            "batch_api": {"where": where},
        }
    )
    for number in range(rng.randint(150, 250)):
        tokens = rng.randint(50, 1_023)  # below the least that is cached
        row = log.add(SONNET, when(rng, number % days), tokens, rng.randint(5, 500), feature="chat", is_stream=True)
        row |= {"prompt_hash": f"p{number}", "params_hash": "same", "prefix_block_tokens": 128}
        row["prefix_hashes"] = [f"shared/{n}" for n in range(tokens // 128)] or None
        log.assume["route"]["evals"].append({"request_id": row["request_id"], "model": SONNET[1], "score": 1})
    log.fill(rng, days, feature="chat")
    log.truth = dict.fromkeys(log.assume, 0)
    log.joint = 0
    return log
