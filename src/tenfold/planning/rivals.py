"""Levers that want the same requests: which of the two gets which features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Duel(NamedTuple):
    """Two levers that want the same requests, settled by feature.

    Args:
        first: Name of the one.
        second: Name of the other.
        lost_by: Feature (None for requests without one) to the lever that gives way there.
    """

    first: str
    second: str
    lost_by: Mapping[str | None, str]


class Side(NamedTuple):
    """One of two levers that want the same requests.

    Args:
        name: The lever.
        other_pusd: What it saves of requests that the other does not want.
        has_other: Whether there are any.
        fixed_pusd: What it takes for any request at all: fixed charges, and work and running cost over the window.
    """

    name: str
    other_pusd: int
    has_other: bool
    fixed_pusd: int


def settled(claims: Mapping[str | None, tuple[int, int]], first: Side, second: Side) -> dict[str | None, str]:
    """Settle which of two levers gets which features: each where it saves more, or all to one, whichever nets most.

    Args:
        claims: Feature to what the first and the second would save of it.
        first: The first lever, to which ties go.
        second: The second.

    Returns:
        Feature to the lever that gives way.
    """
    by_feature = {feature: second.name if one >= other else first.name for feature, (one, other) in claims.items()}
    ways = (by_feature, dict.fromkeys(claims, second.name), dict.fromkeys(claims, first.name))

    def net(lost: Mapping[str | None, str]) -> int:
        saved = sum(claims[feature][0 if loser == second.name else 1] for feature, loser in lost.items())
        for side in (first, second):
            has_any = side.has_other or any(loser != side.name for loser in lost.values())
            saved += side.other_pusd - (side.fixed_pusd if has_any else 0)
        return saved

    return max(ways, key=net)
