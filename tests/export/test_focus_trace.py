"""A row of an export traced back to requests, price entry and cost in the ledger."""

from datetime import timedelta

import pytest
from focus_rows import CALL, DAY, ENTRY, HOSTILE, SOLORA

from tenfold.errors import ColumnError
from tenfold.export.focus_trace import trace


@pytest.mark.full
def test_a_row_is_traced_to_its_requests_and_price_entry(exported):
    calls = [CALL, {**CALL, "team": "=x"}, {**CALL, "ts": DAY + timedelta(days=1)}, {**CALL, "feature": "rag"}]
    rows = exported(calls)
    place = next(n for n, row in enumerate(rows, 1) if row["x_Team"] == "'=x" and row["x_Meter"] == "cache_read")
    found = trace(exported.ledger, exported.path, place)
    assert (found["model"], found["meter"], found["contracted_usd"]) == ("solora", "cache_read", "2.4")
    assert (found["ledger_units"], found["ledger_usd"], found["agrees"]) == (8_000_000, "2.40", True)
    assert [one["request_id"] for one in found["requests"]] == ["r1"]
    assert (found["entry"]["file"], found["entry"]["source"], found["is_same_log"]) == ("p.toml", "t", True)


@pytest.mark.full
def test_every_row_is_traced(exported):
    change = (
        f'[[price]]\nmodel = "solora"\nabove_input_tokens = 200000\ninput = 6\ncache_read = 0.6\noutput = 22.5\n{ENTRY}'
    )
    small = {"provider": "openai", "model": "solora", "ts": DAY, "input_tokens": 200_000, "output_tokens": 10}
    rows = exported(
        [{**small, "team": name} for name in HOSTILE] + [{**small, "input_tokens": 200_001}], SOLORA + change
    )
    found = [trace(exported.ledger, exported.path, n) for n in range(1, len(rows) + 1)]
    assert all(one["agrees"] and one["requests_count"] == 1 for one in found)


@pytest.mark.full
def test_what_cannot_be_traced_is_said(exported):
    exported([CALL])
    with pytest.raises(ColumnError, match="no row 9"):
        trace(exported.ledger, exported.path, 9)
