"""Plain CSV invoices: date or month, model, meter or description, amount, currency, quantity, by usual column names.

Dates mean whole days of the zone that is given, else UTC. A date whose order is not proven by its file is an error that
names the column; totals at the foot are left out, taxes and credits are kept apart.
"""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from tenfold.errors import LogFormatError
from tenfold.logs.buckets.base import BucketError, BucketReader, Found, Source, number, text
from tenfold.logs.buckets.words import meter_of, plain, tier_of, tokens_unit
from tenfold.prices.words import canonical_provider, canonical_tier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Usual words of a header, in order: the first that a file has is taken.
COLUMNS: dict[str, tuple[str, ...]] = {
    "date": (
        *("date", "day", "usage date", "usage day", "charge date", "start date", "period start", "usage start"),
        *("start", "from", "date utc", "usage date utc"),
    ),
    "end": ("end date", "period end", "usage end", "end", "to"),
    "month": ("month", "billing month", "invoice month", "usage month", "billing period", "period"),
    "provider": ("provider", "vendor", "supplier", "service provider", "provider name"),
    "model": ("model", "model name", "model id", "product", "product name", "resource"),
    "meter": ("meter", "token type", "usage type", "line item", "item", "type", "sku", "metric"),
    "description": ("description", "item description", "line item description", "charge description", "details"),
    "amount": (
        *("amount", "cost", "total cost", "total amount", "net amount", "charge", "charges", "spend", "total"),
        *("billed", "billed cost", "billed amount", "line total", "price total", "subtotal"),
    ),
    "currency": ("currency", "currency code", "billing currency", "ccy"),
    "quantity": ("quantity", "qty", "usage quantity", "usage amount", "usage", "units", "tokens", "token count"),
    "unit": ("unit", "unit of measure", "usage unit", "quantity unit", "uom"),
    "tier": ("service tier", "tier"),
    "project": ("project", "project id", "workspace", "workspace id"),
    "key": ("api key", "api key id", "key id"),
    "invoice": ("invoice", "invoice id", "invoice number", "invoice no"),
    "category": ("category", "charge category", "charge type"),
}
# Columns that single calls have and invoices do not.
_CALLS = {
    *("request id", "requestid", "id", "trace id", "response id", "prompt tokens", "completion tokens", "input tokens"),
    *("output tokens", "total tokens", "ts", "timestamp", "starttime", "start time", "created at", "latency"),
    *("billedcost", "request", "status code", "session id"),
}
_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "us$": "USD"}
_CODE = re.compile(r"\b(USD|EUR|GBP|JPY|CHF|CAD|AUD|INR|CNY|SEK|NOK|DKK|BRL|SGD)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?([eE][+-]?\d+)?")
_TOTAL = re.compile(r"(sub ?|grand )?totals?( due| amount| usage)?|amount due|balance( due)?")
_CATEGORIES = (
    (re.compile(r"\b(sales tax|tax|vat|gst|hst)\b"), "tax"),
    (re.compile(r"\b(credit|credits|promo|promotion|grant)\b"), "credit"),
    (re.compile(r"\b(adjustment|refund|rounding|discount)\b"), "adjustment"),
    (re.compile(r"\b(prepayment|top up|purchase|commitment)\b"), "purchase"),
)
_ITEM = re.compile(r"(?P<model>.+?)(?:\s+usage)?\s*(?:,|\s-\s|\s–\s|:|\|)\s*(?P<rest>.+)", re.IGNORECASE)
_SLASHED = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4}|\d{2})")
_WORDED = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y", "%d-%b-%Y", "%Y/%m/%d", "%Y%m%d")
_MONTHS = ("%Y-%m", "%Y/%m", "%b %Y", "%B %Y", "%m/%Y", "%b-%Y", "%Y%m")


class _Header(NamedTuple):
    """Columns of a file: what they hold to their place; the currency that the amount's own name says."""

    places: dict[str, int]
    currency: str | None
    names: tuple[str, ...]


def _bare(name: str) -> str:
    """Take the currency and brackets out of a column's name: ``Amount (USD)``."""
    return plain(_CODE.sub(" ", re.sub(r"[($)€£_]", " ", name)))


def header_of(line: str) -> _Header:
    """Read a header.

    Args:
        line: The first line of the file.

    Returns:
        Which column holds what.
    """
    names = tuple(name.strip() for row in csv.reader([line], delimiter=_delimiter(line)) for name in row)
    bare = [_bare(name) for name in names]
    places: dict[str, int] = {}
    for what, words in COLUMNS.items():
        place = next(
            (bare.index(word) for word in words if word in bare and bare.index(word) not in places.values()), None
        )
        if place is not None:
            places[what] = place
    said = _CODE.search(names[places["amount"]].replace("_", " ")) if "amount" in places else None
    return _Header(places, said[0].upper() if said else None, names)


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def why_not(head: str) -> str:
    """Say why a text is no plain invoice.

    Args:
        head: Its beginning.

    Returns:
        What is missing, with the header that was found; empty where nothing is.
    """
    line = head.removeprefix("\ufeff").lstrip("\r\n").split("\n", 1)[0].strip("\r")
    found = header_of(line)
    missing: list[str] = []
    if not found.places.keys() & {"date", "month"}:
        missing.append(f"a date or month column ({', '.join(COLUMNS['date'][:4])}, ..., {COLUMNS['month'][0]})")
    if "amount" not in found.places:
        missing.append(f"an amount column ({', '.join(COLUMNS['amount'][:4])}, ...)")
    if not found.places.keys() & {"model", "meter", "description"}:
        missing.append("a model, meter or description column")
    if missing:
        return f"an invoice needs {' and '.join(missing)}; its header is: {line[:200]}"
    calls = [name for name in found.names if _bare(name) in _CALLS]
    return f'a column "{calls[0]}" is of single calls, not of an invoice; its header is: {line[:200]}' if calls else ""


def _fits(head: str) -> bool:
    return not head.lstrip("\ufeff \r\n").startswith(("{", "[")) and not why_not(head)


def _read(source: Source) -> Iterator[Found]:
    said = source.text.removeprefix("\ufeff")
    first = said.lstrip("\r\n").split("\n", 1)[0].strip("\r")
    header = header_of(first)
    rows: list[tuple[int, dict[str, str]]] = []
    if source.rows is not None:
        rows += (
            (line, {what: row.get(header.names[at], "") for what, at in header.places.items()})
            for line, row in source.rows
        )
    else:
        lines = csv.reader(io.StringIO(said, newline=""), delimiter=_delimiter(first))
        seen = False
        start = 1
        for cells in lines:
            line, start = start, lines.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not seen:
                seen = True
            elif len(cells) != len(header.names):
                yield Found(line, None, f"{len(cells)} cells where the header has {len(header.names)}")
            else:
                rows.append((line, {what: cells[at].strip() for what, at in header.places.items()}))
    cells = [row.get(name, "") for _, row in rows for name in ("date", "end")]
    dates = _Dates(_month_first(cells), ZoneInfo(source.zone or "UTC"))
    for line, row in rows:
        if _is_total(row):
            yield Found(line, None)
            continue
        try:
            made = _row(row, header, dates)
        except BucketError as error:
            yield Found(line, None, str(error), error.path)
        else:
            yield Found(line, made)


def _is_total(row: Mapping[str, str]) -> bool:
    """Tell a sum at the foot: it says so, or it has an amount and nothing that it is of."""
    about = [row.get(name, "") for name in ("date", "month", "model", "meter", "description")]
    return any(_TOTAL.fullmatch(plain(cell)) for cell in about if cell) or not any(about)


def _row(row: Mapping[str, str], header: _Header, dates: _Dates) -> dict[str, object]:
    amount, signed = _amount(row.get("amount", ""), header.names[header.places["amount"]])
    code = row.get("currency", "").upper() or signed or header.currency or "USD"
    start, end = dates.period(row)
    model, meter, said = _about(row)
    quantity, unit = _quantity(row, header)
    tier = row.get("tier") or tier_of(said)
    return {
        "bucket_start": start,
        "bucket_end": end,
        "provider": canonical_provider(row.get("provider")) or None,
        "project": text(row.get("project")),
        "api_key_id": text(row.get("key")),
        "model": model,
        "service_tier": canonical_tier(tier) if tier else None,
        "meter": meter,
        "category": _category(row, said),
        "description": text(row.get("description") or row.get("meter")),
        "quantity": quantity,
        "unit": unit,
        "amount": amount,
        "currency": code,
        "amount_usd": amount if code == "USD" else None,
        "amount_kind": "billed",
        "invoice_id": text(row.get("invoice")),
    }


def _category(row: Mapping[str, str], said: str) -> str:
    words = plain(f"{row.get('category', '')} {said}")
    return next((name for pattern, name in _CATEGORIES if pattern.search(words)), "usage")


def _about(row: Mapping[str, str]) -> tuple[str | None, str | None, str]:
    """Give model, meter and all that the row says of both; a text such as ``gpt-5, input_tokens`` holds the two."""
    model, meter = row.get("model", ""), row.get("meter", "")
    described = row.get("description", "")
    said = f"{model} {meter} {described}"
    named = meter_of(meter) or (meter if meter and model else "")
    for whole in (model, meter if not model else "", described if not model else ""):
        found = _ITEM.fullmatch(whole)
        if found and (meter_of(found["rest"]) or tier_of(found["rest"])):
            return found["model"].strip(), named or meter_of(found["rest"]), said
    if not model and (meter or described) and not meter_of(described or meter):
        return described or meter, named or None, said
    return model or None, named or meter_of(described) or None, said


def _amount(cell: str, name: str) -> tuple[Decimal, str | None]:
    """Read an amount: ``$1,234.56``, ``(12.30)``, ``-$5``, ``USD 12``; its currency where it says one."""
    code = _CODE.search(cell)
    bare = _CODE.sub("", cell).strip()
    sign = next((sign for sign in ("us$", "$", "€", "£", "¥") if sign in bare.lower()), None)
    bare = re.sub(r"(us)?[$€£¥]|\s", "", bare, flags=re.IGNORECASE)
    negative = bare.startswith(("-", "\u2212")) or (bare.startswith("(") and bare.endswith(")"))
    digits = bare.strip("()-+\u2212")
    if not digits or _AMOUNT.fullmatch(digits) is None:
        raise BucketError(f"no amount: {cell[:40]!r}; write 1234.56 or 1,234.56", name)
    value = number(digits.replace(",", ""), name)
    if value is None:
        raise BucketError("no amount", name)
    said = code[0].upper() if code else _CURRENCIES[sign] if sign else None
    return (-value if negative else value), said


def _quantity(row: Mapping[str, str], header: _Header) -> tuple[Decimal | None, str | None]:
    cell = row.get("quantity", "").replace(",", "").strip()
    if not cell:
        return None, None
    column = header.names[header.places["quantity"]]
    value = number(cell, column)
    said = row.get("unit") or ("tokens" if "token" in column.lower() else "")
    unit = tokens_unit(said) if said else None
    if value is None or unit is None:
        return value, said.lower() or None
    return number(value * unit.factor, column), unit.name


class _Dates(NamedTuple):
    """How a file's dates read.

    Args:
        month_first: What a date with slashes begins with; None where no row proves it.
        zone: Zone that days are of.
    """

    month_first: bool | None
    zone: ZoneInfo

    def period(self, row: Mapping[str, str]) -> tuple[datetime, datetime]:
        """Read what a row is for, in naive UTC; an end is the period's last day, or an instant where it has a clock."""
        said, last = row.get("date", ""), row.get("end", "")
        if not said:
            return self._month(row.get("month", ""))
        start = self._day(said, "date")
        end = self._day(last, "end") if last else start
        if isinstance(start, datetime) and isinstance(end, datetime):
            if end <= start:
                raise BucketError("a time needs an end after it", "end")
            return self._utc(start), self._utc(end)
        if isinstance(start, datetime) or isinstance(end, datetime) or end < start:
            raise BucketError(f"no period: {said[:40]!r} to {last[:40]!r}", "end")
        return self._midnight(start), self._midnight(end + timedelta(days=1))

    def _month(self, said: str) -> tuple[datetime, datetime]:
        if not said:
            raise BucketError("no date", "date")
        found = _worded(said, _MONTHS)
        first = found or self._day(said, "month")  # a month may be written as its first day
        if isinstance(first, datetime) or first.day != 1:
            raise BucketError(f"no month: {said[:40]!r}; write 2026-07", "month")
        following = date(first.year + first.month // 12, first.month % 12 + 1, 1)
        return self._midnight(first), self._midnight(following)

    def _midnight(self, day: date) -> datetime:
        return self._utc(datetime.combine(day, time()))

    def _utc(self, read: datetime) -> datetime:
        aware = read if read.tzinfo else read.replace(tzinfo=self.zone)
        return aware.astimezone(UTC).replace(tzinfo=None)

    def _day(self, said: str, name: str) -> date | datetime:
        slashed = _SLASHED.fullmatch(said)
        try:
            if slashed is None:
                return datetime.fromisoformat(said) if len(said) > 10 else date.fromisoformat(said)
            if self.month_first is None:
                raise LogFormatError(
                    f'{name}: "{said}" may be month first or day first, and no row of the file proves which. '
                    "Write the dates as 2026-04-01"
                )
            one, two, year = (int(part) for part in slashed.groups())
            month, day = (one, two) if self.month_first else (two, one)
            return date(year + 2000 if year < 100 else year, month, day)
        except ValueError as error:
            found = _worded(said, _WORDED)
            if found is None:
                raise BucketError(f"no date: {said[:40]!r}; write 2026-07-01", name) from error
            return found


def _worded(said: str, forms: tuple[str, ...]) -> date | None:
    for form in forms:
        try:
            return datetime.strptime(said.strip(), form).date()  # noqa: DTZ007 -- a day or a month
        except ValueError:
            continue
    return None


def _month_first(cells: list[str]) -> bool | None:
    """Prove the order of dates with slashes: a first or second part above 12 is a day."""
    parts = [(int(found[1]), int(found[2])) for cell in cells if (found := _SLASHED.fullmatch(cell))]
    if any(one > 12 for one, _ in parts):
        return False
    return True if any(two > 12 for _, two in parts) else None


INVOICE_CSV = BucketReader(
    name="invoice_csv",
    fits=_fits,
    read=_read,
    repeats=True,
    holds="amounts billed by day or month, by usual column names",
    containers=("CSV",),
    why_not=why_not,
)
