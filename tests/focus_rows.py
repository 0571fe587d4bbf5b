"""A FOCUS file read the slow way, with the standard library alone: what tests of the export hold it against."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from pathlib import Path

import polars as pl

from tenfold.ledger import Ledger
from tenfold.prices.meters import METER_NAMES, meters

COSTS = {"list": "ListCost", "contracted": "ContractedCost", "effective": "EffectiveCost", "billed": "BilledCost"}
BY_TIME = {meter.name for meter in meters() if meter.divisor > 1}
HOSTILE = (
    '=HYPERLINK("http://x","y")', "+1+1", "-2", "@SUM(A1)", "\tx", "\rx", "'", "'=1", "a'b\"c",
    "<script>alert(1)</script>",
    "\u202eevil", "x" * 300, "🧾🚀", "a,b;c\nd", "＝1", "  spaces  ", "Ж中文", "normal",
)  # fmt: skip


def rows_of(file: Path) -> list[dict[str, str]]:
    """Read every cell as it is in the file."""
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def pusd(text: str) -> int:
    """Read an amount of USD as whole pUSD; fails where it is finer."""
    exact = Decimal(text).scaleb(12)
    assert exact == int(exact), text
    return int(exact)


def sums(rows: list[dict[str, str]], *kinds: str) -> dict[str, dict[str, int]]:
    """Sum the amounts by meter, in pUSD."""
    found: dict[str, dict[str, int]] = {kind: defaultdict(int) for kind in kinds}
    for row in rows:
        for kind in kinds:
            found[kind][row["x_Meter"]] += pusd(row[COSTS[kind]])
    return {kind: {meter: value for meter, value in one.items() if value} for kind, one in found.items()}


def ledger_sums(ledger: Ledger) -> tuple[dict[str, int], dict[str, int]]:
    """Sum the units and pUSD of what has a price, request by request."""
    frame = ledger.frame().filter("is_billed", "is_priced")
    names = [name for name in METER_NAMES if f"{name}_units" in frame.columns]
    units = {name: int(frame[f"{name}_units"].sum() or 0) for name in names}
    costs = {name: int(frame[f"{name}_pusd"].cast(pl.Int128).sum() or 0) for name in names}
    return {n: v for n, v in units.items() if v}, {n: v for n, v in costs.items() if v}


def hold_products(rows: list[dict[str, str]]) -> None:
    """Unit price times quantity is the cost, to the last digit; by time to what rounding each request may leave."""
    with localcontext(prec=80):
        for row in rows:
            for price, cost in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
                product = Decimal(row[price]) * Decimal(row["PricingQuantity"])
                off = abs(product - Decimal(row[cost]))
                assert off == 0 or (row["x_Meter"] in BY_TIME and off < Decimal("1e-9")), row


DAY = datetime(2026, 7, 1, 10, tzinfo=UTC)
ENTRY = 'source = "t"\nchecked = 2026-01-01\n'
# The published example of prompt caching (FOCUS, AI billing examples): 3 / 3.75 / 0.30 / 15 USD per million.
SOLORA = f"""
provider = "openai"
[[price]]
model = "solora"
input = 3
cache_write = 3.75
cache_read = 0.3
output = 15
web_search = 10
{ENTRY}"""
# 0.5M uncached, 2M written, 8M read, 1.5M out
CALL = {
    "provider": "openai", "model": "solora", "ts": DAY, "input_tokens": 10_500_000, "cache_write_tokens": 2_000_000,
    "cache_read_tokens": 8_000_000, "output_tokens": 1_500_000, "reasoning_tokens": 200_000,
}  # fmt: skip


def column(rows, *names):
    """Take some columns of rows."""
    return [tuple(row[name] for name in names) if len(names) > 1 else row[names[0]] for row in rows]
