"""Prices a day ahead: what the dated book says of the days to come, held against what traffic of late is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import polars as pl

from tenfold.ledger import KEY_COLUMNS, Ledger, Window
from tenfold.ledger.span import starts
from tenfold.prices.book import Match

Owner: TypeAlias = tuple[Any, ...]
_Key: TypeAlias = tuple[str | None, ...]
_Segment: TypeAlias = tuple[Owner, _Key]
_Costs: TypeAlias = Mapping[_Segment, float]


class PriceAhead(NamedTuple):
    """A change of a price in the days to come, of a model that is used.

    Args:
        at: When it comes into force (aware).
        provider: Who bills.
        model: Model as the log names it.
        tier: Service tier; None for none.
        region: Price region; None for none.
        ratio: What traffic of late costs after it over before; None where the book has no price from then on (the last
            one then goes on).
        status: confirmed or announced; empty without a price.
        source: Where the new price is from.
    """

    at: datetime
    provider: str | None
    model: str | None
    tier: str | None
    region: str | None
    ratio: float | None
    status: str
    source: str


@dataclass(frozen=True, slots=True)
class PricePath:
    """Prices over past and future.

    Args:
        daily: Columns of the dimensions, ``day``, ``requests`` (priced), ``cost_pusd``, ``<meter>_units``: the past, at
            the prices of the first day to come where they have changed since.
        changes: What changes in the days ahead.
        late: What traffic of late cost, by owner and price key.
        regimes: From when on which of that costs how many times as much.
        zone: Zone of days.
    """

    daily: pl.DataFrame
    changes: tuple[PriceAhead, ...]
    late: _Costs
    regimes: tuple[tuple[datetime, _Costs], ...]
    zone: ZoneInfo

    def factors(self, days: Sequence[date], owner: Owner | None = None) -> list[float]:
        """Tell what days ahead cost over the first one, for the same traffic.

        Args:
            days: The days.
            owner: Whose traffic; None for all.

        Returns:
            One ratio a day; the price at noon counts.
        """
        own = {segment: cost for segment, cost in self.late.items() if owner is None or segment[0] == owner}
        whole = sum(own.values())
        levels = [
            (cut, sum(cost * ratios.get(segment, 1.0) for segment, cost in own.items()) / whole)
            for cut, ratios in self.regimes
            if whole
        ]
        noons = (starts(day, self.zone) + timedelta(hours=12) for day in days)
        return [next((level for cut, level in reversed(levels) if cut <= noon), 1.0) for noon in noons]


def price_path(ledger: Ledger, by: Sequence[str], past: Sequence[date], ahead: Sequence[date], late: int) -> PricePath:
    """Price the past at the prices to come, and the days ahead by the dated book.

    Args:
        ledger: The ledger.
        by: Dimensions of owners.
        past: Days that are known, in order.
        ahead: Days to come, in order.
        late: Last days of the past whose traffic stands for that of the days ahead.

    Returns:
        The path. A price that differs by the hour of the week, or that the book does not have, stays as it was.
    """
    zone = ZoneInfo(ledger.window.zone)
    columns = ("day", *by, *(name for name in KEY_COLUMNS if name not in by))
    frame = _priced(ledger, columns, past, None)
    since, begins, ends = (starts(day, zone) for day in (past[0], ahead[0], ahead[-1] + timedelta(days=1)))
    keys: set[_Key] = set(frame.select(KEY_COLUMNS).unique().rows())
    plain: dict[_Key, Match] = {}
    if ledger.price_at is None:
        found = {key: ledger.book.match(*key) for key in keys}
        plain = {key: match for key, match in found.items() if all(one.window is None for one in match.lists)}
    moved = {key for key, match in plain.items() if _cuts(match, since, begins) and match.at(begins) is not None}
    if moved:
        which = pl.DataFrame(sorted(moved, key=str), schema=dict.fromkeys(KEY_COLUMNS, pl.String), orient="row")
        again = _priced(ledger, columns, past, begins).join(which, on=KEY_COLUMNS, how="semi", nulls_equal=True)
        frame = pl.concat([frame.join(which, on=KEY_COLUMNS, how="anti", nulls_equal=True), again])
    recent = frame.filter(pl.col("day").is_in(past[-late:]))
    spent: _Costs = dict(_segments(recent, by))
    cuts = sorted({cut for match in plain.values() for cut in _cuts(match, begins, ends)})
    regimes: list[tuple[datetime, _Costs]] = []
    changes: list[PriceAhead] = []
    ratios: dict[_Segment, float] = {}
    now = dict(_segments(_priced(ledger, columns, past[-late:], begins), by)) if cuts else {}
    for cut in cuts:
        then = dict(_segments(_priced(ledger, columns, past[-late:], cut), by))
        changing = {key: match for key, match in plain.items() if cut in _cuts(match, begins, ends)}
        for key, match in changing.items():
            own = [segment for segment in spent if segment[1] == key]
            to = match.at(cut)
            old, new = (sum(costs.get(segment, 0.0) for segment in own) for costs in (now, then))
            entry = None if to is None else to.bands[0]
            ratio = new / old if entry is not None and old and new else None
            if ratio != 1:
                status, source = ("", "") if entry is None else (entry.status, entry.source)
                provider, model, tier, region = key
                changes.append(PriceAhead(cut, provider, model, tier, region, ratio, status, source))
            for segment in own:
                if then.get(segment) and now.get(segment):
                    ratios[segment] = ratios.get(segment, 1.0) * then[segment] / now[segment]
                    now[segment] = then[segment]
        regimes.append((cut, dict(ratios)))
    sums = [name for name in frame.columns if name.endswith(("_units", "_pusd")) and name != "cost_pusd"]
    daily = frame.group_by("day", *by).agg(pl.sum("requests", "cost_pusd", *sums)).sort("day", *by, nulls_last=True)
    return PricePath(daily, tuple(changes), spent, tuple(regimes), zone)


def _priced(ledger: Ledger, columns: Sequence[str], days: Sequence[date], at: datetime | None) -> pl.DataFrame:
    """Sum what has a price, by day, owner and price key."""
    zone = ZoneInfo(ledger.window.zone)
    window = Window(starts(days[0], zone), starts(days[-1] + timedelta(days=1), zone), ledger.window.zone)
    frame = Ledger(ledger.log, ledger.book, window, at or ledger.price_at).composition(columns).frame
    return frame.with_columns(requests=pl.col("requests") - pl.col("unpriced_requests"))


def _segments(frame: pl.DataFrame, by: Sequence[str]) -> Iterator[tuple[_Segment, float]]:
    summed = frame.group_by(list(dict.fromkeys((*by, *KEY_COLUMNS)))).agg(pl.sum("cost_pusd"))
    for row in summed.rows(named=True):
        yield (tuple(row[name] for name in by), tuple(row[name] for name in KEY_COLUMNS)), float(row["cost_pusd"])


def _cuts(match: Match, since: datetime, until: datetime) -> set[datetime]:
    """Instants between two at which a price begins or ends."""
    edges = {edge for one in match.lists for edge in (one.valid_from, one.valid_to)}
    return {edge for edge in edges if since < edge < until}
