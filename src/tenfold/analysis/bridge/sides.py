"""One of the two periods of a bridge: what it cost, over which days, and what of it is in no bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from tenfold.display import counted, minute, number
from tenfold.money import PUSD_PER_USD, usd_text


class Side(NamedTuple):
    """One of the two periods.

    Args:
        pusd: What it cost, scaled, in pUSD.
        requests: Priced requests, scaled.
        unpriced: Model to requests without a price, as counted.
        since: Start of its window.
        until: End of its window, exclusive.
        zone: Zone of its days.
    """

    pusd: int
    requests: Fraction
    unpriced: Mapping[str, int]
    since: datetime | None
    until: datetime | None
    zone: str

    def period(self) -> str:
        """Write the window, in days where it is made of them.

        Returns:
            Text such as ``2026-04-01 to 2026-07-01 (exclusive) UTC``.
        """
        ends = [None if one is None else _day(one, self.zone) for one in (self.since, self.until)]
        if ends == [None, None]:
            return "all of the log"
        return f"{ends[0] or 'the start'} to {ends[1] or 'the end'} (exclusive) {self.zone}"

    def as_dict(self) -> dict[str, Any]:
        """Give the keys that scripts rely on.

        Returns:
            ``usd``, ``requests``, ``unpriced_requests``, ``from``, ``to``.
        """
        return {
            "usd": usd_text(self.pusd),
            "requests": _plain(self.requests),
            "unpriced_requests": sum(self.unpriced.values()),
            "from": None if self.since is None else self.since.isoformat(),
            "to": None if self.until is None else self.until.isoformat(),
        }


def without_price(before: Side, after: Side) -> list[str]:
    """Name what is in no bar.

    Args:
        before: The period before.
        after: The period after.

    Returns:
        A sentence for each period that has requests without a price.
    """
    said: list[str] = []
    for when, side in (("before", before), ("after", after)):
        if side.unpriced:
            ordered = sorted(side.unpriced.items(), key=lambda one: (-one[1], one[0]))
            names = ", ".join(f"{model or 'no model'} ({many:,})" for model, many in ordered[:4])
            more = f" and {len(ordered) - 4} more" if len(ordered) > 4 else ""
            many = counted(sum(side.unpriced.values()), "request")
            said.append(f"{many} of the period {when} without a price: in no bar; {names}{more}")
    return said


def _plain(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def whole(value: Fraction) -> str:
    """Write a count that may have been scaled.

    Args:
        value: The count.

    Returns:
        Text such as ``1,234`` or ``12.5``.
    """
    return number(value, 0 if value.denominator == 1 or value >= 100 else 1)


def _day(instant: datetime, zone: str) -> str:
    text = minute(instant, zone).removesuffix(f" {zone}")
    return text.removesuffix(" 00:00") if instant.microsecond == 0 and instant.second == 0 else text


def decimals(before: Side, after: Side) -> int:
    """Choose the decimals of a dollar to show.

    Args:
        before: The period before.
        after: The period after.

    Returns:
        2 for cents; 6 where less than a dollar was spent and cents would hide what moved.
    """
    return 2 if max(before.pusd, after.pusd) >= PUSD_PER_USD else 6


def days(side: Side) -> Fraction | None:
    """Give the length of a window.

    Args:
        side: The period.

    Returns:
        Days; None where an end is open.
    """
    if side.since is None or side.until is None:
        return None
    return Fraction((side.until - side.since) // timedelta(microseconds=1), 86_400_000_000)


def listed(by: Sequence[str]) -> str:
    """Name the dimensions of the mix.

    Args:
        by: Those that are columns.

    Returns:
        Text such as ``model, service tier and kind of token``.
    """
    names = [name.replace("_", " ") for name in by]
    return f"{', '.join(names)} and kind of token" if names else "kind of token"
