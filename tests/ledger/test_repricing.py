"""What history would have cost under a corrected book: the totals, and one adjustment a request that add up to them."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from corrected_prices import CORRECTED
from stores import log_of

from tenfold.ledger.repricing import adjustment, reprice
from tenfold.money import usd_text
from tenfold.prices import price_book

ROWS = [
    {"request_id": f"r{n}", "source_file": "a.jsonl", "source_line": n + 1, "provider": "openai", "model": model,
     "ts": datetime(2026, 8, 1 + n, tzinfo=UTC), "input_tokens": 1000 * n, "output_tokens": 10, "team": "x"}
    for n, model in enumerate(["gpt-5", "gpt-5-mini", "gpt-5", "gpt-new", "gpt-5"])
]  # fmt: skip


@pytest.fixture
def corrected(tmp_path):
    folder = tmp_path / "fix"
    folder.mkdir()
    (folder / "openai.toml").write_text(CORRECTED)
    return folder


def test_adjustments_are_what_changed_and_add_up(corrected):
    log = log_of(ROWS)
    found = reprice(log, price_book(), price_book(overlay=corrected), by_request=True)
    rows = [adjustment(row) for row in found.adjustments.rows(named=True)]
    assert [(row["request_id"], row["source_line"]) for row in rows] == [("r2", 3), ("r3", 4), ("r4", 5)]
    # r2: 2,000 input at 1.25 becomes 1; r4: 4,000 of them
    assert [row["adjustment_usd"] for row in rows] == ["-0.0005", None, "-0.001"]
    assert (rows[1]["old_status"], rows[1]["new_status"], rows[1]["new_usd"]) == ("unpriced_model", "priced", "0.00604")
    assert rows[0]["old_entry"].startswith("openai.toml no. ")
    assert rows[0]["new_entry"] == "openai.toml no. 1"
    change = sum(Decimal(row["adjustment_usd"] or 0) for row in rows)
    assert usd_text(found.total("new") - found.total("old")) == str(change)
    document = found.as_dict()
    by_meter = {(row["model"], row["meter"]): row["change_usd"] for row in document["rows"]}
    assert by_meter["gpt-5", "uncached_input"] == "-0.0015"
    assert by_meter["gpt-5-mini", "uncached_input"] == "0.00"
    # What one book alone prices is no change: it stands apart.
    assert [row for row in document["models"] if row["only_old_requests"] or row["only_new_requests"]] == [
        {
            "provider": "openai", "model": "gpt-new", "requests": 1, "only_old_requests": 0, "only_old_usd": "0.00",
            "only_new_requests": 1, "only_new_usd": "0.00604",
        }
    ]  # fmt: skip


def test_the_same_book_changes_nothing():
    found = reprice(log_of(ROWS), price_book(), price_book(), by_request=True)
    assert found.adjustments.is_empty()
    assert found.total("old") == found.total("new") > 0
