"""KV cache in blocks: what requests hold, prefixes that they share, and what is thrown out when room is needed.

Memory is counted in pages, 16 tokens of a layer group's smallest common width, so that models whose layers look back
differently far have one pool; where all look back to the start, a page is a block. Compiled; see ``layout``.
"""

from __future__ import annotations

from tenfold.serving.memory import BLOCK_TOKENS
from tenfold.serving.simulator.jit import inner
from tenfold.serving.simulator.layout import Rules, State


@inner
def kept_tokens(rules: Rules, tokens: int) -> float:
    """Sum the tokens that a sequence of this length has in memory, over layer groups by width."""
    total = rules.state_tokens + rules.full_width * tokens
    for group in range(rules.windowed.shape[0]):
        total += rules.windowed[group, 0] * min(tokens, rules.windowed[group, 1])
    return total


@inner
def pages(rules: Rules, tokens: int) -> int:
    """Count the pages of a sequence of this length."""
    total = rules.state_pages + rules.full_width * _blocks(tokens)
    for group in range(rules.windowed.shape[0]):
        total += rules.windowed[group, 0] * _blocks(min(tokens, rules.windowed[group, 1]))
    return total


@inner
def _blocks(tokens: int) -> int:
    return (tokens + BLOCK_TOKENS - 1) // BLOCK_TOKENS


@inner
def cached_blocks(state: State, rules: Rules, at: int, who: int) -> int:
    """Count the leading prefix blocks of a request that are in memory; one token at least is left to compute."""
    one = state.requests[who]
    most = min(one.chained, (one.input + one.generated - 1) // rules.chain_tokens)
    found = 0
    while found < most and state.prefixes[at, state.chain[one.chain + found]].holders >= 0:
        found += 1
    return found


@inner
def _hold(state: State, rules: Rules, at: int, block: int) -> None:
    found, replica = state.prefixes[at, block], state.replicas[at]
    if found.holders == 0:
        state.prefixes[at, found.before].after = found.after
        state.prefixes[at, found.after].before = found.before
        replica.idle -= rules.chain_pages
    if found.holders <= 0:
        replica.used += rules.chain_pages
        found.holders = 0
    found.holders += 1


@inner
def _let_go(state: State, rules: Rules, at: int, block: int) -> None:
    found, replica = state.prefixes[at, block], state.replicas[at]
    found.holders -= 1
    if found.holders == 0:
        end = state.prefixes.shape[1] - 1
        found.before = state.prefixes[at, end].before
        found.after = end
        state.prefixes[at, found.before].after = block
        state.prefixes[at, end].before = block
        replica.used -= rules.chain_pages
        replica.idle += rules.chain_pages


@inner
def has_room(state: State, rules: Rules, at: int, who: int, found: int) -> bool:
    """Tell whether all tokens of a waiting request fit, above the watermark where others hold memory."""
    one, replica = state.requests[who], state.replicas[at]
    need = pages(rules, one.input + one.generated) - found * rules.chain_pages
    for place in range(found):
        if state.prefixes[at, state.chain[one.chain + place]].holders == 0:
            need += rules.chain_pages
    return replica.used == 0 or replica.used + need + rules.watermark <= rules.capacity


@inner
def share(state: State, rules: Rules, at: int, who: int, found: int) -> None:
    """Let a request begin with prefix blocks that are in memory."""
    one = state.requests[who]
    for place in range(found):
        _hold(state, rules, at, state.chain[one.chain + place])
    one.held = found
    one.computed = found * rules.chain_tokens
    if one.furthest == 0:  # it starts for the first time; later, these are tokens that need no recomputation
        one.cached = one.furthest = one.computed


@inner
def publish(state: State, rules: Rules, at: int, who: int) -> None:
    """Let others find the prefix blocks that a request has computed; what another has too is kept once."""
    one, replica = state.requests[who], state.replicas[at]
    while one.held < one.chained and one.computed >= (one.held + 1) * rules.chain_tokens:
        one.private -= rules.chain_pages
        replica.used -= rules.chain_pages
        _hold(state, rules, at, state.chain[one.chain + one.held])
        one.held += 1


@inner
def grow(state: State, rules: Rules, at: int, who: int, tokens: int) -> bool:
    """Give a request memory for some more tokens, if need be that of prefixes that nobody holds."""
    one, replica = state.requests[who], state.replicas[at]
    need = pages(rules, one.computed + tokens) - one.held * rules.chain_pages - one.private
    if replica.used + need > rules.capacity:
        return False
    end = state.prefixes.shape[1] - 1
    while replica.used + replica.idle + need > rules.capacity:
        oldest = state.prefixes[at, state.prefixes[at, end].after]
        state.prefixes[at, oldest.after].before = end
        state.prefixes[at, end].after = oldest.after
        oldest.holders = -1
        replica.idle -= rules.chain_pages
    replica.used += need
    one.private += need
    replica.peak = max(replica.peak, replica.used)
    return True


@inner
def release(state: State, rules: Rules, at: int, who: int) -> None:
    """Take a request's memory back; its prefix stays until room is needed, the last block first."""
    one = state.requests[who]
    state.replicas[at].used -= one.private
    one.private = 0
    for place in range(one.held - 1, -1, -1):
        _let_go(state, rules, at, state.chain[one.chain + place])
    one.held = 0
