"""Price, volume, mix and intensity of segments: cost = requests x (units a request) x sum of shares x prices.

With N the requests (or outcomes), Q the units, s the shares and p the prices of segments, in Laspeyres order:

- volume = (N1 - N0) * (Q0 / N0) * P0, which is (Q1 - Q0) * P0 where units are the base; P0 = C0 / Q0;
- intensity = N1 * (Q1 / N1 - Q0 / N0) * P0;
- mix = Q1 * sum of (s1 - s0) * p0, split by dimension: s is the share of the first dimension, times the share within
  it of the second, and so on;
- price = sum of q1 * (p1 - p0).

Each is a sum over segments. What a segment without a price before adds in all of them, whatever price it is given, is
q1 * p1: it is new. One without a price after takes q0 * p0 off: it is discontinued. Both stand apart, with their units
in N and Q. A segment without units on one side that has a price there is part of the mix.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

from tenfold.analysis.bridge.factors import METHODS, Pair, effects, last_weight
from tenfold.errors import AssumptionError, NotEvaluable, near

_NONE = Fraction(0)


class Segment(NamedTuple):
    """Quantity and price of one segment in two periods.

    Args:
        path: What it is, the first dimension first: model, tier, kind of token.
        q0: Units before; at least 0.
        p0: Price before; None where there was none.
        q1: Units after; at least 0.
        p1: Price after; None where there is none.
    """

    path: tuple[Hashable, ...]
    q0: Fraction | int
    p0: Fraction | int | None
    q1: Fraction | int
    p1: Fraction | int | None


class Effects(NamedTuple):
    """What moved the cost of one segment.

    Args:
        volume: More or fewer requests (or units, where there are no requests).
        intensity: More or fewer units a request.
        mix: Another share of each dimension.
        price: Another price.
        new: Cost of what had no price before.
        discontinued: Less the cost of what has none after.
        weight: Units that the change of price is multiplied with.
    """

    volume: Fraction = _NONE
    intensity: Fraction = _NONE
    mix: tuple[Fraction, ...] = ()
    price: Fraction = _NONE
    new: Fraction = _NONE
    discontinued: Fraction = _NONE
    weight: Fraction = _NONE

    @property
    def total(self) -> Fraction:
        """The change of the segment's cost."""
        return self.volume + self.intensity + sum(self.mix) + self.price + self.new + self.discontinued


def check_method(method: str) -> None:
    """Refuse a method that does not exist.

    Args:
        method: Its name.

    Raises:
        AssumptionError: It is none of ``METHODS``.
    """
    if method not in METHODS:
        raise AssumptionError(f'method "{method}": one of {", ".join(METHODS)}.{near(method, METHODS)}')


def decompose(
    segments: Sequence[Segment], *, base: tuple[Fraction | int, Fraction | int] | None = None, method: str = "pvm"
) -> tuple[Effects, ...]:
    """Split the change of cost.

    Args:
        segments: The segments; paths are as long as each other and differ.
        base: Requests, or successful outcomes, before and after; by default the units themselves are the volume.
        method: ``pvm``, ``bennet``, ``lmdi`` or ``shapley``.

    Returns:
        The effects of each segment, in order; all together are the change, exactly.

    Raises:
        AssumptionError: There is no such method.
        NotEvaluable: A period has units but nothing of the base.
        ValueError: A quantity without a price, or a path twice.
    """
    check_method(method)
    levels = len(segments[0].path) if segments else 0
    if len({one.path for one in segments}) < len(segments) or any(len(one.path) != levels for one in segments):
        raise ValueError("the paths of segments must differ and be as long as each other")
    for one in segments:
        if (one.p0 is None and one.q0) or (one.p1 is None and one.q1) or (one.p0 is None and one.p1 is None):
            raise ValueError(f"segment {one.path}: units without a price")
    # units below each node of the tree of dimensions, the root being ()
    units: dict[tuple[Hashable, ...], list[Fraction]] = {(): [_NONE, _NONE]}
    for one in segments:
        for depth in range(levels + 1):
            node = units.setdefault(one.path[:depth], [_NONE, _NONE])
            node[0] += one.q0
            node[1] += one.q1
    volume = _volume(units[()], base)
    return tuple(_effects(one, volume, units, method) for one in segments)


def _volume(units: Sequence[Fraction], base: tuple[Fraction | int, Fraction | int] | None) -> tuple[Pair, Pair]:
    """Give the base, and the units of each of it, before and after."""
    if base is None:
        return (units[0], units[1]), (Fraction(1), Fraction(1))
    for many, one, when in zip(units, base, ("before", "after"), strict=True):
        if many and not one:
            raise NotEvaluable(f"the period {when} has {floor(many):,} units and nothing to count them by")
    each = [Fraction(many) / one if one else None for many, one in zip(units, base, strict=True)]
    return (Fraction(base[0]), Fraction(base[1])), _known(each[0], each[1])


def _known(before: Fraction | None, after: Fraction | None) -> Pair:
    """Let what is not defined on one side (a share of nothing) be what it is on the other: it did not change."""
    return (
        before if before is not None else after if after is not None else _NONE,
        after if after is not None else before if before is not None else _NONE,
    )


def _effects(
    one: Segment, volume: tuple[Pair, Pair], units: dict[tuple[Hashable, ...], list[Fraction]], method: str
) -> Effects:
    none = (_NONE,) * len(one.path)
    if one.p0 is None:
        return Effects(mix=none, new=Fraction(one.q1) * (one.p1 or 0))
    if one.p1 is None:
        return Effects(mix=none, discontinued=-Fraction(one.q0) * one.p0)
    shares: list[Pair] = []
    for depth in range(len(one.path)):
        whole, part = units[one.path[:depth]], units[one.path[: depth + 1]]
        each = [part[side] / whole[side] if whole[side] else None for side in (0, 1)]
        shares.append(_known(each[0], each[1]))
    factors = [*volume, *shares, (Fraction(one.p0), Fraction(one.p1))]
    found = effects(factors, method)
    return Effects(found[0], found[1], found[2:-1], found[-1], weight=last_weight(factors, found[-1], method))
