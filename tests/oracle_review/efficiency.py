"""Caching and its return (formats.md C1, B2), waste by first cause, growth of the context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from statistics import mean, median

from oracle_review.basics import KINDS, Row
from oracle_review.units import FAILED


def hit_ratios(rows: Iterable[Row]) -> tuple[Fraction | None, Fraction | None]:
    """Tokens read over all input, and requests that read over all; of billed requests that tell both."""
    told = [r for r in rows if r.is_billed and r["input_tokens"] is not None and r["cache_read_tokens"] is not None]
    tokens = sum(row["input_tokens"] for row in told)
    read = sum(row["cache_read_tokens"] for row in told)
    hits = sum(row["cache_read_tokens"] > 0 for row in told)
    return Fraction(read, tokens) if tokens else None, Fraction(hits, len(told)) if told else None


def cache_return(rows: Iterable[Row]) -> tuple[int, int, int, int]:
    """input_total x p_in; uncached x p_in + read x p_read + write x p_write + storage; premium of writes; storage."""
    without = billed = premium = storage = 0
    for row in rows:
        if not row.is_priced or row.entry is None:
            continue
        rates = {name: int(rate) for name, rate in row.entry.rates.items()}
        units = {name: n for name, (n, _) in row.meters.items()}
        stored = row.meters.get("cache_storage", (0, 0))[1]
        tokens = sum(n for name, n in units.items() if KINDS.get(name) in ("uncached", "read", "write"))
        without += tokens * rates["input"]
        billed += stored + sum(pusd for name, (_, pusd) in row.meters.items() if KINDS.get(name, "output") != "output")
        for name in ("cache_write", "cache_write_long"):
            if units.get(name):
                premium += units[name] * (rates[name] - rates["input"])
        storage += stored
    return without, billed, premium, storage


def waste(rows: Iterable[Row], log: Iterable[Row]) -> dict[str, tuple[int, int]]:
    """First cause to (requests, pUSD) of billed requests; `duplicate` is a ceiling.

    A retry of a billed failure is that failure's waste, wherever in the log it is.
    """
    rows = sorted((r for r in rows if r.is_billed), key=lambda r: (r["ts"], r["request_id"] or ""))
    failed = {row["request_id"] for row in log if row.is_billed and row["status"] in FAILED}
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    answered: set[tuple[str | None, ...]] = set()
    for row in rows:
        key = tuple(row[name] for name in ("org", "project", "provider", "model", "prompt_hash", "params_hash"))
        is_whole = row["status"] not in FAILED and row["finish_reason"] != "length"
        asks_again = (row["attempt"] or 0) > 0 or row["retry_of"] is not None
        is_known = row["prompt_hash"] is not None and row["params_hash"] is not None
        cause = None
        if row["status"] in FAILED:
            cause = "error"
        elif asks_again and not (row["retry_of"] is not None and row["retry_of"] in failed):
            cause = "retry"
        elif row["finish_reason"] == "length":
            cause = "truncated"
        elif is_known and key in answered:
            cause = "duplicate"
        if is_known and is_whole:
            answered.add(key)
        if cause:
            found[cause][0] += 1
            found[cause][1] += row.cost or 0
    return {cause: (n, pusd) for cause, (n, pusd) in found.items()}


def turns(rows: Iterable[Row]) -> dict[str, list[int]]:
    """Input of each session's billed requests, in the order of their starts."""
    sessions: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.is_billed and row["session_id"] is not None and row["input_tokens"] is not None:
            sessions[row["session_id"]].append(row)
    return {
        name: [r["input_tokens"] for r in sorted(some, key=lambda r: (r["ts"], r["request_id"] or ""))]
        for name, some in sessions.items()
    }


def growth(rows: Iterable[Row]) -> tuple[int, Fraction, Fraction]:
    """Sessions of more than one turn; mean last over mean first input of them; the middle session's ratio."""
    many = [inputs for inputs in turns(rows).values() if len(inputs) > 1]
    last, first = (sum(Fraction(inputs[at]) for inputs in many) for at in (-1, 0))
    return len(many), last / first, Fraction(median(Fraction(i[-1], i[0]) for i in many if i[0]))


def by_turn(rows: Iterable[Row]) -> list[tuple[int, Fraction, Fraction]]:
    """Per turn: requests, mean input, and its ratio to the first input of the same sessions; from turn 1."""
    sessions = [inputs for inputs in turns(rows).values() if inputs]
    found: list[tuple[int, Fraction, Fraction]] = []
    for turn in range(max(len(inputs) for inputs in sessions)):
        reached = [inputs for inputs in sessions if len(inputs) > turn]
        here = sum(Fraction(inputs[turn]) for inputs in reached)
        found.append((len(reached), here / len(reached), here / sum(inputs[0] for inputs in reached)))
    return found


def reasoning_share(rows: Iterable[Row]) -> Fraction:
    """What reasoning tokens cost, as output or at a price of their own, over spend."""
    part, whole = Fraction(0), 0
    for row in rows:
        if row.is_priced:
            whole += row.cost or 0
            units, pusd = row.meters.get("output", (0, 0))
            if units and "reasoning" not in row.meters:
                part += Fraction(pusd * (row["reasoning_tokens"] or 0), units)
            part += row.meters.get("reasoning", (0, 0))[1]
    return part / whole


def mean_input(rows: Iterable[Row]) -> Fraction:
    """Mean known input of billed requests."""
    return Fraction(mean(Fraction(r["input_tokens"]) for r in rows if r.is_billed and r["input_tokens"] is not None))
