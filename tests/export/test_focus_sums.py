"""A FOCUS export says what the ledger says: every meter, every kind of cost, to the pUSD, and reads back the same."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
import strategies
from focus_rows import BY_TIME, HOSTILE, hold_products, ledger_sums, pusd, rows_of, sums
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from stores import log_of

from tenfold.errors import NotEvaluable
from tenfold.export import check_focus, export_focus
from tenfold.ledger import Ledger, attribute
from tenfold.logs import load
from tenfold.prices import price_book

QUICK = settings(
    max_examples=1,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
FULL = settings(QUICK, max_examples=60)
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

DISCOUNT = '[[discount]]\nprovider = "openai"\nsource = "ours"\npercent = 10\n'
CAPACITY = """
[[commitment]]
name = "PTU"
provider = "openai"
usd_per_hour = "0.7"
valid_from = 2026-01-03T05:30:00Z
valid_to = 2026-11-02T12:00:00Z
source = "ours"
"""
SPEND = """
[[commitment]]
name = "spend"
provider = "openai"
usd = 1000000
valid_from = 2026-01-01
valid_to = 2026-03-01
source = "ours"
"""
OVERLAYS = ("", DISCOUNT, CAPACITY, f'{DISCOUNT}meters = ["output"]\n{SPEND}')


def ledger_of(folder: Path, text: str, rows, overlay: str, names: list[str], *, tagged: bool) -> Ledger:
    """A ledger of these requests, owners drawn from hostile names; every third request has tags."""
    base, own = folder / "base", folder / "own"
    base.mkdir()
    own.mkdir()
    (base / "book.toml").write_text(text)
    (own / "contract.toml").write_text(overlay)
    book = price_book(base, overlay=own) if overlay else price_book(base)
    owners = ("team", "project", "org", "environment")
    for number, row in enumerate(rows):
        # chosen by the request's number, so that a failing example shows where they are
        row |= {owner: names[(number * 7 + place) % len(names)] or None for place, owner in enumerate(owners)}
    log = log_of(rows, book.thresholds)
    if tagged:
        with log.store.writing() as connection:
            for number, row in enumerate(rows[::3]):
                key, value = names[number % len(names)] or "k", names[(number * 5 + 1) % len(names)]
                connection.execute(
                    "update requests set tags = map {'a': 'b', $key: $value} where request_id = $id",
                    {"key": key, "value": value, "id": row["request_id"]},
                )
    return attribute(log, book)


def hold(ledger: Ledger, folder: Path, grain: str, ending: str) -> None:
    out = folder / f"focus.{ending}"
    try:
        made = export_focus(ledger, out, grain=grain)
    except NotEvaluable:
        assert ledger.coverage.is_unpriced or not ledger.coverage.requests
        return
    checked = check_focus(out)
    assert not checked.findings, checked.findings[:3]
    assert checked.rows == made.rows
    costs = ledger.costs()
    assert made.requests + made.unpriced_requests == ledger.coverage.requests
    assert made.unpriced_requests == ledger.coverage.unpriced_requests
    units, own = ledger_sums(ledger)
    if ending != "parquet":
        rows = rows_of(out)
        hold_products(rows)
        usage = [row for row in rows if row["ChargeCategory"] == "Usage" and row["x_Meter"] in ledger_meters()]
        found = sums(usage, "list", "contracted", "effective")
        assert found["contracted"] == own
        assert sum(pusd(row["EffectiveCost"]) for row in rows) == costs.total("effective")
        assert sum(pusd(row["BilledCost"]) for row in rows) == costs.total("effective")
        listed = [row for row in usage if row["x_ListPrice"] == "list"]
        priced_nowhere_else = ledger.coverage.unpriced_requests == costs.list_unpriced_requests
        if priced_nowhere_else:
            assert sum(pusd(row["ListCost"]) for row in listed) == costs.total("list")
        assert sum(int(row["x_RequestCount"] or 0) for row in rows) == made.requests
    back = load(out).buckets
    hold_back(back, made, units, own, ledger)


def ledger_meters() -> set[str]:
    from tenfold.prices.meters import METER_NAMES

    return set(METER_NAMES)


def hold_back(back, made, units, own, ledger) -> None:
    """What was read back: every meter's quantity and money, in each kind of amount."""
    totals: dict[str, int] = defaultdict(int)
    by_meter: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    quantities: dict[str, Decimal] = defaultdict(Decimal)
    requests: dict[str, int] = defaultdict(int)
    for row in back.to_dicts():
        totals[row["amount_kind"]] += pusd(str(row["amount_usd"]))
        by_meter[row["amount_kind"], row["meter"]] += pusd(str(row["amount_usd"]))
        if row["amount_kind"] == "contracted":
            quantities[row["meter"]] += row["quantity"]
        requests[row["amount_kind"]] += row["requests"] or 0
    names = {"contracted": "ContractedCost", "billed": "BilledCost", "effective": "EffectiveCost"}
    assert {kind: totals[kind] for kind in names} == {kind: made.costs[name] for kind, name in names.items()}
    assert totals["list"] == made.costs["ListCost"] - made.without_list_pusd
    assert {meter: int(by_meter["contracted", meter]) for meter in own} == own
    tokens = {meter: count for meter, count in units.items() if meter not in BY_TIME}
    assert {meter: int(quantities[meter]) for meter in tokens} == tokens
    assert set(requests.values()) <= {made.requests, 0} or ledger.book.list_book is not ledger.book
    assert requests["billed"] == made.requests


def drawn_of(most: int):
    return given(
        strategies.books_and_logs(min_size=most // 2, max_size=most),
        st.sampled_from(OVERLAYS),
        st.sampled_from(("day", "hour")),
        st.sampled_from(("csv", "csv.gz", "parquet")),
        st.lists(st.sampled_from(("", *HOSTILE)), min_size=1, max_size=6),
        st.booleans(),
    )


def run(drawn, overlay, grain, ending, names, *, tagged):
    text, rows = drawn
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        hold(ledger_of(folder, text, rows, overlay, names, tagged=tagged), folder, grain, ending)


@drawn_of(16)
@QUICK
def test_an_export_sums_to_the_ledger_and_reads_back(drawn, overlay, grain, ending, names, tagged):
    run(drawn, overlay, grain, ending, names, tagged=tagged)


@pytest.mark.full
@drawn_of(60)
@FULL
def test_exports_sum_to_the_ledger_and_read_back_at_length(drawn, overlay, grain, ending, names, tagged):
    run(drawn, overlay, grain, ending, names, tagged=tagged)


def test_nothing_priced_is_no_file(tmp_path):
    rows = [
        {
            "provider": "openai",
            "model": "nix",
            "ts": datetime(2026, 6, 1, tzinfo=UTC),
            "input_tokens": 1,
            "output_tokens": 1,
        }
    ]
    book = price_book()
    with pytest.raises(NotEvaluable, match="nothing to export"):
        export_focus(attribute(log_of(rows, book.thresholds), book), tmp_path / "f.csv")
    assert list(tmp_path.iterdir()) == []
