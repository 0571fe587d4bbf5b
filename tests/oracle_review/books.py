"""Budgets by days (formats.md C1), reports of providers (A6), FOCUS rows (B2, B3)."""

from __future__ import annotations

import calendar
import csv
import gzip
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from oracle import Book, find_model

from oracle_review.basics import Row, daily, spend

USD = 10**12
Cell = tuple[date, str, str | None, str]  # day, provider, model, meter


def text_of(file: Path) -> str:
    """Read a file, unpacked."""
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()


def budgets(file: Path) -> dict[tuple[str, str], int]:
    """(owner, month) to pUSD."""
    rows = csv.DictReader(io.StringIO(text_of(file)))
    return {(row["owner"], row["month"]): int(Decimal(row["usd"]) * USD) for row in rows}


def burn(granted: dict[tuple[str, str], int], owner: str, first: date, through: date) -> Fraction:
    """Budget of the days from one to another, both in: a month's by the share of its days."""
    whole = Fraction(0)
    for (name, month), pusd in granted.items():
        year, number = map(int, month.split("-"))
        length = calendar.monthrange(year, number)[1]
        days = [date(year, number, day) for day in range(1, length + 1)]
        over = sum(first <= day <= through for day in days)
        if owner in (name, "*"):
            whole += Fraction(pusd * over, length)
    return whole


def reached(rows: Iterable[Row], first: date, last: date, limit: Fraction) -> date | None:
    """The first day at whose end spend had reached a limit."""
    cost = daily(rows, lambda _: None)[None]
    spent, day = 0, first
    while day <= last:
        spent += cost.get(day, 0)
        if spent >= limit:
            return day
        day += timedelta(days=1)
    return None


def spent(rows: Iterable[Row], first: date, last: date) -> int:
    """Spend of days, both in."""
    return spend(row for row in rows if first <= row.day <= last)


OPENAI = {
    "input_tokens": "uncached_input",
    "cached_input_tokens": "cache_read",
    "input_cache_write_tokens": "cache_write",
    "input_cache_write_30m_tokens": "cache_write",
    "input_cache_write_12h_tokens": "cache_write_long",
    "output_tokens": "output",
}
ANTHROPIC = {
    "uncached_input_tokens": "uncached_input",
    "cache_read_input_tokens": "cache_read",
    "cache_creation.ephemeral_5m_input_tokens": "cache_write",
    "cache_creation.ephemeral_1h_input_tokens": "cache_write_long",
    "output_tokens": "output",
}


def openai_costs(book: Book, file: Path) -> dict[Cell, int]:
    """OpenAI's costs: dollars."""
    found: dict[Cell, int] = defaultdict(int)
    for bucket in json.loads(text_of(file), parse_float=Decimal)["data"]:
        day = datetime.fromtimestamp(bucket["start_time"], UTC).date()
        for result in bucket["results"]:
            model, word = result["line_item"].rsplit(", ", 1)
            found[day, "openai", _known(book, "openai", model), OPENAI[word]] += _pusd(result["amount"]["value"])
    return found


def anthropic_costs(book: Book, file: Path) -> dict[Cell, int]:
    """Anthropic's cost report: cents."""
    found: dict[Cell, int] = defaultdict(int)
    for bucket in json.loads(text_of(file))["data"]:
        day = datetime.fromisoformat(bucket["starting_at"]).date()
        for result in bucket["results"]:
            cents = Decimal(result["amount"])
            if result["cost_type"] == "web_search":
                found[day, "anthropic", None, "web_search"] += _pusd(cents / 100)
                continue
            model = _known(book, "anthropic", result["model"])
            found[day, "anthropic", model, ANTHROPIC[result["token_type"]]] += _pusd(cents / 100)
    return found


def logged(book: Book, rows: Iterable[Row]) -> dict[Cell, int]:
    """What the log says, in the cells of such reports."""
    found: dict[Cell, int] = defaultdict(int)
    for row in rows:
        if row.is_priced:
            for meter, (_, pusd) in row.meters.items():
                model = None if meter == "web_search" else _known(book, row["provider"], row["model"])
                found[row.day, row["provider"], model, meter] += pusd
    return found


def _known(book: Book, provider: str, model: str) -> str:
    return find_model(book, provider, model) or model


def _pusd(usd: Any) -> int:
    exact = Decimal(usd) * USD
    assert exact == int(exact)
    return int(exact)


def focus_rows(file: Path) -> list[dict[str, str]]:
    """Every cell of a FOCUS file, as it is written."""
    return list(csv.DictReader(io.StringIO(text_of(file), newline="")))


def focus_cells(rows: Iterable[dict[str, str]]) -> dict[tuple[Any, ...], tuple[int, int]]:
    """(UTC day, model, team, tier, meter) to (quantity, billed pUSD)."""
    found: dict[tuple[Any, ...], tuple[int, int]] = {}
    for row in rows:
        day = datetime.fromisoformat(row["ChargePeriodStart"]).date()
        place = (day, row["x_ModelId"], row["x_Team"], row["x_ServiceTier"], row["x_Meter"])
        old = found.get(place, (0, 0))
        found[place] = (old[0] + int(Decimal(row["ConsumedQuantity"])), old[1] + _pusd(row["BilledCost"]))
    return found


def logged_cells(rows: Iterable[Row]) -> dict[tuple[Any, ...], tuple[int, int]]:
    """The same cells from requests."""
    found: dict[tuple[Any, ...], tuple[int, int]] = {}
    for row in rows:
        if row.is_priced:
            for meter, (units, pusd) in row.meters.items():
                place = (row.day, row["model"], row["team"] or "", row.tier, meter)
                old = found.get(place, (0, 0))
                found[place] = (old[0] + units, old[1] + pusd)
    return found


def focus_faults(rows: Sequence[dict[str, str]]) -> list[str]:
    """Rows whose price times quantity is not their cost, whose month is not the calendar's, whose quantities differ."""
    faults: list[str] = []
    for at, row in enumerate(rows):
        for price, cost in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
            if Decimal(row[price]) * Decimal(row["PricingQuantity"]) != Decimal(row[cost]):
                faults.append(f"{at}: {price} x PricingQuantity is not {cost}")
        start, end = (datetime.fromisoformat(row[f"ChargePeriod{word}"]) for word in ("Start", "End"))
        month, after = (datetime.fromisoformat(row[f"BillingPeriod{word}"]) for word in ("Start", "End"))
        if month != start.replace(day=1, hour=0, minute=0, second=0):
            faults.append(f"{at}: the billing period begins {month}")
        if after != (month + timedelta(days=32)).replace(day=1) or not start < end <= after:
            faults.append(f"{at}: the billing period ends {after}, the charge {end}")
        if row["PricingUnit"] == "1000000 Tokens":
            if Decimal(row["PricingQuantity"]) * 1_000_000 != Decimal(row["ConsumedQuantity"]):
                faults.append(f"{at}: the quantities differ")
            if row["ConsumedUnit"] != "Tokens":
                faults.append(f"{at}: unit {row['ConsumedUnit']}")
        costs = {row[name] for name in ("ListCost", "ContractedCost", "EffectiveCost", "BilledCost")}
        if len({Decimal(cost) for cost in costs}) > 1:
            faults.append(f"{at}: without commitments and prices of one's own the four costs are equal")
    return faults
