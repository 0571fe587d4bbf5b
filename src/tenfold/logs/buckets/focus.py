"""FOCUS 1.0 to 1.4 cost and usage files (CSV, Parquet): one row a charge and kind of amount, never to be added up.

Only rows about models are kept. A date whose order is not proven by its file is an error that names the column.
"""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from tenfold.display import spreadsheet_text
from tenfold.errors import LogFormatError
from tenfold.logs.buckets.base import BucketError, BucketReader, Found, Source, count, number, text
from tenfold.logs.buckets.words import meter_of, tokens_unit
from tenfold.prices.words import canonical_provider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal

_PERIODS = (("ChargePeriodStart", "ChargePeriodEnd"), ("BillingPeriodStart", "BillingPeriodEnd"))
_AMOUNTS = (
    ("ListCost", "list"),
    ("ContractedCost", "contracted"),
    ("BilledCost", "billed"),
    ("EffectiveCost", "effective"),
)
# Columns by which an export of tenfold's own is known.
_OWN = {"x_Meter", "x_CardVersion", "x_LogHash"}
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{2}|\d{4})(?P<clock>[ T]\d{1,2}:\d{2}(:\d{2})?)?")
_PROVIDERS = {
    "amazon web services": "bedrock",
    "google cloud": "vertex",
    "microsoft": "azure",
    "google": "google",
    "mistral ai": "mistral",
    "together ai": "together",
    "fireworks ai": "fireworks",
    "moonshot ai": "moonshot",
    "alibaba cloud": "qwen",
    "z.ai": "zai",
}


def _read(source: Source) -> Iterator[Found]:
    rows: list[tuple[int, dict[str, str]]] = []
    if source.rows is not None:
        rows.extend(source.rows)
    else:
        for line, row, reason in _cells(source):
            if row is None:
                yield Found(line, None, reason)
            else:
                rows.append((line, row))
    month_first = _month_first([row for _, row in rows])
    for line, row in rows:
        if row.keys() & {"ServiceCategory", "ServiceSubcategory", "SkuMeter"} and not _is_model(row):
            yield Found(line, None)
            continue
        try:
            made = list(_rows(row, month_first))
        except BucketError as error:
            yield Found(line, None, str(error), error.path)
        else:
            yield from (Found(line, one) for one in made)


def _cells(source: Source) -> Iterator[tuple[int, dict[str, str] | None, str]]:
    """Read CSV: line, its cells by column, and why there are none."""
    lines = csv.reader(io.StringIO(source.text.removeprefix("\ufeff"), newline=""))
    try:
        header = [name.strip() for name in next(lines)]
    except csv.Error as error:
        raise LogFormatError(f"the header cannot be read: {error}") from error
    # our own export keeps a text as it was, but for an apostrophe against spreadsheets; others leave blanks behind
    read = spreadsheet_text if set(header) >= _OWN else str.strip
    start = lines.line_num + 1
    try:
        for cells in lines:
            line, start = start, lines.line_num + 1
            if not cells:
                continue
            if len(cells) != len(header):
                yield line, None, f"{len(cells)} cells where the header has {len(header)}"
                continue
            yield line, {name: read(cell) for name, cell in zip(header, cells, strict=True)}, ""
    except csv.Error as error:
        yield start, None, f"not valid CSV: {error}"


def _is_model(row: Mapping[str, str]) -> bool:
    return _is_metered(row) or "token" in (row.get("ChargeDescription") or "").lower()


def _is_metered(row: Mapping[str, str]) -> bool:
    """Tell a model's tokens from a virtual currency of that name."""
    category = row.get("ServiceCategory") == "AI and Machine Learning"
    meter = (row.get("SkuMeter") or "").lower()
    return category or row.get("ServiceSubcategory") == "Generative AI" or "token" in meter


def _rows(row: Mapping[str, str], month_first: bool | None) -> Iterator[dict[str, object]]:  # noqa: FBT001 -- proven or not
    details = _object(row.get("SkuPriceDetails"), "SkuPriceDetails")
    quantity, unit = _quantity(row)
    said = next((row[name] for name in ("ServiceProviderName", "ProviderName") if row.get(name)), "")
    # columns of your own are anybody's: only our own export's are read as ours
    nobody: dict[str, str] = {}
    own = row if row.keys() >= _OWN else nobody
    provider = own.get("x_Provider") or _PROVIDERS.get(said.lower(), canonical_provider(said)) or None
    currency = row.get("BillingCurrency") or None
    about: dict[str, object] = {
        "bucket_start": _date(row, "ChargePeriodStart", month_first),
        "bucket_end": _date(row, "ChargePeriodEnd", month_first),
        "provider": provider,
        "org": text(row.get("BillingAccountId")),
        # where the log has no project, our own export has the team there; it is in the tags
        "project": None if own.get("SubAccountType") == "Team" else text(row.get("SubAccountId")),
        "api_key_id": text(row.get("CredentialId")),
        "user_id": text(row.get("PrincipalId")),
        "model": text(
            own.get("x_ModelId") or details.get("ModelId") or details.get("x_ModelId") or row.get("x_ModelId") or None
        ),
        "service_tier": text(row.get("x_ServiceTier")),
        "region": text(row.get("RegionId")),
        "context_band": text(own.get("x_ContextBand")),
        "meter": _meter(row),
        "category": (row.get("ChargeCategory") or "Usage").lower(),
        "description": text(row.get("ChargeDescription")),
        "quantity": quantity,
        "unit": unit,
        "requests": _count(own, "x_RequestCount"),
        "reasoning_tokens": _count(own, "x_ReasoningTokens"),
        "currency": currency,
        "invoice_id": text(row.get("InvoiceId")),
        "tags": _object(row.get("Tags"), "Tags"),
        # What else tells one charge from another.
        "_beside": [
            row.get(name) for name in ("SkuId", "SkuPriceId", "ResourceId", "ChargeClass", "BillingPeriodStart")
        ],
    }
    for column, kind in _AMOUNTS:
        amount = number(row.get(column), column)
        # a list price that stands in for one that does not exist is no list cost
        is_other = kind == "list" and own.get("x_ListPrice") == "none"
        if amount is not None and not is_other:
            dollars = amount if currency == "USD" else None
            yield {**about, "amount": amount, "amount_usd": dollars, "amount_kind": kind}


def _object(cell: str | None, name: str) -> dict[str, object]:
    if not cell:
        return {}
    try:
        value: object = json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise BucketError("no JSON object", name) from error
    if not isinstance(value, dict):
        raise BucketError("no JSON object", name)
    return cast("dict[str, object]", value)


def _meter(row: Mapping[str, str]) -> str | None:
    if row.keys() >= _OWN and row["x_Meter"]:
        return row["x_Meter"]
    said = row.get("SkuMeter") or ""
    return meter_of(said) or said.lower() or None


def _count(row: Mapping[str, str], name: str) -> int | None:
    value = number(row.get(name), name)
    return count({name: value}, name)


def _quantity(row: Mapping[str, str]) -> tuple[Decimal | None, str | None]:
    """Give tokens as tokens, from what was consumed, else from what was priced; another unit as it is."""
    for amount, unit in (("ConsumedQuantity", "ConsumedUnit"), ("PricingQuantity", "PricingUnit")):
        value = number(row.get(amount), amount)
        if value is None:
            continue
        known = tokens_unit(row.get(unit, ""))
        if known is None or not _is_metered(row):
            return value, text(row.get(unit, "").lower())
        return number(value * known.factor, amount), known.name
    return None, None


def _date(row: Mapping[str, str], name: str, month_first: bool | None) -> datetime | None:  # noqa: FBT001 -- as above
    said = row.get(name, "")
    if not said:
        return None
    slashed = _SLASHED.fullmatch(said)
    if slashed is not None:
        if month_first is None:
            raise LogFormatError(
                f'{name}: "{said}" may be month first or day first, and no row of the file proves which. '
                "Write the dates as 2026-04-01"
            )
        made = _slashed(slashed, month_first=month_first)
        if made is None:
            raise BucketError(f"no date: {said!r}", name)
        return made
    try:
        read = datetime.fromisoformat(said)
        return read.astimezone(UTC).replace(tzinfo=None) if read.tzinfo else read
    except (ValueError, OverflowError) as error:
        raise BucketError(f"no date: {said[:40]!r}", name) from error


def _slashed(found: re.Match[str], *, month_first: bool) -> datetime | None:
    one, two, year = int(found[1]), int(found[2]), int(found[3])
    month, day = (one, two) if month_first else (two, one)
    hour, minute, *seconds = (int(part) for part in (found["clock"] or " 0:0").strip(" T").split(":"))
    year = year + 2000 if year < 100 else year
    try:
        return datetime(year, month, day, hour, minute, sum(seconds))  # noqa: DTZ001 -- UTC by the standard
    except ValueError:
        return None


def _month_first(rows: list[dict[str, str]]) -> bool | None:
    """Prove the order of dates with slashes: all must exist, no period may end before it starts, months are whole."""
    pairs: set[tuple[str, str, bool]] = set()
    for row in rows:
        pairs |= {(row.get(a, ""), row.get(b, ""), a.startswith("Billing")) for a, b in _PERIODS}
    orders = [order for order in (True, False) if all(_possible(*pair, month_first=order) for pair in pairs)]
    return orders[0] if len(orders) == 1 else None


def _possible(start: str, end: str, is_billing: bool, *, month_first: bool) -> bool:  # noqa: FBT001 -- a pair's kind
    a, b = _SLASHED.fullmatch(start), _SLASHED.fullmatch(end)
    read = [_slashed(found, month_first=month_first) for found in (a, b) if found is not None]
    if any(one is None for one in read):
        return False
    if is_billing and any(one is not None and one.day != 1 for one in read):
        return False
    dates = [one for one in read if one is not None]
    return len(dates) < 2 or dates[0] < dates[1]


def _fits(head: str) -> bool:
    first = head.removeprefix("\ufeff").split("\n", 1)[0]
    return all(name in first for name in ("BilledCost", "ChargePeriodStart", "BillingPeriodStart"))


FOCUS = BucketReader(
    name="focus",
    fits=_fits,
    read=_read,
    repeats=True,
    holds="list, contracted, billed and effective cost by charge",
    containers=("CSV", "Parquet"),
)
