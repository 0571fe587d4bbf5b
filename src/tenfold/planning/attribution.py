"""Sharing out a joint saving: last-in and Shapley values, exact in whole pUSD."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import factorial

Value = Callable[[frozenset[str]], int]


def subsets(names: Sequence[str]) -> Iterator[frozenset[str]]:
    """List all subsets, small ones first.

    Args:
        names: The levers.

    Yields:
        Each subset, the empty one first.
    """
    for size in range(len(names) + 1):
        yield from map(frozenset, combinations(names, size))


def last_in(names: Sequence[str], value: Value) -> dict[str, int]:
    """Compute what each lever adds when all others are in place.

    Args:
        names: The levers.
        value: Joint saving of a subset, in pUSD.

    Returns:
        Lever to pUSD.

    Formula:
        v(N) - v(N without l).
    """
    everything = frozenset(names)
    return {name: value(everything) - value(everything - {name}) for name in names}


def shapley(names: Sequence[str], value: Value) -> dict[str, int]:
    """Share the joint saving by each lever's average contribution over all orders.

    Args:
        names: The levers.
        value: Joint saving of a subset, in pUSD; 0 for the empty one.

    Returns:
        Lever to pUSD; the shares sum to v(N) exactly (rounded by largest remainder, earlier names win ties).

    Formula:
        phi_l = sum over S without l of |S|! (n - |S| - 1)! / n! x (v(S with l) - v(S)).

    Source:
        L. S. Shapley, "A value for n-person games", 1953.
    """
    n = len(names)
    weighted = dict.fromkeys(names, 0)
    for subset in subsets(names):
        for name in names:
            if name not in subset:
                weight = factorial(len(subset)) * factorial(n - len(subset) - 1)
                weighted[name] += weight * (value(subset | {name}) - value(subset))
    return largest_remainder(weighted, factorial(n))


def largest_remainder(numerators: dict[str, int], denominator: int) -> dict[str, int]:
    """Round fractions with one denominator to whole numbers that keep the sum, which must be whole.

    Not ``money.share_out``: that splits a total by weights, which cannot be negative; a lever's part of a saving can.

    Args:
        numerators: Name to numerator, of any sign.
        denominator: The common denominator, positive.

    Returns:
        Name to whole number; the largest remainders are rounded up, earlier names win ties.
    """
    made = {name: numerator // denominator for name, numerator in numerators.items()}
    spare = sum(numerators.values()) // denominator - sum(made.values())
    by_remainder = sorted(numerators, key=lambda name: -(numerators[name] % denominator))
    for name in by_remainder[:spare]:
        made[name] += 1
    return made
