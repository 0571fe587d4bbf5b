"""The demo's whole bill, request by request, against the oracle."""

from datetime import UTC
from pathlib import Path

import oracle
import pytest

from tenfold.ledger import attribute
from tenfold.logs import load
from tenfold.prices import price_book

ROOT = Path(__file__).parents[2]


FILES = sorted((ROOT / "data" / "demo").glob("*.gz"))


@pytest.mark.parametrize(
    ("files", "least"),
    [
        pytest.param([str(ROOT / "data" / "demo" / "openai_responses.jsonl.gz")], 3_000, id="one file"),
        pytest.param([str(path) for path in FILES], 20_000, id="all", marks=pytest.mark.full),
    ],
)
def test_the_oracle_finds_the_same_bill(files, least):
    log = load(files, thresholds=price_book().thresholds)
    ledger = attribute(log)
    rows = [{**row, "ts": row["ts"] and row["ts"].replace(tzinfo=UTC)} for row in log.requests.rows(named=True)]
    right = oracle.bill(oracle.load_book(ROOT / "pricing"), rows)
    assert len(rows) > least
    assert ledger.total_pusd == right.total_pusd
    teams = {row["team"]: int(row["cost_pusd"]) for row in ledger.composition(["team"]).frame.rows(named=True)}
    assert teams == {
        team: int(bill.total_pusd)
        for (team,), bill in oracle.group(oracle.load_book(ROOT / "pricing"), rows, ["team"]).items()
    }
