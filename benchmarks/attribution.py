"""Attribution of a quarter: beside grouping its token sums, with a longer card, beside per-call loops, in little memory.

Every total is checked before it is timed: rows in are rows out, tokens are those of the rows, and the cube's total is the
rows' total to the last picodollar.
"""

from __future__ import annotations

import os
from datetime import UTC
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import tenfold as tf
from benchmarks import data
from benchmarks.measuring import Measured, in_child, side_by_side, wall
from tenfold.ledger import Ledger
from tenfold.ledger.session import Session

DATA = f"{data.DATA}; six price changes of every model and tier in the quarter, all at midnight"
BY = ("day", "team", "model")
VERSIONS = 6
PEER_ROWS = 5_000
MEMORY_LIMIT = "128MB"
# Below, what a query costs once is most of a loop that should only be timed by the row.
FAIR_ROWS = 10_000_000


def measure(rows: int) -> list[Measured]:
    """Compare attribution with its floor, with a longer card and with loops over calls.

    Args:
        rows: Requests.

    Returns:
        The lines of the table.
    """
    db, card = data.store(rows), data.book(VERSIONS)
    ledger = tf.attribute(tf.open_log(db), card)
    with ledger.session() as session:
        check(session, rows)
        floor, raw = side_by_side(lambda: group(session), lambda: session.totals(BY, priced="priced_requests"))
    longer = tf.attribute(ledger.log, data.book(8 * VERSIONS))
    short, long = side_by_side(lambda: attribute(ledger), lambda: attribute(longer))
    return [
        Measured("attribution/rows", "six meters exact, with conservation counters / grouping the token sums by the same keys",
                 raw / floor, 2.0, rows=rows, seconds=raw),
        Measured("attribution/long card", "with a card of eight times the entries / as it is, both with the card's expansion",
                 long / short, 1.1, rows=rows, seconds=long),
        memory(db, "attribution/memory", rows),
        *peers(ledger, rows),
    ]  # fmt: skip


def attribute(ledger: Ledger) -> None:
    """Attribute from the rows, from opening the store on."""
    with ledger.session() as session:
        session.totals(BY, priced="priced_requests")


def group(session: Session) -> None:
    """Group the token sums of the rows, which is the least that a bill by these keys takes."""
    sums = ", ".join(f"sum({meter.column}) as {meter.name}" for meter in session.meters)
    session.engine.fetch(f"select cast(ts as date) as day, team, model, {sums} from requests group by all")


def check(session: Session, rows: int) -> None:
    """Refuse to time what is not exact."""
    raw, cube = session.totals(BY, priced="priced_requests"), session.totals(BY)
    counted = session.engine.fetch(
        "select cast(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) as bigint) as tokens from requests "
        "where coalesce(is_billable, true) and not coalesce(gateway_cache_hit, false)"
    )
    if raw["rows_seen"].sum() != rows or raw["tokens"].sum() != counted["tokens"][0]:
        raise SystemExit("attribution lost or doubled rows or tokens")
    if not raw.equals(cube):
        raise SystemExit("the cube's bill is not that of the rows")


def memory(db: Path, name: str, rows: int) -> Measured:
    """Measure the peak of a fresh process that attributes from the rows under a small memory limit."""
    folder = db.parent / "small"
    folder.mkdir(exist_ok=True)
    (folder / "tenfold.toml").write_text(f'memory_limit = "{MEMORY_LIMIT}"\n')
    took = in_child("benchmarks.attribution:alone", str(db), str(db.parent / f"prices-{VERSIONS}"), cwd=folder)
    return Measured(
        name, f"peak of a fresh process that attributes from the rows, memory_limit {MEMORY_LIMIT}", took["peak_mb"], 256,
        rows=rows, seconds=took["cpu_s"], peak_mb=took["peak_mb"], unit="memory",
        note=f"{took['imported_mb']:,.0f} MB of it are the libraries",
    )  # fmt: skip


def alone(db: str, prices: str) -> dict[str, Any]:
    """Attribute in a process of its own."""
    attribute(tf.attribute(tf.open_log(db), tf.price_book(prices)))
    return {}


def peers(ledger: Ledger, rows: int) -> list[Measured]:
    """Compare requests a second of the whole attribution, two threads, with loops that price call by call."""
    with ledger.log.store.reading() as connection:
        calls = connection.execute(
            "select provider, model, input_tokens, coalesce(cache_read_tokens, 0), output_tokens, ts from requests "
            f"where service_tier = 'standard' and model <> '{data.UNPRICED}' and input_tokens < 200000 "
            f"and coalesce(cache_write_tokens, 0) = 0 and ts is not null limit {PEER_ROWS}"
        ).fetchall()
    ours = rows / wall(lambda: tf.attribute(ledger.log).composition(BY))
    found = []
    for name, loop in (("litellm", litellm_loop), ("genai_prices", genai_loop)):
        what = f"requests a second: attribution with the shipped book, two threads / a loop of {name}"
        if not is_installed(name):
            note = "not installed here: make bench"
            found.append(Measured(f"attribution/{name} loop", what, None, 1000, False, unit="wall", note=note))
            continue
        theirs = len(calls) / wall(lambda loop=loop: loop(calls))
        bound = 1000 if rows >= FAIR_ROWS else None
        note = f"{ours:,.0f} and {theirs:,.0f} requests a second"
        found.append(
            Measured(
                f"attribution/{name} loop", what, ours / theirs, bound, False, rows, rows / ours, unit="wall", note=note
            )
        )
    return found


def is_installed(name: str) -> bool:
    """Tell whether a package can be imported: litellm lies in the tests' environment without what it needs."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def litellm_loop(calls: list[tuple[Any, ...]]) -> float:
    """Price call by call with litellm."""
    import litellm

    names = {"openai": "openai", "anthropic": "anthropic", "google": "gemini"}
    total = 0.0
    for provider, model, whole, cached, answer, _ in calls:
        total += sum(
            litellm.cost_per_token(
                model=model, custom_llm_provider=names[provider], prompt_tokens=whole, completion_tokens=answer,
                cache_read_input_tokens=cached,
            )
        )  # fmt: skip
    return total


def genai_loop(calls: list[tuple[Any, ...]]) -> Decimal:
    """Price call by call with genai-prices."""
    import genai_prices

    total = Decimal(0)
    for provider, model, whole, cached, answer, ts in calls:
        usage = genai_prices.Usage(input_tokens=whole, cache_read_tokens=cached, output_tokens=answer)
        total += genai_prices.calc_price(
            usage, model_ref=model, provider_id=provider, genai_request_timestamp=ts.replace(tzinfo=UTC)
        ).total_price
    return total
