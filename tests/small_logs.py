"""Small logs for tests of levers and plans: rows given as dicts, a price book given as TOML text, no files loaded."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from duckdb import DuckDBPyConnection

from tenfold.ledger import Ledger, attribute
from tenfold.levers import LEVERS, Assumed, Bill, Judged, Lever, Look, Stage
from tenfold.levers.assume import assumptions
from tenfold.levers.base import Advice
from tenfold.levers.repricing import own_bill
from tenfold.levers.tally import Tally
from tenfold.logs import Log
from tenfold.logs.cube import cells_sql
from tenfold.planning.portfolio import Portfolio
from tenfold.prices import PriceBook, price_book
from tenfold.prices.words import canonical_provider, canonical_tier
from tenfold.slo import Slo
from tenfold.store import schema
from tenfold.store.database import Store

Row = Mapping[str, Any]

# One model at 2 / 0.2 / 2.5 / 10 USD per million, everything at half price in the batch tier: caching and batch stack.
# `plain` has a batch price that does not discount cached reads again; `online` has no batch price at all.
PRICES = """
provider = "openai"
[[price]]
model = "stacks"
input = 2
cache_read = 0.2
cache_write = 2.5
cache_write_long = 4
output = 10
source = "test"
checked = 2026-01-01
[[price]]
model = "stacks"
service_tier = "batch"
input = 1
cache_read = 0.1
cache_write = 1.25
cache_write_long = 2
output = 5
source = "test"
checked = 2026-01-01
[[price]]
model = "plain"
input = 2
cache_read = 0.2
output = 10
source = "test"
checked = 2026-01-01
[[price]]
model = "plain"
service_tier = "batch"
input = 1
cache_read = 0.2
output = 5
source = "test"
checked = 2026-01-01
[[price]]
model = "plain"
service_tier = "flex"
input = 1.5
cache_read = 0.15
output = 7.5
source = "test"
checked = 2026-01-01
[[price]]
model = "online"
input = 2
cache_read = 0.2
output = 10
source = "test"
checked = 2026-01-01
"""


# `stacks` at half price from 5 June on.
CUT = (
    PRICES
    + """
[[price]]
model = "stacks"
valid_from = 2026-06-05
input = 1
cache_read = 0.1
output = 5
source = "test"
checked = 2026-01-01
"""
)


@cache
def book(prices: str = PRICES) -> PriceBook:
    """Read a price book from text."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "prices.toml").write_text(prices, encoding="utf-8")
        return price_book(folder)


def row(**columns: Any) -> dict[str, Any]:
    """Make a request that may be batched: 1,000 in, 100 out, of model `stacks`, not streamed, no session."""
    return {
        "provider": "openai",
        "model": "stacks",
        "ts": datetime(2026, 6, 1, 12),
        "input_tokens": 1_000,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "output_tokens": 100,
        "is_stream": False,
        "feature": "tagging",
        **columns,
    }


def ledger(rows: Sequence[Row], prices: str | PriceBook = PRICES, **options: Any) -> Ledger:
    """Put rows into a store in memory, cube and all, and price them."""
    made = book(prices) if isinstance(prices, str) else prices
    store = Store()
    keys: dict[tuple[str, str, str, str], int] = {}
    filled: list[dict[str, Any]] = []
    with store.writing() as connection:
        for one in rows:
            parts = (
                canonical_provider(one.get("provider")),
                one.get("model") or "",
                canonical_tier(one.get("service_tier")),
                one.get("region") or "",
            )
            values = {
                **{name: value for name, value in one.items() if name in schema.names("requests")},
                "price_key": keys.setdefault(parts, len(keys) + 1),
            }
            filled.append(values)
        _insert(connection, filled)
        for parts, key in keys.items():
            connection.execute("insert into price_keys values (?, ?, ?, ?, ?)", [key, *parts])
        connection.execute(f"insert into cube {cells_sql('requests', made.thresholds)}")
        connection.execute(
            "insert into meta values ('thresholds', ?)", [",".join(str(limit) for limit in made.thresholds)]
        )
    return attribute(Log(store, {}), made, **options)


def _insert(connection: DuckDBPyConnection, rows: Sequence[Row]) -> None:
    """Insert one by one, or by way of a file where that would take long."""
    if len(rows) > 100:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "requests.parquet")
            pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
            connection.execute("insert into requests by name select * from read_parquet(?)", [str(path)])
        return
    for values in rows:
        marks = ", ".join("?" for _ in values)
        connection.execute(f"insert into requests ({', '.join(values)}) values ({marks})", list(values.values()))


class Shorten:
    """A lever that takes a percentage of the output away: what a lever is, in the fewest lines."""

    stage = Stage.OUTPUT
    needs = (("output_tokens",),)
    columns = ()
    changed = ("output_tokens",)
    assumptions = ()
    effort_days = Decimal(0)
    risk = "low"
    reversible = True
    rule_of_thumb = ""
    slo_effect = "unknown"

    def __init__(self, name: str, percent: int, number: int = 6, conflicts: tuple[str, ...] = ()) -> None:
        self.name, self.percent, self.number, self.conflicts = name, percent, number, conflicts
        self.given: list[str] = []

    def allowed(self, slo: Slo, assumed: Assumed) -> str:  # noqa: ARG002
        return "true"

    def judge(self, bill: Bill, assumed: Assumed) -> Judged:  # noqa: ARG002
        fate = "case when b.is_billed then 'touched' end as fate"
        bill.session.engine.step(f"{self.name}_judged", f"select b.rid, {fate} from lever_base as b")
        return Judged(f"{self.name}_judged")

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:  # noqa: ARG002
        self.given.append(bill.requests)
        output = f"cast(output_tokens * {100 - self.percent} / 100 as bigint)"
        name = f"{bill.requests}_{self.name}"
        bill.session.engine.step(name, f"select p.*, {output} as new_output_tokens from {bill.requests} as p")
        return replace(bill, requests=name)

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:  # noqa: ARG002
        return Look("ok", "", "modelled", counted.total("now_pusd"), None, (), Advice("", "", ""), applies=True)


def look(lever: Lever, made: Ledger, assume: Mapping[str, Any] | None = None, slo: Slo | None = None) -> Look:
    """Let one lever look at a log, without the rest of the plan."""
    assumed = assumptions(assume, LEVERS).levers
    with made.session() as session:
        bill = own_bill(session, (lever,), assumed, slo or Slo())
        verdict = lever.judge(bill, assumed[lever.name])
        if isinstance(verdict, Look):
            return verdict
        portfolio = Portfolio(bill, (lever,), assumed, {lever.name: verdict})
        return lever.look(bill, assumed[lever.name], portfolio.tally(lever.name))


def facts(found: Look) -> dict[str, Any]:
    """Give the evidence of a look by name."""
    return {one["name"]: one["value"] for one in found.evidence}


def saved(found: Look) -> int:
    """Give what the moved requests cost less than now, in pUSD, from the evidence."""
    cost = facts(found)
    return int((Decimal(cost["cost_now_usd"]) - Decimal(cost["cost_moved_usd"])).scaleb(12))
