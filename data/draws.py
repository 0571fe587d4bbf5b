"""Random draws that give the same values on every platform and every Python from 3.11 on."""

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

Quantiles: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""Values of a distribution at the probabilities in `PROBABILITIES`."""

PROBABILITIES: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


NOTHING: Quantiles = (0, 0, 0, 0, 0, 0, 0, 0)
"""The distribution that is always zero."""


class Draws:
    """A seeded stream of draws.

    Only `random.Random.random` is used, whose sequence Python keeps stable across versions, and on its
    values only the basic arithmetic that IEEE 754 fixes: no `log`, no `exp`, no `gauss`.
    """

    def __init__(self, key: str) -> None:
        """Start the stream that belongs to a text.

        Args:
            key: Names the stream; the same text gives the same draws.
        """
        self._random = random.Random(key)

    def unit(self) -> float:
        """Draw a number.

        Returns:
            A float in [0, 1).
        """
        return self._random.random()

    def chance(self, probability: float) -> bool:
        """Draw whether an event happens.

        Args:
            probability: Of the event, 0 to 1.

        Returns:
            True with that probability.
        """
        return self.unit() < probability

    def between(self, low: int, high: int) -> int:
        """Draw an integer, all equally likely.

        Args:
            low: Smallest value.
            high: Largest value, included.

        Returns:
            An integer in [low, high].
        """
        return low + int(self.unit() * (high - low + 1))

    def quantile(self, table: Quantiles) -> int:
        """Draw from a distribution that is given by its quantiles, linear between them.

        Args:
            table: Values at `PROBABILITIES`, not falling.

        Returns:
            A value between the first and the last of the table, rounded down.
        """
        unit = self.unit()
        upper = next(i for i, p in enumerate(PROBABILITIES) if unit < p)
        p_low, p_high = PROBABILITIES[upper - 1], PROBABILITIES[upper]
        low, high = table[upper - 1], table[upper]
        return int(low + (high - low) * ((unit - p_low) / (p_high - p_low)))

    def skewed(self, count: int) -> int:
        """Draw an index so that low ones come far more often: a few heavy users, many light ones.

        Args:
            count: Number of indexes, at least 1.

        Returns:
            An integer in [0, count).
        """
        unit = self.unit()
        return int(unit * unit * unit * count)


def cumulative(weights: Sequence[float]) -> list[float]:
    """Add weights up, ready for `bisect`.

    Args:
        weights: Non-negative weights, at least one above zero.

    Returns:
        Running sums scaled so that the last is 1.
    """
    sums = list(accumulate(weights))
    return [value / sums[-1] for value in sums]
