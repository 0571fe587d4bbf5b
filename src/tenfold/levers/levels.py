"""A service level as a number read off each request: SQL by feature, NULL where nothing is stated."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tenfold.levers.scoring import least_score
from tenfold.slo import Limits, Slo
from tenfold.store.database import quoted


def by_feature(slo: Slo, value: Callable[[Limits], int | None]) -> str:
    """Write a number that depends on the feature.

    Args:
        slo: The service levels.
        value: The number of some limits; None where they say nothing.

    Returns:
        SQL of a BIGINT over requests.
    """
    common = value(slo.limits())
    cases = "".join(
        f" when feature = {quoted(name)} then {_whole(own)}"
        for name in slo.feature
        if (own := value(slo.limits(name))) != common
    )
    return f"case{cases} else {_whole(common)} end" if cases else _whole(common)


def least_e12(slo: Slo, own: Decimal | None) -> str:
    """Write the score that a request's answer must reach: the larger of a lever's own and the service level's.

    Args:
        slo: The service levels.
        own: The lever's ``min_quality``, or None.

    Returns:
        SQL of a BIGINT in 1e-12 over requests; NULL where neither is stated.
    """

    def least(limits: Limits) -> int | None:
        return max((least_score(one) for one in (own, limits.min_quality) if one is not None), default=None)

    return by_feature(slo, least)


def _whole(value: int | None) -> str:
    return f"cast({'null' if value is None else value} as bigint)"
