"""P1: duplicates at known distances from the end of their time to live."""

from __future__ import annotations

import random
from datetime import timedelta

from planted.base import MICRO, SONNET, Planted, cost, is_one_of, when

US = timedelta(microseconds=1)


def duplicates(seed: int) -> Planted:
    """Keys that are asked again: within the time to live (hit), just after it, while running, elsewhere (misses)."""
    rng = random.Random(f"P1 {seed}")
    days, ttl, lookup = rng.randint(14, 21), rng.choice((600, 3_600, 7_200)), rng.choice((0, 3))
    log = Planted(assume={"skip": {"where": is_one_of("feature", "faq"), "ttl_s": ttl, "lookup_usd": lookup / MICRO}})
    saved = asked = 0
    for key in range(rng.randint(60, 80)):
        tokens = rng.randint(200, 3_000)
        read = rng.choice((0, tokens // 2))
        at = when(rng, key % days, latest_s=50_000)
        columns = {"feature": "faq", "prompt_hash": f"p{key}", "params_hash": "same", "cache_read_tokens": read}

        def ask(at, output=None, *, columns=columns, tokens=tokens, **other):
            output = rng.randint(5, 500) if output is None else output
            return log.add(SONNET, at, tokens, output, **{**columns, **other})

        def hit(at, *, ask=ask, tokens=tokens, read=read):
            row = ask(at)
            return cost(SONNET, tokens - read, row["output_tokens"], read)

        n = len(log.rows)
        ms = rng.choice((1_500.0, 2_000.5, 30_000.0))
        stored = at + timedelta(milliseconds=ms)
        kind = rng.choice(("ends", "expired", "running", "elsewhere", "cut", "failed"))
        if kind in ("cut", "failed"):  # an answer that is not whole is not kept: the next one is, and serves the third
            bad = {"finish_reason": "length"} if kind == "cut" else {"status": "error"}
            ask(at, duration_ms=ms, **bad)
            ask(stored + timedelta(seconds=1), duration_ms=1_000.0)
            saved += hit(stored + timedelta(seconds=2 + rng.randrange(ttl)))
        elif kind == "running":  # asked while the first runs: paid twice, and kept anew from the end of the second
            ask(at, duration_ms=ms)
            ask(stored - US, duration_ms=1_000.0)
            again = stored - US + timedelta(seconds=1)
            saved += hit(again - US) + hit(again + timedelta(seconds=ttl))
            ask(again + timedelta(seconds=ttl) + US)
        elif kind == "elsewhere":  # another scope, other parameters
            ask(at, duration_ms=ms)
            ask(stored + timedelta(seconds=5), org="other")
            ask(stored + timedelta(seconds=6), params_hash="warmer")
        else:
            ask(at, duration_ms=ms)
            for _ in range(rng.randint(0, 3)):
                saved += hit(stored + timedelta(microseconds=rng.randrange(ttl * MICRO)))
            saved += hit(stored) + hit(stored + timedelta(seconds=ttl))
            if kind == "expired":  # one too late is paid and kept again
                late = stored + timedelta(seconds=ttl) + US
                ask(late, duration_ms=1_000.0)
                saved += hit(late + timedelta(seconds=1 + ttl))
        asked += len(log.rows) - n
    log.fill(rng, days)
    log.truth = {"skip": saved - asked * lookup * MICRO}
    log.joint = log.truth["skip"]
    return log
