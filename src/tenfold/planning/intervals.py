"""Intervals from the days of a log: whole days are drawn again and again, so that what goes together stays together."""

from __future__ import annotations

import random
from collections.abc import Sequence
from operator import mul

DRAWS = 1_000
SEED = 20_261_129
MIN_BLOCKS = 10
MIN_DAYS = 7
# Ranks of the 2.5 % and 97.5 % points among the sorted draws (nearest rank), from 0.
_LOW, _HIGH = DRAWS * 25 // 1000 - 1, DRAWS * 975 // 1000 - 1


class DayDraws:
    """The draws of one log: the same days for every lever and every set of levers.

    Args:
        days: Number of days (blocks) in the window.
    """

    def __init__(self, days: int) -> None:
        rng = random.Random(SEED)
        self._weights: list[list[int]] = []
        for _ in range(DRAWS if days else 0):
            weights = [0] * days
            for _ in range(days):
                weights[rng.randrange(days)] += 1
            self._weights.append(weights)

    def interval(self, daily_pusd: Sequence[int], rest_pusd: int = 0) -> tuple[int, int]:
        """Bound a sum over the window, from how it varies between days.

        Args:
            daily_pusd: The amount of each day, in pUSD.
            rest_pusd: What belongs to no day and is not drawn.

        Returns:
            2.5 % and 97.5 % points of the sum, in pUSD.
        """
        drawn = sorted(sum(map(mul, weights, daily_pusd)) for weights in self._weights)
        return drawn[_LOW] + rest_pusd, drawn[_HIGH] + rest_pusd
