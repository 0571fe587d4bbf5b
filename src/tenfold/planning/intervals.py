"""Intervals from the blocks of a log: whole days, and whole groups of users, are drawn again and again.

What goes together stays together: the requests of a day, and those of a user, are not independent of each other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import polars as pl

DRAWS = 1_000
SEED = 20_261_129
MIN_BLOCKS = 10
MIN_DAYS = 7
# Ranks of the 2.5 % and 97.5 % points among the sorted draws (nearest rank), from 0.
_LOW, _HIGH = DRAWS * 25 // 1000 - 1, DRAWS * 975 // 1000 - 1
Blocks: TypeAlias = Mapping[str, int]


class Draws:
    """The draws of one log's blocks: the same ones for every lever and every set of levers.

    Args:
        blocks: The blocks (days, or groups of users) in a fixed order.
    """

    def __init__(self, blocks: Sequence[str]) -> None:
        rng = random.Random(SEED)
        count = len(blocks)
        drawn = [[0] * DRAWS for _ in blocks]
        for draw in range(DRAWS if count else 0):
            for _ in range(count):
                drawn[rng.randrange(count)][draw] += 1
        self._weights = {block: _whole(weights) for block, weights in zip(blocks, drawn, strict=True)}

    def interval(self, pusd: Blocks, rest_pusd: int = 0) -> tuple[int, int]:
        """Bound a sum over the window, from how it varies between blocks.

        Args:
            pusd: The amount of each block, in pUSD; a block that is not there has none.
            rest_pusd: What belongs to no block and is not drawn.

        Returns:
            2.5 % and 97.5 % points of the sum, in pUSD.
        """
        total = _whole([0] * DRAWS)
        for block, amount in pusd.items():
            if amount:
                total = total + self._weights[block] * _whole([amount])
        drawn = total.sort()
        return int(drawn[_LOW]) + rest_pusd, int(drawn[_HIGH]) + rest_pusd


def _whole(values: Sequence[int]) -> pl.Series:
    return pl.Series(values, dtype=pl.Int128)
