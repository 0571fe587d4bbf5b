"""The row of indicators that is shown beside its values in the period before, and their keys in JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from tenfold.analysis.efficiency.causes import CAUSES
from tenfold.analysis.efficiency.kpis import Kpis
from tenfold.money import usd_text

Value: TypeAlias = Fraction | int | None
Kind: TypeAlias = Literal["ratio", "pusd", "count", "number"]
_CACHE_MONEY = ("uncached", "billed", "saving", "premium", "storage")


def plain(value: Value, kind: Kind) -> str | int | float | None:
    """Write a value for JSON.

    Args:
        value: The value.
        kind: What it is.

    Returns:
        Money as a decimal string, a fraction as a number.
    """
    if value is None:
        return None
    if kind == "pusd":
        return usd_text(int(value))
    return float(value) if isinstance(value, Fraction) else value


@dataclass(frozen=True, slots=True)
class Measure:
    """One indicator in a row of them.

    Args:
        name: Its key; money in JSON ends in ``_usd`` instead of ``_pusd``.
        title: For people.
        kind: What its value is.
        read: How it is read off.
    """

    name: str
    title: str
    kind: Kind
    read: Callable[[Kpis], Value]

    @property
    def key(self) -> str:
        """Its key in JSON."""
        return f"{self.name.removesuffix('_pusd')}_usd" if self.kind == "pusd" else self.name


def _wasted(name: str) -> Measure:
    cause = next(one for one in CAUSES if one.name == name)
    most = ", at most" if cause.label == "ceiling" else ""
    return Measure(
        f"{name}_ratio",
        f"{cause.title}{most}, share of spend",
        "ratio",
        lambda kpis: None if (found := kpis.waste_of(name)) is None else found.share,
    )


_CACHING: tuple[Measure, ...] = (
    Measure("cache_hit_ratio", "input read from a prompt cache", "ratio", lambda kpis: kpis.cache_hit_ratio),
    Measure(
        "cache_hit_requests_ratio",
        "requests that read from a prompt cache",
        "ratio",
        lambda kpis: kpis.cache_hit_requests_ratio,
    ),
    Measure(
        "cache_saving_pusd",
        "saved by prompt caching",
        "pusd",
        lambda kpis: None if kpis.cache is None else kpis.cache.saving_pusd,
    ),
    Measure(
        "cache_roi",
        "saved for each $ of cache writes' premium and storage",
        "number",
        lambda kpis: None if kpis.cache is None else kpis.cache.roi,
    ),
)
_TIERS: tuple[Measure, ...] = (
    Measure("batch_ratio", "batch, share of spend", "ratio", lambda kpis: kpis.tier_share("batch")),
    Measure("batch_tokens_ratio", "batch, share of tokens", "ratio", lambda kpis: kpis.tier_share("batch", "tokens")),
    Measure("flex_ratio", "flex, share of spend", "ratio", lambda kpis: kpis.tier_share("flex")),
    Measure("flex_tokens_ratio", "flex, share of tokens", "ratio", lambda kpis: kpis.tier_share("flex", "tokens")),
)
_WHOLE: tuple[Measure, ...] = (
    Measure("waste_pusd", "waste, each request once", "pusd", lambda kpis: kpis.waste_pusd),
    Measure("waste_ratio", "waste, share of spend", "ratio", lambda kpis: kpis.waste_share),
    Measure("reasoning_ratio", "reasoning tokens, share of spend", "ratio", lambda kpis: kpis.reasoning_share),
    Measure("mean_input_tokens", "input tokens a request", "number", lambda kpis: kpis.mean_input_tokens),
)
# What is shown beside its value in the period before, in order.
MEASURES: tuple[Measure, ...] = (*_CACHING, *_TIERS, *(_wasted(cause.name) for cause in CAUSES), *_WHOLE)


def as_dict(kpis: Kpis) -> dict[str, Any]:
    """Give indicators the keys of ``tenfold kpis --json``.

    Args:
        kpis: The indicators.

    Returns:
        Money as decimal strings, shares as numbers, unknown as null.
    """
    cache = kpis.cache
    return {
        "requests": kpis.sums["requests"],
        "unpriced_requests": kpis.sums["unpriced_requests"],
        "spend_usd": None if kpis.is_blank else usd_text(kpis.spend_pusd),
        **{one.key: plain(one.read(kpis), one.kind) for one in MEASURES},
        "cache": None
        if cache is None
        else {
            **{f"{name}_usd": usd_text(getattr(cache, f"{name}_pusd")) for name in _CACHE_MONEY},
            "roi": plain(cache.roi, "number"),
            "requests": cache.requests,
            "unpriced_requests": cache.unpriced_requests,
        },
        "waste": [
            {
                "cause": one.cause.name,
                "label": one.cause.label,
                "known_requests": one.known,
                "requests": one.requests,
                "unpriced_requests": one.unpriced_requests,
                "cost_usd": usd_text(one.pusd),
                "share": plain(one.share, "ratio"),
                "once_requests": one.once_requests,
                "once_unpriced_requests": one.once_unpriced,
                "once_usd": usd_text(one.once_pusd),
            }
            for one in kpis.waste
        ],
    }
