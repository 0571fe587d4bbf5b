"""What goes into a step, and how long it takes. Compiled; see ``layout`` for the records.

Source: serving.md 6; vLLM 0.33, docs/configuration/optimization.md (V1: pending decodes first, then prompts in order of
arrival fill ``max_num_batched_tokens``, the last one chunked; preemption recomputes) and its V0 scheduler (whole
prompts first).
"""

from __future__ import annotations

import math

from tenfold.serving.memory import BLOCK_TOKENS
from tenfold.serving.simulator.blocks import cached_blocks, grow, has_room, kept_tokens, release, share
from tenfold.serving.simulator.jit import inner
from tenfold.serving.simulator.layout import Cost, Rules, State

_ANY = 1 << 60


@inner
def step_s(state: State, cost: Cost, at: int) -> float:
    """Give the seconds of the scheduled step.

    Formula:
        With decodes, as ``roofline.decode_s``, and what the chunks of prompts multiply and read again on top of it;
        without, the slower of reading and multiplying. A replica's speed divides all of it, its speed of decoding what
        a step with decodes takes apart from prompts and exchange.
    """
    step, replica = state.tally[0], state.replicas[at]
    weights = cost.weights_s * (1 - cost.expert_share * cost.expert_miss ** (step.decodes + step.prompt))
    chunks = cost.token_s * step.prompt + cost.pair_s * step.pairs
    again = cost.kept_token_s * step.reread
    links = cost.link_token_s * (step.decodes + step.prompt)
    if step.decodes > 0:
        decode = max(weights + cost.kept_token_s * step.kept, cost.token_s * step.decodes)
        decode += cost.overhead_s + cost.sequence_s * step.decodes
        return (decode / replica.decode_speed + chunks + again + links) / replica.speed
    return (max(weights + again, chunks) + cost.overhead_s + links) / replica.speed


@inner
def schedule(state: State, rules: Rules, at: int, now: float) -> None:
    """Choose what the next step of a replica computes, into the tally and ``take`` of its requests."""
    step = state.tally[0]
    step.decodes = step.prompt = 0
    step.kept = step.pairs = step.reread = 0.0
    _drop(state, rules, at, now)
    if rules.prefill_first:
        _whole_prompts(state, rules, at, now)
        if step.prompt == 0:
            _decodes(state, rules, at)
    else:
        _chunked(state, rules, at, now)


@inner
def _drop(state: State, rules: Rules, at: int, now: float) -> None:
    """Let requests go that nobody waits for any more; those that had been scheduled before are kept."""
    replica = state.replicas[at]
    while replica.head >= 0:
        one = state.requests[replica.head]
        if one.admitted_s >= 0 or now - one.arrival_s <= rules.patience_s:
            return
        one.admitted_s = now
        one.first_s = one.last_s = math.nan
        ask_again(state, rules, replica.head, now)
        replica.head = one.after
        replica.load -= 1
        state.tally[0].dropped += 1
    replica.tail = -1


@inner
def ask_again(state: State, rules: Rules, who: int, now: float) -> None:
    """Let a client that gave up ask again after its pause, if it has an attempt left."""
    again = who + rules.asked
    if again >= state.requests.size:
        return
    tally, one = state.tally[0], state.requests[again]
    one.arrival_s = max(now, state.requests[who].arrival_s + rules.patience_s + rules.pause_s)
    tally.again += 1
    before, after = tally.again_tail, -1
    if before >= 0 and state.requests[before].arrival_s > one.arrival_s:
        before, after = -1, tally.again_head
        while state.requests[after].arrival_s <= one.arrival_s:
            before, after = after, state.requests[after].after
    one.after = after
    if before < 0:
        tally.again_head = again
    else:
        state.requests[before].after = again
    if after < 0:
        tally.again_tail = again


@inner
def _chunked(state: State, rules: Rules, at: int, now: float) -> None:
    replica = state.replicas[at]
    budget = rules.budget - _decodes(state, rules, at)
    if replica.count > 0:
        # a prompt that was cut took all that was left, so it is the last that was admitted, and the only one
        who = state.running[at, replica.count - 1]
        one = state.requests[who]
        left = min(one.input + one.generated - one.computed, budget)
        if one.take == 0 and left > 0 and _secure(state, rules, at, who, left):
            _take(state, rules, who, left)
            budget -= left
    # whoever was preempted in this step does not fit again, and nobody overtakes it
    while budget > 0 and replica.head >= 0 and replica.count < rules.max_seqs:
        taken = _admit(state, rules, at, now, budget)
        if taken == 0:
            break
        budget -= taken


@inner
def _whole_prompts(state: State, rules: Rules, at: int, now: float) -> None:
    replica = state.replicas[at]
    budget = _ANY  # a prompt above the budget is computed alone
    while replica.head >= 0 and replica.count < rules.max_seqs:
        one = state.requests[replica.head]
        tokens = one.input + one.generated - cached_blocks(state, rules, at, replica.head) * rules.chain_tokens
        if tokens > budget or _admit(state, rules, at, now, _ANY) == 0:
            break
        budget = rules.budget - state.tally[0].prompt


@inner
def _decodes(state: State, rules: Rules, at: int) -> int:
    """Schedule one token of every sequence that is decoded; count them."""
    replica = state.replicas[at]
    place = decodes = tokens = windowed = 0
    while place < replica.count:
        who = state.running[at, place]
        one = state.requests[who]
        # the hot loop: a call costs more than what it does, so only every 16th token makes one
        decoding = one.generated > 0 and one.computed == one.input + one.generated - 1
        if decoding and (one.computed % BLOCK_TOKENS != 0 or _secure(state, rules, at, who, 1)):
            one.take = 1
            decodes += 1
            tokens += one.computed + 1
            for group in range(rules.windowed.shape[0]):
                windowed += rules.windowed[group, 0] * min(one.computed + 1, rules.windowed[group, 1])
        place += 1
    step = state.tally[0]
    step.decodes = decodes
    step.kept = rules.state_tokens * decodes + rules.full_width * tokens + windowed
    return decodes


@inner
def _secure(state: State, rules: Rules, at: int, who: int, tokens: int) -> bool:
    """Find memory for more tokens of a running request, preempting the last admitted; False if it was itself."""
    replica = state.replicas[at]
    while not grow(state, rules, at, who, tokens):
        replica.count -= 1
        victim = state.running[at, replica.count]
        _preempt(state, rules, at, victim)
        if victim == who:
            return False
    return True


@inner
def _preempt(state: State, rules: Rules, at: int, who: int) -> None:
    one, replica = state.requests[who], state.replicas[at]
    release(state, rules, at, who)
    one.computed = 0
    one.preempted += 1
    state.tally[0].preempted += 1
    one.after = replica.head
    replica.head = who
    if replica.tail < 0:
        replica.tail = who


@inner
def _take(state: State, rules: Rules, who: int, tokens: int) -> None:
    one, step = state.requests[who], state.tally[0]
    if one.generated > 0 and one.computed == one.input + one.generated - 1:
        step.decodes += 1
        step.kept += kept_tokens(rules, one.computed + 1)
    else:
        step.prompt += tokens
        step.pairs += tokens * (one.computed + tokens / 2)
        step.reread += kept_tokens(rules, one.computed)
        one.recomputed += max(0, min(one.computed + tokens, one.furthest) - one.computed)
    one.take = tokens


@inner
def _admit(state: State, rules: Rules, at: int, now: float, budget: int) -> int:
    """Let the first waiting request run if its tokens fit in memory; give the tokens of it in this step."""
    replica = state.replicas[at]
    who = replica.head
    one = state.requests[who]
    found = cached_blocks(state, rules, at, who) if one.computed == 0 else 0
    if not has_room(state, rules, at, who, found):
        return 0
    replica.head = one.after
    if replica.head < 0:
        replica.tail = -1
    if one.computed == 0:
        share(state, rules, at, who, found)
    tokens = min(one.input + one.generated - one.computed, budget)
    grow(state, rules, at, who, tokens)
    _take(state, rules, who, tokens)
    state.running[at, replica.count] = who
    replica.count += 1
    if one.admitted_s < 0:
        one.admitted_s = now
    return tokens
