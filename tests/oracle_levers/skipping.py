"""Lever 1: an exact response cache, replayed; and requests that need no model."""

from __future__ import annotations

from typing import Any

from oracle_levers.core import Bill, Pricer, Request, Table, after_us, in_where, pusd, start_us

STORED_REASON = "length"


def apply(bill: Bill, pricer: Pricer, table: Table, scenario: str) -> Bill:
    """The rule: "A hit (or a rule match) removes the request: cost 0, plus fees"."""
    del scenario
    rule = table.get("rule")
    inside = [one for one in bill.versions if in_where(table, one.request)]
    # The rule: "lookup_usd is paid on every billed request in where and allowed (priced or not, hit or not, rule
    # matches too)"
    # The rule: "classifier_usd likewise when rule is given"
    fee = pusd(table.get("lookup_usd", 0)) + (pusd(table.get("classifier_usd", 0)) if rule else 0)
    by_rule = {one.origin for one in inside if rule and rule(one.request)}
    gone = by_rule | hits([(one.origin, one.request) for one in inside if one.origin not in by_rule], table)
    made = Bill([], bill.fees + fee * len(inside), dict(bill.touched))
    for one in bill.versions:
        # The rule: "A removed request that is unpriced saves nothing": it stays as it was.
        if one.origin in gone and pricer.is_priced(one):
            made.touch("skip", one.origin)
        else:
            made.versions.append(one)
    return made


def key_of(request: Request, table: Table) -> tuple[Any, ...] | None:
    """The rule: "Key: scope columns, provider, model, prompt_hash, params_hash"; NULL hashes never hit."""
    if request.get("prompt_hash") is None or request.get("params_hash") is None:
        return None
    scope = table.get("scope", ["org", "project"])
    columns = (*scope, "provider", "model", "prompt_hash", "params_hash")
    return tuple(request.get(column) for column in columns)


def stored_at(request: Request, table: Table) -> int | None:
    """When its answer is stored, if it is: `ts + duration_ms`, of a full answer that succeeded and is admitted."""
    is_whole = request.get("finish_reason") not in (None, STORED_REASON)
    admit = table.get("admit")
    if request.get("status") != "success" or not is_whole or (admit and not admit(request)):
        return None
    return after_us(request, "duration_ms")


def hits(population: list[tuple[int, Request]], table: Table) -> set[int]:
    """Which requests find their answer. Events in time; at one instant stores come before reads."""
    ttl = 1_000_000 * int(table.get("ttl_s", 3_600))
    capacity = table.get("capacity")
    found: set[int] = set()
    waiting: list[tuple[int, int, int, Any]] = []  # answers of misses: stored at, start, place, key
    entries: dict[Any, tuple[int, int]] = {}  # key: stored at, and when last read or stored (a running number)
    clock = 0
    ready = [
        (t, place, r) for place, r in population if (t := start_us(r)) is not None and key_of(r, table) is not None
    ]
    for t, place, request in sorted(ready, key=lambda one: one[:2]):
        # The rule: "stored by a request that began strictly before t, with s <= t"; stores by s, then start, then rid
        for store in sorted(one for one in waiting if one[0] <= t and one[1] < t):
            waiting.remove(store)
            clock += 1
            _store(entries, store, clock, ttl, capacity)
        key = key_of(request, table)
        at = entries.get(key)
        if at is not None and t - at[0] <= ttl:  # "t - s <= ttl_s (inclusive)"
            clock += 1
            entries[key] = (at[0], clock)  # "Hits renew nothing (but count as read for LRU)"
            found.add(place)
            continue
        # The rule: "singleflight: a request also hits when an equal request began strictly before t, is a miss whose
        # answer
        # will be stored, and is still running (s > t)"
        if table.get("singleflight") and any(one[3] == key and one[1] < t < one[0] for one in waiting):
            found.add(place)
            continue
        stored = stored_at(request, table)  # "An answer is stored by a miss only"
        if stored is not None:
            waiting.append((stored, t, place, key))
    return found


def _store(entries: dict[Any, tuple[int, int]], store: Any, clock: int, ttl: int, capacity: int | None) -> None:
    at, _, _, key = store
    # The rule: "Expired entries (s + ttl < now) no longer count"
    for old in [one for one, (s, _) in entries.items() if s + ttl < at]:
        del entries[old]
    entries[key] = (at, clock)  # "A later store of the same key replaces it"
    # The rule: "on a store beyond it the least recently read or stored entry goes"
    if capacity is not None and len(entries) > capacity:
        del entries[min(entries, key=lambda one: entries[one][1])]
