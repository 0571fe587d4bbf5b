"""A second, slow way from a site and a hosting to its bill: plain numbers, linear searches, every count tried.

Written from serving.md 2, 3, 7, 9, 10 and the docstrings; imports nothing of tenfold.serving.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import NamedTuple

# serving.md 3 as fitted: e_m, e_c, seconds a step, a layer, an all-reduce, a sequence and layer, an expert layer
FITTED = (0.9, 0.569, 0.0, 56.9e-6, 3.83e-6, 0.763e-6, 40e-6)
USD = 10**12


class Replica(NamedTuple):
    """One copy of a model, in numbers: `layers` are (count, window), `kv_numbers` a token and layer."""

    params: float
    active: float
    layers: tuple[tuple[int, int], ...]
    hidden: int
    queries: int
    kv_heads: int
    kv_numbers: int
    is_latent: bool
    experts: int
    chosen: int
    expert_params: float
    memory: float
    bandwidth: float
    flops: dict[str, float]
    link: float
    tp: int
    weight_bits: Fraction
    compute: str
    kv_bits: Fraction

    @property
    def depth(self) -> int:
        return sum(count for count, _ in self.layers)

    @property
    def weight_bytes(self) -> float:
        return self.params * float(self.weight_bits / 8)

    def kv_bytes(self, tokens: float) -> float:
        numbers = sum(
            count * self.kv_numbers * (min(tokens, window) if window else tokens) for count, window in self.layers
        )
        copies = self.tp if self.is_latent else max(1.0, self.tp / self.kv_heads)
        return numbers * float(self.kv_bits / 8) * copies

    def holds(self, tokens: float) -> float:
        pool = (0.9 * self.memory - 1.5e9) * self.tp - self.weight_bytes
        return max(pool, 0.0) / self.kv_bytes(tokens)

    def rate(self, precision: str) -> float:
        return self.tp * self.flops.get(precision, self.flops["bf16"])


class Draft(NamedTuple):
    """Speculation."""

    acceptance: float
    tokens: int
    cost: float

    @property
    def yields(self) -> float:
        # 1 + a + a^2 + ... + a^k, term by term
        return sum(self.acceptance**n for n in range(self.tokens + 1))


def touched(one: Replica, tokens: float) -> float:
    """Share of the weights that a step reads."""
    if not one.experts:
        return 1.0
    missed = (1 - one.chosen / one.experts) ** tokens
    return 1 - one.expert_params / one.params * missed


def multiply_s(one: Replica, constants=FITTED) -> float:
    return 2 * one.active / (one.rate(one.compute) * constants[1])


def pair_s(one: Replica, constants=FITTED) -> float:
    full = sum(count for count, window in one.layers if not window)
    return 4 * full * one.queries / (one.rate("bf16") * constants[1])


def link_s(one: Replica) -> float:
    return 2 * one.depth * one.hidden * 4 * (one.tp - 1) / one.tp / one.link if one.tp > 1 else 0.0


def step_s(one: Replica, batch: float, tokens: float, draft: Draft | None = None, constants=FITTED) -> float:
    """Seconds of a step: plain, or with a draft that is checked and the drafting itself."""
    e_m, _, t_step, t_layer, t_reduce, t_seq, t_expert = constants
    looked_at = batch * (1 + (draft.tokens if draft else 0))
    bandwidth = one.tp * one.bandwidth * e_m
    read = (one.weight_bytes * touched(one, looked_at) + one.kv_bytes(tokens) * batch) / bandwidth
    each = multiply_s(one, constants) + (pair_s(one, constants) * tokens if draft else 0.0)
    fixed = t_step + one.depth * (t_layer + (t_expert if one.experts else 0.0) + (2 * t_reduce if one.tp > 1 else 0.0))
    took = max(read, each * looked_at) + fixed + (t_seq * one.depth + link_s(one)) * looked_at
    if draft:
        took += draft.tokens * draft.cost * step_s(one, batch, tokens, None, constants)
    return took


def speedup(one: Replica, batch: float, tokens: float, draft: Draft, constants=FITTED) -> float:
    plain = step_s(one, batch, tokens, None, constants)
    return draft.yields * plain / step_s(one, batch, tokens, draft, constants)


def prefill_s(one: Replica, new: float, cached: float = 0.0) -> float:
    return (multiply_s(one) + link_s(one)) * new + pair_s(one) * (new * cached + new**2 / 2)


def pace(one: Replica, load, batch: float, draft: Draft | None = None) -> tuple[float, float, float]:
    """Output tokens a second of a replica, seconds an output token, seconds to the first; load: new, cached, output."""
    new, cached, output = load
    prompt = prefill_s(one, new, cached)
    # a prompt shares its step with the sequences under way, so that the first token takes both
    step = step_s(one, batch, new + cached + output / 2, draft)
    tpot = step / (draft.yields if draft else 1) + batch / output * prompt
    return batch / tpot, tpot, step + prompt


def capacity(one: Replica, load, cap: int, slo_s=None, draft: Draft | None = None, first_s=None):
    """(batch, why no more): one after the other, from 1 up; None where not one request fits."""
    new, cached, output = load
    room = one.holds(new + cached + output / 2)
    if room < 1:
        return None

    def misses(batch: int) -> bool:
        _, each, first = pace(one, load, batch, draft)
        return (slo_s is not None and each > slo_s) or (first_s is not None and first > first_s)

    if misses(1):
        return 1, "missed"
    batch = 1
    while True:
        if batch + 1 > room:
            return batch, "memory" if room < cap + 1 else "cap"
        if batch + 1 > cap:
            return batch, "cap"
        if misses(batch + 1):
            return batch, "slo"
        batch += 1


def replicas(asked: float, each: float, share: float, least: int) -> int:
    """The fewest that carry it: counted up."""
    count = least
    while count * each * share < asked - 1e-9 * each * share:
        count += 1
    return count


def reservation_costs(needed, reserved_price, price, hours=None) -> list[Fraction]:
    """What each number of reserved replicas costs, per GPU: 0 up to the most ever needed."""
    hours = hours or [Fraction(1, len(needed))] * len(needed)
    return [
        k * Fraction(reserved_price) * sum(hours)
        + sum(max(n - k, 0) * hour for n, hour in zip(needed, hours, strict=True)) * Fraction(price)
        for k in range(max(needed) + 1)
    ]


def gpu_seconds(one: Replica, load, batch: float, draft: Draft | None = None) -> tuple[float, float, float]:
    """GPU seconds of a computed, a cached and an output token."""
    new, cached, output = load
    step = step_s(one, batch, new + cached + output / 2, draft) / (draft.yields if draft else 1)
    first = prefill_s(one, new) / new if new else multiply_s(one)
    return one.tp * first, one.tp * pair_s(one) * new, one.tp * step / batch


class Site(NamedTuple):
    """A model as hosted; `load` is (new, cached, output) a request, `tokens` their sums, money in USD."""

    replica: Replica
    replicas: int
    price: object
    hours: Fraction
    cap: int
    load: tuple[float, float, float]
    tokens: tuple[int, int, int]
    hourly: list[float]
    waiting: list[float]
    busy: float
    slo_s: float | None = None
    scale: float = 1.0
    first_s: float | None = None
    seconds: tuple[float, ...] = ()
    peak: float | None = None
    kept_peak: float | None = None


class Bill(NamedTuple):
    """What a hosting comes to."""

    tp: int
    replicas: int
    batch: int
    bound: str
    reserved: int
    pusd: int
    rates: tuple[int, int, int]
    idle: int


def bill(site: Site, change=None, *, tps=None, **how) -> Bill | None:
    """The cheapest hosting. `change(replica, tp)` gives the replica as it becomes; how: the fields of a Hosting."""
    changed = change or (lambda replica, tp: replica._replace(tp=tp))
    tried = [_bill(site, changed(site.replica, tp), how) for tp in tps or (site.replica.tp,)]
    found = [one for one in tried if one]
    kept = [one for one in found if one.bound != "missed"] or found
    return min(kept, key=lambda one: (one.pusd, one.tp * one.replicas), default=None)


def _bill(site: Site, one: Replica, how) -> Bill | None:
    limit = None if site.slo_s is None else site.slo_s * site.scale
    draft, share = how.get("draft"), how.get("utilization")
    first = None if site.first_s is None else site.first_s * site.scale
    now = capacity(site.replica, site.load, site.cap, limit, None, first)
    then = capacity(one, site.load, how.get("cap") or site.cap, limit, draft, first)
    if now is None or then is None:
        return None
    could = pace(site.replica, site.load, now[0])[0] * site.scale
    each = pace(one, site.load, then[0], draft)[0] * site.scale * how.get("pace", 1.0)
    least = min(site.replicas, 2)
    spot, reserved_price = how.get("spot_price"), how.get("reserved_price")
    price = Fraction(how.get("price") if how.get("price") is not None else site.price)
    kept_rates = [max(0.0, all_of - late) for all_of, late in zip(site.hourly, site.waiting, strict=True)]
    all_of, not_late = site.peak or max(site.hourly), max(kept_rates) if site.kept_peak is None else site.kept_peak

    def asked(rates, peak, part):
        if share is None:
            return [replicas(site.replicas * could * part, each, 1.0, least)] * len(rates)
        if how.get("follows"):
            return [replicas(rate, each, share, least) for rate in rates]
        return [replicas(peak, each, share, least)] * len(rates)  # a fleet of fixed size, as large as its peak

    needed = asked(site.hourly, all_of, 1.0)
    kept = asked(kept_rates, not_late, not_late / all_of) if spot is not None else needed
    lengths = [Fraction(one) for one in site.seconds or [1.0] * len(needed)]
    hours = [site.hours * one / sum(lengths) for one in lengths]
    reserved, cost = 0, sum(n * hour for n, hour in zip(kept, hours, strict=True)) * price
    if reserved_price is not None:
        costs = reservation_costs(kept, reserved_price, price, hours)
        cost = min(costs)
        reserved = costs.index(cost)
    if spot is not None:  # what may wait runs on the replicas that it would take beside the others
        beside = sum((n - k) * hour for n, k, hour in zip(needed, kept, hours, strict=True))
        cost += beside * (1 + Fraction(how.get("rework", 0.0))) * Fraction(spot)
    cost *= one.tp
    pusd = round(cost * USD)
    taken = min(1.0, site.busy * (could * site.replicas) / (each * max(needed)))
    seconds = gpu_seconds(one, site.load, then[0], draft)
    whole = sum(Fraction(second) * count for second, count in zip(seconds, site.tokens, strict=True))
    rates = tuple(floor(floor(taken * pusd) * Fraction(second) / whole) for second in seconds)
    idle = pusd - sum(rate * count for rate, count in zip(rates, site.tokens, strict=True))
    return Bill(one.tp, max(needed), then[0], then[1], reserved, pusd, rates, idle)
