"""P3 and P4: a small model that is good enough for a planted part of the traffic."""

from __future__ import annotations

import random
from fractions import Fraction

from planted.base import GPT, MICRO, MINI, Planted, cost, is_one_of, when

WHERE = is_one_of("feature", "ask")


def _asked(rng: random.Random, log: Planted, day: int, **columns: object) -> tuple[dict, bool]:
    """A request that is easy more often if it is small: the share of easy requests says little about their spend."""
    is_easy = rng.random() < 0.5
    tokens = rng.randint(50, 600) if is_easy != (rng.random() < 0.1) else rng.randint(2_000, 9_000)
    return log.add(
        GPT, when(rng, day), tokens, rng.randint(20, 60) + tokens // 10, **{"feature": "ask", **columns}
    ), is_easy


def route_by_request(seed: int) -> Planted:
    """Every request is scored on both models, and what the small one took is known: tokens, cost, or the same."""
    rng = random.Random(f"P3 {seed}")
    days, router, told = rng.randint(14, 21), rng.choice((0, 2)), rng.choice(("tokens", "cost", "same"))
    evals: list[dict] = []
    table = {"where": WHERE, "to_model": MINI[1], "min_quality": 1, "router_usd": router / MICRO, "evals": evals}
    log = Planted(assume={"route": table})
    if told == "same":
        table |= {"output_ratio": 1, "token_ratio": 1}
    saved = 0
    for number in range(rng.randint(200, 300)):
        row, is_easy = _asked(rng, log, number % days)
        tokens, output = row["input_tokens"], row["output_tokens"]
        took = cost(MINI, tokens, output)
        scored = {"request_id": row["request_id"], "model": MINI[1], "score": int(is_easy)}
        if told == "tokens":
            tokens, output = tokens + rng.randint(0, 40), rng.randint(10, 2 * output)
            took = cost(MINI, tokens, output)
            scored |= {"input_tokens": tokens, "output_tokens": output}
        elif told == "cost":
            took = MICRO * rng.randint(1, 3_000)
            scored["cost_usd"] = took / 10**12
        evals.append(scored)
        saved -= router * MICRO
        if is_easy:
            saved += cost(GPT, row["input_tokens"], row["output_tokens"]) - took
    log.fill(rng, days)
    log.truth = {"route": saved}
    log.joint = saved
    return log


def route_by_feature(seed: int) -> Planted:
    """A sample of scores by feature decides which features go; how long the small model writes is only assumed."""
    rng = random.Random(f"P3 by feature {seed}")
    days = rng.randint(21, 28)
    share = {"ask": 0.97, "sum": 0.95, "code": 0.3, "plan": 0.1}  # of answers that the small model gets right
    evals = [
        {"feature": feature, "model": MINI[1], "score": int(n < share[feature] * 100)}
        for feature in share
        for n in range(100)
    ]
    table = {"where": is_one_of("feature", *share), "to_model": MINI[1], "min_quality": 0.9, "evals": evals}
    log = Planted(assume={"route": table}, exact=False)
    longer = rng.uniform(0.8, 1.35)  # within the range that is assumed without a measurement
    saved = Fraction(0)
    for number in range(rng.randint(300, 400)):
        row, _ = _asked(rng, log, number % days, feature=rng.choice(list(share)))
        if share[row["feature"]] > 0.9:
            saved += cost(GPT, row["input_tokens"], row["output_tokens"])
            saved -= cost(MINI, row["input_tokens"], 0) + Fraction(longer) * row["output_tokens"] * 2 * MICRO
    log.fill(rng, days)
    log.truth = {"route": round(saved)}
    return log


def cascade(seed: int) -> Planted:
    """Each request is tried on the small model; the hard ones are asked again, with the candidate in the prompt."""
    rng = random.Random(f"P4 {seed}")
    days, usd, has_candidate = rng.randint(14, 21), rng.choice((1, 20, 300)), rng.random() < 0.7
    evals: list[dict] = []
    verifier = {"usd": usd / MICRO, "candidate_in_prompt": has_candidate}
    table = {"where": WHERE, "to_model": MINI[1], "min_quality": 0.5, "verifier": verifier, "evals": evals}
    log = Planted(assume={"route": table})
    saved = 0
    for number in range(rng.randint(200, 300)):
        row, is_easy = _asked(rng, log, number % days)
        tokens, output = row["input_tokens"], row["output_tokens"]
        if rng.random() < 0.1:
            continue  # without a score a request stays as it is
        answer = rng.randint(10, 2 * output)
        now = cost(GPT, tokens, output)
        tried = cost(MINI, tokens, answer) + usd * MICRO
        again = 0 if is_easy else cost(GPT, tokens + (answer if has_candidate else 0), output)
        evals.append(
            {
                "request_id": row["request_id"],
                "model": MINI[1],
                "score": 0.9 if is_easy else 0.2,
                "input_tokens": tokens,
                "output_tokens": answer,
            }
        )
        saved += now - tried - again
    log.fill(rng, days)
    log.truth = {"route": saved}
    log.joint = saved
    return log
