"""P6 and P7: removable parts of prompts, and answers that could be shorter."""

from __future__ import annotations

import random
from fractions import Fraction

from planted.base import GPT, LONG, SONNET, Planted, cost, is_one_of, when

WHERE = is_one_of("feature", "docs")


def prompts(seed: int) -> Planted:
    """A removable share of every class, worth what each class was billed at; some prompts fall below the cliff."""
    rng = random.Random(f"P6 {seed}")
    days, tenths = rng.randint(14, 21), rng.randint(1, 6)
    log = Planted(assume={"trim": {"where": WHERE, "input_remove_ratio": tenths / 10}})
    saved = 0
    for number in range(rng.randint(200, 300)):
        model = rng.choice((SONNET, GPT, LONG))
        text, read, output = 10 * rng.randint(10, 900), 10 * rng.randint(0, 2_000), rng.randint(20, 900)
        write = 10 * rng.randint(0, 300) if model == SONNET else 0
        long = 10 * rng.randint(0, 300) if model == SONNET else 0
        if model == LONG and rng.random() < 0.5:  # above the threshold; after the cut on it, one above, or anywhere
            text = rng.choice((272_000 * 10 // (10 - tenths) // 10 * 10, rng.randint(27_300, 60_000) * 10)) - read
            text += rng.choice((0, 10))
        log.add(
            model,
            when(rng, number % days),
            text + read + write + long,
            output,
            feature="docs",
            cache_read_tokens=read,
            cache_write_tokens=write + long,
            cache_write_long_tokens=long,
        )
        kept = [part * (10 - tenths) // 10 for part in (text, read, write, long)]
        saved += cost(model, text, output, read, write, long) - cost(model, kept[0], output, *kept[1:])
    log.fill(rng, days)
    log.truth = {"trim": saved}
    log.joint = saved
    return log


def _answers(rng: random.Random, log: Planted, days: int, requests: int):
    """Requests, one in twenty cut off by its limit."""
    for number in range(requests):
        reason = "length" if number % 20 == 7 else rng.choice(("stop", "tool_calls", None))
        output = rng.randint(1, 150) * 20
        yield log.add(
            GPT, when(rng, number % days), rng.randint(100, 4_000), output, feature="docs", finish_reason=reason
        )


def outputs(seed: int) -> Planted:
    """A stated ratio of output, which leaves cut answers alone; in some logs with a cap."""
    rng = random.Random(f"P7 {seed}")
    days, twentieths, cap = rng.randint(14, 21), rng.randint(8, 19), rng.choice((None, 1_200))
    table = {"where": WHERE, "output_ratio": twentieths / 20}
    log = Planted(assume={"trim": table if cap is None else {**table, "output_cap": cap}})
    saved = 0
    for row in _answers(rng, log, days, rng.randint(200, 300)):
        output = row["output_tokens"]
        shorter = output if row["finish_reason"] == "length" else output * twentieths // 20
        saved += (output - min(shorter, cap or shorter)) * 10_000_000
    log.fill(rng, days)
    log.truth = {"trim": saved}
    log.joint = saved
    return log


def output_sample(seed: int) -> Planted:
    """The ratio is only seen in a paired sample, about which the answers scatter; the truth is the planted one."""
    rng = random.Random(f"P7 sampled {seed}")
    days, ratio = rng.randint(21, 28), rng.uniform(0.4, 0.9)
    evals: list[dict] = []
    log = Planted(assume={"trim": {"where": WHERE, "evals": evals}}, exact=False)
    expected = Fraction(0)
    rows = list(_answers(rng, log, days, rng.randint(300, 400)))
    for row in rows:
        if row["finish_reason"] != "length":
            expected += (1 - Fraction(ratio)) * row["output_tokens"] * 10_000_000
    for row in rng.sample(rows, 120):
        shorter = max(1, round(row["output_tokens"] * ratio * rng.uniform(0.5, 1.5)))
        evals.append({"request_id": row["request_id"], "output_tokens": shorter, "score": 1, "finish_reason": "stop"})
    log.fill(rng, days)
    log.truth = {"trim": round(expected)}
    return log
