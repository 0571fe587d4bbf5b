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
Blocks: TypeAlias = Mapping[str, int]


class Draws:
    """The draws of one log's blocks: the same ones for every lever and every set of levers.

    Args:
        blocks: The blocks (days, or groups of users) in a fixed order.
        draws: How many draws.
    """

    def __init__(self, blocks: Sequence[str], draws: int = DRAWS) -> None:
        self._places = {block: place for place, block in enumerate(blocks)}
        self._draws = draws
        self._drawn = _drawn(len(blocks), draws)

    def interval(self, pusd: Blocks, rest_pusd: int = 0) -> tuple[int, int]:
        """Bound a sum over the window, from how it varies between blocks.

        Args:
            pusd: The amount of each block, in pUSD; a block that is not there has none.
            rest_pusd: What belongs to no block and is not drawn.

        Returns:
            2.5 % and 97.5 % points of the sum, in pUSD.
        """
        amounts = [0] * len(self._places)
        for block, amount in pusd.items():
            amounts[self._places[block]] = amount
        if not amounts:
            return rest_pusd, rest_pusd
        picked = pl.Series(amounts, dtype=pl.Int128).gather(self._drawn)
        drawn = picked.reshape((self._draws, len(amounts))).arr.sum().sort()
        # nearest rank, from 0
        low, high = self._draws * 25 // 1000 - 1, self._draws * 975 // 1000 - 1
        return int(drawn[low]) + rest_pusd, int(drawn[high]) + rest_pusd


def _drawn(blocks: int, draws: int) -> pl.Series:
    """Draw as many blocks as there are, with replacement, draw after draw.

    The same numbers as ``random.Random(SEED).randrange(blocks)`` one by one: the upper bits of 32 random ones, those
    that are too large left out.
    """
    rng, bits, wanted = random.Random(SEED), blocks.bit_length(), blocks * draws
    found = [pl.Series([], dtype=pl.UInt32)]
    while (lacking := wanted - sum(map(len, found))) > 0:
        words = (lacking << bits) // blocks + 64
        raw = pl.Series([rng.getrandbits(32 * words).to_bytes(4 * words, "little")])
        several = raw.bin.reinterpret(dtype=pl.Array(pl.UInt32, words), endianness="little").explode()
        several //= 1 << (32 - bits)
        found.append(several.filter(several < blocks))
    return pl.concat(found)[:wanted]
