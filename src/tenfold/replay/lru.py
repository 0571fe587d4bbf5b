"""Least-recently-used block caches with a capacity, as self-hosted engines and KV stores have them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from tenfold.errors import TenfoldError

_HASH_RANGE = 2**64


class LruHits(NamedTuple):
    """What a block cache of one capacity would have served.

    Args:
        tokens: Input tokens asked for.
        hit_tokens: Those read from the cache: whole leading blocks, at most the request's input.
        blocks: Blocks asked for.
        hit_blocks: Leading blocks read.
        rate: Share of blocks that were simulated; below 1 the hits are estimates.
    """

    tokens: int
    hit_tokens: int
    blocks: int
    hit_blocks: int
    rate: Fraction = Fraction(1)

    @property
    def token_ratio(self) -> Fraction:
        """Hit tokens over input tokens; 0 without any."""
        return Fraction(self.hit_tokens, self.tokens) if self.tokens else Fraction(0)

    @property
    def block_ratio(self) -> Fraction:
        """Hit blocks over blocks; 0 without any."""
        return Fraction(self.hit_blocks, self.blocks) if self.blocks else Fraction(0)


def lru_hits(
    requests: Iterable[tuple[Sequence[Hashable], int]],
    *,
    block_tokens: int,
    capacity_tokens: int | None,
    rate: Fraction | None = None,
    counted_from: int = 0,
) -> LruHits:
    """Replay an LRU cache of prompt blocks.

    A request reads its leading blocks that are held, then touches all its blocks, the last first: a block is then never
    held without those before it, as in engines that evict leaves first. A last block that is not full takes the room of
    a full one.

    With a ``rate``, only blocks whose hash falls into that share are simulated, with that share of the capacity, and
    references that the sample has too few or too many of are added to the hits (SHARDS-adj: Waldspurger et al.,
    "Efficient MRC Construction with SHARDS", FAST 2015): else a few hot blocks in or out of it would decide. Where that
    share of the capacity has room for fewer than about 1,000 blocks, an estimate may be points off.

    Args:
        requests: In order, each its cumulative block hashes and its input tokens.
        block_tokens: Tokens of a full block.
        capacity_tokens: Tokens that the cache holds, rounded down to whole blocks; None is no limit.
        rate: Share of blocks to simulate, above 0 and at most 1; None is all of them, exactly.
        counted_from: Number of the first request that is counted; those before only warm the cache.

    Returns:
        The hits; estimates are kept between 0 and what was asked for.

    Raises:
        TenfoldError: The rate, the size of a block or the capacity is impossible.
    """
    _check(block_tokens, capacity_tokens, rate)
    share = rate or Fraction(1)
    held = _Held(None if capacity_tokens is None else int(capacity_tokens // block_tokens * share))
    if share < 1:
        return _sampled(requests, block_tokens, held, share, counted_from)
    tokens = hit_tokens = asked_blocks = hit_blocks = 0
    for number, (blocks, input_tokens) in enumerate(requests):
        if number >= counted_from:
            run = held.leading(blocks)
            tokens += input_tokens
            hit_tokens += min(run * block_tokens, input_tokens)
            asked_blocks += len(blocks)
            hit_blocks += run
        held.touch(reversed(blocks))
    return LruHits(tokens, hit_tokens, asked_blocks, hit_blocks)


class _Held:
    """Blocks in the cache, the least recently touched first."""

    def __init__(self, room: int | None) -> None:
        self.room = room
        self.blocks: OrderedDict[Hashable, None] = OrderedDict()

    def leading(self, blocks: Sequence[Hashable]) -> int:
        held = self.blocks
        return next((place for place, block in enumerate(blocks) if block not in held), len(blocks))

    def touch(self, blocks: Iterable[Hashable]) -> None:
        held, room = self.blocks, self.room
        for block in blocks:
            if block in held:
                held.move_to_end(block)
            else:
                held[block] = None
                if room is not None and len(held) > room:
                    held.popitem(last=False)


def _sampled(
    requests: Iterable[tuple[Sequence[Hashable], int]], block_tokens: int, held: _Held, share: Fraction, start: int
) -> LruHits:
    """Replay a share of the blocks. Each stands for itself: what is held before it is held too, so hits lead."""
    is_simulated = _sampler(share)
    tokens = asked_blocks = 0
    seen_tokens = seen_blocks = hit_tokens = hit_blocks = 0
    for number, (blocks, input_tokens) in enumerate(requests):
        chosen = [(place, block) for place, block in enumerate(blocks) if is_simulated(block)]
        if number >= start:
            tokens += input_tokens
            asked_blocks += len(blocks)
            seen_blocks += len(chosen)
            for place, block in chosen:
                size = max(0, min(block_tokens, input_tokens - place * block_tokens))
                seen_tokens += size
                if block in held.blocks:
                    hit_tokens += size
                    hit_blocks += 1
        held.touch(block for _, block in reversed(chosen))
    return LruHits(
        tokens,
        _corrected(hit_tokens, seen_tokens, tokens, share),
        asked_blocks,
        _corrected(hit_blocks, seen_blocks, asked_blocks, share),
        share,
    )


def _corrected(hits: int, seen: int, asked: int, share: Fraction) -> int:
    """Scale a sample's hits up; references that it has too few of are taken for hits, as hot blocks make them so."""
    return max(0, min(asked, round((hits - seen) / share) + asked))


def _sampler(share: Fraction) -> Callable[[Hashable], bool]:
    bound = int(share * _HASH_RANGE)

    @cache
    def is_simulated(block: Hashable) -> bool:
        digest = hashlib.blake2b(str(block).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") < bound

    return is_simulated


def _check(block_tokens: int, capacity_tokens: int | None, rate: Fraction | None) -> None:
    if block_tokens <= 0:
        raise TenfoldError(f"a block of {block_tokens} tokens: give the tokens of a full block, 1 or more")
    if capacity_tokens is not None and capacity_tokens < 0:
        raise TenfoldError(f"a capacity of {capacity_tokens} tokens: give 0 or more, or None for no limit")
    if rate is not None and not 0 < rate <= 1:
        raise TenfoldError(f"a sample of {rate} of the blocks: give a share above 0 and at most 1")
