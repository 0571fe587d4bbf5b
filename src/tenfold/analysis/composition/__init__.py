"""What the practitioner must know before touching anything: what the bill is made of, and what each share bounds."""

from __future__ import annotations

import polars as pl

from tenfold.analysis.composition.in_flight import CELLS, Concurrency, aware, concurrency
from tenfold.analysis.composition.reading import DIMENSIONS, Bound, Item, Reading, Tokens
from tenfold.ledger import Ledger
from tenfold.ledger.coverage import coverage
from tenfold.prices.meters import METER_NAMES
from tenfold.store import steps

__all__ = ["CELLS", "Bound", "Concurrency", "Item", "Reading", "Tokens", "read"]


def read(ledger: Ledger, *, with_concurrency: bool = True) -> Reading:
    """Read a ledger for its composition and bounds.

    Args:
        ledger: The priced log; its window is what is read.
        with_concurrency: Also sweep all requests for how many run at once (the dear part on a large log).

    Returns:
        The reading.
    """
    with ledger.session() as session:
        totals = session.totals(DIMENSIONS)
        mix = session.engine.fetch(steps.filled("token_mix", cells=CELLS))
        calls = session.engine.fetch(steps.filled("calls", cells=CELLS)).row(0, named=True)
        retried = "(attempt > 0 or retry_of is not null)"
        retries = session.totals(condition=retried) if calls["retries"] else None
        return Reading(
            spend_pusd=int(totals["cost_pusd"].sum() or 0),
            requests=int(totals["requests"].sum() or 0),
            first=aware(calls["first_ts"]),
            last=aware(calls["last_ts"]),
            zone=session.window.zone,
            meters={name: cost for name in METER_NAMES if (cost := int(totals[f"{name}_pusd"].sum() or 0))},
            dimensions={name: items for name in DIMENSIONS if (items := _items(totals, name))},
            tokens=Tokens(**mix.row(0, named=True)),
            retries=calls["retries"] if calls["retry_marks"] else None,
            retries_pusd=_retries_pusd(retries, marked=bool(calls["retry_marks"])),
            concurrency=concurrency(session, calls) if with_concurrency else None,
            coverage=coverage(session),
        )


def _items(totals: pl.DataFrame, dimension: str) -> tuple[Item, ...]:
    if totals[dimension].null_count() == len(totals):
        return ()
    sums = totals.group_by(dimension).agg(pl.sum("cost_pusd", "requests", "unpriced_requests"))
    ordered = sums.sort("cost_pusd", "requests", dimension, descending=[True, True, False], nulls_last=True)
    return tuple(Item(value, int(cost), calls, unpriced) for value, cost, calls, unpriced in ordered.rows())


def _retries_pusd(retries: pl.DataFrame | None, *, marked: bool) -> int | None:
    if retries is not None:
        return int(retries["cost_pusd"].sum() or 0)
    return 0 if marked else None
