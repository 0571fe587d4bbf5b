"""One number traced: from a request's cost back to its log line and the price entry."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from typing import Any

from tenfold.errors import ColumnError
from tenfold.ledger.session import Session
from tenfold.money import usd_text
from tenfold.prices.book import Entry
from tenfold.prices.meters import counted
from tenfold.store import schema
from tenfold.store.database import quoted

_REPORTED = (*schema.TOKEN_COLUMNS, "cost_logged_usd")
_SHOWN = (
    "ts",
    "provider",
    "model",
    "service_tier",
    "region",
    "status",
    "is_billable",
    "gateway_cache_hit",
    "token_source",
    "flags",
)


def explain(session: Session, request_id: str) -> dict[str, Any]:
    """Trace one request.

    Args:
        session: A priced look at a store.
        request_id: Provider's id of the request, or its place in the log, ``FILE:LINE``, where it has none.

    Returns:
        ``source_file``, ``source_line``, ``source_sha256`` (of the file as it was loaded), ``reported{}`` (counts as
        normalised to inclusive totals; NULL is unknown), ``meters{}`` (disjoint units, rate in pUSD, cost), ``status``,
        ``cost_usd``, ``how_matched``, ``entry{}`` and ``rounding[]`` (empty: nothing was rounded).

    Raises:
        ColumnError: No request, or more than one, has that id or place.
    """
    row = _row_of(session, request_id)
    found = session.card.matches[row["price_key"]]
    entry = _entry_of(session, row["entry_id"])
    instant = session.price_at or (row["ts"] and row["ts"].replace(tzinfo=UTC))
    price_list = found.at(instant) if entry is not None and instant else None
    rounding = [entry.adjusted] if entry and "rounded" in entry.adjusted else []
    rounding += [
        f"{meter.name}: rate times time, half-even to 1 pUSD"
        for meter in session.meters
        if meter.divisor > 1 and row[f"{meter.name}_units"]
    ]
    costs = {meter.name: row[f"{meter.name}_pusd"] for meter in session.meters}
    known = [cost for cost in costs.values() if cost is not None]
    return {
        "request_id": row["request_id"],
        "source_format": row["source_format"],
        "source_file": row["source_file"],
        "source_line": row["source_line"],
        "source_sha256": _sha256(session, row["load_id"]),
        "request": {name: row[name].isoformat() + "Z" if name == "ts" and row[name] else row[name] for name in _SHOWN},
        "reported": {name: row[name] if row[name] is None else _plain(row[name]) for name in _REPORTED},
        "status": row["price_status"],
        "cost_usd": usd_text(int(sum(known))) if known else None,
        "meters": {
            meter.name: {
                **counted(meter.unit, row[f"{meter.name}_units"]),
                "rate_pusd": row[f"rate_{meter.name}"],
                "cost_usd": usd_text(None if costs[meter.name] is None else int(costs[meter.name])),
            }
            for meter in session.meters
            if row[f"{meter.name}_units"]
        },
        "how_matched": {
            "how": found.how_priced(entry),
            "asked": row["model"],
            "model": found.model or None,
            "reason": found.reason or None,
        },
        "entry": entry and entry.as_dict(price_list and price_list.valid_from, price_list and price_list.valid_to),
        "card_version": session.book.version,
        "rounding": rounding,
    }


def _row_of(session: Session, request_id: str) -> dict[str, Any]:
    by_id = _rows(session, f"request_id = {quoted(request_id)}")
    file, _, line = request_id.rpartition(":")
    by_place: list[dict[str, Any]] = []
    if not by_id and file and line.isdecimal():
        name = quoted(f"/{file}")
        at = f"(source_file = {quoted(file)} or ends_with(source_file, {name})) and source_line = {int(line)}"
        by_place = _rows(session, at)
    rows = by_id or by_place
    if not rows:
        raise ColumnError(
            f'no request "{request_id}" in this log. Ids are those of the provider, as in column request_id; a place '
            "in the log is FILE:LINE"
        )
    if len(rows) == 1:
        return rows[0]
    places = ", ".join(f"{row['source_file']}:{row['source_line']}" for row in rows[:5])
    if by_id:
        raise ColumnError(f'{len(rows)} requests bear the id "{request_id}". Name one by its place: {places}')
    ids = ", ".join(str(row["request_id"] or "without an id") for row in rows[:5])
    raise ColumnError(f"{len(rows)} requests stand at {request_id} ({places}): {ids}. Name one by its id")


def _rows(session: Session, where: str) -> list[dict[str, Any]]:
    return session.engine.fetch(f"select * from priced_requests where {where}").rows(named=True)


def _sha256(session: Session, load_id: int) -> str | None:
    found = session.engine.fetch(f"select sha256 from loads where load_id = {load_id or 0}")
    return None if found.is_empty() else str(found["sha256"][0])


def _entry_of(session: Session, entry_id: int | None) -> Entry | None:
    return None if entry_id is None else session.card.entries[entry_id]


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return value if isinstance(value, int) else str(value)
