"""What each factor of a product did to its change, by four methods; exact fractions, no residual.

Laspeyres order (``pvm``: one factor after the other, the later ones at their old value); Bennet (1920), each side
weighted by the mean of both periods; LMDI-I (Ang, "LMDI decomposition approach: a guide for implementation", Energy
Policy 86, 2015; zeros by the analytical limit of Ang and Liu, Energy Policy 35, 2007); Shapley over the factors as
drivers. All but the first negate when the periods change places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import factorial, prod
from typing import TypeAlias

# A factor before and after.
Pair: TypeAlias = tuple[Fraction, Fraction]
_HALF = Fraction(1, 2)
# Logarithms are irrational: at 50 digits what they leave is far below a picodollar, and is given to the largest effect.
_DIGITS = Context(prec=50)


def effects(factors: Sequence[Pair], method: str = "pvm") -> tuple[Fraction, ...]:
    """Split the change of a product.

    Args:
        factors: Each factor before and after; at least 0.
        method: Key of ``METHODS``.

    Returns:
        One effect a factor; they sum to the product after less the product before, exactly.
    """
    return METHODS[method](factors)


def last_weight(factors: Sequence[Pair], effect: Fraction, method: str = "pvm") -> Fraction:
    """Say what the last factor's change is multiplied with in its effect, so that the change itself can be split.

    Args:
        factors: Each factor before and after; at least 0.
        effect: The last one of their effects.
        method: Key of ``METHODS``.

    Returns:
        The effect over the last factor's change; its limit where that is 0.
    """
    before, after = factors[-1]
    if before != after:
        return effect / (after - before)
    if method != "lmdi":  # linear in the last factor
        return effects([*factors[:-1], (Fraction(0), Fraction(1))], method)[-1]
    if before:
        return _log_mean(_product(factors, 1), _product(factors, 0)) / before
    return (_product(factors[:-1], 0) + _product(factors[:-1], 1)) * _HALF


def _product(factors: Sequence[Pair], side: int) -> Fraction:
    return prod((pair[side] for pair in factors), start=Fraction(1))


def _one_by_one(factors: Sequence[Pair]) -> tuple[Fraction, ...]:
    found: list[Fraction] = []
    for place, (before, after) in enumerate(factors):
        found.append(_product(factors[:place], 1) * (after - before) * _product(factors[place + 1 :], 0))
    return tuple(found)


def _bennet(factors: Sequence[Pair]) -> tuple[Fraction, ...]:
    """Split off the last factor from the rest, each weighted by the other's mean; then the rest in the same way."""
    found: list[Fraction] = []
    weight = Fraction(1)
    for place in range(len(factors) - 1, -1, -1):
        before, after = factors[place]
        rest = _product(factors[:place], 0) + _product(factors[:place], 1)
        found.append(weight * (after - before) * rest * _HALF)
        weight *= (before + after) * _HALF
    return tuple(reversed(found))


def _shapley(factors: Sequence[Pair]) -> tuple[Fraction, ...]:
    """Average over all orders, by how many of the other factors have changed before."""
    many = len(factors)
    found: list[Fraction] = []
    for place, (before, after) in enumerate(factors):
        # by_count[k]: the sum, over all sets of k other factors, of the product with just those changed
        by_count = [Fraction(1)]
        for old, new in (*factors[:place], *factors[place + 1 :]):
            longer = [old * one for one in by_count] + [Fraction(0)]
            for count, one in enumerate(by_count):
                longer[count + 1] += new * one
            by_count = longer
        mean = sum(
            (
                Fraction(factorial(count) * factorial(many - 1 - count), factorial(many)) * one
                for count, one in enumerate(by_count)
            ),
            Fraction(0),
        )
        found.append((after - before) * mean)
    return tuple(found)


def _lmdi(factors: Sequence[Pair]) -> tuple[Fraction, ...]:
    before, after = _product(factors, 0), _product(factors, 1)
    change = after - before
    if not before and not after:
        return (Fraction(0),) * len(factors)
    if not before or not after:
        # the limit: a factor that comes from 0, or goes to it, takes the whole change; several share it
        zeros = [not (pair[1] if before else pair[0]) for pair in factors]
        share = change / sum(zeros)
        return tuple(share if is_zero else Fraction(0) for is_zero in zeros)
    mean = _log_mean(after, before)
    found = [mean * _ln(one[1] / one[0]) for one in factors]
    largest = max(range(len(found)), key=lambda place: abs(found[place]))
    found[largest] += change - sum(found)
    return tuple(found)


def _log_mean(one: Fraction, other: Fraction) -> Fraction:
    if one == other or not one or not other:
        return one if one == other else Fraction(0)
    return (one - other) / _ln(one / other)


@lru_cache(maxsize=100_000)  # segments share the factors of what they are part of
def _ln(ratio: Fraction) -> Fraction:
    quotient = _DIGITS.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    if quotient != 1:
        return Fraction(_DIGITS.ln(quotient))
    # nearer to 1 than the digits tell
    return ratio - 1


METHODS: dict[str, Callable[[Sequence[Pair]], tuple[Fraction, ...]]] = {
    "pvm": _one_by_one,
    "bennet": _bennet,
    "lmdi": _lmdi,
    "shapley": _shapley,
}
