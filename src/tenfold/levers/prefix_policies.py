"""Choosing a cache policy: on the earlier part of a log, with what it then saves on the later part beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from tenfold.levers.base import Assumed, Bill, Change, Judged
from tenfold.levers.repricing import tried
from tenfold.levers.tally import fact
from tenfold.money import usd_text

Try = tuple[str, str, Change, Judged]


@dataclass(frozen=True, slots=True)
class Found:
    """The policy that saved most on the earlier part.

    Args:
        name: Policy; ``as_shipped`` where none saves anything.
        lifetime: ``default`` or ``long``.
        days: Days of the earlier part.
        holdout_pusd: What it saves on the later part.
        tries: (Policy, lifetime, saving on the earlier part, on the later) of all that were tried.
    """

    name: str
    lifetime: str
    days: int
    holdout_pusd: int
    tries: tuple[tuple[str, str, int, int], ...]

    def evidence(self) -> tuple[dict[str, Any], ...]:
        """Write all that was tried as evidence.

        Returns:
            Two facts a policy: its saving on the earlier and on the later part.
        """
        return tuple(
            fact(f"{name}_{lifetime}_{part}_usd", usd_text(pusd), "USD", "lever_prefix_replayed")
            for name, lifetime, earlier, later in self.tries
            for part, pusd in (("earlier", earlier), ("later", later))
        )


def chosen(bill: Bill, assumed: Assumed, tries: Sequence[Try]) -> Found:
    """Try policies, and take the one that saves most on the earlier two thirds of the days.

    Args:
        bill: The log's own bill.
        assumed: The assumptions.
        tries: Policy, lifetime, its change, and the requests that it is about.

    Returns:
        The policy; ``as_shipped`` where none saves anything.
    """
    daily = {
        (name, lifetime): _daily(bill, assumed, change, judged, f"lever_try_{name}_{lifetime}")
        for name, lifetime, change, judged in tries
    }
    days = sorted({day for one in daily.values() for day in one})
    earlier = set(days[: -(-2 * len(days) // 3)])
    sums = [(*policy, *_parts(saved, earlier)) for policy, saved in daily.items()]
    name, lifetime, gain, holdout = max(sums, key=lambda one: one[2], default=("as_shipped", "default", 0, 0))
    if gain <= 0:
        name, lifetime, holdout = "as_shipped", "default", 0
    return Found(name, lifetime, len(earlier), holdout, tuple(sums))


def _parts(saved: Mapping[date, int], earlier: Collection[date]) -> tuple[int, int]:
    first = sum(pusd for day, pusd in saved.items() if day in earlier)
    return first, sum(saved.values()) - first


def _daily(bill: Bill, assumed: Assumed, change: Change, judged: Judged, name: str) -> dict[date, int]:
    tried(change, bill, judged, assumed, name)
    found = bill.session.engine.fetch(
        "select b.block_day, coalesce(sum(cast(b.cost_pusd - v.cost_pusd as decimal(38, 0))), 0) as saved_pusd "
        f"from {name} as v join lever_base as b on v.rid = b.rid where b.block_day is not null "
        "group by b.block_day order by b.block_day"
    )
    return {day: int(pusd) for day, pusd in found.iter_rows()}
