"""A model that took another's place: what ended and what began within one team and feature, netted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from tenfold.display import name_of
from tenfold.ledger import Ledger
from tenfold.money import divided, usd_text

Models: TypeAlias = tuple[tuple[str, int], ...]
_PLACE = ("team", "feature")
# One model takes the place of another that was last used no more than this before.
_SOON = timedelta(days=14)
_Place: TypeAlias = tuple[str | None, str | None]


class _Use(NamedTuple):
    """What a model cost in one place, and its first and last day there."""

    pusd: int
    first: date
    last: date


class Swap(NamedTuple):
    """Models that ended in one place, and those that began there within two weeks.

    Args:
        team: Team; None for none.
        feature: Feature; None for none.
        ended: Models of the period before alone, with that (scaled) cost in pUSD, dearest first.
        began: Models of the period after alone.
    """

    team: str | None
    feature: str | None
    ended: Models
    began: Models

    @property
    def net(self) -> int:
        """What the swap added to the bill, in pUSD."""
        return sum(pusd for _, pusd in self.began) - sum(pusd for _, pusd in self.ended)

    @property
    def place(self) -> str:
        """Team and feature for people."""
        pairs = zip(_PLACE, (self.team, self.feature), strict=True)
        return " · ".join(name_of(name, value) for name, value in pairs)

    def as_dict(self) -> dict[str, Any]:
        """Give the swap as a document."""
        return {
            "team": self.team,
            "feature": self.feature,
            "ended": {model: usd_text(pusd) for model, pusd in self.ended},
            "began": {model: usd_text(pusd) for model, pusd in self.began},
            "net_usd": usd_text(self.net),
        }


def swaps(before: Ledger, after: Ledger, *, where: Mapping[str, str | None], scale: Fraction) -> tuple[Swap, ...]:
    """Find models that took another's place.

    Args:
        before: The priced log in the period before.
        after: The priced log in the period after.
        where: The part of the traffic that is looked at; within one model nothing is swapped.
        scale: What the period before is multiplied with.

    Returns:
        One swap a team and feature in which a model ended and another began soon after, the largest first.
    """
    if "model" in where:
        return ()
    old, new = _uses(before, where), _uses(after, where)
    ends, begins = before.window.until, after.window.since
    apart = max(begins - ends, timedelta()) if ends is not None and begins is not None else timedelta()
    made: list[Swap] = []
    for place in [place for place in old if place in new]:
        gone = {model: use for model, use in old[place].items() if model not in new[place]}
        come = {model: use for model, use in new[place].items() if model not in old[place]}
        pairs = [(a, b) for a in gone for b in come if come[b].first - gone[a].last <= _SOON + apart]
        if pairs:
            ended = {a: divided(gone[a].pusd * scale.numerator, scale.denominator) for a, _ in pairs}
            made.append(Swap(*place, _ranked(ended), _ranked({b: come[b].pusd for _, b in pairs})))
    return tuple(sorted(made, key=lambda one: (-max(one.ended[0][1], one.began[0][1]), one.place)))


def _ranked(models: Mapping[str, int]) -> Models:
    return tuple(sorted(models.items(), key=lambda row: (-row[1], row[0])))


def _uses(ledger: Ledger, where: Mapping[str, str | None]) -> dict[_Place, dict[str, _Use]]:
    """Sum what models cost by place; what has no day, model or cost took nobody's place."""
    columns = tuple(dict.fromkeys(("day", *_PLACE, "model", *where)))
    frame = ledger.composition(columns).frame
    same = [pl.col(name).cast(pl.String).eq_missing(pl.lit(value)) for name, value in where.items()]
    frame = frame.filter(pl.col("cost_pusd") > 0, *same).drop_nulls(["day", "model"])
    summed = frame.group_by(*_PLACE, "model").agg(
        pl.sum("cost_pusd"), first=pl.col("day").min(), last=pl.col("day").max()
    )
    made: dict[_Place, dict[str, _Use]] = {}
    for team, feature, model, cost, first, last in summed.rows():
        made.setdefault((team, feature), {})[model] = _Use(int(cost), first, last)
    return made
