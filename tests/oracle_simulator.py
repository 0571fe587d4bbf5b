"""A second, slow simulator of serving engines: one object a request, one event object a token, a heap of events.

Written from serving.md 6 alone, in plain Python, without anything of ``tenfold.serving.simulator``: the fast one is
held against it token by token, and the benchmark measures its speed against it.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from tenfold.serving.roofline import step_cost, touched_share

BLOCK = 16
# at one instant: requests arrive, then transfers end, then steps end
ARRIVAL, TRANSFER, STEP = range(3)


@dataclass(eq=False)
class Request:
    number: int
    arrival: float
    prompt: int
    answer: int
    blocks: tuple = ()
    answered: int = 0
    computed: int = 0
    furthest: int = 0
    holds: list = field(default_factory=list)
    own: int = 0
    token_times: list = field(default_factory=list)
    admitted: float | None = None
    preempted: int = 0
    recomputed: int = 0
    cached: int = 0
    replica: int = -1
    met: tuple | None = None  # running, waiting, memory held, when it arrived
    attempt: int = 0
    dropped: bool = False

    @property
    def known(self):
        return self.prompt + self.answered

    @property
    def decoding(self):
        return self.answered > 0 and self.known - self.computed == 1

    @property
    def gaps(self):
        return [later - earlier for earlier, later in itertools.pairwise(self.token_times)]


@dataclass(eq=False)
class Token:
    """What a step does for one request; the request gets a token at its end if nothing is left to compute."""

    request: Request
    tokens: int
    earlier: int
    decodes: bool


class Replica:
    def __init__(self, world, number, role, speed, decode_speed):
        self.world, self.number, self.role, self.speed = world, number, role, speed
        self.decode_speed = decode_speed
        self.waiting = deque()
        self.running = []
        self.step = None  # tokens under way
        self.used = 0
        self.peak = 0
        self.held = {}  # prefix block: requests that hold it
        self.unheld = OrderedDict()  # prefix blocks of nobody, least recently used first
        self.busy = 0.0
        self.link_free = 0.0
        self.sending = 0

    # memory

    def room_for(self, need):
        return self.used + need <= self.world.capacity

    def evict(self):
        while self.used + len(self.unheld) * self.world.block_size > self.world.capacity:
            self.unheld.popitem(last=False)

    def hold(self, block):
        if block in self.held:
            self.held[block] += 1
        else:
            self.unheld.pop(block, None)
            self.held[block] = 1
            self.used += self.world.block_size

    def leading(self, request):
        found = 0
        for place, block in enumerate(request.blocks):
            if (place + 1) * self.world.block_tokens > request.known - 1:
                break
            if block not in self.held and block not in self.unheld:
                break
            found += 1
        return found

    def grow(self, request, tokens):
        target = self.world.size(request.computed + tokens) - len(request.holds) * self.world.block_size
        need = target - request.own
        if not self.room_for(need):
            return False
        self.used += need
        request.own = target
        self.evict()
        self.peak = max(self.peak, self.used)
        return True

    def free(self, request):
        self.used -= request.own
        request.own = 0
        for block in reversed(request.holds):
            self.held[block] -= 1
            if not self.held[block]:
                del self.held[block]
                self.unheld[block] = None
                self.used -= self.world.block_size
        request.holds = []

    # scheduling

    def schedule(self, now):
        for request in list(self.waiting):
            if request.admitted is not None or now - request.arrival <= self.world.patience:
                break
            self.waiting.popleft()
            request.dropped = True
            request.admitted = now
            self.world.ask_again(request, now)
        tokens = self.whole_prompts(now) if self.world.prefill_first else self.chunked(now)
        self.step = tokens
        if not tokens:
            self.step = None
            return
        lasts = self.world.lasts(tokens, self.decode_speed) / self.speed
        self.busy += lasts
        self.world.push(now + lasts, STEP, self)

    def chunked(self, now):
        before = self.world.preemptions
        tokens = self.decodes()
        budget = self.world.budget - len(tokens)
        for request in self.each_running():
            part = 0 if request.decoding else min(request.known - request.computed, budget)
            if part and self.secure(request, part):
                tokens.append(self.token(request, part))
                budget -= part
        if self.world.preemptions == before:
            while budget and self.waiting and len(self.running) < self.world.most:
                token = self.admit(now, budget)
                if token is None:
                    break
                tokens.append(token)
                budget -= token.tokens
        return tokens

    def whole_prompts(self, now):
        tokens, budget = [], math.inf
        while self.waiting and len(self.running) < self.world.most:
            first = self.waiting[0]
            if first.known - self.leading(first) * self.world.block_tokens > budget:
                break
            token = self.admit(now, math.inf)
            if token is None:
                break
            tokens.append(token)
            budget = self.world.budget - sum(one.tokens for one in tokens)
        return tokens or self.decodes()

    def decodes(self):
        return [
            self.token(request, 1) for request in self.each_running() if request.decoding and self.secure(request, 1)
        ]

    def each_running(self):
        place = 0
        while place < len(self.running):  # the last may be preempted on the way
            yield self.running[place]
            place += 1

    def secure(self, request, tokens):
        while not self.grow(request, tokens):
            victim = self.running.pop()
            self.free(victim)
            victim.computed = 0
            victim.preempted += 1
            self.world.preemptions += 1
            self.waiting.appendleft(victim)
            if victim is request:
                return False
        return True

    def admit(self, now, budget):
        request = self.waiting[0]
        found = self.leading(request) if not request.computed else 0
        need = self.world.size(request.known) - found * self.world.block_size
        need += sum(block in self.unheld for block in request.blocks[:found]) * self.world.block_size
        if self.used and not self.room_for(need + self.world.watermark):
            return None
        self.waiting.popleft()
        for block in request.blocks[:found]:
            self.hold(block)
            request.holds.append(block)
        if found:
            request.computed = found * self.world.block_tokens
            request.cached += max(0, request.computed - request.furthest)
            request.furthest = max(request.furthest, request.computed)
        part = min(request.known - request.computed, budget)
        assert self.grow(request, part)
        self.running.append(request)
        if request.admitted is None:
            request.admitted = now
        return self.token(request, part)

    def token(self, request, tokens):
        if not request.decoding:
            request.recomputed += max(0, min(request.computed + tokens, request.furthest) - request.computed)
        return Token(request, tokens, request.computed, request.decoding)

    # what a step gives

    def finish(self, now):
        done = 0
        for token in self.step or ():
            request = token.request
            request.computed += token.tokens
            request.furthest = max(request.furthest, request.computed)
            if self.role != "decode":
                self.publish(request)
            if request.computed < request.known:
                continue
            request.token_times.append(now)
            request.answered += 1
            if request.answered == 1 and now - request.arrival > self.world.patience:
                self.world.ask_again(request, now)
            if request.answered == request.answer:
                self.running.remove(request)
                self.free(request)
                done += 1
            elif self.role == "prefill":
                self.running.remove(request)
                self.link_free = max(now, self.link_free) + self.world.transfer(request.computed)
                self.sending += 1
                self.world.push(self.link_free + self.world.latency, TRANSFER, (self, request))
        self.step = None
        return done

    def publish(self, request):
        whole = request.prompt // self.world.block_tokens
        for place in range(len(request.holds), min(whole, len(request.blocks))):
            if (place + 1) * self.world.block_tokens > request.computed:
                break
            request.own -= self.world.block_size
            self.used -= self.world.block_size
            self.hold(request.blocks[place])
            request.holds.append(request.blocks[place])


class World:
    """All replicas and what is still to happen."""

    def __init__(
        self, one, requests, *, budget, most, pool_tokens, policy="chunked", concurrency=0, speeds=(1.0,),
        decode_speeds=None, patience=math.inf, retries=0, pause=0.0, router="round_robin", workers=None,
        link=math.inf, latency=0.0, watermark=0.01, block_tokens=BLOCK,
    ):  # fmt: skip
        self.one, self.requests, self.budget, self.most = one, requests, budget, most
        self.prefill_first = policy == "prefill_first"
        self.concurrency, self.router, self.link, self.latency = concurrency, router, link, latency
        self.cost, self.patience, self.retries, self.pause = step_cost(one), patience, retries, pause
        growing = [group for group in one.model.layers if group.kind != "linear"]
        longest = max(request.prompt + request.answer for request in requests)
        self.groups = [
            (group.count * (group.kv_numbers or one.model.kv_numbers), min(group.window or longest, longest))
            for group in growing
        ]
        self.capacity = pool_tokens // BLOCK * sum(numbers for numbers, _ in self.groups)
        self.page = page = math.gcd(*(numbers for numbers, _ in self.groups))
        self.watermark = math.floor(watermark * (self.capacity // page)) * page
        page_bytes = page * BLOCK * one.kv_bytes_per_token / sum(numbers for numbers, _ in self.groups)
        self.state = page * math.ceil(one.kv_bytes(0) / page_bytes)
        self.block_tokens = block_tokens
        self.block_size = block_tokens // BLOCK * sum(numbers for numbers, window in self.groups if window == longest)
        roles = ["both"] * len(speeds) if workers is None else ["prefill"] * workers[0] + ["decode"] * workers[1]
        self.replicas = [
            Replica(self, *each)
            for each in zip(range(len(roles)), roles, speeds, decode_speeds or [1.0] * len(roles), strict=True)
        ]
        self.turns = {"prefill": itertools.count(), "decode": itertools.count(), "both": itertools.count()}
        self.events = []
        self.order = itertools.count()
        self.preemptions = self.steps = 0
        self.tokens = 0

    def size(self, tokens):
        return self.state + sum(numbers * math.ceil(min(tokens, window) / BLOCK) for numbers, window in self.groups)

    def transfer(self, tokens):
        return self.one._replace(tp=1).kv_bytes(tokens) / self.link  # one copy, however many GPUs keep one

    def lasts(self, tokens, decode_speed):
        cost, one = self.cost, self.one
        decodes = [token for token in tokens if token.decodes]
        chunks = [token for token in tokens if not token.decodes]
        count = sum(token.tokens for token in tokens)
        multiply = sum(
            cost.token_s * token.tokens + cost.pair_s * (token.tokens * token.earlier + token.tokens**2 / 2)
            for token in chunks
        )
        weights = cost.weights_s * touched_share(one, count)
        again = cost.kv_byte_s * sum(one.kv_bytes(token.earlier) for token in chunks)
        if decodes:
            read = cost.kv_byte_s * sum(one.kv_bytes(token.earlier + 1) for token in decodes)
            decode = max(weights + read, cost.token_s * len(decodes)) + cost.sequence_s * len(decodes)
            busy = (decode + cost.overhead_s) / decode_speed + multiply + again
        else:
            busy = max(weights + again, multiply) + cost.overhead_s
        self.steps += 1
        self.tokens += count
        return busy + cost.link_token_s * count

    def ask_again(self, request, now):
        if request.attempt < self.retries:
            at = max(now, request.arrival + self.patience + self.pause)
            again = Request(
                request.number, at, request.prompt, request.answer, request.blocks, attempt=request.attempt + 1
            )
            self.requests.append(again)
            self.push(at, ARRIVAL, again)

    def push(self, at, kind, what):
        heapq.heappush(self.events, (at, kind, next(self.order), what))

    def route(self, request, now):
        role = self.replicas[0].role
        if role == "prefill" and request.computed:
            role = "decode"
        candidates = [replica for replica in self.replicas if replica.role == role]
        if self.router == "least_loaded":
            chosen = min(candidates, key=lambda replica: len(replica.waiting) + len(replica.running))
        else:
            chosen = candidates[next(self.turns[role]) % len(candidates)]
        if request.met is None:
            request.met = (len(chosen.running), len(chosen.waiting), chosen.used)
        request.replica = chosen.number
        chosen.waiting.append(request)
        self.wake(chosen, now)

    def wake(self, replica, now):
        if replica.step is None:
            replica.step = []
            self.push(now, STEP, replica)

    def run(self):
        waiting = deque(self.requests)
        for request in list(self.requests)[: self.concurrency or len(self.requests)]:
            if self.concurrency:
                request.arrival = 0.0
            self.push(request.arrival, ARRIVAL, waiting.popleft())
        while self.events:
            now, kind, _, what = heapq.heappop(self.events)
            if kind == ARRIVAL:
                self.route(what, now)
            elif kind == TRANSFER:
                source, request = what
                source.free(request)
                if source.waiting:
                    self.wake(source, now)
                self.route(request, now)
            else:
                done = what.finish(now)
                for _ in range(min(done, len(waiting)) if self.concurrency else 0):
                    waiting[0].arrival = now
                    self.push(now, ARRIVAL, waiting.popleft())
                if done and self.concurrency:
                    self.wake(what, now)
                else:
                    what.schedule(now)
        return self
