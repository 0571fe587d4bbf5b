"""What a sample says about quality: shares with Wilson bounds, and paired ratios with bootstrap intervals.

Statistics of samples are floats (money stays integer, ``baselines.py``). Every result is the same for the same sample
in any order: sums are exactly rounded (``math.fsum``), and the draws depend on the clusters' sums alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from tenfold.levers.values import DECIMALS, Range

# The 97.5 % point of the normal distribution: two-sided bounds at 95 %.
Z = 1.959963984540054
DRAWS = 1_000
SEED = 20_261_129
# Fewer clusters than this bound nothing (levers.md 9).
LEAST_CLUSTERS = 10
# More clusters than this are put into so many random groups, which estimates the same variance at a bounded cost.
MOST_CLUSTERS = 1_000
# Share of the draws that may lack a ratio (no gap between two models) before there is no interval.
_MOST_UNDEFINED = 0.025


class Interval(NamedTuple):
    """A 95 % interval of a share."""

    low: float
    high: float


class Estimated(NamedTuple):
    """A figure estimated from a paired sample.

    Args:
        value: The figure on the whole sample; None where it is not defined.
        low: 2.5 % point of its draws, at most ``value``; None where the sample cannot bound it.
        high: 97.5 % point, at least ``value``; None like ``low``.
        pairs: Pairs it rests on.
        clusters: Clusters these are in; below ten there is no interval.
        left_out: Pairs that were not used.
    """

    value: float | None
    low: float | None
    high: float | None
    pairs: int
    clusters: int
    left_out: int = 0

    def as_range(self) -> Range | None:
        """Give the figure as an assumption's three scenarios.

        Returns:
            Low, mid, high with six decimals (half even), as a written ``[low, mid, high]`` would be; all three alike
            where there is no interval, None where there is no figure.
        """
        if self.value is None:
            return None
        ends = (self.value if end is None else end for end in (self.low, self.value, self.high))
        return Range(*(round(Decimal(end), DECIMALS) for end in ends))


def wilson(successes: int, n: int) -> Interval:
    """Bound a share by Wilson's score interval at 95 %.

    With p = successes / n: (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n).

    Args:
        successes: How many of the sample have the property.
        n: Size of the sample.

    Returns:
        The interval, within [0, 1] and around the share; [0, 1] for an empty sample, which says nothing.

    Raises:
        ValueError: There are more successes than trials, or less than none.

    Source:
        Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927); levers.md 9.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"a share needs 0 <= successes <= n, not {successes} of {n}")
    if n == 0:
        return Interval(0.0, 1.0)
    share, z2 = successes / n, Z * Z
    middle = share + z2 / (2 * n)
    half = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low, high = (middle - half) / (1 + z2 / n), (middle + half) / (1 + z2 / n)
    # the formula gives exactly 0 and 1 at the ends, but for rounding
    return Interval(0.0 if successes == 0 else min(low, share), 1.0 if successes == n else max(high, share))


def sample_size(half_width: float) -> int:
    """Say how many labels bound a share to a half width, whatever the share turns out to be.

    Wilson's interval is widest at a share of 1/2, where its half width is z / (2 sqrt(n + z^2)).

    Args:
        half_width: Wanted half width, above 0 and below 1/2 (0.05 for five points).

    Returns:
        The least such sample.

    Raises:
        ValueError: The half width is outside its bounds.

    Source:
        The formula of ``wilson`` at p = 1/2, solved for n.
    """
    if not 0 < half_width < 0.5:
        raise ValueError(f"a half width must lie between 0 and 0.5, not {half_width}")
    return max(1, math.ceil((Z / (2 * half_width)) ** 2 - Z * Z))


def gap_recovered(
    routed: Sequence[float],
    weak: Sequence[float],
    strong: Sequence[float],
    clusters: Sequence[Hashable | None] | None = None,
) -> Estimated:
    """Estimate the performance gap recovered: PGR = (q - q_weak) / (q_strong - q_weak).

    Args:
        routed: Score of the answer that each request would get.
        weak: Score of the small model's answer to the same request.
        strong: Score of the large model's answer to it.
        clusters: What goes together (a session, a user); None, for one request or all, is a cluster of its own.

    Returns:
        The PGR: 1 for always-strong, 0 for always-weak, below 0 for worse than the small model. No figure where the
        large model does not score higher; no interval where more than 2.5 % of the draws have no such gap.

    Source:
        Ong et al., RouteLLM, arXiv 2406.18665 v4, section 3 (performance gap recovered); levers.md 3.1.
    """
    gains = [q - w for q, w in zip(routed, weak, strict=True)]
    gaps = [s - w for s, w in zip(strong, weak, strict=True)]
    return _ratio(gains, gaps, clusters)


def quality_drop(
    routed: Sequence[float], reference: Sequence[float], clusters: Sequence[Hashable | None] | None = None
) -> Estimated:
    """Estimate how much lower the mean score is than a reference's on the same requests.

    Args:
        routed: Score of the answer that each request would get.
        reference: Score of the answer that it has now.
        clusters: As in ``gap_recovered``.

    Returns:
        The mean of reference - routed, in the scores' own unit; negative where quality rises. Where all pairs differ
        alike the draws do too, and the interval is a point: state ``wilson`` of the changed answers beside it.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapters 8 and 13 (percentile interval).
    """
    drops = [r - q for q, r in zip(routed, reference, strict=True)]
    return _ratio(drops, [1.0] * len(drops), clusters)


def total_ratio(
    before: Sequence[int],
    after: Sequence[int],
    truncated: Sequence[bool] | None = None,
    clusters: Sequence[Hashable | None] | None = None,
) -> Estimated:
    """Estimate a ratio of totals from pairs: sum(after) / sum(before).

    Args:
        before: Tokens of each sampled request as it was.
        after: Tokens of the same request changed.
        truncated: Whether either answer ended at its limit (``finish_reason = length``); such pairs are left out, for
            how long they would have been is unknown.
        clusters: As in ``gap_recovered``.

    Returns:
        The ratio; no figure where nothing is left. The ratio of totals weighs a request by its length, as a bill does;
        the mean of ratios does not.

    Source:
        levers.md 6 (iii), 9; Cochran, Sampling Techniques (1977), chapter 6 (ratio estimate).
    """
    ends = truncated if truncated is not None else [False] * len(before)
    groups = clusters if clusters is not None else [None] * len(before)
    kept = [(b, a, group) for b, a, cut, group in zip(before, after, ends, groups, strict=True) if not cut]
    found = _ratio([a for _, a, _ in kept], [b for b, _, _ in kept], [group for _, _, group in kept])
    return found._replace(left_out=len(before) - len(kept))


def _ratio(
    numerators: Sequence[float], denominators: Sequence[float], clusters: Sequence[Hashable | None] | None
) -> Estimated:
    """Estimate a ratio of sums, clusters drawn with replacement."""
    blocks = _blocks(numerators, denominators, clusters)
    pairs, count = len(numerators), len(blocks)
    total = math.fsum(denominators)
    if total <= 0:
        return Estimated(None, None, None, pairs, count)
    value = math.fsum(numerators) / total
    if count < LEAST_CLUSTERS:
        return Estimated(value, None, None, pairs, count)
    tops, bottoms = zip(*_grouped(blocks), strict=True)
    drawn = [(sum(map(mul, weights, tops)), sum(map(mul, weights, bottoms))) for weights in _weights(len(tops))]
    ratios = sorted(top / bottom for top, bottom in drawn if bottom > 0)
    if len(ratios) < DRAWS * (1 - _MOST_UNDEFINED):
        return Estimated(value, None, None, pairs, count)
    # the 2.5 % and 97.5 % points by nearest rank
    low, high = (ratios[len(ratios) * permille // 1000 - 1] for permille in (25, 975))
    return Estimated(value, min(low, value), max(high, value), pairs, count)


def _blocks(
    numerators: Sequence[float], denominators: Sequence[float], clusters: Sequence[Hashable | None] | None
) -> list[tuple[float, float]]:
    """Sum by cluster, in an order that depends on the sums alone."""
    members: dict[Hashable, tuple[list[float], list[float]]] = {}
    alone: list[tuple[float, float]] = []
    for top, bottom, group in zip(numerators, denominators, clusters or [None] * len(numerators), strict=True):
        if group is None:
            alone.append((top, bottom))
        else:
            tops, bottoms = members.setdefault(group, ([], []))
            tops.append(top)
            bottoms.append(bottom)
    return sorted(alone + [_summed(tops, bottoms) for tops, bottoms in members.values()])


def _grouped(blocks: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(blocks) <= MOST_CLUSTERS:
        return blocks
    mixed = random.Random(SEED).sample(blocks, len(blocks))
    parts = (mixed[start::MOST_CLUSTERS] for start in range(MOST_CLUSTERS))
    return [_summed((top for top, _ in part), (bottom for _, bottom in part)) for part in parts]


def _summed(tops: Iterable[float], bottoms: Iterable[float]) -> tuple[float, float]:
    return math.fsum(tops), math.fsum(bottoms)


@lru_cache(maxsize=4)
def _weights(count: int) -> list[list[int]]:
    """Draw clusters with replacement: how often each is in each draw, the same for every figure of one sample."""
    rng = random.Random(SEED)
    made: list[list[int]] = []
    for _ in range(DRAWS):
        weights = [0] * count
        for drawn in rng.choices(range(count), k=count):
            weights[drawn] += 1
        made.append(weights)
    return made
