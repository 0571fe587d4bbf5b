"""What a router or a semantic cache is held against: fixed models, an oracle, chance, and the cost of wrong answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from tenfold.levers.quality import Interval, wilson
from tenfold.money import divided


class Outcome(NamedTuple):
    """Both models on one request.

    Args:
        weak: The small model's score.
        strong: The large model's score.
        weak_pusd: What the small model's answer costs, in pUSD.
        strong_pusd: What the large model's answer costs, in pUSD.
    """

    weak: Decimal
    strong: Decimal
    weak_pusd: int
    strong_pusd: int


class Baseline(NamedTuple):
    """One way to answer a paired sample.

    Args:
        quality: Mean score, expected where chance decides.
        cost_pusd: Cost of the sample, in pUSD; expected (half even) where chance decides.
        strong_share: Share of requests that the large model answers.
    """

    quality: Decimal
    cost_pusd: int
    strong_share: Decimal


class Baselines(NamedTuple):
    """A router and what it must beat, on the same requests.

    Args:
        always_strong: The large model answers all.
        always_weak: The small model answers all.
        oracle: The better answer of both, the cheaper where they score alike: what no router can exceed.
        routed: The router.
        random: A coin that sends as many requests to the small model as the router does, in expectation.
    """

    always_strong: Baseline
    always_weak: Baseline
    oracle: Baseline
    routed: Baseline
    random: Baseline


class Point(NamedTuple):
    """A model or a policy as one point.

    Args:
        name: What it is called.
        score: Mean score.
        cost: Mean cost per request, in any unit that all points share.
    """

    name: str
    score: Decimal
    cost: Decimal


class SemanticNet(NamedTuple):
    """What a semantic cache is worth net of its wrong answers.

    Args:
        wrong_share: Wrong hits of the labelled hits.
        bound: Wilson's interval of that share.
        net_pusd: Net saving at the bound's upper end: the figure to state.
        net_mid_pusd: Net saving at the share itself.
        break_even_wrong_pusd: Harm of one wrong answer, in pUSD, above which the cache loses (at the upper end, rounded
            down); below 0 where lookups alone cost more than hits save; None without hits.
    """

    wrong_share: float
    bound: Interval
    net_pusd: int
    net_mid_pusd: int
    break_even_wrong_pusd: int | None


def baselines(sample: Sequence[Outcome], to_weak: Sequence[bool]) -> Baselines:
    """Compute a router's baselines on a paired sample.

    Args:
        sample: Both models on each request.
        to_weak: Whether the router sends it to the small model.

    Returns:
        The router and its baselines.

    Raises:
        ValueError: The sample is empty.

    Source:
        Random: n p q_weak + n (1 - p) q_strong with the router's own share p. Hu et al., RouterBench, arXiv 2403.12031
        (oracle, Zero router); levers.md 3.1.
    """
    if not sample:
        raise ValueError("baselines need a paired sample of at least one request")
    weak, strong = _taken(sample, [True] * len(sample)), _taken(sample, [False] * len(sample))
    oracle = [(one.weak, -one.weak_pusd) >= (one.strong, -one.strong_pusd) for one in sample]
    n, small = len(sample), sum(to_weak)
    chance = Baseline(
        quality=(weak.quality * small + strong.quality * (n - small)) / n,
        cost_pusd=divided(weak.cost_pusd * small + strong.cost_pusd * (n - small), n),
        strong_share=Decimal(n - small) / n,
    )
    return Baselines(strong, weak, _taken(sample, oracle), _taken(sample, to_weak), chance)


def best_single(points: Iterable[Point]) -> Point:
    """Find the best static model: the highest score, the cheapest of those.

    Args:
        points: Single models on the same requests; at least one.

    Returns:
        The model.

    Source:
        LLMRouterBench (Best-Single); levers.md 0.6, 3.
    """
    return max(points, key=lambda one: (one.score, -one.cost, one.name))


def cheapest_within(points: Iterable[Point], floor: Decimal) -> Point | None:
    """Find the cheapest point that reaches a score.

    With the best single model's score as ``floor`` and a router's points, this is the cost to match that model; with
    its score less a tolerance and single models as points, the best static model within the tolerance.

    Args:
        points: Models, or policies at several budgets.
        floor: Score to reach.

    Returns:
        The point (the better one of equal cost), or None where none reaches it.

    Source:
        Chen et al., FrugalGPT, arXiv 2305.05176, table of cost savings to match the best individual model.
    """
    reaching = [one for one in points if one.score >= floor]
    return min(reaching, key=lambda one: (one.cost, -one.score, one.name), default=None)


def change_ratio(after: Decimal | int, before: Decimal | int) -> Decimal:
    """Give a change as a share of what was before: -0.942 for a cost that falls by 94.2 %.

    Args:
        after: Amount after.
        before: Amount before, above 0.

    Returns:
        (after - before) / before.
    """
    return (Decimal(after) - Decimal(before)) / Decimal(before)


def cost_saving_ratio(random_share: Decimal, router_share: Decimal) -> Decimal:
    """Give RouteLLM's "cost saving ratio": calls to the large model by chance over calls by the router.

    It compares with a coin at the same quality, not with sending everything to the large model: ``saving_at_share`` is
    what a bill falls by.

    Args:
        random_share: Share of strong calls (CPT) with which a random router recovers x % of the gap.
        router_share: Share of strong calls with which the router does, above 0.

    Returns:
        random_share / router_share.

    Source:
        Ong et al., RouteLLM, arXiv 2406.18665 v4, section 3 (CPT: call-performance threshold) and Table 6.
    """
    return random_share / router_share


def saving_at_share(strong_share: Decimal, strong_price: Decimal, weak_price: Decimal) -> Decimal:
    """Give the true saving of a router against always-strong, requests being alike in size.

    1 - (share x strong + (1 - share) x weak) / strong. Where size and difficulty go together it is wrong (levers.md
    3.2): for a log, price request by request.

    Args:
        strong_share: Share of requests that the large model answers.
        strong_price: The large model's price, in any unit.
        weak_price: The small model's, in the same.

    Returns:
        The saving as a share of the cost of always-strong.

    Source:
        levers.md 3, cases/levers.md 37.
    """
    return 1 - (strong_share * strong_price + (1 - strong_share) * weak_price) / strong_price


def semantic_net(
    *, saving_pusd: int, hits: int, labelled: int, wrong: int, wrong_pusd: int, lookups_pusd: int
) -> SemanticNet:
    """Value a semantic cache net of its wrong answers, at the upper bound of how many are wrong.

    net = saving - wrong share x hits x harm of one - lookups.

    Args:
        saving_pusd: What the requests that hit really cost, in pUSD: weighted by spend, not by count.
        hits: Requests that hit.
        labelled: Hits that were judged, at least 1.
        wrong: Those of them judged wrong.
        wrong_pusd: Harm of one wrong answer, in pUSD.
        lookups_pusd: Cost of embeddings, index and storage over all requests, in pUSD.

    Returns:
        The net saving at both shares, and the harm at which it is gone.

    Raises:
        ValueError: No hit was labelled, so that nothing bounds the wrong ones.

    Source:
        levers.md 2 (ii), (iii).
    """
    if labelled < 1:
        raise ValueError("a semantic cache cannot be valued without labelled hits")
    bound = wilson(wrong, labelled)
    upper = Fraction(bound.high)
    gross = saving_pusd - lookups_pusd

    def net(share: Fraction) -> int:
        return round(gross - share * hits * wrong_pusd)

    return SemanticNet(
        wrong_share=wrong / labelled,
        bound=bound,
        net_pusd=net(upper),
        net_mid_pusd=net(Fraction(wrong, labelled)),
        break_even_wrong_pusd=gross // (upper * hits) if hits else None,
    )


def _taken(sample: Sequence[Outcome], to_weak: Sequence[bool]) -> Baseline:
    scores = [one.weak if small else one.strong for one, small in zip(sample, to_weak, strict=True)]
    costs = [one.weak_pusd if small else one.strong_pusd for one, small in zip(sample, to_weak, strict=True)]
    n = len(sample)
    return Baseline(sum(scores, Decimal(0)) / n, sum(costs), Decimal(n - sum(to_weak)) / n)
