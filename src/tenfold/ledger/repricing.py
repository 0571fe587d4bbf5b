"""What history would have cost under another book: by model and meter, and as one adjustment a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from tenfold.ledger.session import Session, Window
from tenfold.logs.log import Log
from tenfold.money import usd_text
from tenfold.prices.book import Entry, PriceBook
from tenfold.prices.meters import METER_NAMES
from tenfold.store import schema
from tenfold.store.engines.duckdb import DuckDBEngine

_SAID = ("request_id", "source_file", "source_line", "ts", "provider", "model", "service_tier", "region", "team")
_KEPT = (*_SAID, "price_key", "is_billable", "gateway_cache_hit", *schema.TOKEN_COLUMNS)


@dataclass(frozen=True, slots=True)
class Repriced:
    """A log under two books.

    Args:
        old_version: Card version of the one.
        new_version: Card version of the other.
        by_meter: One row per (provider, model, meter) that either prices: ``old_pusd``, ``new_pusd``.
        by_model: One row per (provider, model): ``requests``, ``old_unpriced``, ``new_unpriced``.
        adjustments: One row per request whose cost differs, in log order: where it stands, ``old_status``,
            ``new_status``, ``old_pusd``, ``new_pusd`` (null without a price), ``old_entry``, ``new_entry``; None where
            they were not asked for.
    """

    old_version: str
    new_version: str
    by_meter: pl.DataFrame
    by_model: pl.DataFrame
    adjustments: pl.DataFrame | None

    def total(self, which: str) -> int:
        """Sum one side.

        Args:
            which: ``old`` or ``new``.

        Returns:
            pUSD over what that book prices.
        """
        return int(self.by_meter[f"{which}_pusd"].sum() or 0)

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold prices reprice --json``.

        Returns:
            ``card_versions{}``, ``total{}``, ``rows[]``, ``models[]`` and, where asked for, ``adjustments[]``.
        """
        old, new = self.total("old"), self.total("new")
        made: dict[str, Any] = {
            "card_versions": {"old": self.old_version, "new": self.new_version},
            "total": {"old_usd": usd_text(old), "new_usd": usd_text(new), "change_usd": usd_text(new - old)},
            "rows": [_change(row) for row in self.by_meter.rows(named=True)],
            "models": self.by_model.rows(named=True),
        }
        if self.adjustments is not None:
            made["adjustments"] = [adjustment(row) for row in self.adjustments.rows(named=True)]
        return made


def adjustment(row: dict[str, Any]) -> dict[str, Any]:
    """Write one request's adjustment.

    Args:
        row: A row of ``Repriced.adjustments``.

    Returns:
        Where the request stands, both statuses and entries, ``old_usd``, ``new_usd`` and ``adjustment_usd`` (new minus
        old, None where one of the two has no price).
    """
    said = {name: row[name].isoformat() + "Z" if name == "ts" and row[name] else row[name] for name in _SAID}
    old, new = (None if row[name] is None else int(row[name]) for name in ("old_pusd", "new_pusd"))
    change = None if old is None or new is None else usd_text(new - old)
    told = {name: row[name] for name in ("old_status", "new_status", "old_entry", "new_entry")}
    return {**said, **told, "old_usd": usd_text(old), "new_usd": usd_text(new), "adjustment_usd": change}


def reprice(
    log: Log, old: PriceBook, new: PriceBook, window: Window | None = None, *, by_request: bool = False
) -> Repriced:
    """Price a log under two books; the database stays as it is.

    Args:
        log: The loaded log.
        old: The book it was priced by.
        new: The corrected one.
        window: Which requests; all by default.
        by_request: List the requests whose cost differs.

    Returns:
        Both prices by model and meter, and the adjustments.
    """
    view = window or Window()
    with log.store.reading() as connection:
        engine = DuckDBEngine(connection)
        before = Session(engine, old, view)
        totals = {"old": before.totals(("provider", "model"))}
        if by_request:
            engine.step(
                "reprice_old",
                f"select {', '.join(_KEPT)}, {_cost(before)} as old_pusd, price_status as old_status, "
                "entry_id as old_id from priced_requests",
                materialised=True,
            )
        old_entries = before.card.entries
        after = Session(engine, new, view)
        totals["new"] = after.totals(("provider", "model"))
        found = _adjustments(after, old_entries) if by_request else None
    return Repriced(old.version, new.version, _by_meter(totals), _by_model(totals), found)


def _cost(session: Session) -> str:
    return f"cast({' + '.join(f'{meter.name}_pusd' for meter in session.meters)} as decimal(38, 0))"


def _adjustments(session: Session, old_entries: tuple[Entry, ...]) -> pl.DataFrame:
    session.price("reprice_old", "reprice_new")
    found = session.engine.fetch(
        f"select {', '.join(_SAID)}, old_status, price_status as new_status, old_pusd, {_cost(session)} as new_pusd, "
        "old_id, entry_id as new_id from reprice_new "
        "where old_pusd is distinct from new_pusd or (old_pusd is null and old_status <> price_status)"
        " order by source_file, source_line"
    )
    named = [
        pl.Series(f"{side}_entry", [_named(entries, i) for i in found[f"{side}_id"].to_list()], dtype=pl.String)
        for side, entries in {"old": old_entries, "new": session.card.entries}.items()
    ]
    return found.with_columns(*named).drop("old_id", "new_id")


def _named(entries: tuple[Entry, ...], entry_id: int | None) -> str | None:
    if entry_id is None:
        return None
    entry = entries[entry_id]
    return "; ".join(part for part in (f"{entry.file} no. {entry.number}", entry.adjusted) if part)


def _by_meter(totals: dict[str, pl.DataFrame]) -> pl.DataFrame:
    long = {
        side: frame.unpivot(
            [f"{name}_pusd" for name in METER_NAMES], index=["provider", "model"], variable_name="meter",
            value_name=f"{side}_pusd",
        )
        for side, frame in totals.items()
    }  # fmt: skip
    joined = long["old"].join(
        long["new"], on=["provider", "model", "meter"], how="full", coalesce=True, nulls_equal=True
    )
    either = (pl.col("old_pusd") != 0) | (pl.col("new_pusd") != 0)
    return joined.with_columns(pl.col("meter").str.strip_suffix("_pusd")).filter(either).sort("provider", "model")


def _by_model(totals: dict[str, pl.DataFrame]) -> pl.DataFrame:
    sides = [
        frame.select("provider", "model", "requests", pl.col("unpriced_requests").alias(f"{side}_unpriced"))
        for side, frame in totals.items()
    ]
    on = ["provider", "model", "requests"]
    return sides[0].join(sides[1], on=on, how="left", nulls_equal=True).sort("provider", "model")


def _change(row: dict[str, Any]) -> dict[str, Any]:
    old, new = int(row["old_pusd"]), int(row["new_pusd"])
    said = {name: row[name] for name in ("provider", "model", "meter")}
    return {**said, "old_usd": usd_text(old), "new_usd": usd_text(new), "change_usd": usd_text(new - old)}
