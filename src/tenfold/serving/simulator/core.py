"""The simulation: what happens next, over all replicas, until every request is answered. Compiled; see ``layout``."""

from __future__ import annotations

import math

from tenfold.serving.simulator.blocks import kept_tokens, publish, release
from tenfold.serving.simulator.jit import entry, inner
from tenfold.serving.simulator.layout import GAP_BIN, GAP_BINS, GAP_FROM_S, POINTS, Cost, Rules, State
from tenfold.serving.simulator.scheduling import ask_again, schedule, step_s


@entry
def run(state: State, rules: Rules, cost: Cost) -> int:
    """Answer all requests.

    Args:
        state: Requests in order of arrival, replicas idle.
        rules: How they are scheduled.
        cost: What a step costs.

    Returns:
        Requests answered or dropped: all of them, or something is wrong with the simulator.
    """
    count, tally = rules.asked, state.tally[0]
    upcoming = done = 0
    released = rules.concurrency
    while done + tally.dropped < count + tally.again:
        at = _next_step(state)
        sender = _next_transfer(state, rules)
        now = state.replicas[at].ends_s
        sent_s = state.requests[state.replicas[sender].sent_head].ready_s if sender >= 0 else math.inf
        comes_s = state.requests[upcoming].arrival_s if upcoming < count else math.inf
        again_s = state.requests[tally.again_head].arrival_s if tally.again_head >= 0 else math.inf
        if min(comes_s, again_s) <= min(now, sent_s) and min(comes_s, again_s) < math.inf:
            if comes_s <= again_s:
                _route(state, rules, upcoming, comes_s)
                upcoming += 1
            else:
                who = tally.again_head
                tally.again_head = state.requests[who].after
                if tally.again_head < 0:
                    tally.again_tail = -1
                _route(state, rules, who, again_s)
        elif sent_s <= now:
            if math.isinf(sent_s):
                break
            _deliver(state, rules, sender)
        else:
            finished = _complete(state, rules, at, now)
            done += finished
            if rules.concurrency > 0 and finished > 0:
                # the next requests arrive now; a step of nothing lets them in before this replica goes on
                for who in range(released, min(released + finished, count)):
                    state.requests[who].arrival_s = now
                released += finished
            else:
                _start(state, rules, cost, at, now)
                _note(state, now)
    return done + tally.dropped


@inner
def _next_step(state: State) -> int:
    at = 0
    for other in range(1, state.replicas.size):
        if state.replicas[other].ends_s < state.replicas[at].ends_s:
            at = other
    return at


@inner
def _next_transfer(state: State, rules: Rules) -> int:
    found, soonest = -1, math.inf
    for at in range(rules.prefill_workers):
        head = state.replicas[at].sent_head
        if head >= 0 and state.requests[head].ready_s < soonest:
            found, soonest = at, state.requests[head].ready_s
    return found


@inner
def _start(state: State, rules: Rules, cost: Cost, at: int, now: float) -> None:
    schedule(state, rules, at, now)
    replica, tally = state.replicas[at], state.tally[0]
    if tally.decodes + tally.prompt == 0:
        replica.ends_s = math.inf
        return
    seconds = step_s(state, cost, at)
    replica.ends_s = now + seconds
    replica.busy_s += seconds
    tally.steps += 1
    tally.decoded += tally.decodes
    tally.prefilled += tally.prompt


@inner
def _route(state: State, rules: Rules, who: int, now: float) -> None:
    """Put a request into the queue of a replica; one that has its prompt goes to a decode worker."""
    one, tally = state.requests[who], state.tally[0]
    first, end = 0, state.replicas.size
    if rules.prefill_workers > 0:
        if one.computed > 0:
            first = rules.prefill_workers
        else:
            end = rules.prefill_workers
    at = first
    if rules.least_loaded:
        for other in range(first + 1, end):
            if state.replicas[other].load < state.replicas[at].load:
                at = other
    elif first > 0:
        at = first + tally.decode_turn % (end - first)
        tally.decode_turn += 1
    else:
        at = tally.turn % end
        tally.turn += 1
    replica = state.replicas[at]
    if one.computed == 0:  # as it came in, not as it went on to a decode worker
        one.met_running = replica.count
        one.met_waiting = replica.load - replica.count
        one.met_pages = replica.used
    one.replica = at
    one.after = -1
    if replica.tail < 0:
        replica.head = who
    else:
        state.requests[replica.tail].after = who
    replica.tail = who
    replica.load += 1
    replica.ends_s = _wake(replica.ends_s, now)


@inner
def _wake(ends_s: float, now: float) -> float:
    """Give an idle replica a step of nothing, after which it looks at its queue."""
    return now if math.isinf(ends_s) else ends_s


@inner
def _complete(state: State, rules: Rules, at: int, now: float) -> int:
    """End a replica's step: tokens come out, requests leave; count those that are answered."""
    replica = state.replicas[at]
    is_prefill = at < rules.prefill_workers
    is_sharing = is_prefill or rules.prefill_workers == 0
    kept = answered = bin_ = 0
    binned_s = -1.0
    for place in range(replica.count):
        who = state.running[at, place]
        one = state.requests[who]
        has_token = False
        if one.take > 0:
            one.computed += one.take
            one.take = 0
            one.furthest = max(one.furthest, one.computed)
            if is_sharing and one.held < one.chained:
                publish(state, rules, at, who)
            has_token = one.computed == one.input + one.generated
        if has_token:
            if one.generated == 0:
                one.first_s = now
                if now - one.arrival_s > rules.patience_s:
                    ask_again(state, rules, who, now)
            else:
                gap_s = now - one.last_s
                if gap_s != binned_s:
                    bin_, binned_s = _gap_bin(gap_s), gap_s
                state.gaps[one.group, bin_] += 1
                one.gap_s = max(one.gap_s, gap_s)
            one.last_s = now
            one.generated += 1
        if has_token and one.generated == one.output:
            release(state, rules, at, who)
            answered += 1
        elif has_token and is_prefill:
            _send(state, rules, at, who, now)
        else:
            state.running[at, kept] = who
            kept += 1
    replica.load -= replica.count - kept
    replica.count = kept
    return answered


@inner
def _gap_bin(gap_s: float) -> int:
    if gap_s <= GAP_FROM_S:
        return 0
    return min(int(math.log(gap_s / GAP_FROM_S) / GAP_BIN), GAP_BINS - 1)


@inner
def _send(state: State, rules: Rules, at: int, who: int, now: float) -> None:
    """Send a prompt's KV cache, after those that this worker is still sending; it stays in memory until then."""
    one, replica = state.requests[who], state.replicas[at]
    grown = kept_tokens(rules, one.computed) - rules.state_tokens
    replica.link_free_s = max(now, replica.link_free_s) + rules.transfer_token_s * grown + rules.transfer_state_s
    one.ready_s = replica.link_free_s + rules.transfer_latency_s
    one.after = -1
    if replica.sent_tail < 0:
        replica.sent_head = who
    else:
        state.requests[replica.sent_tail].after = who
    replica.sent_tail = who


@inner
def _deliver(state: State, rules: Rules, at: int) -> None:
    replica = state.replicas[at]
    who = replica.sent_head
    one = state.requests[who]
    replica.sent_head = one.after
    if replica.sent_head < 0:
        replica.sent_tail = -1
    release(state, rules, at, who)
    if replica.head >= 0:
        replica.ends_s = _wake(replica.ends_s, one.ready_s)
    _route(state, rules, who, one.ready_s)


@inner
def _note(state: State, now: float) -> None:
    """Add to the time series: the most that ran, waited and was used within a point's time."""
    tally = state.tally[0]
    while now >= tally.point_s * POINTS:
        for point in range(POINTS):
            for what in range(3):
                value = -1
                if point < POINTS // 2:
                    value = max(state.points[2 * point, what], state.points[2 * point + 1, what])
                state.points[point, what] = value
        tally.point_s *= 2
    running = waiting = used = 0
    for at in range(state.replicas.size):
        replica = state.replicas[at]
        running += replica.count
        waiting += replica.load - replica.count
        used += replica.used
    point = int(now / tally.point_s)
    state.points[point, 0] = max(state.points[point, 0], running)
    state.points[point, 1] = max(state.points[point, 1], waiting)
    state.points[point, 2] = max(state.points[point, 2], used)
