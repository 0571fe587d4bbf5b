"""P2: sessions with known chains of prefix blocks; and P6 within such prefixes."""

from __future__ import annotations

import random
from datetime import timedelta

from planted.base import GPT, SONNET, Planted, cost, is_one_of, when

BLOCK = 128
MINIMUM = 1_024  # of both models
LIFETIME = {(SONNET, "default"): 300, (SONNET, "long"): 3_600, (GPT, "default"): 300, (GPT, "long"): 86_400}


def blocks(name: str, tokens: int) -> dict[str, object]:
    """The prefix hashes of a prompt that starts a named text."""
    return {"prefix_hashes": [f"{name}/{n}" for n in range(tokens // BLOCK)], "prefix_block_tokens": BLOCK}


def cached(model: tuple[str, str], tokens: int, read: int, output: int, lifetime: str) -> int:
    """Cost with so much read; the rest of a prompt that is long enough is written, if the model has a write fee."""
    rest = tokens - read
    if model == GPT or tokens < MINIMUM:
        return cost(model, rest, output, read)
    return cost(model, 0, output, read, **{"long" if lifetime == "long" else "write": rest})


def prefix_sessions(seed: int) -> Planted:
    """Turns at gaps around the lifetimes, first prompts around the minimum, and many at once on a cold prefix."""
    rng = random.Random(f"P2 {seed}")
    days, lifetime = rng.randint(14, 21), rng.choice(("default", "long"))
    log = Planted(
        assume={"prefix_cache": {"where": is_one_of("feature", "chat"), "policy": "history", "lifetime": lifetime}}
    )
    saved = 0
    for number in range(rng.randint(60, 80)):
        model = rng.choice((SONNET, GPT))
        at = when(rng, number % days, latest_s=50_000)
        tokens = rng.choice((1_023, 1_024, 1_025, rng.randint(1_100, 9_000)))
        read = 0
        columns = {"feature": "chat", "session_id": f"s{number}", "project": rng.choice(("a", "b"))}
        for _ in range(rng.randint(2, 4)):
            output = rng.randint(20, 400)
            log.add(model, at, tokens, output, **columns, **blocks(f"s{number}", tokens))
            saved += cost(model, tokens, output) - cached(model, tokens, read, output, lifetime)
            gap = rng.choice((299, 300, 301, 3_599, 3_600, 3_601))
            # The next turn finds the whole blocks of this one, if this one was long enough and is not too old.
            is_kept = tokens >= MINIMUM and gap <= LIFETIME[model, lifetime]
            read = tokens // BLOCK * BLOCK if is_kept else 0
            at += timedelta(seconds=gap)
            tokens += rng.randint(0, 700)
    for number in range(rng.randint(3, 6)):
        saved += _fan_out(rng, log, f"f{number}", rng.randrange(days), lifetime)
    log.fill(rng, days)
    log.truth = {"prefix_cache": saved}
    log.joint = saved
    return log


def _fan_out(rng: random.Random, log: Planted, name: str, day: int, lifetime: str) -> int:
    """Many at once on a cold prefix: each writes, until the first token of the first; later ones read."""
    model, tokens, at, saved = rng.choice((SONNET, GPT)), BLOCK * rng.randint(8, 40), when(rng, day, 50_000), 0
    first_token = 1_000
    early = [0, *sorted(rng.randrange(1, first_token) for _ in range(rng.randint(2, 6))), first_token]
    late = [first_token + 1, 5_000, 60_000]
    for offset_ms in (*early, *late):
        output = rng.randint(20, 400)
        columns = {"feature": "chat", "ttft_ms": float(first_token), "project": "a"}
        log.add(model, at + timedelta(milliseconds=offset_ms), tokens, output, **columns, **blocks(name, tokens))
        read = tokens if offset_ms in late else 0
        saved += cost(model, tokens, output) - cached(model, tokens, read, output, lifetime)
    return saved


def trimmed_prefixes(seed: int) -> Planted:
    """Half of each prompt goes: at the tail the shared prefix stays shared, at the head nothing is."""
    rng = random.Random(f"P6 in prefixes {seed}")
    days, cut = rng.randint(14, 21), rng.choice(("tail", "head"))
    where = is_one_of("feature", "chat")
    log = Planted(
        assume={
            "trim": {"where": where, "input_remove_ratio": 0.5, "cut": cut},
            "prefix_cache": {"where": where, "policy": "history"},
        }
    )
    spend = trimmed = cached_only = both = 0
    for number in range(rng.randint(80, 100)):
        model = rng.choice((SONNET, GPT))
        at = when(rng, number % days, latest_s=80_000)
        half = read = shared = 0
        for _ in range(rng.randint(2, 3)):
            before, half = half, half + BLOCK * rng.randint(5, 20)
            tokens, output = 2 * half, rng.randint(20, 400)
            columns = {"feature": "chat", "session_id": f"s{number}", "project": "a"}
            log.add(model, at, tokens, output, **columns, **blocks(f"s{number}", tokens))
            read = 2 * before if 2 * before >= MINIMUM else 0
            # From the head as many blocks go as stay: another number each turn, so no turn finds another's.
            shared = before if before >= MINIMUM and cut == "tail" else 0
            spend += cost(model, tokens, output)
            trimmed += cost(model, half, output)
            cached_only += cached(model, tokens, read, output, "default")
            both += cached(model, half, shared, output, "default")
            at += timedelta(seconds=rng.randint(5, 300))
    log.fill(rng, days)
    log.truth = {"trim": spend - trimmed, "prefix_cache": spend - cached_only}
    log.joint = spend - both
    return log
