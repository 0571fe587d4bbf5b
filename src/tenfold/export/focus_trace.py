"""A row of a FOCUS export traced back: its requests, its price entry, and what the ledger says of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from tenfold.display import spreadsheet_text
from tenfold.errors import ColumnError
from tenfold.export import focus_file
from tenfold.export.focus import TAGS, band
from tenfold.ledger import Ledger, Session, Window
from tenfold.ledger.session import timestamp
from tenfold.money import usd_text
from tenfold.prices.book import Entry
from tenfold.prices.meters import METER_NAMES
from tenfold.store.database import quoted
from tenfold.store.engines.duckdb import reading

_WANTED = ("x_Provider", "x_Meter", "x_ModelId", "x_ServiceTier", "x_ContextBand", "x_PriceEntry", "x_CardVersion")
_NAMED = 100


def trace(ledger: Ledger, file: str | Path, row: int) -> dict[str, Any]:
    """Trace one row of an export.

    Args:
        ledger: The ledger that it was made from.
        file: The export.
        row: Its row, from 1.

    Returns:
        What the row says (``meter``, ``quantity``, ``contracted_usd`` ...), its price entry (``entry{}``), and what
        the ledger says of its requests: ``ledger_units`` and ``ledger_usd`` of the meter, ``requests_count``, the first
        hundred ``requests[]`` with id, file and line; ``agrees``: both say the same of the contracted cost.

    Raises:
        ColumnError: There is no such row, or it is of no requests, or the file is no export of tenfold's.
    """
    said = _row(Path(file), row)
    missing = [name for name in _WANTED if name not in said]
    if missing:
        raise ColumnError(f"{file}: no export of tenfold's own: it has no column {missing[0]}")
    meter = said["x_Meter"]
    if meter not in METER_NAMES:
        raise ColumnError(f"{file}: row {row} is a charge of its own ({meter}), of no requests")
    start, end = (datetime.fromisoformat(said[f"ChargePeriod{side}"]) for side in ("Start", "End"))
    with reading(ledger.log.store) as engine:
        session = Session(engine, ledger.book, Window(start, end))
        condition = _condition(session, said)
        sums = session.totals(condition=condition).row(0, named=True)
        found = engine.fetch(
            "select request_id, source_file, source_line from priced_requests "
            f"where is_billed and is_priced and {condition} order by load_id, source_line, request_id limit {_NAMED}"
        )
        entry = _entry(session, said)
    units, pusd = int(sums[f"{meter}_units"]), int(sums[f"{meter}_pusd"])
    contracted = Decimal(said["ContractedCost"])
    return {
        "file": str(file),
        "row": row,
        "from": start.isoformat(),
        "to": end.isoformat(),
        "provider": said["x_Provider"] or None,
        "model": said["x_ModelId"] or None,
        "service_tier": said["x_ServiceTier"],
        "meter": meter,
        "quantity": said["ConsumedQuantity"],
        "unit": said["ConsumedUnit"],
        "contracted_usd": said["ContractedCost"],
        "ledger_units": units,
        "ledger_usd": usd_text(pusd),
        "agrees": contracted == Decimal(pusd).scaleb(-12),
        "card_version": said["x_CardVersion"],
        "is_same_card": said["x_CardVersion"] == ledger.book.version,
        "is_same_log": said.get("x_LogHash") == ledger.log.log_hash,
        "requests_count": int(sums["requests"]) - int(sums["unpriced_requests"]),
        "entry": None if entry is None else entry.as_dict(None, None),
        "requests": found.to_dicts(),
    }


def _condition(session: Session, said: Mapping[str, str]) -> str:
    """Write which requests a row is of, as SQL."""
    wanted = (said["x_Provider"], said["x_ModelId"], said["x_ServiceTier"], said.get("RegionId", ""))
    keys = [str(key) for key, *parts in session.keys if tuple(parts) == wanted]
    lowest, highest = _band(session, said)
    project = said["SubAccountId"] if said["SubAccountType"] == "Project" else ""
    owners = {
        "project": project,
        "team": said["x_Team"],
        "feature": said["x_Feature"],
        "environment": said["x_Environment"],
    }
    parts = [
        f"price_key in ({', '.join(keys) or 'null'})",
        f"context_tokens > {lowest} and context_tokens <= {highest}",
        f"coalesce(org, {quoted(said['BillingAccountId'])}) = {quoted(said['BillingAccountId'])}",
        *(f"coalesce({name}, '') = {quoted(value)}" for name, value in owners.items()),
        f"coalesce({TAGS}, '') = {quoted(said['Tags'])}",
        f"priced_at >= {timestamp(datetime.fromisoformat(said['ChargePeriodStart']))}",
    ]
    return " and ".join(parts)


def _entry(session: Session, said: Mapping[str, str]) -> Entry | None:
    return next((one for one in session.card.entries if f"{one.file}#{one.number}" == said["x_PriceEntry"]), None)


def _band(session: Session, said: Mapping[str, str]) -> tuple[int, int]:
    """Find the total input of the requests of a row's context band."""
    wanted = said["x_ContextBand"]
    found = next((one for one in session.card.entries if (band(one) or "") == wanted), None)
    if found is None:
        raise ColumnError(f"no price of this ledger has the context band {wanted}: another card priced the export")
    return found.above, found.up_to


def _row(file: Path, number: int) -> dict[str, str]:
    header, rows = focus_file.read(file)
    cells = next(islice(rows, number - 1, number), None)
    if cells is None or len(cells) != len(header):
        raise ColumnError(f"{file}: no row {number}")
    is_csv = not focus_file.is_parquet(file)
    return {name: spreadsheet_text(cell) if is_csv else cell for name, cell in zip(header, cells, strict=True)}
