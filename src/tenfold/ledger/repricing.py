"""What history would have cost under another book: by model and meter, and as one adjustment a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tenfold.ledger.session import Session, Window
from tenfold.logs.log import Log
from tenfold.money import usd_text
from tenfold.prices.book import Entry, PriceBook
from tenfold.prices.meters import Meter
from tenfold.store import schema
from tenfold.store.engines.duckdb import reading

_SAID = ("request_id", "source_file", "source_line", "ts", "provider", "model", "service_tier", "region", "team")
_KEPT = (*_SAID, "price_key", "is_billable", "gateway_cache_hit", *schema.TOKEN_COLUMNS)


@dataclass(frozen=True, slots=True)
class Repriced:
    """A log under two books.

    Args:
        old_version: Card version of the one.
        new_version: Card version of the other.
        by_meter: One row per (provider, model, meter) over the requests that both price: ``old_pusd``, ``new_pusd``.
        by_model: One row per (provider, model): ``requests``, and over those that one side alone prices
            ``only_old_requests``, ``only_old_pusd``, ``only_new_requests``, ``only_new_pusd``.
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
            pUSD over the requests that both price.
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
            "models": [
                {
                    **{name: row[name] for name in ("provider", "model", "requests")},
                    **{f"only_{side}_requests": row[f"only_{side}_requests"] for side in ("old", "new")},
                    **{f"only_{side}_usd": usd_text(int(row[f"only_{side}_pusd"])) for side in ("old", "new")},
                }
                for row in self.by_model.rows(named=True)
            ],
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
    with reading(log.store) as engine:
        before = Session(engine, old, view)
        meters = "".join(f"{meter.name}_pusd as old_{meter.name}_pusd, " for meter in before.meters)
        engine.step(
            "reprice_old",
            f"select {', '.join(_KEPT)}, {meters}{_cost(before)} as old_pusd, price_status as old_status, "
            "entry_id as old_id from priced_requests",
            materialised=True,
        )
        old_entries = before.card.entries
        after = Session(engine, new, view)
        after.price("reprice_old", "reprice_new")
        found = _adjustments(after, old_entries) if by_request else None
        by_meter = _by_meter(after, {"old": before.meters, "new": after.meters})
        return Repriced(old.version, new.version, by_meter, _by_model(after), found)


def _cost(session: Session) -> str:
    return f"cast({' + '.join(f'{meter.name}_pusd' for meter in session.meters)} as decimal(38, 0))"


def _adjustments(session: Session, old_entries: tuple[Entry, ...]) -> pl.DataFrame:
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


def _by_meter(session: Session, used: Mapping[str, Sequence[Meter]]) -> pl.DataFrame:
    """Sum what both price, by model and meter."""
    prefix = {"old": "old_", "new": ""}
    sums = ", ".join(
        f"coalesce(sum(cast({prefix[side]}{meter.name}_pusd as decimal(38, 0))), 0) as {side}_{meter.name}"
        for side, meters in used.items()
        for meter in meters
    )
    wide = session.engine.fetch(
        f"select provider, model, {sums} from reprice_new where old_pusd is not null and is_priced group by all"
    )
    on = ["provider", "model"]
    long = [
        wide.unpivot(
            [f"{side}_{meter.name}" for meter in meters], index=on, variable_name="meter", value_name=f"{side}_pusd"
        ).with_columns(pl.col("meter").str.strip_prefix(f"{side}_"))
        for side, meters in used.items()
    ]
    none = pl.lit(0, dtype=pl.Decimal(38, 0))
    joined = long[0].join(long[1], on=[*on, "meter"], how="full", coalesce=True, nulls_equal=True)
    filled = joined.with_columns(pl.col("old_pusd").fill_null(none), pl.col("new_pusd").fill_null(none))
    return filled.filter((pl.col("old_pusd") != 0) | (pl.col("new_pusd") != 0)).sort("provider", "model", "meter")


def _by_model(session: Session) -> pl.DataFrame:
    """Count the requests, and what one side alone prices."""
    new = _cost(session)
    lost, gained = "old_pusd is not null and not is_priced", "old_pusd is null and is_priced"
    return session.engine.fetch(
        "select provider, model, count(*) as requests, "
        f"cast(sum(case when {lost} then 1 else 0 end) as bigint) as only_old_requests, "
        f"coalesce(sum(case when {lost} then old_pusd end), 0) as only_old_pusd, "
        f"cast(sum(case when {gained} then 1 else 0 end) as bigint) as only_new_requests, "
        f"coalesce(sum(case when {gained} then {new} end), 0) as only_new_pusd "
        "from reprice_new where is_billed group by all order by provider, model"
    )


def _change(row: dict[str, Any]) -> dict[str, Any]:
    old, new = int(row["old_pusd"]), int(row["new_pusd"])
    said = {name: row[name] for name in ("provider", "model", "meter")}
    return {**said, "old_usd": usd_text(old), "new_usd": usd_text(new), "change_usd": usd_text(new - old)}
