"""A second implementation of the bridge between two periods: request by request, by the formulas as they are printed.

It imports nothing from tenfold. Prices are those of ``oracle.py``; every sum is a Fraction over single requests.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from oracle import Book, is_billed, price_request

# Kinds of unit: meters that a price list may or may not keep apart are one kind.
KINDS = {
    "reasoning": "output",
    "input_audio": "uncached_input", "input_image": "uncached_input", "input_video": "uncached_input",
    "cache_read_audio": "cache_read", "cache_read_image": "cache_read", "cache_read_video": "cache_read",
}  # fmt: skip
NO_TOKENS = {
    *("web_search", "web_search_preview", "file_search", "maps_search", "code_session", "request", "image", "page"),
    *("character", "audio_time", "output_time", "cache_storage"),
}


class Period:
    """Sums over the requests of a period, by (group, kind)."""

    def __init__(self, book: Book, rows, at, group, scale=Fraction(1)):
        self.units, self.own, self.at = (defaultdict(Fraction) for _ in range(3))
        self.apart, self.apart_units = defaultdict(Fraction), defaultdict(Fraction)
        self.requests, self.groups = Fraction(0), set()
        self.cost, self.unpriced = Fraction(0), 0
        for row in rows:
            own, then = price_request(book, row), price_request(book, row, at)
            if not is_billed(row):
                continue
            if own.cost_pusd is None:
                self.unpriced += 1
                continue
            self.cost += Fraction(own.cost_pusd) * scale
            self.requests += scale
            self.groups.add(group(row))
            if then.cost_pusd is None:
                for meter, (units, cost) in own.meters.items():
                    self.apart[group(row), KINDS.get(meter, meter)] += Fraction(cost) * scale
                    self.apart_units[group(row), KINDS.get(meter, meter)] += units * scale
                continue
            for meter, (units, cost) in then.meters.items():
                place = group(row), KINDS.get(meter, meter)
                self.units[place] += units * scale
                self.at[place] += Fraction(cost) * scale
            for meter, (_, cost) in own.meters.items():
                self.own[group(row), KINDS.get(meter, meter)] += Fraction(cost) * scale


def pvm(old: Period, new: Period, levels: int) -> tuple[dict[str, Fraction], list[Fraction]]:
    """Bars by name, and the mix by dimension, in the order volume, intensity, mix, price."""
    bars = defaultdict(Fraction)
    bars["discontinued"] = -sum(old.apart.values())
    bars["new"] = sum(new.apart.values(), Fraction(0))
    places = {*old.units, *new.units, *old.own, *new.own}
    bars["discontinued"] -= sum(old.own[place] for place in places if place[0] not in new.groups)
    stays = [place for place in places if place[0] in new.groups]
    price0 = {}
    for place in stays:
        q0, q1 = old.units[place], new.units[place]
        p0 = old.own[place] / q0 if q0 else new.at[place] / q1 if q1 else Fraction(0)
        price0[place] = p0
        at0 = old.at[place] / q0 if q0 else new.at[place] / q1 if q1 else Fraction(0)
        # at the boundary's prices, what a unit costs more because it is another kind of request
        within = new.at[place] - q1 * at0
        bars["within"] += within
        bars["price"] += new.own[place] - q1 * p0 - within
        if place[1] in NO_TOKENS:
            bars[place[1]] += (q1 - q0) * p0

    # the tree of all tokens, what stands apart among them
    leaves = {
        (*group, kind, is_apart): (was[group, kind], now[group, kind])
        for is_apart, was, now in ((False, old.units, new.units), (True, old.apart_units, new.apart_units))
        for group, kind in {*was, *now}
        if kind not in NO_TOKENS
    }
    q0, q1 = (sum(pair[side] for pair in leaves.values()) for side in (0, 1))
    n0, n1 = old.requests, new.requests
    mix = [Fraction(0)] * (levels + 1)
    for place in stays:
        path = (*place[0], *place[1:], False)
        if place[1] in NO_TOKENS or not any(leaves.get(path, (0, 0))):
            continue
        p0 = price0[place]
        # shares within the parent, before and after; what is undefined is as it is in the other period
        nodes = [path[:depth] for depth in range(levels + 1)] + [path]
        before = [_share(leaves, nodes[n], nodes[n + 1], 0) for n in range(levels + 1)]
        after = [_share(leaves, nodes[n], nodes[n + 1], 1) for n in range(levels + 1)]
        each0 = q0 / n0 if n0 else q1 / n1
        each1 = q1 / n1 if n1 else each0
        s0 = _product(b if b is not None else a for b, a in zip(before, after, strict=True))
        bars["volume"] += (n1 - n0) * each0 * s0 * p0
        bars["intensity"] += n1 * (each1 - each0) * s0 * p0
        for level in range(levels + 1):
            first = _product(a if a is not None else b for b, a in zip(before[:level], after[:level], strict=True))
            last = _product(
                b if b is not None else a for b, a in zip(before[level + 1 :], after[level + 1 :], strict=True)
            )
            if before[level] is not None and after[level] is not None:
                mix[level] += q1 * first * (after[level] - before[level]) * last * p0
    bars["mix"] = sum(mix)
    if q0:
        # as printed, where nothing is undefined
        c0 = sum(old.units[place] * price0[place] for place in stays if place[1] not in NO_TOKENS)
        assert bars["volume"] == (n1 - n0) / n0 * c0
        assert bars["mix"] == sum(
            q1 * (new.units[place] / q1 - old.units[place] / q0) * price0[place]
            for place in stays
            if place[1] not in NO_TOKENS and q1
        )
    return dict(bars), mix


def _share(leaves, parent, node, side):
    whole, part = (
        sum(pair[side] for path, pair in leaves.items() if path[: len(one)] == one) for one in (parent, node)
    )
    return part / whole if whole else None


def _product(values):
    made = Fraction(1)
    for value in values:
        made *= value
    return made
