"""The indicators of one slice of a bill: the whole, a month, a team. Exact fractions; None is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from tenfold.analysis.efficiency.causes import CAUSES, Waste
from tenfold.display import nothing_priced


class CacheReturn(NamedTuple):
    """What prompt caches returned: two bills for the same input, with and without them (FOCUS, caching examples).

    Args:
        uncached_pusd: What the whole input side would have cost without any caching, at the rates in force.
        billed_pusd: What it cost: uncached input, reads, writes, and holding explicit caches.
        premium_pusd: What the writes cost beyond uncached input.
        storage_pusd: What holding explicit caches cost.
        requests: Requests that read, wrote or held a cache.
        unpriced_requests: Those of them without a price when not cached: taken as they were billed.
    """

    uncached_pusd: int
    billed_pusd: int
    premium_pusd: int
    storage_pusd: int
    requests: int
    unpriced_requests: int

    @property
    def saving_pusd(self) -> int:
        """What caching saved; negative where writes and storage cost more than reads gave back."""
        return self.uncached_pusd - self.billed_pusd

    @property
    def roi(self) -> Fraction | None:
        """The saving over what was laid out for it (premiums and storage); None where nothing was."""
        outlay = self.premium_pusd + self.storage_pusd
        return Fraction(self.saving_pusd, outlay) if outlay > 0 else None


class Discount(NamedTuple):
    """List cost against effective cost, over what has both.

    Args:
        list_pusd: By the provider's list.
        effective_pusd: By your own prices, with capacity that is paid by the hour.
        left_out_requests: Requests that only one of the two has a price for: in neither amount.
        is_own: Whether there are prices of your own; else there is nothing to compare.
    """

    list_pusd: int
    effective_pusd: int
    left_out_requests: int
    is_own: bool

    @property
    def ratio(self) -> Fraction | None:
        """1 - effective / list; None without prices of your own, or for a list cost of zero."""
        return 1 - Fraction(self.effective_pusd, self.list_pusd) if self.is_own and self.list_pusd else None


@dataclass(frozen=True, slots=True)
class Kpis:
    """The indicators of one slice of a bill.

    Args:
        sums: What ``efficiency_sums.sql`` and ``efficiency_cache.sql`` counted.
    """

    sums: Mapping[str, int]

    @property
    def spend_pusd(self) -> int:
        """Cost of its priced requests."""
        return self.sums["cost_pusd"]

    @property
    def is_blank(self) -> bool:
        """Whether it has requests and none of them has a price, so that there is no spend."""
        return nothing_priced(self.sums["requests"], self.sums["unpriced_requests"])

    @property
    def cache_hit_ratio(self) -> Fraction | None:
        """Share of input tokens that was read from a prompt cache, where the log tells."""
        return part(self.sums["read_tokens"], self.sums["read_known_tokens"])

    @property
    def cache_hit_requests_ratio(self) -> Fraction | None:
        """Share of requests that read anything from a prompt cache, where the log tells."""
        return part(self.sums["read_requests"], self.sums["read_known"])

    @property
    def cache_known_ratio(self) -> Fraction | None:
        """Share of known input tokens of which the log tells whether they were cached."""
        return part(self.sums["read_known_tokens"], self.sums["input_tokens"])

    @property
    def cache(self) -> CacheReturn | None:
        """What caching returned; None where the log does not tell of caching at all, or nothing has a price."""
        sums = self.sums
        if self.is_blank or not (sums["read_known"] or sums["cached_requests"]):
            return None
        return CacheReturn(
            sums["input_pusd"] - sums["cached_billed_pusd"] + sums["cached_uncached_pusd"],
            sums["input_pusd"],
            sums["cached_premium_pusd"],
            sums["cached_storage_pusd"],
            sums["cached_requests"],
            sums["cached_unpriced"],
        )

    def tier_share(self, tier: Literal["batch", "flex"], what: Literal["tokens", "pusd"] = "pusd") -> Fraction | None:
        """Give the share of a cheaper tier.

        Args:
            tier: Which.
            what: Of the spend, or of the tokens that have a price.

        Returns:
            The share; None where there is nothing to share.
        """
        return part(self.sums[f"{tier}_{what}"], self.sums["cost_pusd" if what == "pusd" else "tokens"])

    @property
    def reasoning_share(self) -> Fraction | None:
        """Share of the spend that reasoning tokens cost, where the log tells of them; whether read is not logged."""
        return part(self.sums["reasoning_pusd"], self.spend_pusd) if self.sums["reasoning_known"] else None

    @property
    def mean_input_tokens(self) -> Fraction | None:
        """Input tokens of a request, where known."""
        return part(self.sums["input_tokens"], self.sums["input_known"])

    def waste_of(self, name: str) -> Waste | None:
        """Give what one cause wasted.

        Args:
            name: Of ``CAUSES``.

        Returns:
            The waste; None where the log does not tell.
        """
        cause = next(one for one in CAUSES if one.name == name)
        sums = self.sums
        if not sums[f"{name}_known"]:
            return None
        requests, unpriced = sums[f"{name}_requests"], sums[f"{name}_unpriced"]
        once_requests, once_unpriced = sums[f"{name}_once_requests"], sums[f"{name}_once_unpriced"]
        pusd = None if nothing_priced(requests, unpriced) else sums[f"{name}_pusd"]
        once = None if nothing_priced(once_requests, once_unpriced) else sums[f"{name}_once_pusd"]
        shares = (None if one is None else part(one, self.spend_pusd) for one in (pusd, once))
        return Waste(
            cause, sums[f"{name}_known"], requests, unpriced, pusd, once_requests, once_unpriced, once, *shares
        )

    @property
    def waste(self) -> tuple[Waste, ...]:
        """Every cause that the log tells of, in the order in which one is chosen for a request."""
        found = (self.waste_of(cause.name) for cause in CAUSES)
        return tuple(one for one in found if one is not None)

    @property
    def waste_pusd(self) -> int | None:
        """What was wasted, each request once, ceilings left out; None where the log tells of no exact cause."""
        exact = [one.once_pusd for one in self.waste if one.cause.label == "exact" and one.once_pusd is not None]
        return sum(exact) if exact and not self.is_blank else None

    @property
    def waste_unpriced(self) -> int:
        """Requests that were wasted and have no price: in no amount."""
        return sum(one.once_unpriced for one in self.waste if one.cause.label == "exact")

    @property
    def waste_share(self) -> Fraction | None:
        """The same over the spend."""
        return None if self.waste_pusd is None else part(self.waste_pusd, self.spend_pusd)


def part(of: int, whole: int) -> Fraction | None:
    """Give a share.

    Args:
        of: The part.
        whole: The whole.

    Returns:
        The share; None of nothing.
    """
    return Fraction(of, whole) if whole else None
