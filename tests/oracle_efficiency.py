"""A second, slow reading of unit costs and of efficiency: one request after the other, in plain Python.

It prices with `oracle.price_request` and shares nothing with the package but column names.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from oracle import is_billed, price_request

FAILURES = {"error", "cancelled", "expired", "blocked", "timeout"}
INPUT_SIDE = ("uncached_input", "cache_read", "cache_write", "cache_write_long", "cache_storage")
CACHED = ("cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens", "cache_storage_token_s")


def _cost(book, request):
    found = price_request(book, request)
    return None if found.cost_pusd is None else int(found.cost_pusd)


def _side(book, request):
    return sum(int(price_request(book, request).meters.get(name, (0, 0))[1]) for name in INPUT_SIDE)


def waste(book, requests):
    """Cause to (requests, cost) of all that bear its mark, and of those of which it is the first cause."""
    failed_ids = {r["request_id"] for r in requests if is_billed(r) and r.get("status") in FAILURES}
    seen = set()
    marked, once = defaultdict(lambda: [0, 0]), defaultdict(lambda: [0, 0])
    for request in sorted(requests, key=lambda r: (r["ts"], r["request_id"])):
        if not is_billed(request):
            continue
        marks = []
        failed, cut = request.get("status") in FAILURES, request.get("finish_reason") == "length"
        if failed:
            marks.append("error")
        if (request.get("attempt") or 0) > 0 or request.get("retry_of") is not None:
            marks.append("retry")
        if cut:
            marks.append("truncated")
        key = tuple(request.get(name) for name in ("org", "project", "provider", "model", "prompt_hash", "params_hash"))
        if key[4] is not None and key[5] is not None and not failed and not cut:
            if key in seen:
                marks.append("duplicate")
            seen.add(key)
        cost = _cost(book, request) or 0
        for mark in marks:
            marked[mark][0] += 1
            marked[mark][1] += cost
        counting = [mark for mark in marks if not (mark == "retry" and request.get("retry_of") in failed_ids)]
        if counting:
            once[counting[0]][0] += 1
            once[counting[0]][1] += cost
    return {name: tuple(value) for name, value in marked.items()}, {name: tuple(v) for name, v in once.items()}


def caching(book, requests):
    """Cost of the input side without caching, as billed, and what writes cost beyond uncached input."""
    uncached = billed = premium = 0
    for request in requests:
        if not is_billed(request) or _cost(book, request) is None:
            continue
        now = _side(book, request)
        then = _side(book, {**request, **dict.fromkeys(CACHED, 0)})
        billed, uncached = billed + now, uncached + then
        written = request.get("cache_write_tokens") or 0
        unwritten = {**request, "cache_write_tokens": 0, "cache_write_long_tokens": 0}
        if written:
            premium += now - _side(book, unwritten)
    return uncached, billed, premium


def growth(requests):
    """Per session of more than one turn: last over first input."""
    sessions = defaultdict(list)
    for request in sorted(requests, key=lambda r: (r["ts"], r["request_id"])):
        if is_billed(request) and request.get("session_id") and request.get("input_tokens") is not None:
            sessions[request["session_id"]].append(request["input_tokens"])
    return [Fraction(turns[-1], turns[0]) for turns in sessions.values() if len(turns) > 1 and turns[0]]


def outcomes(book, requests):
    """Cost of requests whose outcome is known, good outcomes, and how many priced requests are open."""
    repeated = {r["retry_of"] for r in requests if r.get("retry_of")}
    judged = {_work(r) for r in requests if r.get("outcome_ok") is not None} - {None}
    pusd = good = still_open = 0
    for request in requests:
        cost = _cost(book, request)
        if cost is None:
            continue
        verdict = request.get("outcome_ok")
        known = request.get("status") in FAILURES or request["request_id"] in repeated or _work(request) in judged
        if verdict is None and known:
            verdict = False
        good += verdict is True
        if is_billed(request) and verdict is not None:
            pusd += cost
        still_open += verdict is None and (is_billed(request) or request.get("gateway_cache_hit") is True)
    return pusd, good, still_open


def _work(request):
    return request.get("session_id") or request.get("trace_id")


def per_distinct(book, requests, column):
    """Cost of priced requests that name something, and how many different ones they name."""
    named = [r for r in requests if is_billed(r) and r.get(column) is not None and _cost(book, r) is not None]
    return sum(_cost(book, r) for r in named), len({r[column] for r in named})
