"""A checker of FOCUS files, made from the table of columns: presence, types, nulls, value lists, products, periods.

Rules are those of the specification's cost and usage dataset that one file can prove or break by itself. Numbers are
compared as decimals. It reads row by row, so the file may be larger than memory.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any, NamedTuple

from tenfold.display import counted
from tenfold.export import focus_file
from tenfold.export.focus_spec import (
    AI_SUBCATEGORIES,
    BY_NAME,
    PRODUCTS,
    SKU_PROPERTIES,
    VERSIONS,
    Column,
    Version,
    columns_of,
)
from tenfold.tables import card

Row = Mapping[str, str]
# Findings of one rule and column that are kept whole; the others are counted.
_KEPT = 100
_NUMBER = re.compile(r"-?(\d+(\.\d+)?|\.\d+)([eE]-?\d+)?")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
_CURRENCY = re.compile(r"[A-Z]{3}")
# Written decimals are rounded, and so may a product of them be: this much of the cost, and this many dollars.
_TOLERANCE = Decimal("1e-9")


class Finding(NamedTuple):
    """One thing that a file gets wrong.

    Args:
        row: Row, from 1 for the first one below the header; 0 for the file.
        column: The column.
        rule: What must hold, in words.
        value: The value found.
    """

    row: int
    column: str
    rule: str
    value: str

    def __str__(self) -> str:
        where = f"row {self.row}, {self.column}" if self.row else self.column
        return f"{where}: {self.rule}" + (f" (found {self.value[:80]!r})" if self.value else "")


@dataclass(slots=True)
class Checked:
    """What a check found.

    Args:
        version: Version that the file was held against.
        rows: Rows read.
        findings: What is wrong, in the file's order; at most 100 of one rule and column.
        counts: (column, rule) to how many findings there are.
    """

    version: Version
    rows: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])
    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.counts

    def add(self, row: int, column: str, rule: str, value: str = "") -> None:
        """Note a finding.

        Args:
            row: Row, or 0.
            column: The column.
            rule: What must hold.
            value: The value found.
        """
        self.counts[column, rule] += 1
        if self.counts[column, rule] <= _KEPT:
            self.findings.append(Finding(row, column, rule, value))

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold export check --json``.

        Returns:
            ``version``, ``rows``, ``clean``, ``counts[]`` and ``findings[]``.
        """
        return {
            "version": self.version,
            "rows": self.rows,
            "clean": self.is_clean,
            "counts": [{"column": key[0], "rule": key[1], "count": count} for key, count in self.counts.items()],
            "findings": [one._asdict() for one in self.findings],
        }

    def __repr__(self) -> str:
        """Say what it is in one line."""
        wrong = counted(self.counts.total(), "finding") if self.counts else "nothing wrong"
        return f"<Checked {counted(self.rows, 'row')} against FOCUS {self.version}: {wrong}>"

    def _repr_html_(self) -> str:
        """Show what is wrong in a notebook, rule by rule."""
        lines = [f"{column}: {rule} ({count:,})" for (column, rule), count in self.counts.most_common()]
        return card(repr(self)[1:-1], lines)


def check(path: str | Path, version: Version | None = None) -> Checked:
    """Hold a FOCUS file against the specification.

    Args:
        path: CSV (also gzip) or Parquet.
        version: Version to hold it against; by default the newest whose columns the file has.

    Returns:
        What is wrong with it.

    Raises:
        LogFormatError: It is no table, or not UTF-8.
    """
    header, rows = focus_file.read(Path(path))
    found = Checked(version or _version(header))
    columns = columns_of(found.version)
    _presence(found, header, columns)
    known = [column for column in columns if column.name in header]
    seen = _Seen()
    for number, cells in enumerate(rows, 1):
        found.rows = number
        if len(cells) != len(header):
            found.add(number, "", f"a row has as many cells as the header, {len(header)}", str(len(cells)))
            continue
        row = dict(zip(header, cells, strict=True))
        _row(found, number, row, known)
        seen.look(found, number, row)
    return found


def _version(header: Iterable[str]) -> Version:
    """Tell the version by the columns: the newest that added one of them, below 1.3 where what it removed is there."""
    names = set(header)
    since = max((VERSIONS.index(BY_NAME[name].since) for name in names if name in BY_NAME), default=0)
    most = min((VERSIONS.index(BY_NAME[name].until) for name in names if name in BY_NAME), default=len(VERSIONS) - 1)
    # 1.4 differs from 1.3 by what it leaves out
    if since == VERSIONS.index("1.3") and most == len(VERSIONS) - 1:
        since = most
    return VERSIONS[since]


def _presence(found: Checked, header: list[str], columns: tuple[Column, ...]) -> None:
    names = set(header)
    for name, times in Counter(header).items():
        if times > 1:
            found.add(0, name, "a column is there once", str(times))
    groups = {column.presence for column in columns if column.name in names} & {"priced", "metered"}
    for column in columns:
        if column.name not in names and (column.presence == "must" or column.presence in groups):
            beside = "" if column.presence == "must" else ", as the others of its group are"
            found.add(0, column.name, f"must be present in {found.version}{beside}")
    defined = {column.name for column in columns}
    for name in header:
        if name not in defined and not name.startswith("x_"):
            is_other = name in BY_NAME
            rule = f"is not a column of {found.version}" if is_other else "a column of your own begins with x_"
            found.add(0, name, rule)


def _row(found: Checked, number: int, row: Row, columns: Iterable[Column]) -> None:
    for column in columns:
        value = row[column.name]
        if not value:
            rule = _wanting(column, row)
            if rule:
                found.add(number, column.name, rule)
            continue
        for rule in (_forbidden(column, row), _KINDS[column.kind](column, value)):
            if rule:
                found.add(number, column.name, rule, value)
        if column.values and value not in column.values:
            found.add(number, column.name, f"must be one of {', '.join(column.values)}", value)
    if row.get("ServiceCategory") == "AI and Machine Learning" and row.get("ServiceSubcategory"):
        _one_of(found, number, "ServiceSubcategory", row["ServiceSubcategory"], AI_SUBCATEGORIES)
    if row.get("ChargeCategory") == "Purchase" and row.get("ChargeFrequency") == "Usage-Based":
        found.add(number, "ChargeFrequency", "must not be Usage-Based for a purchase", "Usage-Based")
    _products(found, number, row)
    _periods(found, number, row)


def _one_of(found: Checked, number: int, name: str, value: str, values: tuple[str, ...]) -> None:
    if value not in values:
        found.add(number, name, f"must be one of {', '.join(values)}", value)


def _is_charged(row: Row) -> bool:
    return row.get("ChargeCategory") in ("Usage", "Purchase") and row.get("ChargeClass") != "Correction"


def _is_consumed(row: Row) -> bool:
    return row.get("ChargeCategory") == "Usage" and row.get("CommitmentDiscountStatus") != "Unused"


def _wanting(column: Column, row: Row) -> str:
    """Say why a column must have a value here; empty where it need not."""
    if column.nullable == "never":
        return "must not be null"
    if column.nullable == "charged" and _is_charged(row):
        return "must not be null for usage and purchases"
    if column.nullable == "consumed" and _is_consumed(row) and row.get("ChargeClass") != "Correction":
        return "must not be null for usage"
    if column.nullable == "beside" and row.get(column.beside):
        return f"must not be null where {column.beside} has a value"
    if column.name == "CommitmentDiscountStatus" and row.get("CommitmentDiscountId") and _is_charged(row):
        return "must not be null for usage of a commitment" if row["ChargeCategory"] == "Usage" else ""
    return ""


def _forbidden(column: Column, row: Row) -> str:
    """Say why a column must have no value here; empty where it may."""
    if column.nullable == "charged" and row.get("ChargeCategory") == "Tax" and column.kind != "text":
        return "must be null for tax"
    if column.nullable == "consumed" and not _is_consumed(row):
        return "must be null for what is not consumed"
    if column.nullable in ("beside", "only_beside") and not row.get(column.beside):
        return f"must be null where {column.beside} is"
    return ""


def _text(_: Column, value: str) -> str:
    return "" if value.strip() else "a text is not made of spaces alone"


def _number(column: Column, value: str) -> str:
    if not _NUMBER.fullmatch(value):
        return "must be a number without sign, commas or units (1234.5, 1E-7)"
    return "must not be negative" if column.name.endswith("UnitPrice") and value.startswith("-") else ""


def _time(_: Column, value: str) -> str:
    return "" if _instant(value) else "must be UTC as YYYY-MM-DDTHH:MM:SSZ"


def _currency(_: Column, value: str) -> str:
    return "" if _CURRENCY.fullmatch(value) else "must be a code of three letters (ISO 4217)"


def _object(column: Column, value: str) -> str:
    try:
        pairs: object = json.loads(value, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        pairs = None
    if not isinstance(pairs, _Pairs):
        return "must be a JSON object"
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        return "its keys must be unique"
    is_flat = column.name in ("Tags", "SkuPriceDetails")
    if is_flat and any(isinstance(held, (list, tuple)) for _, held in pairs):
        return "its values must not be objects or lists"
    is_odd = column.name == "SkuPriceDetails" and any(not (k.startswith("x_") or k in SKU_PROPERTIES) for k in keys)
    return "its keys must begin with x_ unless FOCUS defines them" if is_odd else ""


class _Pairs(tuple[tuple[str, object], ...]):
    """An object's entries, those of one key too."""

    __slots__ = ()


_KINDS: dict[str, Callable[[Column, str], str]] = {
    "text": _text,
    "decimal": _number,
    "time": _time,
    "currency": _currency,
    "object": _object,
}


def _decimal(row: Row, name: str) -> Decimal | None:
    value = row.get(name)
    return Decimal(value) if value and _NUMBER.fullmatch(value) else None


def _products(found: Checked, number: int, row: Row) -> None:
    if row.get("ChargeClass") == "Correction":
        return
    quantity = _decimal(row, "PricingQuantity")
    for price, cost in PRODUCTS:
        unit, amount = _decimal(row, price), _decimal(row, cost)
        if quantity is None or unit is None or amount is None:
            continue
        with localcontext(prec=100):
            product = unit * quantity
            if abs(product - amount) > _TOLERANCE * max(abs(amount), 1):
                found.add(number, cost, f"must be {price} x PricingQuantity, {product:f}", row[cost])


def _instant(value: str) -> datetime | None:
    if not _TIME.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _periods(found: Checked, number: int, row: Row) -> None:
    first, last = (_instant(row.get(f"BillingPeriod{side}") or "") for side in ("Start", "End"))
    start, end = (_instant(row.get(f"ChargePeriod{side}") or "") for side in ("Start", "End"))
    if first and first != _month(first.date()):
        found.add(number, "BillingPeriodStart", "must be the first moment of a month", row["BillingPeriodStart"])
    if first and last and last != _next(first):
        found.add(number, "BillingPeriodEnd", "must be the first moment of the next month", row["BillingPeriodEnd"])
    if start and end and start >= end:
        found.add(
            number, "ChargePeriodEnd", "must be after ChargePeriodStart: ends are exclusive", row["ChargePeriodEnd"]
        )
    if row.get("ChargeCategory") != "Usage" or not (first and last):
        return
    if start and not first <= start < last:
        found.add(number, "ChargePeriodStart", "must lie in the billing period", row["ChargePeriodStart"])
    if end and not first < end <= last:
        found.add(number, "ChargePeriodEnd", "must lie in the billing period", row["ChargePeriodEnd"])


def _month(day: date) -> datetime:
    return datetime(day.year, day.month, 1, tzinfo=UTC)


def _next(first: datetime) -> datetime:
    return datetime(first.year + first.month // 12, first.month % 12 + 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Seen:
    """What must be the same in every row of one thing: the SKU of a SKU price, the meter of a SKU."""

    known: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])

    def look(self, found: Checked, number: int, row: Row) -> None:
        seller = row.get("ServiceProviderName") or row.get("ProviderName") or ""
        for of, what in (("SkuPriceId", "SkuId"), ("SkuId", "SkuMeter")):
            if row.get(of) and row.get(what):
                first = self.known.setdefault((seller, of, row[of]), row[what])
                if first != row[what]:
                    found.add(number, what, f"one {of} has one {what}: {row[of]} had {first}", row[what])
