"""The value of every set of levers at once, from what each class of requests costs under the levers that touch it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

# The bits of the levers that matter to a class of requests, and its amount for each set of those (``subsets_of``).
Part: TypeAlias = tuple[int, Sequence[int]]


def subsets_of(bits: int) -> list[int]:
    """List the sets of some levers, each as bits.

    Args:
        bits: The levers.

    Returns:
        Every set, the empty one first; that at place p holds the k-th lowest bit where p holds bit k.
    """
    made = [0]
    for place in range(bits.bit_length()):
        if bits >> place & 1:
            made += [one | 1 << place for one in made]
    return made


def every_set(levers: int, parts: Iterable[Part]) -> list[int]:
    """Sum what classes of requests cost, for every set of levers.

    Args:
        levers: How many levers there are; their bits are the lowest.
        parts: The classes.

    Returns:
        Amount by set of levers (its bits are the place), in pUSD.

    Formula:
        An amount f(S & K) of a class is written as the sum of d(U) over the U in S & K (Moebius inversion over the
        sets of K alone). The d of all classes are added up, and one sum over subsets gives every set: n 2^(n-1)
        additions in place of one look at every class for each of the 2^n sets.
    """
    made = [0] * (1 << levers)
    for among, amounts in parts:
        differences = list(amounts)
        for step in _steps(len(differences)):
            for place in range(step, len(differences)):
                if place & step:
                    differences[place] -= differences[place ^ step]
        for place, difference in zip(subsets_of(among), differences, strict=True):
            made[place] += difference
    for step in _steps(len(made)):
        for place in range(step, len(made)):
            if place & step:
                made[place] += made[place ^ step]
    return made


def _steps(count: int) -> list[int]:
    return [1 << power for power in range(count.bit_length() - 1)]
