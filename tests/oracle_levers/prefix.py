"""Lever 3: the provider's prompt cache, replayed on prefix blocks (or on turns of sessions), O(n^2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from oracle_levers.core import Bill, Pricer, Request, Table, Version, after_us, count, in_where, micros, start_us
from oracle_levers.rules import Rule, Rules

UNCACHED = {"cache_read_tokens": 0, "cache_write_tokens": 0, "cache_write_long_tokens": 0}


@dataclass(frozen=True)
class Use:
    """What one call asks of the cache: its pool, and its prompt up to the breakpoint."""

    place: int
    request: Request
    rule: Rule
    pool: tuple[Any, ...]
    at: int
    visible: int  # when what it wrote can be read
    blocks: tuple[Any, ...]
    tokens: int  # up to the breakpoint

    @property
    def touches(self) -> bool:
        """The rule: "If the breakpoint's length in tokens < min: nothing read or written, and nothing touched"."""
        return self.tokens > 0 and self.tokens >= self.rule.min_tokens


def apply(bill: Bill, pricer: Pricer, table: Table, scenario: str, rules: Rules) -> Bill:
    """Prefix state under a policy."""
    policy = table.get("policy", "as_shipped")
    made = Bill([], bill.fees, dict(bill.touched))
    reads = {} if policy in ("none", "as_shipped") else replayed(bill.versions, table, scenario, rules)
    for place, one in enumerate(bill.versions):
        after = one
        if one.fixed is None and in_where(table, one.request):
            if policy == "none":  # "no caching, all input uncached"; a NULL stays NULL
                after = one.changed({**one.request, **{name: 0 for name in UNCACHED if one.request.get(name)}})
            elif place in reads:
                after = one.changed(_billed(one.request, *reads[place], table, pricer))
        if after != one and pricer.may_become(one, [after]):
            if pricer.cost(after) is not None:
                made.touch("prefix_cache", one.origin)
            made.versions.append(after)
        else:
            made.versions.append(one)
    return made


def _billed(request: Request, read: int, tokens: int, table: Table, pricer: Pricer) -> dict[str, Any]:
    """Read and written tokens as the provider bills them."""
    entry = pricer.entry(request)
    # The rule: "if the entry has a cache_write rate, written tokens are cache_write; else they stay uncached"
    written = tokens - read if entry is not None and "cache_write" in entry.rates else 0
    is_long = table.get("lifetime", "default") == "long"
    return {
        **request,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "cache_write_long_tokens": written if is_long else 0,
    }


def uses(
    versions: list[Version], table: Table, rules: Rules, scenario: str = "mid", *, as_shipped: bool = False
) -> list[Use]:
    """The rule: "population: billed requests in where, ts not NULL, prefix_hashes not NULL and not empty, with
    a cache rule".
    """
    made: list[Use] = []
    for place, one in enumerate(versions):
        request = one.request
        at = start_us(request)
        if at is None or one.fixed is not None or not in_where(table, request) or not one.blocks:
            continue
        rule = rules.find(str(request.get("provider")), str(request.get("model")), request["ts"])
        if rule is None or request.get("input_tokens") is None:
            continue
        blocks, tokens = _breakpoint(one, table, rule, as_shipped=as_shipped)
        made.append(Use(place, request, rule, _pool(request, rule), at, _visible(request, scenario), blocks, tokens))
    return made


def _breakpoint(one: Version, table: Table, rule: Rule, *, as_shipped: bool) -> tuple[tuple[Any, ...], int]:
    size, tokens = int(one.request["prefix_block_tokens"]), int(one.request["input_tokens"])
    if as_shipped and rule.control != "automatic":
        # The rule: "breakpoint = floor((read + write as logged) / B) blocks for rules with control explicit or both"
        cached = count(one.request, "cache_read_tokens") + count(one.request, "cache_write_tokens")
        blocks = one.blocks[: cached // size]
        return blocks, min(len(blocks) * size, tokens)
    if table.get("policy") == "system" and not as_shipped:
        # The rule: "the first floor(system_tokens / B) blocks and not more than the request has, at most input_tokens"
        blocks = one.blocks[: int(table["system_tokens"]) // size]
        return blocks, min(len(blocks) * size, tokens)
    return one.blocks, tokens  # "history = the whole prompt"


def _pool(request: Request, rule: Rule) -> tuple[Any, ...]:
    """The rule: "(provider, model, org), plus project where the rule's scope holds workspace"."""
    project = request.get("project") if rule.per_project else None
    return request.get("provider"), request.get("model"), request.get("org"), project


def _visible(request: Request, scenario: str) -> int:
    """The rule: "the first token (ts + ttft_ms; ttft NULL: ts + duration_ms; both NULL: ts)"; 5 s later in low."""
    delay = 5_000_000 if scenario == "low" else 0
    for column in ("ttft_ms", "duration_ms"):
        at = after_us(request, column)
        if at is not None:
            return at + delay
    return micros(request["ts"]) + delay


def replayed(versions: list[Version], table: Table, scenario: str, rules: Rules) -> dict[int, tuple[int, int]]:
    """By place: tokens read, and tokens up to the breakpoint (both 0 below the minimum)."""
    found = uses(versions, table, rules, scenario)
    if not any(in_where(table, one.request) and one.blocks for one in versions):
        return by_session(versions, table, scenario, rules)
    return {one.place: (_read(one, found, table, scenario), one.tokens if one.touches else 0) for one in found}


def _read(one: Use, found: list[Use], table: Table, scenario: str) -> int:
    if not one.touches:
        return 0
    lifetime = one.rule.lifetime_us(table.get("lifetime", "default"), scenario)
    earlier = [other for other in found if other.pool == one.pool and other.at < one.at and other.touches]
    run = 0
    for block in one.blocks:  # "longest run of leading blocks (up to the breakpoint)"
        if not _is_there(block, one.at, earlier, lifetime):
            break
        run += 1
    size = int(one.request["prefix_block_tokens"])
    return _counted(min(run * size, one.tokens), one.rule)


def _counted(tokens: int, rule: Rule) -> int:
    """The rule: "floored to a multiple of rule.increment_tokens when > 0; if < min -> 0"."""
    tokens -= tokens % rule.increment_tokens if rule.increment_tokens else 0
    return tokens if tokens >= rule.min_tokens else 0


def _is_there(block: Any, now: int, earlier: list[Use], lifetime: int) -> bool:
    """Whether a block lives now, and could be read before now."""
    touches = sorted(((one.at, one.visible) for one in earlier if block in one.blocks), reverse=True)
    readable, last = None, now
    for at, visible in touches:  # back in time through "its current unbroken residence (touch gaps <= lifetime)"
        if last - at > lifetime:
            break
        readable = visible if readable is None else min(readable, visible)
        last = at
    return readable is not None and readable < now


def by_session(versions: list[Version], table: Table, scenario: str, rules: Rules) -> dict[int, tuple[int, int]]:
    """The rule: "turn n's reusable prefix = input_tokens of turn n-1 of the same session, pool and model"."""
    turns: list[Use] = []
    for place, one in enumerate(versions):
        at, request = start_us(one.request), one.request
        if at is None or request.get("session_id") is None or one.fixed is not None or not in_where(table, request):
            continue
        rule = rules.find(str(request.get("provider")), str(request.get("model")), request["ts"])
        if rule is None or request.get("input_tokens") is None:
            continue
        tokens = int(request["input_tokens"])
        if table.get("policy") == "system":
            tokens = min(tokens, int(table["system_tokens"]))
        pool = (*_pool(request, rule), request["session_id"])
        turns.append(Use(place, request, rule, pool, at, _visible(request, scenario), (), tokens))
    made: dict[int, tuple[int, int]] = {}
    for one in turns:
        lifetime = one.rule.lifetime_us(table.get("lifetime", "default"), scenario)
        earlier = [other for other in turns if other.pool == one.pool and other.at < one.at]
        last = max(earlier, key=lambda other: (other.at, other.place), default=None)
        read = 0
        # The rule: "if turn n's input >= turn n-1's input; same lifetime and readability rules"
        is_prefix = last is not None and one.touches and last.touches and one.tokens >= last.tokens
        if is_prefix and one.at - last.at <= lifetime and last.visible < one.at:
            read = _counted(last.tokens, one.rule)
        made[one.place] = (read, one.tokens if one.touches else 0)
    return made


def agreement(versions: list[Version], table: Table, rules: Rules) -> tuple[int, int]:
    """Predicted and billed reads of the as-shipped replay: the gate is 0.9 to 1.1."""
    found = uses(versions, table, rules, as_shipped=True)
    predicted = sum(_read(one, found, {}, "mid") for one in found)
    return predicted, sum(count(one.request, "cache_read_tokens") for one in found)


def is_withheld(versions: list[Version], table: Table, rules: Rules) -> bool:
    """Whether the gate withholds the dollars."""
    inside = [one.request for one in versions if in_where(table, one.request)]
    if not any(count(one, "cache_read_tokens") + count(one, "cache_write_tokens") for one in inside):
        return False
    predicted, billed = agreement(versions, table, rules)
    if not billed:
        return predicted > 0
    return not Fraction(9, 10) <= Fraction(predicted, billed) <= Fraction(11, 10)
