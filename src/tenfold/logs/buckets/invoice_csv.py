"""Plain CSV invoices: date or month, model, meter or description, amount, currency, quantity, by usual column names.

Dates mean whole days of the zone that is given, else UTC. A date whose order is not proven by its file is an error that
names the column, and so is a decimal sign; totals of other rows are an amount of their own kind, taxes and credits a
category.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tenfold.errors import LogFormatError
from tenfold.logs.buckets import amounts
from tenfold.logs.buckets.base import BucketError, BucketReader, Found, Source, number, text
from tenfold.logs.buckets.invoice_dates import Dates
from tenfold.logs.buckets.words import meter_of, plain, tier_of, tokens_unit
from tenfold.prices.words import canonical_provider, canonical_tier

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_TOTAL = re.compile(r"(sub ?|grand )?totals?( due| amount| usage)?|amount due|balance( due)?")
# Words for what is no usage; never a part of a name such as `credit-scorer`.
_CATEGORIES = tuple(
    (re.compile(rf"(?<![\w.-])({words})(?![\w]|[-.][a-z])"), category)
    for words, category in (
        ("sales tax|tax|vat|gst|hst", "tax"),
        ("credits?|promo|promotion|grant", "credit"),
        ("adjustments?|refunds?|rounding|discounts?", "adjustment"),
        ("prepayments?|top[ -]up|purchase|commitment", "purchase"),
    )
)
_ITEM = re.compile(r"(?P<model>.+?)(?:\s+usage)?\s*(?:,|\s-\s|\s–\s|:|\|)\s*(?P<rest>.+)", re.IGNORECASE)


class _Header(NamedTuple):
    """Columns of a file: what they hold to their place; currencies in the amount's own name; columns named alike."""

    places: dict[str, int]
    currency: frozenset[str]
    names: tuple[str, ...]
    alike: dict[str, tuple[int, ...]]


def _bare(name: str) -> str:
    """Take the currency and brackets out of a column's name: ``Amount (USD)``."""
    said = re.sub(r"[()\[\]_]", " ", amounts.spelled(name)[1]).strip()
    # letters that `plain` would lose may be a currency
    return (plain(said) if said.isascii() else said.lower()).removesuffix(" in")


def header_of(line: str) -> _Header:
    """Read a header.

    Args:
        line: The first line of the file.

    Returns:
        Which column holds what.
    """
    try:
        names = tuple(name.strip() for row in csv.reader([line], delimiter=_delimiter(line)) for name in row)
    except csv.Error:  # lines that end otherwise, or UTF-16
        names = (line,)
    bare = [_bare(name) for name in names]
    places: dict[str, int] = {}
    for what, words in COLUMNS.items():
        place = next(
            (bare.index(word) for word in words if word in bare and bare.index(word) not in places.values()), None
        )
        if place is not None:
            places[what] = place
    said = amounts.spelled(names[places["amount"]])[0] if "amount" in places else frozenset[str]()
    alike = {
        what: tuple(n for n, name in enumerate(bare) if name == bare[at] and n != at) for what, at in places.items()
    }
    return _Header(places, said, names, {what: others for what, others in alike.items() if others})


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
    for line, cells in _cells(source, said, _delimiter(first), header.names):
        if len(cells) != len(header.names):
            yield Found(line, None, f"{len(cells)} cells where the header has {len(header.names)}")
        else:
            _same(cells, header, line)
            rows.append((line, {what: cells[at].strip() for what, at in header.places.items()}))
    days = [row.get(name, "") for _, row in rows for name in ("date", "end")]
    dates = Dates.of(days, source.zone)
    columns = {header.names[header.places[what]]: what for what in ("amount", "quantity") if what in header.places}
    signs = amounts.decimal_signs(
        {name: [(line, row[what]) for line, row in rows] for name, what in columns.items()},
        leans_to_commas=_delimiter(first) == ";",
    )
    file = _File(header, dates, {what: signs[name] for name, what in columns.items()})
    above = since = Decimal(0)  # sums of the rows so far, and of those after the last total
    for line, row in rows:
        try:
            value, code = file.amount(row)
            if _is_total(row, value, {above, since}):
                made, since = _total(row, value, code), Decimal(0)
            else:
                made = _row(row, file, value, code)
                above, since = above + value, since + value
        except BucketError as error:
            is_empty = not row.get("amount") and not any(row.get(name) for name in ("date", "month"))
            yield Found(line, None) if is_empty else Found(line, None, str(error), error.path)
        else:
            yield Found(line, made)


def _cells(source: Source, said: str, delimiter: str, names: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Give line and cells of every row below the header."""
    if source.rows is not None:
        yield from ((line, [row.get(name, "") for name in names]) for line, row in source.rows)
        return
    lines = csv.reader(io.StringIO(said, newline=""), delimiter=delimiter)
    seen = False
    start = 1
    for cells in lines:
        line, start = start, lines.line_num + 1
        if any(cell.strip() for cell in cells):
            if seen:
                yield line, cells
            seen = True


def _same(cells: list[str], header: _Header, line: int) -> None:
    """Refuse a file whose columns of one name differ: nothing says which is meant."""
    for what, others in header.alike.items():
        at = header.places[what]
        for other in others:
            a, b = header.names[at], header.names[other]
            if cells[at].strip() != cells[other].strip() or amounts.spelled(a)[0] != amounts.spelled(b)[0]:
                raise LogFormatError(
                    f'columns {at + 1} and {other + 1} are both called "{_bare(a)}" ("{a}", "{b}"), and line {line} '
                    f'has "{cells[at][:40]}" and "{cells[other][:40]}". Leave one, or name the other apart'
                )


class _File(NamedTuple):
    """How a file's cells read.

    Args:
        header: Its columns.
        dates: How its dates read.
        signs: Decimal signs of ``amount`` and ``quantity``.
    """

    header: _Header
    dates: Dates
    signs: Mapping[str, str]

    def amount(self, row: Mapping[str, str]) -> tuple[Decimal, str]:
        """Read a row's amount: ``$1,234.56``, ``(12.30)``, ``-$5``, ``USD 12``; and its currency."""
        said, digits = amounts.spelled(row.get("amount", ""))
        value = amounts.amount(digits, self.signs["amount"], self.header.names[self.header.places["amount"]])
        return value, amounts.currency(said, row.get("currency", ""), self.header.currency)


def _is_total(row: Mapping[str, str], value: Decimal, sums: set[Decimal]) -> bool:
    """Tell a sum of other rows: it says so and is of nothing else, or it says so and is what the rows above come to."""
    about = {name: cell for name in ("date", "month", "model", "meter", "description") if (cell := row.get(name))}
    says = {name for name, cell in about.items() if _says_total(cell)}
    if not about or (says and (says & {"date", "month"} or not about.keys() & {"date", "month"})):
        return True
    return bool(says) and (value in sums or about.keys() <= says | {"date", "month"})


@lru_cache(maxsize=4096)
def _says_total(cell: str) -> bool:
    return _TOTAL.fullmatch(plain(cell)) is not None


def _total(row: Mapping[str, str], value: Decimal, code: str) -> dict[str, object]:
    """Keep a total as an amount of its own kind, which nothing adds up: whoever reads the rows can name it."""
    named = (row.get(name, "") for name in ("date", "month", "model", "meter", "description"))
    return {
        "provider": canonical_provider(row.get("provider")) or None,
        "description": next((cell for cell in named if _says_total(cell)), "no date, no model, no meter"),
        "amount": value,
        "currency": code,
        "amount_usd": value if code == "USD" else None,
        "amount_kind": "total",
        "invoice_id": text(row.get("invoice")),
    }


def _row(row: Mapping[str, str], file: _File, amount: Decimal, code: str) -> dict[str, object]:
    start, end = file.dates.period(row)
    about = _about(*(row.get(name, "") for name in ("model", "meter", "description", "category")))
    quantity, unit = _quantity(row, file)
    tier = row.get("tier") or about.tier
    return {
        "bucket_start": start,
        "bucket_end": end,
        "provider": canonical_provider(row.get("provider")) or None,
        "project": text(row.get("project")),
        "api_key_id": text(row.get("key")),
        "model": about.model,
        "service_tier": canonical_tier(tier) if tier else None,
        "meter": about.meter,
        "category": about.category,
        "description": text(row.get("description") or row.get("meter")),
        "quantity": quantity,
        "unit": unit,
        "amount": amount,
        "currency": code,
        "amount_usd": amount if code == "USD" else None,
        "amount_kind": "billed",
        "invoice_id": text(row.get("invoice")),
    }


class _About(NamedTuple):
    """What a row is of."""

    model: str | None
    meter: str | None
    tier: str | None
    category: str


@lru_cache(maxsize=4096)
def _about(model: str, meter: str, described: str, category: str) -> _About:
    """Read model, meter and category; a text such as ``gpt-5, input_tokens`` holds two of them."""
    if _says_total(meter):
        meter = ""  # all meters together
    beside = f"{meter} {described}"
    named = meter_of(meter) or (meter if meter and model else "")
    name, found = model, named or meter_of(described) or ""
    for whole in (model, meter if not model else "", described if not model else ""):
        item = _ITEM.fullmatch(whole)
        if item and (meter_of(item["rest"]) or tier_of(item["rest"])):
            name, found = item["model"].strip(), named or meter_of(item["rest"]) or ""
            beside = f"{model} {beside}"
            break
    else:
        if not model and (meter or described) and not meter_of(described or meter):
            name, found = described or meter, named
    return _About(name or None, found or None, tier_of(beside), _category(category, model, beside, found))


def _category(said: str, model: str, beside: str, meter: str) -> str:
    """Read a category: from its own column, else of what is of no known meter; a model counts as a whole name only."""
    own = _words_for(said)
    if own or meter_of(meter):
        return own or "usage"
    whole = next((name for pattern, name in _CATEGORIES if pattern.fullmatch(model.lower().strip())), "")
    return _words_for(beside) or whole or "usage"


def _words_for(said: str) -> str:
    return next((name for pattern, name in _CATEGORIES if pattern.search(said.lower())), "")


def _quantity(row: Mapping[str, str], file: _File) -> tuple[Decimal | None, str | None]:
    cell = row.get("quantity", "")
    if not cell:
        return None, None
    column = file.header.names[file.header.places["quantity"]]
    value = amounts.amount(cell, file.signs["quantity"], column)
    said = row.get("unit") or ("tokens" if "token" in column.lower() else "")
    unit = tokens_unit(said) if said else None
    if unit is None:
        return value, said.lower() or None
    return number(value * unit.factor, column), unit.name


INVOICE_CSV = BucketReader(
    name="invoice_csv",
    fits=_fits,
    read=_read,
    repeats=True,
    holds="amounts billed by day or month, by usual column names",
    containers=("CSV",),
    why_not=why_not,
)
