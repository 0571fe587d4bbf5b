"""P10 and the log of the issue: levers side by side, and levers on the same tokens."""

from __future__ import annotations

import itertools
import random
from datetime import timedelta

from planted.base import HAIKU, SONNET, Planted, cost, is_one_of, when
from planted.caches import blocks


def _scored(log: Planted, row: dict, score: int = 1) -> None:
    log.assume["route"]["evals"].append({"request_id": row["request_id"], "model": HAIKU[1], "score": score})


def _route(where) -> dict:
    return {"where": where, "to_model": HAIKU[1], "min_quality": 1, "output_ratio": 1, "evals": []}


def disjoint(seed: int) -> Planted:
    """Four levers, each on a route of its own: what they save adds up exactly."""
    rng = random.Random(f"P10 disjoint {seed}")
    days = rng.randint(14, 21)
    log = Planted(
        assume={
            "skip": {"where": is_one_of("feature", "faq")},
            "route": _route(is_one_of("feature", "ask")),
            "trim": {"where": is_one_of("feature", "docs"), "input_remove_ratio": 0.25, "output_ratio": 0.5},
            "batch_api": {"where": is_one_of("feature", "offline")},
        }
    )
    saved = dict.fromkeys(log.assume, 0)
    for number in range(rng.randint(70, 90)):
        for feature in ("faq", "ask", "docs", "offline"):
            tokens, output = 4 * rng.randint(50, 2_000), 2 * rng.randint(5, 400)
            at = when(rng, number % days, latest_s=80_000)
            now = cost(SONNET, tokens, output)
            row = log.add(SONNET, at, tokens, output, feature=feature)
            if feature == "faq":
                row |= {"prompt_hash": f"p{number}", "params_hash": "same"}
                log.add(
                    SONNET,
                    at + timedelta(minutes=1),
                    tokens,
                    output,
                    feature=feature,
                    prompt_hash=f"p{number}",
                    params_hash="same",
                )
                saved["skip"] += now
            elif feature == "ask":
                is_easy = rng.randint(0, 1)
                _scored(log, row, is_easy)
                saved["route"] += is_easy * (now - cost(HAIKU, tokens, output))
            elif feature == "docs":
                saved["trim"] += now - cost(SONNET, tokens * 3 // 4, output // 2)
            else:
                saved["batch_api"] += now - cost(SONNET, tokens, output, tier="batch")
    log.fill(rng, days)
    log.truth = saved
    log.joint = sum(saved.values())
    return log


def same_tokens(seed: int) -> Planted:
    """Three levers on the same tokens: a third, a half and a half are left, so a twelfth of it with all three."""
    rng = random.Random(f"P10 same {seed}")
    days, where = rng.randint(14, 21), is_one_of("feature", "all")
    log = Planted(
        assume={
            "route": _route(where),
            "trim": {"where": where, "input_remove_ratio": 0.5, "output_ratio": 0.5},
            "batch_api": {"where": where},
        }
    )
    spend = 0
    for number in range(rng.randint(150, 250)):
        tokens, output = 2 * rng.randint(50, 4_000), 2 * rng.randint(5, 400)
        _scored(log, log.add(SONNET, when(rng, number % days), tokens, output, feature="all"))
        spend += cost(SONNET, tokens, output)
    log.fill(rng, days)
    log.truth = {"route": spend * 2 // 3, "trim": spend // 2, "batch_api": spend // 2}
    log.joint = spend * 11 // 12
    return log


def issue_log(seed: int) -> Planted:
    """Five levers whose savings alone sum to more than 95 % of spend, and to about two thirds together.

    Each request has marks that say which levers want it: `team` easy (a third is left on the small model), `client`
    offline (a half in batch), `environment` wordy (three quarters after trimming); duplicates in feature `faq`, and
    prompts that a session repeats in feature `chat` (1.25 times when written, a tenth when read).
    """
    for attempt in itertools.count():
        log, spend = _issue_log(random.Random(f"issue {seed} {attempt}"))
        alone = sum(log.truth.values())
        if alone > spend * 96 // 100 and spend * 64 // 100 < log.joint < spend * 70 // 100:
            return log
    raise AssertionError


def _issue_log(rng: random.Random) -> tuple[Planted, int]:
    days = rng.randint(14, 21)
    easy, wordy, offline = is_one_of("team", "easy"), is_one_of("environment", "wordy"), is_one_of("client", "offline")
    log = Planted(
        assume={
            "skip": {"where": is_one_of("feature", "faq")},
            "route": _route(easy),
            "prefix_cache": {"where": is_one_of("feature", "chat"), "policy": "history"},
            "trim": {"where": wordy, "input_remove_ratio": 0.25, "output_ratio": 0.75},
            "batch_api": {"where": offline},
        }
    )
    levers = tuple(log.assume)
    left = dict.fromkeys((*levers, "none", "all"), 0)

    def add(at, tokens, output, kind="", marks=None, **columns):
        marks = {
            "team": rng.choices(("easy", "hard"), (61, 39))[0],
            "environment": rng.choices(("wordy", "terse"), (96, 4))[0],
            "client": rng.choices(("offline", "online"), (41, 59))[0],
            **(marks or {}),
        }
        _scored(log, log.add(SONNET, at, tokens, output, **marks, **columns))
        for done in left:
            wanted = levers if done == "all" else (done,)
            if kind == "again" and "skip" in wanted:
                continue
            model = HAIKU if "route" in wanted and marks["team"] == "easy" else SONNET
            parts = [tokens, output]
            if "trim" in wanted and marks["environment"] == "wordy":
                parts = [part * 3 // 4 for part in parts]
            tier = "batch" if "batch_api" in wanted and marks["client"] == "offline" else "standard"
            place = {"written": "write", "read": "read"}.get(kind) if "prefix_cache" in wanted else None
            text, classes = (0, {place: parts[0]}) if place else (parts[0], {})
            left[done] += cost(model, text, parts[1], tier=tier, **classes)
        return marks

    for number in range(250):
        at, tokens, output = when(rng, number % days, 70_000), 4 * rng.randint(400, 3_000), 4 * rng.randint(20, 250)
        hashes = {"feature": "faq", "prompt_hash": f"p{number}", "params_hash": "same"}
        marks = add(at, tokens, output, **hashes)
        if number % 9 == 0:
            add(at + timedelta(minutes=1), tokens, output, "again", marks, **hashes)
    for number in range(16):
        at, tokens = when(rng, number % days, 70_000), 512 * rng.randint(15, 20)  # trimmed still above haiku's minimum
        columns = {"feature": "chat", "project": "a", **blocks(f"c{number}", tokens)}
        marks = {"client": "online"}
        for turn in range(3):
            marks = add(at, tokens, 40, "read" if turn else "written", marks, **columns)
            at += timedelta(seconds=60)
    log.rows.sort(key=lambda row: row["ts"])
    spend = left["none"]
    log.truth = {lever: spend - left[lever] for lever in levers}
    log.joint = spend - left["all"]
    return log, spend
