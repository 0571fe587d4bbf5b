"""Drawn logs: a bit of everything at once, for the plan against the slow oracle. No truth is known of them."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from oracle_levers import read_rules
from oracle_levers.core import first_bill
from oracle_levers.prefix import replayed

from planted.base import CACHING, GPT, HAIKU, MICRO, MINI, OLD, SONNET, Planted, is_one_of, when
from planted.caches import BLOCK, blocks

FEATURES = ("ask", "chat", "code", "docs")
RULES = read_rules(CACHING)
LEVERS = ("skip", "route", "prefix_cache", "trim", "distill", "batch_api")
MODELS = (SONNET, SONNET, GPT, OLD, HAIKU)


def drawn(seed: int, requests: int, levers: tuple[str, ...] | None = None) -> Planted:
    """A log of so many requests, and assumptions for some levers.

    Cached tokens are billed at random (then the policy is none, or as shipped), billed as the rules say, or not billed
    and replayed from hashes or sessions.
    """
    rng = random.Random(f"drawn {seed}")
    log = Planted(exact=False)
    days, mode = rng.randint(10, 18), rng.choice(("billed", "hashes", "as shipped", "sessions"))
    while len(log.rows) < requests:
        _session(rng, log, rng.choice((0, rng.randrange(days))), mode)
    del log.rows[requests:]
    _odd_ones(rng, log)
    if mode == "as shipped":
        _as_shipped(log)
    for name in levers or sorted(rng.sample(LEVERS, rng.randint(2, len(LEVERS))), key=LEVERS.index):
        log.assume[name] = TABLES[name](rng, log, mode)
    log.rows.sort(key=lambda row: row["ts"])
    if rng.random() < 0.3:
        log.slo = {"feature": {"docs": {"deadline_s": 60}, "ask": {"min_quality": 0.5}}}
    return log


def _session(rng: random.Random, log: Planted, day: int, mode: str) -> None:
    at, model, feature = when(rng, day, 9_000), rng.choice(MODELS), rng.choice(FEATURES)
    session = f"s{len(log.rows)}" if rng.random() < 0.7 else None
    name = rng.choice((f"own{len(log.rows)}", "shared", f"{feature}"))
    tokens = rng.randint(200, 6_000)
    org, project = rng.choices(("acme", "other", None), (6, 1, 1))[0], rng.choices(("a", "b", None), (6, 1, 1))[0]
    user = f"u{rng.randrange(40)}"
    for _ in range(rng.randint(1, 4) if session else 1):
        row = log.add(
            model,
            at,
            tokens,
            rng.randint(0, 800),
            feature=feature,
            session_id=session,
            org=org,
            project=project,
            user_id=user,
            is_stream=rng.choice((False, False, False, True)),
            status=rng.choices(("success", "error", None), (9, 1, 1))[0],
            finish_reason=rng.choices(("stop", "length", None), (8, 1, 1))[0],
            duration_ms=rng.choice((1_000.0, 4_321.5, 60_000.0, None)),
            ttft_ms=rng.choice((300.0, 800.25, None)),
            prompt_hash=f"p{rng.randrange(4)}",
            params_hash=rng.choice(("warm", "warm", "cold")),
        )
        if rng.random() < 0.2:
            row["reasoning_tokens"] = row["output_tokens"] // 3
        if mode == "billed":
            row["cache_read_tokens"] = rng.choice((0, tokens // 2, tokens * 3 // 4, None))
            if model in (SONNET, HAIKU):
                row["cache_write_tokens"] = rng.choice((0, tokens // 5))
                row["cache_write_long_tokens"] = rng.choice((0, row["cache_write_tokens"] // 2))
        elif mode in ("hashes", "as shipped") and rng.random() < 0.9:
            row |= blocks(name, tokens)
            row["prefix_hashes"] = row["prefix_hashes"] or None
        at += timedelta(
            seconds=rng.choice((1, 30, 299, 300, 301, 3_000, 3_600, 3_601)), milliseconds=rng.choice((0, 0, 7))
        )
        tokens += rng.randint(-200, 2 * BLOCK)
        tokens = max(tokens, 50)


def _odd_ones(rng: random.Random, log: Planted) -> None:
    """Rows without a price or a bill, in other tiers, and retries."""
    odd = (
        {"is_billable": False},
        {"gateway_cache_hit": True},
        {"output_tokens": None, "reasoning_tokens": None},
        {"provider": "elsewhere", "model": "mystery"},
        {"service_tier": "batch"},
        {"retry_of": rng.choice(log.rows)["request_id"]},
        {"prompt_hash": None},
    )
    for row in rng.sample(log.rows, len(log.rows) // 12):
        row.update(rng.choice(odd))


def _as_shipped(log: Planted) -> None:
    """Bill what the rules say when each whole prompt is cached: the replay then agrees with the log."""
    table = {"policy": "history"}
    versions = first_bill(log.rows).versions
    for place, (read, tokens) in replayed(versions, table, "mid", RULES).items():
        row = log.rows[versions[place].origin]
        has_fee = row["provider"] == "anthropic"
        row.update(cache_read_tokens=read, cache_write_tokens=tokens - read if has_fee else 0)


def _where(rng: random.Random) -> Any:
    return is_one_of("feature", *rng.sample(FEATURES, rng.randint(2, 4)))


def _skip(rng: random.Random, log: Planted, mode: str) -> dict[str, Any]:
    del log, mode
    table = {"where": _where(rng), "ttl_s": rng.choice((300, 3_600, 86_400)), "lookup_usd": rng.choice((0, 5)) / MICRO}
    for key, values in (("scope", (["org"], [])), ("capacity", (1, 3, 10)), ("singleflight", (True,))):
        if rng.random() < 0.3:
            table[key] = rng.choice(values)
    return table


def _route(rng: random.Random, log: Planted, mode: str) -> dict[str, Any]:
    del mode
    to = rng.choice((MINI, HAIKU))
    evals: list[dict[str, Any]] = []
    for row in log.rows:
        if rng.random() < 0.8:
            scored = {"request_id": row["request_id"], "model": to[1], "score": rng.choice((0, 0.5, 1))}
            told = rng.choice(("", "", "tokens", "cost"))
            if told == "tokens":
                scored |= {
                    "input_tokens": row["input_tokens"] + rng.randint(0, 99),
                    "output_tokens": rng.randint(1, 900),
                }
            elif told == "cost":
                scored["cost_usd"] = rng.randint(1, 2_000) / MICRO
            evals.append(scored)
    evals.append({"feature": "ask", "model": to[1], "score": 1})
    table = {
        "where": _where(rng),
        "to_provider": to[0],
        "to_model": to[1],
        "evals": evals,
        "min_quality": rng.choice((0.5, 1)),
        "router_usd": rng.choice((0, 3)) / MICRO,
        "cache": rng.choice(("follow", "keep", "lose")),
        "output_ratio": rng.choice((1, [0.7, 1, 1.5], [0.8, 1.1, 1.3])),
        "token_ratio": rng.choice((1, 1.3)),
    }
    if rng.random() < 0.3:
        table |= {"verifier": {"usd": 20 / MICRO, "candidate_in_prompt": rng.random() < 0.5}, "cache": "keep"}
        del table["router_usd"]
    elif rng.random() < 0.3:
        table["sticky"] = True
    return table


def _prefix_cache(rng: random.Random, log: Planted, mode: str) -> dict[str, Any]:
    del log
    if mode == "billed":
        return {"where": _where(rng), "policy": rng.choice(("none", "none", "as_shipped"))}
    table = {"where": _where(rng), "policy": rng.choice(("history", "history", "system")), "lifetime": "default"}
    if table["policy"] == "system":
        table["system_tokens"] = rng.choice((1_024, 1_500, 4_096))
    elif rng.random() < 0.4:
        table["lifetime"] = "long"
    return table


def _trim(rng: random.Random, log: Planted, mode: str) -> dict[str, Any]:
    del log, mode
    table = {
        "where": _where(rng),
        "input_remove_ratio": rng.choice((0, 0.25, 0.333, [0.1, 0.2, 0.3])),
        "output_ratio": rng.choice((0.5, 0.77, [0.6, 0.7, 0.9])),
        "cut": rng.choice(("tail", "head")),
    }
    if rng.random() < 0.3:
        table["output_cap"] = 300
    return table


def _distill(rng: random.Random, log: Planted, mode: str) -> dict[str, Any]:
    del log, mode
    student = rng.choice(({"input": "0.3", "output": "1.2"}, {"input": "1.1", "output": "6"}))
    if rng.random() < 0.5:
        student = {**student, "cache_read": "0.03"}
    return {
        "where": _where(rng),
        "student": student,
        "training_usd": rng.choice((0, 0.5)),
        "hosting_usd_per_hour": rng.choice((0, 0.0007)),
        "retrain_days": rng.choice((30, 90)),
        "output_ratio": rng.choice((1, 1.1)),
        "cache": rng.choice(("follow", "keep", "lose")),
    }


def _batch_api(rng: random.Random, log: Planted, mode: str) -> dict[str, Any]:
    del log, mode
    return {
        "where": _where(rng),
        "cache_hit_factor": rng.choice((1, 0.3, [0.3, 0.65, 0.98])),
        "expiry_ratio": rng.choice((0, 0.03)),
    }


TABLES = {
    "skip": _skip,
    "route": _route,
    "prefix_cache": _prefix_cache,
    "trim": _trim,
    "distill": _distill,
    "batch_api": _batch_api,
}
