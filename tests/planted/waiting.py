"""P5 and P9: requests that can wait."""

from __future__ import annotations

import random
from datetime import timedelta

from planted.base import FLASH, GPT, OLD, SONNET, START, Planted, cost, is_one_of, when


def batches(seed: int) -> Planted:
    """Offline work with cached reads, where discounts stack and where not; agents, of which the last turn goes."""
    rng = random.Random(f"P5 {seed}")
    days, tenths, percent = rng.randint(14, 21), rng.choice((3, 10)), rng.choice((0, 5)) if seed % 2 else 0
    table = {"where": is_one_of("feature", "offline", "agent", "live", "due"), "cache_hit_factor": tenths / 10}
    if percent:
        table["expiry_ratio"] = percent / 100
    log = Planted(assume={"batch_api": table}, slo={"feature": {"due": {"deadline_s": 3_600}}})
    saved = 0

    def add(at, **columns):
        model = rng.choice((SONNET, GPT, OLD, FLASH))
        read, text, output = 100 * rng.randint(0, 80), rng.randint(100, 5_000), 20 * rng.randint(1, 50)
        write = 100 * rng.randint(0, 20) if model == SONNET else 0
        log.add(model, at, text + read + write, output, **columns, cache_read_tokens=read, cache_write_tokens=write)
        kept = read * tenths // 10
        now = cost(model, text, output, read, write)
        gain = now - cost(model, text + read - kept, output, kept, write, tier="batch")
        return gain - gain * percent // 100  # every gain is a multiple of 100 pUSD

    for number in range(rng.randint(120, 160)):
        saved += add(when(rng, number % days), feature="offline")
    for number in range(rng.randint(15, 25)):
        at = when(rng, number % days)
        for _ in range(rng.randint(2, 5)):
            gain = add(at, feature="agent", session_id=f"a{number}")
            at += timedelta(seconds=rng.randint(1, 3_600))
        saved += gain  # nothing follows the last turn
        if rng.random() < 0.3:  # one a day later: the turn before it could wait a day, too
            saved += add(at + timedelta(days=1), feature="agent", session_id=f"a{number}")
    for number in range(30):
        add(when(rng, number % days), feature="live", is_stream=True)
        add(when(rng, number % days), feature="due")
    log.fill(rng, days)
    log.truth = {"batch_api": saved}
    log.joint = saved
    return log


def noisy_batches(seed: int) -> Planted:
    """Which requests can wait is drawn; the truth is the expectation over the drawing, which the interval must cover.

    Days have more or less to do, or users have more or less to ask (each seed has one of the two, or neither).
    """
    rng = random.Random(f"P9 {seed}")
    days, users, cause = 42, 60, ("day", "user", "none")[seed % 3]
    log = Planted(assume={"batch_api": {"where": is_one_of("feature", "offline")}}, exact=False)
    of_user = [rng.choice((0.25, 0.75)) if cause == "user" else 0.5 for _ in range(users)]
    of_day = [rng.choice((0.25, 0.75)) if cause == "day" else 0.5 for _ in range(days)]
    requests, largest = 480, 4_000
    for _ in range(requests):
        day, user = rng.randrange(days), rng.randrange(users)
        share = of_day[day] * of_user[user] / 0.5
        feature = "offline" if rng.random() < share else "chat"
        at = START + timedelta(days=day, seconds=rng.randrange(86_400))
        log.add(GPT, at, 2 * rng.randint(1, largest), 100, feature=feature, user_id=f"u{user}")
    log.rows.sort(key=lambda row: row["ts"])
    mean = (cost(GPT, largest + 1, 100) - cost(GPT, largest + 1, 100, tier="batch")) // 2  # a half of all are offline
    log.truth = {"batch_api": requests * mean}
    return log
